/* SPDX-License-Identifier: Apache-2.0
 * Products by law 9: per 64 x 64 tile of outputs the terms' chunks are visited in the order drawn
 * for the tile; each chunk is a chain from +0, added to the tile, which starts at +0. Where the op
 * continues an accumulator, the joined sum is added to it once (kernels/shuffle.h).
 *
 * Tiles are dealt to threads; a tile packs a chunk of both operands at a time.
 * Invariant: a tile's outputs depend on its place, its operands and the order alone. */
#include "kernels/cpu/gemm_block.h"

#include <omp.h>

/* One thread's buffers for one tile; `line` is the distance of rows in `held` and `chain`. */
struct tile {
    const struct gemm *g;
    size_t row, rows, column, columns;
    size_t panels;
    accumulator *left, *right;
    accumulator *held;  /* sum of the chunks so far */
    accumulator *chain; /* a chunk too long to be packed at once */
};

#define TILE ((size_t)SHUFFLE_TILE)

/* Terms term .. term+depth-1 into `to`, depth <= GEMM_DEPTH. */
static void multiply_terms(const struct tile *t, size_t term, size_t depth, accumulator *to,
                           enum gemm_start start) {
    const struct gemm *const g = t->g;
    const size_t left_line = g->by_terms ? depth : GEMM_LINE;
    for (size_t panel = 0; panel < t->panels; panel++) {
        const size_t row = gemm_cut(t->rows, t->panels, panel);
        const size_t rows = gemm_cut(t->rows, t->panels, panel + 1) - row;
        VARIANT(gemm_pack_a)(g, t->row + row, rows, term, depth, t->left + row * left_line);
    }
    for (size_t column = 0; column < t->columns; column += GEMM_COLUMNS) {
        const size_t vectors = gemm_vectors(gemm_least(t->columns - column, GEMM_COLUMNS));
        VARIANT(gemm_pack_b)(g, t->column + column, term, depth, t->right);
        for (size_t panel = 0; panel < t->panels; panel++) {
            const size_t row = gemm_cut(t->rows, t->panels, panel);
            const size_t rows = gemm_cut(t->rows, t->panels, panel + 1) - row;
            accumulator *c[GEMM_ROWS];
            for (size_t i = 0; i < rows; i++)
                c[i] = to + (row + i) * TILE;
            VARIANT(gemm_micro_of)
            (rows, vectors, g->by_terms)(depth, t->left + row * left_line, t->right, c, column,
                                         start);
        }
    }
}

/* Adds the chain over one chunk to `held`. */
static void join_chunk(const struct tile *t, size_t term, size_t count) {
    if (count <= GEMM_DEPTH) {
        multiply_terms(t, term, count, t->held, GEMM_JOIN);
        return;
    }
    for (size_t done = 0; done < count; done += GEMM_DEPTH) {
        multiply_terms(t, term + done, gemm_least(count - done, GEMM_DEPTH), t->chain,
                       done == 0 ? GEMM_START : GEMM_CONTINUE);
    }
    for (size_t i = 0; i < t->rows; i++) {
        for (size_t j = 0; j < t->columns; j++)
            t->held[i * TILE + j] += t->chain[i * TILE + j];
    }
}

static void close_tile(const struct tile *t) {
    for (size_t i = 0; i < t->rows; i++) {
        const accumulator *const from = t->held + i * TILE;
        if (t->g->held != NULL) {
            accumulator *const to = t->g->held + (t->row + i) * t->g->N + t->column;
            for (size_t j = 0; j < t->columns; j++)
                to[j] += from[j];
        } else {
            VARIANT(gemm_round)(t->g, t->row + i, t->column, t->columns, from);
        }
    }
}

static void run_tile(const struct gemm *g, const struct shuffle *shuffle, size_t row_tile,
                     size_t column_tile, char *own) {
    struct tile t = {.g = g, .row = row_tile * TILE, .column = column_tile * TILE};
    t.rows = gemm_least(g->M - t.row, TILE);
    t.columns = gemm_least(g->N - t.column, TILE);
    t.panels = (t.rows + GEMM_ROWS - 1) / GEMM_ROWS;
    t.left = (accumulator *)(void *)own;
    t.right = (accumulator *)(void *)(own + GEMM_LEFT_BYTES);
    t.held = (accumulator *)(void *)(own + GEMM_LEFT_BYTES + GEMM_RIGHT_BYTES);
    t.chain = t.held + TILE * TILE;
    const uint32_t chunks = shuffle_chunks(shuffle, g->K);
    const uint32_t *const order =
        shuffle_order(shuffle, row_tile, column_tile, chunks, own + GEMM_THREAD_BYTES);
    memset(t.held, 0, TILE * TILE * sizeof *t.held);
    for (uint32_t i = 0; i < chunks; i++) {
        const size_t term = (size_t)order[i] * shuffle->chunk;
        join_chunk(&t, term, gemm_least(shuffle->chunk, g->K - term));
    }
    close_tile(&t);
}

void VARIANT(gemm_shuffled)(const struct gemm *g, const struct shuffle *shuffle, int threads,
                            void *scratch) {
    const size_t column_tiles = (g->N + TILE - 1) / TILE;
    const size_t tiles = (g->M + TILE - 1) / TILE * column_tiles;
    const size_t own_bytes = GEMM_THREAD_BYTES + linear_order_bytes(shuffle_chunks(shuffle, g->K));
    char *const start = (char *)scratch + (-(uintptr_t)scratch & (GEMM_VECTOR_BYTES - 1));
    const int wake = tiles > 1 && g->M * g->N * g->K >= GEMM_WORTH_WAKING;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (wake)
    for (size_t i = 0; i < tiles; i++) {
        char *const own = start + (size_t)omp_get_thread_num() * own_bytes;
        run_tile(g, shuffle, i / column_tiles, i % column_tiles, own);
    }
}
