/* SPDX-License-Identifier: Apache-2.0
 * One table row per number format. */
#include "base/dtype.h"

static const struct {
    const char *name;
    size_t width;
    size_t carrier;
    double epsilon;
} formats[DTYPE_COUNT] = {
    [DTYPE_F32] = {"f32", 4, 4, 0x1p-23},   [DTYPE_F64] = {"f64", 8, 8, 0x1p-52},
    [DTYPE_BF16] = {"bf16", 2, 4, 0x1p-7},  [DTYPE_F16] = {"f16", 2, 4, 0x1p-10},
    [DTYPE_TF32] = {"tf32", 4, 4, 0x1p-10},
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

double dtype_epsilon(enum dtype dtype) {
    return formats[dtype].epsilon;
}
