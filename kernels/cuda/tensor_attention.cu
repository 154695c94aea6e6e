/* SPDX-License-Identifier: Apache-2.0
 * label: gpu (its steps: tensor.h)
 * Attention on tensor cores: law 6's formulas and roundings, sums in the cores' order. A block has
 * 32 queries, or keys, of one head; its four warps have the four corners of a tile of 32 x 32
 * scores, and the 16 x 16 parts of its results.
 *
 * Forward: maximum and sum of exponentials in one pass over keys, P v in another. Backward: both
 * and D in one pass; dQ in another, or in mode atomic by atomics from the blocks of keys; dK and dV
 * over (query head, query) ascending. Nothing of the size of keys by queries is in memory.
 * Invariant: one writer for each result but the racing dQ; rows that are not a sequence's are
 * neither read nor written. */
#include "kernels/cuda/tensor_attention.h"

#include "kernels/cuda/attention_sums.h"
#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/tensor.h"

#define TENSOR_THREADS 128u
#define TENSOR_WARPS (TENSOR_THREADS / GPU_WARP)
#define TENSOR_SUMS 4u     /* parts of the results that a warp has */
#define TENSOR_LINE 36u    /* between lines of scores */
#define TENSOR_WEIGHTS 40u /* between lines of weights */
#define TENSOR_PAD 8u      /* behind a row of operands: neighbours lie in other banks */
#define TENSOR_OF_ROW 4u   /* threads of a query, neighbours */
#define TENSOR_PITCH(D) ((D) + TENSOR_PAD)
#define TENSOR_ROWS(D) ((size_t)ATTENTION_TILE * TENSOR_PITCH(D)) /* operands of one side */
#define TENSOR_SHARED(D)                                                                           \
    (4 * TENSOR_ROWS(D) * sizeof(uint16_t) +                                                       \
     ATTENTION_TILE * ((2 * TENSOR_LINE + 3) * sizeof(float) + TENSOR_WEIGHTS * sizeof(uint16_t)))

/* A block's shared memory. Results are collected where operands stood. */
struct tensor_shared {
    uint16_t *q, *k, *v, *dout; /* (32, pitch) */
    float *scores, *outers;     /* (32, TENSOR_LINE): [query][key] */
    uint16_t *weights;          /* (32, TENSOR_WEIGHTS): [query][key] */
    struct attention_shared state;
};

GPU_INLINE struct tensor_shared tensor_share(uint16_t *memory, uint32_t D) {
    struct tensor_shared shared;
    shared.q = memory;
    shared.k = shared.q + TENSOR_ROWS(D);
    shared.v = shared.k + TENSOR_ROWS(D);
    shared.dout = shared.v + TENSOR_ROWS(D);
    shared.scores = (float *)(shared.dout + TENSOR_ROWS(D));
    shared.outers = shared.scores + ATTENTION_TILE * TENSOR_LINE;
    shared.weights = (uint16_t *)(shared.outers + ATTENTION_TILE * TENSOR_LINE);
    shared.state.slab = shared.state.first = shared.state.second = shared.state.third = NULL;
    shared.state.maximum = (float *)(shared.weights + ATTENTION_TILE * TENSOR_WEIGHTS);
    shared.state.sum = shared.state.maximum + ATTENTION_TILE;
    shared.state.d = shared.state.sum + ATTENTION_TILE;
    return shared;
}

/* Loads rows of one side of a tile as operands; rows that are not there are +0. */
GPU_INLINE void tensor_rows(GPU_PARAM const struct attention_job *job,
                            const struct attention_side *side, const carrier *x, enum dtype type,
                            uint16_t *to) {
    const unsigned pairs = job->D / 2;
    for (unsigned i = THREAD; i < ATTENTION_TILE * pairs; i += TENSOR_THREADS) {
        const unsigned r = i / pairs, c = i % pairs * 2;
        const uint32_t row = side->first + r;
        const carrier *const from = x + row * side->line + c;
        const int there = row < side->limit;
        short_put(to + r * TENSOR_PITCH(job->D) + c, there ? operand(from[0], job->product) : 0.0f,
                  there ? operand(from[1], job->product) : 0.0f, type);
    }
}

