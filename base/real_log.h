/* SPDX-License-Identifier: Apache-2.0
 * log, log1p and pow for f32 and f64. This is a part of base/real.h.
 *
 * x is written as 2^k m with m in [sqrt(1/2), sqrt(2)); log m is computed from s = f / (2 + f),
 * where f = m - 1, by a series in s^2. f32 is computed in f64 and is within 0.5001 ulp; f64 is
 * within 1 ulp (law 8). log and log1p have no branches; pow treats special cases as C11 Annex F
 * asks. */
#ifndef TWINSTEP_BASE_REAL_LOG_H
#define TWINSTEP_BASE_REAL_LOG_H

#include "base/real_exp.h"

struct real_log_split {
    double k; /* the exponent */
    double f; /* m - 1 */
};

/* Splits a normal x > 0. The offset moves the cut between two exponents from 1 to sqrt(1/2), so
 * that |f| stays small on both sides of 1. */
TWINSTEP_HD struct real_log_split real_log_split_f64(double x) {
    uint64_t bits = real_bits_f64(x) + (0x3ff0000000000000u - 0x3fe6a09e00000000u);
    uint64_t m = (bits & 0x000fffffffffffffu) + 0x3fe6a09e00000000u;
    struct real_log_split split;
    split.k = real_from_bits_f64(0x4330000000000000u | (bits >> 52)) - (0x1p52 + 1023.0);
    split.f = real_from_bits_f64(m) - 1.0;
    return split;
}

/* log(1 + f) + k ln2 + low, with log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))). R has the minimax
 * coefficients Lg1 .. Lg7 of fdlibm's e_log.c (error below 2^-58.45), and ln2 is in fdlibm's two
 * parts. */
TWINSTEP_HD double real_log_join_f64(double k, double f, double low) {
    double s = f / (2.0 + f);
    double z = s * s;
    double r = 0x1.2f112df3e5244p-3;
    r = r * z + 0x1.39a09d078c69fp-3;
    r = r * z + 0x1.7466496cb03dep-3;
    r = r * z + 0x1.c71c51d8e78afp-3;
    r = r * z + 0x1.2492494229359p-2;
    r = r * z + 0x1.999999997fa04p-2;
    r = r * z + 0x1.5555555555593p-1;
    r = r * z;
    double half_square = (0.5 * f) * f;
    double rest = s * (half_square + r) + (k * 0x1.a39ef35793c76p-33 + low);
    return k * 0x1.62e42feep-1 - ((half_square - rest) - f);
}

TWINSTEP_HD double real_log_f64(double x) {
    int small = x < 0x1p-1022;
    struct real_log_split split = real_log_split_f64(small ? x * 0x1p54 : x);
    double y = real_log_join_f64(split.k - (small ? 54.0 : 0.0), split.f, 0.0);
    y = x > DBL_MAX ? x : y;
    y = x == 0.0 ? -real_inf_f64() : y;
    return x >= 0.0 ? y : real_nan_f64();
}

/* log1p(x) = log(u + e), where u + e = 1 + x exactly (TwoSum), as log u + e / u. */
TWINSTEP_HD double real_log1p_f64(double x) {
    double u = 1.0 + x;
    double x_part = u - 1.0;
    double e = (1.0 - (u - x_part)) + (x - x_part);
    struct real_log_split split = real_log_split_f64(u);
    double y = real_log_join_f64(split.k, split.f, e / u);
    y = real_abs_f64(x) < 0x1p-54 ? x : y;
    y = x > DBL_MAX ? x : y;
    y = x == -1.0 ? -real_inf_f64() : y;
    return x >= -1.0 ? y : real_nan_f64();
}

TWINSTEP_HD float real_log_f32(float x) {
    return (float)real_log_f64((double)x);
}

TWINSTEP_HD float real_log1p_f32(float x) {
    return (float)real_log1p_f64((double)x);
}

/* 2/7 + 2/9 z + ... + 2/27 z^10 with z = s^2 < 0.0295: the terms of 2 atanh(s) / s that follow 2 +
 * 2/3 z + 2/5 z^2. */
