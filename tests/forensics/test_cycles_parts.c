/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A cosine read off its rows, part by part: which rows are looked at and in which cycle each lies,
 * the angle of a row and what its digits leave open, which rows make a line, and which peaks are
 * tried in which order; planted cosines of random numbers are found, with what is said of them held
 * against a second computation, and rows that lie on none are refused. */
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
#include "forensics/fit_cycles.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { MOST = 120, CASES = 2000 };

static const double PI = 3.14159265358979323846;

/* In front of the rows and behind them stand some that nobody is to read. */
static struct series_point guarded[MOST + 2];
static struct series_point *const points = guarded + 1;
static struct fit_window window;

static void open_window(size_t count) {
    memset(&window, 0, sizeof window);
    window.points = points;
    window.count = count;
    window.known_lr = (double)NAN;
    window.scale = 0.0;
    for (size_t i = 0; i < count; i++)
        window.scale = fmax(window.scale, fabs(points[i].value));
    guarded[0] = (struct series_point){.update = 5000, .value = 50.0};
    points[count] = (struct series_point){.update = 1, .value = 50.0};
}

/* ---- rows ---- */

/* Rows are taken evenly: row i of n is the next one that stands at or behind its share. */
static void corroborate_rows(void **state) {
    (void)state;
    size_t taken = 0, refused = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc0e5), .number = number};
        const size_t count = 3 + draws_pick(&draws, draws_pick(&draws, 2) == 0 ? 12 : MOST - 3);
        const uint32_t odd = draws_pick(&draws, 8), rise = draws_pick(&draws, 5);
        uint64_t update = 7;
        double value = 1.0;
        for (size_t i = 0; i < count; i++) {
            update += 1 + draws_pick(&draws, 3);
            value += i < rise                     ? (draws_pick(&draws, 3) == 0 ? 0.0 : 0.25)
                     : draws_pick(&draws, 5) == 0 ? 0.125
                                                  : -0.0625;
            if (draws_pick(&draws, 6) == 0) value += 0x1p-20;
            points[i] = (struct series_point){.update = update, .value = value};
            points[i].quantum = draws_pick(&draws, 2) == 0 ? 0.0625 : 0.0;
        }
        if (odd == 0) {
            const size_t at = 1 + draws_pick(&draws, (uint32_t)count - 1);
            points[at].update = points[at - 1].update - draws_pick(&draws, 2);
        }
        open_window(count);
        window.constant = odd == 1;
        for (int behind = 0; behind < 2; behind++) {
            struct rows rows;
            size_t first = 0, all, cycle = 0, listed = 0;
            int sound = odd != 1;
            while (behind && first + 1 < count && points[first + 1].value >= points[first].value)
                first++;
            all = count - first;
            sound &= all >= 6;
            for (size_t i = first + 1; i < count; i++)
                sound &= points[i].update > points[i - 1].update;
            const size_t want = all < 48 ? all : 48;
            const int is = take_rows(&window, behind, &rows);
            if (is != sound) fail_msg("case %u: taken: %d", number, is);
            taken += is != 0;
            refused += is == 0;
            if (!is) continue;
            assert_int_equal(rows.count, want);
            for (size_t i = 0; i < all; i++) {
                const struct series_point *const p = &points[first + i];
                const double half = fit_half(p, window.scale);
                if (i > 0 && p->value - p[-1].value > 2.0 * half) cycle++;
                if (listed == want) continue;
                /* The share that row `listed` of 48 stands at. */
                if (i * 47 < listed * (all - 1)) continue;
                assert_true(rows.at[listed] == (double)p->update);
                assert_true(rows.value[listed] == p->value && rows.half[listed] == half);
                assert_true(rows.cycle[listed] == (double)cycle);
                listed++;
            }
            assert_int_equal(rows.beginnings, cycle);
            assert_true(rows.at[0] == (double)points[first].update);
            assert_true(rows.at[want - 1] == (double)points[count - 1].update);
        }
    }
    assert_true(taken > 500 && refused > 300);
}

