/* SPDX-License-Identifier: Apache-2.0
 * What a device and its driver can, and what a launch, a wait and a copy cost there: the figures
 * that the design of kernels/cuda/ rests on. Nothing of twinstep runs. Tensors lie in plain device
 * memory and lists in pinned memory that the device reads in place, so those two are measured; of
 * managed memory only what the device says of it is shown.
 *
 * Each line of output is NAME, value, unit and what it is, with tabs between. Bytes of copies
 * within the device are counted twice, read and written; GB are 10^9 bytes. A time is the least of
 * ROUNDS rounds: what the device takes, and not what else happened meanwhile. Part probe of
 * tests/bench/gpu.sh runs it. Exit status 2: no device, or a call failed, which stderr names. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

enum { ROUNDS = 5, LAUNCHES = 1000 };

#define THREADS 256u

#define MIB ((size_t)1 << 20)
#define LARGE (1024 * MIB) /* far more than any cache holds */
#define LIST ((size_t)64 << 10)

/* As large as kernels/cuda/list.h makes arguments: the most is 4096 bytes. */
struct arguments {
    char bytes[4000];
};

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "probe: %s: %s\n", what, cudaGetErrorString(error));
    std::exit(2);
}
#define CHECK(call) check(call, #call)

static void tell(const char *name, double value, const char *unit, const char *what) {
    std::printf("%s\t%.4g\t%s\t%s\n", name, value, unit, what);
}

static void tell_text(const char *name, const char *text, const char *what) {
    std::printf("%s\t%s\t\t%s\n", name, text, what);
}

static double now(void) {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Returns the least seconds of one of `count` repetitions of `work` with the wait behind them. */
template <typename function> static double seconds_of(int count, function work) {
    double least = 1e30;
    work();
    CHECK(cudaDeviceSynchronize());
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        for (int i = 0; i < count; i++)
            work();
        CHECK(cudaDeviceSynchronize());
        least = std::min(least, (now() - start) / count);
    }
    return least;
}

/* ---- kernels ---- */

static __global__ void nothing(void) {
}

static __global__ void with_arguments(const __grid_constant__ struct arguments a, int *out) {
    if (out != nullptr) *out = a.bytes[threadIdx.x];
}

/* Reads and writes every number. */
static __global__ void add_one(float4 *x, size_t count) {
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        float4 v = x[i];
        v.x += 1.0f;
        v.y += 1.0f;
        v.z += 1.0f;
        v.w += 1.0f;
        x[i] = v;
    }
}

/* Reads every number. The sum is kept only where it is a number that it never is. */
static __global__ void read_all(const float4 *x, size_t count, float *out) {
    const size_t step = (size_t)gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const float4 v = x[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == -1.0f) *out = sum;
}

#define CHAIN 4096

/* One chain of fused products, as a sum in mode invariant is: out[0] is its value, cycles[0] what
 * it took. */
static __global__ void chain(float x, float *out, long long *cycles) {
    float sum = x;
    const long long start = clock64();
#pragma unroll 64
    for (int i = 0; i < CHAIN; i++)
        sum = __fmaf_rn(sum, x, x);
    *cycles = clock64() - start;
    *out = sum;
}

/* Eight chains of a thread: as many products as the units for f32 can make. */
static __global__ void products(float x, float *out) {
    float sum[8];
    for (int k = 0; k < 8; k++)
        sum[k] = x + (float)k;
#pragma unroll 8
    for (int i = 0; i < CHAIN; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum[k] = __fmaf_rn(sum[k], x, x);
    }
    float all = 0.0f;
    for (int k = 0; k < 8; k++)
        all += sum[k];
    if (all == -1.0f) *out = all;
}

/* Every thread adds to one of `places` numbers. */
static __global__ void add_atomically(float *x, unsigned places) {
    atomicAdd(&x[(blockIdx.x * blockDim.x + threadIdx.x) % places], 1.0f);
}

/* ---- what the device is ---- */

static void tell_attribute(const char *name, cudaDeviceAttr which, double unit,
                           const char *unit_name, const char *what) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess)
        tell(name, value / unit, unit_name, what);
}

