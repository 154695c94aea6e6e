/* SPDX-License-Identifier: Apache-2.0
 * Log-probability of one target per row of logits, and the gradient of the logits in place
 * (law 5). Rows are independent: threads divide them. */
#include "kernels/cpu/race.h"
#include "kernels/cpu/softmax.h"

#define LOGPROB_COST 16 /* elementary operations of one logit, roughly */

/* The target's log-probability as it is recorded: with an f64 loss the accumulator's value is kept,
 * whatever the carrier is. */
static double target_logprob(carrier z, accumulator maximum, accumulator sum, enum dtype loss) {
    if (loss == DTYPE_F64) return (double)rule_logprob_wide(z, maximum, sum);
    return (double)rule_logprob(z, maximum, sum, loss);
}

static struct row_order order_of(const struct op_call *call,
                                 const struct logprob_forward_args *args, size_t row,
                                 void *scratch) {
    struct row_order by = {.free = call->order_free, .cuts = call->cuts};
    if (!shuffle_active(call, SUM_FORWARD)) return by;
    const struct shuffle shuffle = shuffle_open(call, SHUFFLE_PASS_ROW);
    by.chunk = shuffle.chunk;
    by.chunks = shuffle_chunks(&shuffle, args->V);
    by.order = shuffle_order(&shuffle, row / SHUFFLE_TILE, 0, by.chunks, scratch);
    return by;
}

/* A row of logits. */
static const carrier *logits_of(const struct logprob_forward_args *args, size_t row) {
    return stored_numbers((const struct stored *)args->logits + row * args->V);
}

static void forward_row(const struct logprob_forward_args *args, size_t row, accumulator *e,
                        const struct row_order *by) {
    const carrier *const z = logits_of(args, row);
    const accumulator maximum = row_maximum(z, args->V);
    row_exp(z, args->V, maximum, e);
    const accumulator sum = row_sum(e, args->V, by);
    ((accumulator *)args->maximum)[row] = maximum;
    ((accumulator *)args->sum)[row] = sum;
    args->logp[row] = target_logprob(z[args->target[row]], maximum, sum, args->loss);
}

/* Forward of rows first .. last-1, which lie in one tile of law 9 and share its order. */
static void forward_rows(const struct op_call *call, const struct logprob_forward_args *args,
                         size_t first, size_t last) {
    accumulator *const e = (accumulator *)call_scratch(call, 0, row_bytes(args->V));
    void *const behind = (char *)e + 2 * row_numbers(args->V) * sizeof(double);
    const struct row_order by = order_of(call, args, first, behind);
    for (size_t row = first; row < last; row++)
        forward_row(args, row, e, &by);
}

/* Forward by law 14: threads add chunks of exponentials to the rows' sums. */
static void forward_racing(const struct op_call *call, const struct logprob_forward_args *args) {
    const size_t chunk = call->racing->chunk;
    const size_t chunks = race_chunks(call, args->V);
    accumulator *const maximum = (accumulator *)args->maximum;
    accumulator *const sum = (accumulator *)args->sum;
    for (size_t row = 0; row < args->L; row++) {
        maximum[row] = row_maximum(logits_of(args, row), args->V);
        sum[row] = 0;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, args->L *chunks))
    for (size_t i = 0; i < args->L * chunks; i++) {
        const size_t row = i / chunks, first = i % chunks * chunk;
        const carrier *const z = logits_of(args, row);
        accumulator part = 0;
        for (size_t v = first; v < least(first + chunk, args->V); v++)
            part += rule_exp_shifted(z[v], maximum[row]);
        race_add(sum + row, &part, 1);
    }
    for (size_t row = 0; row < args->L; row++) {
        const carrier *const z = logits_of(args, row);
        args->logp[row] = target_logprob(z[args->target[row]], maximum[row], sum[row], args->loss);
    }
}

void VARIANT(logprob_forward)(const struct op_call *call, const struct logprob_forward_args *args) {
    if (race_active(call, SUM_FORWARD)) {
        forward_racing(call, args);
        return;
    }
    const size_t work = (size_t)args->L * args->V * LOGPROB_COST;
    const size_t step = shuffle_active(call, SUM_FORWARD) ? SHUFFLE_TILE : 8;
#pragma omp parallel for schedule(dynamic) num_threads(call_threads(call, work))
    for (size_t first = 0; first < args->L; first += step)
        forward_rows(call, args, first, least(first + step, args->L));
}

ROW_INLINE void backward_elements(struct stored *z, size_t V, accumulator maximum, accumulator sum,
                                  accumulator coefficient, enum dtype dtype) {
    EACH for (size_t v = 0; v < V; v++) {
        const accumulator e = rule_exp_shifted(stored_load(z[v]), maximum);
        z[v] = stored_of(rule_dlogit(e, sum, ACC(0.0), coefficient, dtype));
    }
}

/* With an f64 loss the stored log-probability is the accumulator's value, as it is recorded. */
ROW_INLINE accumulator stored_logprob(carrier z, accumulator maximum, accumulator sum,
                                      enum dtype loss) {
    if (loss == DTYPE_F64) return rule_logprob_wide(z, maximum, sum);
    return (accumulator)rule_logprob(z, maximum, sum, loss);
}

ROW_INLINE void two_step_row(const struct logprob_backward_args *args, size_t row,
                             enum dtype dtype) {
    struct stored *const z = (struct stored *)args->logits + row * args->V;
    const accumulator maximum = ((const accumulator *)args->maximum)[row];
    const accumulator sum = ((const accumulator *)args->sum)[row];
    const accumulator coefficient = (accumulator)args->coefficient[row];
    const uint32_t target = args->target[row];
    EACH for (size_t v = 0; v < args->V; v++) {
        const accumulator hit = v == target ? ACC(1.0) : ACC(0.0);
        const accumulator logp = stored_logprob(stored_load(z[v]), maximum, sum, args->loss);
        z[v] = stored_of(rule_dlogit_two_step(logp, hit, coefficient, dtype));
    }
}

ROW_INLINE void backward_row(const struct logprob_backward_args *args, size_t row,
                             enum dtype dtype) {
    if (args->two_step) {
        two_step_row(args, row, dtype);
        return;
    }
    struct stored *const z = (struct stored *)args->logits + row * args->V;
    const accumulator maximum = ((const accumulator *)args->maximum)[row];
    const accumulator sum = ((const accumulator *)args->sum)[row];
    const accumulator coefficient = (accumulator)args->coefficient[row];
    const uint32_t target = args->target[row];
    const accumulator e = rule_exp_shifted(stored_load(z[target]), maximum);
    backward_elements(z, args->V, maximum, sum, coefficient, dtype);
    z[target] = stored_of(rule_dlogit(e, sum, ACC(1.0), coefficient, dtype));
}

void VARIANT(logprob_backward)(const struct op_call *call,
                               const struct logprob_backward_args *args) {
    const size_t work = (size_t)args->L * args->V * LOGPROB_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t row = 0; row < args->L; row++) {
#define BACKWARD(d) backward_row(args, row, d)
        DTYPE_SWITCH(call->compute, BACKWARD);
    }
}
