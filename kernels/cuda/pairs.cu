/* SPDX-License-Identifier: Apache-2.0
 * Distances between tensors of two runs: a warp has a block of law 2, lane l of it the numbers l, l
 * + 32, ...
 *
 * Differences and sums are f64's, from exact conversions, as trainer/distance.c has them. */
#include "kernels/pairs.h"

#include "base/rule_ulp.h"
#include "base/variant.h"
#include "kernels/cuda/list.h"

struct pairs_job {
    struct list list;
    struct pairs_args is[LIST_TENSORS];
};

/* The sums of one lane. */
struct pairs_lane {
    double sum[PAIRS_SUMS];
    double changed; /* a count, which f64 holds exactly */
    int64_t ulp;
};

GPU_INLINE double pairs_value(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

GPU_INLINE void pairs_bits(const struct pairs_args *is, size_t i, struct pairs_lane *lane) {
    int64_t ulp;
    int changed;
    if (is->x_dtype == DTYPE_F64) {
        const double x = ((const double *)is->x)[i], y = ((const double *)is->y)[i];
        changed = real_bits_f64(x) != real_bits_f64(y);
        ulp = rule_ulp_f64(x, y);
    } else {
        const float x = ((const float *)is->x)[i], y = ((const float *)is->y)[i];
        changed = real_bits_f32(x) != real_bits_f32(y);
        ulp = rule_ulp_f32(x, y, is->x_dtype);
    }
    lane->changed = lane->changed + (changed ? 1.0 : 0.0);
    if (ulp > lane->ulp) lane->ulp = ulp;
}

GPU_INLINE void pairs_add(const struct pairs_args *is, size_t i, struct pairs_lane *lane) {
    const double x = pairs_value(is->x, is->x_dtype, i), y = pairs_value(is->y, is->y_dtype, i);
    const double gap = x - y, way = x - pairs_value(is->start, is->x_dtype, i);
    const double a = x - pairs_value(is->x_old, is->x_dtype, i);
    const double b = y - pairs_value(is->y_old, is->y_dtype, i);
    lane->sum[PAIRS_GAP] = real_fma_f64(gap, gap, lane->sum[PAIRS_GAP]);
    lane->sum[PAIRS_TRAVEL] = real_fma_f64(way, way, lane->sum[PAIRS_TRAVEL]);
    lane->sum[PAIRS_XX] = real_fma_f64(a, a, lane->sum[PAIRS_XX]);
    lane->sum[PAIRS_YY] = real_fma_f64(b, b, lane->sum[PAIRS_YY]);
    lane->sum[PAIRS_XY] = real_fma_f64(a, b, lane->sum[PAIRS_XY]);
    if (is->x_dtype == is->y_dtype) pairs_bits(is, i, lane);
}

/* The largest that any lane has, none below 0. Its bits travel as those of an f64, which nobody
 * adds to. */
GPU_INLINE int64_t pairs_largest(GPU_PARAM int64_t x) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2) {
        const double bits = real_from_bits_f64((uint64_t)x);
        const int64_t other = (int64_t)real_bits_f64(gpu_shuffle_xor_f64(GPU_ARG bits, half));
        if (other > x) x = other;
    }
    return x;
}

KERNEL(pairs_kernel, struct pairs_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct pairs_args *const is = &args->is[at.tensor];
    struct pairs_block *const out = &is->blocks[at.block];
    const size_t first = at.block * PAIRS_BLOCK, end = least(first + PAIRS_BLOCK, is->count);
    struct pairs_lane lane;
    UNROLL
    for (int s = 0; s < PAIRS_SUMS; s++)
        lane.sum[s] = 0.0;
    lane.changed = 0.0;
    lane.ulp = 0;
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP)
        pairs_add(is, i, &lane);
    UNROLL
    for (int s = 0; s < PAIRS_SUMS; s++)
        lane.sum[s] = lanes_join_f64(GPU_ARG lane.sum[s]);
    lane.changed = lanes_join_f64(GPU_ARG lane.changed);
    lane.ulp = pairs_largest(GPU_ARG lane.ulp);
    if (THREAD % GPU_WARP != 0) return;
    UNROLL
    for (int s = 0; s < PAIRS_SUMS; s++)
        out->sum[s] = lane.sum[s];
    out->changed = (uint64_t)lane.changed;
    out->ulp = lane.ulp;
}

void VARIANT(pairs)(const struct pairs_args *tensors, size_t count);
void VARIANT(pairs)(const struct pairs_args *tensors, size_t count) {
    LIST_LAUNCH(pairs_kernel, struct pairs_job, tensors, count, pairs_blocks);
}
