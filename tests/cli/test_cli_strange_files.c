/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * A named pipe, a device or a folder where a file is expected: every verb and key must refuse it
 * with a text, and must not wait for a writer that never comes. The shell's own pipes are read as
 * files are. Too small a stack is told before it ends the program. No output replaces a file that
 * is read, by whatever key or option. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))
#define ROWS                                                                                       \
    "{\"step\": 1, \"loss\": 2.5, \"learning_rate\": 0.001}\n"                                     \
    "{\"step\": 2, \"loss\": 2.4, \"learning_rate\": 0.0009}\n"
#define HANG_SECONDS 300 /* for all cases of a test; one that waits for a writer waits for ever */

/* `pipe` and `pipe.part` are named pipes, `t.h5` is a trace, `log.jsonl` a log, `folder` holds
 * named pipes with the names of a checkpoint, `suite` one that is called a.yaml, `nowhere` is a
 * link to /dev/null, as /dev/stdout is one to where the shell sends it. */
static int set_up(void **state) {
    static const char *const pipes[] = {"pipe",
                                        "pipe.part",
                                        "folder/config.json",
                                        "folder/trainer_state.json",
                                        "folder/model.safetensors",
                                        "suite/a.yaml",
                                        "tokens/tokenizer.json"};
    if (helper_enter(state) != 0) return -1;
    if (mkdir("folder", 0777) != 0 || mkdir("suite", 0777) != 0 || mkdir("tokens", 0777) != 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(pipes); i++)
        if (mkfifo(pipes[i], 0666) != 0) return -1;
    if (symlink("/dev/null", "nowhere") != 0) return -1;
    helper_write("log.jsonl", ROWS);
    helper_write("ids.jsonl",
                 "{\"prompt_ids\": [1], \"chosen_ids\": [2], \"rejected_ids\": [3]}\n");
    helper_scenario("s.yaml", "", "", "");
    helper_accept(0, "run s.yaml --quiet -o t.h5");
    return 0;
}

