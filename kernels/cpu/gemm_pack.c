/* SPDX-License-Identifier: Apache-2.0
 * Packing: operands are copied into the order in which the micro-kernels read them, listed rows
 * gathered, elements converted exactly; and finished sums go back out, rounded once.
 *
 * Where a call says so, operands are rounded as they are packed (law 11).
 * Invariant: only listed rows and real columns are read or written. */
#include "kernels/cpu/gemm_block.h"

/* How many terms of the right operand ahead of the one that is packed memory is asked for. */
#define ASKED_TERMS ((size_t)16)

VEC_INLINE void round_packed(accumulator *packed, size_t count, const enum dtype dtype) {
    for (size_t i = 0; i < count; i++)
        packed[i] = (accumulator)carrier_round(packed[i], dtype);
}

/* Rounds `lines` packed lines of `count` numbers, `line` apart, as operands. */
static void round_operand(const struct gemm *g, accumulator *packed, size_t lines, size_t count,
                          size_t line) {
    if (g->product == DTYPE_F64) return;
    for (size_t i = 0; i < lines; i++) {
#define ROUND_PACKED(dtype) round_packed(packed + i * line, count, dtype)
        DTYPE_SWITCH(g->product, ROUND_PACKED);
#undef ROUND_PACKED
    }
}

/* The last vector overlaps the one before it, which writes the same numbers again. */
static void copy_line(accumulator *restrict to, const struct stored *restrict from, size_t count) {
    if (count < VEC_LANES) {
        for (size_t i = 0; i < count; i++)
            to[i] = (accumulator)stored_load(from[i]);
        return;
    }
    for (size_t i = 0; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store(to + i, vec_widen(from + i));
    vec_store(to + count - VEC_LANES, vec_widen(from + count - VEC_LANES));
}

/* `rows` is a constant at each call, so that the copy of a few numbers needs no loop. */
VEC_INLINE void pack_terms(const struct gemm *g, const size_t rows, size_t row, size_t term,
                           size_t depth, accumulator *packed) {
    for (size_t p = 0; p < depth; p++) {
        const struct stored *const from = g->a + list_row(&g->rows, term + p) * g->a_stride + row;
#if CARRIER_ACCUMULATES
        memcpy(packed + p * rows, stored_numbers(from), rows * sizeof *packed);
#else
        VEC_UNROLL
        for (size_t i = 0; i < rows; i++)
            packed[p * rows + i] = (accumulator)stored_load(from[i]);
#endif
    }
}

#define PACK_CASE(rows)                                                                            \
    case rows:                                                                                     \
        pack_terms(g, rows, row, term, depth, packed);                                             \
        break;

static void pack_a_by_terms(const struct gemm *g, size_t row, size_t rows, size_t term,
                            size_t depth, accumulator *packed) {
    switch (rows) {
        PACK_CASE(1)
        PACK_CASE(2)
        PACK_CASE(3)
        PACK_CASE(4)
        PACK_CASE(5)
        PACK_CASE(6)
        PACK_CASE(7)
        PACK_CASE(8)
        PACK_CASE(9)
        PACK_CASE(10)
        PACK_CASE(11)
        PACK_CASE(12)
        PACK_CASE(13)
        PACK_CASE(14)
    }
}

void VARIANT(gemm_pack_a)(const struct gemm *g, size_t row, size_t rows, size_t term, size_t depth,
                          accumulator *packed) {
    if (g->by_terms) {
        pack_a_by_terms(g, row, rows, term, depth, packed);
        round_operand(g, packed, 1, rows * depth, 0);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        copy_line(packed + i * GEMM_LINE, g->a + list_row(&g->rows, row + i) * g->a_stride + term,
                  depth);
    round_operand(g, packed, rows, depth, GEMM_LINE);
}

static void pack_b_transposed(const struct gemm *g, size_t column, size_t term, size_t depth,
                              accumulator *packed) {
    const size_t columns = least(g->N - column, GEMM_COLUMNS);
    const size_t line = gemm_vectors(columns) * VEC_LANES;
    for (size_t first = 0; first < line; first += VEC_LANES) {
        const struct stored *const from = g->b + (column + first) * g->b_stride + term;
        vec_columns(from, g->b_stride, least(columns - first, VEC_LANES), depth, packed + first,
                    line);
    }
}

/* Asks for the numbers of a term before they are packed: terms lie a row apart in memory, which is
 * no stream that the processor foresees. */
VEC_INLINE void ask_term(const struct gemm *g, size_t column, size_t columns, size_t term,
                         size_t end) {
    if (term >= end) return;
    const size_t row = g->by_terms ? list_row(&g->rows, term) : term;
    const struct stored *const from = g->b + row * g->b_stride + column;
    __builtin_prefetch(from);
    __builtin_prefetch(from + columns / 2);
    __builtin_prefetch(from + columns - 1);
}

static void pack_b_plain(const struct gemm *g, size_t column, size_t term, size_t depth,
                         accumulator *packed) {
    const size_t columns = least(g->N - column, GEMM_COLUMNS);
    const size_t line = gemm_vectors(columns) * VEC_LANES;
    for (size_t p = 0; p < depth; p++) {
        const size_t row = g->by_terms ? list_row(&g->rows, term + p) : term + p;
        const struct stored *const from = g->b + row * g->b_stride + column;
        accumulator *const to = packed + p * line;
        ask_term(g, column, columns, term + p + ASKED_TERMS, term + depth);
        if (columns == GEMM_COLUMNS) {
            vec_store(to, vec_widen(from));
            vec_store(to + VEC_LANES, vec_widen(from + VEC_LANES));
            continue;
        }
        copy_line(to, from, columns);
        for (size_t j = columns; j < line; j++)
            to[j] = ACC(0.0);
    }
}

void VARIANT(gemm_pack_b)(const struct gemm *g, size_t column, size_t term, size_t depth,
                          accumulator *packed) {
    if (g->b_transposed) {
        pack_b_transposed(g, column, term, depth, packed);
    } else {
        pack_b_plain(g, column, term, depth, packed);
    }
    const size_t columns = least(g->N - column, GEMM_COLUMNS);
    round_operand(g, packed, 1, depth * gemm_vectors(columns) * VEC_LANES, 0);
}

/* Rounds a line of sums. `sums` may be `out` itself, where chains grew in place. */
VEC_INLINE void round_line(struct stored *out, const accumulator *sums, size_t count,
                           const enum dtype dtype) {
    for (size_t j = 0; j < count; j++)
        out[j] = stored_of(carrier_round(sums[j], dtype));
}

VEC_INLINE void round_added(struct stored *out, const accumulator *sums, size_t count,
                            const enum dtype dtype) {
    for (size_t j = 0; j < count; j++) {
        const accumulator rounded = (accumulator)carrier_round(sums[j], dtype);
        out[j] = stored_of(carrier_round((accumulator)stored_load(out[j]) + rounded, dtype));
    }
}

void VARIANT(gemm_round)(const struct gemm *g, size_t row, size_t column, size_t columns,
                         const accumulator *sums) {
    struct stored *const out = g->out + list_row(&g->rows, row) * g->N + column;
#define ROUND_LINE(dtype) round_line(out, sums, columns, dtype)
#define ROUND_ADDED(dtype) round_added(out, sums, columns, dtype)
    if (g->add) {
        DTYPE_SWITCH(g->dtype, ROUND_ADDED);
    } else {
        DTYPE_SWITCH(g->dtype, ROUND_LINE);
    }
#undef ROUND_LINE
#undef ROUND_ADDED
}
