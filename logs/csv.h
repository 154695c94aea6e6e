/* SPDX-License-Identifier: Apache-2.0
 * Comma-separated text by RFC 4180, field by field: quoted fields, doubled quotes, line ends inside
 * of quotes; tabs and semicolons as separators as well. Reads memory and keeps one field at a time.
 * Private to logs/. */
#ifndef TWINSTEP_LOGS_CSV_H
#define TWINSTEP_LOGS_CSV_H

#include "logs/lines.h"

#define LOG_CSV_FIELD_MAX                                                                          \
    1024 /* the longest field with doubled quotes that is unquoted; numbers and names are far      \
            shorter */

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

#endif
