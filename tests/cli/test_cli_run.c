/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * run, demo and attribute on tiny trainings: exit statuses, JSON, output files, --reproducible, and
 * full disks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "determinism/trace.h"
#include "tests/cli/helper_cli.h"

#define LATE_LOOP "loop: {update: [count, clip, schedule, optimize, log, zero]}"
#define NOISE "numerics: {mode: shuffled}\n  shuffle: {chunk: 4}"

/* Verdicts with and without expectations, and the exit status that a script sees. */
static const struct {
    const char *name, *head, *common, *test;
    int code;
    const char *verdict, *expectation;
} cases[] = {
    {"equal", "steps: 3", "seed: 3", "", 0, "identical", "none"},
    {"equal-met", "steps: 3\nexpect: {verdict: identical}", "seed: 3", "", 0, "identical", "met"},
    {"equal-shapes", "steps: 2", "seed: 3", "batch: {micro: 4}", 0, "identical", "none"},
    {"differs", "steps: 3", "seed: 3", LATE_LOOP, 1, "outside-floor", "none"},
    {"differs-met", "steps: 3\nexpect: {verdict: outside-floor, cause: schedule, first_step: 1}",
     "seed: 3", LATE_LOOP, 0, "outside-floor", "met"},
    {"missed-verdict", "steps: 3\nexpect: {verdict: identical}", "seed: 3", LATE_LOOP, 1,
     "outside-floor", "missed"},
    {"missed-cause", "steps: 3\nexpect: {verdict: outside-floor, cause: optimizer}", "seed: 3",
     LATE_LOOP ", clip: {max_norm: 1e6}", 1, "outside-floor", "missed"},
    {"missed-alone", "steps: 3\nexpect: {verdict: outside-floor, cause: data-order}", "seed: 3",
     LATE_LOOP ", optimizer: {lr: 4e-6}, data: {seed: 4}", 1, "outside-floor", "missed"},
    {"missed-step", "steps: 3\nexpect: {verdict: outside-floor, first_step: 2}", "seed: 3",
     LATE_LOOP, 1, "outside-floor", "missed"},
    {"noise", "steps: 2", NOISE, "", 0, "inside-floor", "none"},
    {"too-few", "steps: 2\nfloor: {replicates: 2}", NOISE, LATE_LOOP, 3, "untestable", "none"},
    {"too-few-met", "steps: 2\nfloor: {replicates: 2}\nexpect: {verdict: untestable}", NOISE,
     LATE_LOOP, 0, "untestable", "met"},
    /* Hybrids are trained of these arms, too, and none of these verdicts has a share. */
    {"equal-order", "steps: 2\nexpect: {order: [optimizer]}", "seed: 3\n  clip: {max_norm: 1e5}",
     "clip: {max_norm: 1e6}", 1, "identical", "missed"},
    {"noise-shares", "steps: 2\nexpect: {shares: nondeterminism 0 +- 2}", NOISE, "", 1,
     "inside-floor", "missed"},
    {"too-few-order", "steps: 2\nfloor: {replicates: 2}\nexpect: {order: [schedule]}", NOISE,
     LATE_LOOP, 3, "untestable", "missed"},
};

static json_t *member(const json_t *object, const char *name) {
    json_t *value = json_object_get(object, name);
    if (value == NULL) fail_msg("JSON lacks %s", name);
    return value;
}

static void require_text(const json_t *object, const char *name, const char *expected) {
    const char *text = json_string_value(member(object, name));
    assert_non_null(text);
    if (strcmp(text, expected) != 0) fail_msg("%s: expected %s, got %s", name, expected, text);
}

static json_t *parse(const char *text) {
    json_error_t error;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL) fail_msg("JSON, line %d: %s\n%s", error.line, error.text, text);
    return value;
}

