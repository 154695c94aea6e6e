/* SPDX-License-Identifier: Apache-2.0
 * Products by law 9: per 64 x 64 tile of outputs the terms' chunks are visited in the order drawn
 * for the tile; each chunk is a chain from +0, added to the tile, which starts at +0. Where the op
 * continues an accumulator, the joined sum is added to it once (kernels/shuffle.h).
 *
 * Tiles are dealt to threads.
 * Invariant: a tile's outputs depend on its place, its operands and the order alone. */
#include "kernels/cpu/gemm_tile.h"

#include <omp.h>

/* Adds the chain over one chunk of terms to the tile's sums. */
static void join_chunk(const struct tile *t, size_t term, size_t count) {
    if (count <= GEMM_DEPTH) {
        VARIANT(gemm_tile_terms)(t, term, count, t->held, GEMM_JOIN);
        return;
    }
    VARIANT(gemm_tile_chain)(t, term, count);
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
    const struct tile t = VARIANT(gemm_tile)(g, row_tile, column_tile, own);
    const uint32_t chunks = shuffle_chunks(shuffle, g->K);
    const uint32_t *const order =
        shuffle_order(shuffle, row_tile, column_tile, chunks, own + GEMM_THREAD_BYTES);
    memset(t.held, 0, TILE * TILE * sizeof *t.held);
    for (uint32_t i = 0; i < chunks; i++) {
        const size_t term = (size_t)order[i] * shuffle->chunk;
        join_chunk(&t, term, least(shuffle->chunk, g->K - term));
    }
    close_tile(&t);
}

void VARIANT(gemm_shuffled)(const struct gemm *g, const struct shuffle *shuffle, int threads,
                            void *scratch) {
    const size_t column_tiles = tile_count(g->N);
    const size_t tiles = tile_count(g->M) * column_tiles;
    const size_t own_bytes = GEMM_THREAD_BYTES + order_bytes(shuffle_chunks(shuffle, g->K));
    char *const start = (char *)scratch + (-(uintptr_t)scratch & (GEMM_VECTOR_BYTES - 1));
    const int wake = tiles > 1 && g->M * g->N * g->K >= GEMM_WORTH_WAKING;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (wake)
    for (size_t i = 0; i < tiles; i++) {
        char *const own = start + (size_t)omp_get_thread_num() * own_bytes;
        run_tile(g, shuffle, i / column_tiles, i % column_tiles, own);
    }
}
