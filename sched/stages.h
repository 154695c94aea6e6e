/* SPDX-License-Identifier: Apache-2.0
 * Reads the lists that some schedules take as a text: "linear:1000:0:1,cosine:5000:0.1". Private to
 * sched/.
 *
 * Commas separate the items, colons separate the parts of an item, and a part may be KEY=VALUE;
 * spaces around any of them are ignored. Lengths in a list count in units of the parameter
 * length_unit. That parameter's own unit is the counter's, so a contract that counts samples or
 * tokens converts it like any other length. Invariant: a text that passed its check once reads the
 * same ever after. */
#ifndef TWINSTEP_SCHED_STAGES_H
#define TWINSTEP_SCHED_STAGES_H

#include "sched/values.h"

#define STAGES_TEXT 200 /* bytes of a list, its NUL included */
#define STAGES_PART 64
#define STAGES_NONE "none"

/* The key rows of a list, and of the unit of the lengths in it. */
#define STAGES_TEXT_ROW(owner, field, text)                                                        \
    SCHED_ROW(KEY_TEXT, owner, field, .unit = "", .standard = STAGES_NONE, .help = text)
#define STAGES_UNIT_ROW(owner)                                                                     \
    SCHED_ROW(KEY_REAL, owner, length_unit, .unit = "counter", .standard = "1", .low = 1e-9,       \
              .high = 0x1p53, .help = "What a length of 1 in a list is")

/* Whether the text is a list and not the word "none". */
int stages_given(const char *text);

/* Copies the next item or part of `*at`, up to `separator` or the end and without spaces around it,
 * into `out`, and moves *at behind it. Returns 0 at the end, where *at is NULL, and for a word that
 * is too long, where out[0] is 0 and *at is not NULL. */
int stages_next(const char **at, char separator, char *out, size_t size);

/* Reads a finite number from low to high. STATUS_INPUT names the key and quotes the whole list. */
TWINSTEP_MUST_USE enum status stages_number(const char *key, const char *list, const char *word,
                                            double low, double high, double *out);

/* Reads numbers between commas, `room` at most. */
TWINSTEP_MUST_USE enum status stages_numbers(const char *key, const char *list, double low,
                                             double *out, size_t room, size_t *out_count);

#endif
