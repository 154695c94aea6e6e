/* SPDX-License-Identifier: Apache-2.0
 * llm.c's schedules in its binary32 arithmetic: constant, linear, cosine and wsd.
 *
 * Source: llm.c llmc/schedulers.h (f1e2ace6), operations in its order; its cosf is real_cos_f32 of
 * base/real.h (0.5001 ulp). llm.c stops with an assertion past the total. Here the decay stays at
 * its end for loops that go on; the contract llmc ends at the total. */
#include "sched/values.h"

#include "base/real.h"

struct llmc_values {
    double min_lr_ratio;
};

static const struct key_row keys[] = {
    SCHED_REAL(llmc_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate at the end (theirs: final_learning_rate_frac)"),
};

static float floor_of(const struct sched_call *call) {
    return (float)call->base_lr * (float)SCHED_VALUES(call, llmc_values)->min_lr_ratio;
}

static float step_of(double counter) {
    return (float)sched_floor(sched_clamp_counter(counter));
}

/* The share (step - from) / (T - from) of a decay, at most 1; 1 where it has no length. */
static float share(const struct sched_call *call, double counter, double from) {
    const float span = (float)(call->total - from);
    const float ratio = (float)(sched_clamp_counter(counter) - from) / span;
    return span > 0.0f && ratio < 1.0f ? ratio : 1.0f;
}

/* A counter below 0 counts as 0, so a warm-up of 0 is never on. */
static int warms(const struct sched_call *call, double counter) {
    return sched_clamp_counter(counter) < call->warmup;
}

static double warmup(const struct sched_call *call, double counter) {
    const float lr = (float)call->base_lr * (step_of(counter) + 1.0f) / (float)call->warmup;
    return (double)lr;
}

static double constant_value(const struct sched_call *call, double counter) {
    (void)counter;
    return (double)(float)call->base_lr;
}

static double linear_value(const struct sched_call *call, double counter) {
    const float lr = (float)call->base_lr;
    if (warms(call, counter)) return warmup(call, counter);
    return (double)(lr - share(call, counter, call->warmup) * (lr - floor_of(call)));
}

static double cosine_value(const struct sched_call *call, double counter) {
    const float lr = (float)call->base_lr;
    const float low = floor_of(call);
    if (warms(call, counter)) return warmup(call, counter);
    const float angle = (float)(SCHED_PI * (double)share(call, counter, call->warmup));
    const float coefficient = 0.5f * (1.0f + real_cos_f32(angle));
    return (double)(low + coefficient * (lr - low));
}

static double wsd_value(const struct sched_call *call, double counter) {
    const float lr = (float)call->base_lr;
    const float low = floor_of(call);
    /* Theirs: int decay_point = (int)(0.8f * train_num_batches), the only share that it knows. */
    const double point = sched_floor((double)(0.8f * (float)call->total));
    if (warms(call, counter))
        return (double)(lr * ((step_of(counter) + 1.0f) / (float)call->warmup));
    if (sched_clamp_counter(counter) < point) return (double)lr;
    const float root = real_sqrt_f32(share(call, counter, point));
    return (double)(low + (1.0f - root) * (lr - low));
}

static double llmc_minimum(const struct sched_call *call) {
    return (double)floor_of(call);
}

static double constant_minimum(const struct sched_call *call) {
    return (double)(float)call->base_lr;
}

#define LLMC(symbol, word, text, function)                                                         \
    SCHED_CLASS(symbol, "llmc." word, text, SCHED_KEYS(keys, llmc_values), .value = function,      \
                .minimum = llmc_minimum, .validate = sched_check_call)

SCHED_CLASS(sched_llmc_constant, "llmc.constant",
            "L in binary32, as llm.c constant; it has no warm-up", .value = constant_value,
            .minimum = constant_minimum, .validate = sched_check_call);
LLMC(sched_llmc_linear, "linear",
     "L (s + 1) / W, then linear to min_lr_ratio * L, all in binary32, as llm.c linear",
     linear_value);
LLMC(sched_llmc_cosine, "cosine",
     "L (s + 1) / W, then cosine to min_lr_ratio * L, all in binary32, as llm.c cosine",
     cosine_value);
LLMC(sched_llmc_wsd, "wsd",
     "L (s + 1) / W, L, and 1 - sqrt(p) over the last fifth, all in binary32, as llm.c wsd",
     wsd_value);
