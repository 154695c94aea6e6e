/* SPDX-License-Identifier: Apache-2.0
 * One tile of a product in mode invariant with f32 sums, as kernels/linear_gemm.h poses it: slabs
 * of 16 terms are copied into shared memory by cp.async, in three stages, while threads go on with
 * their chains over an earlier one. (linear_tile.h is for the other modes and for f64 sums.)
 *
 * A slab keeps the order that its operand has in memory, so nothing is transposed: where a line
 * holds an output's terms, a thread reads four terms of an output at once, else four outputs of a
 * term. What an operand is like and the form of a tile are constant in every kernel.
 *
 * Invariant: a thread continues its outputs' chains over terms in ascending order. Rows not listed
 * are neither read nor written. */
#ifndef TWINSTEP_KERNELS_CUDA_LINEAR_STAGES_H
#define TWINSTEP_KERNELS_CUDA_LINEAR_STAGES_H

#include "kernels/cuda/launch.h"
#include "kernels/cuda/linear_form.h"
#include "kernels/cuda/linear_tile.h"

#if defined(TWINSTEP_ACCUMULATOR_f32) /* other sums have linear_tile.h alone */

#define STAGES 3u
#define STAGE_TERMS 16u
#define STAGE_QUADS (STAGE_TERMS / LINEAR_QUAD)
#define STAGES_AHEAD ((STAGES - 1) * STAGE_TERMS) /* how many terms copies are ahead of chains */
#define STAGE_EACH_MOST 8u                        /* outputs of a thread along one side */
#define STAGE_SPOTS_MOST 8u                       /* quads of a slab that a thread brings */

/* Which operands' lines hold an output's terms: both (forward), that of the rows (input), none
 * (weight). */
enum linear_kind { LINEAR_FORWARD, LINEAR_INPUT, LINEAR_WEIGHT };

/* Bytes of shared memory that the slabs of a form of tile take. */
#define STAGES_SHARED(...)                                                                         \
    (STAGES * (FORM_ROWS(__VA_ARGS__) + FORM_COLUMNS(__VA_ARGS__)) * STAGE_TERMS * sizeof(float))

/* One operand of a tile. */
struct stage_side {
    const float *from;
    const uint32_t *index; /* indices of its lines; NULL: 0, 1, 2, ... */
    size_t stride;
    uint32_t outputs, first;     /* all outputs; the tile's first */
    unsigned threads, each, own; /* threads along this side; outputs of each; the thread's number */
    unsigned all;                /* threads of the tile */
    int by_outputs;              /* 1: a line holds an output's terms; 0: a term's outputs */
    int listed;                  /* 1: lines are terms, and those that `index` lists */
    int apart;                   /* 1: quads of lines are no multiples of 16 bytes apart */
};

/* The share of an operand's slabs that the thread brings: up to STAGE_SPOTS_MOST quads, as far
 * apart in a slab as all threads' quads are long. */
struct stage_share {
    uint32_t row[STAGE_SPOTS_MOST];    /* the line that comes next, where it is listed */
    const float *at[STAGE_SPOTS_MOST]; /* where lines are terms: the next slab, or its columns */
    unsigned some[STAGE_SPOTS_MOST];   /* there: outputs of the quad that C has */
};

GPU_INLINE unsigned stage_lines(struct stage_side side) {
    return side.threads * side.each;
}

GPU_INLINE unsigned stage_spots(struct stage_side side) {
    return (stage_lines(side) * STAGE_QUADS + side.all - 1) / side.all;
}

GPU_INLINE int stage_has(struct stage_side side, unsigned spot) {
    return spot < stage_lines(side) * STAGE_QUADS;
}

/* Where quad `quad` of terms of output `output` stands in a slab. Two outputs share the 32 banks;
 * quads change places from pair to pair, so that eight neighbouring outputs meet at no bank. */
GPU_INLINE unsigned stage_place(unsigned output, unsigned quad) {
    return output * STAGE_TERMS + (quad ^ output / 2 % STAGE_QUADS) * LINEAR_QUAD;
}

/* The output and the term where a spot's quad begins. */
struct stage_spot {
    unsigned output, term;
};

GPU_INLINE struct stage_spot stage_spot_of(struct stage_side side, unsigned spot) {
    const unsigned wide = stage_lines(side) / LINEAR_QUAD;
    struct stage_spot of;
    of.output = side.by_outputs ? spot / STAGE_QUADS : spot % wide * LINEAR_QUAD;
    of.term = side.by_outputs ? spot % STAGE_QUADS * LINEAR_QUAD : spot / wide;
    return of;
}

