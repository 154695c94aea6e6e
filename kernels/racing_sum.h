/* SPDX-License-Identifier: Apache-2.0
 * A sum of f64 numbers that threads race on (law 14): the loss.
 *
 * Chunks of call->racing->chunk consecutive terms, each a chain from +0, are added to the total as
 * threads come.
 * Invariant: every chunk is added exactly once. */
#ifndef TWINSTEP_KERNELS_RACING_SUM_H
#define TWINSTEP_KERNELS_RACING_SUM_H

#include <stddef.h>

#include "kernels/op_call.h"

/* Whether the call's losses race. */
int race_loss(const struct op_call *call);

/* total + the sum of `count` terms. */
double race_sum(const struct op_call *call, double total, const double *terms, size_t count);

#endif
