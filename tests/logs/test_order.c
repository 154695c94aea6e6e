/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Two printed numbers against each other, either way round: exact ones, those that differ by half
 * of a printed step and by a little more, and what is no finite number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/macro.h"
#include "logs/log.h"

#define INF ((double)INFINITY)
#define NO ((double)NAN)

static void validate_order(void **state) {
    (void)state;
    static const struct {
        double a, qa, b, qb;
        enum log_order order;
    } cases[] = {
        {1.0, 0, 1.0, 0, LOG_EQUAL},
        {0.0, 0, -0.0, 0, LOG_EQUAL},
        {1.0, 0.1, 1.0, 0, LOG_WITHIN}, /* the same digits are no proof of the same number */
        {1.0, 0, 1.0 + 0x1p-52, 0, LOG_DIFFERENT},
        {1.0, 0.1, 1.05, 0, LOG_WITHIN},
        {1.0, 0.1, 1.0501, 0, LOG_DIFFERENT},
        {1.0, 0.1, 1.0999, 0.1, LOG_WITHIN},
        {1.0, 0.1, 1.1001, 0.1, LOG_DIFFERENT},
        {-1.0, 0.1, -1.0999, 0.1, LOG_WITHIN},
        {-1.0, 0.1, -1.1001, 0.1, LOG_DIFFERENT},
        {-0.05, 0.1, 0.05, 0.1, LOG_WITHIN},
        {-0.0501, 0.1, 0.05, 0.1, LOG_DIFFERENT},
        {0x1p40, 1.0, 0x1p40 + 1.0, 1.0, LOG_WITHIN},
        {NO, 0, NO, 0, LOG_EQUAL},
        {NO, 0.1, NO, 0, LOG_EQUAL},
        {NO, 0, 1.0, 0.1, LOG_DIFFERENT},
        {NO, 0, INF, 0.1, LOG_DIFFERENT},
        /* An infinite number is no finite one, however coarse the print is. */
        {INF, 0, INF, 0, LOG_EQUAL},
        {-INF, 0, -INF, 0, LOG_EQUAL},
        {INF, 0.1, INF, 0, LOG_WITHIN},
        {INF, 0, -INF, 0, LOG_DIFFERENT},
        {INF, 0.1, -INF, 0.1, LOG_DIFFERENT},
        {INF, 0, 1.0, 0, LOG_DIFFERENT},
        {INF, 0, 1.0, 0.1, LOG_DIFFERENT},
        {INF, 0.1, 1.0, 0.1, LOG_DIFFERENT},
        {-INF, 0, 1.0, 0.1, LOG_DIFFERENT},
        {-INF, 0.1, -1.7e308, 1e300, LOG_DIFFERENT},
        {-1.7e308, 1e300, 1.7e308, 1e300, LOG_DIFFERENT},
        {1.0, NO, 1.0, 0, LOG_MISSING}, /* the quantum says that there is no number */
        {NO, NO, NO, NO, LOG_MISSING},
        {INF, NO, 1.0, 0.1, LOG_MISSING},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (log_compare(cases[i].a, cases[i].qa, cases[i].b, cases[i].qb) != cases[i].order)
            fail_msg("case %zu", i);
        if (log_compare(cases[i].b, cases[i].qb, cases[i].a, cases[i].qa) != cases[i].order)
            fail_msg("case %zu, the other way round", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
