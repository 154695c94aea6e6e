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

/* Starts to copy the tile of keys that begins at `first` into a buffer, unless there is none. */
GPU_INLINE void tensor_fetch_keys(GPU_PARAM const struct tensor_side *k,
                                  const struct tensor_side *v, uint32_t first, uint32_t limit,
                                  struct tensor_form form, uint16_t *memory, unsigned buffer) {
    if (first >= limit) return;
    tensor_fetch(GPU_ARG k, first, limit, form.rows, form, tensor_tile_of(memory, buffer, 0, form));
    tensor_fetch(GPU_ARG v, first, limit, form.rows, form, tensor_tile_of(memory, buffer, 1, form));
}

/* Opens a tile of keys: waits for it, and starts to copy the next one. All warps are done with the
 * one before when the barrier lets them on. */
GPU_INLINE void tensor_open_keys(GPU_PARAM const struct tensor_side *k, const struct tensor_side *v,
                                 const struct attention_side *keys, struct tensor_form form,
                                 uint16_t *memory, unsigned buffer) {
    TENSOR_WAIT();
    BARRIER();
    tensor_fetch_keys(GPU_ARG k, v, keys->first + form.rows, keys->limit, form, memory, 1 - buffer);
}

GPU_INLINE void tensor_forward(GPU_PARAM const struct attention_job *job, uint16_t *memory,
                               struct tensor_form form) {
    const struct attention_part part =
        tensor_part_at(job, job->parts - 1 - BLOCK / job->H, TENSOR_BLOCK(form));
    struct attention_block own = attention_block_of(job, part, BLOCK % job->H);
    const uint32_t group = own.head / (job->H / job->G);
    const struct tensor_side k = tensor_side_of(job, &part, TENSOR_K, group, form);
    const struct tensor_side v = tensor_side_of(job, &part, TENSOR_V, group, form);
    const float factor = tensor_factor(job);
    uint32_t q[TENSOR_STEPS][4];
    float sums[TENSOR_PARTS][4], less[2];
    struct tensor_met met;
    tensor_fetch_keys(GPU_ARG & k, &v, 0, own.keys.limit, form, memory, 0);
    tensor_take(GPU_ARG job, &own.queries, own.q, form, q);
    tensor_clear(sums, form.width / TENSOR_PART);
    tensor_met_open(&met);
    ROLLED
    for (unsigned buffer = 0; own.keys.first < own.keys.limit; buffer = 1 - buffer) {
        float scores[TENSOR_PARTS][4];
        uint32_t weights[TENSOR_STEPS][4];
        tensor_open_keys(GPU_ARG & k, &v, &own.keys, form, memory, buffer);
        if (tensor_meets(GPU_ARG & own)) {
            tensor_scores(GPU_ARG q, tensor_tile_of(memory, buffer, 0, form), form, scores);
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
            tensor_weigh(GPU_ARG weights, tensor_tile_of(memory, buffer, 1, form), form, sums);
        }
        own.keys.first += form.rows;
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

/* Makes dS = round(P (dP - D)) scale in the place of dP; its own rounding is that of an operand,
 * which follows. */
GPU_INLINE void tensor_slope(const struct attention_job *job, const struct tensor_state *state,
                             const float p[2], int narrow, struct tensor_form form, float two[2]) {
    UNROLL
    for (unsigned i = 0; i < 2; i++)
        two[i] = p[i] * (two[i] - state->d[i]);
    if (narrow) tensor_narrow(two, form);
    two[0] = two[0] * job->scale;
    two[1] = two[1] * job->scale;
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

/* The left sides of a block of queries, and its keys. */
struct tensor_own {
    uint32_t q[TENSOR_STEPS][4], dout[TENSOR_STEPS][4];
    struct tensor_side k, v;
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
    const struct stored *const stored = job->stored + (own->dout - job->dout);
    const uint32_t row = own->queries.first + tensor_row(GPU_ARG i);
    float sum = 0.0f;
    for (unsigned j = 0; j < form.width / TENSOR_PART; j++) {
        const unsigned column = tensor_column(GPU_ARG j, 0);
        float x[2], y[2];
        if (row >= own->queries.limit || column >= tensor_head(job, form)) continue;
        tensor_take_two(x, own->dout + row * own->queries.line + column);
        tensor_take_two(y, stored + row * own->queries.line + column);
        sum = real_fma_f32(x[1], y[1], real_fma_f32(x[0], y[0], sum));
    }
    for (unsigned mask = 1; mask < TENSOR_BESIDE; mask *= 2)
        sum = sum + gpu_shuffle_xor_f32(GPU_ARG sum, mask);
    return sum;
}

/* Makes the state of the warp's queries: [h] of the lane's two rows. Of flash attention the sum of
 * exponentials goes into the exponent, P = exp(s - l) with l = maximum + log(sum). */
GPU_INLINE void tensor_find(GPU_PARAM const struct attention_job *job, struct attention_block own,
                            struct tensor_own *left, uint16_t *memory, struct tensor_form form,
                            struct tensor_state *state) {
    const float factor = tensor_factor(job);
    struct tensor_met met;
    float less[2];
    tensor_met_open(&met);
    ROLLED
    for (unsigned buffer = 0; own.keys.first < own.keys.limit; buffer = 1 - buffer) {
        float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
        tensor_open_keys(GPU_ARG & left->k, &left->v, &own.keys, form, memory, buffer);
        if (tensor_meets(GPU_ARG & own)) {
            tensor_scores(GPU_ARG left->q, tensor_tile_of(memory, buffer, 0, form), form, scores);
            if (job->stored == NULL) {
                tensor_scores(GPU_ARG left->dout, tensor_tile_of(memory, buffer, 1, form), form,
                              outers);
                tensor_outers(job, tensor_kept(GPU_ARG job, &own, form, 0), form, outers);
            }
            tensor_scale(job, form, scores);
            if (tensor_is_cut(GPU_ARG & own, form)) tensor_mask(GPU_ARG & own, form, scores);
            tensor_meet(GPU_ARG & met, factor, form, scores, less);
            if (job->stored == NULL) tensor_meet_outers(&met, form, scores, outers, less);
        }
        own.keys.first += form.rows;
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
                          struct tensor_own *left, uint16_t *memory, struct tensor_form form,
                          const struct tensor_state *state) {
    const float one[2] = {1.0f, 1.0f};
    float sums[TENSOR_PARTS][4];
    tensor_clear(sums, form.width / TENSOR_PART);
    ROLLED
    for (unsigned buffer = 0; own.keys.first < own.keys.limit; buffer = 1 - buffer) {
        float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
        uint32_t weights[TENSOR_STEPS][4];
        tensor_open_keys(GPU_ARG & left->k, &left->v, &own.keys, form, memory, buffer);
        if (tensor_meets(GPU_ARG & own)) {
            tensor_scores(GPU_ARG left->q, tensor_tile_of(memory, buffer, 0, form), form, scores);
            tensor_scores(GPU_ARG left->dout, tensor_tile_of(memory, buffer, 1, form), form,
                          outers);
            tensor_scale(job, form, scores);
            tensor_outers(job, tensor_kept(GPU_ARG job, &own, form, 0), form, outers);
            if (tensor_is_cut(GPU_ARG & own, form)) tensor_mask(GPU_ARG & own, form, scores);
            if (tensor_is_narrow(job))
                tensor_slopes(job, state, 1, form, scores, outers);
            else
                tensor_slopes(job, state, 0, form, scores, outers);
            tensor_round(outers, form, weights);
            tensor_weigh(GPU_ARG weights, tensor_tile_of(memory, buffer, 0, form), form, sums);
        }
        own.keys.first += form.rows;
    }
    tensor_write(GPU_ARG job, &own.part, job->H, own.head, sums, one, form, job->dq);
}

/* One block of queries: makes its state, kept for dK and dV, then its sums, unless dQ races. */
GPU_INLINE void tensor_queries(GPU_PARAM const struct attention_job *job, uint16_t *memory,
                               struct tensor_form form) {
    const struct attention_part part =
        tensor_part_at(job, job->parts - 1 - BLOCK / job->H, TENSOR_BLOCK(form));
    const struct attention_block own = attention_block_of(job, part, BLOCK % job->H);
    const uint32_t group = own.head / (job->H / job->G);
    struct tensor_own left;
    struct tensor_state state;
    left.k = tensor_side_of(job, &part, TENSOR_K, group, form);
    left.v = tensor_side_of(job, &part, TENSOR_V, group, form);
    tensor_fetch_keys(GPU_ARG & left.k, &left.v, 0, own.keys.limit, form, memory, 0);
    tensor_take(GPU_ARG job, &own.queries, own.q, form, left.q);
    tensor_take(GPU_ARG job, &own.queries, own.dout, form, left.dout);
    tensor_find(GPU_ARG job, own, &left, memory, form, &state);
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
    BARRIER(); /* the last tile was in either buffer */
    tensor_fetch_keys(GPU_ARG & left.k, &left.v, 0, own.keys.limit, form, memory, 0);
    tensor_dq(GPU_ARG job, own, &left, memory, form, &state);
}

/* ---- the blocks of keys: dK and dV, and the racing dQ ---- */

/* What a block of keys has in shared memory behind its tiles of queries. */
struct tensor_keys {
    uint16_t *k, *v;  /* the block's own rows */
    uint16_t *slopes; /* (keys, rows): dS, where dQ races */
    float *states;    /* (2 buffers, ATTENTION_STATE, rows) */
};

GPU_INLINE struct tensor_keys tensor_keys_of(uint16_t *memory, struct tensor_form form) {
    struct tensor_keys keys;
    keys.k = tensor_tile_of(memory, 2, 0, form);
    keys.v = keys.k + TENSOR_BLOCK(form) * form.width;
    keys.states = (float *)(void *)(keys.v + TENSOR_BLOCK(form) * form.width);
    keys.slopes = (uint16_t *)(void *)(keys.states + 2 * ATTENTION_STATE * form.rows);
    return keys;
}

/* Which tile of queries comes: of which head, and from which position on. */
struct tensor_turn {
    uint32_t head, first;
};

/* Starts to copy a tile of queries into a buffer, and reads their state. Queries that are not there
 * have P = 0. */
GPU_INLINE void tensor_fetch_queries(GPU_PARAM const struct attention_job *job,
                                     const struct attention_part *part, struct tensor_turn turn,
                                     struct tensor_form form, uint16_t *memory, unsigned buffer,
                                     float state[ATTENTION_STATE]) {
    const struct tensor_side q = tensor_side_of(job, part, TENSOR_Q, turn.head, form);
    const struct tensor_side dout = tensor_side_of(job, part, TENSOR_DOUT, turn.head, form);
    const uint32_t limit = part->sequence->length, query = turn.first + THREAD;
    tensor_fetch(GPU_ARG & q, turn.first, limit, form.rows, form,
                 tensor_tile_of(memory, buffer, 0, form));
    tensor_fetch(GPU_ARG & dout, turn.first, limit, form.rows, form,
                 tensor_tile_of(memory, buffer, 1, form));
    if (THREAD >= form.rows) return;
    const int there = query < limit;
    const size_t token = part->token - part->first + (there ? query : 0);
    const accumulator *const from = job->state + (token * job->H + turn.head) * ATTENTION_STATE;
    UNROLL
    for (unsigned i = 0; i < ATTENTION_STATE; i++)
        state[i] = there ? from[i] : 0.0f;
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
    const size_t line = (size_t)job->H * tensor_head(job, form);
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
    for (unsigned i = 0; i < 4; i += 2) {
        const unsigned r = row + THREAD % GPU_WARP / 4 + i / 2 * 8;
        if (own->queries.first + r >= own->queries.limit) continue;
        float *const to = job->sums + (token + r) * line + own->head * tensor_head(job, form);
        UNROLL
        for (unsigned j = 0; j < 8; j++) {
            const unsigned c = column + tensor_column(GPU_ARG j, i);
            if (c < tensor_head(job, form))
                tensor_race_add2(GPU_ARG to + c, sums[j][i], sums[j][i + 1]);
        }
    }
}

/* Makes dK and dV of a block of keys of a key/value head, over (query head, query) ascending. */
GPU_INLINE void tensor_dkv(GPU_PARAM const struct attention_job *job, uint16_t *memory, int races,
                           struct tensor_form form) {
    const float one[2] = {1.0f, 1.0f};
    const struct tensor_keys keys = tensor_keys_of(memory, form);
    const uint32_t group = BLOCK % job->G, heads = job->H / job->G, last = (group + 1) * heads;
    const struct attention_part part = tensor_part_at(job, BLOCK / job->G, TENSOR_BLOCK(form));
    const struct tensor_side k = tensor_side_of(job, &part, TENSOR_K, group, form);
    const struct tensor_side v = tensor_side_of(job, &part, TENSOR_V, group, form);
    const uint32_t end = part.first + part.count, length = part.sequence->length;
    const unsigned own_row = THREAD / GPU_WARP * TENSOR_SIDE;
    struct attention_block own = attention_block_of(job, part, group * heads);
    struct tensor_turn turn = {group * heads, part.first};
    float dk[TENSOR_PARTS][4], dv[TENSOR_PARTS][4], state[ATTENTION_STATE] = {0.0f};
    tensor_clear(dk, form.width / TENSOR_PART);
    tensor_clear(dv, form.width / TENSOR_PART);
    own.keys.first = part.first;
    tensor_fetch(GPU_ARG & k, part.first, end, TENSOR_BLOCK(form), form, keys.k);
    tensor_fetch(GPU_ARG & v, part.first, end, TENSOR_BLOCK(form), form, keys.v);
    tensor_fetch_queries(GPU_ARG job, &part, turn, form, memory, 0, state);
    ROLLED
    for (unsigned buffer = 0; turn.head < last; buffer = 1 - buffer) {
        float *const states = keys.states + buffer * ATTENTION_STATE * form.rows;
        uint16_t *const q = tensor_tile_of(memory, buffer, 0, form);
        uint16_t *const dout = tensor_tile_of(memory, buffer, 1, form);
        UNROLL
        for (unsigned i = 0; i < ATTENTION_STATE; i++)
            if (THREAD < form.rows) states[i * form.rows + THREAD] = state[i];
        TENSOR_WAIT();
        BARRIER();
        own.head = turn.head;
        own.queries.first = turn.first;
        own.queries.limit = length;
        turn.first += form.rows;
        if (turn.first >= length) {
            turn.first = part.first;
            turn.head++;
        }
        if (turn.head < last)
            tensor_fetch_queries(GPU_ARG job, &part, turn, form, memory, 1 - buffer, state);
        if (races || own.queries.first + form.rows > part.first + own_row) {
            const int cut = own.queries.first < part.first + own_row + TENSOR_SIDE - 1;
            float scores[TENSOR_PARTS][4], outers[TENSOR_PARTS][4];
            uint32_t weights[TENSOR_STEPS][4], slopes[TENSOR_STEPS][4];
            tensor_scores_of(GPU_ARG keys.k, own_row, q, form, scores);
            tensor_scores_of(GPU_ARG keys.v, own_row, dout, form, outers);
            tensor_scale(job, form, scores);
            if (tensor_is_narrow(job))
                tensor_turned(GPU_ARG job, &own, states, cut, 1, form, scores, outers);
            else
                tensor_turned(GPU_ARG job, &own, states, cut, 0, form, scores, outers);
            tensor_round(scores, form, weights);
            tensor_round(outers, form, slopes);
            if (races) tensor_show(GPU_ARG slopes, form, keys.slopes);
            tensor_weigh(GPU_ARG weights, dout, form, dv);
            tensor_weigh(GPU_ARG slopes, q, form, dk);
        }
        if (!races) continue;
        BARRIER();
        tensor_race(GPU_ARG job, &own, &keys, form);
    }
    tensor_write(GPU_ARG job, &part, job->G, group, dk, one, form, job->dk);
    tensor_write(GPU_ARG job, &part, job->G, group, dv, one, form, job->dv);
}

/* ---- kernels ---- */

#define TENSOR_FORWARD 256u /* threads of a block of the forward */
#define TENSOR_BACKWARD 128u
#define TENSOR_FORWARD_ROWS (TENSOR_FORWARD / GPU_WARP * TENSOR_SIDE)   /* its queries */
#define TENSOR_BACKWARD_ROWS (TENSOR_BACKWARD / GPU_WARP * TENSOR_SIDE) /* its queries, or keys */
/* Rows of a tile: of the forward, and of the backward by a tile's columns, as registers allow. */
#define TENSOR_FORWARD_TILE 64u
#define TENSOR_ROWS_64 64u
#define TENSOR_ROWS_128 32u

/* Bytes of a block of the forward, of a block of keys, and of one whose dQ races. */
#define TENSOR_FORWARD_BYTES(rows, width) TENSOR_TILES(TENSOR_FORWARD_TILE, width)
#define TENSOR_KEYS(rows, width)                                                                   \
    (TENSOR_TILES(rows, width) + 2 * TENSOR_BACKWARD_ROWS * (width) * sizeof(uint16_t) +           \
     2 * ATTENTION_STATE * (rows) * sizeof(float))
#define TENSOR_RACES(rows, width)                                                                  \
    (TENSOR_KEYS(rows, width) + TENSOR_BACKWARD_ROWS * (rows) * sizeof(uint16_t))

#define TENSOR_FORM(dtype, columns, tile, count, lies)                                             \
    const struct tensor_form form = {dtype, columns, tile, count, lies};                           \
    SHARED(uint16_t, memory)

#define TENSOR_PACK(name, dtype, width, rows)                                                      \
    KERNEL(tensor_pack_##name, struct attention_job) {                                             \
        const struct tensor_form form = {dtype, width, rows, TENSOR_BACKWARD, 0};                  \
        tensor_pack_token(GPU_ARG args, form);                                                     \
    }

#define TENSOR_KERNELS(name, dtype, width, rows, per_forward, per_backward, lies)                  \
    KERNEL_BY(tensor_forward_##name, struct attention_job, TENSOR_FORWARD, per_forward) {          \
        TENSOR_FORM(dtype, width, TENSOR_FORWARD_TILE, TENSOR_FORWARD, lies);                      \
        tensor_forward(GPU_ARG args, memory, form);                                                \
    }                                                                                              \
    KERNEL_BY(tensor_queries_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {        \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD, lies);                                    \
        tensor_queries(GPU_ARG args, memory, form);                                                \
    }                                                                                              \
    KERNEL_BY(tensor_dkv_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {            \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD, lies);                                    \
        tensor_dkv(GPU_ARG args, memory, 0, form);                                                 \
    }                                                                                              \
    KERNEL_BY(tensor_atomic_##name, struct attention_job, TENSOR_BACKWARD, per_backward) {         \
        TENSOR_FORM(dtype, width, rows, TENSOR_BACKWARD, lies);                                    \
        tensor_dkv(GPU_ARG args, memory, 1, form);                                                 \
    }
#define TENSOR_KERNELS_64(name, dtype, lies)                                                       \
    TENSOR_KERNELS(name, dtype, 64u, TENSOR_ROWS_64, 2, 3, lies)
#define TENSOR_KERNELS_128(name, dtype, lies)                                                      \
    TENSOR_KERNELS(name, dtype, 128u, TENSOR_ROWS_128, 1, 2, lies)
#if defined(STORED_DTYPE)
TENSOR_PACK(own_64, STORED_DTYPE, 64u, TENSOR_ROWS_64)
TENSOR_PACK(own_128, STORED_DTYPE, 128u, TENSOR_ROWS_128)
TENSOR_KERNELS_64(own_64, STORED_DTYPE, 0)
TENSOR_KERNELS_128(own_128, STORED_DTYPE, 0)
TENSOR_KERNELS_64(lying_64, STORED_DTYPE, 1)
TENSOR_KERNELS_128(lying_128, STORED_DTYPE, 1)
#else
TENSOR_PACK(bf16_64, DTYPE_BF16, 64u, TENSOR_ROWS_64)
TENSOR_PACK(f16_64, DTYPE_F16, 64u, TENSOR_ROWS_64)
TENSOR_PACK(bf16_128, DTYPE_BF16, 128u, TENSOR_ROWS_128)
TENSOR_PACK(f16_128, DTYPE_F16, 128u, TENSOR_ROWS_128)
TENSOR_KERNELS_64(bf16_64, DTYPE_BF16, 0)
TENSOR_KERNELS_64(f16_64, DTYPE_F16, 0)
TENSOR_KERNELS_128(bf16_128, DTYPE_BF16, 0)
TENSOR_KERNELS_128(f16_128, DTYPE_F16, 0)
#endif

/* ---- launches ---- */

/* Whether operands are used where they lie: as what a core reads, in heads as wide as a tile. */
static int tensor_lies(const struct attention_job *job) {
#if defined(STORED_DTYPE)
    return job->D == TENSOR_WIDTH(job->D) && lines_aligned(job->q, 0) && lines_aligned(job->k, 0) &&
           lines_aligned(job->v, 0) && lines_aligned(job->dout, 0);
#else
    (void)job;
    return 0;
#endif
}

/* Launches the kernel of the product's type and the head's width: TENSOR_LAUNCH that of operands
 * where they are, TENSOR_LAUNCH_PACK the one that packs them. */
#if defined(STORED_DTYPE)
#define TENSOR_LAUNCH(kernel, blocks, threads, bytes)                                              \
    do {                                                                                           \
        (void)call;                                                                                \
        if (tensor_lies(job))                                                                      \
            TENSOR_LAUNCH_OF(kernel##_lying, blocks, threads, bytes);                              \
        else                                                                                       \
            TENSOR_LAUNCH_OF(kernel##_own, blocks, threads, bytes);                                \
    } while (0)
#define TENSOR_LAUNCH_PACK(blocks, threads, bytes)                                                 \
    do {                                                                                           \
        (void)call;                                                                                \
        TENSOR_LAUNCH_OF(tensor_pack_own, blocks, threads, bytes);                                 \
    } while (0)
#else
#define TENSOR_LAUNCH(kernel, blocks, threads, bytes)                                              \
    do {                                                                                           \
        if (tensor_type(call) == DTYPE_F16)                                                        \
            TENSOR_LAUNCH_OF(kernel##_f16, blocks, threads, bytes);                                \
        else                                                                                       \
            TENSOR_LAUNCH_OF(kernel##_bf16, blocks, threads, bytes);                               \
    } while (0)
#define TENSOR_LAUNCH_PACK(blocks, threads, bytes)                                                 \
    TENSOR_LAUNCH(tensor_pack, blocks, threads, bytes)
#endif
#define TENSOR_LAUNCH_OF(kernel, blocks, threads, bytes)                                           \
    do {                                                                                           \
        if (job->D <= 64)                                                                          \
            LAUNCH(kernel##_64, blocks, threads, bytes(TENSOR_ROWS_64, 64), job);                  \
        else                                                                                       \
            LAUNCH(kernel##_128, blocks, threads, bytes(TENSOR_ROWS_128, 128), job);               \
    } while (0)

#define TENSOR_NOTHING(rows, width) ((size_t)0)

/* Packs the group's operands into the scratch behind its state and its racing sums, unless they are
 * used where they lie. */
static void tensor_start_packs(const struct op_call *call, struct attention_job *job) {
    const struct stored *const lying[] = {job->q, job->dout, job->k, job->v};
    for (unsigned o = TENSOR_Q; tensor_lies(job) && o <= TENSOR_V; o++)
        job->packed[o] = (const uint16_t *)(const void *)lying[o];
    if (tensor_lies(job)) return;
    const size_t tokens = job->group.tokens, width = TENSOR_WIDTH(job->D);
    const accumulator *const end = job->sums != NULL
                                       ? job->sums + tokens * job->H * job->D
                                       : job->state + tokens * job->H * ATTENTION_STATE;
    const uint16_t *at =
        (const uint16_t *)(const void *)(job->state + ((size_t)(end - job->state) + 15) / 16 * 16);
    for (unsigned o = job->backward ? TENSOR_Q : TENSOR_K; o <= TENSOR_V; o++) {
        job->packed[o] = at;
        at += tokens * (o < TENSOR_K ? job->H : job->G) * width;
    }
    TENSOR_LAUNCH_PACK(tokens, TENSOR_BACKWARD, TENSOR_NOTHING);
}

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
        tensor_start_packs(call, job);
        TENSOR_LAUNCH(tensor_forward, blocks, TENSOR_FORWARD, TENSOR_FORWARD_BYTES);
    }
}

void VARIANT(tensor_attention_backward)(const struct op_call *call,
                                        const struct attention_backward_args *args) {
    struct attention_job job = attention_job_backward(call, args);
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        if (race_active(call, SUM_DQ)) attention_race_open(call, &job);
        tensor_start_packs(call, &job);
        tensor_start_queries(call, &job);
        tensor_start_keys(call, &job);
        if (job.sums != NULL) attention_race_close(&job);
    }
}
