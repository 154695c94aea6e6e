/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * Progress must be one line that is rewritten, on stderr only and only where that is a terminal,
 * and gone at the end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

#define CLEAR "\r\033[K"
#define LATE_LOOP "loop: {update: [count, clip, schedule, optimize, log, zero]}"

static int shows(const char *text, const char *needle) {
    return strstr(text, needle) != NULL;
}

/* Every piece between two clears must be one line of less than 80 columns. */
static void require_lines(const char *err) {
    const char *at = err;
    assert_memory_equal(err, CLEAR, strlen(CLEAR));
    assert_false(shows(err, "\n"));
    while ((at = strstr(at, CLEAR)) != NULL) {
        const char *next = strstr(at + 1, CLEAR);
        at += strlen(CLEAR);
        if (next != NULL) assert_true((size_t)(next - at) <= 79);
        if (next == NULL) assert_string_equal(at, ""); /* cleared at the end */
    }
}

static void validate_line(void **state) {
    (void)state;
    helper_scenario("bar.yaml", "steps: 60", "seed: 3", LATE_LOOP);
    struct said said = helper_on_terminal("run bar.yaml");
    assert_int_equal(said.code, 1);
    require_lines(said.err);
    assert_true(shows(said.err, "bar: arms 1/60  loss 0.693147 0.693147  |a-b| 0.0e+00"));
    assert_true(shows(said.err, " %  "));
    assert_true(shows(said.err, " left"));
    assert_true(shows(said.err, "hybrids hybrid-1 60/60  100 %  0m00s left"));
    assert_true(shows(said.out, "bar: OUTSIDE THE FLOOR"));
    helper_free(&said);
}

/* The pairs of a floor and of a plan must be counted. */
static void validate_counts(void **state) {
    (void)state;
    helper_scenario("floor.yaml", "steps: 2", "numerics: {mode: shuffled}", "");
    struct said said = helper_on_terminal("noise floor.yaml -o f.h5 --pairs 9 --repeat 1");
    assert_int_equal(said.code, 1);
    require_lines(said.err);
    assert_true(shows(said.err, "noise: strata "));
    assert_true(shows(said.err, "A/A pairs 9/9  100 %  0m00s left"));
    helper_free(&said);
    said = helper_on_terminal("noise --plan --floor f.h5 --alpha 0.2 --power 0.5");
    require_lines(said.err);
    assert_true(shows(said.err, "noise: pairs with the error 5/5  100 %"));
    assert_true(shows(said.err, "noise: pairs with twice the error 5/5  100 %"));
    helper_free(&said);
    said = helper_on_terminal("noise floor.yaml --repeat 1 --quiet");
    assert_string_equal(said.err, "");
    helper_free(&said);
}

static void validate_silence(void **state) {
    (void)state;
    helper_scenario("still.yaml", "steps: 3", "seed: 3", "");
    static const char *const lines[] = {
        "run still.yaml --quiet", "run still.yaml --json --overwrite", "demo null-pair --quiet",
        "check still.yaml", "attribute still.h5"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct said said = helper_on_terminal(lines[i]);
        assert_int_equal(said.code, 0);
        assert_string_equal(said.err, "");
        helper_free(&said);
    }
    helper_accept(0, "run still.yaml --overwrite"); /* no terminal: helper_accept wants silence */
}

/* An error must begin on a clean line. */
static void validate_error_after_progress(void **state) {
    (void)state;
    helper_scenario("gone.yaml", "steps: 3", "seed: 3", "");
    struct said said = helper_on_terminal("run gone.yaml missing.yaml -o .");
    assert_int_equal(said.code, 2);
    assert_true(shows(said.err, CLEAR "missing.yaml: error: no such file"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_line),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_silence),
        cmocka_unit_test(validate_error_after_progress),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
