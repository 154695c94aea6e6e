/* SPDX-License-Identifier: Apache-2.0
 * Products by law 16: per 64 x 64 tile of outputs all terms are packed, and each output is their
 * exact sum, rounded once or added to the sum that is held.
 *
 * Tiles are dealt to threads; an exact sum does not know by whom it was made. */
#include <omp.h>

#include "kernels/cpu/exact.h"
#include "kernels/cpu/gemm_block.h"

struct packed {
    const struct gemm *g;
    size_t row, rows, column, columns;
    accumulator *left;  /* (K) one row of A */
    accumulator *right; /* (K, EXACT_TILE) */
    double bound;       /* the largest |right| */
};

static accumulator operand(const struct gemm *g, struct stored x) {
    return (accumulator)carrier_round((accumulator)stored_load(x), g->product);
}

static void pack_left(const struct packed *p, size_t i) {
    const struct gemm *const g = p->g;
    for (size_t k = 0; k < g->K; k++) {
        const struct stored *const x = g->by_terms ? g->a + list_row(&g->rows, k) * g->a_stride + i
                                                   : g->a + list_row(&g->rows, i) * g->a_stride + k;
        p->left[k] = operand(g, *x);
    }
}

static struct stored right_of(const struct gemm *g, size_t k, size_t j) {
    if (g->b_transposed) return g->b[j * g->b_stride + k];
    return g->b[(g->by_terms ? list_row(&g->rows, k) : k) * g->b_stride + j];
}

static void pack_right(struct packed *p) {
    for (size_t k = 0; k < p->g->K; k++) {
        accumulator *const line = p->right + k * EXACT_TILE;
        for (size_t j = 0; j < p->columns; j++)
            line[j] = operand(p->g, right_of(p->g, k, p->column + j));
        for (size_t j = p->columns; j < exact_padded(p->columns); j++)
            line[j] = 0;
    }
    p->bound = VARIANT(exact_bound)(p->right, EXACT_TILE, p->g->K, p->columns);
}

static void run_row(const struct packed *p, size_t i) {
    const struct gemm *const g = p->g;
    const struct exact_row row = {.a = p->left,
                                  .a_term = 1,
                                  .b = p->right,
                                  .b_line = EXACT_TILE,
                                  .terms = g->K,
                                  .columns = p->columns,
                                  .b_bound = p->bound};
    pack_left(p, i);
    if (g->held != NULL) {
        struct exact_sum *const held = (struct exact_sum *)(void *)g->held;
        VARIANT(exact_row_join)(&row, held + i * g->N + p->column);
        return;
    }
    accumulator sums[EXACT_TILE];
    VARIANT(exact_row_round)(&row, sums);
    VARIANT(gemm_round)(g, i, p->column, p->columns, sums);
}

static void run_tile(const struct gemm *g, size_t row_tile, size_t column_tile, char *own) {
    struct packed p = {.g = g, .row = row_tile * EXACT_TILE, .column = column_tile * EXACT_TILE};
    p.rows = least(g->M - p.row, EXACT_TILE);
    p.columns = least(g->N - p.column, EXACT_TILE);
    p.right = (accumulator *)(void *)own;
    p.left = p.right + g->K * EXACT_TILE;
    pack_right(&p);
    for (size_t i = p.row; i < p.row + p.rows; i++)
        run_row(&p, i);
}

static size_t tiles_of(size_t outputs) {
    return (outputs + EXACT_TILE - 1) / EXACT_TILE;
}

void VARIANT(gemm_exact)(const struct gemm *g, int threads, void *scratch) {
    const size_t column_tiles = tiles_of(g->N);
    const size_t tiles = tiles_of(g->M) * column_tiles;
    const size_t own = exact_linear_bytes(g->K);
    char *const start = (char *)scratch + (-(uintptr_t)scratch & (GEMM_VECTOR_BYTES - 1));
    const int wake = tiles > 1 && g->M * g->N * g->K >= GEMM_WORTH_WAKING / 16;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (wake)
    for (size_t i = 0; i < tiles; i++)
        run_tile(g, i / column_tiles, i % column_tiles, start + (size_t)omp_get_thread_num() * own);
}
