/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * Tiles of attention on tensor cores: how rows of q, k, v and dout come into shared memory as
 * operands, how a warp multiplies them, and what becomes of a score on the way.
 *
 * A warp has 16 rows of sums, and a lane the places of it that tensor.h says. A kernel has two
 * operands in a tile of shared memory at a time; those of the next tile are copied into the other
 * buffer while this one is multiplied. Eight neighbours of a row stand together (16 bytes), turned
 * by the row's number, so that the eight rows of one load lie in different banks.
 * Invariant: what is not there, rows or columns, is +0. */
#ifndef TWINSTEP_KERNELS_CUDA_TENSOR_TILE_H
#define TWINSTEP_KERNELS_CUDA_TENSOR_TILE_H

#include "kernels/cuda/attention_tile.h"
#include "kernels/cuda/tensor.h"

#define TENSOR_STEPS 8u  /* steps of 16 numbers that a row has, at most */
#define TENSOR_PARTS 16u /* parts of 8 columns that sums have, at most */
#define TENSOR_BESIDE 4u /* lanes of a row, neighbours */
#define TENSOR_LOG2E 0x1.715476p+0f

/* What a kernel is compiled for; its numbers are constants wherever they are inlined. */
struct tensor_form {
    enum dtype type;
    unsigned width;   /* columns of a tile: 64 or 128; a narrower head has +0 behind its own */
    unsigned rows;    /* rows of a tile */
    unsigned threads; /* of a block; its warps have 16 queries, or keys, each */
    int lies;         /* 1: operands are read where they lie, and heads are `width` wide */
};

#define TENSOR_BLOCK(form) ((form).threads / GPU_WARP * TENSOR_SIDE)

/* Columns of a head. */
GPU_INLINE uint32_t tensor_head(const struct attention_job *job, struct tensor_form form) {
    return form.lies ? form.width : job->D;
}

/* Where one of the two buffers of both operands begins: (2 operands, rows, width), turned. */
GPU_INLINE uint16_t *tensor_tile_of(uint16_t *memory, unsigned buffer, unsigned operand,
                                    struct tensor_form form) {
    return memory + (buffer * 2 + operand) * form.rows * form.width;
}

/* Bytes of both buffers. */
#define TENSOR_TILES(rows, width) (4 * (rows) * (width) * sizeof(uint16_t))

/* Where the numbers eighth * 8 .. + 7 of a row begin in a tile of `width` columns. Two rows of a
 * tile of 32 columns, which is one of weights where operands have 128, fill all banks. */
GPU_INLINE unsigned tensor_place(unsigned row, unsigned eighth, unsigned width) {
    return row * width + (eighth ^ (width < 64 ? row / 2 % 4 : row % 8)) * 8;
}

/* Places for tensor_load(), of which each lane gives one: matrices one below the other, then beside
 * them; or beside each other, then below. */
GPU_INLINE unsigned tensor_down(GPU_PARAM unsigned row, unsigned eighth, unsigned width) {
    const unsigned lane = THREAD % GPU_WARP;
    return tensor_place(row + lane / 8 % 2 * 8 + lane % 8, eighth + lane / 16, width);
}

GPU_INLINE unsigned tensor_across(GPU_PARAM unsigned row, unsigned eighth, unsigned width) {
    const unsigned lane = THREAD % GPU_WARP;
    return tensor_place(row + lane / 16 * 8 + lane % 8, eighth + lane / 8 % 2, width);
}

/* ---- from global memory to operands ---- */

/* The operands of a call: q, dout, k and v of its tokens, rounded and packed; or where they lie,
 * with a head as wide as a tile (form.lies). */
enum tensor_operand { TENSOR_Q, TENSOR_DOUT, TENSOR_K, TENSOR_V };

/* One head of an operand: rows from position 0 of a sequence on. */
struct tensor_side {
    const uint16_t *at;
    size_t line;
};

