/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Lengths of a decay behind a plateau that are tried, whole lists in their order: for random
 * columns of each shape, exact, rounded and with a row that is off, computed once more with the
 * inverse of each shape in closed form. The ends of rows, runs and counters are met from both
 * sides.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_solve.h"
static size_t given_floors(const double **out);
#define fit_typed_floors given_floors
#include "forensics/fit_decays.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 48, CASES = 6000 };

/* In front of the rows and behind them stand some that nobody is to read. */
static struct series_point guarded[ROWS + 3];
static struct series_point *const points = guarded + 1;
static struct series series;
static double scale;
static struct draws draws;

/* Shares of a peak, and below 1e-4 LRs. */
static size_t given_floors(const double **out) {
    static const double floors[] = {0.1,  1e-5, 0.05,  1.5e-4, 0.2, 1e-4,
                                    9e-5, 0.5,  0.015, 0.3,    2e-4};
    *out = floors;
    return COUNT_OF(floors);
}

static double left_at(size_t shape, double done) {
    return shape == SHAPE_COSINE   ? (1.0 + cos(SCHED_PI * done)) / 2.0
           : shape == SHAPE_ROOT   ? 1.0 - sqrt(done)
           : shape == SHAPE_HALVES ? 2.0 * pow(0.5, done) - 1.0
                                   : 1.0 - done;
}

static double done_at(size_t shape, double left) {
    if (left >= 1.0) return 0.0;
    if (left <= 0.0) return 1.0;
    return shape == SHAPE_COSINE   ? acos(2.0 * left - 1.0) / SCHED_PI
           : shape == SHAPE_ROOT   ? (1.0 - left) * (1.0 - left)
           : shape == SHAPE_HALVES ? -log2((1.0 + left) / 2.0)
                                   : 1.0 - left;
}

static void validate_shapes(void **state) {
    (void)state;
    for (size_t shape = 0; shape < FIT_SHAPES; shape++)
        for (int n = 0; n <= 64; n++) {
            const double done = n / 64.0, left = left_at(shape, done);
            assert_true(fabs(left_of(shape, done) - left) < 1e-14);
            assert_true(fabs(done_of(shape, left) - done) < (shape == SHAPE_COSINE ? 1e-7 : 1e-14));
        }
    assert_true(done_of(SHAPE_LINEAR, 2.0) < 1e-14 && done_of(SHAPE_LINEAR, -2.0) > 1.0 - 1e-14);
    /* To the last digits: of an exact column, a middle row is held against it. */
    assert_true(fabs(done_of(SHAPE_LINEAR, 0.3) - 0.7) <= 0x1p-48);
}

/* ---- lengths of one fall ---- */

/* `doubt` is set where a threshold is too near to say on which side the rows stand. */
static int doubt, near_flat; /* and wider where a cosine is flat and its inverse rough */

static int above(double a, double b, double size) {
    if (fabs(a - b) <= (near_flat ? 1e-10 : 1e-14) * size) doubt = 1;
    return a > b;
}

static double want_length(const struct fall *f, size_t shape, double floor, double *end,
                          double *open) {
    const struct series_point *const rows[] = {&f->points[f->first], &f->points[f->last]};
    const double bottom = floor * f->peak, fall = f->peak - bottom;
    const double way = (double)rows[1]->update - (double)rows[0]->update;
    double done[2], early[2], late[2];
    near_flat = shape == SHAPE_COSINE;
    if (rows[1]->value < bottom) return 0.0;
    for (int i = 0; i < 2; i++) {
        const double half = fit_half(rows[i], f->peak);
        done[i] = done_at(shape, (rows[i]->value - bottom) / fall);
        early[i] = done_at(shape, (rows[i]->value + half - bottom) / fall);
        late[i] = done_at(shape, (rows[i]->value - half - bottom) / fall);
    }
    if (shape == SHAPE_ROOT && done[0] < 1e-9) doubt = 1; /* it begins too steep to say more */
    const double length = way / (done[1] - done[0]);
    if (fabs(length - 2.0) < 1e-9 || length > 1e5) doubt = 1;
    if (!(length >= 2.0) || length >= 1e9) return 0.0;
    *end = (double)rows[0]->update + (1.0 - done[0]) * length;
    *open = way / (early[1] - late[0]) - way / (late[1] - early[0]);
    for (size_t n = 1; n <= 3; n++) {
        const struct series_point *const row = &f->points[f->first + (f->last - f->first) * n / 4];
        const double part = ((double)row->update - (double)rows[0]->update) / way;
        const double half = fit_half(row, f->peak) + 0x1p-44 * f->peak;
        const double most = left_at(shape, early[0] * (1.0 - part) + early[1] * part);
        const double less = left_at(shape, late[0] * (1.0 - part) + late[1] * part);
        if (above(row->value - half, bottom + fall * most, f->peak) ||
            above(bottom + fall * less, row->value + half, f->peak))
            return 0.0;
    }
    return length;
}

