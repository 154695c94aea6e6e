/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What makes a column one that stands still, condition by condition: which LRs somebody may have
 * typed, to the last bits around them; how many rows stand, how often the LR moved before, and how
 * long it stood then; and from a scene in which all conditions hold, one changed at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_stop.c" /* for the conditions, which no other file asks for */

enum { ROWS = 40 };
#define PEAK 2e-4

static struct series_point points[ROWS];
static struct series series;
static struct fit fit;
static struct fit_segment segment;
static struct fit_skip skips[2];
static struct fit_known known;
static struct arena arena;

static int typed(double value, double quantum, double peak) {
    const struct series_point still = {.value = value, .quantum = quantum};
    return is_typed(&still, peak);
}

static void validate_typed_numbers(void **state) {
    (void)state;
    static const double shares[] = {1.0 / 3.0, 1.0 / 6.0, 1.0 / 7.0, 1.0 / 9.0, 0.1, 0.25, 0.01};
    const double odd = 2.137e-4; /* its shares are no typed LRs */
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        assert_true(typed(shares[i] * odd, 0.0, odd));
        assert_false(typed(shares[i] * odd * (1.0 + 1e-9), 0.0, odd));
        assert_true(typed(shares[i] * odd * (1.0 + 1e-9), 1e-8 * odd, odd)); /* as printed */
    }
    assert_false(typed(odd / 11.0, 0.0, odd)); /* no fraction is written with 11 */
    assert_true(typed(odd / 8.0 * 3.0 / 3.0, 0.0, odd));
    assert_false(typed(odd * 0.137, 0.0, odd));
    assert_true(typed(1.3e-5, 0.0, odd)); /* an LR of two digits */
    assert_false(typed(1.37e-5, 0.0, odd));
    /* Rounding moves it by no more than 2^-46 of itself. */
    assert_true(typed(1.3e-5 * (1.0 + 0.9 * 0x1p-46), 0.0, odd));
    assert_true(typed(1.3e-5 * (1.0 - 0.9 * 0x1p-46), 0.0, odd));
    assert_false(typed(1.3e-5 * (1.0 + 1.2 * 0x1p-46), 0.0, odd));
    assert_false(typed(1.3e-5 * (1.0 - 1.2 * 0x1p-46), 0.0, odd));
    assert_true(typed(odd / 3.0 * (1.0 + 0.9 * 0x1p-46), 0.0, odd));
    assert_false(typed(odd / 3.0 * (1.0 + 1.2 * 0x1p-46), 0.0, odd));
    assert_true(typed(odd / 3.0 * (1.0 - 0.9 * 0x1p-46), 0.0, odd));
    assert_false(typed(odd / 3.0 * (1.0 - 1.2 * 0x1p-46), 0.0, odd));
    /* Half of a printed step, where that is more. */
    assert_true(typed(1.3e-5 + 0.49e-8, 1e-8, odd));
    assert_false(typed(1.3e-5 + 0.51e-8, 1e-8, odd));
}

/* A fall of `moves` steps of `width` rows each, and `still` rows at its end. */
static void make_fall(size_t moves, size_t width, size_t still) {
    size_t count = 0;
    for (size_t m = 0; m < moves * width; m++)
        points[count++].value = PEAK * (1.0 - (double)(m / width) / 20.0);
    for (size_t s = 0; s < still; s++)
        points[count++].value = PEAK * (1.0 - (double)moves / 20.0);
    for (size_t i = 0; i < count; i++) {
        points[i].update = i + 1;
        points[i].row = i;
        points[i].part = 0;
        points[i].quantum = 0.0;
    }
    series = (struct series){points, count};
}

static int still_there(void) {
    return stands_still(&series, first_of_end(&series), PEAK);
}

