/* SPDX-License-Identifier: Apache-2.0
 * Writes markup and text into a stream. Whatever comes from a file goes through html_text,
 * html_bytes or html_format, so that no name can become markup; what is not UTF-8 becomes U+FFFD.
 *
 * Errors of the stream stay in it (ferror), and whoever opened it looks once, at the end. Knows no
 * page. Invariant: the bytes depend on the arguments alone, never on the locale or the clock. */
#ifndef TWINSTEP_REPORT_HTML_H
#define TWINSTEP_REPORT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/macro.h"

struct html {
    FILE *file;
};

/* Writes markup of ours as it stands. */
void html_raw(struct html *html, const char *markup);

/* Write text escaped. Controls and broken UTF-8 become U+FFFD. Marks that turn the direction of
 * writing are spelled out, [U+202E], because they can make one name look like another. */
void html_text(struct html *html, const char *text);
void html_bytes(struct html *html, const char *bytes, size_t length);

/* Returns the length of the well-formed UTF-8 sequence at `s` (RFC 3629: shortest form, no
 * surrogates, at most U+10FFFF), and its code point; 0 when there is none within `left` bytes. */
size_t html_sequence(const unsigned char *s, size_t left, uint32_t *out);

/* Whether a code point is a mark that turns the direction of text. */
int html_turns_direction(uint32_t code);

/* Writes markup of ours with values in it, which are escaped, so that they may come from a file:
 *     %s, %.*s    a text or so many bytes of it, as html_text and html_bytes write them
 *     %-s, %-.*s  a name: the same with places where a line may break, after . _ / - : and ,
 *     %.6g, %.*g  a number rounded to so many significant digits, or nan, inf, -inf
 *     %f          a coordinate of a drawing, rounded to tenths, half away from 0
 *     %d, %u, %ju, %.0f, %%  as of printf; there are no others */
void html_format(struct html *html, const char *format, ...) TWINSTEP_PRINTF(2, 3);

#endif
