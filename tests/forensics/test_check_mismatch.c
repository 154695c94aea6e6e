/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the verdict on a column that is not the expected one rests on, condition by condition: from
 * a scene in which all of them hold, one is changed at a time, and the answer must change (or must
 * not) as the rule says that stands beside it. Thresholds are met from both sides. A search and its
 * fits seldom meet one condition alone, so tests of whole checks let most of these pass. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
/* What is searched for is given here. */
#define fit_series given_series
#define fit_find_stop given_stop
#define fit_find_clamp given_clamp
#define fit_check_expect given_expect
#include "forensics/fit_check_mismatch.c" /* for the conditions, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 24, FITS = 3, SEGMENTS = 3, TOTAL = 20, LATER = 30, BREAK = 10 };
#define PEAK 2e-4
#define WARMUP 3.0

static struct scene {
    struct arena arena;
    struct series_point points[ROWS];
    struct series series;
    struct fit fits[FITS], expected;
    struct fit_segment segments[FITS][SEGMENTS], plain;
    struct fit_check out;
    struct fit_known known;
    struct contract_request asked;
    int refuted; /* whether no warm-up prints a constant column */
} s;

static struct contract_request request_of(const char *contract, const char *schedule) {
    struct contract_request request = helper_fit_request(contract, schedule, PEAK, WARMUP, TOTAL);
    request.processes = 2;
    request.global_batch = 8;
    request.updates_per_epoch = 4;
    return request;
}

/* Every fit goes on towards a later total, that of the log, and is what was asked for. */
static void open_scene(void) {
    arena_close(&s.arena);
    memset(&s, 0, sizeof s);
    s.asked = request_of("hf", "linear");
    fit_known_init(&s.known);
    s.known.request = s.asked;
    s.known.run_steps = LATER;
    s.plain = (struct fit_segment){.scale = 1.0, .event = FIT_PLAIN};
    struct contract_request later = s.asked;
    later.steps = LATER;
    helper_fit_make(&s.expected, &s.arena, &later, &s.plain);
    for (size_t f = 0; f < FITS; f++) {
        helper_fit_make(&s.fits[f], &s.arena, &s.asked, s.segments[f]);
        s.segments[f][0] = s.segments[f][1] = s.plain;
        s.segments[f][1].point = BREAK;
        s.segments[f][1].update = BREAK + 1;
        s.segments[f][1].event = FIT_TOTAL;
        s.segments[f][1].steps = LATER;
        s.segments[f][1].warmup = s.segments[f][1].call_warmup = WARMUP;
        s.segments[f][1].call_total = LATER;
        s.segments[f][2] = s.segments[f][1];
        s.segments[f][2].point = BREAK + 6;
        s.segments[f][2].update = BREAK + 7;
        s.fits[f].segment_count = 2;
    }
    s.series = (struct series){s.points, ROWS};
    for (size_t i = 0; i < ROWS; i++) {
        s.points[i] = (struct series_point){.update = i + 1, .row = i, .part = i >= BREAK};
        s.points[i].value = fit_logged(&s.fits[0], i, i + 1);
    }
    s.out.found = (struct fit_set){.series = &s.series, .fits = s.fits, .count = 1, .last = ROWS};
    s.out.expected = &s.expected;
    s.out.fitted = FIT_OF_STEPS;
}

/* ---- a total that changed ---- */

/* Asks goes_on: which fit goes on (-1: none), and whether it is what was asked for. */
static void hold_extended(int which, int has, int line) {
    int got_has = -1;
    const struct fit *const fit = goes_on(&s.known, &s.asked, &s.out, &got_has);
    const int got = fit == NULL ? -1 : (int)(fit - s.fits);
    if (got != which || got_has != has)
        fail_msg("line %d: fit %d, has %d; expected %d, %d", line, got, got_has, which, has);
    open_scene();
}
#define EXTENDED(which, has) hold_extended(which, has, __LINE__)

static void validate_what_goes_on(void **state) {
    (void)state;
    open_scene();
    EXTENDED(0, 1);
    s.out.fitted = FIT_OF_LR | FIT_OF_WARMUP | FIT_OF_FLOOR | FIT_OF_SCHEDULE;
    EXTENDED(-1, 0); /* the total was given, and does not hold throughout */
    s.out.fitted = 0;
    s.out.from_log = FIT_OF_STEPS;
    EXTENDED(0, 1);
    s.out.found.count = 0;
    EXTENDED(-1, 0);
    s.fits[0].contract = contract_find("accelerate");
    EXTENDED(-1, 0);
    s.fits[0].bug = "lag1";
    EXTENDED(-1, 0);
    s.fits[0].stride = 2.0;
    EXTENDED(-1, 0);
    s.fits[0].first_differs = 1;
    EXTENDED(-1, 0);
    s.fits[0].segment_count = 1;
    EXTENDED(-1, 0); /* one total from the first row to the last */
    s.segments[0][1].steps = LATER + 1;
    EXTENDED(-1, 0);
    s.known.run_steps = 0;
    EXTENDED(-1, 0);
    s.known.run_steps = 0;
    s.known.request.steps = LATER;
    EXTENDED(0, 1);
    s.fits[0].segment_count = 3;
    EXTENDED(0, 1);
    s.fits[0].segment_count = 3;
    s.segments[0][2].event = FIT_SKIP;
    EXTENDED(-1, 0);
    s.fits[0].segment_count = 3;
    s.segments[0][2].event = FIT_SKIP;
    s.known.skips.shown = 1;
    EXTENDED(0, 1);
    s.fits[0].segment_count = 3;
    s.segments[0][2].event = FIT_RESET;
    s.known.skips.shown = 1;
    EXTENDED(-1, 0);
    s.fits[0].unsound = 1;
    EXTENDED(-1, 0); /* as asked, but it needs a known bug besides */
    s.asked.lr = 1.5 * PEAK;
    EXTENDED(0, 0);
    s.asked.lr = 1.5 * PEAK;
    s.fits[0].unsound = 1;
    EXTENDED(0, 0);
    /* The one that was asked for comes first, wherever it stands; else the first of all. */
    s.out.found.count = FITS;
    s.fits[0].lr = s.fits[1].lr = 1.5 * PEAK;
    EXTENDED(2, 1);
    s.out.found.count = FITS;
    s.fits[0].bug = "lag1";
    s.fits[1].lr = s.fits[2].lr = 1.5 * PEAK;
    EXTENDED(1, 0);
    s.out.found.count = 2;
    s.fits[0].unsound = 1;
    s.fits[1].lr = 1.5 * PEAK;
    EXTENDED(1, 0);
}

static void hold_asked(int expected, int line) {
    const int got = has_asked(&s.fits[0], &s.asked, &s.out);
    if (got != expected) fail_msg("line %d: %d", line, got);
    open_scene();
}
#define ASKED(expected) hold_asked(expected, __LINE__)

