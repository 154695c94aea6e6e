/* SPDX-License-Identifier: Apache-2.0
 * label: gpu (its steps: tensor.h)
 * Attention on tensor cores: law 6's formulas, sums in the cores' order, the softmax of the forward
 * online. A warp has 16 queries, or keys, of one head, whose scores, weights and sums stand in its
 * registers; the block's warps share tiles of the other side (tensor_tile.h).
 *
 * Forward: one pass over keys. Backward: a block of queries makes maximum, sum of exponentials and
 * D in one pass over keys, and dQ in another; or dQ comes in mode atomic by atomics from the blocks
 * of keys. These make dK and dV over (query head, query) ascending. Nothing of the size of keys by
 * queries is in memory.
 * Invariant: one writer for each result but the racing dQ; rows that are not a sequence's are
 * neither read nor written. */
#include "kernels/cuda/tensor_attention.h"

#include "kernels/cuda/attention_sums.h"
#include "kernels/cuda/tensor_tile.h"

/* Keys that come after their query get -inf, whose exponential is +0. */
GPU_INLINE void tensor_mask(GPU_PARAM const struct attention_block *own, struct tensor_form form,
                            float scores[TENSOR_PARTS][4]) {
    UNROLL
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        UNROLL
        for (unsigned i = 0; i < 4; i++)
            if (own->keys.first + tensor_column(GPU_ARG j, i) >
                own->queries.first + tensor_row(GPU_ARG i))
                scores[j][i] = -acc_inf();
    }
}

/* The first of the warp's rows. */
GPU_INLINE uint32_t tensor_first(GPU_PARAM const struct attention_side *side) {
    return side->first + THREAD / GPU_WARP * TENSOR_SIDE;
}

/* Whether the warp's queries have a key of the tile at all, and whether one of them lacks one. */
GPU_INLINE int tensor_meets(GPU_PARAM const struct attention_block *own) {
    return own->keys.first < tensor_first(GPU_ARG & own->queries) + TENSOR_SIDE;
}

GPU_INLINE int tensor_is_cut(GPU_PARAM const struct attention_block *own, struct tensor_form form) {
    return own->keys.first + form.rows > tensor_first(GPU_ARG & own->queries) + 1;
}

/* ---- the softmax online ---- */

/* What the lane has met of its two rows: the largest score, of the whole row; of its own places the
 * sum of exponentials and D, both relative to that score. */
struct tensor_met {
    float largest[2], sum[2], d[2];
};

GPU_INLINE void tensor_met_open(struct tensor_met *met) {
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        met->largest[h] = -acc_inf();
        met->sum[h] = met->d[h] = 0.0f;
    }
}

/* What is taken from exponents. A row that has met nothing but -inf has exponentials of +0 so far.
 */
GPU_INLINE float tensor_shift(float largest, float factor) {
    return largest == -acc_inf() ? 0.0f : largest * factor;
}

/* Meets a tile of scores, which become their exponentials; `less` is what each row's sums are
 * multiplied by. */
GPU_INLINE void tensor_meet(GPU_PARAM struct tensor_met *met, float factor, struct tensor_form form,
                            float scores[TENSOR_PARTS][4], float less[2]) {
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        float largest = met->largest[h], sum = 0.0f;
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_PART; j++)
            largest = tensor_larger(tensor_larger(largest, scores[j][2 * h]), scores[j][2 * h + 1]);
        for (unsigned mask = 1; mask < TENSOR_BESIDE; mask *= 2)
            largest = tensor_larger(largest, gpu_shuffle_xor_f32(GPU_ARG largest, mask));
        const float shift = tensor_shift(largest, factor);
        less[h] = tensor_exp2(real_fma_f32(met->largest[h], factor, -shift));
        met->largest[h] = largest;
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
            UNROLL
            for (unsigned i = 2 * h; i < 2 * h + 2; i++) {
                scores[j][i] = tensor_exp2(real_fma_f32(scores[j][i], factor, -shift));
                sum = sum + scores[j][i];
            }
        }
        met->sum[h] = met->sum[h] * less[h] + sum;
    }
}

/* Joins what the lanes of a row have met. Where no score was larger than -inf the sum is 0, by
 * which +0 is divided: NaN, as law 6 has it of exp(-inf + inf). */
