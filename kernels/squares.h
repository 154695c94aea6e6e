/* SPDX-License-Identifier: Apache-2.0
 * Sums of squares by blocks of law 2, of one tensor or of several as one vector, made where the
 * gradients' memory is. Norms of law 7 are made of them (optim/clip.c).
 *
 * A block's sum is law 2's; whoever asked joins the blocks. Invariant: it is the sum that the host
 * makes. */
#ifndef TWINSTEP_KERNELS_SQUARES_H
#define TWINSTEP_KERNELS_SQUARES_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

#define SQUARES_BLOCK ((size_t)4096) /* numbers; SUM_BLOCK of base/sum.h */

/* A tensor that is a piece of a vector, in which it begins at number `first`. */
struct squares_piece {
    const void *values;
    size_t first;
};

struct squares_args {
    enum dtype storage; /* of the numbers, which lie in its carrier */
    int wide;           /* 1: sums are in f64; 0: in f32, of f32 numbers */
    size_t count;       /* numbers */
    const void *values; /* (count); NULL: the numbers are those of the pieces, by ascending `first`
                           from 0 */
    const struct squares_piece *piece;
    size_t pieces;
    double *blocks; /* (squares_blocks(count)); written */
};

static inline size_t squares_blocks(size_t count) {
    return (count + SQUARES_BLOCK - 1) / SQUARES_BLOCK;
}

#endif
