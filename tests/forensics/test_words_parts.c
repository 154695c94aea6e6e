/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How a break is named: whether the peak behind it is an LR that the schedule in front had between
 * the two rows, by how much it may miss that LR, and where the rows lie so far apart that only the
 * ends are looked at; and how near to 0 a counter is that began anew. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_words.c" /* for the conditions, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 4 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series = {points, ROWS};
static struct fit_search search = {.series = &series};
static struct fit_segment segments[3];
static struct fit fit;

/* A line from PEAK to 0 at update `total`; rows at these updates, and a break at the third. */
static void open_break(uint64_t total, uint64_t before, uint64_t behind) {
    const struct contract_request request = helper_fit_request("hf", "linear", PEAK, 0.0, total);
    arena_close(&arena);
    helper_fit_make(&fit, &arena, &request, segments);
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.row = i};
    points[0].update = 1;
    points[1].update = before;
    points[2].update = behind;
    points[3].update = behind + 1;
    segments[0] = segments[1] = (struct fit_segment){.scale = 1.0};
    segments[1].point = 2;
    segments[1].update = behind;
    segments[1].event = FIT_RESCALED;
    fit.segment_count = 2;
}

static int decayed(double peak) {
    segments[1].scale = peak / PEAK;
    return peak_is_decayed(&search, &fit, 1);
}

static void validate_decayed_peaks(void **state) {
    (void)state;
    open_break(100, 40, 50); /* LRs of updates 40 to 51, that of update k is PEAK (101 - k) / 100 */
    for (uint64_t k = 40; k <= 51; k++) {
        const double had = PEAK * (double)(101 - k) / 100.0;
        assert_true(decayed(had));
        assert_true(decayed(had * (1.0 + 0.9 * ABOUT)));
        assert_true(decayed(had * (1.0 - 0.9 * ABOUT)));
        assert_false(decayed(had * (1.0 + 1.2 * ABOUT)));
        assert_false(decayed(had * (1.0 - 1.2 * ABOUT)));
    }
    assert_false(decayed(PEAK * 0.62)); /* of update 39 */
    assert_false(decayed(PEAK * 0.49)); /* of update 52 */
    assert_string_equal(bug_of_segment(&search, &fit, 1), "other_peak");
    segments[1].scale = 0.55;
    assert_string_equal(bug_of_segment(&search, &fit, 1), "initial_lr_overwritten");
    segments[1].event = FIT_RESTARTED;
    assert_string_equal(bug_of_segment(&search, &fit, 1), "initial_lr_overwritten");
    segments[1].scale = 0.1;
    assert_string_equal(bug_of_segment(&search, &fit, 1), "scheduler_not_restored");
    /* Rows that were run again: what counts is the last row in front of the resume's update. */
    points[1].update = 60;
    segments[1].scale = 0.99;
    assert_true(decayed(PEAK * 0.99));
    points[0].update = 50; /* there is none in front of it */
    assert_false(decayed(PEAK * 0.99));
}

/* Between rows so far apart any LR between those at the ends may be the one. */
static void validate_distant_rows(void **state) {
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        const uint64_t before = 1000, behind = before + STEPS - 1 + more;
        open_break(200000, before, behind);
        const double first = fit_logged(&fit, 0, before), last = fit_logged(&fit, 0, behind + 1);
        const double low = first < last ? first : last, high = first < last ? last : first;
        assert_true(decayed(0.5 * (low + high)));
        assert_true(decayed(low * (1.0 - 0.9 * ABOUT)) && decayed(high * (1.0 + 0.9 * ABOUT)));
        assert_false(decayed(low * (1.0 - 1.2 * ABOUT)) || decayed(high * (1.0 + 1.2 * ABOUT)));
    }
}

/* Among so many updates each is looked at, and an LR between those of two of them is none of
 * theirs; among more every LR between the ends may be one. */
