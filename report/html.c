/* SPDX-License-Identifier: Apache-2.0
 * Escapes text and prints numbers. What reads as a character is decided here, byte by byte, and
 * not by the C library, whose answer depends on the locale. */
#include "report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

void html_raw(struct html *html, const char *markup) {
    fputs(markup, html->file);
}

size_t html_sequence(const unsigned char *s, size_t left, uint32_t *out) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char c = s[0];
    size_t length = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
    if (length > left || (length == 4 && (c & 0xf8) != 0xf0)) return 0;
    uint32_t code = length == 1 ? c : (uint32_t)c & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    *out = code;
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0
                                                                                        : length;
}

static int is_forbidden(uint32_t code) {
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ||
           (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef);
}

int html_turns_direction(uint32_t code) {
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0x200e || code == 0x200f || code == 0x061c;
}

static void put_character(struct html *html, const char *bytes, size_t length, uint32_t code) {
    if (code == '&')
        html_raw(html, "&amp;");
    else if (code == '<')
        html_raw(html, "&lt;");
    else if (code == '>')
        html_raw(html, "&gt;");
    else if (code == '"')
        html_raw(html, "&quot;");
    else if (code == '\'')
        html_raw(html, "&#39;");
    else if (is_forbidden(code))
        html_raw(html, REPLACEMENT);
    else if (html_turns_direction(code))
        fprintf(html->file, "[U+%04" PRIX32 "]", code);
    else
        fwrite(bytes, 1, length, html->file);
}

static void put_text(struct html *html, const char *bytes, size_t length, const char *breaks) {
    for (size_t i = 0; i < length;) {
        uint32_t code = 0;
        size_t used = html_sequence((const unsigned char *)bytes + i, length - i, &code);
        if (used == 0)
            html_raw(html, REPLACEMENT);
        else
            put_character(html, bytes + i, used, code);
        i += used == 0 ? 1 : used;
        if (i < length && code != 0 && code < 0x80 && strchr(breaks, (int)code) != NULL)
            html_raw(html, "<wbr/>");
    }
}

void html_bytes(struct html *html, const char *bytes, size_t length) {
    put_text(html, bytes, length, "");
}

void html_text(struct html *html, const char *text) {
    html_bytes(html, text, strlen(text));
}

/* Rounds half away from 0. */
static void put_place(struct html *html, double value) {
    const int64_t tenths = (int64_t)(value < 0.0 ? value * 10.0 - 0.5 : value * 10.0 + 0.5);
    const uint64_t size = (uint64_t)(tenths < 0 ? -tenths : tenths);
    fprintf(html->file, "%s%" PRIu64, tenths < 0 ? "-" : "", size / 10);
    if (size % 10 != 0) fprintf(html->file, ".%" PRIu64, size % 10);
}

static void put_rounded(struct html *html, double value, int digits) {
    if (isfinite(value))
        fprintf(html->file, "%.*g", digits, value);
    else
        html_raw(html, isnan(value) ? "nan" : value > 0.0 ? "inf" : "-inf");
}

/* Writes what the directive behind a % stands for; returns the end of the directive. */
static const char *put_value(struct html *html, const char *at, va_list *list) {
    const int is_name = *at == '-';
    int digits = -1;
    at += is_name;
    if (at[0] == '.' && at[1] == '*') {
        digits = va_arg(*list, int);
        at += 2;
    } else if (at[0] == '.') {
        for (digits = 0, at++; *at >= '0' && *at <= '9'; at++)
            digits = 10 * digits + (*at - '0');
    }
    if (*at == 's') {
        const char *const text = va_arg(*list, const char *);
        put_text(html, text, digits < 0 ? strlen(text) : (size_t)digits, is_name ? "._/-:," : "");
    } else if (*at == 'f' && digits < 0) {
        put_place(html, va_arg(*list, double));
    } else if (*at == 'f') {
        fprintf(html->file, "%.*f", digits, va_arg(*list, double));
    } else if (*at == 'g') {
        put_rounded(html, va_arg(*list, double), digits < 0 ? 6 : digits);
    } else if (*at == 'd') {
        fprintf(html->file, "%d", va_arg(*list, int));
    } else if (*at == 'u') {
        fprintf(html->file, "%u", va_arg(*list, unsigned));
    } else if (*at == 'j') { /* and u */
        fprintf(html->file, "%ju", va_arg(*list, uintmax_t));
        at++;
    } else { /* % */
        fputc('%', html->file);
    }
    return at + 1;
}

void html_format(struct html *html, const char *format, ...) {
    va_list list;
    va_start(list, format);
    while (*format != '\0') {
        const size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, html->file);
        format += plain;
        if (*format == '%') format = put_value(html, format + 1, &list);
    }
    va_end(list);
}
