/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a pass leaves untested: a column is printed by a scheduler at the usual pace, and where the
 * contract prints it with longer lengths at every second update, too, the answer says so, with
 * these lengths; where it does not, or a length was given, it says nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_parts.h"
#include "forensics/fit_samples.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"

enum { ROWS = 60, CASES = 3000 };

static struct arena arena;
static struct fit_segment plain = {.scale = 1.0};

static double relative(double a, double b) {
    return a == b ? 0.0 : fabs(a - b) / fmax(fabs(a), fabs(b));
}

/* hf prints the LR that the update used, whose counter stands at update - 1; so a counter that
 * moves twice stands at 2 (update - 1) there. */
static int prints_at_double_pace(struct contract_request request, double warmup, uint64_t steps,
                                 const struct series *series) {
    struct contract_plan plan;
    request.warmup = warmup;
    request.steps = steps;
    assert_int_equal(contract_resolve(&request, &arena, &plan), STATUS_OK);
    for (size_t i = 0; i < series->count; i++)
        if (relative(contract_logged(&plan, 2 * series->points[i].update - 1),
                     series->points[i].value) > 1e-14)
            return 0;
    return 1;
}

static void corroborate_pace(void **state) {
    static const char *const names[] = {"linear", "cosine", "constant_with_warmup", "constant",
                                        "inverse_sqrt"};
    int said = 0, silent = 0, of_both = 0;
    (void)state;
    for (int number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x9ace), .number = (uint32_t)number};
        const char *const name = names[draws_pick(&draws, COUNT_OF(names))];
        const int is_constant = strcmp(name, "constant") == 0;
        const int ends = draws_pick(&draws, 3) == 0,
                  is_decay = strcmp(name, "linear") == 0 || strcmp(name, "cosine") == 0;
        const double warmup = is_constant ? 0.0 : 1.0 + draws_pick(&draws, 20);
        const uint32_t fitted = draws_pick(&draws, 32);
        const uint64_t steps = ends ? ROWS : ROWS + 1 + draws_pick(&draws, 500);
        const struct contract_request request = helper_fit_request("hf", name, 3e-5, warmup, steps);
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        struct fit fit;
        helper_fit_make(&fit, &arena, &request, &plain);
        for (size_t i = 0; i < ROWS; i++)
            points[i] = (struct series_point){
                .update = i + 1, .row = i, .value = contract_logged(&fit.plan, i + 1)};
        struct fit_check out = {.verdict = FIT_PASS, .expected = &fit, .fitted = fitted};
        assert_int_equal(fit_check_untested(&series, &arena, &out), STATUS_OK);

        const double longer = (fitted & FIT_OF_WARMUP) != 0 ? 2.0 * warmup : warmup;
        const uint64_t later = (fitted & FIT_OF_STEPS) != 0 && !ends ? 2 * steps : steps;
        /* Where the lengths stay (a warm-up of 1 that was given), nobody could give others. */
        const int expected = !is_constant && (longer != warmup || (is_decay && later != steps)) &&
                             prints_at_double_pace(request, longer, later, &series);
        if ((out.untested != NULL) != expected)
            fail_msg("%d: %s, warm-up %g, %d: %s", number, name, warmup, (int)steps, out.untested);
        said += expected, silent += !expected;
        if (!expected) continue;
        char text[200], total[40] = "";
        if (is_decay) snprintf(total, sizeof total, " and a total of %d", 2 * (int)steps);
        snprintf(text, sizeof text,
                 "how often the scheduler moves, since nobody gave the warm-up (--warmup)%s: twice "
                 "per update, with a warm-up of %g%s, it prints the same",
                 is_decay ? " or the total (--steps)" : "", 2.0 * warmup, total);
        assert_string_equal(out.untested, text);
        of_both += is_decay;
        arena_close(&arena);
    }
    assert_true(said > CASES / 6 && silent > CASES / 6 && of_both > CASES / 20);
}

/* What is no pass, or says nothing of a pace. The total alone is fitted in the first. */
static void validate_what_is_not_asked(void **state) {
    static const char *const alone =
        "how often the scheduler moves, since nobody gave the total (--steps): twice per update, "
        "with a total of 400, it prints the same";
    (void)state;
    for (int how = 0; how < 10; how++) {
        const struct contract_request request = helper_fit_request("hf", "linear", 1e-4, 0.0, 200);
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        struct fit_samples samples = {.count = 0};
        struct fit fit;
        helper_fit_make(&fit, &arena, &request, &plain);
        for (size_t i = 0; i < ROWS; i++)
            points[i] = (struct series_point){
                .update = i + 1, .row = i, .value = contract_logged(&fit.plan, i + 1)};
        struct fit_check out = {.verdict = FIT_PASS, .expected = &fit, .fitted = FIT_OF_STEPS};
        if (how == 1) out.verdict = FIT_UNDECIDED;
        if (how == 2) out.verdict = FIT_FAIL;
        if (how == 3) fit.segment_count = 2;
        if (how == 4) fit.stride = 2.0;
        if (how == 5) fit.in_samples = 1;
        if (how == 6) fit.samples = &samples;
        if (how == 7) fit.epoch_updates = 1;
        if (how == 8) fit.schedule = sched_find("reduce_lr_on_plateau");
        if (how == 9) out.fitted = FIT_OF_WARMUP;
        assert_int_equal(fit_check_untested(&series, &arena, &out), STATUS_OK);
        if (how > 0) assert_null(out.untested);
        if (how == 0) assert_string_equal(out.untested, alone);
        for (size_t i = 0; i < ROWS; i++) { /* one row that the other does not print */
            const double value = points[i].value;
            points[i].value *= 1.0 + 1e-9;
            out.untested = NULL;
            assert_int_equal(fit_check_untested(&series, &arena, &out), STATUS_OK);
            assert_null(out.untested);
            points[i].value = value;
        }
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_pace),
        cmocka_unit_test(validate_what_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