/* Makes a tile of scores: rows of x by rows of y. Barriers stand before and behind it. */
GPU_INLINE void tensor_scores(GPU_PARAM const struct attention_job *job, const uint16_t *x,
                              const uint16_t *y, enum dtype type, float *to) {
    const unsigned warp = THREAD / GPU_WARP, pitch = TENSOR_PITCH(job->D);
    const unsigned row = warp / 2 * TENSOR_SIDE, column = warp % 2 * TENSOR_SIDE;
    tensor_sum sum;
    tensor_clear(&sum);
    for (uint32_t d = 0; d < job->D; d += TENSOR_SIDE)
        tensor_multiply(GPU_ARG & sum, tensor_matrix_of(x + row * pitch + d, pitch, 0),
                        tensor_matrix_of(y + column * pitch + d, pitch, 1), type);
    tensor_store(GPU_ARG & sum, to + row * TENSOR_LINE + column, TENSOR_LINE);
}

/* The first row and column of the warp's i-th part of results of 32 rows; returns 0 where there is
 * none. */
GPU_INLINE int tensor_part(GPU_PARAM uint32_t D, unsigned i, unsigned *row, unsigned *column) {
    const unsigned part = THREAD / GPU_WARP + i * TENSOR_WARPS;
    *row = part % 2 * TENSOR_SIDE;
    *column = part / 2 * TENSOR_SIDE;
    return *column < D;
}

/* Adds weights (32 x 32; `turned`: their transpose) . values (32 x D) to one part of the sums. */
GPU_INLINE void tensor_weigh(GPU_PARAM const struct attention_job *job, const uint16_t *weights,
                             int turned, const uint16_t *values, unsigned row, unsigned column,
                             enum dtype type, tensor_sum *sum) {
    const unsigned pitch = TENSOR_PITCH(job->D);
    UNROLL
    for (unsigned t = 0; t < ATTENTION_TILE; t += TENSOR_SIDE) {
        const unsigned at = turned ? t * TENSOR_WEIGHTS + row : row * TENSOR_WEIGHTS + t;
        tensor_multiply(GPU_ARG sum, tensor_matrix_of(weights + at, TENSOR_WEIGHTS, turned),
                        tensor_matrix_of(values + t * pitch + column, pitch, 0), type);
    }
}

GPU_INLINE void tensor_weigh_all(GPU_PARAM const struct attention_job *job, const uint16_t *weights,
                                 int turned, const uint16_t *values, enum dtype type,
                                 tensor_sum sums[TENSOR_SUMS]) {
    UNROLL
    for (unsigned i = 0; i < TENSOR_SUMS; i++) {
        unsigned row, column;
        if (tensor_part(GPU_ARG job->D, i, &row, &column))
            tensor_weigh(GPU_ARG job, weights, turned, values, row, column, type, &sums[i]);
    }
}

GPU_INLINE void tensor_clear_all(tensor_sum sums[TENSOR_SUMS]) {
    UNROLL
    for (unsigned i = 0; i < TENSOR_SUMS; i++)
        tensor_clear(&sums[i]);
}

/* Rounds sums of 32 rows to the part's rows of `out`. They are collected in `stage`. */
GPU_INLINE void tensor_round(GPU_PARAM const struct attention_job *job,
                             const struct attention_part *part, uint32_t heads, uint32_t head,
                             const tensor_sum sums[TENSOR_SUMS], float *stage, carrier *out) {
    const size_t line = (size_t)heads * job->D;
    BARRIER();
    UNROLL
    for (unsigned i = 0; i < TENSOR_SUMS; i++) {
        unsigned row, column;
        if (tensor_part(GPU_ARG job->D, i, &row, &column))
            tensor_store(GPU_ARG & sums[i], stage + row * job->D + column, job->D);
    }
    BARRIER();
    for (unsigned i = THREAD; i < part->count * job->D; i += TENSOR_THREADS) {
        const size_t row = (size_t)part->sequence->row + part->first + i / job->D;
        out[row * line + head * job->D + i % job->D] = carrier_round(stage[i], job->dtype);
    }
}

/* ---- maximum, sum of exponentials, D ---- */

/* The maximum, the sum of exponentials and D of the keys that a thread has met so far, relative to
 * that maximum. */
struct tensor_met {
    float maximum, sum, d;
};

/* Meets one more score. A score of -inf has the exponential +0 whatever stands before it; the first
 * of +inf gives NaN, as exp(inf - inf) does. Rows that hold only -inf are mended by
 * tensor_meet_end. */
GPU_INLINE void tensor_meet(struct tensor_met *met, float score, float outer) {
    if (score > met->maximum) {
        const float less = acc_exp(met->maximum - score), one = 1.0f + (score - score);
        met->maximum = score;
        met->sum = met->sum * less + one;
        met->d = met->d * less + one * outer;
    } else {
        const float e = score == -acc_inf() ? 0.0f : acc_exp(score - met->maximum);
        met->sum = met->sum + e;
        met->d = acc_fma(e, outer, met->d);
    }
}

