/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * import and export: what they print; files, folders and pipes; traces of runs; and what they
 * refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

static const char state_text[] =
    "{\"log_history\": [{\"loss\": 0.6931, \"learning_rate\": 5e-07, \"grad_norm\": 1.25, "
    "\"step\": "
    "1},\n{\"loss\": 0.69, \"learning_rate\": 2.5e-07, \"grad_norm\": NaN, \"step\": 2}],\n"
    "\"max_steps\": 2}";

static json_t *parse(const char *text) {
    json_error_t error;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL) fail_msg("JSON, line %d: %s\n%s", error.line, error.text, text);
    return value;
}

static json_t *import_json(const char *line) {
    struct said said = helper_run(0, line);
    json_t *object = parse(said.out);
    helper_free(&said);
    return object;
}

static const json_t *column_named(const json_t *object, const char *name) {
    size_t index;
    const json_t *column;
    json_array_foreach(json_object_get(object, "columns"), index, column) {
        const char *text = json_string_value(json_object_get(column, "name"));
        if (text != NULL && strcmp(text, name) == 0) return column;
    }
    fail_msg("no column %s", name);
    return NULL;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static void require_text(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void validate_import(void **state) {
    (void)state;
    helper_write("state.json", state_text);
    json_t *object = import_json("import state.json -o state.h5 --json");
    assert_string_equal(json_string_value(json_object_get(object, "format")), "hf-trainer-state");
    assert_string_equal(json_string_value(json_object_get(object, "output")), "state.h5");
    assert_int_equal(number(object, "rows"), 2);
    assert_int_equal(number(object, "max_steps"), 2);
    const json_t *loss = column_named(object, "loss");
    assert_true(number(loss, "quantum_least") > 0.99e-4 && number(loss, "quantum_most") < 1.01e-4);
    assert_true(json_is_true(json_object_get(loss, "windowed")));
    assert_true(number(column_named(object, "lr_logged"), "quantum_most") == 0.0);
    json_t *again = import_json("import state.h5 --json"); /* the trace says the same */
    assert_true(json_is_null(json_object_get(again, "output")));
    assert_true(json_equal(json_object_get(object, "columns"), json_object_get(again, "columns")));
    assert_true(json_equal(json_object_get(object, "notes"), json_object_get(again, "notes")));
    json_decref(object);
    json_decref(again);
    struct said said = helper_run(0, "import state.json");
    require_text(said.out, "state.json: Hugging Face trainer_state.json (hf-trainer-state)\n"
                           "2 rows, updates 1 to 2 of 2; its first update is called 1\n");
    require_text(said.out, "lr_logged");
    helper_free(&said);
}

/* A metric's name is its path below metrics/; its files are joined by step. */
static void verify_mlflow_runs(void) {
    mkdir("mlrun", 0777);
    mkdir("mlrun/metrics", 0777);
    mkdir("mlrun/metrics/train", 0777);
    helper_write("mlrun/meta.yaml", "run_id: x\n");
    helper_refuse(2, "import mlrun", "mlrun: expected a folder with trainer_state.json");
    helper_write("mlrun/metrics/loss", "1795417707633 2.5 5\n1795417707634 1.25 10\n");
    helper_write("mlrun/metrics/train/learning_rate",
                 "1795417707633 1e-06 5\n1795417707634 9.5e-07 10\n1795417707635 nan 15\n");
    json_t *object = import_json("import mlrun --json");
    assert_string_equal(json_string_value(json_object_get(object, "format")), "mlflow");
    assert_int_equal(number(object, "rows"), 3);
    json_decref(object);
    struct said said = helper_run(0, "import mlrun");
    require_text(said.out, "lr_logged         train/learning_rate                3  ");
    helper_free(&said);
    helper_write("mlrun/metrics/train/x", "1795417707633 1 0\n1795417707634 2 0\n");
    helper_refuse(2, "import mlrun", "got 2 values at step 0: the program gave MLflow no step");
    helper_write("mlrun/metrics/train/x", "1795417707633 1 5\nhello\n");
    helper_refuse(2, "import mlrun",
                  "mlrun/metrics/train/x:2: expected \"MILLISECONDS VALUE STEP\"");
}

static void verify_standard_input_and_folders(void **state) {
    static const char *const words[] = {"import", "-", "--json", NULL};
    (void)state;
    struct said said = helper_say(words, "{\"step\": 0, \"x\": 1.5}\n{\"step\": 1, \"x\": 2.5}\n");
    assert_int_equal(said.code, 0);
    require_text(said.out, "\"format\": \"jsonl\"");
    require_text(said.out, "\"log\": \"standard input\"");
    require_text(said.out, "its least step is 0");
    helper_free(&said);
    mkdir("run", 0777);
    mkdir("run/checkpoint-9", 0777);
    mkdir("run/checkpoint-10", 0777);
    mkdir("run/checkpoint-x", 0777);
    helper_write("run/checkpoint-9/trainer_state.json", "{\"log_history\": []}");
    helper_write("run/checkpoint-10/trainer_state.json", state_text);
    json_t *object = import_json("import run --json"); /* 10 is behind 9 */
    assert_int_equal(number(object, "rows"), 2);
    json_decref(object);
    mkdir("steps", 0777);
    helper_write("steps/metrics_step9.json", "{\"train/CE loss\": 2.5}");
    helper_write("steps/metrics_step10.json", "{\"train/CE loss\": 2.25}");
    said = helper_run(0, "export steps --to torchtitan"); /* sorted by step, not by name */
    assert_string_equal(said.out, "9 2.5000000000000000e+00\n10 2.25\n");
    helper_free(&said);
    mkdir("none", 0777);
    helper_refuse(2, "import none", "none: expected a folder with trainer_state.json");
    mkdir("none/.aim", 0777);
    helper_refuse(2, "import none", "none: expected a log, got an Aim repository");
    /* The repository itself, too; under another name by what is in it. */
    helper_refuse(2, "import none/.aim", "none/.aim: expected a log, got an Aim repository");
    helper_refuse(2, "import none/.aim//", "metric.dataframe().to_csv(FILE)");
    mkdir("run.aim", 0777);
    helper_refuse(2, "import run.aim", "run.aim: expected a folder with trainer_state.json");
    helper_write("run.aim/run_metadata.sqlite", "");
    helper_refuse(2, "import run.aim", "run.aim: expected a folder with trainer_state.json");
    mkdir("run.aim/meta", 0777);
    helper_refuse(2, "import run.aim", "run.aim: expected a log, got an Aim repository");
    verify_mlflow_runs();
}

/* Reals must have the fewest digits that read back; texts that only look like reals must stay as
 * they are. */
static void validate_short_reals(void **state) {
    (void)state;
    helper_write("short.jsonl", "{\"step\": 1, \"lr\": 0.30000000000000004, \"a\\\"0.10 1e5\": 2}\n"
                                "{\"step\": 2, \"lr\": 5e-07}\n");
    struct said said = helper_run(0, "import short.jsonl --json");
    require_text(said.out, "\"least\": 5e-07,\n      \"most\": 0.30000000000000004,\n");
    require_text(said.out, "\"source\": \"a\\\"0.10 1e5\",\n      \"values\": 1,\n      "
                           "\"least\": 2.0,\n");
    helper_free(&said);
}

static void validate_map_and_base(void **state) {
    (void)state;
    helper_write("own.jsonl", "{\"k\": 5, \"my loss\": 0.5}\n{\"k\": 6, \"my loss\": 0.25}\n");
    struct said said = helper_run(0, "export own.jsonl --to csv --map step=k --step-base 5");
    assert_string_equal(said.out, "step,my loss\n1,0.50\n2,0.25\n");
    helper_free(&said);
    helper_refuse(2, "import own.jsonl --map loss=loss", "expected a column of the log");
    helper_refuse(2, "import own.jsonl --map loss", "--map: expected OURS=THEIRS");
    helper_refuse(2, "import own.jsonl --map los=k", "one of our names");
    helper_refuse(2, "import own.jsonl --step-base x", "--step-base: expected an integer");
    helper_refuse(2, "import own.jsonl --format xml", "expected a format of logs");
    helper_refuse(2, "import missing.json", "missing.json: cannot open");
}

/* The columns of a run must be exact, for both arms, and the same after a way through CSV. */
static void verify_run_of_a_trace(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 3", "seed: 3",
                    "loop: {update: [count, clip, schedule, optimize, log, zero]}");
    helper_accept(1, "run s.yaml -o run.h5 --quiet");
    json_t *object = import_json("import run.h5 --json");
    assert_string_equal(json_string_value(json_object_get(object, "format")), "trace");
    assert_int_equal(number(object, "rows"), 3);
    static const char *const names[] = {"loss",   "lr_applied", "lr_logged", "grad_norm",
                                        "tokens", "skipped",    "epoch",     "param_norm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *column = column_named(object, names[i]);
        assert_int_equal(number(column, "values"), 3);
        assert_true(number(column, "quantum_most") == 0.0);
    }
    json_t *test = import_json("import run.h5 --run test --json");
    assert_false(json_equal(column_named(object, "lr_applied"), column_named(test, "lr_applied")));
    helper_accept(0, "export run.h5 --to csv -o run.csv");
    json_t *csv = import_json("import run.csv --json");
    assert_int_equal(number(csv, "step_base"), 1); /* epoch and step make no Lightning log */
    const json_t *exact = column_named(object, "loss"), *back = column_named(csv, "loss");
    assert_true(number(exact, "least") == number(back, "least"));
    assert_true(number(back, "quantum_most") == 0.0);
    json_decref(csv);
    helper_accept(0, "export run.h5 --to jsonl --names open-instruct -o named.jsonl");
    csv = import_json("import named.jsonl --json");
    back = column_named(csv, "loss");
    assert_true(number(exact, "least") == number(back, "least"));
    helper_refuse(2, "export run.h5 --to csv --names axolotl", "expected names of trl, open-instr");
    helper_refuse(2, "export run.h5 --to megatron --names trl", "megatron has names of its own");
    json_decref(object);
    json_decref(test);
    json_decref(csv);
    helper_refuse(2, "import run.h5 --run nobody", "expected a run of this trace (baseline, test");
}

static void verify_files(void **state) {
    (void)state;
    helper_write("state.json", state_text);
    helper_write("there.csv", "mine");
    helper_refuse(2, "export state.json --to csv -o there.csv", "there.csv: exists");
    char *text = helper_read("there.csv", NULL);
    assert_string_equal(text, "mine");
    free(text);
    helper_accept(0, "export state.json --to csv -o there.csv --overwrite");
    text = helper_read("there.csv", NULL);
    require_text(text, "step,loss,learning_rate,grad_norm\n1,0.6931,");
    free(text);
    struct said plain = helper_run(0, "export state.json --to csv");
    struct said dash = helper_run(0, "export state.json --to csv -o -");
    assert_string_equal(plain.out, dash.out);
    assert_int_equal(access("-", F_OK), -1);
    helper_free(&plain);
    helper_free(&dash);
    helper_refuse(2, "export state.json --to xml", "expected csv, jsonl");
    helper_refuse(2, "export state.json", "expected --to");
    helper_refuse(2, "import state.json -o nowhere/x.h5", "nowhere/x.h5");
    helper_accept(0, "import state.json -o twice.h5");
    helper_refuse(2, "import state.json -o twice.h5", "exists");
    helper_write("rows.jsonl", "{\"step\": 2, \"loss\": 1.5}\n{\"step\": 1, \"loss\": 1.5}\n");
    helper_refuse(2, "export rows.jsonl --to megatron -o gone.json", "expected rising steps");
    assert_false(helper_exists("gone.json"));
}

/* Returns the status of a command whose files may not grow beyond `bytes`; this limit stands for a
 * full disk. */
static int run_limited(const char *line, rlim_t bytes) {
    char command[512];
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = bytes;
    snprintf(command, sizeof command, "'%s' %s >/dev/null 2>/dev/null", TWINSTEP_BINARY, line);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int how = system(command);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    return how;
}

static void write_rows(const char *path, int rows) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 1; i <= rows; i++)
        fprintf(file, "{\"step\": %d, \"loss\": %d.5}\n", i, i);
    assert_int_equal(fclose(file), 0);
}

