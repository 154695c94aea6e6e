/* SPDX-License-Identifier: Apache-2.0
 * Times the kernels of a module that work by rows and by elements, alone, on a device: gradients of
 * norm weights, of biases and of embeddings in each way of adding, element-wise ops, and what is
 * recorded of an update. This is not a test: it prints a table.
 *
 *     nvcc -arch=sm_90 -std=c++20 --extended-lambda -O1 -I . tests/bench/rows.cu -ldl -o bench_rows
 *     bench_rows MODULE
 *
 * A line is what was timed, the median milliseconds between two events, the GB/s of the bytes that
 * it has to read and write at least, and the share of a copy's that this is. A call that does next
 * to nothing ("fill, 4 bytes") says what the events and a launch cost. Operands take turns, so that
 * they come from memory and not from a cache. */
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/backend_abi.h"

constexpr uint32_t TOKENS = 8192, HIDDEN = 768, HEADS = 12, MLP = 3072, VOCAB = 50304, TURNS = 4;
constexpr size_t PARAMETERS = 125000000;
constexpr double GB = 4e-9; /* of one carrier */

static double copy_speed;

__global__ void draw(float *to, size_t count, unsigned seed) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (; i < count; i += (size_t)gridDim.x * blockDim.x) {
        unsigned hash = (unsigned)i * 2654435761u + seed;
        hash ^= hash >> 15;
        hash *= 2246822519u;
        hash ^= hash >> 13;
        /* a number of bf16 in [-1, 1) */
        to[i] = __uint_as_float(__float_as_uint((float)(int)hash * 0x1p-31f) & 0xffff0000u);
    }
}

static void need(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "bench_rows: %s\n", cudaGetErrorString(error));
    exit(1);
}

static float *take(size_t count, unsigned seed) {
    float *memory;
    need(cudaMalloc(&memory, count * sizeof *memory));
    draw<<<1024, 256>>>(memory, count, seed);
    return memory;
}

static uint32_t *put(const std::vector<uint32_t> &list) {
    uint32_t *memory;
    need(cudaMalloc(&memory, list.size() * sizeof *memory));
    need(cudaMemcpy(memory, list.data(), list.size() * sizeof *memory, cudaMemcpyHostToDevice));
    return memory;
}

/* Runs `start` once without timing it, then nine times. */
static void measure(const std::string &name, double gb, const std::function<void(size_t)> &start) {
    cudaEvent_t before, behind;
    std::vector<float> times;
    need(cudaEventCreate(&before));
    need(cudaEventCreate(&behind));
    for (size_t i = 0; i < 10; i++) {
        float time;
        need(cudaEventRecord(before));
        start(i);
        need(cudaEventRecord(behind));
        need(cudaEventSynchronize(behind));
        need(cudaEventElapsedTime(&time, before, behind));
        if (i > 0) times.push_back(time);
    }
    need(cudaGetLastError());
    std::sort(times.begin(), times.end());
    const double speed = gb / times[times.size() / 2] * 1e3;
    if (copy_speed == 0.0) copy_speed = speed;
    printf("%-34s %8.4f ms %6.0f GB/s %4.2f\n", name.c_str(), times[times.size() / 2], speed,
           speed / copy_speed);
}

static struct {
    const struct backend *module;
    op_table ops;
    op_call call;
    row_list rows, heads;
    float *x[TURNS], *dy[TURNS], *z[TURNS], *acc, *table, *statistics, *flat[5];
    uint32_t *uniform, *one, *position;
} bench;

static void measure_sums(const char *way, const library_mode *library, const racing *races) {
    const std::string end = std::string(", ") + way;
    bench.call.library = library;
    bench.call.racing = races;
    const auto norm = [](const row_list &rows, uint32_t C) {
        return [&rows, C](size_t i) {
            const norm_weight_args args = {rows,
                                           C,
                                           NORM_ROUND_BEFORE_WEIGHT,
                                           bench.dy[i % TURNS],
                                           bench.x[i % TURNS],
                                           bench.statistics,
                                           bench.acc,
                                           NORM_BACKWARD_FUSED,
                                           nullptr,
                                           0.0};
            bench.ops.norm_weight(&bench.call, &args);
        };
    };
    const auto embedding = [](const uint32_t *ids) {
        return [ids](size_t i) {
            const embedding_weight_args args = {bench.rows,          VOCAB,    HIDDEN, ids,
                                                bench.dy[i % TURNS], bench.acc};
            bench.ops.embedding_weight(&bench.call, &args);
        };
    };
    measure("norm weight" + end, 2 * GB * TOKENS * HIDDEN, norm(bench.rows, HIDDEN));
    measure("norm weight of heads" + end, 2 * GB * TOKENS * HIDDEN,
            norm(bench.heads, HIDDEN / HEADS));
    measure("embedding, uniform ids" + end, 3 * GB * TOKENS * HIDDEN, embedding(bench.uniform));
    measure("embedding, one id" + end, GB * TOKENS * HIDDEN, embedding(bench.one));
    if (races != nullptr) return; /* biases race through split-K only */
    measure("bias weight" + end, GB * TOKENS * HIDDEN, [](size_t i) {
        const linear_weight_args args = {bench.rows,          HIDDEN,           1,
                                         bench.dy[i % TURNS], bench.statistics, bench.acc};
        bench.ops.linear_weight(&bench.call, &args);
    });
}

