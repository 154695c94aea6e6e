/* SPDX-License-Identifier: Apache-2.0
 * Writes text and attributes of XML. Invariant: what is written is well-formed UTF-8 whatever bytes
 * the text holds. */
#include "cli/xml.h"

#include <string.h>

#include "report/html.h"

/* Returns the number of bytes of the UTF-8 sequence at `text`; 0 if it is none, or no character
 * that XML 1.0 allows. */
static size_t sequence_length(const char *text) {
    uint32_t point = 0;
    const size_t length = html_sequence((const unsigned char *)text, strlen(text), &point);
    if (point == 0xfffe || point == 0xffff) return 0;
    return point < 0x20 && strchr("\t\n\r", (int)point) == NULL ? 0 : length;
}

void xml_text(FILE *out, const char *text) {
    for (const char *at = text; *at != '\0';) {
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
