/* SPDX-License-Identifier: Apache-2.0
 * Runs an element loop over all tensors of a call, on several threads or where the call's own
 * tables run it (a backend). Private to optim/. Checks what every class relies on; picks the
 * instruction set and the working type: f64 when the working copy or a slot is f64, else f32
 * (PyTorch's opmath). */
#ifndef TWINSTEP_OPTIM_SPREAD_H
#define TWINSTEP_OPTIM_SPREAD_H

#include "optim/cpu/range.h"
#include "optim/direction.h"

extern const struct optim_class optim_adafactor;
extern const struct optim_class optim_adam;
extern const struct optim_class optim_adamw;
extern const struct optim_class optim_lion;
extern const struct optim_class optim_sgd;

/* Where the update is made: the master if there is one. */
static inline void *optim_working(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master : tensor->param;
}

static inline enum dtype optim_working_dtype(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master_dtype : tensor->param_dtype;
}

typedef void (*optim_step_ranges)(const struct step_table *, const struct step_range *,
                                  size_t count, const struct optim_group *, const void *scalars);

typedef void (*optim_adafactor_loop)(const struct optim_tensor *, const struct step_range *,
                                     const struct optim_adafactor_scalars *);
typedef void (*optim_step_tensor)(optim_adafactor_loop, const struct optim_tensor *,
                                  const struct step_range *, const struct optim_group *,
                                  const void *scalars);

/* STATUS_INTERNAL when the call is not what optim.h promises; the text names the tensor. */
TWINSTEP_MUST_USE enum status optim_check_call(const struct optim_call *call,
                                               const struct optim_class *class_);

/* `step` gets every range of every tensor exactly once, from call->threads threads; where the call
 * has tables of its own, a tensor is one range, and those of one group and working type come in
 * lists of STEP_RANGES, from this thread. */
void optim_spread(const struct optim_call *call, optim_step_ranges step, const void *scalars);

/* `step` gets every tensor exactly once, in one range; a tensor belongs to one thread of this
 * processor, whatever tables the call has. */
void optim_spread_tensors(const struct optim_call *call, optim_step_tensor step,
                          const void *scalars);

/* Of direction(), by class. */
struct rule_direction optim_sgd_direction(const struct optim_call *call, uint32_t index);
struct rule_direction optim_lion_direction(const struct optim_call *call, uint32_t index);

/* One value of a tensor's carrier as f64; for direction(). */
double optim_value(const void *values, enum dtype dtype, size_t index);

#endif