GPU_INLINE struct tensor_side tensor_side_of(const struct attention_job *job,
                                             const struct attention_part *part,
                                             enum tensor_operand operand, uint32_t head,
                                             struct tensor_form form) {
    const uint32_t heads = operand < TENSOR_K ? job->H : job->G;
    struct tensor_side side;
    side.line = (size_t)heads * form.width;
    side.at = job->packed[operand] + head * form.width +
              (form.lies ? part->sequence->row : part->token - part->first) * side.line;
    return side;
}

/* Starts to copy rows first .. first+rows-1; those from `limit` on are none. */
GPU_INLINE void tensor_fetch(GPU_PARAM const struct tensor_side *side, uint32_t first,
                             uint32_t limit, unsigned rows, struct tensor_form form,
                             uint16_t *tile) {
    const unsigned eighths = form.width / 8, beside = form.threads / eighths;
    UNROLL
    for (unsigned i = 0; i < rows / beside; i++) {
        const unsigned r = i * beside + THREAD / eighths, eighth = THREAD % eighths;
        const int there = first + r < limit;
        tensor_copy(GPU_ARG tile + tensor_place(r, eighth, form.width),
                    side->at + (there ? first + r : 0) * side->line + eighth * 8, there);
    }
}

/* Eight neighbours of a tensor, wherever they begin. */
GPU_INLINE void tensor_take8(float eight[8], const struct stored *from) {
    if (span_aligned(from)) {
        UNROLL
        for (unsigned e = 0; e < 8; e += SPAN_EACH)
            load_each(eight + e, from + e);
        return;
    }
    UNROLL
    for (unsigned e = 0; e < 8; e++)
        eight[e] = stored_load(from[e]);
}

/* Two neighbours of a tensor, at an even place of it: as numbers, as operands, and as they become a
 * result. */
#if defined(STORED_DTYPE)
GPU_INLINE void tensor_take_two(float two[2], const struct stored *from) {
    const uint32_t pair = tensor_get_pair((const uint16_t *)(const void *)from);
    two[0] = tensor_unpack(pair, 0, STORED_DTYPE);
    two[1] = tensor_unpack(pair, 1, STORED_DTYPE);
}

GPU_INLINE uint32_t tensor_take_pair(const struct stored *from, enum dtype type) {
    (void)type; /* which is that of the numbers */
    return tensor_get_pair((const uint16_t *)(const void *)from);
}

GPU_INLINE void tensor_keep_pair(struct stored *to, float x, float y, enum dtype compute,
                                 enum dtype type) {
    (void)compute;
    tensor_put_pair((uint16_t *)(void *)to, tensor_pack(x, y, type));
}
#else
GPU_INLINE void tensor_take_two(float two[2], const struct stored *from) {
    tensor_take2(two, (const float *)(const void *)from);
}

GPU_INLINE uint32_t tensor_take_pair(const struct stored *from, enum dtype type) {
    float two[2];
    tensor_take_two(two, from);
    return tensor_pack(two[0], two[1], type);
}

GPU_INLINE void tensor_keep_pair(struct stored *to, float x, float y, enum dtype compute,
                                 enum dtype type) {
    if (compute != DTYPE_F32) {
        const uint32_t pair = tensor_pack(x, y, type);
        x = tensor_unpack(pair, 0, type);
        y = tensor_unpack(pair, 1, type);
    }
    tensor_put2((float *)(void *)to, x, y);
}
#endif

/* Rounds the operands of a token that are used as tiles; a block takes one token. Columns that a
 * head lacks become +0. */