/* A verdict as JSON must hold every member, with its type, whatever it is about. */
static void check_shape(const json_t *object) {
    static const char *const closures[] = {"exact", "within-floor", "open"};
    const json_t *closure = member(object, "closure");
    const char *verdict = json_string_value(member(object, "verdict"));
    const json_t *first = member(object, "first"), *causes = member(object, "causes");
    int known = 0;
    assert_non_null(verdict);
    if (!json_is_null(first)) {
        assert_true(json_integer_value(member(first, "step")) >= 1);
        assert_true(json_is_string(member(first, "phase")));
        assert_true(json_is_string(member(first, "tensor")));
    }
    double last = (double)INFINITY;
    for (size_t i = 0; i < json_array_size(causes); i++) {
        const json_t *cause = json_array_get(causes, i);
        assert_true(json_is_string(member(cause, "cause")));
        assert_true(json_is_number(member(cause, "share")));
        assert_true(json_real_value(member(cause, "low")) <=
                    json_real_value(member(cause, "high")));
        assert_true(fabs(json_real_value(member(cause, "share"))) <= last);
        last = fabs(json_real_value(member(cause, "share")));
        assert_true(json_real_value(member(cause, "left")) >= 0.0);
        assert_true(json_real_value(member(cause, "alone")) >= 0.0);
    }
    for (int i = 0; i < 3 && json_is_string(closure); i++)
        known += strcmp(json_string_value(closure), closures[i]) == 0;
    /* absent exactly where there was nothing to close */
    assert_int_equal(known, !json_is_null(closure));
    assert_int_equal(json_is_null(closure), json_array_size(member(object, "differs")) == 0 ||
                                                json_real_value(member(object, "distance")) == 0.0);
    assert_true(json_is_string(member(object, "word")));
    /* no distance, or none that is known to be more than noise, so no shares of anything */
    const int told = json_is_string(closure) && strcmp(verdict, "inside-floor") != 0 &&
                     strcmp(verdict, "untestable") != 0;
    assert_int_equal(json_is_null(member(object, "game")), !told);
    if (told) assert_string_equal(json_string_value(member(object, "game")), "way");
    assert_true(json_is_string(member(member(object, "floor"), "kind")));
    assert_true(json_is_array(member(object, "hazards")));
}

static void validate_exit_statuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[64], line[128];
        snprintf(path, sizeof path, "%s.yaml", cases[i].name);
        helper_scenario(path, cases[i].head, cases[i].common, cases[i].test);
        snprintf(line, sizeof line, "run %s --json", path);
        struct said ran = helper_run(cases[i].code, line);
        assert_string_equal(ran.err, "");
        json_t *object = parse(ran.out);
        require_text(object, "name", cases[i].name);
        require_text(object, "verdict", cases[i].verdict);
        require_text(object, "expectation", cases[i].expectation);
        check_shape(object);
        snprintf(line, sizeof line, "attribute %s.h5 --json", cases[i].name);
        struct said again = helper_run(cases[i].code, line);
        assert_string_equal(again.out, ran.out);
        json_decref(object);
        helper_free(&again);
        helper_free(&ran);
    }
}

static void validate_verdict_on_screen(void **state) {
    (void)state;
    static const char *const needles[] = {
        "screen: OUTSIDE THE FLOOR. Cause: schedule (the learning-rate schedule); nothing else",
        "\n  first    update 1, optimize, model.embed_tokens.weight LR applied\n",
        "\n  floor    exact: baseline repeated in two processes, one of them started anew, "
        "bit-equal\n",
        "\n  closure  exact: ", "\n  trace    screen.h5 (twinstep attribute screen.h5; h5py)\n"};
    helper_scenario("screen.yaml", "steps: 3", "seed: 3", LATE_LOOP);
    struct said ran = helper_run(1, "run screen.yaml");
    for (size_t i = 0; i < sizeof needles / sizeof needles[0]; i++)
        if (strstr(ran.out, needles[i]) == NULL)
            fail_msg("expected: %s\nin: %s", needles[i], ran.out);
    assert_string_equal(ran.err, ""); /* no progress where stderr is no terminal */
    struct said again = helper_run(1, "attribute screen.h5");
    char *trace = strstr(ran.out, "  trace    ");
    assert_memory_equal(again.out, ran.out, (size_t)(trace - ran.out));
    assert_int_equal(again.out_length, trace - ran.out);
    helper_free(&again);
    helper_free(&ran);
}

/* Nothing reads the schedule's LR where Adafactor's step is relative: it is applied in neither arm,
 * and an embedding's rows without a gradient are not steps that rounding took back. */
static void validate_rate_that_nothing_reads(void **state) {
    (void)state;
    helper_scenario("unread.yaml", "steps: 2", "optimizer: {name: adafactor, relative_step: true}",
                    "optimizer: {lr: 0.5}");
    struct said ran = helper_run(1, "run unread.yaml");
    if (strstr(ran.out, "unread: SAME TRAINING.") == NULL ||
        strstr(ran.out, "\n       1   0.01       0.01 ") == NULL ||
        strstr(ran.out, "rounding took back") != NULL)
        fail_msg("%s", ran.out);
    helper_free(&ran);
}

