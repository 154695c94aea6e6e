/* SPDX-License-Identifier: Apache-2.0
 * Fills memory with a word: the op, and what others of the unit set before they write there.
 *
 * Invariant: no byte beyond the last one is written. */
#ifndef TWINSTEP_KERNELS_CUDA_FILL_H
#define TWINSTEP_KERNELS_CUDA_FILL_H

#include "kernels/cuda/launch.h"

/* A thread has a word; the last one may have its first bytes only. */
KERNEL(fill_kernel, struct fill_args) {
    const size_t first = ((size_t)BLOCK * THREADS + THREAD) * sizeof(uint32_t);
    if (first >= args->bytes) return;
    const size_t rest = args->bytes - first;
    if (rest >= sizeof(uint32_t)) {
        ((uint32_t *)args->memory)[first / sizeof(uint32_t)] = args->word;
        return;
    }
    for (size_t i = 0; i < rest; i++)
        ((unsigned char *)args->memory)[first + i] = (unsigned char)(args->word >> 8 * i);
}

static void fill(const struct op_call *call, const struct fill_args *args) {
    const size_t words = (args->bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
    (void)call;
    LAUNCH_ELEMENTS(fill_kernel, words, args);
}

#endif
