/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer's step did to a tensor: a warp has a block of law 2, lane l of it the numbers
 * l, l + 32, ...
 *
 * All in f64, from exact conversions, as kernels/evidence.h has it. */
#include "kernels/readback_blocks.h"

#include "base/variant.h"
#include "kernels/cuda/list.h"

struct readback_blocks_job {
    struct list list;
    struct readback_blocks_args is;
    struct readback_blocks_tensor tensor[LIST_TENSORS];
};

GPU_INLINE double readback_blocks_direction(const struct readback_blocks_args *is,
                                            const struct readback_blocks_tensor *of, size_t i,
                                            double old) {
    const struct rule_direction *const k = &is->direction;
    return RULE_DIRECTION_OF(
        k, number_at(of->gradient, is->gradient_dtype, i),
        number_at(of->moment != NULL ? of->moment : of->slots[0], is->slot.dtype, i),
        number_at(of->slots[0], is->slot.dtype, i),
        number_at(of->slots[k->second], is->slot.dtype, i), old);
}

GPU_INLINE double readback_blocks_slack(const struct readback_blocks_args *is,
                                        const struct readback_blocks_tensor *of, size_t i) {
    const struct rule_direction *const k = &is->direction;
    return RULE_SLACK_OF(k, number_at(of->slots[0], is->slot.dtype, i),
                         number_at(of->slots[k->second], is->slot.dtype, i));
}

GPU_INLINE void readback_blocks_element(const struct readback_blocks_args *is,
                                        const struct readback_blocks_tensor *of, size_t i,
                                        double old, double *sum) {
    const double now = number_at(of->now, is->working, i);
    const struct rule_read_terms t = rule_read_terms(
        &is->spacing, readback_blocks_direction(is, of, i, old), readback_blocks_slack(is, of, i),
        is->direction.slack.negligible, is->decay, old, now);
    const double size_u = real_abs_f64(t.u), size_p = real_abs_f64(t.p);
    sum[READBACK_BLOCKS_UU] = real_fma_f64(t.u, t.u, sum[READBACK_BLOCKS_UU]);
    sum[READBACK_BLOCKS_UP] = real_fma_f64(t.u, t.p, sum[READBACK_BLOCKS_UP]);
    sum[READBACK_BLOCKS_PP] = real_fma_f64(t.p, t.p, sum[READBACK_BLOCKS_PP]);
    sum[READBACK_BLOCKS_UD] = real_fma_f64(t.u, t.d, sum[READBACK_BLOCKS_UD]);
    sum[READBACK_BLOCKS_PD] = real_fma_f64(t.p, t.d, sum[READBACK_BLOCKS_PD]);
    sum[READBACK_BLOCKS_U] = real_fma_f64(size_u, 1.0, sum[READBACK_BLOCKS_U]);
    sum[READBACK_BLOCKS_P] = real_fma_f64(size_p, 1.0, sum[READBACK_BLOCKS_P]);
    sum[READBACK_BLOCKS_MEANT] += t.meant;
    sum[READBACK_BLOCKS_LOST] += t.lost;
    if (!is->direction.slack.is_on) return;
    sum[READBACK_BLOCKS_UE] = real_fma_f64(size_u, t.e, sum[READBACK_BLOCKS_UE]);
    sum[READBACK_BLOCKS_PE] = real_fma_f64(size_p, t.e, sum[READBACK_BLOCKS_PE]);
}

GPU_INLINE void readback_blocks_taken(const struct readback_blocks_args *is,
                                      const struct readback_blocks_tensor *of, size_t i, double old,
                                      double *sum) {
    const struct rule_taken_value taken =
        rule_taken_value(&is->taken, number_at(of->slots[0], is->slot.dtype, i),
                         number_at(of->moment, is->slot.dtype, i), old);
    sum[READBACK_BLOCKS_TAKEN] =
        real_fma_f64(taken.gradient, taken.gradient, sum[READBACK_BLOCKS_TAKEN]);
    sum[READBACK_BLOCKS_TAKEN_ERROR] =
        real_fma_f64(taken.error, taken.error, sum[READBACK_BLOCKS_TAKEN_ERROR]);
}

KERNEL(readback_blocks_kernel, struct readback_blocks_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct readback_blocks_tensor *const of = &args->tensor[at.tensor];
    const size_t first = at.block * READBACK_BLOCKS_BLOCK,
                 end = least(first + READBACK_BLOCKS_BLOCK, of->count);
    double sum[READBACK_BLOCKS_SUMS];
    UNROLL
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++)
        sum[s] = 0.0;
    const int is_read = readback_blocks_is_read(of, at.block);
    for (size_t i = first + THREAD % GPU_WARP; i < end; i += GPU_WARP) {
        const double old = number_at(of->old, args->is.working, i);
        if (is_read) readback_blocks_element(&args->is, of, i, old, sum);
        if (of->moment != NULL) readback_blocks_taken(&args->is, of, i, old, sum);
    }
    UNROLL
    for (int s = 0; s < READBACK_BLOCKS_SUMS; s++) {
        sum[s] = lanes_join_f64(GPU_ARG sum[s]);
        if (THREAD % GPU_WARP == 0) of->blocks[at.block].sum[s] = sum[s];
    }
}

void VARIANT(readback_blocks)(const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count);
void VARIANT(readback_blocks)(const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count) {
    struct readback_blocks_job job;
    LIST_FITS(struct readback_blocks_job);
    for (size_t i = 0; i < count;) {
        LIST_OPEN(&job);
        job.is = *args;
        for (; i < count && job.list.count < LIST_TENSORS; i++) {
            job.tensor[job.list.count] = tensors[i];
            list_add(&job.list, readback_blocks_blocks(tensors[i].count));
        }
        LAUNCH_ROWS(readback_blocks_kernel, list_blocks(&job.list), &job);
    }
}
