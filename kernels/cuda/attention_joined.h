/* SPDX-License-Identifier: Apache-2.0
 * Sums over keys in modes shaped and shuffled (kernels/cpu/attention.c): a block has the queries
 * of one head and those of its columns that lie in one tile of law 9.
 *
 * Invariant: the order is that of the tile, which counts rows and columns in the op's call. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_JOINED_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_JOINED_H

#include "kernels/cuda/attention_keys.h"

/* How many tiles of law 9 a head's columns may lie in, at most. */
TWINSTEP_HD uint32_t attention_pieces(uint32_t D) {
    return (D + 2 * SHUFFLE_TILE - 2) / SHUFFLE_TILE;
}

/* Those of a head's columns that lie in its `piece`-th tile; there may be none. */
GPU_INLINE struct attention_columns attention_piece_at(const struct attention_job *job,
                                                       uint32_t head, uint32_t piece) {
    const size_t start = (size_t)head * job->D, end = start + job->D;
    const size_t tile = (start / SHUFFLE_TILE + piece) * SHUFFLE_TILE;
    const size_t first = piece == 0 ? start : tile;
    const size_t last = least(tile + SHUFFLE_TILE, end);
    struct attention_columns columns;
    columns.first = (uint32_t)(first - start);
    columns.count = first < last ? (uint32_t)least(last - first, SHUFFLE_TILE) : 0;
    return columns;
}

KERNEL(attention_joined_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(memory, 2);
    const uint32_t pieces = attention_pieces(args->D);
    const struct attention_part part = attention_part_back(args, BLOCK / pieces / args->H);
    struct attention_block own = attention_block_of(args, part, BLOCK / pieces % args->H);
    const struct attention_columns columns = attention_piece_at(args, own.head, BLOCK % pieces);
    const size_t column = (size_t)own.head * args->D + columns.first;
    const int drawn = args->order.by.order != NULL;
    uint32_t end = own.keys.limit, chunk = args->chunk[part.number];
    struct attention_panel held;
    struct attention_target to;
    if (columns.count == 0) return;
    if (drawn) {
        if (!attention_order_of(args, &part, column, &own.keys)) return;
        chunk = own.keys.chunk;
        end = chunk * own.keys.chunks;
    }
    /* A sum that is not cut starts at -0, which leaves its only chunk as it is. */
    attention_panel_fill(&held, chunk != 0 ? ACC(0.0) : -ACC(0.0));
    to.held = &held;
    to.raced = NULL;
    to.line = 0;
    attention_chunks(GPU_ARG args, &own, &columns, &shared, end, chunk == 0 ? end : chunk, &to);
    attention_round(GPU_ARG args, &part, args->H, own.head, &columns, &held,
                    attention_over_keys_out(args));
}

static void attention_joined_launch(struct attention_job *job) {
    LAUNCH(attention_joined_kernel, attention_deal(job) * job->H * attention_pieces(job->D),
           ATTENTION_THREADS, ATTENTION_SHARED(2), job);
}

/* Sets the keys of a chunk in mode shaped for each sequence of the group; returns whether any sum
 * is cut. */
static int attention_cut(const struct op_call *call, struct attention_job *job) {
    const enum split_op op = job->backward ? SPLIT_DQ : SPLIT_ATTENTION;
    int cut = 0;
    for (uint32_t i = 0; i < job->group.count && call->splits != NULL; i++) {
        const uint32_t length = job->group.sequence[i].length;
        const uint32_t keys = call->length > length ? call->length : length;
        const struct split_shape shape = {keys, job->D, keys};
        const uint32_t parts = splits_parts(call->splits, op, shape);
        job->chunk[i] = parts > 1 ? order_split(parts, keys).chunk : 0;
        cut |= parts > 1;
    }
    return cut;
}

#endif
