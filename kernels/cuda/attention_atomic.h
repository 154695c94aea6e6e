/* SPDX-License-Identifier: Apache-2.0
 * Sums over keys in mode atomic (law 14): a block takes a span of keys of up to 32 queries of one
 * head, in chunks, each a chain from +0, and adds them to sums in scratch that the blocks of the
 * other keys add to. They are rounded when all are in.
 *
 * Spans of one tile of outputs go to neighbouring blocks, so that blocks meet. Where a tile of keys
 * has whole chunks, dQ takes FlashAttention's way: the blocks that make dK and dV add to it.
 * Invariant: every chunk is added exactly once; what races is their order alone. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_ATOMIC_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_ATOMIC_H

#include "kernels/cuda/attention_keys.h"
#include "kernels/cuda/attention_sums.h"

KERNEL(attention_atomic_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(memory, 2);
    const uint32_t panels = attention_panels(args->D, ATTENTION_PANEL);
    const uint32_t at = BLOCK / args->race.pieces;
    const struct attention_part part = attention_part_back(args, at / panels / args->H);
    struct attention_block own = attention_block_of(args, part, at / panels % args->H);
    const struct attention_columns columns =
        attention_columns_at(args, at % panels, ATTENTION_PANEL);
    const size_t first = (size_t)(BLOCK % args->race.pieces) * args->race.span;
    struct attention_target to;
    if (first >= own.keys.limit) return;
    own.keys.first = (uint32_t)first;
    to.held = NULL;
    to.line = (size_t)args->H * args->D;
    to.raced = args->sums + part.token * to.line + (size_t)own.head * args->D;
    attention_chunks(GPU_ARG args, &own, &columns, &shared,
                     (uint32_t)least(first + args->race.span, own.keys.limit), args->race.chunk,
                     &to);
}

/* Adds to dQ of a tile of queries what a tile of keys gives, whose dS stand in shared->first; 32
 * columns at a time. The tile of keys has whole chunks. `token` is the group's number of the tile's
 * first query. */
GPU_INLINE void attention_race_queries(GPU_PARAM const struct attention_job *job,
                                       const struct attention_block *own,
                                       const struct attention_columns *columns,
                                       const struct attention_shared *shared, uint32_t token) {
    const uint32_t chunk = job->race.chunk, keys = own->keys.limit - own->keys.first;
    const size_t line = (size_t)job->H * job->D;
    for (uint32_t column = 0; column < columns->count; column += ATTENTION_TILE) {
        accumulator chain[ATTENTION_EACH][ATTENTION_EACH] = {{ACC(0.0)}};
        for (unsigned i = THREAD; i < ATTENTION_TILE * ATTENTION_TILE; i += ATTENTION_THREADS) {
            const uint32_t t = i / ATTENTION_TILE, c = column + i % ATTENTION_TILE;
            const size_t from = (own->keys.first + t) * own->keys.line + columns->first;
            const int inside = t < keys && c < columns->count;
            shared->slab[i] =
                inside ? operand(stored_load(own->k[from + c]), job->product) : ACC(0.0);
        }
        BARRIER();
        for (unsigned t = 0; t < keys; t++) {
            const uint32_t key = own->keys.first + t;
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t r = attention_left(GPU_ARG i), query = own->queries.first + r;
                const accumulator slope = shared->first[attention_at(t, r)];
                if (key > query || query >= own->queries.limit) continue;
                UNROLL
                for (unsigned j = 0; j < ATTENTION_EACH; j++)
                    chain[i][j] = acc_fma(
                        slope, shared->slab[t * ATTENTION_TILE + attention_right(GPU_ARG j)],
                        chain[i][j]);
            }
            if ((t + 1) % chunk != 0 && t + 1 < keys) continue;
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t r = attention_left(GPU_ARG i), query = own->queries.first + r;
                accumulator *const to =
                    job->sums + (token + r) * line + (size_t)own->head * job->D + columns->first;
                if (key - t % chunk > query || query >= own->queries.limit) continue;
                UNROLL
                for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                    const uint32_t c = column + attention_right(GPU_ARG j);
                    if (c < columns->count) ACC_NAME_(gpu_atomic_add)
                    (GPU_ARG to + c, chain[i][j]);
                    chain[i][j] = 0;
                }
            }
        }
        BARRIER();
    }
}

/* Chooses the span of keys of a block: whole chunks, and at least a tile of keys. */
static void attention_race(const struct op_call *call, struct attention_job *job) {
    attention_race_open(call, job);
    job->race.span = (ATTENTION_TILE + job->race.chunk - 1) / job->race.chunk * job->race.chunk;
    job->race.pieces = (attention_longest(job) + job->race.span - 1) / job->race.span;
    LAUNCH(attention_atomic_kernel,
           attention_blocks(job, job->H, ATTENTION_PANEL) * job->race.pieces, ATTENTION_THREADS,
           ATTENTION_SHARED(2), job);
    attention_race_close(job);
}

#endif
