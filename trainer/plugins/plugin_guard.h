/* SPDX-License-Identifier: Apache-2.0
 * A step of a user's optimizer on copies with guards around them, so that a write past an end or
 * into a gradient is told instead of trained on. */
#ifndef TWINSTEP_TRAINER_PLUGINS_PLUGIN_GUARD_H
#define TWINSTEP_TRAINER_PLUGINS_PLUGIN_GUARD_H

#include "optim/optim.h"

/* Calls class_->step on copies and, if nothing was written where it may not be, copies the results
 * back; else nothing of the call's tensors has changed. Returns what step() returns in *out_step.
 * STATUS_INPUT: "step() wrote ...", without a prefix. */
TWINSTEP_MUST_USE enum status guarded_step(const struct optim_class *class_,
                                           const struct optim_call *call, enum status *out_step);

/* Calls class_->direction on slots in carriers. Of the other tensors of the call a module may read
 * everything but slots. */
TWINSTEP_MUST_USE enum status guarded_direction(const struct optim_class *class_,
                                                const struct optim_call *call, uint32_t index,
                                                const void *before, double *out,
                                                enum status *out_direction);

#endif
