/* SPDX-License-Identifier: Apache-2.0
 * Sequences as kernels get them, by value, a group at a time; and which elements dropout keeps, by
 * law 12, on the device: what kernels/dropout.c and determinism/torch_rng.c say for the host.
 *
 * Integer work and one comparison per element. Invariant: a mask is a function of its site. */
#ifndef TWINSTEP_KERNELS_CUDA_MASKS_H
#define TWINSTEP_KERNELS_CUDA_MASKS_H

#include "determinism/stream.h"
#include "determinism/torch_rng.h"
#include "kernels/cuda/launch.h"
#include "kernels/dropout.h"

#define GROUP_SEQUENCES 64u /* what the 4 KB of a kernel's arguments hold in comfort */

struct group {
    struct sequence sequence[GROUP_SEQUENCES];
    uint32_t count;
    uint32_t tokens; /* tokens of all its sequences */
};

/* The group of sequences that follows those before `first`. */
static inline struct group group_at(const struct sequence *sequences, uint32_t count,
                                    uint32_t first) {
    struct group group;
    const uint32_t left = count - first;
    group.count = left < GROUP_SEQUENCES ? left : GROUP_SEQUENCES;
    group.tokens = 0;
    for (uint32_t i = 0; i < group.count; i++) {
        group.sequence[i] = sequences[first + i];
        group.tokens += sequences[first + i].length;
    }
    return group;
}

/* Where token `index` of the group is. */
struct place {
    const struct sequence *sequence;
    uint32_t position;
};

GPU_INLINE struct place group_place(const struct group *group, uint32_t index) {
    struct place place;
    place.sequence = group->sequence;
    while (index >= place.sequence->length)
        index -= (place.sequence++)->length;
    place.position = index;
    return place;
}

/* What stream_pack() does for the host, for an address that dropout_check() has accepted. */
GPU_INLINE struct stream_site mask_site(const struct dropout *dropout,
                                        const struct sequence *sequence) {
    const uint32_t per_rank = dropout->rank_samples;
    const uint32_t rank = per_rank == 0 ? 0 : sequence->sample / per_rank;
    const uint32_t sample = per_rank == 0 ? sequence->sample : sequence->sample % per_rank;
    struct stream_site site;
    site.counter.word[0] = 0;
    site.counter.word[1] = sample << 8;
    site.counter.word[2] = dropout->op | dropout->layer << 9 |
                           (dropout->same_masks ? 0u : rank) << 18 | sequence->side << 26 |
                           (uint32_t)STREAM_DROPOUT << 28;
    site.counter.word[3] = dropout->update;
    return site;
}

GPU_INLINE int mask_addressed(const struct dropout *dropout, const struct sequence *sequence,
                              uint64_t element) {
    const uint32_t word = stream_word(dropout->seed, mask_site(dropout, sequence), element);
    return stream_uniform(word) < dropout->keep;
}

/* The block in which torch_word() is, as word `index % vector % 4`. */
GPU_INLINE struct philox_block mask_block_by_place(const struct dropout *dropout, uint64_t index) {
    const uint64_t group = index / dropout->vector, thread = group % dropout->threads;
    const uint64_t word = dropout->vector * (group / dropout->threads) + index % dropout->vector;
    const uint64_t block = dropout->offset / 4 + word / 4;
    struct philox_block counter;
    counter.word[0] = (uint32_t)block;
    counter.word[1] = (uint32_t)(block >> 32);
    counter.word[2] = (uint32_t)thread;
    counter.word[3] = (uint32_t)(thread >> 32);
    return philox_draw(counter, dropout->seed);
}

/* Draws torch_word(); the element is kept where u < keep in f32. */
GPU_INLINE int mask_by_place(const struct dropout *dropout, uint64_t index) {
    const uint64_t group = index / dropout->vector;
    const uint64_t word = dropout->vector * (group / dropout->threads) + index % dropout->vector;
    return torch_uniform(mask_block_by_place(dropout, index).word[word % 4]) < (float)dropout->keep;
}

/* Whether channel c of C is kept. */
GPU_INLINE int mask_activation(const struct dropout *dropout, const struct sequence *sequence,
                               uint32_t position, uint32_t C, uint32_t c) {
    if (dropout->map == DROPOUT_ADDRESSED)
        return mask_addressed(dropout, sequence, stream_element_activation(position, c));
    const uint64_t row = (uint64_t)(sequence->row - dropout->first_row) + position;
    return mask_by_place(dropout, row * C + c);
}

/* The same for channels c .. c+3 where c is a multiple of 4: an element's four neighbours are in
 * one block of Philox, addressed ones always, those by place where a thread of PyTorch's has as
 * many. */
GPU_INLINE void mask_activation4(const struct dropout *dropout, const struct sequence *sequence,
                                 uint32_t position, uint32_t C, uint32_t c, int kept[4]) {
    const uint64_t row = (uint64_t)(sequence->row - dropout->first_row) + position;
    if (dropout->map == DROPOUT_ADDRESSED) {
        const struct philox_block block =
            stream_block4(dropout->seed, mask_site(dropout, sequence),
                          stream_element_activation(position, c) >> 2);
        UNROLL
        for (unsigned k = 0; k < 4; k++)
            kept[k] = stream_uniform(block.word[k]) < dropout->keep;
    } else if (dropout->vector % 4 == 0 && C % 4 == 0) {
        const struct philox_block block = mask_block_by_place(dropout, row * C + c);
        UNROLL
        for (unsigned k = 0; k < 4; k++)
            kept[k] = torch_uniform(block.word[k]) < (float)dropout->keep;
    } else {
        UNROLL
        for (unsigned k = 0; k < 4; k++)
            kept[k] = mask_by_place(dropout, row * C + c + k);
    }
}

/* Whether key `key` of a query and head (of H) is kept. */
GPU_INLINE int mask_attention(const struct dropout *dropout, const struct sequence *sequence,
                              uint32_t H, uint32_t head, uint32_t query, uint32_t key) {
    if (dropout->map == DROPOUT_ADDRESSED)
        return mask_addressed(dropout, sequence, stream_element_attention(head, query, key));
    const uint64_t length = dropout->length;
    const uint64_t index = (sequence->row - dropout->first_row) / length;
    return mask_by_place(dropout, ((index * H + head) * length + query) * length + key);
}

/* 1 / keep in the accumulator's type, as in PyTorch's Dropout.cu: 1.0 / p. */
GPU_INLINE accumulator mask_scale(const struct dropout *dropout) {
    return ACC(1.0) / (accumulator)dropout->keep;
}

#endif
