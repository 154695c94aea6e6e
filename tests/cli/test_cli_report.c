/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * report: files, standard output, overwriting, logs, live traces, refusals, and equal bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

static void require_text(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s", needle);
}

static void make_trace(void) {
    helper_scenario("s.yaml", "steps: 3", "seed: 3",
                    "loop: {update: [count, clip, schedule, optimize, log, zero]}");
    helper_accept(1, "run s.yaml -o run.h5 --quiet --reproducible --overwrite");
}

static void validate_page(void **state) {
    (void)state;
    make_trace();
    struct said said = helper_run(0, "report run.h5 -o run.html");
    assert_string_equal(said.out, "run.html: report of run.h5\n");
    helper_free(&said);
    assert_false(helper_exists("run.html.part"));
    said = helper_run(0, "report run.h5 -o -");
    helper_write_bytes("out.html", said.out, said.out_length);
    assert_true(helper_same_bytes("run.html", "out.html"));
    require_text(said.out, "OUTSIDE THE FLOOR");
    require_text(said.out, "twinstep run ");
    require_text(said.out, "left out (<code>--reproducible</code>)");
    if (strstr(said.out, "://") != NULL) fail_msg("the page names another place");
    helper_free(&said);
}

/* Neither the name of the trace nor that of the page may be in the page. */
static void verify_equal_bytes(void **state) {
    (void)state;
    make_trace();
    helper_accept(1, "run s.yaml -o again.h5 --quiet --reproducible --overwrite");
    helper_accept(0, "report run.h5 -o a.html --overwrite");
    helper_accept(0, "report again.h5 -o b.html --overwrite");
    assert_true(helper_same_bytes("a.html", "b.html"));
}

/* Reports a scenario of the catalogue, for which the command needs no file. */
static void validate_catalogue(void **state) {
    (void)state;
    helper_accept(0, "run null-pair -o null.h5 --quiet --set steps=2");
    struct said said = helper_run(0, "report null.h5 -o -");
    require_text(said.out, "IDENTICAL");
    require_text(said.out, "<pre>twinstep run null-pair --set &#39;steps=2&#39; -o null-pair.h5\n");
    require_text(said.out, ">cpu_<wbr/>model</th>");
    helper_free(&said);
}

static void verify_files(void **state) {
    (void)state;
    make_trace();
    helper_write("there.html", "mine");
    helper_refuse(2, "report run.h5 -o there.html", "there.html: exists");
    char *text = helper_read("there.html", NULL);
    assert_string_equal(text, "mine");
    free(text);
    helper_accept(0, "report run.h5 -o there.html --overwrite");
    text = helper_read("there.html", NULL);
    require_text(text, "<!DOCTYPE html>");
    require_text(text, "content=\"default-src 'none'; style-src 'unsafe-inline'; ");
    free(text);
    mkdir("folder", 0777);
    helper_refuse(2, "report run.h5 -o folder --overwrite", "folder: cannot create");
    helper_refuse(2, "report run.h5 -o no/where.html", "no/where.html: cannot create");
    helper_refuse(2, "report run.h5", "expected --output");
    helper_refuse(2, "report run.h5 -o run.h5 --overwrite", "run.h5: expected an output that is");
    helper_refuse(2, "recover run.h5 -o run.h5 --overwrite", "run.h5: expected an output that is");
    helper_refuse(2, "report missing.h5 -o x.html", "missing.h5");
    helper_refuse(2, "report s.yaml -o x.html", "s.yaml");
    assert_false(helper_exists("x.html"));
    assert_false(helper_exists("x.html.part"));
    struct said said = helper_run(0, "report run.h5 -o j.html --json --overwrite");
    require_text(said.out, "\"output\": \"j.html\"");
    helper_free(&said);
}

static void validate_log(void **state) {
    (void)state;
    helper_write("rows.jsonl", "{\"step\": 1, \"loss\": 0.5, \"lr\": 1e-6, \"<b>\": NaN}\n"
                               "{\"step\": 2, \"loss\": NaN, \"lr\": 5e-7, \"<b>\": 1}\n");
    helper_accept(0, "import rows.jsonl -o rows.h5");
    struct said said = helper_run(0, "report rows.h5 -o -");
    require_text(said.out, "No verdict: nothing is compared");
    require_text(said.out, "&lt;b&gt;");
    require_text(said.out, "has no finite value at update 2 (1 of 2)");
    helper_free(&said);
}

/* Reports a trace that was never closed. */
static void validate_stopped(void **state) {
    (void)state;
    helper_scenario("long.yaml", "steps: 100000", "seed: 3",
                    "loop: {update: [count, clip, schedule, optimize, log, zero]}");
    const struct timespec pause = {0, 20000000};
    const pid_t child = helper_start("run long.yaml -o long.h5 --quiet");
    struct said said = {0, NULL, NULL, 0};
    for (int i = 0; i < 600; i++) {
        nanosleep(&pause, NULL);
        static const char *const words[] = {"report", "long.h5.part", "-o", "-", NULL};
        said = helper_say(words, NULL);
        if (said.code == 0 && strstr(said.out, "100000 updates, baseline finished 0,") == NULL)
            break;
        helper_free(&said);
    }
    kill(child, SIGKILL);
    helper_wait(child);
    assert_int_equal(said.code, 0);
    require_text(said.out, "Incomplete trace.");
    require_text(said.out, "UNTESTABLE");
    helper_free(&said);
    helper_accept(0, "report long.h5.part -o long.html");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_page),      cmocka_unit_test(verify_equal_bytes),
        cmocka_unit_test(validate_catalogue), cmocka_unit_test(verify_files),
        cmocka_unit_test(validate_log),       cmocka_unit_test(validate_stopped),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