GPU_INLINE void tensor_met_close(GPU_PARAM struct tensor_met *met) {
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned mask = 1; mask < TENSOR_BESIDE; mask *= 2) {
            met->sum[h] = met->sum[h] + gpu_shuffle_xor_f32(GPU_ARG met->sum[h], mask);
            met->d[h] = met->d[h] + gpu_shuffle_xor_f32(GPU_ARG met->d[h], mask);
        }
    }
}

/* ---- forward ---- */

/* Drops exponentials of a tile, where the call has dropout. */
GPU_INLINE void tensor_drop_all(GPU_PARAM const struct attention_job *job,
                                const struct attention_block *own, struct tensor_form form,
                                float weights[TENSOR_PARTS][4]) {
    if (!job->drops) return;
    const uint32_t kept = tensor_kept(GPU_ARG job, own, form, 0);
    const float scale = mask_scale(&job->dropout);
    UNROLL
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        tensor_drop(weights[j], kept >> 4 * j, scale, 0, form);
        tensor_drop(weights[j] + 2, kept >> (4 * j + 2), scale, 0, form);
    }
}

GPU_INLINE void tensor_forward(GPU_PARAM const struct attention_job *job, float *memory,
                               struct tensor_form form) {
    const struct tensor_tiles tiles = tensor_tiles_of(memory, form);
    const struct attention_part part =
        tensor_part_at(job, job->parts - 1 - BLOCK / job->H, TENSOR_BLOCK(form));
    struct attention_block own = attention_block_of(job, part, BLOCK % job->H);
    struct attention_side next = own.keys;
    const float factor = tensor_factor(job);
    float *const second = tiles.stage + form.rows * form.width;
    uint32_t q[TENSOR_STEPS][4];
    float sums[TENSOR_PARTS][4], less[2];
    struct tensor_met met;
    tensor_fetch(GPU_ARG job, &next, own.k, form, tiles.stage);
    tensor_fetch(GPU_ARG job, &next, own.v, form, second);
    tensor_take(GPU_ARG job, &own.queries, own.q, form, q);
    tensor_clear(sums, form.width / TENSOR_PART);
    tensor_met_open(&met);
    ROLLED
    for (; own.keys.first < own.keys.limit; own.keys.first += form.rows) {
        TENSOR_WAIT();
        tensor_settle(GPU_ARG tiles.stage, form, tiles.first);
        tensor_settle(GPU_ARG second, form, tiles.second);
        BARRIER();
        next.first += form.rows;
        if (next.first < next.limit) {
            tensor_fetch(GPU_ARG job, &next, own.k, form, tiles.stage);
            tensor_fetch(GPU_ARG job, &next, own.v, form, second);
        }
        if (tensor_meets(GPU_ARG & own)) {
            float scores[TENSOR_PARTS][4];
            uint32_t weights[TENSOR_STEPS][4];
            tensor_scores(GPU_ARG q, tiles.first, form, scores);
            tensor_scale(job, form, scores);
            if (tensor_is_cut(GPU_ARG & own, form)) tensor_mask(GPU_ARG & own, form, scores);
            tensor_meet(GPU_ARG & met, factor, form, scores, less);
            UNROLL
            for (unsigned j = 0; j < form.width / TENSOR_PART; j++) {
                UNROLL
                for (unsigned i = 0; i < 4; i++)
                    sums[j][i] = sums[j][i] * less[i / 2];
            }
            tensor_drop_all(GPU_ARG job, &own, form, scores);
            tensor_round(scores, form, weights);
            tensor_weigh(GPU_ARG weights, tiles.second, form, sums);
        }
        BARRIER();
    }
    tensor_met_close(GPU_ARG & met);
    const float times[2] = {1.0f / met.sum[0], 1.0f / met.sum[1]};
    tensor_write(GPU_ARG job, &part, job->H, own.head, sums, times, form, job->out);
}

/* ---- backward ---- */

/* Of two neighbours of a row or of a column: what is taken from exponents, 1 / the sum of
 * exponentials, and D. */
struct tensor_state {
    float shift[2], inverse[2], d[2];
};

/* Makes P of two neighbouring scores, and of their dP what a dropout leaves of it. */
GPU_INLINE void tensor_probability(const struct tensor_state *state, float factor, int narrow,
                                   struct tensor_form form, float two[2]) {
    UNROLL
    for (unsigned i = 0; i < 2; i++)
        two[i] = tensor_exp2(real_fma_f32(two[i], factor, -state->shift[i])) * state->inverse[i];
    if (narrow) tensor_narrow(two, form);
}

