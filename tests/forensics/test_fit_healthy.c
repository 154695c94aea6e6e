/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * No false alarm: healthy logs of random trainings under every shipped contract. A check with the
 * right expectation never fails, and a fit lists the truth. A sample; test_fit_healthy_all has
 * 1,000 trainings of every contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/forensics/helper_healthy.h"

#define CHECKS 40
#define FITS 4

static void verify_check_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check(CHECKS, 1, &count);
    print_message("%zu logs: %zu pass, %zu undecided by the printed column\n", count.logs,
                  count.passed, count.undecided);
    assert_true(count.logs >= 20 * CHECKS);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > count.logs / 2);
}

static void verify_check_of_the_applied_column_never_fails(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_check_applied(CHECKS / 4, 2, &count);
    assert_int_equal(count.failed, 0);
    assert_true(count.passed > 0);
    assert_true(count.undecided > 0);
}

static void verify_fit_lists_the_truth(void **state) {
    (void)state;
    struct healthy_count count = {0};
    healthy_fit(FITS, 3, &count);
    print_message("%zu logs: %zu without their truth\n", count.logs, count.failed);
    assert_int_equal(count.failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_check_never_fails),
        cmocka_unit_test(verify_check_of_the_applied_column_never_fails),
        cmocka_unit_test(verify_fit_lists_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
