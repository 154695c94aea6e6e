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
#include "forensics/compare_rows.c" /* for the parts, which no other file asks for */

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

/* One row that lies between two whole numbers of updates: where its epoch leaves both open, nothing
 * is numbered, be the other one more or less. */
static void validate_neighbours(void **state) {
    (void)state;
    static const struct {
        double updates, half;
        int64_t stride; /* 1: the row stays where it is */
    } cases[] = {{2.375, 0.5, 2},  {2.375, 0.625, 1}, {2.375, 0.75, 1}, {2.625, 0.25, 1},
                 {2.625, 0.5, 3},  {2.625, 0.625, 1}, {2.625, 0.75, 1}, {1.625, 0.5, 2},
                 {1.625, 0.75, 1}, {1.375, 0.5, 1},   {2.0, 0.5, 2},    {2.0, 1.5, 1},
                 {2.0, 0.875, 2},  {1.5, 0.5, 1},     {1.4375, 0.5, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_logs();
        logs[1].rows = 1;
        values[1][0] = cases[i].updates / 32.0;
        quanta[1][0] = (float)(2.0 * cases[i].half / 32.0);
        assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
        if (steps[1][0] != cases[i].stride) fail_msg("case %zu: %d", i, (int)steps[1][0]);
        assert_int_equal(logs[1].step_guessed, cases[i].stride == 1);
        assert_int_equal(steps[1][1], 2); /* which is no row of it */
    }
    /* Of the notes that stood there all others stay, wherever the one on numbers stands. */
    static const char *const notes[] = {"its rows are numbered from 1", "second", "third"};
    open_logs();
    logs[1].notes = notes;
    logs[1].note_count = COUNT_OF(notes);
    assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    assert_int_equal(logs[1].note_count, 3);
    assert_string_equal(logs[1].notes[0], "second");
    assert_string_equal(logs[1].notes[1], "third");
    open_logs();
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

/* ---- to the last bit ---- */

static void validate_edges_of_epochs(void **state) {
    (void)state;
    double half = -1.0;
    open_logs(); /* the last row that has an update and an epoch above 0 tells it */
    for (size_t last = ROWS; last > 0; last--) {
        for (size_t row = last; row < ROWS; row++) {
            if (row % 3 == 0) steps[0][row] = 0;
            if (row % 3 == 1) values[0][row] = 0.0;
            if (row % 3 == 2) quanta[0][row] = -(float)NAN;
        }
        steps[0][last - 1] = 1;
        values[0][last - 1] = 0.375;
        quanta[0][last - 1] = 0.25f;
        assert_true(epoch_of_update(&logs[0], &epochs[0], &half) == 0.375 && half == 0.125);
        steps[0][last - 1] = 2;
        assert_true(epoch_of_update(&logs[0], &epochs[0], &half) == 0.1875 && half == 0.0625);
    }
    steps[0][0] = 0;
    assert_true(isnan(epoch_of_update(&logs[0], &epochs[0], &half)));
    number(1);
    logs[1].rows = 0;
    assert_false(all_agree(&logs[1], &epochs[1], 2.0, 0.0625, 0.0));
    assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    assert_int_equal(logs[1].step_guessed, 1);
    /* A neighbour of the stride that the digits admit, too, leaves it open: 3 or 4, 2 or 3. */
    static const struct {
        double updates;
        float quantum;
        int decided;
    } strides[] = {{3.375, 1.25f, 0}, {3.375, 1.125f, 1}, {2.625, 1.25f, 0}, {2.625, 1.125f, 1}};
    for (size_t i = 0; i < COUNT_OF(strides); i++) {
        open_logs();
        logs[1].rows = 1;
        values[1][0] = strides[i].updates / 32.0;
        quanta[1][0] = strides[i].quantum / 32.0f;
        assert_int_equal(compare_number_rows(&logs[0], &logs[1], &arena), STATUS_OK);
        assert_int_equal(logs[1].step_guessed, !strides[i].decided);
        assert_int_equal(steps[1][0], strides[i].decided ? 3 : 1);
    }
    /* one row: half of the digits, half of those of the other log, a billionth of the epoch */
    assert_true(1e-9 * 1e9 == 1.0);
    static const struct {
        double value, half;
        float quantum;
        int agrees;
    } rows[] = {{1e9, 0.0, 0.0f, 1}, {1e9, 0.0, 2.0f, 1}, {1e9, 1.0, 0.0f, 1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int below = 0; below < 2; below++) {
            const double open = 1.0 + 0.5 * (double)rows[i].quantum + 4.0 * rows[i].half;
            open_logs();
            logs[1].rows = 1;
            values[1][0] = rows[i].value;
            quanta[1][0] = rows[i].quantum;
            const double per_update = (rows[i].value - open) / 4.0 - (below ? 0x1p-20 : 0.0);
            assert_int_equal(all_agree(&logs[1], &epochs[1], 4.0, per_update, rows[i].half),
                             !below);
        }
    for (int stride = 99999; stride <= 100001;
         stride++) { /* rows so far apart are not looked for */
        open_logs();
        for (size_t row = 0; row < ROWS; row++) {
            values[0][row] = (double)steps[0][row];
            values[1][row] = (double)stride * (double)(row + 1);
            quanta[1][row] = 0.0f;
        }
        number(stride < 100000 ? stride : 1);
    }
}

/* Holds two columns of a few updates against what the words say of each row. */
static void validate_shifted_rows(void **state) {
    (void)state;
    enum { LONG = 6 };
    for (uint32_t mask = 0; mask < 1u << (2 * LONG); mask++)
        for (int of_training = 0; of_training < 2; of_training++) {
            struct series_point points[2][LONG];
            struct compare_side side[2] = {{.points = points[0]}, {.points = points[1]}};
            double of[2][LONG + 3];
            struct shift wanted = {0, 0, 0}, got = {0, 0, 0};
            for (size_t s = 0; s < 2; s++)
                for (uint64_t update = 1; update < LONG + 3; update++) {
                    of[s][update] = (double)NAN;
                    if (update > LONG || (mask >> (s * LONG + update - 1) & 1u) == 0) continue;
                    /* B prints what A prints an update later, but for update 4; it stands still */
                    const uint64_t at = s == 0 ? update : update + 1;
                    of[s][update] = update == 4 && s == 1 ? 9.0 : (double)(at / 2);
                    points[s][side[s].count++] =
                        (struct series_point){.update = update, .value = of[s][update]};
                }
            double last = (double)NAN;
            for (uint64_t update = 1; update <= LONG; update++) {
                const double own = of[1][update];
                if (isnan(own)) continue;
                wanted.apart += of_training && !isnan(of[0][update]) && of[0][update] != own;
                if (isnan(of[0][update + 1])) continue;
                wanted.refuted |= of[0][update + 1] != own;
                wanted.alike += of_training && of[0][update + 1] == own && own != last;
                last = own;
            }
            hold_shift(&side[0], &side[1], of_training, &got);
            if (got.apart != wanted.apart || got.alike != wanted.alike ||
                got.refuted != wanted.refuted)
                fail_msg("rows %x", mask);
        }
}

static void validate_edges_of_shifts(void **state) {
    (void)state;
    for (size_t apart = 0; apart < 6; apart++) { /* two rows that differ as they stand are few */
        open_late();
        logs[0].column_count = logs[1].column_count = 1;
        logs[0].rows = logs[1].rows = 0;
        for (int64_t row = 0; row < 8; row++) { /* B has what A has an update later */
            if (row < (int64_t)apart) {
                logs[0].columns[0].value[logs[0].rows] = -1.0;
                logs[0].step[logs[0].rows++] = 2 * row + 1;
            }
            logs[0].columns[0].value[logs[0].rows] = (double)row;
            logs[0].step[logs[0].rows++] = 2 * row + 2;
            logs[1].columns[0].value[logs[1].rows] = (double)row;
            logs[1].step[logs[1].rows++] = 2 * row + 1;
        }
        assert_int_equal(compare_shift_rows(&logs[0], &logs[1], &arena), STATUS_OK);
        assert_int_equal(logs[1].step[0], apart >= 3 ? 2 : 1);
    }
    open_late(); /* a row without an update keeps none */
    logs[1].step[2] = 0;
    assert_int_equal(compare_shift_rows(&logs[0], &logs[1], &arena), STATUS_OK);
    assert_int_equal(logs[1].note_count, 1);
    for (size_t row = 0; row < logs[1].rows; row++)
        assert_int_equal(logs[1].step[row], row == 2 ? 0 : FIRST + (int64_t)row + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_edges_of_epochs), cmocka_unit_test(validate_shifted_rows),
        cmocka_unit_test(validate_edges_of_shifts), cmocka_unit_test(validate_rows),
        cmocka_unit_test(validate_neighbours),      cmocka_unit_test(validate_counts_from_0)};
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