TWINSTEP_HD double real_log_series_f64(double z) {
    double t = 0x1.2f684bda12f68p-4;
    t = t * z + 0x1.47ae147ae147bp-4;
    t = t * z + 0x1.642c8590b2164p-4;
    t = t * z + 0x1.8618618618618p-4;
    t = t * z + 0x1.af286bca1af28p-4;
    t = t * z + 0x1.e1e1e1e1e1e1ep-4;
    t = t * z + 0x1.1111111111111p-3;
    t = t * z + 0x1.3b13b13b13b14p-3;
    t = t * z + 0x1.745d1745d1746p-3;
    t = t * z + 0x1.c71c71c71c71cp-3;
    return t * z + 0x1.2492492492492p-2;
}

/* log x for finite x > 0 as high + low, with a relative error below 2^-68, which pow needs because
 * y multiplies it. It is 2 atanh(s); s, s^2 and the terms up to 2/5 s^4 are kept in
 * double-double. */
TWINSTEP_HD struct real_pair_f64 real_log_pair_f64(double x) {
    int small = x < 0x1p-1022;
    struct real_log_split split = real_log_split_f64(small ? x * 0x1p54 : x);
    double k = split.k - (small ? 54.0 : 0.0);
    double f = split.f;
    double g = 2.0 + f;
    double g_low = f - (g - 2.0);
    double s = f / g;
    double s_low = real_fma_f64(-s, g_low, real_fma_f64(-s, g, f)) / g;
    double z = s * s;
    double z_low = real_fma_f64(s, s, -z) + 2.0 * s * s_low;
    double third = 0x1.5555555555555p-1 * z;
    double third_low = real_fma_f64(0x1.5555555555555p-1, z, -third) +
                       (0x1.5555555555555p-1 * z_low + 0x1.5555555555555p-55 * z);
    double rest = real_log_series_f64(z);
    double tail = z * rest;
    double fifth = 0x1.999999999999ap-2 + tail;
    double fifth_low = ((0x1.999999999999ap-2 - fifth) + tail) +
                       (real_fma_f64(z, rest, -tail) - 0x1.999999999999ap-56);
    double square = z * fifth;
    double square_low = real_fma_f64(z, fifth, -square) + (z * fifth_low + z_low * fifth);
    double series = z * square;
    double series_low = real_fma_f64(z, square, -series) + (z * square_low + z_low * square);
    double u = third + series;
    double u_low = ((third - u) + series) + (third_low + series_low);
    double su = s * u;
    double su_low = real_fma_f64(s, u, -su) + (s * u_low + s_low * u);
    double m = 2.0 * s + su;
    double m_low = ((2.0 * s - m) + su) + (su_low + 2.0 * s_low);
    double k_high = k * 0x1.62e42feep-1;
    struct real_pair_f64 y;
    y.high = k_high + m;
    y.low = ((k_high - y.high) + m) + (m_low + k * 0x1.a39ef35793c76p-33);
    return y;
}

/* 0 if y is not an integer, 1 if it is odd, 2 if it is even. From 2^53 on every number is even. */
TWINSTEP_HD int real_parity_f64(double y) {
    if (!(real_abs_f64(y) < 0x1p53)) return y == y ? 2 : 0;
    int64_t whole = (int64_t)y;
    if ((double)whole != y) return 0;
    return (whole & 1) != 0 ? 1 : 2;
}

/* exp(y log x) for finite x > 0. */
TWINSTEP_HD double real_pow_positive_f64(double x, double y) {
    struct real_pair_f64 l = real_log_pair_f64(x);
    double p = y * l.high;
    if (p > 1000.0) return real_inf_f64();
    if (p < -1000.0) return 0.0;
    return real_exp_pair_f64(p, real_fma_f64(y, l.high, -p) + y * l.low);
}

/* Special cases are those of C11 F.10.4.4: pow(x, +-0) = pow(1, y) = pow(-1, +-inf) = 1, also for
 * NaN. */
TWINSTEP_HD double real_pow_f64(double x, double y) {
    double magnitude = real_abs_f64(x);
    int parity = real_parity_f64(y);
    int negative = (real_bits_f64(x) >> 63) != 0;
    double r;
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return real_nan_f64();
    if (magnitude == 1.0 && !real_finite_f64(y)) return 1.0;
    if (magnitude == 0.0 || !real_finite_f64(x)) {
        r = (magnitude == 0.0) == (y < 0.0) ? real_inf_f64() : 0.0;
    } else {
        if (negative && parity == 0) return real_nan_f64();
        r = real_pow_positive_f64(magnitude, y);
    }
    return negative && parity == 1 ? -r : r;
}

TWINSTEP_HD float real_pow_f32(float x, float y) {
    return (float)real_pow_f64((double)x, (double)y);
}

#endif