GPU_INLINE void tensor_pack_token(GPU_PARAM const struct attention_job *job,
                                  struct tensor_form form) {
    const struct place place = group_place(&job->group, BLOCK);
    const size_t row = (size_t)place.sequence->row + place.position;
    const struct stored *const from[] = {job->q, job->dout, job->k, job->v};
    const unsigned eighths = form.width / 8;
    UNROLL
    for (unsigned o = TENSOR_Q; o <= TENSOR_V; o++) {
        if (o < TENSOR_K && !job->backward) continue;
        const uint32_t heads = o < TENSOR_K ? job->H : job->G;
        const struct stored *const x = from[o] + row * heads * job->D;
        uint16_t *const to =
            (uint16_t *)(uintptr_t)job->packed[o] + (size_t)BLOCK * heads * form.width;
        for (unsigned i = THREAD; i < heads * eighths; i += form.threads) {
            const unsigned head = i / eighths, column = i % eighths * 8;
            float eight[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
            uint32_t pairs[4];
            if (column < job->D) {
                tensor_take8(eight, x + head * job->D + column);
            }
            UNROLL
            for (unsigned e = 0; e < 4; e++)
                pairs[e] = tensor_pack(eight[2 * e], eight[2 * e + 1], form.type);
            tensor_put8(to + i * 8, pairs);
        }
    }
}

/* Brings the warp's 16 rows into registers, as left sides of steps. */
GPU_INLINE void tensor_take(GPU_PARAM const struct attention_job *job,
                            const struct attention_side *side, const struct stored *x,
                            struct tensor_form form, uint32_t left[TENSOR_STEPS][4]) {
    const unsigned lane = THREAD % GPU_WARP;
    UNROLL
    for (unsigned d = 0; d < form.width / TENSOR_SIDE; d++) {
        UNROLL
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t row =
                side->first + THREAD / GPU_WARP * TENSOR_SIDE + lane / 4 + i % 2 * 8;
            const unsigned column = d * TENSOR_SIDE + i / 2 * 8 + lane % 4 * 2;
            left[d][i] = row < side->limit && column < tensor_head(job, form)
                             ? tensor_take_pair(x + row * side->line + column, form.type)
                             : 0;
        }
    }
}

/* ---- products of a warp ---- */

GPU_INLINE void tensor_clear(float sums[TENSOR_PARTS][4], unsigned parts) {
    UNROLL
    for (unsigned j = 0; j < parts; j++) {
        UNROLL
        for (unsigned i = 0; i < 4; i++)
            sums[j][i] = 0.0f;
    }
}

/* Makes the products of the warp's 16 rows and all rows of a tile. */
GPU_INLINE void tensor_scores(GPU_PARAM uint32_t left[TENSOR_STEPS][4], const uint16_t *tile,
                              struct tensor_form form, float scores[TENSOR_PARTS][4]) {
    tensor_clear(scores, form.rows / TENSOR_PART);
    UNROLL
    for (unsigned d = 0; d < form.width / TENSOR_SIDE; d++) {
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_SIDE; j++) {
            uint32_t right[4];
            tensor_load(GPU_ARG right,
                        tile + tensor_across(GPU_ARG j * TENSOR_SIDE, d * 2, form.width));
            tensor_step(GPU_ARG scores[2 * j], left[d], right, form.type);
            tensor_step(GPU_ARG scores[2 * j + 1], left[d], right + 2, form.type);
        }
    }
}

/* The same of 16 rows that stand in a tile of their own, from `row` on. */
GPU_INLINE void tensor_scores_of(GPU_PARAM const uint16_t *rows, unsigned row, const uint16_t *tile,
                                 struct tensor_form form, float scores[TENSOR_PARTS][4]) {
    tensor_clear(scores, form.rows / TENSOR_PART);
    UNROLL
    for (unsigned d = 0; d < form.width / TENSOR_SIDE; d++) {
        uint32_t left[4];
        tensor_load(GPU_ARG left, rows + tensor_down(GPU_ARG row, d * 2, form.width));
        UNROLL
        for (unsigned j = 0; j < form.rows / TENSOR_SIDE; j++) {
            uint32_t right[4];
            tensor_load(GPU_ARG right,
                        tile + tensor_across(GPU_ARG j * TENSOR_SIDE, d * 2, form.width));
            tensor_step(GPU_ARG scores[2 * j], left, right, form.type);
            tensor_step(GPU_ARG scores[2 * j + 1], left, right + 2, form.type);
        }
    }
}

