/* SPDX-License-Identifier: Apache-2.0
 * Attention backward (law 6). Probabilities are computed again. Per block of queries:
 *   dP = round(dout . v), a chain over d;  D = law 2 over keys of fma(P, dP);
 * (with dropout, dP is that of the kept probabilities, scaled; dV takes the dropped ones)
 *   dS = round(round(P * (dP - D)) * scale);  dQ = round(dS k), a chain over keys.
 * dK and dV: one chain over (query head of the group, query) ascending, in accumulators until the
 * sequence is done. Units of work as in forward: no two write one element; but in law 14 dQ. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/race.h"

struct gradients {
    const carrier *dout;
    carrier *dq, *dk, *dv;
};

ROW_INLINE void finish_row(const accumulator *from, carrier *to, size_t n, enum dtype dtype) {
    EACH for (size_t d = 0; d < n; d++) to[d] = carrier_round(from[d], dtype);
}

/* `rows` rows of accumulators to rows of `line` carriers. */
static void finish_rows(const struct attention_task *task, const accumulator *from, carrier *to,
                        size_t line, size_t rows) {
    for (size_t i = 0; i < rows; i++, from += task->wide, to += line) {
#define FINISH(d) finish_row(from, to, task->D, d)
        DTYPE_SWITCH(task->dtype, FINISH);
    }
}

ROW_INLINE void round_scores(accumulator *dp, size_t n, enum dtype dtype) {
    EACH for (size_t j = 0; j < n; j++) dp[j] = (accumulator)carrier_round(dp[j], dtype);
}

/* dp holds dP on entry, dS on return. */
ROW_INLINE void score_gradient_row(const struct attention_task *task, const accumulator *p,
                                   accumulator *dp, size_t n, enum dtype dtype) {
    const accumulator d =
        task->call->order_free ? VARIANT(exact_products)(p, dp, n) : TERM(sum_products)(p, dp, n);
    EACH for (size_t j = 0; j < n; j++) dp[j] =
        (accumulator)rule_prob_grad((carrier)p[j], (carrier)dp[j], d, task->scale, dtype);
}

static void score_gradients(const struct attention_task *task, const struct attention_block *block,
                            const carrier *dout) {
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
        const size_t at = i * task->far;
#define SCORE(d) score_gradient_row(task, space->p + at, space->dp + at, block->first + i + 1, d)
        DTYPE_SWITCH(task->score, SCORE);
    }
}

/* held (key, d) goes on with weights(query, key) * rows(query, d) over the block's queries. */
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

/* dS of a block, as an operand, in space.dp. */
static void open_block(const struct attention_task *task, const struct attention_block *block,
                       const struct gradients *gradients) {
    const struct attention_space *const space = &task->space;
    const size_t at = (task->row + block->first) * task->q_line + block->head * task->D;
    VARIANT(attention_probabilities)(task, block);
    VARIANT(attention_masks)(task, block);
    score_gradients(task, block, gradients->dout + at);
    VARIANT(attention_drop)(task, block, space->p);
    VARIANT(attention_operand)(task, space->p, task->far, block->count, block->keys);
    VARIANT(attention_operand)(task, space->dp, task->far, block->count, block->keys);
}

