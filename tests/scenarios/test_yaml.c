/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * YAML as a tree: kinds and places of nodes, anchors and merges, and every text that must be
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

static const struct yaml_node *at(const struct yaml_node *map, const char *key) {
    const struct yaml_node *node = yaml_child(map, key);
    if (node == NULL) fail_msg("no key %s", key);
    return node;
}

static struct yaml_node *parse(struct arena *arena, const char *text) {
    struct yaml_node *root = NULL;
    if (yaml_parse(arena, "f.yaml", 1, text, strlen(text), &root) != STATUS_OK)
        fail_msg("%s", status_text());
    return root;
}

/* A byte order mark in front is no part of the text, nor of the columns; alone it is an empty one.
 */
static void validate_byte_order_mark(void **state) {
    (void)state;
    static const char *const texts[] = {"\xef\xbb\xbf"
                                        "a: 1\n",
                                        "\xef\xbb\xbf{\"a\": 1}"};
    static const int columns[] = {4, 7};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct yaml_node *const a = at(parse(&arena, texts[i]), "a");
        assert_string_equal(a->text, "1");
        assert_int_equal(a->line, 1);
        assert_int_equal(a->column, columns[i]);
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    assert_int_equal(parse(&arena, "\xef\xbb\xbf")->kind, YAML_NULL);
    arena_close(&arena);
}