/* Where no score was larger than -inf, law 6 has exp(-inf + inf), which is NaN. */
GPU_INLINE void tensor_meet_end(struct tensor_met *met) {
    if (met->maximum == -acc_inf()) met->sum = met->maximum - met->maximum;
}

/* Joins what another thread has met; either may have met nothing. */
GPU_INLINE void tensor_meet_other(GPU_PARAM struct tensor_met *met, unsigned mask) {
    struct tensor_met other;
    other.maximum = gpu_shuffle_xor_f32(GPU_ARG met->maximum, mask);
    other.sum = gpu_shuffle_xor_f32(GPU_ARG met->sum, mask);
    other.d = gpu_shuffle_xor_f32(GPU_ARG met->d, mask);
    const float both = larger(met->maximum, other.maximum);
    const float own = met->maximum == both ? 1.0f : acc_exp(met->maximum - both);
    const float its = other.maximum == both ? 1.0f : acc_exp(other.maximum - both);
    met->maximum = both;
    met->sum = met->sum * own + other.sum * its;
    met->d = met->d * own + other.d * its;
}

/* Makes the state of the block's queries, whose rows are in shared memory; a barrier stands behind
 * it. */
GPU_INLINE void tensor_state(GPU_PARAM const struct attention_job *job, struct attention_block own,
                             const struct tensor_shared *shared, enum dtype type) {
    const unsigned r = THREAD / TENSOR_OF_ROW, limit = attention_keys(&own.part, r);
    struct tensor_met met;
    met.maximum = -acc_inf();
    met.sum = met.d = 0.0f;
    for (; own.keys.first < own.keys.limit; own.keys.first += ATTENTION_TILE) {
        tensor_rows(GPU_ARG job, &own.keys, own.k, type, shared->k);
        if (job->backward) tensor_rows(GPU_ARG job, &own.keys, own.v, type, shared->v);
        BARRIER();
        tensor_scores(GPU_ARG job, shared->q, shared->k, type, shared->scores);
        if (job->backward)
            tensor_scores(GPU_ARG job, shared->dout, shared->v, type, shared->outers);
        BARRIER();
        for (unsigned c = THREAD % TENSOR_OF_ROW; c < ATTENTION_TILE; c += TENSOR_OF_ROW) {
            const uint32_t key = own.keys.first + c;
            const unsigned at = r * TENSOR_LINE + c;
            if (key >= limit) break;
            tensor_meet(&met, attention_score(job, shared->scores[at]),
                        job->backward
                            ? attention_outer(job, &own, limit - 1, key, shared->outers[at])
                            : 0.0f);
        }
    }
    for (unsigned mask = 1; mask < TENSOR_OF_ROW; mask *= 2)
        tensor_meet_other(GPU_ARG & met, mask);
    tensor_meet_end(&met);
    if (THREAD % TENSOR_OF_ROW == 0) {
        shared->state.maximum[r] = met.maximum + 0.0f;
        shared->state.sum[r] = met.sum;
        shared->state.d[r] = met.d / met.sum;
    }
    BARRIER();
}

/* ---- sums over keys: P v, or dS k ---- */

/* The weight of row r and column c of a tile of queries by keys: dropped P, or dS; +0 where the
 * query does not have the key. */
GPU_INLINE float tensor_weight(const struct attention_job *job, const struct attention_block *own,
                               const struct tensor_shared *shared, int slopes, unsigned r,
                               unsigned c) {
    const uint32_t query = own->queries.first + r, key = own->keys.first + c;
    const unsigned at = r * TENSOR_LINE + c;
    if (query >= own->queries.limit || key > query) return 0.0f;
    const carrier p = attention_probability(job, &shared->state, r, shared->scores[at]);
    if (!slopes) return attention_weight(job, own, query, key, p);
    return attention_slope(job, own, query, key, p, shared->outers[at], shared->state.d[r]);
}

GPU_INLINE void tensor_weights(GPU_PARAM const struct attention_job *job,
                               const struct attention_block *own,
                               const struct tensor_shared *shared, int slopes, enum dtype type) {
    const unsigned r = THREAD / TENSOR_OF_ROW;
    for (unsigned c = THREAD % TENSOR_OF_ROW * 2; c < ATTENTION_TILE; c += TENSOR_OF_ROW * 2)
        short_put(shared->weights + r * TENSOR_WEIGHTS + c,
                  tensor_weight(job, own, shared, slopes, r, c),
                  tensor_weight(job, own, shared, slopes, r, c + 1), type);
}

