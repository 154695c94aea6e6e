/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Logs that begin behind the warm-up, and logs whose rounded plateau says less of the peak than
 * their decay. The rows are computed here from the schedules' formulas, as Megatron's
 * core/optimizer_param_scheduler.py has them: the row of update k shows counter k. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "tests/forensics/helper_log.h"

#define ROWS 512

struct training {
    double peak, warmup, total, decay; /* a decay of 0: linear, else WSD with its default style */
    uint64_t every, skipped;           /* 0: none was skipped */
};

static double rate(const struct training *t, double u) {
    if (u < t->warmup) return t->peak * u / t->warmup;
    if (t->decay == 0.0) return t->peak * (t->total - u) / (t->total - t->warmup);
    if (u <= t->total - t->decay) return t->peak;
    return t->peak * (2.0 * pow(0.5, (u - (t->total - t->decay)) / t->decay) - 1.0);
}

/* Rounds to what "%.6E" prints, where `rounded` is set. */
static struct series make(const struct training *t, int rounded, struct series_point *points) {
    size_t count = 0;
    for (uint64_t k = t->every; k <= (uint64_t)t->total; k += t->every, count++) {
        const double behind = t->skipped > 0 && t->skipped <= k ? 1.0 : 0.0;
        const double value = rate(t, (double)k - behind);
        char text[32];
        assert_true(count < ROWS);
        points[count] = (struct series_point){.update = k, .row = count, .value = value};
        if (!rounded) continue;
        snprintf(text, sizeof text, "%.6E", value);
        points[count].value = strtod(text, NULL);
        points[count].quantum = value > 0.0 ? pow(10.0, floor(log10(value)) - 6.0) : 0.0;
    }
    return (struct series){points, count};
}

static const char *const native[] = {"megatron", NULL};

static struct fit_known known_of(const struct training *t) {
    struct fit_known known;
    fit_known_init(&known);
    known.run_steps = (uint64_t)t->total;
    known.possible = native;
    known.request.contract = contract_find("megatron");
    return known;
}

static int in_doubt(const struct fit_known *known, const struct fit_set *set) {
    for (size_t i = 1; i < set->count; i++)
        if (fit_raises_doubt(known, set, &set->fits[i])) return 1;
    return 0;
}

/* A line behind its warm-up is L (T - u) / (T - W), so each W has an L. The typed L is the answer,
 * and what else prints the rows is told: with W = 0 and W = 100 (the first row) L is
 * 3e-7 * (1470 - W) / 1425. */
static void validate_a_typed_peak_in_front_of_the_first_row(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    const struct training t = {3e-7, 45, 1470, 0, 100, 0};
    const struct series series = make(&t, 0, points);
    const struct fit_known known = known_of(&t);
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    const struct fit *fit = &set.fits[0];
    assert_true(fit->lr == 3e-7);
    assert_true(fit->warmup == 45.0);
    assert_int_equal(fit->steps, 1470);
    assert_true(fit->warmup_hidden);
    assert_true(fit->unseen_from == 0.0);
    assert_true(fit->unseen_warmup == 100.0);
    assert_true(fabs(fit->unseen_most / (3e-7 * 1470.0 / 1425.0) - 1.0) < 1e-12);
    assert_true(fabs(fit->unseen_least / (3e-7 * 1370.0 / 1425.0) - 1.0) < 1e-12);
    assert_false(in_doubt(&known, &set));
    arena_close(&arena);
}

/* Megatron with --lr-decay-iters below --train-iters: from there on the LR is --min-lr. It is a
 * setting, and no schedule that is too short. Whether the decay ends at a row or between two. */
