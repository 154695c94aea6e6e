/* SPDX-License-Identifier: Apache-2.0
 * Linear decay after a linear warm-up: Hugging Face's linear, with an optional floor.
 *
 * With h = max(0, (T - s) / max(1, T - W)) the multiplier is h (1 - m) + m. With m = 0 the bits are
 * Hugging Face's (transformers src/transformers/optimization.py at 005edacb,
 * get_linear_schedule_with_warmup). Hugging Face has no linear schedule with a floor; m > 0 lifts
 * it as cosine_with_min_lr is lifted, which reaches m at T and stays there, as OLMo-core's alpha_f
 * does up to rounding. The warm-up starts at 0 whatever m is. */
#include "sched/values.h"

struct linear_values {
    double min_lr_ratio;
};

static const struct key_row keys[] = {
    {"min_lr_ratio", KEY_REAL, "1", "0", CAUSE_SCHEDULE,
     "Share of the base rate that is left at the end", offsetof(struct linear_values, min_lr_ratio),
     sizeof(double), 0, 1, NULL, NULL},
};

static double linear_value(const struct sched_call *call, double counter) {
    const struct linear_values *values = (const struct linear_values *)call->values;
    const double m = values->min_lr_ratio;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double ratio = sched_after_warmup(call, call->total - s);
    const double h = ratio > 0.0 ? ratio : 0.0;
    return call->base_lr * (h * (1.0 - m) + m);
}

static double linear_minimum(const struct sched_call *call) {
    const struct linear_values *values = (const struct linear_values *)call->values;
    return call->base_lr * values->min_lr_ratio;
}

const struct sched_class sched_linear = {
    .size = sizeof(struct sched_class),
    .name = "linear",
    .help = "Linear from L to min_lr_ratio * L after a linear warm-up from 0, as transformers "
            "get_linear_schedule_with_warmup",
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .values_size = sizeof(struct linear_values),
    .value = linear_value,
    .minimum = linear_minimum,
    .validate = sched_check_call,
};
