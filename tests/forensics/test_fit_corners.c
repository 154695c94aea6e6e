/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Corners of the search of fits that a change of one token once passed unseen
 * (docs/measurements/mutation.md). The columns are computed here from the formulas of
 * transformers/optimization.py, and what must be found is what they were computed with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit.h"
#include "forensics/fit_solve.h"
#include "tests/forensics/helper_log.h"

static void put(struct series_point *points, size_t i, uint64_t update, double value) {
    points[i] = (struct series_point){.update = update, .row = i, .value = value};
}

/* get_polynomial_decay_schedule_with_warmup with power 1: from L to lr_end, and lr_end from then
 * on. Only the first row depends on L, and two updates were skipped before it. The row that gives
 * the peak stands at lr_end whatever L is, so the peak of four digits must be the one that is
 * known. */
static void validate_a_known_peak_where_no_row_tells_it(void **state) {
    (void)state;
    const double peak = 1.2345e-4, end = 1e-7, total = 60.0;
    struct arena arena = ARENA_EMPTY;
    struct series_point points[4];
    struct fit_known known;
    struct fit_set set;
    put(points, 0, 50, (peak - end) * (1.0 - 47.0 / total) + end);
    for (size_t i = 1; i < COUNT_OF(points); i++)
        put(points, i, 50 * (i + 1), end);
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "polynomial";
    known.request.lr = peak;
    known.request.warmup = 0.0;
    known.request.steps = 60;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    const struct fit *fit = &set.fits[0];
    assert_true(fit->lr == peak);
    assert_int_equal(fit->skip_count, 1);
    assert_int_equal(fit->skips[0].first, 1);
    assert_int_equal(fit->skips[0].last, 49);
    assert_int_equal(fit->skips[0].count, 2);
    arena_close(&arena);
}

/* A line over 950 updates, printed in four digits every 5, stands still from row 8 on, on a level
 * that no event explains. The row of the break is the first of a level behind rows that fall: what
 * fits in front of it are seven rows, and a search that does not stop there names no line at all.
 */
static void validate_a_fall_that_ends_on_a_level(void **state) {
    (void)state;
    const double peak = 3e-5, total = 950.0, quantum = 1e-8; /* 2.987e-05 */
    struct arena arena = ARENA_EMPTY;
    struct series_point points[19];
    struct fit_known known;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        const double counter = i < 7 ? 5.0 * (double)(i + 1) - 1.0 : 50.0;
        put(points, i, 5 * (i + 1), quantum * rint(peak * (1.0 - counter / total) / quantum));
        points[i].quantum = quantum;
    }
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.lr = peak;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_int_equal(set.count, 0);
    assert_int_equal(set.first_bad, 7);
    assert_non_null(set.partial);
    assert_string_equal(set.partial, "hf linear, peak 3e-05, no warm-up, total 950");
    arena_close(&arena);
}

/* The one model of hf's linear schedule whose peak and total are known. */
static struct fit_model *linear_model(double peak, uint64_t total, struct fit_known *known,
                                      struct arena *arena) {
    static const struct fit_decays none = {.count = 0};
    struct fit_model *models;
    size_t count;
    fit_known_init(known);
    known->request.contract = contract_find("hf");
    known->request.schedule = "linear";
    known->request.lr = peak;
    known->request.steps = total;
    assert_int_equal(fit_models(&known->request, known, &none, arena, &models, &count), STATUS_OK);
    assert_int_equal(count, 1);
    return models;
}

/* A line without warm-up, logged from update 100 on in three digits. The peak of 1 goes with a
 * warm-up of 400 - 301 / 0.753 = 0.27, so 0 and 1 are the whole warm-ups around it that there are.
 * Behind them come warm-ups that people type, each with a peak of its own; 2 is none of them. */
static void validate_the_warmups_around_a_known_peak(void **state) {
    (void)state;
    const double peak = 1.0, total = 400.0;
    struct series_point points[12];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_solutions solutions;
    struct fit_model *model = linear_model(peak, 400, &known, &arena);
    static const double strides[] = {1.0};
    uint64_t walk = 100000;
    size_t budget = 100000;
    struct fit_window window;
    memset(&window, 0, sizeof window);
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        put(points, i, 100 + i,
            1e-3 * floor(1e3 * peak * (1.0 - (99.0 + (double)i) / total) + 0.5));
        points[i].quantum = 1e-3;
    }
    window.known_warmup = window.known_ratio = window.known_floor = real_nan_f64();
    window.known_lr = peak;
    window.known_total[0] = 400;
    window.known_totals = window.said_totals = 1;
    window.strides = strides;
    window.stride_count = 1;
    window.budget = &budget;
    window.walk = &walk;
    window.whole = 1;
    fit_window_open(&window, points, COUNT_OF(points));
    fit_solve(model, &window, &solutions);
    assert_true(solutions.count > 2);
    assert_true(solutions.at[0].numbers.warmup == 0.0 && solutions.at[0].numbers.lr == peak);
    assert_true(solutions.at[1].numbers.warmup == 1.0);
    for (size_t i = 2; i < solutions.count; i++)
        assert_true(solutions.at[i].numbers.warmup != 2.0);
    arena_close(&arena);
}

