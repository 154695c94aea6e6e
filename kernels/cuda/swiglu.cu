/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, element by element (base/rule.h). No sums. */
#include "kernels/cuda/launch.h"

OP_JOB(swiglu_forward);

KERNEL(swiglu_forward_kernel, struct swiglu_forward_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const carrier *const gate = (const carrier *)args->is.gate + at.row * args->is.C;
    const carrier *const up = (const carrier *)args->is.up + at.row * args->is.C;
    carrier *const out = (carrier *)args->is.out + at.row * args->is.C;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(out)) {
        SPAN_FOURS(c, at) {
            carrier g[SPAN_EACH], u[SPAN_EACH];
            load4(g, gate + c);
            load4(u, up + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                g[k] = rule_swiglu(g[k], u[k], args->dtype);
            store4(out + c, g);
        }
        return;
    }
    SPAN_ONES(c, at) out[c] = rule_swiglu(gate[c], up[c], args->dtype);
}

static void swiglu_forward(const struct op_call *call, const struct swiglu_forward_args *args) {
    const struct swiglu_forward_job job = {*args, call->compute};
    LAUNCH_SPANS(swiglu_forward_kernel, &args->rows, args->C, &job);
}

OP_JOB(swiglu_backward);

KERNEL(swiglu_backward_kernel, struct swiglu_backward_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    const size_t row = at.row * args->is.C;
    const carrier *const gate = (const carrier *)args->is.gate + row;
    const carrier *const up = (const carrier *)args->is.up + row;
    const carrier *const dout = (const carrier *)args->is.dout + row;
    carrier *const dgate = (carrier *)args->is.dgate + row;
    carrier *const dup = (carrier *)args->is.dup + row;
    if (args->is.C % SPAN_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(dout) && span_aligned(dgate) && span_aligned(dup)) {
        SPAN_FOURS(c, at) {
            carrier g[SPAN_EACH], u[SPAN_EACH], d[SPAN_EACH], du[SPAN_EACH];
            load4(g, gate + c);
            load4(u, up + c);
            load4(d, dout + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++) {
                du[k] = rule_swiglu_up_grad(d[k], g[k], args->dtype);
                g[k] = rule_swiglu_gate_grad(d[k], g[k], u[k], args->dtype);
            }
            store4(dup + c, du);
            store4(dgate + c, g);
        }
        return;
    }
    SPAN_ONES(c, at) {
        const carrier g = gate[c], u = up[c], d = dout[c];
        dup[c] = rule_swiglu_up_grad(d, g, args->dtype);
        dgate[c] = rule_swiglu_gate_grad(d, g, u, args->dtype);
    }
}

static void swiglu_backward(const struct op_call *call, const struct swiglu_backward_args *args) {
    const struct swiglu_backward_job job = {*args, call->compute};
    LAUNCH_SPANS(swiglu_backward_kernel, &args->rows, args->C, &job);
}
