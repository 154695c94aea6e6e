/* SPDX-License-Identifier: Apache-2.0
 * The backend "cuda" as a module: the first device, its memory, its errors. No arithmetic.
 *
 * Tensors lie in the device's own memory (cudaMalloc), which the host never touches; lists and what
 * the host reads of results in pinned memory of the host that the device sees, too (cudaHostAlloc,
 * mapped). No memory is managed: nothing moves but by pull, push and copy.
 *
 * The runtime is linked in and looks for the driver when it is first called, so the module loads on
 * machines without one, and open() says what is missing. */
#define BACKEND_WORD cuda
#include "kernels/cuda/tables.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string.h>

#include "kernels/backend_layout.h"
#include "kernels/cuda/facts.h"
#include "kernels/cuda/library_search.h"
#include "kernels/cuda/trouble.h"

static_assert((int)cudaErrorMemoryAllocation == TROUBLE_MEMORY &&
                  (int)cudaErrorInsufficientDriver == TROUBLE_OLD_DRIVER &&
                  (int)cudaErrorDevicesUnavailable == TROUBLE_BUSY &&
                  (int)cudaErrorNoDevice == TROUBLE_NO_DEVICE &&
                  (int)cudaErrorNoKernelImageForDevice == TROUBLE_NO_CODE &&
                  (int)cudaErrorECCUncorrectable == TROUBLE_ECC &&
                  (int)cudaErrorNvlinkUncorrectable == TROUBLE_LINK &&
                  (int)cudaErrorUnsupportedPtxVersion == TROUBLE_NEW_PTX &&
                  (int)cudaErrorIllegalAddress == TROUBLE_ADDRESS &&
                  (int)cudaErrorLaunchTimeout == TROUBLE_TIMEOUT &&
                  (int)cudaErrorHardwareStackError == TROUBLE_STACK &&
                  (int)cudaErrorLaunchFailure == TROUBLE_LAUNCH &&
                  (int)cudaErrorSystemNotReady == TROUBLE_NOT_READY &&
                  (int)cudaErrorSystemDriverMismatch == TROUBLE_MISMATCH,
              "the numbers of kernels/cuda/trouble.h are CUDA's");

/* Fails with what the runtime says. The runtime's error is taken, so that wait() does not tell it
 * again as that of a launch. */
static enum status module_fail(const char *what, cudaError_t error) {
    (void)cudaGetLastError();
    return trouble_fail(what, error, cudaGetErrorString(error));
}

static enum status module_open_device(void) {
    int driver = 0, runtime = 0, devices = 0, one_space = 0, major = 0;
    char versions[64];
    cudaRuntimeGetVersion(&runtime);
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        FAIL(STATUS_UNSUPPORTED,
             "cuda: no NVIDIA driver on this machine; expected one for CUDA %d.%d", runtime / 1000,
             runtime % 1000 / 10);
    const cudaError_t error = cudaGetDeviceCount(&devices);
    snprintf(versions, sizeof versions, "driver %d.%d, runtime %d.%d", driver / 1000,
             driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error != cudaSuccess || devices == 0)
        return trouble_no_device(
            error, error == cudaSuccess ? "none was found" : cudaGetErrorString(error), versions,
            variable_devices());
    /* one space of addresses: a device sees mapped memory where the host sees it */
    cudaDeviceGetAttribute(&one_space, cudaDevAttrUnifiedAddressing, 0);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (major < 8 || !one_space)
        FAIL(STATUS_UNSUPPORTED,
             "cuda: expected a device of compute capability 8.0 or later with unified addressing, "
             "got capability %d.x %s it; CUDA_VISIBLE_DEVICES chooses another",
             major, one_space ? "with" : "without");
    const cudaError_t set = cudaSetDevice(0);
    return set == cudaSuccess ? STATUS_OK : module_fail("device 0", set);
}

static void module_add_version(struct facts *facts, const char *name, int version) {
    if (version > 0) facts_add(facts, name, "%d.%d", version / 1000, version % 1000 / 10);
}

