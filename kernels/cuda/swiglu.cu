/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, a thread per element (base/rule.h). No sums. */
#include "kernels/cuda/launch.h"

OP_JOB(swiglu_forward);

KERNEL(swiglu_forward_kernel, struct swiglu_forward_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (i >= args->is.rows.count * C) return;
    const size_t at = list_row(&args->is.rows, i / C) * C + i % C;
    const carrier gate = ((const carrier *)args->is.gate)[at];
    const carrier up = ((const carrier *)args->is.up)[at];
    ((carrier *)args->is.out)[at] = rule_swiglu(gate, up, args->dtype);
}

static void swiglu_forward(const struct op_call *call, const struct swiglu_forward_args *args) {
    const struct swiglu_forward_job job = {*args, call->compute};
    LAUNCH_ELEMENTS(swiglu_forward_kernel, (size_t)args->rows.count * args->C, &job);
}

OP_JOB(swiglu_backward);

KERNEL(swiglu_backward_kernel, struct swiglu_backward_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (i >= args->is.rows.count * C) return;
    const size_t at = list_row(&args->is.rows, i / C) * C + i % C;
    const carrier gate = ((const carrier *)args->is.gate)[at];
    const carrier up = ((const carrier *)args->is.up)[at];
    const carrier dy = ((const carrier *)args->is.dout)[at];
    ((carrier *)args->is.dup)[at] = rule_swiglu_up_grad(dy, gate, args->dtype);
    ((carrier *)args->is.dgate)[at] = rule_swiglu_gate_grad(dy, gate, up, args->dtype);
}

static void swiglu_backward(const struct op_call *call, const struct swiglu_backward_args *args) {
    const struct swiglu_backward_job job = {*args, call->compute};
    LAUNCH_ELEMENTS(swiglu_backward_kernel, (size_t)args->rows.count * args->C, &job);
}
