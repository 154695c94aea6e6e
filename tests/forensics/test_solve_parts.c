/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How the numbers of one model are solved, part by part: what one row admits, which peaks, totals,
 * warm-ups and floors are tried, in which order, and what they cost. The model is replaced by a law
 * that the test knows in closed form, so what must be tried is computed from the law itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define fit_model_set given_set
#define fit_model_set_lr given_set_lr
#define fit_model_set_total given_set_total
#define fit_model_logged given_logged
#define fit_model_is_listed given_listed
#define fit_list_warmups given_warmups
#define fit_solve_floors given_floors
#include "forensics/fit_solve.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 600, TRIED = 40000, CASES = 3000 };

static struct draws draws;
static struct contract contract;
static struct sched_class schedule;
static struct fit_model model;
static struct series_point guarded[ROWS + 2];
static struct series_point *const points = guarded + 1; /* nobody is to read beside them */
static struct fit_window window;
static struct fit_solutions out;
static size_t budget, suspect;
static uint64_t steps_left;
static double strides[3], floor_place;

/* With which numbers a peak was sought, and at which updates the law was evaluated. */
static struct fit_numbers tried[TRIED];
static uint64_t evaluated[TRIED];
static double evaluated_total[TRIED];
static size_t tried_count, evaluated_count;
static int listed;

static double law_pace; /* units of the warm-up per update */
static double (*law)(const struct fit_numbers *numbers, double at);

void given_set(struct fit_model *of, const struct fit_numbers *numbers) {
    of->now = *numbers;
}

void given_set_lr(struct fit_model *of, double lr) {
    assert_true(tried_count < TRIED);
    of->now.lr = lr;
    tried[tried_count++] = of->now;
}

void given_set_total(struct fit_model *of, double total) {
    of->now.total = total;
}

double given_logged(const struct fit_model *of, uint64_t k, int64_t shift) {
    assert_true(of == &model && evaluated_count < TRIED);
    evaluated_total[evaluated_count] = of->now.total;
    evaluated[evaluated_count++] = k;
    return law(&of->now, (double)((int64_t)k + shift) * law_pace);
}

int given_listed(const struct fit_model *of, const struct fit_numbers *numbers) {
    assert_true(of == &model && numbers == &model.now);
    return listed;
}

static struct fit_warmups warmups_of_case;

void given_warmups(const struct fit_model *of, const struct fit_window *in, double stride,
                   struct fit_warmups *warmups) {
    assert_true(of == &model && in->points == points);
    assert_int_equal(of->now.epoch, contract.unit == CONTRACT_UNIT_EPOCH ? in->epoch : 0);
    *warmups = warmups_of_case;
    warmups->at[0] += stride; /* so that what is tried tells which one was asked for */
}

static struct fit_floor_trial free_floors[2];
static size_t free_count;

size_t given_floors(struct fit_model *of, const struct fit_window *in,
                    const struct fit_numbers *numbers, struct fit_floor_trial floors[2]) {
    assert_true(of == &model && in->points == points && numbers->total >= 0.0);
    memcpy(floors, free_floors, sizeof free_floors);
    return free_count;
}

static double level_law(const struct fit_numbers *numbers, double at) {
    (void)at;
    return numbers->lr;
}

/* A rise to the peak at the warm-up and a line from there to 0 at the total, held at the floor. */
static double line_law(const struct fit_numbers *numbers, double at) {
    const double w = numbers->warmup, t = numbers->total;
    const double low = numbers->absolute ? numbers->floor : numbers->floor * numbers->lr;
    if (at < w) return numbers->lr * (at / w);
    if (t <= w) return low;
    return fmax(low, numbers->lr * ((t - at) / (t - w)));
}

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static double one_of(const double *from, size_t size) {
    return from[pick((uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

/* `count` rows of the law, one per update, and a window whose top is the first row. */
static void open_scene(size_t count) {
    memset(&model, 0, sizeof model);
    memset(&contract, 0, sizeof contract);
    memset(&schedule, 0, sizeof schedule);
    memset(&window, 0, sizeof window);
    contract.unit = CONTRACT_UNIT_UPDATE;
    model.contract = &contract;
    model.plan.schedule = &schedule;
    model.unit = model.scale = model.warmup_scale = 1.0;
    model.linear = model.needs_total = model.needs_warmup = 1;
    model.floor = &floor_place;
    model.floor_kind = FIT_FLOOR_RATIO;
    model.now = (struct fit_numbers){.lr = 1.0, .warmup = 8.0, .total = 600.0, .stride = 1.0};
    for (size_t i = 0; i < count; i++)
        points[i] = (struct series_point){.update = i + 1, .row = i, .value = 1.0};
    guarded[0] = (struct series_point){.update = 77, .value = 1e9};
    points[count] = guarded[0];
    budget = 1000000;
    steps_left = 1000000;
    suspect = SIZE_MAX;
    strides[0] = 1.0;
    window.points = points;
    window.count = count;
    window.scale = 1.0;
    window.known_warmup = window.known_ratio = window.known_lr = window.known_floor = (double)NAN;
    window.only_floor = window.tail = (double)NAN;
    window.strides = strides;
    window.stride_count = 1;
    window.budget = &budget;
    window.walk = &steps_left;
    window.suspect = &suspect;
    tried_count = evaluated_count = 0;
    out.count = 0;
    listed = 1;
    law = line_law;
    law_pace = 1.0;
}

/* ---- every point ---- */

/* A schedule that goes from step to step pays for its way from row to row, and for all of it where
 * a row lies before the one before. */
static void validate_walks(void **state) {
    (void)state;
    for (uint64_t had = 0; had < 40; had++)
        for (uint64_t from = 0; from < 12; from++)
            for (uint64_t to = 0; to < 30; to++) {
                uint64_t at = from;
                open_scene(1);
                steps_left = had;
                assert_int_equal(walk(&model, &window, &at, to), 1); /* it is none */
                assert_true(steps_left == had && at == from);
                schedule.state_size = 1;
                const uint64_t costs = to < from ? to : to - from;
                assert_int_equal(walk(&model, &window, &at, to), costs <= had);
                assert_int_equal(steps_left, costs <= had ? had - costs : had);
                assert_int_equal(at, to);
            }
}

static double printed_off; /* by how much the row `odd` is off, in quanta */
static size_t odd;

/* Rows of the law printed to a quantum of 2^-20, one of them off. */
static void print_rows(size_t count, int falls) {
    open_scene(count);
    model.now.warmup = 7.3; /* so that no row is exact */
    model.now.total = 5000.0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t update = falls ? count - i : i + 1;
        const double value = line_law(&model.now, (double)update);
        points[i].update = update;
        points[i].quantum = 0x1p-20;
        points[i].value = 0x1p-20 * rint(0x1p20 * value) + (i == odd ? printed_off * 0x1p-20 : 0.0);
    }
}

static void validate_every_point(void **state) {
    (void)state;
    static const size_t counts[] = {1, 2, 3, 255, 256, 257, 511, 512, 513, 600};
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (int falls = 0; falls < 2; falls++)
            for (size_t at = 0; at < 4; at++) {
                const size_t count = counts[c];
                odd = at == 0 ? 0 : at == 1 ? count - 1 : at == 2 ? count / 2 : SIZE_MAX;
                printed_off = 2.0;
                print_rows(count, falls && count > 1);
                double largest = -1.0, rms = -1.0;
                const int holds = fit_verify(&model, &window, &largest, &rms);
                assert_int_equal(holds, odd == SIZE_MAX);
                assert_int_equal(suspect, odd);
                /* Asked in the order of updates, up to the one that is off. */
                for (size_t i = 0; i < evaluated_count; i++)
                    assert_int_equal(evaluated[i], i + 1);
                const size_t place = falls && count > 1 ? count - 1 - odd : odd;
                assert_int_equal(evaluated_count, holds ? count : place + 1);
                if (!holds) {
                    assert_true(largest == -1.0 && rms == -1.0);
                    /* Of many rows that one is asked first from then on. */
                    evaluated_count = 0;
                    assert_false(fit_verify(&model, &window, &largest, &rms));
                    if (count >= 256) {
                        assert_int_equal(evaluated_count, 1);
                        assert_int_equal(evaluated[0], points[odd].update);
                    } else {
                        assert_int_equal(evaluated_count, place + 1);
                    }
                    continue;
                }
                long double squares = 0.0L, most = 0.0L;
                for (size_t i = 0; i < count; i++) {
                    const long double off =
                        fabsl((long double)points[i].value -
                              (long double)line_law(&model.now, (double)points[i].update)) *
                        0x1p20L;
                    squares += off * off;
                    most = off > most ? off : most;
                }
                assert_true(largest == (double)most);
                /* The rest of an exact sum is rounded once, then comes a quotient and a root. */
                const double wanted = (double)sqrtl(squares / (long double)count);
                assert_true(fabs(rms - wanted) <= 0x1p-50 * wanted);
                assert_true(largest > 0.0 && rms > 0.0);
            }
    open_scene(1); /* no row at all is reproduced */
    window.count = 0;
    double largest = -1.0, rms = -1.0;
    assert_true(fit_verify(&model, &window, &largest, &rms));
    assert_true(largest == 0.0 && rms == 0.0 && evaluated_count == 0);
}

static void validate_suspects(void **state) {
    (void)state;
    for (size_t count = 254; count < 259; count++)
        for (size_t at = 0; at < 3; at++) {
            odd = at == 0 ? 0 : at == 1 ? count - 1 : 3;
            printed_off = 2.0;
            print_rows(count, 0);
            const int many = count >= 256;
            assert_false(differs_again(&model, &window)); /* none is known */
            suspect = odd;
            assert_int_equal(differs_again(&model, &window), many);
            window.suspect = NULL;
            assert_false(differs_again(&model, &window));
            assert_int_equal(refuse(&window, 5), 0);
            window.suspect = &suspect;
            schedule.state_size = 1;
            assert_false(differs_again(&model, &window));
            schedule.state_size = 0;
            suspect = count; /* behind the last one */
            points[count].value = 77.0;
            assert_false(differs_again(&model, &window));
            suspect = odd == 3 ? 4 : 3;
            assert_false(differs_again(&model, &window)); /* that one holds */
            assert_int_equal(refuse(&window, 5), 0);
            assert_int_equal(suspect, 5);
        }
}

/* Where the floor is the peak nothing falls behind the warm-up, and the rows there are evaluated
 * once. */
static void validate_levels(void **state) {
    (void)state;
    for (int absolute = 0; absolute < 2; absolute++)
        for (int levels = 0; levels < 2; levels++)
            for (size_t skipped = 0; skipped < 2; skipped++)
                for (int at = -1; at < 2; at++) {
                    open_scene(40);
                    model.levels = (uint8_t)levels;
                    model.plan.skipped_count = skipped;
                    model.floor_kind = absolute ? FIT_FLOOR_ABSOLUTE : FIT_FLOOR_RATIO;
                    model.now.lr = 0.25;
                    floor_place = (absolute ? 0.25 : 1.0) + (double)at * 0x1p-10;
                    assert_int_equal(is_level(&model), levels && skipped == 0 && at == 0);
                }
    for (uint32_t number = 0; number < CASES; number++) {
        double largest, rms;
        draws = (struct draws){.key = UINT64_C(0x1e7e1), .number = number};
        const size_t count = 2 + pick(60);
        open_scene(count);
        law = level_law;
        model.levels = 1;
        floor_place = 1.0;
        model.now.warmup = (double)pick(20);
        model.now.stride = (double)(1 + pick(3));
        model.unit = ONE_OF(1.0, 2.0);
        model.warmup_scale = ONE_OF(1.0, 2.0, 4.0);
        model.now.epoch = pick(3);
        window.shift = (int64_t)pick(5) - 2;
        /* The update whose counter is four units behind the warm-up's end, four updates and two
         * epochs later. */
        const double pace = model.now.stride * model.unit / model.warmup_scale;
        const double end = (model.now.warmup + 4.0) / pace - (double)window.shift + 4.0 +
                           2.0 * (double)model.now.epoch;
        assert_true(end_of_rise(&model, &window) == end);
        size_t wanted = 0;
        for (size_t i = 0; i < count; i++)
            wanted += (size_t)((double)points[i].update <= end);
        wanted += (size_t)(wanted < count);
        assert_true(fit_verify(&model, &window, &largest, &rms));
        assert_int_equal(evaluated_count, wanted);
    }
}

/* ---- what rows admit ---- */

static void corroborate_what_a_row_admits(void **state) {
    (void)state;
    size_t inside = 0, outside = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xad317), .number = number};
        const double slope = ONE_OF(1.0, -1.0, 0.3, -0.3, 2.0, 0x1.8p-60, -0x1.8p-60);
        const double offset = ONE_OF(0.0, 0.25, -0.5), blur = ONE_OF(0.0, 0.0, 0x1p-6);
        const double quantum = ONE_OF(0.0, 0.01, 0.125);
        const struct series_point point = {.value = (double)pick(9) / 8.0, .quantum = quantum};
        const double half = fit_half(&point, 1.0) + blur;
        const struct range range = admit(&point, 1.0, slope, offset, blur);
        assert_false(empty(range));
        /* Both ends print values half a step away, and the middle prints the row's. */
        const double slack = 0x1p-50 * (2.0 + fabs(offset));
        const double at_low = offset + slope * range.low, at_high = offset + slope * range.high;
        assert_true(fabs(fabs(at_low - point.value) - half) <= slack);
        assert_true(fabs(fabs(at_high - point.value) - half) <= slack);
        assert_true((at_low < at_high) == (slope > 0.0));
        /* What is surely beside has no L of the range. */
        const double low = ONE_OF(0.0, 0.1, 0.5, 1.0), high = low + ONE_OF(0.0, 0.1, 0.5);
        if (offset == 0.0 && slope > 0.0) {
            const int beside = surely_beside(&point, 1.0, slope, blur, (struct range){low, high});
            const int apart =
                range.low > high * (1.0 + 0x1p-30) || range.high < low * (1.0 - 0x1p-30);
            const int meets = range.low <= high && range.high >= low;
            if (apart || meets) assert_int_equal(beside, apart);
            inside += (size_t)meets;
            outside += (size_t)apart;
        }
    }
    assert_true(inside > 50 && outside > 50);
    static const double slopes[] = {0.0, 0x0.9p-60, -0x0.9p-60};
    for (size_t s = 0; s < COUNT_OF(slopes); s++) /* the LR does not matter */
        for (int off = -3; off < 4; off++) {
            const struct series_point point = {.value = 0.5, .quantum = 0.25};
            const struct range range = admit(&point, 1.0, slopes[s], 0.5 + 0.0625 * off, 0.0);
            assert_int_equal(empty(range), off < -2 || off > 2);
            assert_true(empty(range) || (range.low == 0.0 && isinf(range.high)));
            assert_false(surely_beside(&point, 1.0, slopes[s], 0.0, (struct range){9.0, 9.5}));
        }
    const struct series_point point = {.value = 0.5, .quantum = 0.25};
    assert_true(empty(admit(&point, 1.0, (double)NAN, 0.0, 0.0)));
    assert_true(empty(admit(&point, 1.0, 1.0, (double)NAN, 0.0)));
    const struct range wide = admit(&point, 1.0, 0x1p-60, 0.0, 0.0); /* which is enough */
    assert_true(wide.low > 0x1p58 && wide.high < 0x1p60);
    const double half_step = fit_half(&point, 1.0);
    assert_false(empty(admit(&point, 1.0, 0.0, 0.5 - half_step, 0.0)));
    assert_false(empty(admit(&point, 1.0, 0.0, 0.5 + half_step, 0.0)));
    assert_true(empty(admit(&point, 1.0, 0.0, nextafter(0.5 - half_step, 0.0), 0.0)));
    assert_true(empty(admit(&point, 1.0, 0.0, nextafter(0.5 + half_step, 1.0), 0.0)));
    assert_true(surely_beside(&point, 1.0, 0x1p-60, 0.0, (struct range){0.0, 1.0}));
    /* Rows that touch the range are left to admit(), from both sides. */
    const struct series_point exact = {.value = 1.0};
    const double half = fit_half(&exact, 1.0), slack = 0x1p-40;
    assert_false(surely_beside(&exact, 1.0, 1.0, 0.0,
                               (struct range){0.0, (1.0 - half) * (1.0 - 0.9 * slack)}));
    assert_true(surely_beside(&exact, 1.0, 1.0, 0.0,
                              (struct range){0.0, (1.0 - half) * (1.0 - 1.1 * slack)}));
    assert_false(surely_beside(&exact, 1.0, 1.0, 0.0,
                               (struct range){(1.0 + half) * (1.0 + 0.9 * slack), 9.0}));
    assert_true(surely_beside(&exact, 1.0, 1.0, 0.0,
                              (struct range){(1.0 + half) * (1.0 + 1.1 * slack), 9.0}));
    assert_false(surely_beside(&exact, 1.0, 1.0, 0x1p-20, (struct range){0.0, 1.0 - 0x1p-21}));
    assert_true(surely_beside(&exact, 1.0, 1.0, 0x1p-20, (struct range){0.0, 1.0 - 0x1p-19}));
    assert_true(empty((struct range){2.0, 1.0}) && !empty((struct range){1.0, 1.0}));
}