/* Rounds weights, which stand as scores do, to operands. */
GPU_INLINE void tensor_round(float weights[TENSOR_PARTS][4], struct tensor_form form,
                             uint32_t left[TENSOR_STEPS][4]) {
    UNROLL
    for (unsigned t = 0; t < form.rows / TENSOR_SIDE; t++) {
        UNROLL
        for (unsigned i = 0; i < 4; i++) {
            const float *const two = weights[2 * t + i / 2] + i % 2 * 2;
            left[t][i] = tensor_pack(two[0], two[1], form.type);
        }
    }
}

/* Adds weights . the rows of a tile to sums of 16 rows and all columns. */
GPU_INLINE void tensor_weigh(GPU_PARAM uint32_t weights[TENSOR_STEPS][4], const uint16_t *tile,
                             struct tensor_form form, float sums[TENSOR_PARTS][4]) {
    UNROLL
    for (unsigned t = 0; t < form.rows / TENSOR_SIDE; t++) {
        UNROLL
        for (unsigned c = 0; c < form.width / TENSOR_SIDE; c++) {
            uint32_t right[4];
            tensor_load_turned(GPU_ARG right,
                               tile + tensor_down(GPU_ARG t * TENSOR_SIDE, c * 2, form.width));
            tensor_step(GPU_ARG sums[2 * c], weights[t], right, form.type);
            tensor_step(GPU_ARG sums[2 * c + 1], weights[t], right + 2, form.type);
        }
    }
}

/* Where place i of part j is among the warp's rows, and among the columns. */
GPU_INLINE unsigned tensor_row(GPU_PARAM unsigned i) {
    return THREAD / GPU_WARP * TENSOR_SIDE + THREAD % GPU_WARP / 4 + i / 2 * 8;
}

GPU_INLINE unsigned tensor_column(GPU_PARAM unsigned j, unsigned i) {
    return j * TENSOR_PART + THREAD % 4 * 2 + i % 2;
}

/* Rounds sums of the part's rows, times a number of each of the lane's two, to rows of `out`. */
GPU_INLINE void tensor_write(GPU_PARAM const struct attention_job *job,
                             const struct attention_part *part, uint32_t heads, uint32_t head,
                             float sums[TENSOR_PARTS][4], const float times[2],
                             struct tensor_form form, struct stored *out) {
    UNROLL
    for (unsigned i = 0; i < 4; i += 2) {
        const unsigned r = tensor_row(GPU_ARG i);
        const size_t row = (size_t)part->sequence->row + part->first + r;
        struct stored *const to = out + (row * heads + head) * tensor_head(job, form);
        if (r >= part->count) continue;
        UNROLL
        for (unsigned j = 0; j < form.width / TENSOR_PART; j++) {
            const unsigned column = tensor_column(GPU_ARG j, 0);
            if (column >= tensor_head(job, form)) continue;
            tensor_keep_pair(to + column, sums[j][i] * times[i / 2], sums[j][i + 1] * times[i / 2],
                             job->dtype, form.type);
        }
    }
}

/* ---- scores ---- */

/* Rounds two neighbours as scores are. */
GPU_INLINE void tensor_narrow(float two[2], struct tensor_form form) {
    const uint32_t pair = tensor_pack(two[0], two[1], form.type);
    two[0] = tensor_unpack(pair, 0, form.type);
    two[1] = tensor_unpack(pair, 1, form.type);
}

GPU_INLINE int tensor_is_narrow(const struct attention_job *job) {
    return job->score != DTYPE_F32;
}

