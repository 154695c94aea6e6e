/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * The command line without any training: help, verbs, options, and a standard output that is
 * full. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

static const char *const verbs[] = {
    "run",        "check",          "demo",     "suite",        "attribute",
    "recover",    "keys",           "list",     "env",          "lr table",
    "lr compare", "lr check",       "lr fit",   "doctor",       "compare",
    "import",     "export",         "report",   "replay",       "bisect",
    "noise",      "floor",          "certify",  "parity",       "parity weights",
    "rollout",    "data show",      "readback", "resume-check", "ops",
    "ablate",     "bisect-command", "init",     "ranks order",  "ranks buckets",
    "ranks deal"};
#define VERBS (sizeof verbs / sizeof verbs[0])

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

/* `help` in front is --help behind. */
static void validate_help_in_front(void **state) {
    (void)state;
    static const char *const lines[][2] = {{"help", "--help"},
                                           {"help run", "run --help"},
                                           {"help lr", "lr --help"},
                                           {"help lr table", "lr table --help"},
                                           {"help --help", "--help"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct said front = helper_run(0, lines[i][0]), behind = helper_run(0, lines[i][1]);
        assert_string_equal(front.err, "");
        assert_string_equal(front.out, behind.out);
        helper_free(&front);
        helper_free(&behind);
    }
    helper_refuse(2, "help rnu", "unknown verb \"rnu\"; did you mean run?");
}

static void validate_help_of_every_verb(void **state) {
    (void)state;
    for (size_t i = 0; i < VERBS; i++) {
        char line[64], usage[64], example[64];
        snprintf(line, sizeof line, "%s --help", verbs[i]);
        snprintf(usage, sizeof usage, "Usage: twinstep %s ", verbs[i]);
        snprintf(example, sizeof example, "Example: twinstep %s", verbs[i]);
        struct said said = helper_run(0, line);
        assert_string_equal(said.err, "");
        require_in(said.out, usage);
        require_in(said.out, example);
        assert_true(strlen(said.out) > 200);
        helper_free(&said);
    }
}

/* Every verb of the overview must have a help text, and the other way round. */
static void verify_overview_names_every_verb(void **state) {
    (void)state;
    struct said said = helper_run(0, "--help");
    for (size_t i = 0; i < VERBS; i++) {
        char row[32];
        snprintf(row, sizeof row, "\n  %-10s ", verbs[i]);
        require_in(said.out, row);
    }
    size_t rows = 0;
    for (const char *at = said.out; (at = strstr(at, "\n  ")) != NULL; at += 3)
        rows += islower((unsigned char)at[3]) && strncmp(at + 3, "twinstep", 8) != 0;
    assert_int_equal(rows, VERBS);
    require_in(said.out, "Exit status:");
    require_in(said.out, "docs/GLOSSARY.md explains arm, floor, ");
    assert_null(strstr(said.out, "rerun-config"));
    helper_free(&said);
}

static void validate_version(void **state) {
    (void)state;
    struct said said = helper_run(0, "--version");
    int major, minor, patch, end = 0;
    assert_int_equal(sscanf(said.out, "twinstep %d.%d.%d\n%n", &major, &minor, &patch, &end), 3);
    assert_int_equal(end, said.out_length);
    helper_free(&said);
}

static const struct {
    const char *line, *needle;
} refused[] = {
    {"", "expected a verb"},
    {"--json", "expected a verb, got option --json"},
    {"rnu", "unknown verb \"rnu\"; did you mean run?"},
    {"frobnicate", "unknown verb \"frobnicate\""},
    {"merge a.h5 b.h5", "merge is a verb of the Python package (pip install ./python)"},
    {"tokenize --help", "tokenize is a verb of the Python package"},
    {"run", "run: expected SCENARIO..., got nothing"},
    {"check", "check: expected SCENARIO, got nothing"},
    {"check a b", "got one too many: \"b\""},
    {"keys now", "keys: expected no argument, got one too many: \"now\""},
    {"demo a b", "one too many"},
    {"suite a b", "one too many"},
    {"attribute", "attribute: expected TRACE, got nothing"},
    {"recover", "recover: expected FILE.part, got nothing"},
    {"compare a.jsonl", "compare: expected A B, got no more than \"a.jsonl\""},
    {"ranks nosuch", "unknown verb \"ranks nosuch\"; see twinstep ranks --help"},
    {"lr nosuch", "unknown verb \"lr nosuch\"; see twinstep lr --help"},
    {"doctor a.jsonl --format jsnl",
     "--format: expected a format of logs, got \"jsnl\"; did you mean"},
    {"doctor a.jsonl --format x", "--format: expected a format of logs (twinstep list formats)"},
    /* the beginning of an option is not accepted, even where it is unique */
    {"run --ste x.yaml", "run: unknown option --ste"},
    {"run --se steps=1 null-pair", "run: unknown option --se; did you mean --set?"},
    {"run --over null-pair", "did you mean --overwrite?"},
    {"run --reproducibl null-pair", "did you mean --reproducible?"},
    {"run --jso null-pair", "did you mean --json?"},
    {"run --hel", "did you mean --help?"},
    {"suite --jun x", "did you mean --junit?"},
    {"run --frobnicate null-pair", "run: unknown option --frobnicate; see twinstep run --help"},
    {"run -x null-pair", "run: unknown option -x"},
    {"run -ox -x null-pair", "run: unknown option -x"},
    {"run null-pair --set", "option --set: expected a value (KEY=VALUE), got none"},
    {"run null-pair -o", "option -o: expected a value (FILE), got none"},
    {"run --json=1 null-pair", "option --json takes no value, got \"1\""},
    {"check --overwrite null-pair", "check: unknown option --overwrite"},
    {"keys --json --markdown", "expected --json or --markdown, got both"},
    {"list colours", "list: expected scenarios"},
    {"list dtype", "did you mean dtypes?"},
    {"demo lr-set-before-stp", "in the catalogue; did you mean lr-set-before-step?"},
    {"demo no-such-demo", "no scenario \"no-such-demo\" in the catalogue"},
    {"run null-pair --backend cuda", "numerics.backend: "},
    {"run null-pair --backend tpu", "--backend: expected cpu or cuda, got \"tpu\""},
    {"pages", "pages: expected FOLDER, got nothing"},
    {"pages nosuch", "nosuch/twinstep-run.1: cannot create"},
    {"run null-pair -o -", "run: --output: expected a file, got - (a file of that name is ./-)"},
    {"parity dtype-bf16 --logits -o -", "parity: --output: expected a file, got -"},
    {"run null-pair data-order -o one.h5", "--output with 2 scenarios: expected a folder"},
    {"recover trace.h5", "does not end in .part"},
    {"recover missing.h5.part", "missing.h5.part"},
    {"attribute missing.h5", "missing.h5"},
    {"attribute .", "."},
    {"suite no-such-folder", "no-such-folder: error: cannot read the folder"},
    {"suite .", "no *.yaml file in this folder"},
};

static void validate_usage_errors(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct said said = helper_run(2, refused[i].line);
        assert_string_equal(said.out, "");
        require_in(said.err, refused[i].needle);
        require_in(said.err, "error: ");
        assert_ptr_equal(strchr(said.err, '\n'), said.err + strlen(said.err) - 1); /* one line */
        helper_free(&said);
    }
}

