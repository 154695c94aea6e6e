/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * The words of tensor cores: a step of a warp's product of 16 x 16 by 16 x 8 numbers of bf16 or
 * f16, f32 sums; loads of its operands from shared memory; copies to shared memory that no register
 * waits for. Everything else of tensor_attention.cu is common code.
 *
 * Which lane has which numbers is NVIDIA's (PTX ISA, "Matrix Fragments for mma.m16n8k16" and
 * "ldmatrix"). With g = lane / 4 and t = lane % 4 * 2, a lane has
 *   of sums (16 x 8)      [0..1] (g, t..t+1), [2..3] (g + 8, t..t+1)
 *   of the left (16 x 16) [0] (g, t..t+1), [1] (g + 8, t..), [2] (g, t + 8..), [3] (g + 8, t + 8..)
 *   of the right (16 x 8) [0] (t..t+1, g), [1] (t + 8.., g)
 * so sums that are rounded and packed in pairs are a left side without moving.
 *
 * On the host its scalar twin has the same numbers in the same lanes. It adds 8 products at a time
 * to the sum in f64, ascending, and rounds to f32 then. Hardware takes as many or more at a time,
 * in an order of its own, and does not round in between either: products that are larger than f32
 * and cancel leave no infinity. What the twin shows is that operands and places are right.
 * Invariant: all 32 lanes come here together. */
#ifndef TWINSTEP_KERNELS_CUDA_TENSOR_H
#define TWINSTEP_KERNELS_CUDA_TENSOR_H

#include "kernels/cuda/port.h"
#include "kernels/cuda/short.h"

#define TENSOR_SIDE 16u /* rows of sums, and terms of a step */
#define TENSOR_PART 8u  /* columns of sums */

/* Starts to copy eight numbers to shared memory, or zeros where `there` is 0. */
GPU_INLINE void tensor_copy(GPU_PARAM uint16_t *to, const uint16_t *from, int there) {
    GPU_COPY_PART16(to, from, there ? 8 * sizeof *to : 0);
}

/* Waits until the thread's own copies are there; other threads see them behind a barrier. */
#define TENSOR_WAIT()                                                                              \
    do {                                                                                           \
        GPU_COPY_COMMIT();                                                                         \
        GPU_COPY_WAIT(0);                                                                          \
    } while (0)

#if defined(__CUDACC__)

#include <cuda_fp16.h>

/* `sum` goes on with left . right. `type` is a constant wherever this is inlined. */
GPU_INLINE void tensor_step(float sum[4], const uint32_t left[4], const uint32_t right[2],
                            enum dtype type) {
#define TENSOR_STEP(name)                                                                          \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "                             \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                   \
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]))
    if (type == DTYPE_F16)
        TENSOR_STEP("f16");
    else
        TENSOR_STEP("bf16");
#undef TENSOR_STEP
}

/* Loads four matrices of 8 x 8 numbers: lanes 0-7 say where the rows of the first stand, 8-15 those
 * of the second, and so on; 16 bytes each. A lane gets (g, t..t+1) of each. */
GPU_INLINE void tensor_load(uint32_t four[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}

/* The same of the transposed matrices: a lane gets (t..t+1, g) of each. */
GPU_INLINE void tensor_load_turned(uint32_t four[4], const uint16_t *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}

/* Rounds two numbers to the type, ties to even; the first stands in the low half. */
GPU_INLINE uint32_t tensor_pack(float first, float second, enum dtype type) {
    uint32_t pair;
    if (type == DTYPE_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

GPU_INLINE float tensor_unpack(uint32_t pair, unsigned which, enum dtype type) {
    if (type == DTYPE_F16)
        return __half2float(__ushort_as_half((unsigned short)(pair >> 16 * which)));
    return __uint_as_float(which == 0 ? pair << 16 : pair & 0xffff0000u);
}

/* The larger of two numbers; one that is NaN is left out. */
GPU_INLINE float tensor_larger(float x, float y) {
    return fmaxf(x, y);
}

/* 2^x by the hardware's unit, with a relative error of 2^-22 at most; where 2^x is below 2^-126 it
 * gives +0, as .ftz flushes subnormal results (PTX ISA, ex2.approx). Its bits are not those
 * of real_exp2_f32, which stands for it where there is no device. */
GPU_INLINE float tensor_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Stores eight numbers in four pairs, or loads and stores two neighbours. */
GPU_INLINE void tensor_put8(uint16_t *to, const uint32_t pairs[4]) {
    *(uint4 *)(void *)to = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}
GPU_INLINE void tensor_put_pair(uint16_t *to, uint32_t pair) {
    *(uint32_t *)(void *)to = pair;
}
GPU_INLINE uint32_t tensor_get_pair(const uint16_t *from) {
    return *(const uint32_t *)(const void *)from;
}
/* A tensor may begin at any number (`noise --ops` moves all of them by one), so these look first.
 */
GPU_INLINE void tensor_put2(float *to, float first, float second) {
    if ((uintptr_t)to % sizeof(float2) == 0) {
        *(float2 *)(void *)to = make_float2(first, second);
        return;
    }
    to[0] = first;
    to[1] = second;
}
GPU_INLINE void tensor_take2(float two[2], const float *from) {
    if ((uintptr_t)from % sizeof(float2) == 0) {
        const float2 both = *(const float2 *)(const void *)from;
        two[0] = both.x;
        two[1] = both.y;
        return;
    }
    two[0] = from[0];
    two[1] = from[1];
}

/* Adds to two neighbours, at a multiple of 8 bytes, that other threads add to: each sum is one
 * addition, whatever instruction makes both. */
GPU_INLINE void tensor_race_add2(float *sums, float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(sums)),
                 "f"(first), "f"(second)
                 : "memory");
#else
    (void)gpu_atomic_add_f32(sums, first);
    (void)gpu_atomic_add_f32(sums + 1, second);
#endif
}

#else

GPU_INLINE float tensor_half(uint64_t pairs, unsigned which, enum dtype type) {
    return short_value((uint16_t)(pairs >> 16 * which), type);
}

GPU_INLINE void tensor_step(GPU_PARAM float sum[4], const uint32_t left[4], const uint32_t right[2],
                            enum dtype type) {
    const uint64_t own[SHIM_GIVEN] = {left[0] | (uint64_t)left[1] << 32,
                                      left[2] | (uint64_t)left[3] << 32,
                                      right[0] | (uint64_t)right[1] << 32};
    const uint64_t(*const all)[SHIM_GIVEN] = shim_gather(gpu, own);
    const unsigned lane = THREAD % GPU_WARP;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned half = i / 2, column = lane % 4 * 2 + i % 2;
        for (unsigned first = 0; first < TENSOR_SIDE; first += 8) {
            double exact = (double)sum[i];
            for (unsigned k = 0; k < 8; k++)
                exact +=
                    (double)tensor_half(all[lane / 4 * 4 + k / 2][first / 8], half * 2 + k % 2,
                                        type) *
                    (double)tensor_half(all[column * 4 + k / 2][2], first / 8 * 2 + k % 2, type);
            sum[i] = (float)exact;
        }
    }
}

