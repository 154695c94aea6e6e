/* SPDX-License-Identifier: Apache-2.0
 * RMSNorm by rows: forward, and the gradient of its input. The sum over a row is law 2; the rest
 * is element-wise (base/rule.h). Rows are independent: threads divide them.
 *
 * The gradient of the weight is in norm_weight.c. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/exact.h"

#define NORM_COST 8 /* elementary operations of one element, roughly */

ROW_INLINE void forward_elements(const struct stored *x, const struct stored *w, struct stored *y,
                                 size_t C, accumulator rstd, enum dtype inner, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) y[i] =
        stored_of(rule_norm(stored_load(x[i]), rstd, stored_load(w[i]), inner, dtype));
}

ROW_INLINE void forward_row(const struct op_call *call, const struct norm_forward_args *args,
                            size_t row, enum dtype dtype) {
    const size_t C = args->C;
    const struct stored *const x = (const struct stored *)args->x + row * C;
    const struct stored *const w = (const struct stored *)args->w;
    struct stored *const y = (struct stored *)args->y + row * C;
    const accumulator squares = row_products(call, stored_numbers(x), stored_numbers(x), C);
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

/* A row of the gradient of the input. g, the gradient at xhat, is made here, once for the sum and
 * once more for the result; h is room for what each formula puts beside it. */
struct input_row {
    const struct stored *x, *dy, *w;
    struct stored *dx;
    carrier *g, *h;
    size_t C;
    accumulator rstd;
    carrier eps;
    int before, add; /* NORM_ROUND_BEFORE_WEIGHT; the result is added to dx */
};

/* What xhat is rounded to before it meets the weight. */
static inline enum dtype inner_of(const struct input_row *row, enum dtype dtype) {
    return row->before ? dtype : rule_wide(dtype);
}

ROW_INLINE void put_input(struct stored *dx, carrier result, int add, enum dtype dtype) {
    *dx = stored_of(add ? rule_add(stored_load(*dx), result, dtype) : result);
}

/* ---- the default, which takes rstd from the forward: h is xhat ---- */

ROW_INLINE void fused_terms(const struct input_row *row, enum dtype inner, enum dtype dtype) {
    EACH for (size_t i = 0; i < row->C; i++) {
        row->g[i] = rule_mul(stored_load(row->dy[i]), stored_load(row->w[i]), inner);
        row->h[i] = rule_norm_hat(stored_load(row->x[i]), row->rstd, rule_wide(dtype));
    }
}

ROW_INLINE void fused_elements(const struct input_row *row, accumulator mean, int add,
                               enum dtype dtype) {
    EACH for (size_t i = 0; i < row->C; i++) put_input(
        row->dx + i, rule_norm_grad(row->g[i], row->h[i], row->rstd, mean, dtype), add, dtype);
}

ROW_INLINE void fused_row(const struct op_call *call, const struct input_row *row,
                          enum dtype dtype) {
    if (row->before)
        fused_terms(row, dtype, dtype);
    else
        fused_terms(row, rule_wide(dtype), dtype);
    const accumulator mean = row_products(call, row->g, row->h, row->C) / (accumulator)row->C;
    if (row->add)
        fused_elements(row, mean, 1, dtype);
    else
        fused_elements(row, mean, 0, dtype);
}

/* ---- the other formulas: their loops have fewer constants, since with all of them this file takes
 * three times as long to compile ---- */

ROW_INLINE void autograd_terms(const struct input_row *row, enum dtype inner) {
    EACH for (size_t i = 0; i < row->C; i++) row->g[i] =
        rule_mul(stored_load(row->dy[i]), stored_load(row->w[i]), inner);
}

ROW_INLINE void autograd_elements(const struct input_row *row, accumulator slope,
                                  enum dtype dtype) {
    EACH for (size_t i = 0; i < row->C; i++) put_input(
        row->dx + i,
        rule_norm_grad_autograd(row->g[i], stored_load(row->x[i]), row->rstd, slope, dtype),
        row->add, dtype);
}

static void autograd_row(const struct op_call *call, const struct input_row *row) {
#define AUTOGRAD_TERMS(d) autograd_terms(row, d)
    DTYPE_SWITCH(inner_of(row, call->compute), AUTOGRAD_TERMS);
    const accumulator slope = rule_norm_slope(
        row_products(call, row->g, stored_numbers(row->x), row->C), row->rstd, (accumulator)row->C);
#define AUTOGRAD_ELEMENTS(d) autograd_elements(row, slope, d)
    DTYPE_SWITCH(call->compute, AUTOGRAD_ELEMENTS);
}

/* h is the output for the sum, then xhat as it comes back from it. */
ROW_INLINE void output_terms(const struct input_row *row, enum dtype dtype) {
    EACH for (size_t i = 0; i < row->C; i++) {
        const enum dtype inner = inner_of(row, dtype);
        row->g[i] = rule_mul(stored_load(row->dy[i]),
                             rule_norm_clamp(stored_load(row->w[i]), row->eps), inner);
        row->h[i] =
            rule_norm(stored_load(row->x[i]), row->rstd, stored_load(row->w[i]), inner, dtype);
    }
}

ROW_INLINE void output_elements(const struct input_row *row, accumulator mean, enum dtype dtype) {
    EACH for (size_t i = 0; i < row->C; i++) {
        const carrier clamped = rule_norm_clamp(stored_load(row->w[i]), row->eps);
        const carrier hat = rule_norm_hat_of_output(row->h[i], clamped, rule_wide(dtype));
        put_input(row->dx + i, rule_norm_grad(row->g[i], hat, row->rstd, mean, dtype), row->add,
                  dtype);
    }
}

static void output_row(const struct op_call *call, const struct input_row *row) {
#define OUTPUT_TERMS(d) output_terms(row, d)
    DTYPE_SWITCH(call->compute, OUTPUT_TERMS);
    const accumulator mean =
        row_products(call, stored_numbers(row->dy), row->h, row->C) / (accumulator)row->C;
#define OUTPUT_ELEMENTS(d) output_elements(row, mean, d)
    DTYPE_SWITCH(call->compute, OUTPUT_ELEMENTS);
}

static void input_row(const struct op_call *call, const struct norm_input_args *args,
                      const struct input_row *row) {
#define FUSED(d) fused_row(call, row, d)
    if (args->formula == NORM_BACKWARD_AUTOGRAD)
        autograd_row(call, row);
    else if (args->formula == NORM_BACKWARD_OUTPUT)
        output_row(call, row);
    else
        DTYPE_SWITCH(call->compute, FUSED);
}

void VARIANT(norm_input)(const struct op_call *call, const struct norm_input_args *args) {
    const size_t C = args->C, work = (size_t)args->rows.count * C * 2 * NORM_COST;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i);
        carrier *const own = (carrier *)call_scratch(call, 0, row_bytes(C));
        const struct input_row row = {.x = (const struct stored *)args->x + at * C,
                                      .dy = (const struct stored *)args->dy + at * C,
                                      .w = (const struct stored *)args->w,
                                      .g = own,
                                      .h = own + row_numbers(C),
                                      .dx = (struct stored *)args->dx + at * C,
                                      .C = C,
                                      .rstd = ((const accumulator *)args->rstd)[at],
                                      .eps = (carrier)args->eps,
                                      .before = args->rounding == NORM_ROUND_BEFORE_WEIGHT,
                                      .add = args->add};
        input_row(call, args, &row);
    }
}
