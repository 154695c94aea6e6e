/* SPDX-License-Identifier: Apache-2.0
 * Bits of numbers, fma, square root, neighbours and distances in ulps, for f32 and f64. This is a
 * part of base/real.h, which says what is promised. */
#ifndef TWINSTEP_BASE_REAL_BASIC_H
#define TWINSTEP_BASE_REAL_BASIC_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "base/macro.h"

#ifdef __cplusplus
static_assert(FLT_EVAL_METHOD == 0, "float and double must be evaluated in their own format");
static_assert(sizeof(float) == 4 && sizeof(double) == 8, "float and double must be IEEE 754");
#else
_Static_assert(FLT_EVAL_METHOD == 0, "float and double must be evaluated in their own format");
_Static_assert(sizeof(float) == 4 && sizeof(double) == 8, "float and double must be IEEE 754");
#endif

/* ---- bits ---- */

TWINSTEP_HD uint32_t real_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TWINSTEP_HD uint64_t real_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TWINSTEP_HD float real_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TWINSTEP_HD double real_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TWINSTEP_HD float real_inf_f32(void) {
    return real_from_bits_f32(0x7f800000u);
}

TWINSTEP_HD double real_inf_f64(void) {
    return real_from_bits_f64(0x7ff0000000000000u);
}

TWINSTEP_HD float real_nan_f32(void) {
    return real_from_bits_f32(0x7fc00000u);
}

TWINSTEP_HD double real_nan_f64(void) {
    return real_from_bits_f64(0x7ff8000000000000u);
}

TWINSTEP_HD float real_abs_f32(float x) {
    return real_from_bits_f32(real_bits_f32(x) & 0x7fffffffu);
}

TWINSTEP_HD double real_abs_f64(double x) {
    return real_from_bits_f64(real_bits_f64(x) & 0x7fffffffffffffffu);
}

/* Returns |magnitude| with the sign bit of `sign`. */
TWINSTEP_HD float real_copysign_f32(float magnitude, float sign) {
    uint32_t s = real_bits_f32(sign) & 0x80000000u;
    return real_from_bits_f32((real_bits_f32(magnitude) & 0x7fffffffu) | s);
}

TWINSTEP_HD double real_copysign_f64(double magnitude, double sign) {
    uint64_t s = real_bits_f64(sign) & 0x8000000000000000u;
    return real_from_bits_f64((real_bits_f64(magnitude) & 0x7fffffffffffffffu) | s);
}

/* Returns 1 for finite numbers and 0 for NaN and the infinities. */
TWINSTEP_HD int real_finite_f32(float x) {
    return (real_bits_f32(x) & 0x7f800000u) != 0x7f800000u;
}

TWINSTEP_HD int real_finite_f64(double x) {
    return (real_bits_f64(x) & 0x7ff0000000000000u) != 0x7ff0000000000000u;
}

/* ---- fma and square root ---- */

/* The sum s of p and c, rounded to odd: if s is not exact and its last bit is even, the neighbour
 * on the side of the exact sum is taken. A later rounding to a format that is at least two bits
 * shorter then gives what rounding the exact sum once would give (Boldo and Melquiond, "Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans.
 * Computers 57(4), 2008). */
TWINSTEP_HD double real_add_odd_f64(double p, double c) {
    double s = p + c;
    double c_part = s - p;
    /* TwoSum (Knuth): exact; NaN if s is not finite */
    double error = (p - (s - c_part)) + (c - c_part);
    uint64_t bits = real_bits_f64(s);
    uint64_t move = ((real_bits_f64(error) ^ bits) >> 63) != 0 ? UINT64_MAX : 1u;
    int inexact = (error < 0.0) | (error > 0.0);
    return real_from_bits_f64(bits + ((inexact & (int)(~bits & 1u)) != 0 ? move : 0u));
}

/* fma for machines without FMA hardware. The product of two floats is exact in double; the sum is
 * rounded to odd, so the conversion rounds once, also to subnormals and to infinity. */
TWINSTEP_HD float real_fma_portable_f32(float a, float b, float c) {
    return (float)real_add_odd_f64((double)a * (double)b, (double)c);
}

TWINSTEP_HD float real_fma_f32(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#elif defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return real_fma_portable_f32(a, b, c);
#endif
}

TWINSTEP_HD double real_fma_f64(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(a, b, c);
#else
    return __builtin_fma(a, b, c);
#endif
}

TWINSTEP_HD float real_sqrt_f32(float x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

TWINSTEP_HD double real_sqrt_f64(double x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
}

/* ---- neighbours and distances ----
 * real_ordered_* map numbers to integers of the same order: -0 and +0 both become 0, and
 * neighbours differ by 1. */

TWINSTEP_HD int64_t real_ordered_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    int64_t magnitude = (int64_t)(bits & 0x7fffffffu);
    return (bits >> 31) != 0 ? -magnitude : magnitude;
}

TWINSTEP_HD int64_t real_ordered_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    int64_t magnitude = (int64_t)(bits & 0x7fffffffffffffffu);
    return (bits >> 63) != 0 ? -magnitude : magnitude;
}

/* The number of steps from a to b. Two NaNs are 0 apart, a NaN and a number UINT64_MAX. */
TWINSTEP_HD uint64_t real_ulp_distance_f32(float a, float b) {
    int64_t i = real_ordered_f32(a);
    int64_t j = real_ordered_f32(b);
    uint64_t distance = i < j ? (uint64_t)j - (uint64_t)i : (uint64_t)i - (uint64_t)j;
    if (a != a || b != b) return (a != a && b != b) ? 0u : UINT64_MAX;
    return distance;
}

TWINSTEP_HD uint64_t real_ulp_distance_f64(double a, double b) {
    int64_t i = real_ordered_f64(a);
    int64_t j = real_ordered_f64(b);
    uint64_t distance = i < j ? (uint64_t)j - (uint64_t)i : (uint64_t)i - (uint64_t)j;
    if (a != a || b != b) return (a != a && b != b) ? 0u : UINT64_MAX;
    return distance;
}

/* The next number above and below x. NaN stays, and so does the infinity that lies ahead, to which
 * the largest finite number steps. Both zeros step to the least subnormal of that sign. */
TWINSTEP_HD float real_next_up_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    if (x != x || bits == 0x7f800000u) return x;
    if ((bits & 0x7fffffffu) == 0) return real_from_bits_f32(1u);
    return real_from_bits_f32((bits >> 31) != 0 ? bits - 1u : bits + 1u);
}

TWINSTEP_HD double real_next_up_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    if (x != x || bits == 0x7ff0000000000000u) return x;
    if ((bits & 0x7fffffffffffffffu) == 0) return real_from_bits_f64(1u);
    return real_from_bits_f64((bits >> 63) != 0 ? bits - 1u : bits + 1u);
}

TWINSTEP_HD float real_next_down_f32(float x) {
    return -real_next_up_f32(-x);
}

TWINSTEP_HD double real_next_down_f64(double x) {
    return -real_next_up_f64(-x);
}

#endif
