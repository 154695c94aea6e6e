/* SPDX-License-Identifier: Apache-2.0
 * JUnit XML of a suite: a missed expectation is a failure, a scenario that could not run an error,
 * one without an expect block is skipped.
 * Invariant: the file is well-formed UTF-8 whatever bytes names and error texts hold. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/suite.h"

/* Bytes of the UTF-8 sequence at `text`; 0 when it is none, or no character of XML 1.0. */
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

static void put_text(FILE *out, const char *text) {
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
                fputs("\xef\xbf\xbd", out); /* U+FFFD */
            else
                fwrite(at, 1, length, out);
        }
        at += length == 0 ? 1 : length;
    }
}

static void put_attribute(FILE *out, const char *name, const char *text) {
    fprintf(out, " %s=\"", name);
    put_text(out, text);
    fputc('"', out);
}

static void put_case(FILE *out, const struct suite_result *result) {
    fputs("    <testcase classname=\"twinstep.suite\"", out);
    put_attribute(out, "name", result->name);
    fprintf(out, " time=\"%.3f\">", result->seconds);
    if (result->status != STATUS_OK) {
        fputs("<error", out);
        put_attribute(out, "message", result->error);
        fputs("/>", out);
    } else if (result->expectation == EXPECT_MISSED) {
        fputs("<failure", out);
        put_attribute(out, "message", result->missed);
        fputs("/>", out);
    } else if (result->expectation == EXPECT_NONE) {
        fputs("<skipped message=\"no expect block\"/>", out);
    }
    fputs("</testcase>\n", out);
}

static void put_suite(FILE *out, const struct suite *suite) {
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    fprintf(out,
            "  <testsuite name=\"twinstep suite\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\" time=\"%.3f\">\n",
            suite->result_count, suite_count(suite, EXPECT_MISSED), suite_errors(suite),
            suite_count(suite, EXPECT_NONE), suite->seconds);
    for (size_t i = 0; i < suite->result_count; i++)
        put_case(out, &suite->results[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

enum status junit_write(const struct suite *suite, const char *path) {
    FILE *out = fopen(path, "w");
    if (out == NULL) FAIL(STATUS_IO, "%s: error: cannot create: %s", path, strerror(errno));
    put_suite(out, suite);
    int failed = fflush(out) != 0 || ferror(out);
    int reason = errno;
    if (fclose(out) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    if (failed) FAIL(STATUS_IO, "%s: error: cannot write: %s", path, strerror(reason));
    return STATUS_OK;
}
