/* SPDX-License-Identifier: Apache-2.0
 * DeepSpeed's schedules as functions of last_batch_iteration: warmup, warmup_decay, warmup_cosine,
 * one_cycle and lr_range_test.
 *
 * Source: DeepSpeed deepspeed/runtime/lr_schedules.py (614e3f17; the old cosine: 0.14.0),
 * operations in its order. The base rate is their warmup_max_lr. The rate before the first call
 * (offset -1 and the start) belongs to the contract, not to the schedule. */
#include "sched/values.h"

#include "base/real.h"

enum warmup_type { WARMUP_LOG, WARMUP_LINEAR };

struct warmup_values {
    double warmup_min_lr;
    int32_t warmup_type;
};

struct cosine_values {
    double warmup_min_ratio;
    double min_lr_ratio;
    int32_t warmup_type;
};

static const char *const types[] = {"log", "linear", NULL};

static const struct key_row warmup_keys[] = {
    SCHED_REAL(warmup_values, warmup_min_lr, .standard = "0", .high = 1e6,
               .help = "Learning rate before the warm-up"),
    SCHED_ENUM(warmup_values, warmup_type, .standard = "log", .names = types,
               .help = "Shape of the warm-up"),
};

static const struct key_row cosine_keys[] = {
    SCHED_REAL(cosine_values, warmup_min_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate where the warm-up starts"),
    SCHED_REAL(cosine_values, min_lr_ratio, .standard = "0.0001", .high = 1,
               .help = "Share of the base rate that is left at the end (theirs: cos_min_ratio)"),
    SCHED_ENUM(cosine_values, warmup_type, .standard = "log", .names = types,
               .help = "Shape of the warm-up"),
};

/* Their constructors raise warmup_num_steps to 2 at least, so that log(W) is not 0. */
static double warmup_of(const struct sched_call *call) {
    return call->warmup > 2.0 ? call->warmup : 2.0;
}

/* The progress of the warm-up, for i < W. WarmupLR multiplies by a stored 1 / log(W) and does not
 * divide. */
static double gamma_of(const struct sched_call *call, int32_t type, double i) {
    const double w = warmup_of(call);
    if (type == WARMUP_LINEAR) return i / w;
    return (1.0 / sched_log(w)) * sched_log(i + 1.0);
}

static double between(const struct sched_call *call, double gamma) {
    const double low = SCHED_VALUES(call, warmup_values)->warmup_min_lr;
    return low + (call->base_lr - low) * gamma;
}

static double warmup_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const int32_t type = SCHED_VALUES(call, warmup_values)->warmup_type;
    return between(call, i < warmup_of(call) ? gamma_of(call, type, i) : 1.0);
}

static double decay_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const int32_t type = SCHED_VALUES(call, warmup_values)->warmup_type;
    if (i < warmup_of(call)) return between(call, gamma_of(call, type, i));
    const double left = (call->total - i) / sched_at_least_one(call->total - warmup_of(call));
    return between(call, left > 0.0 ? left : 0.0);
}

/* The rate behind the warm-up (i >= W), from the cosine of its progress. */
static double cosine_of(const struct sched_call *call, double cosine) {
    const struct cosine_values *values = SCHED_VALUES(call, cosine_values);
    const double h = (1.0 + cosine) / 2.0;
    const double factor = values->min_lr_ratio + (1.0 - values->min_lr_ratio) * h;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

static double cosine_warmup(const struct sched_call *call, double i) {
    const struct cosine_values *values = SCHED_VALUES(call, cosine_values);
    const double low = values->warmup_min_ratio;
    return call->base_lr * (low + gamma_of(call, values->warmup_type, i) * (1.0 - low));
}

static double cosine_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const double w = warmup_of(call);
    if (i < w) return cosine_warmup(call, i);
    const double share = (i - w + 1.0) / (call->total - w);
    return cosine_of(call, sched_cos_pi(share < 1.0 ? share : 1.0));
}

/* 0.14.0 does not clamp the progress, and it multiplies by pi before it divides. */
static double cosine_old_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const double w = warmup_of(call);
    if (i < w) return cosine_warmup(call, i);
    const double angle = SCHED_PI * (i - w + 1.0) / (call->total - w);
    if (real_abs_f64(angle) <= REAL_TRIG_LIMIT) return cosine_of(call, sched_cos(angle));
    return cosine_of(call, sched_cos_pi((i - w + 1.0) / (call->total - w)));
}

SCHED_MINIMUM_RATE(warmup_minimum, warmup_values, warmup_min_lr)

SCHED_MINIMUM_SHARE(cosine_minimum, cosine_values, min_lr_ratio)

static enum status warmup_validate(const struct sched_call *call) {
    return sched_check_at_most_base(call, "warmup_min_lr",
                                    SCHED_VALUES(call, warmup_values)->warmup_min_lr);
}

static enum status cosine_validate(const struct sched_call *call) {
    TRY(sched_check_call(call));
    if (!(warmup_of(call) < call->total))
        FAIL(STATUS_INPUT,
             "schedule.total: WarmupCosineLR expects more than its warm-up of %.17g (at least 2), "
             "got %.17g",
             warmup_of(call), call->total);
    return STATUS_OK;
}

