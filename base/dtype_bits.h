/* SPDX-License-Identifier: Apache-2.0
 * The bits of a number as its own dtype stores it, which is narrower than the carrier in which it
 * is computed with.
 *
 * The layouts are those of IEEE 754 (f16, f32, f64), bfloat16, and of the OCP 8-bit formats
 * (Micikevicius et al., FP8 formats for deep learning, 2022): e4m3 has no infinity and one pattern
 * of NaN for each sign. Invariant: for every dtype but tf32, which is no format of stored numbers,
 * each pattern of bits is a number, an infinity or NaN, and those that are no NaN come back from
 * their number. */
#ifndef TWINSTEP_BASE_DTYPE_BITS_H
#define TWINSTEP_BASE_DTYPE_BITS_H

#include <stdint.h>

#include "base/dtype.h"

/* The bits of carrier element `at` as `dtype` stores it; a NaN of f16 and fp8 has one pattern. */
uint64_t dtype_bits(const void *values, enum dtype dtype, size_t at);

/* Sets carrier element `at` to the number that has these bits. */
void dtype_set_bits(void *values, enum dtype dtype, size_t at, uint64_t bits);

#endif
