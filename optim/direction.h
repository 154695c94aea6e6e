/* SPDX-License-Identifier: Apache-2.0
 * The direction of a built-in class (optim_class.direction) as data: what a backend needs to
 * compute it for elements that lie in its memory (kernels/readback_blocks.h). And the rate that
 * goes with it. */
#ifndef TWINSTEP_OPTIM_DIRECTION_H
#define TWINSTEP_OPTIM_DIRECTION_H

#include "base/rule_read.h"
#include "optim/optim.h"

/* The rule for the elements of tensor `index`, to be asked after the step, as direction(). Its kind
 * is RULE_DIRECTION_NONE where the direction is no function of one element (adafactor), and for a
 * class of a module. */
struct rule_direction optim_direction_rule(const struct optim_class *class_,
                                           const struct optim_call *call, uint32_t index);

/* Whether optim_direction_rule gives this class another kind than RULE_DIRECTION_NONE. */
int optim_has_direction_rule(const struct optim_class *class_);

/* The LR that a step applies to a group whose schedule says `lr`, in the step that makes the
 * optimizer's count `t`: `lr` itself, unless the class makes a rate of its own from the count (a
 * relative step of adafactor). */
double optim_applied_lr(const struct optim_class *class_, const void *values, double lr,
                        uint64_t t);

/* Whether a step that is told of a gradient that is not finite (optim_call.found_inf) writes
 * nothing and counts nothing, so that no LR is applied. A class of a module is not asked: 0. */
int optim_holds(const struct optim_class *class_, const void *values);

#endif