/* The place of the thread's first spot in a slab; of its s-th, s * all quads behind it. */
GPU_INLINE unsigned stage_spot_place(GPU_PARAM struct stage_side side) {
    return side.by_outputs ? stage_place(THREAD / STAGE_QUADS, THREAD % STAGE_QUADS)
                           : THREAD * LINEAR_QUAD;
}

/* ---- what a thread brings ---- */

/* Reads the rows of the lines that come next, so that no copy waits for its address. Behind the
 * last line it is read again. */
GPU_INLINE void stage_look(GPU_PARAM struct stage_side side, uint32_t term, uint32_t end,
                           struct stage_share *share) {
    UNROLL
    for (unsigned s = 0; s < stage_spots(side) && side.listed; s++) {
        const uint32_t t = term + stage_spot_of(side, THREAD + s * side.all).term;
        const uint32_t line = t < end ? t : end - 1;
        share->row[s] = line;
        if (side.index != NULL) share->row[s] = side.index[line];
    }
}

/* An output that C does not have is used for nothing: it is a copy of one that it has, or +0 where
 * numbers are copied one by one, since C may have fewer columns than a quad has. */
GPU_INLINE void stage_open(GPU_PARAM struct stage_side side, uint32_t end,
                           struct stage_share *share) {
    UNROLL
    for (unsigned s = 0; s < stage_spots(side); s++) {
        const struct stage_spot spot = stage_spot_of(side, THREAD + s * side.all);
        const uint32_t output = side.first + spot.output;
        const uint32_t left = output < side.outputs ? side.outputs - output : 0;
        if (side.by_outputs) {
            const uint32_t line = left > 0 ? output : side.outputs - 1;
            share->row[s] = side.index == NULL ? line : side.index[line];
        } else {
            share->at[s] =
                side.from + (left > 0 ? output : 0) + (side.listed ? 0 : spot.term * side.stride);
            share->some[s] = left < LINEAR_QUAD ? left : LINEAR_QUAD;
        }
    }
    stage_look(GPU_ARG side, 0, end, share);
}

/* Where the s-th quad of the slab begins whose first term is `term`. */
GPU_INLINE const float *stage_from(GPU_PARAM struct stage_side side, unsigned s, uint32_t term,
                                   const struct stage_share *share) {
    const struct stage_spot spot = stage_spot_of(side, THREAD + s * side.all);
    if (side.by_outputs) return side.from + share->row[s] * side.stride + (spot.term + term);
    return share->at[s] + (side.listed ? share->row[s] * side.stride : 0);
}

/* Starts the copies of a slab that has all terms, and goes on to the next. */
GPU_INLINE void stage_bring(GPU_PARAM struct stage_side side, uint32_t term,
                            struct stage_share *share, float *slab) {
    float *const to = slab + stage_spot_place(GPU_ARG side);
    UNROLL
    for (unsigned s = 0; s < stage_spots(side); s++) {
        float *const quad = to + s * side.all * LINEAR_QUAD;
        const float *const from = stage_from(GPU_ARG side, s, term, share);
        if (!stage_has(side, s * side.all + side.all - 1) &&
            !stage_has(side, THREAD + s * side.all))
            continue;
        if (!side.apart) {
            GPU_COPY_ASYNC16(quad, from);
        } else {
            UNROLL
            for (unsigned i = 0; i < LINEAR_QUAD; i++)
                GPU_COPY_PART4(quad + i, from + i,
                               side.by_outputs || i < share->some[s] ? sizeof(float) : 0);
        }
        if (!side.listed && !side.by_outputs) share->at[s] += STAGE_TERMS * side.stride;
    }
}

/* The same for a slab of which only `left` terms are there; the others become +0. */
GPU_INLINE void stage_bring_part(GPU_PARAM struct stage_side side, uint32_t term, uint32_t left,
                                 struct stage_share *share, float *slab) {
    float *const to = slab + stage_spot_place(GPU_ARG side);
    UNROLL
    for (unsigned s = 0; s < stage_spots(side); s++) {
        const struct stage_spot spot = stage_spot_of(side, THREAD + s * side.all);
        const float *const from = stage_from(GPU_ARG side, s, term, share);
        if (!stage_has(side, THREAD + s * side.all)) continue;
        UNROLL
        for (unsigned i = 0; i < LINEAR_QUAD; i++) {
            const int there =
                side.by_outputs ? spot.term + i < left : spot.term < left && i < share->some[s];
            GPU_COPY_PART4(to + s * side.all * LINEAR_QUAD + i, from + i,
                           there ? sizeof(float) : 0);
        }
    }
}

