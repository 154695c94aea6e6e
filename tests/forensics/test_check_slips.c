/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Skipped updates that nothing shows, and slips that print the same rows, condition by condition:
 * from a scene in which a doubt holds, one condition is changed at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_check_slips.c" /* for its parts, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 30, TOTAL = 40 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit expected, found[2];
static struct fit_segment plain[2]; /* the second one lies behind all rows */
static struct fit_skip skips[6];
static struct fit_part parts[2];
static uint64_t skipped[6];
static struct fit_known known;
static struct fit_check out;

static void make_fit(struct fit *fit, const char *schedule, double warmup) {
    const struct contract_request request = helper_fit_request("hf", schedule, PEAK, warmup, TOTAL);
    helper_fit_make(fit, &arena, &request, plain);
    fit->schedule_name = schedule;
}

/* A pass of a line of which these updates were skipped, and rows that show them exactly. */
static void open_skips(size_t count, const uint64_t *updates) {
    arena_close(&arena);
    plain[0] = (struct fit_segment){.scale = 1.0};
    plain[1] = (struct fit_segment){.scale = 1.0, .point = SIZE_MAX};
    make_fit(&expected, "linear", 0.0);
    for (size_t s = 0; s < count; s++) {
        skipped[s] = updates[s];
        skips[s] = (struct fit_skip){.first = updates[s], .last = updates[s], .count = 1};
    }
    expected.skips = skips;
    expected.skip_count = count;
    expected.plan.skipped = skipped;
    expected.plan.skipped_count = count;
    series = (struct series){points, ROWS};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = fit_logged(&expected, i, i + 1)};
    fit_known_init(&known);
    known.request.contract = expected.contract;
    memset(&out, 0, sizeof out);
    out.expected = &expected;
    out.verdict = FIT_PASS;
    out.found = (struct fit_set){.series = &series, .last = ROWS};
}

static void expect_doubt(const char *words, int line) {
    assert_int_equal(fit_check_doubt_slips(&series, &known, &arena, &out), STATUS_OK);
    if (out.verdict != (words != NULL ? FIT_UNDECIDED : FIT_PASS))
        fail_msg("line %d: verdict %d, %s", line, out.verdict, out.needs ? out.needs : "-");
    if (words == NULL) assert_null(out.needs);
    if (words != NULL && strstr(out.needs, words) == NULL) fail_msg("line %d: %s", line, out.needs);
}
#define DOUBT(words) expect_doubt(words, __LINE__)

/* ---- resumes ---- */

/* Rows 1 to 15, and from update 13 on again. */
static void open_resume(uint64_t update) {
    open_skips(1, &update);
    for (size_t i = 15; i < ROWS; i++)
        points[i].update = i - 2;
    parts[0] = (struct fit_part){.point = 0, .begins = FIT_PART_GOES_ON};
    parts[1] = (struct fit_part){
        .point = 15, .begins = FIT_PART_GOES_ON, .skipped = skipped, .skipped_count = 1};
    expected.parts = parts;
    expected.part_count = 2;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = fit_logged(&expected, i, points[i].update);
}
#define OLDER "at resume 1 a scheduler whose saved state was older than the weights"

static void validate_resumes(void **state) {
    (void)state;
    /* The resume lies behind update 12, and part 2 begins with update 13. */
    for (uint64_t update = 9; update < 18; update++) {
        open_resume(update);
        DOUBT(update == 12 || update == 13 ? OLDER : NULL);
    }
    for (int how = 0; how < 7; how++) {
        open_resume(13);
        if (how == 0) known.skips.shown = 1;
        if (how == 1) known.request.skipped_count = 1;
        if (how == 2) out.verdict = FIT_UNDECIDED;
        if (how == 3) out.verdict = FIT_FAIL;
        if (how == 4) expected.part_count = 0; /* the log shows no resume */
        if (how == 5) skips[0] = (struct fit_skip){.first = 9, .last = 12, .count = 1};
        if (how == 6) skips[0] = (struct fit_skip){.first = 13, .last = 17, .count = 1};
        if (how == 2 || how == 3) {
            const int32_t verdict = out.verdict;
            assert_int_equal(fit_check_doubt_slips(&series, &known, &arena, &out), STATUS_OK);
            assert_int_equal(out.verdict, verdict);
            assert_null(out.needs);
        } else {
            DOUBT(how > 4 ? OLDER : NULL);
        }
    }
}

