/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Numbers beside an expectation, over random columns: what is found prints every row, as the
 * contract itself says, and of a column whose numbers are within reach something is found; of
 * finely printed columns of other numbers nothing is. */
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
#include "forensics/fit_check_parts.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"

enum { ROWS = 40, CASES = 4000 };

static struct draws draws;
static struct arena arena;
static struct fit_segment plain = {.scale = 1.0};

static int between(int from, int to) {
    return from + (int)draws_pick(&draws, (uint32_t)(to - from + 1));
}

static struct contract_request draw_request(void) {
    static const char *const names[] = {"linear", "cosine", "constant_with_warmup", "inverse_sqrt"};
    const char *const name = names[between(0, 3)];
    const double lr = 1e-5 * between(1, 90), warmup = between(0, 12);
    struct contract_request request =
        helper_fit_request("hf", name, lr, warmup, (uint64_t)between(60, 400));
    if (request.warmup == 0.0 && strcmp(request.schedule, "inverse_sqrt") == 0)
        request.warmup = 5.0;
    return request;
}

/* Prints the column of a request with so many digits behind the first. */
static void print_column(const struct contract_request *request, int digits, int every,
                         struct series_point points[ROWS]) {
    struct contract_plan plan;
    assert_int_equal(contract_resolve(request, &arena, &plan), STATUS_OK);
    for (int i = 0; i < ROWS; i++) {
        char text[40];
        const uint64_t update = (uint64_t)(1 + i * every);
        snprintf(text, sizeof text, "%.*e", digits, contract_logged(&plan, update));
        points[i] =
            (struct series_point){.update = update, .row = (size_t)i, .value = strtod(text, NULL)};
        points[i].quantum = pow(10.0, atoi(strchr(text, 'e') + 1) - digits);
    }
}

static int prints(const struct contract_request *asked, const struct fit_beside *beside,
                  const struct series *series) {
    struct contract_request request = *asked;
    struct contract_plan plan;
    request.lr = beside->peak;
    request.warmup = beside->warmup;
    request.steps = beside->steps;
    assert_int_equal(contract_resolve(&request, &arena, &plan), STATUS_OK);
    for (size_t i = 0; i < series->count; i++)
        if (fabs(contract_logged(&plan, series->points[i].update) - series->points[i].value) >
            0.5 * series->points[i].quantum * (1.0 + 1e-5) + 1e-15 * request.lr)
            return 0;
    return 1;
}

static void corroborate_beside(void **state) {
    size_t within = 0, outside = 0, other_peak = 0;
    (void)state;
    for (int number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xbe51de), .number = (uint32_t)number};
        static const double aparts[] = {0.0, 0.02};
        struct contract_request asked = draw_request(), truth = asked;
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        const double apart = aparts[between(0, 1)];
        const int far = between(0, 3) == 0, digits = far ? 9 : between(1, 5);
        struct fit_beside beside;
        struct fit_known known;
        struct fit fit;
        int found, total = between(-3, 3), warmup = between(-2, 2);
        /* By one or the other, not by both: what is farther by a little is what is tried. */
        const int by_warmup = asked.warmup >= 4.0 && number % 2; /* rows show a longer one */
        if (far && !by_warmup) total += total < 0 ? -4 : 4;
        if (far && by_warmup) total = 0, warmup = 3;
        truth.steps = (uint64_t)((int)asked.steps + total);
        truth.warmup = fmax(asked.warmup + warmup, asked.warmup > 0.0);
        if (apart > 0.0 && !far) truth.lr *= 1.0 + 0.0001 * between(-190, 190);
        print_column(&truth, digits, between(1, 3), points);
        fit_known_init(&known);
        known.request.contract = asked.contract;
        helper_fit_make(&fit, &arena, &asked, &plain);
        assert_int_equal(fit_check_beside(&series, &known, &fit, apart, &arena, &beside, &found),
                         STATUS_OK);
        const int decays =
            strcmp(asked.schedule, "linear") == 0 || strcmp(asked.schedule, "cosine") == 0;
        if (!far) assert_true(found);
        if (far && decays) assert_false(found);
        within += !far;
        outside += !found;
        if (!found) continue;
        assert_true(beside.steps + 3 >= asked.steps && beside.steps <= asked.steps + 3);
        assert_true(fabs(beside.warmup - asked.warmup) <= 2.0);
        assert_true(fabs(beside.peak - asked.lr) <= apart * asked.lr * (1.0 + 1e-12));
        assert_true(prints(&asked, &beside, &series));
        other_peak += beside.peak != asked.lr;
        arena_close(&arena);
    }
    assert_true(within > CASES / 2 && outside > CASES / 20 && other_peak > CASES / 10);
}

/* What no total and warm-up beside it can speak of. */
static void validate_what_is_not_tried(void **state) {
    (void)state;
    for (int how = 0; how < 7; how++) {
        struct contract_request asked = helper_fit_request("hf", "linear", 1e-4, 5.0, 100);
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        struct fit_part part = {.point = 0};
        struct fit_beside beside;
        struct fit_known known;
        struct fit fit;
        int found;
        print_column(&asked, 3, 1, points);
        static const uint64_t skipped[] = {3};
        fit_known_init(&known);
        known.request.skipped = skipped;
        known.request.skipped_count = how == 6; /* those are left out */
        helper_fit_make(&fit, &arena, &asked, &plain);
        if (how == 1) fit.segment_count = 2;
        if (how == 2) fit.stride = 2.0;
        if (how == 3) fit.in_samples = 1;
        if (how == 4) fit.parts = &part, fit.part_count = 1;
        if (how == 5) fit.schedule = sched_find("reduce_lr_on_plateau");
        assert_non_null(fit.schedule);
        assert_int_equal(fit_check_beside(&series, &known, &fit, 0.0, &arena, &beside, &found),
                         STATUS_OK);
        assert_int_equal(found, how == 0 || how == 6);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_beside),
        cmocka_unit_test(validate_what_is_not_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