static void validate_what_was_asked(void **state) {
    (void)state;
    open_scene();
    ASKED(1);
    s.asked.lr = real_nan_f64();
    ASKED(1);
    s.asked.lr = 1.001 * PEAK;
    ASKED(0);
    s.asked.warmup = WARMUP + 1.0;
    ASKED(0);
    s.asked.warmup = WARMUP + 1.0;
    s.fits[0].takes_warmup = 0;
    ASKED(1);
    s.asked.warmup = WARMUP + 1.0;
    s.fits[0].warmup_hidden = 1;
    ASKED(1);
    s.asked.warmup = real_nan_f64();
    ASKED(1);
    s.asked.warmup_ratio = 0.5;
    ASKED(0);
    s.asked.warmup = real_nan_f64();
    s.asked.warmup_ratio = WARMUP / TOTAL;
    ASKED(1);
    /* Without a schedule, the floor is what is left; where none is said, it is 0. */
    s.asked.schedule = NULL;
    ASKED(1);
    s.asked.schedule = NULL;
    s.asked.min_lr_ratio = 0.0;
    ASKED(1);
    s.asked.schedule = NULL;
    s.asked.min_lr_ratio = 2e-6;
    ASKED(0);
    s.asked.schedule = NULL;
    s.asked.min_lr_ratio = 0.1;
    ASKED(0);
    s.asked.schedule = NULL;
    s.asked.min_lr_ratio = 0.1;
    s.fits[0].floor_ratio = 0.1 + 0.5e-6;
    ASKED(1);
    s.asked.schedule = NULL;
    s.asked.min_lr_ratio = 0.1;
    s.fits[0].floor_ratio = 0.1 + 1.5e-6;
    ASKED(0);
    /* With one, or with a value of it, the rows are what it prints with the fit's totals. */
    s.points[ROWS - 1].value *= 1.001;
    ASKED(0);
    s.points[1].value *= 1.001;
    ASKED(0);
    s.points[ROWS - 1].value *= 1.001;
    s.asked.schedule = NULL;
    ASKED(1);
    s.points[ROWS - 1].value *= 1.001;
    s.asked.schedule = NULL;
    s.asked.value_count = 1;
    ASKED(0);
    s.asked.schedule = NULL;
    s.asked.value_count = 1;
    ASKED(1);
    struct contract_request cosine = request_of("hf", "cosine");
    helper_fit_make(&s.expected, &s.arena, &cosine, &s.plain);
    ASKED(0);
}

static void validate_shares(void **state) {
    (void)state;
    /* A share of either total, rounded to whole updates by no more than one. */
    static const struct {
        double warmup, share;
        int has;
    } shares[] = {{3.0, 0.15, 1},  {3.0, 0.1, 1},    {3.0, 0.2, 1},    {3.0, 0.2002, 0},
                  {3.0, 0.5, 0},   {3.0, 0.07, 1},   {3.0, 0.066, 0},  {5.0, 0.2, 1},
                  {5.0, 0.201, 1}, {5.0, 0.3002, 0}, {5.0, 0.2998, 1}, {0.0, 0.0, 1}};
    open_scene();
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        s.fits[0].warmup = shares[i].warmup;
        if (has_share(&s.fits[0], shares[i].share) != shares[i].has)
            fail_msg("%g as %g of %d or %d", shares[i].warmup, shares[i].share, TOTAL, LATER);
    }
    s.fits[0].segment_count = 1; /* the later total counts only where the fit comes to it */
    s.fits[0].warmup = 3.0;
    assert_int_equal(has_share(&s.fits[0], 0.1), 1);
    assert_int_equal(has_share(&s.fits[0], 0.0999), 0);
    assert_int_equal(has_share(&s.fits[0], 0.2), 1);
}

static void hold_refuted(int expected, int line) {
    const int got = refutes_peak(&s.asked, &s.out);
    if (got != expected) fail_msg("line %d: %d", line, got);
    open_scene();
}
#define REFUTED(expected) hold_refuted(expected, __LINE__)

static void validate_refuted_peaks(void **state) {
    (void)state;
    open_scene();
    REFUTED(0);
    s.asked.lr = real_nan_f64();
    REFUTED(0);
    s.asked.lr = PEAK / 0.94;
    REFUTED(1);
    s.asked.lr = real_nan_f64();
    s.points[0].value = 1.0;
    REFUTED(0);
    s.asked.lr = PEAK / (1.0 - 0.0499);
    REFUTED(0);
    s.asked.lr = PEAK / (1.0 - 0.0501);
    REFUTED(1);
    s.asked.lr = PEAK / 0.94;
    s.fits[0].warmup_hidden = 1; /* the warm-up in front of the rows leaves room for lower peaks */
    REFUTED(1);
    s.asked.lr = PEAK / 0.94;
    s.fits[0].unseen_warmup = 5.0;
    REFUTED(0);
    s.asked.lr = PEAK / 0.94;
    s.fits[0].reached = 1e-4;
    REFUTED(0);
    /* Fits of one total say nothing, and one that changes it and has the peak is enough. */
    s.asked.lr = PEAK / 0.94;
    s.fits[0].segment_count = 1;
    s.fits[0].warmup_hidden = 1;
    REFUTED(1);
    s.asked.lr = PEAK / 0.94;
    s.out.found.count = 2;
    s.fits[1].lr = s.asked.lr;
    REFUTED(0);
    s.asked.lr = PEAK / 0.94;
    s.out.found.count = 2;
    s.fits[0].segment_count = 1;
    s.fits[1].lr = s.asked.lr;
    REFUTED(0);
    /* A row above the peak, by more than half of its last digit and rounding. */
    s.asked.lr = PEAK * (1.0 - 1e-9);
    REFUTED(1);
    s.asked.lr = PEAK * (1.0 + 0x1p-42);
    REFUTED(0);
    s.asked.lr = 0.99 * PEAK;
    for (size_t i = 0; i < ROWS; i++)
        s.points[i].quantum = 0.03 * PEAK;
    REFUTED(0);
    s.asked.lr = 0.99 * PEAK;
    for (size_t i = 0; i < ROWS; i++)
        s.points[i].quantum = 0.01 * PEAK;
    REFUTED(1);
}

/* ---- the same column, some updates on ---- */

static void validate_shifted_columns(void **state) {
    (void)state;
    static const char *const names[] = {"hf",        "accelerate", "hf-4.50",
                                        "olmo-core", "lag1",       "deepspeed-torch"};
    size_t shifted = 0;
    for (size_t a = 0; a < COUNT_OF(names); a++)
        for (size_t b = 0; b < COUNT_OF(names); b++) {
            open_scene();
            struct contract_request of_a = request_of(names[a], "linear");
            struct contract_request of_b = request_of(names[b], "linear");
            helper_fit_make(&s.fits[0], &s.arena, &of_a, &s.plain);
            helper_fit_make(&s.expected, &s.arena, &of_b, &s.plain);
            s.out.expected = &s.expected;
            for (size_t i = 0; i < ROWS; i++)
                s.points[i].value = contract_logged(&s.fits[0].plan, i + 1);
            s.series.count = 14;
            const int by = shift_of(&s.fits[0], &s.out);
            int naive = 0; /* the one shift at which the columns are one, none where they are */
            for (int n = -2; n <= 2; n++) {
                int same = 1;
                for (int k = 1; k <= 14; k++)
                    if (k + n >= 1)
                        same &= fabs(contract_logged(&s.fits[0].plan, (uint64_t)k) -
                                     contract_logged(&s.expected.plan, (uint64_t)(k + n))) <
                                1e-9 * PEAK;
                if (same) naive = n;
            }
            if (by != naive) fail_msg("%s beside %s: %d, %d", names[a], names[b], by, naive);
            shifted += by != 0;
            if (by == 0) continue;
            /* And nothing else may differ. */
            s.fits[0].lr = 2.0 * PEAK;
            assert_int_equal(shift_of(&s.fits[0], &s.out), 0);
            s.fits[0].lr = PEAK;
            s.fits[0].warmup += 1.0;
            assert_int_equal(shift_of(&s.fits[0], &s.out), 0);
            s.fits[0].warmup = WARMUP;
            s.fits[0].steps += 1;
            assert_int_equal(shift_of(&s.fits[0], &s.out), 0);
            s.fits[0].steps = 0;
            assert_int_equal(shift_of(&s.fits[0], &s.out), by);
            s.fits[0].steps = TOTAL;
            s.expected.steps = 0;
            assert_int_equal(shift_of(&s.fits[0], &s.out), by);
            s.expected.steps = TOTAL;
            s.fits[0].stride = 2.0;
            assert_int_equal(shift_of(&s.fits[0], &s.out), 0);
            s.fits[0].stride = 1.0;
            for (int of = 0; of < 2; of++) { /* one that follows losses has no total */
                struct fit *const fit = of == 0 ? &s.fits[0] : &s.expected;
                const struct sched_class *const schedule = fit->schedule;
                fit->schedule = sched_find("reduce_lr_on_plateau");
                assert_true(fit->schedule->feedback);
                assert_int_equal(shift_of(&s.fits[0], &s.out), 0);
                fit->schedule = schedule;
            }
            /* Of fits without a bug any may be the one; behind a bug only the first is asked. */
            s.fits[1] = s.fits[0];
            s.fits[0].lr = 2.0 * PEAK;
            s.out.found.count = 1;
            assert_int_equal(any_shift(&s.out), 0);
            s.out.found.count = 2;
            assert_int_equal(any_shift(&s.out), by);
            s.fits[0].bug = "other_peak";
            assert_int_equal(any_shift(&s.out), 0);
            s.fits[0].lr = PEAK;
            assert_int_equal(any_shift(&s.out), by);
        }
    assert_true(shifted >= 8);
}

