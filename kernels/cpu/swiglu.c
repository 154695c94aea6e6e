/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, element by element (base/rule.h). No sums. */
#include "kernels/cpu/call.h"

#define SWIGLU_COST 16 /* elementary operations of one element, roughly */

ROW_INLINE void forward_row(const struct stored *gate, const struct stored *up, struct stored *out,
                            size_t C, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) out[i] =
        stored_of(rule_swiglu(stored_load(gate[i]), stored_load(up[i]), dtype));
}

ROW_INLINE void backward_row(const struct stored *gate, const struct stored *up,
                             const struct stored *dy, struct stored *dgate, struct stored *dup,
                             size_t C, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) {
        const carrier g = stored_load(gate[i]), u = stored_load(up[i]), d = stored_load(dy[i]);
        dup[i] = stored_of(rule_swiglu_up_grad(d, g, dtype));
        dgate[i] = stored_of(rule_swiglu_gate_grad(d, g, u, dtype));
    }
}

void VARIANT(swiglu_forward)(const struct op_call *call, const struct swiglu_forward_args *args) {
    const size_t C = args->C;
    const size_t work = (size_t)args->rows.count * C * SWIGLU_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i) * C;
        const struct stored *const gate = (const struct stored *)args->gate + at;
        const struct stored *const up = (const struct stored *)args->up + at;
        struct stored *const out = (struct stored *)args->out + at;
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
        const struct stored *const gate = (const struct stored *)args->gate + at;
        const struct stored *const up = (const struct stored *)args->up + at;
        const struct stored *const dy = (const struct stored *)args->dout + at;
        struct stored *const dgate = (struct stored *)args->dgate + at;
        struct stored *const dup = (struct stored *)args->dup + at;
#define BACKWARD(d) backward_row(gate, up, dy, dgate, dup, C, d)
        DTYPE_SWITCH(call->compute, BACKWARD);
    }
}
