/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs of real runs (tests/golden/logs, made by transformers, TRL, Lightning and OLMo-core): the
 * console, the event files and the JSON or CSV of one run must tell the same numbers, each within
 * its own quanta. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/logs/helper_logs.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/logs"
#define PATH_SIZE 1024

static struct log *import(struct arena *arena, const char *path, const char *format) {
    struct log_options options;
    struct log *log = NULL;
    log_options_init(&options);
    if (log_import(path, &options, arena, &log) != STATUS_OK) fail_msg("%s", status_text());
    if (strcmp(log->format, format) != 0) fail_msg("%s: read as %s", path, log->format);
    return log;
}

static int has_file(char path[PATH_SIZE], const char *run, const char *name) {
    snprintf(path, PATH_SIZE, "%s/%s", run, name);
    return access(path, R_OK) == 0;
}

/* Calls `visit` for every folder tests/golden/logs/X/Y; returns for how many it gave 1. */
static int each_run(int (*visit)(const char *run)) {
    char group_path[PATH_SIZE / 4], run[PATH_SIZE / 2];
    const struct dirent *group, *entry;
    int count = 0;
    DIR *golden = opendir(GOLDEN);
    assert_non_null(golden);
    while ((group = readdir(golden)) != NULL) {
        snprintf(group_path, sizeof group_path, "%s/%.60s", GOLDEN, group->d_name);
        DIR *runs = group->d_name[0] == '.' ? NULL : opendir(group_path);
        while (runs != NULL && (entry = readdir(runs)) != NULL) {
            snprintf(run, sizeof run, "%s/%.100s", group_path, entry->d_name);
            if (entry->d_name[0] != '.') count += visit(run);
        }
        if (runs != NULL) closedir(runs);
    }
    closedir(golden);
    return count;
}

static const char *const shared[] = {"loss",           "learning_rate",    "grad_norm",
                                     "rewards/chosen", "rewards/rejected", "rewards/accuracies",
                                     "logps/chosen",   "logps/rejected"};

static int is_training(const struct log *log, size_t row) {
    const struct log_column *rate = log_column_of(log, LOG_LR_LOGGED);
    const struct log_column *loss = log_column_of(log, LOG_LOSS);
    return rate != NULL && loss != NULL && log_has(rate, row) && log_has(loss, row);
}

static size_t next_training(const struct log *log, size_t row) {
    while (row < log->rows && !is_training(log, row))
        row++;
    return row;
}

/* Two rows must be equal as far as both were printed; `prefix` stands before the names of b. */
static void check_rows(const struct log *a, size_t i, const struct log *b, size_t j,
                       const char *prefix) {
    char name[64];
    for (size_t n = 0; n < COUNT_OF(shared); n++) {
        snprintf(name, sizeof name, "%s%s", prefix, shared[n]);
        const struct log_column *x = log_column_by_source(a, shared[n]);
        const struct log_column *y = log_column_by_source(b, name);
        if ((x == NULL) != (y == NULL)) fail_msg("%s: only one has %s", a->path, shared[n]);
        if (x == NULL) continue;
        const enum log_order order =
            log_compare(x->value[i], (double)x->quantum[i], y->value[j], (double)y->quantum[j]);
        if (order != LOG_EQUAL && order != LOG_WITHIN)
            fail_msg("%s, %s: %s of rows %zu and %zu: %.17g (+-%g/2) and %.17g (+-%g/2)", a->path,
                     b->path, shared[n], i, j, x->value[i], (double)x->quantum[i], y->value[j],
                     (double)y->quantum[j]);
    }
}

