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
#include <immintrin.h>
#define SUM_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
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

SUM_INLINE sum_vector_f32 sum_part_f32_f32(const float *x, size_t count, float pad) {
    __mmask16 mask = (__mmask16)sum_mask(count);
    return (sum_vector_f32)_mm512_mask_loadu_ps(_mm512_set1_ps(pad), mask, x);
}

SUM_INLINE sum_vector_f64 sum_part_f64_f64(const double *x, size_t count, double pad) {
    __mmask8 mask = (__mmask8)sum_mask(count);
    return (sum_vector_f64)_mm512_mask_loadu_pd(_mm512_set1_pd(pad), mask, x);
}

SUM_INLINE sum_vector_f64 sum_part_f32_f64(const float *x, size_t count, double pad) {
    __mmask8 mask = (__mmask8)sum_mask(count);
    __m256 v = _mm256_mask_loadu_ps(_mm256_set1_ps((float)pad), mask, x);
    return (sum_vector_f64)_mm512_cvtps_pd(v);
}

SUM_INLINE sum_vector_f64 sum_load_f32_f64(const float *x) {
    return (sum_vector_f64)_mm512_cvtps_pd(_mm256_loadu_ps(x));
}

SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    return (sum_vector_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    return (sum_vector_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

#else

SUM_INLINE sum_vector_f32 sum_part_f32_f32(const float *x, size_t count, float pad) {
    __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lanes);
    __m256 v = _mm256_maskload_ps(x, mask);
    return (sum_vector_f32)_mm256_blendv_ps(_mm256_set1_ps(pad), v, _mm256_castsi256_ps(mask));
}

SUM_INLINE sum_vector_f64 sum_part_f64_f64(const double *x, size_t count, double pad) {
    __m256i lanes = _mm256_set_epi64x(3, 2, 1, 0);
    __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)count), lanes);
    __m256d v = _mm256_maskload_pd(x, mask);
    return (sum_vector_f64)_mm256_blendv_pd(_mm256_set1_pd(pad), v, _mm256_castsi256_pd(mask));
}

SUM_INLINE sum_vector_f64 sum_part_f32_f64(const float *x, size_t count, double pad) {
    __m128i lanes = _mm_set_epi32(3, 2, 1, 0);
    __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32((int)count), lanes);
    __m128 v = _mm_maskload_ps(x, mask);
    v = _mm_blendv_ps(_mm_set1_ps((float)pad), v, _mm_castsi128_ps(mask));
    return (sum_vector_f64)_mm256_cvtps_pd(v);
}

SUM_INLINE sum_vector_f64 sum_load_f32_f64(const float *x) {
    return (sum_vector_f64)_mm256_cvtps_pd(_mm_loadu_ps(x));
}

SUM_INLINE sum_vector_f32 sum_fma_f32(sum_vector_f32 a, sum_vector_f32 b, sum_vector_f32 c) {
    return (sum_vector_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

SUM_INLINE sum_vector_f64 sum_fma_f64(sum_vector_f64 a, sum_vector_f64 b, sum_vector_f64 c) {
    return (sum_vector_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
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
