/* SPDX-License-Identifier: Apache-2.0
 * Which Philox word PyTorch's CUDA generator gives to element i of a tensor, without a GPU.
 *
 * Source: aten/src/ATen/native/cuda/DistributionTemplates.h (torch.rand and the scalar dropout
 * kernel) and Dropout.cu (vectorised kernel), as read in the facts of the frameworks, section 6.2.
 * The state is (seed, offset), the offset counted in 32-bit words. The mapping depends on the
 * device through its number of resident threads: "same seed" is not "same numbers" on another GPU.
 * Not imitated: CUDA graphs, other generators, kernels fused by a compiler.
 * Invariant: a pure function; no state of its own. */
#ifndef TWINSTEP_DETERMINISM_TORCH_RNG_H
#define TWINSTEP_DETERMINISM_TORCH_RNG_H

#include <stdint.h>

#include "determinism/philox.h"

#define TORCH_BLOCK 256u /* threads of a block of these kernels */

struct torch_device {
    uint64_t processors;            /* SMs: A100 108, H100 SXM 132 */
    uint64_t threads_per_processor; /* 2048; 1536 on L4, 1024 on T4 */
};

/* Threads S of the launch for `count` elements: 256 * min(ceil(count / 256), SMs * blocks). */
uint64_t torch_threads(const struct torch_device *device, uint64_t count);

/* Words by which a launch advances the generator's offset: (floor((count-1) / 4S) + 1) * 4. */
uint64_t torch_advance(uint64_t count, uint64_t threads);

/* Word of element `index`. vector: consecutive elements of a thread: 1 (torch.rand, scalar
 * dropout), 2, 4, or 8 (16-bit types since CUDA 12.8). offset: a multiple of 4. */
uint32_t torch_word(uint64_t seed, uint64_t offset, uint64_t threads, uint32_t vector,
                    uint64_t index);

/* curand_uniform4: word * 2^-32 + 2^-33 in f32, in (0, 1]. */
TWINSTEP_HD float torch_uniform(uint32_t word) {
    return (float)word * 0x1p-32f + 0x1p-33f;
}

/* torch.rand: as above, with 1 turned into 0. */
TWINSTEP_HD float torch_rand(uint32_t word) {
    const float u = torch_uniform(word);
    return u < 1.0f ? u : 0.0f;
}

#endif
