/* SPDX-License-Identifier: Apache-2.0
 * The CPU backend's functions: one per op of kernels/op.h and variant, the tables that hold them,
 * and what each needs of scratch. Arguments and promises are those of kernels/op.h.
 *
 * Usable without a variant (sizes only).
 * Invariant: the sizes bound every number pair and instruction set. */
#ifndef TWINSTEP_KERNELS_CPU_KERNELS_CPU_H
#define TWINSTEP_KERNELS_CPU_KERNELS_CPU_H

#include <stddef.h>

#include "kernels/op.h"
#include "kernels/shuffle.h"

/* Bytes of one thread for the order of the chunks of `terms` terms. */
static inline size_t order_bytes(size_t terms) {
    return shuffle_bytes(terms < SHUFFLE_CHUNKS ? terms : SHUFFLE_CHUNKS);
}

/* How many queries an attention block has; below, the multiple that rows of packed numbers are
 * padded to. */
#define ATTENTION_QUERIES ((size_t)32)
#define ATTENTION_PAD ((size_t)16)

static inline size_t attention_padded(size_t n) {
    return (n + ATTENTION_PAD - 1) / ATTENTION_PAD * ATTENTION_PAD;
}

/* How many numbers (accumulators) one thread needs for a sequence of `length` and heads of width D:
 * K, V and their gradients by rows; K and V by columns; two blocks of scores and a line of them;
 * blocks of queries, output gradients and results; and a byte for each score of a block. */
static inline size_t attention_numbers(size_t length, size_t D) {
    const size_t L = attention_padded(length);
    const size_t wide = attention_padded(D);
    return 6 * L * wide + (2 * ATTENTION_QUERIES + 1) * L + 3 * ATTENTION_QUERIES * wide +
           ATTENTION_QUERIES * L / sizeof(double);
}

static inline size_t attention_bytes(size_t length, size_t D) {
    return attention_numbers(length, D) * sizeof(double) + order_bytes(length);
}

/* How many numbers one thread needs for ops by rows: two rows (of exponentials, or for a norm's
 * backward), then an order. */
static inline size_t row_numbers(size_t width) {
    return (width + 7) / 8 * 8;
}

static inline size_t row_bytes(size_t width) {
    return 2 * row_numbers(width) * sizeof(double) + order_bytes(width);
}

/* Bytes that all threads share to list where each id's tokens stand. */
static inline size_t embedding_bytes(size_t V, size_t rows) {
    return ((V + 1 + rows) * sizeof(uint32_t) + 63) / 64 * 64;
}

/* Bytes that all threads share for the chunk sums of the gradient norm and their order. */
static inline size_t square_bytes(void) {
    return SHUFFLE_CHUNKS * sizeof(double) + shuffle_bytes(SHUFFLE_CHUNKS);
}

#if defined(TWINSTEP_VARIANT)
#include "base/variant.h"

#define KERNEL_DECLARE_(op, with)                                                                  \
    void VARIANT(op)(const struct op_call *, const struct op##_args *);
OP_LIST(KERNEL_DECLARE_, )

extern const struct op_table VARIANT(op_table);
#endif

#endif
