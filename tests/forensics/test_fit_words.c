/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A fit as a sentence, part by part, and which bug it is named for: each number that may depart
 * from what is known, from both sides of its threshold, and the conditions of each name, one
 * changed at a time. How a break is named stands in test_words_parts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_words.c" /* for the names, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 30 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct fit_search search;
static struct fit_segment segments[3];
static struct fit_skip skips[6];
static struct fit_part parts[3];
static struct fit fit;

/* A cosine of 100 updates behind a warm-up of 8, with nothing known. */
static void open_fit(void) {
    const struct contract_request request = helper_fit_request("hf", "cosine", PEAK, 8.0, 100);
    arena_close(&arena);
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = i + 1, .row = i, .value = 1e-5 * (double)i};
    series = (struct series){points, ROWS};
    for (size_t s = 0; s < 3; s++)
        segments[s] = (struct fit_segment){.point = 10 * s, .update = 10 * s + 1, .scale = 1.0};
    helper_fit_make(&fit, &arena, &request, segments);
    fit_known_init(&known);
    search = (struct fit_search){
        .series = &series, .known = &known, .arena = &arena, .scale = PEAK, .last = ROWS};
}

/* ---- the sentence ---- */

#define SENTENCE(expected)                                                                         \
    do {                                                                                           \
        const char *text;                                                                          \
        assert_int_equal(fit_describe(&fit, &arena, &text), STATUS_OK);                            \
        assert_string_equal(text, expected);                                                       \
        open_fit();                                                                                \
    } while (0)

static void validate_numbers_in_words(void **state) {
    (void)state;
    open_fit();
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100");
    fit.parameters = "num_cycles=2";
    SENTENCE("hf cosine (num_cycles=2), peak 0.0002, warm-up 8, total 100");
    fit.stairs_open = 1;
    fit.epoch_updates = 4;
    SENTENCE("cosine, moved once per 4 updates as in hf, peak 0.0002, warm-up 8, total 100");
    fit.epoch_updates = 4;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100, one move every 4 updates");
    fit.epoch_updates = 1;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100, one move every 1 updates");
    fit.in_samples = 1;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8 samples, total 100 samples");
    fit.unseen_least = 1e-4;
    fit.unseen_most = 3e-4;
    fit.unseen_warmup = 1.0;
    SENTENCE("hf cosine, peak 0.0002 (not shown), warm-up 8 (not shown), total 100");
    fit.unseen_least = fit.unseen_most = 3e-4;
    fit.unseen_warmup = 1.0;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8 (not shown), total 100");
    fit.warmup_hidden = 1;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8 (not shown), total 100");
    fit.warmup = 0.0;
    SENTENCE("hf cosine, peak 0.0002, no warm-up, total 100");
    fit.warmup = 0.0;
    fit.warmup_hidden = 1;
    SENTENCE("hf cosine, peak 0.0002, no warm-up, total 100");
    fit.warmup = 0.0;
    fit.warmup_hidden = 1;
    fit.steps = 0;
    SENTENCE("hf cosine, peak 0.0002, no warm-up (not shown)");
    fit.warmup = 0.07 * 700; /* 49.00000000000001 */
    SENTENCE("hf cosine, peak 0.0002, warm-up 49, total 100");
    fit.warmup = 0.5;
    SENTENCE("hf cosine, peak 0.0002, warm-up 0.5, total 100");
    fit.warmup = 1.0;
    SENTENCE("hf cosine, peak 0.0002, warm-up 1, total 100");
    fit.warmup = 49.25;
    SENTENCE("hf cosine, peak 0.0002, warm-up 49.25, total 100");
    fit.total_hidden = 1;
    fit.floor_ratio = 0.1;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100 (not shown), floor 0.1 of the peak (not "
             "shown)");
    fit.floor_ratio = 1.0 / 3.0;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100, floor 0.3333 of the peak");
    fit.floor_ratio = 0.0;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100");
    fit.stride = 2.0;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100, counter moves 2 per update");
    fit.first_differs = 1;
    fit.first_value = 1e-7;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100, but update 1 at 1e-07");
}

