/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Whether a failure of a check stands where nobody gave all numbers, condition by condition: from a
 * scene in which it stands, one condition is changed at a time. What a search would find is given.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_parts.h"
#include "tests/forensics/helper_fit.h"

enum { ROWS = 16, LAST = 100 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit best, borrowed_fit;
static struct fit_segment segments[2];
static struct fit_known known;
static struct fit_check out, borrowed;

/* A middle of a run, which falls, printed to six digits, with a bug whose numbers are round. */
static void open_scene(void) {
    arena_close(&arena);
    segments[0] = (struct fit_segment){.scale = 1.0};
    segments[1] = (struct fit_segment){.scale = 1.0, .event = FIT_BACK, .point = 4};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = LAST - ROWS + 1 + i,
                                          .row = i,
                                          .value = PEAK * (1.0 - 0.02 * (double)(i + 1)),
                                          .quantum = 1e-9};
    series = (struct series){points, ROWS};
    const struct contract_request request =
        helper_fit_request("olmo-core", "cosine", PEAK, 20.0, 600);
    helper_fit_make(&best, &arena, &request, segments);
    best.parameters = "";
    borrowed_fit = best;
    borrowed_fit.warmup = 21.0;
    borrowed_fit.steps = 601;
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    out = (struct fit_check){.verdict = FIT_FAIL,
                             .fitted = FIT_OF_LR | FIT_OF_STEPS | FIT_OF_WARMUP | FIT_OF_SCHEDULE,
                             .bug = "lag1",
                             .words = "fits",
                             .found = {.series = &series, .fits = &best, .count = 1, .last = LAST}};
    memset(&borrowed, 0, sizeof borrowed);
}

static void expect(int stands, int line) {
    if (fit_check_stands(&known, &out, &borrowed) != stands) fail_msg("line %d", line);
}
#define STANDS expect(1, __LINE__)
#define OPEN expect(0, __LINE__)

static void validate_numbers(void **state) {
    (void)state;
    open_scene();
    STANDS;
    best.lr = 2.0013e-4; /* a peak of five digits */
    OPEN;
    known.request.lr = 2.0013e-4;
    STANDS;
    open_scene();
    best.steps = 601;
    OPEN;
    best.steps = LAST; /* of the last row */
    STANDS;
    best.steps = 601;
    best.total_hidden = 1;
    STANDS;
    best.total_hidden = 0;
    out.fitted = FIT_OF_SCHEDULE | FIT_OF_FLOOR; /* peak, warm-up and total were given */
    STANDS;
    out.fitted = FIT_OF_STEPS | FIT_OF_SCHEDULE;
    OPEN;
    struct fit expected = best; /* the numbers of a column that is one update on */
    expected.steps = 600;
    out.expected = &expected;
    STANDS;
    out.bug = "other_peak";
    OPEN;
    out.bug = "lag1";
    expected.steps = 601;
    OPEN;
    out.expected = NULL;
    known.run_steps = 700; /* the log said another total */
    STANDS;
    known.run_steps = 0;
    known.request.steps = 700; /* an option did */
    STANDS;
    best.floor_ratio = 0.2303;
    OPEN;
    open_scene();
    best.warmup = 21.0;
    OPEN;
    best.warmup = 1.0;
    OPEN;
    best.warmup = 18.0; /* three percent */
    STANDS;
    best.warmup = 7.0;
    STANDS;
    best.warmup = known.request.warmup = 21.0;
    STANDS;
    open_scene();
    best.floor_ratio = 0.2303;
    OPEN;
    best.floor_ratio = 0.05;
    STANDS;
    best.floor_ratio = 1e-6 / PEAK; /* an LR that somebody typed */
    STANDS;
    best.floor_ratio = known.request.min_lr_ratio = 0.2303;
    STANDS;
    open_scene();
    best.parameters = "decay=2578";
    OPEN;
    best.parameters = "decay=120, decay_style=linear";
    STANDS;
    best.parameters = "num_cycles=3";
    STANDS;
}

/* Round numbers under a counter that moves four times per update prove nothing against a quarter of
 * them, unless somebody said the total. */
static void validate_paces(void **state) {
    (void)state;
    open_scene();
    out.bug = "xP_scheduler";
    borrowed.expected = &borrowed_fit;
    STANDS;
    best.steps = 2400;
    best.warmup = 80;
    best.plan.call.total = 2404.0;
    best.plan.call.warmup = 84.0;
    best.plan.increment = 4.0;
    borrowed_fit.plan.call.total = 601.0;
    borrowed_fit.plan.call.warmup = 21.0;
    OPEN;
    known.run_steps = 2400;
    STANDS;
    known.run_steps = 0;
    known.request.steps = 2400;
    STANDS;
    known.request.steps = 0;
    best.plan.call.warmup = 88.0; /* another warm-up */
    STANDS;
    best.plan.call.warmup = 84.0;
    best.plan.call.total = 2400.0; /* another total */
    STANDS;
}

