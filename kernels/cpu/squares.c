/* SPDX-License-Identifier: Apache-2.0
 * Appends the squares of `count` values of this carrier to `lanes`, a struct sum_lanes_* of law 2
 * in this accumulator. Gradient norms are made of it; optim/clip.c chooses the variant. It stands
 * here and not beside the optimizers' loops, because those have no variant f32_f64. */
#include "base/sum.h"
#include "base/variant.h"

void VARIANT(squares_append)(const void *values, size_t count, void *lanes);

void VARIANT(squares_append)(const void *values, size_t count, void *lanes) {
    const carrier *x = (const carrier *)values;
    PAIR(sum_lanes_append_products)((struct ACC_NAME_(sum_lanes) *)lanes, x, x, count);
}
