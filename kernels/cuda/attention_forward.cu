/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): out = round(P v), a chain over keys. A block has one query of one
 * head. */
#include "kernels/cuda/attention_scores.h"

KERNEL(attention_forward_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(GPU_ARG memory, args->D);
    const struct place place = group_place(&args->group, BLOCK / args->H);
    const struct attention_query own = attention_query_at(args, &place, BLOCK % args->H);
    const uint32_t keys = place.position + 1;
    struct attention_row row;
    row.maximum = attention_maximum(GPU_ARG & own, &shared);
    row.sum = attention_exp_sum(GPU_ARG & own, &shared, row.maximum);
    row.d = 0;
    for (uint32_t d = THREAD; d < args->D; d += THREADS)
        shared.sum[d] = 0;
    for (uint32_t first = 0; first < keys; first += THREADS) {
        const uint32_t key = first + THREAD;
        if (key < keys) {
            const accumulator p = attention_probability(&own, key, &row);
            shared.own[THREAD] = attention_weight(&own, key, p);
        }
        BARRIER();
        attention_chain(GPU_ARG & shared, args, own.v, own.k_line, first, keys);
        BARRIER();
    }
    const size_t at = (size_t)(own.q - args->q);
    for (uint32_t d = THREAD; d < args->D; d += THREADS)
        args->out[at + d] = carrier_round(shared.sum[d], args->dtype);
}

static void attention_forward(const struct op_call *call,
                              const struct attention_forward_args *args) {
    struct attention_job job = attention_job_of(call, args->dropout, args->scale);
    const unsigned threads = attention_threads(args->D);
    job.H = args->H;
    job.G = args->G;
    job.D = args->D;
    job.q = (const carrier *)args->q;
    job.k = (const carrier *)args->k;
    job.v = (const carrier *)args->v;
    job.out = (carrier *)args->out;
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        LAUNCH(attention_forward_kernel, (size_t)job.group.tokens * args->H, threads,
               attention_shared_bytes(threads, args->D), &job);
    }
}