static void validate_warm_ups_in_words(void **state) {
    (void)state;
    open_fit();
    fit.reached = 1.23456e-5;
    fit.floor_ratio = 0.1;
    fit.warmup = 40.0;
    SENTENCE("hf cosine, still warming up at the last row: peak at least 1.234e-05 (0.0002 "
             "assumed), warm-up 40 (not shown), total 100");
    fit.reached = 1.23456e-5;
    fit.total_hidden = 1;
    fit.warmup = 99.0;
    SENTENCE("hf cosine, still warming up at the last row: peak at least 1.234e-05 (0.0002 "
             "assumed), warm-up 99 (not shown), total 100 (not shown)");
    fit.reached = 1.23456e-5;
    fit.total_hidden = 1;
    fit.warmup = 100.0; /* a total that is hidden in the warm-up is none */
    SENTENCE("hf cosine, still warming up at the last row: peak at least 1.234e-05 (0.0002 "
             "assumed), warm-up 100 (not shown)");
    fit.reached = 1.23456e-5;
    fit.warmup = 100.0;
    SENTENCE("hf cosine, still warming up at the last row: peak at least 1.234e-05 (0.0002 "
             "assumed), warm-up 100 (not shown), total 100");
    /* Cut and never rounded up; 59 * 1e-7 lies a bit below what it means. */
    assert_true(cut(59 * 1e-7) == 5.9e-6 && cut(1.9999e-5) == 1.999e-5 && cut(2e-4) == 2e-4);
    assert_true(cut(9.9995e-5) == 9.999e-5 && cut(0.12345) == 0.1234 && cut(123456.0) == 123400.0);
    assert_true(isinf(cut((double)INFINITY)));
}

static void validate_events_in_words(void **state) {
    (void)state;
    static const struct {
        struct fit_segment segment;
        const char *text;
    } cases[] = {
        {{.event = FIT_SKIP, .moved = -1}, "; held 1 time at update 11"},
        {{.event = FIT_SKIP, .moved = -3}, "; held 3 times at update 11"},
        {{.event = FIT_BACK, .shift = -5}, "; counter back to 5 at update 11"},
        {{.event = FIT_JUMP, .moved = 7}, "; ahead by 7 from update 11"},
        {{.event = FIT_RESET, .shift = -9}, "; counter back to 0 at update 10"},
        {{.event = FIT_DOUBLED, .moved = 9}, "; counter doubled at update 10"},
        {{.event = FIT_RESCALED, .scale = 1.0 / 3.0}, "; peak times 0.3333 from update 11"},
        {{.event = FIT_RESTARTED, .scale = 0.5},
         "; counter back to 0 and peak times 0.5 from update 11"},
        {{.event = FIT_TOTAL, .steps = 70, .warmup = 8.0}, "; total 70 from update 11"},
        {{.event = FIT_TOTAL, .steps = 70, .warmup = 0.07 * 700},
         "; total 70 and warm-up 49 from update 11"},
        {{.event = FIT_TOTAL, .steps = 70, .warmup = 8.0, .moved = -2},
         "; total 70 from update 11, held by 2"},
        {{.event = FIT_TOTAL, .steps = 70, .warmup = 8.0, .moved = 1},
         "; total 70 from update 11, ahead by 1"},
        {{.event = FIT_PLAIN}, ""},
    };
    char expected[256];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_fit();
        fit.segment_count = 2;
        segments[1] = cases[i].segment;
        segments[1].update = 11;
        snprintf(expected, sizeof expected, "hf cosine, peak 0.0002, warm-up 8, total 100%s",
                 cases[i].text);
        SENTENCE(expected);
    }
    for (size_t s = 1; s < 3; s++) { /* a warm-up is told where it is not that of the one before */
        segments[s].event = FIT_TOTAL;
        segments[s].steps = 60 + 10 * s;
        segments[s].warmup = 6.0;
    }
    fit.segment_count = 3;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100; total 70 and warm-up 6 from update 11; "
             "total 80 from update 21");
}

static void validate_skips_in_words(void **state) {
    (void)state;
    open_fit();
    const struct fit_skip all[] = {{5, 5, 1, 0},   {7, 8, 2, 0},   {10, 14, 2, 0},
                                   {20, 20, 1, 1}, {22, 25, 3, 1}, {26, 26, 1, 2}};
    memcpy(skips, all, sizeof skips);
    for (size_t count = 1; count <= COUNT_OF(all); count++) {
        static const char *const texts[] = {
            "; skipped: update 5",
            "; skipped: update 5, updates 7 to 8",
            "; skipped: update 5, updates 7 to 8, 2 of the updates 10 to 14",
            "; skipped: update 5, updates 7 to 8, 2 of the updates 10 to 14; skipped after resume "
            "1: update 20",
            "; skipped: update 5, updates 7 to 8, 2 of the updates 10 to 14; skipped after resume "
            "1: update 20 and 3 more",
            "; skipped: update 5, updates 7 to 8, 2 of the updates 10 to 14; skipped after resume "
            "1: update 20 and 4 more"};
        char expected[256];
        snprintf(expected, sizeof expected, "hf cosine, peak 0.0002, warm-up 8, total 100%s",
                 texts[count - 1]);
        fit.skips = skips;
        fit.skip_count = count;
        SENTENCE(expected);
    }
    parts[1] = (struct fit_part){.begins = FIT_PART_COUNTS_ANEW, .lag = 4};
    parts[2] = (struct fit_part){.begins = FIT_PART_OTHER, .lag = 3};
    fit.parts = parts;
    fit.part_count = 3;
    SENTENCE("hf cosine, peak 0.0002, warm-up 8, total 100; at resume 1 the counter is the number "
             "of updates; at resume 2 the counter is 3 behind");
}

