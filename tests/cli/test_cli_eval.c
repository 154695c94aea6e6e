/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * The block eval on the command line: what check says of it, what run prints, and the report's
 * table; and that nothing of it is there without the block. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

#define EVAL "eval: {from: rest, rows: 3, training_rows: 2}\n"

static void write_scenario(const char *path, const char *eval) {
    char text[512];
    snprintf(text, sizeof text,
             "twinstep: 1\nsteps: 2\n%scommon: {model: {layers: 1, hidden: 16, heads: 2, mlp: 24}, "
             "data: {samples: 12}, batch: {size: 4}, optimizer: {lr: 1e-2}}\n"
             "arms: {baseline: {}, test: {optimizer: {lr: 1e-3}}}\n",
             eval);
    helper_write(path, text);
}

static void require_in(const char *told, const char *needle) {
    if (strstr(told, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, told);
}

static void require_all(int status, const char *line, const char *const needles[]) {
    struct said said = helper_run(status, line);
    for (size_t i = 0; needles[i] != NULL; i++)
        require_in(said.out, needles[i]);
    helper_free(&said);
}

static char *read_page(const char *name) {
    size_t length;
    char *text = helper_read(name, &length);
    assert_non_null(text);
    return text;
}

static void validate_check(void **state) {
    (void)state;
    write_scenario("eval.yaml", EVAL);
    require_all(
        0, "check eval.yaml",
        (const char *const[]){"  eval     after the last update, on 3 held-out rows "
                              "(quiz.tsv, lines 13 to 15)\n           and on at most 2 rows",
                              NULL});
    require_all(0, "check eval.yaml --json",
                (const char *const[]){"\"held_out\": 3", "\"training_at_most\": 2",
                                      "\"seen_in_training\": 0", NULL});
    require_all(0, "check eval.yaml --set eval.from=builtin:quiz",
                (const char *const[]){"  warning  3 of 3 held-out rows stand in the training data, "
                                      "too (the first is line 1)",
                                      NULL});
    write_scenario("plain.yaml", "");
    struct said said = helper_run(0, "check plain.yaml");
    assert_null(strstr(said.out, "held-out"));
    helper_free(&said);
}

static void validate_run_and_report(void **state) {
    (void)state;
    write_scenario("worse.yaml", EVAL);
    require_all(
        1, "run worse.yaml -o worse.h5 --quiet",
        (const char *const[]){"  eval     on 3 held-out rows (quiz.tsv, lines 13 to 15) test "
                              "is ",
                              "  eval     on 2 rows that both arms trained on test is ",
                              "A/A runs repeat exactly", "reward margin", NULL});
    require_all(1, "attribute worse.h5 --json",
                (const char *const[]){"\"eval\": {", "\"set\": \"held_out\"",
                                      "\"measure\": \"logp_rejected\"", NULL});
    require_all(0, "report worse.h5 -o worse.html", (const char *const[]){"worse.html", NULL});
    char *page = read_page("worse.html");
    require_in(page, "<a href=\"#eval\">Worse?</a>");
    require_in(page, "<section id=\"eval\"");
    require_in(page, "On 3 held-out rows: quiz.tsv, lines 13 to 15");
    require_in(page, "On 2 rows that both arms trained on");
    free(page);
}

static void validate_without(void **state) {
    (void)state;
    write_scenario("plain.yaml", "");
    struct said said = helper_run(1, "run plain.yaml -o plain.h5 --quiet");
    assert_null(strstr(said.out, "  eval "));
    helper_free(&said);
    said = helper_run(1, "attribute plain.h5 --json");
    assert_null(strstr(said.out, "\"eval\""));
    helper_free(&said);
    require_all(0, "report plain.h5 -o plain.html", (const char *const[]){"plain.html", NULL});
    char *page = read_page("plain.html");
    assert_null(strstr(page, "#eval"));
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_check),
        cmocka_unit_test(validate_run_and_report),
        cmocka_unit_test(validate_without),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
