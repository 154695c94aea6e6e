/* SPDX-License-Identifier: Apache-2.0
 * Included before the files of kernels/cuda/ (by -include) when their kernels are to come from PTX:
 * the host's side of a kernel stays as written, while its body is the C that
 * tests/kernels/ptx_host.py made of nvcc's PTX of the same file.
 *
 * Invariant: both sides state how large the kernel's arguments are, and a disagreement is
 * reported. */
#ifndef TWINSTEP_TESTS_KERNELS_PTX_HOST_H
#define TWINSTEP_TESTS_KERNELS_PTX_HOST_H

#include "base/variant.h"
#include "tests/shim/shim_port.h"

#undef KERNEL
#define KERNEL(name, type) KERNEL_OF_PTX(name, type, VARIANT(ptx_##name))
#define KERNEL_OF_PTX(name, type, body)                                                            \
    void body(struct gpu *gpu, const void *given, size_t bytes);                                   \
    static void name(struct gpu *gpu, const void *given) {                                         \
        body(gpu, given, sizeof(type));                                                            \
    }                                                                                              \
    __attribute__((unused)) static void name##_thread(struct gpu *gpu, const type *args)

#endif
