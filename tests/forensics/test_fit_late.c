/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A log that begins behind its first update, whose counter is one behind: either an update in front
 * of the first row was skipped, or the contract is late by itself and nothing was. Both are found,
 * also where a scheduler that begins anew breaks the column, and the late ones name no skip. The
 * column follows get_linear_schedule_with_warmup of transformers/optimization.py, written out here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"

enum { ROWS = 60, FIRST = 5, TOTAL = 100, WARMUP = 10 };

#define PEAK 2e-5

static double linear(double n) {
    return PEAK * (n < WARMUP ? n / WARMUP : (TOTAL - n) / (TOTAL - WARMUP));
}

static void validate_late_contracts(void **state) {
    (void)state;
    static const int breaks[] = {0, 30};
    for (size_t i = 0; i < COUNT_OF(breaks); i++) {
        struct series_point points[ROWS];
        struct series series = {points, ROWS};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        size_t late = 0;
        for (int p = 0; p < ROWS; p++) {
            const int update = FIRST + p, back = breaks[i] > 0 && p >= breaks[i] ? breaks[i] : 0;
            points[p] = (struct series_point){
                .update = (uint64_t)update, .row = (size_t)p, .value = linear(update - 2 - back)};
        }
        fit_known_init(&known);
        known.request.steps = TOTAL;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t f = 0; f < set.count; f++) {
            const struct fit *const fit = &set.fits[f];
            const int is_late = strcmp(fit->contract->name, "lag1") == 0;
            const int names_skip = strstr(fit->text, "skipped:") != NULL ||
                                   strstr(fit->text, "held 1 time at update 5") != NULL ||
                                   strstr(fit->text, "held 2 times at update 5") != NULL;
            assert_int_equal(fit->segment_count, breaks[i] > 0 ? 2 : 1);
            if (is_late == names_skip) fail_msg("%s", fit->text);
            if (breaks[i] > 0)
                assert_int_equal(fit->segments[0].event, is_late ? FIT_PLAIN : FIT_SKIP);
            assert_true(fit->segments[0].shift == 0 || !is_late);
            late += (size_t)is_late;
        }
        assert_string_equal(set.fits[0].contract->name, "hf");
        assert_int_equal(late, breaks[i] > 0 ? 3 : 2); /* linear, and two that print the same */
        arena_close(&arena);
    }
}

/* Tells whether another fit of the set needs another floor than the first one, with updates skipped
 * in front of the first row. */
static int floats(const struct fit_known *known, const struct fit_set *set) {
    for (size_t f = 1; f < set->count; f++) {
        const char *const doubt = fit_doubt(known, set, &set->fits[f]);
        if (doubt != NULL && strstr(doubt, "another floor") != NULL) return 1;
    }
    return 0;
}

/* Updates skipped in front of a line that begins at update FIRST_LATE: what is left of it ends
 * `skipped` steps above the floor at the total, and a floor of so much, with a peak that no row
 * shows, prints the same. Two skipped updates and a step of 3e-4 / 90 make a floor of 1e-5 of a
 * contract that logs the next LR. Where the peak or the floor is told or shown, it does not. */
static void validate_lines_that_float(void **state) {
    (void)state;
    enum { FIRST_LATE = 31, LAST_LATE = 95 };
    static const struct {
        double peak, floor; /* of the training, which skipped so many updates in front */
        int skipped, first;
        double told_peak; /* 0: nobody says it */
        int floats;
    } cases[] = {{3e-4, 0.0, 2, FIRST_LATE, 0.0, 1},  {3e-4, 0.0, 2, FIRST_LATE, 3.1e-4, 0},
                 {3e-4, 0.0, 2, FIRST_LATE, 3e-4, 0}, {1e-3, 1e-4, 1, 33, 0.0, 1},
                 {3e-4, 0.0, 0, FIRST_LATE, 0.0, 0},  {3e-4, 3e-5, 0, 1, 0.0, 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct series_point points[TOTAL];
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (int k = cases[c].first; k <= LAST_LATE; k++, series.count++) {
            const int n = k - 1 - cases[c].skipped;
            const double part = n < WARMUP ? 0.0 : (double)(n - WARMUP) / (TOTAL - WARMUP);
            const double share = n < WARMUP ? (double)n / WARMUP : 1.0 - part;
            const double least = n < WARMUP ? 0.0 : cases[c].floor;
            points[series.count] =
                (struct series_point){.update = (uint64_t)k,
                                      .row = series.count,
                                      .value = least + (cases[c].peak - least) * share,
                                      .quantum = 0x1p-36};
        }
        fit_known_init(&known);
        known.request.steps = TOTAL;
        if (cases[c].told_peak > 0.0) known.request.lr = cases[c].told_peak;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 1);
        if (floats(&known, &set) != cases[c].floats) fail_msg("case %zu: %s", c, set.fits[0].text);
        assert_int_equal(fit_line_floats(&set.fits[0], &known, &series), cases[c].floats);
        known.request.min_lr_ratio = 0.1; /* the same list, with the floor told */
        assert_int_equal(floats(&known, &set), 0);
        known.request.min_lr_ratio = (double)NAN;
        known.request.lr = set.fits[0].lr; /* and with the peak */
        assert_int_equal(floats(&known, &set), 0);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_late_contracts),
                                       cmocka_unit_test(validate_lines_that_float)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
