/* SPDX-License-Identifier: Apache-2.0
 * Reads expect.shares word by word: every entry has the same four. */
#include "scenarios/expect_shares.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define WORD_SIZE 48

/* Takes the next word, which ends at a blank, a `;` or the end; "" where there is none. */
static const char *take_word(const char *at, char out[WORD_SIZE]) {
    at += strspn(at, " ");
    const size_t length = strcspn(at, " ;");
    snprintf(out, WORD_SIZE, "%.*s", (int)(length < WORD_SIZE ? length : WORD_SIZE - 1), at);
    return at + length;
}

static enum status read_cause(const char *word, const struct expected_share *before, uint32_t count,
                              enum cause *out) {
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        if (strcmp(word, cause_name((enum cause)cause)) != 0) continue;
        for (uint32_t i = 0; i < count; i++)
            if (before[i].cause == (enum cause)cause)
                FAIL(STATUS_INPUT, "expected each cause once, got %s twice", word);
        *out = (enum cause)cause;
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "expected the name of a cause as in \"schedule 0.9 +- 0.05\", got \"%s\"",
         word);
}

static enum status read_entry(const char **at, const struct expected_share *before, uint32_t count,
                              struct expected_share *out) {
    char word[4][WORD_SIZE];
    for (int i = 0; i < 4; i++)
        *at = take_word(*at, word[i]);
    TRY(read_cause(word[0], before, count, &out->cause));
    TRY(number_parse_real(word[1], 0, &out->share));
    if (strcmp(word[2], "+-") != 0)
        FAIL(STATUS_INPUT, "expected +- and a tolerance after the share of %s, got \"%s\"", word[0],
             word[2]);
    TRY(number_parse_real(word[3], 0, &out->tolerance));
    if (out->tolerance < 0.0)
        FAIL(STATUS_INPUT, "expected a tolerance of at least 0 for %s, got %s", word[0], word[3]);
    snprintf(out->text, sizeof out->text, "%.45s +- %.45s", word[1], word[3]);
    *at += strspn(*at, " ");
    if (**at == '\0') return STATUS_OK;
    if (**at != ';')
        FAIL(STATUS_INPUT, "expected ; after the tolerance of %s, got \"%.20s\"", word[0], *at);
    (*at)++;
    return STATUS_OK;
}

enum status expect_shares_read(const char *text, struct expected_share out[CAUSE_COUNT],
                               uint32_t *out_count) {
    uint32_t count = 0;
    *out_count = 0;
    while (*text != '\0') {
        struct expected_share entry = {.share = 0.0};
        TRY(read_entry(&text, out, count, &entry));
        out[count++] = entry;
    }
    *out_count = count;
    return STATUS_OK;
}