/* Rounds what the thread brought as it enters a product, and makes terms from `left` on into what
 * stands for no term: the product of -0 and +0 is -0, and leaves every sum as it is. */
GPU_INLINE void stage_settle(GPU_PARAM struct stage_side side, enum dtype product, uint32_t left,
                             float nothing, float *slab) {
    float *at = slab + stage_spot_place(GPU_ARG side);
    ROLLED
    for (unsigned i = THREAD; stage_has(side, i); i += side.all) {
        const struct stage_spot spot = stage_spot_of(side, i);
        float quad[LINEAR_QUAD];
        gpu_load4_f32(quad, at);
        UNROLL
        for (unsigned k = 0; k < LINEAR_QUAD; k++) {
            const unsigned term = spot.term + (side.by_outputs ? k : 0);
            quad[k] = term < left ? (float)operand(quad[k], product) : nothing;
        }
        gpu_store4_f32(at, quad);
        at += side.all * LINEAR_QUAD;
    }
}

/* ---- chains ---- */

/* The distance of the i-th of a thread's outputs along a side from the tile's first. */
GPU_INLINE unsigned stage_output(struct stage_side side, unsigned i) {
    const unsigned whole = i / LINEAR_QUAD * LINEAR_QUAD;
    const unsigned some = side.each - whole < LINEAR_QUAD ? side.each - whole : LINEAR_QUAD;
    if (side.by_outputs) return side.own + i * side.threads;
    return whole * side.threads + side.own * some + i % LINEAR_QUAD;
}

/* Reads four terms of the thread's i-th output. */
GPU_INLINE void stage_read_terms(struct stage_side side, const float *slab, unsigned quad,
                                 unsigned i, float *to) {
    gpu_load4_f32(to, slab + stage_place(side.own, quad) + i * side.threads * STAGE_TERMS);
}

/* Reads the thread's outputs of one term. */
GPU_INLINE void stage_read_outputs(struct stage_side side, const float *slab, unsigned term,
                                   float *to) {
    UNROLL
    for (unsigned i = 0; i < side.each; i += LINEAR_QUAD) {
        const float *const from = slab + term * stage_lines(side) + stage_output(side, i);
        if (side.each - i >= LINEAR_QUAD) {
            gpu_load4_f32(to + i, from);
            continue;
        }
        UNROLL
        for (unsigned k = i; k < side.each; k++)
            to[k] = from[k - i];
    }
}

/* The thread's chains go on over four terms. */
GPU_INLINE void stage_terms(struct stage_side left, struct stage_side right, const float *slab,
                            unsigned quad, float *sum) {
    const float *const other = slab + stage_lines(left) * STAGE_TERMS;
    float a[STAGE_EACH_MOST * LINEAR_QUAD], b[STAGE_EACH_MOST];
    UNROLL
    for (unsigned i = 0; i < left.each && left.by_outputs; i++)
        stage_read_terms(left, slab, quad, i, a + i * LINEAR_QUAD);
    if (right.by_outputs) {
        UNROLL
        for (unsigned column = 0; column < right.each; column++) {
            stage_read_terms(right, other, quad, column, b);
            UNROLL
            for (unsigned t = 0; t < LINEAR_QUAD; t++) {
                UNROLL
                for (unsigned row = 0; row < left.each; row++) {
                    float *const own = sum + row * right.each + column;
                    *own = acc_fma(a[row * LINEAR_QUAD + t], b[t], *own);
                }
            }
        }
        return;
    }
    UNROLL
    for (unsigned t = 0; t < LINEAR_QUAD; t++) {
        float outputs[STAGE_EACH_MOST];
        stage_read_outputs(right, other, quad * LINEAR_QUAD + t, b);
        if (!left.by_outputs) stage_read_outputs(left, slab, quad * LINEAR_QUAD + t, outputs);
        UNROLL
        for (unsigned row = 0; row < left.each; row++) {
            const float number = left.by_outputs ? a[row * LINEAR_QUAD + t] : outputs[row];
            UNROLL
            for (unsigned column = 0; column < right.each; column++)
                sum[row * right.each + column] =
                    acc_fma(number, b[column], sum[row * right.each + column]);
        }
    }
}

