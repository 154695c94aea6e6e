/* SPDX-License-Identifier: Apache-2.0
 * Fills memory with a word: op `fill`, which other ops of the unit call, too.
 *
 * Invariant: no byte beyond the last one is written. */
#ifndef TWINSTEP_KERNELS_CUDA_FILL_H
#define TWINSTEP_KERNELS_CUDA_FILL_H

#include "kernels/cuda/launch.h"

/* A thread has four words; the last word may have its first bytes only. A word that is no number
 * is stored as it is, since a store of f32 changes no bit. */
KERNEL(fill_kernel, struct fill_args) {
    const size_t words = args->bytes / sizeof(uint32_t), rest = args->bytes % sizeof(uint32_t);
    const float word = real_from_bits_f32(args->word);
    const float four_words[FOUR_EACH] = {word, word, word, word};
    struct four at;
    if (!four_find(GPU_ARG words + (rest != 0), &at)) return;
    const int last = rest != 0 && at.first + at.some > words;
    if (last) at.some--;
    four_store_f32((float *)args->memory, four_words, at);
    for (size_t i = 0; last && i < rest; i++)
        ((unsigned char *)args->memory)[words * sizeof(uint32_t) + i] =
            (unsigned char)(args->word >> 8 * i);
}

static void fill(const struct op_call *call, const struct fill_args *args) {
    const size_t words = (args->bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
    (void)call;
    LAUNCH_FOURS(fill_kernel, words, args);
}

#endif
