/* SPDX-License-Identifier: Apache-2.0
 * The products of attention: small matrices of accumulators, causal where the law says so.
 * Vectors run across outputs of a row, registers hold a few rows; the chain of each output goes on
 * from memory, term by term in ascending order. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm_vector.h"

#if defined(TWINSTEP_ISA_v4)
#define PANEL ((size_t)8)
#else
#define PANEL ((size_t)4)
#endif

VEC_INLINE void panel(const struct product *p, size_t i, size_t j, size_t rows, size_t vectors) {
    vec c[PANEL][2];
    VEC_UNROLL
    for (size_t r = 0; r < rows; r++) {
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            c[r][v] = vec_load(p->c + (i + r) * p->c_line + j + v * VEC_LANES);
    }
    const accumulator *a = p->a + i * p->a_row;
    const accumulator *b = p->b + j;
    for (size_t t = 0; t < p->depth; t++, a += p->a_term, b += p->b_line) {
        vec line[2];
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            line[v] = vec_load(b + v * VEC_LANES);
        VEC_UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vec weight = vec_splat(a[r * p->a_row]);
            VEC_UNROLL
            for (size_t v = 0; v < vectors; v++)
                c[r][v] = vec_fma(weight, line[v], c[r][v]);
        }
    }
    VEC_UNROLL
    for (size_t r = 0; r < rows; r++) {
        VEC_UNROLL
        for (size_t v = 0; v < vectors; v++)
            vec_store(p->c + (i + r) * p->c_line + j + v * VEC_LANES, c[r][v]);
    }
}

/* Rows i .. i+rows-1 and all columns: two vectors of columns at a time, then the odd one. */
VEC_INLINE void strip(const struct product *p, size_t i, size_t rows) {
    size_t j = 0;
    for (; j + 2 * VEC_LANES <= p->columns; j += 2 * VEC_LANES)
        panel(p, i, j, rows, 2);
    for (; j < p->columns; j += VEC_LANES)
        panel(p, i, j, rows, 1);
}

static void strip_full(const struct product *p, size_t i) {
    strip(p, i, PANEL);
}

static void strip_part(const struct product *p, size_t i, size_t rows) {
    for (; rows >= 2; rows -= 2, i += 2)
        strip(p, i, 2);
    if (rows == 1) strip(p, i, 1);
}

static void rows_from(const struct product *p, size_t i, size_t rows) {
    if (rows == PANEL)
        strip_full(p, i);
    else
        strip_part(p, i, rows);
}

void VARIANT(product_full)(const struct product *p) {
    for (size_t i = 0; i < p->rows; i += PANEL)
        rows_from(p, i, least(PANEL, p->rows - i));
}

/* The product restricted to terms first .. first+depth-1 of rows i .. i+rows-1. */
static void part(const struct product *p, size_t i, size_t rows, size_t first, size_t depth) {
    struct product some = *p;
    some.a = p->a + first * p->a_term;
    some.b = p->b + first * p->b_line;
    some.depth = depth;
    if (depth > 0) rows_from(&some, i, rows);
}

/* The rows of a panel go together as far as the first of them has terms, then each goes on alone.
 */
void VARIANT(product_keys)(const struct product *p, size_t first) {
    for (size_t i = 0; i < p->rows; i += PANEL) {
        const size_t rows = least(PANEL, p->rows - i);
        const size_t common = first + i + 1;
        part(p, i, rows, 0, common);
        for (size_t r = 1; r < rows; r++)
            part(p, i + r, 1, common, r);
    }
}

/* Each row goes alone up to where the last row of its panel begins, then they go together. */
void VARIANT(product_queries)(const struct product *p, size_t first) {
    for (size_t j = 0; j < p->rows; j += PANEL) {
        const size_t rows = least(PANEL, p->rows - j);
        const size_t last = j + rows - 1;
        const size_t common = last > first ? last - first : 0;
        for (size_t r = 0; r + 1 < rows; r++) {
            const size_t own = j + r > first ? j + r - first : 0;
            part(p, j + r, 1, own, common - own);
        }
        part(p, j, rows, common, p->depth - common);
    }
}

/* ---- law 16 ---- */

static struct exact_row row_of(const struct product *p, size_t i, size_t first, size_t terms) {
    return (struct exact_row){.a = p->a + i * p->a_row + first * p->a_term,
                              .a_term = p->a_term,
                              .b = p->b + first * p->b_line,
                              .b_line = p->b_line,
                              .terms = terms,
                              .columns = p->columns};
}

void VARIANT(product_exact)(const struct product *p) {
    const double bound = VARIANT(exact_bound)(p->b, p->b_line, p->depth, p->columns);
    for (size_t i = 0; i < p->rows; i++) {
        struct exact_row row = row_of(p, i, 0, p->depth);
        row.b_bound = bound;
        VARIANT(exact_row_round)(&row, p->c + i * p->c_line);
    }
}

void VARIANT(product_exact_keys)(const struct product *p, size_t first) {
    const double bound = VARIANT(exact_bound)(p->b, p->b_line, first + p->rows, p->columns);
    for (size_t i = 0; i < p->rows; i++) {
        struct exact_row row = row_of(p, i, 0, first + i + 1);
        row.b_bound = bound;
        VARIANT(exact_row_round)(&row, p->c + i * p->c_line);
    }
}

void VARIANT(product_exact_queries)(const struct product *p, size_t first, struct exact_sum *held) {
    const double bound = VARIANT(exact_bound)(p->b, p->b_line, p->depth, p->columns);
    for (size_t j = 0; j < p->rows; j++) {
        const size_t own = j > first ? j - first : 0;
        struct exact_row row = row_of(p, j, own, p->depth - own);
        row.b_bound = bound;
        VARIANT(exact_row_join)(&row, held + j * p->c_line);
    }
}
