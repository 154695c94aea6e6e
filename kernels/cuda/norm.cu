/* SPDX-License-Identifier: Apache-2.0
 * RMSNorm by rows, a warp each: forward, and the gradient of its input (kernels/cpu/norm.c). The
 * sum over a row is law 2; the rest is element-wise (base/rule.h).
 *
 * The gradient of the weight is in norm_weight.cu. */
#include "kernels/cuda/launch.h"

struct norm_forward_job {
    struct norm_forward_args is;
    enum dtype inner, dtype;
};

KERNEL(norm_forward_kernel, struct norm_forward_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP, C = args->is.C;
    if (i >= args->is.rows.count) return;
    const size_t row = list_row(&args->is.rows, i);
    const carrier *const x = (const carrier *)args->is.x + row * C;
    const carrier *const w = (const carrier *)args->is.w;
    carrier *const y = (carrier *)args->is.y + row * C;
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < C; first += SUM_BLOCK) {
        accumulator lane = 0;
        for (size_t c = first + own; c < least(first + SUM_BLOCK, C); c += GPU_WARP)
            lane = acc_fma((accumulator)x[c], (accumulator)x[c], lane);
        ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
    }
    const accumulator squares = ACC_NAME_(sum_blocks_close)(&blocks);
    const accumulator rstd = rule_norm_rstd(squares, (accumulator)C, (accumulator)args->is.eps);
    if (own == 0) ((accumulator *)args->is.rstd)[row] = rstd;
    for (size_t c = own; c < C; c += GPU_WARP)
        y[c] = rule_norm(x[c], rstd, w[c], args->inner, args->dtype);
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

/* The gradient at xhat and xhat itself are made twice, for the sum and for the result. A lane reads
 * and writes only its own elements, so dx may be dy. */
KERNEL(norm_input_kernel, struct norm_input_job) {
    const size_t i = (size_t)BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const size_t own = THREAD % GPU_WARP, C = args->is.C;
    const enum dtype wide = rule_wide(args->dtype);
    if (i >= args->is.rows.count) return;
    const size_t row = list_row(&args->is.rows, i);
    const carrier *const x = (const carrier *)args->is.x + row * C;
    const carrier *const dy = (const carrier *)args->is.dy + row * C;
    const carrier *const w = (const carrier *)args->is.w;
    carrier *const dx = (carrier *)args->is.dx + row * C;
    const accumulator rstd = ((const accumulator *)args->is.rstd)[row];
    struct ACC_NAME_(sum_blocks) blocks;
    blocks.count = 0;
    for (size_t first = 0; first < C; first += SUM_BLOCK) {
        accumulator lane = 0;
        for (size_t c = first + own; c < least(first + SUM_BLOCK, C); c += GPU_WARP)
            lane = acc_fma((accumulator)rule_mul(dy[c], w[c], args->inner),
                           (accumulator)rule_norm_hat(x[c], rstd, wide), lane);
        ACC_NAME_(sum_blocks_push)(&blocks, lanes_join(GPU_ARG lane));
    }
    const accumulator mean = ACC_NAME_(sum_blocks_close)(&blocks) / (accumulator)C;
    for (size_t c = own; c < C; c += GPU_WARP) {
        const carrier g = rule_mul(dy[c], w[c], args->inner);
        const carrier h = rule_norm_hat(x[c], rstd, wide);
        const carrier result = rule_norm_grad(g, h, rstd, mean, args->dtype);
        dx[c] = args->is.add ? rule_add(dx[c], result, args->dtype) : result;
    }
}

static void norm_input(const struct op_call *call, const struct norm_input_args *args) {
    const struct norm_input_job job = {*args, norm_inner(call, args->rounding), call->compute};
    LAUNCH_ROWS(norm_input_kernel, args->rows.count, &job);
}
