/* SPDX-License-Identifier: Apache-2.0
 * Texts that are met often, each kept once and known by a number from 1 on: equal texts have equal
 * numbers. Names of ops and modules, and values (dtype, shape and hashes) are such texts, so that
 * two dumps are compared by numbers.
 *
 * Invariant: two numbers are equal exactly where the bytes are; a hash only finds the place. */
#ifndef TWINSTEP_DUMPS_DUMP_WORDS_H
#define TWINSTEP_DUMPS_DUMP_WORDS_H

#include <stdint.h>

#include "base/arena.h"

struct word {
    const char *text; /* with a NUL behind it */
    size_t length;
    uint64_t hash;
};

struct words {
    struct arena *arena;
    struct word *list; /* list[0] is the empty text */
    size_t count, room;
    uint32_t *slots; /* number of a word by its hash; 0: free */
    size_t slot_count;
};

TWINSTEP_MUST_USE enum status words_open(struct arena *arena, struct words *out);
/* Stores the number of the text, which is copied when it is new. The empty text has number 0. */
TWINSTEP_MUST_USE enum status words_number(struct words *words, const void *text, size_t length,
                                           uint32_t *out);

#endif
