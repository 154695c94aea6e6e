/* SPDX-License-Identifier: Apache-2.0
 * Appends squares of gradients to the lanes of a sum of law 2, in the accumulator of this variant;
 * optim/clip.c chooses the variant. */
#include "optim/cpu/range.h"

#include "base/sum.h"

void VARIANT(optim_squares)(const void *values, size_t count, void *lanes) {
    const carrier *x = (const carrier *)values;
    PAIR(sum_lanes_append_products)((struct ACC_NAME_(sum_lanes) *)lanes, x, x, count);
}
