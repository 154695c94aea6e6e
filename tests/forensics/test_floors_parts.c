/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * When a floor prints what skipped updates were taken for: every floor that somebody types, under
 * each class of schedule that has one, each row, and each condition by itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/fit_floors.c" /* for the conditions, which no other file asks for */
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

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_typed_floors),
        cmocka_unit_test(validate_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