/* Three contracts beside an expected one: which of them print its column so many updates on, and
 * which of these train as it does, says the sentence and the bug's name. */
static void validate_words_of_shifts(void **state) {
    (void)state;
    static const char *const names[] = {"hf",        "accelerate", "hf-4.50",
                                        "olmo-core", "lag1",       "deepspeed-torch"};
    enum { NAMES = COUNT_OF(names) };
    size_t seen[6] = {0};
    for (size_t order = 0; order < NAMES * NAMES * NAMES * NAMES; order++) {
        const size_t of[FITS] = {order % NAMES, order / NAMES % NAMES,
                                 order / (NAMES * NAMES) % NAMES};
        const char *const expected = names[order / (NAMES * NAMES * NAMES)];
        struct contract_request request = request_of(expected, "linear");
        const struct fit *other = NULL, *alike = NULL;
        char text[256];
        open_scene();
        helper_fit_make(&s.expected, &s.arena, &request, &s.plain);
        s.known.request.contract = contract_find(expected);
        s.series.count = 14;
        for (size_t f = 0; f < FITS; f++) {
            request = request_of(names[of[f]], "linear");
            helper_fit_make(&s.fits[f], &s.arena, &request, &s.plain);
        }
        for (size_t i = 0; i < ROWS; i++)
            s.points[i].value = contract_logged(&s.fits[0].plan, i + 1);
        s.out.found.count = 1 + (of[1] + of[2]) % FITS; /* those behind are none of the search's */
        s.out.found.last = 14;
        const int by = shift_of(&s.fits[0], &s.out);
        if (by == 0) continue;
        for (size_t f = s.out.found.count; f-- > 0;) {
            int same = 1;
            if (shift_of(&s.fits[f], &s.out) != by) continue;
            for (uint64_t k = 1; k <= 14; k++)
                same &= fabs(fit_applied(&s.fits[f], 0, k) - fit_applied(&s.expected, 0, k)) <
                        1e-9 * PEAK;
            *(same ? &alike : &other) = &s.fits[f];
        }
        static const char *const aways[] = {"two updates behind", "one update behind", "",
                                            "one update ahead of", "two updates ahead of"};
        const char *const away = aways[by + 2];
        const char *bug = NULL;
        if (by > 0)
            bug = other != NULL && alike != NULL ? "lr_ahead_by_one or log_next_lr"
                  : other != NULL                ? "lr_ahead_by_one"
                                                 : "log_next_lr";
        else if (other != NULL)
            bug = alike == NULL && fit_applied(other, 0, 1) == 0.0 &&
                          fit_applied(&s.expected, 0, 1) > 0.0
                      ? "zero_lr_first_step"
                      : "lag1";
        if (other != NULL && alike != NULL)
            snprintf(
                text, sizeof text,
                "fits %s: every LR is %s %s; or %s, which trains as %s and only logs the LR of "
                "another update: the log cannot tell which",
                other->contract->name, away, expected, alike->contract->name, expected);
        else if (alike != NULL)
            snprintf(text, sizeof text,
                     "fits %s, which trains as %s and only logs the LR of another update: every "
                     "printed LR is %s %s",
                     alike->contract->name, expected, away, expected);
        else
            snprintf(text, sizeof text, "fits %s: every LR is %s %s", other->contract->name, away,
                     expected);
        assert_int_equal(say_shift(&s.known, by, &s.arena, &s.out), STATUS_OK);
        assert_string_equal(s.out.words, text);
        assert_string_equal(s.out.bug != NULL ? s.out.bug : "", bug != NULL ? bug : "");
        seen[bug == NULL                              ? 0
             : strcmp(bug, "lag1") == 0               ? 1
             : strcmp(bug, "zero_lr_first_step") == 0 ? 2
             : strcmp(bug, "log_next_lr") == 0        ? 3
             : strcmp(bug, "lr_ahead_by_one") == 0    ? 4
                                                      : 5]++;
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        if (seen[i] == 0) fail_msg("%zu", i);
}

/* The share of a schedule that an update goes on is that of its total, whatever that is. */
static void validate_paces(void **state) {
    (void)state;
    static const struct {
        double total, increment, pace;
    } cases[] = {{20.0, 1.0, 0.05}, {20.0, 2.0, 0.1}, {1.0, 2.0, 2.0},
                 {0.5, 1.0, 2.0},   {0.0, 3.0, 1.0},  {0.5, 0.25, 0.5}};
    open_scene();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        s.fits[0].plan.call.total = cases[i].total;
        s.fits[0].plan.increment = cases[i].increment;
        assert_true(pace(&s.fits[0]) == cases[i].pace);
    }
}

/* ---- peaks that change by a last digit ---- */

static void hold_nudged(int expected, int line) {
    const int got = is_nudged(&s.out.found);
    if (got != expected) fail_msg("line %d: %d", line, got);
}

static void nudge(double scale, size_t count) {
    open_scene();
    s.fits[0].segment_count = 1 + count;
    for (size_t i = 0; i < ROWS; i++) {
        s.points[i].part = 0;
        s.points[i].value = PEAK;
        s.points[i].quantum = 0.001 * PEAK;
    }
    for (size_t n = 1; n <= count; n++) {
        s.segments[0][n].event = FIT_RESCALED;
        s.segments[0][n].scale = scale;
        s.segments[0][n].steps = 0;
    }
}

