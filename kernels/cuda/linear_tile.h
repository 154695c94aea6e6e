/* SPDX-License-Identifier: Apache-2.0
 * One product C (M, N) = A (M, K) . B (K, N), as the three linear ops pose it, in tiles of 64 x 64
 * outputs: 256 threads with 4 x 4 neighbours each. For modes shaped, shuffled and atomic, and for
 * f64 sums; mode invariant with f32 sums has linear_stages.h. Slabs of terms go through shared
 * memory, in two buffers: a thread reads its share of the next slab before it goes on with its
 * chains, and puts it down behind them.
 *
 * Invariant: a thread continues its outputs' chains over terms in ascending order. Rows not listed
 * are neither read nor written. */
#ifndef TWINSTEP_KERNELS_CUDA_LINEAR_TILE_H
#define TWINSTEP_KERNELS_CUDA_LINEAR_TILE_H

#include "kernels/cuda/launch.h"
#include "kernels/linear_gemm.h"

#define LINEAR_SIDE 16u /* threads along one side of the tile */
#define LINEAR_THREADS (LINEAR_SIDE * LINEAR_SIDE)
#define LINEAR_DEPTH 16u /* terms of a slab */
#define LINEAR_QUAD 4u   /* neighbours in memory that a thread reads at once */

/* How many outputs a thread has along one side, and in all, and how many blocks an SM shall have
 * registers for. */
#define LINEAR_EACH LINEAR_QUAD
#define LINEAR_OWN (LINEAR_EACH * LINEAR_EACH)
#define LINEAR_BLOCKS (sizeof(accumulator) == sizeof(float) ? 3 : 2)
#define LINEAR_TILE (LINEAR_SIDE * LINEAR_EACH) /* outputs along one side of a tile */

/* Numbers of an operand's slab in shared memory. The lines of its terms are a quad longer than the
 * tile's side, so that fewer threads meet at one bank. */
#define LINEAR_LINE (LINEAR_TILE + LINEAR_QUAD)
#define LINEAR_SLAB (LINEAR_DEPTH * LINEAR_LINE)
#define LINEAR_SHARED (4 * LINEAR_SLAB * sizeof(accumulator))

/* Where a tile, or a thread's outputs in it, begin. */
struct linear_place {
    uint32_t row, column;
};

/* How many tiles lie along one side of C. */
TWINSTEP_HD size_t linear_tiles(size_t outputs) {
    return (outputs + LINEAR_TILE - 1) / LINEAR_TILE;
}

/* Tile `tile` of those that cover `columns` columns. */
GPU_INLINE struct linear_place linear_place_of(size_t tile, size_t columns) {
    const size_t across = linear_tiles(columns), side = LINEAR_TILE;
    const struct linear_place at = {(uint32_t)(tile / across * side),
                                    (uint32_t)(tile % across * side)};
    return at;
}

/* The place of the first of the thread's outputs. */
GPU_INLINE struct linear_place linear_own(GPU_PARAM struct linear_place at) {
    at.row += THREAD / LINEAR_SIDE * LINEAR_EACH;
    at.column += THREAD % LINEAR_SIDE * LINEAR_EACH;
    return at;
}

/* ---- operands ---- */

/* One operand: its outputs are rows of A, or columns of B. */
struct linear_side {
    const carrier *from;
    const uint32_t *index; /* indices of its lines; NULL: 0, 1, 2, ... */
    size_t stride;
    uint32_t outputs;
    int by_outputs; /* 1: a line holds an output's terms; 0: a term's outputs */
};

GPU_INLINE struct linear_side linear_side_of(const carrier *from, const uint32_t *index,
                                             size_t stride, size_t outputs, int by_outputs) {
    const struct linear_side side = {from, index, stride, (uint32_t)outputs, by_outputs};
    return side;
}

GPU_INLINE struct linear_side linear_left(const struct gemm *job) {
    return linear_side_of(job->a, job->rows.index, job->a_stride, job->M, !job->by_terms);
}

GPU_INLINE struct linear_side linear_right(const struct gemm *job) {
    return linear_side_of(job->b, job->by_terms ? job->rows.index : NULL, job->b_stride, job->N,
                          job->b_transposed);
}

/* The place of the quad of a slab that this thread brings: neighbours in memory go to neighbouring
 * threads. */
struct linear_spot {
    unsigned output, term;
};

GPU_INLINE struct linear_spot linear_spot_of(GPU_PARAM const struct linear_side *side) {
    const unsigned deep = LINEAR_DEPTH / LINEAR_QUAD, wide = LINEAR_TILE / LINEAR_QUAD;
    struct linear_spot spot;
    spot.output = side->by_outputs ? THREAD / deep : THREAD % wide * LINEAR_QUAD;
    spot.term = side->by_outputs ? THREAD % deep * LINEAR_QUAD : THREAD / wide;
    return spot;
}

/* Loads numbers first .. first+3 of a line. Numbers from `last` on are not read; what stands for
 * them is not used. */
GPU_INLINE void linear_quad(const carrier *line, uint32_t first, uint32_t last, carrier *to) {
    if (first + LINEAR_QUAD <= last && (uintptr_t)(line + first) % GPU_ALIGNED == 0) {
        CARRIER_NAME_(gpu_load4)(to, line + first);
        return;
    }
    UNROLL
    for (unsigned i = 0; i < LINEAR_QUAD; i++)
        to[i] = first + i < last ? line[first + i] : (carrier)0;
}

