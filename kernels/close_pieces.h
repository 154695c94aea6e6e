/* SPDX-License-Identifier: Apache-2.0
 * Closes gradients in this program's memory (law 4) by pieces, and measures each piece while it is
 * in the caches of the thread that closed it.
 *
 * A piece is as long as a leaf of a digest, which is a whole number of blocks of law 2, so every
 * leaf and every block lies in one piece, and neither threads nor pieces move a bit. */
#ifndef TWINSTEP_KERNELS_CLOSE_PIECES_H
#define TWINSTEP_KERNELS_CLOSE_PIECES_H

#include "kernels/leaf_hashes.h"
#include "kernels/op.h"
#include "kernels/squares.h"

struct close_pieces_tensor {
    struct close_args close;
    size_t accumulator;                    /* bytes of an accumulator */
    const struct leaf_hashes_args *hashes; /* of the closed gradient; NULL: none are made */
    const struct squares_args *squares;    /* of the closed gradient; NULL: none are summed */
};

/* Closes `count` tensors by the op `ops->close`, on the threads of the call. No call of its op is
 * order_free, since an exact sum is not closed number by number. */
void close_pieces(const struct op_table *ops, const struct op_call *call,
                  const struct close_pieces_tensor *tensors, size_t count);

#endif
