/* SPDX-License-Identifier: Apache-2.0
 * Attention backward (law 6; kernels/cpu/attention_backward.c). Two kernels: a block per query and
 * head makes dQ, a chain over keys, and keeps the row's maximum, sum and D; then a block per key
 * and key/value head makes dK and dV, chains over (query head of the group, query) ascending. No
 * two blocks write one element. */
#include "kernels/cuda/attention_scores.h"

/* D = law 2 over keys of fma(P, dP). */
GPU_INLINE accumulator attention_d(GPU_PARAM const struct attention_query *own,
                                   const struct attention_shared *shared,
                                   const struct attention_row *row) {
    const uint32_t keys = own->place.position + 1;
    struct attention_lanes lanes;
    lanes.lane = 0;
    lanes.blocks.count = 0;
    for (uint32_t first = 0; first < keys; first += THREADS) {
        const uint32_t key = first + THREAD;
        if (key < keys) {
            shared->own[THREAD] = attention_probability(own, key, row);
            shared->other[THREAD] = attention_outer(own, key);
        }
        BARRIER();
        attention_lanes_take(GPU_ARG & lanes, shared, first, keys, 1);
        BARRIER();
    }
    return attention_lanes_close(GPU_ARG & lanes, shared);
}

KERNEL(attention_dq_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(GPU_ARG memory, args->D);
    const struct place place = group_place(&args->group, BLOCK / args->H);
    const struct attention_query own = attention_query_at(args, &place, BLOCK % args->H);
    const uint32_t keys = place.position + 1;
    struct attention_row row;
    row.maximum = attention_maximum(GPU_ARG & own, &shared);
    row.sum = attention_exp_sum(GPU_ARG & own, &shared, row.maximum);
    row.d = attention_d(GPU_ARG & own, &shared, &row);
    for (uint32_t d = THREAD; d < args->D; d += THREADS)
        shared.sum[d] = 0;
    for (uint32_t first = 0; first < keys; first += THREADS) {
        const uint32_t key = first + THREAD;
        if (key < keys) {
            const accumulator p = attention_probability(&own, key, &row);
            shared.own[THREAD] = attention_slope(&own, key, p, &row);
        }
        BARRIER();
        attention_chain(GPU_ARG & shared, args, own.k, own.k_line, first, keys);
        BARRIER();
    }
    const size_t at = (size_t)(own.q - args->q);
    for (uint32_t d = THREAD; d < args->D; d += THREADS)
        args->dq[at + d] = carrier_round(shared.sum[d], args->dtype);
    if (THREAD != 0) return;
    accumulator *const state = args->state + (size_t)BLOCK * 3;
    state[0] = row.maximum;
    state[1] = row.sum;
    state[2] = row.d;
}

KERNEL(attention_dkv_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(GPU_ARG memory, args->D);
    const uint32_t index = BLOCK / args->G, group = BLOCK % args->G, heads = args->H / args->G;
    const struct place key_place = group_place(&args->group, index);
    const uint32_t key = key_place.position, length = key_place.sequence->length;
    for (uint32_t d = THREAD; d < args->D; d += THREADS)
        shared.sum[d] = shared.sum2[d] = 0;
    for (uint32_t head = group * heads; head < (group + 1) * heads; head++) {
        for (uint32_t first = key; first < length; first += THREADS) {
            const uint32_t query = first + THREAD;
            struct place place = key_place;
            place.position = query;
            if (query < length) {
                const struct attention_query own = attention_query_at(args, &place, head);
                const accumulator *const state =
                    args->state + ((size_t)(index - key + query) * args->H + head) * 3;
                struct attention_row row;
                row.maximum = state[0];
                row.sum = state[1];
                row.d = state[2];
                const accumulator p = attention_probability(&own, key, &row);
                shared.own[THREAD] = attention_slope(&own, key, p, &row);
                shared.other[THREAD] = attention_weight(&own, key, p);
            }
            BARRIER();
            for (uint32_t d = THREAD; d < args->D; d += THREADS) {
                accumulator dk = shared.sum[d], dv = shared.sum2[d];
                for (uint32_t j = first; j < length && j < first + THREADS; j++) {
                    const size_t row = (size_t)key_place.sequence->row + j;
                    const size_t at = (row * args->H + head) * args->D + d;
                    dk = acc_fma(shared.own[j - first], operand(args->q[at], args->product), dk);
                    dv = acc_fma(shared.other[j - first], operand(args->dout[at], args->product),
                                 dv);
                }
                shared.sum[d] = dk;
                shared.sum2[d] = dv;
            }
            BARRIER();
        }
    }
    const size_t row = (size_t)key_place.sequence->row + key;
    const size_t at = (row * args->G + group) * args->D;
    for (uint32_t d = THREAD; d < args->D; d += THREADS) {
        args->dk[at + d] = carrier_round(shared.sum[d], args->dtype);
        args->dv[at + d] = carrier_round(shared.sum2[d], args->dtype);
    }
}

static void attention_backward(const struct op_call *call,
                               const struct attention_backward_args *args) {
    struct attention_job job = attention_job_of(call, args->dropout, args->scale);
    const unsigned threads = attention_threads(args->D);
    const size_t bytes = attention_shared_bytes(threads, args->D);
    job.H = args->H;
    job.G = args->G;
    job.D = args->D;
    job.q = (const carrier *)args->q;
    job.k = (const carrier *)args->k;
    job.v = (const carrier *)args->v;
    job.dout = (const carrier *)args->dout;
    job.dq = (carrier *)args->dq;
    job.dk = (carrier *)args->dk;
    job.dv = (carrier *)args->dv;
    job.state = (accumulator *)call->scratch;
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        LAUNCH(attention_dq_kernel, (size_t)job.group.tokens * args->H, threads, bytes, &job);
        LAUNCH(attention_dkv_kernel, (size_t)job.group.tokens * args->G, threads, bytes, &job);
    }
}