static void validate_nudges(void **state) {
    (void)state;
    nudge(1.001, 2);
    hold_nudged(1, __LINE__);
    s.out.found.count = 0;
    hold_nudged(0, __LINE__);
    nudge(1.001, 1);
    hold_nudged(0, __LINE__);
    nudge(1.0, 0);
    hold_nudged(0, __LINE__);
    nudge(1.0019, 2);
    hold_nudged(1, __LINE__);
    nudge(1.0021, 2);
    hold_nudged(0, __LINE__);
    nudge(0.9981, 2);
    hold_nudged(1, __LINE__);
    nudge(0.9979, 2);
    hold_nudged(0, __LINE__);
    nudge(1.001, 2);
    s.segments[0][2].event = FIT_SKIP; /* one of another kind says nothing */
    hold_nudged(0, __LINE__);
    nudge(1.001, 2);
    s.points[0].part = 1; /* the log shows a resume elsewhere */
    hold_nudged(1, __LINE__);
    nudge(1.001, 2);
    for (size_t i = BREAK; i < ROWS; i++)
        s.points[i].part = 1;
    hold_nudged(0, __LINE__);
}

/* ---- a bug, or a first update apart ---- */

static void hold_first(int which, int line) {
    const struct fit *const fit = first_apart(&s.known, &s.out.found);
    const int got = fit == NULL ? -1 : (int)(fit - s.fits);
    if (got != which) fail_msg("line %d: %d", line, got);
}

static void open_first(void) {
    open_scene();
    s.out.found.count = 2;
    s.fits[0].bug = "lag1";
    s.fits[0].contract = contract_find("lag1");
    s.fits[0].segment_count = s.fits[1].segment_count = 1;
    s.fits[1].first_differs = 1;
    s.fits[0].simplicity = 0.5;
    s.fits[1].simplicity = 0.5 + FIT_CHECK_SIMPLER - 0.001;
}
#define FIRST(which) (hold_first(which, __LINE__), open_first())

static void validate_first_updates(void **state) {
    (void)state;
    open_first();
    FIRST(1);
    s.fits[0].bug = NULL;
    FIRST(-1);
    s.fits[0].contract = contract_find("hf-4.51"); /* a bug of its total, not of its column */
    FIRST(-1);
    s.out.found.count = 1;
    FIRST(-1);
    s.fits[1].contract = contract_find("accelerate");
    FIRST(-1);
    s.fits[1].first_differs = 0;
    FIRST(-1);
    s.fits[1].bug = "other_peak";
    FIRST(-1);
    s.fits[1].unsound = 1;
    FIRST(-1);
    s.fits[1].stride = 0.5;
    FIRST(-1);
    s.fits[1].segment_count = 2;
    FIRST(-1);
    s.fits[1].skip_count = 1;
    FIRST(-1);
    s.fits[1].simplicity = 0.5 + FIT_CHECK_SIMPLER;
    FIRST(-1);
    s.out.found.count = 3;
    s.fits[2] = s.fits[1];
    s.fits[1].unsound = 1;
    FIRST(2);
    s.fits[0].contract = s.known.request.contract; /* the best fit itself is none */
    s.fits[0].first_differs = 1;
    s.fits[1].first_differs = 0;
    FIRST(-1);
}

/* ---- too little is known ---- */

static void hold_few(int expected, int line) {
    const int got = too_few(&s.series, &s.known, &s.asked, s.refuted, &s.out);
    if (got != expected) fail_msg("line %d: %d", line, got);
    open_scene();
    s.out.fitted = 0;
}
#define FEW(expected) hold_few(expected, __LINE__)

/* The first contract that counts in a unit. */
static const struct contract *counting(int unit) {
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].unit == unit) return &all[i];
    fail_msg("no contract counts in unit %d", unit);
    return NULL;
}

static void validate_too_little(void **state) {
    (void)state;
    const struct contract *const tokens = counting(CONTRACT_UNIT_TOKEN);
    const struct contract *const samples = contract_find("megatron");
    const struct contract *const epochs = counting(CONTRACT_UNIT_EPOCH);
    struct contract_request root = request_of("megatron", "inverse-square-root");
    assert_int_equal(samples->unit, CONTRACT_UNIT_SAMPLE);
    open_scene();
    s.out.fitted = 0;
    FEW(0);
    s.known.request.contract = tokens;
    s.known.request.tokens = 0;
    FEW(1);
    s.known.request.contract = tokens;
    s.known.request.tokens = 1;
    FEW(0);
    s.known.request.tokens = 0;
    FEW(0); /* another contract needs none */
    /* Nothing fits, and the schedule was guessed. */
    s.out.found.count = 0;
    s.out.fitted = FIT_OF_SCHEDULE;
    FEW(1);
    s.out.found.count = 0;
    FEW(0);
    s.out.found.count = 0;
    s.out.fitted = FIT_OF_SCHEDULE;
    s.out.found.why = FIT_WHY_NOT_FINITE;
    FEW(0);
    s.out.fitted = FIT_OF_SCHEDULE;
    FEW(0); /* the log says its later total */
    s.out.fitted = FIT_OF_SCHEDULE;
    s.fits[0].segment_count = 1;
    FEW(0);
    /* An inverse square root of samples whose number nobody said. */
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    FEW(0); /* the peak and the schedule are given */
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.schedule = NULL;
    FEW(1);
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.lr = real_nan_f64();
    FEW(1);
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request = root;
    s.known.request.lr = real_nan_f64();
    FEW(0);
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.batch = 4;
    s.known.request.lr = real_nan_f64();
    FEW(0);
    helper_fit_make(&s.fits[0], &s.arena, &root, &s.plain);
    s.known.request.global_batch = 0;
    s.known.request.lr = real_nan_f64();
    FEW(0); /* hf counts updates */
    s.fits[0].segment_count = 1;
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.lr = real_nan_f64();
    FEW(0); /* a line has an end of its own */
    s.out.found.count = 0;
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.lr = real_nan_f64();
    FEW(1);
    /* Epochs of a length that nothing says. */
    s.fits[0].segment_count = 1;
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 0;
    FEW(1);
    s.fits[0].segment_count = 1;
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 1;
    FEW(0);
    s.fits[0].segment_count = 1;
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 0;
    s.known.request.dataset = 1;
    FEW(0);
    s.fits[0].segment_count = 1;
    s.fits[0].epoch_updates = 1;
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 0;
    FEW(0);
    s.out.found.count = 0;
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 0;
    FEW(1);
    /* A total that nobody said, beside a number that was guessed. */
    s.out.fitted = FIT_OF_FLOOR;
    FEW(0); /* the log says the later total */
    s.out.fitted = FIT_OF_FLOOR;
    s.known.run_steps = 0;
    FEW(1);
    s.out.fitted = FIT_OF_FLOOR;
    s.known.run_steps = 0;
    s.out.found.count = 2;
    s.fits[1].segment_count = 1; /* the best fit is asked */
    FEW(1);
    s.known.run_steps = 0;
    FEW(0);
    s.out.fitted = FIT_OF_FLOOR;
    s.known.run_steps = 0;
    s.out.found.why = FIT_WHY_NOT_FINITE;
    FEW(0);
    s.out.fitted = FIT_OF_FLOOR;
    s.known.run_steps = 0;
    s.fits[0].segment_count = 1;
    FEW(0);
    s.out.fitted = FIT_OF_FLOOR;
    s.known.run_steps = 0;
    s.asked.lr = PEAK / 0.9; /* the rows refute that peak, whatever the totals are */
    FEW(0);
}