/* ---- angles ---- */

static void validate_angles(void **state) {
    (void)state;
    assert_true(angle_of(1.0, 0.0) == 0.0 && angle_of(1.5, 0.1) == 0.0);
    assert_true(angle_of(0.0, 0.0) == SCHED_PI && angle_of(-0.5, 0.1) == SCHED_PI);
    for (int i = 1; i < 1000; i++) {
        const double share = (double)i / 1000.0;
        const double angle = angle_of(share, sqrt(share * (1.0 - share)));
        assert_true(fabs(angle - acos(2.0 * share - 1.0)) < 1e-12);
    }
    static const double floors[] = {0.0, 0.25}, cycles[] = {0.0, 3.0};
    for (size_t f = 0; f < 2; f++)
        for (size_t c = 0; c < 2; c++)
            for (int n = -2; n <= 66; n++) {
                struct rows rows = {.count = 2};
                const struct fit_cycles of = {.peak = 2.0, .floor = floors[f]};
                const double bottom = floors[f] * 2.0, fall = 2.0 - bottom;
                double angle = -1.0, off = -1.0;
                rows.value[1] = bottom + fall * (double)n / 64.0;
                rows.half[1] = fall / 128.0;
                rows.cycle[1] = cycles[c];
                const int says = angle_of_row(&rows, 1, &of, &angle, &off);
                /* Below the floor or above the peak by more than half a step; at either it says
                 * nothing. */
                const int want = n < 0 || n > 64 ? -1 : n == 0 || n == 64 ? 0 : 1;
                if (says != want) fail_msg("%d: %d", n, says);
                if (want < 1) continue;
                const double share = (double)n / 64.0, slope = sqrt(share * (1.0 - share));
                assert_true(fabs(angle - acos(2.0 * share - 1.0) - PI * cycles[c]) < 1e-12);
                assert_true(fabs(off - rows.half[1] / (fall * slope)) < 1e-12);
            }
    /* The digits reach the floor, or the peak: half a step is allowed, no more. */
    for (int end = 0; end < 2; end++)
        for (int beyond = 0; beyond < 2; beyond++) {
            struct rows rows = {.count = 1};
            const struct fit_cycles of = {.peak = 2.0, .floor = 0.25};
            double angle, off;
            const double half = 0.125, out = beyond ? 0x1p-30 : 0.0;
            rows.half[0] = half;
            rows.value[0] = end ? 2.0 + half + out : 0.5 - half - out;
            assert_int_equal(angle_of_row(&rows, 0, &of, &angle, &off) < 0, beyond);
        }
    /* A row whose slope is below a thousandth says nothing. */
    for (int n = 0; n < 2; n++) {
        struct rows rows = {.count = 1};
        const struct fit_cycles of = {.peak = 1.0};
        double angle, off;
        rows.value[0] = n == 0 ? 0.99e-6 : 1.01e-6;
        assert_int_equal(angle_of_row(&rows, 0, &of, &angle, &off), n);
    }
}

/* ---- planted cosines ---- */

struct planted {
    double peak, floor, begin, length;
    size_t cycles;
};

static double planted_at(const struct planted *of, double update) {
    const double place = (update - of->begin) / of->length;
    const double in = of->cycles > 1 ? place - floor(place) : place;
    return of->floor * of->peak + of->peak * (1.0 - of->floor) * 0.5 * (1.0 + cos(PI * in));
}

