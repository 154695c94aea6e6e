/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The spacings of the formats: those of known values, at the edges of binades and below the normal
 * numbers. The next value of the grid must be one spacing away and round to itself. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "base/macro.h"

static void validate_spacing(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        double value, spacing;
    } cases[] = {
        {DTYPE_F32, 1.0, 0x1p-23},          {DTYPE_F32, -1.0, 0x1p-23},
        {DTYPE_F32, 0x1.fffffep0, 0x1p-23}, {DTYPE_F32, 2.0, 0x1p-22},
        {DTYPE_F32, 0.0, 0x1p-149},         {DTYPE_F32, 0x1p-140, 0x1p-149},
        {DTYPE_F64, 1.0, 0x1p-52},          {DTYPE_F64, 0.0, 0x1p-1074},
        {DTYPE_BF16, 3.0, 0x1p-6},          {DTYPE_BF16, 0.0, 0x1p-133},
        {DTYPE_F16, 1.5, 0x1p-10},          {DTYPE_F16, 0x1p-20, 0x1p-24},
        {DTYPE_TF32, 1.0, 0x1p-10},         {DTYPE_E4M3, -3.5, 0x1p-2},
        {DTYPE_E4M3, 448.0, 32.0},          {DTYPE_E4M3, 0.0, 0x1p-9},
        {DTYPE_E5M2, 1.75, 0x1p-2},         {DTYPE_E5M2, 0x1p-15, 0x1p-16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(dtype_spacing(cases[i].value, cases[i].dtype) == cases[i].spacing);
}

/* The next value must be on the grid, and the point half-way to it must not. */
static void verify_grid(void **state) {
    (void)state;
    static const double values[] = {1.0, 1.5, -2.0, 0x1p-10, 0x1p-14, -0x1.8p3};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            const enum dtype of = (enum dtype)dtype;
            if (dtype_round(values[i], of) != values[i]) continue; /* e4m3 ends at 2^-9 */
            const double unit = dtype_spacing(values[i], of);
            const double up = values[i] < 0.0 ? values[i] - unit : values[i] + unit;
            assert_true(dtype_round(up, of) == up);
            if (of == DTYPE_F64) continue;
            const double half = values[i] < 0.0 ? values[i] - unit / 2 : values[i] + unit / 2;
            assert_true(dtype_round(half, of) != half);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_spacing),
        cmocka_unit_test(verify_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