/* dQ from its sums in space.result; the block's terms of dK and dV. */
static void close_block(const struct attention_task *task, const struct attention_block *block,
                        const struct gradients *gradients) {
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

/* dK and dV leave their exact sums. */
static void round_unit(const struct attention_task *task) {
    const struct attention_space *const space = &task->space;
    if (!task->call->order_free) return;
    for (size_t i = 0; i < task->length * task->wide; i++) {
        space->dk[i] = exact_acc(space->exact_dk + i);
        space->dv[i] = exact_acc(space->exact_dv + i);
    }
}

static void close_unit(const struct attention_task *task, const struct gradients *gradients) {
    const size_t column = task->first_head / task->heads * task->D;
    const size_t at = task->row * task->k_line + column;
    round_unit(task);
    finish_rows(task, task->space.dk, gradients->dk + at, task->k_line, task->length);
    finish_rows(task, task->space.dv, gradients->dv + at, task->k_line, task->length);
}

static void run_unit(const struct attention_task *task, const struct gradients *gradients) {
    const struct attention_space *const space = &task->space;
    open_unit(task);
    for (size_t h = task->first_head; h < task->first_head + task->heads; h++) {
        for (size_t first = 0; first < task->length; first += ATTENTION_QUERIES) {
            const struct attention_block block = attention_block_at(task, h, first);
            open_block(task, &block, gradients);
            VARIANT(attention_over_keys)
            (task, &block, space->dp, space->k_rows, SUM_DQ, PASS_INPUT);
            close_block(task, &block, gradients);
        }
    }
    close_unit(task, gradients);
}

/* ---- dQ by law 14 ----
 * In rounds: each thread opens a block of its own unit; then all threads take chunks of keys of all
 * blocks and race on the blocks' sums; then each closes its own. */

enum { RACERS = 1024 };

struct racer {
    struct attention_task task;
    struct attention_block block;
    int busy; /* there is a block */
};

struct race {
    const struct op_call *call;
    const struct attention_problem *problem;
    const struct gradients *gradients;
    size_t own, units, chunks; /* chunks of the longest sequence */
    size_t taken;              /* units */
    const struct racer *racers[RACERS];
};

/* The next block of the racer's unit; 0 when there is none. */
static int next_block(struct racer *racer) {
    size_t head = racer->block.head;
    size_t first = racer->block.first + ATTENTION_QUERIES;
    if (first >= racer->task.length) {
        head++;
        first = 0;
    }
    if (head == racer->task.first_head + racer->task.heads) return 0;
    racer->block = attention_block_at(&racer->task, head, first);
    return 1;
}

/* Opens the racer's next block, if need be of the next unit that nobody took. */
static void move_racer(struct race *race, struct racer *racer) {
    if (racer->busy && !next_block(racer)) {
        close_unit(&racer->task, race->gradients);
        racer->busy = 0;
    }
    while (!racer->busy) {
        const size_t i = race_take(&race->taken);
        if (i >= race->units) return;
        racer->task = VARIANT(attention_task)(race->call, race->problem, race->own, i);
        if (racer->task.length == 0) continue;
        open_unit(&racer->task);
        racer->block = attention_block_at(&racer->task, racer->task.first_head, 0);
        racer->busy = 1;
    }
    open_block(&racer->task, &racer->block, race->gradients);
    memset(racer->task.space.result, 0,
           racer->block.count * racer->task.wide * sizeof *racer->task.space.result);
}

/* Keys first .. first+chunk-1: for each query of the block that has them, a chain from +0. */
static void race_keys(const struct racer *racer, size_t first) {
    const struct attention_task *const task = &racer->task;
    const struct attention_space *const space = &task->space;
    for (size_t i = 0; i < racer->block.count; i++) {
        const accumulator *const weights = space->dp + i * task->far;
        const size_t last = least(first + task->call->racing->chunk, racer->block.first + i + 1);
        if (first >= last) continue;
        for (size_t d = 0; d < task->D; d += SHUFFLE_TILE) {
            const size_t n = least(SHUFFLE_TILE, task->D - d);
            accumulator sum[SHUFFLE_TILE] = {0};
            for (size_t j = first; j < last; j++) {
                const accumulator *const key = space->k_rows + j * task->wide + d;
                EACH for (size_t e = 0; e < n; e++) sum[e] = acc_fma(weights[j], key[e], sum[e]);
            }
            race_add(space->result + i * task->wide + d, sum, n);
        }
    }
}

static int some_are_busy(const struct race *race, size_t team) {
    int busy = 0;
    for (size_t i = 0; i < team; i++)
        busy |= race->racers[i]->busy;
    return busy;
}

static void run_race(struct race *race) {
    const size_t chunk = race->call->racing->chunk;
    const int threads = race_threads(race->call, 2);
#pragma omp parallel num_threads(threads > RACERS ? RACERS : threads)
    {
        const size_t team = (size_t)omp_get_num_threads();
        struct racer own = {.busy = 0};
        race->racers[omp_get_thread_num()] = &own;
        for (int busy = 1; busy;) {
            move_racer(race, &own);
#pragma omp barrier
            busy = some_are_busy(race, team);
#pragma omp for schedule(dynamic, 1)
            for (size_t i = 0; i < team * race->chunks; i++) {
                const struct racer *const racer = race->racers[i / race->chunks];
                if (racer->busy) race_keys(racer, i % race->chunks * chunk);
            }
            if (own.busy) close_block(&own.task, &own.block, race->gradients);
        }
    }
}

void VARIANT(attention_backward)(const struct op_call *call,
                                 const struct attention_backward_args *args) {
    const struct attention_problem problem = {args->sequences, args->count,  args->H, args->G,
                                              args->D,         args->scale,  args->q, args->k,
                                              args->v,         args->dropout};
    const struct gradients gradients = {(const carrier *)args->dout, (carrier *)args->dq,
                                        (carrier *)args->dk, (carrier *)args->dv};
    const size_t units = (size_t)args->count * args->G;
    size_t work = 0;
    const size_t own = VARIANT(attention_own)(call, &problem, &work);
    if (race_active(call, SUM_DQ)) {
        struct race race = {
            .call = call, .problem = &problem, .gradients = &gradients, .own = own, .units = units};
        for (uint32_t i = 0; i < args->count; i++) {
            const size_t chunks = race_chunks(call, args->sequences[i].length);
            if (chunks > race.chunks) race.chunks = chunks;
        }
        run_race(&race);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(call_threads(call, 2 * work))
    for (size_t i = 0; i < units; i++) {
        const struct attention_task task = VARIANT(attention_task)(call, &problem, own, i);
        run_unit(&task, &gradients);
    }
}