/* Four terms of a thread's outputs, of both operands: of lines that are terms, as weight gradients
 * have them. */
struct stage_numbers {
    float left[STAGE_EACH_MOST * LINEAR_QUAD], right[STAGE_EACH_MOST * LINEAR_QUAD];
};

GPU_INLINE void stage_numbers_read(struct stage_side left, struct stage_side right,
                                   const float *slab, unsigned quad, struct stage_numbers *to) {
    const float *const other = slab + stage_lines(left) * STAGE_TERMS;
    UNROLL
    for (unsigned t = 0; t < LINEAR_QUAD; t++) {
        stage_read_outputs(left, slab, quad * LINEAR_QUAD + t, to->left + t * left.each);
        stage_read_outputs(right, other, quad * LINEAR_QUAD + t, to->right + t * right.each);
    }
}

GPU_INLINE void stage_numbers_use(struct stage_side left, struct stage_side right,
                                  const struct stage_numbers *numbers, float *sum) {
    UNROLL
    for (unsigned t = 0; t < LINEAR_QUAD; t++) {
        UNROLL
        for (unsigned i = 0; i < left.each * right.each; i++)
            sum[i] = acc_fma(numbers->left[t * left.each + i / right.each],
                             numbers->right[t * right.each + i % right.each], sum[i]);
    }
}

/* A tile on its way through its terms: which slab is read, and which is brought. */
struct stage_walk {
    struct stage_share left, right;
    float *shared;
    unsigned reads, brings; /* places of slabs, in numbers */
    unsigned other, whole;  /* numbers of a slab of the left operand, and of both */
};

GPU_INLINE void stage_turn(struct stage_walk *walk, unsigned *place) {
    *place = *place == (STAGES - 1) * walk->whole ? 0 : *place + walk->whole;
}

/* Starts the copies of the slab that begins with term `term` and has all terms. */
GPU_INLINE void stage_start(GPU_PARAM struct stage_side left, struct stage_side right,
                            uint32_t term, uint32_t terms, struct stage_walk *walk) {
    float *const slab = walk->shared + walk->brings;
    stage_bring(GPU_ARG left, term, &walk->left, slab);
    stage_bring(GPU_ARG right, term, &walk->right, slab + walk->other);
    stage_look(GPU_ARG left, term + STAGE_TERMS, terms, &walk->left);
    stage_look(GPU_ARG right, term + STAGE_TERMS, terms, &walk->right);
}

/* The same for any slab, as far as there is one. */
GPU_INLINE void stage_start_some(GPU_PARAM struct stage_side left, struct stage_side right,
                                 uint32_t term, uint32_t terms, struct stage_walk *walk) {
    float *const slab = walk->shared + walk->brings;
    if (term + STAGE_TERMS <= terms) {
        stage_start(GPU_ARG left, right, term, terms, walk);
    } else if (term < terms) {
        stage_bring_part(GPU_ARG left, term, terms - term, &walk->left, slab);
        stage_bring_part(GPU_ARG right, term, terms - term, &walk->right, slab + walk->other);
    }
}

/* The chains go over terms term .. until-1, whole slabs, while those behind are brought. One
 * barrier a slab is enough: who brings a slab has seen everybody behind the reads of the one that
 * stood there. */
GPU_INLINE void stage_slabs(GPU_PARAM struct stage_side left, struct stage_side right,
                            uint32_t term, uint32_t until, uint32_t terms, int brings,
                            struct stage_walk *walk, float *sum) {
    ROLLED
    for (; term < until; term += STAGE_TERMS) {
        const float *const slab = walk->shared + walk->reads;
        GPU_COPY_WAIT(STAGES - 2);
        BARRIER();
        if (brings) stage_start(GPU_ARG left, right, term + STAGES_AHEAD, terms, walk);
        GPU_COPY_COMMIT();
        UNROLL
        for (unsigned quad = 0; quad < STAGE_QUADS; quad++)
            stage_terms(left, right, slab, quad, sum);
        stage_turn(walk, &walk->reads);
        stage_turn(walk, &walk->brings);
    }
}

/* The same, with four terms read ahead, also across the end of a slab: its barrier is passed before
 * its last terms are used. */