static void validate_guessed_numbers(void **state) {
    (void)state;
    static const uint32_t guessed[] = {FIT_OF_LR, FIT_OF_STEPS, FIT_OF_WARMUP};
    open_scene();
    for (size_t g = 0; g < COUNT_OF(guessed) + 1; g++) {
        const int counts = g < COUNT_OF(guessed);
        const uint32_t fitted = counts ? guessed[g] : FIT_OF_FLOOR;
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        FEW(0);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.series.count = 3;
        FEW(0);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.series.count = 2;
        FEW(counts);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.out.found.why = FIT_WHY_CONSTANT;
        FEW(counts);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.out.found.why = FIT_WHY_CONSTANT;
        s.refuted = 1;
        FEW(0);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.series.count = 2;
        s.refuted = 1;
        FEW(counts);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.out.found.why = FIT_WHY_COARSE;
        FEW(0);
        s.out.fitted = fitted;
        s.out.found.count = 0;
        FEW(counts); /* that a search finds nothing proves nothing, wherever the log begins */
        s.out.fitted = fitted;
        s.out.found.count = 0;
        s.points[0].update = 2;
        FEW(counts);
        s.out.fitted = fitted;
        s.fits[0].segment_count = 1;
        s.points[0].update = 2;
        FEW(0);
    }
}

/* ---- what the searches answer ---- */

static struct fit_set front_given;
static struct fit_stop stops_given[2];
static struct fit_clamp clamps_given[2];
static size_t fronts, stops, clamps, bad_given;

enum status given_series(const struct series *series, const struct fit_known *known,
                         struct arena *arena, struct fit_set *out) {
    (void)arena;
    fronts++;
    assert_ptr_equal(series->points, s.points);
    assert_int_equal(series->count, s.out.found.first_bad);
    assert_true(known->plain && known->request.steps == 0 && known->run_steps == 0);
    assert_ptr_equal(known->request.contract, s.known.request.contract);
    *out = front_given;
    return STATUS_OK;
}
/* The first question is about the expected contract, the second about any. */
static void check_question(const struct fit_known *known, size_t asked) {
    assert_null(known->possible);
    assert_ptr_equal(known->request.contract, asked == 0 ? s.known.request.contract : NULL);
    assert_ptr_equal(known->request.schedule, asked == 0 ? s.known.request.schedule : NULL);
    assert_int_equal(known->request.value_count, asked == 0 ? 1 : 0);
}
enum status given_stop(const struct series *series, const struct fit_known *known,
                       const struct fit_set *set, struct arena *arena, struct fit_stop *out) {
    (void)arena, (void)set;
    assert_ptr_equal(series, &s.series);
    check_question(known, stops);
    *out = stops_given[stops++];
    return STATUS_OK;
}
enum status given_clamp(const struct series *series, const struct fit_known *known,
                        const struct fit_set *set, struct arena *arena, struct fit_clamp *out) {
    (void)arena, (void)set;
    assert_ptr_equal(series, &s.series);
    check_question(known, clamps);
    *out = clamps_given[clamps++];
    return STATUS_OK;
}
enum status given_expect(const struct series *series, const struct fit_known *known,
                         const struct fit *skipping, struct arena *arena, struct fit_check *out) {
    (void)series, (void)known, (void)arena;
    assert_null(skipping);
    out->expected = &s.expected;
    out->bad_points = bad_given;
    out->first = 4;
    return STATUS_OK;
}

static void open_answers(void) {
    static const char *const possible[] = {"hf", NULL};
    open_scene();
    s.known.possible = possible;
    s.known.request.value_count = 1;
    s.known.request.values[0].key = "power";
    s.known.request.values[0].text = "1";
    front_given = (struct fit_set){.series = &s.series, .fits = &s.fits[1], .count = 2};
    memset(stops_given, 0, sizeof stops_given);
    memset(clamps_given, 0, sizeof clamps_given);
    fronts = stops = clamps = 0;
    bad_given = 5;
    for (size_t f = 0; f < FITS; f++)
        s.fits[f].text = f == 0 ? "FIRST" : f == 1 ? "SECOND" : "THIRD";
}

/* ---- peaks that rows refute by themselves ---- */

static void open_front(void) {
    open_answers();
    s.out.found.count = 0;
    s.out.found.first_bad = 20;
    s.asked.lr = 2.0 * PEAK;
    for (size_t i = 0; i < ROWS; i++)
        s.points[i].value = PEAK * (1.0 - 0.01 * (double)i);
}
#define FRONT(expected)                                                                            \
    do {                                                                                           \
        const struct fit *refuting;                                                                \
        assert_int_equal(front_refutes(&s.known, &s.asked, &s.arena, &s.out, &refuting),           \
                         STATUS_OK);                                                               \
        if ((refuting != NULL) != (expected)) fail_msg("line %d", __LINE__);                       \
        if (refuting != NULL) assert_ptr_equal(refuting, &s.fits[1]);                              \
        open_front();                                                                              \
    } while (0)

static void validate_fronts(void **state) {
    (void)state;
    open_front();
    FRONT(1);
    s.asked.lr = (double)NAN;
    FRONT(0);
    s.out.found.count = 1;
    FRONT(0);
    for (size_t rows = 0; rows < 30; rows++) { /* rows in front of the first bad one */
        s.out.found.first_bad = rows;
        FRONT(rows >= FRONT_ROWS && rows <= ROWS);
    }
    for (size_t moves = 0; moves < 19; moves++) { /* and moves among them */
        for (size_t i = 0; i < ROWS; i++)
            s.points[i].value = PEAK * (1.0 - 0.01 * (double)(i < moves ? i : moves));
        FRONT(moves >= FRONT_MOVES);
    }
    for (size_t at = 0; at < ROWS; at++) { /* printed finely, but for the first row */
        s.points[at].quantum = 0.99e-5 * s.points[at].value;
        FRONT(1);
        s.points[at].quantum = 1.01e-5 * s.points[at].value;
        FRONT(at == 0 || at >= 20);
    }
    front_given.count = 0;
    FRONT(0);
    for (size_t f = 1; f < 3; f++) { /* one of them has that peak, within a twentieth */
        s.fits[f].lr = s.asked.lr * 1.0499;
        FRONT(0);
        s.fits[f].lr = s.asked.lr * 0.9501;
        FRONT(0);
        s.fits[f].lr = s.asked.lr * 1.0501;
        FRONT(1);
        s.fits[f].lr = s.asked.lr * 0.9499;
        FRONT(1);
    }
}

static void validate_highest_peaks(void **state) {
    (void)state;
    open_scene();
    s.fits[0].segment_count = 1;
    s.fits[0].warmup_hidden = 1;
    s.points[0].update = 8; /* behind the warm-up of 3 updates, in front of the end at 20 */
    s.points[0].value = fit_logged(&s.fits[0], 0, 8);
    /* The line from update 0 has (20 - 7) / 20 of its peak where that from 3 has (20 - 7) / 17. */
    const double highest = PEAK * 20.0 / 17.0;
    assert_true(fabs(highest_peak(&s.fits[0], &s.series) / highest - 1.0) < 1e-12);
    assert_true(has_other_peak(&s.fits[0], highest * 1.0501, &s.series));
    assert_false(has_other_peak(&s.fits[0], highest * 1.0499, &s.series));
    assert_false(has_other_peak(&s.fits[0], 0.1 * highest, &s.series)); /* it may lie below */
    s.points[0].update = 40; /* behind the end no peak is too high */
    assert_true(isinf(highest_peak(&s.fits[0], &s.series)));
    assert_false(has_other_peak(&s.fits[0], 1.0, &s.series));
}

