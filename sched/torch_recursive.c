/* SPDX-License-Identifier: Apache-2.0
 * torch's schedulers that compute each rate from the one before: CosineAnnealingLR, and the stock
 * pair of NeMo-RL, LinearLR and then ConstantLR.
 *
 * Source: PyTorch torch/optim/lr_scheduler.py (CosineAnnealingLR.get_lr, LinearLR.get_lr) and
 * NeMo-RL's stock configuration (7ea279ab). The recursion runs from 0, or from where the last call
 * ended, up to LIMIT steps; beyond them the closed form is used (after 1,000 steps the two differ
 * by 4e-15 relatively). Neither schedule has a warm-up of its own; linear_constant takes W as the
 * length of LinearLR. */
#include "sched/values.h"

#include "base/real.h"

/* Chosen so that one call far out costs a million steps at most. */
#define LIMIT 0x1p20

struct annealing_values {
    double min_lr;
};

static const struct key_row annealing_keys[] = {
    SCHED_REAL(annealing_values, min_lr, .standard = "0", .high = 1e6,
               .help = "Learning rate at the bottom (theirs: eta_min)"),
};

static double closed(const struct sched_call *call, double s, double eta) {
    const double angle = SCHED_PI * s / call->total;
    return eta + (call->base_lr - eta) * (1.0 + sched_cos(angle)) / 2.0;
}

/* Where the recursion stands, and for which numbers. All zero means that it has not begun. It only
 * saves time: the value never depends on it. */
struct annealing_state {
    double base_lr, total, eta;
    double t, lr;
    double before; /* cos(pi t / T) */
    double trough; /* the next t = T + 1 + 2 T i, where the quotient would be 0 / 0 and torch has a
                      rule of its own */
};

static struct annealing_state annealing_start(const struct sched_call *call, double eta) {
    return (struct annealing_state){call->base_lr, call->total,      eta, 0.0, call->base_lr,
                                    1.0,           call->total + 1.0};
}

static void annealing_step(struct annealing_state *at) {
    at->t += 1.0;
    const double now = sched_cos(SCHED_PI * at->t / at->total);
    if (at->t == at->trough) {
        const double up = 1.0 - sched_cos(SCHED_PI / at->total);
        at->lr = at->lr + (at->base_lr - at->eta) * up / 2.0;
        at->trough += 2.0 * at->total;
    } else {
        at->lr = (1.0 + now) / (1.0 + at->before) * (at->lr - at->eta) + at->eta;
    }
    at->before = now;
}

static int continues(const struct annealing_state *at, const struct sched_call *call, double eta,
                     double s) {
    return at->base_lr == call->base_lr && at->total == call->total && at->eta == eta &&
           at->t > 0.0 && at->t <= s;
}

static double annealing_value(const struct sched_call *call, double counter) {
    const double eta = SCHED_VALUES(call, annealing_values)->min_lr;
    const double s = sched_clamp_counter(counter);
    if (!(call->total > 0.0)) return call->base_lr;
    if (s > LIMIT) return s < call->total * 0x1p17 ? closed(call, s, eta) : eta;
    struct annealing_state at = annealing_start(call, eta);
    struct annealing_state *kept = (struct annealing_state *)call->state;
    if (kept != NULL && continues(kept, call, eta, s)) at = *kept;
    while (at.t + 1.0 <= s)
        annealing_step(&at);
    if (kept != NULL) *kept = at;
    return at.lr;
}

SCHED_MINIMUM_RATE(annealing_minimum, annealing_values, min_lr)

static enum status annealing_validate(const struct sched_call *call) {
    return sched_check_at_most_base(call, "min_lr", SCHED_VALUES(call, annealing_values)->min_lr);
}

SCHED_CLASS(sched_torch_cosine_annealing, "torch.cosine_annealing",
            "Cosine from L to min_lr and back, each rate computed from the one before, as torch "
            "CosineAnnealingLR; it has no warm-up",
            SCHED_KEYS(annealing_keys, annealing_values),
            .state_size = sizeof(struct annealing_state), .value = annealing_value,
            .minimum = annealing_minimum, .validate = annealing_validate);

struct ramp_values {
    double start_factor;
};

static const struct key_row ramp_keys[] = {
    SCHED_REAL(ramp_values, start_factor, .standard = "0.1", .low = 1e-6, .high = 1,
               .help = "Share of the base rate where LinearLR starts"),
};

static double ramp_value(const struct sched_call *call, double counter) {
    const double first = SCHED_VALUES(call, ramp_values)->start_factor;
    const double s = sched_clamp_counter(counter);
    double lr = call->base_lr * first;
    if (s >= call->warmup) return call->base_lr;
    if (s > LIMIT) return call->base_lr * (first + (1.0 - first) * s / call->warmup);
    for (double t = 1.0; t <= s; t += 1.0)
        lr = lr * (1.0 + (1.0 - first) / (call->warmup * first + (t - 1.0) * (1.0 - first)));
    return lr;
}

SCHED_MINIMUM_SHARE(ramp_minimum, ramp_values, start_factor)

SCHED_CLASS(sched_torch_linear_constant, "torch.linear_constant",
            "Linear from start_factor * L to L over the warm-up, then L, as torch LinearLR and "
            "ConstantLR one after the other (NeMo-RL's stock configuration)",
            SCHED_KEYS(ramp_keys, ramp_values), .value = ramp_value, .minimum = ramp_minimum,
            .validate = sched_check_call);
