/* SPDX-License-Identifier: Apache-2.0
 * Megatron's schedules: constant, linear, cosine, inverse-square-root and wsd. The counter is in
 * samples, and a warm-up may be a fraction of one. Past the total the rate is min_lr.
 *
 * Source: Megatron-LM megatron/core/optimizer_param_scheduler.py (d98e8a64d),
 * OptimizerParamScheduler.get_lr, operations in its order. */
#include "sched/values.h"

#include "base/real.h"

enum style { STYLE_LINEAR, STYLE_COSINE, STYLE_EXPONENTIAL, STYLE_MINUS_SQRT };

/* The parameters of every class here begin with these two. */
struct megatron_values {
    double min_lr;
    double init_lr;
};

struct megatron_stable_values {
    double min_lr;
    double init_lr;
    double decay;
    int32_t decay_style;
};

static const char *const styles[] = {"linear", "cosine", "exponential", "minus_sqrt", NULL};

/* The rows of struct megatron_values, with which the other struct begins. */
#define MEGATRON_ROWS                                                                              \
    SCHED_REAL(megatron_values, min_lr, .standard = "0", .high = 1e6,                              \
               .help = "Learning rate at the end"),                                                \
        SCHED_REAL(megatron_values, init_lr, .standard = "0", .high = 1e6,                         \
                   .help = "Learning rate where the warm-up starts (theirs: lr_warmup_init)")

static const struct key_row keys[] = {MEGATRON_ROWS};

static const struct key_row stable_keys[] = {
    MEGATRON_ROWS,
    SCHED_LENGTH(megatron_stable_values, decay,
                 "Decay (theirs: lr_wsd_decay_iters); auto is the whole run, as Megatron-Bridge"),
    SCHED_ENUM(megatron_stable_values, decay_style, .standard = "exponential", .names = styles,
               .help = "Shape of the decay (theirs: lr_wsd_decay_style)"),
};

static double falling(int32_t style, double p) {
    switch (style) {
    case STYLE_COSINE:
        return 0.5 * (sched_cos_pi(p) + 1.0);
    case STYLE_EXPONENTIAL:
        return 2.0 * sched_exp2(-p) - 1.0;
    case STYLE_MINUS_SQRT:
        return 1.0 - real_sqrt_f64(p);
    default:
        return 1.0 - p;
    }
}

/* Whether the rate at n is decided before the shape of the decay is looked at: within the warm-up,
 * whose last counter W belongs to it, or past the total. */
static int outside(const struct sched_call *call, double n, double *out) {
    const struct megatron_values *values = SCHED_VALUES(call, megatron_values);
    if (call->warmup > 0.0 && n <= call->warmup) {
        *out = values->init_lr + (call->base_lr - values->init_lr) * n / call->warmup;
        return 1;
    }
    *out = values->min_lr;
    return n > call->total;
}

static double scaled(const struct sched_call *call, double coefficient) {
    const double min_lr = SCHED_VALUES(call, megatron_values)->min_lr;
    return min_lr + coefficient * (call->base_lr - min_lr);
}

static double progress(const struct sched_call *call, double n) {
    return (n - call->warmup) / (call->total - call->warmup);
}

static double constant_value(const struct sched_call *call, double counter) {
    double lr;
    const double n = sched_clamp_counter(counter);
    return outside(call, n, &lr) && n <= call->warmup ? lr : call->base_lr;
}

static double linear_value(const struct sched_call *call, double counter) {
    double lr;
    const double n = sched_clamp_counter(counter);
    if (outside(call, n, &lr)) return lr;
    return scaled(call, falling(STYLE_LINEAR, progress(call, n)));
}

static double cosine_value(const struct sched_call *call, double counter) {
    double lr;
    const double n = sched_clamp_counter(counter);
    if (outside(call, n, &lr)) return lr;
    return scaled(call, falling(STYLE_COSINE, progress(call, n)));
}

static double root_value(const struct sched_call *call, double counter) {
    double lr;
    const double n = sched_clamp_counter(counter);
    const double min_lr = SCHED_VALUES(call, megatron_values)->min_lr;
    if (outside(call, n, &lr)) return lr;
    lr = call->base_lr * real_sqrt_f64(sched_at_least_one(call->warmup)) /
         real_sqrt_f64(sched_at_least_one(n));
    return lr > min_lr ? lr : min_lr;
}

static double stable_value(const struct sched_call *call, double counter) {
    const struct megatron_stable_values *values = SCHED_VALUES(call, megatron_stable_values);
    double lr;
    const double n = sched_clamp_counter(counter);
    if (outside(call, n, &lr)) return lr;
    const double decay = values->decay < 0.0 ? call->total : values->decay;
    const double start = call->total - decay;
    return n <= start ? scaled(call, 1.0)
                      : scaled(call, falling(values->decay_style, (n - start) / decay));
}

SCHED_MINIMUM_RATE(megatron_minimum, megatron_values, min_lr)

/* Refuses what the constructor of OptimizerParamScheduler asserts. */
static enum status megatron_validate(const struct sched_call *call) {
    const struct megatron_values *values = SCHED_VALUES(call, megatron_values);
    TRY(sched_check_at_most_base(call, "min_lr", values->min_lr));
    TRY(sched_check_at_most_base(call, "init_lr", values->init_lr));
    if (!(call->warmup < call->total))
        FAIL(STATUS_INPUT,
             "schedule.warmup: Megatron expects less than the total of %.17g, got %.17g",
             call->total, call->warmup);
    return STATUS_OK;
}

#define MEGATRON(symbol, word, text, rows, values, function, floor)                                \
    SCHED_CLASS(symbol, "megatron." word, text, SCHED_KEYS(rows, values), .value = function,       \
                .minimum = floor, .validate = megatron_validate)

MEGATRON(sched_megatron_constant, "constant", "L after a linear warm-up, as Megatron's constant",
         keys, megatron_values, constant_value, sched_base_rate);
MEGATRON(sched_megatron_linear, "linear",
         "Linear from L to min_lr after a linear warm-up, then min_lr, as Megatron's linear", keys,
         megatron_values, linear_value, megatron_minimum);
MEGATRON(sched_megatron_cosine, "cosine",
         "Cosine from L to min_lr after a linear warm-up, then min_lr, as Megatron's cosine", keys,
         megatron_values, cosine_value, megatron_minimum);
MEGATRON(sched_megatron_inverse_square_root, "inverse-square-root",
         "L sqrt(max(W, 1) / max(n, 1)), at least min_lr, as Megatron's inverse-square-root", keys,
         megatron_values, root_value, megatron_minimum);
MEGATRON(sched_megatron_wsd, "wsd",
         "L after a linear warm-up, then a shaped decay to min_lr, as Megatron's WSD", stable_keys,
         megatron_stable_values, stable_value, megatron_minimum);
