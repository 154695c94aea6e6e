/* SPDX-License-Identifier: Apache-2.0
 * A tile of attention: 32 queries by 32 keys, of which a thread has 4 x 4; its scores, their
 * probabilities, a gradient of these (law 6). Rows of q, k, v and dout go through shared memory, a
 * slab at a time. Nothing of the size of keys by queries is ever in memory: what a sum needs again
 * is made again.
 *
 * Invariant: a score is one chain over d, in a register. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_TILE_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_TILE_H

#include "kernels/cuda/attention_job.h"

#define ATTENTION_DEPTH 16u /* terms of a slab */
#define ATTENTION_PITCH                                                                            \
    (ATTENTION_TILE + 4u) /* between lines of a tile: the pad puts neighbours into other banks */

/* How many columns of a head a block sums at a time, in groups of 32: as many as registers hold. */
#if defined(TWINSTEP_ACCUMULATOR_f64)
#define ATTENTION_GROUPS 2u
#else
#define ATTENTION_GROUPS 4u
#endif
#define ATTENTION_PANEL (ATTENTION_GROUPS * ATTENTION_TILE)

#define ATTENTION_SLAB                                                                             \
    (ATTENTION_DEPTH *                                                                             \
     (ATTENTION_PANEL > 2 * ATTENTION_PITCH ? ATTENTION_PANEL : 2 * ATTENTION_PITCH))
#define ATTENTION_NUMBERS (ATTENTION_TILE * ATTENTION_PITCH)
#define ATTENTION_SHARED(tiles)                                                                    \
    ((ATTENTION_SLAB + (tiles)*ATTENTION_NUMBERS + 3 * ATTENTION_TILE) * sizeof(accumulator))

/* A block's shared memory: slabs of rows, twice, or of columns; a number for each pair of a tile,
 * twice or three times; what each query's softmax comes to, and D of its gradient. */
struct attention_shared {
    accumulator *slab, *first, *second, *third;
    accumulator *maximum, *sum, *d; /* (32) */
};

GPU_INLINE struct attention_shared attention_share(accumulator *memory, unsigned tiles) {
    struct attention_shared shared;
    shared.slab = memory;
    shared.first = memory + ATTENTION_SLAB;
    shared.second = shared.first + ATTENTION_NUMBERS;
    shared.third = shared.second + ATTENTION_NUMBERS;
    shared.maximum = shared.first + tiles * ATTENTION_NUMBERS;
    shared.sum = shared.maximum + ATTENTION_TILE;
    shared.d = shared.sum + ATTENTION_TILE;
    return shared;
}

/* Where the rows of one side of a tile stand, up to 32 of them, at positions from `first` on. */
struct attention_side {
    size_t line;           /* between positions */
    uint32_t first, limit; /* rows from `limit` on are none */
    /* By law 9 positions are those of chunks in their order; NULL: a position is its own. */
    const uint32_t *order;
    uint32_t chunk, chunks;
};

GPU_INLINE uint32_t attention_row_of(const struct attention_side *side, uint32_t i) {
    const uint32_t position = side->first + i;
    if (side->order == NULL) return position;
    const uint32_t chunk = position / side->chunk;
    return chunk < side->chunks ? side->order[chunk] * side->chunk + position % side->chunk
                                : side->limit;
}

GPU_INLINE struct attention_side attention_side_of(size_t line, uint32_t first, uint32_t limit) {
    struct attention_side side;
    side.line = line;
    side.first = first;
    side.limit = limit;
    side.order = NULL;
    side.chunk = side.chunks = 0;
    return side;
}

/* Queries of one head, and the keys they may have. */
struct attention_block {
    struct attention_part part;
    uint32_t head;
    struct attention_side queries, keys;
    const struct stored *q, *dout, *k, *v; /* position 0 of the sequence, this head */
};

GPU_INLINE struct attention_block attention_block_of(const struct attention_job *job,
                                                     struct attention_part part, uint32_t head) {
    struct attention_block block;
    const uint32_t end = part.first + part.count;
    const size_t row = part.sequence->row;
    const size_t q_line = (size_t)job->H * job->D, k_line = (size_t)job->G * job->D;
    const size_t from = row * q_line + (size_t)head * job->D;
    const size_t key = row * k_line + (size_t)(head / (job->H / job->G)) * job->D;
    block.part = part;
    block.head = head;
    block.queries = attention_side_of(q_line, part.first, end);
    block.keys = attention_side_of(k_line, 0, end);
    block.q = job->q + from;
    block.dout = job->dout == NULL ? NULL : job->dout + from;
    block.k = job->k + key;
    block.v = job->v + key;
    return block;
}

