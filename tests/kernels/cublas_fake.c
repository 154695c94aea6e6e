/* SPDX-License-Identifier: Apache-2.0
 * A made-up cuBLAS, which cublas_host.cpp loads as libcublas.so.13 and libcublasLt.so.13. It has
 * every function that kernels/cuda/library.cu calls, with cuBLAS's declarations; it refuses what
 * cuBLAS's manual calls wrong, and adds one product after the other. The test decides which call
 * fails (fake_step) and what the heuristics answer (fake_lacks), and reads how many objects are
 * open (fake_live) and what the last product was given. */
#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>)

#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

#include "base/real.h"
#include "kernels/cuda/short.h"

enum { HANDLE, HANDLE_LT, DESCRIPTOR, LAYOUT, WISH };
extern int fake_live[], fake_lacks, fake_asked, fake_multiplied, fake_multiplied_ex;
extern void *fake_stream, *fake_workspace;
extern size_t fake_workspace_bytes;
extern int fake_compute, fake_full; /* full: a call that fails has no memory */
int fake_step(void);

/* One object that a caller can open: a descriptor, a layout, or a preference. */
struct thing {
    int used;
    int compute, scale, operation[2];
    int type;
    uint64_t rows, columns;
    int64_t line;
    uint32_t reductions, alignment[4];
    uint64_t workspace;
};

static struct thing things[256];

static cublasStatus_t open_one(void **out, int kind) {
    int i = 0;
    if (fake_step()) return fake_full ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_INVALID_VALUE;
    while (things[i].used)
        i++;
    memset(&things[i], 0, sizeof things[i]);
    things[i].used = 1;
    things[i].reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    for (int a = 0; a < 4; a++)
        things[i].alignment[a] = 256;
    fake_live[kind]++;
    *out = &things[i];
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t close_one(void *it, int kind) {
    ((struct thing *)it)->used = 0;
    fake_live[kind]--;
    return CUBLAS_STATUS_SUCCESS;
}

static struct thing *thing_of(const void *it) {
    return (struct thing *)(uintptr_t)it;
}

/* ---- handles ---- */

cublasStatus_t cublasCreate_v2(cublasHandle_t *out) {
    return open_one((void **)out, HANDLE);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    return close_one(handle, HANDLE);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
    return open_one((void **)out, HANDLE_LT);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return close_one(handle, HANDLE_LT);
}

cublasStatus_t cublasGetProperty(libraryPropertyType which, int *out) {
    *out = 13 - (int)which;
    return fake_lacks == 9 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType which, int *out) {
    *out = 23 + (int)which;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_INVALID_VALUE  ? "a wrong value"
           : status == CUBLAS_STATUS_ALLOC_FAILED ? "no room"
                                                  : "no support";
}

static cublasStatus_t stepped(void) {
    return fake_step() ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* cuBLAS's manual says of this call that it "unconditionally resets the workspace". */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    (void)handle;
    fake_stream = stream;
    fake_workspace = NULL;
    fake_workspace_bytes = 0;
    return stepped();
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    (void)handle;
    fake_workspace = workspace;
    fake_workspace_bytes = bytes;
    return (uintptr_t)workspace % 256 != 0 ? CUBLAS_STATUS_INVALID_VALUE : stepped();
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
    (void)handle, (void)mode;
    return stepped();
}

static int fake_math;

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    (void)handle;
    fake_math = (int)mode;
    return mode != CUBLAS_DEFAULT_MATH && mode != CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
               ? CUBLAS_STATUS_INVALID_VALUE
               : stepped();
}

static int is_short(int type) {
    return type == CUDA_R_16BF || type == CUDA_R_16F;
}

/* ---- one product, column-major ---- */

struct matrix {
    int type;
    const void *at;
    uint64_t rows, columns; /* as it lies */
    int64_t line;
    int turned;
};

static double number(const struct matrix *matrix, uint64_t row, uint64_t column) {
    const uint64_t at = matrix->turned ? row * (uint64_t)matrix->line + column
                                       : column * (uint64_t)matrix->line + row;
    if (matrix->type == CUDA_R_64F) return ((const double *)matrix->at)[at];
    if (matrix->type == CUDA_R_32F) return (double)((const float *)matrix->at)[at];
    return (double)short_value(((const uint16_t *)matrix->at)[at],
                               matrix->type == CUDA_R_16F ? DTYPE_F16 : DTYPE_BF16);
}

/* The combinations of types that cuBLAS's manual allows and that library.cu may ask for. */
static int types_fit(int compute, int scale, int type, int out) {
    if (compute == CUBLAS_COMPUTE_64F)
        return scale == CUDA_R_64F && type == CUDA_R_64F && out == CUDA_R_64F;
    if (scale != CUDA_R_32F || (out != CUDA_R_32F && (out != type || !is_short(out)))) return 0;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return type == CUDA_R_32F;
    return compute == CUBLAS_COMPUTE_32F && (type == CUDA_R_32F || is_short(type));
}

