/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a recording's places of phases say of a loop: random orders against a walk over all calls in
 * the order in which they were made, and the words of both findings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "determinism/trace.h"
#include "forensics/doctor/doctor.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 12, CASES = 3000 };
enum { BACKWARD, UNSCALE, CLIP, OPTIMIZE, ZERO, PHASES };

static const char *const names[PHASES] = {"backward", "unscale", "clip", "optimize", "zero"};
static struct record records[ROWS];
static int64_t places[ROWS][PHASES][RECORD_PHASES];
static struct trace_foreign foreign = {.digest = ""};

static struct trace_run open_run(void) {
    struct trace_run run = {.records = records, .updates = ROWS};
    run.plan.phases = names;
    run.plan.shape.phases = PHASES;
    run.plan.foreign = &foreign;
    for (size_t i = 0; i < ROWS; i++) {
        records[i].step = 10 + i;
        records[i].phase_places = places[i];
        for (int p = 0; p < PHASES; p++)
            places[i][p][PHASE_PLACE] = p == UNSCALE || p == CLIP ? -1 : p;
    }
    return run;
}

/* Walks over the calls of all updates as they were made. */
static struct doctor_options walk(void) {
    struct doctor_options seen = {.recorded = 0};
    uint64_t owed = 0; /* whose gradient is still there after its step */
    for (size_t i = 0; i < ROWS; i++) {
        int has_gradient = 0, scaled = 0, clipped = 0, early = 0;
        for (int64_t place = 0; place < PHASES; place++)
            for (int p = 0; p < PHASES; p++) {
                if (places[i][p][PHASE_PLACE] != place) continue;
                if (p == BACKWARD) {
                    if (owed != 0 && seen.kept++ == 0) seen.kept_first = owed;
                    owed = 0;
                    has_gradient = 1;
                }
                if (p == ZERO) owed = 0, has_gradient = 0, seen.cleared++;
                if (p == UNSCALE) scaled = 1, early = clipped;
                if (p == CLIP) clipped = 1;
                if (p == OPTIMIZE) seen.recorded = 1;
            }
        if (scaled && clipped) {
            seen.scaled++;
            if (early && seen.clipped_early++ == 0) seen.clipped_first = records[i].step;
        }
        if (has_gradient && places[i][OPTIMIZE][PHASE_PLACE] >= 0) owed = records[i].step;
    }
    return seen;
}

static void assert_seen(const struct doctor_options *got, const struct doctor_options *wanted) {
    assert_int_equal(got->recorded, wanted->recorded);
    assert_int_equal(got->scaled, wanted->scaled);
    assert_int_equal(got->clipped_early, wanted->clipped_early);
    assert_int_equal(got->clipped_first, wanted->clipped_first);
    assert_int_equal(got->cleared, wanted->cleared);
    assert_int_equal(got->kept, wanted->kept);
    assert_int_equal(got->kept_first, wanted->kept_first);
}

static void corroborate_orders(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x0bade5), .number = number};
        const struct trace_run run = open_run();
        const uint32_t rare = 1 + draws_pick(&draws, 8);
        for (size_t i = 0; i < ROWS; i++) {
            int order[PHASES];
            int64_t next = 0;
            for (int p = 0; p < PHASES; p++)
                order[p] = p;
            for (int p = PHASES - 1; p > 0; p--) {
                const int other = (int)draws_pick(&draws, (uint32_t)p + 1), kept = order[p];
                if (draws_pick(&draws, rare) > 0) continue;
                order[p] = order[other];
                order[other] = kept;
            }
            for (int p = 0; p < PHASES; p++)
                places[i][order[p]][PHASE_PLACE] = draws_pick(&draws, 4) > 0 ? next++ : -1;
        }
        struct doctor_options options;
        doctor_options_init(&options);
        doctor_options_order(&options, &run);
        const struct doctor_options wanted = walk();
        assert_seen(&options, &wanted);
    }
    struct trace_run run = open_run();
    struct doctor_options options, none = {.recorded = 0};
    run.plan.foreign = NULL; /* a run of ours has the order of its scenario */
    doctor_options_init(&options);
    doctor_options_order(&options, &run);
    assert_seen(&options, &none);
}

