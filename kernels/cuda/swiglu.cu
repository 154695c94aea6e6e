/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, element by element (base/rule.h). No sums. */
#include "kernels/cuda/launch.h"

OP_JOB(swiglu_forward);

KERNEL(swiglu_forward_kernel, struct swiglu_forward_job) {
    const enum dtype dtype = stored_dtype(args->dtype);
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const size_t row = at.row * args->is.C;
    const struct stored *const gate = (const struct stored *)args->is.gate + row;
    const struct stored *const up = (const struct stored *)args->is.up + row;
    struct stored *const out = (struct stored *)args->is.out + row;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(out)) {
        SPAN_GROUPS(c, at) {
            carrier g[SPAN_EACH], u[SPAN_EACH];
            load_each(g, gate + c);
            load_each(u, up + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                g[k] = rule_swiglu(g[k], u[k], dtype);
            store_each(out + c, g);
        }
        return;
    }
    SPAN_ONES(c, at)
    out[c] = stored_of(rule_swiglu(stored_load(gate[c]), stored_load(up[c]), dtype));
}

static void swiglu_forward(const struct op_call *call, const struct swiglu_forward_args *args) {
    const struct swiglu_forward_job job = {*args, call->compute};
    LAUNCH_SPANS(swiglu_forward_kernel, &args->rows, args->C, &job);
}

OP_JOB(swiglu_backward);

KERNEL(swiglu_backward_kernel, struct swiglu_backward_job) {
    const enum dtype dtype = stored_dtype(args->dtype);
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const size_t row = at.row * args->is.C;
    const struct stored *const gate = (const struct stored *)args->is.gate + row;
    const struct stored *const up = (const struct stored *)args->is.up + row;
    const struct stored *const dout = (const struct stored *)args->is.dout + row;
    struct stored *const dgate = (struct stored *)args->is.dgate + row;
    struct stored *const dup = (struct stored *)args->is.dup + row;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(dout) && span_aligned(dgate) && span_aligned(dup)) {
        SPAN_GROUPS(c, at) {
            carrier g[SPAN_EACH], u[SPAN_EACH], d[SPAN_EACH], du[SPAN_EACH];
            load_each(g, gate + c);
            load_each(u, up + c);
            load_each(d, dout + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++) {
                du[k] = rule_swiglu_up_grad(d[k], g[k], dtype);
                g[k] = rule_swiglu_gate_grad(d[k], g[k], u[k], dtype);
            }
            store_each(dup + c, du);
            store_each(dgate + c, g);
        }
        return;
    }
    SPAN_ONES(c, at) {
        const carrier g = stored_load(gate[c]), u = stored_load(up[c]), d = stored_load(dout[c]);
        dup[c] = stored_of(rule_swiglu_up_grad(d, g, dtype));
        dgate[c] = stored_of(rule_swiglu_gate_grad(d, g, u, dtype));
    }
}

static void swiglu_backward(const struct op_call *call, const struct swiglu_backward_args *args) {
    const struct swiglu_backward_job job = {*args, call->compute};
    LAUNCH_SPANS(swiglu_backward_kernel, &args->rows, args->C, &job);
}
