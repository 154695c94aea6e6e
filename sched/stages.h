/* SPDX-License-Identifier: Apache-2.0
 * Lists in a text parameter: "linear:1000:0:1,cosine:5000:0.1". Private to sched/.
 *
 * Items lie between commas, their parts between colons, a part may be KEY=VALUE; spaces around any
 * of them are nothing. Lengths in a text are in units of the parameter length_unit, whose own unit
 * is the counter's, so a contract that counts samples or tokens converts them like any length.
 * Invariant: a text that was checked once reads the same ever after. */
#ifndef TWINSTEP_SCHED_STAGES_H
#define TWINSTEP_SCHED_STAGES_H

#include "sched/values.h"

#define STAGES_TEXT 200 /* with the NUL */
#define STAGES_PART 64
#define STAGES_NONE "none"

#define STAGES_TEXT_ROW(owner, name, size, standard, help)                                         \
    {                                                                                              \
#name, KEY_TEXT, "", standard, CAUSE_SCHEDULE, help, offsetof(struct owner, name), size,   \
            0, 0, NULL, NULL                                                                       \
    }
#define STAGES_UNIT_ROW(owner)                                                                     \
    {                                                                                              \
        "length_unit", KEY_REAL, "counter", "1", CAUSE_SCHEDULE,                                   \
            "What a length of 1 in a list is", offsetof(struct owner, length_unit),                \
            sizeof(double), 1e-9, 0x1p53, NULL, NULL                                               \
    }

int stages_given(const char *text);

/* The next item or part of `*at` before `separator` or the end, without spaces around it, into
 * `out`, and moves *at behind it. 0 at the end (*at NULL) and for a word that is too long: then
 * out[0] is 0 and *at is not NULL. */
int stages_next(const char **at, char separator, char *out, size_t size);

/* A finite number from low to high. STATUS_INPUT names the key and the whole list. */
TWINSTEP_MUST_USE enum status stages_number(const char *key, const char *list, const char *word,
                                            double low, double high, double *out);

/* Numbers between commas, at most `room`. */
TWINSTEP_MUST_USE enum status stages_numbers(const char *key, const char *list, double low,
                                             double *out, size_t room, size_t *out_count);

#endif
