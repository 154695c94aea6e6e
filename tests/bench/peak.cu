/* SPDX-License-Identifier: Apache-2.0
 * Measures the largest square bf16 product through cuBLAS in TFLOP/s, on operands that are not zero
 * (zeros need less power, and so run faster). tests/bench/gpu.sh uses it where there is no PyTorch.
 * It prints "peak", a tab, and the figure. The library is opened as the module for devices opens
 * it, so that the program starts anywhere; exit status 2 without it. */
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include "kernels/cuda/library_search.h"

static __global__ void fill(__nv_bfloat16 *x, size_t count, unsigned seed) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned word = ((unsigned)i * 2654435761u + seed) >> 8;
    if (i < count) x[i] = __float2bfloat16((float)word * 0x1p-23f - 1.0f);
}

/* The functions of cuBLAS that are called; cublasGemmEx has several types in C++. */
static decltype(&cublasCreate_v2) create;
static decltype(&cublasDestroy_v2) destroy;
static cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void *, const void *, cudaDataType_t, int,
                                  const void *, cudaDataType_t, int, const void *, void *,
                                  cudaDataType_t, int, cublasComputeType_t, cublasGemmAlgo_t);

template <typename function> static int find(void *library, const char *name, function *out) {
    *out = (function)dlsym(library, name);
    return *out != nullptr;
}

static int open_library(void) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    static const char *const names_lt[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    struct library_search lt, found;
    void *library = library_search(names_lt, 2, nullptr, &lt);
    if (library != nullptr) library = library_search(&names[lt.name], 1, lt.file, &found);
    if (library != nullptr)
        return find(library, "cublasCreate_v2", &create) &&
               find(library, "cublasDestroy_v2", &destroy) &&
               find(library, "cublasGemmEx", &multiply);
    std::fprintf(stderr, "peak: no cuBLAS in %s\n", lt.places);
    return 0;
}

/* Returns the median of ROUNDS timed products of order n; 0 where one fails. */
static double measure(cublasHandle_t handle, int n) {
    enum { ROUNDS = 21, WARM = 3 };
    const size_t count = (size_t)n * n;
    const float one = 1.0f, zero = 0.0f;
    float times[ROUNDS];
    __nv_bfloat16 *m[3] = {nullptr, nullptr, nullptr};
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (unsigned i = 0; i < 3; i++) {
        if (cudaMalloc(&m[i], count * sizeof *m[i]) != cudaSuccess) return 0.0;
        fill<<<(unsigned)((count + 255) / 256), 256>>>(m[i], count, i * 77u);
    }
    for (int round = -WARM; round < ROUNDS; round++) {
        float ms = 0.0f;
        cudaEventRecord(start);
        const cublasStatus_t status = multiply(
            handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, m[0], CUDA_R_16BF, n, m[1],
            CUDA_R_16BF, n, &zero, m[2], CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        cudaEventRecord(stop);
        if (status != CUBLAS_STATUS_SUCCESS || cudaEventSynchronize(stop) != cudaSuccess)
            return 0.0;
        cudaEventElapsedTime(&ms, start, stop);
        if (round < 0) continue;
        int at = round;
        for (; at > 0 && times[at - 1] > ms; at--)
            times[at] = times[at - 1];
        times[at] = ms;
    }
    for (unsigned i = 0; i < 3; i++)
        cudaFree(m[i]);
    return 2e-9 * (double)count * n / (double)times[ROUNDS / 2];
}

int main() {
    cublasHandle_t handle;
    double best = 0.0;
    if (!open_library() || create(&handle) != CUBLAS_STATUS_SUCCESS) return 2;
    for (int n = 8192; n <= 12288; n += 4096) {
        const double rate = measure(handle, n);
        if (rate > best) best = rate;
    }
    std::printf("peak\t%.6g\n", best);
    destroy(handle);
    return best > 0.0 ? 0 : 1;
}