/* Wherever the disk is full, from the first object to the last text, no .part may stay. */
static void verify_failed_imports_leave_nothing(void **state) {
    (void)state;
    struct stat whole;
    int refused = 0, written = 0;
    write_rows("limit.jsonl", 700);
    helper_accept(0, "import limit.jsonl -o whole.h5");
    assert_int_equal(stat("whole.h5", &whole), 0);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* HDF5 leaks when a write fails */
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (rlim_t size = 0; size <= (rlim_t)whole.st_size + 500; size += size < 30000 ? 6000 : 500) {
        const int how = run_limited("import limit.jsonl -o limit.h5", size);
        if (how != 0 && how != 2 << 8) fail_msg("limit %llu: %#x", (unsigned long long)size, how);
        if (helper_exists("limit.h5.part"))
            fail_msg("limit %llu: .part is left", (unsigned long long)size);
        assert_int_equal(helper_exists("limit.h5"), how == 0);
        refused += how != 0;
        written += how == 0;
        unlink("limit.h5");
    }
    signal(SIGXFSZ, SIG_DFL);
    unsetenv("ASAN_OPTIONS");
    assert_true(refused >= 20 && written >= 1);
}

/* The old bytes must stay where new ones do not fit. What is not a regular file is written to, not
 * replaced. */