static void validate_schedules_above_their_peak(void **state) {
    (void)state;
    size_t count = 0, above = 0;
    const struct sched_class *const *const all = sched_classes();
    for (size_t i = 0; all[i] != NULL; i++) {
        count++;
        const int may = may_exceed_peak(all[i]);
        above += (size_t)may;
        assert_int_equal(may, strcmp(all[i]->name, "deepspeed.lr_range_test") == 0 ||
                                  sched_row(all[i], "stages") != NULL ||
                                  sched_row(all[i], "peaks") != NULL);
        open_scene();
        s.asked.lr = 0.9 * PEAK;
        s.expected.schedule = all[i];
        assert_int_equal(lies_above_peak(&s.asked, &s.out), !may);
    }
    assert_true(above >= 2 && above < count);
    open_scene();
    s.asked.lr = 0.9 * PEAK;
    s.out.expected = NULL;
    assert_true(lies_above_peak(&s.asked, &s.out));
}

/* ---- the log's own contract first ---- */

static void open_own(void) {
    open_answers();
    s.out.found.count = 3;
    s.fits[0].contract = contract_find("torchtitan");
    s.fits[2].contract = contract_find("torchtitan");
    s.fits[0].simplicity = 0.25;
    s.fits[1].simplicity = 0.25 + 0.49;
}
#define OWN(first, second, third)                                                                  \
    do {                                                                                           \
        assert_int_equal(put_own_first(&s.known, &s.arena, &s.out.found), STATUS_OK);              \
        assert_int_equal(s.out.found.count, 3);                                                    \
        if (strcmp(s.out.found.fits[0].text, first) != 0 ||                                        \
            strcmp(s.out.found.fits[1].text, second) != 0 ||                                       \
            strcmp(s.out.found.fits[2].text, third) != 0)                                          \
            fail_msg("line %d", __LINE__);                                                         \
        open_own();                                                                                \
    } while (0)
#define MOVED OWN("SECOND", "FIRST", "THIRD")
#define LEFT OWN("FIRST", "SECOND", "THIRD")

static void validate_own_first(void **state) {
    (void)state;
    open_own();
    MOVED;
    s.fits[1].simplicity = 0.25 + 0.51;
    LEFT;
    s.fits[0].contract = contract_find("hf"); /* it is first already */
    LEFT;
    s.known.possible = NULL; /* any framework may have written it */
    LEFT;
    s.fits[1].contract = contract_find("torchtitan"); /* none is the log's own */
    LEFT;
    s.fits[1].contract = contract_find("torchtitan");
    s.fits[2].contract = contract_find("hf");
    OWN("THIRD", "FIRST", "SECOND");
    /* It says the same: bug, segments, first update, pace, total, skips, peak and warm-up. */
    s.fits[0].bug = "lag1";
    LEFT;
    s.fits[1].bug = "lag1";
    LEFT;
    s.fits[0].bug = "lag1";
    s.fits[1].bug = "other_peak";
    LEFT;
    s.fits[0].bug = s.fits[1].bug = "lag1";
    MOVED;
    s.fits[1].segment_count = 1;
    LEFT;
    s.fits[1].segment_count = s.fits[0].segment_count = 3;
    MOVED;
    for (size_t seg = 0; seg < 3; seg++) {
        s.fits[1].segment_count = s.fits[0].segment_count = 3;
        s.segments[1][seg].point++;
        LEFT;
        s.fits[1].segment_count = s.fits[0].segment_count = 3;
        s.segments[1][seg].event = FIT_JUMP;
        LEFT;
    }
    s.fits[1].first_differs = 1;
    LEFT;
    s.fits[1].stride = 2.0;
    LEFT;
    s.fits[1].steps++;
    LEFT;
    struct fit_skip skip = {.first = 3, .last = 3, .count = 1};
    s.fits[1].skips = &skip;
    s.fits[1].skip_count = 1;
    s.fits[1].plan.skipped_count = 1;
    LEFT;
    s.fits[1].lr *= 1.0 + 1e-8;
    LEFT;
    s.fits[1].lr *= 1.0 + 1e-10;
    MOVED;
    s.fits[1].warmup += 1e-6;
    LEFT;
}

/* ---- the contract that was asked for is named ---- */

static void hold_named(int which, int line) {
    const struct fit *const fit = named(&s.known, &s.out.found);
    if (fit - s.fits != which) fail_msg("line %d: %d", line, (int)(fit - s.fits));
}
static void open_named(void) {
    open_own();
    s.known.request.contract = contract_find("hf");
    s.fits[1].simplicity = 0.25 + OWN_FIRST;
}
#define NAMED(which) (hold_named(which, __LINE__), open_named())

static void validate_named(void **state) {
    (void)state;
    open_named();
    NAMED(1);
    s.fits[1].simplicity = 0.25 + 1.01 * OWN_FIRST;
    NAMED(0);
    s.fits[2].contract = contract_find("hf"); /* the first of them */
    NAMED(1);
    s.fits[1].bug = "lag1";
    NAMED(0);
    s.fits[1].bug = "lag1";
    s.fits[2].contract = contract_find("hf");
    NAMED(2);
    s.fits[0].contract = contract_find("hf");
    NAMED(0);
    s.known.request.contract = contract_find("olmo-core");
    NAMED(0);
    s.known.possible = NULL; /* whoever wrote the log */
    NAMED(1);
}

/* ---- other lengths, or those that were given at another pace ---- */

static void hold_pace(int which, int line) {
    const struct fit *const fit = at_other_pace(&s.known, &s.out.found);
    const int got = fit == NULL ? -1 : (int)(fit - s.fits);
    if (got != which) fail_msg("line %d: %d", line, got);
}

static void open_pace(void) {
    open_answers();
    s.known.request.contract = contract_find("hf");
    s.known.request.warmup = 40.0;
    s.known.request.steps = 1000;
    s.out.found.count = 2;
    for (size_t f = 0; f < 2; f++) {
        s.fits[f].contract = s.known.request.contract;
        s.fits[f].segment_count = 1;
        s.fits[f].takes_warmup = 1;
        s.fits[f].warmup = f == 0 ? 20.0 : 40.0;
        s.fits[f].steps = 1000;
        s.fits[f].simplicity = f == 0 ? 0.5 : 0.5 + FIT_CHECK_SIMPLER - 0.001;
    }
    s.fits[1].stride = 2.0;
}
#define PACE(which) (hold_pace(which, __LINE__), open_pace())

static void validate_other_paces(void **state) {
    static struct fit_skip skip = {.first = 3, .last = 3, .count = 1};
    (void)state;
    open_pace();
    PACE(1);
    s.fits[1].simplicity = 0.5 + FIT_CHECK_SIMPLER;
    PACE(-1);
    s.out.found.count = 1;
    PACE(-1);
    for (size_t f = 0; f < 2; f++) { /* both are plain but for the pace of the second */
        s.fits[f].contract = contract_find("lightning-step");
        PACE(-1);
        s.fits[f].segment_count = 2;
        PACE(-1);
        s.fits[f].first_differs = 1;
        PACE(-1);
        s.fits[f].skips = &skip;
        s.fits[f].skip_count = 1;
        s.fits[f].plan.skipped_count = 1;
        PACE(-1);
        s.fits[f].stride = 3.0 - s.fits[f].stride;
        PACE(-1);
    }
    s.fits[1].unsound = 1;
    PACE(-1);
    s.fits[1].warmup = 41.0;
    PACE(-1);
    s.fits[1].steps = 1001;
    PACE(-1);
    s.known.request.warmup = 20.0; /* the first has all that was given */
    PACE(-1);
    s.known.request.warmup = (double)NAN; /* nobody gave one */
    PACE(-1);
    s.fits[0].takes_warmup = 0;
    PACE(-1);
    s.fits[0].warmup = 40.0;
    PACE(-1);
    s.fits[0].warmup = 40.0; /* the total is another one */
    s.fits[0].steps = 500;
    PACE(1);
    s.fits[0].warmup = 40.0;
    s.fits[0].steps = 500;
    s.known.request.steps = 0;
    PACE(-1);
    s.fits[0].warmup = 40.0; /* the schedule has none */
    s.fits[0].steps = 0;
    PACE(-1);
    s.fits[0].contract = contract_find("torchtitan"); /* which a fit of hf says, too */
    s.out.found.count = 3;
    s.fits[2] = s.fits[0];
    s.fits[2].contract = contract_find("hf");
    PACE(1);
}

