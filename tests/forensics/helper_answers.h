/* SPDX-License-Identifier: Apache-2.0
 * How often each answer was given in many random cases of one kind, in the order in which they came
 * first, and one number made of all that was said, for a block of committed text. With
 * TWINSTEP_SHOW=CASE all that is said of one case is printed. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_ANSWERS_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_ANSWERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ANSWERS_MOST 160

struct answers {
    uint64_t hash; /* of all texts (draws_hash) */
    struct {
        char text[96];
        size_t count;
    } at[ANSWERS_MOST];
};

void answers_count(struct answers *answers, const char *text);
/* Begins what is said of one case; what is written becomes part of the number. */
FILE *answers_begin(void);
/* Ends it. Rules about the case come behind this, so that what breaks one can be shown. */
void answers_end(struct answers *answers, uint32_t number);
/* Asks the cases 0 to `cases` - 1, each of the kind of its remainder, and holds the answers of each
 * kind against the block of its name in a file of tests/golden/forensics (helper_golden.h). The
 * default run asks the first third of them, which have blocks of their own. With sanitizers it asks
 * fewer and holds none: `ask` alone judges these. A program that calls this is labelled `whole`. */
void answers_ask(const char *file, const char *const *kinds, size_t kind_count, uint32_t cases,
                 void (*ask)(uint32_t number, struct answers *answers));

#endif
