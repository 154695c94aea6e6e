/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a stretch of a column looks like (its top, descent, tail, stairs and the rows that are
 * looked at first), and which warm-ups are tried on it, in order: each of random columns computed
 * once more, by looking at all rows anew for every question. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_decimal.c" /* for the parts, which no other file asks for */
#include "forensics/fit_warmups.c"
#include "forensics/fit_window.c"
#include "tests/base/helper_draws.h"

enum { ROWS = 40, CASES = 6000 };

/* In front of the rows and behind them stand some that nobody is to read. */
static struct series_point guarded[2 * ROWS + 2];
static struct series_point *const points = guarded + 1;
static struct fit_window window;

static double half_of(size_t i) {
    return fit_half(&points[i], window.scale);
}

static int prints_as(size_t i, size_t j) {
    return fabs(points[i].value - points[j].value) <= half_of(i) + half_of(j);
}

/* A column that rises and falls by few levels, exact or coarse, with rows some updates apart. */
static size_t draw_column(struct draws *draws) {
    const size_t count = 1 + draws_pick(draws, draws_pick(draws, 2) == 0 ? 6 : ROWS);
    const uint32_t levels = 2 + draws_pick(draws, 12), coarse = draws_pick(draws, 3);
    const uint32_t every = 1 + draws_pick(draws, 4), back = draws_pick(draws, 6);
    uint64_t update = draws_pick(draws, 3);
    int64_t level = draws_pick(draws, levels);
    memset(&window, 0, sizeof window);
    for (size_t i = 0; i < count; i++) {
        const uint32_t way = draws_pick(draws, 8), far = draws_pick(draws, 3);
        const int64_t slope = i < count / 3 ? 1 : -1;
        if (way < 4) level += slope * (1 + far);
        if (way == 4) level -= slope;
        if (i == 0 && draws_pick(draws, 2) == 0) level = levels + 2;
        if (i == 1) level = draws_pick(draws, levels);
        if (level < 0) level = 0;
        if (level > (int64_t)levels + 3) level = levels + 3;
        update += every;
        if (back == 0 && draws_pick(draws, 10) == 0) update = 1 + draws_pick(draws, 9);
        if (back == 1 && draws_pick(draws, 10) == 0) update -= every; /* that row once more */
        points[i] = (struct series_point){.update = update, .row = i, .value = (double)level / 8.0};
        if (coarse > 0 && draws_pick(draws, 3) > 0) points[i].quantum = coarse == 1 ? 0.125 : 0.25;
        if (coarse == 0 && draws_pick(draws, 3) == 0) points[i].value *= 1.0 + 0x1p-52;
    }
    guarded[0] = (struct series_point){.update = 0, .value = 77.0};
    for (size_t i = count; i < 2 * ROWS; i++) {
        points[i] = points[count - 1]; /* as the last row, or far above or below it */
        points[i].update = 900 + i;
        if (level % 3 > 0) points[i].value = level % 3 == 1 ? 77.0 : -77.0;
    }
    return count;
}

/* ---- the column ---- */

static void require_top(uint32_t number, size_t count) {
    size_t first = 0, top, last;
    if (count > 3 && points[0].update == 1 && points[1].value < 0.9 * points[0].value &&
        (points[2].value > points[1].value || points[3].value > points[2].value))
        first = 1;
    /* Up to the row that ends the search, the first of the largest values. */
    size_t end = first + 1;
    for (top = first; end < count; end++) {
        size_t largest = first;
        for (size_t i = first; i <= end; i++)
            if (points[i].value > points[largest].value) largest = i;
        top = largest;
        if (end > top && points[top].value >= 0.3 * window.scale && !prints_as(top, end)) break;
    }
    /* And from there back to the first that is as high. */
    for (; top > first; top--) {
        const struct series_point *const a = &points[top - 1], *const b = &points[top];
        if (a->quantum == 0.0 && b->quantum == 0.0 ? !prints_as(top - 1, top)
                                                   : a->value != b->value)
            break;
    }
    for (last = top; last + 1 < count; last++) { /* one value is within all of their digits */
        double low = -(double)INFINITY, high = (double)INFINITY;
        for (size_t i = top; i <= last + 1; i++) {
            low = fmax(low, points[i].value - half_of(i));
            high = fmin(high, points[i].value + half_of(i));
        }
        if (low > high) break;
    }
    if (window.first_apart != (int)first || window.top != top || window.top_last != last)
        fail_msg("case %u: top %zu to %zu for %zu to %zu", number, window.top, window.top_last, top,
                 last);
    assert_int_equal(window.constant, top == 0 && last == count - 1);
}