/* A line over 16 epochs of 25 updates, logged every second update: no row stands where an epoch
 * ends, and of the distances between two moves (24 and 26) neither is the epoch. */
static void validate_epochs_that_end_between_rows(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct series_point points[200];
    struct fit_known known;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        const uint64_t update = 2 * (i + 1);
        put(points, i, update, 1e-4 * ((16.0 - floor((double)(update - 1) / 25.0)) / 16.0));
    }
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_string_equal(set.fits[0].contract->name, "lightning-epoch");
    assert_int_equal(set.fits[0].epoch_updates, 25);
    assert_int_equal(set.fits[0].steps, 400);
    assert_true(set.fits[0].lr == 1e-4);
    arena_close(&arena);
}

/* An expectation of epochs whose length nobody said: a line that moves at every update refutes it
 * for no length that is known. With one that is said, as a number or by the rows of the data set,
 * it does. */
static void validate_epochs_of_unknown_length(void **state) {
    (void)state;
    for (int said = 0; said < 3; said++) {
        struct arena arena = ARENA_EMPTY;
        struct series_point points[60];
        struct fit_known known;
        struct fit_check check;
        for (size_t i = 0; i < COUNT_OF(points); i++)
            put(points, i, i + 1, 1e-4 * ((60.0 - (double)i) / 60.0));
        const struct series series = {points, COUNT_OF(points)};
        fit_known_init(&known);
        known.request.contract = contract_find("lightning-epoch");
        known.request.schedule = "linear";
        known.request.lr = 1e-4;
        known.request.warmup = 12.0;
        known.request.steps = 60;
        if (said == 1) known.request.updates_per_epoch = 6;
        if (said == 2) known.request.dataset = 24;
        if (said == 2) known.request.batch = 4;
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, said > 0 ? FIT_FAIL : FIT_UNDECIDED);
        if (said == 0) assert_non_null(strstr(check.needs, "--updates-per-epoch"));
        if (said == 2) assert_int_equal(check.expected->plan.updates_per_epoch, 6);
        arena_close(&arena);
    }
}

/* Megatron's cosine to a twentieth of its peak, every fifth row in seven digits. A search among
 * Megatron's schedules alone tries no such floor, and another framework prints the same rows. */
static void verify_a_sound_log_of_the_expected_contract_passes(void **state) {
    (void)state;
    const double peak = 2e-5, least = 1e-6, warmup = 37.0, total = 1234.0, pi = 3.14159265358979;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 246);
    struct series series;
    struct fit_known known;
    struct fit_check check;
    log->format = "megatron";
    log->max_steps = 1234;
    for (size_t row = 0; row < log->rows; row++) {
        const double done = 5.0 * (double)(row + 1), share = (done - warmup) / (total - warmup);
        log->step[row] = (int64_t)done;
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   done <= warmup ? peak * done / warmup
                                  : least + 0.5 * (cos(pi * share) + 1.0) * (peak - least),
                   PRINT_E6);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    known.request.contract = contract_find("megatron");
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_PASS) fail_msg("%s", check.words);
    assert_true(fabs(check.expected->lr - peak) < 1e-12);
    assert_true(check.expected->warmup == warmup);
    arena_close(&arena);
}

/* get_polynomial_decay_schedule_with_warmup to an lr_end that is not its default, whose last row is
 * one step above it: lr_end and the slope stand for each other until one is named. */
static void verify_a_polynomial_to_its_own_end_passes(void **state) {
    (void)state;
    const double peak = 2e-4, end = 1e-8, total = 500.0;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 500);
    struct series series;
    struct fit_known known;
    struct fit_check check;
    log->format = "hf-trainer-state";
    log->max_steps = 500;
    for (size_t row = 0; row < log->rows; row++) {
        log->step[row] = (int64_t)row + 1;
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   (peak - end) * (1.0 - (double)row / total) + end, PRINT_EXACT);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    known.request.contract = contract_find("hf");
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_PASS) fail_msg("%s", check.words);
    assert_true(check.expected->lr == peak && check.expected->steps == 500);
    assert_true(fabs(check.expected->floor_ratio * peak - end) < 1e-12 * end);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_known_peak_where_no_row_tells_it),
        cmocka_unit_test(validate_a_fall_that_ends_on_a_level),
        cmocka_unit_test(validate_the_warmups_around_a_known_peak),
        cmocka_unit_test(validate_epochs_that_end_between_rows),
        cmocka_unit_test(validate_epochs_of_unknown_length),
        cmocka_unit_test(verify_a_sound_log_of_the_expected_contract_passes),
        cmocka_unit_test(verify_a_polynomial_to_its_own_end_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
