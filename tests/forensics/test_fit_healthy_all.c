/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * Runs test_fit_healthy with 1,000 trainings of every contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/forensics/helper_healthy.h"

static void verify_check_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check(1000, 11, 0, &count);
    print_message("%zu logs: %zu pass, %zu undecided by the printed column\n", count.logs,
                  count.passed, count.undecided);
    assert_true(count.logs >= 28000);
    assert_int_equal(count.failed, 0);
}

static void verify_check_of_skips_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_skips(280, 14, 0, &count);
    print_message("%zu logs with skipped updates: %zu pass, %zu undecided\n", count.logs,
                  count.passed, count.undecided);
    assert_true(count.logs >= 3000);
    assert_int_equal(count.failed, 0);
}

static void verify_check_of_resumed_logs_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_resumed(100, 15, 0, &count);
    print_message("%zu resumed logs with skipped updates: %zu pass, %zu undecided\n", count.logs,
                  count.passed, count.undecided);
    assert_true(count.logs >= 1000);
    assert_int_equal(count.failed, 0);
}

static void verify_fit_lists_the_truth(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_fit(50, 13, 0, &count);
    print_message("%zu logs: %zu without their truth\n", count.logs, count.failed);
    assert_int_equal(count.failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_check_of_skips_never_fails),
        cmocka_unit_test(verify_check_of_resumed_logs_never_fails),
        cmocka_unit_test(verify_check_never_fails),
        cmocka_unit_test(verify_fit_lists_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
