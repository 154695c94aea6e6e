/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * No false alarm: on healthy logs of random trainings under every shipped contract, a check with
 * the right expectation must never fail, and a fit must list the truth. This is a sample;
 * test_fit_healthy_all has 1,000 trainings of every contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit.h"
#include "tests/forensics/helper_healthy.h"
#include "tests/forensics/helper_lr.h"

#define CHECKS 7
#define FITS 1

static void verify_check_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check(CHECKS, 1, 1, &count);
    print_message("%zu logs: %zu pass, %zu undecided by the printed column\n", count.logs,
                  count.passed, count.undecided);
    assert_true(count.logs >= 20 * CHECKS);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > count.logs / 2);
}

static void verify_check_of_the_applied_column_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_applied(3, 2, 1, &count);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > 0);
    assert_true(count.undecided > 0);
}

static void verify_check_of_skips_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_skips(1, 4, 1, &count);
    print_message("%zu logs with skipped updates: %zu pass, %zu undecided\n", count.logs,
                  count.passed, count.undecided);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > count.logs / 2);
}

static void verify_check_of_resumed_logs_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_resumed(1, 5, 1, &count);
    print_message("%zu resumed logs with skipped updates: %zu pass, %zu undecided\n", count.logs,
                  count.passed, count.undecided);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > count.logs / 2);
}

static void verify_fit_lists_the_truth(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_fit(FITS, 3, 1, &count);
    print_message("%zu logs: %zu without their truth\n", count.logs, count.failed);
    assert_int_equal(count.failed, 0);
}

/* In a plateau of exact doubles one late value lies an ulp higher; the knee must still be the first
 * one. */
static void validate_a_plateau_with_an_ulp(void **state) {
    (void)state;
    static struct series_point points[100];
    struct arena arena = ARENA_EMPTY;
    struct contract_plan plan;
    struct fit_known known;
    struct fit_set set;
    fit_known_init(&known);
    known.request.contract = contract_find("olmo-core");
    known.request.schedule = "wsd";
    known.request.lr = 0.00095;
    known.request.warmup = 92.0;
    known.request.steps = 462;
    assert_int_equal(contract_resolve(&known.request, &arena, &plan), STATUS_OK);
    const struct lr_log log = {
        .plan = &plan, .first = 1, .every = 5, .last = 462, .print = LR_EXACT};
    const struct series series = {points, lr_log_points(&log, points)};
    assert_true(points[83].value > points[19].value); /* updates 416 and 96 */
    known.request.lr = known.request.warmup = real_nan_f64();
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_false(set.fits[0].first_differs);
    assert_true(set.fits[0].warmup == 92.0);
    arena_close(&arena);
}

/* A scheduler that moves at the end of an epoch, as Lightning's does by default, in logs whose rows
 * do not show every stair: sparse ones, ones from the middle of the run, and a last epoch that is
 * cut. The stairs are a formula here, and no contract. */
static void verify_sparse_logs_of_epochs_never_fail(void **state) {
    (void)state;
    static struct series_point points[200];
    static const struct {
        uint64_t of_epoch, epochs, warmup, first, every, cut;
    } cases[] = {
        {7, 9, 2, 5, 5, 0}, {25, 6, 0, 10, 10, 12}, {4, 20, 3, 33, 3, 1}, {13, 8, 1, 1, 7, 5}};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (int told = 0; told < 2; told++) {
            const uint64_t total = cases[c].of_epoch * cases[c].epochs, last = total - cases[c].cut;
            const double w = (double)cases[c].warmup, t = (double)cases[c].epochs;
            struct series series = {points, 0};
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            struct fit_check check;
            for (uint64_t k = cases[c].first; k <= last; k += cases[c].every) {
                const double epoch = (double)((k - 1) / cases[c].of_epoch);
                struct series_point *point = &points[series.count];
                *point = (struct series_point){.update = k, .row = series.count++};
                lr_print_point(point, 3e-4 * (epoch < w ? epoch / w : (t - epoch) / (t - w)),
                               told ? LR_E2 : LR_EXACT);
            }
            fit_known_init(&known);
            known.request.contract = contract_find("lightning-epoch");
            known.request.updates_per_epoch = cases[c].of_epoch;
            if (told) known.request.steps = last;
            assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
            if (check.verdict == FIT_FAIL) fail_msg("%zu, told %d: %s", c, told, check.words);
            if (cases[c].first < 33) assert_int_equal(check.verdict, FIT_PASS);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_check_never_fails),
        cmocka_unit_test(verify_check_of_the_applied_column_never_fails),
        cmocka_unit_test(verify_check_of_skips_never_fails),
        cmocka_unit_test(verify_check_of_resumed_logs_never_fails),
        cmocka_unit_test(verify_fit_lists_the_truth),
        cmocka_unit_test(validate_a_plateau_with_an_ulp),
        cmocka_unit_test(verify_sparse_logs_of_epochs_never_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
