/* SPDX-License-Identifier: Apache-2.0
 * Fills memory with a word: the op, and what others of the unit set before they write there.
 *
 * Invariant: no byte beyond the last one is written. */
#ifndef TWINSTEP_KERNELS_CUDA_FILL_H
#define TWINSTEP_KERNELS_CUDA_FILL_H

#include "kernels/cuda/launch.h"

#define FILL_BYTES 16u /* of a thread: one store, where the memory lies at a multiple of it */

/* Fills `rest` bytes, fewer than FILL_BYTES or at no multiple of it. */
GPU_INLINE void fill_rest(unsigned char *memory, size_t rest, uint32_t word) {
    size_t i = 0;
    for (; i + sizeof word <= rest; i += sizeof word)
        *(uint32_t *)(void *)(memory + i) = word;
    for (size_t k = 0; i + k < rest; k++)
        memory[i + k] = (unsigned char)(word >> 8 * k);
}

KERNEL(fill_kernel, struct fill_args) {
    const size_t first = ((size_t)BLOCK * THREADS + THREAD) * FILL_BYTES;
    if (first >= args->bytes) return;
    unsigned char *const own = (unsigned char *)args->memory + first;
    const size_t rest = least(args->bytes - first, FILL_BYTES);
    if (rest < FILL_BYTES || (uintptr_t)own % GPU_ALIGNED != 0) {
        fill_rest(own, rest, args->word);
        return;
    }
    const float same = real_from_bits_f32(args->word);
    const float four[4] = {same, same, same, same};
    gpu_store4_f32((float *)(void *)own, four);
}

static void fill(const struct op_call *call, const struct fill_args *args) {
    (void)call;
    LAUNCH_ELEMENTS(fill_kernel, (args->bytes + FILL_BYTES - 1) / FILL_BYTES, args);
}

#endif
