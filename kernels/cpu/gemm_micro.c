/* SPDX-License-Identifier: Apache-2.0
 * The micro-kernels: a panel of rows times a strip of one or two vectors, all chains in registers.
 * One copy per panel height, so that rows left over cost what they are worth.
 *
 * Invariant: one fma per term and output, terms ascending. */
#include "kernels/cpu/gemm_rows.h"

#define TERM_ROW(i)                                                                                \
    if (i < rows) {                                                                                \
        const vec left = vec_splat(by_terms ? a[i] : a[i * GEMM_LINE]);                            \
        low##i = vec_fma(left, right_low, low##i);                                                 \
        if (vectors == 2) high##i = vec_fma(left, right_high, high##i);                            \
    }

/* Asks for the lines of C that will be written when the chains are done: a store that misses the
 * caches waits for memory, and all later ones wait for it. */
#define ASK_ROW(i)                                                                                 \
    if (i < rows && start != GEMM_CONTINUE) {                                                      \
        __builtin_prefetch(c[i] + column, 1);                                                      \
        if (vectors == 2) __builtin_prefetch(c[i] + column + 2 * VEC_LANES - 1, 1);                \
    }

#define JOIN_ROW(i)                                                                                \
    if (i < rows) {                                                                                \
        low##i = vec_load(c[i] + column) + low##i;                                                 \
        if (vectors == 2) high##i = vec_load(c[i] + column + VEC_LANES) + high##i;                 \
    }

VEC_INLINE void multiply(const size_t rows, const size_t vectors, const int by_terms, size_t depth,
                         const accumulator *a, const accumulator *b, accumulator *const *c,
                         size_t column, enum gemm_start start) {
    EACH_ROW(OPEN_ROW)
    EACH_ROW(ASK_ROW)
    for (size_t p = 0; p < depth; p++) {
        const vec right_low = vec_load(b);
        const vec right_high = vectors == 2 ? vec_load(b + VEC_LANES) : right_low;
        EACH_ROW(TERM_ROW)
        a += by_terms ? rows : 1;
        b += vectors * VEC_LANES;
    }
    if (start == GEMM_JOIN) {
        EACH_ROW(JOIN_ROW)
    }
    EACH_ROW(CLOSE_ROW)
}

#define MICRO(rows, vectors, by_terms)                                                             \
    static void micro_##rows##_##vectors##_##by_terms(size_t depth, const accumulator *a,          \
                                                      const accumulator *b, accumulator *const *c, \
                                                      size_t column, enum gemm_start start) {      \
        multiply(rows, vectors, by_terms, depth, a, b, c, column, start);                          \
    }
#define MICRO_ROWS(rows) MICRO(rows, 1, 0) MICRO(rows, 2, 0) MICRO(rows, 1, 1) MICRO(rows, 2, 1)
#define MICRO_ENTRY(rows)                                                                          \
    {{micro_##rows##_1_0, micro_##rows##_2_0}, {micro_##rows##_1_1, micro_##rows##_2_1}},

EACH_HEIGHT(MICRO_ROWS)

gemm_micro VARIANT(gemm_micro_of)(size_t rows, size_t vectors, int by_terms) {
    static const gemm_micro kernels[GEMM_ROWS][2][2] = {EACH_HEIGHT(MICRO_ENTRY)};
    return kernels[rows - 1][by_terms != 0][vectors - 1];
}
