/* SPDX-License-Identifier: Apache-2.0
 * What the three CSV readers share: a header of names over rows of numbers, read with a habit that
 * says how the columns of one tool are to be understood. Private to logs/. */
#ifndef TWINSTEP_LOGS_CSV_TABLE_H
#define TWINSTEP_LOGS_CSV_TABLE_H

#include "logs/csv.h"

enum csv_role {
    CSV_VALUE = 0,
    CSV_STEP, /* the step, unless a column has one of the names of the step */
    CSV_OWN,  /* holds no value for the log, but may be the step */
    CSV_SKIP
};

struct csv_habit {
    /* Says what a column is. It may shorten *name to what the log shall call the column. `index`
     * counts from 0. NULL: every column is a value. */
    enum csv_role (*role)(void *self, struct log_span *name, size_t index);
    void *self;
    const struct log_rule *rules;
    /* Names that the step column may have, the best first; ends with NULL. */
    const char *const *steps;
    int merges; /* 1: neighbouring records of one step that do not contradict each other are one row
                 */
};

/* Reads a header. Returns 1 when it looks like that of a log: at least two names, none of them a
 * number, and a line end behind them. *columns is how many names it has; *csv stands behind it.
 * `see` is called for every name and may be NULL. */
int log_csv_claim_header(struct log_csv *csv, size_t *columns,
                         void (*see)(void *self, struct log_span name, size_t index), void *self);
/* Returns 1 when the next record has that many fields (or is cut by the end of the text) and at
 * least one of them is a number. *most: whether more of its fields are numbers than texts. */
int log_csv_claim_record(struct log_csv *csv, size_t columns, int *most);

TWINSTEP_MUST_USE enum status log_csv_read(const struct log_source *source, struct log_build *build,
                                           const struct csv_habit *habit);

#endif
