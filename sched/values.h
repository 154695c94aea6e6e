/* SPDX-License-Identifier: Apache-2.0
 * What the built-in schedules share: the warm-up of Hugging Face's get_scheduler and the check of
 * the numbers. Private to sched/.
 * Source: transformers/optimization.py (facts, section 2.1): the multiplier is a Python float, the
 * LR is base_lr * multiplier (torch LambdaLR). */
#ifndef TWINSTEP_SCHED_VALUES_H
#define TWINSTEP_SCHED_VALUES_H

#include "sched/sched.h"

extern const struct sched_class sched_constant;
extern const struct sched_class sched_linear;
extern const struct sched_class sched_cosine;

/* No framework defines f before 0; here f(s) = f(0) there, so that a shift never turns the LR
 * negative. */
double sched_clamp_counter(double counter);

/* s / max(1, W), for s < W. */
double sched_warmup_factor(const struct sched_call *call, double counter);

/* (numerator) / max(1, T - W). */
double sched_after_warmup(const struct sched_call *call, double numerator);

/* Base LR, W and T are finite and not negative. W > T is legal, as in Hugging Face. */
TWINSTEP_MUST_USE enum status sched_check_call(const struct sched_call *call);

#endif