/* The thread's i-th row of the left side of a tile, and its j-th of the right one. They are
 * neighbours, so that one access of shared memory brings them. */
GPU_INLINE uint32_t attention_left(GPU_PARAM unsigned i) {
    return THREAD / ATTENTION_SIDE * ATTENTION_EACH + i;
}

GPU_INLINE uint32_t attention_right(GPU_PARAM unsigned j) {
    return THREAD % ATTENTION_SIDE * ATTENTION_EACH + j;
}

/* Where a pair of rows stands in a tile. Lines of the right side are dealt out so that threads side
 * by side meet other banks. A thread may go on with its own pairs without a barrier. */
GPU_INLINE unsigned attention_at(unsigned left, unsigned right) {
    const unsigned line = right / ATTENTION_EACH + right % ATTENTION_EACH * ATTENTION_SIDE;
    return line * ATTENTION_PITCH + left;
}

/* How many keys the part's query `row` has; 0 for rows that the part lacks. */
GPU_INLINE uint32_t attention_keys(const struct attention_part *part, uint32_t row) {
    return row < part->count ? part->first + row + 1 : 0;
}

/* Loads elements d .. d+15 of the side's rows of x into a slab, as operands. */
GPU_INLINE void attention_slab(GPU_PARAM const struct attention_job *job,
                               const struct attention_side *side, const struct stored *x,
                               uint32_t d, accumulator *slab) {
    for (unsigned i = THREAD; i < ATTENTION_DEPTH * ATTENTION_TILE; i += ATTENTION_THREADS) {
        const unsigned t = i % ATTENTION_DEPTH, r = i / ATTENTION_DEPTH;
        const uint32_t row = attention_row_of(side, r);
        const int inside = row < side->limit && d + t < job->D;
        slab[t * ATTENTION_PITCH + r] =
            inside ? operand(stored_load(x[row * side->line + d + t]), job->product) : ACC(0.0);
    }
}

/* Whether any of the thread's pairs is a pair of two rows that are there. */
GPU_INLINE int attention_meets(GPU_PARAM const struct attention_side *left,
                               const struct attention_side *right) {
    return left->first + attention_left(GPU_ARG 0) < left->limit &&
           (right->order != NULL || right->first + attention_right(GPU_ARG 0) < right->limit);
}

/* Makes the product of every pair of rows of x and y, a chain over d, in `tile`. */
GPU_INLINE void attention_product(GPU_PARAM const struct attention_job *job,
                                  const struct attention_side *left, const struct stored *x,
                                  const struct attention_side *right, const struct stored *y,
                                  accumulator *slab, accumulator *tile) {
    accumulator *const other = slab + ATTENTION_DEPTH * ATTENTION_PITCH;
    const int meets = attention_meets(GPU_ARG left, right);
    accumulator sum[ATTENTION_EACH][ATTENTION_EACH];
    UNROLL
    for (unsigned j = 0; j < ATTENTION_EACH; j++) {
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++)
            sum[j][i] = 0;
    }
    for (uint32_t d = 0; d < job->D; d += ATTENTION_DEPTH) {
        const unsigned depth = meets ? (unsigned)least(ATTENTION_DEPTH, job->D - d) : 0;
        attention_slab(GPU_ARG job, left, x, d, slab);
        attention_slab(GPU_ARG job, right, y, d, other);
        BARRIER();
        for (unsigned t = 0; t < depth; t++) {
            accumulator a[ATTENTION_EACH];
            UNROLL
            for (unsigned i = 0; i < ATTENTION_EACH; i++)
                a[i] = slab[t * ATTENTION_PITCH + attention_left(GPU_ARG i)];
            UNROLL
            for (unsigned j = 0; j < ATTENTION_EACH; j++) {
                const accumulator b = other[t * ATTENTION_PITCH + attention_right(GPU_ARG j)];
                UNROLL
                for (unsigned i = 0; i < ATTENTION_EACH; i++)
                    sum[j][i] = acc_fma(a[i], b, sum[j][i]);
            }
        }
        BARRIER();
    }
    UNROLL
    for (unsigned j = 0; j < ATTENTION_EACH; j++) {
        UNROLL
        for (unsigned i = 0; i < ATTENTION_EACH; i++)
            tile[attention_at(attention_left(GPU_ARG i), attention_right(GPU_ARG j))] = sum[j][i];
    }
}

