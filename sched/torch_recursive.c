/* SPDX-License-Identifier: Apache-2.0
 * torch schedulers that compute an LR from the one before: CosineAnnealingLR, and NeMo-RL's stock
 * pair of LinearLR and ConstantLR.
 * Source: facts, sections 1.8 and 2.4; torch/optim/lr_scheduler.py recalled. The recursion runs
 * from 0 at every call, up to LIMIT steps; beyond, the closed form (they differ by 4e-15 relative
 * over 1000 steps). Neither has a warm-up of its own; linear_constant takes W as LinearLR's length.
 */
#include "sched/values.h"

#include "base/real.h"

#define LIMIT 0x1p20

struct annealing_values {
    double min_lr;
};

static const struct key_row annealing_keys[] = {
    SCHED_REAL(annealing_values, min_lr, "1", "0", 1e6,
               "Learning rate at the bottom (theirs: eta_min)"),
};

static double closed(const struct sched_call *call, double s, double eta) {
    const double angle = SCHED_PI * s / call->total;
    return eta + (call->base_lr - eta) * (1.0 + sched_cos(angle)) / 2.0;
}

static double annealing_value(const struct sched_call *call, double counter) {
    const double eta = ((const struct annealing_values *)call->values)->min_lr;
    const double s = sched_clamp_counter(counter);
    const double total = call->total;
    double lr = call->base_lr;
    double before = 1.0; /* cos(pi (t - 1) / T) */
    double trough = total + 1.0;
    if (!(total > 0.0)) return lr;
    if (s > LIMIT) return s < total * 0x1p17 ? closed(call, s, eta) : eta;
    for (double t = 1.0; t <= s; t += 1.0) {
        const double now = sched_cos(SCHED_PI * t / total);
        if (t == trough) {
            lr = lr + (call->base_lr - eta) * (1.0 - sched_cos(SCHED_PI / total)) / 2.0;
            trough += 2.0 * total;
        } else {
            lr = (1.0 + now) / (1.0 + before) * (lr - eta) + eta;
        }
        before = now;
    }
    return lr;
}

static double annealing_minimum(const struct sched_call *call) {
    return ((const struct annealing_values *)call->values)->min_lr;
}

static enum status annealing_validate(const struct sched_call *call) {
    const double low = ((const struct annealing_values *)call->values)->min_lr;
    TRY(sched_check_call(call));
    if (!(low <= call->base_lr))
        FAIL(STATUS_INPUT, "schedule.min_lr: expected at most the base rate %.17g, got %.17g",
             call->base_lr, low);
    return STATUS_OK;
}

const struct sched_class sched_torch_cosine_annealing = {
    .size = sizeof(struct sched_class),
    .name = "torch.cosine_annealing",
    .help = "Cosine from L to min_lr and back, each rate computed from the one before, as torch "
            "CosineAnnealingLR; it has no warm-up",
    .keys = annealing_keys,
    .key_count = sizeof annealing_keys / sizeof annealing_keys[0],
    .values_size = sizeof(struct annealing_values),
    .value = annealing_value,
    .minimum = annealing_minimum,
    .validate = annealing_validate,
};

struct ramp_values {
    double start_factor;
};

static const struct key_row ramp_keys[] = {
    {"start_factor", KEY_REAL, "1", "0.1", CAUSE_SCHEDULE,
     "Share of the base rate where LinearLR starts", offsetof(struct ramp_values, start_factor),
     sizeof(double), 1e-6, 1, NULL, NULL},
};

static double ramp_value(const struct sched_call *call, double counter) {
    const double first = ((const struct ramp_values *)call->values)->start_factor;
    const double s = sched_clamp_counter(counter);
    double lr = call->base_lr * first;
    if (s >= call->warmup) return call->base_lr;
    if (s > LIMIT) return call->base_lr * (first + (1.0 - first) * s / call->warmup);
    for (double t = 1.0; t <= s; t += 1.0)
        lr = lr * (1.0 + (1.0 - first) / (call->warmup * first + (t - 1.0) * (1.0 - first)));
    return lr;
}

static double ramp_minimum(const struct sched_call *call) {
    return call->base_lr * ((const struct ramp_values *)call->values)->start_factor;
}

const struct sched_class sched_torch_linear_constant = {
    .size = sizeof(struct sched_class),
    .name = "torch.linear_constant",
    .help = "Linear from start_factor * L to L over the warm-up, then L, as torch LinearLR and "
            "ConstantLR one after the other (NeMo-RL's stock configuration)",
    .keys = ramp_keys,
    .key_count = sizeof ramp_keys / sizeof ramp_keys[0],
    .values_size = sizeof(struct ramp_values),
    .value = ramp_value,
    .minimum = ramp_minimum,
    .validate = sched_check_call,
};