GPU_INLINE void tensor_keys(GPU_PARAM const struct attention_job *job, struct attention_block own,
                            const struct tensor_shared *shared, enum dtype type) {
    tensor_sum sums[TENSOR_SUMS];
    tensor_clear_all(sums);
    for (; own.keys.first < own.keys.limit; own.keys.first += ATTENTION_TILE) {
        tensor_rows(GPU_ARG job, &own.keys, own.k, type, shared->k);
        tensor_rows(GPU_ARG job, &own.keys, own.v, type, shared->v);
        BARRIER();
        tensor_scores(GPU_ARG job, shared->q, shared->k, type, shared->scores);
        if (job->backward)
            tensor_scores(GPU_ARG job, shared->dout, shared->v, type, shared->outers);
        BARRIER();
        tensor_weights(GPU_ARG job, &own, shared, job->backward, type);
        BARRIER();
        tensor_weigh_all(GPU_ARG job, shared->weights, 0, job->backward ? shared->k : shared->v,
                         type, sums);
        BARRIER();
    }
    tensor_round(GPU_ARG job, &own.part, job->H, own.head, sums, (float *)shared->q,
                 job->backward ? job->dq : job->out);
}

/* One block of queries: makes its state, kept for dK and dV, then its sums, unless dQ races. */
GPU_INLINE void tensor_queries(GPU_PARAM const struct attention_job *job, uint16_t *memory,
                               enum dtype type) {
    const struct tensor_shared shared = tensor_share(memory, job->D);
    const struct attention_part part = attention_part_at(job, BLOCK / job->H);
    const struct attention_block own = attention_block_of(job, part, BLOCK % job->H);
    tensor_rows(GPU_ARG job, &own.queries, own.q, type, shared.q);
    if (job->backward) tensor_rows(GPU_ARG job, &own.queries, own.dout, type, shared.dout);
    tensor_state(GPU_ARG job, own, &shared, type);
    if (job->backward && THREAD < part.count) {
        accumulator *const state =
            job->state + ((size_t)(part.token + THREAD) * job->H + own.head) * ATTENTION_STATE;
        state[0] = shared.state.maximum[THREAD];
        state[1] = shared.state.sum[THREAD];
        state[2] = shared.state.d[THREAD];
    }
    if (job->sums == NULL) tensor_keys(GPU_ARG job, own, &shared, type);
}

/* ---- dK and dV, and the racing dQ ---- */

/* Adds a tile's dS k to dQ, to which other blocks add, part by part through the warp's own piece of
 * `stage`. */
GPU_INLINE void tensor_race(GPU_PARAM const struct attention_job *job,
                            const struct attention_block *own, const struct tensor_shared *shared,
                            float *stage, enum dtype type) {
    const uint32_t token = own->part.token - own->part.first + own->queries.first;
    const size_t line = (size_t)job->H * job->D;
    float *const piece = stage + THREAD / GPU_WARP * TENSOR_SIDE * TENSOR_SIDE;
    for (unsigned i = 0; i < TENSOR_SUMS; i++) {
        unsigned row, column;
        tensor_sum sum;
        if (!tensor_part(GPU_ARG job->D, i, &row, &column)) continue;
        tensor_clear(&sum);
        tensor_weigh(GPU_ARG job, shared->weights, 0, shared->k, row, column, type, &sum);
        tensor_store(GPU_ARG & sum, piece, TENSOR_SIDE);
        WARP_BARRIER();
        for (unsigned e = THREAD % GPU_WARP; e < TENSOR_SIDE * TENSOR_SIDE; e += GPU_WARP) {
            const uint32_t query = row + e / TENSOR_SIDE;
            if (own->queries.first + query < own->queries.limit)
                race_add(GPU_ARG job->sums + (token + query) * line + own->head * job->D + column +
                             e % TENSOR_SIDE,
                         piece[e]);
        }
        WARP_BARRIER();
    }
}

