/* SPDX-License-Identifier: Apache-2.0
 * A scanner of JSON as training tools write it: tokens one by one, numbers as their text, NaN and
 * Infinity besides, no tree (docs/decisions/log-json.md says why not jansson). Private to logs/.
 *
 * Reads one value or a row of values without commas between them (JSONL). Strict elsewhere: a
 * comma too many, an unknown escape or a raw line end in a string is an error with its place.
 * Invariant: memory is this struct; nesting deeper than SCAN_DEPTH is an error, never recursion. */
#ifndef TWINSTEP_LOGS_SCAN_H
#define TWINSTEP_LOGS_SCAN_H

#include "logs/reader.h"

#define SCAN_DEPTH 64
#define SCAN_TEXT 512

enum scan_token {
    SCAN_END = 0, /* of the bytes; only outside all brackets */
    SCAN_OBJECT,
    SCAN_OBJECT_END,
    SCAN_ARRAY,
    SCAN_ARRAY_END,
    SCAN_KEY, /* text: the name; the value follows */
    SCAN_STRING,
    SCAN_NUMBER, /* text: as written; NaN, Infinity, -Infinity are numbers here */
    SCAN_TRUE,
    SCAN_FALSE,
    SCAN_NULL
};

struct scan {
    const struct log_source *source;
    size_t at;
    uint32_t line;
    size_t line_start;
    int depth;
    uint64_t objects; /* bit d: the bracket of depth d + 1 is an object */
    int wants;        /* enum in scan.c: what may stand here */
    enum scan_token token;
    const char *text; /* of the token at hand: into the source, or into `buffer` */
    size_t length;
    size_t start;           /* where the token begins */
    int cut;                /* the bytes end inside a value */
    char buffer[SCAN_TEXT]; /* strings with escapes, cut at its size */
};

void scan_open(struct scan *scan, const struct log_source *source);
/* Moves to the next token. STATUS_INPUT: file:line:column, what was expected, what came. */
TWINSTEP_MUST_USE enum status scan_next(struct scan *scan);
/* The token at hand must be this one. */
TWINSTEP_MUST_USE enum status scan_expect(struct scan *scan, enum scan_token token);
/* Moves over the value that begins with the token at hand, to its last token. */
TWINSTEP_MUST_USE enum status scan_skip(struct scan *scan);
/* "NAME:LINE:COLUMN: expected WHAT, got ..." at the token at hand. */
enum status scan_fail(struct scan *scan, const char *what);

int scan_is(const struct scan *scan, const char *text);
/* A whole decimal number, also as "5.0" or in a string. 0: it is none. */
int scan_integer(const char *text, size_t length, int64_t *out);

#endif
