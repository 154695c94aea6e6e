/* SPDX-License-Identifier: Apache-2.0
 * Distances between tensors of two runs, by blocks of law 2 (kernels/cuda/lanes.h).
 *
 * Differences and sums are f64's, from exact conversions, as kernels/evidence.h has them. */
#include "kernels/run_distances.h"

#include "base/rule_ulp.h"
#include "base/variant.h"
#include "kernels/cuda/lanes.h"

struct run_distances_job {
    struct list list;
    struct run_distances_args is[LIST_TENSORS];
};

/* The sums of the thread's lanes. */
struct run_distances_lanes {
    double sum[RUN_DISTANCES_SUMS][LANES_EACH];
    double changed[LANES_EACH]; /* a count, which f64 holds exactly */
    int64_t ulp;                /* the largest of all */
};

/* Number i of the five tensors, exactly. */
struct run_distances_numbers {
    double x, y, start, x_old, y_old;
};

GPU_INLINE void run_distances_add(struct run_distances_numbers n, struct run_distances_lanes *lanes,
                                  unsigned j) {
    const double gap = n.x - n.y, way = n.x - n.start;
    const double a = n.x - n.x_old, b = n.y - n.y_old;
    lanes->sum[RUN_DISTANCES_GAP][j] = real_fma_f64(gap, gap, lanes->sum[RUN_DISTANCES_GAP][j]);
    lanes->sum[RUN_DISTANCES_TRAVEL][j] =
        real_fma_f64(way, way, lanes->sum[RUN_DISTANCES_TRAVEL][j]);
    lanes->sum[RUN_DISTANCES_XX][j] = real_fma_f64(a, a, lanes->sum[RUN_DISTANCES_XX][j]);
    lanes->sum[RUN_DISTANCES_YY][j] = real_fma_f64(b, b, lanes->sum[RUN_DISTANCES_YY][j]);
    lanes->sum[RUN_DISTANCES_XY][j] = real_fma_f64(a, b, lanes->sum[RUN_DISTANCES_XY][j]);
}

GPU_INLINE void run_distances_differ(int changed, int64_t ulp, struct run_distances_lanes *lanes,
                                     unsigned j) {
    lanes->changed[j] = lanes->changed[j] + (changed ? 1.0 : 0.0);
    if (ulp > lanes->ulp) lanes->ulp = ulp;
}

GPU_INLINE void run_distances_differ_f32(float x, float y, enum dtype dtype,
                                         struct run_distances_lanes *lanes, unsigned j) {
    run_distances_differ(real_bits_f32(x) != real_bits_f32(y), rule_ulp_f32(x, y, dtype), lanes, j);
}

GPU_INLINE void run_distances_one(const struct run_distances_args *is, size_t i,
                                  struct run_distances_lanes *lanes, unsigned j) {
    const struct run_distances_numbers n = {
        number_at(is->x, is->x_dtype, i), number_at(is->y, is->y_dtype, i),
        number_at(is->start, is->x_dtype, i), number_at(is->x_old, is->x_dtype, i),
        number_at(is->y_old, is->y_dtype, i)};
    run_distances_add(n, lanes, j);
    if (is->x_dtype != is->y_dtype) return;
    if (is->x_dtype == DTYPE_F64)
        run_distances_differ(real_bits_f64(n.x) != real_bits_f64(n.y), rule_ulp_f64(n.x, n.y),
                             lanes, j);
    else
        run_distances_differ_f32((float)n.x, (float)n.y, is->x_dtype, lanes, j);
}

#define RUN_DISTANCES_BATCH 2u /* rows that are read before the first number is used */

/* Whether the block's numbers are f32 carriers of one dtype, and can be loaded by four. */
GPU_INLINE int run_distances_by_four(const struct run_distances_args *is) {
    return is->x_dtype == is->y_dtype && is->x_dtype != DTYPE_F64 && span_aligned(is->x) &&
           span_aligned(is->y) && span_aligned(is->start) && span_aligned(is->x_old) &&
           span_aligned(is->y_old);
}

