/* SPDX-License-Identifier: Apache-2.0
 * Causal attention inside one sequence, for one key/value head and the query heads that read it:
 * what forward and backward share (law 6).
 *
 * Work goes by blocks of queries. A block's scores, exponentials and probabilities are exact copies
 * in accumulators, so that every product here has one type. Query q has keys 0 .. q: products over
 * keys stop at q exactly; scores of later keys may be computed but are never used.
 * Invariant: each output is one chain in ascending order of its terms; blocks only interleave
 * different outputs, and a chain waits in memory in the accumulator's type. */
#ifndef TWINSTEP_KERNELS_CPU_ATTENTION_H
#define TWINSTEP_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/exact.h"
#include "kernels/cpu/kernels_cpu.h"

#if defined(TWINSTEP_VARIANT)

/* c[i][j] goes on with a(i, t) * b[t][j] over t = 0 .. depth-1. columns: a multiple of VEC_LANES;
 * a(i, t) = a[i * a_row + t * a_term]. */
struct product {
    accumulator *c;
    size_t c_line;
    const accumulator *a;
    size_t a_row, a_term;
    const accumulator *b;
    size_t b_line;
    size_t rows, columns, depth;
};

void VARIANT(product_full)(const struct product *p);

/* By law 16: c <- exact sums, rounded; keys as product_keys, of which all rows of b are read. */
void VARIANT(product_exact)(const struct product *p);
void VARIANT(product_exact_keys)(const struct product *p, size_t first);

/* As product_queries; c is none, `held` (its lines c_line apart) goes on. */
void VARIANT(product_exact_queries)(const struct product *p, size_t first, struct exact_sum *held);

/* Over keys: row i is query first + i and has terms 0 .. first + i. */
void VARIANT(product_keys)(const struct product *p, size_t first);

/* Over queries: row j is a key and has the terms (queries first + t) with first + t >= j. */
void VARIANT(product_queries)(const struct product *p, size_t first);

/* One thread's numbers; the sizes are attention_numbers(). */
struct attention_space {
    accumulator *k_rows, *v_rows;       /* (L, D) */
    accumulator *k_columns, *v_columns; /* (D, L) */
    accumulator *dk, *dv;               /* (L, D) */
    accumulator *p, *dp;                /* (block, L) */
    accumulator *q, *dout, *result;     /* (block, D) */
    carrier *line;                      /* (L) */
    uint8_t *kept;                      /* (block, L) of dropout */
    void *order;
    struct exact_sum *exact_dk, *exact_dv; /* (L, D) of law 16 */
};

/* One unit of work. wide and far are D and the length, padded: distances of rows. */
struct attention_task {
    const struct op_call *call;
    const struct sequence *sequence;
    const struct dropout *dropout; /* NULL: none */
    enum dtype dtype;              /* of the outputs */
    enum dtype score, product;     /* call_score(), call_product() */
    carrier scale;
    size_t H, D, heads; /* heads: query heads of this key/value head, from first_head on */
    size_t first_head;
    size_t row, length; /* physical rows of the sequence */
    size_t keys;        /* length with padding: what a library is called with */
    size_t counted;     /* rows of the call before this sequence: tiles of law 9 */
    size_t wide, far;
    size_t q_line, k_line; /* distances of rows in q and in k */
    const carrier *q;      /* first row of the sequence, column 0 */
    const carrier *k, *v;  /* first row of the sequence, this head's column */
    struct attention_space space;
};

/* A block of queries of one head. */
struct attention_block {
    size_t head;
    size_t first, count;
    size_t keys; /* padded number of keys that any query of the block has */
};

struct attention_problem {
    const struct sequence *sequences;
    uint32_t count, H, G, D;
    double scale;
    const void *q, *k, *v;
    const struct dropout *dropout;
};

/* Unit `index` of count * G: sequence index / G, key/value head index % G. own: attention_own(). */
struct attention_task VARIANT(attention_task)(const struct op_call *call,
                                              const struct attention_problem *problem, size_t own,
                                              size_t index);

/* Bytes of a thread's scratch and the call's work, for the longest sequence. */
size_t VARIANT(attention_own)(const struct op_call *call, const struct attention_problem *problem,
                              size_t *out_work);

/* Rows of `rows` tokens, D wide, `line` apart, as operands in accumulators; padded with +0. */
void VARIANT(attention_rows)(const struct attention_task *task, const carrier *x, size_t line,
                             size_t rows, accumulator *out);
void VARIANT(attention_columns)(const struct attention_task *task, const carrier *x, size_t line,
                                accumulator *out);

/* `rows` rows of `n` numbers, `line` apart, are rounded as operands of a product. */
void VARIANT(attention_operand)(const struct attention_task *task, accumulator *values, size_t line,
                                size_t rows, size_t n);

/* Draws the block's masks into space.kept; nothing without dropout. */
void VARIANT(attention_masks)(const struct attention_task *task,
                              const struct attention_block *block);

/* `values` (block, L): kept ones scaled and rounded as scores, the others +0. */
void VARIANT(attention_drop)(const struct attention_task *task, const struct attention_block *block,
                             accumulator *values);

/* c <- the product, every term of it: chains from +0, or exact sums. */
void VARIANT(product_of)(const struct attention_task *task, const struct product *p);

/* space.p <- the block's probabilities; k_columns must be there. */
void VARIANT(attention_probabilities)(const struct attention_task *task,
                                      const struct attention_block *block);

/* space.result <- weights (block, L) times rows (L, D) over keys: a chain, or drawn chunks where
 * `kind` is shuffled. */
void VARIANT(attention_over_keys)(const struct attention_task *task,
                                  const struct attention_block *block, const accumulator *weights,
                                  const accumulator *rows, enum sum_kind kind, enum op_pass pass);

static inline struct attention_block attention_block_at(const struct attention_task *task,
                                                        size_t head, size_t first) {
    const size_t left = task->length - first;
    struct attention_block block = {head, first, left, 0};
    if (left > ATTENTION_QUERIES) block.count = ATTENTION_QUERIES;
    block.keys = attention_padded(first + block.count);
    return block;
}

#endif
#endif
