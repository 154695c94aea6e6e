/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Warm-ups that a log leaves open, part by part: which rows are looked at, how far the family of
 * warm-ups goes on both sides, with which peaks, and of which fits it is asked. The model is one of
 * this test, and so is which warm-ups print the rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define contract_applied given_applied
#define fit_matches given_matches
#define fit_model_logged given_logged
#define fit_model_set given_set
#include "forensics/fit_hidden.c" /* for the parts, which no other file asks for */

enum { ROWS = 300, PRINT_ALL = -1 };
#define PEAK 2e-4

static struct series_point points[ROWS];
static struct series series;
static struct fit_model model;
static struct fit_search search;
static struct fit_segment segment;
static struct fit fit;
static struct sched_class schedule;
static int64_t bad_row;   /* which no warm-up prints */
static double low, high;  /* the warm-ups that print the others */
static int alike, is_off; /* 1: no update shows a warm-up; the model is 0 */

void given_set(struct fit_model *of, const struct fit_numbers *numbers) {
    of->now = *numbers;
}

double given_logged(const struct fit_model *of, uint64_t k, int64_t shift) {
    assert_int_equal(shift, 0);
    return is_off ? 0.0 : of->now.lr / (1.0 + of->now.warmup + (double)k);
}

int given_matches(const struct series_point *point, double value, double scale, double *error) {
    assert_true(scale == 1.0);
    assert_true(value == given_logged(&model, point->update, 0));
    assert_null(error);
    return (int64_t)point->row != bad_row && model.now.warmup >= low && model.now.warmup <= high;
}

double given_applied(const struct contract_plan *plan, uint64_t k) {
    assert_ptr_equal(plan, &model.plan);
    return alike || (double)k >= model.now.warmup ? 1.0 : (double)k / model.now.warmup;
}

static void open_scene(size_t count, uint64_t every, uint64_t top) {
    for (size_t i = 0; i < count; i++) {
        points[i] = (struct series_point){.update = 1 + every * i, .row = i, .value = 0.5};
        if (i >= top) points[i].value = 1.0; /* the first of them is the top */
    }
    series = (struct series){points, count};
    memset(&model, 0, sizeof model);
    model.unit = model.warmup_scale = 1.0;
    model.needs_warmup = model.linear = 1;
    model.now = (struct fit_numbers){.lr = PEAK, .warmup = 10.0, .total = 500.0, .stride = 1.0};
    memset(&schedule, 0, sizeof schedule);
    segment = (struct fit_segment){.scale = 1.0};
    memset(&fit, 0, sizeof fit);
    fit.stride = 1.0;
    fit.warmup = 10.0;
    fit.schedule = &schedule;
    fit.segments = &segment;
    fit.segment_count = 1;
    search = (struct fit_search){.series = &series, .scale = 1.0};
    bad_row = PRINT_ALL;
    low = 0.0;
    high = 1000.0;
    alike = is_off = 0;
}

/* Every row up to two updates behind the longer one of both warm-ups, later by what was skipped;
 * and of all rows 65 at even distances from the first to the last. */
