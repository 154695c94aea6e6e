/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The parts of the search of fits, each alone: where a window ends, what a verified fit is off by,
 * what an evaluation costs, a knee between rows that lie far apart, and the total of a log of one
 * update. What they must give is computed here from the formula of the schedule. */
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
#include "base/real.h"
#include "determinism/philox.h"
#include "forensics/fit.h"
#include "forensics/fit_solve.h"
#include "tests/forensics/helper_log.h"

/* Fills rows of update 1 on with values that are printed to a quantum. */
static void fill(struct series_point *points, const double *values, size_t count, double quantum) {
    for (size_t i = 0; i < count; i++)
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = values[i], .quantum = quantum};
}

/* The rows behind a window go on as its last ones; they are no part of it. */
static void validate_a_plateau_ends_with_its_window(void **state) {
    (void)state;
    static const double values[] = {0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    struct series_point points[COUNT_OF(values)];
    fill(points, values, COUNT_OF(values), 0.0);
    for (size_t count = 3; count <= COUNT_OF(values); count++) {
        struct fit_window window;
        memset(&window, 0, sizeof window);
        fit_window_open(&window, points, count);
        assert_int_equal(window.top, 2);
        assert_int_equal(window.top_last, count - 1);
        for (size_t p = 0; p < window.probe_count; p++)
            assert_true(window.probes[p] < count);
    }
}

/* Rows of a decay of power 2 behind a warm-up of 20 steps: (L - end) (1 - x)^2 + end, f(k - 1). The
 * bend of the rows gives the update of its end and the floor, where they show no other course and
 * the digits suffice. */
static void validate_the_end_of_a_parabola(void **state) {
    (void)state;
    enum { ROWS = 400 };
    static const struct {
        double end, power;
        int rows, total, digits; /* digits: behind the first; 0: exact doubles */
        int off;                 /* the row that is a permille off; 0: none */
        double update;           /* 0: nothing is found */
    } cases[] = {{1e-8, 2.0, 400, 600, 0, 0, 601.0},
                 {1e-6, 2.0, 400, 777, 0, 0, 778.0},
                 {0.0, 2.0, 400, 600, 0, 0, 601.0},
                 {5e-7, 2.0, 400, 600, 9, 0, 601.0},
                 {1e-6, 2.0, 400, 401, 6, 0, 402.0},
                 /* Eight rows behind the first of the decay are needed. */
                 {1e-6, 2.0, 29, 60, 0, 0, 0.0},
                 {1e-6, 2.0, 30, 60, 0, 0, 61.0},
                 {1e-6, 2.0, 400, 600, 2, 0, 0.0},
                 {1.2345e-6, 2.0, 400, 600, 0, 0, 0.0},
                 {1e-6, 2.0, 400, 600, 0, 115, 0.0},
                 {1e-6, 1.0, 400, 600, 0, 0, 0.0},
                 {1e-6, 0.5, 400, 600, 0, 0, 0.0},
                 {1e-6, 3.0, 400, 600, 0, 0, 0.0},
                 /* Half of the peak less by the square: it turns at its top. */
                 {0.0, -1.0, 400, 600, 0, 0, 0.0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        static struct series_point points[ROWS];
        struct fit_window window;
        struct fit_vertex vertex;
        for (int i = 0; i < cases[c].rows; i++) {
            const double past = (i - 20.0) / (cases[c].total - 20.0);
            double value =
                i < 20 ? 1e-4 * i / 20.0
                       : (1e-4 - cases[c].end) * pow(1.0 - past, cases[c].power) + cases[c].end;
            double quantum = 0.0;
            if (i > 0 && i == cases[c].off) value *= 1.001;
            if (cases[c].digits > 0 && value > 0.0) {
                quantum = pow(10.0, floor(log10(value)) - cases[c].digits);
                value = quantum * rint(value / quantum);
            }
            points[i] = (struct series_point){
                .update = (uint64_t)i + 1, .row = (size_t)i, .value = value, .quantum = quantum};
        }
        memset(&window, 0, sizeof window);
        fit_window_open(&window, points, (size_t)cases[c].rows);
        const int found = fit_find_vertex(&window, &vertex);
        if (found != (cases[c].update > 0.0) ||
            (found && (vertex.update != cases[c].update || vertex.floor != cases[c].end)))
            fail_msg("%zu: %d, update %g, floor %g", c, found, vertex.update, vertex.floor);
    }
}

/* Makes the one model of a schedule that is constant. */
static struct fit_model *constant_model(struct fit_known *known, struct arena *arena) {
    static const struct fit_decays none = {.count = 0};
    struct fit_model *models;
    size_t count;
    fit_known_init(known);
    known->request.contract = contract_find("hf");
    known->request.schedule = "constant";
    assert_int_equal(fit_models(&known->request, known, &none, arena, &models, &count), STATUS_OK);
    assert_int_equal(count, 1);
    return models;
}

/* More rows than fit_verify sums at once, off by 0, a quarter and half a quantum in turn. */
static void validate_errors_of_many_rows(void **state) {
    (void)state;
    enum { ROWS = 768 };
    static double values[ROWS];
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_model *model = constant_model(&known, &arena);
    fit_model_set(model, &(struct fit_numbers){.lr = 1.0, .stride = 1.0});
    for (size_t phase = 0; phase < 3; phase++)
        for (size_t count = 3; count <= ROWS; count += 255) {
            uint64_t walk = 1000;
            struct fit_window window;
            double largest, rms;
            for (size_t i = 0; i < ROWS; i++)
                values[i] = 1.0 + 0x1p-12 * (double)((i + phase) % 3);
            fill(points, values, ROWS, 0x1p-10);
            memset(&window, 0, sizeof window);
            window.walk = &walk;
            fit_window_open(&window, points, count);
            assert_int_equal(fit_verify(model, &window, &largest, &rms), 1);
            assert_true(largest == 0.5);
            /* Every third row adds 0, 1/16 and 1/4: all sums are exact. */
            assert_true(rms ==
                        real_sqrt_f64((0.0625 + 0.25) * (double)(count / 3) / (double)count));
        }
    arena_close(&arena);
}

/* A point that refused a fit once is looked at first. It refuses those of which it says so, and no
 * other: whatever point stands there, the answer is that of all points. */
static void verify_a_suspect_changes_no_answer(void **state) {
    (void)state;
    enum { ROWS = 300, BAD = 271 };
    static double values[ROWS];
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_model *model = constant_model(&known, &arena);
    for (int bad = 0; bad < 2; bad++) {
        for (size_t i = 0; i < ROWS; i++)
            values[i] = bad && i == BAD ? 1.5 : 1.0;
        fill(points, values, ROWS, 0.0);
        fit_model_set(model, &(struct fit_numbers){.lr = 1.0, .stride = 1.0});
        for (size_t first = 0; first <= ROWS; first += 50) {
            uint64_t walk = 1000;
            size_t suspect = first == 250 ? BAD : first;
            struct fit_window window;
            double largest = -1.0, rms;
            memset(&window, 0, sizeof window);
            window.walk = &walk;
            window.suspect = &suspect;
            fit_window_open(&window, points, ROWS);
            assert_int_equal(fit_verify(model, &window, &largest, &rms), !bad);
            if (bad) assert_int_equal(suspect, BAD);
            if (!bad) assert_true(largest == 0.0 && rms == 0.0);
        }
    }
    /* A window of the first rows has nothing to do with one behind them. */
    for (size_t count = BAD - 1; count <= BAD + 1; count++) {
        uint64_t walk = 1000;
        size_t suspect = BAD;
        struct fit_window window;
        double largest, rms;
        memset(&window, 0, sizeof window);
        fill(points, values, ROWS, 0.0);
        window.walk = &walk;
        window.suspect = &suspect;
        fit_window_open(&window, points, count);
        assert_int_equal(fit_verify(model, &window, &largest, &rms), count <= BAD);
    }
    arena_close(&arena);
}

/* A schedule whose floor is its peak falls nowhere behind its warm-up, to the last bit: a fit of it
 * is verified by one evaluation for all these rows (fit_solve.c). Asked of every schedule of every
 * contract that was found to do so, in front of its total and far behind it, at a peak of many
 * digits. */
static void verify_nothing_falls_to_the_peak(void **state) {
    (void)state;
    const double peak = 3.1415926535897933e-4, warmup = 50.0, total = 200.0;
    static const struct fit_decays decays = {.text = {"40"}, .count = 1};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_model *models;
    size_t count, asked = 0, fall = 0;
    fit_known_init(&known);
    known.request.processes = 2;
    known.request.accumulate = 2;
    assert_int_equal(fit_models(&known.request, &known, &decays, &arena, &models, &count),
                     STATUS_OK);
    for (size_t m = 0; m < count; m++) {
        struct fit_model *model = &models[m];
        fall += model->floor != NULL && !model->levels;
        if (!model->levels) continue;
        for (int absolute = 0; absolute <= (model->floor_kind == FIT_FLOOR_ABSOLUTE); absolute++) {
            struct fit_numbers numbers = {.lr = peak,
                                          .warmup = warmup,
                                          .total = total,
                                          .stride = 1.0,
                                          .floor = absolute ? peak : 1.0,
                                          .absolute = absolute};
            numbers.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 7 : 0;
            fit_model_set(model, &numbers);
            /* Four updates beside the warm-up, and two epochs where it counts these. */
            const uint64_t first = 55 + 2 * numbers.epoch;
            const double top = fit_model_logged(model, first, 0);
            for (uint64_t k = first; k < 600; k++)
                if (fit_model_logged(model, k, 0) != top)
                    fail_msg("%s %s %s: update %llu", model->contract->name, model->schedule_name,
                             model->parameters, (unsigned long long)k);
            asked++;
        }
    }
    assert_true(asked > 100);
    assert_true(fall > 0); /* OLMo's cosine falls from its floor to 0 in its last part */
    arena_close(&arena);
}

/* What was found in this way is found: a warm-up and a plateau under a decay to its own peak. */
static void corroborate_levels_with_every_point(void **state) {
    (void)state;
    enum { ROWS = 120, WARMUP = 20 };
    static double values[ROWS];
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_model *models;
    size_t count, verified = 0;
    static const struct fit_decays none = {.count = 0};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "cosine";
    assert_int_equal(fit_models(&known.request, &known, &none, &arena, &models, &count), STATUS_OK);
    assert_true(count > 0);
    for (size_t bad = 0; bad <= ROWS; bad++) {
        for (size_t i = 0; i < ROWS; i++)
            values[i] = (i < WARMUP ? 2e-5 * ((double)i / WARMUP) : 2e-5) * (i == bad ? 1.25 : 1.0);
        fill(points, values, ROWS, 0.0);
        uint64_t walk = 1000;
        struct fit_window window;
        double largest, rms;
        memset(&window, 0, sizeof window);
        window.walk = &walk;
        fit_window_open(&window, points, ROWS);
        fit_model_set(
            models, &(struct fit_numbers){
                        .lr = 2e-5, .warmup = WARMUP, .total = 100.0, .stride = 1.0, .floor = 1.0});
        const int fits = fit_verify(models, &window, &largest, &rms);
        /* Row 1 is 0, and 0 times a quarter more. */
        assert_int_equal(fits, bad == 0 || bad == ROWS);
        verified += (size_t)fits;
    }
    assert_int_equal(verified, 2);
    arena_close(&arena);
}

/* The search ends when what it may evaluate is spent, so every evaluation must take from it. */
static void verify_an_evaluation_spends(void **state) {
    (void)state;
    static const double values[] = {1.0, 1.0, 1.0}, strides[] = {1.0};
    struct series_point points[COUNT_OF(values)];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_solutions solutions;
    struct fit_model *model = constant_model(&known, &arena);
    uint64_t walk = 1000;
    size_t budget = 1000;
    struct fit_window window;
    memset(&window, 0, sizeof window);
    window.known_warmup = window.known_ratio = window.known_lr = window.known_floor =
        real_nan_f64();
    window.strides = strides;
    window.stride_count = 1;
    window.budget = &budget;
    window.walk = &walk;
    fill(points, values, COUNT_OF(values), 0.0);
    fit_window_open(&window, points, COUNT_OF(values));
    fit_solve(model, &window, &solutions);
    assert_int_equal(solutions.count, 1);
    assert_true(solutions.at[0].numbers.lr == 1.0);
    assert_int_equal(budget, 1000 - COUNT_OF(values)); /* one for each row */
    arena_close(&arena);
}

/* A scheduler that eight processes step together, logged every 1000 updates: its warm-up ends
 * between two rows, of which the later one is the highest, or the one before. Those are too many
 * warm-ups to try, so the ratio of the two rows must give it. */
static void corroborate_a_knee_in_steps_of_processes(void **state) {
    (void)state;
    static const struct {
        double warmup, total;
        size_t rows;
    } logs[] = {{11957.0, 160000.0, 18}, {32155.0, 120000.0, 14}};
    const double peak = 3e-4;
    for (size_t l = 0; l < COUNT_OF(logs); l++) {
        const double warmup = logs[l].warmup, total = logs[l].total;
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, logs[l].rows);
        struct fit_known known;
        struct series series;
        struct fit_set set;
        size_t found = 0;
        for (size_t row = 0; row < log->rows; row++) {
            const double steps = 8.0 * 1000.0 * (double)(row + 1);
            log->step[row] = (int64_t)(1000 * (row + 1));
            helper_put(&arena, log, LOG_LR_LOGGED, row,
                       steps < warmup ? peak * steps / warmup
                                      : peak * (total - steps) / (total - warmup),
                       PRINT_EXACT);
        }
        fit_known_init(&known);
        known.request.contract = contract_find("hf-x-processes");
        known.request.schedule = "linear";
        known.request.processes = 8;
        known.request.steps = (uint64_t)total;
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t i = 0; i < set.count; i++)
            found += set.fits[i].warmup == warmup && fabs(set.fits[i].lr - peak) < 1e-12 * peak;
        assert_int_equal(found, 1);
        arena_close(&arena);
    }
}

