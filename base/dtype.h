/* SPDX-License-Identifier: Apache-2.0
 * The number formats a scenario can name, and their carriers.
 *
 * A dtype is emulated exactly: its values live in a carrier (double for f64, float for every other)
 * and each operation's result is rounded to the dtype, ties to even (tf32: ties away, as cvt.rna).
 * So a bf16 tensor is an array of float whose low 16 bits are zero. Digests hash the dtype's own
 * bytes (dtype_width), never the carrier's. Arithmetic of the rounding: base/real.h.
 *
 * e4m3 and e5m2 are formats of stored numbers, never of activations: torch.float8_e4m3fn and
 * torch.float8_e5m2 without a scale. */
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

/* Names as scenarios and traces spell them: "f32", "f64", "bf16", "f16", "tf32", "e4m3", "e5m2". */
const char *dtype_name(enum dtype dtype);

/* Bytes of one element in its own format: 4, 8, 2, 2, 4, 1, 1. Digests and files use it. */
size_t dtype_width(enum dtype dtype);

/* Bytes of one element in memory: 8 for f64, else 4. */
size_t dtype_carrier(enum dtype dtype);

/* Smallest normal number: 2^-126, 2^-1022, 2^-126, 2^-14, 2^-126, 2^-6, 2^-14. */
double dtype_smallest(enum dtype dtype);

/* `value` rounded once to the dtype (base/real_round.h); for scalars, not for loops. */
double dtype_round(double value, enum dtype dtype);

/* Distance from 1 to the next larger value: 2^-23, 2^-52, 2^-7, 2^-10, 2^-10, 2^-3, 2^-2. */
double dtype_epsilon(enum dtype dtype);

/* Distance from |value| to the next larger value of the dtype: its epsilon times the power of two
 * at or below |value|, which counts as no smaller than the smallest normal number. */
double dtype_spacing(double value, enum dtype dtype);

#endif