/* Makes dS = round(round(P (dP - D)) scale) in the place of dP. */
GPU_INLINE void tensor_slope(const struct attention_job *job, const struct tensor_state *state,
                             const float p[2], int narrow, struct tensor_form form, float two[2]) {
    UNROLL
    for (unsigned i = 0; i < 2; i++)
        two[i] = p[i] * (two[i] - state->d[i]);
    if (narrow) tensor_narrow(two, form);
    two[0] = two[0] * job->scale;
    two[1] = two[1] * job->scale;
    if (narrow) tensor_narrow(two, form);
}

/* Rounds dP as a score, and drops of it what dropout dropped. */
GPU_INLINE void tensor_outer(const struct attention_job *job, uint32_t kept, int narrow,
                             struct tensor_form form, float two[2]) {
    if (narrow) tensor_narrow(two, form);
    if (job->drops) tensor_drop(two, kept, mask_scale(&job->dropout), narrow, form);
}

GPU_INLINE void tensor_outers(const struct attention_job *job, uint32_t kept,
                              struct tensor_form form, float outers[TENSOR_PARTS][4]) {
    if (!tensor_is_narrow(job) && !job->drops) return;
    UNROLL
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        UNROLL
        for (unsigned i = 0; i < 4; i += 2) {
            if (tensor_is_narrow(job))
                tensor_outer(job, kept >> (4 * j + i), 1, form, outers[j] + i);
            else
                tensor_outer(job, kept >> (4 * j + i), 0, form, outers[j] + i);
        }
    }
}

/* ---- the blocks of queries: state and dQ ---- */

/* Copies the tiles that come next, unless there are none. */
GPU_INLINE void tensor_fetch_keys(GPU_PARAM const struct attention_job *job,
                                  const struct attention_block *own,
                                  const struct attention_side *next, struct tensor_form form,
                                  float *stage) {
    if (next->first >= next->limit) return;
    tensor_fetch(GPU_ARG job, next, own->k, form, stage);
    tensor_fetch(GPU_ARG job, next, own->v, form, stage + form.rows * form.width);
}

GPU_INLINE void tensor_settle_keys(GPU_PARAM const struct tensor_tiles *tiles,
                                   struct tensor_form form) {
    TENSOR_WAIT();
    tensor_settle(GPU_ARG tiles->stage, form, tiles->first);
    tensor_settle(GPU_ARG tiles->stage + form.rows * form.width, form, tiles->second);
    BARRIER();
}

/* The left sides of a block of queries. */
struct tensor_own {
    uint32_t q[TENSOR_STEPS][4], dout[TENSOR_STEPS][4];
};

/* D goes on with a tile of exponentials and dP. */
GPU_INLINE void tensor_meet_outers(struct tensor_met *met, struct tensor_form form,
                                   float exponentials[TENSOR_PARTS][4],
                                   float outers[TENSOR_PARTS][4], const float less[2]) {
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        float d = met->d[h] * less[h];
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
            d = real_fma_f32(exponentials[j][2 * h], outers[j][2 * h], d);
            d = real_fma_f32(exponentials[j][2 * h + 1], outers[j][2 * h + 1], d);
        }
        met->d[h] = d;
    }
}

/* D of flash attention: the sum over a row of dout and what the forward stored. All lanes of the
 * row come here; `i` is its place. */
GPU_INLINE float tensor_delta(GPU_PARAM const struct attention_job *job,
                              const struct attention_block *own, struct tensor_form form,
                              unsigned i) {
    const carrier *const stored = job->stored + (own->dout - job->dout);
    const uint32_t row = own->queries.first + tensor_row(GPU_ARG i);
    float sum = 0.0f;
    for (unsigned j = 0; j < form.width / TENSOR_PART; j++) {
        const unsigned column = tensor_column(GPU_ARG j, 0);
        float x[2], y[2];
        if (row >= own->queries.limit || column >= job->D) continue;
        tensor_take2(x, own->dout + row * own->queries.line + column);
        tensor_take2(y, stored + row * own->queries.line + column);
        sum = real_fma_f32(x[1], y[1], real_fma_f32(x[0], y[0], sum));
    }
    for (unsigned mask = 1; mask < TENSOR_BESIDE; mask *= 2)
        sum = sum + gpu_shuffle_xor_f32(GPU_ARG sum, mask);
    return sum;
}

