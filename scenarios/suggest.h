/* SPDX-License-Identifier: Apache-2.0
 * Answers "did you mean": which candidate is nearest to a mistyped word. */
#ifndef TWINSTEP_SCENARIOS_SUGGEST_H
#define TWINSTEP_SCENARIOS_SUGGEST_H

#include <stdint.h>

#include "base/key.h"

#define SUGGEST_HINT_SIZE 96
/* Words of keys are shorter; longer ones are cut. */
#define SUGGEST_WORD_SIZE 64

/* Keeps the best of the candidates that were offered; start with {.word = ...}. */
struct suggestion {
    const char *word;
    const char *best; /* NULL: none is within a third of the word's length, at least 1 */
    uint32_t distance;
};

/* Offers one candidate; of two equally near the earlier one stays. */
void suggest_offer(struct suggestion *suggestion, const char *candidate);

/* Offers the word behind "SECTION." of every row in that section, and the first word of every row
 * where the section is "". The best one is kept in `kept`, which must outlive the suggestion. */
void suggest_offer_keys(struct suggestion *suggestion, const struct key_row *rows, size_t count,
                        const char *section, char kept[SUGGEST_WORD_SIZE]);

/* "; did you mean WORD?", or "" where nothing is near enough. */
const char *suggest_hint(const struct suggestion *suggestion, char out[SUGGEST_HINT_SIZE]);

/* The number of insertions, deletions, replacements and swaps of neighbours between two texts; 64
 * for texts of more than 63 bytes. */
uint32_t suggest_distance(const char *a, const char *b);

#endif
