/* SPDX-License-Identifier: Apache-2.0
 * Gradient of RMSNorm's weight: one fma chain per column over the listed rows (law 1), a thread
 * each.
 *
 * Invariant: the chain of a column goes on from what acc holds, rows in list order. */
#include "kernels/cuda/launch.h"

struct norm_weight_job {
    struct norm_weight_args is;
    enum dtype inner;
};

KERNEL(norm_weight_kernel, struct norm_weight_job) {
    const size_t c = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (c >= C) return;
    accumulator *const acc = (accumulator *)args->is.acc + c;
    accumulator sum = *acc;
    for (size_t i = 0; i < args->is.rows.count; i++) {
        const size_t row = list_row(&args->is.rows, i);
        const accumulator rstd = ((const accumulator *)args->is.rstd)[row];
        const carrier x = ((const carrier *)args->is.x)[row * C + c];
        const carrier dy = ((const carrier *)args->is.dy)[row * C + c];
        sum = acc_fma((accumulator)dy, (accumulator)rule_norm_hat(x, rstd, args->inner), sum);
    }
    *acc = sum;
}

static void norm_weight(const struct op_call *call, const struct norm_weight_args *args) {
    const enum dtype wide = rule_wide(call->compute);
    const int before = args->rounding == NORM_ROUND_BEFORE_WEIGHT;
    const struct norm_weight_job job = {*args, before ? call->compute : wide};
    LAUNCH(norm_weight_kernel, element_blocks(args->C), ELEMENT_THREADS, 0, &job);
}