static void require_descent(uint32_t number, size_t count) {
    size_t end = 0, middle = 0, stop = window.top_last + 1;
    for (; stop < count; stop++)
        if ((points[stop].value > points[stop - 1].value && !prints_as(stop, stop - 1)) ||
            points[stop].value <= 2.0 * half_of(stop))
            break;
    for (size_t i = window.top_last + 1; i < stop; i++) {
        if (end == 0 || (points[i].value < points[end].value && !prints_as(i, end))) end = i;
        if (points[i].value >= 0.4 * window.scale) middle = i;
    }
    if (middle == 0 && stop > window.top_last + 1) middle = window.top_last + 1;
    /* Where no row is that high, the first row of the descent is the middle. */
    if (window.descent[1] != end || window.descent[0] != (middle < end ? middle : end))
        fail_msg("case %u: descent %zu, %zu for %zu, %zu", number, window.descent[0],
                 window.descent[1], middle, end);
    double least = (double)INFINITY;
    for (size_t i = count; i-- > window.top;)
        least = fmin(least, points[i].value + half_of(i));
    assert_true(window.least == least);
    const int stands =
        count > 2 && count - 1 > window.top_last + 1 && prints_as(count - 1, count - 2);
    assert_int_equal(window.tail == window.tail, stands);
    if (stands) assert_true(window.tail == points[count - 1].value);
}

/* Whether the column moves between two rows exactly where an epoch of that length ends. */
static int ends_epochs(size_t count, uint64_t epoch) {
    for (size_t i = 1; i < count; i++) {
        if (points[i - 1].update < 1 || points[i].update <= points[i - 1].update) return 0;
        uint64_t ends = 0;
        for (uint64_t k = points[i - 1].update; k < points[i].update; k++)
            ends += k % epoch == 0;
        if (ends != (prints_as(i, i - 1) ? 0u : 1u)) return 0;
    }
    return 1;
}

static void require_stairs(uint32_t number, size_t count) {
    uint64_t changes[ROWS], shortest = 0, epoch = 0;
    size_t moved = 0, flat = 0;
    for (size_t i = 1; i < count; i++) {
        if (prints_as(i, i - 1))
            flat++;
        else
            changes[moved++] = points[i].update;
    }
    for (size_t i = 1; i < moved; i++)
        if (changes[i] > changes[i - 1] &&
            (shortest == 0 || changes[i] - changes[i - 1] < shortest))
            shortest = changes[i] - changes[i - 1];
    if (moved >= 1 && flat >= 1 && flat + 1 >= moved)
        epoch = shortest > 0 ? shortest : changes[moved - 1] - 1;
    if (epoch > 0 && shortest > 0) {
        const uint64_t gap = points[1].update - points[0].update;
        uint64_t found = 0;
        size_t several = 0;
        for (uint64_t e = 2; e <= shortest + gap && gap <= 100; e++)
            if ((double)e >= (double)shortest - (double)gap && ends_epochs(count, e))
                several++, found = e;
        if (gap >= 2 && gap <= 100 && several == 1 && !ends_epochs(count, shortest)) epoch = found;
    }
    if (window.epoch != epoch)
        fail_msg("case %u: epoch %ju for %ju", number, (uintmax_t)window.epoch, (uintmax_t)epoch);
}

/* Which rows are looked at: those that stand for something, and 23 between, by their updates. */
static void require_probes(uint32_t number, size_t count) {
    int listed[ROWS] = {0};
    size_t room = FIT_PROBES;
    size_t wanted[40] = {0,
                         count - 1,
                         window.top,
                         window.descent[0],
                         window.descent[1],
                         1,
                         window.top_last,
                         window.top_last + 1,
                         window.top > 0 ? window.top - 1 : 0};
    for (size_t i = 1; i < 24; i++)
        wanted[8 + i] = (size_t)((double)(count - 1) * (double)i / 24.0);
    for (size_t i = 0; i < 32; i++)
        if (wanted[i] < count && !listed[wanted[i]] && room > 0) listed[wanted[i]] = 1, room--;
    assert_int_equal(window.probe_count, FIT_PROBES - room);
    for (size_t i = 0; i < window.probe_count; i++) {
        const size_t probe = window.probes[i];
        if (probe >= count || listed[probe] != 1) fail_msg("case %u: probe %zu", number, probe);
        listed[probe] = 2; /* once */
        assert_true(i == 0 || points[window.probes[i - 1]].update <= points[probe].update);
    }
}

