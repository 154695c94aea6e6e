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

/* The sums c[i][j] go on with a(i, t) * b[t][j] over t = 0 .. depth-1. The number of columns is a
 * multiple of VEC_LANES; a(i, t) = a[i * a_row + t * a_term]. */
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

/* Law 16: c becomes the exact sums, rounded. Keys are as in product_keys, but all rows of b are
 * read. */
void VARIANT(product_exact)(const struct product *p);
void VARIANT(product_exact_keys)(const struct product *p, size_t first);

/* Law 16, keys and terms as in product_queries: the exact sums `held`, whose lines are c_line
 * apart, go on; c is not used. */
void VARIANT(product_exact_queries)(const struct product *p, size_t first, struct exact_sum *held);

/* The product over keys: row i is query first + i and has the terms 0 .. first + i. */
void VARIANT(product_keys)(const struct product *p, size_t first);

/* The product over queries: row j is a key and has the terms (queries first + t) for which first +
 * t >= j. */
void VARIANT(product_queries)(const struct product *p, size_t first);

/* One thread's memory; attention_numbers() says how much it is. */
struct attention_space {
    accumulator *k_rows, *v_rows;       /* (L, D) */
    accumulator *k_columns, *v_columns; /* (D, L) */
    accumulator *dk, *dv;               /* (L, D) */
    accumulator *p, *dp;                /* (block, L) */
    accumulator *q, *dout, *result;     /* (block, D) */
    carrier *line;                      /* (L) */
    uint8_t *kept;                      /* (block, L) dropout's mask */
    void *order;
    struct exact_sum *exact_dk, *exact_dv; /* (L, D) of law 16 */
};

/* One unit of work: a sequence and a key/value head. `wide` and `far` are D and the length, padded;
 * they are the distances between packed rows. */
struct attention_task {
    const struct op_call *call;
    const struct sequence *sequence;
    const struct dropout *dropout; /* NULL: there is none */
    int flash;                     /* probabilities come from the log-sum-exp (rule_log_sum_exp) */
    enum dtype dtype;              /* the dtype of the outputs */
    enum dtype score, product;     /* call_score(), call_product() */
    carrier scale;
    size_t H, D,
        heads; /* heads: how many query heads read this key/value head, from first_head on */
    size_t first_head;
    size_t row, length; /* the first physical row of the sequence, and its rows */
    size_t keys;        /* the length with padding, with which a library would be called */
    size_t
        counted; /* rows of the call before this sequence, from which law 9's tiles are counted */
    size_t wide, far;
    size_t q_line, k_line;      /* distances of rows in q and in k */
    const struct stored *q;     /* first row of the sequence, column 0 */
    const struct stored *k, *v; /* first row of the sequence, this head's column */
    accumulator *keeps;         /* (rows of the sequence, H, 2) maximum and sum, to be written, */
    const accumulator *kept;    /* or read; each NULL where it is not asked for */
    struct attention_space space;
};

/* A block of consecutive queries of one head. */
struct attention_block {
    size_t head;
    size_t first, count;
    size_t keys; /* how many keys any query of the block has, padded */
};

struct attention_problem {
    const struct sequence *sequences;
    uint32_t count, H, G, D;
    double scale;
    const void *q, *k, *v;
    const struct dropout *dropout;
    int flash;               /* of a backward alone */
    accumulator *keeps;      /* attention_forward_args.state */
    const accumulator *kept; /* attention_backward_args.state */
};

/* Unit `index` of count * G: sequence index / G, key/value head index % G. `own` is this thread's
 * memory in bytes. */
struct attention_task VARIANT(attention_task)(const struct op_call *call,
                                              const struct attention_problem *problem, size_t own,
                                              size_t index);

/* Packs rows of `rows` tokens, D wide and `line` apart, as operands in accumulators, padded with
 * +0. */
void VARIANT(attention_rows)(const struct attention_task *task, const struct stored *x, size_t line,
                             size_t rows, accumulator *out);
void VARIANT(attention_columns)(const struct attention_task *task, const struct stored *x,
                                size_t line, accumulator *out);

/* Rounds `rows` rows of `n` numbers, `line` apart, as operands of a product (law 11). */
void VARIANT(attention_operand)(const struct attention_task *task, accumulator *values, size_t line,
                                size_t rows, size_t n);

/* Draws the block's masks into space.kept; does nothing without dropout. */
void VARIANT(attention_masks)(const struct attention_task *task,
                              const struct attention_block *block);

/* In `values` (block, L), scales and rounds (as scores) what dropout keeps, and puts +0 for the
 * rest. */
void VARIANT(attention_drop)(const struct attention_task *task, const struct attention_block *block,
                             accumulator *values);

/* Makes c the product with every term of it: chains from +0, or exact sums. */
void VARIANT(product_of)(const struct attention_task *task, const struct product *p);

/* Makes the block's probabilities in space.p; k_columns must be packed. */
void VARIANT(attention_probabilities)(const struct attention_task *task,
                                      const struct attention_block *block);

/* One pass over a problem: PV of the forward, or dQ of the backward. What opening and closing are
 * is the caller's. */
struct attention_pass {
    const struct op_call *call;
    const struct attention_problem *problem;
    size_t own;   /* bytes of scratch that a thread has; attention_run sets it */
    int backward; /* 1: the sums are of space.dp and k_rows (dQ); 0: of space.p and v_rows (PV) */
    const void *data; /* handed on */
    void (*open_unit)(const struct attention_task *task);
    void (*open_block)(const struct attention_task *task, const struct attention_block *block,
                       const void *data);
    void (*close_block)(const struct attention_task *task, const struct attention_block *block,
                        const void *data);
    void (*close_unit)(const struct attention_task *task, const void *data); /* NULL: nothing */
};

/* Opens each unit and each of its blocks, makes space.result and closes them. Threads divide the
 * units, which are pairs of a sequence and a key/value head; by law 14 they race on the blocks. */
void VARIANT(attention_run)(struct attention_pass pass);

/* The same by law 14 (attention_racing.c). In rounds: each thread opens a block of its own unit;
 * then all threads take chunks of keys of all blocks and race on the blocks' sums; then each closes
 * its own. Every chunk of every block is added to space.result exactly once. */
void VARIANT(attention_racing)(const struct attention_pass *pass);

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