/* A share of the peak that falls from row to row, above a floor of 1/16 that is an LR where the
 * model says so. */
static double share_law(const struct fit_numbers *numbers, double at) {
    const double share = 1.0 / (1.0 + at);
    return numbers->absolute ? numbers->floor + (numbers->lr - numbers->floor) * share
                             : numbers->lr * share;
}

/* The peaks that all rows admit, or those that are looked at first. */
static void corroborate_peaks_of_rows(void **state) {
    (void)state;
    size_t some = 0, none = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x9ea4), .number = number};
        const size_t count = 1 + pick(12);
        open_scene(count);
        law = share_law;
        model.now.absolute = (int)pick(2);
        model.now.floor = model.now.absolute ? 0x1p-4 : 0.0;
        contract.float32 = pick(3) == 0;
        const double peak = ONE_OF(1.0, 0.5, 0.75), reference = ONE_OF(1.0, 0.7);
        window.scale = ONE_OF(1.0, 4.0);
        const double quantum = ONE_OF(0.0, 0x1p-7, 0x1p-4);
        const size_t bad = pick(4) == 0 ? pick((uint32_t)count) : SIZE_MAX;
        struct fit_numbers real = model.now;
        real.lr = peak;
        for (size_t i = 0; i < count; i++) {
            const double value = share_law(&real, (double)points[i].update);
            points[i].quantum = quantum;
            points[i].value = quantum > 0.0 ? quantum * rint(value / quantum) : value;
            if (i == bad) points[i].value += 0.5;
        }
        window.probe_count = 1 + pick((uint32_t)count);
        for (size_t p = 0; p < window.probe_count; p++)
            window.probes[p] = p == 0 ? count - 1 : pick((uint32_t)count);
        const int every = (int)pick(2), wide = (int)pick(3);
        if (wide == 0) schedule.state_size = 1;
        model.now.lr = reference;
        tried_count = 0;
        budget = 1000;
        const struct range range = lr_range(&model, &window, reference, every);
        /* Once more, row by row: |floor (1 - share) + share L - value| is within half a step. */
        long double low = 0.0L, high = (long double)INFINITY, low_off = 0.0L, high_off = 0.0L;
        size_t asked = 0;
        const size_t size = every ? count : window.probe_count;
        for (size_t n = 0; n < size && low <= high; n++) {
            const struct series_point *const p = &points[every ? n : window.probes[n]];
            const long double share = 1.0L / (1.0L + (long double)p->update);
            const long double base = model.now.absolute ? 0x1p-4L * (1.0L - share) : 0.0L;
            long double half = (long double)fit_half(p, window.scale);
            if (contract.float32) half += 0x1p-23L * (long double)window.scale;
            if (model.now.absolute) half += 0x1p-38L * (long double)window.scale;
            const long double from = ((long double)p->value - half - base) / share;
            const long double to = ((long double)p->value + half - base) / share;
            /* A slope that is the quotient of a difference is off by some 2^-41, else by 2^-52. */
            const long double off = (model.now.absolute ? 0x1p-40L : 0x1p-50L) / share;
            if (from > low) {
                low = from;
                low_off = off;
            }
            if (to < high) {
                high = to;
                high_off = off;
            }
            asked++;
        }
        if (empty(range) != !(low <= high)) fail_msg("case %u", number);
        assert_int_equal(budget, 1000 - asked);
        assert_true(model.now.lr == reference); /* it is left as it was found */
        if (model.now.absolute) {
            assert_int_equal(tried_count, 2 * asked);
            assert_true(tried[0].lr == reference - reference * 0x1p-12);
            assert_true(tried[1].lr == reference);
        } else {
            assert_int_equal(tried_count, 0);
        }
        none += (size_t)empty(range);
        if (empty(range)) continue;
        some++;
        assert_true(fabsl((long double)range.low - low) <= low_off);
        assert_true(fabsl((long double)range.high - high) <= high_off);
    }
    assert_true(some > 500 && none > 300);
    open_scene(3); /* what is spent stays spent, and where no step is left nothing is admitted */
    law = share_law;
    for (size_t i = 0; i < 3; i++)
        points[i].value = 1.0 / (1.0 + (double)points[i].update);
    budget = 2;
    assert_false(empty(lr_range(&model, &window, 1.0, 1)));
    assert_int_equal(budget, 0);
    schedule.state_size = 1;
    steps_left = 2;
    assert_true(empty(lr_range(&model, &window, 1.0, 1)));
    steps_left = 3;
    assert_false(empty(lr_range(&model, &window, 1.0, 1)));
}

