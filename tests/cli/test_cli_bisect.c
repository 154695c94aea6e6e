/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * twinstep bisect: a scenario and its trace must give the same first difference; recorded roots
 * must be bisected in few comparisons, and stored states must save training. What cannot be decided
 * or read must be reported. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/cli/helper_cli.h"

static void expect_text(const struct said *said, const char *needle) {
    if (strstr(said->out, needle) == NULL) fail_msg("no \"%s\" in:\n%s", needle, said->out);
}

static void expect_line(int code, const char *line, const char *needle) {
    struct said said = helper_run(code, line);
    expect_text(&said, needle);
    helper_free(&said);
}

/* Records a trace; the verdict is that the arms differ. */
static void record(const char *line) {
    struct said said = helper_run(1, line);
    helper_free(&said);
}

static void scenario(const char *path, const char *name, const char *head, const char *common,
                     const char *test) {
    char text[2048];
    snprintf(text, sizeof text,
             "twinstep: 1\nname: %s\n%scommon:\n  data: {max_len: 96}\n  batch: {size: 4, micro: "
             "2}\n  model: {layers: 2, hidden: 16, heads: 2, mlp: 24}\n%sarms: {baseline: {}, "
             "test: {%s}}\n",
             name, head, common, test);
    helper_write(path, text);
}

static void validate_scenario(void **state) {
    (void)state;
    scenario("lr.yaml", "lr", "steps: 3\n", "", "optimizer: {lr: 1e-3}");
    expect_line(1, "bisect lr.yaml", "update 1, optimize, model.embed_tokens.weight LR applied: ");
    expect_line(1, "bisect lr.yaml", "kind     lr-ratio");
    expect_line(1, "bisect lr.yaml --json", "\"update\": 1");
    expect_line(1, "bisect lr.yaml --steps 1 --quiet", "1 comparison of roots");
    scenario("same.yaml", "same", "steps: 3\n", "", "");
    expect_line(0, "bisect same.yaml",
                "equal: the roots of 3 updates, each of which covers all before it, but neither "
                "gradients nor logs");
    expect_line(0, "bisect same.yaml --json", "\"equal\": true");
    scenario("more.yaml", "more", "steps: 2\n", "", "dropout: {attention: 0.1}");
    expect_line(1, "bisect more.yaml",
                "update 1, structure: only test has forward, layer 0, attention dropout");
    scenario("data.yaml", "data", "steps: 2\n", "", "batch: {size: 2}");
    expect_line(1, "bisect data.yaml", "only baseline has fetch, data tokens of sample 2");
}

/* Bisects the same pair by training it and by its record, with stored states and without. The
 * counter takes one step more in update 13, so that update 15 is the first with another LR. */
static void corroborate_trace(void **state) {
    (void)state;
    scenario("late.yaml", "late", "steps: 20\n",
             "  optimizer: {lr: 1e-3}\n  schedule: {name: linear, total: 20}\n",
             "schedule: {warmup: 0}, loop: {eval_every: 13, eval: [count]}");
    struct said trained = helper_run(1, "bisect late.yaml");
    record("run late.yaml -o bare.h5 --quiet");
    record("run late.yaml -o kept.h5 --checkpoint-every 5 --quiet");
    struct said bare = helper_run(1, "bisect bare.h5");
    struct said kept = helper_run(1, "bisect kept.h5");
    char *ends[3] = {strchr(trained.out, '\n'), strchr(bare.out, '\n'), strchr(kept.out, '\n')};
    for (int i = 0; i < 3; i++) {
        assert_non_null(ends[i]);
        *ends[i] = '\0';
    }
    assert_string_equal(trained.out, bare.out);
    assert_string_equal(trained.out, kept.out);
    if (strncmp(trained.out, "update 15, ", 11) != 0) fail_msg("%s", trained.out);
    if (strstr(ends[1] + 1, "baseline: 14 updates trained") == NULL) fail_msg("%s", ends[1] + 1);
    if (strstr(ends[2] + 1, "from the stored state of update 10, 4 updates trained") == NULL)
        fail_msg("%s", ends[2] + 1);
    if (strstr(ends[2] + 1, "6 comparisons of roots of 20 recorded updates") == NULL)
        fail_msg("%s", ends[2] + 1);
    helper_free(&trained);
    helper_free(&bare);
    helper_free(&kept);
    expect_line(0, "bisect bare.h5 kept.h5", "equal: the roots of 20 updates");
    expect_line(1, "bisect bare.h5 kept.h5 --runs baseline,test", "update 15, ");
    expect_line(0, "bisect bare.h5 --steps 14", "equal: the roots of 14 updates");
}

