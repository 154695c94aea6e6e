/* SPDX-License-Identifier: Apache-2.0
 * A schedule to start from: copy this file, change the names, the keys and trapezoid_value()
 * (docs/PLUGINS.md).
 *
 * Warm-up, plateau, decay to a floor. Its bits are those of Hugging Face's
 * warmup_stable_decay, so that a test can compare the two.
 *
 *     cc -std=c11 -O2 -fPIC -shared -ffp-contract=off -fno-tree-slp-vectorize -I HEADERS \
 *        -o trapezoid.so template_sched.c
 *
 *     schedule: {name: trapezoid, module: ./trapezoid.so, warmup: 2, total: 10, decay: 4}
 *
 * Invariant: the rate is a function of the call and the counter. No variable outlives a call. */
#define TWINSTEP_MODULE
#include "sched/sched_module.h"

enum shape { SHAPE_LINEAR, SHAPE_ROOT };

/* The class's own parameters: filled by the rows below, handed back as call->values. */
struct trapezoid_values {
    double decay, floor;
    int32_t shape, zero;
};

static const char *const shapes[] = {"linear", "1-sqrt", NULL};

static const struct key_row keys[] = {
    {"decay", KEY_REAL, "counter", "auto", CAUSE_SCHEDULE,
     "Length of the decay; auto is a tenth of the total", offsetof(struct trapezoid_values, decay),
     sizeof(double), 0, 0x1p53, "auto", NULL},
    {"floor", KEY_REAL, "1", "0", CAUSE_SCHEDULE,
     "Share of the base rate at the start and at the end", offsetof(struct trapezoid_values, floor),
     sizeof(double), 0, 1, NULL, NULL},
    {"shape", KEY_ENUM, "", "linear", CAUSE_SCHEDULE, "Shape of the decay",
     offsetof(struct trapezoid_values, shape), sizeof(int32_t), 0, 0, NULL, shapes},
};

static double decay_length(const struct sched_call *call) {
    const struct trapezoid_values *values = (const struct trapezoid_values *)call->values;
    return values->decay == KEY_WORD_REAL ? 0.1 * call->total : values->decay;
}

static double lifted(const struct sched_call *call, double factor) {
    const double floor = ((const struct trapezoid_values *)call->values)->floor;
    return call->base_lr * (factor * (1.0 - floor) + floor);
}

/* Any finite counter comes here, also one before 0 or behind the total. */
static double trapezoid_value(const struct sched_call *call, double counter) {
    const struct trapezoid_values *values = (const struct trapezoid_values *)call->values;
    const double decay = decay_length(call);
    const double start = call->total - decay;
    const double s = counter > 0.0 ? counter : 0.0;
    if (s < call->warmup) return lifted(call, s / (call->warmup > 1.0 ? call->warmup : 1.0));
    if (s < start) return call->base_lr;
    if (s >= call->total) return call->base_lr * values->floor;
    const double p = (s - start) / (decay > 1.0 ? decay : 1.0);
    return lifted(call, values->shape == SHAPE_ROOT ? 1.0 - real_sqrt_f64(p) : 1.0 - p);
}

static double trapezoid_minimum(const struct sched_call *call) {
    return call->base_lr * ((const struct trapezoid_values *)call->values)->floor;
}

/* The text begins with the key, so that the error gets its line. */
static enum status trapezoid_validate(const struct sched_call *call) {
    if (!(call->warmup + decay_length(call) <= call->total))
        FAIL(STATUS_INPUT, "schedule.decay: expected warm-up + decay <= total, got %g + %g > %g",
             call->warmup, decay_length(call), call->total);
    return STATUS_OK;
}

static const struct sched_class trapezoid = {
    .size = sizeof(struct sched_class),
    .name = "trapezoid",
    .help = "Warm-up, plateau, linear or 1-sqrt decay",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct trapezoid_values),
    .value = trapezoid_value,
    .minimum = trapezoid_minimum,
    .validate = trapezoid_validate,
};

static const struct sched_class *const classes[] = {&trapezoid, NULL};
SCHED_MODULE(classes);