/* ---- what is kept ---- */

static void validate_numbers_that_are_one(void **state) {
    (void)state;
    const struct fit_numbers one = {
        .lr = 1.0, .warmup = 2.0, .total = 3.0, .floor = 4.0, .stride = 5.0, .epoch = 6};
    struct fit_numbers other = one;
    assert_true(same_numbers(&one, &other));
    other.lr += 1.0;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.warmup += 1.0;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.total += 1.0;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.floor += 1.0;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.stride += 1.0;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.epoch++;
    assert_false(same_numbers(&one, &other));
    other = one;
    other.absolute = 1;
    assert_false(same_numbers(&one, &other));
}

static void validate_floors_above_peaks(void **state) {
    (void)state;
    for (int absolute = 0; absolute < 2; absolute++)
        for (int above = -1; above < 2; above++) {
            open_scene(1);
            model.now.lr = 0.5;
            model.now.absolute = absolute;
            model.now.floor = (absolute ? 0.5 : 1.0) + (double)above * 0x1p-9;
            assert_int_equal(floor_above_peak(&model, &window), above == 1);
            model.given_floor = 1;
            assert_false(floor_above_peak(&model, &window));
            model.given_floor = 0;
            model.floor_default = model.now.floor;
            assert_false(floor_above_peak(&model, &window));
            model.floor_default = 0.0;
            window.known_floor = model.now.floor;
            assert_false(floor_above_peak(&model, &window));
            window.known_floor = 0.9;
            model.floor = NULL;
            assert_false(floor_above_peak(&model, &window));
        }
}

static void validate_what_is_emitted(void **state) {
    (void)state;
    open_scene(3);
    law = level_law;
    window.shift = -2;
    assert_int_equal(emit(&model, &window, &out), 1);
    assert_int_equal(out.count, 1);
    assert_int_equal(out.at[0].shift, -2);
    assert_true(same_numbers(&out.at[0].numbers, &model.now));
    assert_true(out.at[0].max_error == 0.0 && out.at[0].rms_error == 0.0);
    evaluated_count = 0;
    assert_int_equal(emit(&model, &window, &out), 1); /* it is there already */
    assert_true(out.count == 1 && evaluated_count == 0);
    window.shift = -1;
    assert_int_equal(emit(&model, &window, &out), 1);
    assert_int_equal(out.count, 2);
    model.now.warmup += 1.0;
    points[2].value = 1.5; /* it does not hold */
    assert_false(emit(&model, &window, &out));
    points[2].value = 1.0;
    listed = 0;
    assert_false(emit(&model, &window, &out));
    listed = 1;
    model.now.floor = 1.5;
    assert_false(emit(&model, &window, &out));
    model.now.floor = 0.0;
    assert_int_equal(out.count, 2);
    for (size_t n = 2; n < FIT_SOLUTIONS; n++) {
        model.now.warmup += 1.0;
        assert_int_equal(emit(&model, &window, &out), 1);
    }
    assert_int_equal(out.count, FIT_SOLUTIONS);
    assert_int_equal(emit(&model, &window, &out), 1); /* the last one, once more */
    model.now.warmup += 1.0;
    assert_false(emit(&model, &window, &out)); /* there is no room */
    assert_int_equal(out.count, FIT_SOLUTIONS);
}

/* Of the peaks that rows admit the known one is tried, then the shortest, then the one in the
 * middle; and where the rows that are looked at leave too many, all rows are asked. */
static void validate_order_of_peaks(void **state) {
    (void)state;
    for (int known = 0; known < 7; known++)
        for (int refused = 0; refused < 4; refused++) { /* so many of these do not hold */
            open_scene(3);
            law = level_law;
            /* Of a row at 1, half a quantum to either side: */
            static const double knowns[] = {(double)NAN, 0.5,        0.99609375 - 0x1p-24,
                                            0.998,       1.00390625, 1.00390625 + 0x1p-24,
                                            0.99609375};
            window.known_lr = knowns[known];
            window.probe_count = 1;
            for (size_t i = 0; i < 3; i++)
                points[i].quantum = 0x1p-7;
            const int is_admitted = known == 3 || known == 4 || known == 6;
            if (refused > 0) { /* the row that is not looked at admits others alone */
                points[1].value = refused == 3 ? 7.0 : 1.00390625;
                points[1].quantum = refused == 3 ? 0x1p-7 : 0x1p-12;
            }
            const int found = solve_lr(&model, &window, &out);
            assert_int_equal(found, refused < 3); /* 1, which others count */
            assert_true(tried[0].lr == 1.0);      /* the largest value of the rows stands for it */
            size_t at = 1;
            if (is_admitted) assert_true(tried[at++].lr == knowns[known]);
            if (refused == 0) {
                if (!is_admitted) assert_true(tried[at++].lr == 1.0);
                assert_int_equal(tried_count, at);
                assert_int_equal(out.count, 1);
                assert_true(out.at[0].numbers.lr == tried[at - 1].lr);
                continue;
            }
            if (known == 4 && refused < 3) { /* that one holds in the row, too */
                assert_int_equal(tried_count, at);
                continue;
            }
            assert_true(tried[at++].lr == 1.0);
            /* The slack of rounding makes both ends uneven by less than 2^-26. */
            assert_true(fabs(tried[at++].lr - 1.0) < 0x1p-26);
            assert_true(tried[at++].lr == 1.0); /* all rows are asked with the same one */
            if (refused == 3) {
                assert_int_equal(tried_count, at);
                continue;
            }
            /* 1.00390625 and half of 2^-12, of which the first row admits what lies below. */
            assert_true(tried[at].lr >= 1.00390625 - 0x1p-13 &&
                        tried[at].lr < 1.00390625 + 0x1p-20);
            assert_int_equal(tried_count, at + 1);
            assert_int_equal(out.count, 1);
        }
    /* A printed 0 at the top, a recursive schedule, or a floor that is an LR: that is all. */
    for (int way = 0; way < 4; way++) {
        open_scene(3);
        law = level_law;
        window.probe_count = 1;
        for (size_t i = 0; i < 3; i++)
            points[i].quantum = 0x1p-7;
        points[1].value = 1.00390625;
        points[1].quantum = 0x1p-12;
        window.top = 2;
        if (way == 1) points[2].quantum = 0.0;
        if (way == 2) schedule.state_size = 1;
        if (way == 3) {
            model.now.absolute = 1;
            model.now.floor = 0.25;
        }
        const size_t before = way == 3 ? 3 * 3 : 1;
        assert_int_equal(solve_lr(&model, &window, &out), way == 0);
        if (way > 0) assert_int_equal(tried_count, before + 2);
    }
    /* A peak that no row bounds, and one that none admits. */
    open_scene(3);
    assert_false(solve_lr(&model, &window, &out));
    assert_int_equal(tried_count, 1);
    window.probe_count = 2;
    window.probes[1] = 1;
    points[1].value = 2.0;
    law = level_law;
    assert_false(solve_lr(&model, &window, &out));
    assert_int_equal(tried_count, 2);
    window.scale = 0.0; /* without a largest value 1 stands for it */
    window.probe_count = 0;
    assert_false(solve_lr(&model, &window, &out));
    assert_true(tried[2].lr == 1.0);
    window.scale = 0.25;
    assert_false(solve_lr(&model, &window, &out));
    assert_true(tried[3].lr == 0.25);
    /* A peak of 0 or less is none. */
    assert_false(try_range(&model, &window, (struct range){-1.0, 0.0}, &out));
    assert_int_equal(tried_count, 5);
}

static double fixed_law(const struct fit_numbers *numbers, double at) {
    (void)numbers;
    (void)at;
    return 0.75;
}

/* Where the floor stays, each turn begins with the middle of what the one before admitted, if that
 * has two ends above 0. */
static void validate_turns(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        open_scene(3);
        law = way == 1 ? fixed_law : level_law;
        model.now.absolute = 1;
        model.now.floor = 0.25;
        window.probe_count = 1;
        for (size_t i = 0; i < 3; i++)
            points[i] = (struct series_point){
                .update = i + 1, .value = way == 2 ? 0.0 : 0.75, .quantum = 0x1p-7};
        assert_int_equal(solve_lr(&model, &window, &out), way == 0);
        assert_int_equal(out.count, way == 0);
        assert_true(tried_count >= 9);
        for (size_t turn = 0; turn < 3; turn++) {
            const double *const first = &tried[3 * turn].lr, reference = *first;
            assert_true(tried[3 * turn + 1].lr == reference - reference * 0x1p-12);
            assert_true(tried[3 * turn + 2].lr == reference);
            if (turn == 0 || way > 0)
                assert_true(reference == 1.0);
            else
                assert_true(fabs(reference - 0.75) < 0x1p-30);
        }
        if (way == 0) assert_true(tried[9].lr == 0.75 && tried_count == 10);
        if (way == 1) assert_int_equal(tried_count, 9);
    }
    for (int end = 0; end < 2; end++) /* a known peak at the ends of what a row admits */
        for (int beside = 0; beside < 2; beside++) {
            open_scene(1);
            law = level_law;
            points[0].quantum = 0x1p-7;
            window.probe_count = 1;
            const double half = fit_half(&points[0], 1.0);
            const double known = end ? 1.0 + half : 1.0 - half;
            window.known_lr = beside ? nextafter(known, end ? 2.0 : 0.0) : known;
            assert_int_equal(solve_lr(&model, &window, &out), 1);
            assert_true(out.at[0].numbers.lr == (beside ? 1.0 : known));
        }
}