static void corroborate_windows(void **state) {
    (void)state;
    size_t constant = 0, apart = 0, tails = 0, stairs = 0, descents = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x817d), .number = number};
        const size_t count = draw_column(&draws);
        double scale = 0.0;
        for (size_t i = 0; i < count; i++)
            scale = fmax(scale, points[i].value);
        fit_window_open(&window, points, count);
        assert_true(window.scale == scale && window.count == count && window.points == points);
        require_top(number, count);
        require_descent(number, count);
        require_stairs(number, count);
        require_probes(number, count);
        constant += window.constant != 0;
        apart += window.first_apart != 0;
        tails += window.tail == window.tail;
        stairs += window.epoch > 1;
        descents += window.descent[1] > window.descent[0];
        window.known_epoch = 17;
        fit_window_open(&window, points, count);
        assert_int_equal(window.epoch, 17);
    }
    assert_true(constant > 50 && apart > 50 && tails > 50 && stairs > 50 && descents > 50);
}

/* Stairs of an epoch whose end lies between two rows: the one length that agrees is found, and none
 * where several do. */
static void validate_epochs(void **state) {
    (void)state;
    size_t exact = 0;
    for (uint64_t gap = 1; gap < 8; gap++)
        for (uint64_t epoch = 2; epoch < 30; epoch++)
            for (size_t count = 8; count <= ROWS; count += 16) {
                const uint64_t first = epoch % 3 == 0 ? 1 : gap;
                memset(&window, 0, sizeof window);
                for (size_t i = 0; i < count; i++) {
                    points[i] = (struct series_point){.update = first + gap * i, .row = i};
                    points[i].value = 1.0 / (double)(1 + (points[i].update - 1) / epoch);
                }
                fit_window_open(&window, points, count);
                require_stairs((uint32_t)epoch, count);
                exact += window.epoch == epoch;
            }
    assert_true(exact > 200);
    static const uint64_t gaps[] = {100,
                                    101}; /* no epoch is looked for between rows so far apart */
    for (size_t g = 0; g < COUNT_OF(gaps); g++) {
        memset(&window, 0, sizeof window);
        for (size_t i = 0; i < ROWS; i++) {
            points[i] = (struct series_point){.update = gaps[g] * (i + 1), .row = i};
            points[i].value = 1.0 / (double)(1 + (points[i].update - 1) / 255);
        }
        fit_window_open(&window, points, ROWS);
        require_stairs(0, ROWS);
    }
}

/* ---- warm-ups ---- */

struct list {
    double at[4000];
    size_t count;
};

static void offer(struct list *list, double warmup) {
    if (isnan(warmup) || warmup < 0.0 || list->count >= FIT_WARMUPS) return;
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] == warmup) return;
    list->at[list->count++] = warmup;
}

static double round_by(int32_t rule, double x) {
    return rule == CONTRACT_ROUND_FLOOR       ? floor(x)
           : rule == CONTRACT_ROUND_CEIL      ? ceil(x)
           : rule == CONTRACT_ROUND_HALF_EVEN ? floor(x + 0.5)
                                              : x;
}

static void offer_share(struct list *list, const struct fit_model *model, double total,
                        double ratio, double low, double high) {
    const int32_t rule = model->contract->warmup_rule;
    double units = model->scale == model->warmup_scale ? model->scale : 1.0;
    double exact = total * units * ratio;
    if (model->now.epoch > 0) {
        units = 1.0 / (double)model->now.epoch;
        exact = ceil(total * units) * ratio;
    }
    const int32_t rules[] = {rule, CONTRACT_ROUND_FLOOR, CONTRACT_ROUND_CEIL};
    for (size_t i = 0; i < (rule == CONTRACT_ROUND_NONE ? 1u : 3u); i++) {
        const double warmup = round_by(rules[i], exact) / units;
        if (warmup >= low && warmup <= high) offer(list, warmup);
    }
}

