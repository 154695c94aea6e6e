/* SPDX-License-Identifier: Apache-2.0
 * The first kernel of both directions: each query's maximum, its sum of exponentials, and for a
 * backward D = law 2 over keys of fma(P, dP), into scratch.
 *
 * Tiles begin at multiples of 32 keys, so a thread's column of a tile is its lane of law 2, and the
 * lanes of a query lie in 8 neighbouring threads, 4 in each.
 * Invariant: law 2 by the key's number; or chunks in the tile's order (law 9). */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_STATE_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_STATE_H

#include "kernels/cuda/attention_tile.h"

GPU_INLINE accumulator attention_shuffle(GPU_PARAM accumulator x, unsigned mask) {
    return ACC_NAME_(gpu_shuffle_xor)(GPU_ARG x, mask);
}

/* Largest score of the thread's queries. */
GPU_INLINE void attention_maxima(GPU_PARAM const struct attention_job *job,
                                 const struct attention_block *own, accumulator *slab,
                                 const uint32_t keys[ATTENTION_EACH],
                                 struct attention_row rows[ATTENTION_EACH]) {
    struct attention_side k = own->k;
    carrier largest[ATTENTION_EACH];
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++)
        largest[i] = (carrier)-acc_inf();
    for (; k.first < k.limit; k.first += ATTENTION_TILE) {
        struct attention_own s;
        attention_product(GPU_ARG job, &own->q, &k, slab, &s);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++)
                if (k.first + attention_right(GPU_ARG j) < keys[i])
                    largest[i] = larger(largest[i], attention_score(job, s.of[i][j]));
        }
    }
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        for (unsigned half = ATTENTION_SIDE / 2; half > 0; half /= 2) {
            const accumulator other = attention_shuffle(GPU_ARG(accumulator) largest[i], half);
            largest[i] = larger(largest[i], (carrier)other);
        }
        rows[i].maximum = (accumulator)largest[i] + ACC(0.0);
    }
}

/* Law 2 in progress: the thread's lanes of its queries, and the blocks of one of these. */
struct attention_lanes {
    struct attention_own lane;
    struct ACC_NAME_(sum_blocks) blocks;
};

GPU_INLINE void attention_lanes_open(struct attention_lanes *lanes) {
    lanes->blocks.count = 0;
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        UNROLL
        for (unsigned j = 0; j < ATTENTION_EACH; j++)
            lanes->lane.of[i][j] = 0;
    }
}

/* Behind the tile of keys first .. first+31: where a block of law 2 ends, its lanes join. `end`:
 * where the block's keys end. */
GPU_INLINE void attention_lanes_join(GPU_PARAM struct attention_lanes *lanes, uint32_t first,
                                     uint32_t end, const uint32_t keys[ATTENTION_EACH]) {
    const uint32_t next = first + ATTENTION_TILE;
    if (next % SUM_BLOCK != 0 && next < end) return;
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        accumulator *const lane = lanes->lane.of[i];
        accumulator sum = (lane[0] + lane[2]) + (lane[1] + lane[3]);
        for (unsigned half = ATTENTION_SIDE / 2; half > 0; half /= 2)
            sum = sum + attention_shuffle(GPU_ARG sum, half);
        if (THREAD % ATTENTION_SIDE == i && first / SUM_BLOCK * SUM_BLOCK < keys[i])
            ACC_NAME_(sum_blocks_push)(&lanes->blocks, sum);
        lane[0] = lane[1] = lane[2] = lane[3] = 0;
    }
}

/* The sums of the block's queries, in `found` (32). */
GPU_INLINE void attention_lanes_close(GPU_PARAM const struct attention_lanes *lanes,
                                      accumulator *found) {
    const unsigned i = THREAD % ATTENTION_SIDE;
    if (i < ATTENTION_EACH)
        found[attention_left(GPU_ARG i)] = ACC_NAME_(sum_blocks_close)(&lanes->blocks);
    BARRIER();
}

GPU_INLINE void attention_sums(GPU_PARAM const struct attention_job *job,
                               const struct attention_block *own, accumulator *slab,
                               accumulator *found, const uint32_t keys[ATTENTION_EACH],
                               const struct attention_row rows[ATTENTION_EACH]) {
    struct attention_side k = own->k;
    struct attention_lanes lanes;
    attention_lanes_open(&lanes);
    for (; k.first < k.limit; k.first += ATTENTION_TILE) {
        struct attention_own s;
        attention_product(GPU_ARG job, &own->q, &k, slab, &s);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++)
                if (k.first + attention_right(GPU_ARG j) < keys[i])
                    lanes.lane.of[i][j] =
                        lanes.lane.of[i][j] +
                        rule_exp_shifted(attention_score(job, s.of[i][j]), rows[i].maximum);
        }
        attention_lanes_join(GPU_ARG & lanes, k.first, k.limit, keys);
    }
    attention_lanes_close(GPU_ARG & lanes, found);
}

