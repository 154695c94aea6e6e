/* SPDX-License-Identifier: Apache-2.0
 * Comma-separated text by RFC 4180, field by field: quoted fields, doubled quotes, line ends inside
 * of quotes; tabs and semicolons as separators as well. Reads memory and keeps one field at a time.
 * Private to logs/. */
#ifndef TWINSTEP_LOGS_CSV_H
#define TWINSTEP_LOGS_CSV_H

#include "logs/lines.h"

/* The longest field with doubled quotes that is unquoted; numbers and names are far shorter. */
#define LOG_CSV_FIELD_MAX 1024

struct log_csv {
    const char *start, *at, *end;
    char separator;
    uint32_t line;
    int cut; /* 1: the text ended inside of quotes */
    char unquoted[LOG_CSV_FIELD_MAX];
};

struct log_csv_field {
    struct log_span text; /* without quotes; valid until the next field */
    int last;             /* 1: it ends its record */
    int open;             /* 1: it ends with the text, without a line end, so it may be cut */
};

/* Starts at the first byte and looks at no more than `length` bytes. The separator is the first
 * comma, tab or semicolon outside of quotes in the first line. */
void log_csv_open(struct log_csv *csv, const struct log_source *source, size_t length);
/* Reads the next field. Returns 0 at the end, also when the text ends inside of quotes (then
 * csv->cut is set). With starts_record, empty lines are skipped first. */
int log_csv_next(struct log_csv *csv, int starts_record, struct log_csv_field *out);

/* ---- a table: a header of names over rows of numbers ----
 * It is read with a habit that says how the columns of one tool are to be understood. */

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
