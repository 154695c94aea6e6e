/* SPDX-License-Identifier: Apache-2.0
 * How the numbers of a tensor lie in memory: their dtype, and the bytes of one. A number of bf16
 * or f16 lies in its carrier (base/dtype.h) or in two bytes, which are the dtype's own bits; every
 * other number lies in its carrier (docs/decisions/carriers.md).
 *
 * A form is a struct, so a place that knows a dtype and not the width does not compile where a form
 * is asked for. Invariant: what is widened and narrowed again has the bits that it had, those of
 * NaN included. Narrowing does not round: numbers are those of the dtype already. C11 and C++17. */
#ifndef TWINSTEP_BASE_FORM_H
#define TWINSTEP_BASE_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/real_basic.h"

struct form {
    enum dtype dtype;
    uint32_t width; /* bytes of a number */
};

/* The form of numbers that lie in their carriers. */
TWINSTEP_HD struct form form_carried(enum dtype dtype) {
    const struct form form = {dtype, dtype == DTYPE_F64 ? 8u : 4u};
    return form;
}

/* The form of numbers that lie in their own width, where they may. */
TWINSTEP_HD struct form form_own(enum dtype dtype) {
    const int narrow = dtype == DTYPE_BF16 || dtype == DTYPE_F16;
    const struct form form = {dtype, narrow ? 2u : form_carried(dtype).width};
    return form;
}

/* Whether numbers lie in two bytes. */
TWINSTEP_HD int form_is_narrow(struct form form) {
    return form.width == sizeof(uint16_t);
}

/* Where number `at` lies. A form without numbers has no memory, so NULL stays NULL. */
TWINSTEP_HD const void *form_at(const void *values, struct form form, size_t at) {
    return values == NULL ? NULL : (const unsigned char *)values + at * form.width;
}

TWINSTEP_HD void *form_place(void *values, struct form form, size_t at) {
    return values == NULL ? NULL : (unsigned char *)values + at * form.width;
}

/* ---- one number in two bytes ---- */

TWINSTEP_HD float form_load_bf16(uint16_t bits) {
    return real_from_bits_f32((uint32_t)bits << 16);
}

TWINSTEP_HD uint16_t form_store_bf16(float x) {
    return (uint16_t)(real_bits_f32(x) >> 16);
}

/* A subnormal number is its fraction in units of 2^-24: the fraction is put below the leading bit
 * of 2^-14, which is taken away again exactly. */
TWINSTEP_HD float form_load_f16(uint16_t bits) {
    const uint32_t magnitude = ((uint32_t)bits & 0x7fffu) << 13;
    const uint32_t sign = ((uint32_t)bits & 0x8000u) << 16;
    const uint32_t normal = magnitude + (112u << 23);
    const uint32_t top = magnitude | 0x7f800000u; /* infinity, NaN */
    const float small = real_from_bits_f32(magnitude | 113u << 23) - 0x1p-14f;
    const uint32_t large = magnitude >= 31u << 23 ? top : normal;
    const uint32_t value = magnitude < 1u << 23 ? real_bits_f32(small) : large;
    return real_from_bits_f32(value | sign);
}

/* A subnormal number added to 0.5, whose ulp is 2^-24, leaves its fraction in the lowest bits. */
TWINSTEP_HD uint16_t form_store_f16(float x) {
    const uint32_t bits = real_bits_f32(x), magnitude = bits & 0x7fffffffu;
    const float half = real_from_bits_f32(magnitude < 113u << 23 ? magnitude : 0u) + 0.5f;
    const uint32_t small = real_bits_f32(half) - 0x3f000000u;
    const uint32_t normal = (magnitude - (112u << 23)) >> 13;
    const uint32_t top = 0x7c00u | (magnitude >> 13 & 0x3ffu); /* infinity, NaN */
    const uint32_t large = magnitude >= 0x7f800000u ? top : normal;
    return (uint16_t)((magnitude < 113u << 23 ? small : large) | (bits >> 16 & 0x8000u));
}

/* ---- one number of any form; where that is a constant, loops vectorise ---- */

/* A number of a form other than f64's, as the f32 that it is. */
TWINSTEP_HD float form_get_f32(const void *values, struct form form, size_t at) {
    if (!form_is_narrow(form)) return ((const float *)values)[at];
    const uint16_t bits = ((const uint16_t *)values)[at];
    return form.dtype == DTYPE_BF16 ? form_load_bf16(bits) : form_load_f16(bits);
}

/* Sets a number of a form other than f64's to `rounded`, which its dtype has. */
TWINSTEP_HD void form_set_f32(void *values, struct form form, size_t at, float rounded) {
    if (!form_is_narrow(form))
        ((float *)values)[at] = rounded;
    else
        ((uint16_t *)values)[at] =
            form.dtype == DTYPE_BF16 ? form_store_bf16(rounded) : form_store_f16(rounded);
}

/* Sets a number of f64. */
TWINSTEP_HD void form_set_f64(void *values, size_t at, double number) {
    ((double *)values)[at] = number;
}

/* Sets a number of any form to `rounded`, which its dtype has. */
TWINSTEP_HD void form_set(void *values, struct form form, size_t at, double rounded) {
    if (form.dtype == DTYPE_F64)
        form_set_f64(values, at, rounded);
    else
        form_set_f32(values, form, at, (float)rounded);
}

TWINSTEP_HD double form_get(const void *values, struct form form, size_t at) {
    return form.dtype == DTYPE_F64 ? ((const double *)values)[at]
                                   : (double)form_get_f32(values, form, at);
}

/* ---- many ---- */

/* Writes numbers to `out` as carriers of their dtype. The areas do not overlap. */
void form_widen(const void *values, struct form form, size_t count, void *out_carriers);
/* Writes carriers, whose numbers the dtype has, to `out` in the form. */
void form_narrow(const void *carriers, struct form form, size_t count, void *out_values);

#endif
