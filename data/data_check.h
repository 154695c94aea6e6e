/* SPDX-License-Identifier: Apache-2.0
 * Finds what is odd about a data set before anything trains on it: special tokens that two tools
 * have both added, an end of text that no sequence teaches, pairs whose sides do not differ. It
 * counts and judges nothing, for any of it may be meant. */
#ifndef TWINSTEP_DATA_DATA_CHECK_H
#define TWINSTEP_DATA_DATA_CHECK_H

#include "data/dataset.h"

struct data_check {
    size_t sequences;
    /* how many begin with one token twice, or with two marks of a beginning of text */
    size_t begin_doubled;
    size_t end_doubled;   /* the same for ends of text; sequences that were cut have lost theirs */
    size_t whole;         /* how many sequences were not cut */
    size_t end_common;    /* how many of these end with the most common last token */
    size_t end_masked;    /* how many of these have no loss on their last token */
    uint32_t end_token;   /* the most common last token */
    size_t equal_sides;   /* how many pairs have the same tokens on both sides */
    size_t other_prompts; /* how many pairs differ in the tokens before their first label */
};

#define DATA_CHECK_NOTES 6
#define DATA_CHECK_NOTE 512 /* bytes that one note takes at most */

/* Looks at every sequence and counts. */
void data_check(const struct dataset *dataset, struct data_check *out);

/* Writes note number `index`, a sentence for people, into `out` of `size` bytes. Returns 0 where
 * the counts give no reason for it, or where no such note exists. */
int data_check_note(const struct dataset *dataset, const struct data_check *check, size_t index,
                    char *out, size_t size);

#endif
