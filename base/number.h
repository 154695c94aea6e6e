/* SPDX-License-Identifier: Apache-2.0
 * Numbers as text, exactly: shortest decimal that reads back to the same bits, hex floats, and
 * strict parsing of a whole text. Independent of the locale. Nothing here allocates.
 *
 * Invariant: number_parse_real(number_text_f64(x)) has the bits of x (every NaN reads as one). */
#ifndef TWINSTEP_BASE_NUMBER_H
#define TWINSTEP_BASE_NUMBER_H

#include <stdint.h>

#include "base/status.h"

#define NUMBER_TEXT_SIZE 32

struct number_text {
    char text[NUMBER_TEXT_SIZE];
};

/* Fewest digits that read back as x: "0.1", "5e-07", "-0", "nan", "inf", "-inf". */
struct number_text number_text_f64(double x);
struct number_text number_text_f32(float x);

/* Hex float as C reads it: "0x1.8p-3"; zero "0x0p+0"; "nan", "inf", "-inf". */
struct number_text number_hex_f64(double x);

enum number_flag {
    NUMBER_FINITE = 0,  /* nan, inf and decimals that overflow are errors */
    NUMBER_SPECIAL = 1, /* nan, inf, +inf, -inf are accepted (lower case) */
    NUMBER_HEX = 2      /* hex floats are accepted */
};

/* The whole text must be one number: [+-] digits [. digits] [e [+-] digits], at least one digit,
 * no blanks. Overflow is an error; a result below the least subnormal reads as 0 with its sign, as
 * IEEE 754 rounds it. STATUS_INPUT says what was expected and what came; prefix it with the place.
 */
TWINSTEP_MUST_USE enum status number_parse_real(const char *text, unsigned flags, double *out);

/* Decimal integers: [+-] digits, no sign "-" for uint (also not "-0"). Overflow is an error. */
TWINSTEP_MUST_USE enum status number_parse_int(const char *text, int64_t *out);
TWINSTEP_MUST_USE enum status number_parse_uint(const char *text, uint64_t *out);

#endif