static void measure_elements() {
    const op_table &ops = bench.ops;
    measure("add", 3 * GB * TOKENS * HIDDEN, [&](size_t i) {
        const add_args args = {bench.rows, HIDDEN, bench.x[i % TURNS], bench.dy[i % TURNS],
                               bench.z[i % TURNS]};
        ops.add(&bench.call, &args);
    });
    measure("SwiGLU", 3 * GB * TOKENS * MLP, [&](size_t i) {
        const swiglu_forward_args args = {bench.rows, MLP, bench.x[i % TURNS], bench.dy[i % TURNS],
                                          bench.z[i % TURNS]};
        ops.swiglu_forward(&bench.call, &args);
    });
    measure("SwiGLU, backward", 5 * GB * TOKENS * MLP, [&](size_t i) {
        const swiglu_backward_args args = {
            bench.rows,         MLP,           bench.x[i % TURNS], bench.dy[i % TURNS],
            bench.z[i % TURNS], bench.flat[0], bench.flat[1]};
        ops.swiglu_backward(&bench.call, &args);
    });
    measure("rotary", 2 * GB * TOKENS * HIDDEN, [&](size_t i) {
        const rotary_args args = {bench.rows,         HEADS,
                                  HIDDEN / HEADS,     bench.position,
                                  bench.table,        bench.table + 65536,
                                  bench.z[i % TURNS], 0};
        ops.rotary(&bench.call, &args);
    });
    measure("embedding, forward", 2 * GB * TOKENS * HIDDEN, [&](size_t i) {
        const embedding_forward_args args = {bench.rows, HIDDEN, bench.uniform, bench.table,
                                             bench.z[i % TURNS]};
        ops.embedding_forward(&bench.call, &args);
    });
    measure("norm", 2 * GB * TOKENS * HIDDEN, [&](size_t i) {
        const norm_forward_args args = {bench.rows,
                                        HIDDEN,
                                        1e-5,
                                        NORM_ROUND_BEFORE_WEIGHT,
                                        bench.x[i % TURNS],
                                        bench.table,
                                        bench.z[i % TURNS],
                                        bench.statistics};
        ops.norm_forward(&bench.call, &args);
    });
    measure("norm, input gradient", 3 * GB * TOKENS * HIDDEN, [&](size_t i) {
        const norm_input_args args = {bench.rows,
                                      HIDDEN,
                                      NORM_ROUND_BEFORE_WEIGHT,
                                      bench.dy[i % TURNS],
                                      bench.x[i % TURNS],
                                      bench.table,
                                      bench.statistics,
                                      bench.z[i % TURNS],
                                      0,
                                      NORM_BACKWARD_FUSED,
                                      1e-5};
        ops.norm_input(&bench.call, &args);
    });
}