/* A value may look like an option, and what stands after -- is an argument. */
static void verify_values_are_not_options(void **state) {
    (void)state;
    helper_refuse(2, "check null-pair --set --ste=3", "--ste");
    helper_refuse(2, "check -- --help", "--help: error: no such file");
    struct said said = helper_run(0, "check null-pair --set steps=3 --help");
    require_in(said.out, "Usage: twinstep check");
    helper_free(&said);
}

static void validate_second_process_refuses_strangers(void **state) {
    (void)state;
    const char *const words[] = {"rerun-config", NULL};
    static const char *const inputs[] = {"", "hello"};
    for (size_t i = 0; i < 2; i++) {
        struct said said = helper_say(words, inputs[i]);
        assert_int_equal(said.code, 2);
        assert_int_equal(said.out[0], 'E');
        require_in(said.out, "rerun-config: expected a request of");
        helper_free(&said);
    }
}

/* Where the output cannot be written, the exit status must say so. */
static void validate_full_stdout(void **state) {
    (void)state;
    static const char wrote[] = "twinstep: error: cannot write: No space left on device\n";
    static const char *const lines[] = {"--help",
                                        "--version",
                                        "run --help",
                                        "keys",
                                        "keys --json",
                                        "keys --markdown",
                                        "list",
                                        "list --json",
                                        "env",
                                        "env --json",
                                        "check null-pair",
                                        "check null-pair --json",
                                        "run null-pair -o f.h5 --overwrite --quiet",
                                        "run null-pair -o f.h5 --overwrite --quiet --json",
                                        "attribute f.h5 --json",
                                        "report f.h5 -o -"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char command[512];
        snprintf(command, sizeof command, "'%s' %s >/dev/full 2>err.txt", TWINSTEP_BINARY,
                 lines[i]);
        int how = system(command);
        char *err = helper_read("err.txt", NULL);
        if (how != 2 << 8) fail_msg("%s: expected exit status 2, got %d", command, how >> 8);
        /* A page is also told where it is written. */
        const char *at = err;
        if (strncmp(lines[i], "report", 6) == 0 && strncmp(at, wrote, strlen(wrote)) == 0)
            at += strlen(wrote);
        assert_string_equal(
            at, "twinstep: error: standard output: cannot write: No space left on device\n");
        free(err);
    }
}

