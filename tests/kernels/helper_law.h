/* SPDX-License-Identifier: Apache-2.0
 * The laws once more, one number at a time, in double: what the ops are compared with.
 *
 * Numbers of either accumulator are doubles here. + - * / sqrt of two floats in double, rounded to
 * float, are the float operations (53 >= 2 * 24 + 2 bits); fma is the C library's. Roundings go by
 * the quantum, not by bits. Nothing of base/rule.h, base/sum.h or kernels/ is used. */
#ifndef TWINSTEP_TESTS_KERNELS_HELPER_LAW_H
#define TWINSTEP_TESTS_KERNELS_HELPER_LAW_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "kernels/op.h"

/* The accumulator everything is computed in. */
struct law {
    enum dtype compute;
    int wide; /* 1: f64, 0: f32 */
};

double law_round(double x, enum dtype dtype);

double law_acc(const struct law *law, double x); /* x as an accumulator holds it */
double law_add(const struct law *law, double a, double b);
double law_sub(const struct law *law, double a, double b);
double law_mul(const struct law *law, double a, double b);
double law_div(const struct law *law, double a, double b);
double law_sqrt(const struct law *law, double x);
double law_fma(const struct law *law, double a, double b, double c);
double law_exp(const struct law *law, double x);
double law_log(const struct law *law, double x);

/* Rounded to the compute dtype: law_out(op(...)). */
double law_out(const struct law *law, double x);

/* Law 2 over terms x, or over products a * b where b is not NULL. */
double law_lanes(const struct law *law, const double *a, const double *b, size_t n);

/* Law 1: a chain from `start` over products a[i * a_step] * b[i * b_step], or over terms. */
double law_chain(const struct law *law, double start, const double *a, size_t a_step,
                 const double *b, size_t b_step, size_t n);

/* Where law 9 draws an order. */
struct law_tile {
    const struct op_call *call;
    uint32_t pass;
    uint64_t row, column; /* tiles */
};

/* order[0 .. count-1]: the permutation, from the table of law 10 and the sorting rule of law 9. */
void law_order(const struct law_tile *tile, size_t count, uint32_t *order);

/* Law 9: chunk chains from +0, joined from +0. */
double law_shuffled(const struct law *law, const struct law_tile *tile, const double *a,
                    size_t a_step, const double *b, size_t b_step, size_t n);

#endif
