/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer's step did to a tensor: a warp has a block of law 2, lane l of it the numbers
 * l, l + 32, ...
 *
 * All in f64, from exact conversions, as trainer/readback.c has it. */
#include "kernels/reads.h"

#include "base/variant.h"
#include "kernels/cuda/launch.h"

struct reads_job {
    struct reads_args is;
    size_t blocks;
};

GPU_INLINE double reads_value(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

GPU_INLINE double reads_slot(const struct reads_args *is, int slot, size_t i) {
    return reads_value(is->slots[slot], is->slot_dtype, i);
}

GPU_INLINE double reads_direction(const struct reads_args *is, size_t i, double old) {
    const struct rule_direction *const k = &is->direction;
    if (k->kind == RULE_DIRECTION_ADAM)
        return rule_direction_adam(k, reads_slot(is, 0, i), reads_slot(is, k->second, i), old);
    const double g = reads_value(is->gradient, is->gradient_dtype, i);
    if (k->kind == RULE_DIRECTION_SGD) return rule_direction_sgd(k, g, reads_slot(is, 0, i), old);
    return rule_direction_lion(k, g, reads_slot(is, 0, i), old,
                               reads_value(is->made, is->working, i));
}

GPU_INLINE double reads_product(double a, double b, double sum) {
    return real_fma_f64(a, b, sum);
}

GPU_INLINE void reads_element(const struct reads_args *is, size_t i, double *sum) {
    const double old = reads_value(is->old, is->working, i);
    const double now = reads_value(is->now, is->working, i);
    const struct rule_read_terms t =
        rule_read_terms(&is->spacing, reads_direction(is, i, old), is->decay, old, now);
    sum[READS_UU] = reads_product(t.u, t.u, sum[READS_UU]);
    sum[READS_UP] = reads_product(t.u, t.p, sum[READS_UP]);
    sum[READS_PP] = reads_product(t.p, t.p, sum[READS_PP]);
    sum[READS_UD] = reads_product(t.u, t.d, sum[READS_UD]);
    sum[READS_PD] = reads_product(t.p, t.d, sum[READS_PD]);
    sum[READS_U] = reads_product(real_abs_f64(t.u), 1.0, sum[READS_U]);
    sum[READS_P] = reads_product(real_abs_f64(t.p), 1.0, sum[READS_P]);
    if (is->moment == NULL) return;
    const struct rule_taken_value taken = rule_taken_value(
        &is->taken, reads_slot(is, 0, i), reads_value(is->moment, is->slot_dtype, i), old);
    sum[READS_TAKEN] = reads_product(taken.gradient, taken.gradient, sum[READS_TAKEN]);
    sum[READS_TAKEN_ERROR] = reads_product(taken.error, taken.error, sum[READS_TAKEN_ERROR]);
}

KERNEL(reads_kernel, struct reads_job) {
    const size_t block = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    if (block >= args->blocks) return;
    const size_t first = block * READS_BLOCK, end = least(first + READS_BLOCK, args->is.count);
    double sum[READS_SUMS];
    UNROLL
    for (int s = 0; s < READS_SUMS; s++)
        sum[s] = 0.0;
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP)
        reads_element(&args->is, i, sum);
    UNROLL
    for (int s = 0; s < READS_SUMS; s++) {
        sum[s] = lanes_join_f64(GPU_ARG sum[s]);
        if (THREAD % GPU_WARP == 0) args->is.blocks[block].sum[s] = sum[s];
    }
}

void VARIANT(reads)(const struct reads_args *args);
void VARIANT(reads)(const struct reads_args *args) {
    const struct reads_job job = {*args, reads_blocks(args->count)};
    LAUNCH(reads_kernel, row_blocks(job.blocks), ROW_THREADS, 0, &job);
}
