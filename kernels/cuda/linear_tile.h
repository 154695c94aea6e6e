/* SPDX-License-Identifier: Apache-2.0
 * One product C (M, N) = A (M, K) . B (K, N), as the three linear ops pose it, in tiles of 64 x 64
 * outputs: 256 threads with 4 x 4 of them each; slabs of terms go through shared memory.
 *
 * Invariant: a thread continues its outputs' chains over terms in ascending order. Rows not listed
 * are neither read nor written. */
#ifndef TWINSTEP_KERNELS_CUDA_LINEAR_TILE_H
#define TWINSTEP_KERNELS_CUDA_LINEAR_TILE_H

#include "kernels/cuda/launch.h"

#define LINEAR_TILE 64u
#define LINEAR_SIDE 16u /* threads along one side of the tile */
#define LINEAR_EACH (LINEAR_TILE / LINEAR_SIDE)
#define LINEAR_OWN (LINEAR_EACH * LINEAR_EACH)
#define LINEAR_THREADS (LINEAR_SIDE * LINEAR_SIDE)
#define LINEAR_DEPTH 16u /* terms of a slab */
#define LINEAR_SHARED (2 * LINEAR_DEPTH * LINEAR_TILE * sizeof(accumulator))

/* C (M, N) = A (M, K) . B (K, N). */
struct linear_job {
    size_t M, N, K, a_stride, b_stride;
    const carrier *a, *b;
    struct row_list rows;
    int by_terms;     /* rows list the terms: A and B are read by them; else the rows of A and C */
    int b_transposed; /* B lies as (N, K) */
    int add;
    enum dtype product, dtype;
    carrier *out;      /* rounded sums, or */
    accumulator *held; /* unrounded ones, which go on */
};

/* Where a tile begins. */
struct linear_place {
    size_t row, column;
};

/* Tiles along one side of C. */
TWINSTEP_HD size_t linear_tiles(size_t outputs) {
    return (outputs + LINEAR_TILE - 1) / LINEAR_TILE;
}

GPU_INLINE accumulator linear_left(const struct linear_job *job, size_t row, size_t term) {
    const size_t line = job->by_terms ? term : row;
    const size_t column = job->by_terms ? row : term;
    return operand(job->a[list_row(&job->rows, line) * job->a_stride + column], job->product);
}

GPU_INLINE accumulator linear_right(const struct linear_job *job, size_t term, size_t column) {
    if (job->b_transposed) return operand(job->b[column * job->b_stride + term], job->product);
    const size_t line = job->by_terms ? list_row(&job->rows, term) : term;
    return operand(job->b[line * job->b_stride + column], job->product);
}

/* Terms term .. end-1, LINEAR_DEPTH at most, of the tile's rows and columns; what lies outside is
 * not read, and what stands for it is not used. Neighbours in memory go to neighbouring threads. */
GPU_INLINE void linear_slab(GPU_PARAM const struct linear_job *job, accumulator *shared,
                            struct linear_place at, size_t term, size_t end) {
    accumulator *const right = shared + LINEAR_DEPTH * LINEAR_TILE;
    for (unsigned i = THREAD; i < LINEAR_DEPTH * LINEAR_TILE; i += LINEAR_THREADS) {
        const unsigned t = job->by_terms ? i / LINEAR_TILE : i % LINEAR_DEPTH;
        const unsigned r = job->by_terms ? i % LINEAR_TILE : i / LINEAR_DEPTH;
        const int inside = term + t < end && at.row + r < job->M;
        shared[t * LINEAR_TILE + r] = inside ? linear_left(job, at.row + r, term + t) : ACC(0.0);
    }
    for (unsigned i = THREAD; i < LINEAR_DEPTH * LINEAR_TILE; i += LINEAR_THREADS) {
        const unsigned t = job->b_transposed ? i % LINEAR_DEPTH : i / LINEAR_TILE;
        const unsigned c = job->b_transposed ? i / LINEAR_DEPTH : i % LINEAR_TILE;
        const int inside = term + t < end && at.column + c < job->N;
        right[t * LINEAR_TILE + c] = inside ? linear_right(job, term + t, at.column + c) : ACC(0.0);
    }
}

/* The first of the thread's LINEAR_OWN outputs, and where the others are. */
GPU_INLINE struct linear_place linear_own(GPU_PARAM struct linear_place at) {
    at.row += THREAD / LINEAR_SIDE;
    at.column += THREAD % LINEAR_SIDE;
    return at;
}

GPU_INLINE size_t linear_row(struct linear_place own, unsigned i) {
    return own.row + i / LINEAR_EACH * LINEAR_SIDE;
}

GPU_INLINE size_t linear_column(struct linear_place own, unsigned i) {
    return own.column + i % LINEAR_EACH * LINEAR_SIDE;
}

/* The thread's chains, continued over terms term .. end-1. */
GPU_INLINE void linear_chains(GPU_PARAM const struct linear_job *job, accumulator *shared,
                              struct linear_place at, size_t term, size_t end, accumulator *sum) {
    const accumulator *const left = shared + THREAD / LINEAR_SIDE;
    const accumulator *const right = shared + LINEAR_DEPTH * LINEAR_TILE + THREAD % LINEAR_SIDE;
    for (; term < end; term += LINEAR_DEPTH) {
        const unsigned depth = (unsigned)least(LINEAR_DEPTH, end - term);
        linear_slab(GPU_ARG job, shared, at, term, end);
        BARRIER();
        for (unsigned t = 0; t < depth; t++) {
            UNROLL
            for (unsigned i = 0; i < LINEAR_OWN; i++)
                sum[i] = acc_fma(left[t * LINEAR_TILE + i / LINEAR_EACH * LINEAR_SIDE],
                                 right[t * LINEAR_TILE + i % LINEAR_EACH * LINEAR_SIDE], sum[i]);
        }
        BARRIER();
    }
}

/* A finished sum, rounded to C. */
GPU_INLINE void linear_round(const struct linear_job *job, size_t row, size_t column,
                             accumulator sum) {
    carrier *const out = job->out + list_row(&job->rows, row) * job->N + column;
    const carrier rounded = carrier_round(sum, job->dtype);
    *out = job->add ? rule_add(*out, rounded, job->dtype) : rounded;
}

#endif
