/* SPDX-License-Identifier: Apache-2.0
 * What a user is told, and told to do, when a call of CUDA fails: no device to work on, no memory
 * left, a device that stopped. Errors are CUDA's numbers (cudaError_t, driver_types.h), which do
 * not change; so the module and the shim of the tests, which fails on purpose, say the same.
 *
 * Numbers of Xid are NVIDIA's ("Xid Errors", GPU Deployment and Management Documentation).
 * Invariant: every text says what failed before it says what to do. */
#ifndef TWINSTEP_KERNELS_CUDA_TROUBLE_H
#define TWINSTEP_KERNELS_CUDA_TROUBLE_H

#include "base/module_kit.h"

/* Numbers of cudaError_t that a text knows. */
enum trouble {
    TROUBLE_MEMORY = 2,      /* cudaErrorMemoryAllocation */
    TROUBLE_OLD_DRIVER = 35, /* cudaErrorInsufficientDriver */
    TROUBLE_BUSY = 46,       /* cudaErrorDevicesUnavailable */
    TROUBLE_NO_DEVICE = 100, /* cudaErrorNoDevice */
    TROUBLE_NO_CODE = 209,   /* cudaErrorNoKernelImageForDevice */
    TROUBLE_ECC = 214,       /* cudaErrorECCUncorrectable */
    TROUBLE_LINK = 220,      /* cudaErrorNvlinkUncorrectable */
    TROUBLE_NEW_PTX = 222,   /* cudaErrorUnsupportedPtxVersion */
    TROUBLE_CONTAINED = 226, /* cudaErrorContained */
    TROUBLE_ADDRESS = 700,   /* cudaErrorIllegalAddress */
    TROUBLE_TIMEOUT = 702,   /* cudaErrorLaunchTimeout */
    TROUBLE_STACK = 714,     /* cudaErrorHardwareStackError, the first of those inside a kernel */
    TROUBLE_LAUNCH = 719,    /* cudaErrorLaunchFailure, the last of them */
    TROUBLE_NOT_READY = 802, /* cudaErrorSystemNotReady */
    TROUBLE_MISMATCH = 803,  /* cudaErrorSystemDriverMismatch */
};

/* What to do behind an error inside a kernel, whoever's fault it was. */
#define TROUBLE_LOOK                                                                               \
    "The device did not survive it in this process, so start again. The kernel log says which it " \
    "was (dmesg | grep -i xid)"

/* What to do where memory is short. */
#define TROUBLE_LESS                                                                               \
    "make batch.micro or data.max_len smaller, which lowers activations, set record.readback: "    \
    "false, which saves a copy of the weights and of first moments, or take a smaller model"

/* What the error means for a user and what to do, "" where CUDA's own words are all there is. */
static inline const char *trouble_advice(int error) {
    switch (error) {
    case TROUBLE_MEMORY:
        return ": the device's memory is full (nvidia-smi says who has it): " TROUBLE_LESS;
    case TROUBLE_OLD_DRIVER:
        return ": install a driver of this CUDA or later, or build the module with an older nvcc";
    case TROUBLE_BUSY:
        return ": another process has the device for itself (nvidia-smi -q -d COMPUTE), or its MIG "
               "mode was switched; name another in CUDA_VISIBLE_DEVICES";
    case TROUBLE_NO_CODE:
    case TROUBLE_NEW_PTX:
        return ": the module has no code for this device; build it with its number in "
               "TWINSTEP_CUDA_ARCHITECTURES, or by an nvcc that is no newer than the driver";
    case TROUBLE_ECC:
    case TROUBLE_CONTAINED:
        return ": the device's memory or its hardware failed, so what was computed is worth "
               "nothing. Xid 48, 63, 64, 94 or 95 in the kernel log (dmesg | grep -i xid) and "
               "nvidia-smi -q -d ECC,ROW_REMAPPER tell more; after a reset of the device run "
               "again, and where it comes back change the device";
    case TROUBLE_LINK:
        return ": a link between devices failed (Xid 74 in the kernel log, nvidia-smi nvlink -e)";
    case TROUBLE_ADDRESS:
        return ". " TROUBLE_LOOK ": Xid 31 is a kernel that touched memory that is not there, "
               "as a rule a defect of twinstep; the same run with CUDA_LAUNCH_BLOCKING=1 names "
               "the kernel, compute-sanitizer the line. Xid 48, 63, 64, 94 or 95 beside it is "
               "the memory itself (nvidia-smi -q -d ECC)";
    case TROUBLE_TIMEOUT:
        return ": a kernel ran longer than the display that shares the device allows (Xid 8); "
               "use a device without one, or make batch.micro smaller";
    case TROUBLE_NOT_READY:
    case TROUBLE_MISMATCH:
        return ": driver and services of this machine are not of one version, or not all of them "
               "run (nvidia-smi says which; on NVSwitch machines nvidia-fabricmanager)";
    default:
        if (error < TROUBLE_STACK || error > TROUBLE_LAUNCH) return "";
        return ". " TROUBLE_LOOK ": Xid 13 is an exception inside a kernel, a defect of twinstep "
               "where it comes back at the same place and of the device where it does not; the "
               "same run with CUDA_LAUNCH_BLOCKING=1 names the kernel. Xid 79 is a device that "
               "fell off the bus, 48, 94 or 95 its memory (nvidia-smi -q -d ECC)";
    }
}

/* Fails with what was done, what CUDA says of it and what to do. */
TWINSTEP_MUST_USE static inline enum status trouble_fail(const char *what, int error,
                                                         const char *words) {
    FAIL(error == TROUBLE_MEMORY ? STATUS_MEMORY : STATUS_INTERNAL, "cuda: %s: %s%s", what, words,
         trouble_advice(error));
}

/* Fails because `bytes` more are not there: `left` of `all` are free, `taken` this run has. */
TWINSTEP_MUST_USE static inline enum status trouble_no_room(size_t bytes, size_t left, size_t all,
                                                            size_t taken) {
    const size_t used = left < all ? all - left : 0;
    FAIL(STATUS_MEMORY,
         "cuda: the run asks for %.2f GiB more, and the device has %.2f of its %.2f GiB left, 1 of "
         "them for itself (%.2f are this run's, %.2f the driver's or other processes': "
         "nvidia-smi): " TROUBLE_LESS,
         (double)bytes / 0x1p30, (double)left / 0x1p30, (double)all / 0x1p30,
         (double)taken / 0x1p30, (double)(used > taken ? used - taken : 0) / 0x1p30);
}

/* Fails because there is no device to work on. `visible`: what CUDA_VISIBLE_DEVICES says, or NULL.
 */
TWINSTEP_MUST_USE static inline enum status trouble_no_device(int error, const char *words,
                                                              const char *versions,
                                                              const char *visible) {
    if (visible != NULL)
        FAIL(STATUS_UNSUPPORTED,
             "cuda: no device: %s (%s)%s; CUDA_VISIBLE_DEVICES is \"%.80s\": expected a number, a "
             "UUID or, where MIG is on, a MIG-UUID that nvidia-smi -L lists",
             words, versions, trouble_advice(error), visible);
    FAIL(STATUS_UNSUPPORTED, "cuda: no device: %s (%s)%s; nvidia-smi -L lists what the driver sees",
         words, versions, trouble_advice(error));
}

#endif
