/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Digits that were cut off are told by the numbers of another log and by a schedule, and by nothing
 * else: rounded ones, one row that does not agree, and few rows leave the log as it is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "forensics/cut_digits.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 40 };

static struct arena arena;

/* Irregular numbers between -3 and 3 without pattern in their digits. */
static double truth(size_t row) {
    return 3.0 * sin(1.7 * (double)row + 0.3);
}

/* Cuts a number off behind its `steps`-th part: towards 0, as a text is cut. */
static double cut(double value, double steps) {
    return trunc(value * steps) / steps;
}

/* A log whose losses are these numbers, printed to 1e-4: cut off, or rounded. */
static struct log *losses(size_t rows, int cuts) {
    struct log *const log = helper_log(&arena, rows);
    for (size_t row = 0; row < rows; row++) {
        helper_put(&arena, log, LOG_LOSS, row, truth(row), 4);
        if (cuts) log->columns[0].value[row] = cut(truth(row), 1e4);
    }
    return log;
}

static struct log *exact(size_t rows) {
    struct log *const log = helper_log(&arena, rows);
    for (size_t row = 0; row < rows; row++)
        helper_put(&arena, log, LOG_LOSS, row, truth(row), PRINT_EXACT);
    return log;
}

/* Holds the two against each other; `says` is which of them is read as cut off then, or -1. */
static void hold(struct log *a, struct log *b, int says) {
    struct log *const logs[2] = {a, b};
    const double first[2] = {a->columns[0].value[1], b->columns[0].value[1]};
    const size_t notes[2] = {a->note_count, b->note_count};
    assert_int_equal(cut_digits_by_other(a, b, &arena), STATUS_OK);
    for (int s = 0; s < 2; s++) {
        assert_int_equal(logs[s]->note_count, notes[s] + (s == says));
        if (s != says)
            assert_true(logs[s]->columns[0].value[1] == first[s]);
        else
            assert_true(fabs(logs[s]->columns[0].value[1]) - fabs(first[s]) > 4.9e-5);
    }
}

static void validate_by_other(void **state) {
    (void)state;
    hold(exact(ROWS), losses(ROWS, 1), 1);
    hold(losses(ROWS, 1), exact(ROWS), 0);
    hold(exact(ROWS), losses(ROWS, 0), -1);
    hold(losses(ROWS, 0), losses(ROWS, 1), -1); /* as far as the last digit, they agree */
    hold(exact(7), losses(7, 1), -1);           /* too few to tell */
    hold(exact(8), losses(8, 1), 1);
    struct log *const other = losses(ROWS, 1);
    other->columns[0].value[20] -= copysign(2e-4, other->columns[0].value[20]);
    hold(exact(ROWS), other, -1);
    struct log *const broken = losses(ROWS, 1), *const whole = exact(ROWS);
    broken->columns[0].value[20] = whole->columns[0].value[20] = (double)NAN; /* says nothing */
    hold(whole, broken, 1);
    struct log *const zeros = losses(ROWS, 1), *const near = exact(ROWS);
    zeros->columns[0].value[5] = 0.0; /* of a number of either sign */
    near->columns[0].value[5] = -9e-5;
    hold(near, zeros, 1);
    assert_true(zeros->columns[0].value[5] == 0.0);
    assert_true(zeros->columns[0].quantum[5] > 1.9e-4f);
}

/* A line of transformers from 3e-3 behind 6 updates of warm-up, to 1e-7: cut off, or rounded. */
static struct log *rates(size_t rows, int cuts) {
    struct log *const log = helper_log(&arena, rows);
    for (size_t row = 0; row < rows; row++) {
        const double lr = row < 6 ? 3e-3 * (double)row / 6.0 : 3e-3 * (double)(60 - row) / 54.0;
        helper_put(&arena, log, LOG_LR_LOGGED, row, lr, 7);
        if (cuts) log->columns[0].value[row] = cut(lr, 1e7);
    }
    return log;
}

/* Fits the log's rates, and says whether they were read as cut off. */
static int fits_cut(struct log *log, struct fit_set *set) {
    static struct series series;
    struct fit_known known;
    const size_t notes = log->note_count;
    fit_known_init(&known);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(cut_digits_fit(log, &series, &known, &arena, set), STATUS_OK);
    assert_ptr_equal(set->series, &series);
    return log->note_count > notes;
}

static void validate_by_schedule(void **state) {
    (void)state;
    struct fit_set set;
    struct log *log = rates(60, 1);
    assert_true(fits_cut(log, &set));
    assert_string_equal(set.fits[0].text, "hf linear, peak 0.003, warm-up 6, total 60");
    assert_true(log->columns[0].value[0] == 0.0);
    assert_true(fabs(log->columns[0].value[1] - 5.0005e-4) < 1e-12);
    log = rates(60, 0);
    assert_false(fits_cut(log, &set));
    assert_string_equal(set.fits[0].text, "hf linear, peak 0.003, warm-up 6, total 60");
    log = rates(60, 1);
    log->columns[0].value[30] -= 3e-7; /* of no schedule either way */
    fits_cut(log, &set);
    assert_true(set.count == 0 || set.fits[0].simplicity > 1.0);
    log = rates(60, 1);
    log->step_guessed = 1; /* its rows are numbered by what the rates say */
    assert_false(fits_cut(log, &set));
    log = rates(8, 1); /* 8 printed numbers, of which 0 is one */
    struct series series, middle;
    assert_int_equal(series_of(log, &log->columns[0], &arena, &series), STATUS_OK);
    assert_int_equal(cut_digits_series(&series, &arena, &middle), STATUS_OK);
    assert_int_equal(middle.count, 8);
    series.count = 7;
    assert_int_equal(cut_digits_series(&series, &arena, &middle), STATUS_OK);
    assert_int_equal(middle.count, 0);
}

/* A line from 0.5 to 0 in 1000 updates moves by half a printed step in an update, so rounded
 * numbers of one update ahead lie where cut ones of this update would. The first updates warm up by
 * ten steps each, and their numbers are those of cut digits: three of them tell, and two do not. */
static void validate_one_update_ahead(void **state) {
    (void)state;
    for (size_t warmup = 0; warmup < 5; warmup++) {
        struct log *const logs[2] = {helper_log(&arena, ROWS), helper_log(&arena, ROWS)};
        struct series series, middle;
        for (size_t row = 0; row < ROWS; row++) {
            const double line = row < warmup ? 0.5 - 0.01 * (double)(warmup - row)
                                             : 0.5 * (double)(1000 - row) / 1000.0;
            helper_put(&arena, logs[0], LOG_LR_LOGGED, row, line, PRINT_EXACT);
            helper_put(&arena, logs[1], LOG_LR_LOGGED, row, line - 5e-4, 3);
        }
        assert_int_equal(series_of(logs[1], &logs[1]->columns[0], &arena, &series), STATUS_OK);
        assert_int_equal(cut_digits_series(&series, &arena, &middle), STATUS_OK);
        assert_int_equal(middle.count, warmup < 3 ? 0 : ROWS);
        hold(logs[0], logs[1], warmup < 3 ? -1 : 1);
    }
}

static int teardown(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_by_other),
                                       cmocka_unit_test(validate_by_schedule),
                                       cmocka_unit_test(validate_one_update_ahead)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
