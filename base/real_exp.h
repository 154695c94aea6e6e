/* SPDX-License-Identifier: Apache-2.0
 * exp, exp2, expm1 and tanh for f32 and f64. This is a part of base/real.h.
 *
 * x is written as n ln2 + r with |r| <= ln2/2; e^r is a polynomial, and 2^n is made by exponent
 * bits. There are no tables, and selections take the place of branches, so that loops over these
 * functions vectorise. Errors against MPFR (tests/base/test_real_mpfr.c): exp and exp2 are within 1
 * ulp; in f32 expm1 and tanh are within 0.5001 ulp, in f64 tanh within 1 ulp and expm1 within 1.2.
 * In f32 exp and exp2 return +0 where the result is below 2^-126: they have no subnormal
 * results. */
#ifndef TWINSTEP_BASE_REAL_EXP_H
#define TWINSTEP_BASE_REAL_EXP_H

#include "base/real_basic.h"

/* e^r - 1 - r = r^2 P(r) for |r| <= 0.35. The coefficients are those of expf in the Cephes library
 * (S. Moshier). */
TWINSTEP_HD float real_exp_tail_f32(float r) {
    float p = 0x1.a0d2cep-13f;
    p = real_fma_f32(p, r, 0x1.6e879cp-10f);
    p = real_fma_f32(p, r, 0x1.11121p-7f);
    p = real_fma_f32(p, r, 0x1.555382p-5f);
    p = real_fma_f32(p, r, 0x1.555554p-3f);
    p = real_fma_f32(p, r, 0.5f);
    return (r * r) * p;
}

/* y * 2^n, where the low 9 bits of `shifted` hold n and the result must be a normal number. */
TWINSTEP_HD float real_exp_scale_f32(float y, float shifted) {
    return real_from_bits_f32(real_bits_f32(y) + (real_bits_f32(shifted) << 23));
}

/* Adding 0x1.8p23 rounds to an integer, which then stands in the low bits. ln2 is split into two
 * parts, of which the first, 0x1.63p-1, is so short that its product with n is exact. x is clamped
 * first, so that n fits; results outside the range are put in at the end. */
TWINSTEP_HD float real_exp_f32(float x) {
    float inside = x < -88.0f ? -88.0f : x;
    inside = inside > 89.0f ? 89.0f : inside;
    float shifted = inside * 0x1.715476p+0f + 0x1.8p23f;
    float n = shifted - 0x1.8p23f;
    float r = real_fma_f32(n, 0x1.bd0106p-13f, inside - n * 0x1.63p-1f);
    float y = real_exp_scale_f32(1.0f + (r + real_exp_tail_f32(r)), shifted);
    y = x < -0x1.5d589ep+6f ? 0.0f : y;          /* the largest x whose exp is below 2^-126 */
    y = x > 0x1.62e42ep+6f ? real_inf_f32() : y; /* the largest x whose exp is finite */
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

/* e^r - 1 - r for |r| <= 0.35 by its Taylor series, 1/k! for k = 2 .. 13. The first term left out
 * is below 2^-57. */
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

/* y * 2^n, with n (|n| < 2000) the low bits of `shifted`. 2^n is applied as two factors, because
 * one would not be a double at the ends of the range: then y * first is exact, and only the last
 * product rounds, where the result is subnormal or overflows. */
TWINSTEP_HD double real_exp_scale_f64(double y, double shifted) {
    uint64_t biased = real_bits_f64(shifted) - 0x4338000000000000u + 2048u; /* is n + 2048 */
    uint64_t half = biased >> 1;
    double first = real_from_bits_f64((half - 1u) << 52);
    double second = real_from_bits_f64((biased - half - 1u) << 52);
    return (y * first) * second;
}

/* exp(x + low) for |low| <= ulp(x). ln2 is split as in fdlibm's e_exp.c: its first part has 32
 * bits, so that its product with n is exact. */
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

/* expm1(x) as high + low. It is 2^n (r + tail) + (2^n - 1), where the last sum is made with its
 * error; all is computed at half size, so that n = 1024 is in range. Above 709.8 it overflows as it
 * should; below -40 it rounds to -1. */
TWINSTEP_HD struct real_pair_f64 real_expm1_pair_f64(double x) {
    double inside = x < -40.0 ? -40.0 : x;
    inside = inside > 709.9 ? 709.9 : inside; /* above this the result is infinite */
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

/* tanh |x| is 1 - 2/(t + 2) with t = expm1(2|x|) from 1 on, and -t/(t + 2) with t = expm1(-2|x|)
 * below; each form is the one that does not cancel. The quotient is corrected by its remainder. */
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

/* The remaining f32 functions are computed in f64 and rounded once: within 0.5001 ulp. */
TWINSTEP_HD float real_expm1_f32(float x) {
    return (float)real_expm1_f64((double)x);
}

TWINSTEP_HD float real_tanh_f32(float x) {
    return (float)real_tanh_f64((double)x);
}

#endif
