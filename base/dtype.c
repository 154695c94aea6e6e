/* SPDX-License-Identifier: Apache-2.0
 * The table behind base/dtype.h, with one row for each number format, and scalar rounding. Rounding
 * itself is in base/real_round.h; this file only chooses the function. */
#include "base/dtype.h"

#include "base/real_round.h"

static const struct {
    const char *name;
    size_t width;
    size_t carrier;
    double epsilon;
    double smallest;
} formats[DTYPE_COUNT] = {
    [DTYPE_F32] = {"f32", 4, 4, 0x1p-23, 0x1p-126},
    [DTYPE_F64] = {"f64", 8, 8, 0x1p-52, 0x1p-1022},
    [DTYPE_BF16] = {"bf16", 2, 4, 0x1p-7, 0x1p-126},
    [DTYPE_F16] = {"f16", 2, 4, 0x1p-10, 0x1p-14},
    [DTYPE_TF32] = {"tf32", 4, 4, 0x1p-10, 0x1p-126},
    [DTYPE_E4M3] = {"e4m3", 1, 4, 0x1p-3, 0x1p-6},
    [DTYPE_E5M2] = {"e5m2", 1, 4, 0x1p-2, 0x1p-14},
};

const char *dtype_name(enum dtype dtype) {
    return formats[dtype].name;
}

size_t dtype_width(enum dtype dtype) {
    return formats[dtype].width;
}

size_t dtype_carrier(enum dtype dtype) {
    return formats[dtype].carrier;
}

double dtype_smallest(enum dtype dtype) {
    return formats[dtype].smallest;
}

double dtype_round(double value, enum dtype dtype) {
    switch (dtype) {
    case DTYPE_F64:
        return value;
    case DTYPE_BF16:
        return (double)real_round_bf16_f64(value);
    case DTYPE_F16:
        return (double)real_round_f16_f64(value);
    case DTYPE_TF32:
        return (double)real_round_tf32_f64(value);
    case DTYPE_E4M3:
        return (double)real_round_e4m3_f64(value);
    case DTYPE_E5M2:
        return (double)real_round_e5m2_f64(value);
    default:
        return (double)(float)value;
    }
}

double dtype_epsilon(enum dtype dtype) {
    return formats[dtype].epsilon;
}

double dtype_spacing(double value, enum dtype dtype) {
    const double magnitude = real_abs_f64(value), smallest = formats[dtype].smallest;
    const uint64_t bits = real_bits_f64(magnitude > smallest ? magnitude : smallest);
    return real_from_bits_f64(bits & UINT64_C(0x7FF0000000000000)) * formats[dtype].epsilon;
}
