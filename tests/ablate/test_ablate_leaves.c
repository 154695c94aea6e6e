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
    static const char *const names[] = {"a.yaml", "b.yaml", "c.yaml", "a.json", "b.json",
                                        "c.json", "a.toml", "b.toml", "c.toml"};
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
    {"TOML keeps what is not exchanged", "toml",
     "# why\n[optimizer]\nlr = 8e-4 # high\r\n  eps=1e-8\n[optimizer.\"x y\"]\nb = [1, # one\n2]\n",
     "[optimizer]\n\"x y\".b = [1]\nlr = 3e-4\neps = 1e-9",
     "optimizer.lr optimizer.eps "
     "optimizer.\"x y\".b",
     "# why\n[optimizer]\nlr = 3e-4 # high\r\n  eps=1e-8\n[optimizer.\"x y\"]\nb = [1, # "
     "one\n2]\n"},
    {"values of TOML of any form", "toml", "b = {c = 1, d = 2}\na.x = 'y'\na.z = 1_0\n",
     "b = {c = [\n1, # one\n], d = 2}\na = {x = \"\"\"\nq\"\"\", z = 1_0}\n", "b.c a.x",
     "b = {c = [\n1, # one\n], d = 2}\na.x = 'y'\na.z = 1_0\n"},
    {"tables in several places", "toml", "a.x = 1\nb = 2\na.y = 3 # y\n[t.u]\nv = 1\n[t]\nw = 2\n",
     "a = {y = 5, x = 4}\nb = 6\nt = {w = 1, u = {v = 2}}", "a.x a.y b t.u.v t.w",
     "a.x = 4\nb = 2\na.y = 3 # y\n[t.u]\nv = 1\n[t]\nw = 2\n"},
    {"a key of one file", "toml", "a = 1 # gone\n[t]\nb = 'x\ty'\n[[l]]\nk = {m = 07:32:00}\n",
     "c = true\n[t]\nd = 2\n[[l]]\nk = {m = 07:32:00}\n", "a t.b t.d c",
     "l = [{k = {m = 07:32:00}}]\n\n[t]\nb = \"x\\u0009y\"\n"},
    {"a table against a value", "toml", "[a]\nb = 1\n[c.d]\n", "a = 5\n[c.d.e]\n", "a c.d.e",
     "a = 5\n\n[c]\n\n[c.d]\n"},
    {"texts and numbers are not equal", "toml", "a = \"1\"\nb = 1.0\n", "a = 1\nb = 1.0\n", "a",
     "a = 1\nb = 1.0\n"},
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

/* What the grammar of TOML refuses is held against another reader (toml_truth.py); here are places
 * and limits. */
static void validate_refusals_of_toml(void **state) {
    static const struct {
        const char *text;
        int keys; /* and so many more */
        const char *expected;
    } bad[] = {
        {"a = 1\nb = x\xc3\xa9\n", 0,
         "b.toml:2:5: error: expected a string, a number, a truth "
         "value, a date, an array or a table, got \"x\xc3\xa9\""},
        {"a = 1\n[b]\nc = 1\n [b]\n", 0, "b.toml:4:3: error: \"b\" is defined in line 2"},
        {"a\n", 0, "b.toml:1:2: error: expected \"=\" after a key, got the end of the line"},
        {"a = [\n", 0, "b.toml:2:1: error: expected a value, got the end of the file"},
        {"a = \"\\u0000\"", 0, "b.toml:1:6: error: a text with U+0000 cannot be kept"},
        {"a = '\x1b'", 0, "b.toml:1:6: error: expected text, got control character U+001B"},
        {"a = '\xff'", 0, "b.toml:1:6: error: expected UTF-8 text, got byte 0xff"},
        {"a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]", 0, ": error: more than 32 levels deep"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1", 0,
         ": error: more than 32 levels deep"},
        {"", 1001, "b.toml:1001: error: more than 1000 keys in one table"},
    };
    (void)state;
    write_file("a.toml", "a = 1\n");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct arena arena = ARENA_EMPTY;
        struct leaves leaves;
        FILE *file = fopen("b.toml", "w");
        assert_non_null(file);
        assert_true(fputs(bad[i].text, file) >= 0);
        for (int n = 0; n < bad[i].keys; n++)
            assert_true(fprintf(file, "k%d = 1\n", n) > 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(leaves_read("a.toml", "b.toml", &arena, &leaves), STATUS_INPUT);
        if (strstr(status_text(), bad[i].expected) == NULL)
            fail_msg("expected %s, got %s", bad[i].expected, status_text());
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    struct leaves leaves;
    write_file("a.yaml", "a: 1\n");
    assert_int_equal(leaves_read("a.yaml", "a.toml", &arena, &leaves), STATUS_INPUT);
    assert_string_equal(status_text(), "a.yaml is YAML and a.toml is TOML");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_leaves_and_mixed_files),
                                       cmocka_unit_test(validate_refusals),
                                       cmocka_unit_test(validate_refusals_of_toml)};
    return cmocka_run_group_tests(tests, enter, leave);
}