static uint64_t rows_of(const struct matrix *matrix) {
    return matrix->turned ? matrix->columns : matrix->rows;
}

static uint64_t columns_of(const struct matrix *matrix) {
    return matrix->turned ? matrix->rows : matrix->columns;
}

static int shapes_fit(const struct matrix *a, const struct matrix *b, const struct matrix *c) {
    return rows_of(a) == c->rows && columns_of(b) == c->columns && columns_of(a) == rows_of(b) &&
           a->line >= (int64_t)a->rows && b->line >= (int64_t)b->rows &&
           c->line >= (int64_t)c->rows && a->type == b->type;
}

static double scalar(const void *at, int type) {
    return type == CUDA_R_64F ? *(const double *)at : (double)*(const float *)at;
}

static void multiply(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                     const void *alpha, const void *beta, void *out) {
    const double times = scalar(alpha, c->type), keeps = scalar(beta, c->type);
    for (uint64_t column = 0; column < c->columns; column++)
        for (uint64_t row = 0; row < c->rows; row++) {
            double sum = keeps == 0.0 ? 0.0 : keeps * number(c, row, column);
            for (uint64_t k = 0; k < columns_of(a); k++)
                sum += times * number(a, row, k) * number(b, k, column);
            const uint64_t at = column * (uint64_t)c->line + row;
            if (c->type == CUDA_R_64F)
                ((double *)out)[at] = sum;
            else if (c->type == CUDA_R_16BF)
                ((uint16_t *)out)[at] = short_bits(real_round_bf16_f32((float)sum), DTYPE_BF16);
            else if (c->type == CUDA_R_16F)
                ((uint16_t *)out)[at] = short_bits(real_round_f16_f32((float)sum), DTYPE_F16);
            else
                ((float *)out)[at] = (float)sum;
        }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void *alpha,
                            const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
    const int ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T;
    const struct matrix a = {Atype, A, (uint64_t)(ta ? k : m), (uint64_t)(ta ? m : k), lda, ta};
    const struct matrix b = {Btype, B, (uint64_t)(tb ? n : k), (uint64_t)(tb ? k : n), ldb, tb};
    const struct matrix c = {Ctype, C, (uint64_t)m, (uint64_t)n, ldc, 0};
    (void)handle;
    fake_multiplied_ex++;
    fake_compute = (int)compute;
    if (fake_step() || algo != CUBLAS_GEMM_DEFAULT || !shapes_fit(&a, &b, &c) ||
        is_short(Ctype) != (fake_math == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) ||
        !types_fit((int)compute, compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F, Atype,
                   Ctype))
        return CUBLAS_STATUS_INVALID_VALUE;
    multiply(&a, &b, &c, alpha, beta, C);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- cublasLt ---- */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    const cublasStatus_t status = open_one((void **)out, DESCRIPTOR);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    thing_of(*out)->compute = (int)compute;
    thing_of(*out)->scale = scale;
    return status;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t it) {
    return close_one(it, DESCRIPTOR);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t it,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t size) {
    const int right = which == CUBLASLT_MATMUL_DESC_TRANSB;
    if ((!right && which != CUBLASLT_MATMUL_DESC_TRANSA) || size != sizeof(int32_t))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&thing_of(it)->operation[right], value, size);
    return stepped();
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t line) {
    const cublasStatus_t status = open_one((void **)out, LAYOUT);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    thing_of(*out)->type = type;
    thing_of(*out)->rows = rows;
    thing_of(*out)->columns = columns;
    thing_of(*out)->line = line;
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t it) {
    return close_one(it, LAYOUT);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    return open_one((void **)out, WISH);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t it) {
    return close_one(it, WISH);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t it,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t size) {
    struct thing *const wish = thing_of(it);
    void *to;
    switch (which) {
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        to = &wish->reductions;
        break;
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        if (size != sizeof wish->workspace) return CUBLAS_STATUS_INVALID_VALUE;
        memcpy(&wish->workspace, value, size);
        return stepped();
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        to = &wish->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
        break;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (size != sizeof(uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return stepped();
}

static struct matrix matrix_of(const void *layout, const void *at, int operation) {
    const struct thing *const it = thing_of(layout);
    return (struct matrix){it->type, at, it->rows, it->columns, it->line, operation == CUBLAS_OP_T};
}

/* What an algorithm remembers: the product that it was looked up for, and its own attributes. */
struct algorithm {
    uint32_t parts, scheme, alignment, tells;
    uint64_t workspace, m, n, k, lines, types;
};
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "room of an algorithm");

static uint64_t lines_of(const struct matrix *a, const struct matrix *b, const struct matrix *c) {
    return (uint64_t)a->line + 100000u * (uint64_t)b->line + 10000000000u * (uint64_t)c->line;
}

static uint64_t types_of(const struct thing *desc, const struct matrix *a, const struct matrix *b,
                         const struct matrix *c) {
    return (uint64_t)desc->compute << 32 | (uint64_t)a->type << 16 | (uint64_t)c->type << 8 |
           (uint64_t)a->turned << 1 | (uint64_t)b->turned;
}

static int is_shape(const struct algorithm *own, const struct thing *desc, const struct matrix *a,
                    const struct matrix *b, const struct matrix *c) {
    return own->types == types_of(desc, a, b, c) && own->m == c->rows && own->n == c->columns &&
           own->k == columns_of(a) && own->lines == lines_of(a, b, c);
}

/* The heuristics answer, by fake_lacks: 0 one good algorithm; 1 none; 2 "not supported"; 3 one
 * whose own state is "not supported"; 4 such a one, one that splits k, one that reduces, and a good
 * one; 5 two that split k; 6 one that does not tell its attributes. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t it,
                                              cublasLtMatrixLayout_t left,
                                              cublasLtMatrixLayout_t right,
                                              cublasLtMatrixLayout_t old, cublasLtMatrixLayout_t to,
                                              cublasLtMatmulPreference_t wishes, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int *count) {
    static const int counts[] = {1, 0, 0, 1, 4, 2, 1};
    const struct thing *const desc = thing_of(it), *const wish = thing_of(wishes);
    const struct matrix a = matrix_of(left, NULL, desc->operation[0]),
                        b = matrix_of(right, NULL, desc->operation[1]),
                        c = matrix_of(to, NULL, CUBLAS_OP_N);
    (void)handle;
    fake_asked++;
    *count = 0;
    if (fake_step() || old != to || !shapes_fit(&a, &b, &c) ||
        !types_fit(desc->compute, desc->scale, a.type, c.type) || wish->reductions != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (fake_lacks == 2) return CUBLAS_STATUS_NOT_SUPPORTED;
    *count = counts[fake_lacks] < most ? counts[fake_lacks] : most;
    for (int i = 0; i < *count; i++) {
        const int splits = fake_lacks == 5 || (fake_lacks == 4 && i == 1);
        struct algorithm own = {.parts = splits ? 3 : 1,
                                .scheme = fake_lacks == 4 && i == 2
                                              ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_INPLACE
                                              : (uint32_t)CUBLASLT_REDUCTION_SCHEME_NONE,
                                .alignment = wish->alignment[0],
                                .tells = fake_lacks != 6,
                                .workspace = wish->workspace,
                                .m = c.rows,
                                .n = c.columns,
                                .k = columns_of(&a),
                                .lines = lines_of(&a, &b, &c),
                                .types = types_of(desc, &a, &b, &c)};
        for (int j = 1; j < 4; j++)
            if (wish->alignment[j] < own.alignment) own.alignment = wish->alignment[j];
        memcpy(&found[i].algo, &own, sizeof own);
        found[i].state = fake_lacks == 3 || (fake_lacks == 4 && i == 0)
                             ? CUBLAS_STATUS_NOT_SUPPORTED
                             : CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which,
                                                    void *value, size_t size, size_t *written) {
    struct algorithm own;
    memcpy(&own, algo, sizeof own);
    if (size != sizeof(uint32_t) || !own.tells) return CUBLAS_STATUS_INVALID_VALUE;
    *written = size;
    if (which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
        memcpy(value, &own.parts, size);
    else if (which == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
        memcpy(value, &own.scheme, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* Refuses an algorithm looked up for another shape, or promised more workspace than it is given. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t it, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t left, const void *B,
                              cublasLtMatrixLayout_t right, const void *beta, const void *C,
                              cublasLtMatrixLayout_t old, void *D, cublasLtMatrixLayout_t to,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                              cudaStream_t stream) {
    const struct thing *const desc = thing_of(it);
    const struct matrix a = matrix_of(left, A, desc->operation[0]),
                        b = matrix_of(right, B, desc->operation[1]),
                        c = matrix_of(to, C, CUBLAS_OP_N);
    const uintptr_t addresses = (uintptr_t)A | (uintptr_t)B | (uintptr_t)C;
    struct algorithm own;
    (void)handle;
    memcpy(&own, algo, sizeof own);
    fake_multiplied++;
    fake_compute = desc->compute;
    fake_stream = stream;
    fake_workspace = workspace;
    fake_workspace_bytes = bytes;
    if (fake_step() || old != to || C != D || !shapes_fit(&a, &b, &c) ||
        !types_fit(desc->compute, desc->scale, a.type, c.type) ||
        !is_shape(&own, desc, &a, &b, &c) || addresses % own.alignment != 0 ||
        own.workspace > bytes || (uintptr_t)workspace % 256 != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    multiply(&a, &b, &c, alpha, beta, D);
    return CUBLAS_STATUS_SUCCESS;
}

#endif
