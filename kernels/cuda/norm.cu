/* SPDX-License-Identifier: Apache-2.0
 * RMSNorm by rows, a warp each: forward, and the gradient of its input (kernels/cpu/norm.c). The
 * sum over a row is law 2; the rest is element-wise (base/rule.h).
 *
 * The gradient of the weight is in norm_weight.cu. */
#include "kernels/cuda/launch.h"

#define NORM_BATCH 8u /* numbers of a lane that are read before the first is used */

struct norm_forward_job {
    struct norm_forward_args is;
    enum dtype inner, dtype;
};

/* The squares of numbers c, c + 32, ... before `end`, as one lane adds them. */
GPU_INLINE accumulator norm_lane_squares(const struct stored *x, size_t c, size_t end) {
    accumulator lane = 0;
    ROLLED
    for (; c + (NORM_BATCH - 1) * GPU_WARP < end; c += NORM_BATCH * GPU_WARP) {
        carrier some[NORM_BATCH];
        UNROLL
        for (unsigned k = 0; k < NORM_BATCH; k++)
            some[k] = stored_load(x[c + k * GPU_WARP]);
        UNROLL
        for (unsigned k = 0; k < NORM_BATCH; k++)
            lane = acc_fma((accumulator)some[k], (accumulator)some[k], lane);
    }
    ROLLED
    for (; c < end; c += GPU_WARP) {
        const accumulator number = (accumulator)stored_load(x[c]);
        lane = acc_fma(number, number, lane);
    }
    return lane;
}

KERNEL(norm_forward_kernel, struct norm_forward_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP, C = args->is.C;
    if (i >= args->is.rows.count) return;
    const size_t row = list_row(&args->is.rows, i);
    const enum dtype dtype = stored_dtype(args->dtype);
    const struct stored *const x = (const struct stored *)args->is.x + row * C;
    const struct stored *const w = (const struct stored *)args->is.w;
    struct stored *const y = (struct stored *)args->is.y + row * C;
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < C; first += SUM_BLOCK) {
        const accumulator lane = norm_lane_squares(x, first + own, least(first + SUM_BLOCK, C));
        ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
    }
    const accumulator squares = ACC_NAME_(sum_blocks_close)(&blocks);
    const accumulator rstd = rule_norm_rstd(squares, (accumulator)C, (accumulator)args->is.eps);
    if (own == 0) ((accumulator *)args->is.rstd)[row] = rstd;
    if (C % SPAN_EACH == 0 && span_aligned(x) && span_aligned(w) && span_aligned(y)) {
        ROLLED
        for (size_t c = own * SPAN_EACH; c < C; c += SPAN_EACH * GPU_WARP) {
            carrier each[SPAN_EACH], weight[SPAN_EACH];
            load_each(each, x + c);
            load_each(weight, w + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                each[k] = rule_norm(each[k], rstd, weight[k], args->inner, dtype);
            store_each(y + c, each);
        }
        return;
    }
    for (size_t c = own; c < C; c += GPU_WARP)
        y[c] = stored_of(rule_norm(stored_load(x[c]), rstd, stored_load(w[c]), args->inner, dtype));
}

static enum dtype norm_inner(const struct op_call *call, enum norm_rounding rounding) {
    return rounding == NORM_ROUND_BEFORE_WEIGHT ? call->compute : rule_wide(call->compute);
}

static void norm_forward(const struct op_call *call, const struct norm_forward_args *args) {
    const struct norm_forward_job job = {*args, norm_inner(call, args->rounding), call->compute};
    LAUNCH_ROWS(norm_forward_kernel, args->rows.count, &job);
}

struct norm_input_job {
    struct norm_input_args is;
    enum dtype inner, dtype;
};

/* What the formula's sum takes of one column, and the column's result (kernels/cpu/norm.c). */
struct norm_terms {
    carrier a, b;
};

GPU_INLINE carrier norm_gradient_at(const struct norm_input_job *job, carrier dy, carrier w) {
    const carrier weight =
        job->is.formula == NORM_BACKWARD_OUTPUT ? rule_norm_clamp(w, (carrier)job->is.eps) : w;
    return rule_mul(dy, weight, job->inner);
}

GPU_INLINE struct norm_terms norm_terms_of(const struct norm_input_job *job, carrier x, carrier dy,
                                           carrier w, accumulator rstd) {
    struct norm_terms terms;
    if (job->is.formula == NORM_BACKWARD_OUTPUT) {
        terms.a = dy;
        terms.b = rule_norm(x, rstd, w, job->inner, stored_dtype(job->dtype));
        return terms;
    }
    terms.a = norm_gradient_at(job, dy, w);
    terms.b = job->is.formula == NORM_BACKWARD_AUTOGRAD
                  ? x
                  : rule_norm_hat(x, rstd, rule_wide(stored_dtype(job->dtype)));
    return terms;
}

