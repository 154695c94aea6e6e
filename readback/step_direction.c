/* SPDX-License-Identifier: Apache-2.0
 * The formulas are those of torch 2.15, torch/optim/adam.py:_single_tensor_adam and
 * sgd.py:_single_tensor_sgd; the foreach and fused forms are the same algebra. */
#include "readback/step_direction.h"

#include <math.h>

#include "base/real.h"
#include "base/real_round.h"
#include "base/rule_read.h"

/* Roundings between the state and the step, each of half a unit in the last place: square root,
 * division by the bias correction, sum with eps, division, and the two of the factor that holds the
 * LR (lr / bias correction, and its product). */
#define ROUNDINGS 6

/* The relative error of u. A kernel that computes in f32 leaves that many half units of f32. One
 * that rounds each operation to the state's dtype leaves as many of that, unless the same roundings
 * are made here, too; what is left then are two products in f32. */
static double relative_error(const struct step_tensor *tensor,
                             enum direction_arithmetic arithmetic) {
    const double unit = dtype_epsilon(tensor->first.dtype) / 2;
    return arithmetic == DIRECTION_TORCH ? 4.0 * dtype_epsilon(DTYPE_F32) / 2 : ROUNDINGS * unit;
}

void direction_passed(struct direction_block *block) {
    block->read += block->count;
    if (block->tell != NULL) block->tell(block->context, block->read);
}

double direction_size(const struct step_group *group, double updates) {
    return real_sqrt_f64(1.0 - real_pow_f64(group->beta2, updates)) /
           (1.0 - real_pow_f64(group->beta1, updates));
}

/* Half the smallest number of a state in f16, whose moments are often so small that a rounding has
 * no relative bound; 0 for the others, whose smallest numbers no training reaches. */
static double least_error(enum dtype dtype) {
    return dtype == DTYPE_F16 ? dtype_spacing(0.0, dtype) / 2 : 0.0;
}

static void fill_adam(const struct step_group *group, const struct step_tensor *tensor,
                      enum direction_arithmetic arithmetic, double updates,
                      struct direction_block *out) {
    const double correction = 1.0 - real_pow_f64(group->beta1, updates);
    const double root = real_sqrt_f64(1.0 - real_pow_f64(group->beta2, updates));
    const double relative = relative_error(tensor, arithmetic), *const m = out->state[0];
    const double *const v = out->state[1];
    const enum dtype dtype = tensor->first.dtype;
    const double least = least_error(dtype);
    const struct rule_direction rule = {
        .factor = 1.0,
        .correction1 = correction,
        .root = root,
        .eps = group->eps,
        .slack = {.first_least = least,
                  .second_least = least,
                  .under_least = least * (1.0 / root + 3.0), /* as the eager loops round */
                  .under_most = (double)INFINITY}};
    const double root_f32 = (double)(float)root, eps_f32 = (double)(float)group->eps;
    for (size_t i = 0; i < out->count; i++) {
        double denominator = real_sqrt_f64(v[i]);
        if (arithmetic == DIRECTION_TORCH) {
            denominator = dtype_round(denominator, dtype);
            denominator = dtype_round(denominator / root_f32, dtype);
            denominator = dtype_round(denominator + eps_f32, dtype);
        } else {
            denominator = denominator / root + group->eps;
        }
        out->u[i] = m[i] == 0.0 ? 0.0 : m[i] / correction / denominator;
        out->error[i] = relative * fabs(out->u[i]);
        if (least > 0.0 && arithmetic == DIRECTION_WIDE)
            out->error[i] += rule_slack_adam(&rule, m[i], v[i]);
    }
}

/* A buffer b = momentum b' + (1 - dampening) g; torch starts it with b = g. Nesterov's form moves
 * along g + momentum b, and g follows from b and b'. */
