/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Checks of columns that stand still against schedules that fall, where nobody gave a warm-up. Of
 * every column that a falling schedule prints around the end of its warm-up in few digits, with
 * skipped updates or none, the check never fails; where no warm-up and no skipped updates print it,
 * it fails. Each expected verdict is derived at its case. The schedules are those of
 * transformers/optimization.py, written out here, and tests/bench/flat_columns.py draws many more.
 */
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
#include "base/real.h"
#include "forensics/fit.h"
#include "tests/base/helper_draws.h"

enum { ROWS = 2000 };
#define PI 3.14159265358979323846

static struct fit_known known_of(const char *contract, const char *schedule, uint64_t steps,
                                 double lr) {
    struct fit_known known;
    fit_known_init(&known);
    known.request.contract = contract_find(contract);
    assert_non_null(known.request.contract);
    known.request.schedule = schedule;
    known.request.steps = steps;
    if (lr > 0.0) known.request.lr = lr;
    return known;
}

static const struct flat_case {
    const char *contract, *schedule;
    uint64_t first, every, last, steps; /* steps of 0: nobody says the total */
    double value, quantum, lr;          /* lr of 0: not given */
    int quiet;                          /* the log shows that nothing was skipped */
    int32_t verdict;
} cases[] = {
    /* Exact doubles: no two rows of a decay or of a rise are equal but where all updates between
       them were skipped, at most 24 of them (28 of 2,000). */
    {"hf", "linear", 1, 1, 100, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"hf", "cosine", 1, 1, 100, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"hf", "linear", 10, 10, 1000, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"hf-4.50", "linear", 10, 10, 1000, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"olmo-core", "linear", 10, 10, 1000, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"megatron", "cosine", 10, 10, 1000, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"hf", "linear", 1001, 1, 1100, 2000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    /* Twelve rows: the updates behind the first may all have been skipped. */
    {"hf", "linear", 1, 1, 12, 1000, 1e-5, 0.0, 0.0, 0, FIT_UNDECIDED},
    {"hf", "linear", 1, 1, 12, 1000, 1e-5, 0.0, 0.0, 1, FIT_FAIL},
    /* Lightning's schedule goes on at a skipped update. */
    {"lightning-step", "linear", 1, 1, 12, 1000, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    /* An engine that keeps its LR in binary32 and prints all of it: in front of a cosine of a
       million updates 120 rows fall by 3.6e-8, and the numbers around 5e-5 are 7e-8 apart. A line
       falls by 1.2e-4. The same rows in doubles are no cosine. */
    {"lightning-step", "cosine", 1, 1, 120, 1000000, 4.999999873689376e-05, 0.0, 0.0, 0,
     FIT_UNDECIDED},
    {"olmo-core", "cosine", 2, 1, 7, 100000, 4.999999873689376e-05, 0.0, 0.0, 0, FIT_UNDECIDED},
    {"lightning-step", "linear", 1, 1, 120, 1000000, 4.999999873689376e-05, 0.0, 0.0, 0, FIT_FAIL},
    {"lightning-step", "cosine", 1, 1, 120, 1000000, 5e-05, 0.0, 0.0, 0, FIT_FAIL},
    /* Counters 4 or 5 throughout, with 24 skipped updates: behind a warm-up of 3 a cosine of 160
       has 0.9999 and 0.9996 of its peak there, which is given and printed to a thousandth. */
    {"hf", "cosine", 5, 5, 30, 160, 1e-5, 1e-8, 1e-5, 0, FIT_UNDECIDED},
    /* Nobody says the total: a line of 2^30 updates moves by 1e-9 from row to row, a cosine by less
       than a double shows in its first rows, and by 2e-14 in 100 of them. */
    {"hf", "linear", 1, 1, 100, 0, 1e-5, 0.0, 0.0, 0, FIT_FAIL},
    {"hf", "cosine", 1, 1, 30, 0, 1e-5, 0.0, 0.0, 1, FIT_UNDECIDED},
    /* Printed as 1e-05, from 0.5e-5 to 1.5e-5: a line falls to a third of its highest row in two
       thirds of the run, and prints all rows up to there; behind it none. */
    {"hf", "linear", 10, 10, 600, 1000, 1e-5, 1e-5, 0.0, 0, FIT_UNDECIDED},
    {"hf", "linear", 10, 10, 740, 1000, 1e-5, 1e-5, 0.0, 0, FIT_FAIL},
    {"hf", "linear", 10, 10, 740, 0, 1e-5, 1e-5, 0.0, 0, FIT_UNDECIDED},
    /* With 24 skipped updates behind it the last row is at 71 of 96, and a line of 96 has 0.26 of
       its highest row there at most, less than a third. No row alone can tell: the first ones may
       lie behind as many skipped updates as the last. */
    {"hf-4.50", "linear", 5, 5, 95, 96, 1e-5, 1e-5, 0.0, 0, FIT_FAIL},
    /* The same with a peak of 1.2e-5: it is 0.5e-5 where 7 / 12 of the run are over. */
    {"hf", "linear", 10, 10, 550, 1000, 1e-5, 1e-5, 1.2e-5, 0, FIT_UNDECIDED},
    {"hf", "linear", 10, 10, 640, 1000, 1e-5, 1e-5, 1.2e-5, 0, FIT_FAIL},
    /* A peak of 2e-5 is printed as 1e-05 from a quarter of the run on, and in the warm-up. */
    {"hf", "linear", 260, 10, 700, 1000, 1e-5, 1e-5, 2e-5, 0, FIT_UNDECIDED},
    {"hf", "linear", 10, 10, 700, 1000, 1e-5, 1e-5, 2e-5, 0, FIT_FAIL},
    /* To a floor of 0, which Megatron's default is; with one of 0.9 below. */
    {"megatron", "cosine", 10, 10, 1000, 1000, 1e-5, 1e-6, 0.0, 0, FIT_FAIL},
};

static void validate_columns_that_stand(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const struct flat_case *const q = &cases[c];
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known = known_of(q->contract, q->schedule, q->steps, q->lr);
        struct fit_check check;
        known.skips.quiet = q->quiet;
        for (uint64_t k = q->first; k <= q->last; k += q->every, series.count++)
            points[series.count] = (struct series_point){
                .update = k, .row = series.count, .value = q->value, .quantum = q->quantum};
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != q->verdict)
            fail_msg("case %zu: verdict %d: %s", c, check.verdict, check.words);
        if (check.verdict == FIT_FAIL && strstr(check.words, "whatever its warm-up is") == NULL)
            fail_msg("case %zu: %s", c, check.words);
        arena_close(&arena);
    }
    /* With a floor of 0.9 it falls by a tenth, and rows that are printed in steps of 0.15 of the
       peak show none of it. */
    struct series series = {points, 0};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known = known_of("megatron", "cosine", 1000, 0.0);
    struct fit_check check;
    known.request.min_lr_ratio = 0.9;
    for (uint64_t k = 10; k <= 1000; k += 10, series.count++)
        points[series.count] = (struct series_point){
            .update = k, .row = series.count, .value = 1e-5, .quantum = 1e-6 * 1.5};
    assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
    assert_int_not_equal(check.verdict, FIT_FAIL);
    arena_close(&arena);
}

