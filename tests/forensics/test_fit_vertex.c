/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The end of a decay that is a parabola: planted ones are found, exact and as they are printed; and
 * each condition that refuses one, from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/macro.h"
#include "forensics/fit_vertex.c" /* for its parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS_MOST = 80, TOP = 4, CASES = 3000 };

static struct series_point points[ROWS_MOST];

/* Rows 0 .. TOP are the top, and `last` is the last of the descent. */
static struct fit_window window_of(size_t last) {
    struct fit_window window = {.points = points, .count = ROWS_MOST};
    window.top_last = TOP;
    window.descent[1] = last;
    window.scale = points[0].value;
    return window;
}

/* Plants floor + bend (end - update)^2 from the top on, one row each `stride` updates. */
static void plant(uint64_t first, uint64_t stride, double bend, double end, double floor) {
    for (size_t i = 0; i < ROWS_MOST; i++) {
        const uint64_t update = first + stride * (uint64_t)(i < TOP + 1 ? 0 : i - TOP - 1);
        const double off = end - (double)update;
        points[i] =
            (struct series_point){.update = i < TOP + 1 ? first - (TOP + 1 - i) : update, .row = i};
        points[i].value = floor + bend * off * off;
    }
}

/* Off = 1 at the turn: what cannot be told from the next update is not worth a try. */
static void validate_planted(void **state) {
    (void)state;
    size_t found = 0, vague = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = 41, .number = number};
        const size_t last = TOP + 1 + ROWS + draws_pick(&draws, 60);
        const uint64_t stride = 1 + draws_pick(&draws, 9);
        const uint64_t first = 6 + draws_pick(&draws, 500);
        const uint64_t end = first + stride * (last - TOP) + draws_pick(&draws, 200);
        const double floor = (double)draws_pick(&draws, 10) * 1e-5;
        const int digits = (int)draws_pick(&draws, 8);
        const double bend = 1e-3 / (double)(end * end);
        plant(first, stride, bend, (double)end, floor);
        for (size_t i = 0; digits > 0 && i < ROWS_MOST; i++) {
            points[i].quantum = pow(10.0, -4.0 - digits);
            points[i].value = points[i].quantum * round(points[i].value / points[i].quantum);
        }
        struct fit_window window = window_of(last);
        struct fit_vertex out = {-1.0, -1.0};
        if (!fit_find_vertex(&window, &out)) {
            assert_true(digits > 0);
            vague++;
            continue;
        }
        found++;
        if (fabs(out.update - (double)end) > (digits == 0 ? 0.0 : 1.0))
            fail_msg("case %u: %g for %g", (unsigned)number, out.update, (double)end);
        if (digits == 0 && fabs(out.floor - floor) > 1e-9)
            fail_msg("case %u: floor %.17g for %.17g", (unsigned)number, out.floor, floor);
    }
    assert_true(found > CASES / 4);
    assert_true(vague > CASES / 8);
}

/* Numbers with which the parabola is computed without rounding, so that it is known which row is
 * off by exactly the slack: 33 rows, the first update 6. */
static struct fit_window exact_window(uint64_t end, double floor) {
    plant(6, 1, 1.0, (double)end, floor);
    return window_of(TOP + 1 + 32);
}

/* Returns by how much the row may be off. */
static double slack_of(const struct series_point *row, double scale) {
    double slack = fit_half(row, scale);
    for (size_t i = 0; i < 3; i++)
        slack += fit_half(&points[TOP + 1 + 16 * i], scale);
    return slack;
}

/* Moves a row as far as printing allows, and by the least steps less and more. */
static void validate_slack(void **state) {
    (void)state;
    size_t within = 0, beyond = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = 42, .number = number};
        const uint64_t end = 38 + draws_pick(&draws, 30);
        const double floor = (double)draws_pick(&draws, 64);
        const size_t n = 1 + draws_pick(&draws, 15);
        const double to = draws_pick(&draws, 2) == 0 ? 0.0 : 1e9;
        if (n == 8) continue; /* the middle one makes the parabola */
        struct fit_window window = exact_window(end, floor);
        struct series_point *const row = &points[TOP + 1 + 2 * n];
        struct fit_vertex out;
        const double expected = row->value;
        row->quantum = draws_pick(&draws, 2) == 0 ? 0.0 : 1e-9;
        assert_true(fit_find_vertex(&window, &out));
        assert_true(out.update == (double)end);
        const double slack = slack_of(row, window.scale);
        row->value += to > expected ? slack : -slack;
        for (int step = 0; step < 3; step++)
            row->value = nextafter(row->value, expected);
        for (int step = -3; step <= 3; step++) {
            const int is_within = fabs(row->value - expected) <= slack_of(row, window.scale);
            assert_int_equal(fit_find_vertex(&window, &out), is_within);
            within += (size_t)is_within;
            beyond += (size_t)!is_within;
            row->value = nextafter(row->value, to);
        }
    }
    assert_true(within > CASES && beyond > CASES);
}