/* Makes q . k of a tile in shared->first, and dout . v in shared->second. */
GPU_INLINE void attention_scores(GPU_PARAM const struct attention_job *job,
                                 const struct attention_block *own,
                                 const struct attention_shared *shared) {
    attention_product(GPU_ARG job, &own->queries, own->q, &own->keys, own->k, shared->slab,
                      shared->first);
}

GPU_INLINE void attention_outers(GPU_PARAM const struct attention_job *job,
                                 const struct attention_block *own,
                                 const struct attention_shared *shared) {
    attention_product(GPU_ARG job, &own->queries, own->dout, &own->keys, own->v, shared->slab,
                      shared->second);
}

/* The score s = round(round(q . k) * scale). */
GPU_INLINE carrier attention_score(const struct attention_job *job, accumulator sum) {
    return rule_mul(carrier_round(sum, job->score), job->scale, job->score);
}

/* What dropout makes of a probability: a kept one is scaled and rounded as a score, another is +0.
 */
GPU_INLINE accumulator attention_dropped(const struct attention_job *job,
                                         const struct attention_block *own, uint32_t query,
                                         uint32_t key, accumulator x) {
    if (!job->drops) return x;
    const int kept =
        mask_attention(&job->dropout, own->part.sequence, job->H, own->head, query, key);
    const accumulator scaled = x * mask_scale(&job->dropout);
    return kept ? (accumulator)carrier_round(scaled, job->score) : ACC(0.0);
}

/* Brings the state of the part's queries into shared memory; a barrier must follow. */
GPU_INLINE void attention_state_take(GPU_PARAM const struct attention_job *job, uint32_t token,
                                     uint32_t count, uint32_t head,
                                     const struct attention_shared *shared) {
    if (THREAD >= count) return;
    const accumulator *const state =
        job->state + ((size_t)(token + THREAD) * job->H + head) * ATTENTION_STATE;
    shared->maximum[THREAD] = state[0];
    shared->sum[THREAD] = state[1];
    if (job->backward) shared->d[THREAD] = state[2];
}

/* Of query `row` of the part; `product` is q . k. */
GPU_INLINE accumulator attention_exponential(const struct attention_job *job,
                                             const struct attention_shared *shared, unsigned row,
                                             accumulator product) {
    return rule_exp_shifted(attention_score(job, product), shared->maximum[row]);
}

GPU_INLINE carrier attention_probability(const struct attention_job *job,
                                         const struct attention_shared *shared, unsigned row,
                                         accumulator product) {
    const accumulator e = attention_exponential(job, shared, row, product);
    if (job->stored != NULL) return carrier_round(e, job->score);
    return rule_prob(e, shared->sum[row], job->score);
}

/* dP of one key, dropped; `product` is dout . v. */
GPU_INLINE accumulator attention_outer(const struct attention_job *job,
                                       const struct attention_block *own, uint32_t query,
                                       uint32_t key, accumulator product) {
    return attention_dropped(job, own, query, key, (accumulator)carrier_round(product, job->score));
}

/* A probability as it meets v; dS as it meets k or q. */
GPU_INLINE accumulator attention_weight(const struct attention_job *job,
                                        const struct attention_block *own, uint32_t query,
                                        uint32_t key, carrier p) {
    const accumulator dropped = attention_dropped(job, own, query, key, (accumulator)p);
    return operand((carrier)dropped, job->product);
}

GPU_INLINE accumulator attention_slope(const struct attention_job *job,
                                       const struct attention_block *own, uint32_t query,
                                       uint32_t key, carrier p, accumulator product,
                                       accumulator d) {
    const accumulator dp = attention_outer(job, own, query, key, product);
    const carrier ds = rule_prob_grad(p, (carrier)dp, d, job->scale, job->score);
    return operand(ds, job->product);
}

#endif
