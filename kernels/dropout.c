/* SPDX-License-Identifier: Apache-2.0
 * Makes dropout's masks on the CPU: the addresses of their random words, and the comparisons.
 * kernels/cuda/masks.h is the same for a device. */
#include "kernels/dropout.h"

#include "determinism/stream.h"
#include "determinism/torch_rng.h"
#include "kernels/op_call.h"

enum { WORDS = 64 };

static struct stream_address address_of(const struct dropout *dropout,
                                        const struct sequence *sequence) {
    const uint32_t per_rank = dropout->rank_samples;
    const uint32_t rank = per_rank == 0 ? 0 : sequence->sample / per_rank;
    return (struct stream_address){.stream = STREAM_DROPOUT,
                                   .side = (enum stream_side)sequence->side,
                                   .layer = dropout->layer,
                                   .op = dropout->op,
                                   .rank = dropout->same_masks ? 0 : rank,
                                   .sample = per_rank == 0 ? sequence->sample
                                                           : sequence->sample % per_rank,
                                   .update = dropout->update};
}

enum status dropout_check(const struct dropout_extent *extent) {
    TRY(stream_check_activation(extent->positions, extent->channels));
    TRY(stream_check_attention(extent->heads, extent->positions, extent->positions));
    const struct stream_address last = {.stream = STREAM_DROPOUT,
                                        .layer = extent->layers,
                                        .op = SITE_COUNT * 4 - 1,
                                        .rank = extent->ranks == 0 ? 0 : extent->ranks - 1,
                                        .sample = extent->samples == 0 ? 0 : extent->samples - 1};
    struct stream_site unused;
    return stream_pack(&last, &unused);
}

/* Masks of elements first .. first+count-1 of the address, by law 12. */
static void addressed(const struct dropout *dropout, const struct sequence *sequence,
                      uint64_t first, uint32_t count, uint8_t *out) {
    const struct stream_address address = address_of(dropout, sequence);
    struct stream_site site;
    uint32_t words[WORDS];
    /* This cannot fail after dropout_check; an op has no way to report an error. */
    if (stream_pack(&address, &site) != STATUS_OK) site = (struct stream_site){{{0}}};
    for (uint32_t done = 0; done < count; done += WORDS) {
        const uint32_t left = count - done;
        const uint32_t some = left < WORDS ? left : WORDS;
        stream_words(dropout->seed, site, first + done, some, words);
        for (uint32_t i = 0; i < some; i++)
            out[done + i] = stream_uniform(words[i]) < dropout->keep;
    }
}

/* Masks of elements first .. first+count-1 of the tensor as it lies in memory. An element is kept
 * where u < keep in f32, as in PyTorch's aten/src/ATen/native/cuda/Dropout.cu. */
static void by_place(const struct dropout *dropout, uint64_t first, uint32_t count, uint8_t *out) {
    const float keep = (float)dropout->keep;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t word = torch_word(dropout->seed, dropout->offset, dropout->threads,
                                         dropout->vector, first + i);
        out[i] = torch_uniform(word) < keep;
    }
}

void dropout_activation(const struct dropout *dropout, const struct sequence *sequence,
                        uint32_t position, uint32_t C, uint8_t *out) {
    if (dropout->map == DROPOUT_ADDRESSED) {
        addressed(dropout, sequence, stream_element_activation(position, 0), C, out);
        return;
    }
    const uint64_t row = (uint64_t)(sequence->row - dropout->first_row) + position;
    by_place(dropout, row * C, C, out);
}

void dropout_attention(const struct dropout *dropout, const struct sequence *sequence, uint32_t H,
                       uint32_t head, uint32_t query, uint32_t count, uint8_t *out) {
    if (dropout->map == DROPOUT_ADDRESSED) {
        addressed(dropout, sequence, stream_element_attention(head, query, 0), count, out);
        return;
    }
    const uint64_t length = dropout->length;
    const uint64_t index = (sequence->row - dropout->first_row) / length;
    by_place(dropout, ((index * H + head) * length + query) * length, count, out);
}
