/* SPDX-License-Identifier: Apache-2.0
 * OLMo-core's schedules with a linear tail: wsd, power and cosine_linear_decay.
 *
 * Source: OLMo-core olmo_core/optim/scheduler.py (fa6c5014c, 3.0.0: WSD, PowerLR,
 * CosWithWarmupAndLinearDecay), operations in its order. The tail is not clamped: PAST THE TOTAL
 * THE RATE IS NEGATIVE, as theirs is. A tail of length 0 divides by zero at the total and is
 * refused. */
#include "sched/olmo_core.h"

/* The parameters of all three classes begin with these. */
struct tail_values {
    double decay;
    double decay_ratio;
    double decay_min_lr;
    double warmup_min_lr;
};

struct power_values {
    struct tail_values tail;
    double power;
};

struct cosine_values {
    struct tail_values tail;
    double min_lr_ratio;
};

/* The rows of struct tail_values, which lies at offset 0 of the other two. */
#define TAIL_ROWS                                                                                  \
    SCHED_LENGTH(tail_values, decay,                                                               \
                 "Length D of the linear tail; auto is decay_ratio of the total"),                 \
        SCHED_REAL(                                                                                \
            tail_values, decay_ratio, .standard = "0.1", .high = 1,                                \
            .help =                                                                                \
                "Tail as a share of the total, rounded half to even (theirs: decay_fraction)"),    \
        SCHED_REAL(tail_values, decay_min_lr, .standard = "0", .high = 1e6,                        \
                   .help = "Learning rate at the total"),                                          \
        SCHED_REAL(tail_values, warmup_min_lr, .standard = "0", .high = 1e6,                       \
                   .help = OLMO_WARMUP_HELP)

static const struct key_row wsd_keys[] = {TAIL_ROWS};

static const struct key_row power_keys[] = {
    TAIL_ROWS,
    SCHED_REAL(power_values, power, .standard = "-0.51", .low = -1000,
               .help = "Exponent b of L (c / W)^b"),
};

static const struct key_row cosine_keys[] = {
    TAIL_ROWS,
    SCHED_REAL(cosine_values, min_lr_ratio, .standard = "0.1", .high = 1, .help = OLMO_FLOOR_HELP),
};

static const struct tail_values *tail_of(const struct sched_call *call) {
    return SCHED_VALUES(call, tail_values);
}

static double length_of(const struct sched_call *call) {
    return sched_length(tail_of(call)->decay, call->total, tail_of(call)->decay_ratio);
}

/* The tail: a line from the rate `from` at T - D to decay_min_lr at T, for c >= T - D. */
static double tail(const struct sched_call *call, double from, double c) {
    const double end = tail_of(call)->decay_min_lr;
    const double length = length_of(call);
    return end + (from - end) * (call->total - c) / length;
}

static double warmup(const struct sched_call *call, double c) {
    return olmo_warmup(call, call->base_lr, c, tail_of(call)->warmup_min_lr);
}

static double wsd_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    if (c <= call->warmup) return warmup(call, c);
    if (c >= call->total - length_of(call)) return tail(call, call->base_lr, c);
    return call->base_lr;
}

static double power_of(const struct sched_call *call, double c) {
    const double b = SCHED_VALUES(call, power_values)->power;
    return call->base_lr * sched_pow(c / call->warmup, b);
}

static double power_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double start = call->total - length_of(call);
    if (c <= call->warmup) return warmup(call, c);
    return c >= start ? tail(call, power_of(call, start), c) : power_of(call, c);
}

static double cosine_value(const struct sched_call *call, double counter) {
    const double c = sched_clamp_counter(counter);
    const double start = call->total - length_of(call);
    const double eta = call->base_lr * SCHED_VALUES(call, cosine_values)->min_lr_ratio;
    const double from = tail_of(call)->warmup_min_lr;
    if (c >= start) return tail(call, olmo_cosine(call, start, eta, from), c);
    return olmo_cosine(call, c, eta, from);
}

static double tail_minimum(const struct sched_call *call) {
    return tail_of(call)->decay_min_lr;
}

static enum status tail_validate(const struct sched_call *call) {
    TRY(olmo_check_starts(call, tail_of(call)->warmup_min_lr, tail_of(call)->decay_min_lr));
    if (!(length_of(call) > 0.0))
        FAIL(STATUS_INPUT,
             "schedule.decay: OLMo-core divides by zero at the total %.17g when the tail has no "
             "length; expected at least 1",
             call->total);
    return STATUS_OK;
}

static enum status power_validate(const struct sched_call *call) {
    TRY(tail_validate(call));
    if (!(call->warmup > 0.0))
        FAIL(STATUS_INPUT, "schedule.warmup: L (c / W)^b expects a warm-up above 0, got 0");
    return STATUS_OK;
}

#define TAIL(symbol, word, text, rows, values, function, check)                                    \
    SCHED_CLASS(symbol, "olmo-core." word, text, SCHED_KEYS(rows, values), .value = function,      \
                .minimum = tail_minimum, .validate = check)

TAIL(sched_olmo_wsd, "wsd",
     "L after a linear warm-up, then a linear tail; negative past the total, as OLMo-core WSD",
     wsd_keys, tail_values, wsd_value, tail_validate);
TAIL(sched_olmo_power, "power",
     "L (c / W)^power after a linear warm-up, then a linear tail, as OLMo-core PowerLR", power_keys,
     power_values, power_value, power_validate);
TAIL(sched_olmo_cosine_linear_decay, "cosine_linear_decay",
     "Cosine after a linear warm-up, cut off by a linear tail, as OLMo-core "
     "CosWithWarmupAndLinearDecay",
     cosine_keys, cosine_values, cosine_value, tail_validate);