static const struct {
    const char *line, *needle;
} cases[] = {
    {"attribute pipe", "pipe: expected a trace, got a named pipe"},
    {"recover pipe.part", "pipe.part: expected a trace, got a named pipe"},
    {"export pipe --to csv", "pipe: expected a"},
    {"report pipe -o r.html", "pipe: expected a trace, got a named pipe"},
    {"replay pipe", "pipe: expected a trace, got a named pipe"},
    {"certify pipe", "pipe: expected a trace, got a named pipe"},
    {"certify t.h5 pipe", "pipe: expected a trace, got a named pipe"},
    {"import --check pipe", "pipe: expected a trace, got a named pipe"},
    {"bisect pipe pipe", "pipe: expected a trace, got a named pipe"},
    {"attribute t.h5 --floor pipe", "pipe: expected a trace, got a named pipe"},
    {"run pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"check pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"bisect pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"noise pipe -o n.h5", "pipe: error: expected a file of text, got a named pipe"},
    {"parity pipe pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"data show pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"suite pipe", "pipe: error: cannot read the folder: Not a directory"},
    {"run s.yaml --trusted-modules=pipe", "pipe: error: expected a file of text, got a named pipe"},
    {"import pipe -o x.h5", "pipe: expected a file, got a named pipe"},
    {"doctor pipe", "pipe: expected a file, got a named pipe"},
    {"doctor folder", "trainer_state.json: expected a file, got a named pipe"},
    {"lr fit pipe", "pipe: expected a file, got a named pipe"},
    {"lr check pipe --expect hf", "pipe: expected a file, got a named pipe"},
    {"compare pipe log.jsonl", "pipe: expected a file, got a named pipe"},
    {"compare log.jsonl pipe", "pipe: expected a file, got a named pipe"},
    {"floor pipe t.h5", "pipe: expected a trace, got a named pipe"},
    {"rollout pipe", "pipe: expected a file, got a named pipe"},
    {"ops pipe pipe", "pipe: expected a file, got a named pipe"},
    {"doctor /dev/zero", "/dev/zero: expected a file, got a device"},
    {"check /dev/zero", "/dev/zero: error: expected a file of text, got a device"},
    {"parity weights pipe pipe", "pipe: expected a regular file, got a named pipe"},
    {"parity weights folder folder", "expected a regular file, got a named pipe"},
    {"readback pipe pipe", "pipe: expected a regular file, got a named pipe"},
    {"readback folder folder", "expected a regular file, got a named pipe"},
    {"resume-check folder folder", "expected a regular file, got a named pipe"},
    {"check s.yaml --set common.data.pairs=pipe", "pipe: expected a file of JSONL, got a named"},
    {"data show s.yaml --set common.data.pairs=pipe", "expected a file of JSONL, got a named"},
    {"check s.yaml --set common.model.from=folder", "expected a regular file, got a named pipe"},
    {"check s.yaml --set common.optimizer.module=pipe",
     "expected a regular file, got a named pipe"},
    {"data show ids.jsonl --tokenizer tokens", "got a named pipe"},
    {"report t.h5 -o pipe --overwrite", "pipe: a named pipe that nobody reads, or a socket"},
    {"export t.h5 --to csv -o pipe --overwrite", "pipe: a named pipe that nobody reads, or a"},
    {"lr check log.jsonl --expect hf --junit=pipe", "pipe: a named pipe that nobody reads, or a"},
    {"run s.yaml -o pipe --overwrite", "pipe: exists and is not a regular file"},
    {"import log.jsonl -o pipe --overwrite", "pipe: exists and is not a regular file"},
    {"run s.yaml -o nowhere --overwrite", "nowhere: exists and is not a regular file"},
    {"import log.jsonl -o nowhere --overwrite", "nowhere: exists and is not a regular file"},
    {"noise s.yaml -o nowhere --overwrite", "nowhere: exists and is not a regular file"},
};

static void verify_that_nothing_waits_for_a_writer(void **state) {
    (void)state;
    alarm(HANG_SECONDS);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        (strstr(cases[i].line, "--junit") != NULL ? helper_fail : helper_refuse)(
            2, cases[i].line, cases[i].needle); /* --junit is written last */
    struct said said = helper_run(2, "suite suite");
    assert_non_null(strstr(said.out, "a.yaml: error: expected a file of text, got a named pipe"));
    helper_free(&said);
    struct stat info;
    assert_true(lstat("nowhere", &info) == 0 && S_ISLNK(info.st_mode));
    alarm(0);
}

/* Returns a descriptor below which a child finds a pipe that holds `text` and has no writer any
 * more. */
static int filled_pipe(const char *text) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
    close(ends[1]);
    return ends[0];
}

static void verify_that_the_shells_pipes_are_read(void **state) {
    (void)state;
    char line[128];
    alarm(HANG_SECONDS);
    struct said plain = helper_run(0, "export log.jsonl --to csv");
    const int log = filled_pipe(ROWS);
    snprintf(line, sizeof line, "export /dev/fd/%d --to csv", log);
    struct said piped = helper_run(0, line);
    close(log);
    assert_string_equal(piped.out, plain.out);
    const char *const words[] = {"export", "-", "--to", "csv", NULL};
    struct said input = helper_say(words, ROWS);
    assert_int_equal(input.code, 0);
    assert_string_equal(input.out, plain.out);
    helper_free(&plain);
    helper_free(&piped);
    helper_free(&input);
    const int scenario = filled_pipe("twinstep: 1\nname: from-a-pipe\n");
    snprintf(line, sizeof line, "check /dev/fd/%d", scenario);
    struct said checked = helper_run(0, line);
    assert_non_null(strstr(checked.out, "from-a-pipe: "));
    helper_free(&checked);
    close(scenario);
    const int trace = filled_pipe("x");
    snprintf(line, sizeof line, "attribute /dev/fd/%d", trace);
    helper_refuse(2, line, "expected a trace, got a pipe");
    close(trace);
    alarm(0);
}

/* A named pipe that somebody reads is a place to write to, as a device is. */
static void verify_that_a_read_pipe_is_written(void **state) {
    (void)state;
    char bytes[4096];
    struct said plain = helper_run(0, "export t.h5 --to csv");
    const int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    helper_accept(0, "export t.h5 --to csv -o pipe --overwrite");
    const ssize_t got = read(reader, bytes, sizeof bytes);
    close(reader);
    assert_int_equal(got, (ssize_t)plain.out_length);
    assert_memory_equal(bytes, plain.out, plain.out_length);
    helper_free(&plain);
}