static void measure_parameters() {
    float *const *const flat = bench.flat;
    double *blocks;
    need(cudaMalloc(&blocks, sizeof(run_distances_block) * run_distances_blocks(PARAMETERS)));
    const convert_args convert = {PARAMETERS, DTYPE_F32, DTYPE_BF16, flat[0], flat[1]};
    const scale_args scale = {PARAMETERS, DTYPE_F32, 0.5, flat[2]};
    const close_args close = {PARAMETERS, 1, {flat[0], nullptr}, DTYPE_F32, flat[3]};
    const fill_args zero = {PARAMETERS * sizeof(float), 0, flat[4]}, nothing = {4, 0, flat[4]};
    const squares_args squares = {DTYPE_F32, 1, PARAMETERS, flat[0], nullptr, 0, blocks};
    const update_sizes_args sizes = {DTYPE_F32, PARAMETERS, flat[0],
                                     flat[1],   flat[2],    (update_sizes_block *)blocks};
    const run_distances_args distances = {DTYPE_F32, DTYPE_F32, PARAMETERS,
                                          flat[0],   flat[1],   flat[2],
                                          flat[3],   flat[4],   (run_distances_block *)blocks};
    measure("fill, 4 bytes", 0.0, [&](size_t) { bench.ops.fill(&bench.call, &nothing); });
    measure("fill", GB * PARAMETERS, [&](size_t) { bench.ops.fill(&bench.call, &zero); });
    measure("convert", 2 * GB * PARAMETERS,
            [&](size_t) { bench.ops.convert(&bench.call, &convert); });
    measure("close", 2 * GB * PARAMETERS, [&](size_t) { bench.ops.close(&bench.call, &close); });
    measure("scale", 2 * GB * PARAMETERS, [&](size_t) { bench.ops.scale(&bench.call, &scale); });
    measure("squares", GB * PARAMETERS, [&](size_t) { bench.module->squares(&squares, 1); });
    measure("update sizes", 3 * GB * PARAMETERS,
            [&](size_t) { bench.module->update_sizes(&sizes, 1); });
    measure("distances of two runs", 5 * GB * PARAMETERS,
            [&](size_t) { bench.module->run_distances(&distances, 1); });
}

static void take_operands() {
    std::vector<uint32_t> index(TOKENS * HEADS), ids(TOKENS), position(TOKENS);
    for (uint32_t i = 0; i < TOKENS * HEADS; i++)
        index[i] = i;
    for (uint32_t i = 0, state = 1; i < TOKENS; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (state >> 8) % VOCAB;
        position[i] = i % 512;
    }
    for (uint32_t i = 0; i < TURNS; i++) {
        bench.x[i] = take((size_t)TOKENS * MLP, i);
        bench.dy[i] = take((size_t)TOKENS * MLP, 10 + i);
        bench.z[i] = take((size_t)TOKENS * MLP, 20 + i);
    }
    bench.acc = take((size_t)VOCAB * HIDDEN, 30);
    bench.table = take((size_t)VOCAB * HIDDEN, 31);
    bench.statistics = take((size_t)TOKENS * HEADS, 32);
    for (unsigned i = 0; i < 5; i++)
        bench.flat[i] = take(PARAMETERS, 40 + i);
    bench.rows = {put(index), TOKENS};
    bench.heads = {bench.rows.index, TOKENS * HEADS};
    bench.uniform = put(ids);
    bench.one = put(std::vector<uint32_t>(TOKENS, 7));
    bench.position = put(position);
    const op_limits limits = {
        TOKENS, TOKENS * HEADS, VOCAB, 512, HEADS, HEADS, HIDDEN / HEADS, 1, 0, 0, 0};
    size_t bytes;
    if (bench.module->scratch(&limits, &bytes) != STATUS_OK) exit(1);
    need(cudaMalloc(&bench.call.scratch, bytes));
    need(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    static const op_rounding rounding = {DTYPE_F32, DTYPE_F32};
    static const library_mode library = {1, 1, 0, 0, 0, nullptr};
    static const racing races = {SUM_NORM | SUM_EMBEDDING, 16};
    const op_table *table;
    void *const file = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
    bench.module = file == nullptr ? nullptr : (const backend *)dlsym(file, "twinstep_backend_v1");
    if (bench.module == nullptr || bench.module->ops(DTYPE_F32, DTYPE_F32, &table) != STATUS_OK) {
        const char *const why = argc == 2 && file == nullptr ? dlerror() : "";
        fprintf(stderr, "Usage: bench_rows MODULE\n%s\n", why);
        return 2;
    }
    bench.ops = *table;
    bench.call.compute = DTYPE_F32;
    bench.call.threads = bench.call.queued = 1;
    bench.call.rounding = &rounding;
    take_operands();
    measure("copy", 2 * GB * PARAMETERS, [](size_t) {
        need(cudaMemcpyAsync(bench.flat[1], bench.flat[0], PARAMETERS * sizeof(float),
                             cudaMemcpyDeviceToDevice));
    });
    measure_sums("invariant", nullptr, nullptr);
    measure_sums("deterministic", &library, nullptr);
    measure_sums("atomics", &library, &races);
    bench.call.library = nullptr;
    bench.call.racing = nullptr;
    measure_elements();
    measure_parameters();
    return 0;
}
