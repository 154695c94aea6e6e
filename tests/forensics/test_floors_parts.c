/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * When a floor prints what skipped updates were taken for: every floor that somebody types, under
 * each class of schedule that has one, each row, and each condition by itself. Which floors the
 * rows of a decay give, under a schedule of the test's own, whose two curves are known. */
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
#define fit_model_set given_numbers
#define fit_model_logged given_logged
#include "forensics/fit_floors.c" /* for the conditions, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"

enum { UPDATES = 40, TOTAL = 60 };
#define PEAK 1.5e-4

static struct arena arena;
static struct series_point points[UPDATES + 1];
static struct series series;
static struct fit fit;
static struct fit_segment segment;
static struct fit_skip skip;
static struct fit_known known;

/* Rows of a line, or a cosine, to a floor; and a fit to 0 with skipped updates, which is said to
 * print them. */
static void open_scene(const char *contract, const char *schedule, double share) {
    struct contract_request request = helper_fit_request(contract, schedule, PEAK, 0.0, TOTAL);
    struct contract_plan plan;
    arena_close(&arena);
    request.min_lr_ratio = share;
    assert_int_equal(contract_resolve(&request, &arena, &plan), STATUS_OK);
    for (size_t i = 0; i <= UPDATES; i++)
        points[i] = (struct series_point){
            .update = i + 5, .row = i, .value = contract_logged(&plan, i + 5)};
    series = (struct series){points, UPDATES};
    request.min_lr_ratio = real_nan_f64();
    segment = (struct fit_segment){.scale = 1.0};
    helper_fit_make(&fit, &arena, &request, &segment);
    skip = (struct fit_skip){.first = 3, .last = 4, .count = 1};
    fit.skips = &skip;
    fit.skip_count = 1;
    fit_known_init(&known);
}

static int stands(void) {
    return fit_skips_stand_for_a_floor(&fit, &known, &series);
}

static void validate_typed_floors(void **state) {
    (void)state;
    /* As shares of the peak, and as LRs. */
    static const double shares[] = {0.1, 0.01, 0.05, 0.2, 0.001, 0.5};
    static const double lrs[] = {1e-5, 1e-6, 5e-6, 2e-6, 5e-7, 1e-7, 1e-8, 2e-5};
    static const struct {
        const char *contract, *schedule;
    } kinds[] = {{"hf", "cosine_with_min_lr"}, {"hf", "polynomial"}, {"megatron", "linear"}};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < COUNT_OF(shares) + COUNT_OF(lrs); i++) {
            const double share =
                i < COUNT_OF(shares) ? shares[i] : lrs[i - COUNT_OF(shares)] / PEAK;
            open_scene(kinds[k].contract, kinds[k].schedule, share);
            if (!stands()) fail_msg("%s: floor %zu", kinds[k].schedule, i);
        }
        static const double others[] = {0.15, 0.3, 0.02, 0.6, 3.3e-5 / PEAK};
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            open_scene(kinds[k].contract, kinds[k].schedule, others[i]);
            if (stands()) fail_msg("%s: other floor %zu", kinds[k].schedule, i);
        }
    }
    open_scene("hf", "linear", real_nan_f64()); /* which has no floor */
    assert_false(stands());
}