static void validate_rows_that_stand(void **state) {
    (void)state;
    for (size_t still = 1; still < 8; still++) {
        make_fall(9, 1, still);
        assert_int_equal(first_of_end(&series), 9);
        assert_int_equal(still_there(), still >= STILL);
        assert_int_equal(fit_end_stands(&series), still >= STILL);
    }
    for (size_t moves = 1; moves < 12; moves++) {
        make_fall(moves, 1, 6);
        assert_int_equal(still_there(), moves >= MOVES);
        assert_true(fit_end_stands(&series));
    }
    for (size_t still = 4; still < 12; still++) { /* where an LR stood for two rows before */
        make_fall(9, 2, still);
        assert_int_equal(still_there(), still >= LONGER * 2);
        assert_int_equal(fit_end_stands(&series), still >= LONGER * 2);
    }
    make_fall(9, 1, 6);
    points[11].value *= 1.0 + 0x1p-51; /* one number, up to rounding */
    assert_true(still_there());
    points[11].value *= 1.0 + 0x1p-48;
    assert_false(still_there());
    make_fall(9, 1, 6);
    points[3].part = 1;
    assert_false(still_there());
    make_fall(9, 1, 6);
    points[3].update = 3;
    assert_false(still_there());
    make_fall(9, 1, 6);
    points[12].update = 12; /* a row that was run again is none that stands */
    assert_int_equal(first_of_end(&series), 12);
    make_fall(9, 1, 6);
    for (size_t i = 9; i < 15; i++)
        points[i].value = 0.0;
    assert_false(still_there()); /* it has run out */
    for (size_t i = 9; i < 15; i++)
        points[i].value = PEAK;
    assert_false(still_there()); /* it is at its peak */
    for (size_t i = 9; i < 15; i++)
        points[i].value = 0.99 * PEAK;
    assert_true(still_there());
    for (size_t i = 9; i < 15; i++)
        points[i].quantum = 0.03 * PEAK; /* which may be its peak as printed */
    assert_false(still_there());
    make_fall(0, 1, 9); /* what never moved stands from its first row on */
    assert_int_equal(first_of_end(&series), 0);
    assert_false(still_there());
    assert_false(fit_end_stands(&series));
    make_fall(1, 1, 9);
    assert_int_equal(first_of_end(&series), 1);
    series = (struct series){points, 1};
    assert_false(fit_end_stands(&series));
}

static void validate_skips_behind(void **state) {
    (void)state;
    uint32_t count[ROWS] = {0};
    struct fit_evidence evidence = {.least = count};
    make_fall(9, 1, 6);
    assert_false(skips_behind(&evidence, &series, 9));
    count[9] = 1;
    assert_false(skips_behind(&evidence, &series, 9)); /* up to that row */
    assert_true(skips_behind(&evidence, &series, 8));
    count[9] = 0;
    count[14] = 1;
    assert_true(skips_behind(&evidence, &series, 9));
    evidence = (struct fit_evidence){.fell = count};
    assert_true(skips_behind(&evidence, &series, 9));
    count[14] = 0;
    assert_false(skips_behind(&evidence, &series, 9));
}

/* ---- predicates of a fit ---- */

static void open_fit(const char *contract, const char *schedule) {
    struct contract_request request;
    contract_request_init(&request);
    request.contract = contract_find(contract);
    request.schedule = schedule;
    request.lr = PEAK;
    request.warmup = 8.0;
    request.steps = 40;
    memset(&fit, 0, sizeof fit);
    arena_close(&arena);
    assert_int_equal(contract_resolve(&request, &arena, &fit.plan), STATUS_OK);
    segment = (struct fit_segment){.scale = 1.0};
    fit.contract = request.contract;
    fit.schedule = fit.plan.schedule;
    fit.parameters = "";
    fit.lr = PEAK;
    fit.warmup = 8.0;
    fit.takes_warmup = 1;
    fit.steps = 40;
    fit.stride = 1.0;
    fit.floor_ratio = real_nan_f64();
    fit.segments = &segment;
    fit.segment_count = 1;
    fit_known_init(&known);
}

/* Rises for eight rows and stands for four. */
static void open_top(void) {
    open_fit("hf", "constant_with_warmup");
    series = (struct series){points, 12};
    for (size_t i = 0; i < 12; i++)
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = PEAK * fmin((double)(i + 1) / 9.0, 1.0)};
}
#define TOP(expected)                                                                              \
    do {                                                                                           \
        assert_int_equal(fit_stands_at_top(&fit, &series), expected);                              \
        open_top();                                                                                \
    } while (0)

static void validate_tops(void **state) {
    (void)state;
    open_top();
    TOP(1);
    series.count = 11;
    TOP(0);
    fit.takes_warmup = 0;
    TOP(0);
    fit.warmup = 1.0;
    TOP(0);
    fit.warmup = 1.5;
    TOP(1);
    fit.warmup_hidden = 1;
    TOP(0);
    fit.reached = 1e-5;
    TOP(0);
    fit.stride = 2.0;
    TOP(0);
    fit.segment_count = 2;
    TOP(0);
    fit.first_differs = 1;
    TOP(0);
    fit.skip_count = 1;
    TOP(0);
    points[7].value = PEAK;
    TOP(1);
    points[3].value = PEAK; /* it does not rise to its top */
    TOP(0);
    points[3].value = 2.0 * PEAK;
    TOP(0);
    for (size_t i = 0; i < 12; i++)
        points[i].value = PEAK;
    TOP(0);
    for (size_t i = 0; i < 6; i++) { /* the least rows that there are */
        points[i].value = i < 2 ? 1e-5 * (double)(i + 1) : PEAK;
        series.count = 6;
    }
    TOP(1);
    for (size_t i = 0; i < 5; i++)
        points[i].value = i < 1 ? 1e-5 : PEAK;
    series.count = 5;
    TOP(0);
}

