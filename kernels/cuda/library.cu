/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * cuBLAS behind library.h: opened by name when a mode needs it, never linked. Its scalar twin is
 * library_twin.c; what is here needs a device and nothing else runs it.
 *
 * split_k on: cublasGemmEx, whose heuristics may split k. Off: cublasLtMatmul with the first
 * algorithm of its heuristics that needs no reduction, looked up once for a shape and kept.
 * workspace: one buffer for each stream, given to both; or what cuBLAS takes itself (cublasLt: none
 * beyond the device's usual size). The streams wait for the default stream and it for them; for one
 * another they wait in library_join() only, by events.
 * Invariant: results hang on the switches, the shape, the addresses' alignment, the library and the
 * device; with all of them fixed cuBLAS promises the same bits, run to run, on one stream. */
#include "kernels/cuda/library.h"

#include "base/module_kit.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if !__has_include(<cublas_v2.h>) || !__has_include(<cublasLt.h>)

enum status library_open(void) {
    FAIL(STATUS_UNSUPPORTED,
         "cuda: this module was built without the headers of cuBLAS; numerics.library: none goes "
         "without it");
}

enum status library_error(void) {
    return STATUS_OK;
}

void library_version(struct library_versions *out) {
    memset(out, 0, sizeof *out);
}

int library_has(const struct library_mode *, const struct library_product *, unsigned) {
    return 1;
}

void library_multiply(const struct library_mode *, const struct library_product *, unsigned) {
}

void library_join(void) {
}

#else

#include <cublasLt.h>
#include <cublas_v2.h>

#define LIBRARY_WORKSPACE ((size_t)32 << 20) /* of all streams; PyTorch's on Hopper */
#define LIBRARY_PLANS 256u

#if CUDART_VERSION >= 13000
#define LIBRARY_NAMES "libcublas.so.13", "libcublas.so.12"
#define LIBRARY_NAMES_LT "libcublasLt.so.13", "libcublasLt.so.12"
#else
#define LIBRARY_NAMES "libcublas.so.12", "libcublas.so.13"
#define LIBRARY_NAMES_LT "libcublasLt.so.12", "libcublasLt.so.13"
#endif

/* Every function that is called, by its name in the library. */
#define LIBRARY_FUNCTIONS(f)                                                                       \
    f(create, cublasCreate_v2) f(destroy, cublasDestroy_v2) f(set_stream, cublasSetStream_v2)      \
        f(set_workspace, cublasSetWorkspace_v2) f(set_atomics, cublasSetAtomicsMode)               \
            f(set_math, cublasSetMathMode) f(text, cublasGetStatusString)                          \
                f(property, cublasGetProperty)
#define LIBRARY_FUNCTIONS_LT(f)                                                                    \
    f(lt_create, cublasLtCreate) f(lt_destroy, cublasLtDestroy)                                    \
        f(lt_desc_create, cublasLtMatmulDescCreate) f(lt_desc_set, cublasLtMatmulDescSetAttribute) \
            f(lt_desc_destroy, cublasLtMatmulDescDestroy)                                          \
                f(lt_layout_create, cublasLtMatrixLayoutCreate)                                    \
                    f(lt_layout_destroy, cublasLtMatrixLayoutDestroy)                              \
                        f(lt_pref_create, cublasLtMatmulPreferenceCreate)                          \
                            f(lt_pref_set, cublasLtMatmulPreferenceSetAttribute)                   \
                                f(lt_pref_destroy, cublasLtMatmulPreferenceDestroy)                \
                                    f(lt_find, cublasLtMatmulAlgoGetHeuristic)                     \
                                        f(lt_multiply, cublasLtMatmul)                             \
                                            f(lt_property, cublasLtGetProperty)

/* cublasGemmEx, whose name C++ gives to several. */
typedef cublasStatus_t (*library_gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                          int, int, const void *, const void *, cudaDataType_t, int,
                                          const void *, cudaDataType_t, int, const void *, void *,
                                          cudaDataType_t, int, cublasComputeType_t,
                                          cublasGemmAlgo_t);

/* What an algorithm was looked up for. Column-major, as the library has it: m and n swapped. */
struct library_shape {
    uint64_t m, n, k, lda, ldb, ldc;
    uint64_t workspace;
    uint32_t type, operations, alignment, zero;
};

struct library_plan {
    struct library_shape shape;
    int none; /* no algorithm without a reduction */
    cublasLtMatmulAlgo_t algo;
};

/* Of one host thread, as the runtime's current device is. */
struct library_here {
    int opened, failed; /* failed: `error` is to be told */
    char error[256];    /* the first failure since it was told, or why the last open failed */
    void *library, *library_lt;
#define LIBRARY_MEMBER(member, function) decltype(&function) member;
    LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
    LIBRARY_FUNCTIONS_LT(LIBRARY_MEMBER)
    library_gemm_ex gemm;
    cublasHandle_t handle;
    cublasLtHandle_t lt;
    cudaStream_t stream[LIBRARY_STREAMS];
    cudaEvent_t event[LIBRARY_STREAMS]; /* where each stream was when they were joined */
    void *workspace;
    size_t usual; /* bytes of a workspace that cuBLAS takes by itself on this device */
    struct library_plan plan[LIBRARY_PLANS];
    uint32_t plans;
};

static thread_local struct library_here here;

/* ---- opening ---- */

/* Fails, and keeps the text, unless an earlier one waits to be told: where a product was the one to
 * open cuBLAS, nobody looks at this status. */
static enum status library_refuse(enum status code, const char *format, ...) {
    char text[sizeof here.error];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!here.failed) memcpy(here.error, text, sizeof text);
    FAIL(code, "cuda: %s", text);
}