/* What is risky about the loops stands under every verdict, IDENTICAL included: what both arms do
 * wrong once, a habit of PyTorch's loop never. */
static const struct {
    const char *common, *test, *verdict;
    int code;
    const char *lines[3];
} hazards[] = {
    {"loop: {update: [clip, optimize, log, scheduler_step, zero]}",
     "loop: {update: [clip, schedule, optimize, log, count, zero]}",
     "IDENTICAL",
     0,
     {"\n  loop     test: note: schedule runs before optimize and count after it: update k still "
      "applies f(k-1)"}},
    {"loop: {update: [clip, optimize, log, scheduler_step, zero]}",
     "loop: {update: [clip, scheduler_step, optimize, log, zero]}",
     "OUTSIDE THE FLOOR",
     1,
     {"\n  loop     test: warning: count and schedule run before optimize: update k applies f(k)"}},
    {"loop: {update: [zero, clip, optimize, log, count]}",
     "",
     "IDENTICAL",
     0,
     {"\n  loop     both arms: warning: schedule never runs",
      "\n           both arms: warning: no gradient of this update reaches optimize"}},
    {"seed: 3", "", "IDENTICAL", 0, {NULL}},
};

static void validate_hazards(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hazards / sizeof hazards[0]; i++) {
        helper_scenario("risky.yaml", "steps: 3", hazards[i].common, hazards[i].test);
        struct said ran = helper_run(hazards[i].code, "run risky.yaml --overwrite");
        struct said json = helper_run(hazards[i].code, "attribute risky.h5 --json");
        json_t *object = parse(json.out);
        size_t count = 0;
        assert_non_null(strstr(ran.out, hazards[i].verdict));
        for (; count < 3 && hazards[i].lines[count] != NULL; count++)
            if (strstr(ran.out, hazards[i].lines[count]) == NULL)
                fail_msg("expected: %s\nin: %s", hazards[i].lines[count], ran.out);
        assert_int_equal(strstr(ran.out, "\n  loop     ") != NULL, count > 0);
        assert_int_equal(json_array_size(member(object, "hazards")), count);
        json_decref(object);
        helper_free(&json);
        helper_free(&ran);
    }
}

/* What the step count behind Adam's corrections did is read from the weights: ahead and twice make
 * the first update sqrt(1 + beta2) / (1 + beta1) of its size, frozen leaves it and makes the second
 * one 1 / 0.7441 of its own. Nothing is said where another key made the sizes differ, or where the
 * arms' LRs are apart. */
static const struct {
    const char *test;
    const char *lines[2]; /* NULL: no row */
} counted[] = {
    {"optimizer: {t: ahead}",
     {"  why      update 1 moved the weights of test 0.74",
      "Adam corrected its moments with count 2 in place of 1, which makes a step 0.7441 of its "
      "size\n           with beta1 0.9 and beta2 0.999, eps aside. The optimizer counts 1 to 3 in "
      "baseline, 2 to 4 in test: one ahead.\n"}},
    {"optimizer: {t: twice}", {"count 2 in place of 1", " 1 to 3 in baseline, 2 to 6 in test.\n"}},
    {"optimizer: {t: frozen}",
     {"  why      update 2 moved the weights of test 1.34", "count 1 in place of 2"}},
    {"optimizer: {t: ahead, variant: apex, bias_correction: false}", {NULL}},
    {"optimizer: {t: ahead, eps: 1}", {NULL}},
    {"optimizer: {t: ahead, beta2: 0.9}", {NULL}},
    {"optimizer: {t: ahead, lr: 2e-4}", {NULL}},
    {"optimizer: {eps: 1e-3}", {NULL}},
};

static void validate_count_in_the_weights(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        helper_scenario("count.yaml", "steps: 3", "seed: 3", counted[i].test);
        struct said ran = helper_run(1, "run count.yaml --overwrite");
        const int said = strstr(ran.out, "Adam corrected its moments") != NULL;
        if (said != (counted[i].lines[0] != NULL)) fail_msg("%s:\n%s", counted[i].test, ran.out);
        for (size_t k = 0; k < 2 && counted[i].lines[k] != NULL; k++)
            if (strstr(ran.out, counted[i].lines[k]) == NULL)
                fail_msg("expected: %s\nin: %s", counted[i].lines[k], ran.out);
        /* the JSON has the same row, line by line */
        struct said json = helper_run(1, "attribute count.h5 --json");
        json_t *object = parse(json.out);
        const json_t *const why = json_array_get(member(object, "why"), 1);
        assert_int_equal(why != NULL && strstr(json_string_value(why), "Adam corrected") != NULL,
                         said);
        json_decref(object);
        helper_free(&json);
        helper_free(&ran);
    }
}