/* Sums of weighted least squares once more, from the rows as they are. */
static void require_line(const struct planted *of, const struct fit_cycles *is, size_t first,
                         size_t count) {
    double s = 0.0, sx = 0.0, sxx = 0.0;
    for (size_t i = first; i < count; i++) {
        const double share = (points[i].value / of->peak - of->floor) / (1.0 - of->floor);
        const double slope = sqrt(fabs(share * (1.0 - share)));
        if (slope < 1e-3) continue;
        const double off =
            fit_half(&points[i], window.scale) / (of->peak * (1.0 - of->floor) * slope) + 0x1p-44;
        const double x = (double)points[i].update - is->middle;
        s += 1.0 / (off * off);
        sx += x / (off * off);
        sxx += x * x / (off * off);
    }
    /* Where the weight lies, and how far the digits turn the line about it. */
    assert_true(fabs(sx / s) < 1e-6 * of->length);
    const double turn = 4.0 * of->length * of->length / PI / sqrt(sxx);
    assert_true(fabs(is->length_off - turn) < 1e-6 * turn);
    assert_true(fabs(is->begin_off - turn * fabs(is->middle - is->begin) / is->length) <
                1e-6 * (is->begin_off + 1e-12));
}

static void corroborate_planted(void **state) {
    (void)state;
    size_t found = 0, exact = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc05e), .number = number};
        struct planted of;
        struct fit_cycles out;
        const size_t count = 8 + draws_pick(&draws, 38); /* all of them are looked at */
        const uint32_t digits = draws_pick(&draws, 3), odd = draws_pick(&draws, 4);
        of.floor = draws_pick(&draws, 2) == 0 ? 0.0 : 0.1;
        of.peak = (double)(1 + draws_pick(&draws, 9)) * 1e-4;
        of.cycles = 1 + 2 * draws_pick(&draws, 2);
        const double every = (double)(1 + draws_pick(&draws, 5));
        of.length =
            (double)count * every / (of.cycles > 1 ? 2.4 : 0.5 + 0.05 * draws_pick(&draws, 4));
        of.begin = 7.0 - 0.31 * of.length;
        for (size_t i = 0; i < count; i++) {
            points[i] = (struct series_point){.update = 7 + (uint64_t)every * i};
            points[i].value = planted_at(&of, (double)points[i].update);
            if (digits > 0) points[i].quantum = digits == 1 ? 1e-9 : 1e-7;
            if (digits > 0)
                points[i].value = points[i].quantum * round(points[i].value / points[i].quantum);
        }
        if (of.cycles == 1 && points[count - 1].value > points[count - 2].value) continue;
        if (odd == 0) points[2 + draws_pick(&draws, (uint32_t)count - 4)].value *= 0.9;
        open_window(count);
        memset(&out, 0, sizeof out);
        out.floor = of.floor;
        window.known_lr = of.peak;
        out.rows = 1; /* all of the rows */
        out.digits = 1;
        /* Where they do not rise at once, these are the rows behind the rise: turn 0. */
        if (points[0].value >= points[1].value) out.rows = 0;
        const int is = fit_next_cycles(&window, &out);
        if (odd == 0) {
            assert_false(is);
            continue;
        }
        if (!is) { /* digits of rows near the floor may reach below it */
            assert_true(digits > 0);
            continue;
        }
        found++;
        exact += digits == 0;
        assert_true(out.peak == of.peak);
        const double room = digits == 0 ? 1e-6 : digits == 1 ? 1e-2 : 0.3;
        if (fabs(out.length - of.length) > room * of.length)
            fail_msg("case %u: %g for %g", number, out.length, of.length);
        assert_true(fabs(out.begin - of.begin) < room * of.length);
        assert_true(fabs(out.angle - PI * (out.middle - of.begin) / of.length) < PI * room);
        assert_int_equal(out.beginnings > 0, of.cycles > 1);
        if (digits == 0) require_line(&of, &out, 0, count);
        /* With a peak that is known there is one turn. */
        assert_int_equal(out.digits, 4);
        assert_false(fit_next_cycles(&window, &out) && out.rows == 0);
    }
    assert_true(found > CASES / 3 && exact > CASES / 6);
}

/* Rows whose angles lie near a line, or not: some are flat and say nothing, some are off by as much
 * as a row may be, or more. */
