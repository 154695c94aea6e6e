/* SPDX-License-Identifier: Apache-2.0
 * The gradient that the optimizer took in, element by element, as its own arithmetic tells it: from
 * the first moment before and after a step, or, of gradient descent without a moment, from the
 * weights. Each element with a bound of its error from rounding.
 *
 * Private to the run: reads what readback_keep kept. Knows nothing of how the gradient came about.
 */
#ifndef TWINSTEP_TRAINER_OPTIMIZER_INPUT_H
#define TWINSTEP_TRAINER_OPTIMIZER_INPUT_H

#include "base/rule_read.h"
#include "trainer/run.h"

/* m' = keep m + take g, so g = (m' - keep m) / take, less the decay that is inside g; or
 * w' = w - lr (g + decay w). */
enum optimizer_input_source { INPUT_UNKNOWN = 0, INPUT_FROM_MOMENT, INPUT_FROM_WEIGHTS };

struct optimizer_input_rule {
    enum optimizer_input_source source;
    double keep, take; /* of INPUT_FROM_MOMENT */
};

/* Half units of rounding that bound what an optimizer's handful of operations does to its result.
 */
#define INPUT_ROUNDINGS 8

/* Weights that an update is made on: masters where there are any. */
enum dtype optimizer_working_dtype(const struct run *run);

/* How the last step's gradient can be read; after it. */
TWINSTEP_MUST_USE enum status optimizer_input_rule_of(const struct run *run,
                                                      struct optimizer_input_rule *out);

/* Of INPUT_FROM_MOMENT: what scales an owner's row. */
struct rule_taken optimizer_input_scalars(const struct run *run,
                                          const struct optimizer_input_rule *rule, uint32_t row);

/* Elements first ... first + count - 1 of an owner's row. */
void optimizer_input_values(const struct run *run, const struct optimizer_input_rule *rule,
                            uint32_t row, size_t first, size_t count, double *gradient,
                            double *error);

#endif
