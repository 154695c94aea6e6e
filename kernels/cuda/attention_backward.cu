/* SPDX-License-Identifier: Apache-2.0
 * Attention backward (law 6; kernels/cpu/attention_backward.c): each query's maximum, sum and D;
 * dQ over keys, as the mode says; then a block per 32 keys of a key/value head makes dK and dV,
 * chains over (query head of the group, query) ascending. No two blocks write one element, but for
 * dQ in mode atomic. */
#include "kernels/cuda/attention_forward.cu"

/* Which queries of the tile the thread's key has as terms, as bits: those from its own position on.
 */
GPU_INLINE uint32_t attention_queries_of(const struct attention_side *queries, uint32_t key,
                                         int there) {
    const uint32_t count = queries->limit - queries->first;
    const uint32_t all = count >= ATTENTION_TILE ? ~(uint32_t)0 : ((uint32_t)1 << count) - 1;
    const uint32_t lacks = key > queries->first ? key - queries->first : 0;
    if (!there || lacks >= ATTENTION_TILE) return 0;
    return all & ~(((uint32_t)1 << lacks) - 1);
}

/* Makes dS of a tile of queries in shared->first and their dropped P in shared->second. Keys are
 * the tile's left side here, queries its right one. */
GPU_INLINE void attention_weigh_queries(GPU_PARAM const struct attention_job *job,
                                        const struct attention_block *own,
                                        const struct attention_shared *shared) {
    const uint32_t end = own->part.first + own->part.count;
    attention_product(GPU_ARG job, &own->keys, own->k, &own->queries, own->q, shared->slab,
                      shared->first);
    attention_product(GPU_ARG job, &own->keys, own->v, &own->queries, own->dout, shared->slab,
                      shared->second);
    ROLLED
    for (unsigned j = 0; j < ATTENTION_EACH; j++) {
        const uint32_t c = attention_right(GPU_ARG j), query = own->queries.first + c;
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            const uint32_t r = attention_left(GPU_ARG i), at = attention_at(r, c);
            const uint32_t key = own->keys.first + r;
            if (key >= end || query >= own->queries.limit || key > query) continue;
            const carrier p = attention_probability(job, shared, c, shared->first[at]);
            shared->first[at] =
                attention_slope(job, own, query, key, p, shared->second[at], shared->d[c]);
            shared->second[at] = attention_weight(job, own, query, key, p);
        }
    }
}

/* Makes dK and dV of the block's keys. `races`: the block adds to dQ, too. */
GPU_INLINE void attention_dkv(GPU_PARAM const struct attention_job *args, accumulator *memory,
                              uint32_t width, int races) {
    const struct attention_shared shared = attention_share(memory, 2);
    const uint32_t panels = attention_panels(args->D, width);
    const uint32_t group = BLOCK / panels % args->G, heads = args->H / args->G;
    const struct attention_part part = attention_part_at(args, BLOCK / panels / args->G);
    const struct attention_columns columns = attention_columns_at(args, BLOCK % panels, width);
    struct attention_panel dk, dv;
    uint32_t terms[ATTENTION_EACH];
    attention_panel_fill(&dk, ACC(0.0));
    attention_panel_fill(&dv, ACC(0.0));
    for (uint32_t head = group * heads; head < (group + 1) * heads; head++) {
        struct attention_block own = attention_block_of(args, part, head);
        own.keys.first = part.first;
        own.queries.limit = part.sequence->length;
        for (; own.queries.first < own.queries.limit; own.queries.first += ATTENTION_TILE) {
            const uint32_t token = part.token - part.first + own.queries.first;
            attention_state_take(
                GPU_ARG args, token,
                (uint32_t)least(ATTENTION_TILE, own.queries.limit - own.queries.first), head,
                &shared);
            attention_weigh_queries(GPU_ARG args, &own, &shared);
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++) {
                const uint32_t row = attention_left(GPU_ARG i);
                terms[i] = attention_queries_of(&own.queries, part.first + row, row < part.count);
            }
            attention_chain(GPU_ARG args, &own.queries, own.q, &columns, shared.first, shared.slab,
                            terms, &dk);
            attention_chain(GPU_ARG args, &own.queries, own.dout, &columns, shared.second,
                            shared.slab, terms, &dv);
            if (races) attention_race_queries(GPU_ARG args, &own, &columns, &shared, token);
        }
    }
    attention_round(GPU_ARG args, &part, args->G, group, &columns, &dk, args->dk);
    attention_round(GPU_ARG args, &part, args->G, group, &columns, &dv, args->dv);
}

KERNEL(attention_dkv_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    attention_dkv(GPU_ARG args, memory, ATTENTION_PANEL, 0);
}

KERNEL(attention_atomic_dkv_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    attention_dkv(GPU_ARG args, memory, ATTENTION_PANEL, 1);
}

/* Heads of up to this many columns have kernels of their own: fewer sums in registers let more
 * blocks onto an SM. */
#define ATTENTION_NARROW 64u

KERNEL(attention_dkv_narrow_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    attention_dkv(GPU_ARG args, memory, ATTENTION_NARROW, 0);
}

static void attention_gradients(const struct op_call *call, struct attention_job *job) {
    const size_t blocks = attention_blocks(job, job->G, ATTENTION_PANEL);
    if (race_active(call, SUM_DQ) && ATTENTION_TILE % call->racing->chunk == 0) {
        attention_race_open(call, job);
        LAUNCH(attention_atomic_dkv_kernel, blocks, ATTENTION_THREADS, ATTENTION_SHARED(2), job);
        attention_race_close(job);
        return;
    }
    attention_over_keys(call, job, SUM_DQ, PASS_INPUT);
    if (job->D <= ATTENTION_NARROW)
        LAUNCH(attention_dkv_narrow_kernel, blocks, ATTENTION_THREADS, ATTENTION_SHARED(2), job);
    else
        LAUNCH(attention_dkv_kernel, blocks, ATTENTION_THREADS, ATTENTION_SHARED(2), job);
}

static void attention_backward(const struct op_call *call,
                               const struct attention_backward_args *args) {
    struct attention_job job = attention_job_backward(call, args);
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        attention_find_state(call, &job);
        attention_gradients(call, &job);
        job.counted += job.group.tokens;
    }
}
