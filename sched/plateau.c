/* SPDX-License-Identifier: Apache-2.0
 * torch's ReduceLROnPlateau, which transformers calls reduce_lr_on_plateau: the rate falls by a
 * factor when a metric has not improved for more than `patience` evaluations.
 *
 * Source: PyTorch torch/optim/lr_scheduler.py of 2.15.0 (ReduceLROnPlateau.step), comparisons and
 * operations in its order. The counter only says which evaluations have been: the rate at c is what
 * the values with `at` <= c have made of L. Total and warm-up play no part. Invariant: the value
 * depends on the call alone, and the state only saves time. */
#include <string.h>

#include "base/real.h"
#include "sched/values.h"

struct plateau_values {
    double factor;
    double patience;
    double threshold;
    double cooldown;
    double min_lr;
    double eps;
    int32_t mode;
    int32_t threshold_mode;
};

enum { MODE_MIN, MODE_MAX };
enum { THRESHOLD_REL, THRESHOLD_ABS };

static const char *const modes[] = {"min", "max", NULL};
static const char *const threshold_modes[] = {"rel", "abs", NULL};

static const struct key_row keys[] = {
    SCHED_ENUM(plateau_values, mode, .standard = "min", .names = modes,
               .help = "Whether a smaller or a larger metric is better"),
    SCHED_REAL(plateau_values, factor, .standard = "0.1", .high = 0x1.fffffffffffffp-1,
               .help = "What the rate is multiplied by"),
    SCHED_ROW(KEY_REAL, plateau_values, patience, .unit = "evaluations", .standard = "10",
              .high = 0x1p53, .help = "Evaluations without improvement that change nothing"),
    SCHED_REAL(plateau_values, threshold, .standard = "0.0001", .high = 1e6,
               .help = "What counts as an improvement"),
    SCHED_ENUM(plateau_values, threshold_mode, .standard = "rel", .names = threshold_modes,
               .help = "Threshold as a share of the best, or as is"),
    SCHED_ROW(KEY_REAL, plateau_values, cooldown, .unit = "evaluations", .standard = "0",
              .high = 0x1p53, .help = "Evaluations after a reduction that are not judged"),
    SCHED_REAL(plateau_values, min_lr, .standard = "0", .high = 1e6,
               .help = "Lowest learning rate"),
    SCHED_REAL(plateau_values, eps, .standard = "1e-8", .high = 1e6,
               .help = "A reduction by no more is left out"),
};

/* Where the recursion stands, and for which numbers. All zero means that it has not begun. */
struct plateau_state {
    struct plateau_values values;
    const struct sched_metric *metric;
    double base;
    double lr, best, bad, cooldown;
    size_t seen; /* how many values have been followed */
};

static const struct plateau_values *values_of(const struct sched_call *call) {
    return SCHED_VALUES(call, plateau_values);
}

static int is_better(const struct plateau_values *v, double a, double best) {
    if (v->mode == MODE_MIN)
        return v->threshold_mode == THRESHOLD_REL ? a < best * (1.0 - v->threshold)
                                                  : a < best - v->threshold;
    return v->threshold_mode == THRESHOLD_REL ? a > best * (v->threshold + 1.0)
                                              : a > best + v->threshold;
}

static void reduce(struct plateau_state *at) {
    const double factored = at->lr * at->values.factor;
    const double next = factored > at->values.min_lr ? factored : at->values.min_lr;
    if (at->lr - next > at->values.eps) at->lr = next;
}

/* One call of step(metric). A NaN is never better, so it counts as an evaluation without
 * improvement. */
static void step(struct plateau_state *at, double metric) {
    if (is_better(&at->values, metric, at->best)) {
        at->best = metric;
        at->bad = 0.0;
    } else {
        at->bad += 1.0;
    }
    if (at->cooldown > 0.0) {
        at->cooldown -= 1.0;
        at->bad = 0.0;
    }
    if (at->bad > at->values.patience) {
        reduce(at);
        at->cooldown = at->values.cooldown;
        at->bad = 0.0;
    }
}

static struct plateau_state start_of(const struct sched_call *call) {
    struct plateau_state at;
    memset(&at, 0, sizeof at);
    at.values = *values_of(call);
    at.metric = call->metric;
    at.base = at.lr = call->base_lr;
    at.best = at.values.mode == MODE_MIN ? real_inf_f64() : -real_inf_f64();
    return at;
}

static int continues(const struct plateau_state *kept, const struct sched_call *call, double c) {
    return kept->metric == call->metric && kept->base == call->base_lr && kept->seen > 0 &&
           call->metric->at[kept->seen - 1] <= c &&
           memcmp(&kept->values, call->values, sizeof kept->values) == 0;
}

static double plateau_value(const struct sched_call *call, double counter) {
    struct plateau_state *kept = (struct plateau_state *)call->state;
    const struct sched_metric *metric = call->metric;
    struct plateau_state at = start_of(call);
    const double c = sched_clamp_counter(counter);
    if (metric == NULL) return call->base_lr;
    if (kept != NULL && continues(kept, call, c)) at = *kept;
    for (; at.seen < metric->count && metric->at[at.seen] <= c; at.seen++)
        for (double n = 0.0; n < metric->repeat; n += 1.0)
            step(&at, metric->value[at.seen]);
    if (kept != NULL) *kept = at;
    return at.lr;
}

static double plateau_minimum(const struct sched_call *call) {
    return values_of(call)->min_lr;
}

static enum status plateau_validate(const struct sched_call *call) {
    TRY(sched_check_call(call));
    if (call->metric != NULL) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "schedule.name: reduce_lr_on_plateau follows a metric, and there is none; a scenario "
         "evaluates nothing, so no run can follow it (lr table takes a metric as an option, lr "
         "check and lr fit find it in the log)");
}

SCHED_CLASS(
    sched_reduce_lr_on_plateau, "reduce_lr_on_plateau",
    "L times factor whenever a metric has not improved for more than patience evaluations, as "
    "torch ReduceLROnPlateau and transformers get_reduce_on_plateau_schedule; it needs the metric",
    SCHED_KEYS(keys, plateau_values), .state_size = sizeof(struct plateau_state), .feedback = 1,
    .value = plateau_value, .minimum = plateau_minimum, .validate = plateau_validate);
