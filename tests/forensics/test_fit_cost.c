/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * What an explanation costs, and what is said of a column that is too short. Each case is a pair of
 * logs that differ in one number, so that only the price of that number can make the difference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_lr.h"

#define ROWS 128

/* transformers' linear schedule, logged as it was used. */
static double linear(double u, double peak, double warmup, double total) {
    return u < warmup ? peak * (u / fmax(1.0, warmup))
                      : peak * fmax(0.0, (total - u) / fmax(1.0, total - warmup));
}

/* Returns the cost of the best fit under hf of the rows first .. last. */
static double cost_of(double warmup, double total, uint64_t first, uint64_t last, int told) {
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    size_t count = 0;
    for (uint64_t k = first; k <= last; k++, count++)
        points[count] = (struct series_point){
            .update = k, .row = count, .value = linear((double)(k - 1), 2e-4, warmup, total)};
    const struct series series = {points, count};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    if (told) known.run_steps = (uint64_t)total;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_true(set.fits[0].warmup == warmup);
    assert_true((double)set.fits[0].steps == total);
    const double cost = set.fits[0].simplicity;
    arena_close(&arena);
    return cost;
}

/* A warm-up of more digits is one that fewer people type, up to six digits. */
static void validate_the_price_of_a_warmup(void **state) {
    (void)state;
    const double five = cost_of(12347, 10000019, 12300, 12400, 1);
    const double six = cost_of(123457, 10000019, 123410, 123510, 1);
    const double seven = cost_of(1234567, 10000019, 1234520, 1234620, 1);
    assert_true(fabs(six - five - 0.1) < 1e-9);
    assert_true(fabs(seven - six) < 1e-9);
}

/* Where nobody says the total, the last update is the likeliest, then its neighbours, then a number
 * by its digits. */
static void validate_the_price_of_a_total(void **state) {
    (void)state;
    const double at_end = cost_of(0, 100, 1, 100, 0);
    const double beside = cost_of(0, 100, 1, 101, 0);
    const double apart = cost_of(0, 100, 1, 102, 0);
    assert_true(fabs(beside - at_end - 0.1) < 1e-9);
    assert_true(fabs(apart - beside - 0.1) < 1e-9);
}

static void validate_what_a_short_column_is_called(void **state) {
    (void)state;
    static const struct series_point points[] = {{.update = 1, .value = 3e-5},
                                                 {.update = 2, .row = 1, .value = 3e-5}};
    static const uint32_t expected[] = {FIT_WHY_NO_COLUMN, FIT_WHY_FEW | FIT_WHY_CONSTANT,
                                        FIT_WHY_FEW | FIT_WHY_CONSTANT};
    static const uint32_t mask = FIT_WHY_NO_COLUMN | FIT_WHY_FEW | FIT_WHY_CONSTANT;
    for (size_t count = 0; count < 3; count++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        const struct series series = {points, count};
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_int_equal(set.why & mask, expected[count]);
        arena_close(&arena);
    }
}

/* Where the digits leave many totals open, those around the middle are tried in steps that grow:
 * the ones that are listed are what those steps meet, not what lies between them. */
static void validate_totals_that_coarse_digits_leave(void **state) {
    (void)state;
    static const uint64_t totals[] = {3000, 7000, 20000};
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        static struct series_point points[ROWS];
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 1; k <= 6; k++) {
            points[k - 1] = (struct series_point){.update = k, .row = k - 1};
            lr_print_point(&points[k - 1], linear((double)(k - 1), 2e-4, 0.0, (double)totals[i]),
                           LR_E5);
        }
        const struct series series = {points, 6};
        fit_known_init(&known);
        known.limit = 4096;
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        golden_fits(golden_begin("fit_cost.txt", "total %llu", (unsigned long long)totals[i]), &set,
                    8);
        golden_end();
        arena_close(&arena);
    }
}

/* As many explanations are listed as were asked for, from one on, and the others are counted:
 * coarse digits leave four totals here. */
static void validate_how_many_are_listed(void **state) {
    (void)state;
    static const struct {
        size_t limit, listed;
    } rows[] = {{0, 4}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 4}};
    static struct series_point points[6];
    for (uint64_t k = 1; k <= 6; k++) {
        points[k - 1] = (struct series_point){.update = k, .row = k - 1};
        lr_print_point(&points[k - 1], linear((double)(k - 1), 2e-4, 0.0, 3000.0), LR_E5);
    }
    const struct series series = {points, 6};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        fit_known_init(&known);
        known.limit = rows[i].limit;
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_int_equal(set.count, rows[i].listed);
        assert_int_equal(set.left_out, 4 - rows[i].listed);
        arena_close(&arena);
    }
}

/* What was asked for, against what a linear schedule over 100 updates with a peak of 2e-4 and a
 * warm-up of 10 did: each departure has its name. */
static void validate_the_name_of_a_departure(void **state) {
    (void)state;
    static const struct {
        double lr, warmup;
        uint64_t steps;
        const char *bug;
    } asked[] = {
        {2e-4, 10, 100, NULL},
        {3e-4, 10, 100, "other_peak"},
        {1e-4, 10, 100, "other_peak"},
        {2e-4, 10, 101, "floor_vs_ceil_steps"},
        {2e-4, 10, 200, "schedule_too_short"},
        {2e-4, 10, 60, "max_steps_ignored"},
        {2e-4, 11, 100, "warmup_rounding"},
        {2e-4, 20, 100, "other_warmup"},
    };
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        static struct series_point points[ROWS];
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 1; k <= 100; k++)
            points[k - 1] = (struct series_point){
                .update = k, .row = k - 1, .value = linear((double)(k - 1), 2e-4, 10.0, 100.0)};
        const struct series series = {points, 100};
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        known.request.lr = asked[i].lr;
        known.request.warmup = asked[i].warmup;
        known.request.steps = asked[i].steps;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        if (asked[i].bug == NULL)
            assert_null(set.fits[0].bug);
        else if (set.fits[0].bug == NULL || strcmp(set.fits[0].bug, asked[i].bug) != 0)
            fail_msg("%zu: %s, %s", i, set.fits[0].bug == NULL ? "none" : set.fits[0].bug,
                     set.fits[0].text);
        arena_close(&arena);
    }
}

/* Another total explains nearly anything with a peak that nobody typed, so it is a departure only
 * beside a peak of four digits at most. */
static void validate_a_total_beside_a_peak(void **state) {
    (void)state;
    static const double peaks[] = {2.34e-4, 2.345e-4, 2.345e-4};
    for (size_t i = 0; i < COUNT_OF(peaks); i++) { /* the last one is known */
        static struct series_point points[ROWS];
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 1; k <= 100; k++)
            points[k - 1] = (struct series_point){
                .update = k, .row = k - 1, .value = linear((double)(k - 1), peaks[i], 10.0, 100.0)};
        const struct series series = {points, 100};
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        known.request.steps = 200;
        if (i == 2) known.request.lr = peaks[i];
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0 && set.fits[0].steps == 100 && set.fits[0].lr == peaks[i]);
        if (i != 1)
            assert_string_equal(set.fits[0].bug, "schedule_too_short");
        else
            assert_null(set.fits[0].bug);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_the_price_of_a_warmup),
        cmocka_unit_test(validate_the_price_of_a_total),
        cmocka_unit_test(validate_what_a_short_column_is_called),
        cmocka_unit_test(validate_how_many_are_listed),
        cmocka_unit_test(validate_the_name_of_a_departure),
        cmocka_unit_test(validate_a_total_beside_a_peak),
        cmocka_unit_test(validate_totals_that_coarse_digits_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
