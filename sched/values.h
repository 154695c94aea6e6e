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

extern const struct sched_class sched_constant, sched_constant_with_warmup, sched_linear,
    sched_cosine, sched_cosine_with_min_lr, sched_cosine_with_restarts, sched_polynomial,
    sched_inverse_sqrt, sched_cosine_warmup_with_min_lr, sched_warmup_stable_decay,
    sched_reduce_lr_on_plateau;
extern const struct sched_class sched_olmo_constant, sched_olmo_constant_with_warmup,
    sched_olmo_linear, sched_olmo_cosine, sched_olmo_half_cosine, sched_olmo_inverse_sqrt,
    sched_olmo_cosine_linear_decay, sched_olmo_wsd, sched_olmo_power, sched_olmo_wsds,
    sched_olmo_sequential, sched_olmo_composable;
extern const struct sched_class sched_megatron_constant, sched_megatron_linear,
    sched_megatron_cosine, sched_megatron_inverse_square_root, sched_megatron_wsd;
extern const struct sched_class sched_torchtitan_linear, sched_torchtitan_cosine,
    sched_torchtitan_sqrt;
extern const struct sched_class sched_llmc_constant, sched_llmc_linear, sched_llmc_cosine,
    sched_llmc_wsd;
extern const struct sched_class sched_deepspeed_warmup, sched_deepspeed_warmup_decay,
    sched_deepspeed_warmup_cosine, sched_deepspeed_warmup_cosine_old;
extern const struct sched_class sched_deepspeed_one_cycle, sched_deepspeed_lr_range_test;
extern const struct sched_class sched_veomni_constant, sched_veomni_linear, sched_veomni_cosine;
extern const struct sched_class sched_torch_cosine_annealing, sched_torch_linear_constant,
    sched_torch_one_cycle, sched_torch_sequential;

/* Defines the class `symbol`; SCHED_KEYS gives it the key rows `rows` over struct `values`. */
#define SCHED_CLASS(symbol, word, text, ...)                                                       \
    const struct sched_class symbol = {                                                            \
        .size = sizeof(struct sched_class), .name = word, .help = text, __VA_ARGS__}
#define SCHED_KEYS(rows, values)                                                                   \
    .keys = rows, .key_count = COUNT_OF(rows), .values_size = sizeof(struct values)

/* The parameters of a call to a schedule whose rows lay out struct `owner`. */
#define SCHED_VALUES(call, owner) ((const struct owner *)(call)->values)

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
double sched_clamp_counter(double counter);

/* L, the minimum of a schedule that never falls. */
double sched_base_rate(const struct sched_call *call);

/* s / max(1, W): the multiplier within the warm-up, for s < W. */
double sched_warmup_factor(const struct sched_call *call, double counter);

/* numerator / max(1, T - W): a share of what is left after the warm-up. */
double sched_after_warmup(const struct sched_call *call, double numerator);

/* max(1, x) */
double sched_at_least_one(double x);

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

/* Refuses a rate above the base rate; `key` is its key without "schedule.". */
TWINSTEP_MUST_USE enum status sched_check_at_most_base(const struct sched_call *call,
                                                       const char *key, double rate);

#endif
