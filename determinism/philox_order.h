/* SPDX-License-Identifier: Apache-2.0
 * Which Philox word cuRAND's generator Philox4_32_10 gives, computed without cuRAND: by its device
 * functions, a thread at a time, and by its host generator, which fills one array. A training that
 * drew from either can so be drawn again on a CPU.
 *
 * Sources: curand_kernel.h of CUDA 13.0 (curand_init, skipahead, curand4, and curand_uniform4 in
 * curand_uniform.h) and what libcurand.so.10 writes (tests/determinism/test_curand.c). A place is
 * (seed, subsequence, offset), the offset in 32-bit words. Other generators, and normal numbers,
 * are not imitated.
 *
 * Invariant: every function is pure. */
#ifndef TWINSTEP_DETERMINISM_PHILOX_ORDER_H
#define TWINSTEP_DETERMINISM_PHILOX_ORDER_H

#include <stdint.h>

#include "determinism/philox.h"

/* The subsequences that the host generator goes through in turn, a block of four words of each. */
#define PHILOX_DEALT_SEQUENCES ((uint64_t)1 << 16)

/* Word `offset` of a subsequence: what curand() returns after curand_init(seed, subsequence,
 * offset). Each later call of curand() takes the next word, and curand4() the next four. */
TWINSTEP_HD uint32_t philox_word(uint64_t seed, uint64_t subsequence, uint64_t offset) {
    const uint64_t block = offset / 4;
    const struct philox_block counter = {{(uint32_t)block, (uint32_t)(block >> 32),
                                          (uint32_t)subsequence, (uint32_t)(subsequence >> 32)}};
    return philox_draw(counter, seed).word[offset % 4];
}

/* Word `index` of what the host generator writes (curandGenerate), counted from the place that
 * curandSetGeneratorOffset set it to; calls go on where the one before ended. Its order is
 * CURAND_ORDERING_PSEUDO_DEFAULT. */
TWINSTEP_HD uint32_t philox_dealt_word(uint64_t seed, uint64_t offset, uint64_t index) {
    const uint64_t at = offset + index, block = at / 4;
    return philox_word(seed, block % PHILOX_DEALT_SEQUENCES,
                       block / PHILOX_DEALT_SEQUENCES * 4 + at % 4);
}

/* As curand_uniform(): word * 2^-32 + 2^-33 in f32, which lies in (0, 1]. */
TWINSTEP_HD float philox_uniform(uint32_t word) {
    return (float)word * 0x1p-32f + 0x1p-33f;
}

#endif