static void validate_conditions(void **state) {
    (void)state;
    for (size_t i = 0; i <= UPDATES; i++) { /* each row counts, and one behind the last does not */
        open_scene("hf", "polynomial", 0.1);
        points[i].value *= 1.0 + 0x1p-20;
        assert_int_equal(stands(), i == UPDATES);
        points[i].quantum = 1e-8;
        assert_int_equal(stands(), 1);
    }
    for (int how = 0; how < 10; how++) {
        open_scene("hf", "polynomial", 0.1);
        if (how == 1) skip.count = 0;
        if (how == 2) known.skips.shown = 1;
        if (how == 3) known.request.skipped_count = 1;
        if (how == 4) known.request.min_lr_ratio = 0.1;
        if (how == 5) fit.part_count = 1;
        if (how == 6) fit.samples = (const struct fit_samples *)&arena; /* it is not looked into */
        if (how == 7) fit.segment_count = 2;
        if (how == 8) fit.schedule = sched_find("torch.cosine_annealing");
        if (how == 9) fit.plan.call.values = NULL;
        if (how == 8) assert_true(fit.schedule->state_size > 0);
        assert_int_equal(stands(), how == 0);
    }
    /* The plan's own skipped updates play no part. */
    static const uint64_t skipped[] = {3, 9};
    open_scene("hf", "polynomial", 0.1);
    fit.plan.skipped = skipped;
    fit.plan.skipped_count = COUNT_OF(skipped);
    assert_int_equal(stands(), 1);
    /* A floor above the peak is none: all rows are the peak. */
    open_scene("hf", "polynomial", 0.1);
    fit.lr = 1e-6;
    for (size_t i = 0; i < UPDATES; i++)
        points[i].value = 1e-6;
    assert_int_equal(stands(), 0);
}

/* ---- floors that the rows give ---- */

enum { CURVE = 64, RISE = 8, CASES = 4000 };

static double peak_part[CURVE], floor_part[CURVE];
static struct series_point rows[CURVE];
static struct fit_model model;
static struct fit_window window;
static size_t budget;
static uint64_t steps_left;

void given_numbers(struct fit_model *of, const struct fit_numbers *numbers) {
    assert_true(of == &model && numbers->warmup == RISE);
    of->now = *numbers;
}

double given_logged(const struct fit_model *of, uint64_t update, int64_t shift) {
    const double floor = of->now.absolute ? of->now.floor : of->now.floor * of->now.lr;
    assert_true(shift == 7 && update < CURVE);
    return of->now.lr * peak_part[update] + floor * floor_part[update];
}

/* Rows of updates 1 to 30 with a warm-up of 8, behind which the two curves are a cosine of 40.
 * With `from`, the rows begin at that update. */
static void open_curves(double peak, double floor, size_t from) {
    memset(&window, 0, sizeof window);
    memset(&model, 0, sizeof model);
    model.linear = 1;
    model.plan.schedule = sched_find_in("hf", "cosine");
    model.floor_kind = FIT_FLOOR_RATIO;
    for (size_t u = 0; u < CURVE; u++) {
        const double c = 0.5 + 0.5 * cos(3.14159265358979323846 * (double)(u - RISE) / 40.0);
        peak_part[u] = u < RISE ? (double)u / RISE : c;
        floor_part[u] = u < RISE ? 0.0 : 1.0 - c;
    }
    budget = 1000;
    steps_left = 1000;
    window.points = rows;
    window.count = 31 - from;
    window.known_lr = window.known_warmup = (double)NAN;
    window.shift = 7;
    window.budget = &budget;
    window.walk = &steps_left;
    for (size_t i = 0; i < window.count; i++) {
        const size_t u = from + i;
        rows[i] = (struct series_point){.update = u, .row = i};
        rows[i].value = peak * peak_part[u] + floor * floor_part[u];
        window.probes[window.probe_count++] = i;
    }
    assert_true(window.probe_count <= FIT_PROBES);
    window.scale = fit_scale(rows, window.count);
    window.top = window.top_last = from <= RISE ? RISE - from : 0;
    window.descent[1] = window.count - 1;
}

static size_t floors_of(struct fit_floor_trial *floors) {
    const struct fit_numbers numbers = {.lr = 99.0, .floor = 99.0, .warmup = RISE};
    return fit_solve_floors(&model, &window, &numbers, floors);
}

/* A decimal of so many digits, times a power of ten. */
static double decimal(struct draws *draws, int digits, int power) {
    char text[40];
    unsigned whole = 1 + draws_pick(draws, 9);
    for (int d = 1; d < digits; d++)
        whole = 10 * whole + (d + 1 < digits ? draws_pick(draws, 10) : 1 + draws_pick(draws, 9));
    snprintf(text, sizeof text, "%ue%d", whole, power - digits + 1);
    return strtod(text, NULL);
}