static void validate_outputs(void **state) {
    (void)state;
    helper_scenario("out.yaml", "name: own-name\nsteps: 1", "seed: 3", "");
    helper_accept(0, "run out.yaml");
    assert_true(helper_exists("own-name.h5"));
    char *before = helper_read("own-name.h5", NULL);
    helper_refuse(2, "run out.yaml", "own-name.h5: exists");
    free(before);
    helper_accept(0, "run out.yaml --overwrite --quiet");
    helper_accept(0, "run out.yaml --output=elsewhere.h5");
    assert_true(helper_exists("elsewhere.h5"));
    helper_refuse(2, "run out.yaml -o no/such/folder.h5", "no/such/folder.h5");
    helper_refuse(2, "run out.yaml -o /dev/full", "/dev/full");
    helper_refuse(2, "run out.yaml --output=", "--output: expected a file name");
    assert_int_equal(mkdir("many", 0777), 0);
    helper_scenario("two.yaml", "steps: 1", "seed: 3", "");
    helper_accept(0, "run out.yaml two.yaml -o many");
    assert_true(helper_exists("many/own-name.h5"));
    assert_true(helper_exists("many/two.h5"));
    helper_write("taken.h5", "my thesis");
    helper_refuse(2, "run out.yaml -o taken.h5", "taken.h5: exists");
    char *kept = helper_read("taken.h5", NULL);
    assert_string_equal(kept, "my thesis");
    free(kept);
    assert_int_equal(chmod("many", 0555), 0);
    if (geteuid() != 0) helper_refuse(2, "run out.yaml -o many/new.h5", "many/new.h5");
    assert_int_equal(chmod("many", 0755), 0);
}

/* The worst status counts, and a scenario that fails does not keep the others from running. */
static void validate_several(void **state) {
    (void)state;
    helper_scenario("s-equal.yaml", "steps: 1", "seed: 3", "");
    helper_scenario("s-differs.yaml", "steps: 1", "seed: 3", LATE_LOOP);
    helper_scenario("s-few.yaml", "steps: 1\nfloor: {replicates: 2}", NOISE, LATE_LOOP);
    helper_accept(1, "run s-differs.yaml s-equal.yaml");
    helper_accept(3, "run --overwrite s-few.yaml s-differs.yaml s-equal.yaml");
    helper_fail(2, "run --overwrite s-few.yaml missing.yaml s-differs.yaml", "missing.yaml");
    struct said said = helper_run(2, "run --overwrite missing.yaml s-equal.yaml");
    assert_non_null(strstr(said.out, "s-equal: IDENTICAL"));
    helper_free(&said);
}

static void validate_standard_input(void **state) {
    (void)state;
    const char *const words[] = {"run", "-", "-o", "piped.h5", NULL};
    struct said said = helper_say(
        words, "twinstep: 1\nname: piped\nsteps: 1\ncommon:\n  model: {layers: 1, hidden: 16, "
               "heads: 2, mlp: 24}\n  batch: {size: 2}\n");
    assert_int_equal(said.code, 0);
    assert_non_null(strstr(said.out, "piped: IDENTICAL"));
    helper_free(&said);
}

static void verify_reproducible_runs_are_byte_identical(void **state) {
    (void)state;
    char rows[4096] = "";
    for (int i = 0; i < 8; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows),
                 "{\"prompt\": \"n %d is \", \"chosen\": \"%d\", \"rejected\": \"no\"}\n", i, i);
    assert_int_equal(mkdir("repro", 0777), 0);
    helper_write("repro/own.jsonl", rows);
    helper_write("repro/own.yaml",
                 "twinstep: 1\nsteps: 3\ncommon:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: "
                 "24}\n  data: {pairs: own.jsonl}\n  batch: {size: 4}\n"
                 "arms: {baseline: {}, test: {" LATE_LOOP "}}\n");
    helper_accept(1, "run repro/own.yaml --reproducible -o one.h5");
    setenv("USER", "somebody-else", 1);
    helper_accept(1, "run --quiet --reproducible -o two.h5 repro/own.yaml");
    assert_true(helper_same_bytes("one.h5", "two.h5"));
    helper_accept(1, "run --reproducible repro/own.yaml -o four.h5 --set steps=3");
    assert_false(helper_same_bytes("one.h5", "four.h5")); /* what --set said is recorded */
    helper_accept(1, "run repro/own.yaml -o three.h5");
    assert_false(helper_same_bytes("one.h5", "three.h5")); /* date and command line are in it */
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    assert_int_equal(trace_open("one.h5", &arena, &image), STATUS_OK);
    assert_null(trace_attribute_of(image, "env/volatile", "command"));
    assert_non_null(trace_attribute_of(image, "env", "compiler"));
    assert_non_null(strstr(image->runs[0].plan.configuration, "data.pairs: repro/own.jsonl\n"));
    assert_int_equal(trace_open("three.h5", &arena, &image), STATUS_OK);
    assert_string_equal(trace_attribute_of(image, "env/volatile", "command"),
                        "twinstep run repro/own.yaml -o three.h5");
    assert_non_null(trace_attribute_of(image, "env/volatile", "usable_cores"));
    arena_close(&arena);
    size_t length;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    char *bytes = helper_read("one.h5", &length);
    for (size_t i = 0; i + strlen(here) < length; i++)
        if (memcmp(bytes + i, here, strlen(here)) == 0) fail_msg("the trace holds %s", here);
    free(bytes);
}