static void tell_device(struct cudaDeviceProp *device) {
    int driver = 0, runtime = 0;
    size_t left = 0, all = 0;
    char text[64];
    CHECK(cudaGetDeviceProperties(device, 0));
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaMemGetInfo(&left, &all));
    tell_text("device", device->name, "");
    std::snprintf(text, sizeof text, "%d.%d", device->major, device->minor);
    tell_text("capability", text, "");
    std::snprintf(text, sizeof text, "%d.%d, %d.%d", driver / 1000, driver % 1000 / 10,
                  runtime / 1000, runtime % 1000 / 10);
    tell_text("versions", text, "CUDA of the driver, of the runtime");
    tell("multiprocessors", device->multiProcessorCount, "", "");
    tell("memory-all", (double)all / 0x1p30, "GiB", "of the device");
    tell("memory-free", (double)left / 0x1p30, "GiB", "as this program starts");
    tell_attribute("l2", cudaDevAttrL2CacheSize, 0x1p20, "MiB", "cache");
    tell_attribute("bus", cudaDevAttrGlobalMemoryBusWidth, 1, "bits", "of the memory");
    tell_attribute("shared-most", cudaDevAttrMaxSharedMemoryPerBlockOptin, 1024, "KiB",
                   "of shared memory that a block may ask for");
    tell_attribute("copy-engines", cudaDevAttrAsyncEngineCount, 1, "", "");
    tell_attribute("host-mapped", cudaDevAttrCanMapHostMemory, 1, "",
                   "1: reads pinned memory in place");
    tell_attribute("pools", cudaDevAttrMemoryPoolsSupported, 1, "", "1: has cudaMallocAsync");
    tell_attribute("cooperative", cudaDevAttrCooperativeLaunch, 1, "",
                   "1: a grid may wait for itself");
    tell_attribute("managed", cudaDevAttrManagedMemory, 1, "", "1: has managed memory");
    tell_attribute("managed-concurrent", cudaDevAttrConcurrentManagedAccess, 1, "",
                   "1: host and device may touch managed memory at once");
    tell_attribute("pageable", cudaDevAttrPageableMemoryAccess, 1, "",
                   "1: reads the host's own memory");
}

/* ---- what it costs ---- */

/* Lets the clocks rise: a device that had nothing to do is slow for a while. */
static void warm_up(void) {
    float *out = nullptr;
    const double start = now();
    CHECK(cudaMalloc((void **)&out, sizeof *out));
    while (now() - start < 0.5) {
        products<<<1024, THREADS>>>(0.5f, out);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaFree(out));
}

static void tell_launches(void) {
    struct arguments a;
    std::memset(&a, 0, sizeof a);
    const auto empty = [] { nothing<<<1, 32>>>(); };
    const auto large = [&a] { with_arguments<<<1, 32>>>(a, nullptr); };
    const auto waited = [] {
        nothing<<<1, 32>>>();
        CHECK(cudaDeviceSynchronize());
    };
    tell("launch", 1e6 * seconds_of(LAUNCHES, empty), "us", "an empty kernel, one behind another");
    tell("launch-arguments", 1e6 * seconds_of(LAUNCHES, large), "us",
         "the same with 4000 bytes of arguments");
    tell("launch-wait", 1e6 * seconds_of(200, waited), "us",
         "an empty kernel, and the wait for it");
    tell("wait", 1e6 * seconds_of(200, [] { CHECK(cudaDeviceSynchronize()); }), "us",
         "a wait for nothing");
    CHECK(cudaGetLastError());
}

/* A graph of LAUNCHES kernels in a row: what a micro-batch would be. */
static void tell_graph(void) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < LAUNCHES; i++)
        nothing<<<1, 32, 0, stream>>>();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&made, graph, 0));
    const double all = seconds_of(1, [=] { CHECK(cudaGraphLaunch(made, stream)); });
    tell("graph-kernel", 1e6 / (double)LAUNCHES * all, "us", "an empty kernel of a graph of 1000");
    CHECK(cudaGraphExecDestroy(made));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
}

