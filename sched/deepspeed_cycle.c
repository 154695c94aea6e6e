/* SPDX-License-Identifier: Apache-2.0
 * DeepSpeed's one_cycle and lr_range_test as functions of last_batch_iteration. Neither uses the
 * warm-up or the total.
 *
 * Source: DeepSpeed deepspeed/runtime/lr_schedules.py of 0.15.4 (OneCycle, LRRangeTest), operations
 * in its order. Two of its parameters are not shipped: stairs within a cycle, which its own code
 * ignores, and the momentum, which is no learning rate. What their constructors install before the
 * first step is the contracts' start "minimum". */
#include "sched/values.h"

struct cycle_values {
    double cycle_min_lr;
    double first;
    double second;
    double decay_step;
    double decay_rate;
};

static const struct key_row cycle_keys[] = {
    SCHED_REAL(cycle_values, cycle_min_lr, "1", "0", 1e6, "Learning rate at a cycle's ends"),
    {"first", KEY_REAL, "counter", "2000", CAUSE_SCHEDULE,
     "Length of the rising half (theirs: cycle_first_step_size)",
     offsetof(struct cycle_values, first), sizeof(double), 1, 0x1p53, NULL, NULL},
    SCHED_LENGTH(cycle_values, second,
                 "Length of the falling half (theirs: cycle_second_step_size); auto is first"),
    SCHED_REAL(cycle_values, decay_step, "counter", "0", 0x1p53,
               "Interval of the decay behind the cycle (theirs: decay_step_size); 0 is no decay"),
    SCHED_REAL(cycle_values, decay_rate, "1", "0", 1e6, "Decay per interval (decay_lr_rate)"),
};

static double cycle_value(const struct sched_call *call, double counter) {
    const struct cycle_values *values = (const struct cycle_values *)call->values;
    const double low = values->cycle_min_lr;
    const double i = sched_clamp_counter(counter);
    const double total = values->first + (values->second > 0.0 ? values->second : values->first);
    const double top = values->first / total;
    if (i >= total) {
        if (!(values->decay_step > 0.0 && values->decay_rate > 0.0)) return low;
        return low / (1.0 + values->decay_rate * ((i - total + 1.0) / values->decay_step));
    }
    const double x = 1.0 + (i + 1.0) / total - sched_floor(1.0 + (i + 1.0) / total);
    const double share = x <= top ? x / top : (x - 1.0) / (top - 1.0);
    return low + (call->base_lr - low) * share;
}

static double cycle_minimum(const struct sched_call *call) {
    return ((const struct cycle_values *)call->values)->cycle_min_lr;
}

static enum status cycle_validate(const struct sched_call *call) {
    const double low = ((const struct cycle_values *)call->values)->cycle_min_lr;
    TRY(sched_check_call(call));
    if (!(low <= call->base_lr))
        FAIL(STATUS_INPUT, "schedule.cycle_min_lr: expected at most the base rate %.17g, got %.17g",
             call->base_lr, low);
    return STATUS_OK;
}

const struct sched_class sched_deepspeed_one_cycle = {
    .size = sizeof(struct sched_class),
    .name = "deepspeed.one_cycle",
    .help =
        "Linear up from cycle_min_lr to L and down again, then a hyperbolic decay, as DeepSpeed "
        "OneCycle",
    .keys = cycle_keys,
    .key_count = sizeof cycle_keys / sizeof cycle_keys[0],
    .values_size = sizeof(struct cycle_values),
    .value = cycle_value,
    .minimum = cycle_minimum,
    .validate = cycle_validate,
};

enum steps { STEPS_CONTINUOUS, STEPS_STAIRCASE };

struct range_values {
    double step_size;
    double step_rate;
    int32_t steps;
};

static const char *const range_steps[] = {"continuous", "staircase", NULL};

static const struct key_row range_keys[] = {
    {"step_size", KEY_REAL, "counter", "2000", CAUSE_SCHEDULE,
     "Interval of the rise (theirs: lr_range_test_step_size)",
     offsetof(struct range_values, step_size), sizeof(double), 1, 0x1p53, NULL, NULL},
    SCHED_REAL(range_values, step_rate, "1", "1", 1e6,
               "Rise per interval (theirs: lr_range_test_step_rate)"),
    SCHED_ENUM(range_values, steps, "continuous", "Whether it rises within an interval",
               range_steps),
};

static double range_value(const struct sched_call *call, double counter) {
    const struct range_values *values = (const struct range_values *)call->values;
    const double i = sched_clamp_counter(counter);
    const double interval = (i + 1.0) / values->step_size;
    const double steps = values->steps == STEPS_STAIRCASE ? sched_floor(interval) : interval;
    return call->base_lr * (1.0 + values->step_rate * steps);
}

static double range_minimum(const struct sched_call *call) {
    return call->base_lr;
}

const struct sched_class sched_deepspeed_lr_range_test = {
    .size = sizeof(struct sched_class),
    .name = "deepspeed.lr_range_test",
    .help = "L (1 + step_rate * (i + 1) / step_size): rises without end from L, its minimum, as "
            "DeepSpeed LRRangeTest",
    .keys = range_keys,
    .key_count = sizeof range_keys / sizeof range_keys[0],
    .values_size = sizeof(struct range_values),
    .value = range_value,
    .minimum = range_minimum,
    .validate = sched_check_call,
};
