/* SPDX-License-Identifier: Apache-2.0
 * sin and cos for f32 and f64, for |x| <= 2^20. This is a part of base/real.h.
 *
 * LARGER ARGUMENTS RETURN NaN: rotary positions stay far below, and an exact reduction of every
 * double would need 1200 bits of 2/pi. Inside the range the reduction is exact to 2^-79 of the
 * remainder. f32 is computed in f64 and is within 0.5001 ulp; f64 is within 1 ulp
 * (tests/base/test_real_mpfr.c). */
#ifndef TWINSTEP_BASE_REAL_TRIG_H
#define TWINSTEP_BASE_REAL_TRIG_H

#include "base/real_basic.h"

#define REAL_TRIG_LIMIT 0x1p20

struct real_trig {
    double r; /* x - n pi/2 = r + low, |r| <= pi/4 */
    double low;
    uint64_t n; /* modulo 4 */
};

/* Reduces x to r + low, after Cody and Waite, with fma and pi/2 in three doubles: x - n * first is
 * exact, n * second is split into the product and its error, and the difference is a TwoSum. */
TWINSTEP_HD struct real_trig real_trig_reduce_f64(double x) {
    double shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
    double n = shifted - 0x1.8p52;
    double a = real_fma_f64(-n, 0x1.921fb54442d18p+0, x);
    double p = n * 0x1.1a62633145c07p-54;
    double p_low = real_fma_f64(n, 0x1.1a62633145c07p-54, -p);
    double r = a - p;
    double p_part = a - r;
    double error = (a - (r + p_part)) + (p_part - p);
    struct real_trig t;
    t.r = r;
    t.low = error - (p_low + n * -0x1.f1976b7ed8fbcp-110);
    t.n = real_bits_f64(shifted) & 3u;
    return t;
}

/* sin(r + low). The coefficients are S1 .. S6 of fdlibm's k_sin.c (error below 2^-58). */
TWINSTEP_HD double real_trig_sin_f64(double r, double low) {
    double z = r * r;
    double p = 0x1.5d93a5acfd57cp-33;
    p = p * z + -0x1.ae5e68a2b9cebp-26;
    p = p * z + 0x1.71de357b1fe7dp-19;
    p = p * z + -0x1.a01a019c161d5p-13;
    p = p * z + 0x1.111111110f8a6p-7;
    double cube = z * r;
    return r - ((z * (0.5 * low - cube * p) - low) - cube * -0x1.5555555555549p-3);
}

/* cos(r + low). The coefficients are C1 .. C6 of fdlibm's k_cos.c (error below 2^-58). */
TWINSTEP_HD double real_trig_cos_f64(double r, double low) {
    double z = r * r;
    double p = -0x1.8fae9be8838d4p-37;
    p = p * z + 0x1.1ee9ebdb4b1c4p-29;
    p = p * z + -0x1.27e4f809c52adp-22;
    p = p * z + 0x1.a01a019cb159p-16;
    p = p * z + -0x1.6c16c16c15177p-10;
    p = p * z + 0x1.555555555554cp-5;
    double half = 0.5 * z;
    double w = 1.0 - half;
    return w + (((1.0 - w) - half) + ((z * z) * p - r * low));
}

/* The sine of x when `quarter` is n, its cosine when it is n + 1: sine, cosine, -sine, -cosine in
 * turn. */
TWINSTEP_HD double real_trig_pick_f64(struct real_trig t, uint64_t quarter) {
    double s = real_trig_sin_f64(t.r, t.low);
    double c = real_trig_cos_f64(t.r, t.low);
    double y = (quarter & 1u) != 0 ? c : s;
    return (quarter & 2u) != 0 ? -y : y;
}

TWINSTEP_HD double real_sin_f64(double x) {
    struct real_trig t = real_trig_reduce_f64(x);
    double y = real_trig_pick_f64(t, t.n);
    y = real_abs_f64(x) < 0x1p-27 ? x : y;
    return real_abs_f64(x) <= REAL_TRIG_LIMIT ? y : real_nan_f64();
}

TWINSTEP_HD double real_cos_f64(double x) {
    struct real_trig t = real_trig_reduce_f64(x);
    double y = real_trig_pick_f64(t, t.n + 1u);
    return real_abs_f64(x) <= REAL_TRIG_LIMIT ? y : real_nan_f64();
}

TWINSTEP_HD float real_sin_f32(float x) {
    return (float)real_sin_f64((double)x);
}

TWINSTEP_HD float real_cos_f32(float x) {
    return (float)real_cos_f64((double)x);
}

#endif
