/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which of two runs that write one log a row is of, against every pair of updates; which loss
 * stands before an evaluation; and how near to a number the ratios of losses must be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/macro.h"
#include "forensics/doctor/doctor_run.c" /* for the parts, which no other file asks for */

/* The writer whose last update lies closest before this one; the first of two that are there. */
static void validate_writers(void **state) {
    (void)state;
    for (int64_t a = 0; a < 6; a++)
        for (int64_t b = 0; b < 6; b++)
            for (int64_t step = 0; step < 7; step++) {
                const int64_t lasts[2] = {a, b};
                size_t expected = 2;
                for (size_t w = 0; w < 2; w++)
                    if (lasts[w] < step && (expected == 2 || lasts[w] > lasts[expected]))
                        expected = w;
                const struct writers writers = {.writer = {{.last = a}, {.last = b}}};
                assert_int_equal(goes_on(&writers, step), expected);
            }
}

static void validate_losses_before(void **state) {
    (void)state;
    struct series_point points[3];
    const struct series loss = {points, 3};
    for (size_t i = 0; i < 3; i++)
        points[i] = (struct series_point){.update = i + 1, .row = 2 * i + 1};
    for (size_t row = 0; row < 8; row++) {
        const struct series_point *expected = NULL;
        for (size_t i = 0; i < 3; i++)
            if (points[i].row <= row) expected = &points[i];
        assert_ptr_equal(loss_before(&loss, row), expected);
    }
    const struct series none = {points, 0};
    assert_null(loss_before(&none, 3));
}

/* Eight hundredths of 25 are 2. */
static void validate_near_ratios(void **state) {
    (void)state;
    assert_true((1.0 - 0.08) * 25.0 == 23.0 && (1.0 + 0.08) * 25.0 == 27.0);
    for (int low = 0; low < 2; low++)
        for (int high = 0; high < 2; high++) {
            const struct ratios ratios = {.low = low ? nextafter(23.0, 0.0) : 23.0,
                                          .high = high ? nextafter(27.0, 50.0) : 27.0};
            assert_int_equal(near_all(&ratios, 25.0), !low && !high);
            assert_false(near_all(&ratios, 26.0) || near_all(&ratios, 24.0));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_writers),
                                       cmocka_unit_test(validate_losses_before),
                                       cmocka_unit_test(validate_near_ratios)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