static void module_add_attribute(struct facts *facts, const char *name, cudaDeviceAttr which,
                                 int divisor) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess && value > 0)
        facts_add(facts, name, "%d", value / divisor);
}

/* Facts that only the management library knows. It is not needed and not linked: without it these
 * facts are left out. Declarations are as in nvml.h. */
struct module_nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver)(char *, unsigned);
    int (*find)(const char *, void **);
    int (*clock)(void *, int, unsigned *);
    int (*most)(void *, int, unsigned *);
};
#define NVML_CLOCK_OF_SM 1
#define NVML_CLOCK_OF_MEMORY 2

template <typename function>
static int module_symbol(void *library, const char *name, function *out) {
    *out = (function)dlsym(library, name);
    return *out != nullptr;
}

static int module_open_nvml(struct module_nvml *nvml) {
    static const char *const name = "libnvidia-ml.so.1";
    struct library_search found;
    nvml->library = library_search(&name, 1, nullptr, &found);
    if (nvml->library == nullptr) return 0;
    if (module_symbol(nvml->library, "nvmlInit_v2", &nvml->init) &&
        module_symbol(nvml->library, "nvmlShutdown", &nvml->shutdown) &&
        module_symbol(nvml->library, "nvmlSystemGetDriverVersion", &nvml->driver) &&
        module_symbol(nvml->library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->find) &&
        module_symbol(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock) &&
        module_symbol(nvml->library, "nvmlDeviceGetMaxClockInfo", &nvml->most) && nvml->init() == 0)
        return 1;
    dlclose(nvml->library);
    return 0;
}

static void module_add_clock(struct facts *facts, const char *name, void *device, int which,
                             int (*read)(void *, int, unsigned *), int momentary) {
    unsigned megahertz = 0;
    if (read(device, which, &megahertz) != 0 || megahertz == 0) return;
    facts_add(facts, name, "%u", megahertz);
    if (momentary) facts_momentary(facts);
}

/* Adds these facts; returns whether the clocks were told. */
static int module_add_nvml(struct facts *facts) {
    struct module_nvml nvml;
    char bus[32], driver[96];
    void *device = nullptr;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, 0) != cudaSuccess || !module_open_nvml(&nvml))
        return 0;
    if (nvml.driver(driver, sizeof driver) == 0) facts_add(facts, "driver", "%s", driver);
    const int found = nvml.find(bus, &device) == 0;
    if (found) {
        module_add_clock(facts, "clock_sm_max_mhz", device, NVML_CLOCK_OF_SM, nvml.most, 0);
        module_add_clock(facts, "clock_memory_max_mhz", device, NVML_CLOCK_OF_MEMORY, nvml.most, 0);
        module_add_clock(facts, "clock_sm_mhz", device, NVML_CLOCK_OF_SM, nvml.clock, 1);
        module_add_clock(facts, "clock_memory_mhz", device, NVML_CLOCK_OF_MEMORY, nvml.clock, 1);
    }
    nvml.shutdown();
    dlclose(nvml.library);
    return found;
}

/* Adds the version of the library that multiplies here; before one is open, that of the one that
 * this process has loaded, if it has. */
static void module_add_cublas(struct facts *facts) {
    struct library_versions versions;
    library_version(&versions);
    if (versions.cublaslt[0] != '\0') facts_add(facts, "cublaslt", "%s", versions.cublaslt);
    if (versions.cublas[0] != '\0') {
        facts_add(facts, "cublas", "%s", versions.cublas);
        return;
    }
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    int (*property)(int, int *) = nullptr;
    int part[3] = {0, 0, 0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *const library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) continue;
        if (module_symbol(library, "cublasGetProperty", &property) && property(0, &part[0]) == 0 &&
            property(1, &part[1]) == 0 && property(2, &part[2]) == 0)
            facts_add(facts, "cublas", "%d.%d.%d", part[0], part[1], part[2]);
        dlclose(library);
        return;
    }
}

