/* SPDX-License-Identifier: Apache-2.0
 * Rounding to the emulated dtypes bf16, f16, tf32, e4m3 and e5m2, from f32 and from f64. This is a
 * part of base/real.h.
 *
 * The result stands in a float whose unused low bits are 0. Ties go to even (tf32: away from zero).
 * Subnormals of the target are kept, overflow gives infinity (e4m3 has none: it gives the largest
 * number), and NaN stays NaN. The _f64 forms round the double once.
 *
 * Normal results: half an ulp of the target (less one if the last bit kept is even) is added to the
 * bits, and the rest is cut off. Subnormal results: adding and subtracting the power of two whose
 * ulp is the target's quantum rounds to a multiple of it. */
#ifndef TWINSTEP_BASE_REAL_ROUND_H
#define TWINSTEP_BASE_REAL_ROUND_H

#include "base/real_basic.h"

TWINSTEP_HD float real_round_bf16_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    uint32_t even = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    uint32_t nan = (bits | 0x00400000u) & 0xffff0000u;
    return real_from_bits_f32(x == x ? even : nan);
}

/* bf16 has the quantum 2^-133 below 2^-126. What rounds to 2^128 becomes infinity in the
 * conversion. */
TWINSTEP_HD float real_round_bf16_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    uint64_t even = (bits + 0x00000fffffffffffu + ((bits >> 45) & 1u)) & 0x7fffe00000000000u;
    double magnitude = real_abs_f64(x);
    double small = (magnitude + 0x1p-81) - 0x1p-81;
    double result = magnitude < 0x1p-126 ? small : real_from_bits_f64(even);
    result = magnitude <= DBL_MAX ? result : x;
    return (float)real_copysign_f64(result, x);
}

/* f16 has the quantum 2^-24 below 2^-14. From 65520 on, half an ulp above the largest number, it
 * rounds to infinity. */
TWINSTEP_HD float real_round_f16_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    float magnitude = real_abs_f32(x);
    float small = (magnitude + 0.5f) - 0.5f;
    float large = real_from_bits_f32((bits + 0x0fffu + ((bits >> 13) & 1u)) & 0x7fffe000u);
    float result = magnitude < 0x1p-14f ? small : large;
    result = magnitude < 65520.0f ? result : real_inf_f32();
    result = real_copysign_f32(result, x);
    return x == x ? result : real_from_bits_f32((bits | 0x00400000u) & 0xffffe000u);
}

TWINSTEP_HD float real_round_f16_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    uint64_t even = (bits + 0x000001ffffffffffu + ((bits >> 42) & 1u)) & 0x7ffffc0000000000u;
    double magnitude = real_abs_f64(x);
    double small = (magnitude + 0x1p28) - 0x1p28;
    double result = magnitude < 0x1p-14 ? small : real_from_bits_f64(even);
    result = magnitude < 65520.0 ? result : real_inf_f64();
    result = x == x ? result : x;
    return (float)real_copysign_f64(result, x);
}

/* Rounds as the PTX instruction cvt.rna.tf32.f32 does: 10 fraction bits, ties away from zero. */
TWINSTEP_HD float real_round_tf32_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    uint32_t away = (bits + 0x1000u) & 0xffffe000u;
    uint32_t nan = (bits | 0x00400000u) & 0xffffe000u;
    return real_from_bits_f32(x == x ? away : nan);
}

/* x as a float, rounded to odd as in real_add_odd_f64, so that a second rounding to tf32 is the
 * only one. */
TWINSTEP_HD float real_round_odd_f32(double x) {
    float nearest = (float)x;
    double error = x - (double)nearest;
    uint32_t bits = real_bits_f32(nearest);
    uint32_t move = (error < 0.0) != (x < 0.0) ? UINT32_MAX : 1u;
    int inexact = (error < 0.0) | (error > 0.0);
    return real_from_bits_f32(bits + ((inexact & (int)(~bits & 1u)) != 0 ? move : 0u));
}

TWINSTEP_HD float real_round_tf32_f64(double x) {
    return real_round_tf32_f32(real_round_odd_f32(x));
}

/* torch.float8_e4m3fn: 4 exponent bits, 3 fraction bits, largest number 448, no infinity, quantum
 * 2^-9 below 2^-6. What lies beyond 448, infinity included, becomes 448 with its sign, as in
 * PyTorch since its pull request 178817 (before it: NaN beyond 464) and in the PTX instruction
 * cvt.rn.satfinite. */
TWINSTEP_HD float real_round_e4m3_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    float magnitude = real_abs_f32(x);
    float small = (magnitude + 0x1p14f) - 0x1p14f;
    float large = real_from_bits_f32((bits + 0x7ffffu + ((bits >> 20) & 1u)) & 0x7ff00000u);
    float result = magnitude < 0x1p-6f ? small : large;
    result = magnitude < 464.0f ? result : 448.0f;
    result = real_copysign_f32(result, x);
    return x == x ? result : real_from_bits_f32((bits | 0x00400000u) & 0xfff00000u);
}

TWINSTEP_HD float real_round_e4m3_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    uint64_t even = (bits + 0x0000ffffffffffffu + ((bits >> 49) & 1u)) & 0x7ffe000000000000u;
    double magnitude = real_abs_f64(x);
    double small = (magnitude + 0x1p43) - 0x1p43;
    double result = magnitude < 0x1p-6 ? small : real_from_bits_f64(even);
    result = magnitude < 464.0 ? result : 448.0;
    result = x == x ? result : x;
    return (float)real_copysign_f64(result, x);
}

/* torch.float8_e5m2: f16 with 2 fraction bits, largest number 57344, quantum 2^-16 below 2^-14.
 * From 61440 on it rounds to infinity. */
TWINSTEP_HD float real_round_e5m2_f32(float x) {
    uint32_t bits = real_bits_f32(x);
    float magnitude = real_abs_f32(x);
    float small = (magnitude + 0x1p7f) - 0x1p7f;
    float large = real_from_bits_f32((bits + 0xfffffu + ((bits >> 21) & 1u)) & 0x7fe00000u);
    float result = magnitude < 0x1p-14f ? small : large;
    result = magnitude < 61440.0f ? result : real_inf_f32();
    result = real_copysign_f32(result, x);
    return x == x ? result : real_from_bits_f32((bits | 0x00400000u) & 0xffe00000u);
}

TWINSTEP_HD float real_round_e5m2_f64(double x) {
    uint64_t bits = real_bits_f64(x);
    uint64_t even = (bits + 0x0001ffffffffffffu + ((bits >> 50) & 1u)) & 0x7ffc000000000000u;
    double magnitude = real_abs_f64(x);
    double small = (magnitude + 0x1p36) - 0x1p36;
    double result = magnitude < 0x1p-14 ? small : real_from_bits_f64(even);
    result = magnitude < 61440.0 ? result : real_inf_f64();
    result = x == x ? result : x;
    return (float)real_copysign_f64(result, x);
}

#endif
