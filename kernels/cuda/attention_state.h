/* SPDX-License-Identifier: Apache-2.0
 * The first kernel of both directions: each query's maximum, its sum of exponentials, and for a
 * backward D = law 2 over keys of fma(P, dP), into scratch.
 *
 * Tiles begin at multiples of 32 keys, so a key's place in its tile is its lane of law 2, and the
 * lanes of a query lie in 8 neighbouring threads, 4 in each.
 * Invariant: law 2 by the key's number; or chunks in the tile's order (law 9). */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_STATE_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_STATE_H

#include <string.h>

#include "kernels/cuda/attention_tile.h"

GPU_INLINE accumulator attention_shuffle(GPU_PARAM accumulator x, unsigned mask) {
    return ACC_NAME_(gpu_shuffle_xor)(GPU_ARG x, mask);
}

/* Makes each query's largest score in shared->maximum. */
GPU_INLINE void attention_maxima(GPU_PARAM const struct attention_job *job,
                                 struct attention_block own,
                                 const struct attention_shared *shared) {
    struct attention_side *const keys = &own.keys;
    carrier largest[ATTENTION_EACH];
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++)
        largest[i] = (carrier)-acc_inf();
    for (; keys->first < keys->limit; keys->first += ATTENTION_TILE) {
        attention_scores(GPU_ARG job, &own, shared);
        ROLLED
        for (unsigned j = 0; j < ATTENTION_EACH; j++) {
            const uint32_t c = attention_right(GPU_ARG j);
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t r = attention_left(GPU_ARG i);
                const carrier score = attention_score(job, shared->first[attention_at(r, c)]);
                if (keys->first + c < attention_keys(&own.part, r))
                    largest[i] = larger(largest[i], score);
            }
        }
    }
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        for (unsigned half = ATTENTION_SIDE / 2; half > 0; half /= 2) {
            const accumulator other = attention_shuffle(GPU_ARG(accumulator) largest[i], half);
            largest[i] = larger(largest[i], (carrier)other);
        }
        if (THREAD % ATTENTION_SIDE == 0)
            shared->maximum[attention_left(GPU_ARG i)] = (accumulator)largest[i] + ACC(0.0);
    }
    BARRIER();
}

/* ---- law 2: the lanes of a pair of query and key modulo 32 stand in shared->third ---- */

GPU_INLINE void attention_lanes_open(GPU_PARAM const struct attention_shared *shared) {
    for (unsigned j = 0; j < ATTENTION_EACH; j++)
        for (unsigned i = 0; i < ATTENTION_EACH; i++)
            shared->third[attention_at(attention_left(GPU_ARG i), attention_right(GPU_ARG j))] = 0;
}

/* Joins the 32 lanes of a query's sum as law 2 does. Lanes l+16, l+8 and l+4 are other threads', so
 * they come by shuffles; l+2 and l+1 are the thread's own. */
GPU_INLINE accumulator attention_lanes_sum(GPU_PARAM const struct attention_shared *shared,
                                           uint32_t row) {
    accumulator lane[ATTENTION_EACH];
    UNROLL
    for (unsigned j = 0; j < ATTENTION_EACH; j++) {
        lane[j] = shared->third[attention_at(row, attention_right(GPU_ARG j))];
        for (unsigned half = ATTENTION_SIDE / 2; half > 0; half /= 2)
            lane[j] = lane[j] + attention_shuffle(GPU_ARG lane[j], half);
    }
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* Comes behind the tile of keys first .. first+31: where a block of law 2 ends, its lanes join.
 * `end` is where the block's keys end. Each thread has the blocks of one of its queries. */
GPU_INLINE void attention_lanes_join(GPU_PARAM const struct attention_part *part,
                                     const struct attention_shared *shared,
                                     struct ACC_NAME_(sum_blocks) * blocks, uint32_t first,
                                     uint32_t end) {
    const uint32_t next = first + ATTENTION_TILE;
    if (next % SUM_BLOCK != 0 && next < end) return;
    ROLLED
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        const uint32_t r = attention_left(GPU_ARG i);
        const accumulator sum = attention_lanes_sum(GPU_ARG shared, r);
        if (THREAD % ATTENTION_SIDE == i && first / SUM_BLOCK * SUM_BLOCK < attention_keys(part, r))
            ACC_NAME_(sum_blocks_push)(blocks, sum);
    }
    attention_lanes_open(GPU_ARG shared);
}

/* Closes the sums of the block's queries into `found` (32). */
GPU_INLINE void attention_lanes_close(GPU_PARAM const struct ACC_NAME_(sum_blocks) * blocks,
                                      accumulator *found) {
    const unsigned i = THREAD % ATTENTION_SIDE;
    if (i < ATTENTION_EACH) found[attention_left(GPU_ARG i)] = ACC_NAME_(sum_blocks_close)(blocks);
    BARRIER();
}

