/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
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
#include <sys/stat.h>
#include <unistd.h>

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

/* Returns the one annotation that a verb printed, which must name `cause`. */
static void require_annotation(const struct said *said, const char *head, const char *cause) {
    const char *at = strstr(said->out, head);
    if (at == NULL) fail_msg("no %s in %s", head, said->out);
    const char *const end = at == NULL ? NULL : strchr(at + 1, '\n');
    const char *const named = at == NULL ? NULL : strstr(at, cause);
    if (named == NULL || end == NULL || named > end)
        fail_msg("%s: expected %s in one line of\n%s", head, cause, said->out);
}

static void write_sequences(const char *path, double apart, int masked) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < 40; s++)
        for (int side = 0; side < 2; side++) {
            fprintf(out, side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [");
            for (unsigned t = 0; t < 24; t++) {
                const double p = -0.2 - 0.1 * ((s * 7 + t * 13) % 29);
                const double d = side == 0 ? apart * ((s * 11 + t * 5) % 17 - 8.0) : 0.0;
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        masked && side == 0 && t < 5 ? 0.0 : p + d);
            }
            if (side == 1) fputs("]}\n", out);
        }
    assert_int_equal(fclose(out), 0);
}

/* The one line must say the verdict and the cause that was named; without one, that none was. */
static void validate_rollout(void **state) {
    (void)state;
    write_sequences("floor.jsonl", 0.001, 0);
    write_sequences("masked.jsonl", 0.001, 1);
    write_sequences("apart.jsonl", 0.01, 0);
    struct said said =
        helper_run(1, "rollout masked.jsonl --floor floor.jsonl --junit o.xml --github");
    require_annotation(&said,
                       "\n::error file=masked.jsonl,title=the log-probs are apart::outside: ",
                       "masked-prompt: 200 tokens at the beginning");
    helper_free(&said);
    char *text =
        junit_of("o.xml", "<testsuite name=\"twinstep rollout\" tests=\"1\" failures=\"1\"");
    assert_non_null(strstr(text, "name=\"masked.jsonl\""));
    assert_non_null(strstr(text, "masked-prompt: 200 tokens"));
    free(text);
    said = helper_run(3, "rollout apart.jsonl --github");
    require_annotation(&said,
                       "\n::warning file=apart.jsonl,title=the log-probs cannot say::undecided",
                       "no floor");
    helper_free(&said);
    helper_accept(0, "rollout floor.jsonl --floor floor.jsonl --junit o.xml");
    free(junit_of("o.xml", "tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\""));
}

/* Each part that was measured is a case, and a part outside says which component or condition. */
static void validate_parity(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    struct said said = helper_run(1, "parity pair.yaml:baseline --set model.norm_eps=1e-3 "
                                     "--components --logits --batches 2 --replicas 3 "
                                     "--junit q.xml --github");
    require_annotation(&said, "\n::error title=parity of components::components of ", "has R ");
    require_annotation(&said, "\n::error title=parity of components::components of ", "norm");
    helper_free(&said);
    char *text = junit_of("q.xml", "<testsuite name=\"twinstep parity\" tests=\"2\"");
    assert_non_null(strstr(text, "name=\"components\""));
    assert_non_null(strstr(text, "name=\"logits\""));
    free(text);
    helper_accept(0, "parity pair.yaml --logits --quiet --batches 2 --replicas 3 --junit q.xml");
    free(junit_of("q.xml", "tests=\"1\" failures=\"0\""));
}

#define RUNS TWINSTEP_SOURCE_DIR "/tests/golden/foreign/runs/"

static void validate_parity_weights(void **state) {
    (void)state;
    struct said said = helper_run(1, "parity weights " RUNS "ok-lr-dpo/step-1 " RUNS
                                     "ok-lr-dpo/step-2 --junit w.xml --github");
    require_annotation(&said, "\n::error title=the weights differ::", " tensors differ, ");
    helper_free(&said);
    char *text = junit_of("w.xml", "<testsuite name=\"twinstep parity weights\" tests=\"1\" "
                                   "failures=\"1\"");
    assert_non_null(strstr(text, "most (values)"));
    free(text);
    helper_accept(0, "parity weights " RUNS "ok-lr-dpo/step-1 " RUNS "ok-lr-dpo/step-1 "
                     "--junit w.xml");
    free(junit_of("w.xml", "tests=\"1\" failures=\"0\""));
}

