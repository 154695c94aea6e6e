/* SPDX-License-Identifier: Apache-2.0
 * What the training tools call our quantities. Private to logs/.
 *
 * The spellings are those of the tools' sources (docs/LOGS.md says which are known). They are
 * compared without regard to case and without a leading `train/`. Everything under eval is
 * LOG_OTHER, except the loss. */
#ifndef TWINSTEP_LOGS_NAMES_H
#define TWINSTEP_LOGS_NAMES_H

#include "logs/log.h"

struct log_known {
    int32_t name;            /* enum log_name */
    int32_t rank;            /* of several columns that claim one name, the lowest rank has it */
    uint8_t cumulative;      /* 1: a running total */
    const char *sources[12]; /* the spellings; NULL ends them */
};

/* Returns the row with a spelling, or NULL when it is not known. */
const struct log_known *log_known_name(const char *source, size_t length);

/* Returns LOG_LR_LOGGED for "lr_logged" and so on, or LOG_OTHER when it is no name of ours. */
enum log_name log_name_by_text(const char *text);

/* Tells whether a text beside numbers says that they are of an evaluation: its column is called as
 * "split" or "mode" is, and it begins with a word as "val" is ("val", "Validation", "eval_step").
 * A mode or a type "test" may be of a whole training, so there that word says nothing. */
int log_says_evaluation(const char *column, size_t column_length, const char *text, size_t length);

/* Tells whether a column of that name may hold such texts. */
int log_may_say_evaluation(const char *column, size_t length);

/* Tells whether the quantity counts something, so that a whole number of it is exact. */
int log_name_counts(int32_t name);

#endif