/* Rounds scores, and multiplies them. */
GPU_INLINE void tensor_narrow_all(float scale, struct tensor_form form,
                                  float scores[TENSOR_PARTS][4]) {
    UNROLL
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        UNROLL
        for (unsigned i = 0; i < 4; i += 2) {
            tensor_narrow(scores[j] + i, form);
            scores[j][i] = scores[j][i] * scale;
            scores[j][i + 1] = scores[j][i + 1] * scale;
        }
    }
}

/* Whether a product with the scale needs no rounding: by a power of two it is exact, but for
 * numbers so small that their exponential is 1. */
GPU_INLINE int tensor_is_exact(float scale) {
    return (real_bits_f32(scale) & 0x7fffffu) == 0 && scale <= 1.0f;
}

/* s = round(round(q . k) * scale), where scores are rounded; those of f32 are scaled in the
 * exponent. */
GPU_INLINE void tensor_scale(const struct attention_job *job, struct tensor_form form,
                             float scores[TENSOR_PARTS][4]) {
    if (!tensor_is_narrow(job)) return;
    tensor_narrow_all(job->scale, form, scores);
    if (!tensor_is_exact(job->scale)) tensor_narrow_all(1.0f, form, scores);
}

/* What a score as tensor_scale() leaves it is multiplied by in the exponent of 2. */
GPU_INLINE float tensor_factor(const struct attention_job *job) {
    return tensor_is_narrow(job) ? TENSOR_LOG2E : job->scale * TENSOR_LOG2E;
}

/* Which places of a tile of scores dropout keeps, as bits j * 4 + i. `turned`: rows are keys. */
GPU_INLINE uint32_t tensor_kept(GPU_PARAM const struct attention_job *job,
                                const struct attention_block *own, struct tensor_form form,
                                int turned) {
    uint32_t kept = 0;
    if (!job->drops) return ~kept;
    ROLLED
    for (unsigned j = 0; j < form.rows / TENSOR_PART; j++) {
        ROLLED
        for (unsigned i = 0; i < 4; i++) {
            const uint32_t row = tensor_row(GPU_ARG i), column = tensor_column(GPU_ARG j, i);
            const uint32_t query = own->queries.first + (turned ? column : row);
            const uint32_t key = own->keys.first + (turned ? row : column);
            const int kept_one =
                mask_attention(&job->dropout, own->part.sequence, job->H, own->head, query, key);
            kept |= (uint32_t)(kept_one != 0) << (j * 4 + i);
        }
    }
    return kept;
}

/* What dropout makes of two neighbours, whose bits of `kept` are the lowest. */
GPU_INLINE void tensor_drop(float two[2], uint32_t kept, float scale, int narrow,
                            struct tensor_form form) {
    two[0] = two[0] * scale;
    two[1] = two[1] * scale;
    if (narrow) tensor_narrow(two, form);
    two[0] = kept & 1 ? two[0] : 0.0f;
    two[1] = kept & 2 ? two[1] : 0.0f;
}

/* ---- which rows a block has ---- */

TWINSTEP_HD uint32_t tensor_parts_of(const struct attention_job *job, uint32_t number,
                                     uint32_t rows) {
    return (job->group.sequence[number].length + rows - 1) / rows;
}

GPU_INLINE struct attention_part tensor_part_at(const struct attention_job *job, uint32_t index,
                                                uint32_t rows) {
    struct attention_part part;
    uint32_t token = 0, number = 0;
    for (uint32_t parts; index >= (parts = tensor_parts_of(job, number, rows)); number++) {
        index -= parts;
        token += job->group.sequence[number].length;
    }
    part.sequence = job->group.sequence + number;
    part.number = number;
    part.first = index * rows;
    part.count = (uint32_t)least(rows, part.sequence->length - part.first);
    part.token = token + part.first;
    return part;
}

/* Counts the parts of the group into job->parts, and returns how many they are. */
static inline size_t tensor_deal(struct attention_job *job, uint32_t rows) {
    job->parts = 0;
    for (uint32_t i = 0; i < job->group.count; i++)
        job->parts += tensor_parts_of(job, i, rows);
    return job->parts;
}

#endif
