/* SPDX-License-Identifier: Apache-2.0
 * Writes text and attributes of XML. Invariant: what is written is well-formed UTF-8 whatever bytes
 * the text holds. */
#include "cli/xml.h"

/* Returns the number of bytes of the UTF-8 sequence at `text`; 0 if it is none, or no character
 * that XML 1.0 allows. */
static size_t sequence_length(const unsigned char *text) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80       ? 1
                    : text[0] >> 5 == 6  ? 2
                    : text[0] >> 4 == 14 ? 3
                    : text[0] >> 3 == 30 ? 4
                                         : 0;
    if (length == 0) return 0;
    unsigned point = length == 1 ? text[0] : text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return 0;
    if (point == 0xfffe || point == 0xffff) return 0;
    if (point < 0x20 && point != '\t' && point != '\n' && point != '\r') return 0;
    return length;
}

void xml_text(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        size_t length = sequence_length(at);
        switch (*at) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\t':
        case '\n':
        case '\r':
            fprintf(out, "&#%d;", *at);
            break;
        default:
            if (length == 0)
                fputs("\xef\xbf\xbd", out); /* U+FFFD, the replacement character */
            else
                fwrite(at, 1, length, out);
        }
        at += length == 0 ? 1 : length;
    }
}

void xml_attribute(FILE *out, const char *name, const char *text) {
    fprintf(out, " %s=\"", name);
    xml_text(out, text);
    fputc('"', out);
}
