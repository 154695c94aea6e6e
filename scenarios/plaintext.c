/* SPDX-License-Identifier: Apache-2.0
 * One pass over the bytes before libfyaml sees them, because libfyaml hangs on a `%` in column 0
 * that is followed by invalid UTF-8. Overlong forms, surrogates and everything past U+10FFFF are
 * invalid. Control characters other than tab and line breaks are refused, too, because they hide
 * text on a screen. */
#include "scenarios/plaintext.h"

#include <stdint.h>

/* The number of bytes of the sequence at `text`, and its value in *out_point; 0 when it is not
 * UTF-8. `smallest` refuses overlong forms. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *out_point) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = text[0];
    size_t size = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (size == 0 || lead >= 0xf8 || size > left) return 0;
    uint32_t point = size == 1 ? lead : lead & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    if (point < smallest[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    *out_point = point;
    return size;
}

/* C0 and C1 controls, U+2028 and U+2029 (line breaks that no editor shows), the byte order mark and
 * two numbers that are no characters. */
static int is_control(uint32_t point) {
    if (point < 0x20) return point != '\t' && point != '\n' && point != '\r';
    return (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
           point == 0xfeff || point == 0xfffe || point == 0xffff;
}

enum status plaintext_check(const char *source, const char *text, size_t length) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t size = decode(bytes + i, length - i, &point);
        size_t column = i - start + 1;
        if (size == 0)
            FAIL(STATUS_INPUT, "%s:%zu:%zu: error: expected UTF-8 text, got byte 0x%02x", source,
                 line, column, (unsigned)bytes[i]);
        if (is_control(point))
            FAIL(STATUS_INPUT, "%s:%zu:%zu: error: expected text, got control character U+%04X",
                 source, line, column, (unsigned)point);
        i += size;
        if (point == '\n') {
            line++;
            start = i;
        }
    }
    return STATUS_OK;
}