static size_t want_warmups(struct list *list, const struct fit_model *model, double stride) {
    static const double ratios[] = {0.03, 0.1,  0.05, 0.01, 0.06, 0.02, 0.2,   0.04,  0.08,
                                    0.15, 0.25, 0.07, 0.3,  0.12, 0.5,  0.005, 0.001, 0.29};
    const double pace = stride * model->unit / model->warmup_scale;
    const double shift = (double)window.shift;
    const int warmup_known = !isnan(window.known_warmup), late = points[0].update > 2;
    const int whole_rule = model->contract->warmup_rule != CONTRACT_ROUND_NONE;
    const size_t top = window.top;
    list->count = 0;
    offer(list, window.known_warmup);
    if (!model->needs_warmup) {
        offer(list, 0.0);
        return FIT_WARMUPS;
    }
    if (window.only_warmup && list->count > 0) return FIT_WARMUPS;
    /* The knee lies beside the rows around the first one at the top. */
    double low = 0.0, high = 2.0;
    if (top > 0) {
        const int one = window.top_last == top && top + 1 < window.count;
        low = (double)points[top - 1].update + shift - 2.0;
        high = (double)points[one ? top + 1 : top].update + shift + 2.0;
    } else if (points[0].update > 1) {
        high = (double)points[0].update + shift + 2.0;
    }
    high += (double)model->now.epoch +
            (double)points[top].update * 2.0 * fit_half(&points[top], window.scale) / window.scale;
    low -= (double)model->now.epoch + (double)window.lag;
    low = fmax(low, 0.0) * pace;
    high *= pace;
    if (!(high < 1e12)) high = 1e12;
    if (!isnan(window.known_ratio))
        for (size_t t = 0; t < window.known_totals; t++)
            offer_share(list, model, (double)window.known_total[t], window.known_ratio, 0.0, 1e15);
    if (low <= 2.0) offer(list, 0.0);
    if (!warmup_known || whole_rule)
        for (size_t t = 0; t < window.known_totals; t++)
            for (size_t i = 0; i < COUNT_OF(ratios); i++)
                offer_share(list, model, (double)window.known_total[t], ratios[i], late ? 0.0 : low,
                            top + 1 == window.count || late ? 1e12 : high);
    if (top == 0 && late && !window.deep && window.lag == 0) return FIT_WARMUPS;
    if (window.first_apart)
        for (double w = 0.0; w <= 64.0 && w <= 4.0 * pace; w += 1.0)
            offer(list, w);
    if (stride != 1.0 && warmup_known) return FIT_WARMUPS;
    const double room = window.deep || window.lag > 0 ? 600.0 : stride != 1.0 ? 40.0 : 256.0;
    const double step = high - low > room ? ceil((high - low) / room) : 1.0;
    static const double grains[] = {100.0, 50.0, 10.0};
    for (size_t g = 0; g < COUNT_OF(grains) && step > 1.0; g++)
        for (double w = grains[g] * ceil(low / grains[g]); w <= high && list->count < FIT_WARMUPS;
             w += grains[g])
            offer(list, w);
    for (double w = ceil(low); w <= high && list->count < FIT_WARMUPS; w += step)
        offer(list, w);
    const size_t likely = list->count;
    if (!whole_rule && (window.no_scan || window.lag > 0))
        for (size_t t = 0; t < window.said_totals; t++) {
            const double total = (double)window.known_total[t];
            for (double n = 0.0; n <= 2000.0 && total >= 200.0; n += 1.0)
                if (n * total >= 2000.0 * low && n * total <= 2000.0 * high)
                    offer_share(list, model, total, n / 2000.0, low, high);
        }
    return likely;
}