static void fill_sgd(const struct step_group *group, const struct step_tensor *tensor,
                     struct direction_block *out) {
    const double relative = relative_error(tensor, DIRECTION_WIDE), mu = group->momentum;
    const int is_first = tensor->first_before.bytes == NULL;
    const double take = is_first ? 1.0 : 1.0 - group->dampening;
    const double *const b = out->state[0], *const then = out->state[1];
    const double least = least_error(tensor->first.dtype);
    for (size_t i = 0; i < out->count; i++) {
        if (!group->nesterov) {
            out->u[i] = b[i];
            out->error[i] = relative * fabs(b[i]) + least;
            continue;
        }
        const double kept = is_first ? 0.0 : mu * then[i], g = (b[i] - kept) / take;
        out->u[i] = g + mu * b[i];
        out->error[i] = relative * ((fabs(b[i]) + fabs(kept)) / fabs(take) + fabs(mu * b[i])) +
                        2.0 * least / fabs(take);
    }
}

/* The sign of beta1 m' + (1 - beta1) g, with g = (m - beta2 m') / (1 - beta2). Where rounding
 * leaves the sign open, or the mean before was not saved, the element's own movement tells it; an
 * open one may have had an update of 0, so that its movement is the decay's alone. */
static void fill_lion(const struct step_group *group, const struct step_tensor *tensor,
                      struct direction_block *out) {
    const double unit = 4.0 * dtype_epsilon(tensor->first.dtype);
    const double least = 4.0 * least_error(tensor->first.dtype);
    const double *const m = out->state[0], *const then = out->state[1];
    for (size_t i = 0; i < out->count; i++) {
        const double moved = out->now[i] - out->old[i];
        out->u[i] = (double)((moved < 0.0) - (moved > 0.0));
        out->error[i] = 0.0;
        if (!tensor->has_before) continue;
        const double share = (1.0 - group->beta1) / (1.0 - group->beta2);
        const double update = group->beta1 * then[i] + share * (m[i] - group->beta2 * then[i]);
        const double open = share * (unit * (fabs(m[i]) + fabs(then[i])) + least);
        const int is_told = fabs(update) > open, is_still = m[i] == 0.0 && then[i] == 0.0;
        if (is_told) out->u[i] = update > 0.0 ? 1.0 : -1.0;
        if (is_still && least == 0.0) out->u[i] = 0.0;
        if (!is_told && (!is_still || least > 0.0)) out->error[i] = 2.0;
    }
}

int direction_is_known(const struct step_group *group, const struct step_tensor *tensor,
                       const char **out_why) {
    *out_why = NULL;
    if (tensor->is_left_out)
        *out_why = "the update left it out: its count and its moments are as before (no gradient "
                   "reached it, or a loss scaler skipped the update)";
    else if (group->rule == STEP_RULE_ADAFACTOR)
        *out_why = "Adafactor's direction needs the gradient, which no checkpoint holds";
    else if (tensor->first.bytes == NULL && group->rule == STEP_RULE_SGD &&
             !(group->momentum > 0.0))
        *out_why =
            "SGD without momentum keeps no state, so its direction is the gradient, which no "
            "checkpoint holds";
    else if (tensor->first.bytes == NULL)
        *out_why = "the optimizer has no state for it";
    else if (group->rule == STEP_RULE_ADAM && !(tensor->updates >= 1.0))
        *out_why = "the optimizer's count of updates is not stored";
    else if (group->rule == STEP_RULE_SGD && group->nesterov && !tensor->has_before)
        *out_why = "Nesterov's form needs the optimizer's state before the update, too";
    return *out_why == NULL;
}

void direction_fill(const struct step_group *group, const struct step_tensor *tensor,
                    enum direction_arithmetic arithmetic, double updates, uint64_t first,
                    size_t count, struct direction_block *out) {
    const char *why;
    out->count = count;
    stored_get(&tensor->old, first, count, out->old);
    stored_get(&tensor->now, first, count, out->now);
    if (!direction_is_known(group, tensor, &why)) {
        for (size_t i = 0; i < count; i++)
            out->u[i] = out->error[i] = (double)NAN;
        return;
    }
    stored_get(&tensor->first, first, count, out->state[0]);
    if (group->rule == STEP_RULE_ADAM) {
        const struct stored *const squares = group->amsgrad ? &tensor->largest : &tensor->second;
        stored_get(squares, first, count, out->state[1]);
        fill_adam(group, tensor, arithmetic, updates, out);
    } else {
        stored_get(&tensor->first_before, first, count, out->state[1]);
        if (group->rule == STEP_RULE_SGD)
            fill_sgd(group, tensor, out);
        else
            fill_lion(group, tensor, out);
    }
}
