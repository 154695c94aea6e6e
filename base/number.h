/* SPDX-License-Identifier: Apache-2.0
 * Exact conversion between numbers and text: the shortest decimal that reads back as the same bits,
 * hex floats, and strict parsing of a whole text. The results do not depend on the locale, and
 * nothing here allocates.
 *
 * Invariant: number_parse_real(number_text_f64(x)) has the bits of x (all NaNs read as one NaN). */
#ifndef TWINSTEP_BASE_NUMBER_H
#define TWINSTEP_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define NUMBER_TEXT_SIZE 32

struct number_text {
    char text[NUMBER_TEXT_SIZE];
};

/* The decimal with the fewest digits that reads back as x: "0.1", "5e-07", "-0", "nan", "inf",
 * "-inf". */
struct number_text number_text_f64(double x);
struct number_text number_text_f32(float x);

/* A hex float as C reads it: "0x1.8p-3"; zero is "0x0p+0"; else "nan", "inf", "-inf". */
struct number_text number_hex_f64(double x);

enum number_flag {
    NUMBER_FINITE = 0,  /* nan, inf, hex floats, and decimals that overflow are errors */
    NUMBER_SPECIAL = 1, /* also accepts nan, inf, +inf and -inf, in lower case */
    NUMBER_HEX = 2      /* also accepts hex floats */
};

/* Reads a number. The whole text must be one: [+-] digits [. digits] [e [+-] digits], with at least
 * one digit and no blanks. Overflow is an error; a value below the least subnormal is rounded by
 * IEEE 754, at worst to 0 with its sign. STATUS_INPUT says what was expected and what came; the
 * caller puts the place before it. */
TWINSTEP_MUST_USE enum status number_parse_real(const char *text, unsigned flags, double *out);

/* A decimal as it stands in a text. */
struct number_decimal {
    double value; /* as number_parse_real reads it; NaN where that has to ask strtod, which it need
                     not for at most 19 digits and a small exponent */
    int digits;   /* its digits from the first that is not 0, at least 1 */
    int place;    /* the power of ten of its last digit */
};

/* Reads a text of `length` characters, which need not end with a NUL. Returns 0 when it is not one
 * decimal of the form that number_parse_real takes. */
int number_read_decimal(const char *text, size_t length, struct number_decimal *out);

/* Read a decimal integer: [+-] digits. The unsigned form refuses a minus sign, even before 0.
 * Overflow is an error. */
TWINSTEP_MUST_USE enum status number_parse_int(const char *text, int64_t *out);
TWINSTEP_MUST_USE enum status number_parse_uint(const char *text, uint64_t *out);

#endif
