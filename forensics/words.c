/* SPDX-License-Identifier: Apache-2.0
 * Texts of values and places; the grid that exact values lie on. */
#include "forensics/words.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"

struct word word_number(double value) {
    struct word word;
    const struct number_text text = number_text_f64(value);
    snprintf(word.text, sizeof word.text, "%s", text.text);
    return word;
}

struct word word_about(double value) {
    struct word word;
    snprintf(word.text, sizeof word.text, "%.4g", value);
    return word;
}

struct word word_apart(double value, double other) {
    const struct word word = word_about(value);
    return strcmp(word.text, word_about(other).text) == 0 ? word_number(value) : word;
}

struct word word_value(double value, double quantum) {
    struct word word = word_number(value);
    if (quantum > 0.0 && real_finite_f64(value)) {
        const size_t used = strlen(word.text);
        snprintf(word.text + used, sizeof word.text - used, " (printed to %.2g)", quantum);
    }
    return word;
}

static int has_parts(const struct log *log) {
    for (size_t i = 1; i < log->rows; i++)
        if (log->part[i] != log->part[0]) return 1;
    return 0;
}

struct word word_place(const struct log *log, size_t row) {
    struct word word;
    char line[32] = "", part[32] = "";
    if (log->line[row] != 0) snprintf(line, sizeof line, "line %u", log->line[row]);
    if (has_parts(log)) snprintf(part, sizeof part, "part %u", log->part[row] + 1);
    const char *const comma = line[0] != 0 && part[0] != 0 ? ", " : "";
    if (log->step[row] < 1)
        snprintf(word.text, sizeof word.text, "row %zu", row + 1);
    else if (line[0] == 0 && part[0] == 0)
        snprintf(word.text, sizeof word.text, "update %lld", (long long)log->step[row]);
    else
        snprintf(word.text, sizeof word.text, "update %lld (%s%s%s)", (long long)log->step[row],
                 line, comma, part);
    return word;
}

const char *word_column(const struct log *log, enum log_name name) {
    const struct log_column *column = log_column_of(log, name);
    return column != NULL ? column->source : log_names[name].name;
}

int series_bits(const struct series *series) {
    int bits = 8;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        if (point->quantum > 0.0 || !real_finite_f64(point->value)) continue;
        const float narrow = (float)point->value;
        if ((double)narrow < point->value || (double)narrow > point->value) return 53;
        if ((real_bits_f32(narrow) & 0xffffu) != 0) bits = 24;
    }
    return bits;
}

double series_spacing(const struct series *series, double value, double quantum) {
    if (quantum > 0.0) return quantum;
    const int bits = series_bits(series);
    const double scale = bits == 8 ? 0x1p-7 : bits == 24 ? 0x1p-23 : 0x1p-52;
    return scale * real_abs_f64(value);
}
