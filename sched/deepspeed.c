/* SPDX-License-Identifier: Apache-2.0
 * DeepSpeed's warmup, warmup_decay and warmup_cosine as functions of last_batch_iteration.
 *
 * Source: DeepSpeed deepspeed/runtime/lr_schedules.py (614e3f17; the old cosine: 0.14.0),
 * operations in its order. The base rate is their warmup_max_lr. The rate before the first call
 * (offset -1 and the start) belongs to the contract, not to the schedule. */
#include "sched/values.h"

#include "base/real.h"

enum warmup_type { WARMUP_LOG, WARMUP_LINEAR };

struct warmup_values {
    double warmup_min_lr;
    int32_t warmup_type;
};

struct cosine_values {
    double warmup_min_ratio;
    double min_lr_ratio;
    int32_t warmup_type;
};

static const char *const types[] = {"log", "linear", NULL};

static const struct key_row warmup_keys[] = {
    SCHED_REAL(warmup_values, warmup_min_lr, "1", "0", 1e6, "Learning rate before the warm-up"),
    SCHED_ENUM(warmup_values, warmup_type, "log", "Shape of the warm-up", types),
};

static const struct key_row cosine_keys[] = {
    SCHED_REAL(cosine_values, warmup_min_ratio, "1", "0", 1,
               "Share of the base rate where the warm-up starts"),
    SCHED_REAL(cosine_values, min_lr_ratio, "1", "0.0001", 1,
               "Share of the base rate that is left at the end (theirs: cos_min_ratio)"),
    SCHED_ENUM(cosine_values, warmup_type, "log", "Shape of the warm-up", types),
};

/* Their constructors raise warmup_num_steps to 2 at least, so that log(W) is not 0. */
static double warmup_of(const struct sched_call *call) {
    return call->warmup > 2.0 ? call->warmup : 2.0;
}

/* The progress of the warm-up, for i < W. WarmupLR multiplies by a stored 1 / log(W) and does not
 * divide. */
static double gamma_of(const struct sched_call *call, int32_t type, double i) {
    const double w = warmup_of(call);
    if (type == WARMUP_LINEAR) return i / w;
    return (1.0 / sched_log(w)) * sched_log(i + 1.0);
}

static double between(const struct sched_call *call, double gamma) {
    const double low = ((const struct warmup_values *)call->values)->warmup_min_lr;
    return low + (call->base_lr - low) * gamma;
}

static double warmup_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const int32_t type = ((const struct warmup_values *)call->values)->warmup_type;
    return between(call, i < warmup_of(call) ? gamma_of(call, type, i) : 1.0);
}

static double decay_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const int32_t type = ((const struct warmup_values *)call->values)->warmup_type;
    if (i < warmup_of(call)) return between(call, gamma_of(call, type, i));
    const double left = (call->total - i) / sched_at_least_one(call->total - warmup_of(call));
    return between(call, left > 0.0 ? left : 0.0);
}

/* The rate behind the warm-up (i >= W), from the cosine of its progress. */
static double cosine_of(const struct sched_call *call, double cosine) {
    const struct cosine_values *values = (const struct cosine_values *)call->values;
    const double h = (1.0 + cosine) / 2.0;
    const double factor = values->min_lr_ratio + (1.0 - values->min_lr_ratio) * h;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

static double cosine_warmup(const struct sched_call *call, double i) {
    const struct cosine_values *values = (const struct cosine_values *)call->values;
    const double low = values->warmup_min_ratio;
    return call->base_lr * (low + gamma_of(call, values->warmup_type, i) * (1.0 - low));
}

static double cosine_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const double w = warmup_of(call);
    if (i < w) return cosine_warmup(call, i);
    const double share = (i - w + 1.0) / (call->total - w);
    return cosine_of(call, sched_cos_pi(share < 1.0 ? share : 1.0));
}

/* 0.14.0 does not clamp the progress, and it multiplies by pi before it divides. */
static double cosine_old_value(const struct sched_call *call, double counter) {
    const double i = sched_clamp_counter(counter);
    const double w = warmup_of(call);
    if (i < w) return cosine_warmup(call, i);
    const double angle = SCHED_PI * (i - w + 1.0) / (call->total - w);
    if (real_abs_f64(angle) <= REAL_TRIG_LIMIT) return cosine_of(call, sched_cos(angle));
    return cosine_of(call, sched_cos_pi((i - w + 1.0) / (call->total - w)));
}

static double warmup_minimum(const struct sched_call *call) {
    return ((const struct warmup_values *)call->values)->warmup_min_lr;
}

static double cosine_minimum(const struct sched_call *call) {
    return call->base_lr * ((const struct cosine_values *)call->values)->min_lr_ratio;
}

static enum status warmup_validate(const struct sched_call *call) {
    const double low = ((const struct warmup_values *)call->values)->warmup_min_lr;
    TRY(sched_check_call(call));
    if (!(low <= call->base_lr))
        FAIL(STATUS_INPUT,
             "schedule.warmup_min_lr: expected at most the base rate %.17g, got %.17g",
             call->base_lr, low);
    return STATUS_OK;
}

static enum status cosine_validate(const struct sched_call *call) {
    TRY(sched_check_call(call));
    if (!(warmup_of(call) < call->total))
        FAIL(STATUS_INPUT,
             "schedule.total: WarmupCosineLR expects more than its warm-up of %.17g (at least 2), "
             "got %.17g",
             warmup_of(call), call->total);
    return STATUS_OK;
}

#define DEEPSPEED(symbol, word, text, rows, values, function, floor, check)                        \
    SCHED_CLASS(symbol, "deepspeed." word, text, rows, values, function, floor, check)

DEEPSPEED(sched_deepspeed_warmup, "warmup",
          "Logarithmic or linear warm-up to L, as DeepSpeed "
          "WarmupLR",
          warmup_keys, warmup_values, warmup_value, warmup_minimum, warmup_validate);
DEEPSPEED(sched_deepspeed_warmup_decay, "warmup_decay",
          "Logarithmic or linear warm-up to L, then linear to warmup_min_lr, as DeepSpeed "
          "WarmupDecayLR",
          warmup_keys, warmup_values, decay_value, warmup_minimum, warmup_validate);
DEEPSPEED(sched_deepspeed_warmup_cosine, "warmup_cosine",
          "Logarithmic or linear warm-up, then a cosine one step ahead that never shows L, as "
          "DeepSpeed WarmupCosineLR",
          cosine_keys, cosine_values, cosine_value, cosine_minimum, cosine_validate);
DEEPSPEED(sched_deepspeed_warmup_cosine_old, "warmup_cosine_old",
          "As warmup_cosine, but past the total it rises again, as DeepSpeed 0.14.0 WarmupCosineLR",
          cosine_keys, cosine_values, cosine_old_value, cosine_minimum, cosine_validate);
