/* SPDX-License-Identifier: Apache-2.0
 * Addition of two activations, or of a vector to rows, element by element, one rounding. */
#include "kernels/cuda/launch.h"

OP_JOB(add);

KERNEL(add_kernel, struct add_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (i >= args->is.rows.count * C) return;
    const size_t at = list_row(&args->is.rows, i / C) * C + i % C;
    const carrier a = ((const carrier *)args->is.a)[at];
    const carrier b = ((const carrier *)args->is.b)[at];
    ((carrier *)args->is.y)[at] = rule_add(a, b, args->dtype);
}

static void add(const struct op_call *call, const struct add_args *args) {
    const struct add_job job = {*args, call->compute};
    LAUNCH_ELEMENTS(add_kernel, (size_t)args->rows.count * args->C, &job);
}

OP_JOB(bias);

KERNEL(bias_kernel, struct bias_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (i >= args->is.rows.count * C) return;
    carrier *const y = (carrier *)args->is.y + list_row(&args->is.rows, i / C) * C + i % C;
    *y = rule_add(*y, ((const carrier *)args->is.b)[i % C], args->dtype);
}

static void bias(const struct op_call *call, const struct bias_args *args) {
    const struct bias_job job = {*args, call->compute};
    LAUNCH_ELEMENTS(bias_kernel, (size_t)args->rows.count * args->C, &job);
}
