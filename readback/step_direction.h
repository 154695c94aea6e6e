/* SPDX-License-Identifier: Apache-2.0
 * Along which direction u an optimizer moved a tensor: new = old - lr u - c old up to rounding,
 * with the decay c that acts on weights directly. Each element comes with a bound of the error that
 * the optimizer's own roundings leave in u.
 *
 * A direction is made from the state that was stored after the step, so it holds whatever gradient
 * came in. */
#ifndef TWINSTEP_READBACK_STEP_DIRECTION_H
#define TWINSTEP_READBACK_STEP_DIRECTION_H

#include "readback/observed_step.h"

/* How the optimizer's kernel computed, which shows where states are narrow. */
enum direction_arithmetic {
    DIRECTION_WIDE = 0, /* in f32 or wider, however it was rounded: a bound that holds for all */
    DIRECTION_TORCH     /* operation by operation in the tensor's dtype, as torch's loops do */
};

/* Is told how many elements have been read so far; one that is looked at again counts again. */
typedef void direction_tell(void *context, uint64_t elements);

/* One block of a tensor, and room for what is read from it. */
struct direction_block {
    size_t count;
    uint64_t read;        /* elements in all blocks so far */
    direction_tell *tell; /* NULL: nobody wants to know */
    void *context;
    double old[READBACK_BLOCK], now[READBACK_BLOCK];
    double u[READBACK_BLOCK], error[READBACK_BLOCK]; /* |true u - u| <= error */
    double state[3][READBACK_BLOCK];                 /* what u is made from */
};

/* Reads elements first ... first + count - 1 and computes their direction, with Adam's count at
 * `updates`. Where the direction is not known, u and error are NaN: SGD without momentum,
 * Adafactor, and rules that need the state before where it was not saved. */
void direction_fill(const struct step_group *group, const struct step_tensor *tensor,
                    enum direction_arithmetic arithmetic, double updates, uint64_t first,
                    size_t count, struct direction_block *out);

/* Counts a block that was read, and tells it. */
void direction_passed(struct direction_block *block);

/* Whether direction_fill knows this tensor's direction; else the reason, in the user's words. */
int direction_is_known(const struct step_group *group, const struct step_tensor *tensor,
                       const char **out_why);

/* The share s(t) = sqrt(1 - beta2^t) / (1 - beta1^t) by which Adam's count sizes a step. */
double direction_size(const struct step_group *group, double updates);

#endif
