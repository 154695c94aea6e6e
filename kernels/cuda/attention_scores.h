/* SPDX-License-Identifier: Apache-2.0
 * What attention's forward and backward share (law 6): a score, the softmax of one query's row, a
 * gradient of a probability. Nothing of the size of keys by queries is ever in memory: a block has
 * one query, or one key, and makes scores again where it needs them, THREADS at a time.
 *
 * Invariant: a score is one chain over d; sums over keys are law 2 by the key's number; chains over
 * keys or queries ascend. How many threads a block has moves nothing. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_SCORES_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_SCORES_H

#include "kernels/cuda/masks.h"

#define ATTENTION_THREADS 128u /* of a block, at most */
#define ATTENTION_WARPS (ATTENTION_THREADS / GPU_WARP)

struct attention_job {
    struct group group;
    uint32_t H, G, D;
    int drops;
    enum dtype dtype;          /* of the outputs */
    enum dtype score, product; /* call_score(), call_product() */
    carrier scale;
    const carrier *q, *k, *v, *dout;
    carrier *out, *dq, *dk, *dv;
    accumulator *state; /* backward: maximum, sum and D of each token of the group and head */
    struct dropout dropout;
};

/* One query of one head, as a kernel's thread sees it. */
struct attention_query {
    const struct attention_job *job;
    struct place place;
    uint32_t head;
    const carrier *q, *dout; /* its row, its head */
    const carrier *k, *v;    /* the sequence's first row, its key/value head */
    size_t k_line;
};

GPU_INLINE struct attention_query attention_query_at(const struct attention_job *job,
                                                     const struct place *place, uint32_t head) {
    struct attention_query own;
    const size_t row = place->sequence->row;
    const size_t at = ((row + place->position) * job->H + head) * job->D;
    own.job = job;
    own.place = *place;
    own.head = head;
    own.k_line = (size_t)job->G * job->D;
    own.q = job->q + at;
    own.dout = job->dout == NULL ? NULL : job->dout + at;
    const size_t from = row * own.k_line + (size_t)(head / (job->H / job->G)) * job->D;
    own.k = job->k + from;
    own.v = job->v + from;
    return own;
}

/* A chain over d. */
GPU_INLINE accumulator attention_dot(const struct attention_job *job, const carrier *a,
                                     const carrier *b) {
    accumulator sum = 0;
    for (uint32_t d = 0; d < job->D; d++)
        sum = acc_fma(operand(a[d], job->product), operand(b[d], job->product), sum);
    return sum;
}

/* s = round(round(q . k) * scale). */
GPU_INLINE carrier attention_score(const struct attention_query *own, uint32_t key) {
    const struct attention_job *const job = own->job;
    const accumulator sum = attention_dot(job, own->q, own->k + key * own->k_line);
    return rule_mul(carrier_round(sum, job->score), job->scale, job->score);
}

/* Kept ones scaled and rounded as scores, the others +0. */
GPU_INLINE accumulator attention_dropped(const struct attention_query *own, uint32_t key,
                                         accumulator x) {
    const struct attention_job *const job = own->job;
    if (!job->drops) return x;
    const int kept = mask_attention(&job->dropout, own->place.sequence, job->H, own->head,
                                    own->place.position, key);
    const accumulator scaled = x * mask_scale(&job->dropout);
    return kept ? (accumulator)carrier_round(scaled, job->score) : ACC(0.0);
}

/* dP of one key, dropped. */
GPU_INLINE accumulator attention_outer(const struct attention_query *own, uint32_t key) {
    const struct attention_job *const job = own->job;
    const accumulator sum = attention_dot(job, own->dout, own->v + key * own->k_line);
    return attention_dropped(own, key, (accumulator)carrier_round(sum, job->score));
}

/* What a row's softmax comes to, and D of its gradient. */
struct attention_row {
    accumulator maximum, sum, d;
};

GPU_INLINE accumulator attention_probability(const struct attention_query *own, uint32_t key,
                                             const struct attention_row *row) {
    const accumulator e = rule_exp_shifted(attention_score(own, key), row->maximum);
    return (accumulator)rule_prob(e, row->sum, own->job->score);
}

/* A probability as it meets v. */
GPU_INLINE accumulator attention_weight(const struct attention_query *own, uint32_t key,
                                        accumulator p) {
    return operand((carrier)attention_dropped(own, key, p), own->job->product);
}

/* dS of one key, as an operand. */
GPU_INLINE accumulator attention_slope(const struct attention_query *own, uint32_t key,
                                       accumulator p, const struct attention_row *row) {
    const struct attention_job *const job = own->job;
    const accumulator dp = attention_outer(own, key);
    const carrier ds = rule_prob_grad((carrier)p, (carrier)dp, row->d, job->scale, job->score);
    return operand(ds, job->product);
}

/* The block's shared memory: a number of each thread, and of a second kind; two sums of each
 * column; what a warp found. */
struct attention_shared {
    accumulator *own, *other; /* (THREADS) */
    accumulator *sum, *sum2;  /* (D) */
    accumulator *found;       /* (ATTENTION_WARPS) */
};

