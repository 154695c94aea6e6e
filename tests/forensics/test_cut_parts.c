/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Numbers whose digits were cut off, part by part and told a second time: what can be cut and how
 * far an update moves it over grids of numbers, columns and series of random whole numbers around
 * each threshold, and which of two fits a column gets, over all of their properties. The search is
 * replaced. */
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
#include "forensics/compare_parts.h"
#define fit_logged given_logged
#define fit_series given_series
static double given_logged(const struct fit *fit, size_t point, uint64_t update);
static enum status given_series(const struct series *series, const struct fit_known *known,
                                struct arena *arena, struct fit_set *out);
#include "forensics/cut_digits.c" /* for its parts, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 14, CASES = 30000 };

static struct draws draws;
static struct arena arena;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

/* ---- single numbers ---- */

static void corroborate_middles(void **state) {
    (void)state;
    for (int value = -4; value < 5; value++)
        for (int step = 0; step < 4; step++) {
            double quantum = (double)step;
            const double middle = middle_of((double)value, &quantum);
            /* Away from 0 by half a step; of 0 the sign is open, and with it a step on each side.
             */
            assert_true(middle == (double)value + 0.5 * step * ((value > 0) - (value < 0)));
            assert_true(quantum == (value == 0 ? 2.0 : 1.0) * step);
        }
}

static void corroborate_far(void **state) {
    (void)state;
    for (uint64_t from = 0; from < 4; from++)
        for (uint64_t to = 0; to < 5; to++)
            for (int gap = -13; gap < 14; gap++)
                for (int step = 0; step < 4; step++) {
                    const struct series_point a = {.update = from, .value = 3.0, .quantum = 9.0};
                    const struct series_point b = {
                        .update = to, .value = 3.0 + gap, .quantum = 0.5 * step};
                    const int expected = to > from && abs(gap) > step * ((int)to - (int)from);
                    assert_int_equal(is_far(&a, &b) != 0, expected);
                }
}

/* ---- a column beside another one ---- */

static struct series_point points[2][ROWS + 1];
static struct compare_column column;

/* Numbers that are moved by up to five steps, of which one log shows all and the other what stands
 * in front of the point, or the nearest whole number. */
static void make_column(size_t side) {
    const uint32_t kind = pick(6), moves = 1 + pick(5);
    const size_t rows = 6 + pick(6);
    double value = (double)pick(9) - 4.0;
    memset(&column, 0, sizeof column);
    for (size_t i = 0; i < rows; i++) {
        value += (double)pick(2 * moves + 1) - (double)moves + 0.125 * (double)(pick(8));
        if (value > 40.0 || value < -40.0) value = 0.125;
        const double rounded = floor(value + 0.5), shown = kind == 0 ? rounded : trunc(value);
        points[1 - side][i] = (struct series_point){
            .update = i + 1, .value = value, .quantum = kind == 1 ? 0.25 : 0.0};
        points[side][i] = (struct series_point){.update = i + 1, .value = shown, .quantum = 1.0};
        if (kind == 2 && pick(12) == 0) points[side][i].value += 1.0;
        if (kind == 3 && pick(6) == 0)
            points[pick(2)][i].value = pick(2) ? (double)NAN : (double)INFINITY;
        if (kind == 4 && pick(6) == 0) points[0][i].update = 0; /* not in both */
        if (kind == 5) points[1 - side][i].value = shown + (pick(3) == 0 ? 0.625 : 0.25);
    }
    for (size_t s = 0; s < 2; s++) {
        size_t n = 0;
        for (size_t i = 0; i < rows; i++)
            if (points[s][i].update > 0) points[s][n++] = points[s][i];
        column.side[s].points = points[s];
        column.side[s].count = n;
    }
}

static int apart(double a, double qa, double b, double qb) {
    return fabs(a - b) > 0.5 * (qa + qb);
}

