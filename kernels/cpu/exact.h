/* SPDX-License-Identifier: Apache-2.0
 * Sums without an order (law 16), as the ops need them: rows of outputs of a product, and sums
 * inside a vector. Fast in the parts of base/exact_parts.h, else in base/exact_sum.h.
 *
 * Carriers and operands are f32 numbers (f64 compute is refused), so products are exact in double.
 * Invariant: a result is the exact sum of its terms, rounded once to the accumulator, or added to
 * a struct exact_sum without rounding; IEEE's infinities and NaN. */
#ifndef TWINSTEP_KERNELS_CPU_EXACT_H
#define TWINSTEP_KERNELS_CPU_EXACT_H

#include "base/exact_sum.h"
#include "base/sum.h"
#include "kernels/cpu/cuts.h"
#include "kernels/cpu/kernels_cpu.h"

#define EXACT_COLUMNS ((size_t)16) /* columns go by so many: b is read up to a multiple of it */

static inline size_t exact_padded(size_t columns) {
    return (columns + EXACT_COLUMNS - 1) / EXACT_COLUMNS * EXACT_COLUMNS;
}

/* The side of a tile of outputs; below, the bytes of packed operands that a thread of a linear
 * layer needs for sums of `terms` terms. */
#define EXACT_TILE ((size_t)64)
static inline size_t exact_linear_bytes(size_t terms) {
    return ((EXACT_TILE + 1) * terms * sizeof(double) + 127) / 64 * 64;
}

/* Bytes of the exact sums of dK and dV of one sequence and head. */
static inline size_t exact_attention_bytes(size_t length, size_t D) {
    return 2 * attention_padded(length) * attention_padded(D) * sizeof(struct exact_sum);
}

#if defined(TWINSTEP_VARIANT)

/* One row of outputs: output j is the sum over t < terms of a[t * a_term] * b[t * b_line + j]. */
struct exact_row {
    const accumulator *a;
    size_t a_term;
    const accumulator *b;
    size_t b_line;
    size_t terms, columns;
    double b_bound; /* the largest |b|, by exact_bound() over all that is read */
};

/* The largest |x| of `lines` lines of n numbers; infinite when one of them is not finite. */
double VARIANT(exact_bound)(const accumulator *x, size_t line, size_t lines, size_t n);

/* Makes out[j] the sum, rounded to the accumulator. */
void VARIANT(exact_row_round)(const struct exact_row *row, accumulator *out);

/* Adds the sum to held[j], without rounding. */
void VARIANT(exact_row_join)(const struct exact_row *row, struct exact_sum *held);

/* Sums inside a vector: of its terms, of products, of squares, rounded once. */
accumulator VARIANT(exact_terms)(const accumulator *x, size_t n);
accumulator VARIANT(exact_products)(const accumulator *a, const accumulator *b, size_t n);
accumulator VARIANT(exact_carrier_products)(const carrier *a, const carrier *b, size_t n);

/* Adds the squares of n f32 numbers to `sum`, without rounding. */
void VARIANT(exact_append_squares)(struct exact_wide *sum, const float *x, size_t n);

static inline accumulator exact_acc(const struct exact_sum *sum) {
    return ACC_NAME_(exact_sum)(sum);
}

/* Joins the nodes that `part` has completed; slots are those of kernels/cpu/cuts.h. */
static inline void cut_join(accumulator *slot, uint32_t part) {
    uint32_t at = cut_slot(part);
    for (uint32_t joins = cut_joins(part); joins > 0; joins--, at--)
        slot[at - 1] = slot[at - 1] + slot[at];
}

/* The sum of n products, or of n terms, by law 23: a law-2 sum for each part, joined by the tree.
 */
static inline accumulator cut_products(uint32_t cuts, const carrier *a, const carrier *b,
                                       size_t n) {
    accumulator slot[CUT_SLOTS] = {0};
    for (uint32_t part = 0; part < cuts; part++) {
        const size_t first = cut_start(n, cuts, part), end = cut_start(n, cuts, part + 1);
        slot[cut_slot(part)] = PAIR(sum_products)(a + first, b + first, end - first);
        cut_join(slot, part);
    }
    return slot[0];
}

static inline accumulator cut_terms(uint32_t cuts, const accumulator *x, size_t n) {
    accumulator slot[CUT_SLOTS] = {0};
    for (uint32_t part = 0; part < cuts; part++) {
        const size_t first = cut_start(n, cuts, part), end = cut_start(n, cuts, part + 1);
        slot[cut_slot(part)] = TERM(sum_terms)(x + first, end - first);
        cut_join(slot, part);
    }
    return slot[0];
}

/* A sum of products of a row by law 2, exact by law 16, or of parts by law 23. */
static inline accumulator row_products(const struct op_call *call, const carrier *a,
                                       const carrier *b, size_t n) {
    if (call->order_free) return VARIANT(exact_carrier_products)(a, b, n);
    if (call->cuts > 1) return cut_products(call->cuts, a, b, n);
    return PAIR(sum_products)(a, b, n);
}

#endif
#endif
