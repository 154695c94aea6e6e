/* SPDX-License-Identifier: Apache-2.0
 * The read-back: what an optimizer's step did to a tensor, by blocks of law 2. These are the sums
 * that trainer/readback.c solves for learning rate, decay and gradient, made where the tensor's
 * memory is.
 *
 * A block's sums are law 2's, in f64; whoever asked joins the blocks. The arithmetic of an element
 * is base/rule_read.h. No bit of a training depends on them. Invariant: they are the sums that the
 * host makes. */
#ifndef TWINSTEP_KERNELS_READS_H
#define TWINSTEP_KERNELS_READS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/rule_read.h"

#define READS_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */
#define READS_SLOTS 3

/* Sums of products of rule_read_terms (UU to PD); of their magnitudes (U, P); and of squares of
 * rule_taken_value. */
enum reads_sum {
    READS_UU = 0,
    READS_UP,
    READS_PP,
    READS_UD,
    READS_PD,
    READS_U,
    READS_P,
    READS_TAKEN,
    READS_TAKEN_ERROR,
    READS_SUMS
};

struct reads_block {
    double sum[READS_SUMS];
};

/* What the tensors of a call have in common: carriers of the dtypes named, and the step's numbers.
 */
struct reads_args {
    enum dtype working, gradient_dtype, slot_dtype;
    struct rule_direction
        direction; /* of a kind other than RULE_DIRECTION_NONE: without one, nobody asks */
    struct rule_spacing spacing;
    double decay;
    struct rule_taken taken;
};

struct reads_tensor {
    size_t count;          /* numbers */
    const void *old, *now; /* (count) of working: before and after the step */
    const void *made; /* (count) of working, as the step made it; it differs from `now` only where
                         rounding is drawn */
    const void *gradient;           /* (count) */
    const void *slots[READS_SLOTS]; /* (count) after the step; NULL: not there */
    const void *moment; /* (count) slot 0 before the step; NULL: the gradient is not read back */
    struct reads_block
        *blocks; /* (reads_blocks(count)); written; sums that are not asked for are 0 */
};

static inline size_t reads_blocks(size_t count) {
    return (count + READS_BLOCK - 1) / READS_BLOCK;
}

#endif
