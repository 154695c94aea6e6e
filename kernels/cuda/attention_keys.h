/* SPDX-License-Identifier: Apache-2.0
 * Sums over keys: P v of the forward, dS k of the backward. A block has up to 32 queries of one
 * head and a panel of columns; weights stand in a tile of shared memory, sums in registers.
 *
 * Invariant: an output is one chain over its keys ascending; or (modes shaped, shuffled) chunks of
 * keys, each a chain from +0, added to +0 in their order. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_KEYS_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_KEYS_H

#include "base/splits.h"
#include "kernels/cuda/attention_state.h"

/* The sums of the thread's rows, which are queries or keys: [group][row][column]. */
struct attention_panel {
    accumulator of[ATTENTION_GROUPS][ATTENTION_EACH][ATTENTION_EACH];
};

/* Columns first .. first+count-1 of a head. */
struct attention_columns {
    uint32_t first, count;
};

/* How many panels of `width` columns a head has; the last may be narrower. */
TWINSTEP_HD uint32_t attention_panels(uint32_t D, uint32_t width) {
    return (D + width - 1) / width;
}

GPU_INLINE struct attention_columns attention_columns_at(const struct attention_job *job,
                                                         uint32_t panel, uint32_t width) {
    struct attention_columns columns;
    columns.first = panel * width;
    columns.count = (uint32_t)least(width, job->D - columns.first);
    return columns;
}

GPU_INLINE void attention_panel_fill(struct attention_panel *panel, accumulator x) {
    UNROLL
    for (unsigned g = 0; g < ATTENTION_GROUPS; g++) {
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++)
                panel->of[g][i][j] = x;
        }
    }
}

/* Which rows i of the side's tile a thread's row has as terms, as bit i. */
GPU_INLINE uint32_t attention_terms_of(const struct attention_side *keys, uint32_t extent) {
    uint32_t terms = 0;
    if (keys->order == NULL) {
        const uint32_t count = extent > keys->first ? extent - keys->first : 0;
        return count >= ATTENTION_TILE ? ~(uint32_t)0 : ((uint32_t)1 << count) - 1;
    }
    for (unsigned t = 0; t < ATTENTION_TILE; t++)
        terms |= (uint32_t)(attention_row_of(keys, t) < extent) << t;
    return terms;
}

/* Makes the weights of a tile of keys in shared->first: dropped P, or dS. */
GPU_INLINE void attention_weigh(GPU_PARAM const struct attention_job *job,
                                const struct attention_block *own,
                                const struct attention_shared *shared) {
    attention_scores(GPU_ARG job, own, shared);
    if (job->backward) attention_outers(GPU_ARG job, own, shared);
    ROLLED
    for (unsigned j = 0; j < ATTENTION_EACH; j++) {
        const uint32_t c = attention_right(GPU_ARG j), key = attention_row_of(&own->keys, c);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            const uint32_t r = attention_left(GPU_ARG i), at = attention_at(r, c);
            const uint32_t end = attention_keys(&own->part, r);
            if (key >= end) continue;
            const carrier p = attention_probability(job, shared, r, shared->first[at]);
            shared->first[at] = job->backward ? attention_slope(job, own, end - 1, key, p,
                                                                shared->second[at], shared->d[r])
                                              : attention_weight(job, own, end - 1, key, p);
        }
    }
}

/* Which rows of the keys' tile the thread's queries have as terms, as bits. */
GPU_INLINE void attention_terms(GPU_PARAM const struct attention_block *own,
                                uint32_t terms[ATTENTION_EACH]) {
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++)
        terms[i] =
            attention_terms_of(&own->keys, attention_keys(&own->part, attention_left(GPU_ARG i)));
}