static void validate_rows_that_are_looked_at(void **state) {
    (void)state;
    static const size_t counts[] = {2, 5, 64, 65, 66, 67, 200, 300};
    static const double warmups[] = {0.0, 4.0, 10.0, 33.0, 90.0};
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (size_t w = 0; w < COUNT_OF(warmups); w++)
            for (uint64_t skipped = 0; skipped < 4; skipped += 3)
                for (int doubled = 0; doubled < 2; doubled++) {
                    const size_t count = counts[c], last = count - 1;
                    open_scene(count, 1, 1);
                    model.plan.skipped_count = skipped;
                    model.warmup_scale = doubled ? 4.0 : 1.0;
                    model.unit = doubled ? 2.0 : 1.0;
                    struct family family = {.model = &model,
                                            .series = &series,
                                            .scale = 1.0,
                                            .top = 1,
                                            .value = given_logged(&model, 2, 0),
                                            .numbers = model.now};
                    const double longer = warmups[w] > 10.0 ? warmups[w] : 10.0;
                    const double end = longer * (doubled ? 2.0 : 1.0) + 2.0 + (double)skipped;
                    assert_int_equal(prints(&family, warmups[w]), 1);
                    for (size_t bad = 0; bad < count; bad++) {
                        int seen = (double)(bad + 1) <= end || last <= 64;
                        for (size_t i = 0; i <= 64; i++)
                            seen |= last * i / 64 == bad;
                        bad_row = (int64_t)bad;
                        assert_int_equal(prints(&family, warmups[w]), !seen);
                    }
                    bad_row = PRINT_ALL;
                    is_off = 1; /* a model that is 0 at the top gives no peak */
                    assert_int_equal(prints(&family, warmups[w]), 0);
                }
}

static double peak_of(double warmup, double top) {
    return PEAK * ((1.0 + warmup + top) / (1.0 + 10.0 + top)); /* the LR at the top stays */
}

static void near(double got, double expected) {
    if (!(got > expected * (1.0 - 0x1p-50) &&
          got < expected * (1.0 + 0x1p-50))) /* a few roundings */
        fail_msg("%a in place of %a", got, expected);
}

/* From the least warm-up that prints all rows to the greatest one, none of which ends behind the
 * first row at the maximum. */
static void validate_families(void **state) {
    (void)state;
    size_t families = 0;
    for (int least = 0; least <= 10; least++)
        for (int most = 10; most < 60; most++)
            for (uint64_t top = 5; top < 45; top += 4)
                for (uint64_t epoch = 0; epoch < 8; epoch += 7) {
                    open_scene(120, 1, top);
                    low = least;
                    high = most;
                    fit.epoch_updates = epoch;
                    const double at = (double)(top + 1); /* the update of the row at the top */
                    double from = least, to = most < at ? most : at;
                    if (epoch > 0) {
                        while ((int)from % 7 != 0)
                            from += 1.0;
                        while ((int)to % 7 != 0)
                            to -= 1.0;
                    }
                    fit_find_unseen(&search, &model, &fit);
                    assert_true(model.now.warmup == 10.0 && model.now.lr == PEAK);
                    if (at < 10.0 || to < from + 2.0) {
                        assert_true(fit.unseen_warmup == 0.0 && fit.unseen_most == 0.0);
                        continue;
                    }
                    families++;
                    assert_true(fit.unseen_from == from && fit.unseen_warmup == to);
                    near(fit.unseen_least, peak_of(from, at));
                    near(fit.unseen_most, peak_of(to, at));
                }
    assert_true(families > 1000);
}

static void validate_of_which_it_is_asked(void **state) {
    (void)state;
    for (int change = 0; change < 13; change++) {
        open_scene(120, 1, 40);
        low = 5.0;
        high = 20.0;
        if (change == 1) model.needs_warmup = 0;
        if (change == 2) fit.reached = 0.5;
        if (change == 3) fit.stride = 2.0;
        if (change == 4) fit.segment_count = 2;
        if (change == 5) segment.shift = -1;
        if (change == 6) fit.first_differs = 1;
        if (change == 7) fit.part_count = 1;
        if (change == 8) schedule.state_size = 8;
        if (change == 9) model.linear = 0;
        if (change == 10) alike = 1;         /* two warm-ups that are one schedule */
        if (change == 11) fit.warmup = 42.0; /* behind the top */
        if (change == 12) high = 9.0;        /* the fit's own does not print the rows */
        fit_find_unseen(&search, &model, &fit);
        if ((fit.unseen_warmup != 0.0) != (change == 0)) fail_msg("change %d", change);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rows_that_are_looked_at),
        cmocka_unit_test(validate_families),
        cmocka_unit_test(validate_of_which_it_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
