/* SPDX-License-Identifier: Apache-2.0
 * The only place of CUDA's syntax: kernels in kernels/cuda/ are written in what C11 and CUDA C++
 * have in common, plus the words below. nvcc makes kernels for a device of them; a C compiler makes
 * the same kernels run on the host, thread by thread (tests/shim/, for tests).
 *
 * A kernel gets one struct by value and sees it as `args`. Grids and blocks have one dimension.
 * A function that uses these words takes GPU_PARAM and is called with GPU_ARG in front of the rest.
 * Invariant: no word here moves a bit of what a thread computes. */
#ifndef TWINSTEP_KERNELS_CUDA_PORT_H
#define TWINSTEP_KERNELS_CUDA_PORT_H

#include <stddef.h>
#include <stdint.h>

#define GPU_WARP 32u

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#include "kernels/cuda/limits.h"

#define GPU_INLINE static __device__ __forceinline__
#define GPU_PARAM
#define GPU_ARG

/* Defines a kernel: KERNEL(name, struct x) { ... args->field ... }. KERNEL_BY is the same for
 * blocks of `threads` threads, with registers to spare for `blocks` of them on an SM. */
#define KERNEL(name, type) KERNEL_AS(name, type, __global__)
#define KERNEL_BY(name, type, threads, blocks)                                                     \
    KERNEL_AS(name, type, __global__ __launch_bounds__(threads, blocks))
#define KERNEL_AS(name, type, global)                                                              \
    static __device__ __forceinline__ void name##_thread(const type *args);                        \
    static global void name(const __grid_constant__ type given) {                                  \
        name##_thread(&given);                                                                     \
    }                                                                                              \
    static __device__ __forceinline__ void name##_thread(const type *args)

/* Remembers what is wrong with a launch (module.cu), unless an earlier one waits to be told; wait()
 * tells it. */
void module_tell_launch(const char *kernel, const char *why);

/* Adds to the count of what this host thread has asked of the device (module.cu), and returns it.
 */
uint64_t module_work(unsigned more);

/* Whether a launch is within the limits of every device. One that is not is not started: its
 * numbers cut to 32 bits would be a few blocks, and the rest would silently not run. */
static inline int gpu_may_start(const char *kernel, size_t grid, size_t block,
                                size_t shared_bytes) {
    char text[LIMITS_TEXT];
    if (grid == 0) return 0;
    if (limits_refuse(grid, block, shared_bytes, text)) {
        module_tell_launch(kernel, text);
        return 0;
    }
    module_work(1);
    return 1;
}

/* Looks for what the device itself refused. It is known at once; later it would have no name. */
static inline void gpu_check_start(const char *kernel) {
    const cudaError_t error = cudaPeekAtLastError();
    if (error != cudaSuccess) module_tell_launch(kernel, cudaGetErrorString(error));
}

/* Asks for more shared memory than a kernel has by itself; a refusal is told as one of the launch,
 * which then does not start. */
