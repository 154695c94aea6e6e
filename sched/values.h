/* SPDX-License-Identifier: Apache-2.0
 * What the built-in schedules share: their declarations, the macros of their tables, the warm-up of
 * Hugging Face's get_scheduler, rounding, a cosine for host arithmetic, and the check of a call.
 * Private to sched/.
 *
 * Source of the warm-up: transformers src/transformers/optimization.py (005edacb). The multiplier
 * is a Python float there, and torch's LambdaLR returns base_lr * multiplier; so the multiplication
 * by the base rate comes last here, too. */
#ifndef TWINSTEP_SCHED_VALUES_H
#define TWINSTEP_SCHED_VALUES_H

#include "base/key.h"
#include "base/macro.h"
#include "sched/sched.h"

/* The built-in schedules, family by family: ROW(name) for each class sched_<name>. Their order is
 * that of every list that the program prints; what only elder releases have stands last. */
#define SCHED_CLASSES(ROW)                                                                         \
    ROW(constant), ROW(linear), ROW(cosine), ROW(constant_with_warmup), ROW(cosine_with_min_lr),   \
        ROW(cosine_with_restarts), ROW(polynomial), ROW(inverse_sqrt),                             \
        ROW(cosine_warmup_with_min_lr), ROW(warmup_stable_decay), ROW(reduce_lr_on_plateau),       \
        ROW(olmo_constant), ROW(olmo_constant_with_warmup), ROW(olmo_linear), ROW(olmo_cosine),    \
        ROW(olmo_half_cosine), ROW(olmo_inverse_sqrt), ROW(olmo_cosine_linear_decay),              \
        ROW(olmo_wsd), ROW(olmo_power), ROW(olmo_wsds), ROW(olmo_sequential),                      \
        ROW(olmo_composable), ROW(megatron_constant), ROW(megatron_linear), ROW(megatron_cosine),  \
        ROW(megatron_inverse_square_root), ROW(megatron_wsd), ROW(torchtitan_linear),              \
        ROW(torchtitan_cosine), ROW(torchtitan_sqrt), ROW(llmc_constant), ROW(llmc_linear),        \
        ROW(llmc_cosine), ROW(llmc_wsd), ROW(deepspeed_warmup), ROW(deepspeed_warmup_decay),       \
        ROW(deepspeed_warmup_cosine), ROW(deepspeed_warmup_cosine_old), ROW(deepspeed_one_cycle),  \
        ROW(deepspeed_lr_range_test), ROW(veomni_constant), ROW(veomni_linear),                    \
        ROW(veomni_cosine), ROW(torch_cosine_annealing), ROW(torch_linear_constant),               \
        ROW(torch_one_cycle), ROW(torch_sequential), ROW(warmup_stable_decay_old)
#define SCHED_SYMBOL_(name) sched_##name
extern const struct sched_class SCHED_CLASSES(SCHED_SYMBOL_);

/* Defines the class `symbol`; SCHED_KEYS gives it the key rows `rows` over struct `values`. */
#define SCHED_CLASS(symbol, word, text, ...)                                                       \
    const struct sched_class symbol = {                                                            \
        .size = sizeof(struct sched_class), .name = word, .help = text, __VA_ARGS__}
#define SCHED_KEYS(rows, values)                                                                   \
    .keys = rows, .key_count = COUNT_OF(rows), .values_size = sizeof(struct values)

/* The parameters of a call to a schedule whose rows lay out struct `owner`. */
#define SCHED_VALUES(call, owner) ((const struct owner *)(call)->values)

/* Defines `function`, the minimum of a class: a parameter that is a rate, or one that is a share of
 * L. */
#define SCHED_MINIMUM_RATE(function, owner, field)                                                 \
    static double function(const struct sched_call *call) {                                        \
        return SCHED_VALUES(call, owner)->field;                                                   \
    }
#define SCHED_MINIMUM_SHARE(function, owner, field)                                                \
    static double function(const struct sched_call *call) {                                        \
        return call->base_lr * SCHED_VALUES(call, owner)->field;                                   \
    }

