/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory plugin
 * A user's module at the command line: found beside the scenario, trained in this process and in a
 * second one, named by path and digest in the trace, listed, and refused with file, line and
 * column. */
#include "base/arena.h"
#include "base/macro.h"
#include "determinism/trace.h"
#include "tests/cli/helper_cli.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIGNUM "name: signum, module: ./signum.so, sign: false, lr: 1e-2"

/* Puts a new file in place each time, as a linker does. */
static void put_module(const char *name, const char *as) {
    char path[512];
    size_t length;
    snprintf(path, sizeof path, "%s/%s.so", TWINSTEP_PLUGINS, name);
    char *bytes = helper_read(path, &length);
    unlink(as);
    helper_write_bytes(as, bytes, length);
    free(bytes);
}

static void expect_in(const struct said *said, const char *text) {
    if (strstr(said->out, text) == NULL) fail_msg("expected \"%s\" in:\n%s", text, said->out);
}

static int contains(const char *path, const char *needle) {
    size_t length;
    char *bytes = helper_read(path, &length);
    int found = 0;
    for (size_t i = 0; i + strlen(needle) <= length && !found; i++)
        found = memcmp(bytes + i, needle, strlen(needle)) == 0;
    free(bytes);
    return found;
}

/* Returns the digest that `twinstep keys --module F --json` prints. */
static void digest_of(const char *file, char out[65]) {
    char line[128];
    snprintf(line, sizeof line, "keys --json --module %s", file);
    struct said said = helper_run(0, line);
    const char *at = strstr(said.out, "\"module_sha256\": \"");
    assert_non_null(at);
    memcpy(out, at + strlen("\"module_sha256\": \""), 64);
    out[64] = '\0';
    assert_int_equal(strspn(out, "0123456789abcdef"), 64);
    helper_free(&said);
}

static void validate_run(void **state) {
    (void)state;
    char digest[65];
    put_module("signum", "signum.so");
    put_module("trapezoid", "trapezoid.so");
    digest_of("signum.so", digest);
    helper_scenario("a.yaml", "steps: 3",
                    "task: sft\n  optimizer: {" SIGNUM ", momentum: 0.5}\n"
                    "  schedule: {name: trapezoid, module: trapezoid.so, decay: 1}",
                    "optimizer: {name: sgd, momentum: 0.5}, schedule: {name: warmup_stable_decay, "
                    "decay: 1, decay_type: linear}");
    struct said said = helper_run(0, "run --allow-modules --quiet --overwrite -o a.h5 a.yaml");
    expect_in(&said, "a: IDENTICAL.");
    expect_in(&said, "in two processes, one of them started anew, bit-equal");
    helper_free(&said);
    assert_true(contains("a.h5", digest));
    assert_true(contains("a.h5", "optimizer.module: ./signum.so"));
    assert_true(contains("a.h5", "optimizer.module_sha256: none")); /* the other arm's */
    /* a trace is read without the code that made it */
    unlink("signum.so");
    unlink("trapezoid.so");
    said = helper_run(0, "attribute a.h5");
    expect_in(&said, "a: IDENTICAL.");
    helper_free(&said);
    helper_refuse(2, "run --allow-modules --quiet --overwrite -o b.h5 a.yaml",
                  "a.yaml:8:37: error: optimizer.module: ./signum.so: cannot open: ");
    assert_false(helper_exists("b.h5"));
}

/* The module is looked for beside the scenario, wherever the program was started, and its class may
 * be set in other arms' keys. */
static void validate_folder(void **state) {
    (void)state;
    assert_int_equal(mkdir("sub", 0755), 0);
    put_module("signum", "sub/signum.so");
    helper_scenario("sub/a.yaml", "steps: 2", "task: sft\n  optimizer: {" SIGNUM "}",
                    "optimizer: {sign: true}");
    struct said said = helper_run(1, "run --allow-modules --quiet --overwrite -o c.h5 sub/a.yaml");
    expect_in(&said, "Cause: optimizer");
    expect_in(&said, "optimizer.sign: false -> true");
    helper_free(&said);
    assert_true(contains("c.h5", "optimizer.module: sub/./signum.so"));
}

/* Two builds of one optimizer as the two arms: the files differ, the bits must be equal. */
static void validate_two_builds(void **state) {
    (void)state;
    put_module("signum", "old.so");
    put_module("signum_again", "new.so");
    helper_scenario("a.yaml", "steps: 2",
                    "task: sft\n  optimizer: {name: signum, module: old.so, lr: 1e-2}",
                    "optimizer: {module: new.so}");
    struct said said = helper_run(0, "run --allow-modules --quiet --overwrite -o d.h5 a.yaml");
    expect_in(&said, "a: IDENTICAL.");
    helper_free(&said);
    said = helper_run(0, "check --allow-modules a.yaml");
    expect_in(&said, "optimizer.module: old.so -> new.so");
    helper_free(&said);
}

