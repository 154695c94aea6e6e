/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The bisection of two chains of roots must find the first difference at every place where it can
 * be, in the number of comparisons that bisection allows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "determinism/chain.h"

struct pair {
    uint64_t first; /* first differing update; 0 none */
    uint64_t asked[64];
    uint32_t calls;
    uint64_t fails_at; /* 0: never */
};

static enum status compare(void *context, uint64_t update, int *out_equal) {
    struct pair *pair = (struct pair *)context;
    if (update == pair->fails_at) FAIL(STATUS_INPUT, "no root of update %u", (unsigned)update);
    for (uint32_t i = 0; i < pair->calls; i++)
        assert_true(pair->asked[i] != update);
    pair->asked[pair->calls++] = update;
    *out_equal = pair->first == 0 || update < pair->first;
    return STATUS_OK;
}

/* Returns the smallest c with 2^c >= count, found by counting. */
static uint32_t log2_up(uint64_t count) {
    uint32_t c = 0;
    while (c < 63 && (UINT64_C(1) << c) < count)
        c++;
    return c;
}

static void verify_every_place(void **state) {
    (void)state;
    for (uint64_t count = 0; count <= 70; count++) {
        for (uint64_t first = 0; first <= count; first++) {
            struct pair pair = {.first = first};
            uint64_t found = 99;
            uint32_t comparisons = 99;
            assert_int_equal(chain_first_difference(compare, &pair, count, &found, &comparisons),
                             STATUS_OK);
            assert_int_equal(found, first);
            assert_int_equal(comparisons, pair.calls);
            assert_true(comparisons <= chain_comparisons(count));
            if (count > 0 && first == 0) assert_int_equal(comparisons, 1);
        }
        assert_int_equal(chain_comparisons(count), count == 0 ? 0 : log2_up(count) + 1);
    }
}

static void validate_long(void **state) {
    (void)state;
    const uint64_t count = UINT64_C(1) << 40;
    const uint64_t places[] = {1, 2, 3, count / 2, count / 2 + 1, count - 1, count, 123456789012};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct pair pair = {.first = places[i]};
        uint64_t found;
        uint32_t comparisons;
        assert_int_equal(chain_first_difference(compare, &pair, count, &found, &comparisons),
                         STATUS_OK);
        assert_int_equal(found, places[i]);
        assert_true(comparisons <= 41);
    }
}

static void validate_next(void **state) {
    (void)state;
    static const uint64_t rows[][3] = {{0, 1, 0},
                                       {0, 2, 1},
                                       {0, 8, 4},
                                       {4, 8, 6},
                                       {4, 6, 5},
                                       {5, 6, 0},
                                       {0, UINT64_MAX, UINT64_MAX / 2}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_true(chain_next(rows[i][0], rows[i][1]) == rows[i][2]);
}

static void validate_failure(void **state) {
    (void)state;
    struct pair pair = {.first = 3, .fails_at = 4};
    uint64_t found;
    uint32_t comparisons;
    assert_int_equal(chain_first_difference(compare, &pair, 8, &found, &comparisons), STATUS_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_place),
        cmocka_unit_test(validate_long),
        cmocka_unit_test(validate_next),
        cmocka_unit_test(validate_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
