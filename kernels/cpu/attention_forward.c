/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): out = round(P v), a chain over keys. Units of work are pairs of a
 * sequence and a key/value head; threads divide them. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"

ROW_INLINE void round_row(const accumulator *from, struct stored *to, size_t n, enum dtype dtype) {
    EACH for (size_t d = 0; d < n; d++) to[d] = stored_of(carrier_round(from[d], dtype));
}

/* Makes the block's weights of the values in space.p: probabilities, dropped and rounded as
 * operands. */
static void open_block(const struct attention_task *task, const struct attention_block *block,
                       const void *data) {
    (void)data;
    VARIANT(attention_probabilities)(task, block);
    VARIANT(attention_masks)(task, block);
    VARIANT(attention_drop)(task, block, task->space.p);
    VARIANT(attention_operand)(task, task->space.p, task->far, block->count, block->keys);
}

/* Rounds the output, to whose pointer `data` points, from its sums in space.result. */
static void close_block(const struct attention_task *task, const struct attention_block *block,
                        const void *data) {
    struct stored *const out = *(struct stored *const *)data;
    for (size_t i = 0; i < block->count; i++) {
        const accumulator *const from = task->space.result + i * task->wide;
        struct stored *const to =
            out + (task->row + block->first + i) * task->q_line + block->head * task->D;
#define ROUND(d) round_row(from, to, task->D, d)
        DTYPE_SWITCH(task->dtype, ROUND);
    }
}

static void open_unit(const struct attention_task *task) {
    VARIANT(attention_columns)(task, task->k, task->k_line, task->space.k_columns);
    VARIANT(attention_rows)(task, task->v, task->k_line, task->length, task->space.v_rows);
}

void VARIANT(attention_forward)(const struct op_call *call,
                                const struct attention_forward_args *args) {
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
                                              .keeps = (accumulator *)args->state};
    struct stored *const out = (struct stored *)args->out;
    VARIANT(attention_run)
    ((struct attention_pass){.call = call,
                             .problem = &problem,
                             .data = &out,
                             .open_unit = open_unit,
                             .open_block = open_block,
                             .close_block = close_block});
}