/* A counter that is behind at a resume, by a number that nothing says. */
static void validate_counters_behind(void **state) {
    (void)state;
    for (int how = 0; how < 5; how++) {
        open_resume(18);
        parts[1].begins = FIT_PART_OTHER;
        parts[1].lag = 4;
        if (how == 1) known.skips.shown = 3; /* they do not say so many */
        if (how == 2) parts[1].lag = 0;
        if (how == 3) parts[1].begins = FIT_PART_COUNTS_ANEW;
        if (how == 4) parts[0].begins = FIT_PART_OTHER, parts[1].begins = FIT_PART_GOES_ON;
        DOUBT(how < 2 ? OLDER : NULL);
    }
}

/* ---- lengths ---- */

/* In few digits a total, a warm-up or both that are a little longer need no skipped update. */
static void validate_lengths(void **state) {
    (void)state;
    static const uint64_t two[] = {5, 6};
    for (int how = 0; how < 6; how++) {
        open_skips(2, two);
        for (size_t i = 0; i < ROWS; i++)
            points[i].quantum = how == 1 ? 0.001 * PEAK : 0.11 * PEAK;
        if (how == 2) known.skips.shown = 1;
        if (how == 3) known.request.skipped_count = 2;
        if (how == 4) expected.epoch_updates = 2;
        if (how == 5) expected.segment_count = 2;
        DOUBT(how == 0 ? "with a total of 41 and a warm-up of 0 the same rows need no" : NULL);
    }
}

/* Rows of a total that is three times as long. */
static void validate_multiples(void **state) {
    (void)state;
    static const uint64_t two[] = {5, 6};
    for (int times = 2; times < 10; times++) {
        struct fit other;
        open_skips(2, two);
        other = longer(&expected, times, 0.0, 1.0, 0.0);
        for (size_t i = 0; i < ROWS; i++)
            points[i].value = fit_logged(&other, i, points[i].update);
        char text[64];
        snprintf(text, sizeof text, "with a total of %d", times * TOTAL);
        DOUBT(times < 5 || times == 8 ? text : NULL);
    }
    open_skips(2, two); /* and both lengths */
    make_fit(&found[0], "linear", 6.0);
    expected.plan = found[0].plan;
    const struct fit both = longer(&expected, 4.0, 0.0, 4.0, 0.0);
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = fit_logged(&both, i, points[i].update);
    DOUBT("with a total of 160 and a warm-up of 24");
}

/* ---- bursts, and a last row ---- */

static void validate_bursts(void **state) {
    (void)state;
    static const struct {
        size_t count;
        uint64_t updates[6];
        int doubted;
    } cases[] = {{3, {9, 10, 11}, 0},       {4, {9, 10, 11, 12}, 1},    {4, {1, 2, 3, 4}, 0},
                 {4, {9, 10, 12, 13}, 0},   {5, {3, 9, 10, 11, 12}, 1}, {5, {1, 2, 3, 4, 5}, 0},
                 {6, {2, 3, 4, 5, 6, 7}, 1}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        open_skips(cases[c].count, cases[c].updates);
        DOUBT(cases[c].doubted ? "are many for a scaler" : NULL);
        open_skips(cases[c].count, cases[c].updates);
        known.skips.shown = 1;
        DOUBT(NULL);
    }
    static const uint64_t one[] = {9};
    for (uint64_t many = 1; many < 7; many++) { /* between two rows */
        open_skips(1, one);
        skips[0] = (struct fit_skip){.first = 9, .last = 20, .count = many};
        DOUBT(many > 3 ? "more than 3 from update 9 on" : NULL);
    }
}