static void validate_partial_fits(void **state) {
    (void)state;
    double floor = 0.0;
    struct fit_model model = {
        .contract = contract_find("hf"), .schedule_name = "cosine", .parameters = ""};
    const char *text;
    open_fit();
    search.partial = &model;
    search.partial_numbers = (struct fit_numbers){
        .lr = PEAK, .warmup = 8.0, .total = 100.0, .floor = 5e-5, .stride = 1.0};
    assert_int_equal(fit_words_partial(&search, &text), STATUS_OK);
    assert_string_equal(text, "hf cosine, peak 0.0002, warm-up 8");
    model.needs_total = 1;
    model.floor = &floor;
    assert_int_equal(fit_words_partial(&search, &text), STATUS_OK);
    assert_string_equal(text, "hf cosine, peak 0.0002, warm-up 8, total 100, floor 5e-05 of the "
                              "peak");
    search.partial_numbers.absolute = 1;
    assert_int_equal(fit_words_partial(&search, &text), STATUS_OK);
    assert_string_equal(text, "hf cosine, peak 0.0002, warm-up 8, total 100, floor 0.25 of the "
                              "peak");
}

/* ---- names ---- */

static void named(const char *name, const char *wanted, int line) {
    const int same = name == NULL || wanted == NULL ? name == wanted : strcmp(name, wanted) == 0;
    if (!same) fail_msg("line %d: %s", line, name != NULL ? name : "none");
    open_fit();
}

#define NAMED(call, expected) named(call, expected, __LINE__)

static void validate_strides(void **state) {
    (void)state;
    open_fit();
    static const struct {
        double stride;
        uint64_t processes, accumulate, batch;
        const char *name;
    } cases[] = {
        {1.0, 4, 4, 4, NULL},
        {4.0, 4, 4, 4, "xP_scheduler"},
        {4.0, 2, 4, 4, "per_microbatch_stepping"},
        {4.0, 2, 3, 4, "unit_mismatch"},
        {4.0, 2, 3, 0, "other_stride"},
        {4.0, 1, 1, 0, "other_stride"},
        {4.0, 0, 1, 0, "xP_scheduler or per_microbatch_stepping"},
        {4.0, 1, 0, 0, "xP_scheduler or per_microbatch_stepping"},
        {2.0, 1, 1, 0, "two_schedulers"},
        {2.0, 3, 1, 0, "two_schedulers"},
        {2.0, 0, 1, 0, "xP_scheduler or per_microbatch_stepping"},
        {2.0, 1, 0, 0, "xP_scheduler or per_microbatch_stepping"},
        {2.0, 2, 0, 0, "xP_scheduler"},
        {2.0, 0, 2, 0, "per_microbatch_stepping"},
        {2.0, 1, 1, 2, "unit_mismatch"},
        {0.5, 1, 1, 0, "unit_mismatch"},
        {0.125, 0, 0, 0, "unit_mismatch"},
        {1.5, 1, 1, 1, "other_stride"}, /* neither a share of an update nor a number above */
        {3.0, 1, 1, 8, "other_stride"},
        {3.0, 8, 1, 1, "other_stride"},
        {3.0, 1, 8, 1, "other_stride"},
        {0x1.fffffffffffffp-1, 1, 1, 8, "unit_mismatch"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        known.request.processes = cases[i].processes;
        known.request.accumulate = cases[i].accumulate;
        known.request.global_batch = cases[i].batch;
        NAMED(bug_of_stride(&search, cases[i].stride), cases[i].name);
    }
}

static void validate_contracts(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"open-instruct-h17", "step_then_set"},
                                          {"open-instruct-h17-h25", "zero_init_patch"},
                                          {"deepspeed-warmup-old", "step_then_set"},
                                          {"deepspeed-cosine-old", "step_then_set"},
                                          {"deepspeed-warmup", "double_zero_start"},
                                          {"deepspeed-cosine", "double_zero_start"},
                                          {"lag1", "lag1"},
                                          {"hf-x-processes", "xP_scheduler"},
                                          {"per-micro-batch", "per_microbatch_stepping"},
                                          {"lightning-epoch", "scheduler_epoch_default"},
                                          {"torchtitan", "virtual_last_step"},
                                          {"llmc", "virtual_last_step"}};
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        const char *expected = NULL;
        for (size_t r = 0; r < COUNT_OF(rows); r++)
            if (strcmp(rows[r][0], all[i].name) == 0) expected = rows[r][1];
        const char *const bug = bug_of_contract(&all[i]);
        assert_int_equal(bug != NULL, expected != NULL);
        if (bug != NULL) assert_string_equal(bug, expected);
        assert_int_equal(fit_bug_is_in_column(&all[i]), all[i].bug && expected != NULL);
    }
}