/* A list that the host writes and a kernel reads: in pinned memory read in place, and copied. */
static void tell_lists(void) {
    const size_t count = LIST / sizeof(float4);
    void *pinned = nullptr, *mapped = nullptr, *memory = nullptr;
    CHECK(cudaHostAlloc(&pinned, LIST, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    CHECK(cudaMalloc(&memory, LIST));
    std::memset(pinned, 0, LIST);
    CHECK(cudaMemset(memory, 0, LIST));
    const auto in_place = [=] {
        *(volatile float *)pinned = 1.0f;
        add_one<<<16, THREADS>>>((float4 *)mapped, count);
        CHECK(cudaDeviceSynchronize());
    };
    const auto on_device = [=] {
        add_one<<<16, THREADS>>>((float4 *)memory, count);
        CHECK(cudaDeviceSynchronize());
    };
    const auto copied = [=] {
        CHECK(cudaMemcpyAsync(memory, pinned, LIST, cudaMemcpyHostToDevice));
        add_one<<<16, THREADS>>>((float4 *)memory, count);
        CHECK(cudaMemcpyAsync(pinned, memory, LIST, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
    };
    tell("list-device", 1e6 * seconds_of(200, on_device), "us",
         "64 KiB of device memory read and written by a kernel, and the wait");
    tell("list-pinned", 1e6 * seconds_of(200, in_place), "us",
         "the same of pinned memory, in place");
    tell("list-copied", 1e6 * seconds_of(200, copied), "us",
         "the same of device memory, copied there and back");
    tell("result",
         1e6 * seconds_of(200,
                          [=] { CHECK(cudaMemcpy(pinned, memory, 4096, cudaMemcpyDeviceToHost)); }),
         "us", "4 KiB copied to the host");
    CHECK(cudaFree(memory));
    CHECK(cudaFreeHost(pinned));
}

static void tell_rate(const char *name, double bytes, double seconds, const char *what) {
    tell(name, 1e-9 * bytes / seconds, "GB/s", what);
}

static void tell_memory(const struct cudaDeviceProp *device) {
    const unsigned blocks = (unsigned)device->multiProcessorCount * 8;
    const size_t count = LARGE / sizeof(float4);
    void *a = nullptr, *b = nullptr;
    double start = now();
    CHECK(cudaMalloc(&a, LARGE));
    tell("take", 1e3 * (now() - start), "ms", "cudaMalloc of 1 GiB");
    CHECK(cudaMalloc(&b, LARGE));
    tell_rate("fill", LARGE, seconds_of(1, [=] { CHECK(cudaMemsetAsync(a, 0, LARGE)); }),
              "cudaMemset of 1 GiB");
    tell_rate("copy", 2.0 * LARGE,
              seconds_of(1, [=] { CHECK(cudaMemcpyAsync(b, a, LARGE, cudaMemcpyDeviceToDevice)); }),
              "cudaMemcpy of 1 GiB within the device, read and written");
    tell_rate("update", 2.0 * LARGE,
              seconds_of(1, [=] { add_one<<<blocks, THREADS>>>((float4 *)a, count); }),
              "a kernel that adds 1 to 1 GiB, read and written");
    tell_rate("read", LARGE,
              seconds_of(1, [=] { read_all<<<blocks, THREADS>>>((float4 *)a, count, (float *)b); }),
              "a kernel that reads 1 GiB");
    CHECK(cudaGetLastError());
    CHECK(cudaFree(b));
    start = now();
    CHECK(cudaFree(a));
    tell("give", 1e3 * (now() - start), "ms", "cudaFree of 1 GiB");
}

static void tell_host(void) {
    const size_t bytes = 256 * MIB;
    void *memory = nullptr, *pinned = nullptr;
    void *const plain = std::malloc(bytes);
    CHECK(cudaMalloc(&memory, bytes));
    const double start = now();
    CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocMapped));
    tell("take-pinned", 1e3 * (now() - start), "ms", "cudaHostAlloc of 256 MiB");
    if (plain == nullptr) check(cudaErrorMemoryAllocation, "256 MiB of the host");
    std::memset(plain, 1, bytes);
    std::memset(pinned, 1, bytes);
    const auto copies = [=](void *to, const void *from, cudaMemcpyKind kind) {
        return seconds_of(1, [=] { CHECK(cudaMemcpy(to, from, bytes, kind)); });
    };
    tell_rate("to-device", bytes, copies(memory, pinned, cudaMemcpyHostToDevice),
              "256 MiB of pinned memory to the device");
    tell_rate("to-host", bytes, copies(pinned, memory, cudaMemcpyDeviceToHost),
              "256 MiB of the device to pinned memory");
    tell_rate("to-device-plain", bytes, copies(memory, plain, cudaMemcpyHostToDevice),
              "256 MiB of the host's own memory to the device");
    tell_rate("to-host-plain", bytes, copies(plain, memory, cudaMemcpyDeviceToHost),
              "256 MiB of the device to the host's own memory");
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(memory));
    std::free(plain);
}

static void tell_arithmetic(const struct cudaDeviceProp *device) {
    const unsigned blocks = (unsigned)device->multiProcessorCount * 8;
    const unsigned adds = blocks * THREADS;
    float *out = nullptr;
    long long *cycles = nullptr, taken = 0;
    CHECK(cudaMalloc((void **)&out, 4096 * sizeof *out));
    CHECK(cudaMalloc((void **)&cycles, sizeof *cycles));
    CHECK(cudaMemset(out, 0, 4096 * sizeof *out));
    const double all = seconds_of(4, [=] { products<<<blocks, THREADS>>>(0.5f, out); });
    tell("products", 2e-12 * 8.0 * CHAIN * (double)adds / all, "TFLOP/s",
         "fused products in f32, eight chains of a thread");
    chain<<<1, 1>>>(0.5f, out, cycles);
    CHECK(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
    tell("chain", (double)taken / CHAIN, "cycles", "from one fused product of a chain to the next");
    const double one = seconds_of(4, [=] { add_atomically<<<blocks, THREADS>>>(out, 1); });
    const double many = seconds_of(4, [=] { add_atomically<<<blocks, THREADS>>>(out, 4096); });
    tell("atomics-one", 1e-9 * adds / one, "10^9/s", "atomicAdd in f32, all to one number");
    tell("atomics-many", 1e-9 * adds / many, "10^9/s", "atomicAdd in f32, to 4096 numbers in turn");
    CHECK(cudaGetLastError());
    CHECK(cudaFree(cycles));
    CHECK(cudaFree(out));
}

int main(void) {
    struct cudaDeviceProp device;
    const double start = now();
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(nullptr));
    tell("start", 1e3 * (now() - start), "ms", "the runtime's start in this process");
    tell_device(&device);
    warm_up();
    tell_launches();
    tell_graph();
    tell_lists();
    tell_memory(&device);
    tell_host();
    tell_arithmetic(&device);
    return 0;
}