/* demo may replace its own trace and nobody else's. */
static void validate_demo(void **state) {
    (void)state;
    helper_accept(0, "demo null-pair");
    assert_true(helper_exists("null-pair.h5"));
    helper_accept(0, "demo null-pair --quiet");
    helper_refuse(2, "run null-pair", "null-pair.h5: exists");
    helper_write("lr-zero-init.h5", "precious");
    helper_refuse(2, "demo lr-zero-init", "lr-zero-init.h5 exists and is no trace of lr-zero-init");
    helper_refuse(2, "demo lr-zero-init -o null-pair.h5", "is no trace of lr-zero-init");
    char *kept = helper_read("lr-zero-init.h5", NULL);
    assert_string_equal(kept, "precious");
    free(kept);
}

/* A limit on the size of files stands for a full disk: the same writes fail. */
static void validate_full_disk(void **state) {
    (void)state;
    struct rlimit before, small;
    helper_scenario("disk.yaml", "steps: 400", "seed: 3", LATE_LOOP);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); /* children inherit it */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);      /* HDF5 leaks when a write fails */
    static const rlim_t sizes[] = {0, 10000, 100000, 500000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char command[512];
        small = before;
        small.rlim_cur = sizes[i];
        snprintf(command, sizeof command,
                 "'%s' run disk.yaml -o disk-%zu.h5 >/dev/null 2>/dev/null", TWINSTEP_BINARY, i);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int how = system(command);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        if (how != 2 << 8) fail_msg("limit %llu: status %#x", (unsigned long long)sizes[i], how);
    }
    signal(SIGXFSZ, SIG_DFL);
    unsetenv("ASAN_OPTIONS");
    assert_false(helper_exists("disk-3.h5"));
    struct said said = helper_run(3, "attribute disk-3.h5.part"); /* what fitted is there */
    assert_non_null(strstr(said.out, "disk: UNTESTABLE"));
    helper_free(&said);
}

/* Where the verdict could not be printed the exit status must not be 0, but the trace must be
 * whole. */
static void validate_full_stdout(void **state) {
    (void)state;
    static const char *const lines[] = {"run full.yaml", "run full.yaml --json --overwrite",
                                        "attribute full.h5", "attribute full.h5 --json"};
    helper_scenario("full.yaml", "steps: 2", "seed: 3", "");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char command[512];
        snprintf(command, sizeof command, "'%s' %s >/dev/full 2>err.txt", TWINSTEP_BINARY,
                 lines[i]);
        int how = system(command);
        if (how != 2 << 8) fail_msg("%s: status %#x", lines[i], how);
        char *err = helper_read("err.txt", NULL);
        assert_non_null(strstr(err, "standard output: cannot write"));
        free(err);
    }
    helper_accept(0, "attribute full.h5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_exit_statuses),
        cmocka_unit_test(validate_verdict_on_screen),
        cmocka_unit_test(validate_rate_that_nothing_reads),
        cmocka_unit_test(validate_hazards),
        cmocka_unit_test(validate_count_in_the_weights),
        cmocka_unit_test(validate_outputs),
        cmocka_unit_test(validate_several),
        cmocka_unit_test(validate_standard_input),
        cmocka_unit_test(verify_reproducible_runs_are_byte_identical),
        cmocka_unit_test(validate_demo),
        cmocka_unit_test(validate_full_disk),
        cmocka_unit_test(validate_full_stdout),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
