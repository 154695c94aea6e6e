/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Checks of columns whose schedule goes on towards another total from some row on. That total is an
 * answer where the log says it, and a free number where nobody does; and it excuses no other number
 * that differs from what was asked. The columns follow get_linear_schedule_with_warmup of
 * transformers/optimization.py, written out here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 44, CHANGE = 22, BEFORE = 50, AFTER = 70 };

#define PEAK 2e-5
#define WARMUP 5.0
#define NO_PASS (-1) /* FIT_FAIL or FIT_UNDECIDED */

static double linear(double n, double total) {
    return n < WARMUP ? PEAK * n / WARMUP : PEAK * (total - n) / (total - WARMUP);
}

static const struct question {
    const char *name;
    uint64_t said;     /* the total that the log says; 0: none */
    double lr, warmup; /* asked; 0: not */
    int32_t verdict;
    const char *words, *not_words; /* parts that the answer has and has not */
} questions[] = {
    {"as asked, total said", AFTER, PEAK, WARMUP, FIT_UNDECIDED, "its total changed", "not all"},
    {"another peak, total said", AFTER, 3e-5, WARMUP, FIT_FAIL, "its total is not all that differs",
     "its total changed"},
    {"another warm-up, total said", AFTER, PEAK, 9.0, FIT_FAIL, "its total is not all that differs",
     "its total changed"},
    {"as asked, no total", 0, PEAK, WARMUP, FIT_UNDECIDED, "nothing says another one", "not all"},
    {"another peak, no total", 0, 3e-5, WARMUP, FIT_FAIL, "refute the peak", "not all"},
    {"a peak below the rows, no total", 0, 1e-5, 0.0, FIT_FAIL, "refute the peak", "not all"},
    {"a peak just below the rows, no total", 0, 0.97 * PEAK, WARMUP, FIT_FAIL, "refute the peak",
     "not all"},
    {"nearly that peak, no total", 0, 1.01 * PEAK, WARMUP, NO_PASS, "", "refute"},
    {"another warm-up, no total", 0, PEAK, 9.0, NO_PASS, "", "not all"},
    {"another peak, another total", AFTER + 9, 3e-5, WARMUP, FIT_FAIL, "refute the peak",
     "not all"},
};

static void validate_what_a_total_excuses(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        const struct question *const q = &questions[i];
        struct arena arena = ARENA_EMPTY;
        struct log *const log = helper_log(&arena, ROWS);
        struct fit_known known;
        struct series series;
        struct fit_check check;
        log->format = "hf-trainer-state";
        log->max_steps = q->said;
        for (size_t row = 0; row < ROWS; row++)
            helper_put(&arena, log, LOG_LR_LOGGED, row,
                       linear((double)row, row < CHANGE ? BEFORE : AFTER), PRINT_EXACT);
        helper_resume(log, CHANGE, CHANGE + 1);
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        known.request.lr = q->lr;
        known.request.warmup = q->warmup;
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        const int as_said =
            q->verdict == NO_PASS ? check.verdict != FIT_PASS : check.verdict == q->verdict;
        if (!as_said || strstr(check.words, q->words) == NULL ||
            strstr(check.words, q->not_words) != NULL)
            fail_msg("%s: verdict %d: %s; %s", q->name, check.verdict, check.words,
                     check.bug != NULL ? check.bug : "-");
        arena_close(&arena);
    }
}

/* Logs that begin behind their warm-up, of a total of 500 that becomes 900 at update 300. A line
 * that has fallen to its first row from update 0 on has the highest peak, 500 / 441 of that row:
 * what is asked above it contradicts every row, and so does what lies below one. In between a
 * warm-up that no row shows may explain it. Nothing explains the log with a warm-up of 20 as a
 * whole. */