/* Makes the state of the warp's queries: [h] of the lane's two rows. Of flash attention the sum of
 * exponentials goes into the exponent, P = exp(s - l) with l = maximum + log(sum). */
GPU_INLINE void tensor_find(GPU_PARAM const struct attention_job *job, struct attention_block own,
                            struct tensor_own *left, const struct tensor_tiles *tiles,
                            struct tensor_form form, struct tensor_state *state) {
    const float factor = tensor_factor(job);
    struct attention_side next = own.keys;
    struct tensor_met met;
    float less[2];
    tensor_met_open(&met);
    ROLLED
    for (; own.keys.first < own.keys.limit; own.keys.first += form.rows) {
        tensor_settle_keys(GPU_ARG tiles, form);
        next.first += form.rows;
        tensor_fetch_keys(GPU_ARG job, &own, &next, form, tiles->stage);
        if (tensor_meets(GPU_ARG & own)) {
            float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
            tensor_scores(GPU_ARG left->q, tiles->first, form, scores);
            if (job->stored == NULL) {
                tensor_scores(GPU_ARG left->dout, tiles->second, form, outers);
                tensor_outers(job, tensor_kept(GPU_ARG job, &own, form, 0), form, outers);
            }
            tensor_scale(job, form, scores);
            if (tensor_is_cut(GPU_ARG & own, form)) tensor_mask(GPU_ARG & own, form, scores);
            tensor_meet(GPU_ARG & met, factor, form, scores, less);
            if (job->stored == NULL) tensor_meet_outers(&met, form, scores, outers, less);
        }
        BARRIER();
    }
    tensor_met_close(GPU_ARG & met);
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        const float shift = tensor_shift(met.largest[h], factor), sum = met.sum[h];
        const int flash = job->stored != NULL;
        state->shift[h] = flash ? shift + acc_log(sum) * TENSOR_LOG2E : shift;
        state->inverse[h] = flash ? 1.0f : 1.0f / sum;
        state->d[h] = flash ? tensor_delta(GPU_ARG job, &own, form, 2 * h) : met.d[h] / sum;
    }
}
/* Makes dS of a tile of queries by keys in the place of dP. */
GPU_INLINE void tensor_slopes(const struct attention_job *job, const struct tensor_state *state,
                              int narrow, struct tensor_form form, float scores[TENSOR_PARTS][4],
                              float outers[TENSOR_PARTS][4]) {
    const float factor = tensor_factor(job);
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        struct tensor_state row;
        row.shift[0] = row.shift[1] = state->shift[h];
        row.inverse[0] = row.inverse[1] = state->inverse[h];
        row.d[0] = row.d[1] = state->d[h];
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
            tensor_probability(&row, factor, narrow, form, scores[j] + 2 * h);
            tensor_slope(job, &row, scores[j] + 2 * h, narrow, form, outers[j] + 2 * h);
        }
    }
}

/* Makes dQ of the warp's queries. */
GPU_INLINE void tensor_dq(GPU_PARAM const struct attention_job *job, struct attention_block own,
                          struct tensor_own *left, const struct tensor_tiles *tiles,
                          struct tensor_form form, const struct tensor_state *state) {
    const float one[2] = {1.0f, 1.0f};
    struct attention_side next = own.keys;
    float sums[TENSOR_PARTS][4];
    tensor_clear(sums, form.width / TENSOR_PART);
    ROLLED
    for (; own.keys.first < own.keys.limit; own.keys.first += form.rows) {
        tensor_settle_keys(GPU_ARG tiles, form);
        next.first += form.rows;
        tensor_fetch_keys(GPU_ARG job, &own, &next, form, tiles->stage);
        if (tensor_meets(GPU_ARG & own)) {
            float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
            uint32_t weights[TENSOR_STEPS][4];
            tensor_scores(GPU_ARG left->q, tiles->first, form, scores);
            tensor_scores(GPU_ARG left->dout, tiles->second, form, outers);
            tensor_scale(job, form, scores);
            tensor_outers(job, tensor_kept(GPU_ARG job, &own, form, 0), form, outers);
            if (tensor_is_cut(GPU_ARG & own, form)) tensor_mask(GPU_ARG & own, form, scores);
            if (tensor_is_narrow(job))
                tensor_slopes(job, state, 1, form, scores, outers);
            else
                tensor_slopes(job, state, 0, form, scores, outers);
            tensor_round(outers, form, weights);
            tensor_weigh(GPU_ARG weights, tiles->first, form, sums);
        }
        BARRIER();
    }
    tensor_write(GPU_ARG job, &own.part, job->H, own.head, sums, one, form, job->dq);
}

