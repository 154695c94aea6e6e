/* SPDX-License-Identifier: Apache-2.0
 * The backend "cuda" as a module: the first device, its managed memory, its errors. No arithmetic.
 *
 * The runtime is linked in and looks for the driver when it is first called, so the module loads on
 * machines without one, and open() says what is missing. */
#define BACKEND_WORD cuda
#include "kernels/cuda/tables.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

static enum status module_fail(const char *what, cudaError_t error) {
    FAIL(error == cudaErrorMemoryAllocation ? STATUS_MEMORY : STATUS_INTERNAL, "cuda: %s: %s", what,
         cudaGetErrorString(error));
}

static enum status module_open_device(void) {
    int driver = 0, runtime = 0, devices = 0, managed = 0, major = 0;
    cudaRuntimeGetVersion(&runtime);
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        FAIL(STATUS_UNSUPPORTED,
             "cuda: no NVIDIA driver on this machine; expected one for CUDA %d.%d", runtime / 1000,
             runtime % 1000 / 10);
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0)
        FAIL(STATUS_UNSUPPORTED, "cuda: no device: %s (driver %d.%d, runtime %d.%d)",
             error == cudaSuccess ? "none was found" : cudaGetErrorString(error), driver / 1000,
             driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    cudaDeviceGetAttribute(&managed, cudaDevAttrConcurrentManagedAccess, 0);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (major < 8 || !managed)
        FAIL(STATUS_UNSUPPORTED,
             "cuda: expected a device of compute capability 8.0 or later with concurrent managed "
             "memory, got capability %d.x %s it",
             major, managed ? "with" : "without");
    const cudaError_t set = cudaSetDevice(0);
    return set == cudaSuccess ? STATUS_OK : module_fail("device 0", set);
}

static enum status module_describe(char *text, size_t size) {
    struct cudaDeviceProp device;
    int driver = 0, runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    const cudaError_t error = cudaGetDeviceProperties(&device, 0);
    if (error != cudaSuccess) return module_fail("device 0", error);
    snprintf(text, size,
             "%s, compute capability %d.%d, %d SMs, driver for CUDA %d.%d, runtime %d.%d",
             device.name, device.major, device.minor, device.multiProcessorCount, driver / 1000,
             driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return STATUS_OK;
}

static enum status module_take(size_t bytes, void **out) {
    const cudaError_t error = cudaMallocManaged(out, bytes == 0 ? 1 : bytes, cudaMemAttachGlobal);
    if (error != cudaSuccess) return module_fail("managed memory", error);
    memset(*out, 0, bytes);
    return STATUS_OK;
}

static void module_give(void *memory) {
    cudaFree(memory);
}

static enum status module_wait(void) {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) return module_fail("a kernel", error);
    const cudaError_t earlier = cudaGetLastError();
    return earlier == cudaSuccess ? library_error() : module_fail("a launch", earlier);
}

extern "C" {
extern MODULE_EXPORT const struct backend twinstep_backend_v1;
const struct backend twinstep_backend_v1 = {BACKEND_STAMP,   "cuda",
                                            BACKEND_LAYOUT,  module_open_device,
                                            module_describe, {module_take, module_give},
                                            module_wait,     tables_refuse,
                                            tables_ops,      tables_scratch};
}
