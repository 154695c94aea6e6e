/* SPDX-License-Identifier: Apache-2.0
 * Prints JSON on stdout. A failed write is not looked at here: a full disk is noticed when stdout
 * is closed. jansson lays the text out; reals, which it writes with 17 digits, are written anew on
 * the way. Invariant: a real reads back to its bits, and keeps a point or an exponent. */
#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

struct printer {
    int in_string, escaped;
    size_t length; /* of the number that is being gathered */
    char number[64];
};

static void print_number(struct printer *printer) {
    double value;
    printer->number[printer->length] = '\0';
    const int is_real = strpbrk(printer->number, ".eE") != NULL;
    printer->length = 0;
    if (!is_real || number_parse_real(printer->number, NUMBER_FINITE, &value) != STATUS_OK) {
        fputs(printer->number, stdout);
        return;
    }
    const struct number_text shortest = number_text_f64(value);
    printf("%s%s", shortest.text, strpbrk(shortest.text, ".e") == NULL ? ".0" : "");
}

static int belongs_to_number(const struct printer *printer, char c) {
    if (printer->length + 1 >= sizeof printer->number) return 0;
    return c == '-' || (c >= '0' && c <= '9') ||
           (printer->length > 0 && (c == '.' || c == 'e' || c == 'E' || c == '+'));
}

static void print_character(struct printer *printer, char c) {
    if (printer->in_string) {
        printer->in_string = printer->escaped || c != '"';
        printer->escaped = !printer->escaped && c == '\\';
    } else if (belongs_to_number(printer, c)) {
        printer->number[printer->length++] = c;
        return;
    } else {
        if (printer->length > 0) print_number(printer);
        printer->in_string = c == '"';
    }
    putchar(c);
}

static int print_piece(const char *piece, size_t size, void *data) {
    for (size_t i = 0; i < size; i++)
        print_character((struct printer *)data, piece[i]);
    return 0;
}

enum status json_print(json_t *value) {
    struct printer printer = {.in_string = 0};
    if (value == NULL) FAIL(STATUS_MEMORY, "JSON: no memory, or a text that is not UTF-8");
    const int failed =
        json_dump_callback(value, print_piece, &printer, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(value);
    if (failed) FAIL(STATUS_MEMORY, "JSON: no memory");
    print_character(&printer, '\n'); /* this also ends a number that stands alone */
    return STATUS_OK;
}

json_t *json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_positive(uint64_t value) {
    return value == 0 ? json_null() : json_integer((json_int_t)value);
}

json_t *json_text(const char *text) {
    return text[0] == '\0' ? json_null() : json_string(text);
}

json_t *json_join(json_t *object, json_t *rest) {
    json_object_update(object, rest);
    json_decref(rest);
    return object;
}

void json_print_reals(const char *name, const double *values, uint64_t count) {
    printf("\"%s\": [", name);
    for (uint64_t i = 0; i < count; i++)
        printf("%s%s", i == 0 ? "" : ", ",
               values[i] == values[i] ? number_text_f64(values[i]).text : "null");
    putchar(']');
}