/* The first of the names that the loader finds; its place among them. */
static void *library_load(const char *const *names, size_t count, size_t *out_place) {
    for (size_t i = 0; i < count; i++) {
        void *const library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        *out_place = i;
        if (library != nullptr) return library;
    }
    return nullptr;
}

template <typename function>
static int library_symbol(void *library, const char *name, function *out) {
    *out = (function)dlsym(library, name);
    return *out != nullptr;
}

static enum status library_find(void) {
    static const char *const names[] = {LIBRARY_NAMES};
    static const char *const names_lt[] = {LIBRARY_NAMES_LT};
    const char *missing = nullptr;
    size_t place, alone;
    here.library = library_load(names, sizeof names / sizeof names[0], &place);
    if (here.library == nullptr)
        return library_refuse(STATUS_UNSUPPORTED,
                              "expected cuBLAS (%s or %s) where the loader looks, found none; "
                              "numerics.library: none goes without it",
                              names[0], names[1]);
    here.library_lt = library_load(&names_lt[place], 1, &alone); /* of the same version */
    if (here.library_lt == nullptr)
        return library_refuse(STATUS_UNSUPPORTED, "%s is there, but not %s", names[place],
                              names_lt[place]);
#define LIBRARY_FIND(member, function)                                                             \
    if (!library_symbol(here.library, #function, &here.member)) missing = #function;
#define LIBRARY_FIND_LT(member, function)                                                          \
    if (!library_symbol(here.library_lt, #function, &here.member)) missing = #function;
    LIBRARY_FUNCTIONS(LIBRARY_FIND)
    if (!library_symbol(here.library, "cublasGemmEx", &here.gemm)) missing = "cublasGemmEx";
    LIBRARY_FUNCTIONS_LT(LIBRARY_FIND_LT)
    if (missing != nullptr)
        return library_refuse(STATUS_UNSUPPORTED, "this cuBLAS has no %s", missing);
    return STATUS_OK;
}

static enum status library_start(void) {
    int major = 0;
    TRY(library_find());
    cublasStatus_t status = here.create(&here.handle);
    if (status == CUBLAS_STATUS_SUCCESS) status = here.lt_create(&here.lt);
    if (status != CUBLAS_STATUS_SUCCESS)
        return library_refuse(STATUS_INTERNAL, "cuBLAS does not start: %s", here.text(status));
    cudaError_t error = cudaMalloc(&here.workspace, LIBRARY_WORKSPACE);
    for (unsigned i = 0; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaStreamCreate(&here.stream[i]);
    for (unsigned i = 0; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&here.event[i], cudaEventDisableTiming);
    if (error != cudaSuccess)
        return library_refuse(STATUS_INTERNAL, "workspace and streams of cuBLAS: %s",
                              cudaGetErrorString(error));
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    here.usual = (size_t)(major >= 9 ? 32 : 4) << 20;
    here.opened = 1;
    return STATUS_OK;
}

/* What was opened before something failed, in reverse; only the error is kept. */
static void library_drop(void) {
    for (unsigned i = LIBRARY_STREAMS; i-- > 0;)
        if (here.event[i] != nullptr) cudaEventDestroy(here.event[i]);
    for (unsigned i = LIBRARY_STREAMS; i-- > 0;)
        if (here.stream[i] != nullptr) cudaStreamDestroy(here.stream[i]);
    if (here.workspace != nullptr) cudaFree(here.workspace);
    if (here.lt != nullptr) here.lt_destroy(here.lt);
    if (here.handle != nullptr) here.destroy(here.handle);
    if (here.library_lt != nullptr) dlclose(here.library_lt);
    if (here.library != nullptr) dlclose(here.library);
    (void)cudaGetLastError();
    struct library_here empty = library_here();
    empty.failed = here.failed;
    memcpy(empty.error, here.error, sizeof empty.error);
    here = empty;
}

enum status library_open(void) {
    if (here.opened) return STATUS_OK;
    const enum status status = library_start();
    if (status != STATUS_OK) library_drop();
    return status;
}

typedef cublasStatus_t (*library_property)(libraryPropertyType, int *);

static void library_number(library_property property, char *text, size_t size) {
    static const libraryPropertyType parts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    int number[3];
    for (int i = 0; i < 3; i++)
        if (property(parts[i], &number[i]) != CUBLAS_STATUS_SUCCESS) return;
    snprintf(text, size, "%d.%d.%d", number[0], number[1], number[2]);
}

void library_version(struct library_versions *out) {
    memset(out, 0, sizeof *out);
    if (!here.opened) return;
    library_number(here.property, out->cublas, sizeof out->cublas);
    library_number(here.lt_property, out->cublaslt, sizeof out->cublaslt);
}

/* ---- errors ---- */

static int library_note(cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    if (!here.failed)
        snprintf(here.error, sizeof here.error, "cuBLAS: %s: %s", what, here.text(status));
    here.failed = 1;
    return 1;
}

/* Stream 0 waits for the others, and they for it. */
void library_join(void) {
    cudaError_t error = cudaSuccess;
    if (!here.opened) return; /* no stream has a product */
    for (unsigned i = 1; i < LIBRARY_STREAMS && error == cudaSuccess; i++) {
        error = cudaEventRecord(here.event[i], here.stream[i]);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(here.stream[0], here.event[i], 0);
    }
    if (error == cudaSuccess) error = cudaEventRecord(here.event[0], here.stream[0]);
    for (unsigned i = 1; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaStreamWaitEvent(here.stream[i], here.event[0], 0);
    if (error == cudaSuccess) return;
    if (!here.failed)
        snprintf(here.error, sizeof here.error, "streams of cuBLAS: %s", cudaGetErrorString(error));
    here.failed = 1;
}

enum status library_error(void) {
    if (!here.failed) return STATUS_OK;
    here.failed = 0;
    FAIL(STATUS_INTERNAL, "cuda: %s", here.error);
}

/* ---- one product ---- */

/* Row-major C = A . B is column-major C' = B' . A'. */
struct library_call {
    const struct library_product *p;
    cublasOperation_t left, right;
    int m, n, k, lda, ldb, ldc;
    cudaDataType_t type, sum;
    cublasComputeType_t compute;
    float one, beta;
    double one_wide, beta_wide;
    const void *alpha_at, *beta_at;
};

static cudaDataType_t library_type_of(enum dtype type) {
    return type == DTYPE_F64    ? CUDA_R_64F
           : type == DTYPE_BF16 ? CUDA_R_16BF
           : type == DTYPE_F16  ? CUDA_R_16F
                                : CUDA_R_32F;
}

static void library_describe(const struct library_product *p, struct library_call *out) {
    const int wide = p->sum == DTYPE_F64;
    memset(out, 0, sizeof *out);
    out->p = p;
    out->left = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    out->right = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    out->m = (int)p->N;
    out->n = (int)p->M;
    out->k = (int)p->K;
    out->lda = (int)p->b_stride;
    out->ldb = (int)p->a_stride;
    out->ldc = (int)p->c_stride;
    out->type = library_type_of(p->type);
    out->sum = wide ? CUDA_R_64F : CUDA_R_32F;
    out->compute = wide                    ? CUBLAS_COMPUTE_64F
                   : p->type == DTYPE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                           : CUBLAS_COMPUTE_32F;
    out->one = 1.0f;
    out->one_wide = 1.0;
    out->beta = p->held ? 1.0f : 0.0f;
    out->beta_wide = p->held ? 1.0 : 0.0;
    out->alpha_at = wide ? (const void *)&out->one_wide : (const void *)&out->one;
    out->beta_at = wide ? (const void *)&out->beta_wide : (const void *)&out->beta;
}

static char *library_workspace(const struct library_mode *mode, unsigned part, size_t *bytes) {
    *bytes = mode->ordered ? LIBRARY_WORKSPACE : LIBRARY_WORKSPACE / LIBRARY_STREAMS;
    return (char *)here.workspace + part * *bytes;
}

/* Setting a stream takes a workspace back that was given earlier. */
static void library_gemm(const struct library_mode *mode, const struct library_call *c,
                         unsigned part) {
    size_t bytes = 0;
    char *const workspace = library_workspace(mode, part, &bytes);
    const cublasAtomicsMode_t atomics =
        mode->atomics ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED;
    if (library_note(here.set_stream(here.handle, here.stream[part]), "cublasSetStream") ||
        library_note(here.set_atomics(here.handle, atomics), "cublasSetAtomicsMode") ||
        library_note(here.set_math(here.handle, CUBLAS_DEFAULT_MATH), "cublasSetMathMode"))
        return;
    if (mode->pinned &&
        library_note(here.set_workspace(here.handle, workspace, bytes), "cublasSetWorkspace"))
        return;
    library_note(here.gemm(here.handle, c->left, c->right, c->m, c->n, c->k, c->alpha_at, c->p->b,
                           c->type, c->lda, c->p->a, c->type, c->ldb, c->beta_at, c->p->c, c->sum,
                           c->ldc, c->compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

/* ---- without a split of k ---- */

struct library_lt {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t left, right, out;
};

static void library_lt_close(struct library_lt *lt) {
    if (lt->out != nullptr) here.lt_layout_destroy(lt->out);
    if (lt->right != nullptr) here.lt_layout_destroy(lt->right);
    if (lt->left != nullptr) here.lt_layout_destroy(lt->left);
    if (lt->desc != nullptr) here.lt_desc_destroy(lt->desc);
}

static int library_layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, cublasOperation_t op,
                          int rows, int columns, int stride) {
    const int turned = op == CUBLAS_OP_T;
    return library_note(here.lt_layout_create(out, type, (uint64_t)(turned ? columns : rows),
                                              (uint64_t)(turned ? rows : columns), stride),
                        "cublasLtMatrixLayoutCreate");
}

static int library_lt_open(const struct library_call *c, struct library_lt *lt) {
    memset(lt, 0, sizeof *lt);
    return library_note(here.lt_desc_create(&lt->desc, c->compute, c->sum),
                        "cublasLtMatmulDescCreate") ||
           library_note(
               here.lt_desc_set(lt->desc, CUBLASLT_MATMUL_DESC_TRANSA, &c->left, sizeof c->left),
               "transa") ||
           library_note(
               here.lt_desc_set(lt->desc, CUBLASLT_MATMUL_DESC_TRANSB, &c->right, sizeof c->right),
               "transb") ||
           library_layout(&lt->left, c->type, c->left, c->m, c->k, c->lda) ||
           library_layout(&lt->right, c->type, c->right, c->k, c->n, c->ldb) ||
           library_layout(&lt->out, c->sum, CUBLAS_OP_N, c->m, c->n, c->ldc);
}

/* The largest power of two, 256 at most, that all three addresses are multiples of. */
static uint32_t library_alignment(const struct library_product *p) {
    const uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | 256;
    return (uint32_t)(all & (~all + 1));
}

static cublasStatus_t library_look_up(const struct library_lt *lt, const struct library_shape *s,
                                      struct library_plan *out) {
    const uint32_t no_reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t wish = nullptr;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    memset(&found, 0, sizeof found);
    cublasStatus_t status = here.lt_pref_create(&wish);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = here.lt_pref_set(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &no_reduction,
                              sizeof no_reduction);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = here.lt_pref_set(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &s->workspace,
                                  sizeof s->workspace);
    for (size_t i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; i++)
        status = here.lt_pref_set(wish, aligned[i], &s->alignment, sizeof s->alignment);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = here.lt_find(here.lt, lt->desc, lt->left, lt->right, lt->out, lt->out, wish, 1,
                              &found, &count);
    here.lt_pref_destroy(wish);
    out->none = status == CUBLAS_STATUS_NOT_SUPPORTED || count == 0 ||
                found.state != CUBLAS_STATUS_SUCCESS; /* then the algorithm is not a valid one */
    out->algo = found.algo;
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? CUBLAS_STATUS_SUCCESS : status;
}

/* Kept for a shape: what was once chosen is chosen again. The oldest goes when the table is full;
 * the heuristics are a function of the shape, so it would come back the same. NULL: they failed. */
static const struct library_plan *library_plan_of(const struct library_call *c,
                                                  const struct library_shape *shape) {
    const uint32_t kept = here.plans < LIBRARY_PLANS ? here.plans : LIBRARY_PLANS;
    struct library_lt lt;
    for (uint32_t i = 0; i < kept; i++)
        if (memcmp(&here.plan[i].shape, shape, sizeof *shape) == 0) return &here.plan[i];
    struct library_plan *const plan = &here.plan[here.plans % LIBRARY_PLANS];
    const int failed = library_lt_open(c, &lt) || library_note(library_look_up(&lt, shape, plan),
                                                               "an algorithm without split k");
    library_lt_close(&lt);
    memset(&plan->shape, 0, sizeof plan->shape);
    if (failed) return nullptr;
    plan->shape = *shape;
    here.plans++;
    return plan;
}

static struct library_shape library_shape_of(const struct library_mode *mode,
                                             const struct library_call *c, size_t bytes) {
    struct library_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.m = (uint64_t)c->m;
    shape.n = (uint64_t)c->n;
    shape.k = (uint64_t)c->k;
    shape.lda = (uint64_t)c->lda;
    shape.ldb = (uint64_t)c->ldb;
    shape.ldc = (uint64_t)c->ldc;
    shape.workspace = !mode->pinned && here.usual < bytes ? here.usual : bytes;
    shape.type = (uint32_t)c->p->type;
    shape.operations = (c->left == CUBLAS_OP_T) | (c->right == CUBLAS_OP_T) << 1 | c->p->held << 2;
    shape.alignment = library_alignment(c->p);
    return shape;
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
                                      here.stream[part]),
                     "cublasLtMatmul");
    library_lt_close(&lt);
}

/* Opens cuBLAS where another thread of the host did; why not is told as of any product. */
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

/* What fails is told when the product is started. */
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

#endif
