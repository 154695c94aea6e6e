/* SPDX-License-Identifier: Apache-2.0
 * Times attention on tensor cores (kernels/cuda/tensor_attention.cu) by itself, beside which
 * attention_torch.py times PyTorch's on the same shapes. A line has the shape, then milliseconds
 * (median of ROUNDS, CUDA events) and TFLOP/s of the forward, of the backward and of the backward
 * whose dQ races. TFLOP/s counts what a causal attention needs: two products forward and five
 * backward over half of the keys; products that are made again are not counted.
 *
 *   nvcc -arch=sm_90 -std=c++20 --fmad=false -O3 -I. -DTWINSTEP_VARIANT=f32_f32_cuda \
 *     -DTWINSTEP_CARRIER_f32=1 -DTWINSTEP_ACCUMULATOR_f32=1 tests/bench/attention.cu -o attention
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>

#include "kernels/cuda/tensor_attention.cu"

enum { ROUNDS = 11, WARM = 2 };

struct shape {
    uint32_t B, H, G, T, D;
    enum dtype score;
};

static const struct shape shapes[] = {
    {8, 12, 12, 512, 64, DTYPE_F32},   {8, 12, 12, 1024, 64, DTYPE_F32},
    {8, 12, 12, 1024, 64, DTYPE_BF16}, {8, 12, 12, 2048, 64, DTYPE_F32},
    {8, 12, 12, 1024, 128, DTYPE_F32}, {4, 32, 8, 1024, 128, DTYPE_BF16},
};

[[noreturn]] static void fail(const char *what) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(cudaGetLastError()));
    std::exit(1);
}

void module_tell_launch(const char *kernel, const char *why) {
    std::fprintf(stderr, "kernel %s: %s\n", kernel, why);
    std::exit(1);
}

uint64_t module_work(unsigned more) {
    static uint64_t count;
    return count += more;
}

/* Numbers of bf16 between -2 and 2. */
static __global__ void draw(float *x, size_t count, unsigned seed) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word = (unsigned)i * 2654435761u + seed;
    word ^= word >> 15;
    word *= 2246822519u;
    word ^= word >> 13;
    if (i < count) x[i] = __bfloat162float(__float2bfloat16((float)(word >> 8) * 0x1p-22f - 2.0f));
}

static void *take(size_t bytes) {
    void *memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) fail("no memory");
    return memory;
}

static float *drawn(size_t count, unsigned seed) {
    float *const x = (float *)take(count * sizeof *x);
    draw<<<(unsigned)((count + 255) / 256), 256>>>(x, count, seed);
    return x;
}

template <typename work> static float measure(work run) {
    float times[ROUNDS];
    cudaEvent_t start, stop;
    if (cudaEventCreate(&start) != cudaSuccess || cudaEventCreate(&stop) != cudaSuccess)
        fail("no event");
    for (int round = -WARM; round < ROUNDS; round++) {
        float ms = 0.0f;
        cudaEventRecord(start);
        run();
        cudaEventRecord(stop);
        if (cudaEventSynchronize(stop) != cudaSuccess) fail("a kernel");
        cudaEventElapsedTime(&ms, start, stop);
        if (round >= 0) times[round] = ms;
    }
    std::sort(times, times + ROUNDS);
    return times[ROUNDS / 2];
}

static void run(const struct shape &s) {
    static const struct library_mode mode = {.pinned = 1, .ordered = 1};
    static const struct racing racing = {SUM_DQ, 16};
    const struct op_rounding rounding = {DTYPE_BF16, s.score};
    const size_t rows = (size_t)s.B * s.T, q_count = rows * s.H * s.D, k_count = rows * s.G * s.D;
    const double scale = 1.0 / std::sqrt((double)s.D);
    struct op_limits limits = {};
    struct sequence sequences[64];
    for (uint32_t i = 0; i < s.B; i++)
        sequences[i] = {i * s.T, s.T, i, 0};
    limits.rows = (uint32_t)rows;
    limits.H = s.H;
    limits.G = s.G;
    limits.D = s.D;
    limits.library_bytes = 2;
    struct op_call call = {};
    call.compute = DTYPE_BF16;
    call.rounding = &rounding;
    call.library = &mode;
    call.queued = 1;
    call.scratch = take(cuda_scratch_bytes(&limits));
    float *const memory[] = {drawn(q_count, 1), drawn(k_count, 2), drawn(k_count, 3),
                             drawn(q_count, 4), drawn(q_count, 5), drawn(q_count, 6),
                             drawn(k_count, 7), drawn(k_count, 8)};
    struct attention_forward_args forward = {};
    forward.sequences = sequences;
    forward.count = s.B;
    forward.H = s.H;
    forward.G = s.G;
    forward.D = s.D;
    forward.scale = scale;
    forward.q = memory[0];
    forward.k = memory[1];
    forward.v = memory[2];
    forward.out = memory[4];
    struct attention_backward_args backward = {};
    backward.sequences = sequences;
    backward.count = s.B;
    backward.H = s.H;
    backward.G = s.G;
    backward.D = s.D;
    backward.scale = scale;
    backward.q = memory[0];
    backward.k = memory[1];
    backward.v = memory[2];
    backward.dout = memory[3];
    backward.dq = memory[5];
    backward.dk = memory[6];
    backward.dv = memory[7];
    const float first = measure([&] { VARIANT(tensor_attention_forward)(&call, &forward); });
    const float still = measure([&] { VARIANT(tensor_attention_backward)(&call, &backward); });
    call.racing = &racing;
    const float races = measure([&] { VARIANT(tensor_attention_backward)(&call, &backward); });
    const double work = 2e-9 * s.T * s.T * s.D * s.B * s.H;
    std::printf("B %u, H %u, G %u, T %u, D %u, scores %s: forward %.3f ms, %.0f TFLOP/s; backward "
                "%.3f ms, %.0f; racing %.3f ms, %.0f\n",
                s.B, s.H, s.G, s.T, s.D, s.score == DTYPE_F32 ? "f32" : "bf16", first, work / first,
                still, 2.5 * work / still, races, 2.5 * work / races);
    for (float *each : memory)
        cudaFree(each);
    cudaFree(call.scratch);
}

int main() {
    for (const struct shape &s : shapes)
        run(s);
    return 0;
}
