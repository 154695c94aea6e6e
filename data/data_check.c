/* SPDX-License-Identifier: Apache-2.0
 * Counts over all sequences.
 *
 * Ids of a tokenizer that is not known have no names, so a doubled special token can only be seen
 * there as the same id twice. In bytes it can be seen as the text of a marker that stands next to
 * <bos>, to <eos> or to itself. */
#include "data/data_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "data/tokenizer.h"

static const char *const begins[] = {"<|begin_of_text|>", "<|endoftext|>", "<s>", "<bos>"};
static const char *const ends[] = {
    "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "</s>", "<eos>"};

/* Whether the bytes of `text` stand as tokens from `at` on. */
static int stands_at(const uint32_t *token, size_t length, size_t at, const char *text) {
    const size_t size = strlen(text);
    if (at + size > length) return 0;
    for (size_t i = 0; i < size; i++)
        if (token[at + i] != (unsigned char)text[i]) return 0;
    return 1;
}

static int begins_twice(const uint32_t *token, size_t length) {
    const size_t first = token[0] == TOKENIZER_BOS;
    for (size_t i = 0; i < COUNT_OF(begins); i++)
        if (stands_at(token, length, first, begins[i]) &&
            (first == 1 || stands_at(token, length, strlen(begins[i]), begins[i])))
            return 1;
    return 0;
}

/* An end is doubled where a marker, and perhaps a line end behind it, is followed by <eos> or
 * preceded by the same marker. */
static int ends_twice(const uint32_t *token, size_t length) {
    const int special = token[length - 1] == TOKENIZER_EOS;
    size_t rest = special ? length - 1 : length;
    if (rest > 0 && token[rest - 1] == '\n') rest--;
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        const size_t size = strlen(ends[i]);
        if (rest < size || !stands_at(token, length, rest - size, ends[i])) continue;
        size_t before = rest - size;
        if (special) return 1;
        if (before > 0 && token[before - 1] == '\n') before--;
        if (before >= size && stands_at(token, length, before - size, ends[i])) return 1;
    }
    return 0;
}

static void look(const struct dataset *dataset, const struct dataset_sequence *sequence,
                 struct data_check *out) {
    const uint32_t *token = dataset->token + sequence->first;
    const int32_t *target = dataset->target + sequence->first;
    const size_t length = sequence->length;
    out->sequences++;
    out->begin_doubled +=
        (dataset->bytes ? begins_twice(token, length) : token[0] == token[1]) ? 1 : 0;
    if (sequence->cut > 0) return;
    out->whole++;
    out->end_doubled += (dataset->bytes ? ends_twice(token, length)
                                        : length > 2 && token[length - 1] == token[length - 2])
                            ? 1
                            : 0;
    out->end_masked += target[length - 2] == DATASET_NO_TARGET;
}

/* The majority vote of Boyer and Moore (MJRTY, 1981): if more than half of the whole sequences
 * share a last token, the first pass finds it; if none is so common, it finds some last token. The
 * second pass counts how many have it. */
static void count_ends(const struct dataset *dataset, struct data_check *out) {
    const size_t sequences = dataset->samples * dataset->sides;
    size_t lead = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < sequences; i++) {
            const struct dataset_sequence *sequence = &dataset->sequence[i];
            const uint32_t last = dataset->token[sequence->first + sequence->length - 1];
            if (sequence->cut > 0) continue;
            if (pass == 1) {
                out->end_common += last == out->end_token;
                continue;
            }
            if (lead == 0) out->end_token = last;
            lead = last == out->end_token ? lead + 1 : lead - 1;
        }
}

static int equal_start(const struct dataset *dataset, const struct dataset_sequence *a,
                       const struct dataset_sequence *b, uint32_t count) {
    return a->length >= count && b->length >= count &&
           memcmp(dataset->token + a->first, dataset->token + b->first,
                  count * sizeof *dataset->token) == 0;
}

static void look_at_pair(const struct dataset *dataset, size_t sample, struct data_check *out) {
    const struct dataset_sequence *a = dataset_side(dataset, sample, DATASET_CHOSEN);
    const struct dataset_sequence *b = dataset_side(dataset, sample, DATASET_REJECTED);
    out->equal_sides += a->length == b->length && equal_start(dataset, a, b, a->length);
    out->other_prompts += a->prompt != b->prompt || !equal_start(dataset, a, b, a->prompt);
}

void data_check(const struct dataset *dataset, struct data_check *out) {
    memset(out, 0, sizeof *out);
    for (size_t sample = 0; sample < dataset->samples; sample++) {
        for (uint32_t side = 0; side < dataset->sides; side++)
            look(dataset, dataset_side(dataset, sample, side), out);
        if (dataset->sides == 2) look_at_pair(dataset, sample, out);
    }
    count_ends(dataset, out);
}

int data_check_note(const struct dataset *dataset, const struct data_check *check, size_t index,
                    char *out, size_t size) {
    char common[128];
    snprintf(common, sizeof common,
             "uncut sequences end with token %" PRIu32
             ", the others do not: no common end of text is learned",
             check->end_token);
    const struct {
        size_t count, of;
        int told;
        const char *text;
    } notes[DATA_CHECK_NOTES] = {
        {check->begin_doubled, check->sequences, check->begin_doubled > 0,
         "sequences begin with a doubled token or marker: was the beginning of text added twice, "
         "by a template and by a tokenizer?"},
        {check->end_doubled, check->whole, check->end_doubled > 0,
         "uncut sequences end with a doubled token or marker: was the end of text added twice?"},
        {check->end_common, check->whole, check->end_common < check->whole, common},
        {check->end_masked, check->whole, check->end_masked > 0,
         "uncut sequences have no loss on their last token"},
        {check->equal_sides, dataset->samples, check->equal_sides > 0,
         "pairs have the same tokens on both sides"},
        {check->other_prompts, dataset->samples, check->other_prompts > 0,
         "pairs have other tokens before the first label of chosen than of rejected"},
    };
    if (index >= DATA_CHECK_NOTES) return 0;
    snprintf(out, size, "%zu of %zu %s", notes[index].count, notes[index].of, notes[index].text);
    return notes[index].told;
}
