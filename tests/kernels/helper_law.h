/* SPDX-License-Identifier: Apache-2.0
 * The laws of docs/DETERMINISM.md written a second time, one number at a time and in double: the
 * expectation that the ops are compared with.
 *
 * Numbers of either accumulator are doubles here. An operation + - * / sqrt on two floats, done in
 * double and rounded to float, is the float operation, because 53 >= 2 * 24 + 2 bits leave no
 * double rounding; fma is the C library's. Roundings are computed from the spacing of the format's
 * numbers, not from bits. Nothing of base/rule.h, base/sum.h or kernels/ is used, so that an error
 * there cannot repeat itself here. */
#ifndef TWINSTEP_TESTS_KERNELS_HELPER_LAW_H
#define TWINSTEP_TESTS_KERNELS_HELPER_LAW_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "kernels/op.h"

/* The accumulator in which everything is computed. */
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

/* Rounds a result to the compute dtype; callers write law_out(op(...)). */
double law_out(const struct law *law, double x);

/* The sum of law 2 over the terms a, or over the products a * b where b is not NULL. */
double law_lanes(const struct law *law, const double *a, const double *b, size_t n);

/* The chain of law 1, begun at `start`: over the products a[i * a_step] * b[i * b_step], or over
 * the terms a where b is NULL. */
double law_chain(const struct law *law, double start, const double *a, size_t a_step,
                 const double *b, size_t b_step, size_t n);

/* The tile for which law 9 draws an order. */
struct law_tile {
    const struct op_call *call;
    uint32_t pass;
    uint64_t row, column; /* tiles */
};

/* Fills order[0 .. count-1] with the permutation that the table of law 10 and the sorting rule of
 * law 9 give. */
void law_order(const struct law_tile *tile, size_t count, uint32_t *order);

/* The sum of law 9: each chunk is a chain from +0, and the chunks are added in the tile's order,
 * from +0 too. */
double law_shuffled(const struct law *law, const struct law_tile *tile, const double *a,
                    size_t a_step, const double *b, size_t b_step, size_t n);

#endif
