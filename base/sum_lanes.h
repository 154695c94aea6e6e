/* SPDX-License-Identifier: Apache-2.0
 * Law 2: sums inside one vector. Part of base/sum.h: include that.
 *
 * Element i belongs to block i / 4096; inside it to lane i mod 32. A lane starts at +0 and takes
 * its terms in order: fma(a, b, lane) or lane + x. Lanes join (l, l+16), (l, l+8), (l, l+4),
 * (l, l+2), (l, l+1). Blocks join level by level, 2j with 2j+1, an odd last one goes up unchanged.
 * No block at all is +0.
 *
 * Whole vectors: sum_terms, sum_products, sum_squares. In pieces: struct sum_lanes_ACC with open,
 * append (any lengths), close; the same bits. Here vector registers run across the 32 lanes. */
#ifndef TWINSTEP_BASE_SUM_LANES_H
#define TWINSTEP_BASE_SUM_LANES_H

#include <stddef.h>

#include "base/real.h"
#include "base/sum_vector.h"

#define SUM_LANES 32
#define SUM_BLOCK 4096
#define SUM_LEVELS 52 /* more than log2 of the number of blocks in an address space */

/* Sum of blocks. Level-by-level joining of N blocks equals a binary counter: joined[] holds sums of
 * 2^p blocks for the set bits p of N, a new block joins upwards while its bit is set, and at the
 * end the smaller groups join into the larger ones from the right: that is where the odd last
 * ones that went up unchanged find their partner. */
#define SUM_DEFINE_LANES(acc_type, acc)                                                            \
    struct sum_blocks_##acc {                                                                      \
        uint64_t count;                                                                            \
        acc_type joined[SUM_LEVELS];                                                               \
    };                                                                                             \
    struct sum_lanes_##acc {                                                                       \
        acc_type lane[SUM_LANES];                                                                  \
        size_t fill; /* terms in the open block */                                                 \
        struct sum_blocks_##acc blocks;                                                            \
    };                                                                                             \
    TWINSTEP_HD void sum_blocks_push_##acc(struct sum_blocks_##acc *blocks, acc_type sum) {        \
        int level = 0;                                                                             \
        for (uint64_t bits = blocks->count; (bits & 1u) != 0; bits >>= 1)                          \
            sum = blocks->joined[level++] + sum;                                                   \
        blocks->joined[level] = sum;                                                               \
        blocks->count++;                                                                           \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_blocks_close_##acc(const struct sum_blocks_##acc *blocks) {           \
        uint64_t bits = blocks->count;                                                             \
        int level = 0;                                                                             \
        acc_type sum = 0;                                                                          \
        if (bits == 0) return sum;                                                                 \
        for (; (bits & 1u) == 0; bits >>= 1)                                                       \
            level++;                                                                               \
        sum = blocks->joined[level];                                                               \
        for (bits >>= 1; bits != 0; bits >>= 1) {                                                  \
            level++;                                                                               \
            if ((bits & 1u) != 0) sum = blocks->joined[level] + sum;                               \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
    TWINSTEP_HD void sum_lanes_open_##acc(struct sum_lanes_##acc *sum) {                           \
        for (int l = 0; l < SUM_LANES; l++)                                                        \
            sum->lane[l] = 0;                                                                      \
        sum->fill = 0;                                                                             \
        sum->blocks.count = 0;                                                                     \
    }                                                                                              \
    TWINSTEP_HD void sum_lanes_end_block_##acc(struct sum_lanes_##acc *sum) {                      \
        sum_blocks_push_##acc(&sum->blocks, sum_vector_join_##acc(sum->lane));                     \
        for (int l = 0; l < SUM_LANES; l++)                                                        \
            sum->lane[l] = 0;                                                                      \
        sum->fill = 0;                                                                             \
    }                                                                                              \
    /* One more term, or one more product fma(a, b, lane). */                                      \
    TWINSTEP_HD void sum_lanes_term_##acc(struct sum_lanes_##acc *sum, acc_type x) {               \
        size_t l = sum->fill % SUM_LANES;                                                          \
        sum->lane[l] = sum->lane[l] + x;                                                           \
        if (++sum->fill == SUM_BLOCK) sum_lanes_end_block_##acc(sum);                              \
    }                                                                                              \
    TWINSTEP_HD void sum_lanes_product_##acc(struct sum_lanes_##acc *sum, acc_type a,              \
                                             acc_type b) {                                         \
        size_t l = sum->fill % SUM_LANES;                                                          \
        sum->lane[l] = real_fma_##acc(a, b, sum->lane[l]);                                         \
        if (++sum->fill == SUM_BLOCK) sum_lanes_end_block_##acc(sum);                              \
    }                                                                                              \
    /* The sum so far; more terms may follow. */                                                   \
    TWINSTEP_HD acc_type sum_lanes_close_##acc(const struct sum_lanes_##acc *sum) {                \
        struct sum_blocks_##acc blocks = sum->blocks;                                              \
        if (sum->fill > 0) sum_blocks_push_##acc(&blocks, sum_vector_join_##acc(sum->lane));       \
        return sum_blocks_close_##acc(&blocks);                                                    \
    }