static void validate_peaks(void **state) {
    (void)state;
    open_fit();
    NAMED(bug_of_numbers(&search, &fit), NULL);
    static const struct {
        double asked, had;
        const char *name;
    } cases[] = {
        {1e-4, 1e-4, NULL},
        {1e-4, 1e-4 * (1.0 + 0.9e-6), NULL},
        {1e-4, 1e-4 * (1.0 - 0.9e-6), NULL},
        {1e-4, 1e-4 * (1.0 + 1.1e-6), "other_peak"},
        {1e-4, 1e-4 * (1.0 - 1.1e-6), "other_peak"},
        {1e-4, 1e-3, "default_lr_overrides"}, /* Adam's own */
        {1e-4, 1e-3 + 0.9e-9, "default_lr_overrides"},
        {1e-4, 1e-3 - 0.9e-9, "default_lr_overrides"},
        {1e-4, 1e-3 + 1.1e-9, "other_peak"},
        {1e-4, 1e-3 - 1.1e-9, "other_peak"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        known.request.lr = cases[i].asked;
        fit.lr = cases[i].had;
        NAMED(bug_of_numbers(&search, &fit), cases[i].name);
    }
    /* A log that ends in its warm-up shows no peak but those below what it reached. */
    known.request.lr = 1e-4;
    fit.reached = 1e-4;
    NAMED(bug_of_numbers(&search, &fit), NULL);
    known.request.lr = 1e-4;
    fit.reached = 1.1e-4;
    NAMED(bug_of_numbers(&search, &fit), "other_peak");
    fit.reached = 1e-4;
    known.request.steps = 90;
    NAMED(bug_of_numbers(&search, &fit), NULL);
}

static void validate_totals(void **state) {
    (void)state;
    static const struct {
        uint64_t asked;
        const char *name;
    } cases[] = {{100, NULL},
                 {101, "floor_vs_ceil_steps"},
                 {106, "floor_vs_ceil_steps"}, /* 6 <= 0.05 * 106 + 1 */
                 {107, "schedule_too_short"},
                 {99, "floor_vs_ceil_steps"},
                 {95, "floor_vs_ceil_steps"}, /* 5 <= 5.75 */
                 {94, "max_steps_ignored"},
                 {50, "max_steps_ignored"},
                 {200, "schedule_too_short"}};
    open_fit();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int by_run = 0; by_run < 2; by_run++) {
            known.request.steps = by_run ? 0 : cases[i].asked;
            known.run_steps = by_run ? cases[i].asked : 0;
            NAMED(bug_of_numbers(&search, &fit), cases[i].name);
        }
    known.request.steps = 200; /* what was asked for stands above what the log says */
    known.run_steps = 100;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    fit.steps = 0;
    known.request.steps = 200;
    NAMED(bug_of_numbers(&search, &fit), NULL);
    known.request.steps = 200;
    fit.segment_count = 2; /* it changed to that total */
    segments[1].steps = 200;
    NAMED(bug_of_numbers(&search, &fit), NULL);
    known.request.steps = 200;
    fit.segment_count = 2;
    segments[1].steps = 199;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    /* With a peak that nobody typed or knows, another total explains nearly anything. */
    known.request.steps = 200;
    fit.lr = 1.23e-4;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    known.request.steps = 200;
    fit.lr = 1.234e-4;
    NAMED(bug_of_numbers(&search, &fit), NULL);
    known.request.steps = 200;
    fit.lr = known.request.lr = 1.234e-4;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
}

/* The last update of the own count: the largest of those at the ends of the segments. */
static void validate_farthest_update(void **state) {
    (void)state;
    open_fit();
    for (unsigned order = 0; order < 27; order++) {
        uint64_t most = 0;
        unsigned digits = order;
        fit.segment_count = 3;
        search.last = ROWS;
        for (size_t s = 0; s < 3; s++, digits /= 3) {
            static const int64_t counters[] = {-5, 7, 19};
            const int64_t counter = counters[digits % 3];
            segments[s].shift = counter - (s < 2 ? (int64_t)points[10 * s + 9].update : ROWS);
            if (counter > (int64_t)most) most = (uint64_t)counter;
        }
        assert_int_equal(farthest(&search, &fit), most);
    }
    open_fit();
}

