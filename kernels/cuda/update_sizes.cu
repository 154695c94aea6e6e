/* SPDX-License-Identifier: Apache-2.0
 * How far a tensor moved, by blocks of law 2 (kernels/cuda/lanes.h).
 *
 * Differences and sums are f64's, from exact conversions, as kernels/evidence.h has them. */
#include "kernels/update_sizes.h"

#include "base/real_basic.h"
#include "base/variant.h"
#include "kernels/cuda/lanes.h"

struct update_sizes_job {
    struct list list;
    struct update_sizes_args is[LIST_TENSORS];
};

/* Sums of the thread's lanes. */
struct update_sizes_lanes {
    double update[LANES_EACH], norm[LANES_EACH], travel[LANES_EACH];
    double changed[LANES_EACH]; /* a count, which f64 holds exactly */
};

GPU_INLINE void update_sizes_add(struct update_sizes_lanes *lanes, unsigned j, double now,
                                 double before, double start, int changed) {
    const double step = now - before, way = now - start;
    lanes->update[j] = real_fma_f64(step, step, lanes->update[j]);
    lanes->norm[j] = real_fma_f64(now, now, lanes->norm[j]);
    lanes->travel[j] = real_fma_f64(way, way, lanes->travel[j]);
    lanes->changed[j] = lanes->changed[j] + (changed ? 1.0 : 0.0);
}

#define UPDATE_SIZES_BATCH 4u /* rows that are read before the first number is used */

/* Rows of 32 numbers by four, where all three tensors can be loaded so, then what is left. */
#define UPDATE_SIZES_BLOCK_OF(name, type)                                                          \
    GPU_INLINE void update_sizes_##name(const struct update_sizes_args *is,                        \
                                        const struct lanes_place *of,                              \
                                        struct update_sizes_lanes *lanes) {                        \
        const type *const now = (const type *)is->now + of->first + of->own;                       \
        const type *const before = (const type *)is->before + of->first + of->own;                 \
        const type *const start = (const type *)is->start + of->first + of->own;                   \
        const size_t rows = lanes_aligned(now) && lanes_aligned(before) && lanes_aligned(start)    \
                                ? of->count / GPU_WARP                                             \
                                : 0;                                                               \
        size_t row = 0;                                                                            \
        ROLLED                                                                                     \
        for (; row + UPDATE_SIZES_BATCH <= rows; row += UPDATE_SIZES_BATCH) {                      \
            type a[UPDATE_SIZES_BATCH * LANES_EACH], b[UPDATE_SIZES_BATCH * LANES_EACH],           \
                c[UPDATE_SIZES_BATCH * LANES_EACH];                                                \
            UNROLL                                                                                 \
            for (unsigned k = 0; k < UPDATE_SIZES_BATCH; k++) {                                    \
                gpu_load4_##name(a + k * LANES_EACH, now + (row + k) * GPU_WARP);                  \
                gpu_load4_##name(b + k * LANES_EACH, before + (row + k) * GPU_WARP);               \
                gpu_load4_##name(c + k * LANES_EACH, start + (row + k) * GPU_WARP);                \
            }                                                                                      \
            UNROLL                                                                                 \
            for (unsigned k = 0; k < UPDATE_SIZES_BATCH * LANES_EACH; k++)                         \
                update_sizes_add(lanes, k % LANES_EACH, (double)a[k], (double)b[k], (double)c[k],  \
                                 real_bits_##name(a[k]) != real_bits_##name(b[k]));                \
        }                                                                                          \
        ROLLED                                                                                     \
        for (size_t i = row * GPU_WARP; i + of->own < of->count; i += GPU_WARP) {                  \
            UNROLL                                                                                 \
            for (unsigned j = 0; j < LANES_EACH; j++)                                              \
                if (i + of->own + j < of->count)                                                   \
                    update_sizes_add(                                                              \
                        lanes, j, (double)now[i + j], (double)before[i + j], (double)start[i + j], \
                        real_bits_##name(now[i + j]) != real_bits_##name(before[i + j]));          \
        }                                                                                          \
    }
UPDATE_SIZES_BLOCK_OF(f32, float)
UPDATE_SIZES_BLOCK_OF(f64, double)

KERNEL(update_sizes_kernel, struct update_sizes_job) {
    struct lanes_place of;
    if (!lanes_find(GPU_ARG & args->list, &of)) return;
    const struct update_sizes_args *const is = &args->is[of.tensor];
    struct update_sizes_lanes lanes;
    lanes_open(&of, is->count);
    UNROLL
    for (unsigned j = 0; j < LANES_EACH; j++)
        lanes.update[j] = lanes.norm[j] = lanes.travel[j] = lanes.changed[j] = 0.0;
    if (is->dtype == DTYPE_F64)
        update_sizes_f64(is, &of, &lanes);
    else
        update_sizes_f32(is, &of, &lanes);
    const double update = lanes_sum_f64(GPU_ARG lanes.update);
    const double norm = lanes_sum_f64(GPU_ARG lanes.norm);
    const double travel = lanes_sum_f64(GPU_ARG lanes.travel);
    const double changed = lanes_sum_f64(GPU_ARG lanes.changed);
    if (of.own != 0 || of.count == 0) return;
    struct update_sizes_block *const out = &is->blocks[of.block];
    out->update = update;
    out->norm = norm;
    out->travel = travel;
    out->changed = (uint64_t)changed;
}

static size_t update_sizes_warps(size_t count) {
    return lanes_warps(update_sizes_blocks(count));
}

void VARIANT(update_sizes)(const struct update_sizes_args *tensors, size_t count);
void VARIANT(update_sizes)(const struct update_sizes_args *tensors, size_t count) {
    LIST_LAUNCH(update_sizes_kernel, struct update_sizes_job, tensors, count, update_sizes_warps);
}
