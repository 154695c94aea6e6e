/* SPDX-License-Identifier: Apache-2.0
 * What a launch may ask of every device that the module takes (compute capability 8.0 and later),
 * by NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the
 * module and the shim of the tests refuse the same. Grids and blocks have one dimension
 * (kernels/cuda/port.h). Invariant: what is refused here is not started; no number of it is cut to
 * fit. */
#ifndef TWINSTEP_KERNELS_CUDA_LIMITS_H
#define TWINSTEP_KERNELS_CUDA_LIMITS_H

#include <stddef.h>
#include <stdio.h>

#define LIMITS_GRID ((size_t)0x7fffffff) /* blocks */
#define LIMITS_BLOCK ((size_t)1024)      /* threads */
/* Bytes of shared memory that a block may have whose kernel did not ask for more, and that it may
 * have if it did: 163 KiB for 8.0, 227 KiB for 9.0 and 10.0, 99 KiB for 8.6, 8.9 and 12.0. LAUNCH
 * asks where it is needed. */
#define LIMITS_SHARED_UNASKED ((size_t)48 << 10)
#define LIMITS_SHARED ((size_t)99 << 10)
#define LIMITS_TEXT 256u

/* Returns 0 where the launch may start, else 1 and a text that says why not. */
static inline int limits_refuse(size_t grid, size_t block, size_t shared_bytes,
                                char text[LIMITS_TEXT]) {
    if (grid >= 1 && grid <= LIMITS_GRID && block >= 1 && block <= LIMITS_BLOCK &&
        shared_bytes <= LIMITS_SHARED)
        return 0;
    snprintf(text, LIMITS_TEXT,
             "expected 1 to %zu blocks of 1 to %zu threads and at most %zu bytes of shared memory, "
             "got %zu blocks of %zu threads and %zu bytes",
             LIMITS_GRID, LIMITS_BLOCK, LIMITS_SHARED, grid, block, shared_bytes);
    return 1;
}

#endif
