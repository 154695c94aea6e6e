/* SPDX-License-Identifier: Apache-2.0
 * The words of kernels/cuda/port.h for a C compiler: with this header in front (-include), the
 * kernels of kernels/cuda/ become functions that the shim runs on the host, thread by thread.
 *
 * port.h says what each word promises. Invariant: no word here changes a bit of what a thread
 * computes. */
#ifndef TWINSTEP_TESTS_SHIM_SHIM_PORT_H
#define TWINSTEP_TESTS_SHIM_SHIM_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "tests/shim/shim.h"

#define GPU_INLINE static inline
#define GPU_PARAM struct gpu *gpu,
#define GPU_ARG gpu,

#define KERNEL_BY(name, type, threads, blocks) KERNEL(name, type)
#define KERNEL(name, type)                                                                         \
    static void name##_thread(struct gpu *gpu, const type *args);                                  \
    static void name(struct gpu *gpu, const void *given) {                                         \
        name##_thread(gpu, (const type *)given);                                                   \
    }                                                                                              \
    static void name##_thread(struct gpu *gpu, const type *args)

#define LAUNCH(kernel, grid, block, shared_bytes, args_pointer)                                    \
    shim_launch(#kernel, kernel, (size_t)(grid), (unsigned)(block), (size_t)(shared_bytes),        \
                (args_pointer), sizeof *(args_pointer))

#define GPU_WAIT() shim_wait()
#define GPU_MOVE(to, from, bytes) shim_move((to), (from), (bytes))
#define GPU_WORK(more) shim_work(more)
#define GPU_THREAD_OWN _Thread_local

#define THREAD (gpu->thread)
#define THREADS (gpu->threads)
#define BLOCK (gpu->block)

#define SHARED(type, name) type *const name = (type *)gpu->shared

#define UNROLL
#define ROLLED

#define BARRIER() shim_barrier(gpu, __LINE__)
#define WARP_BARRIER() shim_warp_barrier(gpu)

#define GPU_ALIGNED 16u
GPU_INLINE void gpu_aligned(const void *memory) {
#if defined(SHIM_WATCHED)
    if ((uintptr_t)memory % GPU_ALIGNED != 0) shim_misaligned();
#else
    (void)memory;
#endif
}
GPU_INLINE void gpu_load4_f32(float *to, const float *memory) {
    gpu_aligned(memory);
    for (int i = 0; i < 4; i++)
        to[i] = memory[i];
}
GPU_INLINE void gpu_load4_f64(double *to, const double *memory) {
    gpu_aligned(memory);
    for (int i = 0; i < 4; i++)
        to[i] = memory[i];
}
GPU_INLINE void gpu_store4_f32(float *memory, const float *from) {
    gpu_aligned(memory);
    for (int i = 0; i < 4; i++)
        memory[i] = from[i];
}
GPU_INLINE void gpu_store4_f64(double *memory, const double *from) {
    gpu_aligned(memory);
    for (int i = 0; i < 4; i++)
        memory[i] = from[i];
}

#define gpu_put4_f32 gpu_store4_f32
#define gpu_put4_f64 gpu_store4_f64

#define GPU_COPY_ASYNC16(to, from) shim_async(gpu, (to), (from), 16, 16)
#define GPU_COPY_PART16(to, from, bytes) shim_async(gpu, (to), (from), 16, (unsigned)(bytes))
#define GPU_COPY_PART4(to, from, bytes) shim_async(gpu, (to), (from), 4, (unsigned)(bytes))
#define GPU_COPY_COMMIT() shim_async_commit(gpu)
#define GPU_COPY_WAIT(n) shim_async_wait(gpu, (n))

GPU_INLINE float gpu_shuffle_xor_f32(GPU_PARAM float value, unsigned mask) {
    return shim_shuffle_f32(gpu, value, mask);
}
GPU_INLINE double gpu_shuffle_xor_f64(GPU_PARAM double value, unsigned mask) {
    return shim_shuffle_f64(gpu, value, mask);
}

GPU_INLINE float gpu_atomic_add_f32(GPU_PARAM float *sum, float term) {
    return shim_atomic_f32(gpu, sum, term);
}
GPU_INLINE double gpu_atomic_add_f64(GPU_PARAM double *sum, double term) {
    return shim_atomic_f64(gpu, sum, term);
}
GPU_INLINE uint32_t gpu_atomic_add_u32(GPU_PARAM uint32_t *sum, uint32_t term) {
    return shim_atomic_u32(gpu, sum, term);
}

#include "kernels/cuda/port.h"

#endif