/* ---- the words, whole, and in which order they are tried ---- */

static void asked_words(const char *words, const char *bug, int32_t verdict, const char *needs,
                        int number) {
    const struct fit_set all = s.out.found;
    assert_int_equal(fit_check_mismatch(&s.series, &s.known, &s.asked, &all, &s.arena, &s.out),
                     STATUS_OK);
    if (strcmp(s.out.words, words) != 0) fail_msg("line %d: %s", number, s.out.words);
    if ((s.out.bug == NULL) != (bug == NULL) || (bug != NULL && strcmp(s.out.bug, bug) != 0))
        fail_msg("line %d: bug %s", number, s.out.bug != NULL ? s.out.bug : "none");
    if (s.out.verdict != verdict) fail_msg("line %d: verdict %d", number, s.out.verdict);
    if ((s.out.needs == NULL) != (needs == NULL) ||
        (needs != NULL && strncmp(s.out.needs, needs, strlen(needs)) != 0))
        fail_msg("line %d: needs %s", number, s.out.needs != NULL ? s.out.needs : "nothing");
}
/* One total, a peak of its own and all numbers given: a plain mismatch. */
static void open_words(void) {
    open_answers();
    s.out.fitted = 0;
    s.fits[0].segment_count = 1;
    s.fits[0].lr = 1.5e-4;
}
#define WORDS(words, bug, verdict, needs)                                                          \
    do {                                                                                           \
        asked_words(words, bug, verdict, needs, __LINE__);                                         \
        open_words();                                                                              \
    } while (0)
#define MORE_ROWS                                                                                  \
    "more rows, or --schedule, --lr, --warmup, --steps, --min-lr-ratio and --value of the "        \
    "training"

static void validate_words(void **state) {
    (void)state;
    open_words();
    WORDS("fits FIRST", NULL, FIT_FAIL, NULL);
    s.fits[0].bug = "other_peak";
    WORDS("fits FIRST", "other_peak", FIT_FAIL, NULL);
    bad_given = 0;
    WORDS("fits FIRST", NULL, FIT_UNDECIDED, MORE_ROWS);
    s.out.found.count = 0;
    WORDS("fits no shipped contract", NULL, FIT_FAIL, NULL);
    s.out.found.count = 0;
    s.out.found.partial = "PARTIAL";
    s.out.found.first_bad = 7;
    WORDS("fits no shipped contract; its first 7 rows fit PARTIAL", NULL, FIT_FAIL, NULL);
    s.out.found.count = 0; /* nothing was departed from where the schedule was guessed */
    s.out.fitted = FIT_OF_SCHEDULE;
    WORDS("fits no shipped contract", NULL, FIT_UNDECIDED, MORE_ROWS);
    s.fits[0].bug = "lag1";
    s.fits[0].contract = contract_find("lag1");
    s.out.found.count = 2;
    s.fits[1].segment_count = 1;
    s.fits[1].first_differs = 1;
    WORDS("fits SECOND; or FIRST", NULL, FIT_FAIL, NULL);
    open_pace();
    WORDS("fits FIRST; or SECOND", NULL, FIT_FAIL, NULL);
    open_pace();
    s.fits[0].bug = "other_warmup";
    WORDS("fits FIRST; or SECOND", "other_warmup", FIT_FAIL, NULL);
    open_pace();
    s.fits[1].bug = "xP_scheduler";
    WORDS("fits FIRST; or SECOND", NULL, FIT_FAIL, NULL);
    open_pace();
    s.fits[0].bug = "other_warmup";
    s.fits[1].bug = "xP_scheduler";
    WORDS("fits FIRST; or SECOND", "other_warmup or xP_scheduler", FIT_FAIL, NULL);
    open_pace();
    s.fits[0].contract = contract_find("torchtitan");
    s.fits[1].stride = 1.0;
    s.fits[1].warmup = 20.0;
    WORDS("fits SECOND", NULL, FIT_FAIL, NULL);
    /* An LR that is no number, at update 1 and behind it. */
    for (uint64_t update = 1; update < 3; update++)
        for (int finite = 0; finite < 2; finite++) {
            s.out.found.why = FIT_WHY_NOT_FINITE;
            s.points[4].update = update;
            if (!finite) s.points[4].value = (double)INFINITY;
            WORDS("fits FIRST",
                  finite        ? NULL
                  : update == 1 ? "zero_warmup_division"
                                : "lr_not_finite",
                  FIT_FAIL, NULL);
        }
    const struct contract *const epochs = counting(CONTRACT_UNIT_EPOCH);
    s.known.request.contract = epochs;
    s.known.request.updates_per_epoch = 0;
    WORDS("fits FIRST", NULL, FIT_UNDECIDED,
          "--updates-per-epoch, or --dataset, --batch and --accumulate: the schedule moves once "
          "per epoch, and the log does not show how long one is");
    s.known.request.contract = counting(CONTRACT_UNIT_TOKEN);
    s.known.request.tokens = 0;
    WORDS("fits FIRST", NULL, FIT_UNDECIDED,
          "--tokens: tokens per update, in which the warm-up is rounded");
}

static void validate_words_of_totals(void **state) {
    (void)state;
    open_answers();
    asked_words("every printed LR agrees with FIRST: it is the expected contract, and its total "
                "changed, which is sound where a resume was meant to change it",
                NULL, FIT_UNDECIDED,
                "--steps, if one total was meant for the whole run, or a log of each part alone",
                __LINE__);
    open_answers();
    s.asked.lr = 3e-4;
    asked_words("fits FIRST: its total is not all that differs from what was asked", NULL, FIT_FAIL,
                NULL, __LINE__);
    open_answers();
    s.known.run_steps = 0; /* nobody said the later total */
    asked_words("fits no shipped contract with one total, and nothing says another one", NULL,
                FIT_UNDECIDED, MORE_ROWS, __LINE__);
    open_answers();
    s.known.run_steps = 0;
    s.asked.lr = 3e-4;
    asked_words("fits FIRST: the rows refute the peak that was asked for, whatever the totals are",
                NULL, FIT_FAIL, NULL, __LINE__);
    open_answers();
    s.known.run_steps = 0;
    s.asked.lr = 1e-4; /* a row lies above it, and nothing else would decide */
    s.out.fitted = 0;
    bad_given = 5;
    asked_words("fits FIRST: the rows refute the peak that was asked for, whatever the totals are",
                NULL, FIT_FAIL, NULL, __LINE__);
}

/* A mismatch that stays undecided fails where a row lies above the peak, or the rows in front of
 * the first bad one show another. */
