/* SPDX-License-Identifier: Apache-2.0
 * Writes markup and text into a stream. Whatever comes from a file goes through html_text,
 * html_bytes or html_name, so that no name can become markup; what is not UTF-8 becomes U+FFFD.
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
/* The same with numbers and constants of ours in it, but never with a text from a file. */
void html_format(struct html *html, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* Write text escaped. Controls and broken UTF-8 become U+FFFD. Marks that turn the direction of
 * writing are spelled out, [U+202E], because they can make one name look like another. */
void html_text(struct html *html, const char *text);
void html_bytes(struct html *html, const char *bytes, size_t length);

/* The same with places where a line may break: after . _ / - : and , */
void html_name(struct html *html, const char *bytes, size_t length);

/* Writes <tag>text</tag>, the text escaped. */
void html_element(struct html *html, const char *tag, const char *text);

/* Writes a number in the fewest digits that read back as the same number; "not measured" for NaN,
 * which is what NaN means in a trace. */
void html_real(struct html *html, double value);
/* Writes a number rounded to `digits` significant digits, or "nan", "inf", "-inf". */
void html_rounded(struct html *html, double value, int digits);
/* Writes a coordinate of a drawing, rounded to tenths, half away from 0. */
void html_place(struct html *html, double value);
void html_count(struct html *html, uint64_t count);

#endif