/* One floor is found of exact rows: as the number with fewer digits, a share of the peak or an LR,
 * and of as many as an LR where the schedule has one. */
static void corroborate_floors(void **state) {
    (void)state;
    size_t as_share = 0, as_lr = 0, told = 0, behind = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xf100), .number = number};
        const double peak = decimal(&draws, 1 + (int)draws_pick(&draws, 3), -4);
        const int kind = (int)draws_pick(&draws, 2), absolute = draws_pick(&draws, 2) == 0;
        const size_t from = draws_pick(&draws, 3) == 0 ? RISE + 5 : 1 + draws_pick(&draws, RISE);
        double share, lr;
        char text[40];
        if (kind == 0) {
            share =
                decimal(&draws, 1 + (int)draws_pick(&draws, 3), -1 - (int)draws_pick(&draws, 2));
            snprintf(text, sizeof text, "%.9g", share * peak);
            lr = strtod(text, NULL);
        } else {
            lr = decimal(&draws, 1 + (int)draws_pick(&draws, 3), -5 - (int)draws_pick(&draws, 2));
            if (lr >= 0.9 * peak) continue;
            share = lr / peak;
            snprintf(text, sizeof text, "%.9g", share);
            if (fabs(strtod(text, NULL) / share - 1.0) < 1e-12) share = strtod(text, NULL);
        }
        open_curves(peak, lr, from);
        if (absolute) model.floor_kind = FIT_FLOOR_ABSOLUTE;
        if (draws_pick(&draws, 4) == 0) window.known_lr = peak;
        const int by_share = fit_digits(share) <= 6, by_lr = fit_digits(lr) <= 6;
        const int rounder = by_lr && (!by_share || fit_digits(lr) < fit_digits(share) ||
                                      (absolute && fit_digits(lr) == fit_digits(share)));
        struct fit_floor_trial floors[2] = {{-1.0, -1, -1}, {-1.0, -1, -1}};
        const size_t count = floors_of(floors);
        if (count != 1) fail_msg("case %u: %zu floors", number, count);
        assert_int_equal(floors[0].absolute, rounder && absolute);
        assert_int_equal(floors[0].at_end, 0);
        const double want = rounder && absolute ? lr : share;
        if (fabs(floors[0].value - want) > 1e-9 * want)
            fail_msg("case %u: %.17g for %.17g", number, floors[0].value, want);
        as_share += (size_t)!rounder;
        as_lr += (size_t)(rounder && absolute);
        told += window.known_lr == peak;
        behind += from > RISE;
        /* Two evaluations are counted for each row that is looked at. */
        assert_true(budget < 1000 && (1000 - budget) % 2 == 0);
        assert_true(steps_left == 1000);
        /* Each row counts that shows the peak alone, or the floor; and there are two of either. */
        const size_t odd = draws_pick(&draws, (uint32_t)window.count);
        const double shown = floor_part[rows[odd].update];
        rows[odd].value *= 1.0 + 1e-6;
        if (from < RISE && (shown == 0.0 || shown > 0.02))
            assert_int_equal(floors_of(floors), 0);
        else if (from < RISE)
            assert_int_equal(floors_of(floors), 1);
    }
    assert_true(as_share > 500 && as_lr > 500 && told > 500 && behind > 500);
}