static void validate_a_last_row(void **state) {
    (void)state;
    for (uint64_t update = ROWS - 3; update < ROWS; update++) {
        open_skips(1, &update);
        DOUBT(update == ROWS - 1 ? "a row behind update 30" : NULL);
    }
    static const uint64_t last = ROWS - 1;
    open_skips(1, &last);
    known.skips.shown = 1;
    DOUBT(NULL);
}

/* ---- failures ---- */

static void open_fail(void) {
    static const uint64_t none = 0;
    open_skips(0, &none);
    out.verdict = FIT_FAIL;
    out.bad_points = 3;
    out.bug = "lag1";
    out.fitted = FIT_OF_STEPS | FIT_OF_WARMUP;
    make_fit(&found[0], "linear", 9.0);
    out.found.fits = found;
    out.found.count = 1;
}

/* A plateau in front of a decay of ten updates, whose total nobody said. */
static void open_plateau(void) {
    open_fail();
    known.request.schedule = "warmup_stable_decay";
    known.request.values[0].key = "decay";
    known.request.values[0].text = "10";
    known.request.value_count = 1;
    known.request.warmup = 0.0;
    known.request.lr = PEAK;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = PEAK;
}

static void validate_totals_behind(void **state) {
    (void)state;
    for (int how = 0; how < 10; how++) {
        open_plateau();
        int doubted = how < 4;
        if (how == 1) known.request.lr = real_nan_f64(); /* that of the rows */
        if (how == 2) known.request.warmup = real_nan_f64(), found[0].warmup = 0.0;
        if (how == 3) points[4].value *= 1.0 + 0x1p-52;
        if (how == 4) out.fitted = FIT_OF_WARMUP;
        if (how == 5) known.request.schedule = NULL;
        if (how == 6) out.verdict = FIT_PASS;
        if (how == 7) points[20].value *= 0.999;
        if (how == 8) known.request.lr = 2.0 * PEAK;
        if (how == 9) known.request.epochs = 3.0;
        const int32_t before = out.verdict;
        assert_int_equal(fit_check_doubt_total(&series, &known, &arena, &out), STATUS_OK);
        if (out.verdict != (doubted ? (int32_t)FIT_UNDECIDED : before)) fail_msg("case %d", how);
        assert_int_equal(out.bad_points, doubted ? 0 : 3);
        assert_int_equal(out.bug == NULL, doubted);
        if (!doubted) continue;
        assert_non_null(strstr(out.words, "agrees with hf and a total of 60"));
        assert_string_equal(out.needs, "--steps of the training");
    }
}

/* The rows rise to half of the peak that was said, in a warm-up that goes on. */
static void validate_peaks_behind(void **state) {
    (void)state;
    for (int how = 0; how < 12; how++) {
        open_fail();
        found[0].reached = 1e-4;
        const int doubted = how < 3;
        if (how == 1) known.request.lr = PEAK;
        if (how == 2) known.request.lr = 1e-4;
        if (how == 3) known.request.lr = 0.9e-4;
        if (how == 4) found[0].reached = 0.0;
        if (how == 5) found[0].contract = contract_find("megatron");
        if (how == 6) found[0].bug = "lag1";
        if (how == 7) found[0].stride = 2.0;
        if (how == 8) found[0].first_differs = 1;
        if (how == 9) known.request.schedule = "linear";
        if (how == 10) out.fitted = FIT_OF_STEPS;
        if (how == 11) out.found.count = 0;
        assert_int_equal(fit_check_doubt_peak(&known, &arena, &out), STATUS_OK);
        if (out.verdict != (doubted ? FIT_UNDECIDED : FIT_FAIL)) fail_msg("case %d", how);
        assert_int_equal(out.bad_points, doubted ? 0 : 3);
        if (doubted) assert_non_null(strstr(out.words, "lies in a warm-up that hf prints"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_resumes),       cmocka_unit_test(validate_counters_behind),
        cmocka_unit_test(validate_lengths),       cmocka_unit_test(validate_multiples),
        cmocka_unit_test(validate_bursts),        cmocka_unit_test(validate_a_last_row),
        cmocka_unit_test(validate_totals_behind), cmocka_unit_test(validate_peaks_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