/* At a turn at 0 a row can be off by exactly what printing allows. */
static void validate_exact_slack(void **state) {
    (void)state;
    for (size_t n = 1; n < LOOKS; n++) {
        if (n == 8) continue;
        for (int quanta = 0; quanta < 3; quanta++) {
            struct fit_window window = exact_window(6 + 2 * n, 0.0);
            struct series_point *const row = &points[TOP + 1 + 2 * n];
            struct fit_vertex out;
            assert_true(row->value == 0.0);
            row->quantum = 0.25 * quanta;
            for (int i = 0; i < 4; i++)
                row->value = slack_of(row, window.scale);
            assert_true(row->value == slack_of(row, window.scale));
            assert_true(fit_find_vertex(&window, &out));
            row->value = nextafter(row->value, 1e9);
            assert_false(fit_find_vertex(&window, &out));
        }
    }
}

/* Lets the printed digits of the first row leave the turn open by exactly one update, which is too
 * much, and by the least step less. */
static void validate_how_far_the_turn_is_open(void **state) {
    (void)state;
    size_t exact = 0;
    for (uint64_t end = 40; end < 140; end++) {
        struct fit_window window = exact_window(end, 8.0);
        struct fit_vertex out;
        double low = 0.0, high = 1e6, turn_off, value_off;
        struct parabola p;
        for (size_t i = 0; i < 3; i++) {
            p.at[i] = 16.0 * (double)i;
            p.value[i] = points[TOP + 1 + 16 * i].value;
        }
        for (int halving = 0; halving < 200; halving++) {
            double half[3];
            points[TOP + 1].quantum = 0.5 * (low + high);
            for (size_t i = 0; i < 3; i++)
                half[i] = fit_half(&points[TOP + 1 + 16 * i], window.scale);
            errors_of(&p, half, &turn_off, &value_off);
            if (turn_off == 1.0) break;
            if (turn_off < 1.0)
                low = points[TOP + 1].quantum;
            else
                high = points[TOP + 1].quantum;
        }
        assert_int_equal(fit_find_vertex(&window, &out), turn_off < 1.0);
        exact += turn_off == 1.0;
        points[TOP + 1].quantum *= 0.999;
        assert_true(fit_find_vertex(&window, &out));
        points[TOP + 1].quantum *= 1.002;
        assert_false(fit_find_vertex(&window, &out));
    }
    assert_true(exact > 10);
}

static void validate_refused(void **state) {
    (void)state;
    struct fit_window window = exact_window(60, 8.0);
    struct fit_vertex out;
    assert_true(fit_find_vertex(&window, &out));
    assert_true(out.update == 60.0);
    assert_true(out.floor == 8.0);
    window.constant = 1;
    assert_false(fit_find_vertex(&window, &out));
    window = window_of(TOP + 1 + ROWS);
    assert_true(fit_find_vertex(&window, &out));
    window.descent[1]--;
    assert_false(fit_find_vertex(&window, &out));
    window.descent[1] = 0;
    assert_false(fit_find_vertex(&window, &out));

    /* Updates that go back, or that stand. */
    static const size_t of_these[] = {16, 32};
    for (size_t i = 0; i < COUNT_OF(of_these); i++) {
        window = exact_window(60, 8.0);
        points[TOP + 1 + of_these[i]].update = 6;
        assert_false(fit_find_vertex(&window, &out));
    }
    window = exact_window(60, 8.0);
    points[TOP + 1 + 32] = points[TOP + 1 + 16];
    assert_false(fit_find_vertex(&window, &out));
    for (size_t n = 1; n < LOOKS; n++) {
        window = exact_window(60, 8.0);
        points[TOP + 1 + 2 * n].update = 5;
        assert_false(fit_find_vertex(&window, &out));
        window = exact_window(60, 8.0);
        points[TOP + 2 + 2 * n].value = 1e6; /* between the rows that are looked at */
        assert_true(fit_find_vertex(&window, &out));
    }

    /* A line, a floor below 0. */
    window = exact_window(60, 8.0);
    for (size_t i = 0; i < ROWS_MOST; i++)
        points[i].value = 1000.0 - (double)points[i].update;
    assert_false(fit_find_vertex(&window, &out));
    window = exact_window(60, -8.0);
    assert_false(fit_find_vertex(&window, &out));
    window = exact_window(60, 0.0);
    assert_true(fit_find_vertex(&window, &out));
    assert_true(out.floor == 0.0);
}