/* The line that lane `from` gave. */
GPU_INLINE const uint16_t *tensor_line(const uint64_t all[][SHIM_GIVEN], unsigned from) {
    return (const uint16_t *)(uintptr_t)all[from][0];
}

GPU_INLINE void tensor_load(GPU_PARAM uint32_t four[4], const uint16_t *row) {
    const uint64_t own[SHIM_GIVEN] = {(uintptr_t)row};
    const uint64_t(*const all)[SHIM_GIVEN] = shim_gather(gpu, own);
    const unsigned lane = THREAD % GPU_WARP;
    gpu_aligned(row);
    for (unsigned i = 0; i < 4; i++) {
        const uint16_t *const line = tensor_line(all, i * 8 + lane / 4) + lane % 4 * 2;
        four[i] = line[0] | (uint32_t)line[1] << 16;
    }
}

GPU_INLINE void tensor_load_turned(GPU_PARAM uint32_t four[4], const uint16_t *row) {
    const uint64_t own[SHIM_GIVEN] = {(uintptr_t)row};
    const uint64_t(*const all)[SHIM_GIVEN] = shim_gather(gpu, own);
    const unsigned lane = THREAD % GPU_WARP;
    gpu_aligned(row);
    for (unsigned i = 0; i < 4; i++)
        four[i] = tensor_line(all, i * 8 + lane % 4 * 2)[lane / 4] |
                  (uint32_t)tensor_line(all, i * 8 + lane % 4 * 2 + 1)[lane / 4] << 16;
}

GPU_INLINE float tensor_rounded(float x, enum dtype type) {
    return type == DTYPE_F16 ? real_round_f16_f32(x) : real_round_bf16_f32(x);
}

GPU_INLINE uint32_t tensor_pack(float first, float second, enum dtype type) {
    return short_bits(tensor_rounded(first, type), type) |
           (uint32_t)short_bits(tensor_rounded(second, type), type) << 16;
}

GPU_INLINE float tensor_unpack(uint32_t pair, unsigned which, enum dtype type) {
    return short_value((uint16_t)(pair >> 16 * which), type);
}

GPU_INLINE float tensor_larger(float x, float y) {
    return x > y || y != y ? x : y;
}
GPU_INLINE float tensor_exp2(float x) {
    return real_exp2_f32(x);
}

GPU_INLINE void tensor_put_pair(uint16_t *to, uint32_t pair) {
    to[0] = (uint16_t)pair;
    to[1] = (uint16_t)(pair >> 16);
}
GPU_INLINE uint32_t tensor_get_pair(const uint16_t *from) {
    return from[0] | (uint32_t)from[1] << 16;
}
GPU_INLINE void tensor_put8(uint16_t *to, const uint32_t pairs[4]) {
    gpu_aligned(to);
    for (unsigned i = 0; i < 4; i++)
        tensor_put_pair(to + 2 * i, pairs[i]);
}
GPU_INLINE void tensor_put2(float *to, float first, float second) {
    to[0] = first;
    to[1] = second;
}
GPU_INLINE void tensor_take2(float two[2], const float *from) {
    two[0] = from[0];
    two[1] = from[1];
}

GPU_INLINE void tensor_race_add2(GPU_PARAM float *sums, float first, float second) {
    (void)gpu_atomic_add_f32(GPU_ARG sums, first);
    (void)gpu_atomic_add_f32(GPU_ARG sums + 1, second);
}

#endif

#endif