static int expected_cut(size_t side, size_t *pairs) {
    size_t differ = 0, far = 0;
    const struct series_point *before = NULL;
    *pairs = 0;
    for (size_t i = 0; i < column.side[side].count; i++)
        for (size_t j = 0; j < column.side[1 - side].count; j++) {
            const struct series_point *const cut = &points[side][i], *const other =
                                                                         &points[1 - side][j];
            if (cut->update != other->update || !isfinite(cut->value) || !isfinite(other->value))
                continue;
            /* From the number on, away from 0, by one step; of 0 to either side. */
            const double low = cut->value > 0.0 ? cut->value : cut->value - cut->quantum;
            const double high = cut->value < 0.0 ? cut->value : cut->value + cut->quantum;
            if (other->value + 0.5 * other->quantum < low ||
                other->value - 0.5 * other->quantum > high)
                return 0;
            differ += apart(cut->value, cut->quantum, other->value, other->quantum) != 0;
            if (before != NULL)
                far += fabs(cut->value - before->value) >
                       2.0 * cut->quantum * (double)(cut->update - before->update);
            before = cut;
            ++*pairs;
        }
    return *pairs >= 8 && differ >= 3 && far >= 3;
}

static void corroborate_cut_columns(void **state) {
    (void)state;
    size_t cut = 0, whole = 0, least = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        size_t pairs;
        draws = (struct draws){.key = UINT64_C(0xc07), .number = number};
        const size_t side = pick(2), asked = pick(8) == 0 ? 1 - side : side;
        make_column(side);
        const int expected = expected_cut(asked, &pairs);
        if (!!is_cut(&column, asked) != expected) fail_msg("case %u: not %d", number, expected);
        cut += expected != 0;
        whole += expected == 0;
        least += expected != 0 && pairs == 8;
    }
    assert_true(cut > 2000 && whole > 2000 && least > 200);
}

/* Every column of two logs is held, the first and the last of the names as well, and that of the
 * log whose digits are cut off is read anew, with a note behind those that it had. */
static void validate_by_columns(void **state) {
    (void)state;
    for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++)
        for (int side = 0; side < 2; side++)
            for (int how = 0; how < 4; how++) {
                struct log *logs[2];
                static const char *const had[] = {"the first note"};
                arena_close(&arena);
                arena = (struct arena)ARENA_EMPTY;
                for (int s = 0; s < 2; s++) {
                    logs[s] = helper_log(&arena, 10);
                    logs[s]->notes = had;
                    logs[s]->note_count = 1;
                    for (size_t row = 0; row < 10; row++) {
                        const double value =
                            (row % 3 == 0 ? -1.0 : 1.0) * (8.0 * (double)row + 0.75);
                        if (how == 1 && s == side) continue; /* that log lacks the column */
                        if (how == 2 && row == 4 && s == side) continue; /* or one number */
                        helper_put(&arena, logs[s], (enum log_name)name, row,
                                   s == side && how < 3 ? trunc(value) : value, PRINT_EXACT);
                        struct log_column *const of = (struct log_column *)(uintptr_t)log_column_of(
                            logs[s], (enum log_name)name);
                        of->source = s == side ? "of that log" : "of the other";
                        of->quantum[row] = s == side ? 1.0f : 0.0f;
                        if (row == 5) of->value[row] = (double)INFINITY;
                    }
                }
                const int expected = how == 0 || how == 2; /* nine rows, or eight */
                assert_int_equal(cut_digits_by_other(logs[0], logs[1], &arena), STATUS_OK);
                for (int s = 0; s < 2; s++) {
                    const int read_anew = expected && s == side;
                    const struct log_column *const of = log_column_of(logs[s], (enum log_name)name);
                    assert_int_equal(logs[s]->note_count, 1 + read_anew);
                    assert_string_equal(logs[s]->notes[0], "the first note");
                    if (!read_anew) continue;
                    char text[256];
                    snprintf(text, sizeof text,
                             "the digits of of that log are cut off and not rounded, by the "
                             "numbers of %c: each is read as the middle of what it can be",
                             "BA"[side]);
                    assert_string_equal(logs[s]->notes[1], text);
                    for (size_t row = 0; row < 10; row++) {
                        const double sign = row % 3 == 0 ? -1.0 : 1.0;
                        if (how == 2 && row == 4) {
                            assert_false(log_has(of, row));
                            continue;
                        }
                        if (row == 5) {
                            assert_true(isinf(of->value[row]) && of->quantum[row] == 1.0f);
                            continue;
                        }
                        /* 0.75 becomes 0, of either sign. */
                        assert_true(of->value[row] ==
                                    (row == 0 ? 0.0 : sign * (8.0 * (double)row + 0.5)));
                        assert_true(of->quantum[row] == (row == 0 ? 2.0f : 1.0f));
                    }
                }
            }
}