/* A schedule that goes from step to step is verified in as many steps as its last row is far. */
static void validate_steps_of_every_point(void **state) {
    (void)state;
    for (uint64_t had = 0; had < 50; had++)
        for (int falls = 0; falls < 2; falls++) {
            double largest, rms;
            open_scene(9);
            law = level_law;
            schedule.state_size = 1;
            steps_left = had;
            for (size_t i = 0; i < 9; i++)
                points[i].update = 5 * (falls ? 9 - i : i + 1);
            assert_int_equal(fit_verify(&model, &window, &largest, &rms), had >= 45);
            assert_int_equal(steps_left, had >= 45 ? had - 45 : had % 5);
            assert_int_equal(suspect, SIZE_MAX);
            tried_count = evaluated_count = 0;
            steps_left = had;
            window.probe_count = 2;
            window.probes[1] = 8;
            const uint64_t far = falls ? 45 + 5 : 45;
            assert_int_equal(!empty(lr_range(&model, &window, 1.0, 0)), had >= far);
        }
}

/* ---- totals ---- */

static double falling_law(const struct fit_numbers *numbers, double at) {
    return at > 1.5 ? 100.0 / numbers->total : 1.0;
}

static double zero_law(const struct fit_numbers *numbers, double at) {
    return at > numbers->warmup ? 1.0 : 0.0;
}

static void validate_ratios(void **state) {
    (void)state;
    for (size_t had = 0; had < 6; had++) {
        open_scene(20);
        window.top_last = 9;
        budget = had;
        assert_true(ratio_at(&model, &window, 40.0, 11) == 28.0 / 32.0 / (30.0 / 32.0));
        assert_int_equal(budget, had > 2 ? had - 2 : 0);
        assert_true(model.now.total == 40.0);
        budget = had;
        assert_true(knee_ratio(&model, &window, 10.0, 4, 11) == 28.0 / 30.0 / 0.5);
        assert_int_equal(budget, had > 2 ? had - 2 : 0);
        assert_true(model.now.warmup == 10.0);
        budget = had;
        points[0].value = 0.25;
        assert_true(first_peak(&model, &window, 5.0) == 0.25 / (1.0 / 5.0));
        assert_int_equal(budget, had > 0 ? had - 1 : 0);
        assert_true(model.now.warmup == 5.0 && model.now.lr == 1.0);
        law = zero_law; /* what is 0 is no part of a ratio */
        assert_true(isnan(ratio_at(&model, &window, 40.0, 11)) == 0);
        model.now.warmup = 10.0;
        assert_true(isnan(ratio_at(&model, &window, 40.0, 11)) != 0);
        assert_true(isnan(knee_ratio(&model, &window, 10.0, 4, 11)) != 0);
        assert_true(isnan(first_peak(&model, &window, 5.0)) != 0);
    }
}

/* Halves of the bracket, until a fifth of a total is left, towards the side where the ratio is. */
static void validate_halves(void **state) {
    (void)state;
    static const double sizes[] = {0.1875, 0.25, 1.0, 100.0, 1e5, 1e30};
    for (int up = 0; up < 2; up++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (int at = 1; at < 8; at++) {
                open_scene(20);
                law = up ? line_law : falling_law;
                model.now.warmup = 1.0;
                const double a = 50.0, size = sizes[s], wanted = a + size * at / 8.0 + 0.01;
                const double target = up ? (wanted - 20.0) / (wanted - 1.0) : 100.0 / wanted;
                int halves = 0;
                double left = size;
                for (; left > 0.2 && halves < 60; halves++)
                    left /= 2.0;
                const double found = bisect(&model, &window, a, a + size, target, 19);
                if (size < 1e6) /* a ratio is off by 2^-52, and its slope is a millionth of 1 */
                    assert_true(fabs(found - wanted) <= left / 2.0 + 0.011);
                assert_int_equal(evaluated_count, 4 + 2 * halves);
            }
    open_scene(20);
    law = falling_law;
    assert_true(bisect(&model, &window, 0.0, 0.2, 1.0, 19) == 0.1); /* a fifth is not halved */
    assert_int_equal(evaluated_count, 4);
}

/* Tries the rows from both sides of a total, in whole epochs: two at least, then all that the
 * printed digits admit, up to 96. */
static void corroborate_totals_around(void **state) {
    (void)state;
    size_t few = 0, many = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x707a15), .number = number};
        open_scene(20);
        model.now.epoch = pick(3) == 0 ? 2 + pick(5) : 0;
        model.now.warmup = 1.0;
        const double grain = model.now.epoch > 0 ? (double)model.now.epoch : 1.0;
        const double at = (double)(1 + pick(300)) + (double)pick(3) / 4.0 - 0.25;
        const double low = pick(3) == 0 ? 0.0 : (double)pick(100) / 100.0, high = low + 0.3;
        double wanted[2 * 96];
        size_t count = 0;
        const double middle = floor(at / grain + 0.5);
        if (fabs(at / grain - floor(at / grain) - 0.5) < 0.01) continue; /* which way a tie goes */
        for (int side = 0; side < 2; side++)
            for (int away = side; away < 96 + side; away++) {
                const double total = grain * (side == 0 ? middle - away : middle + away);
                if (total < 1.0) break;
                const double ratio = fmax(0.0, (total - 20.0) / (total - 1.0));
                /* A total of 1 is no total, as the first row is its peak. */
                if (away >= 3 && (total <= 1.0 || ratio < low || ratio > high)) break;
                wanted[count++] = total;
            }
        try_totals(&model, &window, at, (struct range){low, high}, 19, &out);
        if (tried_count != count) fail_msg("case %u: %zu for %zu", number, tried_count, count);
        for (size_t n = 0; n < count; n++)
            assert_true(tried[n].total == wanted[n]);
        few += count == 5;
        many += count > 96;
    }
    assert_true(few > 100 && many > 100);
    /* Where more than twelve hold, the steps widen by half and one, on either side. */
    static const double below[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                   10, 11, 12, 14, 18, 25, 36, 53, 79, 119};
    static const double above[] = {1, 3, 7, 14, 25, 42, 68, 108, 169, 261};
    open_scene(3);
    law = level_law;
    window.probe_count = 1;
    try_totals(&model, &window, 120.0, (struct range){0.5, 1.5}, 2, &out);
    assert_true(out.count >= COUNT_OF(below) + COUNT_OF(above));
    for (size_t n = 0; n < COUNT_OF(below); n++)
        assert_true(out.at[n].numbers.total == 120.0 - below[n]);
    for (size_t n = 0; n < COUNT_OF(above); n++)
        assert_true(out.at[COUNT_OF(below) + n].numbers.total == 120.0 + above[n]);
}

/* Where nothing comes out, totals from a quarter of the log's length to 4000 times it and 10000
 * are looked at, in steps of 15 % up to eight lengths and of 50 % behind. */
static void validate_scanned_totals(void **state) {
    (void)state;
    for (size_t j = 0; j < 20; j += 5)
        for (int way = 0; way < 4; way++) {
            open_scene(20);
            law = level_law;
            points[19].value = 0.5;
            window.top_last = 3;
            window.descent[0] = j;
            model.now.stride = way == 1 ? 3.0 : 1.0;
            model.unit = way == 2 ? 4.0 : 1.0;
            model.scale = way == 3 ? 2.0 : 1.0;
            if (j > 0) points[j].value = 0.25;
            const size_t low = j > 0 ? j : 19;
            const double end =
                (double)points[low].update * model.now.stride * model.unit / model.scale;
            scan_totals(&model, &window, &out);
            assert_int_equal(tried_count, 0);
            assert_true(evaluated_count > 20 && evaluated_count % 2 == 0);
            double total = end / 4.0 + 1.0;
            for (size_t n = 0; n < evaluated_count; n += 2) {
                assert_true(evaluated_total[n] == total && evaluated_total[n + 1] == total);
                assert_int_equal(evaluated[n], 4);
                assert_int_equal(evaluated[n + 1], points[low].update);
                const int last = total >= 4000.0 * end + 10000.0;
                assert_int_equal(last, n + 2 == evaluated_count);
                total = total < 8.0 * end ? total * 1.15 : total * 1.5;
            }
            assert_int_equal(budget, 1000000 - evaluated_count);
        }
    for (size_t had = 1; had < 12; had++) { /* with few evaluations it ends where they do */
        open_scene(20);
        law = level_law;
        points[19].value = 0.5;
        budget = had;
        scan_totals(&model, &window, &out);
        assert_int_equal(evaluated_count, had <= 2 ? 2 : 2 * ((had + 1) / 2));
        assert_int_equal(budget, 0);
    }
    for (size_t top = 8; top < 12; top++) { /* a top that is not in front of the row */
        open_scene(20);
        window.top_last = top;
        window.descent[0] = 10;
        scan_totals(&model, &window, &out);
        assert_int_equal(evaluated_count > 0, top < 10);
    }
}

/* The total of a line is found, with those around it that the printed digits leave open. */
static void corroborate_scanned_totals(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 600; number++) {
        draws = (struct draws){.key = UINT64_C(0x5ca9), .number = number};
        open_scene(40);
        const double total = 41.0 + (double)pick(2000);
        const double quantum = ONE_OF(0.0, 0x1p-10, 0x1p-7);
        const size_t j = pick(2) == 0 ? 0 : 10 + pick(30);
        const size_t at_top = 7 + pick(3);
        window.top_last = at_top;
        window.descent[0] = j;
        model.now.total = total;
        for (size_t i = 0; i < 40; i++) {
            const double value = line_law(&model.now, (double)points[i].update);
            points[i].quantum = quantum;
            points[i].value = quantum > 0.0 ? quantum * rint(value / quantum) : value;
        }
        const struct series_point *const low = &points[j > 0 ? j : 39], *const top =
                                                                            &points[at_top];
        const double half = 0.5 * quantum * (1.0 + 0x1p-20);
        const double least = (low->value - half) / (top->value + half) - 0x1p-45;
        const double most = (low->value + half) / (top->value - half) + 0x1p-45;
        /* Where the digits turn the ratio into one, it comes out at no total. */
        if (low->value / top->value >= 1.0) continue;
        scan_totals(&model, &window, &out);
        assert_true(tried_count >= 5);
        const double middle = tried[0].total, u = (double)low->update, r = low->value / top->value;
        const double v = (double)top->update;
        /* (T - u) / (T - v) = r, which a fifth of a total is off by at most. */
        const double exact = (u - v * r) / (1.0 - r);
        assert_true(fabs(middle - exact) <= 0.5 + 0.2 + 1e-6 * exact);
        size_t n = 0;
        for (int side = 0; side < 2; side++)
            for (int away = side; away < 96 + side; away++) {
                const double t = side == 0 ? middle - away : middle + away;
                const double ratio = t <= v ? 0.0 : fmax(0.0, (t - u) / (t - v));
                if (t < 1.0 || (away > 2 && (ratio < least || ratio > most))) break;
                assert_true(n < tried_count && tried[n].total == t);
                n++;
            }
        assert_int_equal(tried_count, n);
    }
}