/* A root that is not the pinned one, two runs that part, and other weights: the one line says
 * which, and where. */
static void validate_certify(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    struct said said = helper_run(1, "run two.yaml --quiet -o pin.h5 --overwrite");
    helper_free(&said);
    said = helper_run(1, "certify pin.h5 --github --junit pin.xml --expect "
                         "0000000000000000000000000000000000000000000000000000000000000000");
    require_annotation(&said, "\n::error file=pin.h5,title=another root::",
                       "expected root 0000000000000000000000000000000000000000000000000000000000000"
                       "000, got ");
    helper_free(&said);
    char *text = junit_of("pin.xml", "<testsuite name=\"twinstep certify\" tests=\"1\" "
                                     "failures=\"1\"");
    assert_non_null(strstr(text, "name=\"pin.h5, run baseline\""));
    assert_non_null(strstr(text, "after update 2"));
    free(text);
    said = helper_run(1, "certify pin.h5 pin.h5 --run-a baseline --run-b test --github "
                         "--junit pair.xml");
    require_annotation(&said, "\n::error file=pin.h5,title=the runs part::",
                       "differs from update 1 on, first in ");
    helper_free(&said);
    text = junit_of("pair.xml", "tests=\"1\" failures=\"1\"");
    assert_non_null(strstr(text, "name=\"pin.h5, run baseline, against pin.h5, run test\""));
    free(text);
    helper_accept(0, "certify pin.h5 pin.h5 --junit pair.xml --github");
    free(junit_of("pair.xml", "tests=\"1\" failures=\"0\""));
    said = helper_run(1, "certify pin.h5 --at 2 --weights " RUNS "ok-lr-dpo/step-1 --github");
    require_annotation(&said, "\n::error file=pin.h5,title=other weights::", " differ, ");
    helper_free(&said);
}

/* Each stratum is a case; one that is apart says from which update on, and where first. */
static void validate_noise(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "", "");
    struct said said = helper_run(1, "noise pair.yaml --modes shuffled --dtypes f32 --steps 2 "
                                     "--repeat 1 --junit n.xml --github");
    require_annotation(&said, "\n::error title=twinstep noise::not bit-equal from update 1 on",
                       ", first in ");
    helper_free(&said);
    char *text = junit_of("n.xml", "<testsuite name=\"twinstep noise\"");
    assert_true(number_behind(text, " tests=\"") > 3);
    assert_true(number_behind(text, " failures=\"") > 0);
    assert_non_null(strstr(text, "name=\"shuffled, f32: instance"));
    free(text);
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

/* Work whose outcome cannot be written would be done for nothing: of all verbs with the option the
 * two that train say so, and have left nothing, before they train. */