static void validate_digest(void **state) {
    (void)state;
    char digest[65], line[512], wanted[512];
    put_module("signum", "signum.so");
    digest_of("signum.so", digest);
    helper_scenario("a.yaml", "steps: 2", "task: sft\n  optimizer: {" SIGNUM "}", "");
    snprintf(line, sizeof line,
             "check --allow-modules --set common.optimizer.module_sha256='%s' a.yaml", digest);
    helper_accept(0, line);
    put_module("signum_again", "signum.so");
    snprintf(wanted, sizeof wanted,
             "error: optimizer.module_sha256: expected %s of ./signum.so, got ", digest);
    helper_refuse(2, line, wanted);
}

/* A record must be trained again with the module of its digest, or not at all. */
static void validate_replay(void **state) {
    (void)state;
    put_module("signum", "signum.so");
    helper_scenario("a.yaml", "steps: 2", "task: sft\n  optimizer: {" SIGNUM "}",
                    "optimizer: {sign: true}");
    struct said said = helper_run(1, "run --allow-modules --quiet --overwrite -o r.h5 a.yaml");
    helper_free(&said);
    said = helper_run(0, "replay --allow-modules r.h5");
    expect_in(&said, "baseline: 2 updates replayed, bit-equal to the record");
    expect_in(&said, "test: 2 updates replayed, bit-equal to the record");
    helper_free(&said);
    put_module("signum_again", "signum.so");
    helper_refuse(2, "replay --allow-modules r.h5", "./signum.so of SHA-256 ");
    unlink("signum.so");
    helper_refuse(2, "replay --allow-modules r.h5", "./signum.so: cannot open: ");
}

/* State that is in no snapshot must show in the floor. */
static void validate_hidden_state(void **state) {
    (void)state;
    put_module("optim_hidden_state", "hidden.so");
    helper_scenario("a.yaml", "steps: 2",
                    "task: sft\n  optimizer: {name: broken, module: hidden.so, lr: 1e-2}", "");
    struct said said = helper_run(3, "run --allow-modules --quiet --overwrite -o e.h5 a.yaml");
    expect_in(&said, "UNTESTABLE. the baseline differs from its own repeat");
    expect_in(&said, "its module keeps a state of its own");
    expect_in(&said, "repeated: differs; in a process started anew: differs");
    helper_free(&said);
}

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        const char *module, *text;
    } cases[] = {
        {"optim_slots", "a.yaml:8:37: error: optimizer.module: m.so: optimizer broken: expected at "
                        "most 4 slots, got 5"},
        {"optim_key_taken", "m.so: optimizer broken: key weight_decay is one that every optimizer"},
        {"optim_key_default", "m.so: optimizer broken: default of key rate: expected a number from "
                              "0 to 10, got \"many\""},
        {"other_entry", "m.so: expected symbol twinstep_optim_v1, got twinstep_optim_v2"},
        {"trapezoid", "m.so: expected symbol twinstep_optim_v1, got twinstep_sched_v1"},
        {"fast", "m.so: "},
        {"signum", "a.yaml:8:21: error: optimizer.name: expected one of signum in m.so, got "
                   "\"broken\""},
    };
    helper_scenario("a.yaml", "steps: 2", "task: sft\n  optimizer: {name: broken, module: m.so}",
                    "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_module(cases[i].module, "m.so");
        helper_refuse(2, "check --allow-modules a.yaml", cases[i].text);
        helper_refuse(2, "run --allow-modules --quiet -o never.h5 a.yaml", cases[i].text);
        assert_false(helper_exists("never.h5"));
    }
    put_module("optim_step_fail", "m.so");
    helper_refuse(2, "run --allow-modules --quiet -o never.h5 a.yaml",
                  "m.so: broken: update 1 of model.embed_tokens.weight is not for me");
}