#define DEEPSPEED(symbol, word, text, rows, values, function, floor, check)                        \
    SCHED_CLASS(symbol, "deepspeed." word, text, SCHED_KEYS(rows, values), .value = function,      \
                .minimum = floor, .validate = check)

DEEPSPEED(sched_deepspeed_warmup, "warmup",
          "Logarithmic or linear warm-up to L, as DeepSpeed "
          "WarmupLR",
          warmup_keys, warmup_values, warmup_value, warmup_minimum, warmup_validate);
DEEPSPEED(sched_deepspeed_warmup_decay, "warmup_decay",
          "Logarithmic or linear warm-up to L, then linear to warmup_min_lr, as DeepSpeed "
          "WarmupDecayLR",
          warmup_keys, warmup_values, decay_value, warmup_minimum, warmup_validate);
DEEPSPEED(sched_deepspeed_warmup_cosine, "warmup_cosine",
          "Logarithmic or linear warm-up, then a cosine one step ahead that never shows L, as "
          "DeepSpeed WarmupCosineLR",
          cosine_keys, cosine_values, cosine_value, cosine_minimum, cosine_validate);
DEEPSPEED(sched_deepspeed_warmup_cosine_old, "warmup_cosine_old",
          "As warmup_cosine, but past the total it rises again, as DeepSpeed 0.14.0 WarmupCosineLR",
          cosine_keys, cosine_values, cosine_old_value, cosine_minimum, cosine_validate);

/* Source of the two that follow: deepspeed/runtime/lr_schedules.py of 0.15.4 (OneCycle,
 * LRRangeTest). Neither uses the warm-up or the total. Stairs within a cycle are not shipped, which
 * OneCycle itself ignores, nor is its momentum, which is no learning rate. What their constructors
 * install before the first step is the contracts' start "minimum". */
struct cycle_values {
    double cycle_min_lr;
    double first;
    double second;
    double decay_step;
    double decay_rate;
};

static const struct key_row cycle_keys[] = {
    SCHED_REAL(cycle_values, cycle_min_lr, .standard = "0", .high = 1e6,
               .help = "Learning rate at a cycle's ends"),
    SCHED_ROW(KEY_REAL, cycle_values, first, .unit = "counter", .standard = "2000", .low = 1,
              .high = 0x1p53, .help = "Length of the rising half (theirs: cycle_first_step_size)"),
    SCHED_LENGTH(cycle_values, second,
                 "Length of the falling half (theirs: cycle_second_step_size); auto is first"),
    SCHED_ROW(
        KEY_REAL, cycle_values, decay_step, .unit = "counter", .standard = "0", .high = 0x1p53,
        .help = "Interval of the decay behind the cycle (theirs: decay_step_size); 0 is no decay"),
    SCHED_REAL(cycle_values, decay_rate, .standard = "0", .high = 1e6,
               .help = "Decay per interval (decay_lr_rate)"),
};

static double cycle_value(const struct sched_call *call, double counter) {
    const struct cycle_values *values = SCHED_VALUES(call, cycle_values);
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

SCHED_MINIMUM_RATE(cycle_minimum, cycle_values, cycle_min_lr)

static enum status cycle_validate(const struct sched_call *call) {
    return sched_check_at_most_base(call, "cycle_min_lr",
                                    SCHED_VALUES(call, cycle_values)->cycle_min_lr);
}

SCHED_CLASS(sched_deepspeed_one_cycle, "deepspeed.one_cycle",
            "Linear up from cycle_min_lr to L and down again, then a hyperbolic decay, as "
            "DeepSpeed OneCycle",
            SCHED_KEYS(cycle_keys, cycle_values), .value = cycle_value, .minimum = cycle_minimum,
            .validate = cycle_validate);

enum steps { STEPS_CONTINUOUS, STEPS_STAIRCASE };

struct range_values {
    double step_size;
    double step_rate;
    int32_t steps;
};

static const char *const range_steps[] = {"continuous", "staircase", NULL};

static const struct key_row range_keys[] = {
    SCHED_ROW(KEY_REAL, range_values, step_size, .unit = "counter", .standard = "2000", .low = 1,
              .high = 0x1p53, .help = "Interval of the rise (theirs: lr_range_test_step_size)"),
    SCHED_REAL(range_values, step_rate, .standard = "1", .high = 1e6,
               .help = "Rise per interval (theirs: lr_range_test_step_rate)"),
    SCHED_ENUM(range_values, steps, .standard = "continuous", .names = range_steps,
               .help = "Whether it rises within an interval"),
};

static double range_value(const struct sched_call *call, double counter) {
    const struct range_values *values = SCHED_VALUES(call, range_values);
    const double i = sched_clamp_counter(counter);
    const double interval = (i + 1.0) / values->step_size;
    const double steps = values->steps == STEPS_STAIRCASE ? sched_floor(interval) : interval;
    return call->base_lr * (1.0 + values->step_rate * steps);
}

SCHED_CLASS(sched_deepspeed_lr_range_test, "deepspeed.lr_range_test",
            "L (1 + step_rate * (i + 1) / step_size): rises without end from L, its minimum, as "
            "DeepSpeed LRRangeTest",
            SCHED_KEYS(range_keys, range_values), .value = range_value, .minimum = sched_base_rate,
            .validate = sched_check_call);
