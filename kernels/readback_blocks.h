/* SPDX-License-Identifier: Apache-2.0
 * The read-back: what an optimizer's step did to a tensor, by blocks of law 2. These are the sums
 * that trainer/readback.c solves for learning rate, decay and gradient, made where the tensor's
 * memory is.
 *
 * A block's sums are law 2's, in f64; whoever asked joins the blocks. The arithmetic of an element
 * is base/rule_read.h. No bit of a training depends on them. Invariant: they are the sums that the
 * host makes. */
#ifndef TWINSTEP_KERNELS_READBACK_BLOCKS_H
#define TWINSTEP_KERNELS_READBACK_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/rule_read.h"

#define READBACK_BLOCKS_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */
#define READBACK_BLOCKS_SLOTS 3

/* Sums of products of rule_read_terms (UU to PD); of their magnitudes (U, P); counts of elements
 * that were meant to move, and of those that did not; and sums of squares of rule_taken_value. */
enum readback_blocks_sum {
    READBACK_BLOCKS_UU = 0,
    READBACK_BLOCKS_UP,
    READBACK_BLOCKS_PP,
    READBACK_BLOCKS_UD,
    READBACK_BLOCKS_PD,
    READBACK_BLOCKS_U,
    READBACK_BLOCKS_P,
    READBACK_BLOCKS_MEANT,
    READBACK_BLOCKS_LOST,
    READBACK_BLOCKS_TAKEN,
    READBACK_BLOCKS_TAKEN_ERROR,
    READBACK_BLOCKS_SUMS
};

struct readback_blocks_block {
    double sum[READBACK_BLOCKS_SUMS];
};

/* What the tensors of a call have in common: carriers of the dtypes named, and the step's numbers.
 */
struct readback_blocks_args {
    enum dtype working, gradient_dtype, slot_dtype;
    struct rule_direction
        direction; /* of a kind other than RULE_DIRECTION_NONE: without one, nobody asks */
    struct rule_spacing spacing;
    double decay;
    struct rule_taken taken;
};

struct readback_blocks_tensor {
    size_t count;          /* numbers */
    const void *old, *now; /* (count) of working: before and after the step */
    const void *made; /* (count) of working, as the step made it; it differs from `now` only where
                         rounding is drawn */
    const void *gradient;                     /* (count) */
    const void *slots[READBACK_BLOCKS_SLOTS]; /* (count) after the step; NULL: not there */
    const void *moment; /* (count) slot 0 before the step; NULL: the gradient is not read back */
    struct readback_blocks_block
        *blocks; /* (readback_blocks_blocks(count)); written; sums that are not asked for are 0 */
};

static inline size_t readback_blocks_blocks(size_t count) {
    return (count + READBACK_BLOCKS_BLOCK - 1) / READBACK_BLOCKS_BLOCK;
}

#endif
