/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/close_pieces.h"

#include "kernels/evidence.h"

/* Numbers first .. first+count-1 of a tensor, on this thread. */
static void close_piece(const struct op_table *ops, const struct op_call *call,
                        const struct close_pieces_tensor *tensor, size_t first, size_t count) {
    struct close_args args = tensor->close;
    const struct form stored = form_carried(args.storage);
    args.count = count;
    args.gradient = form_place(args.gradient, stored, first);
    for (uint32_t use = 0; use < args.uses; use++)
        args.acc[use] = (const unsigned char *)args.acc[use] + first * tensor->accumulator;
    ops->close(call, &args);
    if (tensor->hashes != NULL) evidence_leaf_hashes_of(tensor->hashes, first, count, &ahead_none);
    if (tensor->squares != NULL) evidence_squares_of(tensor->squares, first, count);
}

void close_pieces(const struct op_table *ops, const struct op_call *call,
                  const struct close_pieces_tensor *tensors, size_t count) {
    struct op_call alone = *call;
    alone.threads = 1;
#pragma omp parallel num_threads(call->threads)
    for (size_t i = 0; i < count; i++) {
        const struct close_pieces_tensor *const tensor = &tensors[i];
        const size_t length = LEAFHASH_BLOCK / own_width(tensor->close.storage);
        const size_t total = tensor->close.count, pieces = (total + length - 1) / length;
#pragma omp for schedule(static) nowait
        for (size_t piece = 0; piece < pieces; piece++) {
            const size_t first = piece * length, left = total - first;
            close_piece(ops, &alone, tensor, first, left < length ? left : length);
        }
    }
}
