/* SPDX-License-Identifier: Apache-2.0
 * What the built-in classes share: the list of them, the check of a call, and the walk that runs a
 * loop over all tensors of a call, on several threads of this processor or by the loops of a
 * backend. Private to optim/.
 *
 * It picks the instruction set and the working type, which is f64 when the working copy or a slot
 * is f64, else f32 (PyTorch's opmath type). */
#ifndef TWINSTEP_OPTIM_SPREAD_H
#define TWINSTEP_OPTIM_SPREAD_H

#include "optim/cpu/range.h"
#include "optim/direction.h"
#include "optim/slot.h"

/* Every built-in optimizer, in the order that lists show them; optim_NAME is its class. */
#define OPTIM_CLASSES(ROW) ROW(adafactor) ROW(adam) ROW(adamw) ROW(lion) ROW(sgd)

#define OPTIM_DECLARE_(name) extern const struct optim_class optim_##name;
OPTIM_CLASSES(OPTIM_DECLARE_)

/* optim_applied_lr of adafactor. */
double optim_adafactor_rate(const void *values, double lr, uint64_t t);

/* optim_holds of adam and adamw, and of lion. */
int optim_adam_holds(const void *values);
int optim_lion_holds(const void *values);

/* Members of a class: its key rows over struct `values`, and its slots. */
#define OPTIM_KEYS(rows, values)                                                                   \
    .keys = rows, .key_count = COUNT_OF(rows), .values_size = sizeof(struct values)
#define OPTIM_SLOTS(names) .slot_count = COUNT_OF(names), .slot_names = names

/* Where the update is made: the master if there is one. */
static inline void *optim_working(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master : tensor->param;
}

static inline enum dtype optim_working_dtype(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master_dtype : tensor->param_dtype;
}

/* Whether elements are worked on in f64. */
static inline int optim_is_wide(const struct optim_tensor *tensor) {
    return optim_working_dtype(tensor) == DTYPE_F64 || tensor->slot_dtype == DTYPE_F64;
}

/* A class's part of a step: makes the step's numbers for a group of tensors from what it knows
 * (`context`), and hands them to `loop`, which is the one that the class names. */
typedef void (*optim_step_ranges)(step_loop *loop, const struct step_range *ranges, size_t count,
                                  const struct optim_group *group, const void *context);

typedef void (*optim_adafactor_loop)(const struct optim_tensor *, const struct step_range *,
                                     const struct optim_adafactor_scalars *);
typedef void (*optim_step_tensor)(optim_adafactor_loop loop, const struct optim_tensor *tensor,
                                  const struct step_range *range, const struct optim_group *group,
                                  const void *context);

/* Refuses a call that is not what optim.h promises, with STATUS_INTERNAL and a text that names the
 * tensor or the class. Every step() begins with it. */
TWINSTEP_MUST_USE enum status optim_check_call(const struct optim_call *call,
                                               const struct optim_class *class_);

/* `step` gets every element of every tensor exactly once, in ranges. On this processor each range
 * is a piece of one tensor, and call->threads threads deal with them. Where the call has tables of
 * its own (a backend), a tensor is one range, and those of one group and working type come in lists
 * of STEP_RANGES, from this thread. */
void optim_spread(const struct optim_call *call, const struct optim_class *class_,
                  optim_step_ranges step, const void *context);

/* `step` gets every tensor exactly once, in one range; a tensor belongs to one thread of this
 * processor, whatever tables the call has. */
void optim_spread_tensors(const struct optim_call *call, optim_step_tensor step,
                          const void *context);

/* optim_class.direction of a class whose direction is a rule of one element, which does not need
 * the slots from before the step. Cannot fail. */
enum status optim_direction(const struct optim_call *call, uint32_t index,
                            struct rule_direction rule, const void *before, double *out);

/* Element `index` of a tensor of this dtype, as f64. */
double optim_value(const void *values, enum dtype dtype, size_t index);

#endif
