/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * Names of strangers reach a terminal in words: no control character and no mark that turns the
 * direction of text is printed, every other character is as it was, and JSON stays JSON. */
#include "tests/cli/helper_cli.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define COLUMNS 600
#define EURO "\xe2\x82\xac"
#define ROW "\"learning_rate\":1e-3,\"loss\":2.0}\n"

/* Escape sequence, C1 (CSI), right-to-left override, line separator, DEL, a byte that begins no
 * sequence, half of one before a letter, and at the end. */
#define NAME "no\033[31m\xc2\x9b\xe2\x80\xae\xe2\x80\xa8\x7f\xff\xe2\x82g" EURO ".\xe2\x82"
#define WORDS                                                                                      \
    "no\\u001b[31m\\u009b\\u202e\\u2028\\u007f\\xff\\xe2\\x82g" EURO ".\\xe2\\x82: cannot open"

static void verify_error(void **state) {
    (void)state;
    const char *const words[] = {"doctor", NAME, NULL};
    struct said said = helper_say(words, NULL);
    assert_int_equal(said.code, 2);
    if (strstr(said.err, WORDS) == NULL) fail_msg("expected %s in %s", WORDS, said.err);
    helper_free(&said);
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

/* More text than any buffer holds, so that characters of three bytes lie across the ends of
 * buffers. */
static void verify_long_output(void **state) {
    (void)state;
    FILE *const file = fopen("wide.jsonl", "w");
    size_t euros = 0;
    assert_non_null(file);
    for (int step = 1; step <= 3; step++) {
        fprintf(file, "{\"step\":%d,\"x\xc2\x9b\xe2\x80\xae\":1,", step);
        for (int i = 0; i < COLUMNS; i++) {
            fputc('"', file);
            for (int k = 0; k <= i % 9; k++)
                fputs(EURO, file);
            fprintf(file, "%d\":%d,", i, i);
            if (step == 1) euros += (size_t)(i % 9) + 1;
        }
        fputs(ROW, file);
    }
    assert_int_equal(fclose(file), 0);
    struct said said = helper_run(0, "import wide.jsonl -o wide.h5");
    assert_true(said.out_length > 16384);
    assert_int_equal(count_of(said.out, EURO), euros);
    assert_int_equal(count_of(said.out, "x\\u009b\\u202e "), 1);
    assert_null(strstr(said.out, "\xc2\x9b"));
    helper_free(&said);
}

static void verify_json(void **state) {
    (void)state;
    static const char name[] = "a\x7f\xc2\x9b" EURO ".jsonl";
    helper_write(name, "{\"step\":1," ROW "{\"step\":2," ROW);
    const char *const words[] = {"doctor", name, "--json", NULL};
    struct said said = helper_say(words, NULL);
    json_t *const root = json_loads(said.out, 0, NULL);
    assert_non_null(root);
    assert_null(strchr(said.out, '\x7f'));
    assert_non_null(strstr(said.out, "a\\u007f\\u009b" EURO ".jsonl"));
    char *const again = json_dumps(root, JSON_COMPACT);
    assert_non_null(strstr(again, name));
    free(again);
    json_decref(root);
    helper_free(&said);
}

/* Whether a runner of GitHub may take a line for a command: by the two rules of ActionCommand in
 * actions/runner, of which the first passes over blanks. Its comparison may pass over characters
 * that are not ASCII, too. */
static int is_command(const char *line, size_t length) {
    char ascii[4096];
    size_t count = 0;
    for (size_t i = 0; i < length && count + 1 < sizeof ascii; i++)
        if (line[i] >= ' ' || line[i] == '\t') ascii[count++] = line[i];
    ascii[count] = '\0';
    return strncmp(ascii + strspn(ascii, " \t"), "::", 2) == 0 || strstr(ascii, "##[") != NULL;
}

/* Counts the commands, which must begin with `head` where it is given. */
static size_t commands_in(const char *text, const char *head) {
    size_t found = 0;
    for (const char *line = text; *line != '\0';
         line += strcspn(line, "\n"), line += *line != '\0') {
        const size_t length = strcspn(line, "\n");
        if (!is_command(line, length)) continue;
        if (head == NULL || strncmp(line, head, strlen(head)) != 0)
            fail_msg("%.*s is a command, in %s", (int)length, line, text);
        found++;
    }
    return found;
}

static void verify_names_give_no_command(void **state) {
    (void)state;
    static const char *const names[] = {
        "::error::b.jsonl",
        " \t ::error::b.jsonl",
        "\xe3\x80\x80::error::b.jsonl",
        "a##[error]b.jsonl",
        "a\n::error::b.jsonl",
        "###[error]b.jsonl",
        "a\nNothing found.\n::stop-commands::b.jsonl",
        "\xc2\xad:\xc2\xad:error::b.jsonl",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *const doctor[] = {"doctor", names[i], NULL};
        const char *const absent[] = {"doctor", "--github", names[i], NULL};
        const char *const compare[] = {"compare", names[i], names[i], NULL};
        const char *const check[] = {"lr", "check", names[i], "--expect", "hf", NULL};
        const char *const import[] = {"import", names[i], NULL};
        struct said said = helper_say(absent, NULL);
        assert_int_equal(commands_in(said.out, "::error title=twinstep doctor::"), 1);
        assert_int_equal(commands_in(said.err, NULL), 0);
        assert_int_equal(count_of(said.err, "\n"), 1);
        helper_free(&said);
        helper_write(names[i], "{\"step\":1," ROW "{\"step\":2," ROW);
        const char *const *const verbs[] = {doctor, compare, check, import};
        for (size_t v = 0; v < COUNT_OF(verbs); v++) {
            said = helper_say(verbs[v], NULL);
            assert_true(said.code != 2);
            assert_int_equal(commands_in(said.out, NULL), 0);
            assert_null(strstr(said.out, "\nNothing found.\n"));
            helper_free(&said);
        }
    }
}

/* The name of a trace begins no line either. */
static void verify_names_of_traces(void **state) {
    (void)state;
    static const char name[] = "c\nd.h5";
    helper_write("log.jsonl", "{\"step\":1," ROW "{\"step\":2," ROW);
    const char *const verbs[][5] = {{"import", "log.jsonl", "-o", name, NULL},
                                    {"certify", name, NULL},
                                    {"certify", name, name, NULL},
                                    {"doctor", name, NULL},
                                    {"report", name, "-o", "c\nd.html", NULL}};
    for (size_t v = 0; v < COUNT_OF(verbs); v++) {
        struct said said = helper_say(verbs[v], NULL);
        if (strstr(said.out, "\nd.h") != NULL || strstr(said.err, "\nd.h") != NULL)
            fail_msg("%s: %s%s", verbs[v][0], said.out, said.err);
        helper_free(&said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_error),
        cmocka_unit_test(verify_long_output),
        cmocka_unit_test(verify_json),
        cmocka_unit_test(verify_names_give_no_command),
        cmocka_unit_test(verify_names_of_traces),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
