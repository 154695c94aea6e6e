/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Whether the last row of a linear decay stands at a step by chance: one of eight rows in front of
 * it, of sixteen at the most, is as round as it is. Asked of 2,000 decays of one fit, whose total
 * and floor are exchanged, and counted a second time here, with the digits that printf writes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"

enum { MOST = 60, ROUND_DIGITS = 2 };

#define PEAK 2e-5

static double decay(double s, double total, double floor) {
    return PEAK * ((1.0 - s / total) * (1.0 - floor) + floor);
}

static int is_round(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.*e", ROUND_DIGITS - 1, x);
    return fabs(strtod(text, NULL) - x) <= 1e-13 * fabs(x);
}

/* Rows at every update from 2 on, of which row i shows f(i); the last one shows f(total). */
static int expected(int total, double floor) {
    int seen = 0, typed = 0;
    for (int s = total - 1; s >= 1 && seen < 16; s--) {
        const double value = decay(s, total, floor);
        seen++;
        typed += is_round(value) || is_round(value / PEAK);
    }
    return seen > 0 && 8 * typed >= seen;
}

static void validate_steps_of_a_decay(void **state) {
    (void)state;
    struct series_point points[MOST];
    struct series series = {points, MOST};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    _Alignas(8) char values[64];
    int said = 0, asked = 0;
    for (int i = 0; i < MOST; i++)
        points[i] = (struct series_point){
            .update = (uint64_t)i + 2, .row = (size_t)i, .value = decay(i + 1, MOST, 0.25)};
    fit_known_init(&known);
    known.request.min_lr_ratio = 0.25;
    known.request.steps = MOST;
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    struct fit fit = set.fits[0];
    assert_string_equal(fit.schedule->name, "linear");
    assert_string_equal(fit.contract->name, "hf");
    const size_t size = fit.schedule->values_size;
    assert_true(size <= sizeof values);
    memcpy(values, fit.plan.call.values, size);
    fit.plan.call.values = values;
    for (int total = 2; total <= MOST; total++)
        for (int percent = 1; percent <= 35; percent++) {
            const double floor = 0.01 * percent;
            memcpy(values + sched_row(fit.schedule, "min_lr_ratio")->offset, &floor, sizeof floor);
            fit.plan.call.total = total;
            fit.plan.steps = fit.steps = (uint64_t)total;
            fit.floor_ratio = floor;
            fit.lr = fit.plan.call.base_lr = PEAK;
            series.count = (size_t)total;
            const int chance = fit_ends_at_a_step(&fit, &series), wanted = expected(total, floor);
            if (chance != wanted)
                fail_msg("total %d, floor %g: %d, expected %d", total, floor, chance, wanted);
            said += chance;
            asked++;
        }
    assert_true(said > asked / 20 && said < asked - asked / 20);
    series.count = 1;
    assert_int_equal(fit_ends_at_a_step(&fit, &series), 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_steps_of_a_decay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