/* Reads the thread's quad into registers: outputs from `output` on, terms term .. end-1. */
GPU_INLINE void linear_fetch(GPU_PARAM const struct linear_side *side, uint32_t output,
                             uint32_t term, uint32_t end, carrier *numbers) {
    const struct linear_spot spot = linear_spot_of(GPU_ARG side);
    const uint32_t o = output + spot.output, t = term + spot.term;
    const uint32_t line = side->by_outputs ? o : t, first = side->by_outputs ? t : o;
    uint32_t last = side->by_outputs ? end : side->outputs, row = 0;
    if (o >= side->outputs || t >= end)
        last = 0;
    else
        row = side->index == NULL ? line : side->index[line];
    linear_quad(side->from + row * side->stride, first, last, numbers);
}

/* Puts the quad into a slab, as it enters a product. */
GPU_INLINE void linear_stow(GPU_PARAM const struct linear_side *side, enum dtype product,
                            const carrier *numbers, accumulator *slab) {
    const struct linear_spot spot = linear_spot_of(GPU_ARG side);
    accumulator *const to = slab + spot.term * LINEAR_LINE + spot.output;
    accumulator quad[LINEAR_QUAD];
    UNROLL
    for (unsigned i = 0; i < LINEAR_QUAD; i++)
        quad[i] = operand(numbers[i], product);
    if (!side->by_outputs) {
        ACC_NAME_(gpu_store4)(to, quad);
        return;
    }
    UNROLL
    for (unsigned i = 0; i < LINEAR_QUAD; i++)
        to[i * LINEAR_LINE] = quad[i];
}

/* ---- chains ---- */

/* The thread's chains go on over `depth` terms of two slabs, from its first output on. */
GPU_INLINE void linear_terms(const accumulator *left, const accumulator *right, unsigned depth,
                             accumulator *sum) {
    accumulator a[LINEAR_EACH], b[LINEAR_EACH];
    ROLLED
    for (unsigned t = 0; t < depth; t++) {
        ACC_NAME_(gpu_load4)(a, left + t * LINEAR_LINE);
        ACC_NAME_(gpu_load4)(b, right + t * LINEAR_LINE);
        UNROLL
        for (unsigned i = 0; i < LINEAR_OWN; i++)
            sum[i] = acc_fma(a[i / LINEAR_EACH], b[i % LINEAR_EACH], sum[i]);
    }
}

/* Terms term .. end-1. */
struct linear_span {
    uint32_t term, end;
};

/* A tile on its way through its terms. */
struct linear_walk {
    struct linear_place at;
    accumulator *shared; /* slabs of both operands, twice, because threads still read what was put
                            down before */
    unsigned turn;
    carrier left[LINEAR_QUAD], right[LINEAR_QUAD]; /* the thread's share of the next slab */
};

GPU_INLINE void linear_reach(GPU_PARAM const struct gemm *job, struct linear_walk *walk,
                             struct linear_span span) {
    const struct linear_side a = linear_left(job), b = linear_right(job);
    const struct linear_side *const left = &a, *const right = &b;
    linear_fetch(GPU_ARG left, walk->at.row, span.term, span.end, walk->left);
    linear_fetch(GPU_ARG right, walk->at.column, span.term, span.end, walk->right);
}

GPU_INLINE void linear_set_out(GPU_PARAM const struct gemm *job, struct linear_walk *walk,
                               struct linear_place at, accumulator *shared,
                               struct linear_span first) {
    walk->at = at;
    walk->shared = shared;
    walk->turn = 0;
    linear_reach(GPU_ARG job, walk, first);
}

/* Puts down the share that was read before; returns where the slab stands. */
GPU_INLINE accumulator *linear_put(GPU_PARAM const struct gemm *job, struct linear_walk *walk) {
    const struct linear_side a = linear_left(job), b = linear_right(job);
    const struct linear_side *const left = &a, *const right = &b;
    accumulator *const to = walk->shared + walk->turn * 2 * LINEAR_SLAB;
    linear_stow(GPU_ARG left, job->product, walk->left, to);
    linear_stow(GPU_ARG right, job->product, walk->right, to + LINEAR_SLAB);
    walk->turn ^= 1;
    return to;
}

/* The thread's chains go on over a span whose first slab was read before, while the thread reads
 * the next one. One barrier a slab is enough: who writes to a buffer has seen everybody behind the
 * reads of it. */
GPU_INLINE void linear_chains(GPU_PARAM const struct gemm *job, struct linear_walk *walk,
                              struct linear_span span, struct linear_span next, accumulator *sum) {
    const struct linear_place corner = {0, 0}, own = linear_own(GPU_ARG corner);
    while (span.term < span.end) {
        const uint32_t left = span.end - span.term;
        const accumulator *const slab = linear_put(GPU_ARG job, walk);
        BARRIER();
        span.term += LINEAR_DEPTH;
        if (left > LINEAR_DEPTH)
            linear_reach(GPU_ARG job, walk, span);
        else if (next.term < next.end)
            linear_reach(GPU_ARG job, walk, next);
        linear_terms(slab + own.row, slab + LINEAR_SLAB + own.column,
                     left < LINEAR_DEPTH ? left : LINEAR_DEPTH, sum);
        if (left <= LINEAR_DEPTH) return;
    }
}

/* The terms of chunk `chunk` of `width` terms; none behind the last chunk. */
GPU_INLINE struct linear_span linear_chunk(const struct gemm *job, size_t chunk, uint32_t width) {
    const size_t term = least(chunk * width, job->K);
    const struct linear_span span = {(uint32_t)term, (uint32_t)least(term + width, job->K)};
    return span;
}

/* Rounds a finished sum to C. */
GPU_INLINE void linear_round(const struct gemm *job, size_t row, size_t column, accumulator sum) {
    carrier *const out = job->out + list_row(&job->rows, row) * job->N + column;
    const carrier rounded = carrier_round(sum, job->dtype);
    *out = job->add ? rule_add(*out, rounded, job->dtype) : rounded;
}

#endif
