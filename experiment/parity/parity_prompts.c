/* SPDX-License-Identifier: Apache-2.0
 * Makes prompts of three kinds: from the data set, numbers that count on, and drawn ids. It
 * generates nothing from them. */
#include "experiment/parity/parity_logprob.h"

#include <stdio.h>
#include <string.h>

#include "base/sum.h"
#include "determinism/stream.h"

#define PROMPT_OP 257 /* op of STREAM_DATA at which prompts are drawn */

static uint32_t real_prompt(const struct dataset *dataset, uint32_t number, uint32_t most,
                            uint32_t *out) {
    const struct dataset_sequence *sequence =
        dataset_side(dataset, number % dataset->samples, DATASET_CHOSEN);
    const uint32_t length = sequence->length < most ? sequence->length : most;
    memcpy(out, dataset->token + sequence->first, length * sizeof *out);
    return length;
}

/* Writes "1 2 3 ...", beginning with another number for each sequence; ids in a row where the
 * vocabulary has no bytes. */
static uint32_t numbers_prompt(uint64_t vocab, uint32_t number, uint32_t most, uint32_t *out) {
    uint32_t length = 0;
    for (uint32_t n = number + 1; length < most; n++) {
        char text[16];
        const int size = snprintf(text, sizeof text, "%u ", n);
        if (vocab < 256) {
            out[length++] = (uint32_t)(n % vocab);
            continue;
        }
        for (int i = 0; i < size && length < most; i++)
            out[length++] = (unsigned char)text[i];
    }
    return length;
}

static enum status random_prompt(uint64_t seed, uint64_t vocab, uint32_t number, uint32_t most,
                                 uint32_t *out) {
    const struct stream_address address = {.stream = STREAM_DATA,
                                           .op = PROMPT_OP,
                                           .sample = number,
                                           .last_element = 2 * (uint64_t)most};
    struct stream_site site;
    TRY(stream_pack(&address, &site));
    for (uint32_t i = 0; i < most; i++)
        out[i] = stream_bounded(stream_word64(seed, site, i), (uint32_t)vocab);
    return STATUS_OK;
}

enum status parity_draw_prompts(const struct parity *parity, struct parity_row *row,
                                struct arena *arena, struct generate_prompt **out) {
    const uint64_t vocab = parity->config[PARITY_B].model.vocab;
    uint32_t most = row->length / 4;
    uint32_t longest = 0;
    if (most == 0) most = 1;
    TRY(arena_take(arena, row->batch, sizeof **out, "prompts", out));
    for (uint32_t s = 0; s < row->batch; s++) {
        uint32_t *token;
        uint32_t length = most;
        TRY(arena_take(arena, most, sizeof *token, "prompts", &token));
        if (row->data == PARITY_REAL)
            length = real_prompt(&parity->dataset, s, most, token);
        else if (row->data == PARITY_NUMBERS)
            length = numbers_prompt(vocab, s, most, token);
        else
            TRY(random_prompt(parity->request->seed, vocab, s, most, token));
        (*out)[s] = (struct generate_prompt){token, length};
        const double share = (double)length / (double)row->batch;
        row->prompt = sum_chain_terms_f64_f64(row->prompt, &share, 1);
        if (length > longest) longest = length;
    }
    row->generated = row->length - longest;
    return STATUS_OK;
}
