/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit
 * A slice of the proof of localisation (test_locate_faults_all.c): planted faults must be found to
 * the element by a finder that does not know them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/experiment/locate/helper_fault.h"

static void verify_slice(void **state) {
    (void)state;
    struct fault_score classes[FAULT_CLASSES] = {{0}}, changes[FAULT_CHANGES] = {{0}};
    struct fault_score total = {0};
    helper_faults(20261121, 1000, 25, classes, changes, &total);
    helper_faults_print(classes, changes, &total);
    assert_int_equal(total.faults, 25);
    assert_int_equal(total.element, total.faults);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_slice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
