/* SPDX-License-Identifier: Apache-2.0
 * The 32 lanes of law 2 as a few vector registers, which are as wide as the instruction set for
 * which this file is compiled. This is a part of base/sum.h.
 *
 * Element j of register r is lane r * (lanes of a register) + j, so the width never shows in the
 * result. In .cu files a register is one number. */
#ifndef TWINSTEP_BASE_SUM_VECTOR_H
#define TWINSTEP_BASE_SUM_VECTOR_H

#include <stddef.h>
#include <string.h>

#include "base/real_basic.h"

#define SUM_LANES 32
#define SUM_BLOCK 4096

#if defined(__CUDACC__)
#define SUM_UNROLL
#define SUM_INLINE TWINSTEP_HD
#elif defined(__clang__)
#define SUM_UNROLL _Pragma("unroll")
#define SUM_INLINE static inline __attribute__((always_inline))
#else
#define SUM_UNROLL _Pragma("GCC unroll 32")
#define SUM_INLINE static inline __attribute__((always_inline))
#endif

#if defined(__CUDACC__)
#define SUM_PLAIN 1
typedef float sum_vector_f32;
typedef double sum_vector_f64;
#else
#if defined(__AVX512F__) && defined(__AVX512VL__)
#include "base/vector_isa.h"
#define SUM_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__)
#include "base/vector_isa.h"
#define SUM_BYTES 32
#else
#define SUM_PLAIN 1
#define SUM_BYTES 16
#endif
typedef float sum_vector_f32 __attribute__((vector_size(SUM_BYTES)));
typedef double sum_vector_f64 __attribute__((vector_size(SUM_BYTES)));
#endif

#define SUM_WIDTH_f32 (sizeof(sum_vector_f32) / sizeof(float))
#define SUM_WIDTH_f64 (sizeof(sum_vector_f64) / sizeof(double))

/* sum_load reads the next numbers of a vector in memory, unaligned, and converts them exactly to
 * accumulators. sum_part reads the first `count` of them and fills up with `pad`; it does not
 * touch what lies behind. sum_fma makes one fma per lane. */

#if defined(SUM_PLAIN)

SUM_INLINE sum_vector_f32 sum_part_f32_f32(const float *x, size_t count, float pad) {
    float padded[SUM_WIDTH_f32];
    sum_vector_f32 v;
    for (size_t l = 0; l < SUM_WIDTH_f32; l++)
        padded[l] = l < count ? x[l] : pad;
    memcpy(&v, padded, sizeof v);
    return v;
}

SUM_INLINE sum_vector_f64 sum_part_f64_f64(const double *x, size_t count, double pad) {
    double padded[SUM_WIDTH_f64];
    sum_vector_f64 v;
    for (size_t l = 0; l < SUM_WIDTH_f64; l++)
        padded[l] = l < count ? x[l] : pad;
    memcpy(&v, padded, sizeof v);
    return v;
}

SUM_INLINE sum_vector_f64 sum_part_f32_f64(const float *x, size_t count, double pad) {
    double padded[SUM_WIDTH_f64];
    sum_vector_f64 v;
    for (size_t l = 0; l < SUM_WIDTH_f64; l++)
        padded[l] = l < count ? (double)x[l] : pad;
    memcpy(&v, padded, sizeof v);
    return v;
}

SUM_INLINE sum_vector_f64 sum_load_f32_f64(const float *x) {
    return sum_part_f32_f64(x, SUM_WIDTH_f64, 0.0);
}

#if defined(__CUDACC__)
SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    return real_fma_f32(a, b, c);
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    return real_fma_f64(a, b, c);
}
#else
SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    for (size_t l = 0; l < SUM_WIDTH_f32; l++)
        c[l] = real_fma_f32(a[l], b[l], c[l]);
    return c;
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    for (size_t l = 0; l < SUM_WIDTH_f64; l++)
        c[l] = real_fma_f64(a[l], b[l], c[l]);
    return c;
}
#endif

#elif SUM_BYTES == 64

SUM_INLINE uint32_t sum_mask(size_t count) {
    return (1u << count) - 1u; /* count is at most 16 */
}

/* x - 0 is x, -0 and NaN too: a number in every lane. */
SUM_INLINE sum_vector_f32 sum_part_f32_f32(const float *x, size_t count, float pad) {
    return isa_part_f32_64(x, pad - (sum_vector_f32){0}, sum_mask(count));
}

SUM_INLINE sum_vector_f64 sum_part_f64_f64(const double *x, size_t count, double pad) {
    return isa_part_f64_64(x, pad - (sum_vector_f64){0}, sum_mask(count));
}

SUM_INLINE sum_vector_f64 sum_part_f32_f64(const float *x, size_t count, double pad) {
    isa_f32_64 v = isa_part_f32_64(x, (float)pad - (isa_f32_64){0}, sum_mask(count));
    isa_f32_32 half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    return isa_widen_64(half);
}

SUM_INLINE sum_vector_f64 sum_load_f32_f64(const float *x) {
    isa_f32_32 v;
    memcpy(&v, x, sizeof v);
    return isa_widen_64(v);
}

SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    return isa_fma_f32_64(a, b, c);
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    return isa_fma_f64_64(a, b, c);
}

#else

/* x - 0 is x, -0 and NaN too: a number in every lane. Lanes that were not loaded are zero, and are
 * filled with the bits of the pad. */
SUM_INLINE sum_vector_f32 sum_part_f32_f32(const float *x, size_t count, float pad) {
    isa_i32_32 mask = (isa_i32_32){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)count - (isa_i32_32){0};
    isa_i32_32 fill = (isa_i32_32)(pad - (sum_vector_f32){0});
    return (sum_vector_f32)((isa_i32_32)isa_part_f32_32(x, mask) | (fill & ~mask));
}

SUM_INLINE sum_vector_f64 sum_part_f64_f64(const double *x, size_t count, double pad) {
    isa_i64_32 mask = (isa_i64_32){0, 1, 2, 3} < (long long)count - (isa_i64_32){0};
    isa_i64_32 fill = (isa_i64_32)(pad - (sum_vector_f64){0});
    return (sum_vector_f64)((isa_i64_32)isa_part_f64_32(x, mask) | (fill & ~mask));
}

SUM_INLINE sum_vector_f64 sum_part_f32_f64(const float *x, size_t count, double pad) {
    isa_i32_16 mask = (isa_i32_16){0, 1, 2, 3} < (int32_t)count - (isa_i32_16){0};
    isa_i32_16 fill = (isa_i32_16)((float)pad - (isa_f32_16){0});
    isa_f32_16 v = (isa_f32_16)((isa_i32_16)isa_part_f32_16(x, mask) | (fill & ~mask));
    return isa_widen_32(v);
}

SUM_INLINE sum_vector_f64 sum_load_f32_f64(const float *x) {
    isa_f32_16 v;
    memcpy(&v, x, sizeof v);
    return isa_widen_32(v);
}

SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    return isa_fma_f32_32(a, b, c);
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    return isa_fma_f64_32(a, b, c);
}

#endif

SUM_INLINE sum_vector_f32 sum_load_f32_f32(const float *x) {
    sum_vector_f32 v;
    memcpy(&v, x, sizeof v);
    return v;
}

SUM_INLINE sum_vector_f64 sum_load_f64_f64(const double *x) {
    sum_vector_f64 v;
    memcpy(&v, x, sizeof v);
    return v;
}

#endif
