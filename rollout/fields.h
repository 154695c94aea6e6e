/* SPDX-License-Identifier: Apache-2.0
 * The names that fields have in the files of others (docs/ROLLOUT.md prints this table). Private to
 * rollout/. The first name of a field is ours; of several in one file the first in the table
 * counts. */
#ifndef TWINSTEP_ROLLOUT_FIELDS_H
#define TWINSTEP_ROLLOUT_FIELDS_H

#include "rollout/rollout_sequence.h"

struct rollout_name {
    const char *name;
    enum rollout_field field;
    int pairs;        /* 1: each element is a list [log-prob, id, ...], as SGLang prints it */
    const char *from; /* who writes it so */
};

/* Ends with a name of NULL. */
extern const struct rollout_name rollout_names[];
extern const char *const rollout_field_words[ROLLOUT_FIELDS];

/* Names that the user gave (--field ROLE=NAME); NULL: the table's. */
struct rollout_naming {
    const char *name[ROLLOUT_FIELDS];
};

/* Reads "ROLE=NAME", where ROLE is a word of rollout_field_words. */
TWINSTEP_MUST_USE enum status rollout_naming_add(struct rollout_naming *naming, const char *text);

/* Returns the field that a name has, or ROLLOUT_FIELDS. *out_rank orders the names of one field,
 * the lowest first; *out_pairs is as in the table. `lone`: what "logprobs" means where nothing says
 * whose they are (the side of a file of its own), or ROLLOUT_FIELDS. */
enum rollout_field rollout_field_of(const struct rollout_naming *naming, const char *name,
                                    size_t length, enum rollout_field lone, int *out_rank,
                                    int *out_pairs);

#endif