static enum status module_describe(struct backend_fact *list, uint32_t *out_count) {
    struct facts facts = {list, 0};
    struct cudaDeviceProp device;
    int driver = 0, runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    const cudaError_t error = cudaGetDeviceProperties(&device, 0);
    if (error != cudaSuccess) return module_fail("device 0", error);
    facts_add(&facts, "device", "%s", device.name);
    facts_add(&facts, "compute_capability", "%d.%d", device.major, device.minor);
    facts_add(&facts, "multiprocessors", "%d", device.multiProcessorCount);
    facts_add(&facts, "memory_bytes", "%llu", (unsigned long long)device.totalGlobalMem);
    module_add_attribute(&facts, "memory_bus_bits", cudaDevAttrGlobalMemoryBusWidth, 1);
    module_add_attribute(&facts, "l2_bytes", cudaDevAttrL2CacheSize, 1);
    facts_add(&facts, "ecc", "%s", device.ECCEnabled ? "on" : "off");
    module_add_version(&facts, "driver_cuda", driver);
    module_add_version(&facts, "runtime", runtime);
    if (!module_add_nvml(&facts)) {
        module_add_attribute(&facts, "clock_sm_max_mhz", cudaDevAttrClockRate, 1000);
        module_add_attribute(&facts, "clock_memory_max_mhz", cudaDevAttrMemoryClockRate, 1000);
    }
    module_add_cublas(&facts);
    variables_add(&facts);
    (void)cudaGetLastError(); /* a fact that this device lacks is not a launch that failed */
    *out_count = facts.count;
    return STATUS_OK;
}

/* Left free: what a driver keeps for itself, and what the local memory of kernels may come to. 1
 * GiB was chosen, not measured. */
#define MODULE_SPARE ((size_t)1 << 30)

uint64_t module_work(unsigned more) {
    static thread_local uint64_t count;
    return count += more;
}

/* What was taken of the device and not given back, by address: whoever gives a piece back does not
 * say how large it is. One host thread takes memory. A run takes some dozens of pieces; the number
 * only bounds them. */
#define MODULE_PIECES 16384u
static struct module_taken {
    size_t bytes; /* of all pieces */
    unsigned count;
    struct {
        void *memory;
        size_t bytes;
    } piece[MODULE_PIECES];
} module_taken;

static enum status module_no_room(size_t bytes) {
    size_t left = 0, all = 0;
    const cudaError_t error = cudaMemGetInfo(&left, &all);
    if (error != cudaSuccess) return module_fail("memory of the device", error);
    return trouble_no_room(bytes, left, all, module_taken.bytes);
}

/* Refuses what would leave less than the driver needs. */
static enum status module_has_room(size_t bytes) {
    size_t left = 0, all = 0;
    const cudaError_t error = cudaMemGetInfo(&left, &all);
    if (error != cudaSuccess) return module_fail("memory of the device", error);
    if (left > MODULE_SPARE && bytes <= left - MODULE_SPARE) return STATUS_OK;
    return trouble_no_room(bytes, left, all, module_taken.bytes);
}

/* Takes memory of the device, zeroed. */
static enum status module_take_hidden(size_t bytes, void **out) {
    void *memory = nullptr;
    module_work(1);
    if (module_taken.count == MODULE_PIECES)
        FAIL(STATUS_MEMORY, "cuda: expected at most %u pieces of memory", MODULE_PIECES);
    TRY(module_has_room(bytes));
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return module_no_room(bytes);
    }
    if (error != cudaSuccess) return module_fail("memory of the device", error);
    cudaError_t zeroed = cudaMemset(memory, 0, bytes);
    if (zeroed == cudaSuccess) zeroed = cudaDeviceSynchronize();
    if (zeroed != cudaSuccess) {
        cudaFree(memory);
        return module_fail("memory of the device, zeroed", zeroed);
    }
    module_taken.piece[module_taken.count++] = {memory, bytes};
    module_taken.bytes += bytes;
    *out = memory;
    return STATUS_OK;
}