/* The sanitizers' own frames are larger, so that only the refusal is asked for there. */
static void verify_small_stacks(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    small = (struct rlimit){256 * 1024, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    const char *const words[] = {"list", "formats", NULL};
    struct said said = helper_say(words, NULL);
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    assert_int_equal(said.code, 2);
    assert_non_null(strstr(said.err, "the stack may grow to 256 KiB, and 512 are needed"));
    helper_free(&said);
#ifndef __SANITIZE_ADDRESS__
    small.rlim_cur = 512 * 1024;
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    setenv("OMP_STACKSIZE", "16K", 1);
    const char *const run[] = {
        "run", "s.yaml", "--quiet", "-o", "small.h5", "--set", "common.numerics.threads=4", NULL};
    said = helper_say(run, NULL);
    unsetenv("OMP_STACKSIZE");
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    assert_string_equal(said.err, "");
    assert_int_equal(said.code, 0);
    helper_free(&said);
#endif
}

/* `data.jsonl` is what the scenario and --floor name; a link to it leads to the same file. */
static void verify_that_no_output_replaces_what_is_read(void **state) {
    (void)state;
    static const char *const lines[] = {
        "run data.yaml --quiet --overwrite -o data.jsonl",
        "run data.yaml --quiet --overwrite -o r.h5 --junit data.jsonl",
        "run data.yaml --quiet --overwrite -o r.h5 --junit link",
        "run data.yaml s.yaml --quiet --overwrite -o folder --junit data.jsonl",
        "run s.yaml --quiet --overwrite -o data.jsonl --floor data.jsonl",
        "run s.yaml --quiet --overwrite -o r.h5 --junit data.jsonl --floor data.jsonl",
        "run s.yaml --quiet --overwrite -o r.h5 --junit data.jsonl --trusted-modules data.jsonl",
        "run s.yaml --quiet --overwrite -o r.h5 --junit data.jsonl --set eval.from=data.jsonl",
        "noise data.yaml --quiet --overwrite --pairs 1 -o data.jsonl",
        "noise data.yaml --quiet --junit data.jsonl",
    };
    helper_write("data.yaml", "twinstep: 1\nsteps: 1\n"
                              "common: {batch: {size: 1, micro: 1}, data: {pairs: data.jsonl}}\n"
                              "arms:\n  baseline: {}\n  test: {}\n");
    size_t now;
    static const char rows[] =
        "{\"prompt_ids\": [1], \"chosen_ids\": [2], \"rejected_ids\": [3]}\n";
    assert_int_equal(symlink("data.jsonl", "link"), 0);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        helper_write("data.jsonl", rows);
        helper_refuse(2, lines[i], "expected an output that is not read, got the input");
        char *const left = helper_read("data.jsonl", &now);
        if (now != strlen(rows) || memcmp(left, rows, now) != 0) fail_msg("%s", lines[i]);
        free(left);
    }
    helper_refuse(2, "run s.yaml --quiet -o r.h5 --junit r.h5",
                  "expected another file than --output");
    assert_false(helper_exists("r.h5"));
}

/* Files that stand beside a trace while it is written have longer names. */
static void verify_long_names(void **state) {
    (void)state;
    char line[512], name[256];
    for (int length = 238; length <= 239; length++) {
        memset(name, 'n', (size_t)length);
        name[length] = '\0';
        snprintf(line, sizeof line, "run s.yaml --quiet -o %s", name);
        if (length > 238)
            helper_refuse(2, line, "expected a name of at most 238 bytes, got 239");
        else
            helper_accept(0, line);
        assert_int_equal(access(name, F_OK) == 0, length == 238);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_that_nothing_waits_for_a_writer),
        cmocka_unit_test(verify_that_the_shells_pipes_are_read),
        cmocka_unit_test(verify_that_a_read_pipe_is_written),
        cmocka_unit_test(verify_small_stacks),
        cmocka_unit_test(verify_long_names),
        cmocka_unit_test(verify_that_no_output_replaces_what_is_read),
    };
    return cmocka_run_group_tests(tests, set_up, helper_leave);
}
