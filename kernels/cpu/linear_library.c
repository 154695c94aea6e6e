/* SPDX-License-Identifier: Apache-2.0
 * A linear op through a library's gemm: operands are gathered into dense matrices, padded rows as
 * zeros where the op's rows are a call's (a library sees the padded batch), results are rounded
 * once and scattered. No promise about bits: which order sums take is the library's affair.
 *
 * Invariant: rows not listed are neither read nor written. */
#include <string.h>

#include "kernels/blas.h"
#include "kernels/cpu/call.h"
#include "kernels/cpu/gemm_block.h"

/* Dense copies of A (M, K), of B where its rows are terms, and of C (M, N). */
struct dense {
    const struct gemm *g;
    size_t M;     /* rows of C: those of the call with padding, or g->M */
    size_t first; /* the physical row that is row 0 of C */
    int padded;   /* 1: C has the call's physical rows */
    accumulator *a, *b, *c;
};

static size_t place(const struct dense *dense, size_t i) {
    return dense->padded ? list_row(&dense->g->rows, i) - dense->first : i;
}

static accumulator *take(char **next, size_t count) {
    accumulator *const piece = (accumulator *)(void *)*next;
    *next += (count * sizeof *piece + 63) / 64 * 64;
    return piece;
}

static struct dense open_dense(const struct op_call *call, const struct gemm *g) {
    char *next = (char *)call->scratch;
    struct dense dense = {.g = g, .M = g->M, .first = call->first_row};
    dense.padded = call->rows != 0 && !g->by_terms && g->rows.index != NULL;
    if (dense.padded) dense.M = call->rows;
    dense.a = take(&next, (g->by_terms ? g->M : dense.M) * g->K);
    dense.c = take(&next, dense.M * g->N);
    dense.b = take(&next, 0);
    return dense;
}

/* Packs rows densely: they are widened, which is exact, and rounded as operands where the call says
 * so. */
static void gather(const struct gemm *g, const struct stored *from, accumulator *to, size_t width) {
    for (size_t j = 0; j < width; j++) {
        const carrier x = stored_load(from[j]);
        to[j] =
            (accumulator)(g->product == DTYPE_F64 ? x : carrier_round((accumulator)x, g->product));
    }
}

static void gather_terms(const struct gemm *g, const struct stored *from, size_t stride,
                         size_t width, accumulator *to) {
    for (size_t p = 0; p < g->K; p++)
        gather(g, from + list_row(&g->rows, p) * stride, to + p * width, width);
}

static void gather_rows(const struct dense *dense) {
    const struct gemm *const g = dense->g;
    /* No result of a real row depends on the padding; all the same, what a library reads should be
     * numbers. */
    if (dense->padded) memset(dense->a, 0, dense->M * g->K * sizeof *dense->a);
    for (size_t i = 0; i < g->M; i++)
        gather(g, g->a + list_row(&g->rows, i) * g->a_stride, dense->a + place(dense, i) * g->K,
               g->K);
}

#if defined(TWINSTEP_ACCUMULATOR_f32)
#define LIBRARY_GEMM(blas) (blas)->sgemm
#else
#define LIBRARY_GEMM(blas) (blas)->dgemm
#endif

static void multiply(const struct op_call *call, const struct dense *dense, const accumulator *b) {
    const struct gemm *const g = dense->g;
    const int transpose_b = g->b_transposed ? BLAS_TRANSPOSED : BLAS_PLAIN;
    call->blas->set_threads(call->threads);
    LIBRARY_GEMM(call->blas)
    (BLAS_ROW_MAJOR, g->by_terms ? BLAS_TRANSPOSED : BLAS_PLAIN, transpose_b, (int)dense->M,
     (int)g->N, (int)g->K, ACC(1.0), dense->a, (int)(g->by_terms ? g->M : g->K), b,
     (int)(g->b_transposed ? g->K : g->N), ACC(0.0), dense->c, (int)g->N);
}

static void scatter(const struct dense *dense) {
    const struct gemm *const g = dense->g;
    for (size_t i = 0; i < g->M; i++) {
        const accumulator *const sums = dense->c + place(dense, i) * g->N;
        if (g->held == NULL) {
            VARIANT(gemm_round)(g, i, 0, g->N, sums);
            continue;
        }
        for (size_t j = 0; j < g->N; j++)
            g->held[i * g->N + j] += sums[j];
    }
}

/* B of a forward or input product is a weight, N x K or K x N, and dense already. Where carriers
 * are accumulators and nothing is rounded, it is used as it lies. */
static const accumulator *operand_b(const struct dense *dense) {
    const struct gemm *const g = dense->g;
    if (g->by_terms) return dense->b;
#if CARRIER_ACCUMULATES
    if (g->product == DTYPE_F64) return stored_numbers(g->b);
#endif
    gather(g, g->b, dense->b, g->N * g->K);
    return dense->b;
}

void VARIANT(linear_library)(const struct op_call *call, const struct gemm *g) {
    if (g->M == 0 || g->N == 0 || g->K == 0) return;
    const struct dense dense = open_dense(call, g);
    if (g->by_terms) {
        gather_terms(g, g->a, g->a_stride, g->M, dense.a);
        gather_terms(g, g->b, g->b_stride, g->N, dense.b);
    } else {
        gather_rows(&dense);
    }
    multiply(call, &dense, operand_b(&dense));
    scatter(&dense);
}
