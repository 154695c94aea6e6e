/* SPDX-License-Identifier: Apache-2.0
 * VeOmni's schedules constant, linear and cosine, with a warm-up from lr_start.
 *
 * Source: VeOmni veomni/optim/lr_scheduler.py (d9774494), operations in its order. The linear decay
 * meets its floor min_lr by max() and is not rescaled; the cosine decays over int(T * decay_ratio)
 * and then stays at min_lr. */
#include "sched/values.h"

struct start_values {
    double lr_start;
};

struct linear_values {
    double lr_start;
    double min_lr;
};

struct cosine_values {
    double lr_start;
    double min_lr;
    double num_cycles;
    double decay_ratio;
};

#define START_HELP "Learning rate where the warm-up starts"
#define MIN_HELP "Learning rate at the end"

static const struct key_row start_keys[] = {
    SCHED_REAL(start_values, lr_start, .standard = "0", .high = 1e6, .help = START_HELP),
};

static const struct key_row linear_keys[] = {
    SCHED_REAL(linear_values, lr_start, .standard = "0", .high = 1e6, .help = START_HELP),
    SCHED_REAL(linear_values, min_lr, .standard = "1e-7", .high = 1e6, .help = MIN_HELP),
};

static const struct key_row cosine_keys[] = {
    SCHED_REAL(cosine_values, lr_start, .standard = "0", .high = 1e6, .help = START_HELP),
    SCHED_REAL(cosine_values, min_lr, .standard = "1e-7", .high = 1e6, .help = MIN_HELP),
    SCHED_REAL(cosine_values, num_cycles, .standard = "0.5", .high = 1000,
               .help = "Waves of the cosine"),
    SCHED_REAL(cosine_values, decay_ratio, .standard = "1", .high = 1,
               .help = "Share of the total after which the rate is min_lr, rounded down"),
};

static double warmup(const struct sched_call *call, double s) {
    const double start = SCHED_VALUES(call, start_values)->lr_start;
    const double lr = call->base_lr;
    return lr * ((start + (lr - start) * s / sched_at_least_one(call->warmup)) / lr);
}

static double constant_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    return s < call->warmup ? warmup(call, s) : call->base_lr;
}

static double linear_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return warmup(call, s);
    const double low = SCHED_VALUES(call, linear_values)->min_lr / call->base_lr;
    const double left = sched_after_warmup(call, call->total - s);
    return call->base_lr * (left > low ? left : low);
}

static double cosine_value(const struct sched_call *call, double counter) {
    const struct cosine_values *values = SCHED_VALUES(call, cosine_values);
    const double s = sched_clamp_counter(counter);
    const double end = sched_floor(call->total * values->decay_ratio);
    const double low = values->min_lr / call->base_lr;
    if (s < call->warmup) return warmup(call, s);
    if (s > end) return call->base_lr * low;
    const double p = (s - call->warmup) / sched_at_least_one(end - call->warmup);
    const double h = 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    const double factor = h * (1.0 - low) + low;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

SCHED_MINIMUM_RATE(low_minimum, linear_values, min_lr)

/* Every multiplier is divided by the base rate, which must therefore not be 0. What is negative or
 * not finite sched_check_call has refused. */
static enum status start_validate(const struct sched_call *call) {
    TRY(sched_check_call(call));
    if (!(call->base_lr > 0.0))
        FAIL(STATUS_INPUT, "optimizer.lr: VeOmni divides by it; expected above 0, got 0");
    return STATUS_OK;
}

static enum status low_validate(const struct sched_call *call) {
    const double low = SCHED_VALUES(call, linear_values)->min_lr;
    TRY(start_validate(call));
    return sched_check_at_most_base(call, "min_lr", low);
}

#define VEOMNI(symbol, word, text, rows, values, function, floor, check)                           \
    SCHED_CLASS(symbol, "veomni." word, text, SCHED_KEYS(rows, values), .value = function,         \
                .minimum = floor, .validate = check)

VEOMNI(sched_veomni_constant, "constant", "L after a linear warm-up from lr_start, as VeOmni",
       start_keys, start_values, constant_value, sched_base_rate, start_validate);
VEOMNI(sched_veomni_linear, "linear",
       "Linear from L to 0, but never below min_lr, after a warm-up from lr_start, as VeOmni",
       linear_keys, linear_values, linear_value, low_minimum, low_validate);
VEOMNI(sched_veomni_cosine, "cosine",
       "Cosine from L to min_lr over decay_ratio of the total, after a warm-up from lr_start, as "
       "VeOmni",
       cosine_keys, cosine_values, cosine_value, low_minimum, low_validate);
