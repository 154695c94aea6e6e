/* SPDX-License-Identifier: Apache-2.0
 * The inverse of what logs/build*.c make of texts. A quantum that is no power of ten (the spacing
 * of a float32) has no such text: those values are written exactly.
 *
 * Invariant: the text reads back as the value where the value is exact or was printed in decimal.
 */
#include "logs/export_number.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "logs/build.h"
#include "logs/names.h"

#define NO_POWER (-1000)

/* Returns k when q is 10^k, or NO_POWER when it is no power of ten. Quanta are stored as float,
 * rounded up, so 2^-20 relative is allowed: 8 float spacings, and far from the next power. */
static int power_of(double q) {
    for (int k = -40; k <= 30; k++) {
        const double power = log_power_of_ten(k);
        if (q >= power * (1.0 - 0x1p-20) && q <= power * (1.0 + 0x1p-20)) return k;
    }
    return NO_POWER;
}

static int is_whole(double value) {
    return value > -0x1p53 && value < 0x1p53 && (double)(int64_t)value == value;
}

static int is_long(double value) {
    struct log_number number;
    const struct number_text text = number_text_f64(value);
    return !is_whole(value) && log_number_read(text.text, strlen(text.text), &number) &&
           number.digits >= 15;
}

struct export_style export_style_of(const struct log *log, const struct log_column *column,
                                    int json) {
    struct export_style style = {json, 0, SIZE_MAX};
    size_t first = SIZE_MAX, rounded = SIZE_MAX;
    int has_long = 0, all_whole = 1;
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(column, i) || !real_finite_f64(column->value[i])) continue;
        if (column->quantum[i] == 0.0f) {
            if (first == SIZE_MAX) first = i;
            has_long |= is_long(column->value[i]);
            all_whole &= is_whole(column->value[i]);
        } else if (rounded == SIZE_MAX) {
            rounded = i;
        } else if (column->quantum[i] != column->quantum[rounded]) {
            style.scientific = 1;
        }
    }
    const int says_so = has_long || (all_whole && (json || log_name_counts(column->name)));
    if (rounded == SIZE_MAX && !says_so) style.long_row = first;
    return style;
}

static void write_special(double value, const struct export_style *style, char text[EXPORT_TEXT]) {
    if (value != value)
        strcpy(text, style->json ? "NaN" : "nan");
    else
        snprintf(text, EXPORT_TEXT, "%s%s", value < 0.0 ? "-" : "",
                 style->json ? "Infinity" : "inf");
}

/* Finds the digits that give the quantum 10^power. Rounding may carry into a new digit (9.99 to
 * 1.00E+01), so each text is read back and asked for its quantum. */
static void write_scientific(double value, int power, char text[EXPORT_TEXT]) {
    if (value == 0.0 && power < 0 && power >= -17) { /* a 0 with an exponent would read as exact */
        snprintf(text, EXPORT_TEXT, "%.*f", -power, value);
        return;
    }
    if (value == 0.0) {
        snprintf(text, EXPORT_TEXT, "0E%+03d", power);
        return;
    }
    for (int digits = 0; digits <= 17; digits++) {
        struct log_number number;
        snprintf(text, EXPORT_TEXT, "%.*E", digits, value);
        if (log_number_read(text, strlen(text), &number) && power_of(number.quantum) <= power)
            return;
    }
}

static void write_exact(double value, size_t row, const struct export_style *style,
                        char text[EXPORT_TEXT]) {
    if (row == style->long_row)
        snprintf(text, EXPORT_TEXT, "%.16e", value);
    else if (is_whole(value) && style->json)
        snprintf(text, EXPORT_TEXT, "%.0f", value);
    else
        strcpy(text, number_text_f64(value).text);
}

void export_number(const struct log_column *column, size_t row, const struct export_style *style,
                   char text[EXPORT_TEXT]) {
    const double value = column->value[row], quantum = (double)column->quantum[row];
    const int power = quantum == 0.0 ? NO_POWER : power_of(quantum);
    if (!real_finite_f64(value))
        write_special(value, style, text);
    else if (power == NO_POWER)
        write_exact(value, row, style, text);
    else if (style->scientific || power >= 0 || power < -17 || !(value < 1e9 && value > -1e9))
        write_scientific(value, power, text);
    else
        snprintf(text, EXPORT_TEXT, "%.*f", -power, value);
}