static void validate_how_far_each_update_counts(void **state) {
    (void)state;
    static const struct {
        uint64_t before, apart;
        int each;
    } cases[] = {
        {1000, STEPS - 1, 1}, {1000, STEPS, 1},      {1000, STEPS + 1, 0},
        {40000, 40, 1},       {40000, STEPS - 1, 1}, {STEPS, STEPS, 1},
        {STEPS + 5, 2, 1},    {1, STEPS, 1},         {1, STEPS + 1, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint64_t last = cases[i].before + cases[i].apart;
        open_break(last + 10, cases[i].before, last - 1); /* its last steps are of 10 % each */
        const double low = fit_logged(&fit, 0, last), high = fit_logged(&fit, 0, last - 1);
        assert_true(high > 1.05 * low);
        assert_true(decayed(low) && decayed(high));
        assert_int_equal(decayed(0.5 * (low + high)), !cases[i].each);
    }
}

/* Shares of 1/1000 of a power of 2, exactly: what is as far as that still is the LR. */
static void validate_nearness_of_an_lr(void **state) {
    (void)state;
    for (uint64_t apart = 10; apart <= STEPS + 10; apart += STEPS) {
        open_break(10 * STEPS, 100, 99 + apart);
        const struct contract_request request =
            helper_fit_request("hf", "constant", 1.0, 0.0, 10 * (uint64_t)STEPS);
        helper_fit_make(&fit, &arena, &request, segments);
        fit.segment_count = 2;
        assert_true(fit_logged(&fit, 0, 100) == 1.0 && fit_logged(&fit, 0, 100 + apart) == 1.0);
        const struct {
            double peak;
            int decayed;
        } cases[] = {{1.0, 1},
                     {1.0 - ABOUT, 1},
                     {nextafter(1.0 - ABOUT, 0.0), 0},
                     {1.0 + ABOUT, 1},
                     {nextafter(1.0 + ABOUT, 2.0), 0}};
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            segments[1].scale = cases[i].peak;
            assert_int_equal(peak_is_decayed(&search, &fit, 1), cases[i].decayed);
        }
    }
}

/* The LR in front of the break is that of the last segment in front of it, and not of an earlier.
 */
static void validate_segment_in_front(void **state) {
    (void)state;
    for (uint64_t apart = 11; apart <= STEPS + 11; apart += STEPS) {
        open_break(10 * STEPS, 100, 99 + apart);
        segments[2] = segments[1];
        segments[1] = (struct fit_segment){.point = 1, .update = 100, .scale = 0.5};
        fit.segment_count = 3;
        const double had = fit_logged(&fit, 1, 100) / PEAK;
        assert_true(had < 0.51 && had > 0.49);
        segments[2].scale = had;
        assert_true(peak_is_decayed(&search, &fit, 2));
        segments[2].scale = 2.0 * had;
        assert_false(peak_is_decayed(&search, &fit, 2));
        segments[2].scale = fit_logged(&fit, 1, 100 + apart) / PEAK;
        assert_true(peak_is_decayed(&search, &fit, 2));
        segments[2].scale = 0.75;
        assert_false(peak_is_decayed(&search, &fit, 2));
    }
}

static void validate_counters_near_0(void **state) {
    (void)state;
    open_break(100, 40, 45);
    segments[1].event = FIT_BACK;
    for (int64_t counter = -2; counter < 12; counter++) { /* five updates lie between the rows */
        segments[1].shift = counter - 45;
        const char *const bug = bug_of_segment(&search, &fit, 1);
        assert_int_equal(bug != NULL, counter <= 6);
        if (bug != NULL) assert_string_equal(bug, "scheduler_not_restored");
    }
    static const struct {
        int32_t event;
        const char *bug;
    } named[] = {{FIT_JUMP, "eval_steps_scheduler"},
                 {FIT_RESET, "scheduler_not_restored"},
                 {FIT_DOUBLED, "double_counter"},
                 {FIT_SKIP, NULL},
                 {FIT_TOTAL, NULL},
                 {FIT_PLAIN, NULL}};
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        segments[1].event = named[i].event;
        const char *const bug = bug_of_segment(&search, &fit, 1);
        if (named[i].bug == NULL)
            assert_null(bug);
        else
            assert_string_equal(bug, named[i].bug);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_decayed_peaks),
        cmocka_unit_test(validate_distant_rows),
        cmocka_unit_test(validate_how_far_each_update_counts),
        cmocka_unit_test(validate_nearness_of_an_lr),
        cmocka_unit_test(validate_segment_in_front),
        cmocka_unit_test(validate_counters_near_0),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