static void validate_kinds_and_places(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct yaml_node *root =
        parse(&arena, "a: 1\nb: {c: [x, \"8\"], d: }\n'e': |\n  two\n  lines\nf: ~\n");
    const struct {
        const struct yaml_node *node;
        enum yaml_kind kind;
        const char *text;
        int key_line, key_column, line, column;
    } cases[] = {
        {at(root, "a"), YAML_PLAIN, "1", 1, 1, 1, 4},
        {at(root, "b"), YAML_MAP, NULL, 2, 1, 2, 4},
        {at(at(root, "b"), "c"), YAML_LIST, NULL, 2, 5, 2, 8},
        {at(at(root, "b"), "c")->first, YAML_PLAIN, "x", 0, 0, 2, 9},
        {at(at(root, "b"), "c")->last, YAML_QUOTED, "8", 0, 0, 2, 12},
        {at(at(root, "b"), "d"), YAML_NULL, "", 2, 18, 2, 18},
        {at(root, "e"), YAML_QUOTED, "two\nlines\n", 3, 1, 4, 1},
        {at(root, "f"), YAML_NULL, "~", 6, 1, 6, 4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct yaml_node *node = cases[i].node;
        assert_int_equal(node->kind, cases[i].kind);
        if (cases[i].text != NULL) assert_string_equal(node->text, cases[i].text);
        assert_int_equal(node->key_line, cases[i].key_line);
        assert_int_equal(node->key_column, cases[i].key_column);
        assert_int_equal(node->line, cases[i].line);
        assert_int_equal(node->column, cases[i].column);
    }
    assert_int_equal(root->count, 4);
    arena_close(&arena);
}

static void validate_anchors_and_merges(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct yaml_node *root = parse(&arena, "a: &x {p: 1, q: 2}\n"
                                                 "b: {<<: *x, q: 3, r: 4}\n"
                                                 "c: *x\n"
                                                 "d: &y {q: 5, s: 6}\n"
                                                 "e: {<<: [*x, *y]}\n"
                                                 "f: [&z one, *z]\n"
                                                 "g: &x 7\n"
                                                 "h: *x\n");
    assert_string_equal(at(at(root, "b"), "p")->text, "1");
    assert_string_equal(at(at(root, "b"), "q")->text, "3"); /* own keys win over merged ones */
    assert_true(at(at(root, "b"), "p")->merged);
    assert_false(at(at(root, "b"), "q")->merged);
    assert_int_equal(at(at(root, "b"), "p")->line, 1); /* the place where it was written */
    assert_int_equal(at(root, "b")->count, 3);
    assert_string_equal(at(at(root, "c"), "q")->text, "2");
    assert_string_equal(at(at(root, "e"), "q")->text, "2"); /* the first of the list wins */
    assert_string_equal(at(at(root, "e"), "s")->text, "6");
    assert_string_equal(at(root, "f")->last->text, "one");
    assert_string_equal(at(root, "h")->text, "7"); /* an anchor may be given anew */
    arena_close(&arena);
}

static const struct {
    const char *text;
    const char *message;
} refused[] = {
    {"a: 1\na: 2\n", "f.yaml:2:1: error: key \"a\" is given twice, first in line 1"},
    {"a: {b: 1, \"b\": 2}", "f.yaml:1:11: error: key \"b\" is given twice, first in line 1"},
    {"a: {<<: {b: 1}, <<: {c: 1}}", "f.yaml:1:17: error: <<: given twice; use a list of maps"},
    {"<<: 5", "f.yaml:1:5: error: <<: expected a map, or a list of maps, got \"5\""},
    {"<<: [{a: 1}, 2]", "f.yaml:1:14: error: <<: expected a map, or a list of maps, got \"2\""},
    {"a: *y", "f.yaml:1:4: error: *y: no anchor &y stands before it"},
    {"a: &x [*x]", "f.yaml:1:8: error: *x: stands inside its own anchor"},
    {"a: &x {b: {<<: *x}}", "f.yaml:1:16: error: *x: stands inside its own anchor"},
    {"--- 1\n--- 2\n", "f.yaml:2:1: error: expected one document, got a second one"},
    {"a: !!str 5", "f.yaml:1:10: error: tags (!...) are not part of a scenario"},
    {"? [a]\n: b",
     "f.yaml:1:3: error: expected a plain word as key, got a list, a map or an alias"},
    /* both ended libfyaml by a signal */
    {"b: 1\n? a:\t- b",
     "f.yaml:2: error: expected no explicit key (\"? key\") in a text with a tab "
     "behind a colon, got one"},
    {"a: : ? b:\t- c", "f.yaml:1: error: expected no explicit key (\"? key\") in a text with a tab "
                       "behind a colon, got one"},
    {"a: b: c", "f.yaml:1:5: error: invalid nested block mapping on the same line"},
    {"a: [1\nb: 2\n", "f.yaml:2: error: at the end: flow sequence without a closing bracket"},
    {"\ta: 1\n", "f.yaml:1:1: error: invalid tab as indendation in a mapping"},
    {"a: \"\\0x\"", "f.yaml:1:4: error: expected text, got a NUL character in it"},
    {"a: \xff", "f.yaml:1:4: error: expected UTF-8 text, got byte 0xff"},
    {"a: 1\n%\xff\n", "f.yaml:2:2: error: expected UTF-8 text, got byte 0xff"}, /* hung libfyaml */
    {"a: \xc0\xaf", "f.yaml:1:4: error: expected UTF-8 text, got byte 0xc0"},   /* overlong */
    {"a: \xed\xa0\x80", "f.yaml:1:4: error: expected UTF-8 text, got byte 0xed"}, /* surrogate */
    {"a: \xf4\x90\x80\x80", "f.yaml:1:4: error: expected UTF-8 text, got byte 0xf4"},
    {"a: \xe2\x82", "f.yaml:1:4: error: expected UTF-8 text, got byte 0xe2"}, /* cut off */
    {"a: \x1b[2J", "f.yaml:1:4: error: expected text, got control character U+001B"},
    {"a: \xef\xbb\xbf",
     "f.yaml:1:4: error: expected text, got a byte order mark (U+FEFF): save the "
     "file as UTF-8 without it"},
    {"\xef\xbb\xbf\xef\xbb\xbf"
     "a: 1",
     "f.yaml:1:1: error: expected text, got a byte order mark (U+FEFF): save the file as UTF-8 "
     "without it"},
    {"a: \xe2\x80\xa8", "f.yaml:1:4: error: expected text, got control character U+2028"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "f.yaml:1:34: error: more than 32 levels deep"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct arena arena = ARENA_EMPTY;
        struct yaml_node *root = NULL;
        const char *text = refused[i].text;
        if (yaml_parse(&arena, "f.yaml", 1, text, strlen(text), &root) != STATUS_INPUT)
            fail_msg("accepted: %s", text);
        assert_string_equal(status_text(), refused[i].message);
        arena_close(&arena);
    }
}

/* Each of the two marks alone is read, and so is a question mark that begins no key. */
static void validate_question_marks(void **state) {
    (void)state;
    static const char *const texts[] = {"? a\n: ? b\n  : - c\n", "a:\tb\n", "a: why ? b\nc:\td\n",
                                        "a: [b, what?]\nc: \t5\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena arena = ARENA_EMPTY;
        assert_int_equal(parse(&arena, texts[i])->kind, YAML_MAP);
        arena_close(&arena);
    }
}

static void validate_option_errors_have_no_line(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct yaml_node *root = NULL;
    assert_int_equal(yaml_parse(&arena, "--set a=[", 0, "[", 1, &root), STATUS_INPUT);
    assert_string_equal(status_text(), "--set a=[: error: flow sequence without a closing bracket");
    assert_int_equal(yaml_parse(&arena, "--set a={b: 1, b: 2}", 0, "{b: 1, b: 2}", 12, &root),
                     STATUS_INPUT);
    assert_string_equal(status_text(), "--set a={b: 1, b: 2}: error: key \"b\" is given twice");
    arena_close(&arena);
}

static void validate_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# nothing\n", "---\n", "~"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct arena arena = ARENA_EMPTY;
        assert_int_equal(parse(&arena, texts[i])->kind, YAML_NULL);
        arena_close(&arena);
    }
}