/* The line through the first and the last row, with what is said of it; rows between them may be
 * off by what printing allows to all three. */
static void validate_lines(void **state) {
    (void)state;
    size_t found = 0, refused = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = 43, .number = number};
        const size_t first = TOP + 1, last = first + ROWS - 2 + draws_pick(&draws, 40);
        const uint64_t stride = 1 + draws_pick(&draws, 4);
        const double slope = 0.25 * ((double)draws_pick(&draws, 9) - 6.0);
        const double half = 0.125 * draws_pick(&draws, 3);
        const size_t odd = first + draws_pick(&draws, (uint32_t)(last - first + 1));
        const double off = 0.125 * draws_pick(&draws, 6);
        plant(6, stride, 0.0, 0.0, 0.0);
        for (size_t i = 0; i < ROWS_MOST; i++) {
            points[i].value = 512.0 + slope * ((double)points[i].update - 6.0);
            points[i].quantum = 2.0 * half;
        }
        points[odd].value += off;
        struct fit_window window = window_of(last);
        window.constant = draws_pick(&draws, 16) == 0;
        struct fit_line out = {-1.0, -1.0, -1.0, -1.0, -1.0};
        const double way = (double)(points[last].update - points[first].update);
        const double through = (points[last].value - points[first].value) / way;
        const double at_first = fit_half(&points[first], window.scale);
        const double at_last = fit_half(&points[last], window.scale);
        int fits = !window.constant && last >= first + ROWS && through < 0.0;
        for (size_t n = 1; n < LOOKS && fits; n++) {
            const struct series_point *const row = &points[first + (last - first) * n / LOOKS];
            const double on = points[first].value + through * (double)(row->update - 6);
            fits = fabs(row->value - on) <= fit_half(row, window.scale) + at_first + at_last;
        }
        assert_int_equal(fit_find_line(&window, &out), fits);
        found += (size_t)fits;
        refused += (size_t)!fits;
        if (!fits) continue;
        assert_true(out.update == (double)points[last].update);
        assert_true(out.value == points[last].value);
        assert_true(out.slope == through);
        assert_true(out.half == at_last);
        assert_true(out.slope_off == (at_first + at_last) / way);
    }
    assert_true(found > CASES / 8 && refused > CASES / 8);
    /* Where the line is 0 a row can be off by exactly what printing allows. */
    for (size_t n = 1; n < LOOKS; n++)
        for (int quanta = 0; quanta < 3; quanta++) {
            struct fit_line out;
            plant(6, 1, 0.0, 0.0, 0.0);
            for (size_t i = 0; i < ROWS_MOST; i++)
                points[i].value = 6.0 + 2.0 * (double)n - (double)points[i].update;
            const struct fit_window window = window_of(TOP + 1 + 32);
            struct series_point *const row = &points[TOP + 1 + 2 * n];
            assert_true(row->value == 0.0);
            row->quantum = 0.25 * quanta;
            for (int i = 0; i < 4; i++)
                row->value =
                    fit_half(row, window.scale) + (fit_half(&points[TOP + 1], window.scale) +
                                                   fit_half(&points[TOP + 1 + 32], window.scale));
            assert_true(fit_find_line(&window, &out));
            row->value = nextafter(row->value, 1e9);
            assert_false(fit_find_line(&window, &out));
            row->value = 0.0; /* and no row lies in front of the first */
            assert_true(fit_find_line(&window, &out));
            row->update = 5;
            assert_false(fit_find_line(&window, &out));
        }
}

/* Rows that lie at one update have no slope: a log that ran its update again at the end. */
static void validate_a_way_of_nothing(void **state) {
    (void)state;
    for (uint64_t way = 0; way < 3; way++) {
        const size_t first = TOP + 1, last = first + ROWS;
        struct fit_line out;
        plant(6, 1, 0.0, 0.0, 0.0);
        for (size_t i = first; i <= last; i++) {
            points[i].update = i == last ? points[first].update + way : points[first].update;
            points[i].value = i == last ? 512.0 - (double)way : 512.0;
            points[i].quantum = 4.0;
        }
        struct fit_window window = window_of(last);
        assert_int_equal(fit_find_line(&window, &out), way > 0);
        points[first].update = 1000; /* and a way backwards is none */
        assert_false(fit_find_line(&window, &out));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_planted),
        cmocka_unit_test(validate_slack),
        cmocka_unit_test(validate_exact_slack),
        cmocka_unit_test(validate_refused),
        cmocka_unit_test(validate_how_far_the_turn_is_open),
        cmocka_unit_test(validate_lines),
        cmocka_unit_test(validate_a_way_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
