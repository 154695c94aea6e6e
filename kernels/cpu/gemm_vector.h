/* SPDX-License-Identifier: Apache-2.0
 * A vector of accumulators, as wide as the variant's instruction set: 64 bytes in v4, 32 in v3, one
 * number in base. Lanes are different outputs, never terms of one sum.
 *
 * Invariant: vec_fma rounds once per lane, exactly as acc_fma does. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_VECTOR_H
#define TWINSTEP_KERNELS_CPU_GEMM_VECTOR_H

#include <string.h>

#include "base/variant.h"

#if defined(TWINSTEP_ISA_v4) || defined(TWINSTEP_ISA_v3)
#include "base/vector_isa.h"
#endif

#if defined(TWINSTEP_CARRIER_f64) || defined(TWINSTEP_ACCUMULATOR_f32)
#define CARRIER_ACCUMULATES 1 /* carrier and accumulator are one type */
#else
#define CARRIER_ACCUMULATES 0
#endif

#if defined(__clang__)
#define VEC_UNROLL _Pragma("unroll")
#else
#define VEC_UNROLL _Pragma("GCC unroll 16")
#endif

#define VEC_INLINE static inline __attribute__((always_inline))

#if defined(TWINSTEP_ISA_v4)
#define VEC_BYTES 64
#define VEC_FMA_f32 isa_fma_f32_64
#define VEC_FMA_f64 isa_fma_f64_64
#define VEC_WIDEN isa_widen_64
#elif defined(TWINSTEP_ISA_v3)
#define VEC_BYTES 32
#define VEC_FMA_f32 isa_fma_f32_32
#define VEC_FMA_f64 isa_fma_f64_32
#define VEC_WIDEN isa_widen_32
#endif

#if defined(VEC_BYTES)

typedef accumulator vec __attribute__((vector_size(VEC_BYTES)));
#define VEC_LANES (VEC_BYTES / sizeof(accumulator))

VEC_INLINE vec vec_splat(accumulator x) {
    return x - (vec){0}; /* which is x, -0 and NaN too */
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c) {
#if defined(TWINSTEP_ACCUMULATOR_f32)
    return VEC_FMA_f32(a, b, c);
#else
    return VEC_FMA_f64(a, b, c);
#endif
}

/* Loads VEC_LANES elements and converts them, which is exact. */
VEC_INLINE vec vec_widen(const struct stored *source) {
#if CARRIER_ACCUMULATES
    vec v;
    memcpy(&v, stored_numbers(source), sizeof v);
    return v;
#else
    carrier half __attribute__((vector_size(VEC_BYTES / 2)));
    memcpy(&half, stored_numbers(source), sizeof half);
    return VEC_WIDEN(half);
#endif
}

/* Interleaves two vectors: a0 b0 a1 b1 ... of their lower and of their upper halves. */
#if defined(TWINSTEP_ISA_v4) && defined(TWINSTEP_ACCUMULATOR_f32)
#define VEC_ZIP_LOW(a, b)                                                                          \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define VEC_ZIP_HIGH(a, b)                                                                         \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif defined(TWINSTEP_ISA_v4) || defined(TWINSTEP_ACCUMULATOR_f32)
#define VEC_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define VEC_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define VEC_ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define VEC_ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Transposes a square of VEC_LANES rows in place. Each round moves the top bit of the row number
 * into the lane number and back; after log2(lanes) rounds rows and lanes have changed places. */
VEC_INLINE void vec_transpose(vec *rows) {
    VEC_UNROLL
    for (size_t round = 1; round < VEC_LANES; round *= 2) {
        vec next[VEC_LANES];
        VEC_UNROLL
        for (size_t i = 0; i < VEC_LANES / 2; i++) {
            next[2 * i] = VEC_ZIP_LOW(rows[i], rows[i + VEC_LANES / 2]);
            next[2 * i + 1] = VEC_ZIP_HIGH(rows[i], rows[i + VEC_LANES / 2]);
        }
        VEC_UNROLL
        for (size_t i = 0; i < VEC_LANES; i++)
            rows[i] = next[i];
    }
}

#else

typedef accumulator vec;
#define VEC_LANES ((size_t)1)

VEC_INLINE vec vec_splat(accumulator x) {
    return x;
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c) {
    return acc_fma(a, b, c);
}

VEC_INLINE vec vec_widen(const struct stored *source) {
    return (accumulator)stored_load(*source);
}

VEC_INLINE void vec_transpose(vec *rows) {
    (void)rows;
}

#endif

VEC_INLINE vec vec_load(const accumulator *source) {
    vec v;
    memcpy(&v, source, sizeof v);
    return v;
}

VEC_INLINE void vec_store(accumulator *destination, vec v) {
    memcpy(destination, &v, sizeof v);
}

static inline void vec_columns_few(const struct stored *from, size_t from_line, size_t count,
                                   size_t depth, accumulator *to, size_t to_line) {
    for (size_t p = 0; p < depth; p++) {
        for (size_t l = 0; l < VEC_LANES; l++)
            to[p * to_line + l] =
                l < count ? (accumulator)stored_load(from[l * from_line + p]) : ACC(0.0);
    }
}

/* Writes lines as columns, converted exactly: to[p * to_line + l] is number p < depth of line l,
 * which stands at from[l * from_line + p]; +0 for count <= l < VEC_LANES. Squares of numbers change
 * places in registers; the last square overlaps the one before it and writes the same again. */
static inline void vec_columns(const struct stored *from, size_t from_line, size_t count,
                               size_t depth, accumulator *to, size_t to_line) {
    if (depth < VEC_LANES) {
        vec_columns_few(from, from_line, count, depth, to, to_line);
        return;
    }
    for (size_t p = 0; p < depth; p += VEC_LANES) {
        const size_t first = p < depth - VEC_LANES ? p : depth - VEC_LANES;
        vec square[VEC_LANES];
        for (size_t l = 0; l < VEC_LANES; l++)
            square[l] = l < count ? vec_widen(from + l * from_line + first) : vec_splat(0);
        vec_transpose(square);
        for (size_t l = 0; l < VEC_LANES; l++)
            vec_store(to + (first + l) * to_line, square[l]);
    }
}

#endif
