/* SPDX-License-Identifier: Apache-2.0
 * Distances between a tensor of one run and the same tensor of another, by blocks of law 2: what is
 * recorded of two runs in lockstep (experiment/pair.h), made where both tensors' memory is.
 *
 * A block's sums are law 2's, in f64; whoever asked joins the blocks. No bit of a training depends
 * on them. Invariant: they are the sums that the host makes (kernels/evidence.h). */
#ifndef TWINSTEP_KERNELS_RUN_DISTANCES_H
#define TWINSTEP_KERNELS_RUN_DISTANCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define RUN_DISTANCES_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */

/* Sums of squares of x - y; of x - start; of x - x_old; of y - y_old; and the sum of the products
 * of the last two differences. */
enum run_distances_sum {
    RUN_DISTANCES_GAP = 0,
    RUN_DISTANCES_TRAVEL,
    RUN_DISTANCES_XX,
    RUN_DISTANCES_YY,
    RUN_DISTANCES_XY,
    RUN_DISTANCES_SUMS
};

struct run_distances_block {
    double sum[RUN_DISTANCES_SUMS];
    uint64_t changed; /* how many numbers have other bits in y; 0 where the dtypes differ */
    int64_t ulp; /* the largest distance in ulps (base/rule_ulp.h); 0 where the dtypes differ */
};

struct run_distances_args {
    enum dtype x_dtype, y_dtype;
    size_t count;                       /* numbers */
    const void *x, *x_old, *start;      /* (count) carriers of x_dtype */
    const void *y, *y_old;              /* (count) carriers of y_dtype */
    struct run_distances_block *blocks; /* (run_distances_blocks(count)); written */
};

static inline size_t run_distances_blocks(size_t count) {
    return (count + RUN_DISTANCES_BLOCK - 1) / RUN_DISTANCES_BLOCK;
}

#endif
