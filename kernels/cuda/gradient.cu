/* SPDX-License-Identifier: Apache-2.0
 * What happens to a whole gradient: closing it (law 4), its sum of squares and its scaling
 * (law 7). Its storage dtype is its own and may have another carrier than the variant's.
 *
 * Invariant: square is law 2 in f64 for every variant: a warp has a block of 4096 terms, and the
 * blocks join as the tree itself, or in a drawn order (law 9), or as they come (law 14). */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/joined.h"

KERNEL(close_kernel, struct close_args) {
    accumulator sum[FOUR_EACH], other[FOUR_EACH];
    struct four at;
    if (!four_find(GPU_ARG args->count, &at)) return;
    ACC_NAME_(four_load)(sum, (const accumulator *)args->acc[0], at);
    if (args->uses == 2) {
        ACC_NAME_(four_load)(other, (const accumulator *)args->acc[1], at);
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            sum[k] = sum[k] + other[k];
    }
    if (args->storage == DTYPE_F64) {
        double stored[FOUR_EACH];
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            stored[k] = (double)sum[k];
        four_store_f64((double *)args->gradient, stored, at);
    } else {
        float stored[FOUR_EACH];
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            stored[k] = (float)carrier_store(sum[k], args->storage);
        four_store_f32((float *)args->gradient, stored, at);
    }
}

static void close_gradient(const struct op_call *call, const struct close_args *args) {
    (void)call;
    LAUNCH_FOURS(close_kernel, args->count, args);
}

struct square_job {
    struct square_args is;
    size_t first, count; /* blocks of law 2 of this launch */
    double *block;       /* (count) their sums, then the next level of their tree */
    double *result;
    struct joined by;
};

/* Law 2's block `block` of the values, by a warp; every lane gets the sum. */
GPU_INLINE double square_block(GPU_PARAM const struct square_args *is, size_t block) {
    const size_t first = block * SUM_BLOCK, end = least(first + SUM_BLOCK, is->count);
    double lane = 0.0;
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP) {
        const double x = number_at(is->values, is->storage, i);
        lane = real_fma_f64(x, x, lane);
    }
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2)
        lane = lane + gpu_shuffle_xor_f64(GPU_ARG lane, half);
    return lane;
}

KERNEL(square_kernel, struct square_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    if (i >= args->count) return;
    const double sum = square_block(GPU_ARG & args->is, args->first + i);
    if (THREAD % GPU_WARP == 0) args->block[i] = sum;
}

/* Law 14: each block is added to one sum. */
KERNEL(square_atomic_kernel, struct square_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    if (i >= args->count) return;
    const double sum = square_block(GPU_ARG & args->is, args->first + i);
    if (THREAD % GPU_WARP == 0) (void)gpu_atomic_add_f64(GPU_ARG args->result, sum);
}

/* Level by level, 2j with 2j+1; an odd last one goes up unchanged. One block of threads. */
KERNEL(square_tree_kernel, struct square_job) {
    double *from = args->block, *to = args->block + SHUFFLE_CHUNKS;
    for (size_t count = args->count; count > 1; count = (count + 1) / 2) {
        for (size_t j = THREAD; 2 * j < count; j += THREADS)
            to[j] = 2 * j + 1 < count ? from[2 * j] + from[2 * j + 1] : from[2 * j];
        BARRIER();
        double *const swap = from;
        from = to;
        to = swap;
    }
    if (THREAD == 0) *args->result = from[0];
}

/* One warp reads ahead, its first lane adds from +0. */
KERNEL(square_shuffled_kernel, struct square_job) {
    SHARED(double, ahead);
    double sum = 0.0;
    for (uint32_t first = 0; first < args->by.chunks; first += GPU_WARP) {
        const unsigned some = (unsigned)least(GPU_WARP, args->by.chunks - first);
        if (THREAD < some) ahead[THREAD] = args->block[joined_chunk(&args->by, 0, first + THREAD)];
        BARRIER();
        for (unsigned i = 0; THREAD == 0 && i < some; i++)
            sum = sum + ahead[i];
        BARRIER();
    }
    if (THREAD == 0) *args->result = sum;
}

static void square_join(const struct op_call *call, struct square_job *job, size_t group) {
    LAUNCH_ROWS(square_kernel, job->count, job);
    if (!shuffle_active(call, SUM_NORM)) {
        LAUNCH(square_tree_kernel, 1, ELEMENT_THREADS, 0, job);
        return;
    }
    const struct shuffle shuffle = order_open(call, PASS_FORWARD);
    job->by = order_draw(call, &shuffle, (uint32_t)job->count, group, 1, 1);
    LAUNCH(square_shuffled_kernel, 1, GPU_WARP, GPU_WARP * sizeof(double), job);
}

/* Groups of SHUFFLE_CHUNKS blocks: nodes of law 2's tree, and one order each in law 9. The result
 * may lie where only the host sees it, and scratch where only the device does. */
static void square(const struct op_call *call, const struct square_args *args) {
    const size_t blocks = (args->count + SUM_BLOCK - 1) / SUM_BLOCK;
    const int races = race_active(call, SUM_NORM), drawn = shuffle_active(call, SUM_NORM);
    struct square_job job = {*args, 0, 0, (double *)cuda_rest(call), NULL, {0, 0, NULL}};
    struct sum_blocks_f64 tree;
    double sum = 0.0, result = 0.0;
    tree.count = 0;
    job.result = job.block + CUDA_SQUARES - 1;
    /* behind queued ops, which may still use the scratch */
    if (races) GPU_MOVE(job.result, &result, sizeof result);
    for (; job.first < blocks; job.first += SHUFFLE_CHUNKS) {
        job.count = least(SHUFFLE_CHUNKS, blocks - job.first);
        if (races)
            LAUNCH_ROWS(square_atomic_kernel, job.count, &job);
        else
            square_join(call, &job, job.first / SHUFFLE_CHUNKS);
        GPU_MOVE(&result, job.result, sizeof result);
        if (drawn)
            sum = sum + result;
        else if (!races)
            sum_blocks_push_f64(&tree, result);
    }
    *args->result = races ? result : drawn ? sum : sum_blocks_close_f64(&tree);
}

/* As PyTorch multiplies a stored gradient by a f32 scalar: in f64 for f64, else in f32; then one
 * rounding to storage. */
KERNEL(scale_kernel, struct scale_args) {
    struct four at;
    if (!four_find(GPU_ARG args->count, &at)) return;
    if (args->storage == DTYPE_F64) {
        double x[FOUR_EACH];
        four_load_f64(x, (const double *)args->values, at);
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            x[k] = x[k] * args->factor;
        four_store_f64((double *)args->values, x, at);
    } else {
        float x[FOUR_EACH];
        four_load_f32(x, (const float *)args->values, at);
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++) {
            const float product = x[k] * (float)args->factor;
            x[k] = (float)carrier_store((accumulator)product, args->storage);
        }
        four_store_f32((float *)args->values, x, at);
    }
}

/* A stored number times 1 is itself: nothing is started for it. A clip scales by 1 in all updates
 * whose norm is small enough. */
static void scale(const struct op_call *call, const struct scale_args *args) {
    (void)call;
    if (args->factor != 1.0) LAUNCH_FOURS(scale_kernel, args->count, args);
}