static void verify_places_are_tried_first(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    helper_refuse(2, "run two.yaml --quiet -o late.h5 --junit no/such/folder.xml",
                  "no/such/folder.xml: cannot create: No such file or directory");
    assert_false(helper_exists("late.h5"));
    assert_false(helper_exists("late.h5.part"));
    assert_int_equal(mkdir("members", 0777), 0);
    helper_write("members/two.yaml", SCENARIO);
    helper_refuse(2, "suite members --keep kept --junit no/such/folder.xml",
                  "no/such/folder.xml: cannot create: No such file or directory");
    assert_false(helper_exists("kept"));
    helper_refuse(2, "noise two.yaml --steps=2 --quiet -o floor.h5 --junit members",
                  "members: expected a file, got a folder");
    assert_false(helper_exists("floor.h5"));
    struct said said = helper_run(1, "run two.yaml --quiet --overwrite");
    helper_free(&said);
    size_t length;
    char *trace = helper_read("two.h5", &length);
    helper_write_bytes("kept.h5", trace, length);
    free(trace);
    helper_refuse(
        2, "run two.yaml --quiet --overwrite --junit two.h5",
        "expected a file apart from the trace's, got two.h5, which the trace two.h5 needs");
    helper_refuse(2, "run two.yaml --quiet --floor no --junit two.h5",
                  "which the trace two.h5 needs");
    helper_refuse(2, "run two.yaml --quiet -o members --junit ./members/two.h5.part",
                  "which the trace members/two.h5 needs");
    helper_refuse(
        2, "run two.yaml --quiet -o late.h5 --save-model saved --junit saved/test/config.json",
        "saved/test/config.json: cannot create: No such file or directory");
    assert_int_equal(mkdir("saved", 0777), 0);
    assert_int_equal(mkdir("saved/test", 0777), 0);
    helper_refuse(
        2, "run two.yaml --quiet -o late.h5 --save-model saved --junit saved/test/config.json",
        "expected a file outside of the folder of --save-model");
    assert_int_equal(symlink("linked.h5", "link.xml"), 0);
    helper_refuse(2, "run two.yaml --quiet -o linked.h5 --junit link.xml",
                  "link.xml: expected a file, got a link to one that is not there");
    assert_false(helper_exists("linked.h5"));
    helper_refuse(2, "noise two.yaml --steps=2 --quiet -o floor.h5 --junit ./floor.h5",
                  "expected another file than --output");
    static const char *const empty[] = {"run", "two.yaml", "--junit", "", NULL};
    said = helper_say(empty, NULL);
    assert_int_equal(said.code, 2);
    assert_non_null(strstr(said.err, "expected the name of a file to write, got nothing"));
    helper_free(&said);
    assert_false(helper_exists("members/two.h5.part"));
    assert_false(helper_exists("saved/test/config.json"));
    assert_true(helper_same_bytes("two.h5", "kept.h5"));
    said = helper_run(0, "suite members --junit suite.xml");
    helper_free(&said);
    free(junit_of("suite.xml", "<testsuite name=\"twinstep suite\""));
    assert_false(helper_exists("suite.xml.part"));
}

/* A place that the work itself takes is refused before it, however the place is spelled, and
 * nothing is left: the folder of a model, which is not there yet, */
static void verify_apart_from_a_model(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    static const char *const words[] = {"m --junit m", "m --junit ./m", "test=m/ --junit m",
                                        "test=m/n --junit m", "test=./m --junit m"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "run two.yaml --quiet -o t.h5 --save-model %s", words[i]);
        helper_refuse(2, line, "expected a file outside of the folder of --save-model");
        assert_false(helper_exists("t.h5"));
        assert_false(helper_exists("m"));
    }
}

/* those of a suite, */
static void verify_apart_from_folders_of_a_suite(void **state) {
    (void)state;
    assert_int_equal(mkdir("few", 0777), 0);
    helper_write("few/two.yaml", SCENARIO);
    helper_refuse(2, "suite few --keep traces --junit traces",
                  "expected a file outside of the folder of --keep, got traces");
    helper_refuse(2, "suite few --results rs --junit ./rs",
                  "expected a file outside of the folder of --results, got ./rs");
    assert_false(helper_exists("traces"));
    assert_false(helper_exists("rs"));
}

/* the trace of a scenario that comes later, */
static void verify_apart_from_later_traces(void **state) {
    (void)state;
    assert_int_equal(mkdir("later", 0777), 0);
    helper_write("aa.yaml", SCENARIO);
    helper_scenario("bb.yaml", "", "", "");
    helper_refuse(2, "run aa.yaml bb.yaml --quiet -o later --junit later/bb.h5",
                  "got later/bb.h5, which the trace later/bb.h5 needs");
    helper_refuse(2, "run aa.yaml none.yaml bb.yaml --quiet -o later --junit later/bb.h5.part",
                  "got later/bb.h5.part, which the trace later/bb.h5 needs");
    assert_false(helper_exists("later/two.h5"));
    assert_false(helper_exists("later/bb.h5"));
    assert_false(helper_exists("later/bb.h5.part"));
}

/* and the name under which --output is written. */
static void verify_apart_from_what_is_written(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    helper_refuse(2, "noise two.yaml --steps=2 --quiet --junit f2.h5.part -o f2.h5",
                  "expected a file apart from --output's, got f2.h5.part");
    assert_false(helper_exists("f2.h5"));
    assert_false(helper_exists("f2.h5.part"));
}

static void require_file(const char *path, const char *words) {
    char *text = helper_read(path, NULL);
    if (strcmp(text, words) != 0) fail_msg("%s: expected %s, got %s", path, words, text);
    free(text);
}