static void validate_a_decay_shorter_than_the_run(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct {
        double decay;
        uint64_t every;
        double least;
    } runs[] = {{4000, 10, 1.5e-5}, {4000, 25, 0.0}, {3500, 100, 1.5e-5}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        struct training t = {1.5e-4, 100, 4577, 0, runs[i].every, 0};
        const double least = runs[i].least;
        struct fit_known known = known_of(&t);
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        struct series series = make(&t, 1, points);
        known.request.contract = NULL;
        for (size_t p = 0; p < series.count; p++) {
            const double u = (double)points[p].update;
            double value = least;
            if (u <= 100)
                value = 1.5e-4 * u / 100;
            else if (u <= runs[i].decay)
                value = least +
                        0.5 * (1.5e-4 - least) *
                            (cos(3.14159265358979323846 * (u - 100) / (runs[i].decay - 100)) + 1.0);
            char text[32];
            snprintf(text, sizeof text, "%.6E", value);
            points[p].value = strtod(text, NULL);
            points[p].quantum = pow(10.0, (value > 0.0 ? floor(log10(value)) : 0.0) - 6.0);
        }
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("run %zu: nothing fits", i);
        const struct fit *fit = &set.fits[0];
        assert_string_equal(fit->schedule_name, "cosine");
        assert_true(fit->lr == 1.5e-4);
        assert_true(fit->warmup == 100.0);
        assert_int_equal(fit->steps, (uint64_t)runs[i].decay);
        assert_null(fit->bug);
        arena_close(&arena);
    }
}

/* hf-x-processes with 8 processes and a row every 100 updates: the plateau is one row, and the
 * decay of transformers' get_wsd_schedule (decay_type cosine) another one. */
static void validate_a_plateau_of_one_row(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    const double total = 1706, decay = 341;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    size_t count = 0;
    for (uint64_t k = 100; k <= 1706; k += 100, count++) {
        const double u = 8.0 * (double)k, progress = (u - (total - decay)) / decay;
        const double fall = u < total ? 0.5 * (1.0 + cos(3.14159265358979323846 * progress)) : 0.0;
        points[count] = (struct series_point){
            .update = k, .row = count, .value = 2.5e-7 * (u < total - decay ? 1.0 : fall)};
    }
    const struct series series = {points, count};
    fit_known_init(&known);
    known.run_steps = 1706;
    known.request.contract = contract_find("hf-x-processes");
    known.request.processes = 8;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_string_equal(set.fits[0].schedule_name, "warmup_stable_decay");
    assert_string_equal(set.fits[0].parameters, "decay=341");
    assert_true(set.fits[0].lr == 2.5e-7);
    arena_close(&arena);
}

/* Where nobody typed the peak, no warm-up is likelier than the others, and the answer is none. */
static void validate_an_untyped_peak_stays_open(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    const struct training t = {3.14159265e-7, 45, 1470, 0, 100, 0};
    const struct series series = make(&t, 0, points);
    const struct fit_known known = known_of(&t);
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 1);
    assert_true(set.fits[0].unseen_warmup == 100.0);
    assert_true(in_doubt(&known, &set));
    arena_close(&arena);
}

/* A contract that prints the LR that was used shows counter 99 at update 100, so a warm-up of 99 is
 * the longest that is over by then. */
static void verify_the_family_ends_at_the_first_row(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    const struct training t = {3e-7, 45, 1470, 0, 100, 1};
    const struct series series = make(&t, 0, points); /* one counter behind at every row */
    struct fit_known known = known_of(&t);
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    known.request.contract = contract_find("hf");
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_true(set.fits[0].lr == 3e-7);
    assert_true(set.fits[0].unseen_warmup == 99.0);
    arena_close(&arena);
}

/* Row 1 of Hugging Face's Trainer shows counter 0, at which every warm-up prints 0, and row 100 the
 * plateau: all of 1 to 99 are the same column, and the peak is shown. */
static void validate_a_warmup_between_two_rows(void **state) {
    (void)state;
    struct series_point points[12];
    struct fit_known known;
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++)
        points[i] = (struct series_point){
            .update = i == 0 ? 1 : 100 * i, .row = i, .value = i == 0 ? 0.0 : 6.471e-4};
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.run_steps = 1100;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_true(set.fits[0].unseen_from == 1.0);
    assert_true(set.fits[0].unseen_warmup == 99.0);
    assert_true(set.fits[0].unseen_least == set.fits[0].unseen_most);
    arena_close(&arena);
}