/* Loads rows half .. half+15 of the side's tile of x, the panel's columns, as operands. */
GPU_INLINE void attention_values(GPU_PARAM const struct attention_job *job,
                                 const struct attention_side *side, const struct stored *x,
                                 const struct attention_columns *columns, unsigned half,
                                 accumulator *slab) {
    for (unsigned t = THREAD / GPU_WARP; t < ATTENTION_DEPTH; t += ATTENTION_THREADS / GPU_WARP) {
        const uint32_t row = attention_row_of(side, half + t);
        const size_t from = row * side->line + columns->first;
        for (unsigned g = 0; g * ATTENTION_TILE < columns->count; g++) {
            const unsigned c = g * ATTENTION_TILE + THREAD % GPU_WARP;
            const int inside = row < side->limit && c < columns->count;
            slab[t * ATTENTION_PANEL + c] =
                inside ? operand(stored_load(x[from + c]), job->product) : ACC(0.0);
        }
    }
}

/* The thread's sums go on with term t of the tile. */
GPU_INLINE void attention_term(GPU_PARAM const struct attention_columns *columns,
                               const accumulator *tile, const accumulator *slab, unsigned t,
                               const uint32_t terms[ATTENTION_EACH],
                               struct attention_panel *panel) {
    accumulator weight[ATTENTION_EACH];
    if ((terms[0] | terms[1] | terms[2] | terms[3]) >> t == 0) return;
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++)
        weight[i] = tile[attention_at(attention_left(GPU_ARG i), t)];
    UNROLL
    for (unsigned g = 0; g < ATTENTION_GROUPS; g++) {
        accumulator value[ATTENTION_EACH];
        if (g * ATTENTION_TILE >= columns->count) continue;
        UNROLL
        for (unsigned j = 0; j < ATTENTION_EACH; j++)
            value[j] = slab[t % ATTENTION_DEPTH * ATTENTION_PANEL + g * ATTENTION_TILE +
                            attention_right(GPU_ARG j)];
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            if ((terms[i] >> t & 1) == 0) continue;
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++)
                panel->of[g][i][j] = acc_fma(weight[i], value[j], panel->of[g][i][j]);
        }
    }
}

/* The thread's sums go on with all terms of the tile, ascending. */
GPU_INLINE void attention_chain(GPU_PARAM const struct attention_job *job,
                                const struct attention_side *side, const struct stored *x,
                                const struct attention_columns *columns, const accumulator *tile,
                                accumulator *slab, const uint32_t terms[ATTENTION_EACH],
                                struct attention_panel *panel) {
    for (unsigned half = 0; half < ATTENTION_TILE; half += ATTENTION_DEPTH) {
        if (side->first + half >= side->limit) break;
        attention_values(GPU_ARG job, side, x, columns, half, slab);
        BARRIER();
        for (unsigned t = half; t < half + ATTENTION_DEPTH; t++)
            attention_term(GPU_ARG columns, tile, slab, t, terms, panel);
        BARRIER();
    }
}

/* Rounds the sums to rows of `out`, which lie as the side's do. */
GPU_INLINE void attention_round(GPU_PARAM const struct attention_job *job,
                                const struct attention_part *part, uint32_t heads, uint32_t head,
                                const struct attention_columns *columns,
                                const struct attention_panel *panel, struct stored *out) {
    UNROLL
    for (unsigned g = 0; g < ATTENTION_GROUPS; g++) {
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                const uint32_t i_row = attention_left(GPU_ARG i);
                const uint32_t column = g * ATTENTION_TILE + attention_right(GPU_ARG j);
                const size_t row = (size_t)part->sequence->row + part->first + i_row;
                if (i_row < part->count && column < columns->count)
                    out[(row * heads + head) * job->D + columns->first + column] =
                        stored_of(carrier_round(panel->of[g][i][j], job->dtype));
            }
        }
    }
}

/* How many blocks of threads all parts of `heads` heads and the panels of their columns need. */
static inline size_t attention_blocks(struct attention_job *job, uint32_t heads, uint32_t width) {
    return attention_deal(job) * heads * attention_panels(job->D, width);
}

/* Opens a block of queries: makes their state and sets the sums to +0. */
GPU_INLINE void attention_over_keys_open(GPU_PARAM const struct attention_job *job,
                                         const struct attention_block *own,
                                         const struct attention_shared *shared,
                                         struct attention_panel *sums) {
    attention_state_take(GPU_ARG job, own->part.token, own->part.count, own->head, shared);
    attention_panel_fill(sums, ACC(0.0));
    BARRIER();
}

