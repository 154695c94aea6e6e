/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Logs of real trainers (tests/golden/logs). The doctor must be quiet on every healthy one and find
 * the NaN in the others; trainer_state.json and the event files of one run must be equal within
 * precision; two runs that differ must be told apart, with the place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forensics/compare.h"
#include "forensics/doctor/doctor.h"
#include "logs/import.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"

#define ROOT TWINSTEP_SOURCE_DIR "/tests/golden/logs/"
#define MOST 128
#define TEXT 1024

struct paths {
    size_t count;
    char path[MOST][TEXT];
};

static int ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int is_log(const char *name) {
    return ends_with(name, "trainer_state.json") || ends_with(name, "console.txt") ||
           strstr(name, "tfevents") != NULL || ends_with(name, "metrics.csv") ||
           ends_with(name, "metrics.jsonl");
}

static int by_name(const void *a, const void *b) {
    return strcmp((const char *)a, (const char *)b);
}

/* Lists every entry of a folder below ROOT, or only the logs, by name. */
static void list(const char *folder, int logs, struct paths *out) {
    DIR *dir = opendir(folder);
    if (dir == NULL) return;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || (logs && !is_log(entry->d_name))) continue;
        assert_true(out->count < MOST);
        snprintf(out->path[out->count++], TEXT, "%s/%s", folder, entry->d_name);
    }
    closedir(dir);
    qsort(out->path, out->count, sizeof out->path[0], by_name);
}

static struct log *import(const char *path, struct arena *arena) {
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    if (log_import(path, &options, arena, &log) != STATUS_OK)
        fail_msg("%s: %s", path, status_text());
    return log;
}

/* ---- doctor ---- */

/* Returns what is wrong with a run that is not healthy, as far as it shows without a contract. */
static const char *sickness(const char *path) {
    if (strstr(path, "-nan/") != NULL) return "loss_not_finite";
    if (strstr(path, "accelerate-none/") != NULL) return "lr_zero_at_1/N_of_run";
    return NULL;
}

static void fit(const struct log *log, struct arena *arena, struct series *series,
                struct fit_set *out) {
    struct fit_known known;
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    assert_int_equal(
        series_of(log, log->step_guessed ? NULL : log_column_of(log, LOG_LR_LOGGED), arena, series),
        STATUS_OK);
    assert_int_equal(fit_series(series, &known, arena, out), STATUS_OK);
}

static void examine(const char *path, int pinned, size_t *checked) {
    struct arena arena = ARENA_EMPTY;
    struct doctor_options options;
    struct doctor_report report;
    struct series series;
    struct fit_set fits;
    const struct log *log = import(path, &arena);
    fit(log, &arena, &series, &fits);
    doctor_options_init(&options);
    assert_int_equal(doctor_examine(log, &options, &fits, &arena, &report), STATUS_OK);
    if (pinned) {
        FILE *out = golden_begin("logs.txt", "%s", path + strlen(ROOT));
        golden_fits(out, &fits, 3);
        golden_findings(out, &report);
        golden_end();
    }
    assert_true(report.checked > 0);
    *checked += report.checked;
    const char *sick = sickness(path);
    for (size_t i = 0; i < report.finding_count; i++)
        if (sick == NULL)
            fail_msg("%s: %s: %s", path, report.findings[i].id, report.findings[i].words);
    if (sick != NULL) {
        assert_true(report.finding_count >= 1);
        assert_string_equal(report.findings[0].id, sick);
    }
    arena_close(&arena);
}

/* Visits every third run, or all of them; what is said of every third is held against the committed
 * text. */
static void visit_folders(void (*visit)(const char *folder, int pinned, size_t *tally),
                          size_t *tally) {
    static struct paths eras, runs;
    memset(&eras, 0, sizeof eras);
    list(ROOT, 0, &eras);
    for (size_t e = 0; e < eras.count; e++) {
        memset(&runs, 0, sizeof runs);
        list(eras.path[e], 0, &runs);
        for (size_t r = 0; r < runs.count; r += helper_size(2, 3, 1))
            visit(runs.path[r], r % 3 == 0, tally);
    }
}

static void examine_folder(const char *folder, int pinned, size_t *tally) {
    static struct paths logs;
    memset(&logs, 0, sizeof logs);
    list(folder, 1, &logs);
    for (size_t i = 0; i < logs.count; i++) {
        size_t checked = 0;
        examine(logs.path[i], pinned, &checked);
        ++*tally;
    }
}

static void verify_doctor_is_quiet(void **state) {
    (void)state;
    size_t logs = 0;
    visit_folders(examine_folder, &logs);
    print_message("%zu logs of real trainers\n", logs);
    assert_true(logs >= 60 / helper_size(2, 3, 1));
}

