/* SPDX-License-Identifier: Apache-2.0
 * A scanner of JSON as training tools write it: tokens one by one, numbers as their text, NaN and
 * Infinity besides, and no tree (docs/decisions/log-json.md says why it is not jansson). For logs/,
 * rollout/ and dumps/.
 *
 * It reads one value, or a row of values without commas between them (JSONL). Elsewhere it is
 * strict: a comma too many, an unknown escape or a raw line end in a string is an error with its
 * place. Invariant: its memory is this struct, and nesting deeper than SCAN_DEPTH is an error,
 * never recursion. */
#ifndef TWINSTEP_LOGS_SCAN_H
#define TWINSTEP_LOGS_SCAN_H

#include "logs/reader.h"

#define SCAN_DEPTH 64
#define SCAN_TEXT 512

enum scan_token {
    SCAN_END = 0, /* the end of the bytes; it comes only outside of all brackets */
    SCAN_OBJECT,
    SCAN_OBJECT_END,
    SCAN_ARRAY,
    SCAN_ARRAY_END,
    SCAN_KEY, /* its text is the name; the value follows */
    SCAN_STRING,
    SCAN_NUMBER, /* its text is the number as written; NaN, Infinity, -Infinity are numbers here */
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
    uint64_t objects; /* bit d says that the bracket of depth d + 1 is an object */
    int wants;        /* what may stand here (an enum in scan.c) */
    enum scan_token token;
    const char *text; /* text of the token at hand: it points into the source, or into `buffer` */
    size_t length;
    size_t start;           /* where the token at hand begins */
    int cut;                /* 1: the bytes end inside a value */
    char buffer[SCAN_TEXT]; /* strings with escapes, cut at the buffer's size */
};

void scan_open(struct scan *scan, const struct log_source *source);
/* Moves to the next token. STATUS_INPUT says file:line:column, what was expected and what came. */
TWINSTEP_MUST_USE enum status scan_next(struct scan *scan);
/* Fails unless the token at hand is this one. */
TWINSTEP_MUST_USE enum status scan_expect(struct scan *scan, enum scan_token token);
/* Moves over the value that begins with the token at hand, to its last token. */
TWINSTEP_MUST_USE enum status scan_skip(struct scan *scan);
/* Fails with "NAME:LINE:COLUMN: expected WHAT, got ..." at the token at hand. */
enum status scan_fail(struct scan *scan, const char *what);

int scan_is(const struct scan *scan, const char *text);
/* Reads a whole decimal number, also as "5.0" or from a string. Returns 0 when it is none. */
int scan_integer(const char *text, size_t length, int64_t *out);

#endif
