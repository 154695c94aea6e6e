/* SPDX-License-Identifier: Apache-2.0
 * Log-probability of one target per row of logits, and the gradient of the logits in place (law 5),
 * a thread per SPAN_EACH of a row. The sum of a row's exponentials is law 2 (a block per row, whose
 * warps take turns at blocks of the law), or chunks in the order of the tile of 64 rows (law 9), or
 * chunks as they come (law 14), which both have a warp per row. */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/joined.h"

/* The target's log-probability as it is recorded: with an f64 loss the accumulator's value is kept,
 * whatever the carrier is. */
GPU_INLINE double logprob_of_target(carrier z, accumulator maximum, accumulator sum,
                                    enum dtype loss) {
    if (loss == DTYPE_F64) return (double)rule_logprob_wide(z, maximum, sum);
    return (double)rule_logprob(z, maximum, sum, loss);
}

GPU_INLINE void logprob_store(const struct logprob_forward_args *args, size_t row,
                              accumulator maximum, accumulator sum) {
    const struct stored *const z = (const struct stored *)args->logits + row * args->V;
    ((accumulator *)args->maximum)[row] = maximum;
    ((accumulator *)args->sum)[row] = sum;
    args->logp[row] =
        logprob_of_target(stored_load(z[args->target[row]]), maximum, sum, args->loss);
}

/* The largest of every `step`-th logit of a row from the lane's first on, found by a warp; every
 * lane gets it. */
GPU_INLINE carrier logprob_largest(GPU_PARAM const struct stored *z, size_t V, size_t first,
                                   size_t step) {
    carrier largest = (carrier)-acc_inf();
    for (size_t v = first; v < V; v += step)
        largest = larger(largest, stored_load(z[v]));
    return lanes_largest(GPU_ARG largest);
}

/* The largest logit of a row, found by a warp; every lane gets it. */
GPU_INLINE accumulator logprob_maximum(GPU_PARAM const struct stored *z, size_t V) {
    return (accumulator)logprob_largest(GPU_ARG z, V, THREAD % GPU_WARP, GPU_WARP) + ACC(0.0);
}

/* The same, found by a block that has `shared` for a number of each warp; every thread gets it. */
GPU_INLINE accumulator logprob_block_maximum(GPU_PARAM const struct stored *z, size_t V,
                                             accumulator *shared) {
    const carrier own = logprob_largest(GPU_ARG z, V, THREAD, ROW_THREADS);
    if (THREAD % GPU_WARP == 0) shared[THREAD / GPU_WARP] = (accumulator)own;
    BARRIER();
    carrier largest = (carrier)shared[0];
    for (unsigned warp = 1; warp < ROW_WARPS; warp++)
        largest = larger(largest, (carrier)shared[warp]);
    BARRIER();
    return (accumulator)largest + ACC(0.0);
}

/* The block of law 2 that begins at term `first`, summed by a warp; none is left behind the row. */
GPU_INLINE accumulator logprob_block_sum(GPU_PARAM const struct stored *z, size_t V, size_t first,
                                         accumulator maximum) {
    accumulator lane = 0;
    for (size_t v = first + THREAD % GPU_WARP; v < least(first + SUM_BLOCK, V); v += GPU_WARP)
        lane = lane + rule_exp_shifted(stored_load(z[v]), maximum);
    return lanes_join(GPU_ARG lane);
}

/* Each round the warps sum a block of law 2 each, and the first thread takes them in order. */
KERNEL(logprob_forward_kernel, struct logprob_forward_args) {
    SHARED(accumulator, shared);
    const size_t row = BLOCK, V = args->V, warp = THREAD / GPU_WARP;
    const struct stored *const z = (const struct stored *)args->logits + row * V;
    const accumulator maximum = logprob_block_maximum(GPU_ARG z, V, shared);
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < V; first += ROW_WARPS * SUM_BLOCK) {
        const accumulator sum = logprob_block_sum(GPU_ARG z, V, first + warp * SUM_BLOCK, maximum);
        if (THREAD % GPU_WARP == 0) shared[warp] = sum;
        BARRIER();
        for (size_t i = 0; THREAD == 0 && i < ROW_WARPS && first + i * SUM_BLOCK < V; i++)
            ACC_NAME_(sum_blocks_push)(&blocks, shared[i]);
        BARRIER();
    }
    if (THREAD == 0) logprob_store(args, row, maximum, ACC_NAME_(sum_blocks_close)(&blocks));
}