/* ---- floors ---- */

static void corroborate_distinct_floors(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xd157), .number = number};
        struct fit_floor_trial floors[8], before[8], wanted[8];
        const size_t count = pick(9);
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            floors[i].value = ONE_OF(0.0, 0.1, 0.2, (double)NAN);
            floors[i].absolute = (int)pick(2);
            floors[i].at_end = (int)pick(2);
            before[i] = floors[i];
        }
        for (size_t i = 0; i < count; i++) { /* the first of its kind, unless it is no number */
            int first = 1;
            struct fit_floor_trial one = before[i];
            for (size_t k = 0; k < count; k++) {
                const int alike = before[k].value == one.value &&
                                  (before[k].absolute == one.absolute || one.value == 0.0);
                if (alike && k < i) first = 0;
                if (alike && k > i && before[k].absolute == one.absolute && !before[k].at_end)
                    one.at_end = 0;
            }
            if (first && !isnan(one.value)) wanted[size++] = one;
        }
        assert_int_equal(distinct_floors(floors, count), size);
        for (size_t i = 0; i < size; i++)
            assert_true(floors[i].value == wanted[i].value &&
                        floors[i].absolute == wanted[i].absolute &&
                        floors[i].at_end == wanted[i].at_end);
    }
}

static void corroborate_typed_floors(void **state) {
    (void)state;
    static const double shares[] = {0.1, 0.01, 0.05, 0.2, 0.001, 0.5};
    static const double lrs[] = {1e-5, 1e-6, 5e-6, 2e-6, 5e-7, 1e-7, 1e-8, 2e-5};
    const double *typed;
    assert_int_equal(fit_typed_floors(&typed), COUNT_OF(shares) + COUNT_OF(lrs));
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x7fed), .number = number};
        struct fit_floor_trial floors[FIT_FLOORS];
        open_scene(3);
        window.typed_floors = 1;
        window.scale = ONE_OF(1e-4, 2e-4, 1.0);
        window.least = window.scale * ONE_OF(0.01, 0.1, 0.05, 1e-3, 2.0, 0.2);
        if (pick(3) == 0) window.least = ONE_OF(1e-5, 1e-8, 2e-6);
        window.floor_peak = ONE_OF((double)NAN, 0.0, 4e-4, -1.0);
        model.floor_kind = pick(2) == 0 ? FIT_FLOOR_ABSOLUTE : FIT_FLOOR_RATIO;
        if (pick(3) == 0) window.only_floor = ONE_OF(1e-5, 0.5, 1e-4, 0.0);
        const double peak = window.floor_peak > 0.0 ? window.floor_peak : window.scale;
        const int absolute = model.floor_kind == FIT_FLOOR_ABSOLUTE;
        size_t n = 0;
        const size_t count = fit_list_floors(&model, &window, floors);
        const int one = window.only_floor == window.only_floor;
        for (size_t i = 0; i < COUNT_OF(shares) && !one; i++) {
            if (shares[i] * window.scale >= window.least) continue;
            assert_true(n < count && floors[n].value == shares[i] && floors[n].absolute == 0);
            assert_int_equal(floors[n++].at_end, 0);
        }
        for (size_t i = 0; i < (one ? 1 : COUNT_OF(lrs)); i++) {
            const double lr = one ? window.only_floor : lrs[i];
            if (lr >= window.least) continue;
            assert_true(n < count && floors[n].absolute == absolute && floors[n].at_end == 0);
            assert_true(floors[n++].value == (absolute ? lr : lr / peak));
        }
        assert_int_equal(n, count);
    }
}

static void corroborate_listed_floors(void **state) {
    (void)state;
    static const double shares[] = {0.1, 0.01, 0.05, 0.2, 0.001, 0.5, 0.3};
    size_t ends = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x115f), .number = number};
        struct fit_floor_trial floors[FIT_FLOORS], wanted[FIT_FLOORS];
        size_t size = 0;
        const size_t rows = 1 + pick(3);
        open_scene(rows);
        window.scale = ONE_OF(1.0, 0.5);
        points[rows - 1].value = ONE_OF(0.0, 0.03, 0.1, 0.005, 0.0001);
        points[rows - 1].quantum = ONE_OF(0.0, 0.01, 0.0002);
        window.least = window.scale * ONE_OF(0.1, 0.3, 0.01, 0.04, 1.0, 0.0005);
        window.constant = pick(5) == 0;
        window.deep = (int)pick(2);
        window.known_floor = ONE_OF((double)NAN, (double)NAN, 0.1, 0.25, 0.0);
        model.given_floor = (uint8_t)(pick(2) == 0 ? 0 : pick(3));
        model.floor_default = ONE_OF(0.0, 0.1, (double)NAN);
        model.floor_kind = pick(2) == 0 ? FIT_FLOOR_ABSOLUTE : FIT_FLOOR_RATIO;
        if (pick(4) == 0) model.floor = NULL;
        const int absolute = model.floor_kind == FIT_FLOOR_ABSOLUTE;
        /* All that are offered, of which those that were there before are left out. */
        const int given = model.given_floor == 1, open = model.floor != NULL && !model.given_floor;
        wanted[size++] = (struct fit_floor_trial){given ? window.known_floor : model.floor_default,
                                                  !given && absolute, 0};
        if (open) {
            const struct series_point *const last = &points[rows - 1];
            const double half = fit_half(last, window.scale);
            wanted[size++] = (struct fit_floor_trial){window.known_floor, 0, 0};
            wanted[size++] = (struct fit_floor_trial){0.0, 0, 0};
            if (last->value > half && !window.constant) {
                const double from = last->value - half, to = last->value + half;
                const double share = fit_shortest(from / window.scale, to / window.scale);
                wanted[size++] = (struct fit_floor_trial){share, 0, 1};
                if (absolute)
                    wanted[size++] = (struct fit_floor_trial){fit_shortest(from, to), 1, 1};
            }
            for (size_t i = 0; i < (window.deep ? COUNT_OF(shares) : 1); i++)
                if (shares[i] * window.scale <= window.least)
                    wanted[size++] = (struct fit_floor_trial){shares[i], 0, 0};
        }
        size_t kept = 0;
        const size_t count = fit_list_floors(&model, &window, floors);
        for (size_t i = 0; i < size; i++) {
            int first = !isnan(wanted[i].value), at_end = wanted[i].at_end;
            for (size_t k = 0; k < size; k++) {
                if (wanted[k].value != wanted[i].value) continue;
                const int alike = wanted[k].absolute == wanted[i].absolute;
                if (k < i && (alike || wanted[i].value == 0.0)) first = 0;
                if (k > i && alike && !wanted[k].at_end) at_end = 0;
            }
            if (!first) continue;
            assert_true(kept < count && floors[kept].value == wanted[i].value);
            assert_int_equal(floors[kept].absolute, wanted[i].absolute);
            assert_int_equal(floors[kept].at_end, at_end);
            ends += (size_t)at_end;
            kept++;
        }
        assert_int_equal(kept, count);
    }
    assert_true(ends > 300);
}

/* ---- the rise ---- */

/* Six rows in front of the top, of which those count that lie two updates before the end of the
 * warm-up: with two or more, they have a peak in common that reaches the top. */
static void corroborate_rises(void **state) {
    (void)state;
    size_t yes = 0, no = 0, doubtful = 0;
    for (uint32_t number = 0; number < 2 * CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x315e), .number = number};
        const size_t top = 1 + pick(30);
        open_scene(top + 3);
        const double real = (double)(top + pick(3));
        const double quantum = ONE_OF(0.0, 0x1p-9, 0x1p-6);
        const double lift = ONE_OF(0.0, 0.0, 0.0, 0x1p-8, 0x1p-5);
        window.top = top;
        for (size_t i = 0; i < top + 3; i++) {
            /* Off by more or less than the rounding to a float is. */
            const double off = quantum > 0.0 ? 0.0 : ONE_OF(0.0, 0.0, 0x1.8p-23, -0x1.8p-23);
            const double value =
                fmin(1.0, (double)points[i].update / real) + (i < top ? lift + off : 0.0);
            points[i].quantum = quantum;
            points[i].value = quantum > 0.0 ? quantum * rint(value / quantum) : value;
        }
        window.scale = ONE_OF(1.0, 2.0, 0.5);
        contract.float32 = pick(3) == 0;
        model.plain_rise = pick(12) > 0;
        model.linear = pick(12) > 0;
        model.needs_warmup = pick(12) > 0;
        model.unit = ONE_OF(1.0, 4.0);
        model.warmup_scale = ONE_OF(1.0, 2.0);
        struct fit_numbers numbers = model.now;
        numbers.stride = ONE_OF(1.0, 2.0);
        const double pace = numbers.stride * model.unit / model.warmup_scale;
        numbers.warmup = (real + (double)pick(7) - 3.0) * pace;
        law_pace = pace;
        const int answer = rise_fits(&model, &window, &numbers);
        if (!model.linear || !model.plain_rise || !model.needs_warmup || top < 2) {
            assert_true(answer && evaluated_count == 0);
            continue;
        }
        long double low = 0.0L, high = (long double)INFINITY;
        int used = 0, none = 0;
        for (size_t p = 0; p < 6 && !none; p++) {
            const struct series_point *const row = &points[(top - 1) * p / 5];
            if (((double)row->update + 2.0) * pace >= numbers.warmup) break;
            assert_true(evaluated_total[used] == 1e15 && evaluated[used] == row->update);
            const long double share =
                (long double)row->update * (long double)pace / (long double)numbers.warmup;
            const long double half =
                (long double)fit_half(row, window.scale) +
                (contract.float32 ? 0x1p-23L * (long double)window.scale : 0.0L);
            low = fmaxl(low, ((long double)row->value - half) / share);
            high = fminl(high, ((long double)row->value + half) / share);
            used++;
            none = used > 1 && low > high;
        }
        assert_int_equal(evaluated_count, used);
        const long double reach =
            (long double)points[top].value - (long double)fit_half(&points[top], window.scale);
        /* Doubles do not tell numbers apart that are as close as this. */
        if (used > 1 && (fabsl(high - reach) < 0x1p-48L || fabsl(high - low) < 0x1p-48L)) {
            doubtful++;
            continue;
        }
        const int wanted = used < 2 || (!none && high >= reach);
        if (answer != wanted) fail_msg("case %u: %d", number, answer);
        yes += (size_t)(used > 1 && wanted);
        no += (size_t)!wanted;
    }
    assert_true(yes > 500 && no > 500 && doubtful < 1500);
}

/* ---- which numbers are tried, in order ---- */

