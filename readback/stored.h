/* SPDX-License-Identifier: Apache-2.0
 * Numbers as a checkpoint stores them: little-endian, row-major, not aligned, read block by block
 * as f64, which holds each of them exactly.
 *
 * A stored number stands for an interval: all reals that round to it, ties to even. What an update
 * did is read from these intervals. Nothing here allocates, and no number is rounded. */
#ifndef TWINSTEP_READBACK_STORED_H
#define TWINSTEP_READBACK_STORED_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* The elements that are looked at together: SUM_BLOCK of base/sum.h. */
#define READBACK_BLOCK ((size_t)4096)

struct stored {
    enum dtype dtype;           /* f32, f64, bf16 or f16 */
    const unsigned char *bytes; /* NULL: there are none */
};

/* Writes elements first ... first + count - 1. Without bytes it writes zeros: that is what the
 * moments of an optimizer hold before its first step. */
void stored_get(const struct stored *numbers, uint64_t first, size_t count, double *out);

/* The smallest and the largest real that round to `value`, which is a finite number of `dtype`.
 * Below a power of two the interval is half as wide as above it. */
struct stored_interval {
    double low, high;
};
struct stored_interval stored_interval(enum dtype dtype, double value);

#endif
