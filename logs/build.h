/* SPDX-License-Identifier: Apache-2.0
 * How a reader fills a log: a column appears when its name is first seen, rows are appended, and
 * log_build_finish makes the arrays. Nothing else writes a struct log. Private to logs/.
 *
 * Arrays grow by doubling inside the arena, so the memory stays within a small factor of the
 * values. */
#ifndef TWINSTEP_LOGS_BUILD_H
#define TWINSTEP_LOGS_BUILD_H

#include "logs/import.h"
#include "logs/log.h"

struct log_build;

/* Columns beyond this many are left out, and a note says so. It bounds the work that a hostile
 * header can ask for, and is chosen far above what training tools log. */
#define LOG_COLUMNS_MAX 4096
/* The index that a column beyond the limit gets; values put there are dropped. */
#define LOG_COLUMN_IGNORED SIZE_MAX

/* How the numbers of a column were printed, which decides their quanta. */
enum log_print {
    /* Each text's quantum is its last digit. But where any text of the column has 15 significant
     * digits or more, a program wrote its doubles out in full and all quanta are 0: 15 is DBL_DIG,
     * and no tool rounds to so many digits. */
    LOG_PRINT_TEXT = 0,
    /* A JSON writer's shortest repr of a number that the program may have rounded before. Whole
     * numbers are exact. With one text of 15 significant digits or more the column is exact, but
     * for an LR whose every number is binary32: it has their spacing.
     * Otherwise the column's quantum is that of its finest text, since a repr drops the zeros at
     * its end (0.693 beside 0.6931). Where a text has an exponent, the program may have kept
     * significant digits and not decimals: then no value has more of them than the longest text of
     * the column. A column with a text that no repr writes (0.6930, 5.00e-07, 5E-7) is treated as
     * LOG_PRINT_TEXT. */
    LOG_PRINT_JSON,
    /* A cell of CSV: as LOG_PRINT_JSON, but where a text has an exponent each text's own last digit
     * counts, since printf keeps the zeros that a repr drops. */
    LOG_PRINT_TABLE,
    /* As LOG_PRINT_JSON of numbers that went through binary32: a column that would be exact, and
     * holds nothing but binary32, has their spacing. */
    LOG_PRINT_FLOAT,
    /* A shortest repr, binary64 itself, or a value whose quantum the reader gives. Text: 0. */
    LOG_PRINT_EXACT,
    /* Rounded to `decimals` places before it was printed: the quantum is 10^-decimals, unless a
     * text has other digits than zeros behind them, or four different numbers or more all have
     * fewer: then it is that of the finest text. */
    LOG_PRINT_DECIMALS
};

struct log_rule {       /* how a reader wants the column of a source name to be treated */
    const char *source; /* the whole name, or "*" for any name (as the last row) */
    int32_t name;       /* enum log_name; LOG_NAMES: what the table of known names says */
    int32_t print;
    int32_t decimals;
    uint8_t cumulative, windowed;
};
/* The last rows of a table of rules: all other columns, treated as `print` says. */
#define LOG_RULES_END(how)                                                                         \
    {.source = "*", .name = LOG_NAMES, .print = (how)}, {                                          \
        .source = NULL                                                                             \
    }
/* Tables of nothing else. Exact columns are those of tools that round nothing before a shortest
 * repr, and those whose quanta the reader gives itself. */
extern const struct log_rule log_rules_exact[], log_rules_json[];

TWINSTEP_MUST_USE enum status log_build_open(const char *path, const char *format,
                                             const struct log_options *options, struct arena *arena,
                                             struct log_build **out);
/* Returns the memory that only the building needed; the log stays. It must be called in every case,
 * also after an error; NULL is allowed. */
void log_build_close(struct log_build *build);

/* Returns the name of the reader that builds. */
const char *log_build_format(const struct log_build *build);
/* Returns what --map step=THEIRS says, or NULL. Readers of files whose names are free (CSV, JSON)
 * ask for it. */
const char *log_build_step_source(const struct log_build *build);
/* Memory that a reader may use while it reads, and the options it runs under. log_build_close
 * returns the memory. */
struct arena *log_build_scratch(struct log_build *build);
const struct log_options *log_build_options(const struct log_build *build);

/* Sets *out to the index of the column with that source name, which is made when it is first seen.
 * What the column is follows from --map first, then from `rules` (an array that ends with source
 * NULL; may be NULL), then from the table of known names (logs/names.c). */
TWINSTEP_MUST_USE enum status log_build_column(struct log_build *build, const char *source,
                                               size_t length, const struct log_rule *rules,
                                               size_t *out);
/* Sets *out to the column that has the values of an evaluation under the name of that one:
 * "eval/loss" of "loss". One whose own name says it stays. */
