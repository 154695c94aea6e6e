/* SPDX-License-Identifier: Apache-2.0
 * exp, exp2, expm1, tanh for f32 and f64. Part of base/real.h.
 *
 * x = n ln2 + r with |r| <= ln2/2; e^r by a polynomial; 2^n by exponent bits. No table, and
 * selections instead of branches, so loops vectorise. Error against MPFR (tests/base/
 * test_real_mpfr.c): exp and exp2 1 ulp, expm1 and tanh 0.5001 ulp in f32; f64 1 ulp, expm1 1.2.
 * exp and exp2 in f32 return +0 where the result is below 2^-126 (no subnormal results). */
#ifndef TWINSTEP_BASE_REAL_EXP_H
#define TWINSTEP_BASE_REAL_EXP_H

#include "base/real_basic.h"

/* e^r - 1 - r = r^2 P(r), |r| <= 0.35. Coefficients: expf of the Cephes library (S. Moshier). */
TWINSTEP_HD float real_exp_tail_f32(float r) {
    float p = 0x1.a0d2cep-13f;
    p = real_fma_f32(p, r, 0x1.6e879cp-10f);
    p = real_fma_f32(p, r, 0x1.11121p-7f);
    p = real_fma_f32(p, r, 0x1.555382p-5f);
    p = real_fma_f32(p, r, 0x1.555554p-3f);
    p = real_fma_f32(p, r, 0.5f);
    return (r * r) * p;
}

/* y * 2^n where the low 9 bits of `shifted` hold n and the result is a normal number. */
TWINSTEP_HD float real_exp_scale_f32(float y, float shifted) {
    return real_from_bits_f32(real_bits_f32(y) + (real_bits_f32(shifted) << 23));
}

/* ln2 in two parts: n * 0x1.63p-1 is exact. 0x1.8p23 added rounds to an integer in the low bits. */
TWINSTEP_HD float real_exp_f32(float x) {
    float inside = x < -88.0f ? -88.0f : x;
    inside = inside > 89.0f ? 89.0f : inside;
    float shifted = inside * 0x1.715476p+0f + 0x1.8p23f;
    float n = shifted - 0x1.8p23f;
    float r = real_fma_f32(n, 0x1.bd0106p-13f, inside - n * 0x1.63p-1f);
    float y = real_exp_scale_f32(1.0f + (r + real_exp_tail_f32(r)), shifted);
    y = x < -0x1.5d589ep+6f ? 0.0f : y;          /* largest x whose exp is below 2^-126: the next */
    y = x > 0x1.62e42ep+6f ? real_inf_f32() : y; /* largest x whose exp is finite */
    return x == x ? y : x + x;
}

TWINSTEP_HD float real_exp2_f32(float x) {
    float inside = x < -127.0f ? -127.0f : x;
    inside = inside > 129.0f ? 129.0f : inside;
    float shifted = inside + 0x1.8p23f;
    float f = inside - (shifted - 0x1.8p23f); /* exact */
    float r = f * 0x1.62e43p-1f;
    float r_low = real_fma_f32(f, 0x1.62e43p-1f, -r) + f * -0x1.05c61p-29f;
    float y = real_exp_scale_f32(1.0f + (r + (real_exp_tail_f32(r) + r_low)), shifted);
    y = x < -126.0f ? 0.0f : y;
    y = x >= 128.0f ? real_inf_f32() : y;
    return x == x ? y : x + x;
}

/* e^r - 1 - r, |r| <= 0.35: Taylor, 1/k! for k = 2..13; the first term left out is below 2^-57. */
TWINSTEP_HD double real_exp_tail_f64(double r) {
    double p = 0x1.6124613a86d09p-33;
    p = p * r + 0x1.1eed8eff8d898p-29;
    p = p * r + 0x1.ae64567f544e4p-26;
    p = p * r + 0x1.27e4fb7789f5cp-22;
    p = p * r + 0x1.71de3a556c734p-19;
    p = p * r + 0x1.a01a01a01a01ap-16;
    p = p * r + 0x1.a01a01a01a01ap-13;
    p = p * r + 0x1.6c16c16c16c17p-10;
    p = p * r + 0x1.1111111111111p-7;
    p = p * r + 0x1.5555555555555p-5;
    p = p * r + 0x1.5555555555555p-3;
    p = p * r + 0.5;
    return (r * r) * p;
}

/* The exponents of two scales whose product is 2^n, n = the low bits of `shifted` (|n| < 2000), so
 * that y * first * second rounds once where the result is subnormal or overflows. */
TWINSTEP_HD double real_exp_scale_f64(double y, double shifted) {
    uint64_t biased = real_bits_f64(shifted) - 0x4338000000000000u + 2048u; /* n + 2048 */
    uint64_t half = biased >> 1;
    double first = real_from_bits_f64((half - 1u) << 52);
    double second = real_from_bits_f64((biased - half - 1u) << 52);
    return (y * first) * second;
}