static void validate_what_is_seen(void **state) {
    (void)state;
    open_scene();
    best.steps = 601;
    OPEN;
    best.segment_count = 2; /* a break, in rows of six digits */
    STANDS;
    points[7].quantum = 1e-7;
    OPEN;
    open_scene();
    best.steps = 601;
    points[1].value = 1.1 * PEAK; /* a rise */
    STANDS;
    open_scene();
    best.steps = 601;
    best.first_differs = 1;
    STANDS;
    open_scene();
    best.steps = 601;
    best.stride = 3.0; /* prints what other lengths print without it */
    OPEN;
    best.stride = 0.25; /* stands for four rows each */
    STANDS;
    open_scene();
    best.steps = 601;
    best.epoch_updates = 20;
    STANDS;
    open_scene();
    best.steps = 601;
    out.bug = "schedule_stands_still or lag1";
    STANDS;
    /* Coarse rows, and a peak that changes by what nobody would type. */
    open_scene();
    for (size_t i = 0; i < ROWS; i++)
        points[i].quantum = 1e-7;
    STANDS;
    out.bug = NULL; /* typed numbers of another contract, and no bug by name */
    OPEN;
    out.fitted &= ~(uint32_t)FIT_OF_SCHEDULE;
    STANDS;
    out.fitted |= FIT_OF_SCHEDULE;
    known.request.lr = 0.9 * PEAK; /* a row lies above it */
    STANDS;
    known.request.lr = PEAK;
    OPEN;
    out.found.why = FIT_WHY_CONSTANT;
    STANDS;
    out.found.why = 0;
    out.bug = "lag1";
    best.segment_count = 2;
    segments[1].event = FIT_RESCALED;
    segments[1].scale = 0.5;
    STANDS;
    segments[1].scale = 0.99777;
    OPEN;
    segments[1].scale = 0.51777; /* many printed steps */
    STANDS;
    segments[1].event = FIT_RESET;
    points[4].value = points[3].value + 4e-7; /* four */
    OPEN;
    for (size_t i = 4; i < ROWS; i++)
        points[i].value = 0.1 * PEAK + 1e-7 * (double)i;
    STANDS;
    for (size_t i = 0; i < 4; i++)
        points[i].value = 0.01 * PEAK; /* as behind a cycle of restarts */
    OPEN;
    best.schedule = sched_find("linear");
    STANDS;
    segments[1].event = FIT_BACK;
    OPEN;
    out.found.count = 0; /* nothing explains it */
    STANDS;
}

/* The contract's own numbers, of which one contradicts what was said. */
static void validate_own_numbers(void **state) {
    (void)state;
    open_scene();
    out.bug = NULL;
    best.contract = known.request.contract;
    OPEN;
    known.request.steps = 700;
    STANDS;
    known.request.steps = 0;
    known.run_steps = 700;
    STANDS;
    best.schedule = sched_find("linear");
    OPEN;
    best.schedule = sched_find("cosine");
    points[7].quantum = 1e-7;
    OPEN;
}

/* A peak that was given beside one of a warm-up that no row shows. */
static void validate_unseen_peaks(void **state) {
    (void)state;
    open_scene();
    known.request.lr = 1.5 * PEAK;
    STANDS;
    best.warmup_hidden = 1;
    OPEN;
    best.warmup_hidden = 0;
    best.unseen_warmup = 30.0;
    OPEN;
    known.request.warmup = 20.0;
    STANDS;
    known.request.warmup = NAN;
    known.request.lr = PEAK;
    STANDS;
}

/* A peak of many digits beside a given one that is less than a printed step away: in finely printed
 * rows that rise it would stand. */
static void validate_peaks_by_digits(void **state) {
    (void)state;
    open_scene();
    known.request.lr = PEAK;
    out.bug = NULL;
    points[1].value = points[0].value + 1e-8;
    STANDS;
    best.lr = PEAK + 0.6e-9;
    OPEN;
    points[5].quantum = 0.5e-9; /* the finest row decides */
    STANDS;
    points[5].quantum = 1e-9;
    best.lr = PEAK + 2e-9;
    STANDS;
    best.lr = PEAK + 0.6e-9;
    known.request.lr = NAN;
    STANDS;
    known.request.lr = best.lr;
    STANDS;
}

static void validate_what_was_borrowed(void **state) {
    (void)state;
    open_scene();
    borrowed.expected = &borrowed_fit; /* a warm-up and a total of one update more */
    STANDS;
    out.bug = NULL;
    OPEN;
    out.bug = "lag1";
    best.first_differs = 1; /* which fine rows show, whatever the numbers are */
    best.lr = 2.0013e-4;
    OPEN;
    borrowed.expected = NULL;
    STANDS;
    borrowed.expected = &borrowed_fit;
    best.first_differs = 0;
    best.lr = PEAK;
    borrowed_fit.warmup = 20.0;
    borrowed_fit.steps = 600;
    OPEN;
    open_scene();
    borrowed.expected = &borrowed_fit;
    best.steps = 601;
    OPEN;
    out.verdict = FIT_UNDECIDED; /* nothing is to be withdrawn */
    STANDS;
}

static void validate_words(void **state) {
    (void)state;
    open_scene();
    assert_int_equal(fit_check_doubt_unproven(&known, &arena, &out), STATUS_OK);
    assert_string_equal(out.words, "fits");
    open_scene();
    best.steps = 601;
    assert_int_equal(fit_check_doubt_unproven(&known, &arena, &out), STATUS_OK);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_null(out.bug);
    assert_string_equal(out.words,
                        "fits; nobody gave all of these numbers, and nobody would type them");
    assert_non_null(strstr(out.needs, "numbers of hf finds none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_numbers),         cmocka_unit_test(validate_paces),
        cmocka_unit_test(validate_what_is_seen),    cmocka_unit_test(validate_own_numbers),
        cmocka_unit_test(validate_unseen_peaks),    cmocka_unit_test(validate_what_was_borrowed),
        cmocka_unit_test(validate_peaks_by_digits), cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