static void validate_counts(void **state) {
    (void)state;
    static const struct {
        int64_t counts[4];
        uint64_t counted, often, first, to, by;
    } cases[] = {{{1, 2, 3, 4}, 3, 0, 0, 0, 0},     {{1, 3, 5, 7}, 3, 3, 11, 3, 2},
                 {{7, 8, 11, 12}, 3, 1, 12, 11, 3}, {{-1, 2, 4, -1}, 1, 1, 12, 4, 2},
                 {{5, 5, 4, 5}, 3, 0, 0, 0, 0},     {{-1, -1, -1, -1}, 0, 0, 0, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int apart = 0; apart < 2; apart++) {
            struct trace_run run = open_run();
            struct doctor_options options;
            run.updates = 4;
            for (size_t i = 0; i < 4; i++) {
                records[i].integers[INTEGER_OPTIMIZER_T] = cases[c].counts[i];
                if (apart)
                    records[i].step = 10 + 2 * i; /* updates between them were not recorded */
            }
            doctor_options_init(&options);
            doctor_options_order(&options, &run);
            assert_int_equal(options.counted, apart ? 0 : cases[c].counted);
            assert_int_equal(options.stepped_often, apart ? 0 : cases[c].often);
            if (apart) continue;
            assert_int_equal(options.stepped_first, cases[c].first);
            assert_int_equal(options.stepped_to, cases[c].to);
            assert_int_equal(options.stepped_by, cases[c].by);
        }
}

/* ---- what is said ---- */

static struct arena arena;
static struct doctor_report report;

static void examine(const struct doctor_options *options) {
    arena_close(&arena);
    struct log *const log = helper_log(&arena, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        helper_put(&arena, log, LOG_LOSS, i, 3.0 - 0.125 * (double)i, PRINT_EXACT);
    assert_int_equal(doctor_examine(log, options, NULL, &arena, &report), STATUS_OK);
}

static const struct doctor_line *line_of(const char *id) {
    for (size_t i = 0; i < report.line_count; i++)
        if (strcmp(report.lines[i].id, id) == 0) return &report.lines[i];
    return NULL;
}

static void validate_words(void **state) {
    (void)state;
    struct doctor_options options;
    doctor_options_init(&options);
    examine(&options); /* a log that is no recording is not asked */
    assert_null(line_of("clip_order"));
    assert_null(line_of("gradient_cleared"));
    options.recorded = 1;
    examine(&options);
    assert_string_equal(line_of("clip_order")->why,
                        "no update both unscales and clips its gradient");
    assert_string_equal(line_of("gradient_cleared")->why, "no update shows that it clears");
    options.scaled = 7;
    options.cleared = 9;
    examine(&options);
    assert_int_equal(line_of("clip_order")->result, DOCTOR_QUIET);
    assert_int_equal(line_of("gradient_cleared")->result, DOCTOR_QUIET);
    options.clipped_early = 3, options.clipped_first = 11;
    examine(&options);
    assert_int_equal(report.finding_count, 1);
    assert_string_equal(report.findings[0].id, "clip_before_unscale");
    assert_string_equal(report.findings[0].words,
                        "The gradient was clipped before it was unscaled in 3 of 7 updates, so the "
                        "clip saw the loss scale times the norm.");
    assert_int_equal(report.findings[0].update, 11);
    assert_string_equal(report.findings[0].evidence[0],
                        "update 11: phase clip comes before phase unscale");
    options.clipped_early = 0;
    assert_string_equal(line_of("steps_counted")->why, "no count of the optimizer's steps");
    options.counted = 15;
    examine(&options);
    assert_int_equal(line_of("steps_counted")->result, DOCTOR_QUIET);
    options.stepped_often = 14, options.stepped_first = 12;
    options.stepped_to = 5, options.stepped_by = 2;
    examine(&options);
    assert_int_equal(report.finding_count, 1);
    assert_string_equal(report.findings[0].id, "optimizer_steps_often");
    assert_int_equal(report.findings[0].confidence, DOCTOR_POSSIBLE);
    assert_int_equal(report.findings[0].update, 12);
    assert_string_equal(report.findings[0].evidence[0],
                        "its count (optimizer_t) is 5 at update 12, and was 3 at the update "
                        "before");
    options.stepped_often = 0;
    for (options.kept = 1; options.kept < 3; options.kept++) {
        options.kept_first = 10;
        examine(&options);
        assert_int_equal(report.finding_count, 1);
        assert_string_equal(report.findings[0].id, "gradient_not_cleared");
        assert_string_equal(report.findings[0].words,
                            options.kept == 1
                                ? "Behind 1 update the gradient was not cleared, so the next "
                                  "update's has it added."
                                : "Behind 2 updates the gradient was not cleared, so the next "
                                  "update's has it added.");
        assert_int_equal(report.findings[0].update, 10);
        assert_string_equal(report.findings[0].evidence[1], "updates that clear: 9");
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_orders),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
