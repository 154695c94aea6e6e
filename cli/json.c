/* SPDX-License-Identifier: Apache-2.0
 * Prints and forgets. A full disk is noticed when stdout is closed. jansson lays the text out;
 * reals, which it writes with 17 digits, are written anew on the way.
 * Invariant: a real reads back to its bits, and keeps a point or an exponent. */
#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static void print_number(const char *text, size_t length) {
    double value;
    char plain[64];
    const int is_real = strcspn(text, ".eE") < length && length < sizeof plain;
    memcpy(plain, text, is_real ? length : 0);
    plain[is_real ? length : 0] = '\0';
    if (!is_real || number_parse_real(plain, NUMBER_FINITE, &value) != STATUS_OK) {
        printf("%.*s", (int)length, text);
        return;
    }
    const struct number_text shortest = number_text_f64(value);
    printf("%s%s", shortest.text, strpbrk(shortest.text, ".e") == NULL ? ".0" : "");
}

/* Behind the string whose quote stands at the start. */
static const char *string_end(const char *text) {
    for (text++; *text != '"'; text++)
        text += *text == '\\';
    return text + 1;
}

static void print_text(const char *text) {
    while (*text != '\0') {
        const char *end = text + strcspn(text, "\"-0123456789");
        if (end == text && *text == '"') {
            end = string_end(text);
        } else if (end == text) {
            end = text + strspn(text, "-+.eE0123456789");
            print_number(text, (size_t)(end - text));
            text = end;
            continue;
        }
        printf("%.*s", (int)(end - text), text);
        text = end;
    }
}

enum status json_print(json_t *value) {
    if (value == NULL) FAIL(STATUS_MEMORY, "JSON: no memory, or a text that is not UTF-8");
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(value);
    if (text == NULL) FAIL(STATUS_MEMORY, "JSON: no memory");
    print_text(text);
    putchar('\n');
    free(text);
    return STATUS_OK;
}

json_t *json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}