static void validate_which_floors_are_solved(void **state) {
    (void)state;
    struct fit_floor_trial floors[2];
    open_curves(3e-4, 3e-5, 1);
    assert_int_equal(floors_of(floors), 1);
    model.linear = 0;
    assert_int_equal(floors_of(floors), 0);
    open_curves(3e-4, 3e-5, 1);
    window.scale = 0.0;
    assert_int_equal(floors_of(floors), 0);
    for (int how = 0; how < 2; how++) { /* a row printed to few digits leaves the floor open */
        open_curves(3e-4, 3e-5, 1);
        for (size_t i = RISE; i < window.count; i++) {
            rows[i].quantum = how == 0 ? 1e-9 : 2e-5;
            rows[i].value = rows[i].quantum * round(rows[i].value / rows[i].quantum);
        }
        assert_int_equal(floors_of(floors), how == 0);
    }
    for (budget = 0; budget < 5;) { /* the budget ends at 0 */
        const size_t left = budget;
        open_curves(3e-4, 3e-5, 1);
        budget = left;
        assert_int_equal(floors_of(floors), 1);
        assert_int_equal(budget, 0);
        budget = left + 1;
    }
    /* A number is typed where a range holds one of its digits by chance once in ten. */
    assert_true(typed_in((struct bounds){0.119995, 0.120005}) == 0.12);
    assert_true(typed_in((struct bounds){0.1196, 0.1204}) == 0.12); /* 0.0008 of a step of 0.01 */
    assert_true(isnan(typed_in((struct bounds){0.1194, 0.1206})));
    assert_true(typed_in((struct bounds){0.96, 1.04}) == 1.0);
    assert_true(isnan(typed_in((struct bounds){0.94, 1.06})));
    assert_true(typed_in((struct bounds){4.97, 5.03}) == 5.0);
    assert_true(isnan(typed_in((struct bounds){4.94, 5.06})));
    assert_true(isnan(typed_in((struct bounds){-0.1, 0.1})) ||
                !(typed_in((struct bounds){-0.1, 0.1}) > 0.0));
    assert_true(isnan(typed_in((struct bounds){0.0, 0.01})));
    assert_true(isnan(typed_in((struct bounds){0.12345678, 0.12345679})));
}

/* Whether the rows show a peak, and a decay that is long enough and no line. */
static void validate_rows_of_a_decay(void **state) {
    (void)state;
    static const struct {
        uint64_t first, second; /* updates of the first two rows */
        int may;
    } starts[] = {{6, 10, 1}, {7, 10, 0}, {6, 11, 1}, {7, 11, 0}, {1, 2, 1},
                  {2, 3, 1},  {3, 4, 1},  {4, 5, 0},  {3, 5, 1},  {1, 100, 1}};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        for (int how = 0; how < 6; how++) {
            open_curves(3e-4, 3e-5, RISE); /* of which the first row is the top */
            for (size_t r = 0; r < window.count; r++)
                rows[r].update = r == 0 ? starts[i].first : starts[i].second + r - 1;
            if (how == 1) window.known_lr = 3e-4;
            if (how == 2) window.known_warmup = 0.0;
            if (how == 3) window.top = 1;
            if (how == 4) window.constant = 1;
            if (how == 5) window.top = window.top_last = 3;
            const int may = how != 4 && (how > 0 || starts[i].may);
            if (fit_may_solve_floor(&window) != may) fail_msg("start %zu, %d", i, how);
        }
    for (size_t top = 0; top < 4; top++)
        for (size_t last = top; last < top + 14; last++) {
            open_curves(3e-4, 3e-5, RISE);
            window.top_last = top;
            window.top = top;
            window.known_lr = 3e-4;
            window.descent[1] = last;
            assert_int_equal(fit_may_solve_floor(&window), last >= top + 9);
            for (size_t r = 0; r < window.count; r++) /* of a line every floor is one */
                rows[r].value = 3e-4 - 1e-6 * (double)r;
            assert_int_equal(fit_may_solve_floor(&window), 0);
        }
    open_curves(3e-4, 3e-5, RISE); /* one row is no log, and no second row is asked */
    rows[1].update = 1000;
    window.count = 1;
    assert_int_equal(fit_may_solve_floor(&window), 0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_typed_floors),
        cmocka_unit_test(validate_conditions),
        cmocka_unit_test(corroborate_floors),
        cmocka_unit_test(validate_which_floors_are_solved),
        cmocka_unit_test(validate_rows_of_a_decay),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
