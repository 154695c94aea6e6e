/* SPDX-License-Identifier: Apache-2.0
 * Distances between tensors of two runs: a warp has a block of law 2, lane l of it the numbers l, l
 * + 32, ...
 *
 * Differences and sums are f64's, from exact conversions, as kernels/evidence.h has them. */
#include "kernels/run_distances.h"

#include "base/rule_ulp.h"
#include "base/variant.h"
#include "kernels/cuda/list.h"

struct run_distances_job {
    struct list list;
    struct run_distances_args is[LIST_TENSORS];
};

/* The sums of one lane. */
struct run_distances_lane {
    double sum[RUN_DISTANCES_SUMS];
    double changed; /* a count, which f64 holds exactly */
    int64_t ulp;
};

GPU_INLINE void run_distances_bits(const struct run_distances_args *is, size_t i,
                                   struct run_distances_lane *lane) {
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

GPU_INLINE void run_distances_add(const struct run_distances_args *is, size_t i,
                                  struct run_distances_lane *lane) {
    const double x = number_at(is->x, is->x_dtype, i), y = number_at(is->y, is->y_dtype, i);
    const double gap = x - y, way = x - number_at(is->start, is->x_dtype, i);
    const double a = x - number_at(is->x_old, is->x_dtype, i);
    const double b = y - number_at(is->y_old, is->y_dtype, i);
    lane->sum[RUN_DISTANCES_GAP] = real_fma_f64(gap, gap, lane->sum[RUN_DISTANCES_GAP]);
    lane->sum[RUN_DISTANCES_TRAVEL] = real_fma_f64(way, way, lane->sum[RUN_DISTANCES_TRAVEL]);
    lane->sum[RUN_DISTANCES_XX] = real_fma_f64(a, a, lane->sum[RUN_DISTANCES_XX]);
    lane->sum[RUN_DISTANCES_YY] = real_fma_f64(b, b, lane->sum[RUN_DISTANCES_YY]);
    lane->sum[RUN_DISTANCES_XY] = real_fma_f64(a, b, lane->sum[RUN_DISTANCES_XY]);
    if (is->x_dtype == is->y_dtype) run_distances_bits(is, i, lane);
}

/* The largest that any lane has, none below 0. Its bits travel as those of an f64, which nobody
 * adds to. */
GPU_INLINE int64_t run_distances_largest(GPU_PARAM int64_t x) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2) {
        const double bits = real_from_bits_f64((uint64_t)x);
        const int64_t other = (int64_t)real_bits_f64(gpu_shuffle_xor_f64(GPU_ARG bits, half));
        if (other > x) x = other;
    }
    return x;
}

KERNEL(run_distances_kernel, struct run_distances_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct run_distances_args *const is = &args->is[at.tensor];
    struct run_distances_block *const out = &is->blocks[at.block];
    const size_t first = at.block * RUN_DISTANCES_BLOCK,
                 end = least(first + RUN_DISTANCES_BLOCK, is->count);
    struct run_distances_lane lane;
    UNROLL
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        lane.sum[s] = 0.0;
    lane.changed = 0.0;
    lane.ulp = 0;
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP)
        run_distances_add(is, i, &lane);
    UNROLL
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        lane.sum[s] = lanes_join_f64(GPU_ARG lane.sum[s]);
    lane.changed = lanes_join_f64(GPU_ARG lane.changed);
    lane.ulp = run_distances_largest(GPU_ARG lane.ulp);
    if (THREAD % GPU_WARP != 0) return;
    UNROLL
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        out->sum[s] = lane.sum[s];
    out->changed = (uint64_t)lane.changed;
    out->ulp = lane.ulp;
}

void VARIANT(run_distances)(const struct run_distances_args *tensors, size_t count);
void VARIANT(run_distances)(const struct run_distances_args *tensors, size_t count) {
    LIST_LAUNCH(run_distances_kernel, struct run_distances_job, tensors, count,
                run_distances_blocks);
}
