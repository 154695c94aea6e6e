/* SPDX-License-Identifier: Apache-2.0
 * The state machine of RFC 4180.
 *
 * Invariant: a field is handed out whole or not at all. */
#include "logs/csv.h"

#include <string.h>

static char find_separator(const char *at, const char *end) {
    int inside = 0;
    for (; at < end && (inside || *at != '\n'); at++) {
        if (*at == '"') inside = !inside;
        if (!inside && (*at == ',' || *at == '\t' || *at == ';')) return *at;
    }
    return ',';
}

void log_csv_open(struct log_csv *csv, const struct log_source *source, size_t length) {
    csv->start = csv->at = (const char *)source->bytes;
    csv->end = csv->at + (length < source->length ? length : source->length);
    csv->separator = find_separator(csv->at, csv->end);
    csv->line = 1;
    csv->cut = 0;
}

static void count_line(struct log_csv *csv) {
    csv->line += csv->line < UINT32_MAX;
}

static void skip_empty_lines(struct log_csv *csv) {
    while (csv->at < csv->end && (*csv->at == '\n' || *csv->at == '\r'))
        if (*csv->at++ == '\n') count_line(csv);
}

/* Reads a quoted field. csv->at stands behind the opening quote before, and behind the closing one
 * after. */
static int read_quoted(struct log_csv *csv, struct log_span *out) {
    const char *start = csv->at;
    int doubled = 0;
    for (; csv->at < csv->end; csv->at++) {
        if (*csv->at == '\n') count_line(csv);
        if (*csv->at != '"') continue;
        if (csv->at + 1 == csv->end || csv->at[1] != '"') break;
        doubled = 1;
        csv->at++;
    }
    if (csv->at == csv->end) {
        csv->cut = 1;
        return 0;
    }
    *out = (struct log_span){start, (size_t)(csv->at++ - start)};
    if (!doubled || out->length > LOG_CSV_FIELD_MAX) return 1;
    size_t kept = 0;
    for (size_t i = 0; i < out->length; i++) {
        csv->unquoted[kept++] = start[i];
        i += start[i] == '"';
    }
    *out = (struct log_span){csv->unquoted, kept};
    return 1;
}

int log_csv_next(struct log_csv *csv, int starts_record, struct log_csv_field *out) {
    if (starts_record) {
        skip_empty_lines(csv);
        if (csv->at == csv->end) return 0;
    }
    struct log_span quoted = {NULL, 0};
    if (csv->at < csv->end && *csv->at == '"') {
        csv->at++;
        if (!read_quoted(csv, &quoted)) return 0;
    }
    const char *start = csv->at;
    while (csv->at < csv->end && *csv->at != csv->separator && *csv->at != '\n')
        csv->at++;
    size_t length = (size_t)(csv->at - start);
    if (length > 0 && start[length - 1] == '\r') length--;
    out->text = quoted.text != NULL ? quoted : log_span_trim((struct log_span){start, length});
    out->open = csv->at == csv->end;
    out->last = out->open || *csv->at == '\n';
    if (!out->open && *csv->at++ == '\n') count_line(csv);
    return 1;
}
