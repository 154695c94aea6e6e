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

#include "base/form.h"
#include "base/rule_read.h"

#define READBACK_BLOCKS_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */
#define READBACK_BLOCKS_SLOTS 3

/* Sums of products of rule_read_terms (UU to PD); of their magnitudes (U, P); of the products of
 * these with the elements' slack (UE, PE; 0 where no element has one); counts of elements that were
 * meant to move, and of those that did not; and sums of squares of rule_taken_value. */
enum readback_blocks_sum {
    READBACK_BLOCKS_UU = 0,
    READBACK_BLOCKS_UP,
    READBACK_BLOCKS_PP,
    READBACK_BLOCKS_UD,
    READBACK_BLOCKS_PD,
    READBACK_BLOCKS_U,
    READBACK_BLOCKS_P,
    READBACK_BLOCKS_UE,
    READBACK_BLOCKS_PE,
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
    enum dtype working, gradient_dtype;
    struct form slot; /* of slots and of their copies */
    struct rule_direction
        direction; /* of a kind other than RULE_DIRECTION_NONE: without one, nobody asks */
    struct rule_spacing spacing;
    double decay;
    struct rule_taken taken;
};

struct readback_blocks_tensor {
    size_t count;                             /* numbers */
    const void *old, *now;                    /* (count) of working: before and after the step */
    const void *gradient;                     /* (count) */
    const void *slots[READBACK_BLOCKS_SLOTS]; /* (count) after the step; NULL: not there */
    const void *moment; /* (count) slot 0 before the step; NULL: the gradient is not read back, and
                           where a rule needs it, the step leaves slot 0 as it is */
    uint32_t stride, turn; /* which blocks the LR and the decay are read from
                              (readback_blocks_is_read); the gradient's norm needs all of them */
    struct readback_blocks_block
        *blocks; /* (readback_blocks_blocks(count)); written; sums that are not asked for are 0 */
};

TWINSTEP_HD size_t readback_blocks_blocks(size_t count) {
    return (count + READBACK_BLOCKS_BLOCK - 1) / READBACK_BLOCKS_BLOCK;
}

/* Returns the stride of a tensor whose blocks take turns: every block is read in one of so many
 * updates. The LR of a tensor stands in each of its numbers, so a sixteenth of a large tensor tells
 * it as all of it does; but 16 blocks (65,536 numbers) are read of every tensor that has them. */
TWINSTEP_HD uint32_t readback_blocks_stride(size_t blocks) {
    return blocks < 32 ? 1 : blocks < 256 ? (uint32_t)(blocks / 16) : 16;
}

/* Whether the sums of rule_read_terms are made of block `block`; where not, they are 0. A stride of
 * 0 or 1 reads all blocks. */
TWINSTEP_HD int readback_blocks_is_read(const struct readback_blocks_tensor *of, size_t block) {
    return of->stride <= 1 || block % of->stride == of->turn;
}

#endif