static void validate_other_ends(void **state) {
    (void)state;
    static const char *const megatron[] = {"megatron", NULL}, *const hf[] = {"hf", NULL};
    open_fit();
    /* Megatron's own option for the length of the decay. */
    for (int how = 0; how < 8; how++) {
        const int longer = how & 1;
        fit.contract = contract_find("megatron");
        assert_int_equal(fit.contract->unit, CONTRACT_UNIT_SAMPLE);
        known.possible = how & 2 ? how & 4 ? hf : NULL : megatron;
        known.request.steps = longer ? 50 : 200;
        NAMED(bug_of_numbers(&search, &fit), longer                 ? "max_steps_ignored"
                                             : how == 0 || how == 4 ? NULL
                                                                    : "schedule_too_short");
    }
    fit.contract = contract_find("hf");
    known.possible = hf;
    known.request.steps = 200;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    /* A loop that holds its LR from below, from its first update on. */
    for (int how = 0; how < 8; how++) {
        const int longer = how & 4;
        fit.first_differs = !(how & 1);
        fit.floor_ratio = 0.1;
        fit.first_value = 0.1 * PEAK * (how & 2 ? 1.0 + 1e-8 : 1.0);
        known.request.steps = longer ? 50 : 200;
        NAMED(bug_of_numbers(&search, &fit), longer           ? "max_steps_ignored"
                                             : (how & 3) == 0 ? NULL
                                                              : "schedule_too_short");
    }
    fit.first_differs = 1; /* a floor of 0 is none */
    fit.floor_ratio = 0.0;
    known.request.steps = 200;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    /* A plateau that is a few updates longer than the total leaves. */
    search.last = 400;
    const uint64_t few = fit_skips_most(400);
    assert_true(few > 0 && few < 50);
    for (uint64_t more = 1; more < 2 * few; more++) {
        search.last = 400;
        fit.schedule = sched_find_in("hf", "warmup_stable_decay");
        assert_non_null(fit.schedule);
        fit.steps = 1000 + more;
        known.request.steps = 1000;
        NAMED(bug_of_numbers(&search, &fit), more <= few ? NULL : "floor_vs_ceil_steps");
    }
    /* A line that ends on its way to a lower floor, as far as rows show it. */
    for (uint64_t row = 98; row < 108; row++) {
        struct fit_segment *const last = &segments[0];
        fit.schedule = sched_find_in("hf", "linear");
        fit.floor_ratio = 0.1234;
        search.last = row;
        last->shift = -2;
        known.request.steps = 200;
        NAMED(bug_of_numbers(&search, &fit), row - 2 < 102 ? NULL : "schedule_too_short");
    }
    fit.schedule = sched_find_in("hf", "linear"); /* the counter began again behind a row */
    fit.floor_ratio = 0.1234;
    fit.segment_count = 2;
    points[9].update = 104;
    segments[1].shift = -100;
    known.request.steps = 200;
    NAMED(bug_of_numbers(&search, &fit), "schedule_too_short");
    fit.schedule = sched_find_in("hf", "linear");
    fit.floor_ratio = 0.1234;
    fit.segment_count = 2;
    points[9].update = 100;
    segments[1].shift = -100;
    known.request.steps = 200;
    NAMED(bug_of_numbers(&search, &fit), NULL);
}

static void validate_warm_ups_and_floors(void **state) {
    (void)state;
    static const struct {
        double asked, had;
        const char *name;
    } warmups[] = {{8.0, 8.0, NULL},
                   {8.0, 8.0 + 0.9e-9, NULL},
                   {8.0, 8.0 - 0.9e-9, NULL},
                   {8.0, 8.0 + 1.1e-9, "warmup_rounding"},
                   {8.0, 8.0 - 1.1e-9, "warmup_rounding"},
                   {8.0, 9.0, "warmup_rounding"},
                   {8.0, 7.0, "warmup_rounding"},
                   {8.0, 9.01, "other_warmup"},
                   {8.0, 6.99, "other_warmup"}};
    open_fit();
    for (size_t i = 0; i < COUNT_OF(warmups); i++) {
        fit.warmup = warmups[i].had;
        known.request.warmup = warmups[i].asked;
        NAMED(bug_of_numbers(&search, &fit), warmups[i].name);
        fit.warmup = warmups[i].had;
        known.request.warmup_ratio = warmups[i].asked / 128.0;
        fit.steps = known.request.steps = 128;
        NAMED(bug_of_numbers(&search, &fit), warmups[i].name);
    }
    known.request.warmup = 12.0; /* the number stands above the share */
    known.request.warmup_ratio = 0.08;
    known.request.steps = 100;
    NAMED(bug_of_numbers(&search, &fit), "other_warmup");
    static const struct {
        double asked, had;
        const char *name;
    } floors[] = {{0.1, 0.1, NULL},
                  {0.1, 0.1 + 0.9e-9, NULL},
                  {0.1, 0.1 - 0.9e-9, NULL},
                  {0.1, 0.1 + 1.1e-9, "cosine_floor_mismatch"},
                  {0.1, 0.1 - 1.1e-9, "cosine_floor_mismatch"},
                  {0.1, 0.0, "cosine_floor_mismatch"},
                  {(double)NAN, 0.1, NULL},
                  {0.1, (double)NAN, NULL}};
    for (size_t i = 0; i < COUNT_OF(floors); i++) {
        fit.floor_ratio = floors[i].had;
        known.request.min_lr_ratio = floors[i].asked;
        NAMED(bug_of_numbers(&search, &fit), floors[i].name);
    }
}