static struct fit_numbers wanted[TRIED];
static size_t wanted_count, wanted_evaluations;

/* The peak is sought in one turn where all values go with it, and in three where the floor stays.
 */
static void want(struct fit_numbers numbers) {
    const int turns = model.linear && (!numbers.absolute || numbers.floor == 0.0) ? 1 : 3;
    numbers.lr = window.scale;
    for (int n = 0; n < turns; n++) {
        assert_true(wanted_count < TRIED);
        wanted[wanted_count++] = numbers;
    }
}

static void require_tried(uint32_t number) {
    for (size_t n = 0; n < wanted_count && n < tried_count; n++)
        if (!same_numbers(&tried[n], &wanted[n]) || tried[n].absolute != wanted[n].absolute)
            fail_msg("case %u: number %zu: warm-up %g, total %g, floor %g for %g, %g, %g", number,
                     n, tried[n].warmup, tried[n].total, tried[n].floor, wanted[n].warmup,
                     wanted[n].total, wanted[n].floor);
    if (tried_count != wanted_count)
        fail_msg("case %u: %zu numbers for %zu", number, tried_count, wanted_count);
    if (evaluated_count != wanted_evaluations)
        fail_msg("case %u: %zu evaluations for %zu", number, evaluated_count, wanted_evaluations);
}

static struct fit_floor_trial floors_of_case[FIT_FLOORS];
static size_t floor_count;

/* One floor, or the typed ones that lie below 0.15. */
static void draw_floors(void) {
    static const double typed[] = {0.1,  0.01, 0.05, 0.001, 1e-5, 1e-6,
                                   5e-6, 2e-6, 5e-7, 1e-7,  1e-8, 2e-5};
    const int absolute = pick(2) == 0;
    if (absolute) model.floor_kind = FIT_FLOOR_ABSOLUTE;
    floor_count = 0;
    if (pick(2) == 0) {
        model.floor = NULL;
        model.floor_default = ONE_OF(0.0, 0.25);
        floors_of_case[floor_count++] = (struct fit_floor_trial){model.floor_default, absolute, 0};
        return;
    }
    window.typed_floors = 1;
    window.least = 0.15;
    for (size_t i = 0; i < COUNT_OF(typed); i++)
        floors_of_case[floor_count++] =
            (struct fit_floor_trial){typed[i], absolute && typed[i] < 1e-4, 0};
}

/* How many evaluations a look at all totals costs where none comes out. */
static size_t cost_of_scan(double stride) {
    const size_t j = window.descent[0] > 0 ? window.descent[0] : window.count - 1;
    const double end = (double)points[j].update * (stride * model.unit / model.scale);
    size_t looks = 1;
    for (double total = end / 4.0 + 1.0; total < 4000.0 * end + 10000.0; looks++)
        total *= total < 8.0 * end ? 1.15 : 1.5;
    return 2 * looks;
}

static void want_totals(struct fit_numbers numbers, size_t known) {
    if (!model.needs_total) {
        numbers.total = known > 0 ? (double)window.known_total[0] : 0.0;
        want(numbers);
        return;
    }
    for (size_t t = 0; t < (window.only_total ? 1 : known); t++) {
        numbers.total = (double)window.known_total[t];
        if (numbers.total > 0.0) want(numbers);
    }
    const int scans = !window.only_total && !window.no_scan && schedule.state_size == 0 &&
                      (numbers.stride == 1.0 || window.free_strides) && !window.constant;
    if (scans) wanted_evaluations += cost_of_scan(numbers.stride);
}

static void want_warmup(struct fit_numbers numbers, size_t known) {
    for (size_t t = 0; t < known && window.solved_floors; t++)
        for (size_t f = 0; f < free_count; f++) {
            numbers.total = (double)window.known_total[t];
            numbers.floor = free_floors[f].value;
            numbers.absolute = free_floors[f].absolute;
            want(numbers);
        }
    for (size_t f = 0; f < floor_count && !window.solved_floors; f++) {
        numbers.floor = floors_of_case[f].value;
        numbers.absolute = floors_of_case[f].absolute;
        want_totals(numbers, known);
    }
}

static void want_seeds(struct fit_numbers numbers) {
    static const double beside[] = {0.0, 1.0, -1.0};
    const int wide = model.needs_warmup && model.needs_total &&
                     (window.top == 1 || window.top == 2) && window.count > window.top + 1;
    for (size_t more = 0; more < (wide ? 3 : 1); more++)
        for (size_t s = 0; s < window.seed_count; s++)
            for (size_t b = 0; b < 3; b++) {
                numbers.warmup = window.seeds[s].warmup + beside[b] + beside[more];
                numbers.total = window.seeds[s].total + beside[b];
                if (numbers.warmup < 0.0 || (model.needs_total && numbers.total < 1.0)) continue;
                for (size_t f = 0; f < floor_count; f++) {
                    numbers.floor = floors_of_case[f].value;
                    numbers.absolute = floors_of_case[f].absolute;
                    want(numbers);
                }
            }
}

static void want_all(void) {
    const int epochs = contract.unit == CONTRACT_UNIT_EPOCH;
    const size_t ends = contract.unit == CONTRACT_UNIT_SAMPLE ? 0 : window.end_totals;
    const int knows = !isnan(window.known_warmup) && window.stride_count > 1;
    if (epochs && window.epoch == 0) return;
    if (window.turn == FIT_TURN_SEEDS) assert_true(window.count > 0);
    for (int known_only = knows; known_only >= 0; known_only--)
        for (size_t s = 0; s < window.stride_count; s++) {
            struct fit_numbers numbers = {.stride = strides[s], .epoch = epochs ? window.epoch : 0};
            if (!known_only && window.turn != FIT_TURN_FULL) want_seeds(numbers);
            if (window.turn == FIT_TURN_SEEDS) continue;
            for (size_t w = 0; w < warmups_of_case.count; w++) {
                numbers.warmup = warmups_of_case.at[w] + (w == 0 ? strides[s] : 0.0);
                if (!known_only || numbers.warmup == window.known_warmup)
                    want_warmup(numbers, window.known_totals - ends);
            }
        }
}

static void corroborate_what_is_tried(void **state) {
    (void)state;
    size_t scans = 0, all = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x7213d), .number = number};
        open_scene(2 + pick(6));
        law = level_law;
        points[window.count - 1].value = 0.5;
        wanted_count = wanted_evaluations = 0;
        draw_floors();
        window.only_warmup = 1; /* none is solved for */
        window.stride_count = 1 + pick(3);
        strides[1] = 2.0;
        strides[2] = 4.0;
        window.turn = (int)(pick(2) == 0 ? 0 : pick(3));
        window.top = pick(window.count < 4 ? (uint32_t)window.count : 4);
        window.seed_count = pick(3);
        for (size_t s = 0; s < window.seed_count; s++) {
            window.seeds[s].warmup = (double)pick(4);
            window.seeds[s].total = (double)pick(30);
        }
        warmups_of_case.count = pick(4);
        warmups_of_case.likely = pick(4);
        for (size_t w = 0; w < warmups_of_case.count; w++)
            warmups_of_case.at[w] = (double)(7 * w + pick(5));
        if (pick(2) == 0) window.known_warmup = (double)pick(16);
        window.known_totals = pick(4);
        for (size_t t = 0; t < 8; t++)
            window.known_total[t] = pick(5) == 0 ? 0 : 40 + 3 * t;
        window.said_totals = pick(3);
        window.end_totals = pick((uint32_t)window.known_totals + 1);
        window.only_total = window.known_totals > window.end_totals && pick(6) == 0;
        window.no_scan = pick(3) == 0;
        window.constant = pick(4) == 0;
        window.free_strides = pick(3) == 0;
        window.solved_floors = pick(3) == 0;
        free_count = pick(3);
        free_floors[0] = (struct fit_floor_trial){0.125, 0, 0};
        free_floors[1] = (struct fit_floor_trial){0.0625, 1, 0};
        schedule.state_size = pick(5) == 0;
        model.needs_total = pick(4) > 0;
        model.needs_warmup = pick(4) > 0;
        model.unit = ONE_OF(1.0, 3.0);
        model.scale = ONE_OF(1.0, 2.0);
        contract.unit = (int32_t)ONE_OF(CONTRACT_UNIT_UPDATE, CONTRACT_UNIT_UPDATE,
                                        CONTRACT_UNIT_EPOCH, CONTRACT_UNIT_SAMPLE);
        window.epoch = pick(3) > 0 ? 5 : 0;
        want_all();
        fit_solve(&model, &window, &out);
        require_tried(number);
        assert_int_equal(out.count, 0);
        assert_int_equal(budget, 1000000 - wanted_evaluations);
        scans += wanted_evaluations > 0;
        all += wanted_count;
    }
    assert_true(scans > 200 && all > 50000);
    open_scene(4);
    window.count = 0;
    fit_solve(&model, &window, &out);
    window.count = 4;
    window.scale = 0.0;
    out.count = 7;
    fit_solve(&model, &window, &out);
    assert_true(tried_count == 0 && out.count == 0);
}

/* Where the last row gives the floor, the total is two updates around that row at most. */
static void validate_totals_at_the_end(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++)
        for (size_t rows = 1; rows < 6; rows++) {
            open_scene(rows);
            law = level_law;
            window.no_scan = 0;
            model.unit = way == 1 ? 4.0 : 1.0;
            model.scale = way == 1 ? 2.0 : 1.0;
            if (way == 2) window.tail = 0.5; /* a flat end says more */
            points[rows - 1].value = 0.5;
            solve_total(&model, &window, 1, &out);
            size_t n = 0;
            for (int off = -2; off < 3 && way < 2; off++) {
                const double total = ((double)rows + off) * (way == 1 ? 2.0 : 1.0);
                if (total < 1.0) continue;
                assert_true(n < tried_count && tried[n].total == total);
                n++;
            }
            assert_int_equal(tried_count, n);
            assert_int_equal(evaluated_count > 0, way == 2 && rows > 1);
        }
}

/* A known total that explains the rows ends the search where somebody said it. */
static void validate_totals_that_were_said(void **state) {
    (void)state;
    for (size_t fits = 0; fits < 4; fits++)
        for (size_t said = 0; said < 4; said++) {
            open_scene(40);
            model.now.total = 60.0;
            for (size_t i = 0; i < 40; i++)
                points[i].value = line_law(&model.now, (double)points[i].update);
            window.known_totals = 3;
            window.said_totals = said;
            for (size_t t = 0; t < 3; t++)
                window.known_total[t] = t == fits ? 60 : 70 + t;
            window.probe_count = 2;
            window.probes[0] = 9;
            window.probes[1] = 30;
            window.top_last = 7;
            solve_total(&model, &window, 0, &out);
            const int scans = fits == 3 || fits >= said;
            assert_int_equal(evaluated_total[evaluated_count - 1] > 72.0, scans);
            assert_int_equal(out.count, 1); /* which the scan finds as well */
        }
}

