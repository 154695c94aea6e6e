/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * What verbs that judge tell a CI system: JUnit XML and annotations of GitHub Actions. Every such
 * verb takes both options; the file's counts must be those of its cases, and nothing that was read
 * may be replaced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

/* Two trainings of two updates, of which the second has twice the LR, and no noise. */
#define SCENARIO                                                                                   \
    "twinstep: 1\nname: two\nsteps: 2\ncommon:\n  task: dpo\n  seed: 3\n"                          \
    "  data: {pairs: builtin:quiz, max_len: 96}\n  batch: {size: 2, micro: 1}\n"                   \
    "  model: {family: olmo2, layers: 1, hidden: 32, heads: 2, mlp: 64}\n"                         \
    "  optimizer: {name: adamw, lr: 1e-3}\n"                                                       \
    "  numerics: {mode: invariant}\narms:\n  baseline: {}\n"                                       \
    "  test: {optimizer: {lr: 2e-3}}\n"

static size_t count(const char *text, const char *word) {
    size_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        found++;
    return found;
}

static long number_behind(const char *text, const char *word) {
    const char *at = strstr(text, word);
    if (at == NULL) fail_msg("no %s in %s", word, text);
    return at == NULL ? -1 : strtol(at + strlen(word), NULL, 10);
}

/* Reads a JUnit file: well formed as far as counts go, with a case for each outcome it counts. */
static char *junit_of(const char *path, const char *suite) {
    size_t length;
    char *text = helper_read(path, &length);
    assert_non_null(strstr(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"));
    assert_non_null(strstr(text, suite));
    assert_int_equal(number_behind(text, " tests=\""), count(text, "<testcase "));
    assert_int_equal(number_behind(text, " failures=\""), count(text, "<failure "));
    assert_int_equal(number_behind(text, " errors=\""), count(text, "<error "));
    assert_int_equal(number_behind(text, " skipped=\""), count(text, "<skipped "));
    assert_int_equal(count(text, "<testcase "), count(text, "</testcase>"));
    return text;
}

static void validate_doctor(void **state) {
    (void)state;
    helper_write("bad.csv", "step,loss,lr\n1,0.7,1e-6\n2,nan,9e-7\n3,0.6,8e-7\n4,0.6,7e-7\n");
    struct said said = helper_run(1, "doctor bad.csv --junit d.xml --github");
    assert_non_null(strstr(said.out, "\n::error file=bad.csv,line=3,title=loss_not_finite::The "
                                     "loss is no finite number in 1 of 4 rows.\n"));
    assert_non_null(strstr(said.out, "\n::warning file=bad.csv,title="));
    helper_free(&said);
    char *text = junit_of("d.xml", "<testsuite name=\"twinstep doctor\"");
    assert_int_equal(number_behind(text, " failures=\""), 1);
    assert_non_null(strstr(text, "classname=\"twinstep.doctor\" name=\"loss is a finite number\""));
    free(text);
    /* JSON stays JSON. */
    said = helper_run(1, "doctor bad.csv --json --github");
    assert_null(strstr(said.out, "::"));
    helper_free(&said);
}

static void validate_compare(void **state) {
    (void)state;
    helper_write("a.csv", "step,loss,grad_norm\n1,0.7,1.5\n2,0.6,1.4\n3,0.5,1.3\n");
    helper_write("b.csv", "step,loss,grad_norm\n1,0.7,1.5\n2,0.6,1.4\n3,0.4,1.1\n");
    struct said said = helper_run(1, "compare a.csv b.csv --junit c.xml --github");
    assert_non_null(strstr(said.out, "::error file=b.csv,title=the logs differ::grad_norm differs "
                                     "first, at update 3."));
    helper_free(&said);
    char *text =
        junit_of("c.xml", "<testsuite name=\"twinstep compare\" tests=\"1\" failures=\"1\"");
    assert_non_null(strstr(text, "name=\"a.csv against b.csv\""));
    free(text);
    helper_accept(0, "compare a.csv a.csv --junit c.xml");
    free(junit_of("c.xml", "tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\""));
}

static void validate_run_and_replay(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    struct said said = helper_run(1, "run two.yaml --quiet -o two.h5 --junit r.xml --github");
    assert_non_null(strstr(said.out, "\n::error file=two.yaml,title=twinstep run::two: OUTSIDE"));
    helper_free(&said);
    char *text = junit_of("r.xml", "<testsuite name=\"twinstep run\" tests=\"1\" failures=\"1\"");
    assert_non_null(strstr(text, "<failure message=\"two: OUTSIDE"));
    free(text);
    helper_accept(0, "replay two.h5 --junit p.xml --github");
    text = junit_of("p.xml", "<testsuite name=\"twinstep replay\"");
    assert_non_null(strstr(text, "name=\"baseline\""));
    free(text);
    helper_accept(0, "certify two.h5 --junit y.xml");
    free(junit_of("y.xml", "tests=\"1\" failures=\"0\""));
    said = helper_run(2, "run two.yaml absent.yaml --quiet --overwrite --junit r.xml -o .");
    helper_free(&said);
    free(junit_of("r.xml", "tests=\"2\" failures=\"1\" errors=\"1\""));
}

/* A verb that names no case of its own still has one. */
static void validate_plain_outcome(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    struct said said = helper_run(0, "run two.yaml --quiet -o pin.h5 --overwrite --set "
                                     "arms.test.optimizer.lr=1e-3");
    helper_free(&said);
    said = helper_run(1, "certify pin.h5 --github --junit pin.xml --expect "
                         "0000000000000000000000000000000000000000000000000000000000000000");
    assert_non_null(strstr(said.out, "::error title=twinstep certify::"));
    helper_free(&said);
    free(junit_of("pin.xml", "<testsuite name=\"twinstep certify\" tests=\"1\" failures=\"1\""));
}

static void verify_inputs_are_kept(void **state) {
    (void)state;
    helper_write("a.csv", "step,loss\n1,0.7\n2,0.6\n3,0.5\n");
    helper_write("two.yaml", SCENARIO);
    helper_refuse(2, "doctor a.csv --junit a.csv", "a.csv");
    helper_refuse(2, "compare a.csv a.csv --junit a.csv", "a.csv");
    helper_refuse(2, "run two.yaml --junit two.yaml", "two.yaml");
    helper_refuse(2, "doctor a.csv --junit no/such/folder.xml", "no/such/folder.xml");
    size_t length;
    char *text = helper_read("a.csv", &length);
    assert_string_equal(text, "step,loss\n1,0.7\n2,0.6\n3,0.5\n");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_doctor),         cmocka_unit_test(validate_compare),
        cmocka_unit_test(validate_run_and_replay), cmocka_unit_test(validate_plain_outcome),
        cmocka_unit_test(verify_inputs_are_kept),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