SUM_DEFINE_LANES(float, f32)
SUM_DEFINE_LANES(double, f64)

/* Length of the next piece that neither crosses a block's end nor starts inside a row of lanes. */
TWINSTEP_HD size_t sum_lanes_piece(size_t fill, size_t left) {
    size_t room = SUM_BLOCK - fill;
    return left < room ? left : room;
}

#define SUM_DEFINE_VECTORS(pair, in, acc_type, acc)                                                \
    /* n more terms of one vector. */                                                              \
    TWINSTEP_HD void sum_lanes_append_terms_##pair(struct sum_lanes_##acc *sum, const in *x,       \
                                                   size_t n) {                                     \
        size_t i = 0;                                                                              \
        while (i < n) {                                                                            \
            if (sum->fill % SUM_LANES != 0) {                                                      \
                sum_lanes_term_##acc(sum, (acc_type)x[i++]);                                       \
                continue;                                                                          \
            }                                                                                      \
            size_t piece = sum_lanes_piece(sum->fill, n - i);                                      \
            sum_vector_terms_##pair(sum->lane, x + i, piece);                                      \
            sum->fill += piece;                                                                    \
            i += piece;                                                                            \
            if (sum->fill == SUM_BLOCK) sum_lanes_end_block_##acc(sum);                            \
        }                                                                                          \
    }                                                                                              \
    TWINSTEP_HD void sum_lanes_append_products_##pair(struct sum_lanes_##acc *sum, const in *a,    \
                                                      const in *b, size_t n) {                     \
        size_t i = 0;                                                                              \
        while (i < n) {                                                                            \
            if (sum->fill % SUM_LANES != 0) {                                                      \
                sum_lanes_product_##acc(sum, (acc_type)a[i], (acc_type)b[i]);                      \
                i++;                                                                               \
                continue;                                                                          \
            }                                                                                      \
            size_t piece = sum_lanes_piece(sum->fill, n - i);                                      \
            sum_vector_products_##pair(sum->lane, a + i, b + i, piece);                            \
            sum->fill += piece;                                                                    \
            i += piece;                                                                            \
            if (sum->fill == SUM_BLOCK) sum_lanes_end_block_##acc(sum);                            \
        }                                                                                          \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_block_terms_##pair(const in *x, size_t n) {                           \
        acc_type lane[SUM_LANES] = {0};                                                            \
        sum_vector_terms_##pair(lane, x, n);                                                       \
        return sum_vector_join_##acc(lane);                                                        \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_block_products_##pair(const in *a, const in *b, size_t n) {           \
        acc_type lane[SUM_LANES] = {0};                                                            \
        sum_vector_products_##pair(lane, a, b, n);                                                 \
        return sum_vector_join_##acc(lane);                                                        \
    }                                                                                              \
    /* Sum of x[0 .. n-1]; of a[i] b[i]; of x[i]^2. */                                             \
    TWINSTEP_HD acc_type sum_terms_##pair(const in *x, size_t n) {                                 \
        struct sum_blocks_##acc blocks;                                                            \
        if (n <= SUM_BLOCK) return sum_block_terms_##pair(x, n);                                   \
        blocks.count = 0;                                                                          \
        for (size_t i = 0; i < n; i += SUM_BLOCK)                                                  \
            sum_blocks_push_##acc(&blocks,                                                         \
                                  sum_block_terms_##pair(x + i, sum_lanes_piece(0, n - i)));       \
        return sum_blocks_close_##acc(&blocks);                                                    \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_products_##pair(const in *a, const in *b, size_t n) {                 \
        struct sum_blocks_##acc blocks;                                                            \
        if (n <= SUM_BLOCK) return sum_block_products_##pair(a, b, n);                             \
        blocks.count = 0;                                                                          \
        for (size_t i = 0; i < n; i += SUM_BLOCK)                                                  \
            sum_blocks_push_##acc(                                                                 \
                &blocks, sum_block_products_##pair(a + i, b + i, sum_lanes_piece(0, n - i)));      \
        return sum_blocks_close_##acc(&blocks);                                                    \
    }                                                                                              \
    TWINSTEP_HD acc_type sum_squares_##pair(const in *x, size_t n) {                               \
        return sum_products_##pair(x, x, n);                                                       \
    }

SUM_DEFINE_VECTORS(f32_f32, float, float, f32)
SUM_DEFINE_VECTORS(f32_f64, float, double, f64)
SUM_DEFINE_VECTORS(f64_f64, double, double, f64)

#endif
