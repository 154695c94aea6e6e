/* SPDX-License-Identifier: Apache-2.0
 * What happens to a whole gradient: closing it (law 4), its sum of squares and its scaling
 * (law 7). Its storage dtype is its own and may have another carrier than the variant's.
 *
 * Invariant: square is law 2 in f64 for every variant: groups of 2^p blocks are nodes of the tree,
 * a warp has a group, and one thread joins their sums, which is the tree itself. */
#include "kernels/cuda/launch.h"

KERNEL(close_kernel, struct close_args) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i >= args->count) return;
    accumulator sum = ((const accumulator *)args->acc[0])[i];
    if (args->uses == 2) sum = sum + ((const accumulator *)args->acc[1])[i];
    if (args->storage == DTYPE_F64)
        ((double *)args->gradient)[i] = (double)sum;
    else
        ((float *)args->gradient)[i] = (float)carrier_round(sum, args->storage);
}

static void close_gradient(const struct op_call *call, const struct close_args *args) {
    (void)call;
    LAUNCH(close_kernel, element_blocks(args->count), ELEMENT_THREADS, 0, args);
}

struct square_job {
    struct square_args is;
    size_t step; /* terms of a group: SUM_BLOCK times a power of two */
    size_t groups;
    double *group; /* (groups), then the sum */
};

GPU_INLINE double square_value(const struct square_args *is, size_t i) {
    if (is->storage == DTYPE_F64) return ((const double *)is->values)[i];
    return (double)((const float *)is->values)[i];
}

GPU_INLINE double square_join(GPU_PARAM double lane) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2)
        lane = lane + gpu_shuffle_xor_f64(GPU_ARG lane, half);
    return lane;
}

KERNEL(square_kernel, struct square_job) {
    const size_t g = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP;
    if (g >= args->groups) return;
    const size_t end = least((g + 1) * args->step, args->is.count);
    struct sum_blocks_f64 blocks;
    blocks.count = 0;
    for (size_t first = g * args->step; first < end; first += SUM_BLOCK) {
        double lane = 0.0;
        for (size_t i = first + own; i < least(first + SUM_BLOCK, end); i += GPU_WARP) {
            const double x = square_value(&args->is, i);
            lane = real_fma_f64(x, x, lane);
        }
        sum_blocks_push_f64(&blocks, square_join(GPU_ARG lane));
    }
    const double sum = sum_blocks_close_f64(&blocks);
    if (own == 0) args->group[g] = sum;
}

KERNEL(square_join_kernel, struct square_job) {
    struct sum_blocks_f64 blocks;
    if (THREAD != 0) return;
    blocks.count = 0;
    for (size_t g = 0; g < args->groups; g++)
        sum_blocks_push_f64(&blocks, args->group[g]);
    args->group[args->groups] = sum_blocks_close_f64(&blocks);
}

/* The result may lie where only the host sees it. */
static void square(const struct op_call *call, const struct square_args *args) {
    struct square_job job = {*args, SUM_BLOCK, 0, (double *)call->scratch};
    while ((args->count + job.step - 1) / job.step > SQUARE_GROUPS)
        job.step *= 2;
    job.groups = (args->count + job.step - 1) / job.step;
    LAUNCH(square_kernel, row_blocks(job.groups), ROW_THREADS, 0, &job);
    LAUNCH(square_join_kernel, 1, GPU_WARP, 0, &job);
    GPU_WAIT();
    *args->result = job.group[job.groups];
}

/* As PyTorch multiplies a stored gradient by a f32 scalar: in f64 for f64, else in f32; then one
 * rounding to storage. */
KERNEL(scale_kernel, struct scale_args) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i >= args->count) return;
    if (args->storage == DTYPE_F64) {
        ((double *)args->values)[i] = ((double *)args->values)[i] * args->factor;
    } else {
        const float product = ((float *)args->values)[i] * (float)args->factor;
        ((float *)args->values)[i] = (float)carrier_round((accumulator)product, args->storage);
    }
}

static void scale(const struct op_call *call, const struct scale_args *args) {
    (void)call;
    LAUNCH(scale_kernel, element_blocks(args->count), ELEMENT_THREADS, 0, args);
}
