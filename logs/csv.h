/* SPDX-License-Identifier: Apache-2.0
 * Comma-separated text by RFC 4180, field by field: quotes, doubled quotes, line ends inside of
 * quotes; also with tabs or semicolons. Reads memory, keeps one field. Private to logs/. */
#ifndef TWINSTEP_LOGS_CSV_H
#define TWINSTEP_LOGS_CSV_H

#include "logs/lines.h"

#define LOG_CSV_FIELD_MAX 1024 /* longest field with doubled quotes */

struct log_csv {
    const char *start, *at, *end;
    char separator;
    uint32_t line;
    int cut; /* the text ended inside of quotes */
    char unquoted[LOG_CSV_FIELD_MAX];
};

struct log_csv_field {
    struct log_span text; /* without quotes; valid until the next field */
    int last;             /* of its record */
    int open;             /* ends with the text, without a line end */
};

/* The separator is the first of comma, tab and semicolon outside of quotes in the first line. */
void log_csv_open(struct log_csv *csv, const struct log_source *source, size_t length);
/* 0 at the end, also when the text ends inside of quotes (csv->cut). Skips empty lines before a
 * record. */
int log_csv_next(struct log_csv *csv, int starts_record, struct log_csv_field *out);

#endif
