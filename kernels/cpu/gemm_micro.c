/* SPDX-License-Identifier: Apache-2.0
 * The micro-kernels: a panel of rows times a strip of one or two vectors, all chains in registers.
 * One copy per panel height, so that rows left over cost what they are worth.
 *
 * Invariant: one fma per term and output, terms ascending. */
#include "kernels/cpu/gemm_block.h"

/* Every caller passes constants for rows, vectors and by_terms: the loops over them unroll and the
 * sums stay in registers. */
VEC_INLINE void multiply(const size_t rows, const size_t vectors, const int by_terms, size_t depth,
                         const accumulator *a, const accumulator *b, accumulator *const *c,
                         size_t column, enum gemm_start start) {
    vec sum[GEMM_ROWS][2];
    VEC_UNROLL
    for (size_t i = 0; i < rows; i++) {
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            sum[i][v] = vec_splat(ACC(0.0));
    }
    if (start == GEMM_CONTINUE) {
        VEC_UNROLL
        for (size_t i = 0; i < rows; i++) {
            VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] = vec_load(c[i] + column + v * VEC_LANES);
        }
    }
    for (size_t p = 0; p < depth; p++) {
        vec right[2];
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            right[v] = vec_load(b + v * VEC_LANES);
        VEC_UNROLL
        for (size_t i = 0; i < rows; i++) {
            const vec left = vec_splat(by_terms ? a[i] : a[i * GEMM_LINE]);
            VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                sum[i][v] = vec_fma(left, right[v], sum[i][v]);
        }
        a += by_terms ? rows : 1;
        b += vectors * VEC_LANES;
    }
    VEC_UNROLL
    for (size_t i = 0; i < rows; i++) {
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++) {
            accumulator *const out = c[i] + column + v * VEC_LANES;
            vec_store(out, start == GEMM_JOIN ? vec_load(out) + sum[i][v] : sum[i][v]);
        }
    }
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

#if defined(TWINSTEP_ISA_v4)
#define MICRO_EACH(do_rows)                                                                        \
    do_rows(1) do_rows(2) do_rows(3) do_rows(4) do_rows(5) do_rows(6) do_rows(7) do_rows(8)        \
        do_rows(9) do_rows(10) do_rows(11) do_rows(12) do_rows(13) do_rows(14)
#elif defined(TWINSTEP_ISA_v3)
#define MICRO_EACH(do_rows) do_rows(1) do_rows(2) do_rows(3) do_rows(4) do_rows(5) do_rows(6)
#else
#define MICRO_EACH(do_rows) do_rows(1) do_rows(2) do_rows(3) do_rows(4)
#endif

MICRO_EACH(MICRO_ROWS)

gemm_micro VARIANT(gemm_micro_of)(size_t rows, size_t vectors, int by_terms) {
    static const gemm_micro kernels[GEMM_ROWS][2][2] = {MICRO_EACH(MICRO_ENTRY)};
    return kernels[rows - 1][by_terms != 0][vectors - 1];
}
