/* SPDX-License-Identifier: Apache-2.0
 * Short texts for findings: a value with its precision, a row with its place. Judges nothing.
 *
 * Invariant: a value is never shown without the precision that it was printed with. */
#ifndef TWINSTEP_FORENSICS_WORDS_H
#define TWINSTEP_FORENSICS_WORDS_H

#include "forensics/series.h"
#include "logs/log.h"

struct word {
    char text[128];
};

/* Writes a value with its precision: "0.6931 (printed to 0.0001)", or "5e-07" when it is exact. */
struct word word_value(double value, double quantum);
/* Writes the shortest text that reads back as the value. */
struct word word_number(double value);
/* Writes four significant digits, for ratios and distances that we computed. */
struct word word_about(double value);
/* Writes the same, or the shortest text that reads back, where `other` has the same four digits. */
struct word word_apart(double value, double other);
/* Writes "update 3 (line 12)", or "update 3" when the source has no lines; with the part when there
 * are several. */
struct word word_place(const struct log *log, size_t row);

/* Returns the log's own spelling of a column. */
const char *word_column(const struct log *log, enum log_name name);

/* Returns the significant bits of the exact values of a series: 8 (bf16, and where no value is
 * exact), 24 (binary32) or 53. */
int series_bits(const struct series *series);
/* Returns the finest step between values of a series that this log can show near `value`. Printed
 * digits say it; exact numbers that all lie on the grid of bf16 or binary32 were computed in that
 * format. */
double series_spacing(const struct series *series, double value, double quantum);

#endif
