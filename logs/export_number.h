/* SPDX-License-Identifier: Apache-2.0
 * A value as text that says how finely it is known. Private to logs/export*.c. */
#ifndef TWINSTEP_LOGS_EXPORT_NUMBER_H
#define TWINSTEP_LOGS_EXPORT_NUMBER_H

#include "logs/log.h"

#define EXPORT_TEXT 64

/* How the numbers of one column are written so that a reader finds their quanta again. */
struct export_style {
    int json; /* 1: JSON's NaN and Infinity, and whole numbers without a point, which read as exact
               */
    int scientific;  /* 1: the quanta differ, so each value is written with an E, which no repr has,
                        and keeps its own */
    size_t long_row; /* of an exact column whose texts would not show it: the row whose value is
                        written with 17 digits; SIZE_MAX: none */
};

struct export_style export_style_of(const struct log *log, const struct log_column *column,
                                    int json);
void export_number(const struct log_column *column, size_t row, const struct export_style *style,
                   char text[EXPORT_TEXT]);

#endif
