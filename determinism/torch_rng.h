/* SPDX-License-Identifier: Apache-2.0
 * Which Philox word PyTorch's CUDA generator gives to element i of a tensor, computed without a
 * GPU.
 *
 * Sources: pytorch, aten/src/ATen/native/cuda/DistributionTemplates.h at 0140b62d (torch.rand and
 * the scalar dropout kernel) and Dropout.cu (the vectorised kernel). The state is (seed, offset),
 * where the offset counts 32-bit words. The mapping depends on the device through its number of
 * resident threads, so the same seed does not mean the same numbers on another GPU. CUDA graphs,
 * other generators and kernels that a compiler fused are not imitated.
 *
 * Invariant: every function is pure. */
#ifndef TWINSTEP_DETERMINISM_TORCH_RNG_H
#define TWINSTEP_DETERMINISM_TORCH_RNG_H

#include <stdint.h>

#include "determinism/philox_order.h"

#define TORCH_BLOCK 256u /* threads in a block of these kernels */

struct torch_device {
    uint64_t processors;            /* SMs: A100 108, H100 SXM 132 */
    uint64_t threads_per_processor; /* 2048; 1536 on L4, 1024 on T4 */
};

/* The number of threads S of the launch for `count` elements: 256 * min(ceil(count / 256), SMs *
 * blocks per SM). */
TWINSTEP_HD uint64_t torch_threads(const struct torch_device *device, uint64_t count) {
    const uint64_t resident = device->processors * (device->threads_per_processor / TORCH_BLOCK);
    const uint64_t needed = count / TORCH_BLOCK + (count % TORCH_BLOCK != 0);
    return TORCH_BLOCK * (needed < resident ? needed : resident);
}

/* The number of words by which a launch advances the generator's offset: (floor((count-1) / 4S) +
 * 1) * 4. */
TWINSTEP_HD uint64_t torch_advance(uint64_t count, uint64_t threads) {
    return count == 0 ? 0 : ((count - 1) / (4 * threads) + 1) * 4;
}

/* The word of element `index`. The element belongs to one thread and one round of a grid-stride
 * loop over groups of `vector` elements, and the rounds of a thread take its words in order.
 * `vector` is the number of consecutive elements of one thread: 1 (torch.rand and scalar dropout),
 * 2, 4, or 8 (16-bit types since CUDA 12.8). `offset` is a multiple of 4. */
TWINSTEP_HD uint32_t torch_word(uint64_t seed, uint64_t offset, uint64_t threads, uint32_t vector,
                                uint64_t index) {
    const uint64_t group = index / vector;
    const uint64_t thread = group % threads;
    /* index among the thread's words */
    const uint64_t word = vector * (group / threads) + index % vector;
    return philox_word(seed, thread, offset + word);
}

/* In (0, 1]; torch.rand has 0 where this has 1. */
TWINSTEP_HD float torch_uniform(uint32_t word) {
    return philox_uniform(word);
}

#endif
