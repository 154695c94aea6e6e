/* SPDX-License-Identifier: Apache-2.0
 * The gradient that the optimizer took in, element by element, as its own arithmetic tells it: from
 * the first moment before and after a step, or, for gradient descent without a moment, from the
 * weights. Each element comes with a bound of its error from rounding.
 *
 * Private to the run: this reads what readback_keep kept. It knows nothing of how the gradient came
 * about. */
#ifndef TWINSTEP_TRAINER_OPTIMIZER_INPUT_H
#define TWINSTEP_TRAINER_OPTIMIZER_INPUT_H

#include "base/form.h"
#include "base/rule_read.h"
#include "trainer/run.h"

/* From a moment m' = keep m + take g the gradient is g = (m' - keep m) / take, less the weight
 * decay that is inside g. From weights it follows by w' = w - lr (g + decay w). */
enum optimizer_input_source { INPUT_UNKNOWN = 0, INPUT_FROM_MOMENT, INPUT_FROM_WEIGHTS };

struct optimizer_input_rule {
    enum optimizer_input_source source;
    double keep, take; /* factors of INPUT_FROM_MOMENT */
};

/* The number of half units in the last place that bound what an optimizer's operations on one
 * element do to its result. It was chosen, not measured, as a generous bound of the roundings that
 * follow each other between a slot and the step, each of which adds half a unit at most. */
#define INPUT_ROUNDINGS 8

/* Returns the dtype of the weights that an update is made on: that of masters where there are any.
 */
enum dtype optimizer_working_dtype(const struct run *run);

/* Return an owner's row of these weights as it was before the step, and as it is now: for ops. */
const void *optimizer_weights_before(const struct run *run, uint32_t row);
const void *optimizer_weights_now(const struct run *run, uint32_t row);

/* Finds out how the last step's gradient can be read; to be called after the step. */
TWINSTEP_MUST_USE enum status optimizer_input_rule_of(const struct run *run,
                                                      struct optimizer_input_rule *out);

/* Returns what scales an owner's row under INPUT_FROM_MOMENT. */
struct rule_taken optimizer_input_scalars(const struct run *run,
                                          const struct optimizer_input_rule *rule, uint32_t row);

/* Where an owner's row lies, before and after the step, for the host to read. */
struct optimizer_places {
    const void *old, *now;   /* weights */
    const void *then, *slot; /* first moment; only with INPUT_FROM_MOMENT */
    enum dtype working;
    struct form slots; /* of `then` and `slot` */
    double decay, lr;  /* `decay` is the decay that is inside the gradient */
};
TWINSTEP_MUST_USE enum status optimizer_input_places(const struct run *run,
                                                     const struct optimizer_input_rule *rule,
                                                     uint32_t row, struct optimizer_places *out);

/* Writes elements first ... first + count - 1 of an owner's row and their error bounds. */
void optimizer_input_values(const struct run *run, const struct optimizer_input_rule *rule,
                            const struct optimizer_places *at, size_t first, size_t count,
                            double *gradient, double *error);

#endif