/* A search ends with so many solutions, or behind the likely warm-ups with one. */
static void validate_where_a_search_ends(void **state) {
    (void)state;
    for (int way = 0; way < 6; way++)
        for (size_t likely = 0; likely < 70; likely += 23) {
            open_scene(5);
            law = level_law;
            model.needs_total = 0;
            model.floor = NULL;
            window.only_warmup = 1;
            window.probe_count = 1;
            for (size_t i = 0; i < 5; i++)
                points[i].update = i + (way == 1 || way == 2 ? 3 : 2);
            if (way == 2) window.top = 1;
            warmups_of_case.count = 60;
            warmups_of_case.likely = likely;
            for (size_t w = 0; w < 60; w++)
                warmups_of_case.at[w] = 100.0 + 3.0 * (double)w;
            if (way == 3) points[1].value = 2.0; /* nothing explains it */
            if (way == 4) budget = 20;           /* one for each row that is looked at */
            if (way == 5) out.count = 9;
            fit_solve(&model, &window, &out);
            size_t most = way == 1 ? 12 : way == 4 ? 20 : FIT_SOLUTIONS;
            if (likely == 0) most = 1;
            if (likely > 0 && most > likely) most = likely;
            if (way == 3) most = 0;
            assert_int_equal(out.count, most);
            for (size_t n = 0; n < most; n++)
                assert_true(out.at[n].numbers.warmup ==
                            warmups_of_case.at[n] + (n == 0 ? 1.0 : 0.0));
        }
    /* And a warm-up that the rows in front of the top refuse is not tried. */
    open_scene(30);
    model.plain_rise = 1;
    model.needs_total = 0;
    model.floor = NULL;
    window.only_warmup = 1;
    window.top = 19;
    warmups_of_case.count = 4;
    warmups_of_case.likely = 4;
    for (size_t i = 0; i < 30; i++)
        points[i].value = fmin(1.0, (double)points[i].update / 20.0);
    const double offered[] = {19.0, 10.0, 15.0, 21.0};
    memcpy(warmups_of_case.at, offered, sizeof offered);
    fit_solve(&model, &window, &out);
    assert_int_equal(tried_count, 2);
    assert_true(tried[0].warmup == 20.0 && tried[1].warmup == 21.0);
}

/* ---- a warm-up between rows that lie far apart ---- */

static double knee_of(const struct fit_numbers *numbers, double warmup, size_t before,
                      size_t after) {
    struct fit_numbers trial = *numbers;
    trial.warmup = warmup;
    return law(&trial, (double)points[after].update * law_pace) /
           law(&trial, (double)points[before].update * law_pace);
}

/* The halves of a bracket until a fifth is left, and then to the end: where the ratio is met. */
static double met(double low, double high, double target, size_t *evaluations,
                  const struct fit_numbers *numbers, size_t before, size_t after) {
    for (int n = 0; n < 200; n++) {
        const double middle = 0.5 * (low + high);
        if (high - low > 0.2) *evaluations += 2;
        if (knee_of(numbers, middle, before, after) < target)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Three whole warm-ups around the one that is met, which may be taken for up to a fifth less. */
static size_t require_three(size_t n, double at, double least) {
    for (int less = 0; less < 2; less++) {
        const double middle = floor(at - 0.2 * less + 0.5);
        size_t end = n;
        for (double w = fmax(middle - 1.0, least); w <= middle + 1.0; w += 1.0)
            if (end < tried_count && tried[end].warmup == w)
                end++;
            else
                end = TRIED;
        if (end < TRIED) return end;
    }
    fail_msg("not %g, but %g (%zu of %zu)", at, tried[n].warmup, n, tried_count);
    return n;
}

static void corroborate_knees(void **state) {
    (void)state;
    size_t found = 0, none = 0, exact = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x4ee), .number = number};
        const size_t rows = 4 + pick(6);
        open_scene(rows);
        const uint64_t every = 90 + pick(30) + 50 * pick(4), first = 1 + pick(3);
        model.unit = ONE_OF(1.0, 2.0);
        model.warmup_scale = ONE_OF(1.0, 2.0);
        law_pace = model.unit / model.warmup_scale;
        for (size_t i = 0; i < rows; i++)
            points[i].update = first + every * i + (i > 2 ? pick(20) : 0);
        const double last = (double)points[rows - 1].update * law_pace;
        model.now.warmup = (double)(1 + pick(pick(4) == 0 ? 3 : (uint32_t)last));
        model.now.total = floor(last * (1.0 + (double)(1 + pick(20)) / 10.0));
        const double made_warmup = model.now.warmup, made_total = model.now.total;
        for (size_t i = 0; i < rows; i++)
            points[i].value = line_law(&model.now, (double)points[i].update * law_pace);
        for (size_t i = 1; i < rows; i++)
            if (points[i].value > points[window.top].value) window.top = i;
        window.top_last = window.top + (pick(4) == 0);
        window.descent[0] = pick(2) == 0 ? 0 : pick((uint32_t)rows);
        window.known_totals = 1 + pick(2);
        window.known_total[0] = (uint64_t)made_total;
        window.known_total[1] = (uint64_t)made_total + 70;
        window.typed_floors = 1; /* the first three of these */
        window.least = 0.15;
        if (pick(8) == 0) points[pick((uint32_t)rows)].value = 0.0;
        struct fit_numbers numbers = model.now;
        numbers.stride = 1.0;
        size_t n = 0, evaluations = 0;
        tried_count = 0;
        solve_knee(&model, &window, &numbers, &out);
        for (int behind = 0; behind < 2; behind++) {
            static const double floors[] = {0.1, 0.01, 0.05};
            if (behind == 0 && window.top == 0) continue;
            const size_t before = behind ? window.top : window.top - 1;
            if (before + 1 == rows || points[before].value <= 0.0) continue;
            if (behind && window.top_last > window.top) continue;
            const uint64_t gap = points[before + 1].update - points[before].update;
            /* A row that is the top and the first one may hide any warm-up in front of it. */
            const int hides = behind && window.top == 0 && points[0].update > 2;
            if (gap <= 100 && !hides) continue;
            const size_t after = window.descent[0] > before ? window.descent[0] : before + 1;
            for (size_t t = 0; t < window.known_totals; t++)
                for (size_t f = 0; f < COUNT_OF(floors); f++) {
                    numbers.total = (double)window.known_total[t];
                    numbers.floor = floors[f];
                    const double low = ((double)points[before].update - 1.0) * law_pace;
                    const double high = ((double)points[before + 1].update + 1.0) * law_pace;
                    const double target = points[after].value / points[before].value;
                    const double at_low = knee_of(&numbers, low, before, after);
                    const double at_high = knee_of(&numbers, high, before, after);
                    evaluations += 4;
                    if (!(at_low <= target && target <= at_high)) {
                        none++;
                        continue;
                    }
                    const double at = met(low, high, target, &evaluations, &numbers, before, after);
                    const size_t begins = n;
                    n = require_three(n, at, 1.0);
                    for (size_t k = begins; k < n; k++)
                        assert_true(tried[k].total == numbers.total &&
                                    tried[k].floor == numbers.floor && tried[k].absolute == 0);
                    found++;
                    exact += at > 2.0 && fabs(at - made_warmup) < 0.01;
                }
        }
        assert_int_equal(n, tried_count);
        /* One row at 0 is worth no second evaluation. */
        if (evaluations != evaluated_count && law != zero_law) fail_msg("case %u", number);
        assert_int_equal(budget, 1000000 - evaluated_count);
    }
    assert_true(found > 500 && none > 500 && exact > 100);
}

/* Rows 300 updates apart whose knee lies between the second and the third. */
static void open_knee(void) {
    open_scene(6);
    model.now = (struct fit_numbers){.lr = 1.0, .warmup = 450.0, .total = 5000.0, .stride = 1.0};
    model.floor = NULL;
    for (size_t i = 0; i < 6; i++) {
        points[i].update = 1 + 300 * i;
        points[i].value = line_law(&model.now, (double)points[i].update);
    }
    window.top = 2;
    window.top_last = 3; /* the row behind it is left alone */
    window.known_totals = 1;
    window.known_total[0] = 5000;
}

static void require_knee(int line, size_t count) {
    const struct fit_numbers numbers = model.now;
    solve_knee(&model, &window, &numbers, &out);
    if (tried_count != count) fail_msg("line %d: %zu", line, tried_count);
    if (count == 0 && evaluated_count > 0) fail_msg("line %d: it was looked at", line);
    for (size_t n = 0; n < count; n++)
        if (tried[n].warmup != 449.0 + (double)n) fail_msg("line %d: %g", line, tried[n].warmup);
    open_knee();
}
#define KNEE(count) require_knee(__LINE__, count)

static void validate_when_knees_are_sought(void **state) {
    (void)state;
    open_knee();
    KNEE(3);
    model.needs_warmup = 0;
    KNEE(0);
    window.constant = 1;
    KNEE(0);
    model.now.stride = 2.0;
    KNEE(0);
    window.only_warmup = 1;
    KNEE(0);
    window.known_warmup = 450.0;
    KNEE(0);
    schedule.state_size = 1;
    KNEE(0);
    contract.unit = CONTRACT_UNIT_EPOCH;
    KNEE(0);
    window.known_totals = 0;
    KNEE(0);
    points[1].value = 0.0;
    KNEE(0);
    window.count = 2;
    window.top = 1;
    window.top_last = 1;
    points[1].update = 101; /* a hundred updates are all tried elsewhere */
    KNEE(0);
    budget = 0;
    KNEE(0);
    points[1].update = 501;
    KNEE(0);
    /* A bracket of 302 updates is halved eleven times, as long as evaluations are left: one at
     * least stands for the four of its ends. */
    for (size_t had = 1; had < 30; had++) {
        open_knee();
        budget = had;
        solve_knee(&model, &window, &model.now, &out);
        const size_t left = had > 4 ? had - 4 : 0, halves = (left + 1) / 2;
        assert_int_equal(evaluated_count, 4 + 2 * (halves < 11 ? halves : 11));
        assert_int_equal(budget, had < 26 ? 0 : had - 26);
        assert_int_equal(tried_count, 3);
    }
    /* A schedule without a total is set to the first one that is known, or to none. */
    for (size_t known = 0; known < 3; known++) {
        open_knee();
        law = level_law;
        model.needs_total = 0;
        window.known_totals = known;
        window.known_total[0] = 6000;
        window.known_total[1] = 7000;
        for (size_t i = 0; i < 6; i++)
            points[i].value = 1.0;
        const struct fit_numbers numbers = model.now;
        solve_knee(&model, &window, &numbers, &out);
        assert_int_equal(tried_count, 3);
        for (size_t n = 0; n < 3; n++)
            assert_true(tried[n].total == (known > 0 ? 6000.0 : 0.0) &&
                        tried[n].warmup == 299.0 + (double)n);
    }
}