/* 200 rows of three digits of a line to lr_end that somebody says to end an update too soon: the
 * rows that a total is tried on agree with it, and others do not, so it must not end the scan. */
static void corroborate_a_total_beside_the_one_that_is_said(void **state) {
    (void)state;
    enum { ROWS = 200, TOTAL = 1234 };
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, ROWS);
    struct fit_known known;
    struct series series;
    struct fit_set set;
    for (size_t row = 0; row < ROWS; row++) {
        const double step = (double)row;
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   step < 20.0 ? 1e-4 * step / 20.0
                               : (1e-4 - 1e-7) * (1.0 - (step - 20.0) / (TOTAL - 20.0)) + 1e-7,
                   PRINT_E2);
    }
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "polynomial";
    known.request.steps = TOTAL - 1;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    if (set.count == 0 || set.fits[0].steps != TOTAL || set.fits[0].lr != 1e-4)
        fail_msg("%s", set.count > 0 ? set.fits[0].text : "nothing");
    arena_close(&arena);
}

/* Fits a column of hf's linear schedule without warm-up, of which all numbers are known. */
static void fit_linear(const double *values, size_t rows, uint64_t steps, struct arena *arena,
                       struct series *series, struct fit_set *set) {
    struct log *log = helper_log(arena, rows);
    struct fit_known known;
    for (size_t row = 0; row < rows; row++)
        helper_put(arena, log, LOG_LR_LOGGED, row, values[row], PRINT_EXACT);
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    known.request.lr = 1e-3;
    known.request.warmup = 0.0;
    known.request.steps = steps;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, series), STATUS_OK);
    assert_int_equal(fit_series(series, &known, arena, set), STATUS_OK);
}