static double one_of(const double *from, size_t count) {
    return from[draws_pick(&draws, (uint32_t)count)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

static void print_row(size_t i, double quantum) {
    points[i].quantum = quantum;
    if (quantum > 0.0) points[i].value = quantum * rint(points[i].value / quantum);
}

/* Rows of a rise, a plateau and a decay of some shape, with what follows it now and then. */
static void draw_column(void) {
    const size_t rise = draws_pick(&draws, 3), flat = draws_pick(&draws, 4);
    const size_t fall = draws_pick(&draws, 14), tail = draws_pick(&draws, 6) == 0 ? 2 : 0;
    const size_t shape = draws_pick(&draws, 5), count = rise + flat + fall + tail;
    const uint64_t every = 1 + draws_pick(&draws, 12), length = 2 + draws_pick(&draws, 200);
    static const double typed[] = {0.0, 0.0, 0.1, 0.05, 0.2, 0.5, 0.015, 0.3};
    double floor = typed[draws_pick(&draws, COUNT_OF(typed))];
    uint64_t update = 1 + draws_pick(&draws, 4);
    scale = ONE_OF(3e-4, 1e-3, 2e-5, 1.0);
    if (draws_pick(&draws, 8) == 0) floor = 1e-5 / scale < 1.0 ? 1e-5 / scale : 0.0;
    const double digits = ONE_OF(0.0, 0.0, 1e-6, 1e-4, 1e-3, 1e-2) * scale;
    uint64_t top = 0;
    for (size_t i = 0; i < count; i++, update += every) {
        points[i] = (struct series_point){.update = update, .row = i, .value = scale};
        if (i < rise) points[i].value = scale * (double)(i + 1) / 4.0;
        if (i < rise + flat) top = update - draws_pick(&draws, (uint32_t)every);
        if (i >= rise + flat) {
            const double done = fmin(1.0, (double)(update - top) / (double)length);
            points[i].value = scale * (floor + (1.0 - floor) * left_at(shape, done));
            if (shape == FIT_SHAPES) points[i].value = scale * pow(0.9, (double)(i + 1));
        }
        if (draws_pick(&draws, 40) == 0) points[i].value *= 0.98;
        print_row(i, draws_pick(&draws, 30) == 0 ? 0.0 : digits);
        if (i > rise + flat && draws_pick(&draws, 16) == 0) { /* as large as half of its digits */
            points[i].quantum = points[i].value * ONE_OF(1.5, 1.9, 2.1);
            if (draws_pick(&draws, 3) == 0)
                for (int n = 0; n < 20; n++)
                    points[i].value = fit_half(&points[i], scale);
        }
        if (draws_pick(&draws, 60) == 0) update -= every; /* that row once more */
    }
    series = (struct series){points, count};
    points[-1] = (struct series_point){.update = 3, .value = scale};
    for (size_t i = count; i < ROWS; i++) {
        points[i] = (struct series_point){.update = update + i * every, .value = scale};
        if (count > 0) points[i].value = points[count - 1].value * 0.99;
    }
}

static void corroborate_lengths(void **state) {
    (void)state;
    size_t found = 0, refused = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xdeca), .number = number};
        draw_column();
        double floor = ONE_OF(0.0, 0.0, 0.1, 0.05, 0.2, 0.5), end[2] = {0, 0}, open[2] = {0, 0};
        const size_t shape = draws_pick(&draws, FIT_SHAPES);
        const size_t first = draws_pick(&draws, 6);
        const struct fall f = {points, first, first + 1 + draws_pick(&draws, 12), scale};
        if (points[f.last].update <= points[first].update) continue;
        if (draws_pick(&draws, 2) == 0) { /* of this shape, with the middle rows at the edge */
            const double length = (double)(points[f.last].update - points[first].update) *
                                  ONE_OF(1.1, 1.25, 2.0, 5.0);
            const size_t off = first + draws_pick(&draws, (uint32_t)(f.last - first + 1));
            const double quantum = ONE_OF(0.0, 1e-5, 1e-3) * scale;
            for (size_t i = first; i <= f.last; i++) {
                const double done =
                    ((double)points[i].update - (double)points[first].update + 1) / length;
                points[i].value =
                    scale * (floor + (1.0 - floor) * left_at(shape, fmin(1.0, fmax(0.0, done))));
                print_row(i, quantum);
            }
            if (off > first && off < f.last)
                points[off].value += ONE_OF(-3, -1.5, -0.5, 0.5, 1.5, 3) * (quantum + 1e-9 * scale);
        }
        if (draws_pick(&draws, 10) == 0) points[f.last].value = scale * floor;
        doubt = 0;
        const double as = want_length(&f, shape, floor, &end[0], &open[0]);
        const double is = length_of(&f, shape, floor, &end[1], &open[1]);
        if (doubt) continue;
        if (fabs(is - as) > 1e-6 * as || fabs(end[0] - end[1]) > 1e-5 * end[0])
            fail_msg("case %u: %.17g, %.17g for %.17g, %.17g", number, is, end[1], as, end[0]);
        if (as > 0.0 && fabs(open[0]) < 1e6 &&
            fabs(open[0] - open[1]) > 1e-4 * (1.0 + fabs(open[0])))
            fail_msg("case %u: open %.17g for %.17g", number, open[1], open[0]);
        found += as > 0.0;
        refused += as == 0.0;
    }
    assert_true(found > CASES / 8 && refused > CASES / 8);
}

