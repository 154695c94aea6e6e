/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The limits of what the projection takes: the numbers of factors and of runs of each hybrid, and
 * the confidence, each just inside and just outside. An end point that is not finite ends a call
 * that passed them all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/real.h"
#include "determinism/projection.h"

static void verify_limits(void **state) {
    static const struct {
        uint32_t factors;
        size_t n;
        double confidence;
        enum status status;
        const char *text;
    } cases[] = {
        {0, 3, 0.95, STATUS_INTERNAL, "0 factors, expected 1 to 5"},
        {1, 3, 0.95, STATUS_UNTESTABLE, "diverged"},
        {5, 3, 0.95, STATUS_UNTESTABLE, "diverged"},
        {6, 3, 0.95, STATUS_INTERNAL, "6 factors, expected 1 to 5"},
        {2, 2, 0.95, STATUS_UNTESTABLE, "2 runs of each hybrid give no interval: 3 would"},
        {2, 3, 0.0, STATUS_INPUT, "expected a number in (0, 1), got 0"},
        {2, 3, 0x1p-1074, STATUS_UNTESTABLE, "diverged"},
        {2, 3, 1.0 - 0x1p-53, STATUS_UNTESTABLE, "diverged"},
        {2, 3, 1.0, STATUS_INPUT, "expected a number in (0, 1), got 1"},
    };
    (void)state;
    const double diverged = real_nan_f64();
    struct arena arena = ARENA_EMPTY;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct projection_sizes sizes;
        assert_int_equal(projection_sizes(cases[i].factors, cases[i].n, &diverged,
                                          cases[i].confidence, &arena, &sizes),
                         cases[i].status);
        assert_non_null(strstr(status_text(), cases[i].text));
    }
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