static void corroborate_warmups(void **state) {
    (void)state;
    static struct fit_warmups warmups;
    static struct list list;
    size_t full = 0, permilles = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x3a43), .number = number};
        struct contract contract = {.warmup_rule = (int32_t)draws_pick(&draws, 4)};
        const size_t count = draw_column(&draws);
        struct fit_model model = {.contract = &contract};
        const uint32_t far = draws_pick(&draws, 4);
        for (size_t i = 0; i < count && far < 2; i++)
            points[i].update = points[i].update * (far == 0 ? 10 : 90) + 3;
        fit_window_open(&window, points, count);
        model.needs_warmup = draws_pick(&draws, 12) > 0;
        model.unit = draws_pick(&draws, 3) > 0 ? 1.0 : number % 2 == 0 ? 4.0 : 40.0;
        model.scale = draws_pick(&draws, 2) == 0 ? 4.0 : 1.0;
        model.warmup_scale = draws_pick(&draws, 2) == 0 ? 4.0 : 1.0;
        model.now.epoch = draws_pick(&draws, 4) == 0 ? 7 : 0;
        window.shift = (int64_t)draws_pick(&draws, 5) - 2;
        window.known_warmup =
            draws_pick(&draws, 3) == 0 ? (double)draws_pick(&draws, 30) : (double)NAN;
        window.known_ratio = draws_pick(&draws, 3) == 0 ? 0.03 : (double)NAN;
        window.known_totals = draws_pick(&draws, 3);
        window.said_totals = draws_pick(&draws, (uint32_t)window.known_totals + 1);
        for (size_t t = 0; t < window.known_totals; t++) {
            static const uint64_t totals[] = {100, 199, 200, 201, 437, 1000, 90000};
            window.known_total[t] = totals[draws_pick(&draws, COUNT_OF(totals))];
        }
        window.only_warmup = draws_pick(&draws, 4) == 0;
        window.deep = draws_pick(&draws, 4) == 0;
        window.lag = draws_pick(&draws, 3) == 0 ? draws_pick(&draws, 4) : 0;
        window.no_scan = draws_pick(&draws, 2) == 0;
        const double stride = draws_pick(&draws, 4) == 0 ? 2.0 : 1.0;
        if (window.scale == 0.0) continue; /* of which no search is made */
        const size_t likely = want_warmups(&list, &model, stride);
        memset(&warmups, 0xff, sizeof warmups); /* of the one before */
        fit_list_warmups(&model, &window, stride, &warmups);
        if (warmups.count != list.count || warmups.likely != likely)
            fail_msg("case %u: %zu warm-ups for %zu, likely %zu for %zu", number, warmups.count,
                     list.count, warmups.likely, likely);
        for (size_t i = 0; i < list.count; i++)
            if (warmups.at[i] != list.at[i])
                fail_msg("case %u: warm-up %zu is %g for %g", number, i, warmups.at[i], list.at[i]);
        full += list.count == FIT_WARMUPS;
        permilles += likely < list.count;
    }
    assert_true(full > 20 && permilles > 50);
}

/* ---- decimals ---- */

/* The power of ten is made by products of ten, which are exact up to 1e22. */
static void validate_scales(void **state) {
    (void)state;
    double power = 1.0, below = 1.0;
    for (int n = 0; n < 60; n++, power *= 10.0, below *= 0.1)
        for (double digit = 1.0; digit < 10.0; digit += 0.25) {
            const double small = digit / power;
            if (small * power >= 1.0 && small * power < 10.0) {
                if (scale_of(small) != power) fail_msg("%g: %.17g", small, scale_of(small));
            }
            if (n > 0 && digit > 1.0 && n < 20)
                assert_true(fabs(scale_of(digit * power) * power - 1.0) < 1e-12);
        }
    assert_true(scale_of(10.0) == 0.1 && scale_of(nextafter(10.0, 0.0)) == 1.0);
    assert_true(scale_of(1.0) == 1.0 && scale_of(nextafter(1.0, 0.0)) == 10.0);
    assert_true(fit_near(1.0, 1.0 + 0.9e-9) && !fit_near(1.0, 1.0 + 1.1e-9));
    assert_true(fit_near(-1.0, -1.0 - 0.9e-9) && !fit_near(1.0, -1.0));
    static const double halves[] = {0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 1e9 + 0.5};
    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        assert_true(fit_floor(halves[i]) == floor(halves[i]));
        assert_true(fit_ceil(halves[i]) == ceil(halves[i]));
        assert_true(fit_round(halves[i]) == floor(halves[i] + 0.5));
    }
    assert_true(fit_floor(0x1p52) == 0x1p52 && fit_floor(-0.5) == -0.5 &&
                fit_floor(1e300) == 1e300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_windows),
        cmocka_unit_test(validate_epochs),
        cmocka_unit_test(corroborate_warmups),
        cmocka_unit_test(validate_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