/* A module that lies about what it writes, or ends the program, is told. */
static void verify_lies_are_told(void **state) {
    (void)state;
    static const struct {
        const char *module, *text;
    } cases[] = {
        {"optim_step_past_slot",
         "m.so: broken: step() wrote behind the end of a of model.embed_tokens.weight: "},
        {"optim_step_before_param",
         "m.so: broken: step() wrote before the begin of its parameter "},
        {"optim_step_gradient",
         "m.so: broken: step() wrote into the gradient of model.embed_tokens.weight, which"},
        {"optim_step_exit", "a library or a module ended the program before it had a result"},
    };
    helper_scenario("a.yaml", "steps: 2",
                    "task: sft\n  optimizer: {name: broken, module: m.so, lr: 1e-2}", "seed: 4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_module(cases[i].module, "m.so");
        helper_refuse(2, "run --allow-modules --quiet --overwrite -o never.h5 a.yaml",
                      cases[i].text);
        assert_false(helper_exists("never.h5"));
    }
}

/* Where standard error is closed the trace must not be what the last words are written to. */
static void verify_closed_streams_stay_closed(void **state) {
    (void)state;
    put_module("optim_step_exit", "m.so");
    helper_scenario("a.yaml", "steps: 2",
                    "task: sft\n  optimizer: {name: broken, module: m.so, lr: 1e-2}", "seed: 4");
    static const char *const closed[] = {"2>&-", "<&- >&-", "<&- >&- 2>&-"};
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "\"$0\" run --allow-modules --quiet --overwrite -o a.h5 a.yaml %s", closed[i]);
        const char *const words[] = {"-c", line, TWINSTEP_BINARY, NULL};
        helper_binary("/bin/sh");
        struct said said = helper_say(words, NULL);
        helper_binary(NULL);
        assert_int_equal(said.code, 2);
        helper_free(&said);
        said = helper_run(0, "recover a.h5.part -o rows.h5 --overwrite");
        helper_free(&said);
    }
}

static void validate_values(void **state) {
    (void)state;
    put_module("signum", "signum.so");
    helper_scenario("a.yaml", "steps: 2", "task: sft\n  optimizer: {" SIGNUM "}", "");
    helper_refuse(2, "check --allow-modules a.yaml --set common.optimizer.momentum=2",
                  "error: optimizer.momentum: expected a number from 0 to 1, got \"2\"");
    helper_refuse(2, "check --allow-modules a.yaml --set common.optimizer.momentun=1",
                  "error: optimizer: unknown key \"momentun\"; did you mean optimizer.momentum?");
    /* the module's own check, at the line of the key */
    helper_refuse(2,
                  "check --allow-modules a.yaml --set common.optimizer.momentum=0 --set "
                  "common.optimizer.nesterov=true",
                  "--set common.optimizer.nesterov=true: error: optimizer.nesterov: expected "
                  "momentum > 0, got 0");
}

/* Says that neither the constructor nor anything else of the module ran. */
static void refuse_consent(const char *line, const char *wanted) {
    helper_refuse(2, line, wanted);
    if (helper_exists("constructor-ran")) fail_msg("the module ran: %s", line);
}

