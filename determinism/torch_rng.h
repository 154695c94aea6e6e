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

#include "determinism/philox.h"

#define TORCH_BLOCK 256u /* threads in a block of these kernels */

struct torch_device {
    uint64_t processors;            /* SMs: A100 108, H100 SXM 132 */
    uint64_t threads_per_processor; /* 2048; 1536 on L4, 1024 on T4 */
};

/* The number of threads S of the launch for `count` elements: 256 * min(ceil(count / 256), SMs *
 * blocks per SM). */
uint64_t torch_threads(const struct torch_device *device, uint64_t count);

/* The number of words by which a launch advances the generator's offset: (floor((count-1) / 4S) +
 * 1) * 4. */
uint64_t torch_advance(uint64_t count, uint64_t threads);

/* The word of element `index`. `vector` is the number of consecutive elements of one thread: 1
 * (torch.rand and scalar dropout), 2, 4, or 8 (16-bit types since CUDA 12.8). `offset` is a
 * multiple of 4. */
uint32_t torch_word(uint64_t seed, uint64_t offset, uint64_t threads, uint32_t vector,
                    uint64_t index);

/* As cuRAND's curand_uniform4: word * 2^-32 + 2^-33 in f32, which lies in (0, 1]. */
TWINSTEP_HD float torch_uniform(uint32_t word) {
    return (float)word * 0x1p-32f + 0x1p-33f;
}

/* As torch.rand: the same, but 1 becomes 0. */
TWINSTEP_HD float torch_rand(uint32_t word) {
    const float u = torch_uniform(word);
    return u < 1.0f ? u : 0.0f;
}

#endif
