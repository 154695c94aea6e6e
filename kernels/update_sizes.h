/* SPDX-License-Identifier: Apache-2.0
 * Update sizes: how far a tensor moved in an update (trainer/measure.h), by blocks of law 2, made
 * where the tensor's memory is.
 *
 * A block's sums are law 2's, in f64; whoever asked joins the blocks. No bit of a training depends
 * on them. Invariant: they are the sums that the host makes (kernels/evidence.h). */
#ifndef TWINSTEP_KERNELS_UPDATE_SIZES_H
#define TWINSTEP_KERNELS_UPDATE_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define UPDATE_SIZES_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */

struct update_sizes_block {
    double update;    /* sum of (now - before)^2 */
    double norm;      /* sum of now^2 */
    double travel;    /* sum of (now - start)^2 */
    uint64_t changed; /* numbers whose bits are not those of `before` */
};

struct update_sizes_args {
    enum dtype dtype;
    size_t count;                      /* numbers */
    const void *now, *before, *start;  /* (count) carriers of dtype */
    struct update_sizes_block *blocks; /* (update_sizes_blocks(count)); written */
};

static inline size_t update_sizes_blocks(size_t count) {
    return (count + UPDATE_SIZES_BLOCK - 1) / UPDATE_SIZES_BLOCK;
}

#endif