KERNEL(attention_keys_kernel, struct attention_job) {
    SHARED(accumulator, memory);
    const struct attention_shared shared = attention_share(memory, 2);
    const uint32_t panels = attention_panels(args->D, ATTENTION_PANEL);
    const struct attention_part part = attention_part_back(args, BLOCK / panels / args->H);
    struct attention_block own = attention_block_of(args, part, BLOCK / panels % args->H);
    const struct attention_columns columns =
        attention_columns_at(args, BLOCK % panels, ATTENTION_PANEL);
    struct attention_panel sums;
    uint32_t terms[ATTENTION_EACH];
    attention_over_keys_open(GPU_ARG args, &own, &shared, &sums);
    for (; own.keys.first < own.keys.limit; own.keys.first += ATTENTION_TILE) {
        attention_weigh(GPU_ARG args, &own, &shared);
        attention_terms(GPU_ARG & own, terms);
        attention_chain(GPU_ARG args, &own.keys, args->backward ? own.k : own.v, &columns,
                        shared.first, shared.slab, terms, &sums);
    }
    attention_round(GPU_ARG args, &part, args->H, own.head, &columns, &sums,
                    attention_over_keys_out(args));
}

/* ---- sums that are cut ---- */

/* The place to which chunk sums go: `held`, or memory to which other blocks add, too. */
struct attention_target {
    struct attention_panel *held;
    accumulator
        *raced; /* the sums of the part's first query and this head; rows are `line` apart */
    size_t line;
};

/* Adds the finished chunk whose first key is `key`, for the queries that have terms of it. */
GPU_INLINE void attention_chunk_add(GPU_PARAM const struct attention_part *part,
                                    const struct attention_columns *columns, uint32_t key,
                                    struct attention_panel *chain,
                                    const struct attention_target *to) {
    UNROLL
    for (unsigned i = 0; i < ATTENTION_EACH; i++) {
        const uint32_t r = attention_left(GPU_ARG i);
        if (key >= attention_keys(part, r)) continue;
        UNROLL
        for (unsigned g = 0; g < ATTENTION_GROUPS; g++) {
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                const uint32_t column = g * ATTENTION_TILE + attention_right(GPU_ARG j);
                if (to->held != NULL)
                    to->held->of[g][i][j] += chain->of[g][i][j];
                else if (column < columns->count)
                    ACC_NAME_(gpu_atomic_add)
                (GPU_ARG to->raced + r * to->line + columns->first + column, chain->of[g][i][j]);
                chain->of[g][i][j] = 0;
            }
        }
    }
}

/* Walks the tiles of positions own->keys.first .. end-1, cut into chunks of `chunk`; keys.first is
 * where a chunk begins. */
GPU_INLINE void attention_chunks(GPU_PARAM const struct attention_job *job,
                                 struct attention_block *own,
                                 const struct attention_columns *columns,
                                 const struct attention_shared *shared, uint32_t end,
                                 uint32_t chunk, const struct attention_target *to) {
    const struct attention_side *const side = &own->keys;
    struct attention_panel chain;
    uint32_t terms[ATTENTION_EACH], left = chunk;
    attention_over_keys_open(GPU_ARG job, own, shared, &chain);
    for (; own->keys.first < end; own->keys.first += ATTENTION_TILE) {
        attention_weigh(GPU_ARG job, own, shared);
        attention_terms(GPU_ARG own, terms);
        for (unsigned half = 0; half < ATTENTION_TILE; half += ATTENTION_DEPTH) {
            attention_values(GPU_ARG job, side, job->backward ? own->k : own->v, columns, half,
                             shared->slab);
            BARRIER();
            for (unsigned t = half; t < half + ATTENTION_DEPTH; t++) {
                if (side->first + t >= end) break;
                attention_term(GPU_ARG columns, shared->first, shared->slab, t, terms, &chain);
                left--;
                if (left > 0 && side->first + t + 1 < end) continue;
                const uint32_t key = attention_row_of(side, t) - (chunk - 1 - left);
                attention_chunk_add(GPU_ARG & own->part, columns, key, &chain, to);
                left = chunk;
            }
            BARRIER();
        }
    }
}

#endif