/* ---- a column by itself ---- */

static void corroborate_series(void **state) {
    (void)state;
    size_t stored = 0, left = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xc08), .number = number};
        const struct series series = {points[0], 6 + pick(6)};
        const uint32_t kind = pick(5);
        struct series out = {points[1], 3};
        size_t printed = 0, far = 0;
        int finite = 1;
        double value = (double)pick(5);
        if (number % 64 == 0) {
            arena_close(&arena);
            arena = (struct arena)ARENA_EMPTY;
        }
        for (size_t i = 0; i < series.count; i++) {
            value += (double)pick(8) - 3.0;
            points[0][i] = (struct series_point){.update = i + 1 + (kind == 1 ? i : 0),
                                                 .row = 3 * i,
                                                 .value = value,
                                                 .quantum = kind == 2 && pick(4) == 0 ? 0.0 : 1.0};
            if (kind == 3 && i > 0 && pick(8) == 0) points[0][i].update = points[0][i - 1].update;
            if (kind == 4 && pick(30) == 0) points[0][i].value = (double)NAN;
        }
        for (size_t i = 0; i < series.count; i++) {
            const struct series_point *const now = &points[0][i], *const before = now - 1;
            finite &= isfinite(now->value) != 0;
            printed += now->quantum > 0.0 && (i == 0 || now->value != before->value);
            if (i > 0 && now->update > before->update)
                far += fabs(now->value - before->value) >
                       2.0 * now->quantum * (double)(now->update - before->update);
        }
        const int expected = finite && printed >= 8 && far >= 3;
        assert_int_equal(cut_digits_series(&series, &arena, &out), STATUS_OK);
        if (out.count != (expected ? series.count : 0)) fail_msg("case %u", number);
        if ((out.points == NULL) == expected) fail_msg("case %u", number);
        for (size_t i = 0; i < out.count; i++) {
            const struct series_point *const of = &points[0][i];
            assert_int_equal(out.points[i].update, of->update);
            assert_int_equal(out.points[i].row, of->row);
            assert_true(out.points[i].value ==
                        of->value + 0.5 * of->quantum * ((of->value > 0.0) - (of->value < 0.0)));
            assert_true(out.points[i].quantum == (of->value == 0.0 ? 2.0 : 1.0) * of->quantum);
        }
        stored += expected != 0;
        left += expected == 0;
    }
    assert_true(stored > 3000 && left > 3000);
}

/* ---- which fit a column gets ---- */

static double logged[4];
static size_t asked;
static struct fit_set answers[2];
static struct fit fits[2];
static struct fit_known known;
static struct fit_skip skip = {.first = 2, .last = 2, .count = 1};

static double given_logged(const struct fit *fit, size_t point, uint64_t update) {
    assert_true(fit == &fits[1] && update == points[1][point].update);
    return point < COUNT_OF(logged) ? logged[point] : (double)point + 10.0;
}

static enum status given_series(const struct series *series, const struct fit_known *of,
                                struct arena *in, struct fit_set *out) {
    assert_true(of == &known && in == &arena && asked < 2);
    *out = answers[asked++];
    out->series = series;
    return STATUS_OK;
}

/* A schedule moves wherever the digits do. */
static void corroborate_what_may_be(void **state) {
    (void)state;
    for (int number = 0; number < 81 * 81; number++) {
        int left = number, expected = 1;
        for (size_t i = 0; i < 4; i++, left /= 3)
            points[1][i] =
                (struct series_point){.update = 5 + i, .row = i, .value = (double)(left % 3)};
        for (size_t i = 0; i < 4; i++, left /= 3)
            logged[i] = left % 3 == 2 ? (double)NAN : (double)(left % 3);
        for (size_t count = 0; count < 5; count++) {
            const struct series cut = {points[1], count};
            if (count > 1) {
                const double before = logged[count - 2], now = logged[count - 1];
                const int moves = before < now || before > now;
                if (points[1][count - 1].value != points[1][count - 2].value && !moves)
                    expected = 0;
            }
            assert_int_equal(cut_digits_may_be(&fits[1], &cut) != 0, expected);
        }
    }
}

