/* SPDX-License-Identifier: Apache-2.0
 * One 64 x 64 tile of a product in a thread's own buffers: what laws 9 and 14 make of chunks of
 * terms.
 *
 * Packs a chunk of both operands at a time. No order of chunks, no threads.
 * Invariant: the chain over a chunk depends on the tile's place and operands alone. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_TILE_H
#define TWINSTEP_KERNELS_CPU_GEMM_TILE_H

#include "kernels/cpu/gemm_block.h"

#define TILE ((size_t)SHUFFLE_TILE)

/* Rows of `held` and `chain` are TILE apart. */
struct tile {
    const struct gemm *g;
    size_t row, rows, column, columns;
    size_t panels;
    accumulator *left, *right;
    accumulator *held;  /* the tile's sums, which are the caller's */
    accumulator *chain; /* the chains of the chunk */
};

static inline size_t tile_count(size_t outputs) {
    return (outputs + TILE - 1) / TILE;
}

/* The tile at a place of C, with its buffers in `own`: GEMM_THREAD_BYTES, aligned for vectors. */
struct tile VARIANT(gemm_tile)(const struct gemm *g, size_t row_tile, size_t column_tile,
                               char *own);

/* Goes on with terms term .. term+depth-1 in `to`; depth <= GEMM_DEPTH. */
void VARIANT(gemm_tile_terms)(const struct tile *t, size_t term, size_t depth, accumulator *to,
                              enum gemm_start start);

/* Makes `chain` the chain from +0 over terms term .. term+count-1. */
void VARIANT(gemm_tile_chain)(const struct tile *t, size_t term, size_t count);

#endif
