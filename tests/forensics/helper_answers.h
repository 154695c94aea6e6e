/* SPDX-License-Identifier: Apache-2.0
 * How often each answer was given in many random cases of one kind, in the order in which they came
 * first, and one number made of all that was said, for a block of committed text. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_ANSWERS_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

#define ANSWERS_MOST 160

struct answers {
    uint64_t hash; /* of all texts (draws_hash) */
    struct {
        char text[96];
        size_t count;
    } at[ANSWERS_MOST];
};

void answers_open(struct answers *answers);
void answers_count(struct answers *answers, const char *text);
/* Holds them against block `name` of a file of tests/golden/forensics (helper_golden.h). */
void answers_hold(const struct answers *answers, const char *file, const char *name);

#endif
