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
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_mismatch.c" /* for the conditions, which no other file asks for */

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
    struct contract_request request;
    contract_request_init(&request);
    request.contract = contract_find(contract);
    assert_non_null(request.contract);
    request.schedule = schedule;
    request.lr = PEAK;
    request.warmup = WARMUP;
    request.steps = TOTAL;
    request.processes = 2;
    request.global_batch = 8;
    request.updates_per_epoch = 4;
    return request;
}

static void make_fit(struct fit *fit, const struct contract_request *request,
                     const struct fit_segment *segments) {
    memset(fit, 0, sizeof *fit);
    assert_int_equal(contract_resolve(request, &s.arena, &fit->plan), STATUS_OK);
    fit->contract = request->contract;
    fit->schedule = fit->plan.schedule;
    fit->schedule_name = request->schedule;
    fit->parameters = "";
    fit->text = "a fit";
    fit->lr = request->lr;
    fit->warmup = request->warmup;
    fit->takes_warmup = 1;
    fit->steps = request->steps;
    fit->floor_ratio = real_nan_f64();
    fit->stride = 1.0;
    fit->segments = segments;
    fit->segment_count = 1;
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
    make_fit(&s.expected, &later, &s.plain);
    for (size_t f = 0; f < FITS; f++) {
        make_fit(&s.fits[f], &s.asked, s.segments[f]);
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
    make_fit(&s.expected, &cosine, &s.plain);
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
            make_fit(&s.fits[0], &of_a, &s.plain);
            make_fit(&s.expected, &of_b, &s.plain);
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
    make_fit(&s.fits[0], &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    FEW(0); /* the peak and the schedule are given */
    make_fit(&s.fits[0], &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.schedule = NULL;
    FEW(1);
    make_fit(&s.fits[0], &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.lr = real_nan_f64();
    FEW(1);
    make_fit(&s.fits[0], &root, &s.plain);
    s.known.request = root;
    s.known.request.lr = real_nan_f64();
    FEW(0);
    make_fit(&s.fits[0], &root, &s.plain);
    s.known.request = root;
    s.known.request.global_batch = 0;
    s.known.request.batch = 4;
    s.known.request.lr = real_nan_f64();
    FEW(0);
    make_fit(&s.fits[0], &root, &s.plain);
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
        FEW(0); /* the log begins at update 1 */
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

static int close_scene(void **state) {
    (void)state;
    arena_close(&s.arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_goes_on),    cmocka_unit_test(validate_what_was_asked),
        cmocka_unit_test(validate_shares),          cmocka_unit_test(validate_refuted_peaks),
        cmocka_unit_test(validate_shifted_columns), cmocka_unit_test(validate_nudges),
        cmocka_unit_test(validate_first_updates),   cmocka_unit_test(validate_too_little),
        cmocka_unit_test(validate_guessed_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, close_scene);
}