static inline int gpu_may_share(const char *kernel, const void *function, size_t shared_bytes) {
    if (shared_bytes <= LIMITS_SHARED_UNASKED) return 1;
    const cudaError_t error = cudaFuncSetAttribute(
        function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    if (error != cudaSuccess) module_tell_launch(kernel, cudaGetErrorString(error));
    return error == cudaSuccess;
}

/* Starts `grid` blocks of `block` threads, in order behind what was started before; no blocks are
 * no start. The arguments are copied; what they point to is read when the kernel runs. What goes
 * wrong, a grid that is too large included, is told by the backend's wait(). */
#define LAUNCH(kernel, grid, block, shared_bytes, args_pointer)                                    \
    do {                                                                                           \
        if (!gpu_may_start(#kernel, (grid), (block), (shared_bytes))) break;                       \
        if (!gpu_may_share(#kernel, (const void *)(kernel), (shared_bytes))) break;                \
        kernel<<<(unsigned)(grid), (unsigned)(block), (shared_bytes)>>>(*(args_pointer));          \
        gpu_check_start(#kernel);                                                                  \
    } while (0)

/* The host waits until all that was started has ended. */
#define GPU_WAIT() ((void)module_work(1), (void)cudaDeviceSynchronize())

/* The same, and copies then between the host's memory and the device's, either way round. */
#define GPU_MOVE(to, from, bytes)                                                                  \
    do {                                                                                           \
        module_work(1);                                                                            \
        const cudaError_t moved = cudaMemcpy((to), (from), (bytes), cudaMemcpyDefault);            \
        if (moved != cudaSuccess) module_tell_launch("(a copy)", cudaGetErrorString(moved));       \
    } while (0)

/* Counts what this host thread has asked for: launches, copies, waits, and memory that it took or
 * gave back. A library's products are added by who starts them, with more = 1; 0 only reads. Where
 * the number stands still, nobody has written what the device reads. */
#define GPU_WORK(more) module_work(more)
#define GPU_THREAD_OWN thread_local

/* How many blocks can be at work without sharing a multiprocessor; 1 where that is not known. */
static inline unsigned gpu_multiprocessors(void) {
    int device = 0, count = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return 1;
    return count < 1 ? 1 : (unsigned)count;
}

#define THREAD threadIdx.x
#define THREADS blockDim.x
#define BLOCK blockIdx.x

/* The block's shared memory: as many bytes as LAUNCH said, 32-byte aligned. */
#define SHARED(type, name)                                                                         \
    extern __shared__ __align__(32) unsigned char gpu_shared_bytes[];                              \
    type *const name = (type *)gpu_shared_bytes

/* Stands in front of a loop over a thread's own numbers: if it is not unrolled, they lie in memory
 * and not in registers. */
#define UNROLL _Pragma("unroll")
/* Stands in front of a loop whose body is long, and would be long in each copy. */
#define ROLLED _Pragma("unroll 1")

/* Wait for all threads of the block, or for all lanes of the warp. All of them have to come. */
#define BARRIER() __syncthreads()
#define WARP_BARRIER() __syncwarp()

/* Load and store four neighbours, which lie at a multiple of GPU_ALIGNED bytes in memory. */
#define GPU_ALIGNED 16u
GPU_INLINE void gpu_load4_f32(float *to, const float *memory) {
    const float4 four = *(const float4 *)memory;
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}
GPU_INLINE void gpu_load4_f64(double *to, const double *memory) {
    const double2 low = *(const double2 *)memory, high = *(const double2 *)(memory + 2);
    to[0] = low.x;
    to[1] = low.y;
    to[2] = high.x;
    to[3] = high.y;
}
GPU_INLINE void gpu_store4_f32(float *memory, const float *from) {
    *(float4 *)memory = make_float4(from[0], from[1], from[2], from[3]);
}
GPU_INLINE void gpu_store4_f64(double *memory, const double *from) {
    *(double2 *)memory = make_double2(from[0], from[1]);
    *(double2 *)(memory + 2) = make_double2(from[2], from[3]);
}

/* The same in global memory, by one instruction for f32 and two for f64. nvcc takes a store apart
 * whose numbers come out of branches. */
GPU_INLINE void gpu_put4_f32(float *memory, const float *from) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(memory)),
                 "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3])
                 : "memory");
}
GPU_INLINE void gpu_put4_f64(double *memory, const double *from) {
    asm volatile("st.global.v2.f64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(memory)),
                 "d"(from[0]), "d"(from[1])
                 : "memory");
    asm volatile("st.global.v2.f64 [%0+16], {%1, %2};" ::"l"(__cvta_generic_to_global(memory)),
                 "d"(from[2]), "d"(from[3])
                 : "memory");
}

/* Copies to shared memory for which no register waits. GPU_COPY_ASYNC16 copies 16 bytes between
 * multiples of 16; GPU_COPY_PART16 and GPU_COPY_PART4 fill 16 and 4 bytes, of which they read the
 * first `bytes` (a multiple of 4, also 0) and make the others 0. GPU_COPY_COMMIT closes a group of
 * copies, also one without any. Until GPU_COPY_WAIT(n), which leaves at most the n youngest groups
 * on their way, nobody may touch the place; then the thread sees what it copied, and behind a
 * barrier everybody does. */
#define GPU_COPY_ASYNC16(to_shared, from_memory)                                                   \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(gpu_shared_place(to_shared)),   \
                 "l"(gpu_memory_place(from_memory)))
#define GPU_COPY_PART16(to_shared, from_memory, bytes)                                             \
    asm volatile(                                                                                  \
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(gpu_shared_place(to_shared)),        \
        "l"(gpu_memory_place(from_memory)), "r"((unsigned)(bytes)))
#define GPU_COPY_PART4(to_shared, from_memory, bytes)                                              \
    asm volatile(                                                                                  \
        "cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(gpu_shared_place(to_shared)),         \
        "l"(gpu_memory_place(from_memory)), "r"((unsigned)(bytes)))
#define GPU_COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define GPU_COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
GPU_INLINE unsigned gpu_shared_place(const void *shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}
GPU_INLINE size_t gpu_memory_place(const void *memory) {
    return __cvta_generic_to_global(memory);
}

/* The value that lane (own ^ mask) gave. All 32 lanes have to take part. */
GPU_INLINE float gpu_shuffle_xor_f32(float value, unsigned mask) {
    return __shfl_xor_sync(0xffffffffu, value, (int)mask);
}
GPU_INLINE double gpu_shuffle_xor_f64(double value, unsigned mask) {
    return __shfl_xor_sync(0xffffffffu, value, (int)mask);
}

/* Adds to a sum in memory that other threads add to, and returns what stood there before. */
GPU_INLINE float gpu_atomic_add_f32(float *sum, float term) {
    return atomicAdd(sum, term);
}
GPU_INLINE double gpu_atomic_add_f64(double *sum, double term) {
    return atomicAdd(sum, term);
}
GPU_INLINE uint32_t gpu_atomic_add_u32(uint32_t *sum, uint32_t term) {
    return atomicAdd(sum, term);
}

#elif !defined(GPU_INLINE)
#error "a C compiler takes these words from tests/shim/shim_port.h, put in front with -include"
#endif

#endif
