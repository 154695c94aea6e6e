/* SPDX-License-Identifier: Apache-2.0
 * From carriers (base/dtype.h) to a dtype's own bytes, little-endian, exactly: digests hash them.
 * Every NaN becomes the dtype's positive quiet NaN without payload (7fc00000, 7ff8000000000000,
 * 7fc0, 7e00; 7f in fp8). Nothing is rounded: a carrier that its dtype cannot hold is reported, because it
 * means that somebody forgot to round. Integer arithmetic only. */
#ifndef TWINSTEP_DETERMINISM_CARRIER_H
#define TWINSTEP_DETERMINISM_CARRIER_H

#include <stddef.h>

#include "base/dtype.h"

/* Writes count * dtype_width(dtype) bytes. Returns the index of the first carrier that is not a
 * value of the dtype, or count when all are; on a misfit the bytes are unspecified. The two areas
 * do not overlap; neither needs alignment. */
size_t carrier_pack(enum dtype dtype, const void *carriers, size_t count, void *out_bytes);

#endif
