/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Points of a column, and short texts about them: which rows are points, when a series that another
 * made is taken over, what prints as 0, how fine a column is, and how a row's place and a value
 * with its precision are written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/words.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 8 };

static struct arena arena;
static struct log *logged;

static void open_log(void) {
    arena_close(&arena);
    logged = helper_log(&arena, ROWS);
    for (size_t row = 0; row < ROWS; row++)
        helper_put(&arena, logged, LOG_LOSS, row, 1.0 + (double)row, PRINT_EXACT);
}

static void validate_points(void **state) {
    (void)state;
    struct series series;
    open_log();
    assert_int_equal(series_of(logged, NULL, &arena, &series), STATUS_OK);
    assert_int_equal(series.count, 0);
    for (size_t gone = 0; gone < ROWS; gone++) { /* rows without a value, or an update, are none */
        open_log();
        logged->columns[0].quantum[gone] = (float)NAN;
        logged->step[(gone + 3) % ROWS] = gone % 2 == 0 ? 0 : -2;
        logged->part[5] = 7;
        assert_int_equal(series_of(logged, &logged->columns[0], &arena, &series), STATUS_OK);
        assert_int_equal(series.count, ROWS - 2);
        size_t at = 0;
        for (size_t row = 0; row < ROWS; row++) {
            if (row == gone || row == (gone + 3) % ROWS) continue;
            const struct series_point *const point = &series.points[at++];
            assert_int_equal(point->row, row);
            assert_int_equal(point->update, row + 1);
            assert_int_equal(point->part, row == 5 ? 7 : 0);
            assert_true(point->value == 1.0 + (double)row && point->quantum == 0.0);
        }
    }
    for (size_t row = 0; row < 2 * ROWS + 2; row++) { /* the first point at a row or behind it */
        struct series_point points[ROWS];
        for (size_t i = 0; i < ROWS; i++)
            points[i].row = 2 * i + 1;
        series = (struct series){points, ROWS};
        assert_int_equal(series_row(&series, row), row / 2 < ROWS ? row / 2 : ROWS);
        series.count = 0;
        assert_int_equal(series_row(&series, row), 0);
    }
}

/* The points of another are taken over where these are the column's, to the last bit. */
static void validate_shared_points(void **state) {
    (void)state;
    for (int how = 0; how < 10; how++) {
        struct series series, shared;
        struct series_point points[ROWS + 1];
        open_log();
        assert_int_equal(series_of(logged, &logged->columns[0], &arena, &series), STATUS_OK);
        memcpy(points, series.points, ROWS * sizeof *points);
        points[ROWS] = points[ROWS - 1];
        struct series known = {points, ROWS};
        if (how == 1) points[4].update++;
        if (how == 2) points[4].row++;
        if (how == 3) points[4].part++;
        if (how == 4) points[4].value = nextafter(points[4].value, 9.0);
        if (how == 5) points[4].quantum = 1e-300;
        if (how == 6) known.count = ROWS - 1;
        if (how == 7) known.count = ROWS + 1;
        if (how == 8) logged->columns[0].value[3] = (double)NAN, points[3].value = (double)NAN;
        if (how == 9) logged->columns[0].value[3] = 0.0, points[3].value = -0.0;
        assert_int_equal(series_share(logged, &logged->columns[0], &known, &arena, &shared),
                         STATUS_OK);
        assert_int_equal(shared.points == points, how == 0 || how == 8);
        assert_int_equal(shared.count, ROWS);
        assert_int_equal(series_share(logged, &logged->columns[0], NULL, &arena, &shared),
                         STATUS_OK);
        assert_true(shared.points != points && shared.count == ROWS);
        assert_int_equal(series_share(logged, NULL, &known, &arena, &shared), STATUS_OK);
        assert_int_equal(shared.count, 0);
    }
}

