/* SPDX-License-Identifier: Apache-2.0
 * Addition of two activations, or of a vector to rows, element by element, one rounding. */
#include "kernels/cuda/launch.h"

OP_JOB(add);

KERNEL(add_kernel, struct add_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const carrier *const a = (const carrier *)args->is.a + at.row * args->is.C;
    const carrier *const b = (const carrier *)args->is.b + at.row * args->is.C;
    carrier *const y = (carrier *)args->is.y + at.row * args->is.C;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(a) && span_aligned(b) && span_aligned(y)) {
        SPAN_FOURS(c, at) {
            carrier p[SPAN_EACH], q[SPAN_EACH];
            load4(p, a + c);
            load4(q, b + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                p[k] = rule_add(p[k], q[k], args->dtype);
            store4(y + c, p);
        }
        return;
    }
    SPAN_ONES(c, at) y[c] = rule_add(a[c], b[c], args->dtype);
}

static void add(const struct op_call *call, const struct add_args *args) {
    const struct add_job job = {*args, call->compute};
    LAUNCH_SPANS(add_kernel, &args->rows, args->C, &job);
}

OP_JOB(bias);

KERNEL(bias_kernel, struct bias_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const carrier *const b = (const carrier *)args->is.b;
    carrier *const y = (carrier *)args->is.y + at.row * args->is.C;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(b) && span_aligned(y)) {
        SPAN_FOURS(c, at) {
            carrier p[SPAN_EACH], q[SPAN_EACH];
            load4(p, y + c);
            load4(q, b + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                p[k] = rule_add(p[k], q[k], args->dtype);
            store4(y + c, p);
        }
        return;
    }
    SPAN_ONES(c, at) y[c] = rule_add(y[c], b[c], args->dtype);
}

static void bias(const struct op_call *call, const struct bias_args *args) {
    const struct bias_job job = {*args, call->compute};
    LAUNCH_SPANS(bias_kernel, &args->rows, args->C, &job);
}
