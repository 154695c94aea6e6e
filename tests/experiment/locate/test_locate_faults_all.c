/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * The proof of localisation: of 500 planted faults at least 99.5 % must be found exactly, in
 * update, phase, tensor and element (docs/measurements/localisation.md). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/experiment/locate/helper_fault.h"

enum { FAULTS = 500 };

static void verify_all(void **state) {
    (void)state;
    struct fault_score classes[FAULT_CLASSES] = {{0}}, changes[FAULT_CHANGES] = {{0}};
    struct fault_score total = {0};
    helper_faults(20261121, 0, FAULTS, classes, changes, &total);
    helper_faults_print(classes, changes, &total);
    assert_int_equal(total.faults, FAULTS);
    assert_true(1000 * total.exact >= 995 * total.faults);
    assert_true(1000 * total.element >= 995 * total.faults);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