/* Stairs of four updates that nothing says are epochs, on a schedule of 400. */
static void open_stairs(void) {
    open_fit();
    fit.epoch_updates = 4;
    fit.stairs_open = 1;
    fit.steps = 400;
    known.expected = contract_find("hf");
    known.request.steps = 100;
}
#define STAIRS(expected)                                                                           \
    do {                                                                                           \
        NAMED(bug_of_stairs(&search, &fit), expected);                                             \
        open_stairs();                                                                             \
    } while (0)

static void validate_stairs(void **state) {
    (void)state;
    open_stairs();
    STAIRS(FIT_SELDOM);
    fit.stairs_open = 0;
    STAIRS("scheduler_epoch_default");
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        fit.epoch_updates = epoch;
        STAIRS(epoch >= 2 ? FIT_SELDOM : NULL);
    }
    known.expected = contract_find("lightning-epoch");
    STAIRS(NULL);
    for (uint64_t steps = 14; steps < 19; steps++) { /* a staircase of a few moves is none */
        known.request.steps = steps;
        STAIRS(steps < 4 * MOVES_LEAST ? NULL : FIT_SELDOM);
        known.request.steps = 0;
        known.run_steps = steps;
        STAIRS(steps < 4 * MOVES_LEAST ? NULL : FIT_SELDOM);
        fit.stairs_open = 0;
        known.request.steps = steps;
        STAIRS("scheduler_epoch_default");
    }
    known.request.steps = 0;
    STAIRS(FIT_SELDOM);
    /* Where nothing is expected: made for as many moves as the run has updates. */
    for (uint64_t steps = 395; steps < 406; steps++) {
        known.expected = NULL;
        fit.steps = steps;
        STAIRS(steps > 396 && steps < 404 ? FIT_SELDOM : NULL);
        known.expected = NULL;
        fit.steps = steps;
        fit.stairs_open = 0;
        STAIRS(NULL);
        known.expected = NULL;
        fit.steps = steps;
        known.request.steps = 0;
        STAIRS(NULL);
    }
}

static void validate_stairs_of_evaluations(void **state) {
    (void)state;
    uint64_t at[] = {4, 8, 12};
    const double values[] = {1.0, 1.0, 1.0};
    for (int how = 0; how < 6; how++) {
        open_stairs();
        at[0] = 4, at[1] = 8, at[2] = 12;
        known.evals_within_epoch = how != 1;
        known.request.metric_update = at;
        known.request.metric_value = values;
        known.request.metric_count = how == 2 ? 1 : 3;
        if (how == 3) at[1] = 9;
        if (how == 4) at[2] = 16;
        if (how == 5) at[0] = 5;
        STAIRS(how == 0 ? "eval_steps_scheduler" : FIT_SELDOM);
    }
    open_stairs();
    at[0] = 4, at[1] = 8, at[2] = 12;
    known.evals_within_epoch = 1;
    known.request.metric_update = at;
    known.request.metric_value = values;
    known.request.metric_count = 2;
    STAIRS("eval_steps_scheduler");
}

static void validate_skips_that_advance(void **state) {
    (void)state;
    const struct contract *holds = contract_find("hf"), *advances = NULL;
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].on_skip == CONTRACT_SKIP_ADVANCE) advances = &all[i];
    assert_non_null(advances);
    assert_int_equal(holds->on_skip, CONTRACT_SKIP_HOLD);
    open_fit();
    for (int how = 0; how < 16; how++) {
        known.expected = how & 1 ? NULL : how & 8 ? advances : holds;
        known.request.skipped_count = how & 2 ? 0 : 1;
        fit.contract = how & 4 ? holds : advances;
        NAMED(bug_of_skip(&search, &fit), how == 0 ? "skip_advances_schedule" : NULL);
    }
}

