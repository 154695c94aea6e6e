/* SPDX-License-Identifier: Apache-2.0
 * What the vectors of sums and products need of AVX-512 and of AVX2 that C with vector types does
 * not say: fused multiply-adds, loads of a part of a vector, and widening, for which gcc 12 makes
 * four instructions of __builtin_convertvector, and clang 14 one. Each is one instruction.
 *
 * They are the compiler's own functions behind <immintrin.h>, where it has them by these names, as
 * gcc and clang do: reading that header takes gcc 0.3 s per file, half of what a small kernel file
 * takes. Any other compiler reads it.
 *
 * isa_fma_TYPE_BYTES(a, b, c): a * b + c, rounded once, in every lane.
 * isa_widen_BYTES(v): numbers of f32 as f64, in a vector of so many bytes.
 * isa_part_TYPE_BYTES(x, pad, mask): lanes of x where the mask says so, pad elsewhere; memory
 * behind the last lane is not touched. With AVX-512 a mask has a bit per lane; with AVX2 it is a
 * vector of integers, all ones or zero, and there is no pad: lanes that are left out are zero. */
#ifndef TWINSTEP_BASE_VECTOR_ISA_H
#define TWINSTEP_BASE_VECTOR_ISA_H

#include <stdint.h>

typedef float isa_f32_16 __attribute__((vector_size(16)));
typedef float isa_f32_32 __attribute__((vector_size(32)));
typedef float isa_f32_64 __attribute__((vector_size(64)));
typedef double isa_f64_32 __attribute__((vector_size(32)));
typedef double isa_f64_64 __attribute__((vector_size(64)));
typedef int32_t isa_i32_16 __attribute__((vector_size(16)));
typedef int32_t isa_i32_32 __attribute__((vector_size(32)));
typedef long long isa_i64_32 __attribute__((vector_size(32)));

#if defined(__has_builtin)
#if defined(__AVX512F__) && defined(__AVX512VL__)
#if __has_builtin(__builtin_ia32_vfmaddps512_mask) &&                                              \
    __has_builtin(__builtin_ia32_vfmaddpd512_mask) &&                                              \
    __has_builtin(__builtin_ia32_loadups512_mask) && __has_builtin(__builtin_ia32_loadupd512_mask)
#define ISA_BUILTIN 1
#endif
#elif __has_builtin(__builtin_ia32_vfmaddps256) && __has_builtin(__builtin_ia32_vfmaddpd256) &&    \
    __has_builtin(__builtin_ia32_maskloadps256) && __has_builtin(__builtin_ia32_maskloadpd256) &&  \
    __has_builtin(__builtin_ia32_maskloadps)
#define ISA_BUILTIN 1
#endif
#endif

#if defined(__AVX512F__) && defined(__AVX512VL__)
#if defined(ISA_BUILTIN)
#if defined(__clang__)
#define ISA_ALL_16 0xffff
#define isa_widen_64(v) __builtin_convertvector(v, isa_f64_64)
#else
#define ISA_ALL_16 (-1) /* this mask has a sign there */
#define isa_widen_64(v) __builtin_ia32_cvtps2pd512_mask(v, (isa_f64_64){0}, -1, 4)
#endif
/* 4: rounded as the control word says, which is to nearest */
#define isa_fma_f32_64(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, ISA_ALL_16, 4)
#define isa_fma_f64_64(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, 0xff, 4)
#define isa_part_f32_64(x, pad, mask) __builtin_ia32_loadups512_mask(x, pad, (uint16_t)(mask))
#define isa_part_f64_64(x, pad, mask) __builtin_ia32_loadupd512_mask(x, pad, (uint8_t)(mask))
#else
#include <immintrin.h>
#define isa_fma_f32_64(a, b, c) ((isa_f32_64)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define isa_fma_f64_64(a, b, c)                                                                    \
    ((isa_f64_64)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define isa_widen_64(v) ((isa_f64_64)_mm512_cvtps_pd((__m256)(v)))
#define isa_part_f32_64(x, pad, mask)                                                              \
    ((isa_f32_64)_mm512_mask_loadu_ps((__m512)(pad), (__mmask16)(mask), x))
#define isa_part_f64_64(x, pad, mask)                                                              \
    ((isa_f64_64)_mm512_mask_loadu_pd((__m512d)(pad), (__mmask8)(mask), x))
#endif
#else
#if defined(ISA_BUILTIN)
#define isa_fma_f32_32(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define isa_fma_f64_32(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#if defined(__clang__)
#define isa_widen_32(v) __builtin_convertvector(v, isa_f64_32)
#else
#define isa_widen_32(v) __builtin_ia32_cvtps2pd256(v)
#endif
#define isa_part_f32_32(x, mask) __builtin_ia32_maskloadps256((const isa_f32_32 *)(x), mask)
#define isa_part_f64_32(x, mask) __builtin_ia32_maskloadpd256((const isa_f64_32 *)(x), mask)
#define isa_part_f32_16(x, mask) __builtin_ia32_maskloadps((const isa_f32_16 *)(x), mask)
#else
#include <immintrin.h>
#define isa_fma_f32_32(a, b, c) ((isa_f32_32)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define isa_fma_f64_32(a, b, c)                                                                    \
    ((isa_f64_32)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define isa_widen_32(v) ((isa_f64_32)_mm256_cvtps_pd((__m128)(v)))
#define isa_part_f32_32(x, mask) ((isa_f32_32)_mm256_maskload_ps(x, (__m256i)(mask)))
#define isa_part_f64_32(x, mask) ((isa_f64_32)_mm256_maskload_pd(x, (__m256i)(mask)))
#define isa_part_f32_16(x, mask) ((isa_f32_16)_mm_maskload_ps(x, (__m128i)(mask)))
#endif
#endif

#endif
