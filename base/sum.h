/* SPDX-License-Identifier: Apache-2.0
 * The one summation engine. Every sum of floats in the project is one of these:
 *
 *   chain      acc = fma(a, b, acc) or acc + x, in order (law 1)
 *   lanes      blocks of 4096, 32 lanes, a fixed tree (law 2); sum_lanes.h, included at the end
 *   shuffled   chunks, each a chain from +0, added in a permuted order (law 9)
 *
 * Names end in _INPUT_ACCUMULATOR: f32_f32, f32_f64, f64_f64. Nothing here depends on the
 * instruction set, on alignment or on how a vector is cut into pieces. */
#ifndef TWINSTEP_BASE_SUM_H
#define TWINSTEP_BASE_SUM_H

#include <stddef.h>

#include "base/real.h"

/* One definition for each pair of input type `in` and accumulator type `acc`; `fma` is the
 * accumulator's. Conversions to the accumulator are exact.
 *
 * sum_chain_terms     acc + x[0] + x[1] + ... in this order
 * sum_chain_products  fma(a[i], b[i], acc) for i = 0, 1, ...
 * sum_shuffled_*      chunk c holds terms c*chunk .. min(n, (c+1)*chunk)-1 and is a chain from +0;
 *                     the sums of chunks order[0], order[1], ... are added to acc in this order.
 *                     `order` is a permutation of 0 .. sum_chunk_count(n, chunk)-1. */
#define SUM_DEFINE_CHAINS(pair, in, acc_type, fma)                                                 \
    TWINSTEP_HD acc_type sum_chain_terms_##pair(acc_type acc, const in *x, size_t n) {             \
        for (size_t i = 0; i < n; i++)                                                             \
            acc = acc + (acc_type)x[i];                                                            \
        return acc;                                                                                \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_chain_products_##pair(acc_type acc, const in *a, const in *b,         \
                                                   size_t n) {                                     \
        for (size_t i = 0; i < n; i++)                                                             \
            acc = fma((acc_type)a[i], (acc_type)b[i], acc);                                        \
        return acc;                                                                                \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_shuffled_terms_##pair(acc_type acc, const in *x, size_t n,            \
                                                   size_t chunk, const uint32_t *order) {          \
        size_t count = sum_chunk_count(n, chunk);                                                  \
        for (size_t j = 0; j < count; j++) {                                                       \
            size_t start = (size_t)order[j] * chunk;                                               \
            size_t length = n - start < chunk ? n - start : chunk;                                 \
            acc = acc + sum_chain_terms_##pair(0, x + start, length);                              \
        }                                                                                          \
        return acc;                                                                                \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_shuffled_products_##pair(                                             \
        acc_type acc, const in *a, const in *b, size_t n, size_t chunk, const uint32_t *order) {   \
        size_t count = sum_chunk_count(n, chunk);                                                  \
        for (size_t j = 0; j < count; j++) {                                                       \
            size_t start = (size_t)order[j] * chunk;                                               \
            size_t length = n - start < chunk ? n - start : chunk;                                 \
            acc = acc + sum_chain_products_##pair(0, a + start, b + start, length);                \
        }                                                                                          \
        return acc;                                                                                \
    }

/* Number of chunks of n terms; chunk >= 1. */
TWINSTEP_HD size_t sum_chunk_count(size_t n, size_t chunk) {
    return n / chunk + (n % chunk != 0 ? 1u : 0u);
}

SUM_DEFINE_CHAINS(f32_f32, float, float, real_fma_f32)
SUM_DEFINE_CHAINS(f32_f64, float, double, real_fma_f64)
SUM_DEFINE_CHAINS(f64_f64, double, double, real_fma_f64)

/* ---- permutations (law 9): indices by 64-bit key, equal keys by index ---- */

TWINSTEP_HD int sum_permutation_before(const uint64_t *keys, uint32_t i, uint32_t j) {
    return keys[i] < keys[j] || (keys[i] == keys[j] && i < j);
}

/* Restores the heap (largest first) below `root` in order[0 .. count-1]. */
TWINSTEP_HD void sum_permutation_sift(const uint64_t *keys, uint32_t *order, size_t root,
                                      size_t count) {
    uint32_t moved = order[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count) break;
        if (child + 1 < count && sum_permutation_before(keys, order[child], order[child + 1]))
            child++;
        if (!sum_permutation_before(keys, moved, order[child])) break;
        order[root] = order[child];
        root = child;
    }
    order[root] = moved;
}

/* Writes 0 .. count-1 into order[], sorted by (keys[i], i). Heap sort: in place, no recursion; the
 * order is total, so any correct sort gives this answer. count < 2^32. */
TWINSTEP_HD void sum_permutation(size_t count, const uint64_t *keys, uint32_t *order) {
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t root = count / 2; root-- > 0;)
        sum_permutation_sift(keys, order, root, count);
    for (size_t last = count; last-- > 1;) {
        uint32_t largest = order[0];
        order[0] = order[last];
        order[last] = largest;
        sum_permutation_sift(keys, order, 0, last);
    }
}

#include "base/sum_lanes.h"

#endif