TWINSTEP_MUST_USE enum status log_build_evaluation(struct log_build *build, size_t column,
                                                   const struct log_rule *rules, size_t *out);
/* Starts a row. `step` is the step as the source counts, INT64_MIN when it is unknown. */
TWINSTEP_MUST_USE enum status log_build_row(struct log_build *build, int64_t step, uint32_t line,
                                            uint32_t part);
/* Goes to the row of that step and part, and starts it when it is not there. It serves sources that
 * hold one series behind the other. The rows of such a log are sorted by part and step at the end.
 */
TWINSTEP_MUST_USE enum status log_build_row_of(struct log_build *build, int64_t step, uint32_t line,
                                               uint32_t part);
/* Records that a row has a number under a name of the step that is no whole one, so that the note
 * about rows without a step says so. The first one counts. */
TWINSTEP_MUST_USE enum status log_build_odd_step(struct log_build *build, const char *name,
                                                 const char *text, size_t length, uint32_t line);
/* Records that the source trained in bf16, for which no framework scales the loss. */
void log_build_bf16(struct log_build *build);
/* Records that a row names the loss and has no number there. Where no row has one, a note says so.
 */
void log_build_blank_loss(struct log_build *build);
/* Counts a line that says that an update was skipped. The next row holds the count, in the column
 * LOG_SKIP_LINES. */
void log_build_skip(struct log_build *build);
/* Reads a number and how finely it was printed: its value, the spacing of its last digit, and its
 * significant digits. It accepts commas between groups of three, a sign, and the spellings of NaN
 * and infinity of Python and C. Returns 0 when the text is no number. */
struct log_number {
    double value, quantum;
    int digits;
};
int log_number_read(const char *text, size_t length, struct log_number *out);
/* Tells a text of printf from a shortest repr: a fraction that ends in zeros (but "1.0" is a repr),
 * or the upper-case exponent mark of printf("%E"). */
int log_text_is_printed(const char *text, size_t length);
/* Puts a number, given as text ("5.00E-07", "1,234", "nan", "Infinity", "-inf"), into the row at
 * hand. STATUS_INPUT when it is no number. */
TWINSTEP_MUST_USE enum status log_build_text(struct log_build *build, size_t column,
                                             const char *text, size_t length);
/* As log_build_text, of a number that log_number_read has read from the text. */
TWINSTEP_MUST_USE enum status log_build_number(struct log_build *build, size_t column,
                                               const char *text, size_t length,
                                               const struct log_number *number);
/* Puts a number that was printed with that many significant digits and without the zeros at its end
 * (as %.4g does in C and Python): its quantum is that of its last possible digit. significant 0: as
 * many as the text shows. A 0 is exact. STATUS_INPUT when it is no number. */
TWINSTEP_MUST_USE enum status log_build_digits(struct log_build *build, size_t column,
                                               const char *text, size_t length, int significant);
/* Puts a number that the reader knows to the bit, with its quantum. */
TWINSTEP_MUST_USE enum status log_build_value(struct log_build *build, size_t column, double value,
                                              double quantum);
/* Tells whether a row so far says its step. */
int log_build_has_steps(const struct log_build *build);
TWINSTEP_MUST_USE enum status log_build_note(struct log_build *build, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
/* Notes what the name of the step says about it: `_step` is W&B's own counter. */
TWINSTEP_MUST_USE enum status log_build_note_step(struct log_build *build, const char *step);
/* Records that by its own fields the release that wrote the source logs the LR of the next update.
 */
void log_build_logs_next(struct log_build *build);
/* Records that by its own numbers the release that wrote the source logs the LR that was used. */
void log_build_logs_used(struct log_build *build);
/* Records the total of updates as the source says it; 0 is ignored. */
void log_build_max_steps(struct log_build *build, uint64_t steps);
/* A base of which only updates tell: 0 where step 0 is one, else 1, though none may show yet. */
#define LOG_BASE_OF_UPDATES (INT64_MIN + 1)
/* Makes the log: it numbers rows without a step, settles step_base, marks a new part where the step
 * falls back, and drops columns without a value. step_base INT64_MIN: 0 when the least step is 0 (a
 * note says so) and not that of an evaluation before the first update, else 1. A log without a row,
 * or a --map whose column is not there, is STATUS_INPUT. */
TWINSTEP_MUST_USE enum status log_build_finish(struct log_build *build, int64_t step_base,
                                               struct log **out);

/* Returns the distance of neighbouring binary32 numbers at a finite value. */
double log_float_spacing(double value);
/* Copies the beginning of a text for an error: what is no printable ASCII becomes '?'. */
void log_show(const char *text, size_t length, char *out, size_t room);
/* Returns 10^power, correctly rounded; below binary64 its least subnormal, above it infinity. */
double log_power_of_ten(int power);

#endif
