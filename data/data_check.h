/* SPDX-License-Identifier: Apache-2.0
 * What is odd about a data set before anything trains on it: special tokens that two tools both
 * added, an end that no sequence learns, sides that do not differ. Observations with their counts,
 * never a verdict: all of it may be meant. */
#ifndef TWINSTEP_DATA_DATA_CHECK_H
#define TWINSTEP_DATA_DATA_CHECK_H

#include "data/dataset.h"

struct data_check {
    size_t sequences;
    size_t begin_doubled; /* begin with the same token twice, or with two beginnings of text */
    size_t end_doubled;   /* the same of their ends; cut sequences have none */
    size_t whole;         /* sequences that were not cut */
    size_t end_common;    /* of them, those that end with the most common last token */
    size_t end_masked;    /* of them, those whose last token has no loss */
    uint32_t end_token;   /* that token */
    size_t equal_sides;   /* pairs whose chosen and rejected are the same tokens */
    size_t other_prompts; /* pairs whose tokens before the first label differ */
};

#define DATA_CHECK_NOTES 6
#define DATA_CHECK_NOTE 512 /* bytes that one takes at most */

/* Looks at every sequence. */
void data_check(const struct dataset *dataset, struct data_check *out);

/* Note number `index` for people, into `out` of `size` bytes; 0: there is no such note. */
int data_check_note(const struct dataset *dataset, const struct data_check *check, size_t index,
                    char *out, size_t size);

#endif