/* By law 9: rows first .. first+rows-1, counted from a tile's first row on. A warp has a row: its
 * lanes work 32 chunks ahead, and the first lane adds them from +0. */
struct logprob_job {
    struct logprob_forward_args is;
    size_t first, rows;
    struct joined by;
};

GPU_INLINE accumulator logprob_chunk(const struct stored *z, size_t V, size_t chunk, uint32_t terms,
                                     accumulator maximum) {
    accumulator sum = 0;
    for (size_t v = chunk * terms; v < least((chunk + 1) * terms, V); v++)
        sum = sum + rule_exp_shifted(stored_load(z[v]), maximum);
    return sum;
}

KERNEL(logprob_shuffled_kernel, struct logprob_job) {
    SHARED(accumulator, shared);
    const size_t at = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const unsigned own = THREAD % GPU_WARP;
    accumulator *const ahead = shared + THREAD / GPU_WARP * GPU_WARP;
    if (at >= args->rows) return;
    const size_t row = args->first + at, V = args->is.V;
    const struct stored *const z = (const struct stored *)args->is.logits + row * V;
    const accumulator maximum = logprob_maximum(GPU_ARG z, V);
    accumulator sum = 0;
    for (uint32_t first = 0; first < args->by.chunks; first += GPU_WARP) {
        const unsigned some = (unsigned)least(GPU_WARP, args->by.chunks - first);
        if (own < some)
            ahead[own] =
                logprob_chunk(z, V, joined_chunk(&args->by, at / SHUFFLE_TILE, first + own),
                              args->by.chunk, maximum);
        WARP_BARRIER();
        for (unsigned i = 0; own == 0 && i < some; i++)
            sum = sum + ahead[i];
        WARP_BARRIER();
    }
    if (own == 0) logprob_store(&args->is, row, maximum, sum);
}

static void logprob_shuffled(const struct op_call *call, struct logprob_job *job) {
    const struct shuffle shuffle = order_open(call, SHUFFLE_PASS_ROW);
    const uint32_t chunks = shuffle_chunks(&shuffle, job->is.V);
    const size_t tiles = ((size_t)job->is.L + SHUFFLE_TILE - 1) / SHUFFLE_TILE;
    const size_t batch = order_batch(&shuffle, chunks, tiles);
    for (size_t tile = 0; tile < tiles; tile += batch) {
        const size_t some = least(batch, tiles - tile);
        job->by = order_draw(call, &shuffle, chunks, tile, some, 1);
        job->first = tile * SHUFFLE_TILE;
        job->rows = least(some * SHUFFLE_TILE, job->is.L - job->first);
        LAUNCH(logprob_shuffled_kernel, row_blocks(job->rows), ROW_THREADS,
               ROW_THREADS * sizeof(accumulator), job);
    }
}

/* By law 14: a thread per chunk of a row's exponentials. */
KERNEL(logprob_maximum_kernel, struct logprob_job) {
    const size_t row = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP, V = args->is.V;
    if (row >= args->is.L) return;
    const accumulator maximum =
        logprob_maximum(GPU_ARG(const struct stored *) args->is.logits + row * V, V);
    if (THREAD % GPU_WARP != 0) return;
    ((accumulator *)args->is.maximum)[row] = maximum;
    ((accumulator *)args->is.sum)[row] = 0;
}

KERNEL(logprob_atomic_kernel, struct logprob_job) {
    const size_t at = (size_t)BLOCK * THREADS + THREAD, chunks = args->by.chunks, V = args->is.V;
    if (at >= args->is.L * chunks) return;
    const size_t row = at / chunks;
    const accumulator maximum = ((const accumulator *)args->is.maximum)[row];
    const struct stored *const z = (const struct stored *)args->is.logits + row * V;
    race_add(GPU_ARG(accumulator *) args->is.sum + row,
             logprob_chunk(z, V, at % chunks, args->by.chunk, maximum));
}

KERNEL(logprob_close_kernel, struct logprob_job) {
    const size_t row = (size_t)BLOCK * THREADS + THREAD;
    if (row >= args->is.L) return;
    logprob_store(&args->is, row, ((const accumulator *)args->is.maximum)[row],
                  ((const accumulator *)args->is.sum)[row]);
}

