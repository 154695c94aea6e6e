/* SPDX-License-Identifier: Apache-2.0
 * What cublas_host.cpp loads as libcublas.so.13 and libcublasLt.so.13: every function that
 * kernels/cuda/library.cu calls, no arithmetic. The program says which call fails
 * (fake_step), and keeps what is open (fake_live). Statuses: 0, 7 a wrong value, 15 no support. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* cublasLtMatmulHeuristicResult_t, as far as its state; cublas_host.cpp compares the places. */
struct found {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
};

enum { HANDLE, HANDLE_LT, DESCRIPTOR, LAYOUT, WISH };
extern int fake_live[], fake_lacks, fake_asked, fake_multiplied, fake_multiplied_ex;
int fake_step(void);

static int open_one(void **out, int kind) {
    static char something;
    if (fake_step()) return 7;
    *out = &something;
    fake_live[kind]++;
    return 0;
}

static int close_one(int kind) {
    fake_live[kind]--;
    return 0;
}

/* clang-format off */
int cublasCreate_v2(void **out) { return open_one(out, HANDLE); }
int cublasDestroy_v2(void *handle) { (void)handle; return close_one(HANDLE); }
int cublasLtCreate(void **out) { return open_one(out, HANDLE_LT); }
int cublasLtDestroy(void *handle) { (void)handle; return close_one(HANDLE_LT); }
int cublasLtMatmulDescCreate(void **out, int a, int b) { (void)a, (void)b; return open_one(out, DESCRIPTOR); }
int cublasLtMatmulDescDestroy(void *it) { (void)it; return close_one(DESCRIPTOR); }
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t stride) {
    (void)type, (void)rows, (void)columns, (void)stride;
    return open_one(out, LAYOUT);
}
int cublasLtMatrixLayoutDestroy(void *it) { (void)it; return close_one(LAYOUT); }
int cublasLtMatmulPreferenceCreate(void **out) { return open_one(out, WISH); }
int cublasLtMatmulPreferenceDestroy(void *it) { (void)it; return close_one(WISH); }
int cublasLtMatmulDescSetAttribute(void) { return fake_step() ? 7 : 0; }
int cublasLtMatmulPreferenceSetAttribute(void) { return fake_step() ? 7 : 0; }
int cublasSetStream_v2(void) { return fake_step() ? 7 : 0; }
int cublasSetWorkspace_v2(void) { return fake_step() ? 7 : 0; }
int cublasSetAtomicsMode(void) { return fake_step() ? 7 : 0; }
int cublasSetMathMode(void) { return fake_step() ? 7 : 0; }
const char *cublasGetStatusString(int status) { return status == 7 ? "a wrong value" : "no support"; }
/* clang-format on */

int cublasGetProperty(int which, int *out) { *out = 13 - which; return fake_lacks == 9 ? 7 : 0; }
int cublasLtGetProperty(int which, int *out) { *out = 23 + which; return 0; }

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *it, void *a, void *b, void *c, void *d,
                                   void *wish, int most, struct found *found, int *count) {
    (void)handle, (void)it, (void)a, (void)b, (void)c, (void)d, (void)wish, (void)most;
    fake_asked++;
    *count = fake_lacks == 0 || fake_lacks == 3;
    found->state = fake_lacks == 3 ? 15 : 0;
    return fake_step() ? 7 : fake_lacks == 2 ? 15 : 0;
}

int cublasLtMatmul(void) {
    fake_multiplied++;
    return fake_step() ? 7 : 0;
}

int cublasGemmEx(void) {
    fake_multiplied_ex++;
    return fake_step() ? 7 : 0;
}
