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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_late_contracts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