static void logprob_racing(const struct op_call *call, struct logprob_job *job) {
    const size_t L = job->is.L;
    job->by.chunk = call->racing->chunk;
    job->by.chunks = (uint32_t)race_chunks(call, job->is.V);
    LAUNCH_ROWS(logprob_maximum_kernel, L, job);
    LAUNCH_ELEMENTS(logprob_atomic_kernel, L * job->by.chunks, job);
    LAUNCH_ELEMENTS(logprob_close_kernel, L, job);
}

static void logprob_forward(const struct op_call *call, const struct logprob_forward_args *args) {
    struct logprob_job job = {*args, 0, 0, {0, 0, NULL}};
    if (race_active(call, SUM_FORWARD))
        logprob_racing(call, &job);
    else if (shuffle_active(call, SUM_FORWARD))
        logprob_shuffled(call, &job);
    else
        LAUNCH(logprob_forward_kernel, args->L, ROW_THREADS, ROW_WARPS * sizeof(accumulator), args);
}

OP_JOB(logprob_backward);

/* Logits of a block, all of one row. */
#define LOGPROB_PIECE ((size_t)ELEMENT_THREADS * SPAN_EACH)

/* What a row's gradients share. */
struct logprob_row {
    accumulator maximum, sum, coefficient;
    size_t target;
};

GPU_INLINE carrier logprob_gradient(const struct logprob_backward_job *job,
                                    const struct logprob_row *row, carrier z, size_t v) {
    const accumulator hit = v == row->target ? ACC(1.0) : ACC(0.0);
    if (!job->is.two_step)
        return rule_dlogit(rule_exp_shifted(z, row->maximum), row->sum, hit, row->coefficient,
                           stored_dtype(job->dtype));
    const accumulator logprob =
        job->is.loss == DTYPE_F64
            ? rule_logprob_wide(z, row->maximum, row->sum)
            : (accumulator)rule_logprob(z, row->maximum, row->sum, job->is.loss);
    return rule_dlogit_two_step(logprob, hit, row->coefficient, stored_dtype(job->dtype));
}

/* The first `own` of a thread's neighbours; the others are +0. */
GPU_INLINE void logprob_load(carrier *to, const struct stored *z, unsigned own) {
    if (own == SPAN_EACH && span_aligned(z)) {
        load_each(to, z);
        return;
    }
    UNROLL
    for (unsigned k = 0; k < SPAN_EACH; k++)
        to[k] = k < own ? stored_load(z[k]) : 0;
}

GPU_INLINE void logprob_keep(struct stored *z, const carrier *from, unsigned own) {
    if (own == SPAN_EACH && span_aligned(z)) {
        store_each(z, from);
        return;
    }
    UNROLL
    for (unsigned k = 0; k < SPAN_EACH; k++)
        if (k < own) z[k] = stored_of(from[k]);
}

KERNEL(logprob_backward_kernel, struct logprob_backward_job) {
    const size_t V = args->is.V, pieces = (V + LOGPROB_PIECE - 1) / LOGPROB_PIECE;
    const size_t at = BLOCK / pieces;
    const size_t first = BLOCK % pieces * LOGPROB_PIECE + (size_t)THREAD * SPAN_EACH;
    if (first >= V) return;
    const struct logprob_row row = {((const accumulator *)args->is.maximum)[at],
                                    ((const accumulator *)args->is.sum)[at],
                                    (accumulator)args->is.coefficient[at], args->is.target[at]};
    struct stored *const z = (struct stored *)args->is.logits + at * V + first;
    const unsigned own = (unsigned)least(SPAN_EACH, V - first);
    carrier each[SPAN_EACH];
    logprob_load(each, z, own);
    UNROLL
    for (unsigned k = 0; k < SPAN_EACH; k++)
        each[k] = logprob_gradient(args, &row, each[k], first + k);
    logprob_keep(z, each, own);
}

static void logprob_backward(const struct op_call *call, const struct logprob_backward_args *args) {
    const struct logprob_backward_job job = {*args, call->compute};
    const size_t pieces = (args->V + LOGPROB_PIECE - 1) / LOGPROB_PIECE;
    LAUNCH(logprob_backward_kernel, args->L * pieces, ELEMENT_THREADS, 0, &job);
}