static void validate_far_lengths(void **state) {
    (void)state;
    double end, open;
    for (uint64_t way = 250000000; way <= 1000000000; way += 250000000) {
        points[0] = (struct series_point){.update = 5, .value = 0.75};
        points[1] = (struct series_point){.update = 5 + way, .value = 0.25};
        const struct fall f = {points, 0, 1, 1.0};
        const double length = length_of(&f, SHAPE_LINEAR, 0.0, &end, &open);
        assert_true(way < 500000000 ? fabs(length - 2.0 * (double)way) < 1.0 : length == 0.0);
    }
}

/* Every exact decay has its length, however its inverse is rounded. */
static void validate_exact_decays(void **state) {
    (void)state;
    for (size_t shape = 0; shape < FIT_SHAPES; shape++)
        for (uint32_t length = 20; length < 1000; length += 13) {
            const double floor = 0.05 * (length % 3), peak = 3e-4;
            const uint32_t every = 1 + length / 40;
            double end, open;
            for (size_t i = 0; i < 16; i++) {
                points[i] = (struct series_point){.update = 100 + i * every, .row = i};
                points[i].value =
                    peak * (floor + (1.0 - floor) *
                                        left_at(shape, (double)(i + 1) * every / (double)length));
            }
            const struct fall f = {points, 0, 15, peak};
            assert_true(fabs(length_of(&f, shape, floor, &end, &open) - length) < 1e-6);
            assert_true(fabs(end - (double)(100 - every + length)) < 1e-6 && open < 1e-6);
        }
}

/* ---- whole lists ---- */

