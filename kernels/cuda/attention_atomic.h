/* SPDX-License-Identifier: Apache-2.0
 * Sums over keys in mode atomic (law 14): a block takes a span of keys of up to 32 queries of one
 * head, in chunks, each a chain from +0, and adds them to sums in scratch that the blocks of the
 * other keys add to. They are rounded when all are in.
 *
 * Spans of one tile of outputs go to neighbouring blocks, so that blocks meet.
 * Invariant: every chunk is added exactly once; what races is their order alone. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_ATOMIC_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_ATOMIC_H

#include "kernels/cuda/attention_keys.h"

KERNEL(attention_atomic_clear, struct attention_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i < (size_t)args->group.tokens * args->H * args->D) args->sums[i] = ACC(0.0);
}

KERNEL(attention_atomic_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(memory, 2);
    const uint32_t panels = attention_panels(args->D), at = BLOCK / args->race.pieces;
    const struct attention_part part = attention_part_at(args, at / panels / args->H);
    struct attention_block own = attention_block_of(args, part, at / panels % args->H);
    const struct attention_columns columns = attention_columns_at(args, at % panels);
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

KERNEL(attention_atomic_round, struct attention_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, line = (size_t)args->H * args->D;
    if (i >= args->group.tokens * line) return;
    const struct place place = group_place(&args->group, (uint32_t)(i / line));
    const size_t row = (size_t)place.sequence->row + place.position;
    attention_over_keys_out(args)[row * line + i % line] =
        carrier_round(args->sums[i], args->dtype);
}

/* Spans of whole chunks, of a tile's keys at least. */
static void attention_race(const struct op_call *call, struct attention_job *job) {
    const size_t numbers = (size_t)job->group.tokens * job->H * job->D;
    const uint32_t longest = attention_longest(job);
    if (longest == 0) return;
    job->race.chunk = (uint32_t)least(call->racing->chunk, longest);
    job->race.span = (ATTENTION_TILE + job->race.chunk - 1) / job->race.chunk * job->race.chunk;
    job->race.pieces = (longest + job->race.span - 1) / job->race.span;
    job->sums = job->state + (size_t)job->group.tokens * job->H * ATTENTION_STATE;
    LAUNCH(attention_atomic_clear, element_blocks(numbers), ELEMENT_THREADS, 0, job);
    LAUNCH(attention_atomic_kernel,
           attention_parts(job) * job->H * attention_panels(job->D) * job->race.pieces,
           ATTENTION_THREADS, ATTENTION_SHARED(2), job);
    LAUNCH(attention_atomic_round, element_blocks(numbers), ELEMENT_THREADS, 0, job);
}

#endif
