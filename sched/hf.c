/* SPDX-License-Identifier: Apache-2.0
 * Hugging Face's other decays after its linear warm-up: cosine_with_restarts, polynomial,
 * inverse_sqrt and cosine_warmup_with_min_lr.
 *
 * Source: transformers src/transformers/optimization.py (005edacb), the function that each class's
 * help names, with its operations in its order. Each returns L * multiplier, as torch's LambdaLR
 * does, even where the multiplier was divided by L before. */
#include "sched/values.h"

#include "base/real.h"

struct restart_values {
    double num_cycles;
};

static const struct key_row restart_keys[] = {
    SCHED_REAL(restart_values, num_cycles, "1", "1", 1000,
               "Falls from the base rate to 0 between warm-up and total"),
};

static double restart_value(const struct sched_call *call, double counter) {
    const struct restart_values *values = (const struct restart_values *)call->values;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double p = sched_after_warmup(call, s - call->warmup);
    /* Theirs returns the multiplier 0.0 here; the product keeps LambdaLR's form. */
    if (p >= 1.0) return call->base_lr * 0.0;
    const double turns = values->num_cycles * p;
    const double h = 0.5 * (1.0 + sched_cos_pi(turns - sched_floor(turns)));
    return call->base_lr * (h > 0.0 ? h : 0.0);
}

/* These decays have no floor of their own. */
static double no_minimum(const struct sched_call *call) {
    (void)call;
    return 0.0;
}

const struct sched_class sched_cosine_with_restarts = {
    .size = sizeof(struct sched_class),
    .name = "cosine_with_restarts",
    .help = "num_cycles cosines from L to 0 after a linear warm-up from 0, then 0, as transformers "
            "get_cosine_with_hard_restarts_schedule_with_warmup",
    .keys = restart_keys,
    .key_count = sizeof restart_keys / sizeof restart_keys[0],
    .values_size = sizeof(struct restart_values),
    .value = restart_value,
    .minimum = no_minimum,
    .validate = sched_check_call,
};

struct polynomial_values {
    double lr_end;
    double power;
};

static const struct key_row polynomial_keys[] = {
    SCHED_REAL(polynomial_values, lr_end, "1", "1e-7", 1e6, "Learning rate at the end"),
    SCHED_REAL(polynomial_values, power, "1", "1", 1000, "Exponent q of the decay"),
};

static double polynomial_value(const struct sched_call *call, double counter) {
    const struct polynomial_values *values = (const struct polynomial_values *)call->values;
    const double lr = call->base_lr;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return lr * sched_warmup_factor(call, s);
    if (s > call->total) return lr * (values->lr_end / lr);
    const double left = 1.0 - (s - call->warmup) / (call->total - call->warmup);
    const double shape = values->power == 1.0 ? left : sched_pow(left, values->power);
    const double decay = (lr - values->lr_end) * shape + values->lr_end;
    return lr * (decay / lr);
}

static double polynomial_minimum(const struct sched_call *call) {
    return ((const struct polynomial_values *)call->values)->lr_end;
}

static enum status polynomial_validate(const struct sched_call *call) {
    const struct polynomial_values *values = (const struct polynomial_values *)call->values;
    TRY(sched_check_call(call));
    if (!(call->base_lr > values->lr_end))
        FAIL(STATUS_INPUT, "schedule.lr_end: expected less than the base rate %.17g, got %.17g",
             call->base_lr, values->lr_end);
    if (!(call->total > call->warmup) && !(call->total < call->warmup))
        FAIL(STATUS_INPUT,
             "schedule.total: polynomial divides by zero where total and warm-up are both %.17g",
             call->total);
    return STATUS_OK;
}

const struct sched_class sched_polynomial = {
    .size = sizeof(struct sched_class),
    .name = "polynomial",
    .help = "(L - lr_end) (1 - progress)^power + lr_end after a linear warm-up from 0, as "
            "transformers get_polynomial_decay_schedule_with_warmup",
    .keys = polynomial_keys,
    .key_count = sizeof polynomial_keys / sizeof polynomial_keys[0],
    .values_size = sizeof(struct polynomial_values),
    .value = polynomial_value,
    .minimum = polynomial_minimum,
    .validate = polynomial_validate,
};

struct root_values {
    double timescale;
};

static const struct key_row root_keys[] = {
    SCHED_LENGTH(root_values, timescale, "Time scale of the decay; auto is warm-up, or 10000"),
};

static double root_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    double scale = ((const struct root_values *)call->values)->timescale;
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    if (!(scale > 0.0)) scale = call->warmup > 0.0 ? call->warmup : 10000.0;
    const double shift = scale - call->warmup;
    return call->base_lr * (1.0 / real_sqrt_f64((s + shift) / scale));
}

const struct sched_class sched_inverse_sqrt = {
    .size = sizeof(struct sched_class),
    .name = "inverse_sqrt",
    .help = "L / sqrt((s + timescale - W) / timescale) after a linear warm-up from 0, as "
            "transformers get_inverse_sqrt_schedule; never reaches 0",
    .keys = root_keys,
    .key_count = sizeof root_keys / sizeof root_keys[0],
    .values_size = sizeof(struct root_values),
    .value = root_value,
    .minimum = no_minimum,
    .validate = sched_check_call,
};

struct lift_values {
    double num_cycles;
    double min_lr_ratio;
    double warmup_lr_ratio;
};

static const struct key_row lift_keys[] = {
    SCHED_REAL(lift_values, num_cycles, "1", "0.5", 1000,
               "Waves of the cosine between warm-up and total"),
    SCHED_REAL(lift_values, min_lr_ratio, "1", "0", 1,
               "Share of the base rate that is left at the bottom (theirs: min_lr_rate)"),
    {"warmup_lr_ratio", KEY_REAL, "1", "none", CAUSE_SCHEDULE,
     "Share of the base rate where the warm-up starts (theirs: warmup_lr_rate); none is 1 / W",
     offsetof(struct lift_values, warmup_lr_ratio), sizeof(double), 0, 1, "none", NULL},
};

/* Theirs counts the warm-up from 1 (s + 1 of W steps) unless warmup_lr_rate says where it starts;
 * then it rises from there over W - 1 steps. */
static double lift_warmup(const struct sched_call *call, double s, double start) {
    if (start < 0.0) return (s + 1.0) / sched_at_least_one(call->warmup);
    return start + (1.0 - start) * s / sched_at_least_one(call->warmup - 1.0);
}

static double lift_value(const struct sched_call *call, double counter) {
    const struct lift_values *values = (const struct lift_values *)call->values;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * lift_warmup(call, s, values->warmup_lr_ratio);
    const double p = sched_after_warmup(call, s - call->warmup + 1.0);
    const double h = 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    const double factor = h * (1.0 - values->min_lr_ratio) + values->min_lr_ratio;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

static double lift_minimum(const struct sched_call *call) {
    return call->base_lr * ((const struct lift_values *)call->values)->min_lr_ratio;
}

const struct sched_class sched_cosine_warmup_with_min_lr = {
    .size = sizeof(struct sched_class),
    .name = "cosine_warmup_with_min_lr",
    .help = "Cosine from L to min_lr_ratio * L, one step ahead in warm-up and decay, as "
            "transformers get_cosine_with_min_lr_schedule_with_warmup_lr_rate",
    .keys = lift_keys,
    .key_count = sizeof lift_keys / sizeof lift_keys[0],
    .values_size = sizeof(struct lift_values),
    .value = lift_value,
    .minimum = lift_minimum,
    .validate = sched_check_call,
};
