/* SPDX-License-Identifier: Apache-2.0
 * What the three CSV readers share: a header of names over rows of numbers. Private to logs/. */
#ifndef TWINSTEP_LOGS_CSV_TABLE_H
#define TWINSTEP_LOGS_CSV_TABLE_H

#include "logs/csv.h"

enum csv_role {
    CSV_VALUE = 0,
    CSV_STEP, /* the step, when no name says which column is */
    CSV_OWN,  /* no value, but may be the step */
    CSV_SKIP
};

struct csv_habit {
    /* What the column is; may shorten *name to what the log shall call it. `index`: from 0. */
    enum csv_role (*role)(void *self, struct log_span *name, size_t index);
    void *self;
    const struct log_rule *rules;
    /* Names of the step column, the best first; NULL-terminated. */
    const char *const *steps;
    int merges; /* rows of one step that follow each other and share no value are one row */
};

/* A header that starts like a log's: at least `least` names, none of them a number; *columns: how
 * many; *csv stands behind it. 0: it does not. `see` may be NULL. */
int log_csv_claim_header(struct log_csv *csv, size_t *columns,
                         void (*see)(void *self, struct log_span name, size_t index), void *self);
/* 1: the next record has that many fields, or is cut by the end, and one of them is a number;
 * *most: more of them are numbers than texts. */
int log_csv_claim_record(struct log_csv *csv, size_t columns, int *most);

TWINSTEP_MUST_USE enum status log_csv_read(const struct log_source *source, struct log_build *build,
                                           const struct csv_habit *habit);

#endif
