/* SPDX-License-Identifier: Apache-2.0
 * The one solver of read-back: from sums over elements to the learning rate and the decay of a
 * step, each with a bound of its error from rounding. A training's own read-back
 * (trainer/readback.c) and that of other trainers' checkpoints (readback/rate.c) ask it. */
#ifndef TWINSTEP_OPTIM_READ_RATE_H
#define TWINSTEP_OPTIM_READ_RATE_H

#include "kernels/readback_blocks.h"

struct read_rate {
    double lr, lr_error;
    double shrink, shrink_error; /* c of new = old - lr u - c old */
    double decay, decay_error;   /* c / lr; NaN where lr may be 0 */
};

/* What a step's numbers may be off by, beside what the elements themselves bring along. */
struct read_rate_bounds {
    double half;   /* of the stored values, in ulp: 0.5 for one rounding; twice that where weights
                      with   decay are rounded twice (done here) */
    double unit;   /* of u, or of the LR, relative */
    double least;  /* of the LR, absolute */
    double shrink; /* of c, absolute */
};

/* Solves the normal equations of new - old = -lr u - c old, in which each element is measured in
 * units of its ulp (rule_read_terms). With `decayed` 0, c is 0 and lr the one unknown, but decay
 * and shrink are still those of two unknowns, as evidence that there is none. What cannot be told,
 * or has no bound, is NaN. */
void read_rate_solve(const struct readback_blocks_block *sums, int decayed,
                     const struct read_rate_bounds *bounds, struct read_rate *out);

#endif
