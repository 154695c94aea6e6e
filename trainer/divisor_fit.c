/* SPDX-License-Identifier: Apache-2.0
 * The normal equations, scaled to a unit diagonal, are inverted by Cholesky; one more pass over the
 * elements finds the rest and the bounds. */
#include "trainer/divisor_fit.h"

#include <math.h>

#include "base/element.h"
#include "base/real.h"
#include "base/sum.h"
#include "kernels/distance.h"
#include "kernels/products.h"
#include "trainer/optimizer_input.h"
#include "trainer/run_private.h"

/* The least squared sine of the angle between a gradient and what those before it span. It was
 * chosen so that the fit, which multiplies relative roundings by the reciprocal of the sine (1e4),
 * still leaves three digits of gradients that are kept in f32 (6e-8). */
#define FIT_LEAST_PIVOT 1e-8
/* The share of the gradient that may come from elsewhere, beyond what rounding explains. It was
 * chosen, not measured: by it an update whose gradient also holds terms of an earlier one is
 * refused instead of read wrongly, and roundings inside forward and backward, which no bound here
 * covers, pass. */
#define FIT_MOST_REST 0.05

struct fitting {
    struct divisor_fit *fit;
    size_t elements;
    double *taken, *taken_error; /* (elements) */
    double *scale;               /* (count) 1 / |plain| */
    double *factor;              /* (count, count) lower triangle */
    double *inverse;             /* (count, count) of the normal equations */
    double *column, *products;   /* (count) */
    uint32_t count;
};

static struct span plain_of(const struct fitting *f, uint32_t i) {
    return (struct span){f->fit->plain[i], f->fit->dtype};
}

static double dot(const struct fitting *f, struct span a, struct span b) {
    const struct span none_a = {NULL, a.dtype}, none_b = {NULL, b.dtype};
    return distance_product(a, none_a, b, none_b, f->elements);
}

static enum status read_taken(struct fitting *f, const struct optimizer_input_rule *rule) {
    const struct run *run = f->fit->run;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        const size_t at = run->packed[row];
        struct optimizer_places places;
        TRY(optimizer_input_places(run, rule, row, &places));
        optimizer_input_values(run, rule, &places, 0, run->table.rows[row].count, f->taken + at,
                               f->taken_error + at);
    }
    return STATUS_OK;
}

/* Returns the sum of a[k] b[k] over k < n, for rows of triangles. */
static double chain(const double *a, const double *b, uint32_t n) {
    return sum_chain_products_f64_f64(0.0, a, b, n);
}

/* Factorises the scaled Gram matrix by Cholesky, row by row. Returns 0 where a gradient lies in the
 * span of the others. */
static int factorise(struct fitting *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        double *const row = f->factor + (size_t)i * f->count;
        for (uint32_t j = 0; j <= i; j++) {
            const double *const other = f->factor + (size_t)j * f->count;
            const double gram =
                i == j ? 1.0 : dot(f, plain_of(f, i), plain_of(f, j)) * f->scale[i] * f->scale[j];
            const double left = gram - chain(row, other, j);
            if (i == j && !(left > FIT_LEAST_PIVOT)) return 0;
            row[j] = i == j ? real_sqrt_f64(left) : left / other[j];
        }
    }
    return 1;
}

/* Solves for one right side in place: forward, then backward. */
static void solve(const struct fitting *f, double *x) {
    const uint32_t n = f->count;
    for (uint32_t i = 0; i < n; i++)
        x[i] = (x[i] - chain(f->factor + (size_t)i * n, x, i)) / f->factor[(size_t)i * n + i];
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t k = i + 1; k < n; k++)
            f->column[k - i - 1] = f->factor[(size_t)k * n + i];
        x[i] = (x[i] - chain(f->column, x + i + 1, n - i - 1)) / f->factor[(size_t)i * n + i];
    }
}

static void invert(struct fitting *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        double *const row = f->inverse + (size_t)i * f->count;
        for (uint32_t j = 0; j < f->count; j++)
            row[j] = i == j ? f->scale[i] : 0.0;
        solve(f, row);
        for (uint32_t j = 0; j < f->count; j++)
            row[j] *= f->scale[j];
    }
}

/* Writes the weighted sum of the gradients, element by element. */
static void combine(const struct fitting *f, const double *weight, size_t first, size_t count,
                    double *out) {
    for (size_t e = 0; e < count; e++) {
        for (uint32_t i = 0; i < f->count; i++)
            f->column[i] = element_get(f->fit->plain[i], f->fit->dtype, first + e);
        out[e] = chain(f->column, weight, f->count);
    }
}

