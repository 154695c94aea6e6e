/* SPDX-License-Identifier: Apache-2.0
 * A constant rate after a linear warm-up: Hugging Face's constant (with W = 0) and
 * constant_with_warmup. The total T is not used.
 *
 * Source: transformers src/transformers/optimization.py (005edacb), get_constant_schedule and
 * get_constant_schedule_with_warmup. */
#include "sched/values.h"

static double constant_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    return call->base_lr;
}

static double constant_minimum(const struct sched_call *call) {
    return call->base_lr;
}

const struct sched_class sched_constant = {
    .size = sizeof(struct sched_class),
    .name = "constant",
    .help = "L after a linear warm-up from 0, as transformers get_constant_schedule_with_warmup",
    .value = constant_value,
    .minimum = constant_minimum,
    .validate = sched_check_call,
};

const struct sched_class sched_constant_with_warmup = {
    .size = sizeof(struct sched_class),
    .name = "constant_with_warmup",
    .help = "The same as constant, under the name that transformers gives it with a warm-up",
    .value = constant_value,
    .minimum = constant_minimum,
    .validate = sched_check_call,
};