static void validate_peaks_that_late_rows_refute(void **state) {
    (void)state;
    static const struct {
        double warmup, asked;
        int32_t verdict;
    } cases[] = {{0.0, 1e-3, FIT_FAIL},         {0.0, 6e-5, FIT_FAIL},  {0.0, 5e-5, FIT_UNDECIDED},
                 {0.0, 4.8e-5, FIT_UNDECIDED},  {0.0, 1e-5, FIT_FAIL},  {20.0, 1e-3, FIT_FAIL},
                 {20.0, 5.1e-5, FIT_UNDECIDED}, {20.0, 6e-5, FIT_FAIL}, {20.0, 1e-5, FIT_FAIL}};
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(8, 2, 1)) {
        enum { EVERY = 10, FIRST = 60, LAST = 900 };
        struct series_point points[(LAST - FIRST) / EVERY + 1];
        const struct series series = {points, COUNT_OF(points)};
        const double w = cases[i].warmup;
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        for (size_t row = 0; row < series.count; row++) {
            const uint64_t update = FIRST + EVERY * row;
            const double total = update > 300 ? 900.0 : 500.0;
            points[row] = (struct series_point){.update = update,
                                                .row = row,
                                                .value = 5e-5 * (total - ((double)update - 1.0)) /
                                                         (total - w)};
        }
        fit_known_init(&known);
        if (w > 0.0) known.run_steps = 900;
        known.request.contract = contract_find("hf");
        known.request.lr = cases[i].asked;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != cases[i].verdict)
            fail_msg("case %zu: verdict %d: %s", i, check.verdict, check.words);
        arena_close(&arena);
    }
}

/* Rows 400 to 770 of a line from 3e-4 at update 38 to 0 at 777, as transformers 4.50 prints it. As
 * the LR that was used it is a line from update 37 to 0 at 776, so nothing passes before the total
 * and the peak are given; and then the contract that wrote it alone does. Without a warm-up a
 * typed peak tells the two apart, as the other one has 777 / 776 of it; an odd one does not.
 */
static void validate_a_line_whose_peak_no_row_shows(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        double peak, warmup, lr; /* those of the rows, and what is asked; lr of 0: nothing */
        uint64_t steps;
        int32_t verdict;
    } cases[] = {{"hf", 3e-4, 38.0, 0.0, 0, FIT_UNDECIDED},
                 {"hf-4.50", 3e-4, 38.0, 0.0, 0, FIT_UNDECIDED},
                 {"hf-4.50", 3e-4, 38.0, 3e-4, 777, FIT_PASS},
                 {"hf", 3e-4, 38.0, 3e-4, 777, NO_PASS},
                 {"hf-4.50", 3e-4, 0.0, 0.0, 0, FIT_PASS},
                 {"hf", 3e-4, 0.0, 0.0, 0, NO_PASS},
                 {"hf-4.50", 3.1234567e-4, 0.0, 0.0, 0, FIT_UNDECIDED}};
    struct series_point points[38];
    const struct series series = {points, COUNT_OF(points)};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        for (size_t row = 0; row < series.count; row++) {
            const uint64_t update = 400 + 10 * row;
            const double share = (777.0 - (double)update) / (777.0 - cases[i].warmup);
            points[row] =
                (struct series_point){.update = update, .row = row, .value = cases[i].peak * share};
        }
        fit_known_init(&known);
        known.request.contract = contract_find(cases[i].contract);
        if (cases[i].lr > 0.0) known.request.lr = cases[i].lr;
        known.request.steps = cases[i].steps;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (cases[i].verdict == NO_PASS ? check.verdict == FIT_PASS
                                        : check.verdict != cases[i].verdict)
            fail_msg("case %zu: verdict %d: %s; %s", i, check.verdict, check.words,
                     check.needs != NULL ? check.needs : "-");
        if (i == 0) assert_non_null(strstr(check.needs, "begins behind the peak"));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_line_whose_peak_no_row_shows),
        cmocka_unit_test(validate_what_a_total_excuses),
        cmocka_unit_test(validate_peaks_that_late_rows_refute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