static void draw_rows(struct draws *draws, struct rows *rows, const struct fit_cycles *c) {
    memset(rows, 0, sizeof *rows);
    rows->count = 6 + draws_pick(draws, 6);
    const double speed = draws_pick(draws, 12) == 0 ? -0.2 : 0.2, begin = draws_pick(draws, 4);
    const uint32_t noise = draws_pick(draws, 4), flat = draws_pick(draws, 3);
    double at = 10.0 + begin;
    for (size_t i = 0; i < rows->count; i++) {
        at += 1.0 + draws_pick(draws, 2);
        double angle =
            speed > 0.0 ? 0.3 + speed * (at - 11.0 - begin) : 2.9 + speed * (at - 11.0 - begin);
        if (draws_pick(draws, 4) == 0) angle += 1e-4 * ((double)draws_pick(draws, 9) - 4.0) * noise;
        rows->cycle[i] = floor(angle / PI);
        angle -= PI * rows->cycle[i];
        rows->at[i] = at;
        rows->value[i] = c->peak * (c->floor + (1.0 - c->floor) * 0.5 * (1.0 + cos(angle)));
        rows->half[i] = draws_pick(draws, 2) == 0 ? 1e-4 : 2e-4;
        if (flat == 0 && draws_pick(draws, 4) == 0) rows->value[i] = c->peak;
        if (flat == 1 && draws_pick(draws, 40) == 0) rows->value[i] = 1.1 * c->peak;
    }
    rows->beginnings = 3;
}

static void corroborate_lines(void **state) {
    (void)state;
    size_t lines = 0, none = 0, threes = 0, few = 0;
    for (uint32_t number = 0; number < 2 * CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x11e5), .number = number};
        struct fit_cycles c = {.peak = 2.0, .floor = draws_pick(&draws, 2) == 0 ? 0.0 : 0.25}, is;
        struct rows rows;
        double angle[LOOKS], off[LOOKS];
        int says[LOOKS], may = 1;
        draw_rows(&draws, &rows, &c);
        for (size_t i = 0; i < rows.count; i++)
            says[i] = angle_of_row(&rows, i, &c, &angle[i], &off[i]);

        /* The second row, the middle one and the last but one. */
        const size_t of[] = {1, rows.count / 2, rows.count - 2};
        for (size_t i = 3; i-- > 0;)
            if (says[of[i]] <= 0) may = says[of[i]] == 0 ? 2 : 3; /* the first of them decides */
        if (may == 1) {
            const double way = rows.at[of[2]] - rows.at[of[0]];
            const double on = (angle[of[0]] * (rows.at[of[2]] - rows.at[of[1]]) +
                               angle[of[2]] * (rows.at[of[1]] - rows.at[of[0]])) /
                              way;
            may = fabs(on - angle[of[1]]) <= off[of[0]] + off[of[1]] + off[of[2]];
            threes += may == 0;
        }
        assert_int_equal(may_be_line(&rows, &c), may == 3 ? 0 : may != 0);

        double s = 0.0, sx = 0.0, sy = 0.0;
        size_t used = 0;
        int sound = may == 1 || may == 2;
        for (size_t i = 0; i < rows.count; i++) {
            sound &= says[i] >= 0;
            if (says[i] <= 0) continue;
            used++;
            s += 1.0 / (off[i] * off[i]);
            sx += rows.at[i] / (off[i] * off[i]);
            sy += angle[i] / (off[i] * off[i]);
        }
        few += sound && used < 5;
        sound &= used >= 5;
        double turn = 0.0, spread = 0.0, worst = 0.0; /* about the weights' middle */
        for (size_t i = 0; i < rows.count && sound; i++)
            if (says[i] > 0) {
                const double x = rows.at[i] - sx / s, weight = 1.0 / (off[i] * off[i]);
                turn += weight * x * (angle[i] - sy / s);
                spread += weight * x * x;
            }
        const double speed = sound ? turn / spread : 0.0;
        for (size_t i = 0; i < rows.count && sound; i++)
            if (says[i] > 0)
                worst =
                    fmax(worst, fabs(angle[i] - sy / s - speed * (rows.at[i] - sx / s)) / off[i]);
        is.floor = c.floor;
        const int got = fit_line(&rows, 2.0, &is);
        if (fabs(worst - 2.0) < 1e-6) continue;
        sound &= speed > 0.0 && worst <= 2.0;
        if (got != sound) fail_msg("case %u: %d", number, got);
        lines += sound != 0;
        none += sound == 0;
        if (!sound) continue;
        const double length = PI / speed;
        assert_true(is.peak == 2.0 && is.beginnings == 3);
        assert_true(fabs(is.middle - sx / s) < 1e-9 && fabs(is.angle - sy / s) < 1e-9);
        assert_true(fabs(is.length - length) < 1e-9 * length);
        assert_true(fabs(is.begin - (sx / s - sy / s / speed)) < 1e-8);
        const double length_off = 4.0 * length / speed / sqrt(spread);
        assert_true(fabs(is.length_off - length_off) < 1e-9 * length_off);
        const double begin_off = length_off * fabs(sx / s - is.begin) / length;
        assert_true(fabs(is.begin_off - begin_off) < 1e-8 * begin_off);
        assert_false(fit_line(&rows, 0.0, &is) || fit_line(&rows, -2.0, &is));
        assert_false(fit_line(&rows, (double)NAN, &is));
    }
    assert_true(lines > CASES / 2 && none > CASES / 2 && threes > 50 && few > 20);
}