static uint64_t wanted[FIT_DECAYS];
static size_t want_count;
static struct { double update, floor; } want_ends[FIT_ENDS];
static size_t want_end_count;

static void want(uint64_t length) {
    for (size_t i = 0; i < want_count; i++)
        if (wanted[i] == length) return;
    if (length > 0 && want_count < FIT_DECAYS) wanted[want_count++] = length;
}

static void want_cut(size_t top) {
    const double *typed;
    const size_t floors = given_floors(&typed);
    struct fall f = {points, top + 1, top + 1, scale};
    for (size_t i = top + 2; i < series.count; i++) {
        if (points[i].value >= points[i - 1].value ||
            points[i].value <= fit_half(&points[i], scale))
            break;
        f.last = i;
    }
    if (points[f.last].update <= points[f.first].update) return;
    for (size_t i = 0; i <= floors; i++) {
        double floor = 0.0;
        if (i > 0 && f.last - f.first < 3) break; /* fewer than four rows tell no floor */
        if (i > 0) floor = typed[i - 1] < 1e-4 ? typed[i - 1] / scale : typed[i - 1];
        if (floor >= 1.0) continue;
        for (size_t shape = 0; shape < FIT_SHAPES; shape++) {
            double end = 0.0, open = 0.0;
            if (i > 0 && shape == SHAPE_LINEAR) continue;
            const double length = want_length(&f, shape, floor, &end, &open);
            if (length == 0.0) continue;
            if (fabs(open - 3.0) < 1e-6 || fabs(fmod(length, 1.0) - 0.5) < 1e-4 ||
                fabs(fmod(end, 1.0) - 0.5) < 1e-4)
                doubt = 1;
            if (i > 0 && !(open > -1e-9 && open <= 3.0)) continue;
            if (i > 0 && want_end_count < FIT_ENDS) {
                want_ends[want_end_count].update = rint(end);
                want_ends[want_end_count++].floor = floor * scale;
            }
            want((uint64_t)rint(length));
            if (points[f.last].quantum == 0.0) continue;
            want((uint64_t)rint(length) - 1);
            want((uint64_t)rint(length) + 1);
        }
    }
}

static void want_decays(const struct fit_known *known, uint64_t last) {
    static const uint64_t percents[] = {10, 20, 5, 15, 25, 30, 50};
    const struct contract_request *const r = &known->request;
    const uint64_t pace = r->processes == 0 ? 1 : r->processes;
    const uint64_t end = r->steps > 0 ? r->steps : known->run_steps > 0 ? known->run_steps : last;
    const int by_process =
        pace >= 2 && r->contract != NULL && r->contract->unit == CONTRACT_UNIT_PROCESS;
    size_t top = 0, flat = 0;
    want_count = want_end_count = 0;
    for (size_t i = 0; i < series.count; i++)
        if (points[i].value >= scale - fit_half(&points[i], scale)) top = i, flat++;
    if (flat < (by_process ? 1u : 2u) || top == series.count - 1) return;
    if (end < points[top].update + 2) return;
    if (r->steps + known->run_steps == 0) want_cut(top);
    const uint64_t longest = end - points[top].update + 2;
    for (uint64_t away = 0; away <= 4; away++)
        if (away < longest) want(longest - away);
    const uint64_t held = r->skipped_count > 0 ? r->skipped_count : known->skips.shown;
    for (uint64_t away = 0; away <= 4 && held > 0; away++)
        if (away < longest + held) want(longest + held - away);
    for (size_t i = 0; i < COUNT_OF(percents); i++) {
        const uint64_t length = percents[i] * end / 100;
        const uint64_t most = longest + fit_skips_most(last);
        if (length > most) continue;
        if (length < end && (points[top + 1].update + 2) * pace < end - length) continue;
        want(length);
    }
}