static void validate_cycles(void **state) {
    (void)state;
    open_fit();
    for (uint64_t last = 48; last < 56; last++) {
        fit.schedule = sched_find_in("torch", "one_cycle");
        assert_non_null(fit.schedule);
        fit.plan.call.total = 100.0;
        fit.plan.increment = 2.0; /* f(T) is applied at update 52 */
        search.last = last;
        NAMED(bug_of_cycle(&search, &fit), last > 52 ? "onecycle_overrun" : NULL);
    }
    for (int how = 0; how < 3; how++) {
        if (how != 0) fit.schedule = sched_find_in("torch", "one_cycle");
        fit.plan.call.total = 10.0;
        fit.plan.increment = how == 1 ? 0.0 : 1.0;
        fit.segment_count = how == 2 ? 2 : 1;
        NAMED(bug_of_cycle(&search, &fit), NULL);
    }
}

/* A first update apart, at a value of its own below which nothing lies. */
static void open_first(void) {
    open_fit();
    fit.first_differs = 1;
    fit.first_value = PEAK;
    points[0].value = PEAK;
    points[1].value = 1e-5;
}
#define FIRST(expected)                                                                            \
    do {                                                                                           \
        NAMED(bug_of(&search, &fit), expected);                                                    \
        open_first();                                                                              \
    } while (0)

static void validate_first_updates(void **state) {
    (void)state;
    open_first();
    FIRST("step_then_set");
    fit.first_value = 0.0;
    FIRST("zero_init_patch");
    fit.first_differs = 0;
    FIRST(NULL);
    fit.first_value = 0.9e-5; /* it rises from there */
    FIRST(NULL);
    fit.first_value = 1e-5;
    FIRST("step_then_set");
    series.count = 1;
    fit.first_value = 0.9e-5;
    FIRST("step_then_set");
    fit.contract = contract_find("lag1"); /* a bug has a first update of its own */
    assert_true(fit.contract->bug);
    fit.first_value = 1e-4;
    FIRST("lag1");
    fit.contract = contract_find("lag1");
    FIRST("step_then_set");
    points[1].value = PEAK; /* a skipped update leaves two rows that are equal */
    FIRST(NULL);
    points[1].value = points[2].value = PEAK;
    FIRST("step_then_set");
    points[1].value = PEAK;
    series.count = 2;
    FIRST("step_then_set");
    points[1].value = PEAK;
    points[0].update = 2;
    FIRST("step_then_set");
    points[1].value = PEAK;
    points[1].update = 3;
    FIRST("step_then_set");
    /* The order of names: an event, the first update, and then the others. */
    fit.segment_count = 2;
    segments[1].event = FIT_RESET;
    FIRST("scheduler_not_restored");
    fit.stride = 0.5;
    FIRST("step_then_set");
    open_fit();
    fit.stride = 0.5;
    fit.contract = contract_find("lag1");
    NAMED(bug_of(&search, &fit), "unit_mismatch");
    fit.contract = contract_find("lag1");
    known.request.lr = 1.0;
    NAMED(bug_of(&search, &fit), "lag1");
    known.request.lr = 1.0;
    NAMED(bug_of(&search, &fit), "other_peak");
    /* A departure of a sound contract is named where one is expected, and it is another. */
    fit.contract = contract_find("torchtitan");
    assert_false(fit.contract->bug);
    NAMED(bug_of(&search, &fit), NULL);
    fit.contract = contract_find("torchtitan");
    known.expected = contract_find("hf");
    NAMED(bug_of(&search, &fit), "virtual_last_step");
    known.expected = fit.contract = contract_find("torchtitan");
    NAMED(bug_of(&search, &fit), NULL);
    fit.contract = contract_find("torchtitan");
    known.expected = contract_find("hf");
    fit.stairs_open = 1;
    NAMED(bug_of(&search, &fit), NULL);
}

