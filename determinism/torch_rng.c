/* SPDX-License-Identifier: Apache-2.0
 * Maps elements to words with integer work only. Element i belongs to one thread and one round of a
 * grid-stride loop over groups of `vector` elements; the rounds of a thread take its words in
 * order. */
#include "determinism/torch_rng.h"

uint64_t torch_threads(const struct torch_device *device, uint64_t count) {
    const uint64_t resident = device->processors * (device->threads_per_processor / TORCH_BLOCK);
    const uint64_t needed = count / TORCH_BLOCK + (count % TORCH_BLOCK != 0);
    return TORCH_BLOCK * (needed < resident ? needed : resident);
}

uint64_t torch_advance(uint64_t count, uint64_t threads) {
    return count == 0 ? 0 : ((count - 1) / (4 * threads) + 1) * 4;
}

uint32_t torch_word(uint64_t seed, uint64_t offset, uint64_t threads, uint32_t vector,
                    uint64_t index) {
    const uint64_t group = index / vector;
    const uint64_t thread = group % threads;
    /* index among the thread's words */
    const uint64_t word = vector * (group / threads) + index % vector;
    const uint64_t block = offset / 4 + word / 4;
    const struct philox_block counter = {
        {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)thread, (uint32_t)(thread >> 32)}};
    return philox_draw(counter, seed).word[word % 4];
}
