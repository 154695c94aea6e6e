/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * MT19937 against the values that its authors and the C++ standard publish, and distances between
 * its states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "readback/twister.h"

/* [rand.predef] of the C++ standard: the 10000th number of mt19937 with its default seed 5489. */
static void validate_numbers(void **unused) {
    struct twister twister;
    uint32_t last = 0;
    (void)unused;
    twister_seed(&twister, 5489);
    for (int i = 0; i < 10000; i++)
        last = twister_draw(&twister);
    assert_int_equal(last, UINT32_C(4123659995));
}

static void verify_distances(void **unused) {
    static const uint32_t counts[] = {0, 1, 100, 623, 624, 625, 1247, 1248, 5000};
    struct twister earlier, later;
    uint64_t drawn;
    (void)unused;
    for (uint32_t from = 0; from < 1300; from += 623) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            twister_seed(&earlier, 42);
            for (uint32_t k = 0; k < from; k++)
                (void)twister_draw(&earlier);
            later = earlier;
            for (uint32_t k = 0; k < counts[i]; k++)
                (void)twister_draw(&later);
            drawn = UINT64_MAX;
            assert_true(twister_between(&earlier, &later, 20, &drawn));
            assert_int_equal(drawn, counts[i]);
            if (counts[i] > 0) assert_false(twister_between(&later, &earlier, 20, &drawn));
        }
    }
    twister_seed(&later, 43);
    (void)twister_draw(&later);
    assert_false(twister_between(&earlier, &later, 100, &drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_numbers),
        cmocka_unit_test(verify_distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
