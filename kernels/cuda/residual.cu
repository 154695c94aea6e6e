/* SPDX-License-Identifier: Apache-2.0
 * Addition of two activations, or of a vector to rows, element by element, one rounding. */
#include "kernels/cuda/launch.h"

/* Adds a piece of a row to one of the same columns; `y` may be either of them. */
GPU_INLINE void add_span(GPU_PARAM const struct stored *a, const struct stored *b, struct stored *y,
                         size_t C, struct span at, enum dtype dtype) {
    if (C % SPAN_EACH != 0 || !span_aligned(a) || !span_aligned(b) || !span_aligned(y)) {
        SPAN_ONES(c, at)
        y[c] = stored_of(rule_add(stored_load(a[c]), stored_load(b[c]), dtype));
        return;
    }
    SPAN_GROUPS(c, at) {
        carrier p[SPAN_EACH], q[SPAN_EACH];
        load_each(p, a + c);
        load_each(q, b + c);
        UNROLL
        for (unsigned k = 0; k < SPAN_EACH; k++)
            p[k] = rule_add(p[k], q[k], dtype);
        store_each(y + c, p);
    }
}

OP_JOB(add);

KERNEL(add_kernel, struct add_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const size_t row = at.row * args->is.C;
    add_span(GPU_ARG(const struct stored *) args->is.a + row,
             (const struct stored *)args->is.b + row, (struct stored *)args->is.y + row, args->is.C,
             at, stored_dtype(args->dtype));
}

static void add(const struct op_call *call, const struct add_args *args) {
    const struct add_job job = {*args, call->compute};
    LAUNCH_SPANS(add_kernel, &args->rows, args->C, &job);
}

OP_JOB(bias);

KERNEL(bias_kernel, struct bias_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    struct stored *const y = (struct stored *)args->is.y + at.row * args->is.C;
    add_span(GPU_ARG y, (const struct stored *)args->is.b, y, args->is.C, at,
             stored_dtype(args->dtype));
}

static void bias(const struct op_call *call, const struct bias_args *args) {
    const struct bias_job job = {*args, call->compute};
    LAUNCH_SPANS(bias_kernel, &args->rows, args->C, &job);
}