static double rest_of(const struct fitting *f) {
    struct sum_blocks_f64 sum = {.count = 0};
    double rest[SUM_BLOCK];
    for (size_t first = 0; first < f->elements; first += SUM_BLOCK) {
        const size_t left = f->elements - first, count = left < SUM_BLOCK ? left : SUM_BLOCK;
        combine(f, f->fit->weight, first, count, rest);
        for (size_t e = 0; e < count; e++)
            rest[e] = f->taken[first + e] - rest[e];
        sum_blocks_push_f64(&sum, products_block(rest, rest, count));
    }
    return real_sqrt_f64(sum_blocks_close_f64(&sum));
}

/* Returns the sum over all elements of |row i of the pseudo-inverse| times the error bound of what
 * was taken in. That is the most that errors of those sizes can do to weight i. */
static double bound_of(const struct fitting *f, uint32_t i) {
    struct sum_blocks_f64 sum = {.count = 0};
    double gain[SUM_BLOCK];
    for (size_t first = 0; first < f->elements; first += SUM_BLOCK) {
        const size_t left = f->elements - first, count = left < SUM_BLOCK ? left : SUM_BLOCK;
        combine(f, f->inverse + (size_t)i * f->count, first, count, gain);
        for (size_t e = 0; e < count; e++)
            gain[e] = fabs(gain[e]);
        sum_blocks_push_f64(&sum, products_block(gain, f->taken_error + first, count));
    }
    return sum_blocks_close_f64(&sum);
}

static void bound_all(struct fitting *f) {
    const struct span taken = {f->taken, DTYPE_F64}, error = {f->taken_error, DTYPE_F64};
    const double all = real_sqrt_f64(dot(f, taken, taken)), rest = rest_of(f);
    const double rounding = real_sqrt_f64(dot(f, error, error));
    f->fit->rest = rest / all;
    if (!(rest <= rounding + FIT_MOST_REST * all))
        f->fit->untestable = "part of the gradient that the optimizer took in is none of this "
                             "update's micro-batches'";
    for (uint32_t i = 0; i < f->count; i++) {
        const double gain = real_sqrt_f64(f->inverse[(size_t)i * f->count + i]);
        f->fit->error[i] = bound_of(f, i) + gain * rest;
    }
}

static enum status open_fitting(struct fitting *f, struct arena *arena) {
    const size_t square = (size_t)f->count * f->count;
    TRY(arena_take(arena, f->elements, sizeof *f->taken, "gradient", &f->taken));
    TRY(arena_take(arena, f->elements, sizeof *f->taken, "gradient", &f->taken_error));
    TRY(arena_take(arena, f->count, sizeof *f->scale, "fit", &f->scale));
    TRY(arena_take(arena, square, sizeof *f->factor, "fit", &f->factor));
    TRY(arena_take(arena, square, sizeof *f->inverse, "fit", &f->inverse));
    TRY(arena_take(arena, f->count, sizeof *f->column, "fit", &f->column));
    TRY(arena_take(arena, f->count, sizeof *f->products, "fit", &f->products));
    TRY(arena_take(arena, f->count, sizeof *f->fit->weight, "fit", &f->fit->weight));
    return arena_take(arena, f->count, sizeof *f->fit->error, "fit", &f->fit->error);
}

static const char *fit_all(struct fitting *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        const double squares = dot(f, plain_of(f, i), plain_of(f, i));
        if (!(squares > 0.0) || !real_finite_f64(squares))
            return "a micro-batch has no gradient, or one that is not finite";
        f->scale[i] = 1.0 / real_sqrt_f64(squares);
    }
    if (!factorise(f)) return "the gradients of the micro-batches are linearly dependent";
    invert(f);
    const struct span taken = {f->taken, DTYPE_F64};
    for (uint32_t i = 0; i < f->count; i++)
        f->products[i] = dot(f, plain_of(f, i), taken);
    for (uint32_t i = 0; i < f->count; i++)
        f->fit->weight[i] = chain(f->inverse + (size_t)i * f->count, f->products, f->count);
    bound_all(f);
    return f->fit->untestable;
}

static int moves(const struct run *run) {
    for (uint32_t g = 0; g < run->table.groups; g++)
        if (run->record.groups[g][GROUP_LR_APPLIED] == 0.0) return 0;
    return 1;
}

enum status divisor_fit(struct divisor_fit *fit, struct arena *arena) {
    struct fitting f = {.fit = fit, .elements = fit->run->table.elements, .count = fit->count};
    struct optimizer_input_rule rule;
    TRY(optimizer_input_rule_of(fit->run, &rule));
    if (rule.source == INPUT_UNKNOWN) {
        fit->untestable = "the optimizer keeps no moment that tells what gradient it took in";
        return STATUS_OK;
    }
    if (rule.source == INPUT_FROM_WEIGHTS && !moves(fit->run)) {
        fit->untestable = "the learning rate is 0: no weight tells what the optimizer took in";
        return STATUS_OK;
    }
    TRY(open_fitting(&f, arena));
    TRY(read_taken(&f, &rule));
    fit->untestable = fit_all(&f);
    return STATUS_OK;
}