static void module_give_hidden(void *memory) {
    module_work(1);
    if (memory == nullptr) return;
    (void)cudaDeviceSynchronize(); /* what is queued may still use it; wait() tells what fails */
    for (unsigned i = module_taken.count; i-- > 0;) {
        if (module_taken.piece[i].memory != memory) continue;
        module_taken.bytes -= module_taken.piece[i].bytes;
        module_taken.piece[i] = module_taken.piece[--module_taken.count];
        break;
    }
    cudaFree(memory);
}

/* Takes pinned memory of the host, zeroed, which the device sees at the same addresses. */
static enum status module_take(size_t bytes, void **out) {
    void *memory = nullptr;
    module_work(1);
    const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocMapped);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        FAIL(STATUS_MEMORY, "cuda: the host has no %.3f GiB of memory to pin for the device",
             (double)bytes / 0x1p30);
    }
    if (error != cudaSuccess) return module_fail("pinned memory of the host", error);
    memset(memory, 0, bytes);
    *out = memory;
    return STATUS_OK;
}

static void module_give(void *memory) {
    module_work(1);
    if (memory == nullptr) return;
    (void)cudaDeviceSynchronize(); /* as above */
    cudaFreeHost(memory);
}

static enum status module_wait(void);

/* Copies behind all that was started. What went wrong before is told here, as by wait(): what was
 * pulled is then worth nothing. */
static enum status module_move(void *to, const void *from, size_t bytes, const char *what) {
    module_work(1);
    if (bytes == 0) return STATUS_OK;
    const cudaError_t error = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    if (error != cudaSuccess)
        (void)cudaGetLastError(); /* which is told below, if nothing else is */
    TRY(module_wait());
    return error == cudaSuccess ? STATUS_OK : module_fail(what, error);
}

static enum status module_pull(void *to, const void *from, size_t bytes) {
    return module_move(to, from, bytes, "a copy to the host");
}

static enum status module_push(void *to, const void *from, size_t bytes) {
    return module_move(to, from, bytes, "a copy to the device");
}

static enum status module_copy(void *to, const void *from, size_t bytes) {
    module_work(1);
    if (bytes == 0) return STATUS_OK;
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, 0);
    return error == cudaSuccess ? STATUS_OK : module_fail("a copy on the device", error);
}

/* What was wrong with the first faulty launch since the last wait(). It is the host thread's own,
 * as the runtime's errors are. */
static thread_local char module_launch[400];

void module_tell_launch(const char *kernel, const char *why) {
    if (module_launch[0] == 0)
        snprintf(module_launch, sizeof module_launch, "kernel %s: %s", kernel, why);
}

/* Takes all kinds of errors, so that none of them is told again of work that went well. A kernel
 * that fails is seen at the start of a later one, under CUDA_LAUNCH_BLOCKING at its own. */
static enum status module_wait(void) {
    module_work(1);
    const cudaError_t error = cudaDeviceSynchronize();
    const cudaError_t earlier = cudaGetLastError();
    const enum status library = library_error();
    char launch[sizeof module_launch];
    memcpy(launch, module_launch, sizeof launch);
    module_launch[0] = 0;
    if (error != cudaSuccess) {
        char what[sizeof launch + 32];
        snprintf(what, sizeof what, "a kernel%s%s",
                 launch[0] != 0 ? ", first seen at the start of " : "", launch);
        return module_fail(what, error);
    }
    if (library != STATUS_OK) return library;
    if (launch[0] != 0) {
        (void)cudaGetLastError();
        FAIL(STATUS_INTERNAL, "cuda: %s", launch);
    }
    return earlier == cudaSuccess ? STATUS_OK : module_fail("a launch", earlier);
}

extern "C" {
extern MODULE_EXPORT const struct backend twinstep_backend_v1;
const struct backend twinstep_backend_v1 = {
    .stamp = BACKEND_STAMP,
    .name = "cuda",
    .layout = BACKEND_LAYOUT,
    .open = module_open_device,
    .describe = module_describe,
    .memory = {module_take, module_give, 0},
    .hidden = {module_take_hidden, module_give_hidden, 1},
    .pull = module_pull,
    .push = module_push,
    .copy = module_copy,
    .wait = module_wait,
    TABLE_MEMBERS,
};
}
