/* SPDX-License-Identifier: Apache-2.0
 * The values while a log grows, in blocks of 256 rows per column, and what the text of each value
 * says about how its column was printed.
 *
 * Invariant: a cell is absent until it is set, and no quantum is smaller than what was printed. */
#include "logs/build_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"

static enum status new_block(struct log_build *build, struct build_cells **out) {
    TRY(arena_take(&build->scratch, 1, sizeof **out, "cells of a log", out));
    for (size_t i = 0; i < BUILD_BLOCK; i++)
        (*out)->quantum[i] = real_nan_f32();
    return STATUS_OK;
}

float log_build_round_up(double quantum) {
    const float near = (float)quantum;
    uint32_t bits;
    if (!(quantum > 0.0) || (double)near >= quantum) return near;
    memcpy(&bits, &near, sizeof bits);
    bits++;
    float next;
    memcpy(&next, &bits, sizeof next);
    return next;
}

enum status log_build_value(struct log_build *build, size_t column, double value, double quantum) {
    const size_t block = build->row / BUILD_BLOCK, at = build->row % BUILD_BLOCK;
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    if (build->row_count == 0 || column >= build->column_count)
        FAIL(STATUS_INTERNAL, "%s: a value without a row or a column", build->path);
    struct build_column *c = &build->columns[column];
    TRY(log_build_grow(build, &c->blocks, &c->block_room, block + 1, sizeof *c->blocks));
    if (c->blocks[block] == NULL) TRY(new_block(build, &c->blocks[block]));
    float *q = &c->blocks[block]->quantum[at];
    if (*q != *q) {
        c->count++;
        build->value_count++;
        log_build_row_at(build, build->row)->values++;
    }
    c->blocks[block]->value[at] = value;
    *q = real_finite_f64(value) ? log_build_round_up(quantum) : 0.0f;
    return STATUS_OK;
}

static int is_integer(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (text[i] == '.' || text[i] == 'e' || text[i] == 'E') return 0;
    return 1;
}

/* Returns the quantum that one text would have by itself. log_build_finish may replace it when it
 * has seen the whole column. */
static double quantum_of(const struct build_column *c, const char *text, size_t length,
                         const struct log_number *number) {
    if (c->print == LOG_PRINT_EXACT) return 0.0;
    if (is_integer(text, length) && (c->print == LOG_PRINT_JSON || c->print == LOG_PRINT_TABLE ||
                                     c->print == LOG_PRINT_FLOAT || log_name_counts(c->name)))
        return 0.0;
    return number->quantum;
}

static int has_power(const char *text, size_t length) {
    return memchr(text, 'e', length) != NULL || memchr(text, 'E', length) != NULL;
}

int log_text_is_printed(const char *text, size_t length) {
    size_t end = 0, point = SIZE_MAX;
    for (; end < length && text[end] != 'e' && text[end] != 'E'; end++)
        if (text[end] == '.') point = end;
    if (end < length && text[end] == 'E') return 1;
    if (point == SIZE_MAX || end < point + 2 || text[end - 1] != '0') return 0;
    return end > point + 2 || end < length;
}

/* Returns the quantum of a text without the zeros at the end of its fraction, which printf adds to
 * a number that was rounded before: 1e-4 for "1.234500". */
static double stripped(const char *text, size_t length, double quantum) {
    const char *point = (const char *)memchr(text, '.', length);
    if (point == NULL || has_power(text, length)) return quantum;
    for (; length > 0 && text + length - 1 > point && text[length - 1] == '0'; length--)
        quantum *= 10.0;
    return quantum;
}

/* Tells whether a whole number is none of binary64, which from 2^53 on has not all of them. */
static int is_rounded(const char *text, size_t length, double value) {
    char digits[400];
    size_t at = 0;
    const double size = real_abs_f64(value);
    if (size < 0x1p53 || !is_integer(text, length)) return 0;
    snprintf(digits, sizeof digits, "%.0f", size);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || (at == 0 && text[i] == '0')) continue;
        if (digits[at++] != text[i]) return 1;
    }
    return digits[at] != '\0';
}

/* Returns the distance from a finite number to the next larger one. */
static double spacing_above(double size) {
    uint64_t bits;
    double next;
    memcpy(&bits, &size, sizeof bits);
    bits++;
    memcpy(&next, &bits, sizeof next);
    return next - size;
}

/* Tells whether a text is a binary32 rounded to the digits of the text. The shortest text of a
 * binary32 (numpy's str, Rust's and Java's) is one as well: of all texts with so many digits it is
 * the nearest. */
static int prints_float(const struct log_number *number) {
    const double away = real_abs_f64(number->value - (double)(float)number->value);
    return away <= 0.5 * number->quantum * (1.0 + 0x1p-20);
}

/* Collects what a text says about its column. A 0 with an exponent ("0.000E+00") shows no last
 * digit, so it does not count as an exponent. */
static void see_text(struct build_column *c, const char *text, size_t length,
                     const struct log_number *number) {
    if (log_text_is_printed(text, length)) c->is_printed = 1;
    if (is_integer(text, length)) return;
    if (number->digits >= 15) c->is_repr = 1;
    if ((double)(float)number->value != number->value) c->is_double = 1;
    if (!prints_float(number)) c->no_float = 1;
    const double quantum =
        c->print == LOG_PRINT_DECIMALS ? stripped(text, length, number->quantum) : number->quantum;
    if (quantum > 0.0 && quantum < c->finest) c->finest = quantum;
    if (number->digits > c->most) c->most = number->digits;
    if (number->value != 0.0 && has_power(text, length)) c->has_power = 1;
}

static enum status parse(const struct log_build *build, size_t column, const char *text,
                         size_t length, struct log_number *out) {
    char shown[41];
    if (log_number_read(text, length, out)) return STATUS_OK;
    log_show(text, length, shown, sizeof shown);
    FAIL(STATUS_INPUT, "%s:%" PRIu32 ": column \"%s\": expected a number, got \"%s\"", build->path,
         build->row_count > 0 ? log_build_row_at(build, build->row)->line : 0,
         column < build->column_count ? build->columns[column].source : "", shown);
}

enum status log_build_number(struct log_build *build, size_t column, const char *text,
                             size_t length, const struct log_number *number) {
    if (column >= build->column_count || !real_finite_f64(number->value))
        return log_build_value(build, column, number->value, 0.0);
    struct build_column *c = &build->columns[column];
    double quantum = quantum_of(c, text, length, number);
    see_text(c, text, length, number);
    if (is_rounded(text, length, number->value)) {
        const double spacing = spacing_above(real_abs_f64(number->value));
        c->rounded++;
        quantum = quantum > spacing ? quantum : spacing;
    }
    return log_build_value(build, column, number->value, quantum);
}

enum status log_build_text(struct log_build *build, size_t column, const char *text,
                           size_t length) {
    struct log_number number;
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    TRY(parse(build, column, text, length, &number));
    return log_build_number(build, column, text, length, &number);
}

enum status log_build_digits(struct log_build *build, size_t column, const char *text,
                             size_t length, int significant) {
    struct log_number number;
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    TRY(parse(build, column, text, length, &number));
    double quantum = number.value == 0.0 ? 0.0 : number.quantum;
    for (int i = number.digits; i < significant; i++)
        quantum /= 10.0;
    return log_build_value(build, column, number.value, quantum);
}
