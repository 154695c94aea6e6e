/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * A product as cuBLAS is told of it, column-major, and the algorithm that cublasLt has for it
 * without a split of k: looked up once for a shape and kept. Included once, by library.cu, behind
 * library_handle.cu.
 *
 * Invariant: an algorithm depends on its shape, which has all that its heuristics were told. */
#define LIBRARY_PLANS 256u
#define LIBRARY_CANDIDATES 8 /* algorithms that the heuristics are asked for */

/* ---- one product ---- */

/* Row-major C = A . B is column-major C' = B' . A'. */
struct library_call {
    const struct library_product *p;
    cublasOperation_t left, right;
    int m, n, k, lda, ldb, ldc;
    cudaDataType_t type, sum, out;
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
    out->out = library_type_of(p->out);
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

/* What an algorithm was looked up for. It is column-major, as the library has it, so m and n are
 * swapped. */
struct library_shape {
    uint64_t m, n, k, lda, ldb, ldc;
    uint64_t workspace;
    uint32_t type, operations, alignment, out;
};

struct library_plan {
    struct library_shape shape;
    int none; /* 1: there is no algorithm without a reduction */
    cublasLtMatmulAlgo_t algo;
};

/* The algorithms that one host thread has looked up, as its cuBLAS is its own. */
struct library_plans {
    struct library_plan plan[LIBRARY_PLANS];
    uint32_t count;
};

static thread_local struct library_plans planned;

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
           library_layout(&lt->out, c->out, CUBLAS_OP_N, c->m, c->n, c->ldc);
}

/* The largest power of two, 256 at most, of which all three addresses are multiples. */
static uint32_t library_alignment(const struct library_product *p) {
    const uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | 256;
    return (uint32_t)(all & (~all + 1));
}

/* Checks what was asked for once more: whether an algorithm says that it deals the terms of a sum
 * to several workers. What it does not say counts as no. */
static int library_splits(const cublasLtMatmulAlgo_t *algo) {
    int32_t parts = 1;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t written = 0;
    if (here.lt_config(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written) !=
        CUBLAS_STATUS_SUCCESS)
        parts = 1;
    if (here.lt_config(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
                       &written) != CUBLAS_STATUS_SUCCESS)
        scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    return parts > 1 || scheme != CUBLASLT_REDUCTION_SCHEME_NONE;
}

/* Chooses the first algorithm that is valid and does what was asked for. */
static void library_choose(const cublasLtMatmulHeuristicResult_t *found, int count,
                           struct library_plan *out) {
    out->none = 1;
    for (int i = 0; i < count && out->none; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || library_splits(&found[i].algo)) continue;
        out->algo = found[i].algo;
        out->none = 0;
    }
}

static cublasStatus_t library_look_up(const struct library_lt *lt, const struct library_shape *s,
                                      struct library_plan *out) {
    const uint32_t no_reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t wish = nullptr;
    cublasLtMatmulHeuristicResult_t found[LIBRARY_CANDIDATES];
    int count = 0;
    memset(found, 0, sizeof found);
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
        status = here.lt_find(here.lt, lt->desc, lt->left, lt->right, lt->out, lt->out, wish,
                              LIBRARY_CANDIDATES, found, &count);
    here.lt_pref_destroy(wish);
    library_choose(found, status == CUBLAS_STATUS_SUCCESS ? count : 0, out);
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? CUBLAS_STATUS_SUCCESS : status;
}

/* Finds the algorithm of a shape, which is kept: what was once chosen is chosen again. When the
 * table is full the oldest goes; since the heuristics are a function of the shape, it would come
 * back the same. NULL: the heuristics failed. */
static const struct library_plan *library_plan_of(const struct library_call *c,
                                                  const struct library_shape *shape) {
    const uint32_t kept = planned.count < LIBRARY_PLANS ? planned.count : LIBRARY_PLANS;
    struct library_lt lt;
    for (uint32_t i = 0; i < kept; i++)
        if (memcmp(&planned.plan[i].shape, shape, sizeof *shape) == 0) return &planned.plan[i];
    struct library_plan *const plan = &planned.plan[planned.count % LIBRARY_PLANS];
    const int failed = library_lt_open(c, &lt) || library_note(library_look_up(&lt, shape, plan),
                                                               "an algorithm without split k");
    library_lt_close(&lt);
    memset(&plan->shape, 0, sizeof plan->shape);
    if (failed) return nullptr;
    plan->shape = *shape;
    planned.count++;
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
    shape.out = (uint32_t)c->p->out;
    return shape;
}