GPU_INLINE void stage_slabs_ahead(GPU_PARAM struct stage_side left, struct stage_side right,
                                  uint32_t term, uint32_t until, uint32_t terms, int brings,
                                  struct stage_walk *walk, float *sum) {
    struct stage_numbers numbers[2];
    GPU_COPY_WAIT(STAGES - 2);
    BARRIER();
    stage_numbers_read(left, right, walk->shared + walk->reads, 0, &numbers[0]);
    ROLLED
    for (; term < until; term += STAGE_TERMS) {
        if (brings) stage_start(GPU_ARG left, right, term + STAGES_AHEAD, terms, walk);
        GPU_COPY_COMMIT();
        UNROLL
        for (unsigned quad = 0; quad < STAGE_QUADS; quad++) {
            const unsigned next = (quad + 1) % STAGE_QUADS;
            if (next == 0) {
                stage_turn(walk, &walk->reads);
                stage_turn(walk, &walk->brings);
                GPU_COPY_WAIT(STAGES - 2);
                BARRIER();
            }
            if (next > 0 || term + STAGE_TERMS < until)
                stage_numbers_read(left, right, walk->shared + walk->reads, next,
                                   &numbers[next % 2]);
            stage_numbers_use(left, right, &numbers[quad % 2], sum);
        }
    }
}

/* The chains go over all terms: over all slabs at once behind which only whole ones are brought, if
 * numbers enter products as they are; else slab by slab, and what is to be done besides is done
 * before it. */
GPU_INLINE void stage_chains(GPU_PARAM struct stage_side left, struct stage_side right, int ahead,
                             uint32_t terms, enum dtype product, float *shared, float *sum) {
    struct stage_walk walk;
    walk.shared = shared;
    walk.reads = walk.brings = 0;
    walk.other = stage_lines(left) * STAGE_TERMS;
    walk.whole = walk.other + stage_lines(right) * STAGE_TERMS;
    if (terms == 0) return;
    stage_open(GPU_ARG left, terms, &walk.left);
    stage_open(GPU_ARG right, terms, &walk.right);
    ROLLED
    for (uint32_t term = 0; term < STAGES_AHEAD; term += STAGE_TERMS) {
        stage_start_some(GPU_ARG left, right, term, terms, &walk);
        GPU_COPY_COMMIT();
        stage_turn(&walk, &walk.brings);
    }
    for (uint32_t term = 0, until = 0; term < terms; term = until) {
        const int plain = product == DTYPE_F64 && term + STAGES_AHEAD + STAGE_TERMS <= terms;
        until = term + STAGE_TERMS;
        if (plain) {
            until = (terms - STAGES_AHEAD) / STAGE_TERMS * STAGE_TERMS;
        } else {
            GPU_COPY_WAIT(STAGES - 2);
            if (product != DTYPE_F64 || terms - term < STAGE_TERMS) {
                float *const slab = walk.shared + walk.reads;
                stage_settle(GPU_ARG left, product, terms - term, -0.0f, slab);
                stage_settle(GPU_ARG right, product, terms - term, 0.0f, slab + walk.other);
            }
            BARRIER();
            stage_start_some(GPU_ARG left, right, term + STAGES_AHEAD, terms, &walk);
        }
        if (ahead)
            stage_slabs_ahead(GPU_ARG left, right, term, until, terms, plain, &walk, sum);
        else
            stage_slabs(GPU_ARG left, right, term, until, terms, plain, &walk, sum);
    }
}

/* ---- tiles ---- */

GPU_INLINE struct stage_side stage_left(const struct gemm *job, enum linear_kind kind,
                                        struct linear_form form, int apart) {
    struct stage_side side;
    side.from = (const float *)job->a;
    side.index = job->rows.index;
    side.stride = job->a_stride;
    side.outputs = (uint32_t)job->M;
    side.threads = form.down;
    side.each = form.rows;
    side.all = form.down * form.across;
    side.by_outputs = kind != LINEAR_WEIGHT;
    side.listed = kind == LINEAR_WEIGHT;
    side.apart = apart;
    return side;
}

