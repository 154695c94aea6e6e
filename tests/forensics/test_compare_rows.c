/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Rows without steps are numbered by the epochs of a log that prints its updates, and left where
 * one row does not agree. Steps that count from 0 are told by the numbers of the other log. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_rows.h"

enum { ROWS = 6 };

static struct arena arena;
static struct log logs[2];
static struct log_column epochs[2];
static double values[2][ROWS];
static float quanta[2][ROWS];
static int64_t steps[2][ROWS];

/* A has updates 2, 4, .. of epochs of 32 updates; B the same rows, to four digits, and no steps. */
static void open_logs(void) {
    static const char *const notes[] = {"first", "it prints no step: rows are numbered from 1"};
    arena_close(&arena);
    for (size_t s = 0; s < 2; s++) {
        epochs[s] = (struct log_column){
            .name = LOG_EPOCH, .source = "epoch", .value = values[s], .quantum = quanta[s]};
        logs[s] = (struct log){.rows = ROWS,
                               .step = steps[s],
                               .columns = &epochs[s],
                               .column_count = 1,
                               .step_guessed = s == 1,
                               .notes = notes,
                               .note_count = s == 1 ? 2 : 0};
        for (size_t row = 0; row < ROWS; row++) {
            values[s][row] = (double)(2 * (row + 1)) / 32.0;
            quanta[s][row] = s == 0 ? 0.0f : 1e-4f;
            steps[s][row] = s == 0 ? 2 * (int64_t)(row + 1) : (int64_t)(row + 1);
        }
    }
}
static void number(int64_t stride) {
    assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(steps[1][row], stride * (int64_t)(row + 1));
    assert_int_equal(logs[1].step_guessed, stride == 1);
    if (stride == 1) assert_int_equal(logs[1].note_count, 2);
    open_logs();
}

static void validate_rows(void **state) {
    (void)state;
    open_logs();
    assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    assert_int_equal(logs[1].note_count, 2);
    assert_string_equal(logs[1].notes[0], "first");
    assert_non_null(strstr(logs[1].notes[1], "its rows are 2 updates apart"));
    open_logs();
    number(2);
    for (size_t row = 0; row < ROWS; row++) {
        values[1][row] += 4.9e-5;
        number(2);
        values[1][row] += 5.1e-5; /* one row of another epoch is enough */
        number(1);
        quanta[1][row] = -(float)NAN; /* or one without any */
        number(1);
    }
    logs[1].step_guessed = 0; /* a log that prints its steps keeps them */
    assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    assert_int_equal(steps[1][0], 1);
    open_logs();
    logs[0].step_guessed = 1;
    number(1);
    for (size_t s = 0; s < 2; s++) {
        logs[s].column_count = 0;
        number(1);
    }
    for (size_t row = 0; row < ROWS; row++)
        values[1][row] *= 0.5; /* a row of each update */
    number(1);
    for (size_t row = 0; row < ROWS; row++)
        values[1][row] *= 5.0;
    number(10);
    for (size_t row = 0; row < ROWS; row++)
        values[1][row] *= 1.25; /* no whole number of updates */
    number(1);
    for (size_t row = 0; row < ROWS; row++)
        quanta[1][row] = 1.0f; /* epochs that say nothing */
    number(1);
    logs[1].rows = 0;
    number(1);
}

enum { WHOLE = 20, LATE = 12, FIRST = 5 };

/* A has updates 1 to 20. B has steps 5 to 16 of it, which are updates 6 to 17. */
static void open_late(void) {
    static struct log_column columns[2][2];
    static double numbers[2][2][WHOLE];
    static float digits[2][2][WHOLE];
    static int64_t counts[2][WHOLE];
    static uint32_t parts[WHOLE];
    arena_close(&arena);
    for (size_t s = 0; s < 2; s++) {
        logs[s] = (struct log){.rows = s == 0 ? WHOLE : LATE,
                               .step = counts[s],
                               .part = parts,
                               .columns = columns[s],
                               .column_count = 2,
                               .step_base = 1,
                               .base_open = s == 1};
        for (size_t c = 0; c < 2; c++)
            columns[s][c] = (struct log_column){.name = c == 0 ? LOG_LOSS : LOG_LR_LOGGED,
                                                .source = c == 0 ? "loss" : "lr",
                                                .value = numbers[s][c],
                                                .quantum = digits[s][c]};
        for (size_t row = 0; row < logs[s].rows; row++) {
            const size_t update = s == 0 ? row + 1 : row + FIRST + 1;
            counts[s][row] = s == 0 ? (int64_t)row + 1 : (int64_t)(row + FIRST);
            numbers[s][0][row] = 3.0 - 0.01 * (double)update + 0.05 * (double)(update * 7 % 5);
            numbers[s][1][row] = 0.001 * (double)(WHOLE - update);
            digits[s][0][row] = digits[s][1][row] = s == 0 ? 0.0f : 1e-4f;
        }
    }
}

static int shifts(void) {
    assert_int_equal(compare_shift_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    const int moved = logs[1].step[0] == FIRST + 1;
    assert_int_equal(logs[1].note_count, moved);
    assert_int_equal(logs[1].step_base, !moved);
    for (size_t row = 1; row < logs[1].rows; row++)
        assert_int_equal(logs[1].step[row], logs[1].step[0] + (int64_t)row);
    open_late();
    return moved;
}

static void validate_counts_from_0(void **state) {
    (void)state;
    open_late();
    assert_true(shifts());
    logs[1].base_open = 0; /* its format or an option says what it counts from */
    assert_false(shifts());
    logs[0].step_guessed = 1;
    assert_false(shifts());
    for (size_t c = 0; c < 2; c++) { /* one number of another update */
        logs[1].columns[c].value[4] += 2e-4;
        assert_false(shifts());
    }
    logs[1].rows = 7; /* few rows */
    assert_false(shifts());
    logs[1].rows = 8;
    assert_true(shifts());
    for (size_t row = 0; row < WHOLE; row++) /* nothing changes */
        logs[0].columns[0].value[row] = logs[1].columns[0].value[row % LATE] = 3.0;
    assert_false(shifts());
    logs[0].column_count = logs[1].column_count = 1;
    logs[0].columns[0].name = logs[1].columns[0].name = LOG_LR_LOGGED; /* no training */
    assert_false(shifts());
    for (size_t row = 0; row < LATE; row++) /* it agrees as it stands */
        logs[1].columns[0].value[row] = logs[0].columns[0].value[row + FIRST - 1];
    assert_false(shifts());
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_rows),
                                       cmocka_unit_test(validate_counts_from_0)};
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