GPU_INLINE struct attention_shared attention_share(GPU_PARAM accumulator *memory, uint32_t D) {
    struct attention_shared shared;
    shared.own = memory;
    shared.other = memory + THREADS;
    shared.found = shared.other + THREADS;
    shared.sum = shared.found + ATTENTION_WARPS;
    shared.sum2 = shared.sum + D;
    return shared;
}

static inline size_t attention_shared_bytes(unsigned threads, uint32_t D) {
    return (2 * (size_t)threads + ATTENTION_WARPS + 2 * (size_t)D) * sizeof(accumulator);
}

/* As many threads as columns, about; a power of two of warps, so that blocks of law 2 end where a
 * round of the threads does. */
static inline unsigned attention_threads(uint32_t D) {
    unsigned threads = GPU_WARP;
    while (threads < D && threads < ATTENTION_THREADS)
        threads *= 2;
    return threads;
}

/* Largest score of the query's keys, for every thread of the block. */
GPU_INLINE accumulator attention_maximum(GPU_PARAM const struct attention_query *own,
                                         const struct attention_shared *shared) {
    carrier largest = (carrier)-acc_inf();
    for (uint32_t key = THREAD; key <= own->place.position; key += THREADS)
        largest = larger(largest, attention_score(own, key));
    largest = lanes_largest(GPU_ARG largest);
    if (THREAD % GPU_WARP == 0) shared->found[THREAD / GPU_WARP] = (accumulator)largest;
    BARRIER();
    for (unsigned w = 0; w < THREADS / GPU_WARP; w++)
        largest = larger(largest, (carrier)shared->found[w]);
    BARRIER();
    return (accumulator)largest + ACC(0.0);
}

/* Law 2 over the keys: the terms stand in shared->own, those of keys first .. first+THREADS-1; the
 * first warp takes them, or their products with shared->other. */
struct attention_lanes {
    accumulator lane;
    struct ACC_NAME_(sum_blocks) blocks;
};

GPU_INLINE void attention_lanes_take(GPU_PARAM struct attention_lanes *lanes,
                                     const struct attention_shared *shared, uint32_t first,
                                     uint32_t keys, int products) {
    if (THREAD >= GPU_WARP) return;
    for (unsigned i = THREAD; i < THREADS && first + i < keys; i += GPU_WARP)
        lanes->lane = products ? acc_fma(shared->own[i], shared->other[i], lanes->lane)
                               : lanes->lane + shared->own[i];
    if ((first + THREADS) % SUM_BLOCK != 0 && first + THREADS < keys) return;
    ACC_NAME_(sum_blocks_push)(&lanes->blocks, lanes_join(GPU_ARG lanes->lane));
    lanes->lane = 0;
}

/* The sum, for every thread of the block. */
GPU_INLINE accumulator attention_lanes_close(GPU_PARAM const struct attention_lanes *lanes,
                                             const struct attention_shared *shared) {
    if (THREAD == 0) shared->found[0] = ACC_NAME_(sum_blocks_close)(&lanes->blocks);
    BARRIER();
    const accumulator sum = shared->found[0];
    BARRIER();
    return sum;
}

GPU_INLINE accumulator attention_exp_sum(GPU_PARAM const struct attention_query *own,
                                         const struct attention_shared *shared,
                                         accumulator maximum) {
    const uint32_t keys = own->place.position + 1;
    struct attention_lanes lanes;
    lanes.lane = 0;
    lanes.blocks.count = 0;
    for (uint32_t first = 0; first < keys; first += THREADS) {
        const uint32_t key = first + THREAD;
        if (key < keys) shared->own[THREAD] = rule_exp_shifted(attention_score(own, key), maximum);
        BARRIER();
        attention_lanes_take(GPU_ARG & lanes, shared, first, keys, 0);
        BARRIER();
    }
    return attention_lanes_close(GPU_ARG & lanes, shared);
}

static inline struct attention_job attention_job_of(const struct op_call *call,
                                                    const struct dropout *dropout, double scale) {
    struct attention_job job = {.drops = dropout != NULL,
                                .dtype = call->compute,
                                .score = call_score(call),
                                .product = call_product(call),
                                .scale = (carrier)scale};
    if (dropout != NULL) job.dropout = *dropout;
    return job;
}

/* Every column's chain over the keys of one tile, weights in shared->own: sum = fma(weight, value,
 * sum). `values` has `line` elements per key. Barriers before and after are the caller's. */
GPU_INLINE void attention_chain(GPU_PARAM const struct attention_shared *shared,
                                const struct attention_job *args, const carrier *values,
                                size_t line, uint32_t first, uint32_t keys) {
    for (uint32_t d = THREAD; d < args->D; d += THREADS) {
        accumulator sum = shared->sum[d];
        for (uint32_t j = first; j < keys && j < first + THREADS; j++)
            sum =
                acc_fma(shared->own[j - first], operand(values[j * line + d], args->product), sum);
        shared->sum[d] = sum;
    }
}

#endif
