/* SPDX-License-Identifier: Apache-2.0
 * Attention backward (law 6). Probabilities are computed again. Per block of queries:
 *   dP = round(dout . v), a chain over d;  D = law 2 over keys of fma(P, dP);
 * (with dropout, dP is that of the kept probabilities, scaled; dV takes the dropped ones)
 *   dS = round(round(P * (dP - D)) * scale);  dQ = round(dS k), a chain over keys.
 * Of flash attention D is law 2 over d of fma(dout, out) instead, with the output that was stored.
 * dK and dV: one chain over (query head of the group, query) ascending, in accumulators until the
 * sequence is done. Units of work as in forward: no two write one element; but in law 14 dQ. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"

struct gradients {
    const struct stored *dout, *out; /* out: NULL where D is a sum over keys */
    struct stored *dq, *dk, *dv;
};

ROW_INLINE void finish_row(const accumulator *from, struct stored *to, size_t n, enum dtype dtype) {
    EACH for (size_t d = 0; d < n; d++) to[d] = stored_of(carrier_round(from[d], dtype));
}

/* Rounds `rows` rows of accumulators to rows of elements that are `line` apart. */
static void finish_rows(const struct attention_task *task, const accumulator *from,
                        struct stored *to, size_t line, size_t rows) {
    for (size_t i = 0; i < rows; i++, from += task->wide, to += line) {
#define FINISH(d) finish_row(from, to, task->D, d)
        DTYPE_SWITCH(task->dtype, FINISH);
    }
}

ROW_INLINE void round_scores(accumulator *dp, size_t n, enum dtype dtype) {
    EACH for (size_t j = 0; j < n; j++) dp[j] = (accumulator)carrier_round(dp[j], dtype);
}

static accumulator over_keys(const struct attention_task *task, const accumulator *p,
                             const accumulator *dp, size_t n) {
    if (task->call->order_free) return VARIANT(exact_products)(p, dp, n);
    return TERM(sum_products)(p, dp, n);
}

/* Turns dP, which stands in dp, into dS. */
ROW_INLINE void score_gradient_row(const struct attention_task *task, const accumulator *p,
                                   accumulator *dp, size_t n, accumulator d, enum dtype dtype) {
    EACH for (size_t j = 0; j < n; j++) dp[j] =
        (accumulator)rule_prob_grad((carrier)p[j], (carrier)dp[j], d, task->scale, dtype);
}

static void score_gradients(const struct attention_task *task, const struct attention_block *block,
                            const struct stored *dout, const struct stored *out) {
    const struct attention_space *const space = &task->space;
    const struct product chains = {
        .c = space->dp,
        .c_line = task->far,
        .a = space->dout,
        .a_row = task->wide,
        .a_term = 1,
        .b = space->v_columns,
        .b_line = task->far,
        .rows = block->count,
        .columns = block->keys,
        .depth = task->D,
    };
    VARIANT(attention_rows)(task, dout, task->q_line, block->count, space->dout);
    VARIANT(product_of)(task, &chains);
    for (size_t i = 0; i < block->count; i++) {
#define ROUND(d) round_scores(space->dp + i * task->far, block->first + i + 1, d)
        DTYPE_SWITCH(task->score, ROUND);
    }
    VARIANT(attention_drop)(task, block, space->dp);
    for (size_t i = 0; i < block->count; i++) {
        const size_t at = i * task->far, n = block->first + i + 1, row = i * task->q_line;
        const accumulator sum = out != NULL ? row_products(task->call, stored_numbers(dout + row),
                                                           stored_numbers(out + row), task->D)
                                            : over_keys(task, space->p + at, space->dp + at, n);
#define SCORE(d) score_gradient_row(task, space->p + at, space->dp + at, n, sum, d)
        DTYPE_SWITCH(task->score, SCORE);
    }
}

/* The sums held (key, d) go on with weights(query, key) * rows(query, d) over the block's queries,
 * ascending. */
static void add_queries(const struct attention_task *task, const struct attention_block *block,
                        const accumulator *weights, const accumulator *rows, accumulator *held,
                        struct exact_sum *exact) {
    const struct product over = {
        .c = held,
        .c_line = task->wide,
        .a = weights,
        .a_row = 1,
        .a_term = task->far,
        .b = rows,
        .b_line = task->wide,
        .rows = block->first + block->count,
        .columns = task->wide,
        .depth = block->count,
    };
    if (task->call->order_free)
        VARIANT(product_exact_queries)(&over, block->first, exact);
    else
        VARIANT(product_queries)(&over, block->first);
}