/* A verb that ends in an error has one case that says so: an old file, which may say that all is
 * well, does not stay. */
static void verify_errors_are_written(void **state) {
    (void)state;
    helper_write("a.csv", "step,loss\n1,0.7\n2,0.6\n3,0.5\n");
    helper_write("two.yaml", SCENARIO);
    assert_int_equal(mkdir("none", 0777), 0);
    static const char *const verbs[][2] = {
        {"certify", "certify absent.h5"},
        {"doctor", "doctor absent.json"},
        {"rollout", "rollout absent.jsonl"},
        {"noise", "noise absent.yaml"},
        {"noise", "noise two.yaml --steps=2 --quiet -o a.csv"},
        {"parity weights", "parity weights absent absent"},
        {"parity", "parity absent.yaml"},
        {"lr check", "lr check absent.json --expect hf"},
        {"replay", "replay absent.h5"},
        {"run", "run two.yaml --backend none"},
        {"run", "run absent.yaml"},
        {"run", "run two.yaml --set steps=0"},
        {"suite", "suite none"},
        {"ops", "ops absent absent"},
        {"readback", "readback absent"},
        {"resume-check", "resume-check absent absent"},
        {"compare", "compare a.csv absent.csv"},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char line[256], suite[128];
        snprintf(line, sizeof line, "%s --junit old.xml", verbs[i][1]);
        snprintf(suite, sizeof suite,
                 "<testsuite name=\"twinstep %s\" tests=\"1\" failures=\"0\" errors=\"1\"",
                 verbs[i][0]);
        helper_write("old.xml", "keep\n");
        helper_refuse(2, line, "error: ");
        char *text = junit_of("old.xml", suite);
        if (strstr(text, "<error message=\"\"") != NULL) fail_msg("%s: no words: %s", line, text);
        free(text);
    }
    struct said said = helper_run(2, "lr check absent.json --expect hf --github");
    require_annotation(&said, "::error title=twinstep lr check::", "absent.json");
    helper_free(&said);
}

/* What a scenario that was not read names is not known, so what is there and no XML stays. */
static void verify_what_may_be_read_is_kept(void **state) {
    (void)state;
    helper_write("two.yaml", SCENARIO);
    helper_write("pairs.jsonl", "{}\n");
    helper_refuse(
        2, "run two.yaml --set common.data.pairs=pairs.jsonl --set steps=0 --junit pairs.jsonl",
        "pairs.jsonl: left as it is");
    require_file("pairs.jsonl", "{}\n");
    helper_refuse(
        2, "noise two.yaml --set common.data.pairs=pairs.jsonl --set steps=0 --junit pairs.jsonl",
        "pairs.jsonl: left as it is");
    require_file("pairs.jsonl", "{}\n");
    helper_refuse(2, "noise two.yaml --set common.data.pairs=pairs.jsonl --junit pairs.jsonl",
                  "pairs.jsonl");
    require_file("pairs.jsonl", "{}\n");
    helper_write("report", "<?xml version=\"1.0\"?>\n");
    helper_refuse(2, "replay absent.h5 --junit report", "absent.h5");
    free(junit_of("report", "tests=\"1\" failures=\"0\" errors=\"1\""));
    assert_int_equal(symlink("nowhere", "loose.xml"), 0);
    helper_refuse(2, "run absent.yaml --junit loose.xml", "got a link to one that is not there");
    assert_false(helper_exists("nowhere"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_doctor),
        cmocka_unit_test(validate_compare),
        cmocka_unit_test(validate_run_and_replay),
        cmocka_unit_test(validate_certify),
        cmocka_unit_test(verify_inputs_are_kept),
        cmocka_unit_test(validate_rollout),
        cmocka_unit_test(validate_parity),
        cmocka_unit_test(validate_parity_weights),
        cmocka_unit_test(validate_noise),
        cmocka_unit_test(verify_places_are_tried_first),
        cmocka_unit_test(verify_errors_are_written),
        cmocka_unit_test(verify_what_may_be_read_is_kept),
        cmocka_unit_test(verify_apart_from_a_model),
        cmocka_unit_test(verify_apart_from_folders_of_a_suite),
        cmocka_unit_test(verify_apart_from_later_traces),
        cmocka_unit_test(verify_apart_from_what_is_written),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