static void verify_failed_exports_leave_the_old(void **state) {
    (void)state;
    write_rows("many.jsonl", 700);
    helper_write("kept.csv", "old");
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(run_limited("export many.jsonl --to csv -o kept.csv --overwrite", 2000),
                     2 << 8);
    assert_int_equal(run_limited("export many.jsonl --to csv -o none.csv", 2000), 2 << 8);
    signal(SIGXFSZ, SIG_DFL);
    char *text = helper_read("kept.csv", NULL);
    assert_string_equal(text, "old");
    free(text);
    assert_false(helper_exists("none.csv") || helper_exists("none.csv.part") ||
                 helper_exists("kept.csv.part"));
    assert_int_equal(symlink("/dev/full", "full"), 0);
    helper_refuse(2, "export many.jsonl --to csv -o full", "full: exists");
    helper_refuse(2, "export many.jsonl --to csv -o full --overwrite", "full: cannot write: No sp");
    struct stat info;
    assert_true(lstat("full", &info) == 0 && S_ISLNK(info.st_mode));
    helper_write("taken.csv.part", "another's");
    helper_accept(0, "export many.jsonl --to csv -o taken.csv");
    text = helper_read("taken.csv.part", NULL);
    assert_string_equal(text, "another's");
    free(text);
    assert_false(helper_exists("taken.csv.part2"));
}

