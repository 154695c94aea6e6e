/* SPDX-License-Identifier: Apache-2.0
 * Cosine decay after a linear warm-up: Hugging Face's cosine and cosine_with_min_lr.
 *
 * With p = (s - W) / max(1, T - W) and h = 0.5 (1 + cos(pi * c * 2 * p)) the multiplier is max(0, h
 * (1 - m) + m), computed in this order. Past T it rises again, as theirs does: with c = 0.5 it is
 * back at L at s = 2T - W.
 *
 * Source: transformers src/transformers/optimization.py (005edacb), get_cosine_schedule_with_warmup
 * and get_cosine_with_min_lr_schedule_with_warmup. */
#include "sched/values.h"

struct cosine_values {
    double num_cycles;
    double min_lr_ratio;
};

static const struct key_row keys[] = {
    {"num_cycles", KEY_REAL, "1", "0.5", CAUSE_SCHEDULE,
     "Waves of the cosine between warm-up and total; 0.5 falls from the base rate to the minimum",
     offsetof(struct cosine_values, num_cycles), sizeof(double), 0, 1000, NULL, NULL},
    {"min_lr_ratio", KEY_REAL, "1", "0", CAUSE_SCHEDULE,
     "Share of the base rate that is left at the bottom",
     offsetof(struct cosine_values, min_lr_ratio), sizeof(double), 0, 1, NULL, NULL},
};

static double cosine_value(const struct sched_call *call, double counter) {
    const struct cosine_values *values = (const struct cosine_values *)call->values;
    const double m = values->min_lr_ratio;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double p = sched_after_warmup(call, s - call->warmup);
    const double h = 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    const double factor = h * (1.0 - m) + m;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

static double cosine_minimum(const struct sched_call *call) {
    const struct cosine_values *values = (const struct cosine_values *)call->values;
    return call->base_lr * values->min_lr_ratio;
}

const struct sched_class sched_cosine = {
    .size = sizeof(struct sched_class),
    .name = "cosine",
    .help = "Cosine from L to min_lr_ratio * L after a linear warm-up from 0, as transformers "
            "get_cosine_schedule_with_warmup and get_cosine_with_min_lr_schedule_with_warmup",
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .values_size = sizeof(struct cosine_values),
    .value = cosine_value,
    .minimum = cosine_minimum,
    .validate = sched_check_call,
};

const struct sched_class sched_cosine_with_min_lr = {
    .size = sizeof(struct sched_class),
    .name = "cosine_with_min_lr",
    .help = "The same as cosine, under the name that transformers gives it with a floor",
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .values_size = sizeof(struct cosine_values),
    .value = cosine_value,
    .minimum = cosine_minimum,
    .validate = sched_check_call,
};
