/* SPDX-License-Identifier: Apache-2.0
 * Least squares from weights and slots to learning rate, weight decay and gradient scale, each with
 * a bound of its error from rounding. The sums are readback_sums.c's. */
#include "trainer/readback.h"

#include <math.h>

#include "base/real.h"
#include "trainer/readback_sums.h"
#include "trainer/run_private.h"
#include "trainer/optimizer_input.h"

enum status readback_open(struct run *run) {
    size_t carrier = dtype_carrier(optimizer_working_dtype(run)), blocks = 0;
    TRY(arena_take(&run->arena, run->table.elements, carrier, "last weights", &run->working));
    if (run->backend != NULL) {
        for (uint32_t i = 0; i < run->owner_count; i++)
            blocks += readback_blocks_blocks(run->table.rows[run->owner[i]].count);
        TRY(arena_take(&run->arena, run->owner_count, sizeof *run->readback_blocks_asked,
                       "read-back", &run->readback_blocks_asked));
    }
    TRY(arena_take(&run->arena, run->owner_count + blocks, sizeof *run->reads, "read-back",
                   &run->reads));
    if (run->optimizer->moment == NULL || run->optimizer->slot_count == 0) return STATUS_OK;
    carrier = dtype_carrier(run->layout.slot_dtype);
    return arena_take(&run->arena, run->table.elements, carrier, "last moments", &run->moment);
}

void readback_keep(struct run *run) {
    const size_t carrier = dtype_carrier(optimizer_working_dtype(run));
    const size_t slot = dtype_carrier(run->layout.slot_dtype);
    RUN_EACH_SPAN(run, span) {
        const struct state_tensor *tensor = &run->layout.tensor[span.row];
        const size_t first = run->packed[span.row];
        measure_keep(run, optimizer_working_dtype(run), optimizer_weights_now(run, span.row),
                     span.count, run->working + first * carrier);
        if (run->moment != NULL && tensor->slot_count[0] == run->table.rows[span.row].count)
            measure_keep(run, run->layout.slot_dtype, run_at(run, tensor->slot[0]), span.count,
                         run->moment + first * slot);
    }
}

static void add_sums(struct readback_blocks_block *to, const struct readback_blocks_block *term) {
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
        to->sum[s] += term->sum[s];
}

struct answer {
    double lr, lr_error, decay, decay_error;
};

/* Solves the normal equations of new - old = -lr * u - c * old, in which each element is measured
 * in units of its ulp. Without weight decay c is 0, and one unknown is left. The sums
 * READBACK_BLOCKS_U and READBACK_BLOCKS_P are sums of magnitudes: the stored value was rounded
 * once, by at most half an ulp, and roundings of equal steps inside one binade are all alike, so
 * the error bound adds them up instead of averaging them out. */
static void solve_rate(const struct readback_blocks_block *sums, double half, struct answer *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], ud = sums->sum[READBACK_BLOCKS_UD],
                 u = sums->sum[READBACK_BLOCKS_U];
    if (!(uu > 0.0)) return;
    out->lr = 0.0 - ud / uu;
    out->lr_error = half * u / uu;
}

/* Solves for both unknowns: what moves along u is the rate, and what moves along the weights is the
 * decay. */
static void solve_both(const struct readback_blocks_block *sums, double half, struct answer *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], up = sums->sum[READBACK_BLOCKS_UP],
                 pp = sums->sum[READBACK_BLOCKS_PP];
    const double ud = sums->sum[READBACK_BLOCKS_UD], pd = sums->sum[READBACK_BLOCKS_PD];
    const double u = sums->sum[READBACK_BLOCKS_U], p = sums->sum[READBACK_BLOCKS_P];
    const double determinant = uu * pp - up * up;
    if (!(determinant > 0.0)) return;
    const double rounding = 2.0 * half; /* a step with decay rounds the weight twice */
    out->lr = 0.0 - (ud * pp - pd * up) / determinant;
    out->lr_error = rounding * (u * pp + p * fabs(up)) / determinant;
    const double c = 0.0 - (pd * uu - ud * up) / determinant;
    const double c_error = rounding * (p * uu + u * fabs(up)) / determinant;
    if (!(fabs(out->lr) > out->lr_error)) return;
    out->decay = c / out->lr;
    out->decay_error = (c_error + fabs(out->decay) * out->lr_error) / fabs(out->lr);
}

/* The rate is read with the decay that is configured, so with one unknown where there is none. Two
 * bounds add up. One is half an ulp for each rounding of the stored value (two with decay; a whole
 * ulp where the rounding is drawn), all in the sense that hurts most. The other is of the direction
 * itself, which the optimizer rounded in a handful of operations: INPUT_ROUNDINGS half units of the
 * working dtype. */
static struct answer solve(const struct readback_blocks_block *sums, int decayed, double half,
                           enum dtype dtype) {
    struct answer out = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    solve_both(sums, half, &out);
    if (!decayed) {
        out.lr = out.lr_error = (double)NAN;
        solve_rate(sums, half, &out);
    }
    out.lr_error += fabs(out.lr) * INPUT_ROUNDINGS * dtype_epsilon(dtype) / 2;
    out.decay_error += fabs(out.decay) * INPUT_ROUNDINGS * dtype_epsilon(dtype) / 2;
    return out;
}

static void read_group(struct run *run, const struct optim_call *call, uint32_t group) {
    const enum dtype dtype = optimizer_working_dtype(run);
    const double decay = call->groups[group].weight_decay;
    struct readback_blocks_block sum = {{0.0}};
    for (uint32_t i = 0; i < run->owner_count; i++)
        if (run->table.rows[run->owner[i]].group == group) add_sums(&sum, &run->reads[i]);
    const int drawn = run->config.numerics.rounding == ROUNDING_STOCHASTIC;
    const struct answer answer = solve(&sum, decay != 0.0, drawn ? 1.0 : 0.5, dtype);
    double *const out = run->record.groups[group];
    out[GROUP_LR_READBACK] = answer.lr;
    out[GROUP_LR_ERROR] = answer.lr_error;
    if (!(run->optimizer->flags & OPTIM_DECOUPLED)) return;
    out[GROUP_WD_READBACK] = answer.decay;
    out[GROUP_WD_ERROR] = answer.decay_error;
}

static void read_taken(struct run *run) {
    struct readback_blocks_block sum = {{0.0}};
    for (uint32_t i = 0; i < run->owner_count; i++)
        add_sums(&sum, &run->reads[i]);
    run->record.reals[REAL_GRAD_TAKEN] = real_sqrt_f64(sum.sum[READBACK_BLOCKS_TAKEN]);
    run->record.reals[REAL_GRAD_TAKEN_ERROR] = real_sqrt_f64(sum.sum[READBACK_BLOCKS_TAKEN_ERROR]);
}

enum status readback_measure(struct run *run, const struct optim_call *call) {
    struct optimizer_input_rule rule = {INPUT_UNKNOWN, 0.0, 1.0};
    if (!call->found_inf) TRY(optimizer_input_rule_of(run, &rule));
    TRY(readback_sums(run, call, &rule, run->reads));
    if (rule.source == INPUT_FROM_MOMENT) read_taken(run);
    for (uint32_t g = 0; g < run->table.groups && run->optimizer->direction != NULL; g++)
        read_group(run, call, g);
    return STATUS_OK;
}