static void validate_zeros(void **state) {
    (void)state;
    static const struct {
        double value, quantum;
        int zero;
    } others[] = {{0.0, 0.01, 1},
                  {-0.0, 0.01, 1},
                  {1e-300, 0.01, 0},
                  {-1e-300, 0.01, 0},
                  {(double)NAN, 0.01, 0}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        for (size_t at = 0; at < 3; at++) {
            double coarsest;
            struct series_point points[3] = {
                {.quantum = 0.001}, {.quantum = 0.001}, {.quantum = 0.0}};
            points[at].value = others[i].value;
            points[at].quantum = others[i].quantum;
            const struct series series = {points, 3};
            assert_int_equal(series_prints_as_zero(&series, &coarsest), others[i].zero);
            if (others[i].zero) assert_true(coarsest == 0.01);
            assert_true(series_lost(&series) == (others[i].zero ? 0.01 : 0.0));
        }
    static const struct {
        double quantum, lost;
    } coarse[] = {{0.0, 0.0}, {0.9e-9, 0.0}, {1e-9, 0.0}, {1.0001e-9, 1.0001e-9}, {1e-3, 1e-3}};
    for (size_t i = 0; i < COUNT_OF(coarse); i++) {
        const struct series_point point = {.quantum = coarse[i].quantum};
        const struct series series = {&point, 1};
        assert_true(series_lost(&series) == coarse[i].lost);
    }
    /* Quanta are binary32, rounded up: that of three decimals is not coarser than these. */
    assert_false(series_coarser((double)nextafterf(0.001f, 1.0f), 0.001));
    assert_false(series_coarser(0.001, 0.001));
    assert_true(series_coarser(0.001 * (1.0 + 0x1p-20), 0.001));
}

/* How fine a column is: its digits, or the format that its exact numbers all lie in. */
static void validate_spacings(void **state) {
    (void)state;
    static const struct {
        double values[3];
        double scale;
    } cases[] = {{{1.0, 0.5, 1.0078125}, 0x1p-7},   /* bf16 */
                 {{1.0, 0.5, 1.00390625}, 0x1p-23}, /* one bit more */
                 {{1.0, 1.00390625, 0.5}, 0x1p-23},
                 {{1.0, (double)0.1f, 0.5}, 0x1p-23},
                 {{1.0, 0.1, 0.5}, 0x1p-52},
                 {{0.1, (double)0.1f, 0.5}, 0x1p-52},
                 {{1.0, (double)INFINITY, (double)NAN}, 0x1p-7}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct series_point points[3];
        for (size_t p = 0; p < 3; p++)
            points[p] = (struct series_point){.value = cases[i].values[p]};
        const struct series series = {points, 3};
        if (series_spacing(&series, -4.0, 0.0) != 4.0 * cases[i].scale) fail_msg("case %zu", i);
        assert_true(series_spacing(&series, -4.0, 0.25) == 0.25);
    }
    struct series_point points[2] = {{.value = 1.0}, {.value = 0.1, .quantum = 0.01}};
    const struct series series = {points, 2}; /* what is printed says nothing of the format */
    assert_true(series_spacing(&series, 2.0, 0.0) == 0x1p-6);
}

static void validate_words(void **state) {
    (void)state;
    assert_string_equal(word_number(0.1).text, "0.1");
    assert_string_equal(word_about(0.123456).text, "0.1235");
    assert_string_equal(word_about(123456.0).text, "1.235e+05");
    assert_string_equal(word_apart(0.12341, 0.12349).text, "0.1234");
    assert_string_equal(word_apart(0.12341, 0.12342).text, "0.12341"); /* the same four digits */
    assert_string_equal(word_value(0.6931, 1e-4).text, "0.6931 (printed to 0.0001)");
    assert_string_equal(word_value(5e-7, 0.0).text, "5e-07");
    assert_string_equal(word_value((double)INFINITY, 1e-4).text, "inf");
    open_log();
    logged->step[2] = 0;
    logged->step[3] = 1;
    logged->line[4] = 0;
    static const char *const plain[] = {"update 1 (line 11)", "update 2 (line 12)", "row 3",
                                        "update 1 (line 14)", "update 5"},
                             *const parted[] = {"update 1 (line 11, part 1)",
                                                "update 2 (line 12, part 1)", "row 3",
                                                "update 1 (line 14, part 1)", "update 5 (part 1)"};
    for (size_t row = 0; row < COUNT_OF(plain); row++)
        assert_string_equal(word_place(logged, row).text, plain[row]);
    for (size_t at = 1; at < ROWS; at += ROWS - 2) { /* a part anywhere, the last row's too */
        logged->part[at] = 1;
        assert_string_equal(word_place(logged, 0).text, parted[0]);
        logged->part[at] = 0;
    }
    logged->part[ROWS - 1] = 1;
    for (size_t row = 0; row < COUNT_OF(plain); row++)
        assert_string_equal(word_place(logged, row).text, parted[row]);
    assert_string_equal(word_place(logged, ROWS - 1).text, "update 8 (line 18, part 2)");
    logged->columns[0].source = "train/loss";
    assert_string_equal(word_column(logged, LOG_LOSS), "train/loss");
    assert_string_equal(word_column(logged, LOG_GRAD_NORM), "grad_norm");
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_points), cmocka_unit_test(validate_shared_points),
        cmocka_unit_test(validate_zeros),  cmocka_unit_test(validate_spacings),
        cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