/* Three rows are enough for a skipped update where all numbers are known: update 2 repeats f(0),
 * and update 3 applies f(1) = 0.9 L. */
static void validate_a_skip_in_three_rows(void **state) {
    (void)state;
    static const double values[] = {1e-3, 1e-3, 0.9e-3};
    struct arena arena = ARENA_EMPTY;
    struct series series;
    struct fit_set set;
    fit_linear(values, COUNT_OF(values), 10, &arena, &series, &set);
    assert_true(set.count > 0);
    assert_int_equal(set.fits[0].skip_count, 1);
    assert_int_equal(set.fits[0].skips[0].first, 1);
    assert_int_equal(set.fits[0].skips[0].last, 1);
    arena_close(&arena);
}

/* The counter of update 10 jumps to the total, where the line is 0 for the first time. */
static void validate_a_jump_to_the_end(void **state) {
    (void)state;
    double values[16];
    struct arena arena = ARENA_EMPTY;
    struct series series;
    struct fit_set set;
    size_t found = 0;
    for (size_t i = 0; i < COUNT_OF(values); i++)
        values[i] = i < 9 ? 1e-3 * (20.0 - (double)i) / 20.0 : 0.0;
    fit_linear(values, COUNT_OF(values), 20, &arena, &series, &set);
    for (size_t i = 0; i < set.count; i++) {
        const struct fit *fit = &set.fits[i];
        found += fit->segment_count == 2 && fit->segments[1].event == FIT_JUMP &&
                 fit->segments[1].update == 10 && fit->segments[1].shift >= 11;
    }
    assert_true(found > 0);
    arena_close(&arena);
}

