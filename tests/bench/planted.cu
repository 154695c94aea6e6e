/* SPDX-License-Identifier: Apache-2.0
 * One fault for each tool of compute-sanitizer, so that it means something when the tool finds
 * nothing elsewhere:
 *
 *     compute-sanitizer --tool TOOL planted TOOL
 *
 * Part sanitize of tests/bench/gpu.sh builds and runs it. The exit status is 2 where there is no
 * such tool or no device. */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

enum { THREADS = 64 };

/* memcheck: the last thread writes beyond the end of the memory. */
static __global__ void beyond(float *memory, size_t count) {
    memory[threadIdx.x + (threadIdx.x == THREADS - 1 ? count : 0)] = 1.0f;
}

/* racecheck: each thread reads what the next one wrote, with no barrier in between. */
static __global__ void race(float *memory) {
    __shared__ float shared[THREADS];
    shared[threadIdx.x] = (float)threadIdx.x;
    memory[threadIdx.x] = shared[(threadIdx.x + 32) % THREADS];
}

/* initcheck: nobody wrote what is read here. */
static __global__ void unwritten(float *memory) {
    memory[threadIdx.x] = memory[THREADS + threadIdx.x] + 1.0f;
}

/* synccheck: only a part of a warp reaches the barrier of all its threads. */
static __global__ void parted(float *memory) {
    if (threadIdx.x % 2 == 0) __syncthreads();
    memory[threadIdx.x] = 1.0f;
}

int main(int argc, char **argv) {
    float *memory = nullptr;
    if (argc != 2 || cudaMalloc(&memory, 2 * THREADS * sizeof(float)) != cudaSuccess) return 2;
    if (std::strcmp(argv[1], "memcheck") == 0)
        beyond<<<1, THREADS>>>(memory, 2 * THREADS);
    else if (std::strcmp(argv[1], "racecheck") == 0)
        race<<<1, THREADS>>>(memory);
    else if (std::strcmp(argv[1], "initcheck") == 0)
        unwritten<<<1, THREADS>>>(memory);
    else if (std::strcmp(argv[1], "synccheck") == 0)
        parted<<<1, THREADS>>>(memory);
    else
        return 2;
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(memory);
    return 0;
}