/* One block of queries: makes its state, kept for dK and dV, then its sums, unless dQ races. */
GPU_INLINE void tensor_queries(GPU_PARAM const struct attention_job *job, float *memory,
                               struct tensor_form form) {
    const struct tensor_tiles tiles = tensor_tiles_of(memory, form);
    const struct attention_part part =
        tensor_part_at(job, job->parts - 1 - BLOCK / job->H, TENSOR_BLOCK(form));
    const struct attention_block own = attention_block_of(job, part, BLOCK % job->H);
    struct tensor_own left;
    struct tensor_state state;
    tensor_fetch_keys(GPU_ARG job, &own, &own.keys, form, tiles.stage);
    tensor_take(GPU_ARG job, &own.queries, own.q, form, left.q);
    tensor_take(GPU_ARG job, &own.queries, own.dout, form, left.dout);
    tensor_find(GPU_ARG job, own, &left, &tiles, form, &state);
    UNROLL
    for (unsigned h = 0; h < 2; h++) {
        const unsigned r = tensor_row(GPU_ARG 2 * h);
        if (THREAD % TENSOR_BESIDE != 0 || r >= part.count) continue;
        accumulator *const to =
            job->state + ((size_t)(part.token + r) * job->H + own.head) * ATTENTION_STATE;
        to[0] = state.shift[h];
        to[1] = state.inverse[h];
        to[2] = state.d[h];
    }
    if (job->sums != NULL) return;
    tensor_fetch_keys(GPU_ARG job, &own, &own.keys, form, tiles.stage);
    tensor_dq(GPU_ARG job, own, &left, &tiles, form, &state);
}

/* ---- the blocks of keys: dK and dV, and the racing dQ ---- */

/* What a block of keys has beside its tiles of queries. */
struct tensor_keys {
    uint16_t *k, *v;  /* the block's own rows */
    uint16_t *slopes; /* (keys, rows): dS, where dQ races */
    float *state;     /* (3, rows) */
};

GPU_INLINE struct tensor_keys tensor_keys_of(const struct tensor_tiles *tiles,
                                             struct tensor_form form) {
    struct tensor_keys keys;
    keys.k = tiles->second + form.rows * form.width;
    keys.v = keys.k + TENSOR_BLOCK(form) * form.width;
    keys.state = (float *)(void *)(keys.v + TENSOR_BLOCK(form) * form.width);
    keys.slopes = (uint16_t *)(void *)(keys.state + 4 * form.rows);
    return keys;
}

/* Starts to copy the block's tile of queries, and reads their state. Queries that are not there
 * have P = 0. */
GPU_INLINE void tensor_fetch_queries(GPU_PARAM const struct attention_job *job,
                                     const struct attention_block *own, struct tensor_form form,
                                     float *stage, float state[ATTENTION_STATE]) {
    const uint32_t query = own->queries.first + THREAD;
    tensor_fetch(GPU_ARG job, &own->queries, own->q, form, stage);
    tensor_fetch(GPU_ARG job, &own->queries, own->dout, form, stage + form.rows * form.width);
    if (THREAD >= form.rows) return;
    const int there = query < own->queries.limit;
    const uint32_t token = own->part.token - own->part.first + (there ? query : 0);
    const accumulator *const from =
        job->state + ((size_t)token * job->H + own->head) * ATTENTION_STATE;
    UNROLL
    for (unsigned i = 0; i < ATTENTION_STATE; i++)
        state[i] = there ? from[i] : 0.0f;
}

