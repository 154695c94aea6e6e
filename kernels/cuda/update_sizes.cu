/* SPDX-License-Identifier: Apache-2.0
 * How far a tensor moved: a warp has a block of law 2, lane l of it the numbers l, l + 32, ...
 *
 * Differences and sums are f64's, from exact conversions, as kernels/evidence.h has them. */
#include "kernels/update_sizes.h"

#include "base/real_basic.h"
#include "base/variant.h"
#include "kernels/cuda/list.h"

struct update_sizes_job {
    struct list list;
    struct update_sizes_args is[LIST_TENSORS];
};

/* Sums of one lane, and then of all. */
struct update_sizes_sums {
    double update, norm, travel, changed; /* `changed` is a count, which f64 holds exactly */
};

GPU_INLINE struct update_sizes_sums update_sizes_add(struct update_sizes_sums sums, double now,
                                                     double before, double start, int changed) {
    const double step = now - before, way = now - start;
    sums.update = real_fma_f64(step, step, sums.update);
    sums.norm = real_fma_f64(now, now, sums.norm);
    sums.travel = real_fma_f64(way, way, sums.travel);
    sums.changed = sums.changed + (changed ? 1.0 : 0.0);
    return sums;
}

GPU_INLINE struct update_sizes_sums update_sizes_narrow(const struct update_sizes_args *is,
                                                        size_t i, size_t end) {
    const float *const now = (const float *)is->now, *const before = (const float *)is->before,
                       *const start = (const float *)is->start;
    struct update_sizes_sums sums = {0.0, 0.0, 0.0, 0.0};
    for (; i < end; i += GPU_WARP)
        sums = update_sizes_add(sums, (double)now[i], (double)before[i], (double)start[i],
                                real_bits_f32(now[i]) != real_bits_f32(before[i]));
    return sums;
}

GPU_INLINE struct update_sizes_sums update_sizes_wide(const struct update_sizes_args *is, size_t i,
                                                      size_t end) {
    const double *const now = (const double *)is->now, *const before = (const double *)is->before,
                        *const start = (const double *)is->start;
    struct update_sizes_sums sums = {0.0, 0.0, 0.0, 0.0};
    for (; i < end; i += GPU_WARP)
        sums = update_sizes_add(sums, now[i], before[i], start[i],
                                real_bits_f64(now[i]) != real_bits_f64(before[i]));
    return sums;
}

KERNEL(update_sizes_kernel, struct update_sizes_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct update_sizes_args *const is = &args->is[at.tensor];
    const size_t first = at.block * SUM_BLOCK, end = least(first + SUM_BLOCK, is->count);
    const size_t own = first + THREAD % GPU_WARP;
    struct update_sizes_sums sums = is->dtype == DTYPE_F64 ? update_sizes_wide(is, own, end)
                                                           : update_sizes_narrow(is, own, end);
    sums.update = lanes_join_f64(GPU_ARG sums.update);
    sums.norm = lanes_join_f64(GPU_ARG sums.norm);
    sums.travel = lanes_join_f64(GPU_ARG sums.travel);
    sums.changed = lanes_join_f64(GPU_ARG sums.changed);
    if (THREAD % GPU_WARP != 0) return;
    struct update_sizes_block *const out = &is->blocks[at.block];
    out->update = sums.update;
    out->norm = sums.norm;
    out->travel = sums.travel;
    out->changed = (uint64_t)sums.changed;
}

void VARIANT(update_sizes)(const struct update_sizes_args *tensors, size_t count);
void VARIANT(update_sizes)(const struct update_sizes_args *tensors, size_t count) {
    LIST_LAUNCH(update_sizes_kernel, struct update_sizes_job, tensors, count, update_sizes_blocks);
}
