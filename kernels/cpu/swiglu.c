/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, element by element (base/rule.h). No sums. */
#include "kernels/cpu/call.h"

#define SWIGLU_COST 16 /* elementary operations of one element, roughly */

ROW_INLINE void forward_row(const carrier *gate, const carrier *up, carrier *out, size_t C,
                            enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) out[i] = rule_swiglu(gate[i], up[i], dtype);
}

ROW_INLINE void backward_row(const carrier *gate, const carrier *up, const carrier *dy,
                             carrier *dgate, carrier *dup, size_t C, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) {
        dup[i] = rule_swiglu_up_grad(dy[i], gate[i], dtype);
        dgate[i] = rule_swiglu_gate_grad(dy[i], gate[i], up[i], dtype);
    }
}

void VARIANT(swiglu_forward)(const struct op_call *call, const struct swiglu_forward_args *args) {
    const size_t C = args->C;
    const size_t work = (size_t)args->rows.count * C * SWIGLU_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i) * C;
        const carrier *const gate = (const carrier *)args->gate + at;
        const carrier *const up = (const carrier *)args->up + at;
        carrier *const out = (carrier *)args->out + at;
#define FORWARD(d) forward_row(gate, up, out, C, d)
        DTYPE_SWITCH(call->compute, FORWARD);
    }
}

void VARIANT(swiglu_backward)(const struct op_call *call, const struct swiglu_backward_args *args) {
    const size_t C = args->C;
    const size_t work = (size_t)args->rows.count * C * 2 * SWIGLU_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i) * C;
        const carrier *const gate = (const carrier *)args->gate + at;
        const carrier *const up = (const carrier *)args->up + at;
        const carrier *const dy = (const carrier *)args->dout + at;
        carrier *const dgate = (carrier *)args->dgate + at;
        carrier *const dup = (carrier *)args->dup + at;
#define BACKWARD(d) backward_row(gate, up, dy, dgate, dup, C, d)
        DTYPE_SWITCH(call->compute, BACKWARD);
    }
}