/* Makes dS of a block in space.dp, rounded as an operand. */
static void open_block(const struct attention_task *task, const struct attention_block *block,
                       const void *data) {
    const struct gradients *const gradients = (const struct gradients *)data;
    const struct attention_space *const space = &task->space;
    const size_t at = (task->row + block->first) * task->q_line + block->head * task->D;
    VARIANT(attention_probabilities)(task, block);
    VARIANT(attention_masks)(task, block);
    score_gradients(task, block, gradients->dout + at,
                    gradients->out == NULL ? NULL : gradients->out + at);
    VARIANT(attention_drop)(task, block, space->p);
    VARIANT(attention_operand)(task, space->p, task->far, block->count, block->keys);
    VARIANT(attention_operand)(task, space->dp, task->far, block->count, block->keys);
}

/* Rounds dQ from its sums in space.result, and adds the block's terms to dK and dV. */
static void close_block(const struct attention_task *task, const struct attention_block *block,
                        const void *data) {
    const struct gradients *const gradients = (const struct gradients *)data;
    const struct attention_space *const space = &task->space;
    const size_t at = (task->row + block->first) * task->q_line + block->head * task->D;
    finish_rows(task, space->result, gradients->dq + at, task->q_line, block->count);
    add_queries(task, block, space->dp, space->q, space->dk, space->exact_dk);
    add_queries(task, block, space->p, space->dout, space->dv, space->exact_dv);
}

static void open_unit(const struct attention_task *task) {
    const struct attention_space *const space = &task->space;
    VARIANT(attention_columns)(task, task->k, task->k_line, space->k_columns);
    VARIANT(attention_columns)(task, task->v, task->k_line, space->v_columns);
    VARIANT(attention_rows)(task, task->k, task->k_line, task->length, space->k_rows);
    memset(space->dk, 0, task->length * task->wide * sizeof *space->dk);
    memset(space->dv, 0, task->length * task->wide * sizeof *space->dv);
    if (!task->call->order_free) return;
    memset(space->exact_dk, 0, task->length * task->wide * sizeof *space->exact_dk);
    memset(space->exact_dv, 0, task->length * task->wide * sizeof *space->exact_dv);
}

/* Rounds dK and dV out of their exact sums. */
static void round_unit(const struct attention_task *task) {
    const struct attention_space *const space = &task->space;
    if (!task->call->order_free) return;
    for (size_t i = 0; i < task->length * task->wide; i++) {
        space->dk[i] = exact_acc(space->exact_dk + i);
        space->dv[i] = exact_acc(space->exact_dv + i);
    }
}

static void close_unit(const struct attention_task *task, const void *data) {
    const struct gradients *const gradients = (const struct gradients *)data;
    const size_t column = task->first_head / task->heads * task->D;
    const size_t at = task->row * task->k_line + column;
    round_unit(task);
    finish_rows(task, task->space.dk, gradients->dk + at, task->k_line, task->length);
    finish_rows(task, task->space.dv, gradients->dv + at, task->k_line, task->length);
}

void VARIANT(attention_backward)(const struct op_call *call,
                                 const struct attention_backward_args *args) {
    const struct attention_problem problem = {.sequences = args->sequences,
                                              .count = args->count,
                                              .H = args->H,
                                              .G = args->G,
                                              .D = args->D,
                                              .scale = args->scale,
                                              .q = args->q,
                                              .k = args->k,
                                              .v = args->v,
                                              .dropout = args->dropout,
                                              .flash = args->out != NULL,
                                              .kept = (const accumulator *)args->state};
    const struct gradients gradients = {(const struct stored *)args->dout,
                                        (const struct stored *)args->out, (struct stored *)args->dq,
                                        (struct stored *)args->dk, (struct stored *)args->dv};
    VARIANT(attention_run)
    ((struct attention_pass){.call = call,
                             .problem = &problem,
                             .backward = 1,
                             .data = &gradients,
                             .open_unit = open_unit,
                             .open_block = open_block,
                             .close_block = close_block,
                             .close_unit = close_unit});
}
