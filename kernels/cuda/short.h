/* SPDX-License-Identifier: Apache-2.0
 * Numbers of bf16 and f16 as the 16 bits that libraries and tensor cores read, on either side.
 * Invariant: exact. What is converted is a number of the type already. */
#ifndef TWINSTEP_KERNELS_CUDA_SHORT_H
#define TWINSTEP_KERNELS_CUDA_SHORT_H

#include "base/form.h"
#include "base/real.h"

TWINSTEP_HD uint16_t short_bits_f16(float x) {
    const uint32_t bits = real_bits_f32(x), size = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (size >= 0x7f800000u) return (uint16_t)(sign | 0x7c00u | (size > 0x7f800000u ? 0x200u : 0u));
    if (size < 103u << 23) return (uint16_t)sign; /* smaller than half of the least number: 0 */
    if (size >= 113u << 23) return (uint16_t)(sign | ((size >> 13) - (112u << 10)));
    return (uint16_t)(sign | ((size & 0x7fffffu) | 0x800000u) >> (126u - (size >> 23)));
}

TWINSTEP_HD float short_value_f16(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00u) return real_from_bits_f32(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size >= 0x400u) return real_from_bits_f32(sign | ((size << 13) + (112u << 23)));
    return (sign != 0 ? -0x1p-24f : 0x1p-24f) * (float)size;
}

#define SHORT_EACH 8u /* numbers of two bytes that go with a load or a store of 16 */

/* The bits of a number of type bf16 or f16. */
TWINSTEP_HD uint16_t short_bits(float x, enum dtype type) {
    return type == DTYPE_F16 ? short_bits_f16(x) : (uint16_t)(real_bits_f32(x) >> 16);
}

/* Stores two neighbours at an even place of an aligned matrix: one store on a device. */
TWINSTEP_HD void short_put(uint16_t *at, float first, float second, enum dtype type) {
#if defined(__CUDACC__)
    *(uint32_t *)(void *)at =
        (uint32_t)short_bits(second, type) << 16 | (uint32_t)short_bits(first, type);
#else
    at[0] = short_bits(first, type);
    at[1] = short_bits(second, type);
#endif
}

/* Stores eight neighbours at a multiple of 16 bytes: one store on a device. */
TWINSTEP_HD void short_put8(uint16_t *at, const float *from, enum dtype type) {
#if defined(__CUDACC__)
    uint32_t two[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        two[i] = (uint32_t)short_bits(from[2 * i + 1], type) << 16 |
                 (uint32_t)short_bits(from[2 * i], type);
    *(uint4 *)(void *)at = make_uint4(two[0], two[1], two[2], two[3]);
#else
    for (int i = 0; i < 8; i++)
        at[i] = short_bits(from[i], type);
#endif
}

/* Copies eight neighbours between multiples of 16 bytes: a load and a store on a device. */
TWINSTEP_HD void short_copy8(uint16_t *to, const uint16_t *from) {
#if defined(__CUDACC__)
    *(uint4 *)(void *)to = *(const uint4 *)(const void *)from;
#else
    for (int i = 0; i < 8; i++)
        to[i] = from[i];
#endif
}

TWINSTEP_HD float short_value(uint16_t bits, enum dtype type) {
    return type == DTYPE_F16 ? short_value_f16(bits) : real_from_bits_f32((uint32_t)bits << 16);
}

/* Loads eight neighbours from a multiple of 16 bytes, as the carriers that they are (base/form.h):
 * one load on a device. */
TWINSTEP_HD void short_load8(float *to, const uint16_t *from, enum dtype type) {
#if defined(__CUDACC__)
    const uint4 all = *(const uint4 *)(const void *)from;
    const uint32_t two[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint16_t bits = (uint16_t)(two[i / 2] >> 16 * (i % 2));
        to[i] = type == DTYPE_F16 ? form_load_f16(bits) : form_load_bf16(bits);
    }
#else
    for (int i = 0; i < 8; i++)
        to[i] = type == DTYPE_F16 ? form_load_f16(from[i]) : form_load_bf16(from[i]);
#endif
}

/* Stores four carriers at a multiple of 8 bytes, as form_narrow() does: one store on a device. */
TWINSTEP_HD void short_store4(uint16_t *to, const float *from, enum dtype type) {
    uint16_t bits[4];
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int i = 0; i < 4; i++)
        bits[i] = type == DTYPE_F16 ? form_store_f16(from[i]) : form_store_bf16(from[i]);
#if defined(__CUDACC__)
    *(uint2 *)(void *)to =
        make_uint2((uint32_t)bits[1] << 16 | bits[0], (uint32_t)bits[3] << 16 | bits[2]);
#else
    for (int i = 0; i < 4; i++)
        to[i] = bits[i];
#endif
}

/* Stores eight carriers at a multiple of 16 bytes, as form_narrow() does: one store on a device. */
TWINSTEP_HD void short_store8(uint16_t *to, const float *from, enum dtype type) {
    uint16_t bits[8];
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (int i = 0; i < 8; i++)
        bits[i] = type == DTYPE_F16 ? form_store_f16(from[i]) : form_store_bf16(from[i]);
#if defined(__CUDACC__)
    *(uint4 *)(void *)to =
        make_uint4((uint32_t)bits[1] << 16 | bits[0], (uint32_t)bits[3] << 16 | bits[2],
                   (uint32_t)bits[5] << 16 | bits[4], (uint32_t)bits[7] << 16 | bits[6]);
#else
    for (int i = 0; i < 8; i++)
        to[i] = bits[i];
#endif
}

#endif
