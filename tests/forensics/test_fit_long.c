/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Logs of long trainings, in which more updates are skipped than a search tries one by one: whether
 * they are explained without a hint, and how much memory a row costs. The columns are computed here
 * from the schedules' formulas, and the memory is counted by a source of arenas, not by the system.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forensics/doctor/doctor.h"
#include "logs/import.h"

#define TOTAL 60000
#define WARMUP 600
#define PEAK 3e-4
#define SKIPS 40

/* ---- a source that counts ---- */

static size_t held, most_held;

/* In front of each piece, as wide as what malloc aligns to. */
union size {
    size_t bytes;
    max_align_t align;
};

static enum status take(size_t bytes, void **out) {
    union size *const piece = (union size *)calloc(1, sizeof *piece + bytes);
    if (piece == NULL) FAIL(STATUS_MEMORY, "a piece of %zu bytes", bytes);
    piece->bytes = bytes;
    held += bytes;
    if (held > most_held) most_held = held;
    *out = piece + 1;
    return STATUS_OK;
}

static void give(void *memory) {
    union size *const piece = (union size *)memory - 1;
    held -= piece->bytes;
    free(piece);
}

static const struct arena_source counting = {.take = take, .give = give};

/* ---- the logs ---- */

struct training {
    const char *schedule, *format; /* of a printed LR */
    int next; /* 1: a row shows the LR of the next update (Trainers up to 4.50) */
    uint64_t every;
};

/* transformers optimization.py: the lambdas of get_linear_schedule_with_warmup, get_cosine_.. and
 * get_wsd_schedule with its cosine and a decay of a tenth of the run. */
static double rate(const char *schedule, double u) {
    const double pi = 3.14159265358979323846, decay = TOTAL / 10;
    if (u < WARMUP) return PEAK * (u / WARMUP);
    if (strcmp(schedule, "linear") == 0) return PEAK * fmax(0.0, (TOTAL - u) / (TOTAL - WARMUP));
    if (strcmp(schedule, "cosine") == 0)
        return PEAK *
               fmax(0.0, 0.5 * (1.0 + cos(pi * 0.5 * 2.0 * ((u - WARMUP) / (TOTAL - WARMUP)))));
    if (u < TOTAL - decay) return PEAK;
    return PEAK * fmax(0.0, 0.5 * (1.0 + cos(pi * 0.5 * 2.0 * ((u - (TOTAL - decay)) / decay))));
}

/* Skipped updates, strewn over the run by a fixed rule: 700, 2193, .. and none in the last rows. */
static int is_skipped(uint64_t update) {
    return update >= 700 && (update - 700) % 1493 == 0 && (update - 700) / 1493 < SKIPS;
}

/* Prints rows of step, LR and loss. The caller frees them. */
static char *print(const struct training *t, size_t *length) {
    char *const text = (char *)malloc(64 * (TOTAL / t->every + 2));
    uint64_t counter = 0;
    assert_non_null(text);
    *length = (size_t)sprintf(text, "step,learning_rate,loss\n");
    for (uint64_t k = 1; k <= TOTAL; k++) {
        const uint64_t before = counter;
        char lr[40];
        counter += !is_skipped(k);
        if (k % t->every != 0) continue;
        const double at = rate(t->schedule, (double)(t->next ? counter : before));
        snprintf(lr, sizeof lr, t->format, at);
        *length +=
            (size_t)sprintf(text + *length, "%zu,%s,2.%04zu\n", (size_t)k, lr, (size_t)k % 9973);
    }
    return text;
}

/* Does what `twinstep doctor` does, in an arena that is counted. */
static struct doctor_report examine(const struct training *t, struct arena *arena,
                                    struct fit_set *set) {
    struct log_options how;
    struct doctor_options asked;
    struct doctor_report report;
    struct fit_known known;
    struct series *series;
    struct log *log;
    size_t length;
    char *const text = print(t, &length);
    arena->source = &counting;
    held = most_held = 0;
    log_options_init(&how);
    doctor_options_init(&asked);
    fit_known_init(&known);
    assert_int_equal(log_import_bytes("long.csv", text, length, &how, arena, &log), STATUS_OK);
    assert_int_equal(arena_take(arena, 1, sizeof *series, "series", &series), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, series), STATUS_OK);
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    assert_int_equal(fit_series(series, &known, arena, set), STATUS_OK);
    assert_int_equal(doctor_examine(log, &asked, set, arena, &report), STATUS_OK);
    free(text);
    return report;
}

