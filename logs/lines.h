/* SPDX-License-Identifier: Apache-2.0
 * The lines of a console log, and the small text tools that its readers share. Private to logs/.
 *
 * A line is what stands between line ends, carriage returns counted as such (progress bars), with
 * ANSI escapes and a rank tag in front ("[rank0]:", "[default3]:", "0: ") taken off. Reads, keeps
 * nothing but one line. Knows no format. */
#ifndef TWINSTEP_LOGS_LINES_H
#define TWINSTEP_LOGS_LINES_H

#include "logs/reader.h"

#define LOG_LINE_MAX 16384 /* longest line with escapes; those without may be of any length */
#define LOG_CLAIM_BYTES 65536
#define LOG_RANK_NONE (-1)

struct log_span {
    const char *text;
    size_t length;
};

struct log_line {
    struct log_span span;
    uint32_t number; /* 1-based, of the file's lines */
    int32_t rank;    /* of the tag in front, or LOG_RANK_NONE */
    int open;        /* 1: the file ends without a line end: its last value may be cut */
};

struct log_lines {
    const struct log_source *source;
    const char *at, *end;
    uint32_t number;
    int32_t rank, kept_rank;
    int at_start; /* of a physical line */
    size_t too_long, other_ranks;
    uint32_t open_row; /* line of a row that may be cut, 0: none */
    char clean[LOG_LINE_MAX];
};

void log_lines_open(struct log_lines *lines, const struct log_source *source);
/* Only the first LOG_CLAIM_BYTES, and no line that is cut there. */
void log_lines_open_head(struct log_lines *lines, const struct log_source *source);
/* 0 at the end. Empty lines are passed over. */
int log_lines_next(struct log_lines *lines, struct log_line *out);
/* Says that the line holds a row. 0: leave it out, another rank prints the same rows. */
int log_lines_take(struct log_lines *lines, const struct log_line *line);
/* Notes about what was left out. */
TWINSTEP_MUST_USE enum status log_lines_close(const struct log_lines *lines,
                                              struct log_build *build);

/* ---- spans ---- */

struct log_span log_span_trim(struct log_span span);
/* Behind the first `word`; length 0 and text NULL when it is not there. */
struct log_span log_span_after(struct log_span span, const char *word);
int log_span_starts(struct log_span span, const char *word);
/* log_span_starts; when it does, *rest goes behind the word. */
int log_span_take(struct log_span *rest, const char *word);
int log_span_is(struct log_span span, const char *word);
int log_span_ends(struct log_span span, const char *word);
int log_span_is_number(struct log_span span);
/* What stands before the first `mark` (all, when there is none); *rest goes behind it. */
struct log_span log_span_until(struct log_span *rest, char mark);
/* Up to the next blank or tab; *rest goes behind it. Length 0 at the end. */
struct log_span log_span_word(struct log_span *rest);
/* Decimal digits at the start; *rest goes behind them. 0: none, or beyond 2^62. */
int log_span_integer(struct log_span *rest, int64_t *out);
void log_span_blanks(struct log_span *rest);

/* ---- values ---- */

/* `value` into column `name` of the row at hand. What is no number is left out. */
TWINSTEP_MUST_USE enum status log_put_text(struct log_build *build, const struct log_rule *rules,
                                           struct log_span name, struct log_span value);
#endif