/* No name of an input, and no part of a folder that is read, may be written over. */
static void verify_inputs_are_never_outputs(void **state) {
    (void)state;
    static const char *const lines[] = {
        "export in.jsonl --to csv --overwrite -o in.jsonl",
        "export in.jsonl --to csv --overwrite -o ./in.jsonl",
        "export in.jsonl --to csv --overwrite -o in-hard.jsonl",
        "export in-hard.jsonl --to csv --overwrite -o in-soft.jsonl",
        "export in-run --to csv --overwrite -o in-run/checkpoint-2/trainer_state.json",
        "import in.jsonl --overwrite -o in.jsonl",
        "import in.h5 --overwrite -o in.h5",
        "import killed.h5.part --overwrite -o killed.h5",
        "lr check in.jsonl --expect hf --lr 1e-3 --steps 2 --junit in.jsonl",
        "lr check in.jsonl --expect hf --lr 1e-3 --steps 2 --junit in-soft.jsonl",
        "run in.yaml --overwrite -o in.yaml",
        "suite in-suite --junit in-suite/in.yaml"};
    static const char *const files[] = {"in.jsonl", "in-run/checkpoint-2/trainer_state.json",
                                        "in.h5",    "killed.h5.part",
                                        "in.yaml",  "in-suite/in.yaml"};
    char *before[sizeof files / sizeof *files];
    size_t length[sizeof files / sizeof *files];
    write_rows("in.jsonl", 2);
    assert_true(link("in.jsonl", "in-hard.jsonl") == 0 &&
                symlink("in.jsonl", "in-soft.jsonl") == 0);
    assert_true(mkdir("in-run", 0777) == 0 && mkdir("in-run/checkpoint-2", 0777) == 0);
    assert_int_equal(mkdir("in-suite", 0777), 0);
    helper_write("in-run/checkpoint-2/trainer_state.json", state_text);
    helper_accept(0, "import in.jsonl -o in.h5");
    helper_accept(0, "import in.jsonl -o killed.h5.part");
    helper_scenario("in.yaml", "steps: 2", "seed: 3", "");
    helper_scenario("in-suite/in.yaml", "steps: 2", "seed: 3", "");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        before[i] = helper_read(files[i], &length[i]);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        helper_refuse(2, lines[i], "expected an output that is not read, got the input");
    char command[256];
    snprintf(command, sizeof command,
             "'%s' export - --to csv -o in.jsonl --overwrite <in.jsonl 2>&-", TWINSTEP_BINARY);
    assert_int_equal(system(command), 2 << 8);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t now;
        char *text = helper_read(files[i], &now);
        if (now != length[i] || memcmp(text, before[i], now) != 0) fail_msg("%s changed", files[i]);
        free(text);
        free(before[i]);
    }
    assert_false(helper_exists("killed.h5"));
}

static void validate_lists(void **state) {
    (void)state;
    struct said said = helper_run(0, "list formats");
    require_text(said.out, "hf-trainer-state");
    require_text(said.out, "twinstep export --to: ");
    helper_free(&said);
    said = helper_run(0, "list columns");
    require_text(said.out, "lr_logged");
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_import),
        cmocka_unit_test(verify_standard_input_and_folders),
        cmocka_unit_test(validate_short_reals),
        cmocka_unit_test(validate_map_and_base),
        cmocka_unit_test(verify_run_of_a_trace),
        cmocka_unit_test(verify_files),
        cmocka_unit_test(verify_failed_imports_leave_nothing),
        cmocka_unit_test(verify_failed_exports_leave_the_old),
        cmocka_unit_test(verify_inputs_are_never_outputs),
        cmocka_unit_test(validate_lists),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
