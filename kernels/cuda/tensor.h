/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * One step of a tensor core: a warp's 16 x 16 sums go on with a product of 16 x 16 numbers of bf16
 * or f16, f32 sums. Everything else of tensor_attention.cu is common code.
 *
 * On the host its scalar twin: a lane has 8 neighbouring sums of one row; 8 products at a time are
 * a chain of fused steps from +0, ascending, which is added to the sum. Hardware takes as many or
 * more at a time, in an order of its own; what the twin shows is that operands and places are
 * right. Invariant: all 32 lanes come here together; matrices are read from shared memory. */
#ifndef TWINSTEP_KERNELS_CUDA_TENSOR_H
#define TWINSTEP_KERNELS_CUDA_TENSOR_H

#include "kernels/cuda/port.h"
#include "kernels/cuda/short.h"

#define TENSOR_SIDE 16u

/* 16 x 16 numbers in shared memory, in lines that are `pitch` apart, a multiple of 8. `turned`: a
 * line holds a column. */
struct tensor_matrix {
    const uint16_t *at;
    unsigned pitch;
    int turned;
};

GPU_INLINE struct tensor_matrix tensor_matrix_of(const uint16_t *at, unsigned pitch, int turned) {
    struct tensor_matrix matrix;
    matrix.at = at;
    matrix.pitch = pitch;
    matrix.turned = turned;
    return matrix;
}

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> tensor_sum;

GPU_INLINE void tensor_clear(tensor_sum *sum) {
    nvcuda::wmma::fill_fragment(*sum, 0.0f);
}

/* Loads 16 x 16 numbers of bf16 from shared memory. Of load_matrix_sync nvcc 13.0 makes a load with
 * `.shared` for f16 and without it for bf16. ptxas then knows no space of the address: it makes
 * four generic loads and up to four MOVM where one LDSM does (tests/kernels/sass.py looks). */
#define TENSOR_LOAD_BF16(letter, side, line, layout)                                               \
    static __device__ __forceinline__ void tensor_load(                                            \
        nvcuda::wmma::fragment<nvcuda::wmma::side, 16, 16, 16, __nv_bfloat16,                      \
                               nvcuda::wmma::layout> &to,                                          \
        struct tensor_matrix from) {                                                               \
        unsigned *const part = (unsigned *)to.x;                                                   \
        asm volatile("wmma.load." letter ".sync.aligned." line ".m16n16k16.shared.bf16 "           \
                     "{%0, %1, %2, %3}, [%4], %5;"                                                 \
                     : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])                  \
                     : "r"((unsigned)__cvta_generic_to_shared(from.at)), "r"(from.pitch)           \
                     : "memory");                                                                  \
    }
TENSOR_LOAD_BF16("a", matrix_a, "row", row_major)
TENSOR_LOAD_BF16("a", matrix_a, "col", col_major)
TENSOR_LOAD_BF16("b", matrix_b, "row", row_major)
TENSOR_LOAD_BF16("b", matrix_b, "col", col_major)

template <typename fragment>
static __device__ __forceinline__ void tensor_load(fragment &to, struct tensor_matrix from) {
    nvcuda::wmma::load_matrix_sync(to, (const __half *)from.at, from.pitch);
}

template <typename number, typename left_layout, typename right_layout>
static __device__ __forceinline__ void tensor_step(tensor_sum *sum, struct tensor_matrix a,
                                                   struct tensor_matrix b) {
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, number, left_layout> left;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, number, right_layout> right;
    tensor_load(left, a);
    tensor_load(right, b);
    nvcuda::wmma::mma_sync(*sum, left, right, *sum);
}

template <typename number>
static __device__ __forceinline__ void tensor_step_of(tensor_sum *sum, struct tensor_matrix a,
                                                      struct tensor_matrix b) {
    using nvcuda::wmma::col_major;
    using nvcuda::wmma::row_major;
    if (a.turned && b.turned)
        tensor_step<number, col_major, col_major>(sum, a, b);
    else if (a.turned)
        tensor_step<number, col_major, row_major>(sum, a, b);
    else if (b.turned)
        tensor_step<number, row_major, col_major>(sum, a, b);
    else
        tensor_step<number, row_major, row_major>(sum, a, b);
}

/* Adds A . B to `sum`. `type` and `turned` are constants wherever this is inlined. */
GPU_INLINE void tensor_multiply(tensor_sum *sum, struct tensor_matrix a, struct tensor_matrix b,
                                enum dtype type) {
    if (type == DTYPE_F16)
        tensor_step_of<__half>(sum, a, b);
    else
        tensor_step_of<__nv_bfloat16>(sum, a, b);
}

/* Stores the sums to lines of shared memory that are `pitch` apart, a multiple of 4. */
GPU_INLINE void tensor_store(const tensor_sum *sum, float *to, unsigned pitch) {
    nvcuda::wmma::store_matrix_sync(to, *sum, pitch, nvcuda::wmma::mem_row_major);
}

#else

typedef struct tensor_lane {
    float of[8];
} tensor_sum;

GPU_INLINE void tensor_clear(tensor_sum *sum) {
    for (unsigned i = 0; i < 8; i++)
        sum->of[i] = 0.0f;
}

GPU_INLINE float tensor_number(const struct tensor_matrix *matrix, unsigned row, unsigned column,
                               enum dtype type) {
    const unsigned line = matrix->turned ? column : row, place = matrix->turned ? row : column;
    return short_value(matrix->at[line * matrix->pitch + place], type);
}

GPU_INLINE void tensor_multiply(GPU_PARAM tensor_sum *sum, struct tensor_matrix a,
                                struct tensor_matrix b, enum dtype type) {
    const unsigned lane = THREAD % GPU_WARP, row = lane / 2, column = lane % 2 * 8;
    for (unsigned i = 0; i < 8; i++)
        for (unsigned first = 0; first < TENSOR_SIDE; first += 8) {
            float chain = 0.0f;
            for (unsigned t = first; t < first + 8; t++)
                chain = real_fma_f32(tensor_number(&a, row, t, type),
                                     tensor_number(&b, t, column + i, type), chain);
            sum->of[i] += chain;
        }
}

GPU_INLINE void tensor_store(GPU_PARAM const tensor_sum *sum, float *to, unsigned pitch) {
    const unsigned lane = THREAD % GPU_WARP;
    for (unsigned i = 0; i < 8; i++)
        to[lane / 2 * pitch + lane % 2 * 8 + i] = sum->of[i];
}

#endif

#endif
