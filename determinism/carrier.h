/* SPDX-License-Identifier: Apache-2.0
 * Converts carriers (base/dtype.h) to the dtype's own bytes, little-endian and exactly, because
 * digests hash these bytes.
 *
 * Every NaN becomes the dtype's positive quiet NaN without payload (7fc00000, 7ff8000000000000,
 * 7fc0, 7e00; 7f in fp8). Nothing is rounded: a carrier that its dtype cannot hold is reported,
 * because it means that some operation forgot to round. All arithmetic is on integers. */
#ifndef TWINSTEP_DETERMINISM_CARRIER_H
#define TWINSTEP_DETERMINISM_CARRIER_H

#include <stddef.h>

#include "base/dtype.h"

/* Writes count * dtype_width(dtype) bytes. Returns the index of the first carrier that is not a
 * value of the dtype (then the bytes written are unspecified), or count if all are. The two areas
 * do not overlap, and neither needs alignment. */
size_t carrier_pack(enum dtype dtype, const void *carriers, size_t count, void *out_bytes);

/* The same for numbers of bf16 or f16 that lie in two bytes each (base/form.h): only NaN become
 * other bytes. */
void carrier_fold(enum dtype dtype, const void *values, size_t count, void *out_bytes);

#endif
