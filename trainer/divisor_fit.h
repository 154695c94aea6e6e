/* SPDX-License-Identifier: Apache-2.0
 * Fits the gradient that the optimizer took in by given gradients, with least squares: by how much
 * each of them went into it. Private to trainer/divisor.c. */
#ifndef TWINSTEP_TRAINER_DIVISOR_FIT_H
#define TWINSTEP_TRAINER_DIVISOR_FIT_H

#include "trainer/run.h"

struct divisor_fit {
    const struct run *run;       /* the run, right after its update */
    unsigned char *const *plain; /* (count) of all elements, packed, carriers of `dtype` */
    enum dtype dtype;
    uint32_t count;
    double *weight; /* (count) */
    double *error; /* (count) bound of the weight's error: what rounding may have done to the stored
                      values, added up in the sense that hurts most; and the whole rest, as if it
                      had the shape that hurts most */
    double rest;   /* |taken - sum of weight times plain| / |taken| */
    const char *untestable;
};

/* Fills weight, error and rest, which live in `arena`; or sets `untestable` to the reason why the
 * gradient cannot be fitted. */
TWINSTEP_MUST_USE enum status divisor_fit(struct divisor_fit *fit, struct arena *arena);

#endif
