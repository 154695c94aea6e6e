/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Walking over lines: their ends, carriage returns, escapes, rank tags, and spans. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "logs/lines.h"

static struct log_source source_of(const char *text) {
    return (struct log_source){
        .name = "test", .bytes = (const unsigned char *)text, .length = strlen(text)};
}

static void expect_line(struct log_lines *lines, const char *text, uint32_t number, int32_t rank,
                        int open) {
    struct log_line line;
    assert_int_equal(log_lines_next(lines, &line), 1);
    if (line.span.length != strlen(text) || memcmp(line.span.text, text, line.span.length) != 0)
        fail_msg("expected \"%s\", got \"%.*s\"", text, (int)line.span.length, line.span.text);
    assert_int_equal(line.number, number);
    assert_int_equal(line.rank, rank);
    assert_int_equal(line.open, open);
}

static void expect_end(struct log_lines *lines) {
    struct log_line line;
    assert_int_equal(log_lines_next(lines, &line), 0);
}

static void validate_ends(void **state) {
    const struct log_source source = source_of("a\r\n\n\rb\rc\nd");
    struct log_lines lines;
    (void)state;
    log_lines_open(&lines, &source, NULL);
    expect_line(&lines, "a", 1, -1, 0);
    expect_line(&lines, "b", 3, -1, 0);
    expect_line(&lines, "c", 3, -1, 0);
    expect_line(&lines, "d", 4, -1, 1);
    expect_end(&lines);
}

static void validate_escapes(void **state) {
    const struct log_source source =
        source_of("\x1b[38;2;180;60;0mx\x1b[0m y\n\x1b]0;title\a|z\x1b]8;;\x1b\\|\n"
                  "\x1b[A\x1b(|\n\x1b[31");
    struct log_lines lines;
    (void)state;
    log_lines_open(&lines, &source, NULL);
    expect_line(&lines, "x y", 1, -1, 0);
    expect_line(&lines, "|z|", 2, -1, 0);
    expect_line(&lines, "|", 3, -1, 0);
    expect_end(&lines);
}

static void validate_rank_tags(void **state) {
    const struct log_source source =
        source_of("[rank0]: a\rb\n[default13]:    c\n12:   d\njob/0 [default1]:e\nrank0: f\n1:2\n");
    struct log_lines lines;
    (void)state;
    log_lines_open(&lines, &source, NULL);
    expect_line(&lines, "a", 1, 0, 0);
    expect_line(&lines, "b", 1, 0, 0); /* the tag holds for the whole line */
    expect_line(&lines, "   c", 2, 13, 0);
    expect_line(&lines, "  d", 3, 12, 0);
    expect_line(&lines, "e", 4, 1, 0);
    expect_line(&lines, "rank0: f", 5, -1, 0);
    expect_line(&lines, "1:2", 6, -1, 0);
    expect_end(&lines);
    /* Behind a bar, which ends without a line end; each piece may have a tag of its own. */
    const struct log_source bars =
        source_of(" 12%|#2   | 12/100 [00:01<00:09,  9.9it/s, loss=2.3, lr=1e-5, norm=0.913, "
                  "tokens=8192][rank1]: a\n 13%|# | 13/100 [00:01<00:09]\r[rank2]: b\rc\n"
                  "d [rank4]: e\n f\rg [rank3]: h\n");
    log_lines_open(&lines, &bars, NULL);
    expect_line(&lines, "a", 1, 1, 0);
    expect_line(&lines, " 13%|# | 13/100 [00:01<00:09]", 2, -1, 0);
    expect_line(&lines, "b", 2, 2, 0);
    expect_line(&lines, "c", 2, 2, 0);
    expect_line(&lines, "e", 3, 4, 0);
    expect_line(&lines, " f", 4, -1, 0);
    expect_line(&lines, "g [rank3]: h", 4, -1, 0); /* a message, and no tag */
    expect_end(&lines);
}

/* The rank of the first row is kept; lines without a tag belong to no rank and stay. */
static void validate_take(void **state) {
    const struct log_source source = source_of("[rank3]:a\n[rank1]:b\nc\n[rank3]:d");
    static const int kept[] = {1, 0, 1, 1};
    struct log_lines lines;
    struct log_line line;
    (void)state;
    log_lines_open(&lines, &source, NULL);
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        assert_int_equal(log_lines_next(&lines, &line), 1);
        assert_int_equal(log_lines_take(&lines, &line), kept[i]);
    }
    assert_int_equal(lines.other_ranks, 1);
    assert_int_equal(lines.open_row, 4);
}

/* A coloured line that does not fit must be counted, never cut; a plain one may be of any
 * length. */
static void verify_long_lines(void **state) {
    static char text[3 * LOG_LINE_MAX];
    const size_t length = 2 * LOG_LINE_MAX;
    struct log_lines lines;
    struct log_line line;
    (void)state;
    for (int coloured = 0; coloured < 2; coloured++) {
        memset(text, 'x', length);
        memcpy(text + length, "\nend\n", 6);
        if (coloured) memcpy(text, "\x1b[0m", 4);
        const struct log_source source = source_of(text);
        log_lines_open(&lines, &source, NULL);
        assert_int_equal(log_lines_next(&lines, &line), 1);
        assert_int_equal(line.span.length, coloured ? 3 : length);
        assert_int_equal(lines.too_long, coloured);
    }
    text[4 + LOG_LINE_MAX] = '\n'; /* just fits */
    const struct log_source source = source_of(text);
    log_lines_open(&lines, &source, NULL);
    assert_int_equal(log_lines_next(&lines, &line), 1);
    assert_int_equal(line.span.length, LOG_LINE_MAX);
}

/* The head that readers claim by must hold whole lines only. */
static void verify_head(void **state) {
    static char text[LOG_CLAIM_BYTES + 10];
    const struct log_source source = {
        .name = "test", .bytes = (unsigned char *)text, .length = sizeof text};
    struct log_lines lines;
    struct log_line line;
    (void)state;
    memset(text, 'x', sizeof text);
    text[100] = '\n';
    log_lines_open_head(&lines, &source);
    assert_int_equal(log_lines_next(&lines, &line), 1);
    assert_int_equal(line.span.length, 100);
    expect_end(&lines);
}

static void validate_spans(void **state) {
    struct log_span rest = {"12 abc,def  x", 13}, word;
    int64_t value;
    (void)state;
    assert_int_equal(log_span_integer(&rest, &value), 1);
    assert_int_equal(value, 12);
    word = log_span_word(&rest);
    assert_true(log_span_is(word, "abc,def"));
    assert_true(log_span_is(log_span_until(&word, ','), "abc"));
    assert_true(log_span_is(word, "def"));
    assert_true(log_span_is(log_span_trim(rest), "x"));
    assert_null(log_span_after(rest, "yy").text);
    const struct log_span found = log_span_after((struct log_span){"aab", 3}, "ab");
    assert_non_null(found.text);
    assert_int_equal(found.length, 0);
    struct log_span large = {"9999999999999999999999", 22};
    assert_int_equal(log_span_integer(&large, &value), 0);
    struct log_span none = {"x", 1};
    assert_int_equal(log_span_integer(&none, &value), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ends),      cmocka_unit_test(validate_escapes),
        cmocka_unit_test(validate_rank_tags), cmocka_unit_test(validate_take),
        cmocka_unit_test(verify_long_lines),  cmocka_unit_test(verify_head),
        cmocka_unit_test(validate_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
