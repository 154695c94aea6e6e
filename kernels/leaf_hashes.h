/* SPDX-License-Identifier: Apache-2.0
 * The leaf hashes of a tensor (determinism/digest.h), made where its memory is.
 *
 * A backend makes them on its device, so that the host reads 384 bytes for every 64 KiB of the
 * tensor and hashes those. Invariant: the leaf hashes, and so the digest, are those that the host
 * makes of the same values. */
#ifndef TWINSTEP_KERNELS_LEAF_HASHES_H
#define TWINSTEP_KERNELS_LEAF_HASHES_H

#include <stddef.h>

#include "base/form.h"
#include "determinism/leafhash.h"
#include "determinism/own_bits.h"

struct leaf_hashes_args {
    struct form form;
    size_t count;                 /* numbers */
    const void *values;           /* (count) */
    struct leafhash_leaf *leaves; /* (leaf_hashes_count(form.dtype, count)); written */
};

static inline size_t leaf_hashes_count(enum dtype dtype, size_t count) {
    return leafhash_leaves(count * own_width(dtype));
}

#endif
