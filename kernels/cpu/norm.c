/* SPDX-License-Identifier: Apache-2.0
 * RMSNorm by rows: forward, and the gradient of its input. The sum over a row is law 2; the rest
 * is element-wise (base/rule.h). Rows are independent: threads divide them.
 *
 * The gradient of the weight is in norm_weight.c. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/exact.h"

#define NORM_COST 8 /* elementary operations of one element, roughly */

ROW_INLINE void forward_elements(const carrier *x, const carrier *w, carrier *y, size_t C,
                                 accumulator rstd, enum dtype inner, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) y[i] = rule_norm(x[i], rstd, w[i], inner, dtype);
}

/* A sum of products by law 2, or exact by law 16. */
static accumulator sum_of_products(const struct op_call *call, const carrier *a, const carrier *b,
                                   size_t n) {
    if (call->order_free) return VARIANT(exact_carrier_products)(a, b, n);
    return PAIR(sum_products)(a, b, n);
}

ROW_INLINE void forward_row(const struct op_call *call, const struct norm_forward_args *args,
                            size_t row, enum dtype dtype) {
    const size_t C = args->C;
    const carrier *const x = (const carrier *)args->x + row * C;
    const carrier *const w = (const carrier *)args->w;
    carrier *const y = (carrier *)args->y + row * C;
    const accumulator squares = sum_of_products(call, x, x, C);
    const accumulator rstd = rule_norm_rstd(squares, (accumulator)C, (accumulator)args->eps);
    ((accumulator *)args->rstd)[row] = rstd;
    if (args->rounding == NORM_ROUND_BEFORE_WEIGHT)
        forward_elements(x, w, y, C, rstd, dtype, dtype);
    else
        forward_elements(x, w, y, C, rstd, rule_wide(dtype), dtype);
}

void VARIANT(norm_forward)(const struct op_call *call, const struct norm_forward_args *args) {
    const size_t work = (size_t)args->rows.count * args->C * NORM_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t row = list_row(&args->rows, i);
#define FORWARD(d) forward_row(call, args, row, d)
        DTYPE_SWITCH(call->compute, FORWARD);
    }
}

/* Makes g, the gradient at xhat, and h, xhat itself: once for the sum, once more for the result. */
ROW_INLINE void input_terms(const struct norm_input_args *args, size_t row, accumulator rstd,
                            carrier *g, carrier *h, enum dtype inner, enum dtype dtype) {
    const carrier *const x = (const carrier *)args->x + row * args->C;
    const carrier *const dy = (const carrier *)args->dy + row * args->C;
    const carrier *const w = (const carrier *)args->w;
    EACH for (size_t i = 0; i < args->C; i++) {
        g[i] = rule_mul(dy[i], w[i], inner);
        h[i] = rule_norm_hat(x[i], rstd, rule_wide(dtype));
    }
}

ROW_INLINE void input_elements(const carrier *g, const carrier *h, carrier *dx, size_t C,
                               accumulator rstd, accumulator mean, int add, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) {
        const carrier result = rule_norm_grad(g[i], h[i], rstd, mean, dtype);
        dx[i] = add ? rule_add(dx[i], result, dtype) : result;
    }
}

ROW_INLINE void input_row(const struct op_call *call, const struct norm_input_args *args,
                          size_t row, carrier *g, enum dtype dtype) {
    const size_t C = args->C;
    carrier *const h = g + row_numbers(C);
    carrier *const dx = (carrier *)args->dx + row * C;
    const accumulator rstd = ((const accumulator *)args->rstd)[row];
    if (args->rounding == NORM_ROUND_BEFORE_WEIGHT)
        input_terms(args, row, rstd, g, h, dtype, dtype);
    else
        input_terms(args, row, rstd, g, h, rule_wide(dtype), dtype);
    const accumulator mean = sum_of_products(call, g, h, C) / (accumulator)C;
    if (args->add)
        input_elements(g, h, dx, C, rstd, mean, 1, dtype);
    else
        input_elements(g, h, dx, C, rstd, mean, 0, dtype);
}

void VARIANT(norm_input)(const struct op_call *call, const struct norm_input_args *args) {
    const size_t work = (size_t)args->rows.count * args->C * 2 * NORM_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t row = list_row(&args->rows, i);
        carrier *const own = (carrier *)call_scratch(call, 0, row_bytes(args->C));
#define INPUT(d) input_row(call, args, row, own, d)
        DTYPE_SWITCH(call->compute, INPUT);
    }
}
