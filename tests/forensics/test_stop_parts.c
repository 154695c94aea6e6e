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
#define fit_series given_series
#include "forensics/fit_stop.c" /* for the conditions, which no other file asks for */
#include "tests/forensics/helper_fit.h"

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

/* Rows are one LR up to four ulp of 1. */
static void validate_rows_that_are_alike(void **state) {
    (void)state;
    for (int way = -1; way < 2; way += 2)
        for (int ulps = 0; ulps < 10; ulps++) {
            const struct series_point one = {.value = (double)way};
            const struct series_point other = {.value = (double)way * (1.0 + ulps * 0x1p-52)};
            assert_int_equal(alike(&one, &other), ulps <= 4);
        }
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
    const struct contract_request request = helper_fit_request(contract, schedule, PEAK, 8.0, 40);
    arena_close(&arena);
    segment = (struct fit_segment){.scale = 1.0};
    helper_fit_make(&fit, &arena, &request, &segment);
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
    for (int share = 0; share < 4; share++) { /* one is enough, for a tenth and the like */
        static const double shares[] = {0.1, 0.05, 0.01, 0.11};
        skips[0].count = 1;
        for (size_t i = 10; i < 12; i++)
            points[i].value = shares[share] * PEAK;
        TO_A_FLOOR(share < 3);
    }
    skips[0].count = 1;
    for (size_t i = 10; i < 12; i++)
        points[i].value = 1e-6;
    TO_A_FLOOR(1);
    skips[0].count = 1;
    for (size_t i = 10; i < 12; i++)
        points[i].value = 3e-6; /* neither a power of ten nor such a share */
    TO_A_FLOOR(0);
    skips[0].count = 1;
    for (size_t i = 0; i < 12; i++) /* two of the ten rows in front are such, too */
        points[i].value = PEAK * (i < 8    ? 0.21 - 0.01 * (double)(i + 1)
                                  : i == 8 ? 0.1
                                  : i == 9 ? 0.05
                                           : 0.01);
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

/* Stands at a tenth of the peak for three rows, and rises from there. */
static void open_start(void) {
    open_fit("hf", "linear");
    make_fall(10, 1, 2);
    for (size_t i = 0; i < series.count; i++)
        points[i].value = PEAK * (i < 3 ? 0.1 : 0.1 * (double)(i - 1));
    skips[0] = (struct fit_skip){.first = 1, .last = 3, .count = 2};
    fit.skips = skips;
    fit.skip_count = 1;
}
#define FROM_A_FLOOR(expected)                                                                     \
    do {                                                                                           \
        assert_int_equal(fit_skips_from_a_floor(&fit, &known, &series), expected);                 \
        open_start();                                                                              \
    } while (0)

static void validate_skips_from_a_floor(void **state) {
    static struct fit_segment held = {.scale = 1.0, .event = FIT_SKIP, .shift = -2};
    (void)state;
    open_start();
    FROM_A_FLOOR(1);
    fit.skip_count = 0;
    FROM_A_FLOOR(0);
    fit.skip_count = 0;
    fit.segments = &held;
    FROM_A_FLOOR(1);
    skips[0].count = 1;
    FROM_A_FLOOR(0);
    skips[0].first = skips[0].last = 4; /* behind the rows that stand */
    FROM_A_FLOOR(0);
    known.skips.shown = 1;
    FROM_A_FLOOR(0);
    known.request.skipped_count = 1;
    FROM_A_FLOOR(0);
    for (size_t i = 0; i < 3; i++)
        points[i].value = 0.0; /* a warm-up from 0 that was held */
    FROM_A_FLOOR(0);
    for (size_t i = 0; i < 3; i++)
        points[i].value = 0.05137 * PEAK;
    FROM_A_FLOOR(0);
    for (size_t i = 0; i < 3; i++)
        points[i].value = 0.5 * PEAK; /* above the row behind */
    FROM_A_FLOOR(0);
    points[0].value = 0.05 * PEAK; /* one row */
    FROM_A_FLOOR(0);
    series.count = 3;
    FROM_A_FLOOR(0);
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
static void open_before(void) {
    open_fit("hf", "linear");
    make_fall(10, 1, 2);
    for (size_t i = 0; i < series.count; i++)
        points[i].update += 100;
    fit.warmup_hidden = 1;
    skips[0] = (struct fit_skip){.first = 1, .last = 100, .count = 4};
    skips[1] = (struct fit_skip){.first = 105, .last = 105, .count = 1};
    fit.skips = skips;
    fit.skip_count = 1;
}

#define BEFORE(expected)                                                                           \
    do {                                                                                           \
        assert_int_equal(fit_skips_before_rows(&fit, &known, &series), expected);                  \
        open_before();                                                                             \
    } while (0)

/* Rows from update 101 on. A counter that is 4 behind there is also one that is not, of a schedule
 * whose warm-up and total are 4 longer, unless somebody or the rows say one of these. */
static void validate_skips_in_front_of_the_rows(void **state) {
    (void)state;
    open_before();
    BEFORE(1);
    skips[0].last = 101; /* it may be the first row's own */
    BEFORE(0);
    fit.skip_count = 2; /* another one behind the first row */
    BEFORE(1);
    fit.skip_count = 0;
    BEFORE(0);
    fit.part_count = 1;
    BEFORE(0);
    fit.warmup_hidden = 0;
    BEFORE(0);
    fit.warmup_hidden = 0;
    fit.unseen_warmup = 3.0;
    BEFORE(1);
    known.run_steps = 500;
    BEFORE(0);
    known.request.steps = 500;
    BEFORE(0);
    known.request.warmup = 10.0;
    BEFORE(0);
    known.skips.shown = 3; /* of four */
    BEFORE(1);
    known.skips.shown = 4;
    BEFORE(0);
    known.request.skipped_count = 1;
    BEFORE(0);
}

static uint32_t evident[ROWS];

/* Ten rows at the peak, five that fall, and a skipped update which the log shows at the fifth. */
static void open_shown(void) {
    open_fit("hf", "linear");
    series = (struct series){points, 15};
    for (size_t i = 0; i < 15; i++) {
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = PEAK * fmin(1.0, (15.0 - (double)i) / 6.0)};
        evident[i] = i == 4;
    }
    known.skips.least = known.skips.most = evident;
    known.skips.shown = 1;
    fit.steps = 16;
}
#define SHOWN(expected)                                                                            \
    do {                                                                                           \
        assert_int_equal(fit_total_ignores_skips(&fit, &known, &series), expected);                \
        open_shown();                                                                              \
    } while (0)

/* A total that is one less, and an update skipped on the plateau, print the same. */
static void validate_totals_that_ignore_skips(void **state) {
    (void)state;
    open_shown();
    SHOWN(1);
    evident[4] = 0;
    evident[12] = 1; /* while it falls: the rows tell whether the scheduler went on */
    SHOWN(0);
    for (size_t i = 5; i < 15; i++)
        points[i].value = PEAK; /* nothing falls behind it */
    SHOWN(0);
    known.skips.shown = 0;
    SHOWN(0);
    known.skips.least = NULL;
    SHOWN(0);
    known.run_steps = 16;
    SHOWN(0);
    known.request.steps = 16;
    SHOWN(0);
    known.request.skipped_count = 1;
    SHOWN(0);
    fit.steps = 0;
    SHOWN(0);
    fit.total_hidden = 1;
    SHOWN(0);
    fit.segment_count = 2;
    SHOWN(0);
    fit.in_samples = 1;
    SHOWN(0);
    skips[0] = (struct fit_skip){.first = 5, .last = 5, .count = 1};
    fit.skips = skips;
    fit.skip_count = 1;
    SHOWN(0);
    fit.contract = contract_find("lightning-step"); /* goes on at a skipped update */
    SHOWN(0);
    points[4].row = 5; /* a row without an LR lies in front of it */
    evident[4] = 0;
    for (size_t i = 5; i < 15; i++)
        points[i].row = i + 1;
    evident[5] = 1;
    SHOWN(1);
}

/* Rows of three digits below a peak of 2e-4, and a fit whose peak has six. */
static void open_coarse(void) {
    open_fit("hf", "linear");
    fit.lr = 2.00003e-4;
    series = (struct series){points, 6};
    for (size_t i = 0; i < 6; i++)
        points[i] = (struct series_point){.update = i + 8,
                                          .row = i,
                                          .value = PEAK * (1.0 - 0.03 * fabs((double)i - 2.0)),
                                          .quantum = 1e-6};
}
#define COARSE(expected)                                                                           \
    do {                                                                                           \
        assert_int_equal(fit_peak_is_by_digits(&fit, &known, &series), expected);                  \
        open_coarse();                                                                             \
    } while (0)

static void validate_peaks_by_digits(void **state) {
    (void)state;
    open_coarse();
    COARSE(1);
    fit.lr = 2.1e-4; /* typed */
    COARSE(0);
    fit.lr = 2.0053e-4; /* the row at the top is no row of this peak */
    COARSE(0);
    points[2].quantum = 0.0;
    COARSE(0);
    points[2].quantum = 1e-8;
    fit.lr = 2.000003e-4;
    COARSE(1);
    points[2].value = 2.034e-4; /* none of two digits lies near it */
    fit.lr = 2.03403e-4;
    COARSE(0);
    known.request.lr = 2.00003e-4;
    COARSE(0);
    known.request.steps = 40;
    COARSE(0);
    known.run_steps = 40;
    COARSE(0);
    fit.steps = 0;
    COARSE(0);
}

/* Rows that rise to the peak at update 5, stand there up to update 10 and fall, of a decay of five
 * updates, and a skipped update that the fit needs. */
static void open_held_plateau(void) {
    open_fit("hf", "warmup_stable_decay");
    series = (struct series){points, 15};
    for (size_t i = 0; i < 15; i++)
        points[i] = (struct series_point){
            .update = i + 1,
            .row = i,
            .value = PEAK * fmin(1.0, fmin((double)(i + 1) / 5.0, (15.0 - (double)i) / 6.0))};
    fit.steps = 16;
    skips[0] = (struct fit_skip){.first = 5, .last = 9, .count = 1};
    skips[1] = (struct fit_skip){.first = 12, .last = 13, .count = 1};
    fit.skips = skips;
    fit.skip_count = 1;
}
#define ON_PLATEAU(expected)                                                                       \
    do {                                                                                           \
        assert_int_equal(fit_skips_on_plateau(&fit, &known, &series), expected);                   \
        open_held_plateau();                                                                       \
    } while (0)

static void validate_skips_on_a_plateau(void **state) {
    (void)state;
    open_held_plateau();
    ON_PLATEAU(1);
    fit.skip_count = 0;
    ON_PLATEAU(0);
    fit.skips = &skips[1]; /* where it falls: the rows show it */
    ON_PLATEAU(0);
    fit.skip_count = 2;
    ON_PLATEAU(1);
    skips[0].first = 3;
    skips[0].last = 4; /* where it rises */
    ON_PLATEAU(0);
    skips[0].last = 5;
    ON_PLATEAU(1);
    skips[0].first = skips[0].last = 10;
    ON_PLATEAU(1);
    skips[0].first = skips[0].last = 11;
    ON_PLATEAU(0);
    known.skips.shown = 1;
    ON_PLATEAU(0);
    known.run_steps = 16;
    ON_PLATEAU(0);
    known.request.steps = 16;
    ON_PLATEAU(0);
    known.request.skipped_count = 1;
    ON_PLATEAU(0);
    fit.steps = 0;
    ON_PLATEAU(0);
    fit.segment_count = 2;
    ON_PLATEAU(0);
    fit.in_samples = 1;
    ON_PLATEAU(0);
    fit.schedule = sched_find_in("hf", "linear");
    ON_PLATEAU(0);
}

/* A decay of a fifth of 2,000 updates is a whole number of them; one of 2,826 within coarse digits.
 */
static void validate_decays_by_share(void **state) {
    (void)state;
    static const struct {
        const char *parameters;
        uint64_t steps;
        double quantum;
        int by_share;
    } cases[] = {{"decay_ratio=0.2", 2000, 0.0, 1},  {"decay_ratio=0.2", 2826, 0.0, 0},
                 {"decay_ratio=0.2", 2826, 1e-8, 1}, {"decay_ratio=0.2", 0, 0.0, 0},
                 {"decay=400", 2000, 0.0, 0},        {"", 2000, 1e-8, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_held_plateau();
        fit.parameters = cases[i].parameters;
        fit.steps = cases[i].steps;
        points[0].quantum = cases[i].quantum;
        if (fit_is_by_share(&fit, &series) != cases[i].by_share) fail_msg("case %zu", i);
    }
    fit.parameters = "decay_ratio=0.2";
    assert_int_equal(fit_is_by_share(&fit, &series), 1);
    fit.stride = 2.0;
    assert_int_equal(fit_is_by_share(&fit, &series), 0);
    fit.stride = 1.0;
    fit.segment_count = 2;
    assert_int_equal(fit_is_by_share(&fit, &series), 0);
}

#define BESIDE(expected)                                                                           \
    do {                                                                                           \
        assert_int_equal(fit_total_is_beside(&fit, &known, &series), expected);                    \
        open_before();                                                                             \
        fit.skip_count = 0;                                                                        \
        fit.steps = 501;                                                                           \
    } while (0)

/* Rows from update 101 on, of a total that nobody said, with no skipped update. */
static void validate_totals_beside_rounder_ones(void **state) {
    (void)state;
    static const struct {
        uint64_t steps;
        int beside;
    } totals[] = {{500, 0},  {501, 1},  {503, 1},   {504, 0},  {499, 1},  {498, 0}, {110, 0},
                  {511, 0},  {101, 1},  {1001, 1},  {1201, 1}, {1231, 0}, {999, 1}, {1000, 0},
                  {1563, 0}, {2100, 0}, {21000, 0}, {1999, 1}, {2099, 1}, {2089, 0}};
    open_before();
    BESIDE(0); /* one needs skipped updates itself */
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        fit.steps = totals[i].steps;
        if (fit_total_is_beside(&fit, &known, &series) != totals[i].beside)
            fail_msg("total %llu", (unsigned long long)totals[i].steps);
    }
    BESIDE(0);
    BESIDE(1);
    fit.warmup_hidden = 0;
    BESIDE(0);
    known.run_steps = 501;
    BESIDE(0);
    known.request.steps = 501;
    BESIDE(0);
    known.request.warmup = 10.0;
    BESIDE(0);
    known.request.skipped_count = 1;
    BESIDE(0);
    known.skips.counted = FIT_COUNTED_EXACTLY;
    BESIDE(0);
    fit.total_hidden = 1;
    BESIDE(0);
    fit.segment_count = 2;
    BESIDE(0);
    fit.stride = 2.0;
    BESIDE(0);
    fit.in_samples = 1;
    BESIDE(0);
    fit.epoch_updates = 10;
    BESIDE(0);
    fit.part_count = 1;
    BESIDE(0);
    points[0].update = 2;
    fit.steps = 502; /* two updates do not lie in front of row 2 */
    BESIDE(0);
    BESIDE(1);
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

/* ---- what goes on where the column stands ---- */

/* What the searches answer in turn, and what was asked of them. */
enum { SEARCHES = 12 };
static struct {
    const struct fit *fits;
    size_t count;
} answers[SEARCHES];
static struct {
    uint64_t steps;
    size_t rows;
    int plain;
    const char *schedule;
    double floor;
} asked[SEARCHES];
static size_t searches;

enum status given_series(const struct series *s, const struct fit_known *k, struct arena *a,
                         struct fit_set *out) {
    (void)a;
    *out = (struct fit_set){.series = s};
    if (searches++ >= SEARCHES) return STATUS_OK; /* floors are many */
    const size_t n = searches - 1;
    asked[n].steps = k->request.steps;
    asked[n].rows = s->count;
    asked[n].plain = k->plain;
    asked[n].schedule = k->request.schedule;
    asked[n].floor = k->request.min_lr_ratio;
    *out = (struct fit_set){.series = s, .fits = answers[n].fits, .count = answers[n].count};
    return STATUS_OK;
}

/* A line of 40 updates of hf without a warm-up, of which the rows print `moves` and then stand. */
static void open_line(size_t moves, size_t still) {
    const struct contract_request request = helper_fit_request("hf", "linear", PEAK, 0.0, 40);
    open_fit("hf", "linear");
    assert_int_equal(contract_resolve(&request, &arena, &fit.plan), STATUS_OK);
    fit.warmup = 0.0;
    make_fall(moves, 1, still);
    for (size_t i = 0; i < moves + still; i++)
        points[i].value = fit_logged(&fit, 0, i < moves ? i + 1 : moves + 1);
    searches = 0;
    memset(answers, 0, sizeof answers);
}

static void validate_ways_on(void **state) {
    (void)state;
    open_line(10, 6); /* point 11 is the first that the line leaves */
    assert_int_equal(first_left(&fit, &series, 0), 11);
    assert_int_equal(first_left(&fit, &series, 11), 11);
    assert_int_equal(first_left(&fit, &series, 12), 12);
    series.count = 11;
    assert_int_equal(first_left(&fit, &series, 0), 11);
    series.count = 16;
    assert_true(goes_on(&fit, &series, 11));
    for (uint64_t steps = 9; steps < 16; steps++) { /* a schedule that has ended goes nowhere */
        fit.steps = steps;
        assert_int_equal(goes_on(&fit, &series, 11), steps > 12);
    }
    fit.steps = 0;
    assert_true(goes_on(&fit, &series, 11));
    /* The LR that stands lies on the way: no farther than the row before. */
    const double step = PEAK / 40.0, stood = points[11].value;
    static const struct {
        double steps;
        int on;
    } offs[] = {{0.0, 1}, {0.01, 0}, {-0.5, 1}, {-0.99, 1}, {-1.01, 0}};
    for (size_t i = 0; i < COUNT_OF(offs); i++) {
        open_line(10, 6);
        for (size_t p = 10; p < 16; p++)
            points[p].value = stood + offs[i].steps * step;
        assert_int_equal(goes_on(&fit, &series, 11), offs[i].on);
    }
    for (int wide = 0; wide < 2; wide++) { /* half of a printed step either way */
        open_line(10, 6);
        points[11].quantum = 2.0 * step * (wide ? 1.01 : 0.99);
        assert_int_equal(goes_on(&fit, &series, 11), !wide);
        points[10].value = points[11].value = stood + step;
        points[11].quantum = 2.0 * step * (wide ? 1.01 : 0.99);
        assert_int_equal(goes_on(&fit, &series, 11), wide);
    }
    /* A rise. */
    open_line(10, 6);
    segment.scale = -1.0;
    for (size_t p = 0; p < 16; p++)
        points[p].value = -points[p].value;
    assert_true(goes_on(&fit, &series, 11));
    for (size_t p = 11; p < 16; p++)
        points[p].value -= 0.01 * step;
    assert_false(goes_on(&fit, &series, 11));
}

static void validate_steps_of_a_stop(void **state) {
    (void)state;
    open_line(10, 6);
    for (uint64_t from = 5; from < 15; from++)
        for (uint64_t to = from + 1; to < 15; to++) { /* the LR is that of update 11 */
            points[10].update = from;
            points[11].update = to;
            assert_int_equal(has_step(&fit, &series, 11), from <= 11 && to >= 11);
        }
    for (uint64_t more = 0; more < 2; more++) { /* too far apart to look at each */
        points[10].update = 20;
        points[11].update = 20 + WIDEST + more;
        assert_int_equal(has_step(&fit, &series, 11), (int)more);
    }
    known.request.steps = 0;
    known.run_steps = 7;
    assert_int_equal(total_of(&known), 7);
    known.request.steps = 1;
    assert_int_equal(total_of(&known), 1);
}

static void validate_totals_of_the_run(void **state) {
    (void)state;
    struct fit other;
    uint8_t of_run;
    open_line(10, 6);
    other = fit;
    other.parameters = "power=2";
    for (int how = 0; how < 5; how++) {
        searches = 0;
        memset(answers, 0, sizeof answers);
        fit.steps = how == 1 ? 41 : 40;
        fit.total_hidden = how == 2;
        for (size_t i = 0; how >= 3 && i < 2; i++) {
            answers[i].fits = how == 3 ? &other : &fit;
            answers[i].count = 1;
        }
        assert_int_equal(is_of_run(&fit, &series, 40, &known, &arena, &of_run), STATUS_OK);
        assert_int_equal(of_run, how == 0 || how == 3);
        assert_int_equal(searches, how == 1 || how == 2 ? 0 : how == 4 ? 1 : 2);
        if (searches == 0) continue;
        assert_int_equal(asked[0].steps, 39);
        if (searches > 1) assert_int_equal(asked[1].steps, 41);
        assert_int_equal(asked[0].rows, series.count);
    }
    searches = 0; /* the second of the two totals explains the rows, too */
    memset(answers, 0, sizeof answers);
    fit.steps = 40;
    fit.total_hidden = 0;
    answers[1].fits = &fit;
    answers[1].count = 1;
    assert_int_equal(is_of_run(&fit, &series, 40, &known, &arena, &of_run), STATUS_OK);
    assert_int_equal(of_run, 0);
    assert_int_equal(searches, 2);
}

/* The fit explains the ten rows in front of those that stand, which are more than a loss scaler may
 * skip; `whole` explains the column. */
#define STOOD 28
static struct fit whole;
static struct fit_set set;
static void open_stop(void) {
    open_line(10, STOOD);
    whole = fit;
    set = (struct fit_set){.series = &series, .fits = &whole, .count = 1, .last = 10 + STOOD};
    whole.bug = "lag1"; /* it is a bug, so that another reading is looked for */
    for (size_t i = 0; i < SEARCHES; i++) {
        answers[i].fits = &fit;
        answers[i].count = 1;
    }
    known.request.steps = 40;
}
static struct fit_stop found;
static void find(void) {
    assert_int_equal(fit_find_stop(&series, &known, &set, &arena, &found), STATUS_OK);
}
#define FOUND(expected)                                                                            \
    do {                                                                                           \
        find();                                                                                    \
        if ((found.fit != NULL) != (expected)) fail_msg("line %d", __LINE__);                      \
        open_stop();                                                                               \
    } while (0)

static void validate_stops(void **state) {
    (void)state;
    open_stop();
    find();
    assert_ptr_equal(found.fit, &fit);
    assert_int_equal(found.point, 11);
    assert_true(found.of_known_total && found.typed); /* 1.5e-4 */
    assert_false(found.held || found.open || found.of_run);
    assert_int_equal(asked[0].rows, 11);
    assert_int_equal(asked[0].plain, 1);
    assert_int_equal(asked[0].steps, 40);
    open_stop();
    known.request.steps = 41; /* not the total that was said */
    find();
    assert_true(found.fit == &fit && !found.of_known_total);
    open_stop();
    fit.simplicity = whole.simplicity + 0.49; /* not much dearer than what explains it all */
    FOUND(1);
    fit.simplicity = whole.simplicity + 0.51;
    FOUND(0);
    fit.simplicity = 2.0;
    set.count = 0;
    FOUND(1);
    set.why = FIT_WHY_NOT_FINITE;
    FOUND(0);
    known.steps_guessed = 1;
    FOUND(0);
    known.growing = 1;
    FOUND(0);
    static const struct fit_samples *const samples = (const struct fit_samples *)&points;
    known.samples = samples;
    FOUND(0);
    fit.bug = "lag1"; /* what explains the front must be plain */
    FOUND(0);
    static uint32_t least[ROWS];
    least[13] = 1;
    known.skips.least = least;
    FOUND(0);
    for (size_t left = 0; left < 5; left++) { /* rows that the schedule must leave */
        open_stop();
        series.count = 11 + left;
        found = (struct fit_stop){.fit = NULL};
        assert_int_equal(among(&series, 11, &known, 40, &set, &arena, &found), STATUS_OK);
        assert_int_equal(found.fit != NULL, left >= STILL - 2);
    }
    open_stop();
    for (size_t i = 10; i < 10 + STOOD; i++) /* held at an LR that no step has */
        points[i].value = 1.52e-4 + 1.3e-7;
    find();
    assert_true(found.fit == &fit && found.held && !found.typed);
    open_stop();
    assert_int_equal(fit_find_stop(&series, &known, &set, &arena, &found), STATUS_OK);
    series.count = MOVES + STILL - 1;
    FOUND(0);
}

/* For so long a loss scaler may skip updates: what explains the whole column needs no other
 * reading, and a stop at a step of the schedule is none but where somebody may have typed it. */
static void validate_short_stops(void **state) {
    (void)state;
    size_t short_ones = 0;
    for (size_t rows = STILL; rows <= STOOD; rows++)
        for (int how = 0; how < 64; how++) {
            open_stop();
            const int plain = how & 1, skips_of = how & 2, shown = how & 4, other = how & 8;
            const int bug = how & 16, odd = how & 32;
            whole.bug = bug ? "lag1" : NULL;
            if (!plain) whole.stride = 2.0;
            if (skips_of) {
                skips[0] = (struct fit_skip){.first = 12, .last = 12, .count = 1};
                whole.skips = skips;
                whole.skip_count = 1;
            }
            known.skips.shown = shown ? 1 : 0;
            if (other) known.request.steps = 41;
            if (odd) segment.scale = 1.0234567; /* 1.5e-4 times that, which nobody types */
            series.count = 10 + rows;
            for (size_t i = 0; odd && i < series.count; i++)
                points[i].value *= segment.scale;
            find();
            const int skipped = rows - 1 <= fit_skips_most(series.count);
            const int sound = plain && !skips_of && !bug;
            const int meant = !other && !odd && (bug || skips_of) && !shown;
            short_ones += (size_t)skipped;
            assert_int_equal(found.fit != NULL, skipped ? !sound && meant : 1);
        }
    assert_true(short_ones > 0 && short_ones < (STOOD - STILL) * 64);
    open_stop(); /* one that is held is no skip */
    whole.bug = NULL;
    whole.stride = 2.0;
    series.count = 14;
    for (size_t i = 10; i < 14; i++)
        points[i].value = 1.52e-4 + 1.3e-7;
    FOUND(1);
}

static void validate_open_lines(void **state) {
    (void)state;
    open_stop();
    whole.bug = NULL;
    whole.steps = 90;
    whole.floor_ratio = 0.1234;
    for (size_t i = 10; i < 16; i++)
        points[i].value = 1.2345e-4;
    assert_true(is_open_line(&series, 10, &known, &set));
    known.request.steps = 90;
    assert_false(is_open_line(&series, 10, &known, &set));
    known.request.steps = 40;
    known.request.min_lr_ratio = 0.1;
    assert_false(is_open_line(&series, 10, &known, &set));
    known.request.min_lr_ratio = (double)NAN;
    whole.floor_ratio = 0.0;
    assert_false(is_open_line(&series, 10, &known, &set));
    whole.floor_ratio = 0.1234;
    whole.stride = 2.0;
    assert_false(is_open_line(&series, 10, &known, &set));
    whole.stride = 1.0;
    whole.schedule = sched_find_in("hf", "cosine");
    assert_false(is_open_line(&series, 10, &known, &set));
    whole.schedule = sched_find_in("hf", "linear");
    points[10].value = 1.2e-4;
    assert_false(is_open_line(&series, 10, &known, &set));
    points[10].value = 1.2345e-4;
    set.count = 0;
    assert_false(is_open_line(&series, 10, &known, &set));
    set.count = 1;
    assert_true(is_open_line(&series, 10, &known, &set));
}

#define SOON(expected)                                                                             \
    do {                                                                                           \
        if (ends_too_soon(&set, &known) != (expected)) fail_msg("line %d", __LINE__);              \
        open_stop();                                                                               \
        whole.bug = "schedule_too_short";                                                          \
        whole.steps = 39;                                                                          \
        whole.floor_ratio = 0.1;                                                                   \
    } while (0)

static void validate_ends_too_soon(void **state) {
    (void)state;
    open_stop();
    SOON(0);
    SOON(1);
    whole.bug = "floor_vs_ceil_steps";
    SOON(1);
    whole.bug = "max_steps_ignored";
    SOON(0);
    whole.bug = NULL;
    SOON(0);
    whole.steps = 40;
    SOON(0);
    known.request.steps = 0;
    known.run_steps = 40;
    SOON(1);
    whole.floor_ratio = 0.0;
    SOON(0);
    whole.segment_count = 2;
    SOON(0);
    whole.schedule = sched_find_in("hf", "cosine");
    SOON(0);
    known.request.min_lr_ratio = 0.1;
    SOON(0);
    set.count = 0;
    SOON(0);
}

/* A line of 40 updates of which the last rows, too few to stand still, are held at a floor that
 * somebody typed. */
static void open_last(void) {
    open_stop();
    series.count = 12;
    make_fall(10, 1, 2);
    for (size_t i = 0; i < 12; i++)
        points[i].value = fit_logged(&fit, 0, i + 1);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 1.6e-4; /* the line has 1.5e-4 at update 11 */
    whole.bug = "schedule_too_short";
    whole.steps = 39;
    whole.floor_ratio = 0.8;
}
#define LAST(expected)                                                                             \
    do {                                                                                           \
        assert_int_equal(                                                                          \
            of_last_rows(&series, first_of_end(&series), &known, &set, &arena, &found),            \
            STATUS_OK);                                                                            \
        if ((found.fit != NULL) != (expected)) fail_msg("line %d", __LINE__);                      \
        found = (struct fit_stop){.fit = NULL};                                                    \
        open_last();                                                                               \
    } while (0)

static void validate_last_rows(void **state) {
    (void)state;
    found = (struct fit_stop){.fit = NULL};
    open_last();
    find();
    assert_ptr_equal(found.fit, &fit);
    assert_int_equal(found.point, 10);
    assert_true(found.of_known_total && found.typed && found.held);
    assert_false(found.open || found.of_run);
    assert_int_equal(asked[0].rows, 10);
    assert_int_equal(asked[0].steps, 40);
    assert_int_equal(asked[0].plain, 1);
    found = (struct fit_stop){.fit = NULL};
    open_last();
    LAST(1);
    series.count = 11; /* one row says nothing */
    LAST(0);
    whole.bug = NULL;
    LAST(0);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 1.6123e-4;
    LAST(0);
    fit.steps = 41;
    LAST(0);
    fit.bug = "lag1";
    LAST(0);
    for (size_t i = 10; i < 12; i++) /* it is what the schedule has there */
        points[i].value = 1.5e-4;
    points[11].value = 1.45e-4;
    LAST(0);
    for (size_t i = 10; i < 12; i++)
        points[i].value = 1.2e-4; /* below the line, which no loop holds from below */
    LAST(0);
    answers[0].count = 0;
    LAST(0);
    static struct fit two[2];
    two[0] = two[1] = fit;
    two[0].steps = 41;
    answers[0].fits = two;
    answers[0].count = 2;
    assert_int_equal(of_last_rows(&series, 10, &known, &set, &arena, &found), STATUS_OK);
    assert_ptr_equal(found.fit, &two[1]);
    found = (struct fit_stop){.fit = NULL};
    for (size_t moves = 6; moves < 11; moves++) { /* rows that must stand in front */
        open_last();
        make_fall(moves, 1, 2);
        for (size_t i = 0; i < moves; i++)
            points[i].value = fit_logged(&fit, 0, i + 1);
        for (size_t i = moves; i < moves + 2; i++)
            points[i].value = 1e-5 * (double)(moves < 8 ? 18 : 17);
        if (moves == 10) points[10].value = points[11].value = 1.6e-4;
        LAST(moves >= MOVES);
    }
}

/* Where nobody said a total, that of the rows in front must be the log's last update. */
static void validate_runs(void **state) {
    (void)state;
    for (uint64_t steps = 37; steps < 41; steps++) {
        open_stop();
        known.request.steps = 0;
        fit.steps = steps;
        for (size_t i = 1; i < SEARCHES; i++)
            answers[i].count = 0;
        find();
        assert_ptr_equal(found.fit, &fit);
        assert_false(found.of_known_total);
        assert_int_equal(found.of_run, steps == 10 + STOOD);
        assert_int_equal(searches, steps == 10 + STOOD ? 3 : 1);
        if (searches < 3) continue;
        assert_int_equal(asked[1].steps, 9 + STOOD);
        assert_int_equal(asked[2].steps, 11 + STOOD);
        assert_int_equal(asked[1].rows, 11);
    }
}

/* Every floor that configurations have, below an LR, of each schedule that falls to one. */
static void validate_floors(void **state) {
    (void)state;
    static const char *const schedules[] = {"polynomial", "linear", "cosine", "cosine_with_min_lr"};
    const double *typed;
    const size_t count = fit_typed_floors(&typed);
    assert_true(count > 3);
    for (size_t only = 0; only <= COUNT_OF(schedules); only++)
        for (size_t b = 0; b < 6; b++) {
            static const double shares[] = {0.0, 0.05, 0.1, 0.11, 0.5, 2.0};
            const double below = shares[b] * PEAK;
            struct fit_floors floors = {.peak = PEAK};
            struct contract_request request;
            if (only < COUNT_OF(schedules)) floors.schedule = schedules[only];
            contract_request_init(&request);
            for (size_t n = 0; n < COUNT_OF(schedules) * count; n++) {
                const double floor = typed[n % count];
                const double ratio = floor < 1e-4 ? floor / PEAK : floor; /* LRs, and shares */
                const size_t which = n / count;
                if (!(ratio * PEAK < below) || (only < COUNT_OF(schedules) && which != only))
                    continue;
                assert_true(fit_next_floor(&floors, below, &request));
                assert_string_equal(request.schedule, schedules[which]);
                assert_true(request.min_lr_ratio == ratio);
            }
            assert_false(fit_next_floor(&floors, below, &request));
        }
}

/* The searches with a floor come behind those without, each of the rows up to the first that
 * stands, and up to the one before it. */
static void validate_searches_with_floors(void **state) {
    (void)state;
    for (int how = 0; how < 5; how++) {
        open_stop();
        known.request.steps = how == 1 ? 0 : 40;
        known.request.min_lr_ratio = how == 2 ? 0.1 : (double)NAN;
        if (how == 3) known.request.schedule = "cosine";
        answers[0].count = answers[1].count = 0; /* without a floor nothing is found */
        if (how == 4)
            for (size_t i = 0; i < SEARCHES; i++)
                answers[i].count = 0;
        if (how == 1) { /* an LR that nobody typed, of a run of this length */
            segment.scale = 1.0234567;
            for (size_t i = 0; i < 10 + STOOD; i++)
                points[i].value *= segment.scale;
            points[0].value = 1.0317 * PEAK; /* no share of the largest, either */
            fit.steps = 10 + STOOD;
            answers[3].count = answers[4].count = 0;
        }
        find();
        assert_int_equal(found.fit != NULL, how != 2 && how != 4);
        assert_int_equal(asked[0].rows, 11);
        assert_int_equal(asked[1].rows, 10);
        if (how == 2) {
            assert_int_equal(searches, 2);
            continue;
        }
        assert_int_equal(asked[2].rows, 11);
        assert_int_equal(asked[2].steps, how == 1 ? 10 + STOOD : 40);
        assert_string_equal(asked[2].schedule, how == 3 ? "cosine" : "polynomial");
        assert_true(asked[2].floor * PEAK < points[20].value);
        if (how == 4) assert_int_equal(searches % 2, 0); /* as many of either length */
    }
    for (int typed = 0; typed < 2; typed++) { /* an LR that somebody typed asks for a total */
        open_stop();
        known.request.steps = 0;
        for (size_t i = 0; i < SEARCHES; i++)
            answers[i].count = 0;
        for (size_t i = 0; !typed && i < 10 + STOOD; i++)
            points[i].value *= i > 0 ? 1.0234567 : 1.0317;
        find();
        assert_int_equal(searches == 2, typed);
    }
    open_stop(); /* and at last the line whose floor nobody would type */
    known.request.steps = 0;
    set.fits = &whole;
    whole = fit;
    whole.steps = 90;
    whole.floor_ratio = 0.1234;
    for (size_t i = 0; i < SEARCHES; i++)
        answers[i].count = 0;
    for (size_t i = 0; i < 10 + STOOD; i++)
        points[i].value *= i > 0 ? 1.0234567 : 1.0317;
    find();
    assert_true(found.fit == &whole && found.open && !found.held);
    assert_int_equal(found.point, 11);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_typed_numbers),
        cmocka_unit_test(validate_rows_that_are_alike),
        cmocka_unit_test(validate_rows_that_stand),
        cmocka_unit_test(validate_skips_behind),
        cmocka_unit_test(validate_tops),
        cmocka_unit_test(validate_plain_fits),
        cmocka_unit_test(validate_skips_to_a_floor),
        cmocka_unit_test(validate_skips_from_a_floor),
        cmocka_unit_test(validate_second_updates),
        cmocka_unit_test(validate_ways_on),
        cmocka_unit_test(validate_steps_of_a_stop),
        cmocka_unit_test(validate_totals_of_the_run),
        cmocka_unit_test(validate_stops),
        cmocka_unit_test(validate_short_stops),
        cmocka_unit_test(validate_open_lines),
        cmocka_unit_test(validate_ends_too_soon),
        cmocka_unit_test(validate_last_rows),
        cmocka_unit_test(validate_runs),
        cmocka_unit_test(validate_floors),
        cmocka_unit_test(validate_searches_with_floors),
        cmocka_unit_test(validate_skips_in_front_of_the_rows),
        cmocka_unit_test(validate_totals_that_ignore_skips),
        cmocka_unit_test(validate_peaks_by_digits),
        cmocka_unit_test(validate_skips_on_a_plateau),
        cmocka_unit_test(validate_decays_by_share),
        cmocka_unit_test(validate_totals_beside_rounder_ones),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
