/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer's step did to a tensor: a warp has a block of law 2, lane l of it the numbers
 * l, l + 32, ...
 *
 * All in f64, from exact conversions, as trainer/readback_sums.c has it. */
#include "kernels/reads.h"

#include "base/variant.h"
#include "kernels/cuda/list.h"

struct reads_job {
    struct list list;
    struct reads_args is;
    struct reads_tensor tensor[LIST_TENSORS];
};

GPU_INLINE double reads_value(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

GPU_INLINE double reads_direction(const struct reads_args *is, const struct reads_tensor *of,
                                  size_t i, double old) {
    const struct rule_direction *const k = &is->direction;
    return RULE_DIRECTION_OF(k, reads_value(of->gradient, is->gradient_dtype, i),
                             reads_value(of->slots[0], is->slot_dtype, i),
                             reads_value(of->slots[k->second], is->slot_dtype, i), old,
                             reads_value(of->made, is->working, i));
}

GPU_INLINE double reads_product(double a, double b, double sum) {
    return real_fma_f64(a, b, sum);
}

GPU_INLINE void reads_element(const struct reads_args *is, const struct reads_tensor *of, size_t i,
                              double *sum) {
    const double old = reads_value(of->old, is->working, i);
    const double now = reads_value(of->now, is->working, i);
    const struct rule_read_terms t =
        rule_read_terms(&is->spacing, reads_direction(is, of, i, old), is->decay, old, now);
    sum[READS_UU] = reads_product(t.u, t.u, sum[READS_UU]);
    sum[READS_UP] = reads_product(t.u, t.p, sum[READS_UP]);
    sum[READS_PP] = reads_product(t.p, t.p, sum[READS_PP]);
    sum[READS_UD] = reads_product(t.u, t.d, sum[READS_UD]);
    sum[READS_PD] = reads_product(t.p, t.d, sum[READS_PD]);
    sum[READS_U] = reads_product(real_abs_f64(t.u), 1.0, sum[READS_U]);
    sum[READS_P] = reads_product(real_abs_f64(t.p), 1.0, sum[READS_P]);
    if (of->moment == NULL) return;
    const struct rule_taken_value taken =
        rule_taken_value(&is->taken, reads_value(of->slots[0], is->slot_dtype, i),
                         reads_value(of->moment, is->slot_dtype, i), old);
    sum[READS_TAKEN] = reads_product(taken.gradient, taken.gradient, sum[READS_TAKEN]);
    sum[READS_TAKEN_ERROR] = reads_product(taken.error, taken.error, sum[READS_TAKEN_ERROR]);
}

KERNEL(reads_kernel, struct reads_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct reads_tensor *const of = &args->tensor[at.tensor];
    const size_t first = at.block * READS_BLOCK, end = least(first + READS_BLOCK, of->count);
    double sum[READS_SUMS];
    UNROLL
    for (int s = 0; s < READS_SUMS; s++)
        sum[s] = 0.0;
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP)
        reads_element(&args->is, of, i, sum);
    UNROLL
    for (int s = 0; s < READS_SUMS; s++) {
        sum[s] = lanes_join_f64(GPU_ARG sum[s]);
        if (THREAD % GPU_WARP == 0) of->blocks[at.block].sum[s] = sum[s];
    }
}

void VARIANT(reads)(const struct reads_args *args, const struct reads_tensor *tensors,
                    size_t count);
void VARIANT(reads)(const struct reads_args *args, const struct reads_tensor *tensors,
                    size_t count) {
    struct reads_job job;
    LIST_FITS(struct reads_job);
    for (size_t i = 0; i < count;) {
        LIST_OPEN(&job);
        job.is = *args;
        for (; i < count && job.list.count < LIST_TENSORS; i++) {
            job.tensor[job.list.count] = tensors[i];
            list_add(&job.list, reads_blocks(tensors[i].count));
        }
        LAUNCH(reads_kernel, row_blocks(list_blocks(&job.list)), ROW_THREADS, 0, &job);
    }
}