/* Parses the JSON that a command prints. Bounds of keys go up to 2^64 - 2, which is beyond
 * jansson's integers. */
static json_t *parse(const char *line) {
    json_error_t error;
    struct said said = helper_run(0, line);
    json_t *value = json_loads(said.out, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    if (value == NULL) fail_msg("twinstep %s: line %d: %s", line, error.line, error.text);
    assert_string_equal(said.err, "");
    helper_free(&said);
    return value;
}

static int lists(const json_t *list, const char *name) {
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry) {
        assert_true(json_string_length(json_object_get(entry, "about")) > 0);
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return 1;
    }
    return 0;
}

static void validate_lists(void **state) {
    (void)state;
    static const struct {
        const char *topic, *member;
    } expected[] = {{"scenarios", "lr-set-before-step"},
                    {"scenarios", "null-pair"},
                    {"optimizers", "adamw"},
                    {"optimizers", "sgd"},
                    {"schedules", "linear"},
                    {"schedules", "cosine"},
                    {"schedules", "constant"},
                    {"modes", "invariant"},
                    {"modes", "shuffled"},
                    {"causes", "schedule"},
                    {"causes", "backward"},
                    {"causes", "corruption"},
                    {"dtypes", "bf16"}};
    json_t *all = parse("list --json");
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (!lists(json_object_get(all, expected[i].topic), expected[i].member))
            fail_msg("list: %s lacks %s", expected[i].topic, expected[i].member);
    assert_int_equal(json_array_size(json_object_get(all, "modes")), 7);
    assert_int_equal(json_array_size(json_object_get(all, "causes")), 16);
    json_t *one = parse("list modes --json");
    assert_int_equal(json_object_size(one), 1);
    json_decref(one);
    json_decref(all);
}

static void validate_keys(void **state) {
    (void)state;
    json_t *keys = parse("keys --json");
    assert_true(json_array_size(json_object_get(keys, "tables")) > 10);
    json_decref(keys);
    struct said said = helper_run(0, "keys");
    require_in(said.out, "schedule.warmup_ratio");
    require_in(said.out, "optimizer.beta1");
    helper_free(&said);
    said = helper_run(0, "keys --markdown");
    assert_memory_equal(said.out, "# Scenario files\n", 17);
    helper_free(&said);
}

static void validate_env(void **state) {
    (void)state;
    static const char *const names[] = {
        "version", "compiler",       "flags",    "isa",     "isa_available", "HDF5",
        "GSL",     "nettle",         "libfyaml", "jansson", "cpu_model",     "cores",
        "threads", "floating_point", "cublas",   "nvml",    "build_id"};
    json_t *facts = parse("env --json");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_string_length(json_object_get(facts, names[i])) == 0)
            fail_msg("env: %s is missing", names[i]);
    const char *const cuda = json_string_value(json_object_get(facts, "cuda"));
    if (strstr(cuda, "compute capability") == NULL) require_in(cuda, "none (");
    require_in(json_string_value(json_object_get(facts, "flags")), "-ffp-contract=off");
    require_in(json_string_value(json_object_get(facts, "isa_available")),
               json_string_value(json_object_get(facts, "isa")));
    json_decref(facts);
}

/* The pages must be written; tests/packaging/pages.py compares their contents with --help. */
static void validate_pages(void **state) {
    (void)state;
    static const char *const files[] = {"twinstep.1", "twinstep-lr-table.1", "twinstep.bash",
                                        "_twinstep"};
    for (int again = 0; again < 2; again++) /* the second time over older pages */
        helper_accept(0, "pages .");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        assert_true(helper_exists(files[i]));
    assert_false(helper_exists("twinstep-pages.1"));
    assert_false(helper_exists("twinstep-rerun-config.1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_help_in_front),
        cmocka_unit_test(validate_help_of_every_verb),
        cmocka_unit_test(verify_overview_names_every_verb),
        cmocka_unit_test(validate_version),
        cmocka_unit_test(validate_usage_errors),
        cmocka_unit_test(verify_values_are_not_options),
        cmocka_unit_test(validate_second_process_refuses_strangers),
        cmocka_unit_test(validate_full_stdout),
        cmocka_unit_test(validate_lists),
        cmocka_unit_test(validate_keys),
        cmocka_unit_test(validate_env),
        cmocka_unit_test(validate_pages),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