/* Arms have the names that the scenario gives them, in its own verdict and in that of its trace.
 * The baseline is called test here, which is no reason to call the other one so. */
static void validate_names_of_arms(void **state) {
    (void)state;
    helper_write("named.yaml", "twinstep: 1\nname: named\nsteps: 2\ncommon:\n"
                               "  data: {samples: 16, max_len: 64}\n  batch: {size: 4}\n"
                               "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
                               "arms: {test: {}, port: {numerics: {compute: bf16}}}\n");
    record("run named.yaml -o named.h5 --quiet");
    expect_line(1, "bisect named.yaml", "only port has ");
    expect_line(1, "bisect named.h5", "only port has ");
    expect_line(1, "bisect named.h5 --runs port,test", "only port has ");
    expect_line(0, "bisect named.h5 named.h5", "equal: the roots of 2 updates");
}

static void validate_progress(void **state) {
    (void)state;
    scenario("lr.yaml", "lr", "steps: 3\n", "", "optimizer: {lr: 1e-3}");
    struct said said = helper_on_terminal("bisect lr.yaml");
    assert_int_equal(said.code, 1);
    assert_non_null(strstr(said.err, "lr: 1 updates trained"));
    helper_free(&said);
    said = helper_on_terminal("bisect lr.yaml --quiet");
    assert_string_equal(said.err, "");
    helper_free(&said);
}

/* A record that this build does not reproduce must not be trusted about what is inside an
 * update. */
static void validate_undecided(void **state) {
    (void)state;
    helper_write("pairs.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"
                                "{\"prompt\": \"d\", \"chosen\": \"e\", \"rejected\": \"f\"}\n");
    helper_write("d.yaml", "twinstep: 1\nname: d\nsteps: 2\ncommon:\n"
                           "  data: {pairs: pairs.jsonl, max_len: 16}\n  batch: {size: 2}\n"
                           "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
                           "arms: {baseline: {}, test: {optimizer: {lr: 1e-3}}}\n");
    record("run d.yaml -o d.h5 --quiet");
    helper_write("pairs.jsonl", "{\"prompt\": \"a\", \"chosen\": \"x\", \"rejected\": \"c\"}\n"
                                "{\"prompt\": \"d\", \"chosen\": \"e\", \"rejected\": \"f\"}\n");
    helper_refuse(
        2, "bisect d.h5",
        "d.h5: run baseline was trained on other data: what pairs.jsonl holds had digest ");
    scenario("race.yaml", "race", "steps: 2\n", "  numerics: {mode: atomic, threads: 2}\n", "");
    expect_line(3, "bisect race.yaml", "undecidable: numerics.mode atomic");
    expect_line(3, "bisect race.yaml --json", "\"equal\": null");
}

static void validate_refusals(void **state) {
    (void)state;
    scenario("lr.yaml", "lr", "steps: 3\n", "", "optimizer: {lr: 1e-3}");
    record("run lr.yaml -o lr.h5 --quiet");
    helper_refuse(2, "bisect nothing-like-this", "nothing-like-this");
    helper_refuse(2, "bisect lr.yaml --steps 4", "--steps: expected 1 to 3, got 4");
    helper_refuse(2, "bisect lr.yaml --steps 0", "--steps: expected 1 to 3, got 0");
    helper_refuse(2, "bisect lr.yaml --steps x", "--steps");
    helper_refuse(2, "bisect lr.yaml --runs baseline,test", "--runs: expected a trace");
    helper_refuse(2, "bisect lr.h5 --runs baseline", "--runs: expected two names");
    helper_refuse(2, "bisect lr.h5 --runs baseline,nobody", "holds no run \"nobody\"");
    helper_refuse(2, "bisect lr.h5 --set steps=2", "--set: expected a scenario");
    helper_refuse(2, "bisect lr.h5 lr.yaml", "lr.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(validate_scenario, helper_enter, helper_leave),
        cmocka_unit_test_setup_teardown(corroborate_trace, helper_enter, helper_leave),
        cmocka_unit_test_setup_teardown(validate_names_of_arms, helper_enter, helper_leave),
        cmocka_unit_test_setup_teardown(validate_progress, helper_enter, helper_leave),
        cmocka_unit_test_setup_teardown(validate_undecided, helper_enter, helper_leave),
        cmocka_unit_test_setup_teardown(validate_refusals, helper_enter, helper_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