/* The fit of a contract that applies what the first one does: Megatron's WSD may fall as
 * transformers' does. */
static const struct fit *contract_of(const struct fit_set *set, const char *name) {
    size_t i = 0;
    while (i < set->count && (strcmp(set->fits[i].contract->name, name) != 0 ||
                              set->fits[i].same_applied != set->fits[0].same_applied))
        i++;
    if (i == set->count) fail_msg("%s", set->fits[0].text);
    return &set->fits[i];
}

/* Nobody says contract or total, and more updates are skipped than are tried of every model. */
static void validate_unaided(void **state) {
    (void)state;
    static const struct training trainings[] = {
        {"linear", "%.17g", 0, 1}, {"cosine", "%.6E", 1, 1},    {"linear", "%.3E", 1, 1},
        {"wsd", "%.17g", 0, 1},    {"cosine", "%.17g", 0, 100}, {"linear", "%.6E", 0, 10}};
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        const struct training *const t = &trainings[i];
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        const struct doctor_report report = examine(t, &arena, &set);
        assert_true(set.count > 0);
        const struct fit *const fit = contract_of(&set, t->next ? "hf-4.50" : "hf");
        assert_true(fit->lr == PEAK);
        assert_true(fit->warmup == WARMUP);
        /* Whole updates that no row has seen are none of the answer. */
        const uint64_t skipped = fit_skipped(fit);
        if (skipped < SKIPS - 2 || skipped > SKIPS) fail_msg("%zu: %s", (size_t)skipped, fit->text);
        for (size_t s = 0; s < fit->skip_count; s++) {
            size_t inside = 0;
            for (uint64_t k = fit->skips[s].first; k <= fit->skips[s].last; k++)
                inside += is_skipped(k) != 0;
            assert_true(inside >= fit->skips[s].count);
        }
        assert_int_equal(report.finding_count, 0);
        assert_int_equal(report.remark_count > 0, 1);
        arena_close(&arena);
        assert_int_equal(held, 0);
    }
}

/* The bytes that a row costs at most, all arenas together, while a log of two columns is read,
 * fitted and examined: of the log 16 and 12 for each column, of a series 40 for each column, of the
 * metric that a feedback schedule would follow 16, for which two ask. What may have been skipped
 * before a row takes 24, while it is looked for and the second column is not looked at. Six million
 * rows stay below a GiB by this. */
#define ROW_BYTES 156

static size_t bytes_held(struct training t, uint64_t every) {
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    t.every = every;
    (void)examine(&t, &arena, &set);
    assert_true(set.count > 0);
    arena_close(&arena);
    return most_held;
}

/* What is held for a log and not for a row of it is left out: every second row is read as well. */
static void verify_memory_of_a_row(void **state) {
    (void)state;
    static const struct training trainings[] = {{"linear", "%.17g", 0, 0},
                                                {"cosine", "%.6E", 1, 0}};
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        const size_t all = bytes_held(trainings[i], 1), half = bytes_held(trainings[i], 2);
        assert_true(all > half);
        const size_t row = (all - half) / (TOTAL / 2);
        if (row > ROW_BYTES) fail_msg("%s: %zu bytes a row", trainings[i].schedule, row);
    }
}

/* Where nothing explains a column, the rows that are not held on their way are taken only where
 * some are. */
static void verify_held_rows_are_counted_first(void **state) {
    (void)state;
    static struct series_point points[1000];
    struct arena arena = ARENA_EMPTY;
    const struct series series = {points, COUNT_OF(points)};
    const struct fit_set set = {.series = &series, .why = FIT_WHY_NOTHING};
    struct fit_known known;
    struct fit_clamp clamp;
    fit_known_init(&known);
    for (size_t i = 0; i < COUNT_OF(points); i++)
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = PEAK * (1.0 + (double)(i * 7919 % 997))};
    assert_int_equal(fit_find_clamp(&series, &known, &set, &arena, &clamp), STATUS_OK);
    assert_null(clamp.fit);
    assert_int_equal(arena.total, 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_unaided),
        cmocka_unit_test(verify_memory_of_a_row),
        cmocka_unit_test(verify_held_rows_are_counted_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
