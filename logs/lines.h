/* SPDX-License-Identifier: Apache-2.0
 * The lines of a console log, and the small text tools that its readers share. For logs/ and
 * dumps/.
 *
 * A line is what stands between line ends. A carriage return counts as one, since progress bars
 * write them. ANSI escapes are taken out, and so is a tag in front: of a rank ("[rank0]:",
 * "[default3]:", "0: "), or of an actor of Ray ("(TaskRunner pid=123) "). Reads, keeps nothing but
 * one line, and knows no format. */
#ifndef TWINSTEP_LOGS_LINES_H
#define TWINSTEP_LOGS_LINES_H

#include "logs/reader.h"

/* The longest line with escapes, since those are copied to be cleaned; lines without may be of any
 * length. */
#define LOG_LINE_MAX 16384
#define LOG_CLAIM_BYTES 65536
#define LOG_RANK_NONE (-1)
#define LOG_READERS_MAX 64

struct log_line {
    struct log_span span;
    uint32_t number; /* line of the file, counted from 1 */
    int32_t rank;    /* number in the rank tag in front, or LOG_RANK_NONE */
    int open;        /* 1: the file ends here without a line end, so the last value may be cut */
};

struct log_lines {
    const struct log_source *source;
    struct log_build *build;
    const char *at, *end;
    uint32_t number;
    int32_t rank, kept_rank;
    int at_start; /* 1: at the start of a physical line */
    size_t too_long, other_ranks;
    struct log_span given; /* the line at hand; text NULL: none, or it was taken as a row */
    uint32_t foreign[LOG_READERS_MAX]; /* lines that are rows of another reader, by its place in the
                                          table */
    uint32_t open_row;                 /* line of a row that may be cut; 0: none */
    char clean[LOG_LINE_MAX];
};

/* Lines that say that an update was skipped are counted in `build`, which may be NULL. */
void log_lines_open(struct log_lines *lines, const struct log_source *source,
                    struct log_build *build);
/* Returns how many of the bytes stand before the end of the last whole line; all of them when they
 * hold no line end. */
size_t log_lines_whole(const unsigned char *bytes, size_t length);
/* Opens only the first LOG_CLAIM_BYTES, without the line that this cuts. */
void log_lines_open_head(struct log_lines *lines, const struct log_source *source);
/* Moves to the next line that is not empty. Returns 0 at the end. */
int log_lines_next(struct log_lines *lines, struct log_line *out);
/* Tells the walk that the line holds a row. Returns 0 when the row must be left out because another
 * rank prints the same rows; the first rank that prints a row is the one that is kept. */
int log_lines_take(struct log_lines *lines, const struct log_line *line);
/* Adds notes about what was left out. */
TWINSTEP_MUST_USE enum status log_lines_close(const struct log_lines *lines,
                                              struct log_build *build);

/* ---- spans ---- */

struct log_span log_span_trim(struct log_span span);
/* Returns what stands behind the first `word`; text NULL and length 0 when the word is not there.
 */
struct log_span log_span_after(struct log_span span, const char *word);
int log_span_starts(struct log_span span, const char *word);
/* If the span starts with `word`, moves *rest behind it and returns 1. */
int log_span_take(struct log_span *rest, const char *word);
int log_span_is(struct log_span span, const char *word);
int log_span_ends(struct log_span span, const char *word);
int log_span_is_number(struct log_span span);
/* Returns what stands before the first `mark` (everything, when there is none) and moves *rest
 * behind it. */
struct log_span log_span_until(struct log_span *rest, char mark);
/* Returns the next word, up to a blank or tab, and moves *rest behind it. Length 0 at the end. */
struct log_span log_span_word(struct log_span *rest);
/* Reads decimal digits at the start and moves *rest behind them. Returns 0 when there are none, or
 * the number is beyond 2^62. */
int log_span_integer(struct log_span *rest, int64_t *out);
void log_span_blanks(struct log_span *rest);

/* ---- values ---- */

/* Puts `value` into column `name` of the row at hand. What is no number is left out. */
TWINSTEP_MUST_USE enum status log_put_text(struct log_build *build, const struct log_rule *rules,
                                           struct log_span name, struct log_span value);

/* ---- formats of one row per line ---- */

struct log_row {
    int64_t step;         /* the step as the format counts */
    uint64_t max_steps;   /* updates of the whole run; 0: the line does not say */
    struct log_span rest; /* the part of the line that holds the fields */
    int open;             /* as in struct log_line: the line may be cut */
};

/* What makes a console format whose rows are lines that say their step at the start: the walk over
 * the lines is shared, the grammar looks at one line and keeps nothing between lines. */
struct log_grammar {
    /* How sure a line of the format makes the claim, as log_reader_claim says it; 0: it is no line
     * of the format. NULL: `sure` where the head knows the line. */
    int (*claim_line)(struct log_span line);
    int sure;
    /* Looks at the head of a line. Returns 0 when the line is no row. Otherwise it fills step and
     * rest, and max_steps (0 before the call) where the line says it. */
    int (*head)(struct log_span line, struct log_row *out);
    /* Puts the values of the fields of `row` into the row at hand. */
    TWINSTEP_MUST_USE enum status (*fields)(struct log_build *build, const struct log_row *row);
    /* Tells whether a line is a row that is not whole, or a piece of one, so that a note says how
     * many there are. NULL: nothing in the format shows it. */
    int (*torn)(struct log_span line);
    int marked; /* 1: `fields` takes a value only together with the mark behind it, so it never
                   takes a cut one */
};

/* What claims and reads for a reader with a grammar. The walk claims the source by
 * the first line that the grammar claims, leaves out what other ranks print, starts rows and notes
 * what is cut. */
int log_lines_claim(const struct log_source *source, const struct log_grammar *grammar);
TWINSTEP_MUST_USE enum status log_lines_read(const struct log_source *source,
                                             struct log_build *build,
                                             const struct log_grammar *grammar);

#endif
