/* SPDX-License-Identifier: Apache-2.0
 * SwiGLU and its two gradients, element by element (base/rule.h), over carriers or over numbers in
 * two bytes (op_call.narrow). No sums. */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/short.h"

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

#if defined(TWINSTEP_CARRIER_f32)
/* The lane's columns of a piece of numbers in two bytes, eight at a time. */
#define SPAN_EIGHTS(c, at)                                                                         \
    for (size_t c = (at).first + THREAD % GPU_WARP * SHORT_EACH; c < (at).end;                     \
         c += SHORT_EACH * GPU_WARP)

/* Where a row of numbers in two bytes begins. */
GPU_INLINE uint16_t *swiglu_row(const void *values, size_t row, uint32_t C) {
    return (uint16_t *)(uintptr_t)values + row * C;
}

GPU_INLINE void swiglu_forward_short(GPU_PARAM const struct swiglu_forward_job *job,
                                     const struct span *at, enum dtype dtype) {
    const uint16_t *const gate = swiglu_row(job->is.gate, at->row, job->is.C);
    const uint16_t *const up = swiglu_row(job->is.up, at->row, job->is.C);
    uint16_t *const out = swiglu_row(job->is.out, at->row, job->is.C);
    const struct form form = form_own(dtype);
    if (job->is.C % SHORT_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(out)) {
        SPAN_EIGHTS(c, *at) {
            float g[SHORT_EACH], u[SHORT_EACH];
            short_load8(g, gate + c, dtype);
            short_load8(u, up + c, dtype);
            UNROLL
            for (unsigned k = 0; k < SHORT_EACH; k++)
                g[k] = rule_swiglu(g[k], u[k], dtype);
            short_store8(out + c, g, dtype);
        }
        return;
    }
    SPAN_ONES(c, *at) {
        const carrier g = form_get_f32(gate, form, c), u = form_get_f32(up, form, c);
        form_set_f32(out, form, c, rule_swiglu(g, u, dtype));
    }
}

KERNEL(swiglu_forward_short_kernel, struct swiglu_forward_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    if (args->dtype == DTYPE_BF16)
        swiglu_forward_short(GPU_ARG args, &at, DTYPE_BF16);
    else
        swiglu_forward_short(GPU_ARG args, &at, DTYPE_F16);
}
#endif

static void swiglu_forward(const struct op_call *call, const struct swiglu_forward_args *args) {
    const struct swiglu_forward_job job = {*args, call->compute};
#if defined(TWINSTEP_CARRIER_f32)
    if (call->narrow != NARROW_NONE) {
        LAUNCH_SPANS(swiglu_forward_short_kernel, &args->rows, args->C, &job);
        return;
    }
#endif
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

#if defined(TWINSTEP_CARRIER_f32)
GPU_INLINE void swiglu_backward_short(GPU_PARAM const struct swiglu_backward_job *job,
                                      const struct span *at, enum dtype dtype) {
    const uint16_t *const gate = swiglu_row(job->is.gate, at->row, job->is.C);
    const uint16_t *const up = swiglu_row(job->is.up, at->row, job->is.C);
    const uint16_t *const dout = swiglu_row(job->is.dout, at->row, job->is.C);
    uint16_t *const dgate = swiglu_row(job->is.dgate, at->row, job->is.C);
    uint16_t *const dup = swiglu_row(job->is.dup, at->row, job->is.C);
    const struct form form = form_own(dtype);
    if (job->is.C % SHORT_EACH == 0 && span_aligned(gate) && span_aligned(up) &&
        span_aligned(dout) && span_aligned(dgate) && span_aligned(dup)) {
        SPAN_EIGHTS(c, *at) {
            float g[SHORT_EACH], u[SHORT_EACH], d[SHORT_EACH], du[SHORT_EACH];
            short_load8(g, gate + c, dtype);
            short_load8(u, up + c, dtype);
            short_load8(d, dout + c, dtype);
            UNROLL
            for (unsigned k = 0; k < SHORT_EACH; k++) {
                du[k] = rule_swiglu_up_grad(d[k], g[k], dtype);
                g[k] = rule_swiglu_gate_grad(d[k], g[k], u[k], dtype);
            }
            short_store8(dup + c, du, dtype);
            short_store8(dgate + c, g, dtype);
        }
        return;
    }
    SPAN_ONES(c, *at) {
        const carrier g = form_get_f32(gate, form, c), u = form_get_f32(up, form, c);
        const carrier d = form_get_f32(dout, form, c);
        form_set_f32(dup, form, c, rule_swiglu_up_grad(d, g, dtype));
        form_set_f32(dgate, form, c, rule_swiglu_gate_grad(d, g, u, dtype));
    }
}

KERNEL(swiglu_backward_short_kernel, struct swiglu_backward_job) {
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, args->is.C, &at)) return;
    if (args->dtype == DTYPE_BF16)
        swiglu_backward_short(GPU_ARG args, &at, DTYPE_BF16);
    else
        swiglu_backward_short(GPU_ARG args, &at, DTYPE_F16);
}
#endif

static void swiglu_backward(const struct op_call *call, const struct swiglu_backward_args *args) {
    const struct swiglu_backward_job job = {*args, call->compute};
#if defined(TWINSTEP_CARRIER_f32)
    if (call->narrow != NARROW_NONE) {
        LAUNCH_SPANS(swiglu_backward_short_kernel, &args->rows, args->C, &job);
        return;
    }
#endif
    LAUNCH_SPANS(swiglu_backward_kernel, &args->rows, args->C, &job);
}
