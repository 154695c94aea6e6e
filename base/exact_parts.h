/* SPDX-License-Identifier: Apache-2.0
 * Exact sums in three doubles: the fast form of base/exact_sum.h, for terms of known bound.
 *
 * A sum's three parts start at 1.5 * 2^k. Adding a term p to a part of unit u leaves there the
 * multiple of u nearest to p, and p minus that, exactly, goes on to the next part (the extraction
 * of Rump, Ogita and Oishi, "Accurate floating-point summation part I", SIAM J. Sci. Comput. 31(1),
 * 2008; of Demmel and Nguyen, "Parallel reproducible summation", IEEE Trans. Computers 64(7),
 * 2015). With n terms below the bound no part leaves its binade, so all additions are exact. What
 * is left behind the third part is returned: where it is always 0, the parts hold the exact sum;
 * where it is not, the caller sums again with base/exact_sum.h. So no order shows, not even in
 * which of the two was used.
 *
 * Parts hold about 150 - 3 log2(n) bits below the bound. */
#ifndef TWINSTEP_BASE_EXACT_PARTS_H
#define TWINSTEP_BASE_EXACT_PARTS_H

#include <stddef.h>

#include "base/real_basic.h"

#define EXACT_PARTS 3

/* Least x with |n| <= 2^x. */
TWINSTEP_HD int exact_log2_up(size_t n) {
    int x = 0;
    while (x < 63 && (uint64_t)n > (uint64_t)1 << x)
        x++;
    return x;
}

TWINSTEP_HD double exact_power(int exponent) {
    return real_from_bits_f64((uint64_t)(exponent + 1023) << 52);
}

/* Largest bound for which parts neither overflow nor underflow, and the least that is needed. */
#define EXACT_BOUND_MOST 0x1p+600
#define EXACT_BOUND_LEAST 0x1p-600

/* start[i] = 1.5 * 2^k_i for n <= 2^40 terms |x| <= bound. 0 where the bound is no such number. */
TWINSTEP_HD int exact_parts_start(double bound, size_t n, double start[EXACT_PARTS]) {
    const int many = exact_log2_up(n) + 2;
    if (!(bound <= EXACT_BOUND_MOST) || n > (size_t)1 << 40) return 0;
    if (bound < EXACT_BOUND_LEAST) bound = EXACT_BOUND_LEAST;
    int exponent = (int)(real_bits_f64(bound) >> 52) - 1022; /* bound < 2^exponent */
    for (int i = 0; i < EXACT_PARTS; i++) {
        const int k = exponent + many;
        start[i] = 1.5 * exact_power(k);
        exponent = k - 53; /* half a unit: what is passed on */
    }
    return 1;
}

/* a + b + c, rounded once to f64, and to f32 (Boldo and Melquiond, as cited at real_add_odd_f64,
 * section 4: two error-free sums, the errors added to odd). */
TWINSTEP_HD void exact_three(double a, double b, double c, double *high, double *low) {
    const double u = b + c;
    const double c_part = u - b;
    const double u_error = (b - (u - c_part)) + (c - c_part);
    const double t = a + u;
    const double u_part = t - a;
    const double t_error = (a - (t - u_part)) + (u - u_part);
    *high = t;
    *low = real_add_odd_f64(t_error, u_error);
}

TWINSTEP_HD double exact_three_f64(double a, double b, double c) {
    double high, low;
    exact_three(a, b, c, &high, &low);
    return high + low;
}

TWINSTEP_HD float exact_three_f32(double a, double b, double c) {
    double high, low;
    exact_three(a, b, c, &high, &low);
    return (float)real_add_odd_f64(high, low);
}

#endif
