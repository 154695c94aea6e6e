/* SPDX-License-Identifier: Apache-2.0
 * Sums over stored values and their differences, in f64 by law 2: norms, distances, inner products.
 *
 * These are measures for the evidence: no bit of a training depends on them. Inputs are carriers of
 * any two dtypes; conversions to f64 are exact. */
#ifndef TWINSTEP_KERNELS_DISTANCE_H
#define TWINSTEP_KERNELS_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* `count` values of one dtype; NULL values stand for zeros. */
struct span {
    const void *values;
    enum dtype dtype;
};

/* Returns the sum of (a - b)^2. */
double distance_squares(struct span a, struct span b, size_t count);

/* Returns the sum of (a - b) * (c - d). */
double distance_product(struct span a, struct span b, struct span c, struct span d, size_t count);

/* Returns how many values differ in their bits; both vectors have the same dtype. */
size_t distance_changed(const void *a, const void *b, enum dtype dtype, size_t count);

/* Returns the largest distance of two values in units in the last place of their dtype, or
 * INT64_MAX when one is NaN and the other is not. */
int64_t distance_ulp(const void *a, const void *b, enum dtype dtype, size_t count);

#endif