/* A resumed run's console may hold more rows than its last trainer_state.json. */
static int check_console(const char *run) {
    char path[PATH_SIZE];
    struct arena arena = ARENA_EMPTY;
    if (strstr(run, "resume") != NULL || !has_file(path, run, "trainer_state.json")) return 0;
    const struct log *state = import(&arena, path, "hf-trainer-state");
    if (!has_file(path, run, "console.txt")) return 0;
    const struct log *console = import(&arena, path, "hf-console");
    size_t row = next_training(state, 0);
    for (size_t i = 0; i < console->rows; i++) {
        if (row == state->rows) fail_msg("%s: more rows than trainer_state.json", run);
        check_rows(state, row, console, i, "");
        row = next_training(state, row + 1);
    }
    if (row != state->rows) fail_msg("%s: less rows than trainer_state.json", run);
    arena_close(&arena);
    return 1;
}

static size_t row_of_step(const struct log *log, int64_t step) {
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] == step && is_training(log, i)) return i;
    return log->rows;
}

/* The learning rates of the event file must be those of trainer_state.json, rounded to binary32. */
static void check_rounded(const struct log *state, size_t i, const struct log *events, size_t j) {
    const double exact = log_column_of(state, LOG_LR_LOGGED)->value[i];
    const double rounded = log_column_of(events, LOG_LR_LOGGED)->value[j];
    if ((double)(float)exact != rounded)
        fail_msg("%s: learning rate %.17g is not %.17g rounded", events->path, rounded, exact);
}

/* Compares the steps before `until` of one event file, and returns how many they are. */
static size_t check_events(struct arena *arena, const char *path, const struct log *state,
                           int64_t until) {
    const struct log *events = import(arena, path, "tensorboard");
    size_t checked = 0;
    for (size_t i = 0; i < events->rows; i++) {
        if (!is_training(events, i) || events->step[i] >= until) continue;
        const size_t row = row_of_step(state, events->step[i]);
        if (row == state->rows) fail_msg("%s: no such step in trainer_state.json", path);
        check_rows(state, row, events, i, "train/");
        check_rounded(state, row, events, i);
        checked++;
    }
    return checked;
}

static int check_tensorboard(const char *run) {
    char path[PATH_SIZE];
    struct arena arena = ARENA_EMPTY;
    size_t rows = 0, checked;
    int64_t until = INT64_MAX;
    if (!has_file(path, run, "trainer_state.json")) return 0;
    const struct log *state = import(&arena, path, "hf-trainer-state");
    for (size_t i = next_training(state, 0); i < state->rows; i = next_training(state, i + 1))
        rows++;
    if (has_file(path, run, "events.out.tfevents.2.host")) {
        const struct log *second = import(&arena, path, "tensorboard");
        until = second->step[0];
        checked = check_events(&arena, path, state, INT64_MAX);
        assert_true(has_file(path, run, "events.out.tfevents.1.host"));
        checked += check_events(&arena, path, state, until);
    } else {
        if (!has_file(path, run, "events.out.tfevents.1.host")) return 0;
        checked = check_events(&arena, path, state, until);
    }
    if (checked != rows) fail_msg("%s: %zu of %zu rows in its event files", run, checked, rows);
    arena_close(&arena);
    return 1;
}

/* Both logs must say the LR that the optimizer used, as the run itself recorded it. */
static int check_lightning(const char *run) {
    char path[PATH_SIZE];
    struct arena arena = ARENA_EMPTY;
    if (!has_file(path, run, "metrics.csv")) return 0;
    const struct log *csv = import(&arena, path, "lightning");
    assert_true(has_file(path, run, "events.out.tfevents.1.host"));
    const struct log *events = import(&arena, path, "tensorboard");
    assert_true(has_file(path, run, "truth.json"));
    json_t *truth = json_load_file(path, 0, NULL);
    const json_t *applied = json_object_get(truth, "applied");
    assert_int_equal(csv->rows, json_array_size(applied));
    assert_int_equal(events->rows, csv->rows);
    for (size_t i = 0; i < csv->rows; i++) {
        const double rate = log_column_of(csv, LOG_LR_LOGGED)->value[i];
        assert_int_equal(csv->step[i], (int64_t)i + 1);
        assert_int_equal(events->step[i], (int64_t)i + 1);
        assert_true(rate == json_number_value(json_array_get(applied, i)));
        assert_true((double)log_column_of(csv, LOG_LR_LOGGED)->quantum[i] == 0.0);
        check_rounded(csv, i, events, i);
        assert_true(log_column_of(csv, LOG_LOSS)->value[i] ==
                    log_column_of(events, LOG_LOSS)->value[i]);
    }
    json_decref(truth);
    arena_close(&arena);
    return 1;
}