/* exp(x + low) for |low| <= ulp(x). ln2 in two parts, the first of 32 bits (fdlibm's split). */
TWINSTEP_HD double real_exp_pair_f64(double x, double low) {
    double inside = x < -1000.0 ? -1000.0 : x;
    inside = inside > 1000.0 ? 1000.0 : inside;
    double shifted = inside * 0x1.71547652b82fep+0 + 0x1.8p52;
    double n = shifted - 0x1.8p52;
    double high = inside - n * 0x1.62e42feep-1; /* exact */
    double rest = low - n * 0x1.a39ef35793c76p-33;
    double r = high + rest;
    double r_low = (high - r) + rest;
    double y = 1.0 + (r + (real_exp_tail_f64(r) + r_low));
    return real_exp_scale_f64(y, shifted);
}

TWINSTEP_HD double real_exp_f64(double x) {
    return real_exp_pair_f64(x, 0.0);
}

TWINSTEP_HD double real_exp2_f64(double x) {
    double inside = x < -1200.0 ? -1200.0 : x;
    inside = inside > 1200.0 ? 1200.0 : inside;
    double shifted = inside + 0x1.8p52;
    double f = inside - (shifted - 0x1.8p52); /* exact */
    double r = f * 0x1.62e42fefa39efp-1;
    double r_low = real_fma_f64(f, 0x1.62e42fefa39efp-1, -r) + f * 0x1.abc9e3b39803fp-56;
    double y = 1.0 + (r + (real_exp_tail_f64(r) + r_low));
    return real_exp_scale_f64(y, shifted);
}

struct real_pair_f64 {
    double high;
    double low;
};

/* expm1 as high + low: 2^n (r + tail) + (2^n - 1), the last sum with its error, all at half size so
 * that n = 1024 is in range. Above 709.8 it overflows as it should; below -40 it rounds to -1. */
TWINSTEP_HD struct real_pair_f64 real_expm1_pair_f64(double x) {
    double inside = x < -40.0 ? -40.0 : x;
    inside = inside > 709.9 ? 709.9 : inside; /* above it: infinity */
    double shifted = inside * 0x1.71547652b82fep+0 + 0x1.8p52;
    double n = shifted - 0x1.8p52;
    double high = inside - n * 0x1.62e42feep-1;
    double rest = -(n * 0x1.a39ef35793c76p-33);
    double r = high + rest;
    double tail = real_exp_tail_f64(r) + ((high - r) + rest);
    double scale = real_from_bits_f64((real_bits_f64(shifted) - 0x4338000000000000u + 1022u) << 52);
    double whole = scale - 0.5;
    double part = scale * r;
    double sum = whole + part;
    double part_seen = sum - whole;
    double error = (whole - (sum - part_seen)) + (part - part_seen);
    double low = error + scale * tail;
    struct real_pair_f64 y;
    y.high = (sum + low) * 2.0;
    y.low = ((sum - 0.5 * y.high) + low) * 2.0;
    int tiny = real_abs_f64(x) < 0x1p-54;
    y.high = tiny ? x : y.high;
    y.low = tiny ? 0.0 : y.low;
    return y;
}

TWINSTEP_HD double real_expm1_f64(double x) {
    return real_expm1_pair_f64(x).high;
}

/* From 1 on 1 - 2/(t + 2) with t = expm1(2|x|); below -t/(t + 2) with t = expm1(-2|x|). The
 * quotient is corrected by its remainder. */
TWINSTEP_HD double real_tanh_f64(double x) {
    double magnitude = real_abs_f64(x);
    int large = magnitude >= 1.0;
    double inside = magnitude > 32.0 ? 32.0 : magnitude;
    struct real_pair_f64 t = real_expm1_pair_f64(large ? 2.0 * inside : -2.0 * inside);
    double numerator = large ? 2.0 : -t.high;
    double numerator_low = large ? 0.0 : -t.low;
    double sum = t.high + 2.0;
    double sum_low = large ? t.low : ((2.0 - sum) + t.high) + t.low;
    double quotient = numerator / sum;
    double left = real_fma_f64(-quotient, sum, numerator);
    quotient = quotient + ((left + numerator_low) - quotient * sum_low) / sum;
    return real_copysign_f64(large ? 1.0 - quotient : quotient, x);
}

/* The rest of f32 through f64: within 0.5001 ulp. */
TWINSTEP_HD float real_expm1_f32(float x) {
    return (float)real_expm1_f64((double)x);
}

TWINSTEP_HD float real_tanh_f32(float x) {
    return (float)real_tanh_f64((double)x);
}

#endif