GPU_INLINE void tensor_settle_queries(GPU_PARAM const struct tensor_tiles *tiles,
                                      const struct tensor_keys *keys, struct tensor_form form,
                                      const float state[ATTENTION_STATE]) {
    TENSOR_WAIT();
    tensor_settle(GPU_ARG tiles->stage, form, tiles->first);
    tensor_settle(GPU_ARG tiles->stage + form.rows * form.width, form, tiles->second);
    if (THREAD < form.rows) {
        UNROLL
        for (unsigned i = 0; i < ATTENTION_STATE; i++)
            keys->state[i * form.rows + THREAD] = state[i];
    }
    BARRIER();
}

/* Makes P of a tile of keys by queries in the place of scores, and dS in that of dP; P, dropped,
 * becomes the weights of dV. */
GPU_INLINE void tensor_turned(GPU_PARAM const struct attention_job *job,
                              const struct attention_block *own, const float *states, int cut,
                              int narrow, struct tensor_form form, float scores[TENSOR_PARTS][4],
                              float outers[TENSOR_PARTS][4]) {
    const float factor = tensor_factor(job);
    const uint32_t kept = tensor_kept(GPU_ARG job, own, form, 1);
    tensor_outers(job, kept, form, outers);
    UNROLL
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        const unsigned column = tensor_column(GPU_ARG j, 0);
        struct tensor_state state;
        tensor_take2(state.shift, states + column);
        tensor_take2(state.inverse, states + form.rows + column);
        tensor_take2(state.d, states + 2 * form.rows + column);
        UNROLL
        for (unsigned i = 0; i < 4; i += 2) {
            float *const p = scores[j] + i, *const ds = outers[j] + i;
            const uint32_t key = own->keys.first + tensor_row(GPU_ARG i);
            tensor_probability(&state, factor, narrow, form, p);
            tensor_slope(job, &state, p, narrow, form, ds);
            if (job->drops)
                tensor_drop(p, kept >> (4 * j + i), mask_scale(&job->dropout), narrow, form);
            if (cut) {
                UNROLL
                for (unsigned e = 0; e < 2; e++)
                    if (key > own->queries.first + column + e) p[e] = ds[e] = 0.0f;
            }
        }
    }
}

/* Puts dS of the warp's keys where all warps find them. */
GPU_INLINE void tensor_show(GPU_PARAM uint32_t slopes[TENSOR_STEPS][4], struct tensor_form form,
                            uint16_t *to) {
    UNROLL
    for (unsigned t = 0; t < form.rows / TENSOR_SIDE; t++) {
        UNROLL
        for (unsigned i = 0; i < 4; i++) {
            const unsigned row = tensor_row(GPU_ARG i % 2 * 2), eighth = 2 * t + i / 2;
            tensor_put_pair(to + tensor_place(row, eighth, form.rows) + THREAD % 4 * 2,
                            slopes[t][i]);
        }
    }
}

/* Adds a tile's dS k to dQ, to which other blocks add: a warp has 16 queries and 64 columns. */
GPU_INLINE void tensor_race(GPU_PARAM const struct attention_job *job,
                            const struct attention_block *own, const struct tensor_keys *keys,
                            struct tensor_form form) {
    const unsigned warp = THREAD / GPU_WARP, beside = form.width / 64;
    const unsigned row = warp / beside * TENSOR_SIDE, column = warp % beside * 64;
    const uint32_t token = own->part.token - own->part.first + own->queries.first;
    const size_t line = (size_t)job->H * job->D;
    float sums[TENSOR_PARTS][4];
    tensor_clear(sums, 8);
    UNROLL
    for (unsigned t = 0; t < TENSOR_BLOCK(form) / TENSOR_SIDE; t++) {
        uint32_t left[4], right[4];
        tensor_load_turned(GPU_ARG left, keys->slopes + tensor_across(GPU_ARG t * TENSOR_SIDE,
                                                                      row / 8, form.rows));
        UNROLL
        for (unsigned c = 0; c < 4; c++) {
            tensor_load_turned(
                GPU_ARG right,
                keys->k + tensor_down(GPU_ARG t * TENSOR_SIDE, column / 8 + c * 2, form.width));
            tensor_step(GPU_ARG sums[2 * c], left, right, form.type);
            tensor_step(GPU_ARG sums[2 * c + 1], left, right + 2, form.type);
        }
    }
    UNROLL
    for (unsigned i = 0; i < 4; i++) {
        const unsigned r = row + THREAD % GPU_WARP / 4 + i / 2 * 8;
        if (own->queries.first + r >= own->queries.limit) continue;
        float *const to = job->sums + (token + r) * line + own->head * job->D;
        UNROLL
        for (unsigned j = 0; j < 8; j++) {
            const unsigned c = column + tensor_column(GPU_ARG j, i);
            if (c < job->D) race_add(GPU_ARG to + c, sums[j][i]);
        }
    }
}

