/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * Two configuration files as leaves: which differ, and that mixed files keep every value's
 * type. The judge of a mixed file is the reader: with all leaves taken nothing differs from the
 * second file any more, with none the first file's bytes are there. */
#include "ablate/ablate_leaves.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int enter(void **state) {
    static char folder[] = "/tmp/leaves-XXXXXX";
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int leave(void **state) {
    static const char *const names[] = {"a.yaml", "b.yaml", "c.yaml", "a.json", "b.json", "c.json"};
    char folder[4096];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        unlink(names[i]);
    return getcwd(folder, sizeof folder) == NULL || rmdir(folder) != 0;
}

static const struct {
    const char *what, *end, *a, *b, *leaves;
    const char *first; /* of which only the first leaf is taken */
} cases[] = {
    {"a nested value", "yaml", "m: {lr: 1e-3, n: {x: 1}}\n", "m: {lr: 1e-4, n: {x: 1}}\n", "m.lr",
     "\nm: \n  lr: 1e-4\n  n: \n    x: 1\n"},
    {"types stay", "yaml", "a: 'on'\nb: on\nc: ~\nd: \"1\"\ne: 0x1F\nf: 12:30\n",
     "a: on\nb: 'on'\nc: ''\nd: 1\ne: 31\nf: 12:30\n", "a b c d e",
     "\na: on\nb: on\nc: null\nd: \"1\"\ne: 0x1F\nf: 12:30\n"},
    {"lists are leaves", "yaml", "t: [1, 2, {x: y}]\nu: [1]\n", "t: [1, 3, {x: y}]\nu: [1]\n", "t",
     "\nt: \n  - 1\n  - 3\n  - \n    x: y\nu: \n  - 1\n"},
    {"keys of one file", "yaml", "a: 1\nb: {c: 2}\n", "b: {}\nd: {e: [], f: {}}\n", "a b.c d",
     "\nb: \n  c: 2\n"},
    {"a map against a value", "yaml", "a: {b: 1}\nc: 2\n", "a: 5\nc: 3\n", "a c", "\na: 5\nc: 2\n"},
    {"anchors and lines", "yaml", "d: &d {x: 1}\ne: *d\nt: |\n  two\n  lines \"q\"\n",
     "d: {x: 2}\ne: {x: 1}\nt: |\n  two\n  lines \"q\"\n", "d.x",
     "\nd: \n  x: 2\ne: \n  x: 1\nt: \"two\\u000alines \\\"q\\\"\\u000a\"\n"},
    {"characters at which some readers end a line", "yaml",
     "a: \"<\\x85\\x7f\\L\\P\\uFEFF\\x9f\\xa0>\"\nb: 1\n",
     "a: \"<\\x85\\x7f\\L\\P\\uFEFF\\x9f\\xa0>\"\nb: 2\n", "b",
     "\na: \"<\\u0085\\u007f\\u2028\\u2029\\ufeff\\u009f\xc2\xa0>\"\nb: 2\n"},
    {"the same in JSON", "json", "{\"a\": \"\\u0085\\u007f\\u2028\", \"b\": 1}",
     "{\"a\": \"\\u0085\\u007f\\u2028\", \"b\": 2}", "b",
     "{\"a\": \"\\u0085\\u007f\\u2028\", \"b\": 2}\n"},
    {"JSON", "json", "{\"a.b\": 1, \"1\": {\"c\": [true, null]}, \"s\": \"\\u001b\"}",
     "{\"a.b\": 2, \"1\": {\"c\": [false, null]}, \"s\": \"\\u001b\"}", "\"a.b\" \"1\".c",
     "{\"a.b\": 2, \"1\": {\"c\": [true, null]}, \"s\": \"\\u001b\"}\n"},
};

static void validate_leaves_and_mixed_files(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct leaves leaves, again;
        unsigned char taken[16] = {0};
        char a[16], b[16], c[16], list[200] = "";
        const char *text;
        size_t length;
        snprintf(a, sizeof a, "a.%s", cases[i].end);
        snprintf(b, sizeof b, "b.%s", cases[i].end);
        snprintf(c, sizeof c, "c.%s", cases[i].end);
        write_file(a, cases[i].a);
        write_file(b, cases[i].b);
        if (leaves_read(a, b, &arena, &leaves) != STATUS_OK)
            fail_msg("%s: %s", cases[i].what, status_text());
        for (size_t l = 0; l < leaves.count; l++) {
            strcat(list, l == 0 ? "" : " ");
            strcat(list, leaves.differ[l]);
        }
        assert_string_equal(list, cases[i].leaves);
        assert_int_equal(leaves_compose(&leaves, taken, &arena, &text, &length), STATUS_OK);
        assert_string_equal(text, cases[i].a);
        assert_int_equal(length, strlen(cases[i].a));
        taken[0] = 1;
        assert_int_equal(leaves_compose(&leaves, taken, &arena, &text, &length), STATUS_OK);
        assert_string_equal(text, cases[i].first);
        memset(taken, 1, sizeof taken);
        assert_int_equal(leaves_compose(&leaves, taken, &arena, &text, &length), STATUS_OK);
        write_file(c, text);
        if (leaves_read(c, b, &arena, &again) != STATUS_OK)
            fail_msg("%s: %s", cases[i].what, status_text());
        assert_int_equal(again.count, 0);
        arena_close(&arena);
    }
}

/* Files of which a mixed one could hold another type than they do, or that have no leaves. */
static void validate_refusals(void **state) {
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"1: a\n", "a key that may be no word: \"1\""},
        {"Yes: a\n", "a key that may be no word: \"Yes\""},
        {"a: {x y: b}\n", "a key that may be no word: \"x y\""},
        {"- a\n", "no map at the top"},
        {"a: !!python/object b\n", "tags"},
        {"a: [\n", "b.yaml:"},
    };
    (void)state;
    write_file("a.yaml", "a: 1\n");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct arena arena = ARENA_EMPTY;
        struct leaves leaves;
        write_file("b.yaml", bad[i].text);
        assert_int_equal(leaves_read("a.yaml", "b.yaml", &arena, &leaves), STATUS_INPUT);
        assert_non_null(strstr(status_text(), bad[i].expected));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_leaves_and_mixed_files),
                                       cmocka_unit_test(validate_refusals)};
    return cmocka_run_group_tests(tests, enter, leave);
}
