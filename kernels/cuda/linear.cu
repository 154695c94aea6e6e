/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, each posed as one product (kernels/cpu/linear.c), in tiles of 64 x 64
 * outputs. A thread has 4 x 4 of them; slabs of terms go through shared memory.
 *
 * Invariant (law 1): an output is one chain over its terms in ascending order, in a register, from
 * +0 or from what the accumulator holds. Rows not listed are neither read nor written. */
#include "kernels/cuda/launch.h"

#define LINEAR_TILE 64u
#define LINEAR_SIDE 16u /* threads along one side of the tile */
#define LINEAR_EACH (LINEAR_TILE / LINEAR_SIDE)
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

/* Terms term .. term+depth-1 of the tile's rows and columns; what lies outside the matrix is not
 * read, and what stands for it is not used. Neighbours in memory go to neighbouring threads. */
GPU_INLINE void linear_slab(GPU_PARAM const struct linear_job *job, accumulator *left,
                            accumulator *right, size_t row, size_t column, size_t term) {
    for (unsigned i = THREAD; i < LINEAR_DEPTH * LINEAR_TILE; i += LINEAR_THREADS) {
        const unsigned t = job->by_terms ? i / LINEAR_TILE : i % LINEAR_DEPTH;
        const unsigned r = job->by_terms ? i % LINEAR_TILE : i / LINEAR_DEPTH;
        const int inside = term + t < job->K && row + r < job->M;
        left[t * LINEAR_TILE + r] = inside ? linear_left(job, row + r, term + t) : ACC(0.0);
    }
    for (unsigned i = THREAD; i < LINEAR_DEPTH * LINEAR_TILE; i += LINEAR_THREADS) {
        const unsigned t = job->b_transposed ? i % LINEAR_DEPTH : i / LINEAR_TILE;
        const unsigned c = job->b_transposed ? i / LINEAR_DEPTH : i % LINEAR_TILE;
        const int inside = term + t < job->K && column + c < job->N;
        right[t * LINEAR_TILE + c] = inside ? linear_right(job, term + t, column + c) : ACC(0.0);
    }
}

GPU_INLINE void linear_store(const struct linear_job *job, size_t row, size_t column,
                             accumulator sum) {
    if (job->held != NULL) {
        job->held[row * job->N + column] = sum;
        return;
    }
    carrier *const out = job->out + list_row(&job->rows, row) * job->N + column;
    const carrier rounded = carrier_round(sum, job->dtype);
    *out = job->add ? rule_add(*out, rounded, job->dtype) : rounded;
}

KERNEL(linear_kernel, struct linear_job) {
    SHARED(accumulator, left);
    accumulator *const right = left + LINEAR_DEPTH * LINEAR_TILE;
    const size_t across = (args->N + LINEAR_TILE - 1) / LINEAR_TILE;
    const size_t row = BLOCK / across * LINEAR_TILE, column = BLOCK % across * LINEAR_TILE;
    const unsigned y = THREAD / LINEAR_SIDE, x = THREAD % LINEAR_SIDE;
    accumulator sum[LINEAR_EACH][LINEAR_EACH];
    for (unsigned i = 0; i < LINEAR_EACH; i++)
        for (unsigned j = 0; j < LINEAR_EACH; j++) {
            const size_t r = row + y + i * LINEAR_SIDE, c = column + x + j * LINEAR_SIDE;
            const int goes_on = args->held != NULL && r < args->M && c < args->N;
            sum[i][j] = goes_on ? args->held[r * args->N + c] : ACC(0.0);
        }
    for (size_t term = 0; term < args->K; term += LINEAR_DEPTH) {
        const unsigned depth = (unsigned)least(LINEAR_DEPTH, args->K - term);
        linear_slab(GPU_ARG args, left, right, row, column, term);
        BARRIER();
        for (unsigned t = 0; t < depth; t++)
            for (unsigned i = 0; i < LINEAR_EACH; i++)
                for (unsigned j = 0; j < LINEAR_EACH; j++)
                    sum[i][j] = acc_fma(left[t * LINEAR_TILE + y + i * LINEAR_SIDE],
                                        right[t * LINEAR_TILE + x + j * LINEAR_SIDE], sum[i][j]);
        BARRIER();
    }
    for (unsigned i = 0; i < LINEAR_EACH; i++)
        for (unsigned j = 0; j < LINEAR_EACH; j++) {
            const size_t r = row + y + i * LINEAR_SIDE, c = column + x + j * LINEAR_SIDE;
            if (r < args->M && c < args->N) linear_store(args, r, c, sum[i][j]);
        }
}

static void linear_run(const struct linear_job *job) {
    const size_t down = (job->M + LINEAR_TILE - 1) / LINEAR_TILE;
    const size_t across = (job->N + LINEAR_TILE - 1) / LINEAR_TILE;
    LAUNCH(linear_kernel, down * across, LINEAR_THREADS, LINEAR_SHARED, job);
}

static void linear_forward(const struct op_call *call, const struct linear_forward_args *args) {
    const struct linear_job job = {
        .M = args->rows.count,
        .N = args->N,
        .K = args->K,
        .a_stride = args->K,
        .b_stride = args->K,
        .a = (const carrier *)args->x,
        .b = (const carrier *)args->w,
        .rows = args->rows,
        .b_transposed = 1,
        .product = call_product(call),
        .dtype = call->compute,
        .out = (carrier *)args->y,
    };
    linear_run(&job);
}

static void linear_input(const struct op_call *call, const struct linear_input_args *args) {
    const struct linear_job job = {
        .M = args->rows.count,
        .N = args->K,
        .K = args->N,
        .a_stride = args->N,
        .b_stride = args->K,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->w,
        .rows = args->rows,
        .add = args->add,
        .product = call_product(call),
        .dtype = call->compute,
        .out = (carrier *)args->dx,
    };
    linear_run(&job);
}

static void linear_weight(const struct op_call *call, const struct linear_weight_args *args) {
    const struct linear_job job = {
        .M = args->N,
        .N = args->K,
        .K = args->rows.count,
        .a_stride = args->N,
        .b_stride = args->K,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->x,
        .rows = args->rows,
        .by_terms = 1,
        .product = call_product(call),
        .held = (accumulator *)args->acc,
    };
    linear_run(&job);
}