/* Makes each query's sum of exponentials in shared->sum, or its D in shared->d. */
GPU_INLINE void attention_sums(GPU_PARAM const struct attention_job *job,
                               struct attention_block own, const struct attention_shared *shared,
                               int slopes) {
    struct attention_side *const keys = &own.keys;
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    attention_lanes_open(GPU_ARG shared);
    for (; keys->first < keys->limit; keys->first += ATTENTION_TILE) {
        attention_scores(GPU_ARG job, &own, shared);
        if (slopes) attention_outers(GPU_ARG job, &own, shared);
        ROLLED
        for (unsigned j = 0; j < ATTENTION_EACH; j++) {
            const uint32_t c = attention_right(GPU_ARG j), key = keys->first + c;
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t r = attention_left(GPU_ARG i), at = attention_at(r, c);
                const uint32_t end = attention_keys(&own.part, r);
                if (key >= end) continue;
                if (slopes) {
                    const carrier p = attention_probability(job, shared, r, shared->first[at]);
                    const accumulator dp =
                        attention_outer(job, &own, end - 1, key, shared->second[at]);
                    shared->third[at] = acc_fma((accumulator)p, dp, shared->third[at]);
                } else {
                    shared->third[at] = shared->third[at] +
                                        attention_exponential(job, shared, r, shared->first[at]);
                }
            }
        }
        attention_lanes_join(GPU_ARG & own.part, shared, &blocks, keys->first, keys->limit);
    }
    attention_lanes_close(GPU_ARG & blocks, slopes ? shared->d : shared->sum);
}

/* Makes D of flash attention: law 2 over d of fma(dout, out). A warp takes a query at a time. */
GPU_INLINE void attention_deltas(GPU_PARAM const struct attention_job *job,
                                 const struct attention_block *own,
                                 const struct attention_shared *shared) {
    const struct stored *const stored = job->stored + (own->dout - job->dout);
    for (unsigned r = THREAD / GPU_WARP; r < own->part.count; r += ATTENTION_THREADS / GPU_WARP) {
        const size_t at = (size_t)(own->part.first + r) * own->queries.line;
        struct ACC_NAME_(sum_blocks) blocks;
        blocks.count = 0;
        for (size_t first = 0; first < job->D; first += SUM_BLOCK) {
            accumulator lane = 0;
            for (size_t d = first + THREAD % GPU_WARP; d < least(first + SUM_BLOCK, job->D);
                 d += GPU_WARP)
                lane = acc_fma((accumulator)stored_load(own->dout[at + d]),
                               (accumulator)stored_load(stored[at + d]), lane);
            ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
        }
        const accumulator sum = ACC_NAME_(sum_blocks_close)(&blocks);
        if (THREAD % GPU_WARP == 0) shared->d[r] = sum;
    }
    BARRIER();
}

/* ---- law 9 ---- */

/* Finds the order of the block's tile for column `column`; returns 0 where this launch lacks it. */
GPU_INLINE int attention_order_of(const struct attention_job *job,
                                  const struct attention_part *part, size_t column,
                                  struct attention_side *side) {
    const struct attention_order *const all = &job->order;
    const size_t row = (job->counted + part->token) / SHUFFLE_TILE;
    const size_t tile = row * all->columns + column / SHUFFLE_TILE - all->first;
    if (tile >= all->tiles) return 0;
    side->order = all->by.order + tile * all->by.chunks;
    side->chunk = all->by.chunk;
    side->chunks = all->by.chunks;
    return 1;
}

/* Makes shared->sum by law 9: chunks in their order, each a chain from +0. A thread takes a query,
 * whose exponentials stand in shared memory; a query passes over the chunks it lacks. */
GPU_INLINE void attention_sums_shuffled(GPU_PARAM const struct attention_job *job,
                                        struct attention_block own,
                                        const struct attention_shared *shared) {
    struct attention_side *const keys = &own.keys;
    accumulator sum = 0, chain = 0;
    if (!attention_order_of(job, &own.part, own.head, keys)) return;
    const uint32_t end = keys->chunk * keys->chunks, last = attention_keys(&own.part, THREAD);
    for (; keys->first < end; keys->first += ATTENTION_TILE) {
        attention_scores(GPU_ARG job, &own, shared);
        ROLLED
        for (unsigned j = 0; j < ATTENTION_EACH; j++) {
            const uint32_t c = attention_right(GPU_ARG j), key = attention_row_of(keys, c);
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t r = attention_left(GPU_ARG i), at = attention_at(r, c);
                if (key < attention_keys(&own.part, r))
                    shared->first[at] = attention_exponential(job, shared, r, shared->first[at]);
            }
        }
        BARRIER();
        for (unsigned c = 0; c < ATTENTION_TILE && last > 0; c++) {
            if ((keys->first + c) % keys->chunk == 0) {
                sum = sum + chain;
                chain = 0;
            }
            if (attention_row_of(keys, c) < last)
                chain = chain + shared->first[attention_at(THREAD, c)];
        }
        BARRIER();
    }
    if (THREAD < ATTENTION_TILE) shared->sum[THREAD] = sum + chain;
    BARRIER();
}