/* Key rows of parameters in struct `owner`: of any type, a real number without a unit, a length in
 * counter units that may be "auto", a name. */
#define SCHED_ROW(type, owner, field, ...)                                                         \
    KEY_ROW(#field, type, struct owner, field, .cause = CAUSE_SCHEDULE, __VA_ARGS__)
#define SCHED_REAL(owner, field, ...) SCHED_ROW(KEY_REAL, owner, field, .unit = "1", __VA_ARGS__)
#define SCHED_LENGTH(owner, field, text)                                                           \
    SCHED_ROW(KEY_REAL, owner, field, .unit = "counter", .standard = "auto", .high = 0x1p53,       \
              .word = "auto", .help = text)
#define SCHED_ENUM(owner, field, ...) SCHED_ROW(KEY_ENUM, owner, field, .unit = "", __VA_ARGS__)

#define SCHED_PI 0x1.921fb54442d18p+1 /* Python's math.pi */

/* The counter, but 0 for a negative one. No framework defines f before 0; holding f(0) there keeps
 * a shifted counter from turning the rate negative. */
static inline double sched_clamp_counter(double counter) {
    return counter > 0.0 ? counter : 0.0;
}

/* L, the minimum of a schedule that never falls. */
double sched_base_rate(const struct sched_call *call);

/* max(1, x) */
static inline double sched_at_least_one(double x) {
    return x > 1.0 ? x : 1.0;
}

/* s / max(1, W): the multiplier within the warm-up, for s < W. */
static inline double sched_warmup_factor(const struct sched_call *call, double counter) {
    return counter / sched_at_least_one(call->warmup);
}

/* numerator / max(1, T - W): a share of what is left after the warm-up. */
static inline double sched_after_warmup(const struct sched_call *call, double numerator) {
    return numerator / sched_at_least_one(call->total - call->warmup);
}

/* cos(x) within 0.5001 ulp for |x| <= REAL_TRIG_LIMIT, and NaN beyond. Why so exact: a decay to 0
 * is 1 + cos(x) near x = pi, where the last bit of the cosine is most of the result. It must be the
 * bit of the C library wherever that one rounds correctly. */
double sched_cos(double x);

/* cos(pi * p) with the argument rounded as Python rounds math.pi * p; whole waves are taken off a p
 * that is too large for sched_cos. */
double sched_cos_pi(double p);

/* cos(math.pi * cycles * 2.0 * p), whose argument is rounded from left to right as in
 * optimization.py. */
double sched_cos_waves(double cycles, double p);

/* x^y for x > 0 within 0.51 ulp: the largest error of 1.7e6 samples was 0.507. Where |y log x| >=
 * 700 it is real_pow_f64, within 1 ulp. Both this and 2^x give the C library's last bit where that
 * one rounds correctly, which real_pow_f64 does not. */
double sched_pow(double x, double y);
double sched_log(double x); /* x > 0 */
double sched_exp2(double x);

/* Python's int(), math.ceil() and round() for 0 <= x < 2^51. A larger x is returned as it is; it
 * has at most one bit behind the point. */
double sched_floor(double x);
double sched_ceil(double x);
double sched_half_even(double x);

/* `length`, or round(total * ratio) where it is "auto", which is stored as a negative number. */
double sched_length(double length, double total, double ratio);

/* Appends a name to the list "a, b", which has room for `size` bytes; what does not fit is cut. */
void sched_join(char *names, size_t size, const char *name);

/* Refuses a base rate, W or T that is not finite or is negative. W > T is legal, as it is in
 * Hugging Face's schedules. */
TWINSTEP_MUST_USE enum status sched_check_call(const struct sched_call *call);

/* Refuses what sched_check_call refuses, and a rate above the base rate; `key` is its key without
 * "schedule.". */
TWINSTEP_MUST_USE enum status sched_check_at_most_base(const struct sched_call *call,
                                                       const char *key, double rate);

#endif
