/* SPDX-License-Identifier: Apache-2.0
 * How many values of a dtype lie between two of its values. The values stand on a line in their
 * order, with -0 and +0 in one place and an infinity one step behind the largest number, also where
 * the dtype has none (E4M3). Two NaNs are 0 apart, a NaN and a number INT64_MAX.
 *
 * The file needs no variant and is read by C and by CUDA C++. */
#ifndef TWINSTEP_BASE_RULE_ULP_H
#define TWINSTEP_BASE_RULE_ULP_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/real_basic.h"

/* The position on the line, as a signed integer. `shift` drops the fraction bits that the dtype
 * lacks. */
TWINSTEP_HD int64_t rule_ulp_order_f32(float x, int shift) {
    const uint32_t bits = real_bits_f32(x);
    const int64_t magnitude = (int64_t)(bits & 0x7fffffffu) >> shift;
    return bits >> 31 != 0 ? -magnitude : magnitude;
}

/* The position for a format whose least normal number lies above f32's. Below it the steps are of
 * one quantum, 1 / per_unit. Above it, the format has `cut` fraction bits less than f32, and its
 * exponents are counted from `below`, the f32 exponent field of its least normal number less 1. An
 * infinity of the carrier stands at `infinity`. */
TWINSTEP_HD int64_t rule_ulp_order_short(float x, double least, double per_unit, int cut, int below,
                                         int64_t infinity) {
    const double magnitude = x < 0.0f ? -(double)x : (double)x;
    const int64_t before = (int64_t)below << (23 - cut);
    const int64_t steps = magnitude > 0x1.fffffep127 ? infinity
                          : magnitude < least        ? (int64_t)(uint64_t)(magnitude * per_unit)
                                              : rule_ulp_order_f32((float)magnitude, cut) - before;
    return x < 0.0f ? -steps : steps;
}

TWINSTEP_HD int64_t rule_ulp_order(float x, enum dtype dtype) {
    if (dtype == DTYPE_F16) return rule_ulp_order_short(x, 0x1p-14, 0x1p24, 13, 112, 31 << 10);
    if (dtype == DTYPE_E4M3) return rule_ulp_order_short(x, 0x1p-6, 0x1p9, 20, 120, 127);
    if (dtype == DTYPE_E5M2) return rule_ulp_order_short(x, 0x1p-14, 0x1p16, 21, 112, 31 << 2);
    if (dtype == DTYPE_BF16) return rule_ulp_order_f32(x, 16);
    return rule_ulp_order_f32(x, dtype == DTYPE_TF32 ? 13 : 0);
}

TWINSTEP_HD int64_t rule_ulp_apart(int64_t a, int64_t b) {
    const uint64_t from = (uint64_t)a, to = (uint64_t)b;
    const uint64_t distance = a > b ? from - to : to - from;
    return distance > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)distance;
}

TWINSTEP_HD int64_t rule_ulp_f32(float x, float y, enum dtype dtype) {
    if (x != x || y != y) return (x != x) == (y != y) ? 0 : INT64_MAX;
    return rule_ulp_apart(rule_ulp_order(x, dtype), rule_ulp_order(y, dtype));
}

TWINSTEP_HD int64_t rule_ulp_f64(double x, double y) {
    if (x != x || y != y) return (x != x) == (y != y) ? 0 : INT64_MAX;
    return rule_ulp_apart(real_ordered_f64(x), real_ordered_f64(y));
}

#endif