static void open_hidden(void);

/* In a full turn alone, and where no floors are solved for. */
static void validate_turns_with_a_knee(void **state) {
    (void)state;
    for (int turn = 0; turn < 3; turn++)
        for (int solved = 0; solved < 2; solved++)
            for (int hidden = 0; hidden < 2; hidden++) {
                if (hidden)
                    open_hidden();
                else
                    open_knee();
                if (hidden) window.known_lr = 0.0123;
                window.turn = turn;
                window.solved_floors = solved;
                warmups_of_case.count = 0;
                free_count = 0;
                fit_solve(&model, &window, &out);
                /* Where the top is the first row, the knee may lie on either side of it. */
                const size_t sought = hidden ? 6 : 3;
                assert_int_equal(tried_count, turn == FIT_TURN_FULL && !solved ? sought : 0);
            }
}

/* ---- a warm-up that is over before the first row ---- */

/* A line behind a warm-up that nobody sees: each warm-up has a peak of its own. */
static void open_hidden(void) {
    open_scene(6);
    model.now = (struct fit_numbers){.lr = 1.0, .warmup = 50.0, .total = 1000.0, .stride = 1.0};
    model.floor = NULL;
    for (size_t i = 0; i < 6; i++) {
        points[i].update = 101 + i;
        points[i].value = 0.0123 * line_law(&model.now, (double)points[i].update);
    }
    window.whole = 1;
    window.scale = points[0].value;
    window.known_totals = 1;
    window.known_total[0] = 1000;
}

static double peak_of(const struct fit_numbers *numbers, double warmup) {
    struct fit_numbers trial = *numbers;
    trial.lr = 1.0;
    trial.warmup = warmup;
    const double at = (double)points[0].update + (double)window.shift;
    return points[0].value / law(&trial, at * law_pace);
}

static size_t require_peak(size_t n, const struct fit_numbers *numbers, double peak, double last,
                           size_t *evaluations) {
    double low = 0.0, high = last;
    const int up = peak_of(numbers, high) > peak_of(numbers, low);
    *evaluations += 2;
    for (int i = 0; i < 200; i++) {
        const double middle = 0.5 * (low + high);
        *evaluations += high - low > 0.2;
        if ((peak_of(numbers, middle) < peak) == up)
            low = middle;
        else
            high = middle;
    }
    return require_three(n, low, 0.0);
}

static void corroborate_hidden_warmups(void **state) {
    (void)state;
    size_t peaks = 0, known = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x41dde), .number = number};
        open_hidden();
        points[0].update = 3 + pick(400);
        points[0].value = 0.001 * (double)(1 + pick(60)) * (1.0 + 0.0137 * (double)(1 + pick(9)));
        window.shift = (int64_t)pick(3) - 1;
        window.known_totals = 1 + pick(2);
        window.known_total[0] = points[0].update + 30 + pick(3000);
        window.known_total[1] = window.known_total[0] + 100;
        model.unit = ONE_OF(1.0, 2.0);
        model.warmup_scale = ONE_OF(1.0, 2.0);
        law_pace = model.unit / model.warmup_scale;
        window.known_total[0] *= (uint64_t)model.unit;
        window.known_total[1] *= (uint64_t)model.unit;
        if (pick(4) == 0) window.known_lr = points[0].value * ONE_OF(1.001, 1.02, 1.1, 0.9);
        struct fit_numbers numbers = model.now;
        size_t n = 0, evaluations = 0;
        const double shown = (double)points[0].update + (double)window.shift;
        const double last = (shown + 2.0) * law_pace;
        solve_hidden(&model, &window, &numbers, &out);
        struct fit_numbers trial = numbers;
        for (size_t t = 0; t < window.known_totals; t++) {
            trial.total = (double)window.known_total[t];
            const double a = peak_of(&trial, 0.0), b = peak_of(&trial, last);
            const double low = fmin(a, b), high = fmax(a, b);
            evaluations += 2;
            if (!isnan(window.known_lr)) {
                if (window.known_lr < low || window.known_lr > high) continue;
                n = require_peak(n, &trial, window.known_lr, last, &evaluations);
                known++;
                continue;
            }
            int tries = 0;
            for (int e = -6; e < 1; e++)
                for (int digits = 10; digits < 100; digits++) {
                    const double peak = (double)digits * pow(10.0, e);
                    if (peak > high * (1.0 + 0x1p-20) || tries >= 179) continue;
                    if (peak < low * (1.0 - 0x1p-20)) continue;
                    tries++;
                    n = require_peak(n, &trial, peak, last, &evaluations);
                    peaks++;
                }
        }
        assert_int_equal(n, tried_count);
        assert_int_equal(evaluations, evaluated_count);
        assert_int_equal(budget, 1000000 - evaluated_count);
    }
    assert_true(peaks > 2000 && known > 100);
}

static void require_hidden(int line, size_t count) {
    const struct fit_numbers numbers = model.now;
    solve_hidden(&model, &window, &numbers, &out);
    if (tried_count != count) fail_msg("line %d: %zu", line, tried_count);
    if (count == 0 && evaluated_count > 0) fail_msg("line %d: it was looked at", line);
    open_hidden();
    window.known_lr = 0.0123; /* its warm-up is 50 */
}
#define HIDDEN(count) require_hidden(__LINE__, count)

static void validate_when_hidden_warmups_are_sought(void **state) {
    (void)state;
    open_hidden();
    window.known_lr = 0.0123;
    HIDDEN(3);
    window.whole = 0;
    HIDDEN(0);
    window.top = 1;
    HIDDEN(0);
    points[0].update = 2;
    HIDDEN(0);
    window.constant = 1;
    HIDDEN(0);
    model.now.stride = 2.0;
    HIDDEN(0);
    window.only_warmup = 1;
    HIDDEN(0);
    window.known_warmup = 50.0;
    HIDDEN(0);
    model.needs_warmup = 0;
    HIDDEN(0);
    schedule.state_size = 1;
    HIDDEN(0);
    contract.unit = CONTRACT_UNIT_EPOCH;
    HIDDEN(0);
    window.known_totals = 0;
    HIDDEN(0);
    model.linear = 0;
    HIDDEN(0);
    points[0].update = 3;
    points[0].value = 0.01;
    HIDDEN(3);
    /* Every floor with every total, the totals outside; one that is an LR is left out. */
    for (int absolute = 0; absolute < 2; absolute++) {
        static const double floors[] = {0.1, 0.01, 0.05};
        open_hidden();
        window.known_lr = 0.0123;
        window.known_totals = 2;
        window.known_total[1] = 1010;
        model.floor = &floor_place;
        window.typed_floors = 1;
        window.least = 0.15 * window.scale;
        if (absolute) {
            model.floor_kind = FIT_FLOOR_ABSOLUTE;
            window.only_floor = 1e-5;
        }
        const struct fit_numbers numbers = model.now;
        solve_hidden(&model, &window, &numbers, &out);
        assert_int_equal(tried_count, absolute ? 0 : 18);
        for (size_t n = 0; n < tried_count; n++)
            assert_true(tried[n].total == (n < 9 ? 1000.0 : 1010.0) &&
                        tried[n].floor == floors[n / 3 % 3]);
    }
    for (size_t known = 0; known < 2; known++) { /* without a total, or with the first one */
        open_hidden();
        law = level_law;
        model.needs_total = 0;
        window.known_totals = known;
        window.known_lr = points[0].value;
        const struct fit_numbers numbers = model.now;
        solve_hidden(&model, &window, &numbers, &out);
        assert_true(tried_count == 3 && tried[0].total == (known > 0 ? 1000.0 : 0.0));
    }
    open_hidden(); /* a row at 0 has no peak */
    points[0].value = 0.0;
    solve_hidden(&model, &window, &model.now, &out);
    assert_int_equal(tried_count, 0);
    for (size_t had = 1; had < 20; had++) { /* 103 updates are halved ten times */
        open_hidden();
        window.known_lr = 0.0123;
        budget = had;
        const struct fit_numbers numbers = model.now;
        solve_hidden(&model, &window, &numbers, &out);
        const size_t left = had > 4 ? had - 4 : 0;
        assert_int_equal(evaluated_count, 4 + (left < 10 ? left : 10));
        assert_int_equal(tried_count, left < 2 ? 2 : 3); /* around 0 two are left */
    }
}

/*MORE*/

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_walks),
        cmocka_unit_test(validate_every_point),
        cmocka_unit_test(validate_suspects),
        cmocka_unit_test(validate_levels),
        cmocka_unit_test(corroborate_what_a_row_admits),
        cmocka_unit_test(corroborate_peaks_of_rows),
        cmocka_unit_test(validate_numbers_that_are_one),
        cmocka_unit_test(validate_floors_above_peaks),
        cmocka_unit_test(validate_what_is_emitted),
        cmocka_unit_test(validate_order_of_peaks),
        cmocka_unit_test(validate_turns),
        cmocka_unit_test(validate_steps_of_every_point),
        cmocka_unit_test(validate_ratios),
        cmocka_unit_test(validate_halves),
        cmocka_unit_test(corroborate_totals_around),
        cmocka_unit_test(validate_scanned_totals),
        cmocka_unit_test(corroborate_scanned_totals),
        cmocka_unit_test(corroborate_distinct_floors),
        cmocka_unit_test(corroborate_typed_floors),
        cmocka_unit_test(corroborate_listed_floors),
        cmocka_unit_test(corroborate_rises),
        cmocka_unit_test(corroborate_what_is_tried),
        cmocka_unit_test(validate_totals_at_the_end),
        cmocka_unit_test(validate_totals_that_were_said),
        cmocka_unit_test(validate_where_a_search_ends),
        cmocka_unit_test(corroborate_knees),
        cmocka_unit_test(validate_when_knees_are_sought),
        cmocka_unit_test(validate_turns_with_a_knee),
        cmocka_unit_test(corroborate_hidden_warmups),
        cmocka_unit_test(validate_when_hidden_warmups_are_sought),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