/* The third update never ends, and one SIGTERM does end the run; the two before it are kept. */
static void verify_one_signal_ends_an_endless_step(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    uint64_t updates = 0;
    put_module("optim_step_endless", "endless.so");
    helper_scenario("endless.yaml", "steps: 5",
                    "optimizer: {name: broken, module: ./endless.so, lr: 1e-2}", "seed: 4");
    const pid_t child = helper_start("run --allow-modules --quiet -o endless.h5 endless.yaml");
    for (int looks = 0; updates < 2 && looks < 60000; looks++) {
        if (trace_open("endless.h5.part", &arena, &image) == STATUS_OK)
            updates = trace_run_of(image, "test")->updates;
        arena_close(&arena);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_int_equal(updates, 2);
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(helper_wait(child), 130);
    assert_false(helper_exists("endless.h5"));
    helper_accept(0, "recover endless.h5.part");
}

/* No verb may run code that a file names, unless its user agreed to it. */
static void verify_consent(void **state) {
    (void)state;
    static const char *const lines[] = {"check a.yaml",         "run --quiet -o never.h5 a.yaml",
                                        "data show a.yaml",     "noise --quiet --repeat 2 a.yaml",
                                        "replay m.h5",          "bisect --quiet m.h5",
                                        "parity a.yaml",        "compare --floor m.floor m.h5 m.h5",
                                        "bisect --quiet a.yaml"};
    char digest[65], text[256];
    put_module("marking", "m.so");
    digest_of("m.so", digest);
    assert_int_equal(unlink("constructor-ran"), 0); /* that module was named by the user */
    helper_scenario("a.yaml", "steps: 2",
                    "task: sft\n  optimizer: {name: signum, module: ./m.so, lr: 1e-2}",
                    "optimizer: {sign: false}");
    struct said said = helper_run(1, "run --allow-modules --quiet --overwrite -o m.h5 a.yaml");
    helper_free(&said);
    said = helper_run(0, "noise --allow-modules --quiet --overwrite --pairs 2 -o m.floor a.yaml");
    helper_free(&said);
    assert_int_equal(unlink("constructor-ran"), 0);
    snprintf(text, sizeof text,
             "./m.so: not loaded: a module is code that runs with all your "
             "rights. If you trust whoever made this one, say --allow-modules");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        refuse_consent(lines[i], text);
    refuse_consent("check a.yaml", digest);
    said = helper_run(2, "suite --quiet .");
    expect_in(&said, text);
    helper_free(&said);
    assert_false(helper_exists("constructor-ran"));
    assert_false(helper_exists("never.h5"));
    /* a digest that is not the file's own: nothing of the file runs, whatever was allowed */
    snprintf(text, sizeof text, "# ours\n\n%064d  m.so\n", 7);
    helper_write("trusted", text);
    refuse_consent("check --trusted-modules trusted a.yaml", "./m.so: not loaded");
    refuse_consent("check --allow-modules a.yaml --set common.optimizer.module_sha256='0123'",
                   "optimizer.module_sha256: expected 0123 of ./m.so, got ");
    snprintf(text, sizeof text, "%064d  other.so\r\n%s\tm.so", 7, digest);
    helper_write("trusted", text);
    helper_accept(0, "check --trusted-modules trusted a.yaml");
    assert_int_equal(unlink("constructor-ran"), 0);
    helper_accept(0, "run --quiet -o t.h5 --trusted-modules trusted --set "
                     "arms.test.optimizer.sign=true a.yaml");
}

/* Lists of trusted modules that hold something else. */
static void validate_trusted(void **state) {
    (void)state;
    static const struct {
        const char *list, *text;
    } cases[] = {
        {"\n12ab  m.so\n",
         "trusted:2: error: expected a SHA-256 (64 lower-case hexadecimal digits)"},
        {"0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF", "trusted:1: error: "},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0", "trusted:1: error: "},
        {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-", "trusted:1: error: "},
        {"\xff", "trusted:1:1: error: expected UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        helper_write("trusted", cases[i].list);
        helper_refuse(2, "check --trusted-modules trusted lr-set-before-step", cases[i].text);
    }
    helper_refuse(2, "check --trusted-modules nothing lr-set-before-step",
                  "nothing: error: cannot");
    helper_write("trusted", "");
    helper_accept(0, "check --trusted-modules trusted lr-set-before-step");
}

static void validate_lists(void **state) {
    (void)state;
    put_module("signum", "signum.so");
    put_module("trapezoid", "trapezoid.so");
    struct said said = helper_run(0, "keys --module signum.so");
    expect_in(&said, "optimizer.name: signum (");
    expect_in(&said, "  optimizer.momentum ");
    assert_null(strstr(said.out, "adamw"));
    helper_free(&said);
    said = helper_run(0, "keys --module trapezoid.so --json");
    expect_in(&said, "\"key\": \"schedule.decay\"");
    expect_in(&said, "\"names\": [\"linear\", \"1-sqrt\"]");
    helper_free(&said);
    said = helper_run(0, "list optimizers --module signum.so");
    expect_in(&said, "  adamw ");
    expect_in(&said, "[signum.so] Sign of the momentum (Bernstein and others 2018)");
    helper_free(&said);
    said = helper_run(0, "list schedules --module trapezoid.so --json");
    expect_in(&said, "\"name\": \"trapezoid\"");
    helper_free(&said);
    said = helper_run(0, "list optimizers");
    assert_null(strstr(said.out, "signum"));
    helper_free(&said);
    helper_refuse(2, "keys --module nothing.so", "nothing.so: cannot open: ");
    helper_refuse(2, "list --module nothing.so", "nothing.so: cannot open: ");
    helper_refuse(2, "keys --module signum.so --markdown", "expected no --module with it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_run),
        cmocka_unit_test(validate_folder),
        cmocka_unit_test(validate_two_builds),
        cmocka_unit_test(validate_digest),
        cmocka_unit_test(validate_replay),
        cmocka_unit_test(validate_hidden_state),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_values),
        cmocka_unit_test(verify_lies_are_told),
        cmocka_unit_test(verify_closed_streams_stay_closed),
        cmocka_unit_test(validate_lists),
        cmocka_unit_test(verify_consent),
        cmocka_unit_test(verify_one_signal_ends_an_endless_step),
        cmocka_unit_test(validate_trusted),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
