/* SPDX-License-Identifier: Apache-2.0
 * What direction() of a built-in class does to each element, for who has the elements elsewhere
 * (kernels/reads.h). */
#ifndef TWINSTEP_OPTIM_DIRECTION_H
#define TWINSTEP_OPTIM_DIRECTION_H

#include "base/rule_read.h"
#include "optim/optim.h"

/* After a step, as direction(). RULE_DIRECTION_NONE: no function of one element (adafactor), or a
 * class of a module. */
struct rule_direction optim_direction_rule(const struct optim_class *class_,
                                           const struct optim_call *call, uint32_t index);

/* Whether that is another one, for the tensors of a class. */
int optim_has_direction_rule(const struct optim_class *class_);

#endif