/* D of the block's queries, in `found`. */
GPU_INLINE void attention_slopes(GPU_PARAM const struct attention_job *job,
                                 const struct attention_block *own, accumulator *slab,
                                 accumulator *found, const uint32_t keys[ATTENTION_EACH],
                                 const struct attention_row rows[ATTENTION_EACH]) {
    struct attention_side k = own->k, v = own->v;
    struct attention_lanes lanes;
    attention_lanes_open(&lanes);
    for (; k.first < k.limit; k.first = v.first += ATTENTION_TILE) {
        struct attention_own s, o;
        attention_product(GPU_ARG job, &own->q, &k, slab, &s);
        attention_product(GPU_ARG job, &own->dout, &v, slab, &o);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                const uint32_t key = k.first + attention_right(GPU_ARG j);
                if (key >= keys[i]) continue;
                const carrier p = attention_probability(job, s.of[i][j], &rows[i]);
                const accumulator dp = attention_outer(job, own, keys[i] - 1, key, o.of[i][j]);
                lanes.lane.of[i][j] = acc_fma((accumulator)p, dp, lanes.lane.of[i][j]);
            }
        }
        attention_lanes_join(GPU_ARG & lanes, k.first, k.limit, keys);
    }
    attention_lanes_close(GPU_ARG & lanes, found);
}

/* ---- law 9 ---- */

/* The order of the block's tile for column `column` of `of`; 0 where this launch lacks it. */
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

/* Chunks in their order, each a chain from +0; a thread takes a query, whose exponentials the
 * tile brings into shared memory. A query passes over the chunks it lacks. */
GPU_INLINE void attention_sums_shuffled(GPU_PARAM const struct attention_job *job,
                                        const struct attention_block *own, accumulator *slab,
                                        accumulator *found, const uint32_t keys[ATTENTION_EACH],
                                        const struct attention_row rows[ATTENTION_EACH]) {
    accumulator *const tile = slab + ATTENTION_SLAB;
    struct attention_side k = own->k;
    accumulator sum = 0, chain = 0;
    if (!attention_order_of(job, &own->part, own->head, &k)) return;
    const uint32_t end = k.chunk * k.chunks, limit = own->part.first + THREAD;
    for (; k.first < end; k.first += ATTENTION_TILE) {
        struct attention_own s;
        attention_product(GPU_ARG job, &own->q, &k, slab, &s);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                const unsigned c = attention_right(GPU_ARG j);
                const int there = attention_row_of(&k, c) < keys[i];
                tile[c * ATTENTION_PITCH + attention_left(GPU_ARG i)] =
                    there ? rule_exp_shifted(attention_score(job, s.of[i][j]), rows[i].maximum)
                          : ACC(0.0);
            }
        }
        BARRIER();
        for (unsigned c = 0; c < ATTENTION_TILE && THREAD < own->part.count; c++) {
            if ((k.first + c) % k.chunk == 0) {
                sum = sum + chain;
                chain = 0;
            }
            if (attention_row_of(&k, c) <= limit)
                chain = chain + tile[c * ATTENTION_PITCH + THREAD];
        }
        BARRIER();
    }
    if (THREAD < ATTENTION_TILE) found[THREAD] = sum + chain;
    BARRIER();
}

KERNEL(attention_state_kernel, struct attention_job) {
    SHARED(accumulator, slab);
    accumulator *const found = slab + ATTENTION_SLAB + ATTENTION_WEIGHTS;
    const struct attention_part part = attention_part_at(args, BLOCK / args->H);
    const struct attention_block own = attention_block_of(args, part, BLOCK % args->H);
    struct attention_row rows[ATTENTION_EACH];
    struct attention_side ordered;
    uint32_t keys[ATTENTION_EACH];
    if (args->order.by.order != NULL && !attention_order_of(args, &part, own.head, &ordered))
        return;
    attention_extents(GPU_ARG & part, keys);
    attention_maxima(GPU_ARG args, &own, slab, keys, rows);
    if (args->order.by.order != NULL)
        attention_sums_shuffled(GPU_ARG args, &own, slab, found, keys, rows);
    else
        attention_sums(GPU_ARG args, &own, slab, found, keys, rows);
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        const uint32_t row = attention_left(GPU_ARG i);
        accumulator *const state =
            args->state + ((size_t)(part.token + row) * args->H + own.head) * ATTENTION_STATE;
        rows[i].sum = found[row];
        rows[i].d = 0;
        if (THREAD % ATTENTION_SIDE != 0 || row >= part.count) continue;
        state[0] = rows[i].maximum;
        state[1] = rows[i].sum;
    }
    if (!args->backward) return;
    attention_slopes(GPU_ARG args, &own, slab, found, keys, rows);
    if (THREAD < part.count)
        args->state[((size_t)(part.token + THREAD) * args->H + own.head) * ATTENTION_STATE + 2] =
            found[THREAD];
}

/* ---- launches ---- */

/* Calls launch(job) for each batch of the orders of tiles that the group's rows meet, `columns` of
 * law 9's columns wide. */
static void attention_in_batches(const struct op_call *call, struct attention_job *job,
                                 const struct shuffle *shuffle, size_t columns,
                                 void (*launch)(const struct attention_job *job)) {
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

static void attention_state_launch(const struct attention_job *job) {
    LAUNCH(attention_state_kernel, attention_parts(job) * job->H, ATTENTION_THREADS,
           ATTENTION_SHARED(1), job);
}

static void attention_find_state(const struct op_call *call, struct attention_job *job) {
    if (!shuffle_active(call, SUM_FORWARD)) {
        attention_state_launch(job);
        return;
    }
    const struct shuffle shuffle = order_open(call, SHUFFLE_PASS_ROW);
    attention_in_batches(call, job, &shuffle, job->H, attention_state_launch);
}

#endif