/* Where maximum and sum of the thread's query are kept: by physical rows. */
GPU_INLINE size_t attention_kept_at(GPU_PARAM const struct attention_job *job,
                                    const struct attention_part *part, uint32_t head) {
    const size_t row = (size_t)part->sequence->row + part->first + THREAD;
    return (row * job->H + head) * 2;
}

/* Brings what the forward kept of the part's queries into shared memory. */
GPU_INLINE void attention_kept_take(GPU_PARAM const struct attention_job *job,
                                    const struct attention_part *part, uint32_t head,
                                    const struct attention_shared *shared) {
    if (THREAD < part->count) {
        const accumulator *const kept = job->kept + attention_kept_at(GPU_ARG job, part, head);
        shared->maximum[THREAD] = kept[0];
        shared->sum[THREAD] = kept[1];
    }
    BARRIER();
}

KERNEL(attention_state_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(memory, 3);
    const struct attention_part part = attention_part_back(args, BLOCK / args->H);
    const struct attention_block own = attention_block_of(args, part, BLOCK % args->H);
    const int drawn = args->order.by.order != NULL;
    struct attention_side ordered;
    if (drawn && !attention_order_of(args, &part, own.head, &ordered)) return;
    if (args->kept != NULL) {
        attention_kept_take(GPU_ARG args, &part, own.head, &shared);
    } else {
        attention_maxima(GPU_ARG args, own, &shared);
        if (drawn)
            attention_sums_shuffled(GPU_ARG args, own, &shared);
        else
            attention_sums(GPU_ARG args, own, &shared, 0);
    }
    if (args->stored != NULL)
        attention_deltas(GPU_ARG args, &own, &shared);
    else if (args->backward)
        attention_sums(GPU_ARG args, own, &shared, 1);
    if (THREAD >= part.count) return;
    if (args->keeps != NULL) {
        accumulator *const keeps = args->keeps + attention_kept_at(GPU_ARG args, &part, own.head);
        keeps[0] = shared.maximum[THREAD];
        keeps[1] = shared.sum[THREAD];
    }
    accumulator *const state =
        args->state + ((size_t)(part.token + THREAD) * args->H + own.head) * ATTENTION_STATE;
    state[0] = args->stored == NULL ? shared.maximum[THREAD]
                                    : rule_log_sum_exp(shared.maximum[THREAD], shared.sum[THREAD]);
    state[1] = shared.sum[THREAD];
    if (args->backward) state[2] = shared.d[THREAD];
}

/* ---- launches ---- */

/* Calls launch(job) for each batch of the orders of tiles that the group's rows meet; the tiles are
 * `columns` of law 9's columns wide. */
static void attention_in_batches(const struct op_call *call, struct attention_job *job,
                                 const struct shuffle *shuffle, size_t columns,
                                 void (*launch)(struct attention_job *job)) {
    struct attention_order *const order = &job->order;
    const size_t across = (columns + SHUFFLE_TILE - 1) / SHUFFLE_TILE;
    const size_t first = job->counted / SHUFFLE_TILE * across;
    const size_t end =
        ((job->counted + job->group.tokens + SHUFFLE_TILE - 1) / SHUFFLE_TILE) * across;
    struct shuffle cut = *shuffle;
    const uint32_t longest = attention_longest(job);
    if (longest == 0) return;
    if (cut.chunk > longest) cut.chunk = longest;
    const uint32_t chunks = shuffle_chunks(&cut, longest);
    const size_t batch = order_batch(&cut, chunks, end - first);
    order->columns = across;
    job->aligned = 1;
    for (order->first = first; order->first < end; order->first += batch) {
        order->tiles = least(batch, end - order->first);
        order->by = order_draw(call, &cut, chunks, order->first, order->tiles, across);
        launch(job);
    }
    memset(order, 0, sizeof *order);
    job->aligned = 0;
}

static void attention_state_launch(struct attention_job *job) {
    LAUNCH(attention_state_kernel, attention_deal(job) * job->H, ATTENTION_THREADS,
           ATTENTION_SHARED(3), job);
}

static void attention_find_state(const struct op_call *call, struct attention_job *job) {
    if (job->kept != NULL || !shuffle_active(call, SUM_FORWARD)) {
        attention_state_launch(job);
        return;
    }
    const struct shuffle shuffle = order_open(call, SHUFFLE_PASS_ROW);
    attention_in_batches(call, job, &shuffle, job->H, attention_state_launch);
}

#endif