GPU_INLINE struct stage_side stage_right(const struct gemm *job, enum linear_kind kind,
                                         struct linear_form form, int apart) {
    struct stage_side side;
    side.from = (const float *)job->b;
    side.index = kind == LINEAR_WEIGHT ? job->rows.index : NULL;
    side.stride = job->b_stride;
    side.outputs = (uint32_t)job->N;
    side.threads = form.across;
    side.each = form.columns;
    side.all = form.down * form.across;
    side.by_outputs = kind == LINEAR_FORWARD;
    side.listed = kind == LINEAR_WEIGHT;
    side.apart = apart;
    return side;
}

/* Warps have 4 rows of 8 threads of a tile. */
GPU_INLINE void stage_own(GPU_PARAM struct stage_side *left, struct stage_side *right,
                          struct linear_form form) {
    const unsigned warp = THREAD / GPU_WARP, lane = THREAD % GPU_WARP;
    left->own = warp / (form.across / 8) * 4 + lane / 8;
    right->own = warp % (form.across / 8) * 8 + lane % 8;
}

/* Writes finished sums to C. */
GPU_INLINE void stage_finish(GPU_PARAM const struct gemm *job, struct stage_side left,
                             struct stage_side right, enum linear_kind kind, float *shared,
                             const float *sum) {
    const unsigned wide = stage_lines(right), quads = wide / LINEAR_QUAD;
    const int plain = kind == LINEAR_WEIGHT || (job->dtype == DTYPE_F32 && !job->add);
    UNROLL
    for (unsigned i = 0; i < left.each; i += LINEAR_QUAD) {
        const unsigned some = left.each - i < LINEAR_QUAD ? left.each - i : LINEAR_QUAD;
        BARRIER();
        UNROLL
        for (unsigned row = i; row < i + some; row++) {
            UNROLL
            for (unsigned column = 0; column < right.each; column++)
                shared[(stage_output(left, row) - i * left.threads) * wide +
                       stage_output(right, column)] = sum[row * right.each + column];
        }
        BARRIER();
        ROLLED
        for (unsigned q = THREAD; q < some * left.threads * quads; q += left.all) {
            const uint32_t row = left.first + i * left.threads + q / quads;
            const uint32_t column = right.first + q % quads * LINEAR_QUAD;
            if (row >= left.outputs || column >= right.outputs) continue;
            const size_t line = kind == LINEAR_WEIGHT ? row : list_row(&job->rows, row);
            float *const to = (kind == LINEAR_WEIGHT ? (float *)job->held : (float *)job->out) +
                              line * right.outputs + column;
            float quad[LINEAR_QUAD];
            gpu_load4_f32(quad, shared + (size_t)q * LINEAR_QUAD);
            if (plain && column + LINEAR_QUAD <= right.outputs &&
                (uintptr_t)to % GPU_ALIGNED == 0) {
                gpu_store4_f32(to, quad);
                continue;
            }
            UNROLL
            for (unsigned k = 0; k < LINEAR_QUAD; k++) {
                if (column + k >= right.outputs) continue;
                if (kind == LINEAR_WEIGHT)
                    to[k] = quad[k];
                else
                    linear_round(job, row, column + k, quad[k]);
            }
        }
    }
}

/* Makes tile BLOCK. */
GPU_INLINE void stage_tile(GPU_PARAM const struct gemm *job, float *shared, enum linear_kind kind,
                           struct linear_form form, int apart) {
    struct stage_side left = stage_left(job, kind, form, apart);
    struct stage_side right = stage_right(job, kind, form, apart);
    const uint32_t columns = form.across * form.columns;
    const uint32_t across = (right.outputs + columns - 1) / columns;
    float sum[STAGE_EACH_MOST * STAGE_EACH_MOST];
    left.first = BLOCK / across * (form.down * form.rows);
    right.first = BLOCK % across * columns;
    stage_own(GPU_ARG & left, &right, form);
    UNROLL
    for (unsigned row = 0; row < left.each; row++) {
        UNROLL
        for (unsigned column = 0; column < right.each; column++) {
            const uint32_t r = left.first + stage_output(left, row);
            const uint32_t c = right.first + stage_output(right, column);
            const int goes_on = kind == LINEAR_WEIGHT && r < left.outputs && c < right.outputs;
            sum[row * right.each + column] =
                goes_on ? (float)job->held[(size_t)r * right.outputs + c] : 0.0f;
        }
    }
    stage_chains(GPU_ARG left, right, form.ahead, (uint32_t)job->K, job->product, shared, sum);
    stage_finish(GPU_ARG job, left, right, kind, shared, sum);
}

#endif

#endif
