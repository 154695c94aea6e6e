/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): out = round(P v), a chain over keys. Units of work are pairs of a
 * sequence and a key/value head; threads divide them. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/attention_racing.h"
#include "kernels/cpu/race.h"

ROW_INLINE void round_row(const accumulator *from, carrier *to, size_t n, enum dtype dtype) {
    EACH for (size_t d = 0; d < n; d++) to[d] = carrier_round(from[d], dtype);
}

/* Makes the block's weights of the values in space.p: probabilities, dropped and rounded as
 * operands. */
static void open_block(const struct attention_task *task, const struct attention_block *block) {
    VARIANT(attention_probabilities)(task, block);
    VARIANT(attention_masks)(task, block);
    VARIANT(attention_drop)(task, block, task->space.p);
    VARIANT(attention_operand)(task, task->space.p, task->far, block->count, block->keys);
}

/* Rounds the output from its sums in space.result. */
static void close_block(const struct attention_task *task, const struct attention_block *block,
                        carrier *out) {
    for (size_t i = 0; i < block->count; i++) {
        const accumulator *const from = task->space.result + i * task->wide;
        carrier *const to =
            out + (task->row + block->first + i) * task->q_line + block->head * task->D;
#define ROUND(d) round_row(from, to, task->D, d)
        DTYPE_SWITCH(task->dtype, ROUND);
    }
}

static void open_unit(const struct attention_task *task) {
    VARIANT(attention_columns)(task, task->k, task->k_line, task->space.k_columns);
    VARIANT(attention_rows)(task, task->v, task->k_line, task->length, task->space.v_rows);
}

static void run_task(const struct attention_task *task, carrier *out) {
    open_unit(task);
    for (size_t h = task->first_head; h < task->first_head + task->heads; h++) {
        for (size_t first = 0; first < task->length; first += ATTENTION_QUERIES) {
            const struct attention_block block = attention_block_at(task, h, first);
            open_block(task, &block);
            VARIANT(attention_over_keys)
            (task, &block, task->space.p, task->space.v_rows, SUM_FORWARD, PASS_FORWARD);
            close_block(task, &block, out);
        }
    }
}

/* ---- PV by law 14; `data` points to the pointer to the output ---- */

static void race_open(const struct attention_task *task, const struct attention_block *block,
                      const void *data) {
    (void)data;
    open_block(task, block);
}

static void race_close(const struct attention_task *task, const struct attention_block *block,
                       const void *data) {
    close_block(task, block, *(carrier *const *)data);
}

static void race_close_unit(const struct attention_task *task, const void *data) {
    (void)task;
    (void)data;
}

void VARIANT(attention_forward)(const struct op_call *call,
                                const struct attention_forward_args *args) {
    const struct attention_problem problem = {args->sequences, args->count,  args->H, args->G,
                                              args->D,         args->scale,  args->q, args->k,
                                              args->v,         args->dropout};
    const size_t tasks = (size_t)args->count * args->G;
    size_t work = 0;
    const size_t own = VARIANT(attention_own)(call, &problem, &work);
    carrier *const out = (carrier *)args->out;
    if (race_active(call, SUM_FORWARD)) {
        const struct attention_race race = {.call = call,
                                            .problem = &problem,
                                            .own = own,
                                            .data = &out,
                                            .open_unit = open_unit,
                                            .open_block = race_open,
                                            .close_block = race_close,
                                            .close_unit = race_close_unit};
        VARIANT(attention_racing)(&race);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(call_threads(call, work))
    for (size_t i = 0; i < tasks; i++) {
        const struct attention_task task = VARIANT(attention_task)(call, &problem, own, i);
        run_task(&task, out);
    }
}