static void check_pair(const struct log *a, size_t i, const struct log *b, size_t j,
                       const char *source) {
    const struct log_column *x = log_column_by_source(a, source);
    const struct log_column *y = log_column_by_source(b, source);
    assert_non_null(x);
    assert_non_null(y);
    if (log_compare(x->value[i], (double)x->quantum[i], y->value[j], (double)y->quantum[j]) >
        LOG_WITHIN)
        fail_msg("%s: %s of rows %zu and %zu: %.17g (+-%g/2) and %.17g (+-%g/2)", a->path, source,
                 i, j, x->value[i], (double)x->quantum[i], y->value[j], (double)y->quantum[j]);
}

/* The numbers are rounded by format_float on the console and whole in metrics_step*.json; they must
 * be the same. */
static size_t check_metrics(const struct log *console, const struct log *metrics) {
    static const char *const sources[] = {"train/CE loss", "train/PPL", "optim/LR (group 0)",
                                          "optim/total grad norm", "throughput/device/TPS"};
    size_t checked = 0;
    for (size_t i = 0; i < metrics->rows; i++)
        for (size_t j = 0; j < console->rows; j++) {
            if (metrics->step[i] != console->step[j]) continue;
            for (size_t n = 0; n < COUNT_OF(sources); n++)
                check_pair(metrics, i, console, j, sources[n]);
            checked++;
        }
    return checked;
}

static int check_olmo(const char *run) {
    char path[PATH_SIZE];
    struct arena arena = ARENA_EMPTY;
    if (strstr(run, "/olmo-core-") == NULL) return 0;
    assert_true(has_file(path, run, "console.txt"));
    const struct log *console = import(&arena, path, "olmo-core");
    assert_true(check_metrics(console, import(&arena, run, "olmo-core-metrics")) >= 1);
    assert_true(has_file(path, run, "truth.json"));
    json_t *truth = json_load_file(path, 0, NULL);
    const json_t *applied = json_object_get(truth, "applied");
    const struct log_column *rate = log_column_of(console, LOG_LR_LOGGED);
    assert_int_equal(console->rows, json_array_size(applied));
    assert_int_equal(console->max_steps, console->rows);
    for (size_t i = 0; i < console->rows; i++) {
        const double used = json_number_value(json_array_get(applied, i));
        assert_int_equal(console->step[i], (int64_t)i + 1);
        if (log_compare(rate->value[i], (double)rate->quantum[i], used, 0.0) > LOG_WITHIN)
            fail_msg("%s: update %zu used %.17g, read %.17g", run, i + 1, used, rate->value[i]);
    }
    json_decref(truth);
    arena_close(&arena);
    return 1;
}

static void corroborate_console(void **state) {
    (void)state;
    const int runs = each_run(check_console);
    print_message("%d runs\n", runs);
    assert_true(runs >= 20);
}

static void corroborate_tensorboard(void **state) {
    (void)state;
    const int runs = each_run(check_tensorboard);
    print_message("%d runs\n", runs);
    assert_true(runs >= 20);
}

static void corroborate_lightning(void **state) {
    (void)state;
    assert_int_equal(each_run(check_lightning), 2);
}

static void corroborate_olmo_core(void **state) {
    (void)state;
    assert_true(each_run(check_olmo) >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_console),
        cmocka_unit_test(corroborate_tensorboard),
        cmocka_unit_test(corroborate_lightning),
        cmocka_unit_test(corroborate_olmo_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
