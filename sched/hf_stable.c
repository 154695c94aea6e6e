/* SPDX-License-Identifier: Apache-2.0
 * Hugging Face's warmup_stable_decay: a shaped warm-up from the floor, a plateau and a shaped
 * decay. It starts at the floor, not at 0, and stays at the floor after warm-up + stable + decay.
 *
 * Source: transformers src/transformers/optimization.py (005edacb), get_wsd_schedule, with its
 * operations in its order. */
#include "sched/values.h"

#include "base/real.h"

enum shape { SHAPE_LINEAR, SHAPE_COSINE, SHAPE_ROOT };

struct stable_values {
    double stable;
    double decay;
    double min_lr_ratio;
    double num_cycles;
    int32_t warmup_type;
    int32_t decay_type;
};

static const char *const shapes[] = {"linear", "cosine", "1-sqrt", NULL};

static const struct key_row keys[] = {
    SCHED_LENGTH(stable_values, stable, "Plateau (theirs: num_stable_steps); auto is what is left"),
    SCHED_LENGTH(stable_values, decay, "Decay (theirs: num_decay_steps); auto is what is left"),
    SCHED_REAL(stable_values, min_lr_ratio, "1", "0", 1,
               "Share of the base rate at the start and at the end"),
    SCHED_REAL(stable_values, num_cycles, "1", "0.5", 1000, "Waves of a cosine decay"),
    SCHED_ENUM(stable_values, warmup_type, "linear", "Shape of the warm-up", shapes),
    SCHED_ENUM(stable_values, decay_type, "cosine", "Shape of the decay", shapes),
};

static double rise(int32_t type, double p) {
    if (type == SHAPE_COSINE) return 0.5 * (1.0 - sched_cos_pi(p));
    if (type == SHAPE_ROOT) return 1.0 - real_sqrt_f64(1.0 - p);
    return p;
}

static double fall(const struct stable_values *values, double p) {
    if (values->decay_type == SHAPE_COSINE)
        return 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    if (values->decay_type == SHAPE_ROOT) return 1.0 - real_sqrt_f64(p);
    return 1.0 - p;
}

/* Every shape runs from 0 to 1 and is then lifted onto the floor m, in the warm-up as well. */
static double lifted(const struct sched_call *call, double factor) {
    const double m = ((const struct stable_values *)call->values)->min_lr_ratio;
    const double y = factor * (1.0 - m) + m;
    return call->base_lr * (y > 0.0 ? y : 0.0);
}

static double positive(double x) {
    return x > 0.0 ? x : 0.0;
}

static double stable_value(const struct sched_call *call, double counter) {
    const struct stable_values *values = (const struct stable_values *)call->values;
    const double s = sched_clamp_counter(counter);
    const double after = call->total - call->warmup;
    double stable = values->stable;
    double decay = values->decay;
    if (s < call->warmup)
        return lifted(call, rise(values->warmup_type, sched_warmup_factor(call, s)));
    if (stable < 0.0) stable = decay < 0.0 ? 0.0 : positive(after - decay);
    if (decay < 0.0) decay = positive(after - stable);
    if (s < call->warmup + stable) return call->base_lr;
    if (s < call->warmup + stable + decay)
        return lifted(call, fall(values, (s - call->warmup - stable) / sched_at_least_one(decay)));
    return call->base_lr * values->min_lr_ratio;
}

static double stable_minimum(const struct sched_call *call) {
    return call->base_lr * ((const struct stable_values *)call->values)->min_lr_ratio;
}

const struct sched_class sched_warmup_stable_decay = {
    .size = sizeof(struct sched_class),
    .name = "warmup_stable_decay",
    .help = "Warm-up from min_lr_ratio * L, plateau, decay back to it, as transformers "
            "get_wsd_schedule",
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .values_size = sizeof(struct stable_values),
    .value = stable_value,
    .minimum = stable_minimum,
    .validate = sched_check_call,
};