/* Makes dK and dV of a block of 32 keys of a key/value head, over (query head, query) ascending. */
GPU_INLINE void tensor_dkv(GPU_PARAM const struct attention_job *job, uint16_t *memory, int races,
                           enum dtype type) {
    const struct tensor_shared shared = tensor_share(memory, job->D);
    const uint32_t group = BLOCK % job->G, heads = job->H / job->G;
    const struct attention_part part = attention_part_at(job, BLOCK / job->G);
    tensor_sum dk[TENSOR_SUMS], dv[TENSOR_SUMS];
    tensor_clear_all(dk);
    tensor_clear_all(dv);
    for (uint32_t head = group * heads; head < (group + 1) * heads; head++) {
        struct attention_block own = attention_block_of(job, part, head);
        own.keys.first = part.first;
        own.queries.limit = part.sequence->length;
        if (head == group * heads) {
            tensor_rows(GPU_ARG job, &own.keys, own.k, type, shared.k);
            tensor_rows(GPU_ARG job, &own.keys, own.v, type, shared.v);
        }
        for (; own.queries.first < own.queries.limit; own.queries.first += ATTENTION_TILE) {
            tensor_rows(GPU_ARG job, &own.queries, own.q, type, shared.q);
            tensor_rows(GPU_ARG job, &own.queries, own.dout, type, shared.dout);
            attention_state_take(
                GPU_ARG job, part.token - part.first + own.queries.first,
                (uint32_t)least(ATTENTION_TILE, own.queries.limit - own.queries.first), head,
                &shared.state);
            BARRIER();
            tensor_scores(GPU_ARG job, shared.q, shared.k, type, shared.scores);
            tensor_scores(GPU_ARG job, shared.dout, shared.v, type, shared.outers);
            BARRIER();
            tensor_weights(GPU_ARG job, &own, &shared, 0, type);
            BARRIER();
            tensor_weigh_all(GPU_ARG job, shared.weights, 1, shared.dout, type, dv);
            BARRIER();
            tensor_weights(GPU_ARG job, &own, &shared, 1, type);
            BARRIER();
            tensor_weigh_all(GPU_ARG job, shared.weights, 1, shared.q, type, dk);
            if (races) tensor_race(GPU_ARG job, &own, &shared, shared.outers, type);
            BARRIER();
        }
    }
    tensor_round(GPU_ARG job, &part, job->G, group, dk, (float *)shared.q, job->dk);
    tensor_round(GPU_ARG job, &part, job->G, group, dv, (float *)shared.q, job->dv);
}

#define TENSOR_KERNELS(name, type)                                                                 \
    KERNEL(tensor_queries_##name, struct attention_job) {                                          \
        SHARED(uint16_t, memory);                                                                  \
        tensor_queries(GPU_ARG args, memory, type);                                                \
    }                                                                                              \
    KERNEL(tensor_dkv_##name, struct attention_job) {                                              \
        SHARED(uint16_t, memory);                                                                  \
        tensor_dkv(GPU_ARG args, memory, 0, type);                                                 \
    }                                                                                              \
    KERNEL(tensor_atomic_##name, struct attention_job) {                                           \
        SHARED(uint16_t, memory);                                                                  \
        tensor_dkv(GPU_ARG args, memory, 1, type);                                                 \
    }
TENSOR_KERNELS(bf16, DTYPE_BF16)
TENSOR_KERNELS(f16, DTYPE_F16)

/* ---- launches ---- */

/* Launches the kernel of the product's type. */
#define TENSOR_LAUNCH(kernel, blocks)                                                              \
    do {                                                                                           \
        if (tensor_type(call) == DTYPE_F16)                                                        \
            LAUNCH(kernel##_f16, blocks, TENSOR_THREADS, TENSOR_SHARED(job->D), job);              \
        else                                                                                       \
            LAUNCH(kernel##_bf16, blocks, TENSOR_THREADS, TENSOR_SHARED(job->D), job);             \
    } while (0)

static void tensor_start_queries(const struct op_call *call, struct attention_job *job) {
    TENSOR_LAUNCH(tensor_queries, attention_deal(job) * job->H);
}

static void tensor_start_keys(const struct op_call *call, struct attention_job *job) {
    const size_t blocks = attention_deal(job) * job->G;
    if (job->sums != NULL)
        TENSOR_LAUNCH(tensor_atomic, blocks);
    else
        TENSOR_LAUNCH(tensor_dkv, blocks);
}

void VARIANT(tensor_attention_forward)(const struct op_call *call,
                                       const struct attention_forward_args *args) {
    struct attention_job job = attention_job_forward(call, args);
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        tensor_start_queries(call, &job);
    }
}

void VARIANT(tensor_attention_backward)(const struct op_call *call,
                                        const struct attention_backward_args *args) {
    struct attention_job job = attention_job_backward(call, args);
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        if (race_active(call, SUM_DQ)) attention_race_open(call, &job);
        tensor_start_queries(call, &job);
        tensor_start_keys(call, &job);
        if (job.sums != NULL) attention_race_close(&job);
    }
}
