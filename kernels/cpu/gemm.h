/* SPDX-License-Identifier: Apache-2.0
 * What the rest of kernels/ needs to know of the matrix products: how much scratch they take.
 *
 * Usable without a variant.
 * Invariant: the sizes here bound every number pair and instruction set; gemm_block.h checks it. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_H
#define TWINSTEP_KERNELS_CPU_GEMM_H

#include <stddef.h>

#include "kernels/cpu/cuts.h"
#include "kernels/cpu/kernels_cpu.h"

/* Bytes of one packed line of terms (depth), and of one packed line of output columns (width). The
 * 14 lines of the highest panel then take 30 KB, about a first-level cache; strips of the right
 * operand stream by. */
#define GEMM_DEPTH_BYTES ((size_t)2048)
#define GEMM_WIDTH_BYTES ((size_t)1536)
#define GEMM_VECTOR_BYTES ((size_t)64) /* the widest vector of any set */
#define GEMM_PANEL_ROWS ((size_t)14)   /* the highest panel of any set */
#define GEMM_PANELS ((size_t)8)        /* the most panels that are packed together */

/* Bytes of a depth x width block of the right operand, which all threads share; floats are the
 * larger case. */
#define GEMM_BLOCK_BYTES (GEMM_DEPTH_BYTES * GEMM_WIDTH_BYTES / sizeof(float))

/* Bytes of that block as pairs of bf16 numbers, 4 bytes a pair, and of a number for each strip. */
#define GEMM_PAIRS_BYTES (GEMM_BLOCK_BYTES / 2)
#define GEMM_EXPONENTS_BYTES (GEMM_WIDTH_BYTES)
#define GEMM_SHARED_BYTES (GEMM_BLOCK_BYTES + GEMM_PAIRS_BYTES + GEMM_EXPONENTS_BYTES)

/* Bytes of one row of the packed left operand; the pad keeps rows off the same cache sets. */
#define GEMM_LINE_BYTES (GEMM_DEPTH_BYTES + GEMM_VECTOR_BYTES)

/* Bytes of one thread: panels of the left operand and one of them as pairs, or (shuffled) a tile of
 * it; a tile's columns of the right one, two tiles of outputs (doubles are the larger case), and a
 * panel of unrounded sums. */
#define GEMM_PANEL_BYTES (GEMM_PANEL_ROWS * GEMM_LINE_BYTES)
#define GEMM_LEFT_BYTES (GEMM_PANELS * GEMM_PANEL_BYTES + GEMM_PANEL_BYTES / 2)
#define GEMM_RIGHT_BYTES (SHUFFLE_TILE * GEMM_DEPTH_BYTES)
#define GEMM_TILE_BYTES (SHUFFLE_TILE * SHUFFLE_TILE * sizeof(double))
#define GEMM_SUMS_BYTES (GEMM_PANEL_ROWS * GEMM_WIDTH_BYTES)
#define GEMM_THREAD_BYTES                                                                          \
    (GEMM_LEFT_BYTES + GEMM_RIGHT_BYTES + 2 * GEMM_TILE_BYTES + GEMM_SUMS_BYTES)

/* Bytes of scratch that are enough for the three linear ops, in any variant, up to `limits`. */
static inline size_t linear_scratch(const struct op_limits *limits) {
    const size_t threads = limits->threads < 1 ? 1 : (size_t)limits->threads;
    const size_t terms = limits->rows > limits->width ? limits->rows : limits->width;
    const size_t sums = cut_slots(limits->cuts) * (size_t)limits->rows * GEMM_WIDTH_BYTES;
    const size_t apart =
        (threads - 1) * GEMM_SHARED_BYTES; /* of threads with blocks of their own */
    return GEMM_VECTOR_BYTES + GEMM_SHARED_BYTES +
           threads * (GEMM_THREAD_BYTES + order_bytes(terms)) + (sums > apart ? sums : apart);
}

#endif