/* Makes dK and dV of a block of keys of a key/value head, over (query head, query) ascending. */
GPU_INLINE void tensor_dkv(GPU_PARAM const struct attention_job *job, float *memory, int races,
                           struct tensor_form form) {
    const float one[2] = {1.0f, 1.0f};
    const struct tensor_tiles tiles = tensor_tiles_of(memory, form);
    const struct tensor_keys keys = tensor_keys_of(&tiles, form);
    const uint32_t group = BLOCK % job->G, heads = job->H / job->G, last = (group + 1) * heads;
    const struct attention_part part = tensor_part_at(job, BLOCK / job->G, TENSOR_BLOCK(form));
    const unsigned own_row = THREAD / GPU_WARP * TENSOR_SIDE;
    struct attention_block own = attention_block_of(job, part, group * heads), next;
    float dk[TENSOR_PARTS][4], dv[TENSOR_PARTS][4], state[ATTENTION_STATE] = {0.0f};
    tensor_clear(dk, form.width / TENSOR_PART);
    tensor_clear(dv, form.width / TENSOR_PART);
    own.keys.first = part.first;
    own.queries.limit = part.sequence->length;
    tensor_fetch_queries(GPU_ARG job, &own, form, tiles.stage, state);
    tensor_bring(GPU_ARG job, &own.keys, own.k, form, keys.k);
    tensor_bring(GPU_ARG job, &own.keys, own.v, form, keys.v);
    ROLLED
    for (; own.head < last; own = next) {
        tensor_settle_queries(GPU_ARG & tiles, &keys, form, state);
        next = own;
        next.queries.first += form.rows;
        if (next.queries.first >= next.queries.limit) {
            next.queries.first = part.first;
            next.head++;
            next.q += job->D;
            next.dout += job->D;
        }
        if (next.head < last) tensor_fetch_queries(GPU_ARG job, &next, form, tiles.stage, state);
        if (races || own.queries.first + form.rows > part.first + own_row) {
            const int cut = own.queries.first < part.first + own_row + TENSOR_SIDE - 1;
            float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
            uint32_t weights[TENSOR_STEPS][4], slopes[TENSOR_STEPS][4];
            tensor_scores_of(GPU_ARG keys.k, own_row, tiles.first, form, scores);
            tensor_scores_of(GPU_ARG keys.v, own_row, tiles.second, form, outers);
            tensor_scale(job, form, scores);
            if (tensor_is_narrow(job))
                tensor_turned(GPU_ARG job, &own, keys.state, cut, 1, form, scores, outers);
            else
                tensor_turned(GPU_ARG job, &own, keys.state, cut, 0, form, scores, outers);
            tensor_round(scores, form, weights);
            tensor_round(outers, form, slopes);
            if (races) tensor_show(GPU_ARG slopes, form, keys.slopes);
            tensor_weigh(GPU_ARG weights, tiles.second, form, dv);
            tensor_weigh(GPU_ARG slopes, tiles.first, form, dk);
        }
        BARRIER();
        if (races) tensor_race(GPU_ARG job, &own, &keys, form);
    }
    tensor_write(GPU_ARG job, &part, job->G, group, dk, one, form, job->dk);
    tensor_write(GPU_ARG job, &part, job->G, group, dv, one, form, job->dv);
}

/* ---- kernels ---- */

#define TENSOR_FORWARD 256u /* threads of a block of the forward */
#define TENSOR_BACKWARD 128u
#define TENSOR_FORWARD_ROWS (TENSOR_FORWARD / GPU_WARP * TENSOR_SIDE)   /* its queries */
#define TENSOR_BACKWARD_ROWS (TENSOR_BACKWARD / GPU_WARP * TENSOR_SIDE) /* its queries, or keys */
#define TENSOR_ROWS_64 64u /* rows of a tile of 64 columns */
#define TENSOR_ROWS_128 32u

