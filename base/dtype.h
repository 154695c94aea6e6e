/* SPDX-License-Identifier: Apache-2.0
 * The number formats that a scenario can name, and the C types that carry them.
 *
 * A dtype is emulated exactly: its values are kept in a carrier (double for f64, float for every
 * other dtype), and each operation's result is rounded to the dtype, ties to even (tf32: ties away
 * from zero, as the PTX instruction cvt.rna does). A bf16 tensor, for example, is an array of float
 * whose low 16 bits are zero. Digests hash the dtype's own bytes (dtype_width), never the
 * carrier's. base/real_round.h holds the arithmetic.
 *
 * e4m3 and e5m2 are formats of stored numbers, never of activations. They are torch.float8_e4m3fn
 * and torch.float8_e5m2 without a scale. */
#ifndef TWINSTEP_BASE_DTYPE_H
#define TWINSTEP_BASE_DTYPE_H

#include <stddef.h>

enum dtype {
    DTYPE_F32 = 0,
    DTYPE_F64,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_TF32,
    DTYPE_E4M3,
    DTYPE_E5M2,
    DTYPE_COUNT
};

/* The name as scenarios and traces spell it: "f32", "f64", "bf16", "f16", "tf32", "e4m3",
 * "e5m2". */
const char *dtype_name(enum dtype dtype);

/* Bytes of one element in its own format, in the enum's order: 4, 8, 2, 2, 4, 1, 1. Digests and
 * files use this width. */
size_t dtype_width(enum dtype dtype);

/* Bytes of one element in its carrier: 8 for f64, 4 for every other dtype. */
size_t dtype_carrier(enum dtype dtype);

/* The smallest normal number, in the enum's order: 2^-126, 2^-1022, 2^-126, 2^-14, 2^-126, 2^-6,
 * 2^-14. */
double dtype_smallest(enum dtype dtype);

/* Rounds `value` once to the dtype (base/real_round.h). The switch makes this a function for
 * scalars; loops use DTYPE_SWITCH of base/variant.h. */
double dtype_round(double value, enum dtype dtype);

/* The distance from 1 to the next larger value, in the enum's order: 2^-23, 2^-52, 2^-7, 2^-10,
 * 2^-10, 2^-3, 2^-2. */
double dtype_epsilon(enum dtype dtype);

/* The distance from |value| to the next larger value of the dtype: its epsilon times the largest
 * power of two that is not above |value|. A |value| below the smallest normal number counts as that
 * number, because subnormals are evenly spaced. */
double dtype_spacing(double value, enum dtype dtype);

#endif
