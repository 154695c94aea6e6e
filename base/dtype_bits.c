/* SPDX-License-Identifier: Apache-2.0
 * Wide formats have the carrier's own bits, bf16 its upper half. The narrow ones are taken apart by
 * exponent and mantissa. */
#include "base/dtype_bits.h"

#include <math.h>
#include <string.h>

/* The fields of a narrow format below the sign, which is the bit above them. */
struct narrow {
    int exponent, mantissa; /* bits of each field */
    int bias;
    int infinite; /* 1: the highest exponent means infinity and NaN; 0: its last pattern is NaN */
};

static struct narrow narrow_of(enum dtype dtype) {
    if (dtype == DTYPE_F16) return (struct narrow){5, 10, 15, 1};
    if (dtype == DTYPE_E5M2) return (struct narrow){5, 2, 15, 1};
    return (struct narrow){4, 3, 7, 0};
}

static uint64_t ones(int count) {
    return (UINT64_C(1) << count) - 1;
}

static uint64_t narrow_bits(double value, struct narrow f) {
    const uint64_t sign = signbit(value) ? UINT64_C(1) << (f.exponent + f.mantissa) : 0;
    const uint64_t top = ones(f.exponent) << f.mantissa;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & ones(11)) - 1023;
    const uint64_t whole = (bits & ones(52)) | UINT64_C(1) << 52;
    if (isnan(value))
        return sign | top | (f.infinite ? UINT64_C(1) << (f.mantissa - 1) : ones(f.mantissa));
    if (isinf(value)) return sign | top;
    if (value == 0.0) return sign;
    if (exponent > -f.bias)
        return sign | (uint64_t)(exponent + f.bias) << f.mantissa |
               (bits & ones(52)) >> (52 - f.mantissa);
    /* A subnormal number has the exponent 1 - bias and no implicit bit. */
    return sign | whole >> (52 - f.mantissa + 1 - f.bias - exponent);
}

static double power_of_two(int exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double narrow_value(uint64_t bits, struct narrow f) {
    const uint64_t mantissa = bits & ones(f.mantissa);
    const uint64_t exponent = bits >> f.mantissa & ones(f.exponent);
    const double sign = (bits >> (f.exponent + f.mantissa) & 1) != 0 ? -1.0 : 1.0;
    const int top = exponent == ones(f.exponent);
    if (top && (f.infinite ? mantissa != 0 : mantissa == ones(f.mantissa))) return (double)NAN;
    if (top && f.infinite) return sign * (double)INFINITY;
    const double unit = power_of_two((exponent == 0 ? 1 : (int)exponent) - f.bias - f.mantissa);
    const uint64_t implicit = exponent == 0 ? 0 : UINT64_C(1) << f.mantissa;
    return sign * (double)(mantissa | implicit) * unit;
}

uint64_t dtype_bits(const void *values, enum dtype dtype, size_t at) {
    uint64_t wide;
    uint32_t bits;
    if (dtype == DTYPE_F64) {
        memcpy(&wide, (const double *)values + at, sizeof wide);
        return wide;
    }
    memcpy(&bits, (const float *)values + at, sizeof bits);
    if (dtype == DTYPE_BF16) return bits >> 16;
    if (dtype == DTYPE_F32 || dtype == DTYPE_TF32) return bits;
    return narrow_bits((double)((const float *)values)[at], narrow_of(dtype));
}

void dtype_set_bits(void *values, enum dtype dtype, size_t at, uint64_t bits) {
    if (dtype == DTYPE_F64) {
        memcpy((double *)values + at, &bits, sizeof bits);
        return;
    }
    uint32_t carrier = (uint32_t)bits;
    if (dtype == DTYPE_BF16) carrier <<= 16;
    if (dtype == DTYPE_BF16 || dtype == DTYPE_F32 || dtype == DTYPE_TF32)
        memcpy((float *)values + at, &carrier, sizeof carrier);
    else
        ((float *)values)[at] = (float)narrow_value(bits, narrow_of(dtype));
}
