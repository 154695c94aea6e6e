/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The axes of drawings: round ticks whose labels read back to them, and places in order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"
#include "report/scale.h"

static const double ranges[][2] = {{0, 1},
                                   {0.69304, 0.69321},
                                   {5, 5},
                                   {0, 0},
                                   {-3, 17},
                                   {1e-7, 5e-7},
                                   {-1e300, 1e300},
                                   {-DBL_MAX, DBL_MAX},
                                   {0.1, 0.1000000000000001},
                                   {1, 1e9},
                                   {DBL_MIN, 3 * DBL_MIN},
                                   {0x1p-1074, 0x1p-1074},
                                   {1e308, DBL_MAX},
                                   {2, 1}};

static void require_order(const struct scale *scale, int first, int least_ticks) {
    if (scale->count < least_ticks) fail_msg("range %d: only %d ticks", first, scale->count);
    for (int i = 0; i < scale->count; i++) {
        double read;
        assert_true(scale->tick[i] >= scale->low && scale->tick[i] <= scale->high);
        if (i > 0) assert_true(scale->tick[i] > scale->tick[i - 1]);
        if (i > 0)
            assert_true(scale_place(scale, scale->tick[i]) >
                        scale_place(scale, scale->tick[i - 1]));
        if (number_parse_real(scale->label[i], NUMBER_FINITE, &read) != STATUS_OK ||
            read != scale->tick[i])
            fail_msg("range %d: label %s is not %s", first, scale->label[i],
                     number_text_f64(scale->tick[i]).text);
    }
}

static void verify_linear(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        struct scale scale;
        scale_init_linear(&scale, ranges[i][0], ranges[i][1], 6);
        require_order(&scale, (int)i, 2);
        assert_true(scale.low < scale.high);
        assert_true(scale_place(&scale, scale.low) == 0.0);
        assert_true(scale_place(&scale, scale.high) == 1.0);
    }
}

static void verify_logarithmic(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        struct scale scale;
        if (!(ranges[i][0] > 0.0) || ranges[i][1] < ranges[i][0]) continue;
        scale_init_log(&scale, ranges[i][0], ranges[i][1], 6);
        require_order(&scale, (int)i, 1);
        if (ranges[i][0] >= 1e-300) assert_true(scale.low <= ranges[i][0]);
        if (ranges[i][1] <= 1e300) assert_true(scale.high >= ranges[i][1]);
        assert_true(scale.low < scale.high);
    }
}

static void validate_labels(void **state) {
    struct scale scale;
    (void)state;
    scale_init_linear(&scale, 0.69304, 0.69321, 6);
    assert_string_equal(scale.label[0], "0.69300");
    assert_string_equal(scale.label[1], "0.69305");
    assert_int_equal(scale.count, 6);
    assert_int_equal(scale_widest(&scale), 7);
    scale_init_linear(&scale, 0, 5e-7, 6);
    assert_string_equal(scale.label[0], "0");
    assert_string_equal(scale.label[5], "5e-07");
    scale_init_log(&scale, 3e-9, 2e-5, 6);
    assert_string_equal(scale.label[0], "1e-08");
    assert_true(scale.low == 2e-9 && scale.high == 2e-5);
    scale_init_log(&scale, 0.4, 40, 6);
    assert_string_equal(scale.label[0], "0.2");
    scale_init_counts(&scale, 1, 5, 7);
    assert_int_equal(scale.count, 5);
    assert_string_equal(scale.label[4], "5");
    assert_true(scale.low == 0.5 && scale.high == 5.5);
    scale_init_counts(&scale, 1, 10000, 7);
    assert_string_equal(scale.label[0], "2000");
    assert_string_equal(scale.label[scale.count - 1], "10000");
    scale_init_counts(&scale, 0x1p62, 0x1p62, 7); /* half an update is nothing there */
    assert_int_equal(scale.count, 1);
    assert_true(scale_place(&scale, 0x1p62) >= 0.0);
    scale_init_counts(&scale, 1, 10000, 7);
    scale_place_between(&scale, 100.0, 0.0);
    assert_true(scale_place(&scale, 0.5) == 100.0 && scale_place(&scale, 1e9) == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_linear),
        cmocka_unit_test(verify_logarithmic),
        cmocka_unit_test(validate_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
