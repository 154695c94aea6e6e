/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's schedules of several stages: wsds (equal periods) and sequential (two stages).
 * Source: olmo_core/optim/scheduler.py of 3.0.0 (WSDS, SequentialScheduler), operations in its
 * order. Theirs take lists: of periods and their peaks, of stages; here all periods are equally
 * long and there are two stages, each one of four shapes. */
#include "sched/olmo_core.h"

struct period_values {
    double period;
    double decay;
    double decay_ratio;
    double decay_min_lr;
    double warmup_min_lr;
};

static const struct key_row period_keys[] = {
    SCHED_LENGTH(period_values, period, "Length of each period; auto is the total: one period"),
    SCHED_LENGTH(period_values, decay, "Decay at the end of each period; auto by decay_ratio"),
    SCHED_REAL(period_values, decay_ratio, "1", "0.1", 1,
               "Decay as a share of the period, rounded half to even (theirs: decay_fraction)"),
    SCHED_REAL(period_values, decay_min_lr, "1", "0", 1e6, "Learning rate at a period's end"),
    SCHED_REAL(period_values, warmup_min_lr, "1", "0", 1e6, OLMO_WARMUP_HELP),
};

static double period_of(const struct sched_call *call) {
    const double period = ((const struct period_values *)call->values)->period;
    return period > 0.0 ? period : call->total;
}

static double decay_of(const struct sched_call *call) {
    const struct period_values *values = (const struct period_values *)call->values;
    return sched_length(values->decay, period_of(call), values->decay_ratio);
}

/* Whole periods in the total, at least one. */
static double periods_of(const struct sched_call *call) {
    return sched_at_least_one(sched_floor(call->total / period_of(call)));
}

/* A period ends at its last counter, not before: start < c <= end. */
static double period_value(const struct sched_call *call, double counter) {
    const struct period_values *values = (const struct period_values *)call->values;
    const double c = sched_clamp_counter(counter);
    const double period = period_of(call);
    const double decay = decay_of(call);
    if (c < call->warmup) return olmo_warmup(call, call->base_lr, c, values->warmup_min_lr);
    if (c >= periods_of(call) * period) return values->decay_min_lr;
    const double end = sched_at_least_one(sched_ceil(c / period)) * period;
    const double left = end - c;
    if (left > decay) return call->base_lr;
    return values->decay_min_lr + (call->base_lr - values->decay_min_lr) * left / decay;
}

static double period_minimum(const struct sched_call *call) {
    return ((const struct period_values *)call->values)->decay_min_lr;
}

static enum status period_validate(const struct sched_call *call) {
    const struct period_values *values = (const struct period_values *)call->values;
    TRY(olmo_check_starts(call, values->warmup_min_lr, values->decay_min_lr));
    if (!(decay_of(call) > 0.0))
        FAIL(STATUS_INPUT, "schedule.decay: expected above 0, got %.17g", decay_of(call));
    if (!(call->warmup + decay_of(call) <= period_of(call)))
        FAIL(STATUS_INPUT,
             "schedule.period: warm-up %.17g and decay %.17g exceed the first period of %.17g",
             call->warmup, decay_of(call), period_of(call));
    return STATUS_OK;
}

const struct sched_class sched_olmo_wsds = {
    .size = sizeof(struct sched_class),
    .name = "olmo-core.wsds",
    .help = "Periods of L with a linear decay at the end of each, after one linear warm-up, as "
            "OLMo-core WSDS with equal periods",
    .keys = period_keys,
    .key_count = sizeof period_keys / sizeof period_keys[0],
    .values_size = sizeof(struct period_values),
    .value = period_value,
    .minimum = period_minimum,
    .validate = period_validate,
};

/* The first two are laid out as in the classes of the stages. */
struct stage_values {
    double min_lr_ratio;
    double warmup_min_lr;
    double change;
    double second_warmup;
    int32_t first;
    int32_t second;
};

enum stage { STAGE_CONSTANT, STAGE_WARMUP, STAGE_LINEAR, STAGE_COSINE };

static const char *const stages[] = {"constant", "constant_with_warmup", "linear", "cosine", NULL};

static const struct key_row stage_keys[] = {
    SCHED_REAL(stage_values, min_lr_ratio, "1", "0.1", 1, OLMO_FLOOR_HELP),
    SCHED_REAL(stage_values, warmup_min_lr, "1", "0", 1e6, OLMO_WARMUP_HELP),
    SCHED_LENGTH(stage_values, change, "Counter at which the second stage begins; auto is half"),
    SCHED_REAL(stage_values, second_warmup, "counter", "0", 0x1p53, "Warm-up of the second stage"),
    SCHED_ENUM(stage_values, first, "constant_with_warmup", "First stage", stages),
    SCHED_ENUM(stage_values, second, "linear", "Second stage", stages),
};

static double stage_value(const struct sched_call *call, int32_t stage, double c) {
    const struct stage_values *values = (const struct stage_values *)call->values;
    struct sched_call inner = *call;
    if (stage == STAGE_CONSTANT) return call->base_lr;
    if (stage == STAGE_LINEAR) return sched_olmo_linear.value(&inner, c);
    if (stage == STAGE_COSINE) return sched_olmo_cosine.value(&inner, c);
    inner.values = &values->warmup_min_lr;
    return sched_olmo_constant_with_warmup.value(&inner, c);
}

static double change_of(const struct sched_call *call) {
    const double change = ((const struct stage_values *)call->values)->change;
    return change >= 0.0 ? change : sched_half_even(call->total * 0.5);
}

static double sequential_value(const struct sched_call *call, double counter) {
    const struct stage_values *values = (const struct stage_values *)call->values;
    const double c = sched_clamp_counter(counter);
    const double change = change_of(call);
    struct sched_call stage = *call;
    stage.total = change;
    if (c <= change) return stage_value(&stage, values->first, c);
    stage.base_lr = stage_value(&stage, values->first, change);
    stage.total = call->total - change;
    stage.warmup = values->second_warmup;
    return stage_value(&stage, values->second, c - change);
}

static double sequential_minimum(const struct sched_call *call) {
    return sequential_value(call, call->total);
}

static enum status sequential_validate(const struct sched_call *call) {
    const struct stage_values *values = (const struct stage_values *)call->values;
    TRY(olmo_check_starts(call, values->warmup_min_lr, 0.0));
    if (!(change_of(call) < call->total))
        FAIL(STATUS_INPUT, "schedule.change: expected less than the total of %.17g, got %.17g",
             call->total, change_of(call));
    return STATUS_OK;
}

const struct sched_class sched_olmo_sequential = {
    .size = sizeof(struct sched_class),
    .name = "olmo-core.sequential",
    .help = "Two stages, the second beginning at the first one's last rate with a counter of its "
            "own, as OLMo-core SequentialScheduler",
    .keys = stage_keys,
    .key_count = sizeof stage_keys / sizeof stage_keys[0],
    .values_size = sizeof(struct stage_values),
    .value = sequential_value,
    .minimum = sequential_minimum,
    .validate = sequential_validate,
};
