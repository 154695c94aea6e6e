/* SPDX-License-Identifier: Apache-2.0
 * How readers fill a log: columns appear when they are first seen, rows are appended, and
 * log_build_finish makes the arrays. The only writer of struct log. Private to logs/.
 *
 * Growth is geometric inside the arena, so kept memory stays within a small factor of the values.
 */
#ifndef TWINSTEP_LOGS_BUILD_H
#define TWINSTEP_LOGS_BUILD_H

#include "logs/import.h"
#include "logs/log.h"

struct log_build;

#define LOG_COLUMNS_MAX 4096        /* further sources are left out, with a note */
#define LOG_COLUMN_IGNORED SIZE_MAX /* the index of such a source; values for it are dropped */

/* How the numbers of a column were printed. */
enum log_print {
    LOG_PRINT_TEXT = 0, /* quantum = last digit of each text; when any text of the column has 15
                           significant digits or more, the column is a repr: quanta 0 */
    LOG_PRINT_JSON,     /* a JSON writer's shortest repr of a number that a program may have rounded
                           before: integers are exact; with a text of 15 significant digits or more
                           the column is exact; else its quantum is the finest of its texts (a repr
                           drops zeros at the end: 0.693 beside 0.6931). Where a text has an exponent
                           the program may have kept significant digits, not decimals: no value has
                           more of them than the longest text of the column. With a text that no
                           repr writes (0.6930, 5.00e-07, 5E-7) the column is as LOG_PRINT_TEXT */
    LOG_PRINT_TABLE,    /* a cell of CSV: as LOG_PRINT_JSON, but where a text has an exponent each
                           text's own last digit, since printf keeps zeros */
    LOG_PRINT_EXACT,    /* shortest repr or binary64: quantum 0 */
    LOG_PRINT_FLOAT32,  /* binary32: quantum = its spacing there */
    LOG_PRINT_DECIMALS  /* rounded to `decimals` places before a repr: quantum 10^-decimals */
};

struct log_rule {       /* how a reader wants a source name handled */
    const char *source; /* whole name; "*": any name (put it last) */
    int32_t name;       /* enum log_name; LOG_NAMES: as the table of known names says */
    int32_t print;
    int32_t decimals;
    uint8_t cumulative, windowed;
};

TWINSTEP_MUST_USE enum status log_build_open(const char *path, const char *format,
                                             const struct log_options *options, struct arena *arena,
                                             struct log_build **out);
/* Returns the memory that only the building needed; the log stays. In every case, also after an
 * error; NULL is fine. */
void log_build_close(struct log_build *build);

/* What --map step=THEIRS says, or NULL: readers of files with free names ask for it. */
const char *log_build_step_source(const struct log_build *build);
/* Memory for a reader, returned by log_build_close; and the options it runs under. */
struct arena *log_build_scratch(struct log_build *build);
const struct log_options *log_build_options(const struct log_build *build);

/* Index of the column with that source name, made on first sight: --map first, then `rules` (ends
 * with source NULL; may be NULL), then the table of known names (logs/names.c). */
TWINSTEP_MUST_USE enum status log_build_column(struct log_build *build, const char *source,
                                               size_t length, const struct log_rule *rules,
                                               size_t *out);
/* Starts a row. step: as the source counts; INT64_MIN: unknown. */
TWINSTEP_MUST_USE enum status log_build_row(struct log_build *build, int64_t step, uint32_t line,
                                            uint32_t part);
/* Goes to the row of that step and part, or starts it: for sources that hold one series behind the
 * other. The rows of such a build are sorted by part and step at the end. */
TWINSTEP_MUST_USE enum status log_build_row_of(struct log_build *build, int64_t step, uint32_t line,
                                               uint32_t part);
/* A number as text ("5.00E-07", "1,234", "nan", "Infinity", "-inf"), into the row at hand. */
TWINSTEP_MUST_USE enum status log_build_text(struct log_build *build, size_t column,
                                             const char *text, size_t length);
/* A number printed with that many significant digits without the zeros at its end (%.4g of Python's
 * or C's): its quantum is that of its last possible digit; 0 is exact. STATUS_INPUT as above. */
TWINSTEP_MUST_USE enum status log_build_digits(struct log_build *build, size_t column,
                                               const char *text, size_t length, int significant);
/* A number that is known to the bit, with its quantum. */
TWINSTEP_MUST_USE enum status log_build_value(struct log_build *build, size_t column, double value,
                                              double quantum);
TWINSTEP_MUST_USE enum status log_build_note(struct log_build *build, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
/* Total of updates as the source says it; 0 is ignored. */
void log_build_max_steps(struct log_build *build, uint64_t steps);
/* Numbers rows without a step, sets step_base, marks parts at resumes, drops empty columns.
 * step_base INT64_MIN: 0 when the least step is 0 (a note says so), else 1. A log without a row, or
 * a --map that names no column, is STATUS_INPUT. */
TWINSTEP_MUST_USE enum status log_build_finish(struct log_build *build, int64_t step_base,
                                               struct log **out);

/* Number text with its quantum: value, spacing of its last digit, significant digits. Accepts
 * group commas, a sign, Python's and C's spellings of NaN and infinity. 0 when it is no number. */
struct log_number {
    double value, quantum;
    int digits;
};
int log_number_read(const char *text, size_t length, struct log_number *out);
/* 10^power, correctly rounded. */
double log_power_of_ten(int power);

#endif