/* Nine levels of nine aliases each would be 9^9 values when written out; here they must be a few
 * dozen nodes. */
static void verify_alias_bomb_is_small(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    char text[2048] = "l0: &l0 [x, x, x, x, x, x, x, x, x]\n";
    for (int level = 1; level < 9; level++) {
        size_t used = strlen(text);
        int inner = level - 1;
        snprintf(text + used, sizeof text - used, "l%d: &l%d [*l%d, *l%d, *l%d, *l%d, *l%d]\n",
                 level, level, inner, inner, inner, inner, inner);
    }
    parse(&arena, text);
    assert_true(arena.total < 1024 * 1024);
    arena_close(&arena);
}

/* Merging a large map again and again multiplies keys, so the limit on values must hold. */
static void validate_limits(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct yaml_node *root = NULL;
    char *text = NULL;
    size_t size = 64 * 1024;
    size_t used = 0;
    assert_int_equal(arena_take(&arena, size, 1, "text", &text), STATUS_OK);
    used += (size_t)snprintf(text + used, size - used, "a: &a {");
    for (int i = 0; i < 900; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d: 1, ", i);
    used += (size_t)snprintf(text + used, size - used, "}\n");
    for (int i = 0; i < 200; i++)
        used += (size_t)snprintf(text + used, size - used, "m%d: {<<: *a}\n", i);
    assert_int_equal(yaml_parse(&arena, "f.yaml", 1, text, used, &root), STATUS_INPUT);
    assert_string_equal(status_text(), "f.yaml: error: more than 100000 values");
    used = 0;
    for (int i = 0; i < 1002; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d: 1\n", i);
    assert_int_equal(yaml_parse(&arena, "f.yaml", 1, text, used, &root), STATUS_INPUT);
    assert_string_equal(status_text(), "f.yaml:1001:1: error: more than 1000 keys in one map");
    arena_close(&arena);
}

static void validate_describe(void **state) {
    (void)state;
    char got[YAML_TEXT_SIZE];
    char longest[400];
    struct yaml_node node = {.kind = YAML_QUOTED, .text = "a\x1b[2J\n"};
    assert_string_equal(yaml_describe(&node, got), "the text \"a\\x1b[2J\\x0a\"");
    for (size_t i = 0; i < sizeof longest - 1; i += 3)
        memcpy(longest + i, "\xe2\x82\xac", 3);
    longest[399] = '\0';
    node = (struct yaml_node){.kind = YAML_QUOTED, .text = longest};
    const char *text = yaml_describe(&node, got);
    assert_true(strlen(text) < YAML_TEXT_SIZE);
    assert_int_equal(plaintext_check("got", text, strlen(text)), STATUS_OK); /* no torn character */
    assert_string_equal(text + strlen(text) - 4, "...\"");
    node.kind = YAML_PLAIN;
    text = yaml_describe(&node, got);
    assert_int_equal(plaintext_check("got", text, strlen(text)), STATUS_OK);
    for (size_t i = 0; i < sizeof longest - 1; i++)
        longest[i] = '\x01';
    assert_true(strlen(yaml_describe(&node, got)) < YAML_TEXT_SIZE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_byte_order_mark),
        cmocka_unit_test(validate_kinds_and_places),
        cmocka_unit_test(validate_anchors_and_merges),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_question_marks),
        cmocka_unit_test(validate_option_errors_have_no_line),
        cmocka_unit_test(validate_nothing),
        cmocka_unit_test(verify_alias_bomb_is_small),
        cmocka_unit_test(validate_limits),
        cmocka_unit_test(validate_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
