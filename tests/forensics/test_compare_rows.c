/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Rows without steps are numbered by the epochs of a log that prints its updates, and left where
 * one row does not agree. */
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

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_rows)};
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
