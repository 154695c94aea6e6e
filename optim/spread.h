/* SPDX-License-Identifier: Apache-2.0
 * Runs an element loop over all tensors of a call, on several threads. Private to optim/.
 * Checks what every class relies on; picks the instruction set and the working type: f64 when the
 * working copy or a slot is f64, else f32 (PyTorch's opmath). */
#ifndef TWINSTEP_OPTIM_SPREAD_H
#define TWINSTEP_OPTIM_SPREAD_H

#include "optim/cpu/range.h"
#include "optim/optim.h"

extern const struct optim_class optim_adafactor;
extern const struct optim_class optim_adam;
extern const struct optim_class optim_adamw;
extern const struct optim_class optim_lion;
extern const struct optim_class optim_sgd;

typedef void (*optim_adamw_loop)(const struct optim_range *, const struct rule_adamw_scalars *);
typedef void (*optim_sgd_loop)(const struct optim_range *, const struct optim_sgd_scalars *);
typedef void (*optim_adam_loop)(const struct optim_range *, const struct rule_adam_call *);
typedef void (*optim_lion_loop)(const struct optim_range *, const struct optim_lion_scalars *);
typedef void (*optim_adafactor_loop)(const struct optim_range *,
                                     const struct optim_adafactor_scalars *);

/* The element loops of one instruction set and working type. */
struct optim_loops {
    optim_adamw_loop adamw;
    optim_sgd_loop sgd;
    optim_adam_loop adam;
    optim_lion_loop lion;
    optim_adafactor_loop adafactor; /* whole tensors: optim_spread_tensors */
};

typedef void (*optim_step_range)(const struct optim_loops *, const struct optim_range *,
                                 const struct optim_group *, const void *scalars);

/* STATUS_INTERNAL when the call is not what optim.h promises; the text names the tensor. */
TWINSTEP_MUST_USE enum status optim_check_call(const struct optim_call *call,
                                               const struct optim_class *class_);

/* `step` gets every range of every tensor exactly once, from call->threads threads. */
void optim_spread(const struct optim_call *call, optim_step_range step, const void *scalars);

/* `step` gets every tensor exactly once, in one range; a tensor belongs to one thread. */
void optim_spread_tensors(const struct optim_call *call, optim_step_range step,
                          const void *scalars);

/* One value of a tensor's carrier as f64; for direction(). */
double optim_value(const void *values, enum dtype dtype, size_t index);

#endif
