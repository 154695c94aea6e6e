/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs of real trainers (tests/golden/logs): the LR column must be the LRs that were in the
 * optimizer, and the forms that one run left (JSON, TensorBoard, console) must agree with each
 * other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "logs/import.h"
#include "tests/logs/helper_logs.h"

#define ROOT TWINSTEP_SOURCE_DIR "/tests/golden/logs/"

static struct log *import(struct arena *arena, const char *path) {
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    if (log_import(path, &options, arena, &log) != STATUS_OK) fail_msg("%s", status_text());
    return log;
}

static int exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

/* Calls `look` with every run of an era, of which there must be at least `least`. */
static void each_run(const char *era, int least, void (*look)(const char *era, const char *run)) {
    char path[600];
    int count = 0;
    snprintf(path, sizeof path, ROOT "%s", era);
    DIR *folder = opendir(path);
    if (folder == NULL) fail_msg("%s is missing", path);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, ROOT "%s/%.255s", era, entry->d_name);
        look(era, path);
        count++;
    }
    closedir(folder);
    assert_true(count >= least);
}

/* ---- against the truth ---- */

/* Returns the LR of update k, or NaN outside of what was recorded. */
static double applied(const char *run, int64_t update) {
    static const char *const names[] = {"truth.json", "truth-before.json"};
    double found = -1.0;
    for (size_t i = 0; i < 2 && found < 0.0; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        json_t *truth = json_load_file(path, 0, NULL);
        if (truth == NULL) continue;
        const int64_t first = json_integer_value(json_object_get(truth, "first"));
        const json_t *list = json_object_get(truth, "applied");
        if (update >= first && update - first < (int64_t)json_array_size(list))
            found = json_number_value(json_array_get(list, (size_t)(update - first)));
        json_decref(truth);
    }
    return found;
}

/* hf5 prints the LR that was used, the older versions that of the next update. */
static void check_rates(const char *era, const char *run) {
    struct arena arena = ARENA_EMPTY;
    char path[700];
    size_t compared = 0;
    const int next = strcmp(era, "hf5") != 0;
    snprintf(path, sizeof path, "%s/trainer_state.json", run);
    const struct log *log = import(&arena, path);
    const struct log_column *rate = log_column_of(log, LOG_LR_LOGGED);
    assert_string_equal(log->format, "hf-trainer-state");
    assert_non_null(rate);
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(rate, i)) continue;
        const double truth = applied(run, log->step[i] + next);
        if (truth < 0.0) continue; /* behind the last update */
        assert_true(rate->quantum[i] == 0.0f);
        if (rate->value[i] != truth)
            fail_msg("%s: update %d: %.17g is not %.17g", run, (int)log->step[i], rate->value[i],
                     truth);
        compared++;
    }
    assert_true(compared >= 3);
    arena_close(&arena);
}

static void corroborate_rates_with_the_optimizers(void **state) {
    (void)state;
    each_run("hf5", 10, check_rates);
    each_run("hf446", 5, check_rates);
    each_run("hf436", 4, check_rates);
}

/* ---- against each other ---- */

static size_t compare_column(const char *run, enum log_name name, const struct log *a, size_t i,
                             const struct log *b, size_t j) {
    const struct log_column *x = log_column_of(a, name), *y = log_column_of(b, name);
    if (x == NULL || y == NULL || !log_has(x, i) || !log_has(y, j)) return 0;
    if (log_compare(x->value[i], (double)x->quantum[i], y->value[j], (double)y->quantum[j]) ==
        LOG_DIFFERENT)
        fail_msg("%s: %s: row %zu of %s is %.17g (%g), row %zu of %s is %.17g (%g)", run,
                 log_names[name].name, i, a->format, x->value[i], (double)x->quantum[i], j,
                 b->format, y->value[j], (double)y->quantum[j]);
    return 1;
}

static size_t compare_rows(const char *run, const struct log *a, size_t i, const struct log *b,
                           size_t j) {
    size_t compared = 0;
    for (int name = LOG_LOSS; name <= LOG_LOGITS_REJECTED; name++)
        compared += compare_column(run, (enum log_name)name, a, i, b, j);
    return compared;
}

static void check_events(const char *run, const struct log *log, const char *path) {
    struct arena arena = ARENA_EMPTY;
    size_t compared = 0;
    const struct log *events = import(&arena, path);
    for (size_t i = 0; i < log->rows; i++)
        for (size_t j = 0; j < events->rows; j++)
            if (log->step[i] == events->step[j]) compared += compare_rows(run, log, i, events, j);
    assert_true(compared >= 8);
    arena_close(&arena);
}

/* The console numbers its own rows, so rows are paired by their order: both logs hold the training
 * rows in the same one. */
static void check_console(const char *run, const struct log *log, const char *path) {
    struct arena arena = ARENA_EMPTY;
    size_t compared = 0, j = 0;
    const struct log *console = import(&arena, path);
    const struct log_column *x = log_column_of(log, LOG_LOSS),
                            *y = log_column_of(console, LOG_LOSS);
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(x, i)) continue;
        while (j < console->rows && !log_has(y, j))
            j++;
        assert_true(j < console->rows);
        compared += compare_rows(run, log, i, console, j++);
    }
    assert_true(compared >= 8);
    arena_close(&arena);
}

static void check_forms(const char *era, const char *run) {
    struct arena arena = ARENA_EMPTY;
    char path[700];
    (void)era;
    if (strstr(run, "hf-resume") != NULL) return; /* its forms hold different rows: README.md */
    snprintf(path, sizeof path, "%s/trainer_state.json", run);
    const struct log *log = import(&arena, path);
    snprintf(path, sizeof path, "%s/events.out.tfevents.1.host", run);
    if (exists(path)) check_events(run, log, path);
    snprintf(path, sizeof path, "%s/console.txt", run);
    if (exists(path)) check_console(run, log, path);
    arena_close(&arena);
}

static void corroborate_forms_of_one_run(void **state) {
    (void)state;
    each_run("hf5", 10, check_forms);
    each_run("hf446", 5, check_forms);
    each_run("hf436", 4, check_forms);
}

static void validate_other_frameworks(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *rows = import(&arena, ROOT "accelerate/accelerate-both/metrics.jsonl");
    assert_string_equal(rows->format, "jsonl");
    assert_non_null(log_column_of(rows, LOG_LR_LOGGED));
    const struct log *alone = import(&arena, ROOT "accelerate/accelerate-both");
    assert_string_equal(alone->format, "jsonl");
    assert_int_equal(alone->rows, rows->rows);
    const struct log *olmo = import(&arena, ROOT "olmo-core/olmo-core-cosine/metrics_step10.json");
    assert_string_equal(olmo->format, "olmo-core-metrics");
    assert_int_equal(olmo->step[0], 10);
    logs_expect(olmo, "optim/LR (group 0)", 0, applied(ROOT "olmo-core/olmo-core-cosine", 10), 0.0);
    const struct log *folder = import(&arena, ROOT "olmo-core/olmo-core-cosine");
    assert_int_equal(folder->rows, 5); /* of steps 0, 5, 10, 15, 20 */
    assert_int_equal(folder->step[4], 20);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_rates_with_the_optimizers),
        cmocka_unit_test(corroborate_forms_of_one_run),
        cmocka_unit_test(validate_other_frameworks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
