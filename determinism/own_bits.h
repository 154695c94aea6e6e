/* SPDX-License-Identifier: Apache-2.0
 * The bits of a number in its own format, from the bits of its carrier, exactly. This is the one
 * definition, for the CPU and for a GPU.
 *
 * Every NaN becomes the dtype's positive quiet NaN without payload; -0 stays -0. Nothing is
 * rounded: a carrier that its dtype cannot hold is reported. All arithmetic is on integers. The
 * file is C11 and C++17 alike. */
#ifndef TWINSTEP_DETERMINISM_OWN_BITS_H
#define TWINSTEP_DETERMINISM_OWN_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/macro.h"

#define OWN_QUIET_F32 0x7FC00000u
#define OWN_QUIET_F64 UINT64_C(0x7FF8000000000000)
#define OWN_INFINITE_F32 0x7F800000u
#define OWN_INFINITE_F64 UINT64_C(0x7FF0000000000000)

/* The low bits of the carrier that are zero in every value of the dtype. */
#define OWN_SPARE_F32 0u
#define OWN_SPARE_TF32 0x1FFFu
#define OWN_SPARE_BF16 0xFFFFu

/* The bytes of one number: dtype_width(), for both compilers. */
TWINSTEP_HD size_t own_width(enum dtype dtype) {
    if (dtype == DTYPE_F64) return 8;
    if (dtype == DTYPE_F32 || dtype == DTYPE_TF32) return 4;
    return dtype == DTYPE_BF16 || dtype == DTYPE_F16 ? 2 : 1;
}

TWINSTEP_HD uint32_t own_canonical_f32(uint32_t bits) {
    return (bits & 0x7FFFFFFFu) > OWN_INFINITE_F32 ? OWN_QUIET_F32 : bits;
}

TWINSTEP_HD uint64_t own_bits_f64(uint64_t bits) {
    return (bits & ~(UINT64_C(1) << 63)) > OWN_INFINITE_F64 ? OWN_QUIET_F64 : bits;
}

/* A format of at most 16 bits whose smallest positive number is a normal number of f32. */
struct own_narrow {
    uint32_t fraction;  /* number of fraction bits */
    uint32_t below;     /* the f32 exponent field of the least normal number, less 1 */
    uint32_t magnitude; /* number of bits without the sign */
    uint32_t largest, nan;
    uint32_t infinite; /* 0 if the format has no infinity */
};

/* Converts the bits of an f32 number to the format where that is exact; *fits says whether it
 * was. */
TWINSTEP_HD uint32_t own_narrow_bits(struct own_narrow format, uint32_t bits, int *fits) {
    bits = own_canonical_f32(bits);
    const uint32_t sign = (bits >> 31) << format.magnitude;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t exponent = magnitude >> 23;
    /* the smallest positive number's f32 exponent field */
    const uint32_t quantum = format.below + 1 - format.fraction;
    *fits = 1;
    if (magnitude == 0) return sign;
    if (magnitude > OWN_INFINITE_F32) return format.nan;
    *fits = format.infinite != 0;
    if (magnitude == OWN_INFINITE_F32) return sign | format.infinite;
    *fits = 0;
    if (exponent < quantum) return 0;
    /* whether the number is normal in the format */
    const uint32_t normal = exponent > format.below;
    const uint32_t shift = 23 - format.fraction + (normal ? 0 : format.below + 1 - exponent);
    const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t code =
        normal ? (magnitude - (format.below << 23)) >> shift : significand >> shift;
    *fits = (significand & ((1u << shift) - 1u)) == 0 && code <= format.largest;
    return sign | code;
}

/* Converts the bits of a float carrier to dtype_width(dtype) bytes of own bits, for every dtype but
 * f64. *fits says whether the dtype holds the value. */
TWINSTEP_HD uint32_t own_bits_f32(enum dtype dtype, uint32_t bits, int *fits) {
    const struct own_narrow f16 = {10, 112, 15, 0x7BFF, 0x7E00, 0x7C00};
    const struct own_narrow e4m3 = {3, 120, 7, 0x7E, 0x7F, 0};
    const struct own_narrow e5m2 = {2, 112, 7, 0x7B, 0x7F, 0x7C};
    if (dtype == DTYPE_F16) return own_narrow_bits(f16, bits, fits);
    if (dtype == DTYPE_E4M3) return own_narrow_bits(e4m3, bits, fits);
    if (dtype == DTYPE_E5M2) return own_narrow_bits(e5m2, bits, fits);
    const uint32_t spare = dtype == DTYPE_BF16   ? OWN_SPARE_BF16
                           : dtype == DTYPE_TF32 ? OWN_SPARE_TF32
                                                 : OWN_SPARE_F32;
    bits = own_canonical_f32(bits);
    *fits = (bits & spare) == 0;
    return dtype == DTYPE_BF16 ? bits >> 16 : bits;
}

#endif
