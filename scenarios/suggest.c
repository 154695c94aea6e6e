/* SPDX-License-Identifier: Apache-2.0
 * Edit distance with swaps of neighbours (optimal string alignment). A swap looks two rows back, so
 * three rows of the table are kept, in turn. */
#include "scenarios/suggest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 64

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t suggest_distance(const char *a, const char *b) {
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length >= LONGEST || b_length >= LONGEST) return LONGEST;
    uint32_t table[3][LONGEST];
    for (size_t j = 0; j <= b_length; j++)
        table[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= a_length; i++) {
        uint32_t *row = table[i % 3];
        const uint32_t *above = table[(i + 2) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_length; j++) {
            uint32_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = smaller(best, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = smaller(best, table[(i + 1) % 3][j - 2] + 1);
            row[j] = best;
        }
    }
    return table[a_length % 3][b_length];
}

void suggest_offer(struct suggestion *suggestion, const char *candidate) {
    uint32_t distance = suggest_distance(suggestion->word, candidate);
    uint32_t limit = (uint32_t)strlen(suggestion->word) / 3;
    if (distance > (limit == 0 ? 1 : limit)) return;
    if (suggestion->best != NULL && suggestion->distance <= distance) return;
    suggestion->best = candidate;
    suggestion->distance = distance;
}

void suggest_offer_keys(struct suggestion *suggestion, const struct key_row *rows, size_t count,
                        const char *section, char kept[SUGGEST_WORD_SIZE]) {
    const size_t length = strlen(section);
    for (size_t i = 0; i < count; i++) {
        const char *rest = rows[i].path + length;
        char word[SUGGEST_WORD_SIZE];
        if (strncmp(rows[i].path, section, length) != 0) continue;
        if (length != 0 && *rest++ != '.') continue;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(rest, "."), rest);
        suggest_offer(suggestion, word);
        if (suggestion->best == word) suggestion->best = strcpy(kept, word);
    }
}

const char *suggest_hint(const struct suggestion *suggestion, char out[SUGGEST_HINT_SIZE]) {
    if (suggestion->best == NULL) return "";
    snprintf(out, SUGGEST_HINT_SIZE, "; did you mean %.64s?", suggestion->best);
    return out;
}