GPU_INLINE carrier norm_result(const struct norm_input_job *job, carrier x, carrier dy, carrier w,
                               accumulator rstd, accumulator sum) {
    const enum dtype dtype = stored_dtype(job->dtype), wide = rule_wide(dtype);
    const accumulator n = (accumulator)job->is.C;
    const carrier g = norm_gradient_at(job, dy, w);
    if (job->is.formula == NORM_BACKWARD_AUTOGRAD)
        return rule_norm_grad_autograd(g, x, rstd, rule_norm_slope(sum, rstd, n), dtype);
    carrier hat = rule_norm_hat(x, rstd, wide);
    if (job->is.formula == NORM_BACKWARD_OUTPUT)
        hat = rule_norm_hat_of_output(rule_norm(x, rstd, w, job->inner, dtype),
                                      rule_norm_clamp(w, (carrier)job->is.eps), wide);
    return rule_norm_grad(g, hat, rstd, sum / n, dtype);
}

/* The formula's sum over columns c, c + 32, ... before `end`, as one lane adds it. */
GPU_INLINE accumulator norm_lane_terms(const struct norm_input_job *job, const struct stored *x,
                                       const struct stored *dy, accumulator rstd, size_t c,
                                       size_t end) {
    const struct stored *const w = (const struct stored *)job->is.w;
    accumulator lane = 0;
    ROLLED
    for (; c + (NORM_BATCH / 2 - 1) * GPU_WARP < end; c += NORM_BATCH / 2 * GPU_WARP) {
        carrier p[NORM_BATCH / 2], q[NORM_BATCH / 2], r[NORM_BATCH / 2];
        UNROLL
        for (unsigned k = 0; k < NORM_BATCH / 2; k++) {
            p[k] = stored_load(x[c + k * GPU_WARP]);
            q[k] = stored_load(dy[c + k * GPU_WARP]);
            r[k] = stored_load(w[c + k * GPU_WARP]);
        }
        UNROLL
        for (unsigned k = 0; k < NORM_BATCH / 2; k++) {
            const struct norm_terms terms = norm_terms_of(job, p[k], q[k], r[k], rstd);
            lane = acc_fma((accumulator)terms.a, (accumulator)terms.b, lane);
        }
    }
    ROLLED
    for (; c < end; c += GPU_WARP) {
        const struct norm_terms terms =
            norm_terms_of(job, stored_load(x[c]), stored_load(dy[c]), stored_load(w[c]), rstd);
        lane = acc_fma((accumulator)terms.a, (accumulator)terms.b, lane);
    }
    return lane;
}

/* The results of SPAN_EACH columns, from which the pointers are. */
GPU_INLINE void norm_results(const struct norm_input_job *job, const struct stored *x,
                             const struct stored *dy, const struct stored *w, struct stored *dx,
                             accumulator rstd, accumulator sum) {
    carrier p[SPAN_EACH], q[SPAN_EACH], r[SPAN_EACH], held[SPAN_EACH];
    load_each(p, x);
    load_each(q, dy);
    load_each(r, w);
    if (job->is.add) load_each(held, dx);
    UNROLL
    for (unsigned k = 0; k < SPAN_EACH; k++) {
        p[k] = norm_result(job, p[k], q[k], r[k], rstd, sum);
        if (job->is.add) p[k] = rule_add(held[k], p[k], stored_dtype(job->dtype));
    }
    store_each(dx, p);
}

/* The factors of a column are made twice, for the sum and for the result. dx may be dy: then a lane
 * reads and writes its own elements of the sum alone. */
KERNEL(norm_input_kernel, struct norm_input_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP, C = args->is.C;
    if (i >= args->is.rows.count) return;
    const size_t row = list_row(&args->is.rows, i);
    const struct stored *const x = (const struct stored *)args->is.x + row * C;
    const struct stored *const dy = (const struct stored *)args->is.dy + row * C;
    const struct stored *const w = (const struct stored *)args->is.w;
    struct stored *const dx = (struct stored *)args->is.dx + row * C;
    const accumulator rstd = ((const accumulator *)args->is.rstd)[row];
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < C; first += SUM_BLOCK) {
        const accumulator lane =
            norm_lane_terms(args, x, dy, rstd, first + own, least(first + SUM_BLOCK, C));
        ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
    }
    const accumulator sum = ACC_NAME_(sum_blocks_close)(&blocks);
    if (C % SPAN_EACH == 0 && dx != dy && span_aligned(x) && span_aligned(dy) && span_aligned(w) &&
        span_aligned(dx)) {
        ROLLED
        for (size_t c = own * SPAN_EACH; c < C; c += SPAN_EACH * GPU_WARP)
            norm_results(args, x + c, dy + c, w + c, dx + c, rstd, sum);
        return;
    }
    for (size_t c = own; c < C; c += GPU_WARP) {
        carrier result =
            norm_result(args, stored_load(x[c]), stored_load(dy[c]), stored_load(w[c]), rstd, sum);
        if (args->is.add) result = rule_add(stored_load(dx[c]), result, stored_dtype(args->dtype));
        dx[c] = stored_of(result);
    }
}

static void norm_input(const struct op_call *call, const struct norm_input_args *args) {
    const struct norm_input_job job = {*args, norm_inner(call, args->rounding), call->compute};
    LAUNCH_ROWS(norm_input_kernel, args->rows.count, &job);
}