/* Goes on over rows of 32 numbers, and returns how many that were. */
GPU_INLINE size_t run_distances_rows(const struct run_distances_args *is,
                                     const struct lanes_place *of,
                                     struct run_distances_lanes *lanes) {
    const size_t at = of->first + of->own, rows = of->count / GPU_WARP;
    const float *const x = (const float *)is->x + at, *const y = (const float *)is->y + at;
    const float *const start = (const float *)is->start + at;
    const float *const x_old = (const float *)is->x_old + at;
    const float *const y_old = (const float *)is->y_old + at;
    size_t row = 0;
    ROLLED
    for (; row + RUN_DISTANCES_BATCH <= rows; row += RUN_DISTANCES_BATCH) {
        float four[5][RUN_DISTANCES_BATCH * LANES_EACH];
        UNROLL
        for (unsigned k = 0; k < RUN_DISTANCES_BATCH; k++) {
            const size_t i = (row + k) * GPU_WARP;
            gpu_load4_f32(four[0] + k * LANES_EACH, x + i);
            gpu_load4_f32(four[1] + k * LANES_EACH, y + i);
            gpu_load4_f32(four[2] + k * LANES_EACH, start + i);
            gpu_load4_f32(four[3] + k * LANES_EACH, x_old + i);
            gpu_load4_f32(four[4] + k * LANES_EACH, y_old + i);
        }
        UNROLL
        for (unsigned k = 0; k < RUN_DISTANCES_BATCH * LANES_EACH; k++) {
            const struct run_distances_numbers n = {(double)four[0][k], (double)four[1][k],
                                                    (double)four[2][k], (double)four[3][k],
                                                    (double)four[4][k]};
            run_distances_add(n, lanes, k % LANES_EACH);
            run_distances_differ_f32(four[0][k], four[1][k], is->x_dtype, lanes, k % LANES_EACH);
        }
    }
    return row;
}

/* The largest that any thread of the block has, none below 0. Its bits travel as those of an f64,
 * which nobody adds to. */
GPU_INLINE int64_t run_distances_largest(GPU_PARAM int64_t x) {
    for (unsigned half = LANES_THREADS / 2; half > 0; half /= 2) {
        const double bits = real_from_bits_f64((uint64_t)x);
        const int64_t other = (int64_t)real_bits_f64(gpu_shuffle_xor_f64(GPU_ARG bits, half));
        if (other > x) x = other;
    }
    return x;
}

KERNEL(run_distances_kernel, struct run_distances_job) {
    struct lanes_place of;
    if (!lanes_find(GPU_ARG & args->list, &of)) return;
    const struct run_distances_args *const is = &args->is[of.tensor];
    struct run_distances_lanes lanes;
    double sum[RUN_DISTANCES_SUMS];
    lanes_open(&of, is->count);
    UNROLL
    for (unsigned j = 0; j < LANES_EACH; j++) {
        UNROLL
        for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
            lanes.sum[s][j] = 0.0;
        lanes.changed[j] = 0.0;
    }
    lanes.ulp = 0;
    const size_t row = run_distances_by_four(is) ? run_distances_rows(is, &of, &lanes) : 0;
    ROLLED
    for (size_t i = row * GPU_WARP + of.own; i < of.count; i += GPU_WARP) {
        UNROLL
        for (unsigned j = 0; j < LANES_EACH; j++)
            if (i + j < of.count) run_distances_one(is, of.first + i + j, &lanes, j);
    }
    UNROLL
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        sum[s] = lanes_sum_f64(GPU_ARG lanes.sum[s]);
    const double changed = lanes_sum_f64(GPU_ARG lanes.changed);
    const int64_t ulp = run_distances_largest(GPU_ARG lanes.ulp);
    if (of.own != 0 || of.count == 0) return;
    struct run_distances_block *const out = &is->blocks[of.block];
    UNROLL
    for (int s = 0; s < RUN_DISTANCES_SUMS; s++)
        out->sum[s] = sum[s];
    out->changed = (uint64_t)changed;
    out->ulp = ulp;
}

static size_t run_distances_warps(size_t count) {
    return lanes_warps(run_distances_blocks(count));
}

void VARIANT(run_distances)(const struct run_distances_args *tensors, size_t count);
void VARIANT(run_distances)(const struct run_distances_args *tensors, size_t count) {
    LIST_LAUNCH(run_distances_kernel, struct run_distances_job, tensors, count,
                run_distances_warps);
}
