/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's schedules without a tail: constant, constant_with_warmup, linear, cosine, half_cosine
 * and inverse_sqrt. Rates are absolute, and the floor eta is L * min_lr_ratio (theirs: alpha_f).
 *
 * Source: OLMo-core olmo_core/optim/scheduler.py (fa6c5014c, 3.0.0), operations in its order. Where
 * theirs divides by zero (counter 0 without a warm-up) the rate is L here: no run of theirs gets
 * there, because it counts before it asks. */
#include "sched/olmo_core.h"

#include "base/real.h"

struct warmup_values {
    double warmup_min_lr;
};

struct floor_values {
    double min_lr_ratio;
    double warmup_min_lr;
};

static const struct key_row warmup_keys[] = {
    SCHED_REAL(warmup_values, warmup_min_lr, .standard = "0", .high = 1e6,
               .help = OLMO_WARMUP_HELP),
};

static const struct key_row floor_keys[] = {
    SCHED_REAL(floor_values, min_lr_ratio, .standard = "0.1", .high = 1, .help = OLMO_FLOOR_HELP),
    SCHED_REAL(floor_values, warmup_min_lr, .standard = "0", .high = 1e6, .help = OLMO_WARMUP_HELP),
};

double olmo_warmup(const struct sched_call *call, double peak, double c, double start) {
    if (!(call->warmup > 0.0)) return peak;
    return start + (peak - start) * c / call->warmup;
}

double olmo_cosine(const struct sched_call *call, double c, double eta, double start) {
    const double lr = call->base_lr;
    if (c < call->warmup) return olmo_warmup(call, lr, c, start);
    if (c >= call->total) return eta;
    const double angle = SCHED_PI * (c - call->warmup) / (call->total - call->warmup);
    return eta + (lr - eta) * (1.0 + sched_cos(angle)) / 2.0;
}

static double constant_value(const struct sched_call *call, double counter) {
    (void)counter;
    return call->base_lr;
}

static double warmup_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double start = SCHED_VALUES(call, warmup_values)->warmup_min_lr;
    return c <= call->warmup ? olmo_warmup(call, call->base_lr, c, start) : call->base_lr;
}

SCHED_MINIMUM_SHARE(eta_of, floor_values, min_lr_ratio)

static double start_of(const struct sched_call *call) {
    return SCHED_VALUES(call, floor_values)->warmup_min_lr;
}

static double linear_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double lr = call->base_lr;
    const double eta = eta_of(call);
    if (c < call->warmup) return olmo_warmup(call, lr, c, start_of(call));
    if (c >= call->total) return eta;
    return lr - (lr - eta) * ((c - call->warmup) / (call->total - call->warmup));
}

static double cosine_value(const struct sched_call *call, double counter) {
    return olmo_cosine(call, sched_clamp_counter(counter), eta_of(call), start_of(call));
}

static double half_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double lr = call->base_lr;
    const double eta = eta_of(call);
    if (c < call->warmup) return olmo_warmup(call, eta + (lr - eta) / 2.0, c, start_of(call));
    if (c >= call->total) return eta;
    const double span = call->total - call->warmup;
    const double angle = SCHED_PI * (c - call->warmup + span) / (span * 2.0);
    return eta + (lr - eta) * (1.0 + sched_cos(angle)) / 2.0;
}

static double root_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double lr = call->base_lr;
    const double eta = eta_of(call);
    if (c < call->warmup) return olmo_warmup(call, lr, c, start_of(call));
    if (!(c > 0.0)) return lr;
    return eta + (lr - eta) * real_sqrt_f64(call->warmup / c);
}

enum status olmo_check_starts(const struct sched_call *call, double warmup_min_lr,
                              double decay_min_lr) {
    const struct {
        const char *key;
        double rate;
    } starts[] = {{"warmup_min_lr", warmup_min_lr}, {"decay_min_lr", decay_min_lr}};
    TRY(sched_check_call(call));
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (!(starts[i].rate < call->base_lr || call->base_lr == 0.0))
            FAIL(STATUS_INPUT, "schedule.%s: expected less than the base rate %.17g, got %.17g",
                 starts[i].key, call->base_lr, starts[i].rate);
    return STATUS_OK;
}

static enum status warmup_validate(const struct sched_call *call) {
    return olmo_check_starts(call, SCHED_VALUES(call, warmup_values)->warmup_min_lr, 0);
}

static enum status floor_validate(const struct sched_call *call) {
    return olmo_check_starts(call, start_of(call), 0);
}

SCHED_CLASS(sched_olmo_constant, "olmo-core.constant",
            "L, as OLMo-core ConstantScheduler; it has no warm-up", .value = constant_value,
            .minimum = sched_base_rate, .validate = sched_check_call);

SCHED_CLASS(sched_olmo_constant_with_warmup, "olmo-core.constant_with_warmup",
            "L after a linear warm-up, as OLMo-core ConstantWithWarmup",
            SCHED_KEYS(warmup_keys, warmup_values), .value = warmup_value,
            .minimum = sched_base_rate, .validate = warmup_validate);

#define OLMO(symbol, word, text, function)                                                         \
    SCHED_CLASS(symbol, "olmo-core." word, text, SCHED_KEYS(floor_keys, floor_values),             \
                .value = function, .minimum = eta_of, .validate = floor_validate)

OLMO(sched_olmo_linear, "linear",
     "Linear from L to min_lr_ratio * L after a linear warm-up, as OLMo-core LinearWithWarmup",
     linear_value);
OLMO(sched_olmo_cosine, "cosine",
     "Cosine from L to min_lr_ratio * L after a linear warm-up, as OLMo-core CosWithWarmup",
     cosine_value);
OLMO(sched_olmo_half_cosine, "half_cosine",
     "Second half of a cosine from L, after a warm-up to its middle, as OLMo-core "
     "HalfCosWithWarmup",
     half_value);
OLMO(sched_olmo_inverse_sqrt, "inverse_sqrt",
     "eta + (L - eta) sqrt(W / c) with eta = min_lr_ratio * L, as OLMo-core InvSqrtWithWarmup",
     root_value);
