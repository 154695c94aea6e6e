/* SPDX-License-Identifier: Apache-2.0
 * The one summation engine. Every sum of floats in the project is one of these:
 *
 *   chains     sum_chain_*: acc = fma(a, b, acc) or acc + x, in order (law 1)
 *   lanes      sum_terms, sum_products, sum_squares of whole vectors; struct sum_lanes_* in
 *              pieces: blocks of 4096, 32 lanes, a fixed tree (law 2)
 *   shuffled   sum_shuffled_*: chunks, each a chain from +0, added in a permuted order (law 9)
 *
 * Law 2: element i belongs to block i / 4096, and inside it to lane i mod 32. A lane starts at +0
 * and takes its terms in order: fma(a, b, lane) or lane + x. Lanes are added in the order (l,
 * l+16), (l, l+8), (l, l+4), (l, l+2), (l, l+1). Blocks are added level by level, 2j with 2j+1; an
 * odd last one goes up unchanged. 32 was chosen so that the f32 lanes fill two AVX-512 registers;
 * any instruction set walks them in its own width.
 *
 * Names end in _INPUT_ACCUMULATOR: f32_f32, f32_f64, f64_f64. Nothing depends on the instruction
 * set, on alignment or on how a vector is cut into pieces. */
#ifndef TWINSTEP_BASE_SUM_H
#define TWINSTEP_BASE_SUM_H

#include <stddef.h>

#include "base/sum_vector.h"

#define SUM_LEVELS 52 /* more than log2 of the number of blocks in an address space */

/* The number of chunks of n terms, for chunk >= 1. */
TWINSTEP_HD size_t sum_chunk_count(size_t n, size_t chunk) {
    return n / chunk + (n % chunk != 0 ? 1u : 0u);
}

/* ---- permutations (law 9): indices by 64-bit key, equal keys by index ---- */

TWINSTEP_HD int sum_permutation_before(const uint64_t *keys, uint32_t i, uint32_t j) {
    return keys[i] < keys[j] || (keys[i] == keys[j] && i < j);
}

/* Restores the heap property (largest first) below `root` in order[0 .. count-1]. */
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

/* Writes 0 .. count-1 into order[], sorted by (keys[i], i), for count < 2^32. This is heap sort,
 * which works in place and without recursion; the order is total, so every correct sort gives the
 * same answer. */
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

#define SUM_ACC float
#define SUM_NAME(name) name##_f32
#include "base/sum_accumulator.inc"
#define SUM_IN float
#define SUM_PAIR(name) name##_f32_f32
#include "base/sum_pair.inc"
#undef SUM_PAIR
#undef SUM_IN
#undef SUM_NAME
#undef SUM_ACC

#define SUM_ACC double
#define SUM_NAME(name) name##_f64
#include "base/sum_accumulator.inc"
#define SUM_IN float
#define SUM_PAIR(name) name##_f32_f64
#include "base/sum_pair.inc"
#undef SUM_PAIR
#undef SUM_IN
#define SUM_IN double
#define SUM_PAIR(name) name##_f64_f64
#include "base/sum_pair.inc"
#undef SUM_PAIR
#undef SUM_IN
#undef SUM_NAME
#undef SUM_ACC

#endif
