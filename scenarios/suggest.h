/* SPDX-License-Identifier: Apache-2.0
 * "did you mean": the candidate nearest to a mistyped word. */
#ifndef TWINSTEP_SCENARIOS_SUGGEST_H
#define TWINSTEP_SCENARIOS_SUGGEST_H

#include <stdint.h>

/* Keeps the best of the candidates offered; start with {.word = ...}. */
struct suggestion {
    const char *word;
    const char *best; /* NULL: nothing near enough (a third of the word's length, at least 1) */
    uint32_t distance;
};

/* Ties keep the earlier candidate. */
void suggest_offer(struct suggestion *suggestion, const char *candidate);

/* Insertions, deletions, replacements and swaps of neighbours; 64 for texts over 63 bytes. */
uint32_t suggest_distance(const char *a, const char *b);

#endif