/* A column of totals counts from a total of one update on; 0 is no total. */
static void validate_a_total_of_one(void **state) {
    (void)state;
    static const double totals[] = {0.0, 1.0, 2.0, 9007199254740991.0, 0x1p53};
    static const uint64_t expected[] = {0, 1, 2, 9007199254740991, 0};
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, 1);
        struct fit_known known;
        helper_put(&arena, log, LOG_TOTAL_STEPS, 0, totals[i], PRINT_EXACT);
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_true(known.run_steps == expected[i]);
        arena_close(&arena);
    }
}

/* ---- short decimals ---- */

/* The first of the decimals of 1, 2, ... digits nearest to the middle that the C library prints and
 * reads back into [low, high]. */
static double printed(double low, double high, int digits) {
    for (int behind = 0; behind < digits; behind++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", behind, 0.5 * (low + high));
        const double value = strtod(text, NULL);
        if (value >= low && value <= high) return value;
    }
    return real_nan_f64();
}

/* Learning rates as they are typed, and computed ones, in intervals from a few ulp to a print's
 * quantum; halves of a last digit, where printing rounds to even; powers of ten from both sides. */
static void corroborate_shortest_decimals(void **state) {
    (void)state;
    static const double tens[] = {1e-7, 1e-5, 1e-4, 1e-3, 0.1, 1.0, 10.0, 1e5};
    for (uint32_t i = 0; i < 20000; i++) {
        const struct philox_block at = {{i, 0, 0, 0}};
        const struct philox_block drawn = philox_draw(at, UINT64_C(0xdec));
        const double ten = tens[drawn.word[0] % COUNT_OF(tens)];
        const double share = (double)drawn.word[1] * 0x1p-32;
        const double typed = (double)(1 + drawn.word[1] % 9999) * 1e-3;
        const double x = i % 5 == 0   ? ten * (1.0 - (double)(drawn.word[1] % 4) * 0x1p-53)
                         : i % 5 == 1 ? ten * (double)(1 + drawn.word[1] % 9999) / 8.0
                         : i % 5 == 2 ? ten * share
                                      : ten * typed;
        const double half = i % 5 == 0 && i % 2 == 0 ? 0.0
                            : i % 5 == 2             ? x * exp2(-(double)(48 + drawn.word[2] % 6))
                                                     : x * exp2(-(double)(1 + drawn.word[2] % 53));
        const int digits = 1 + (int)(drawn.word[3] % 17);
        const double low = x - half * (double)(drawn.word[3] >> 8 & 3u), high = x + half;
        if (low <= 0.0) continue; /* 0 is shorter than all */
        const double expected = printed(low, high, digits);
        const double got = fit_shortest_of(low, high, digits);
        if (real_bits_f64(got) != real_bits_f64(expected) && !(got != got && expected != expected))
            fail_msg("[%a, %a], %d digits: expected %.17g, got %.17g", low, high, digits, expected,
                     got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_shortest_decimals),
        cmocka_unit_test(validate_a_plateau_ends_with_its_window),
        cmocka_unit_test(validate_the_end_of_a_parabola),
        cmocka_unit_test(validate_errors_of_many_rows),
        cmocka_unit_test(verify_a_suspect_changes_no_answer),
        cmocka_unit_test(verify_nothing_falls_to_the_peak),
        cmocka_unit_test(corroborate_levels_with_every_point),
        cmocka_unit_test(verify_an_evaluation_spends),
        cmocka_unit_test(corroborate_a_knee_in_steps_of_processes),
        cmocka_unit_test(corroborate_a_total_beside_the_one_that_is_said),
        cmocka_unit_test(validate_a_skip_in_three_rows),
        cmocka_unit_test(validate_a_jump_to_the_end),
        cmocka_unit_test(validate_a_total_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