static void validate_peaks_that_fail(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        const int above = how & 1, front = how & 2, agrees = how & 4;
        open_words();
        s.out.fitted = FIT_OF_SCHEDULE;
        s.out.found.count = 0;
        s.out.found.first_bad = front ? 20 : 0;
        s.out.found.partial = "PARTIAL";
        s.asked.lr = above ? 0.5 * PEAK : 2.0 * PEAK;
        bad_given = agrees ? 0 : 5;
        const int fails = !agrees && (above || front);
        asked_words(fails && !above ? "fits no shipped contract; its first 20 rows fit SECOND, and "
                                      "no peak near the one that was asked for"
                    : front         ? "fits no shipped contract; its first 20 rows fit PARTIAL"
                                    : "fits no shipped contract; its first 0 rows fit PARTIAL",
                    NULL, fails ? FIT_FAIL : FIT_UNDECIDED, fails ? NULL : MORE_ROWS, __LINE__);
        assert_int_equal(fronts, !agrees && !above && front ? 1 : 0);
    }
}

#define STANDS "in front of update 13 it fits SECOND, and from there on the LR stands still"
static void open_stand(void) {
    open_words();
    stops_given[0] = (struct fit_stop){.fit = &s.fits[1], .point = 12};
}
#define STANDING(words, bug, verdict, needs)                                                       \
    do {                                                                                           \
        asked_words(words, bug, verdict, needs, __LINE__);                                         \
        open_stand();                                                                              \
    } while (0)

static void validate_stops(void **state) {
    (void)state;
    static const char floor[] = "--schedule and --min-lr-ratio of the training, or whether its "
                                "loop holds the LR from below";
    open_stand();
    STANDING(STANDS "; or it fits FIRST", NULL, FIT_FAIL, NULL);
    s.fits[0].bug = "other_peak";
    STANDING(STANDS "; or it fits FIRST", "schedule_stands_still or other_peak", FIT_FAIL, NULL);
    s.out.found.count = 0;
    STANDING(STANDS, "schedule_stands_still", FIT_FAIL, NULL);
    stops_given[0].open = 1; /* that line stands in the words already */
    STANDING("fits FIRST", NULL, FIT_FAIL, NULL);
    stops_given[1] = stops_given[0];
    stops_given[0].fit = NULL; /* of any contract */
    STANDING(STANDS "; or it fits FIRST", NULL, FIT_FAIL, NULL);
    for (int how = 0; how < 8; how++) { /* what somebody may have typed, or a loop holds */
        const int held = how & 1, typed = how & 2, guessed = how & 4;
        s.fits[0].bug = "other_peak";
        stops_given[0].held = held != 0;
        stops_given[0].typed = typed != 0;
        s.out.fitted = guessed ? FIT_OF_SCHEDULE : 0;
        s.points[12].value = 1.25e-4;
        const int meant = held || (typed && guessed);
        STANDING(held ? "in front of update 13 it fits SECOND, and from there on the LR is held "
                        "from below at 0.000125"
                      : STANDS "; or it fits FIRST",
                 meant ? NULL : "schedule_stands_still or other_peak",
                 meant && guessed ? FIT_UNDECIDED : FIT_FAIL, meant && guessed ? floor : NULL);
    }
}

static void validate_clamps(void **state) {
    (void)state;
    for (int how = 0; how < 16; how++) {
        const int above = how & 1, any = how & 2, guessed = how & 4, bug = how & 8;
        open_words();
        clamps_given[any ? 1 : 0] =
            (struct fit_clamp){.fit = &s.fits[2], .level = 1e-5, .above = above, .rows = 6};
        s.out.fitted = guessed ? FIT_OF_SCHEDULE : 0;
        if (bug) s.fits[0].bug = "other_peak"; /* a bug is said first */
        asked_words(bug     ? "fits FIRST"
                    : above ? "it fits THIRD, whose LR is held from above at 1e-05 in 6 rows"
                            : "it fits THIRD, whose LR is held from below at 1e-05 in 6 rows",
                    bug ? "other_peak" : NULL, guessed && !bug ? FIT_UNDECIDED : FIT_FAIL,
                    guessed && !bug
                        ? "--schedule of the training, or whether its loop holds the LR there"
                        : NULL,
                    __LINE__);
        assert_int_equal(clamps, bug ? 0 : any ? 2 : 1);
    }
    /* Peaks that change by a last digit. */
    for (int guessed = 0; guessed < 2; guessed++) {
        open_answers();
        for (size_t i = 0; i < ROWS; i++) {
            s.points[i].part = 0;
            s.points[i].quantum = 0.001 * PEAK;
        }
        for (size_t n = 1; n <= 2; n++) {
            s.segments[0][n].event = FIT_RESCALED;
            s.segments[0][n].scale = 1.001;
            s.segments[0][n].steps = 0;
        }
        s.fits[0].segment_count = 3;
        s.fits[0].bug = "other_peak";
        s.out.fitted = guessed ? FIT_OF_SCHEDULE : 0;
        asked_words(guessed ? "fits no shipped contract without several changes of the peak, none "
                              "of which is more than two printed steps"
                            : "fits FIRST",
                    guessed ? NULL : "other_peak", guessed ? FIT_UNDECIDED : FIT_FAIL,
                    guessed ? "--schedule of the training, or more digits" : NULL, __LINE__);
    }
}

/* A line that ends on its way to a floor that nobody would type. */
static void validate_lines_on_their_way(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        open_words();
        s.fits[0].floor_ratio = how == 1 ? 0.1 : 0.1234;
        s.fits[0].steps = 40;
        s.out.found.last = how == 2 ? 42 : 41;
        s.out.fitted = how == 3 ? 0 : FIT_OF_SCHEDULE;
        s.known.run_steps = how == 4 ? 0 : how == 5 ? 40 : LATER;
        if (how == 6) s.fits[0].bug = "other_peak";
        if (how == 7) s.fits[0].segment_count = 2, s.segments[0][1].event = FIT_SKIP;
        asked_words("fits FIRST", how == 6 ? "other_peak" : NULL,
                    how == 0 ? FIT_UNDECIDED : FIT_FAIL,
                    how == 0 ? "--schedule and --min-lr-ratio of the training, or rows behind the "
                               "end of the decay: a line to another floor prints the same"
                             : NULL,
                    __LINE__);
    }
}

static int close_scene(void **state) {
    (void)state;
    arena_close(&s.arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_goes_on),
        cmocka_unit_test(validate_what_was_asked),
        cmocka_unit_test(validate_shares),
        cmocka_unit_test(validate_refuted_peaks),
        cmocka_unit_test(validate_shifted_columns),
        cmocka_unit_test(validate_words_of_shifts),
        cmocka_unit_test(validate_paces),
        cmocka_unit_test(validate_nudges),
        cmocka_unit_test(validate_first_updates),
        cmocka_unit_test(validate_named),
        cmocka_unit_test(validate_other_paces),
        cmocka_unit_test(validate_too_little),
        cmocka_unit_test(validate_guessed_numbers),
        cmocka_unit_test(validate_fronts),
        cmocka_unit_test(validate_highest_peaks),
        cmocka_unit_test(validate_schedules_above_their_peak),
        cmocka_unit_test(validate_own_first),
        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_words_of_totals),
        cmocka_unit_test(validate_peaks_that_fail),
        cmocka_unit_test(validate_stops),
        cmocka_unit_test(validate_clamps),
        cmocka_unit_test(validate_lines_on_their_way),

    };
    return cmocka_run_group_tests(tests, NULL, close_scene);
}
