/* SPDX-License-Identifier: Apache-2.0
 * What attention and the vocabulary share: the maximum of a row, its exponentials and their sum.
 *
 * Invariant: the maximum ignores NaN and is never -0, so no order of comparison shows in it; the
 * sum is law 2, or chunks in the tile's order where sums are shuffled, exact (law 16), or of parts
 * (law 23). */
#ifndef TWINSTEP_KERNELS_CPU_SOFTMAX_H
#define TWINSTEP_KERNELS_CPU_SOFTMAX_H

#include "kernels/cpu/call.h"
#include "kernels/cpu/exact.h"

#define MAXIMUM_LANES 16 /* lanes of a comparison, which has no order */

/* The largest of n numbers; minus infinity when none is a number. */
ROW_INLINE accumulator row_maximum(const carrier *x, size_t n) {
    carrier lane[MAXIMUM_LANES];
    size_t i = 0;
    for (size_t l = 0; l < MAXIMUM_LANES; l++)
        lane[l] = (carrier)-acc_inf();
    for (; i + MAXIMUM_LANES <= n; i += MAXIMUM_LANES) {
        EACH for (size_t l = 0; l < MAXIMUM_LANES; l++) lane[l] =
            x[i + l] > lane[l] ? x[i + l] : lane[l];
    }
    for (size_t l = 0; i < n; i++, l++)
        lane[l] = x[i] > lane[l] ? x[i] : lane[l];
    for (size_t l = 1; l < MAXIMUM_LANES; l++)
        lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return (accumulator)lane[0] + ACC(0.0);
}

ROW_INLINE void row_exp(const carrier *x, size_t n, accumulator maximum, accumulator *e) {
    EACH for (size_t i = 0; i < n; i++) e[i] = rule_exp_shifted(x[i], maximum);
}

/* The order of one tile of 64 rows, and of its longest row's chunks. */
struct row_order {
    const uint32_t *order; /* NULL: the sum is law 2's */
    uint32_t chunks;
    uint32_t chunk;
    int free;      /* 1: the sum is exact (law 16) */
    uint32_t cuts; /* above 1: the sum is of this many parts (law 23) */
};

/* The sum of a row's exponentials. A row shorter than the tile's longest passes over the chunks it
 * lacks. */
ROW_INLINE accumulator row_sum(const accumulator *e, size_t n, const struct row_order *by) {
    if (by->free) return VARIANT(exact_terms)(e, n);
    if (by->cuts > 1) return cut_terms(by->cuts, e, n);
    if (by->order == NULL) return TERM(sum_terms)(e, n);
    accumulator sum = 0;
    for (uint32_t i = 0; i < by->chunks; i++) {
        const size_t first = (size_t)by->order[i] * by->chunk;
        if (first >= n) continue;
        sum = sum + TERM(sum_chain_terms)(0, e + first, least(by->chunk, n - first));
    }
    return sum;
}

#endif
