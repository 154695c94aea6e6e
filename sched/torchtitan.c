/* SPDX-License-Identifier: Apache-2.0
 * torchtitan's schedules linear, cosine and sqrt. Each is one step in (s + 1) and ends at a virtual
 * step behind the last one, so that the last update still learns.
 *
 * Source: torchtitan torchtitan/components/optimizer/lr_scheduler.py (b5bcd76c), operations in its
 * order. W is cut to T, and the peak is used at s = W - 1 and at s = W. No run of theirs goes past
 * the total, where linear and sqrt would be negative and the cosine would rise. */
#include "sched/values.h"

#include "base/real.h"

struct titan_values {
    double min_lr_ratio;
    double decay_ratio;
};

static const struct key_row keys[] = {
    SCHED_REAL(titan_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate at the virtual last step (theirs: min_lr_factor)"),
    SCHED_REAL(
        titan_values, decay_ratio, .standard = "none", .high = 1, .word = "none",
        .help =
            "Decay as a share of the total, rounded half to even; none decays from the warm-up on"),
};

enum titan_shape { TITAN_LINEAR, TITAN_COSINE, TITAN_SQRT };

static double fall(enum titan_shape shape, double p) {
    if (shape == TITAN_COSINE) return 0.5 * (1.0 + sched_cos_pi(p));
    if (shape == TITAN_SQRT) return 1.0 - real_sqrt_f64(p);
    return 1.0 - p;
}

static double titan_value(const struct sched_call *call, double counter, enum titan_shape shape) {
    const struct titan_values *values = SCHED_VALUES(call, titan_values);
    const double total = call->total;
    const double s = sched_clamp_counter(counter);
    const double warmup = call->warmup > total ? total : call->warmup;
    double decay = total - warmup;
    if (values->decay_ratio >= 0.0) {
        const double share = sched_half_even(total * values->decay_ratio);
        decay = share < decay ? share : decay;
    }
    /* The plateau has T + 1 - W - D steps, one more than are left: behind the last real step there
     * is the virtual one. */
    const double before = warmup + (total + 1.0 - warmup - decay);
    if (s < warmup) return call->base_lr * ((s + 1.0) / warmup);
    if (s < before || !(decay > 0.0)) return call->base_lr;
    const double factor = fall(shape, (s + 1.0 - before) / decay);
    const double m = values->min_lr_ratio;
    return call->base_lr * (m + (1.0 - m) * factor);
}

static double linear_value(const struct sched_call *call, double counter) {
    return titan_value(call, counter, TITAN_LINEAR);
}

static double cosine_value(const struct sched_call *call, double counter) {
    return titan_value(call, counter, TITAN_COSINE);
}

static double sqrt_value(const struct sched_call *call, double counter) {
    return titan_value(call, counter, TITAN_SQRT);
}

SCHED_MINIMUM_SHARE(titan_minimum, titan_values, min_lr_ratio)

#define TITAN(symbol, word, text, function)                                                        \
    SCHED_CLASS(symbol, "torchtitan." word, text, SCHED_KEYS(keys, titan_values),                  \
                .value = function, .minimum = titan_minimum, .validate = sched_check_call)

TITAN(sched_torchtitan_linear, "linear",
      "(s + 1) / W, then linear to min_lr_ratio * L at a virtual last step, as torchtitan",
      linear_value);
TITAN(sched_torchtitan_cosine, "cosine",
      "(s + 1) / W, then cosine to min_lr_ratio * L at a virtual last step, as torchtitan",
      cosine_value);
TITAN(sched_torchtitan_sqrt, "sqrt",
      "(s + 1) / W, then 1 - sqrt(p) to min_lr_ratio * L at a virtual last step, as torchtitan",
      sqrt_value);