static void open_plain(void) {
    static const char *const possible[] = {"hf", NULL};
    open_fit("hf", "linear");
    known.possible = possible;
}
#define PLAIN_FIT(expected)                                                                        \
    do {                                                                                           \
        assert_int_equal(is_plain(&fit, &known), expected);                                        \
        open_plain();                                                                              \
    } while (0)

static void validate_plain_fits(void **state) {
    (void)state;
    open_plain();
    PLAIN_FIT(1);
    fit.bug = "lag1";
    PLAIN_FIT(0);
    fit.unsound = 1;
    PLAIN_FIT(0);
    fit.stride = 0.5;
    PLAIN_FIT(0);
    fit.segment_count = 2;
    PLAIN_FIT(0);
    fit.first_differs = 1;
    PLAIN_FIT(0);
    fit.skip_count = 1;
    PLAIN_FIT(0);
    fit.contract = contract_find("megatron");
    PLAIN_FIT(0);
    fit.contract = contract_find("megatron");
    known.possible = NULL;
    PLAIN_FIT(1);
}

/* Falls by a twentieth to half of the peak, a floor that may be typed, by skips behind row 9. */
static void open_floor(void) {
    open_fit("hf", "linear");
    make_fall(10, 1, 2);
    skips[0] = (struct fit_skip){.first = 10, .last = 12, .count = 2};
    fit.skips = skips;
    fit.skip_count = 1;
}
#define TO_A_FLOOR(expected)                                                                       \
    do {                                                                                           \
        assert_int_equal(fit_skips_to_a_floor(&fit, &known, &series), expected);                   \
        open_floor();                                                                              \
    } while (0)

static void validate_skips_to_a_floor(void **state) {
    (void)state;
    open_floor();
    TO_A_FLOOR(1);
    fit.skip_count = 0;
    TO_A_FLOOR(0);
    known.skips.shown = 1;
    TO_A_FLOOR(0);
    known.request.skipped_count = 1;
    TO_A_FLOOR(0);
    skips[0].count = 1;
    TO_A_FLOOR(0);
    skips[0].first = 9; /* in front of the last row that moved */
    TO_A_FLOOR(0);
    skips[0].count = 1;
    skips[1] = (struct fit_skip){.first = 11, .last = 11, .count = 1};
    fit.skip_count = 2;
    TO_A_FLOOR(1);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 0.0;
    TO_A_FLOOR(0);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 0.5137 * PEAK;
    TO_A_FLOOR(0);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 0.6 * PEAK; /* above the row before */
    TO_A_FLOOR(0);
    series.count = 1;
    TO_A_FLOOR(0);
}

static void open_second(void) {
    size_t count, next = 0;
    const struct contract *const all = contract_list(&count);
    open_fit("hf", "linear");
    while (next + 1 < count && all[next].logged != CONTRACT_LOGGED_NEXT)
        next++;
    fit.contract = &all[next]; /* prints the next LR, and so that of a skip twice */
    make_fall(10, 1, 2);
    skips[0] = (struct fit_skip){.first = 2, .last = 2, .count = 1};
    fit.skips = skips;
    fit.skip_count = 1;
}
#define SECOND(expected)                                                                           \
    do {                                                                                           \
        assert_int_equal(fit_skips_second_alone(&fit, &known, &series), expected);                 \
        open_second();                                                                             \
    } while (0)

static void validate_second_updates(void **state) {
    (void)state;
    static const char *const possible[] = {"hf", NULL};
    size_t count;
    const struct contract *const all = contract_list(&count);
    open_second();
    for (size_t i = 0; i < count; i++) {
        fit.contract = &all[i];
        assert_int_equal(fit_skips_second_alone(&fit, &known, &series),
                         all[i].logged == CONTRACT_LOGGED_NEXT);
    }
    open_second();
    SECOND(1);
    fit.skip_count = 0;
    SECOND(0);
    series.count = 2;
    SECOND(0);
    series.count = 3;
    SECOND(1);
    known.skips.shown = 1;
    SECOND(0);
    known.request.skipped_count = 1;
    SECOND(0);
    known.possible = possible;
    SECOND(0);
    skips[0].first = 1;
    SECOND(0);
    skips[0].last = 3;
    SECOND(0);
    skips[0].count = 2;
    SECOND(0);
    skips[0].part = 1;
    SECOND(0);
    points[0].update = 2;
    SECOND(0);
    points[1].update = 3;
    SECOND(0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_typed_numbers),  cmocka_unit_test(validate_rows_that_stand),
        cmocka_unit_test(validate_skips_behind),   cmocka_unit_test(validate_tops),
        cmocka_unit_test(validate_plain_fits),     cmocka_unit_test(validate_skips_to_a_floor),
        cmocka_unit_test(validate_second_updates),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