/* Which peaks are tried, where nobody said one: of one digit, of two and, where a cycle begins, of
 * three, from the largest LR on. */
static void validate_peaks(void **state) {
    (void)state;
    for (int cycles = 0; cycles < 2; cycles++)
        for (int at = 0; at < 3; at++) {
            static const double peaks[] = {3e-4, 3.2e-4, 3.21e-4};
            struct planted of = {peaks[at], 0.0, -40.0, 100.0, cycles ? 3u : 1u};
            struct fit_cycles out = {.floor = 0.0, .rows = 0, .digits = 1};
            size_t turns = 0;
            int seen = 0;
            double last = 0.0;
            int last_digits = 1, last_rows = 0;
            for (size_t i = 0; i < 40; i++) {
                points[i] = (struct series_point){.update = 3 + (cycles ? 5 : 1) * i};
                points[i].value = planted_at(&of, (double)points[i].update);
            }
            open_window(40);
            while (fit_next_cycles(&window, &out)) {
                assert_true(turns++ < 100);
                assert_true(out.rows >= last_rows);
                if (out.rows > last_rows) last = 0.0, last_digits = 1;
                assert_true(out.digits >= last_digits);
                if (out.digits > last_digits) last = 0.0;
                assert_true(out.peak > last);
                last = out.peak;
                last_digits = out.digits;
                last_rows = out.rows;
                const double step = pow(10.0, -4.0 - (out.digits - 1));
                assert_true(fabs(out.peak / step - round(out.peak / step)) < 1e-6);
                assert_true(out.digits == 1 ||
                            fabs(out.peak / step / 10.0 - round(out.peak / step / 10.0)) > 1e-6);
                seen += fabs(out.peak - of.peak) < 1e-12;
            }
            /* One digit more is tried where the rows show a beginning. */
            assert_int_equal(seen > 0, at < 2 || cycles);
        }
    static const double numbers[] = {1.0, 9.99, 10.0, 3e-5, 1.01e-3, 0.5, 99.0, 100.0};
    static const double powers[] = {1.0, 1.0, 10.0, 1e-5, 1e-3, 0.1, 10.0, 100.0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_true(fabs(power_below(numbers[i]) / powers[i] - 1.0) < 1e-12);
    for (size_t count = 5; count < 8; count++) { /* six rows, and an LR above 0 */
        struct planted of = {3e-4, 0.0, -2.0, 20.0, 1};
        struct fit_cycles out = {.floor = 0.0, .rows = 0, .digits = 1};
        for (size_t i = 0; i < count; i++) {
            points[i] = (struct series_point){.update = 1 + i};
            points[i].value = planted_at(&of, (double)points[i].update);
        }
        open_window(count);
        window.known_lr = 3e-4;
        assert_int_equal(fit_next_cycles(&window, &out), count >= 6);
        out = (struct fit_cycles){.floor = 0.0, .rows = 0, .digits = 1};
        window.scale = 0.0;
        assert_false(fit_next_cycles(&window, &out));
    }
}

/* Tells whether a peak is found of these rows, and counts all that are. */
static int finds_peak(double peak, double floor, size_t *turns) {
    struct fit_cycles out = {.floor = floor, .digits = 1};
    int seen = 0;
    *turns = 0;
    while (fit_next_cycles(&window, &out)) {
        assert_true((*turns)++ < 1000);
        seen |= out.peak == peak;
    }
    return seen;
}

/* Rows may all lie at a half of the peak and below where a cycle begins between them, and at a
 * tenth where none does: that high a peak is tried, and none above it. */
static void validate_highest_peaks(void **state) {
    (void)state;
    size_t turns;
    static const double restarts[] = {2.0, 3.0};
    for (size_t at = 0; at < COUNT_OF(restarts); at++)
        for (uint64_t cycles = 2; cycles < 4; cycles++) { /* one beginning, or two */
            const double peak = restarts[at];
            const uint64_t from = at == 0 ? 8 : 10, length = at == 0 ? 16 : 15;
            size_t count = 0;
            for (uint64_t k = 0; k < cycles * length; k++) {
                if (k % length < from) continue;
                points[count] = (struct series_point){.update = 100 + k};
                points[count++].value =
                    0.5 * peak * (1.0 + cos(PI * (double)(k % length) / (double)length));
            }
            if (at == 0) assert_true(fabs(points[0].value - 1.0) < 1e-15);
            if (at == 0)
                for (size_t i = 0; i < count; i += length - from)
                    points[i].value = 1.0;
            open_window(count);
            assert_int_equal(finds_peak(peak, 0.0, &turns), at == 0);
        }
    for (int above = 0; above < 2; above++) { /* the LR of the first row is 1, of 10 or of 11 */
        const double peak = above ? 11.0 : 10.0, first = acos(2.0 / peak - 1.0);
        const double begin = 100.0 - 20.0 * first / (PI - first), length = 120.0 - begin;
        for (size_t i = 0; i < 20; i++) {
            points[i] = (struct series_point){.update = 100 + i};
            points[i].value =
                0.5 * peak * (1.0 + cos(PI * ((double)points[i].update - begin) / length));
        }
        assert_true(fabs(points[0].value - 1.0) < 1e-14);
        points[0].value = 1.0;
        open_window(20);
        assert_int_equal(finds_peak(peak, 0.0, &turns), !above);
    }
}

/* All rows are looked at where the LR rises at once. Rows that print alike are no rise. */
static void validate_rises(void **state) {
    (void)state;
    size_t turns;
    for (size_t count = 6; count < 9; count++) { /* of these the first two print alike */
        for (size_t i = 0; i < count; i++) {
            points[i] = (struct series_point){.update = 1 + i, .quantum = 1e-5};
            points[i].value = 0.5e-3 * (1.0 + cos(PI * (double)i / 20.0));
            points[i].value = 1e-5 * round(points[i].value / 1e-5);
        }
        points[0].value = points[1].value;
        open_window(count);
        window.known_lr = 1e-3;
        points[0].quantum = points[1].quantum = 2e-5;
        (void)finds_peak(1e-3, 0.0, &turns); /* those behind it, where they are enough */
        if (turns != (count - 1 >= 6)) fail_msg("%zu rows: %zu turns", count, turns);
    }
    /* A cycle that begins at the second row, above the first, and falls below it at the third. */
    for (int rises = 0; rises < 2; rises++) {
        const struct planted of = {1e-3, 0.0, rises ? 8.88 : 9.52, 1.6, 15};
        for (size_t i = 0; i < 15; i++) {
            points[i] = (struct series_point){.update = 10 + i};
            points[i].value = planted_at(&of, (double)points[i].update);
        }
        assert_int_equal(points[1].value > points[0].value, rises);
        if (rises) assert_true(points[0].value >= points[2].value);
        open_window(15);
        window.known_lr = 1e-3;
        assert_true(finds_peak(1e-3, 0.0, &turns));
        assert_int_equal(turns, rises ? 2 : 1);
    }
}

/* All turns in order: the peaks from the largest LR on, by their digits, of the rows behind the
 * first rise and then of all rows, where that is another thing. */
static void corroborate_turns(void **state) {
    (void)state;
    size_t turns_seen = 0, second = 0, begun = 0;
    for (uint32_t number = 0; number < 110; number++) {
        struct draws draws = {.key = UINT64_C(0x7095), .number = number};
        struct planted of = {.peak = 3e-4, .cycles = 1 + 2 * draws_pick(&draws, 2)};
        struct fit_cycles is = {.digits = 1};
        const size_t count = 7 + draws_pick(&draws, 30);
        const uint32_t digits = draws_pick(&draws, 3), rise = draws_pick(&draws, 3);
        of.length = (double)count / (of.cycles > 1 ? 2.4 : 1.5);
        of.begin = 3.0 - 0.3 * of.length;
        if (rise == 0 && of.cycles > 1) of.begin = 3.7; /* row 0 is the last of a cycle */
        is.floor = of.floor = draws_pick(&draws, 2) == 0 ? 0.0 : 0.1;
        for (size_t i = 0; i < count; i++) {
            points[i] =
                (struct series_point){.update = 3 + i, .quantum = digits == 0 ? 1e-6 : 1e-5};
            points[i].value = planted_at(&of, (double)points[i].update);
        }
        if (rise == 0 && of.cycles == 1) points[0].value *= 0.5;
        if (rise == 1) points[0].value = points[1].value;
        open_window(count);
        /* Which number comes first is left to rounding there. */
        if (fabs(1e6 * window.scale - round(1e6 * window.scale)) < 1e-6) continue;
        const double tenth = window.scale >= 1e-4 ? 1e-4 : 1e-5;
        for (int pass = 0; pass < 2; pass++) {
            struct rows rows;
            if (pass == 1 && points[0].value >= points[1].value) continue;
            if (!take_rows(&window, pass == 0, &rows)) continue;
            const int cycles = rows.beginnings > 0;
            double step = tenth;
            for (int d = 1; d <= (cycles ? 3 : 2); d++, step *= 0.1)
                for (int n = (int)floor(window.scale / step);
                     n * step <= (cycles ? 2.0 : 10.0) * window.scale * (1.0 + 1e-12); n++) {
                    struct fit_cycles want = {.floor = is.floor};
                    char text[32];
                    if (d > 1 && n % 10 == 0) continue;
                    snprintf(text, sizeof text, "%de-%d", n, (tenth > 5e-5 ? 4 : 5) + d - 1);
                    if (!fit_line(&rows, strtod(text, NULL), &want)) continue;
                    if (!fit_next_cycles(&window, &is)) fail_msg("case %u: no %s", number, text);
                    if (is.peak != want.peak || is.digits != d || is.rows != pass)
                        fail_msg("case %u: %g for %g", number, is.peak, want.peak);
                    assert_true(is.length == want.length && is.begin == want.begin);
                    turns_seen++;
                    second += pass == 1;
                    begun += cycles && d == 3;
                }
        }
        assert_false(fit_next_cycles(&window, &is));
        assert_false(fit_next_cycles(&window, &is)); /* it stays at its end */
    }
    assert_true(turns_seen > 150 && second > 10 && begun > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_rows),       cmocka_unit_test(validate_angles),
        cmocka_unit_test(corroborate_planted),    cmocka_unit_test(corroborate_lines),
        cmocka_unit_test(validate_highest_peaks), cmocka_unit_test(validate_rises),
        cmocka_unit_test(validate_peaks),         cmocka_unit_test(corroborate_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