static void make_fit(size_t n, unsigned flags) {
    memset(&fits[n], 0, sizeof fits[n]);
    memset(&answers[n], 0, sizeof answers[n]);
    fits[n].stride = (flags & 1) != 0 ? 2.0 : (flags & 2) != 0 ? 0.5 : 1.0;
    fits[n].segment_count = (flags & 4) != 0 ? 2 : 1;
    fits[n].bug = (flags & 8) != 0 ? "lag1" : NULL;
    fits[n].unsound = (flags & 16) != 0;
    fits[n].first_differs = (flags & 32) != 0;
    fits[n].skips = (flags & 64) != 0 ? &skip : NULL;
    fits[n].skip_count = (flags & 64) != 0;
    answers[n].fits = &fits[n];
    answers[n].count = (flags & 128) == 0;
}

static void corroborate_fits(void **state) {
    (void)state;
    static const double simpler[] = {0.0, 0.5, 0.99, 1.0, 1.01, 2.0};
    size_t taken = 0;
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second += first == 4 ? 1 : 85)
            for (size_t s = 0; s < COUNT_OF(simpler); s++)
                for (int how = 0; how < 4; how++) {
                    struct log *log;
                    struct fit_set set;
                    make_fit(0, first);
                    make_fit(1, second);
                    asked = 0;
                    if (s == 0) {
                        arena_close(&arena);
                        arena = (struct arena)ARENA_EMPTY;
                    }
                    fits[0].simplicity = 0.25 + simpler[s];
                    fits[1].simplicity = 0.25;
                    log = helper_log(&arena, 9);
                    for (size_t i = 0; i < 9; i++) {
                        helper_put(&arena, log, LOG_LR_LOGGED, i, 5.0 * (double)i, PRINT_EXACT);
                        points[0][i] = points[1][i] = (struct series_point){
                            .update = i + 1, .row = i, .value = 5.0 * (double)i, .quantum = 1.0};
                    }
                    for (size_t i = 0; i < COUNT_OF(logged); i++)
                        logged[i] = (double)i;
                    if (how == 1) log->step_guessed = 1;
                    if (how == 2) logged[2] = logged[1]; /* it stands still */
                    struct series series = {points[0], how == 3 ? 7 : 9};
                    const int plain = first == 0, other_plain = second == 0;
                    const int none = (first & 128) != 0;
                    const int expected =
                        how == 0 && !plain && other_plain && (none || simpler[s] >= 1.0);
                    const int searched = how != 1 && how != 3 && !plain ? 2 : 1;
                    assert_int_equal(cut_digits_fit(log, &series, &known, &arena, &set), STATUS_OK);
                    assert_int_equal(asked, searched);
                    assert_ptr_equal(set.series, &series);
                    assert_ptr_equal(set.fits, expected ? &fits[1] : &fits[0]);
                    assert_int_equal(log->note_count, expected);
                    taken += expected != 0;
                    if (!expected) {
                        assert_ptr_equal(series.points, points[0]);
                        assert_true(log->columns[0].value[2] == 10.0);
                        continue;
                    }
                    for (size_t i = 0; i < 9; i++) {
                        const double middle = i == 0 ? 0.0 : 5.0 * (double)i + 0.5;
                        assert_true(series.points[i].value == middle);
                        assert_true(log->columns[0].value[i] == middle);
                        assert_true(log->columns[0].quantum[i] == (i == 0 ? 2.0f : 1.0f));
                    }
                    char text[256];
                    snprintf(text, sizeof text,
                             "the digits of %s are cut off and not rounded: read so, a schedule "
                             "gives every number of it, and read as rounded none does; each is "
                             "read as the middle of what it can be",
                             log->columns[0].source);
                    assert_string_equal(log->notes[0], text);
                }
    assert_true(taken > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_middles),     cmocka_unit_test(corroborate_far),
        cmocka_unit_test(corroborate_cut_columns), cmocka_unit_test(validate_by_columns),
        cmocka_unit_test(corroborate_series),      cmocka_unit_test(corroborate_what_may_be),
        cmocka_unit_test(corroborate_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