static void validate_events_and_stages(void **state) {
    (void)state;
    open_fit();
    for (size_t jumps = 0; jumps < 3; jumps++) { /* ahead once may be anything */
        fit.segment_count = 3;
        for (size_t s = 1; s <= jumps; s++)
            segments[s].event = FIT_JUMP;
        NAMED(bug_of_event(&search, &fit), jumps < 2 ? NULL : "eval_steps_scheduler");
    }
    fit.segment_count = 3;
    segments[1].event = FIT_JUMP;
    segments[2].event = FIT_RESET;
    NAMED(bug_of_event(&search, &fit), "scheduler_not_restored");
    /* What stands behind the last segment is none of the fit: neither a second jump nor a reset. */
    fit.segment_count = 2;
    segments[1].event = segments[2].event = FIT_JUMP;
    NAMED(bug_of_event(&search, &fit), NULL);
    fit.segment_count = 2;
    segments[2].event = FIT_RESET;
    NAMED(bug_of_event(&search, &fit), NULL);
    /* Behind the next training another break counts. */
    fit.segment_count = 3;
    segments[1].event = segments[2].event = FIT_RESET;
    segments[1].shift = -200;
    points[9].update = 200;
    assert_true(fit_is_next_stage(&fit, 1, &series) && !fit_is_next_stage(&fit, 2, &series));
    NAMED(bug_of_event(&search, &fit), "scheduler_not_restored");
    /* A counter that is 0 again behind the end is the next training. */
    for (uint64_t began = 98; began < 106; began++) {
        static const int32_t events[] = {FIT_RESET, FIT_RESTARTED, FIT_BACK};
        for (size_t e = 0; e < COUNT_OF(events); e++) {
            fit.segment_count = 2;
            segments[1].event = events[e];
            segments[1].shift = 1 - (int64_t)began;
            points[9].update = began - 1;
            const int stage = began > 100 && events[e] != FIT_BACK;
            assert_int_equal(fit_is_next_stage(&fit, 1, &series), stage);
            segments[0].shift = -1; /* it had been one behind */
            assert_int_equal(fit_is_next_stage(&fit, 1, &series),
                             began > 101 && events[e] != FIT_BACK);
            fit.steps = 0;
            assert_int_equal(fit_is_next_stage(&fit, 1, &series), 0);
            open_fit();
        }
    }
    fit.segment_count = 2;
    segments[1].event = FIT_RESET;
    segments[1].shift = -200;
    assert_int_equal(fit_is_next_stage(&fit, 1, &series), 1);
    segments[1].point = 0;
    assert_int_equal(fit_is_next_stage(&fit, 1, &series), 0);
    segments[0] = segments[1];
    segments[0].point = 10;
    assert_int_equal(fit_is_next_stage(&fit, 0, &series), 0);
    /* Rows that end on the way to a floor that nobody would type show no end. */
    open_fit();
    fit.segment_count = 2;
    segments[1].event = FIT_RESET;
    segments[1].shift = -200;
    fit.schedule = sched_find_in("hf", "linear");
    fit.floor_ratio = 0.1234;
    for (uint64_t before = 99; before < 105; before++) {
        points[9].update = before;
        assert_int_equal(fit_is_next_stage(&fit, 1, &series), before >= 102);
    }
    static const struct {
        const char *name;
        int stage;
    } levels[] = {{"constant", 1}, {"constant_with_warmup", 1}, {"linear", 0}, {"cosine", 0}};
    for (size_t i = 0; i < COUNT_OF(levels); i++) { /* levels of a constant LR */
        open_fit();
        fit.schedule = sched_find_in("hf", levels[i].name);
        fit.segment_count = 2;
        segments[1].event = FIT_RESCALED;
        assert_int_equal(fit_is_next_stage(&fit, 1, &series), levels[i].stage);
    }
}

static void validate_words_of_fits(void **state) {
    (void)state;
    open_fit();
    fit.stride = 0.5;
    assert_int_equal(fit_words(&search, &fit), STATUS_OK);
    assert_string_equal(fit.bug, "unit_mismatch");
    assert_false(fit.unsound || fit.stairs_open);
    assert_string_equal(
        fit.text, "hf cosine, peak 0.0002, warm-up 8, total 100, counter moves 0.5 per update");
    fit.segment_count = 2; /* a bug beside another total is not named */
    segments[1].event = FIT_TOTAL;
    segments[1].steps = 70;
    segments[1].warmup = 8.0;
    assert_int_equal(fit_words(&search, &fit), STATUS_OK);
    assert_null(fit.bug);
    assert_true(fit.unsound);
    fit.stride = 1.0;
    assert_int_equal(fit_words(&search, &fit), STATUS_OK);
    assert_null(fit.bug);
    assert_false(fit.unsound);
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        fit.epoch_updates = epoch;
        assert_int_equal(fit_words(&search, &fit), STATUS_OK);
        assert_int_equal(fit.stairs_open, epoch > 1);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_numbers_in_words),
        cmocka_unit_test(validate_warm_ups_in_words),
        cmocka_unit_test(validate_events_in_words),
        cmocka_unit_test(validate_skips_in_words),
        cmocka_unit_test(validate_partial_fits),
        cmocka_unit_test(validate_strides),
        cmocka_unit_test(validate_contracts),
        cmocka_unit_test(validate_peaks),
        cmocka_unit_test(validate_totals),
        cmocka_unit_test(validate_farthest_update),
        cmocka_unit_test(validate_other_ends),
        cmocka_unit_test(validate_warm_ups_and_floors),
        cmocka_unit_test(validate_stairs),
        cmocka_unit_test(validate_stairs_of_evaluations),
        cmocka_unit_test(validate_skips_that_advance),
        cmocka_unit_test(validate_cycles),
        cmocka_unit_test(validate_first_updates),
        cmocka_unit_test(validate_events_and_stages),
        cmocka_unit_test(validate_words_of_fits),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
