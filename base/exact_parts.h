/* SPDX-License-Identifier: Apache-2.0
 * Exact sums in three doubles. They are the cheap form of base/exact_sum.h for terms whose bound is
 * known.
 *
 * Each of the three parts of a sum starts at 1.5 * 2^k. Adding a term p to a part whose unit in the
 * last place is u leaves there the multiple of u that is nearest to p; what is left of p goes on,
 * exactly, to the next part. This is the extraction of Rump, Ogita and Oishi ("Accurate
 * floating-point summation part I", SIAM J. Sci. Comput. 31(1), 2008) and of Demmel and Nguyen
 * ("Parallel reproducible summation", IEEE Trans. Computers 64(7), 2015). As long as there are n
 * terms below the bound, no part leaves its binade, so every addition is exact. What the third part
 * cannot hold is returned to the caller: while that is always 0, the parts hold the exact sum; when
 * it is not, the caller sums again with base/exact_sum.h. So the order of the terms never shows,
 * not even in which of the two methods was used. The parts hold about 150 - 3 log2(n) bits below
 * the bound. */
#ifndef TWINSTEP_BASE_EXACT_PARTS_H
#define TWINSTEP_BASE_EXACT_PARTS_H

#include <stddef.h>

#include "base/real_basic.h"

#define EXACT_PARTS 3

/* The least x with n <= 2^x. */
TWINSTEP_HD int exact_log2_up(size_t n) {
    int x = 0;
    while (x < 63 && (uint64_t)n > (uint64_t)1 << x)
        x++;
    return x;
}

TWINSTEP_HD double exact_power(int exponent) {
    return real_from_bits_f64((uint64_t)(exponent + 1023) << 52);
}

/* Between these two bounds no part overflows and no part's unit underflows. Smaller bounds are
 * raised to the lower one. */
#define EXACT_BOUND_MOST 0x1p+600
#define EXACT_BOUND_LEAST 0x1p-600

/* Sets start[i] = 1.5 * 2^k_i for at most 2^40 terms with |x| <= bound. Returns 0 if the bound is
 * too large (or NaN) or there are more terms. */
TWINSTEP_HD int exact_parts_start(double bound, size_t n, double start[EXACT_PARTS]) {
    const int many = exact_log2_up(n) + 2;
    if (!(bound <= EXACT_BOUND_MOST) || n > (size_t)1 << 40) return 0;
    if (bound < EXACT_BOUND_LEAST) bound = EXACT_BOUND_LEAST;
    int exponent = (int)(real_bits_f64(bound) >> 52) - 1022; /* now bound < 2^exponent */
    for (int i = 0; i < EXACT_PARTS; i++) {
        const int k = exponent + many;
        start[i] = 1.5 * exact_power(k);
        exponent = k - 53; /* what is passed on is at most half a unit of this part */
    }
    return 1;
}

/* Stores high and low such that high + low, rounded once to f64 or f32, is a + b + c rounded once
 * (Boldo and Melquiond, as cited at real_add_odd_f64, section 4 of their paper: two error-free
 * sums, whose errors are added with rounding to odd). */
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
