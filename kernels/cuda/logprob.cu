/* SPDX-License-Identifier: Apache-2.0
 * Log-probability of one target per row of logits, a warp per row, and the gradient of the logits
 * in place (law 5), a thread per logit. */
#include "kernels/cuda/launch.h"

/* With an f64 loss the accumulator's value is kept, whatever the carrier. */
GPU_INLINE double logprob_of_target(carrier z, accumulator maximum, accumulator sum,
                                    enum dtype loss) {
    if (loss == DTYPE_F64) return (double)rule_logprob_wide(z, maximum, sum);
    return (double)rule_logprob(z, maximum, sum, loss);
}

KERNEL(logprob_forward_kernel, struct logprob_forward_args) {
    const size_t row = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP, V = args->V;
    if (row >= args->L) return;
    const carrier *const z = (const carrier *)args->logits + row * V;
    carrier largest = (carrier)-acc_inf();
    for (size_t v = own; v < V; v += GPU_WARP)
        largest = larger(largest, z[v]);
    const accumulator maximum = (accumulator)lanes_largest(GPU_ARG largest) + ACC(0.0);
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < V; first += SUM_BLOCK) {
        accumulator lane = 0;
        for (size_t v = first + own; v < least(first + SUM_BLOCK, V); v += GPU_WARP)
            lane = lane + rule_exp_shifted(z[v], maximum);
        ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
    }
    const accumulator sum = ACC_NAME_(sum_blocks_close)(&blocks);
    if (own != 0) return;
    ((accumulator *)args->maximum)[row] = maximum;
    ((accumulator *)args->sum)[row] = sum;
    args->logp[row] = logprob_of_target(z[args->target[row]], maximum, sum, args->loss);
}

static void logprob_forward(const struct op_call *call, const struct logprob_forward_args *args) {
    (void)call;
    LAUNCH(logprob_forward_kernel, row_blocks(args->L), ROW_THREADS, 0, args);
}

struct logprob_backward_job {
    struct logprob_backward_args is;
    enum dtype dtype;
};

KERNEL(logprob_backward_kernel, struct logprob_backward_job) {
    const size_t at = (size_t)BLOCK * THREADS + THREAD, V = args->is.V;
    if (at >= args->is.L * V) return;
    const size_t row = at / V;
    carrier *const z = (carrier *)args->is.logits + at;
    const accumulator maximum = ((const accumulator *)args->is.maximum)[row];
    const accumulator sum = ((const accumulator *)args->is.sum)[row];
    const accumulator coefficient = (accumulator)args->is.coefficient[row];
    const accumulator hit = at % V == args->is.target[row] ? ACC(1.0) : ACC(0.0);
    *z = rule_dlogit(rule_exp_shifted(*z, maximum), sum, hit, coefficient, args->dtype);
}

static void logprob_backward(const struct op_call *call, const struct logprob_backward_args *args) {
    const struct logprob_backward_job job = {*args, call->compute};
    LAUNCH(logprob_backward_kernel, element_blocks((size_t)args->L * args->V), ELEMENT_THREADS, 0,
           &job);
}