/* Bytes of a block of keys, and of one whose dQ races. */
#define TENSOR_KEYS(rows, width)                                                                   \
    (TENSOR_TILES(rows, width) + 2 * TENSOR_BACKWARD_ROWS * (width) * sizeof(uint16_t) +           \
     4 * (rows) * sizeof(float))
#define TENSOR_RACES(rows, width)                                                                  \
    (TENSOR_KEYS(rows, width) + TENSOR_BACKWARD_ROWS * (rows) * sizeof(uint16_t))

#define TENSOR_FORM(dtype, columns, tile, count)                                                   \
    const struct tensor_form form = {dtype, columns, tile, count};                                 \
    SHARED(float, memory)

#define TENSOR_KERNELS(name, dtype, width, rows, forward, per_forward, per_backward)               \
    KERNEL_BY(tensor_forward_##name, struct attention_job, forward, per_forward) {                 \
        TENSOR_FORM(dtype, width, rows, forward);                                                  \
        tensor_forward(GPU_ARG args, memory, form);                                                \
    }                                                                                              \
    KERNEL_BY(tensor_queries_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {        \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD);                                          \
        tensor_queries(GPU_ARG args, memory, form);                                                \
    }                                                                                              \
    KERNEL_BY(tensor_dkv_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {            \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD);                                          \
        tensor_dkv(GPU_ARG args, memory, 0, form);                                                 \
    }                                                                                              \
    KERNEL_BY(tensor_atomic_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {         \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD);                                          \
        tensor_dkv(GPU_ARG args, memory, 1, form);                                                 \
    }
TENSOR_KERNELS(bf16_64, DTYPE_BF16, 64u, TENSOR_ROWS_64, TENSOR_FORWARD, 2, 3)
TENSOR_KERNELS(f16_64, DTYPE_F16, 64u, TENSOR_ROWS_64, TENSOR_FORWARD, 2, 3)
TENSOR_KERNELS(bf16_128, DTYPE_BF16, 128u, TENSOR_ROWS_128, TENSOR_FORWARD, 1, 2)
TENSOR_KERNELS(f16_128, DTYPE_F16, 128u, TENSOR_ROWS_128, TENSOR_FORWARD, 1, 2)

/* ---- launches ---- */

/* Launches the kernel of the product's type and the head's width. */
#define TENSOR_LAUNCH(kernel, blocks, threads, bytes)                                              \
    do {                                                                                           \
        if (tensor_type(call) == DTYPE_F16)                                                        \
            TENSOR_LAUNCH_OF(kernel##_f16, blocks, threads, bytes);                                \
        else                                                                                       \
            TENSOR_LAUNCH_OF(kernel##_bf16, blocks, threads, bytes);                               \
    } while (0)
#define TENSOR_LAUNCH_OF(kernel, blocks, threads, bytes)                                           \
    do {                                                                                           \
        if (job->D <= 64)                                                                          \
            LAUNCH(kernel##_64, blocks, threads, bytes(TENSOR_ROWS_64, 64), job);                  \
        else                                                                                       \
            LAUNCH(kernel##_128, blocks, threads, bytes(TENSOR_ROWS_128, 128), job);               \
    } while (0)

static void tensor_start_queries(const struct op_call *call, struct attention_job *job) {
    const size_t blocks = tensor_deal(job, TENSOR_BACKWARD_ROWS) * job->H;
    TENSOR_LAUNCH(tensor_queries, blocks, TENSOR_BACKWARD, TENSOR_TILES);
}

static void tensor_start_keys(const struct op_call *call, struct attention_job *job) {
    const size_t blocks = tensor_deal(job, TENSOR_BACKWARD_ROWS) * job->G;
    if (job->sums != NULL)
        TENSOR_LAUNCH(tensor_atomic, blocks, TENSOR_BACKWARD, TENSOR_RACES);
    else
        TENSOR_LAUNCH(tensor_dkv, blocks, TENSOR_BACKWARD, TENSOR_KEYS);
}

void VARIANT(tensor_attention_forward)(const struct op_call *call,
                                       const struct attention_forward_args *args) {
    struct attention_job of_call = attention_job_forward(call, args), *const job = &of_call;
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job->group = group_at(args->sequences, args->count, first);
        const size_t blocks = tensor_deal(job, TENSOR_FORWARD_ROWS) * job->H;
        TENSOR_LAUNCH(tensor_forward, blocks, TENSOR_FORWARD, TENSOR_TILES);
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
