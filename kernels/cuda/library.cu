/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 *
 * cuBLAS behind library.h: opened by name when a mode needs it, never linked. Its scalar twin for
 * tests is tests/shim/library_twin.c; what is here needs a device, or the made-up one of
 * tests/kernels/cublas_host.py.
 *
 * With split_k (the default of both modes) it calls cublasGemmEx, whose heuristics may split k;
 * without, cublasLtMatmul with the first algorithm of its heuristics that needs no reduction
 * (library_plan.cu). The workspace is
 * one buffer for each stream, given to both; or what cuBLAS takes itself (cublasLt: none beyond the
 * device's usual size). Ordered products are on the default stream, as our kernels are, and need no
 * events; others are on streams that wait for it and it for them, and for one another in
 * library_join() only.
 *
 * Invariant: results depend on the switches, the shape, the addresses' alignment, the library and
 * the device; with all of them fixed cuBLAS promises the same bits, run to run, on one stream. */
#include "kernels/cuda/library.h"

#include "base/module_kit.h"

#include <string.h>

#if !__has_include(<cublas_v2.h>) || !__has_include(<cublasLt.h>)
#error "expected the headers of cuBLAS (package libcublas-dev of this release of CUDA)"
#endif

#include "kernels/cuda/library_handle.cu"
#include "kernels/cuda/library_plan.cu"

static char *library_workspace(const struct library_mode *mode, unsigned part, size_t *bytes) {
    *bytes = mode->ordered ? LIBRARY_WORKSPACE : LIBRARY_WORKSPACE / LIBRARY_STREAMS;
    return (char *)here.workspace + part * *bytes;
}

/* The stream of a product. The default stream, where all our kernels are, waits for the others, and
 * they for it. */
static cudaStream_t library_stream(const struct library_mode *mode, unsigned part) {
    return mode->ordered ? nullptr : here.stream[part];
}

/* Calls cublasGemmEx. Setting a stream takes back a workspace that was given earlier, so it is
 * given again each time. Workers that have parts of a sum join them in f32, where C is shorter,
 * too, so that a sum is rounded once. */
static void library_gemm(const struct library_mode *mode, const struct library_call *c,
                         unsigned part) {
    size_t bytes = 0;
    char *const workspace = library_workspace(mode, part, &bytes);
    const cublasAtomicsMode_t atomics =
        mode->atomics ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED;
    const int shorter = c->p->out == DTYPE_BF16 || c->p->out == DTYPE_F16;
    const cublasMath_t math =
        shorter ? CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION : CUBLAS_DEFAULT_MATH;
    if (library_note(here.set_stream(here.handle, library_stream(mode, part)), "cublasSetStream") ||
        library_note(here.set_atomics(here.handle, atomics), "cublasSetAtomicsMode") ||
        library_note(here.set_math(here.handle, math), "cublasSetMathMode"))
        return;
    if (mode->pinned &&
        library_note(here.set_workspace(here.handle, workspace, bytes), "cublasSetWorkspace"))
        return;
    library_note(here.gemm(here.handle, c->left, c->right, c->m, c->n, c->k, c->alpha_at, c->p->b,
                           c->type, c->lda, c->p->a, c->type, c->ldb, c->beta_at, c->p->c, c->out,
                           c->ldc, c->compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

static void library_whole(const struct library_mode *mode, const struct library_call *c,
                          unsigned part) {
    size_t bytes = 0;
    char *const workspace = library_workspace(mode, part, &bytes);
    const struct library_shape shape = library_shape_of(mode, c, bytes);
    const struct library_plan *const plan = library_plan_of(c, &shape);
    struct library_lt lt;
    if (plan == nullptr) return;
    if (plan->none) {
        library_note(CUBLAS_STATUS_NOT_SUPPORTED, "a product that it has no algorithm for");
        return;
    }
    if (!library_lt_open(c, &lt))
        library_note(here.lt_multiply(here.lt, lt.desc, c->alpha_at, c->p->b, lt.left, c->p->a,
                                      lt.right, c->beta_at, c->p->c, lt.out, c->p->c, lt.out,
                                      &plan->algo, workspace, (size_t)shape.workspace,
                                      library_stream(mode, part)),
                     "cublasLtMatmul");
    library_lt_close(&lt);
}

/* Whether cuBLAS can be told of the product: it opens, and the sizes fit its 32 bits. It is open
 * per host thread, so a thread that is not the one that opened the run may open it here; why that
 * fails is told as of any product. */
static int library_can(const struct library_product *p) {
    const size_t most = INT32_MAX;
    const int opens = library_open() == STATUS_OK;
    if (opens && p->M <= most && p->N <= most && p->K <= most && p->a_stride <= most &&
        p->b_stride <= most && p->c_stride <= most)
        return 1;
    if (opens && !here.failed)
        snprintf(here.error, sizeof here.error, "cuBLAS: a matrix with 2^31 lines or more");
    here.failed = 1;
    return 0;
}

/* Asks only; what fails here is told when the product is started. */
int library_has(const struct library_mode *mode, const struct library_product *product,
                unsigned part) {
    struct library_call call;
    size_t bytes = 0;
    if (mode->split_k || !library_can(product)) return 1;
    library_describe(product, &call);
    library_workspace(mode, part, &bytes);
    const struct library_shape shape = library_shape_of(mode, &call, bytes);
    const struct library_plan *const plan = library_plan_of(&call, &shape);
    return plan == nullptr || !plan->none;
}

void library_multiply(const struct library_mode *mode, const struct library_product *product,
                      unsigned part) {
    struct library_call call;
    if (!library_can(product)) return;
    library_describe(product, &call);
    if (mode->split_k)
        library_gemm(mode, &call, part);
    else
        library_whole(mode, &call, part);
}