static double share(int cosine, double n, double warmup, double total) {
    if (n < warmup) return n / (warmup > 1.0 ? warmup : 1.0);
    const double left = (total - n) / (total - warmup > 1.0 ? total - warmup : 1.0);
    if (left <= 0.0) return 0.0;
    return cosine ? 0.5 * (1.0 + cos(PI * (1.0 - left))) : left;
}

/* Trainings with a warm-up that nobody gives and up to three skipped updates, of which the rows are
 * kept that print as the highest one does. */
static void verify_what_a_schedule_prints_never_fails(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    size_t asked = 0;
    for (uint32_t i = 0; i < 160; i++) {
        struct draws draws = {.key = 2901, .number = i};
        const uint64_t total = 40 + draws_pick(&draws, 500);
        const uint64_t every = 1 + draws_pick(&draws, 6);
        const double warmup = (double)draws_pick(&draws, (uint32_t)total / 2);
        const int cosine = (int)draws_pick(&draws, 2);
        const int next = (int)draws_pick(&draws, 2);
        const int digits = (int)draws_pick(&draws, 3);
        const uint64_t lag = draws_pick(&draws, 4);
        const uint64_t at = 1 + draws_pick(&draws, (uint32_t)total);
        char text[32], top[32];
        double high = 0.0;
        struct series series = {points, 0};
        for (uint64_t k = every; k <= total; k += every) {
            const double n = (double)k - (next ? 0.0 : 1.0) -
                             (double)(k < at         ? 0
                                      : k - at < lag ? k - at
                                                     : lag);
            const double value = 2e-5 * share(cosine, n, warmup, (double)total);
            if (value > high) high = value;
        }
        snprintf(top, sizeof top, "%.*e", digits, high);
        for (uint64_t k = every; k <= total; k += every) {
            const double n = (double)k - (next ? 0.0 : 1.0) -
                             (double)(k < at         ? 0
                                      : k - at < lag ? k - at
                                                     : lag);
            snprintf(text, sizeof text, "%.*e", digits,
                     2e-5 * share(cosine, n, warmup, (double)total));
            if (strcmp(text, top) != 0) continue;
            points[series.count] = (struct series_point){
                .update = k, .row = series.count, .value = strtod(text, NULL)};
            points[series.count].quantum = pow(10.0, strtod(strchr(text, 'e') + 1, NULL) - digits);
            series.count++;
        }
        if (series.count < 3) continue;
        struct arena arena = ARENA_EMPTY;
        struct fit_check check;
        struct fit_known known = known_of(next ? "hf-4.50" : "hf", cosine ? "cosine" : "linear",
                                          total, draws_pick(&draws, 2) == 0 ? 2e-5 : 0.0);
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict == FIT_FAIL)
            fail_msg("draw %u (%s of %d, warm-up %g of %d, every %d): %s", i, top,
                     (int)series.count, warmup, (int)total, (int)every, check.words);
        arena_close(&arena);
        asked++;
    }
    assert_true(asked > 80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_columns_that_stand),
        cmocka_unit_test(verify_what_a_schedule_prints_never_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