static void corroborate_lists(void **state) {
    (void)state;
    size_t ends = 0, full = 0, none = 0, held = 0;
    for (uint32_t number = 0; number < CASES / 3; number++) {
        draws = (struct draws){.key = UINT64_C(0x1157), .number = number};
        struct fit_known known;
        struct fit_decays is;
        struct contract contract = {.unit = CONTRACT_UNIT_PROCESS};
        draw_column();
        const uint64_t final = series.count > 0 ? points[series.count - 1].update : 0;
        fit_known_init(&known);
        known.request.processes = draws_pick(&draws, 5);
        if (draws_pick(&draws, 3) == 0) known.request.processes = draws_pick(&draws, 3);
        const uint32_t whose = draws_pick(&draws, 3);
        if (whose == 0) contract = (struct contract){.unit = CONTRACT_UNIT_MICRO};
        if (whose < 2) known.request.contract = &contract;
        const uint32_t says = draws_pick(&draws, 6);
        const uint64_t total = final + (uint64_t)ONE_OF(0, 1, 7, 100, 800);
        if (says == 0 || says == 1) known.request.steps = total;
        if (says == 1 || says == 2) known.run_steps = total + 5;
        if (says == 3) known.request.steps = 1;
        if (says == 4 && draws_pick(&draws, 2) == 0) known.run_steps = 1;
        known.request.skipped_count = draws_pick(&draws, 4) == 0 ? draws_pick(&draws, 9) : 0;
        known.skips.shown = draws_pick(&draws, 3) == 0 ? draws_pick(&draws, 9) : 0;
        uint64_t last = final;
        for (size_t i = 0; i < series.count; i++)
            if (points[i].update > last) last = points[i].update;
        if (draws_pick(&draws, 6) == 0 && series.count > 2) /* around the end of the plateau */
            last = points[series.count / 2].update + draws_pick(&draws, 4);
        doubt = 0;
        want_decays(&known, last);
        memset(&is, 0xff, sizeof is);
        fit_find_decays(&series, &known, scale, last, &is);
        if (doubt) continue;
        if (is.count != want_count || is.end_count != want_end_count)
            fail_msg("case %u: %zu lengths, %zu ends for %zu, %zu", number, is.count, is.end_count,
                     want_count, want_end_count);
        for (size_t i = 0; i < want_count; i++) {
            char text[24];
            snprintf(text, sizeof text, "%ju", (uintmax_t)wanted[i]);
            if (strcmp(is.text[i], text) != 0)
                fail_msg("case %u: length %zu is %s for %s", number, i, is.text[i], text);
        }
        for (size_t i = 0; i < want_end_count; i++)
            if (is.ends[i].update != want_ends[i].update ||
                fabs(is.ends[i].floor - want_ends[i].floor) > 1e-12 * scale)
                fail_msg("case %u: end %zu at %g to %g", number, i, is.ends[i].update,
                         is.ends[i].floor);
        ends += want_end_count;
        full += want_count == FIT_DECAYS;
        none += want_count == 0;
        held += want_count > 8;
    }
    assert_true(ends > 100 && full > 50 && none > 100 && held > 100);
}

/* Shares of the run that skipped updates alone bring behind the plateau, up to the last of them. */
static void validate_longest_shares(void **state) {
    (void)state;
    for (uint64_t total = 100; total < 300; total += 2)
        for (int off = -1; off <= 1; off++) {
            struct fit_known known;
            struct fit_decays is;
            const uint64_t most = fit_skips_most(total);
            const uint64_t top = total + 2 - (total / 2 - most + (uint64_t)(off + 1) - 1);
            scale = 1.0;
            for (size_t i = 0; i < 3; i++)
                points[i] = (struct series_point){
                    .update = top - 1 + i, .row = i, .value = i < 2 ? 1.0 : 0.5};
            series = (struct series){points, 3};
            fit_known_init(&known);
            want_decays(&known, total);
            fit_find_decays(&series, &known, scale, total, &is);
            assert_int_equal(is.count, want_count);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_shapes),      cmocka_unit_test(corroborate_lengths),
        cmocka_unit_test(validate_far_lengths), cmocka_unit_test(validate_exact_decays),
        cmocka_unit_test(corroborate_lists),    cmocka_unit_test(validate_longest_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