/* A warm-up that is shown leaves nothing open, however sparse the rows are behind it. */
static void verify_no_family_where_the_warmup_is_shown(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    /* every update of a long log, under hf, whose first row is 0 with any warm-up, and rows that
     * lie far apart */
    static const struct training cases[] = {{3e-7, 5, 500, 0, 1, 1}, {3e-7, 145, 1470, 0, 100, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct series series = make(&cases[i], 0, points);
        struct fit_known known = known_of(&cases[i]);
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        if (cases[i].skipped > 0) known.request.contract = contract_find("hf");
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_true(set.fits[0].lr == 3e-7);
        assert_true(set.fits[0].unseen_warmup == 0.0);
        arena_close(&arena);
    }
}

/* Seven digits of a plateau leave the peak open by 1 part in 2e7; below 1e-5 the decay's steps are
 * ten times finer, so some peaks of the plateau are refuted there. */
static void validate_a_peak_that_only_the_decay_shows(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct training cases[] = {{9.454173261556094e-05, 500, 2674, 534, 25, 0},
                                            {9.939472929692137e-05, 340, 1700, 170, 5, 0},
                                            {9.454173261556094e-05, 500, 2674, 534, 25, 10},
                                            {9.939472929692137e-05, 340, 1700, 170, 5, 1631}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct training *t = &cases[i];
        const struct series series = make(t, 1, points);
        struct fit_known known = known_of(t);
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        known.plain = t->skipped == 0; /* or the search for skipped updates finds it as well */
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        const struct fit *fit = &set.fits[0];
        if (fit->segment_count > 1 || fit->bug != NULL) fail_msg("%zu: %s", i, fit->text);
        assert_true(fabs(fit->lr / t->peak - 1.0) < 1e-7);
        assert_true(fit->warmup == t->warmup);
        assert_int_equal(fit_skipped(fit), t->skipped > 0);
        arena_close(&arena);
    }
}

/* Megatron multiplies the fraction with the samples of the decay and rounds nothing, so the warm-up
 * ends between two updates: --lr-warmup-fraction 0.013 of 1,111 updates is 14.443. */
static void validate_a_warmup_of_permilles(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct {
        struct training training;
        double share;
    } cases[] = {{{3e-4, 0.0, 1111, 0, 10, 0}, 0.013},
                 {{2e-4, 0.0, 2001, 0, 5, 0}, 0.0125},
                 {{3.1e-5, 0.0, 2777, 0, 200, 0}, 0.213},
                 {{1e-4, 0.0, 1999, 0, 10, 1200}, 0.037}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct training t = cases[i].training;
        t.warmup = cases[i].share * t.total;
        const struct series series = make(&t, 1, points);
        const struct fit_known known = known_of(&t);
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("%zu: nothing fits", i);
        const struct fit *fit = &set.fits[0];
        if (fit->segment_count > 1 || fit->bug != NULL) fail_msg("%zu: %s", i, fit->text);
        if (fabs(fit->warmup - t.warmup) > 1e-9) fail_msg("%zu: %s", i, fit->text);
        assert_true(fit->lr == t.peak);
        assert_int_equal(fit_skipped(fit), t.skipped > 0);
        assert_false(in_doubt(&known, &set));
        arena_close(&arena);
    }
}

/* Rows behind the warm-up, of a decay to a tenth of the peak, without a word of the framework. The
 * expectation is the training's own, and no numbers that nobody would type (a peak of 0.000354
 * without a warm-up prints the second column as well): it agrees, and what olmo-core applies with
 * the same numbers is its rival. */
static void verify_the_expectation_is_what_was_typed(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct {
        double peak, warmup, total;
        uint64_t first, every;
        int cosine, digits;
    } cases[] = {{5e-5, 5, 2000, 350, 10, 1, 6}, {3e-4, 20, 120, 30, 2, 0, 3}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        size_t count = 0;
        for (uint64_t k = cases[c].first; k <= (uint64_t)cases[c].total; k += cases[c].every) {
            const double u = ((double)k - cases[c].warmup) / (cases[c].total - cases[c].warmup);
            const double share =
                cases[c].cosine ? 0.5 * (1.0 + cos(3.14159265358979323846 * u)) : 1.0 - u;
            const double value = cases[c].peak * (0.1 + 0.9 * share);
            char text[32];
            snprintf(text, sizeof text, "%.*e", cases[c].digits - 1, value);
            assert_true(count < ROWS);
            points[count] = (struct series_point){.update = k, .row = count};
            points[count].value = strtod(text, NULL);
            points[count++].quantum =
                pow(10.0, floor(log10(value)) - (double)(cases[c].digits - 1));
        }
        const struct series series = {points, count};
        fit_known_init(&known);
        known.request.contract = contract_find("megatron");
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        if (check.verdict != FIT_UNDECIDED || check.rival == NULL) fail_msg("%s", check.words);
        assert_string_equal(check.rival, "olmo-core");
        assert_true(check.expected->lr == cases[c].peak);
        assert_true(check.expected->warmup == cases[c].warmup);
        assert_true(fabs(check.expected->floor_ratio - 0.1) < 1e-9);
        arena_close(&arena);
    }
}

/* A line of 12 epochs of 20 updates behind a warm-up of two, whose rows are not in the log. Each
 * shorter warm-up prints the same stairs with a higher peak: 1e-3 * 12 / 10 without any. */
static void validate_stairs_behind_a_warmup(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 200);
    struct fit_known known;
    struct fit_set set;
    struct series series;
    int doubted = 0;
    log->format = "lightning";
    for (size_t row = 0; row < log->rows; row++) {
        const double epoch = (double)((row + 40) / 20);
        log->step[row] = (int64_t)row + 41;
        helper_put(&arena, log, LOG_LR_LOGGED, row, 1e-3 * ((12.0 - epoch) / 10.0), PRINT_EXACT);
        helper_put(&arena, log, LOG_EPOCH, row, epoch, PRINT_EXACT);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    const struct fit *fit = &set.fits[0];
    assert_int_equal(fit->epoch_updates, 20);
    assert_true(fit->unseen_from == 0.0 && fit->unseen_warmup == 40.0);
    assert_true(fabs(fit->unseen_least - 1e-3) < 1e-9 && fabs(fit->unseen_most - 1.2e-3) < 1e-9);
    for (size_t i = 1; i < set.count; i++)
        doubted |= fit_raises_doubt(&known, &set, &set.fits[i]);
    assert_true(doubted);
    arena_close(&arena);
}

/* Rows of one LR say nothing of a warm-up in front of the first one; one at update 1 does. */
static void validate_a_constant_has_shown_no_warmup(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct series_point points[20];
        const struct series series = {points, COUNT_OF(points)};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (size_t i = 0; i < series.count; i++)
            points[i] = (struct series_point){
                .update = late ? 10 * (i + 1) : i + 1, .row = i, .value = 5e-5};
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_int_equal(set.fits[0].warmup_hidden, late);
        assert_string_equal(set.fits[0].text,
                            late ? "hf constant, peak 5e-05, no warm-up (not shown)"
                                 : "hf constant, peak 5e-05, no warm-up");
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_typed_peak_in_front_of_the_first_row),
        cmocka_unit_test(validate_a_decay_shorter_than_the_run),
        cmocka_unit_test(validate_a_plateau_of_one_row),
        cmocka_unit_test(validate_an_untyped_peak_stays_open),
        cmocka_unit_test(verify_the_family_ends_at_the_first_row),
        cmocka_unit_test(validate_a_warmup_between_two_rows),
        cmocka_unit_test(verify_no_family_where_the_warmup_is_shown),
        cmocka_unit_test(validate_a_peak_that_only_the_decay_shows),
        cmocka_unit_test(validate_a_warmup_of_permilles),
        cmocka_unit_test(verify_the_expectation_is_what_was_typed),
        cmocka_unit_test(validate_stairs_behind_a_warmup),
        cmocka_unit_test(validate_a_constant_has_shown_no_warmup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