/* ---- compare ---- */

static int32_t compare_files(const char *a, const char *b, struct arena *arena,
                             struct compare_report *report) {
    struct compare_input input[2];
    struct series *series;
    struct fit_set *fits;
    memset(input, 0, sizeof input);
    assert_int_equal(arena_take(arena, 2, sizeof *series, "series", &series), STATUS_OK);
    assert_int_equal(arena_take(arena, 2, sizeof *fits, "fits", &fits), STATUS_OK);
    for (size_t s = 0; s < 2; s++) {
        input[s].log = import(s == 0 ? a : b, arena);
        fit(input[s].log, arena, &series[s], &fits[s]);
        input[s].fits = &fits[s];
        input[s].may_end = 1; /* a run that was resumed has a file of its first part */
    }
    assert_int_equal(compare_logs(input, arena, report), STATUS_OK);
    return report->verdict;
}

static const char *first_name(const struct compare_report *report) {
    return report->order_count == 0 ? "nothing"
                                    : log_names[report->columns[report->order[0]].name].name;
}

/* Of a training whose losses became NaN nearly at once there are too few numbers that could agree:
 * two logs of it are not called equal, and nothing in them differs. */
static int32_t expected_verdict(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *const column = &report->columns[i];
        if (column->name == LOG_LOSS && column->not_finite > column->pairs / 2)
            return COMPARE_VERDICT_UNTESTABLE;
    }
    return COMPARE_VERDICT_EQUAL;
}

static void compare_folder(const char *folder, int pinned, size_t *tally) {
    static struct paths logs;
    char state[TEXT + 32];
    int known = 0;
    memset(&logs, 0, sizeof logs);
    list(folder, 1, &logs);
    snprintf(state, sizeof state, "%s/trainer_state.json", folder);
    for (size_t i = 0; i < logs.count; i++)
        known |= strcmp(logs.path[i], state) == 0;
    for (size_t i = 0; known && i < logs.count; i++) {
        struct arena arena = ARENA_EMPTY;
        struct compare_report report;
        if (strstr(logs.path[i], "tfevents") == NULL) continue;
        const int32_t verdict = compare_files(state, logs.path[i], &arena, &report);
        if (pinned) {
            golden_comparison(golden_begin("logs.txt", "state and %s", logs.path[i] + strlen(ROOT)),
                              &report);
            golden_end();
        }
        if (verdict != expected_verdict(&report) || report.order_count > 0)
            fail_msg("%s: %s, first %s", logs.path[i],
                     compare_verdict_name((enum compare_verdict)verdict), first_name(&report));
        assert_true(report.to >= 2);
        assert_true(report.lr.state == COMPARE_LR_SAME || report.lr.state == COMPARE_LR_UNTESTABLE);
        ++*tally;
        arena_close(&arena);
    }
}

static void verify_one_run_is_equal(void **state) {
    (void)state;
    size_t pairs = 0;
    visit_folders(compare_folder, &pairs);
    print_message("%zu pairs of logs of one run\n", pairs);
    assert_true(pairs >= 20 / helper_size(2, 3, 1));
}

static void verify_runs_differ(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *first;
        uint64_t update;
    } cases[] = {{"hf5/dpo-linear", "hf5/dpo-linear-cold", "lr_logged", 1},
                 {"hf446/dpo-linear", "hf446/dpo-linear-cold", "lr_logged", 1},
                 {"hf5/dpo-linear", "hf5/dpo-fast", "lr_logged", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = ARENA_EMPTY;
        struct compare_report report;
        char a[TEXT], b[TEXT];
        snprintf(a, sizeof a, ROOT "%s/trainer_state.json", cases[i].a);
        snprintf(b, sizeof b, ROOT "%s/trainer_state.json", cases[i].b);
        assert_int_equal(compare_files(a, b, &arena, &report), COMPARE_VERDICT_DIFFERS);
        golden_comparison(golden_begin("logs.txt", "%s and %s", cases[i].a, cases[i].b), &report);
        golden_end();
        const struct compare_column *first = &report.columns[report.order[0]];
        print_message("%s, %s: %s at %llu: %s\n", cases[i].a, cases[i].b,
                      log_names[first->name].name, (unsigned long long)first->first_update,
                      report.meaning);
        assert_string_equal(log_names[first->name].name, cases[i].first);
        assert_int_equal(first->first_update, cases[i].update);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_doctor_is_quiet),
                                       cmocka_unit_test(verify_one_run_is_equal),
                                       cmocka_unit_test(verify_runs_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
