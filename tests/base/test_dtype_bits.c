/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The bits of stored numbers: against patterns that the formats' definitions print (IEEE 754-2019,
 * table 3.5; bfloat16; table 1 of Micikevicius et al., 2022), and every pattern of the narrow
 * formats there and back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype_bits.h"
#include "base/element.h"
#include "base/macro.h"

static const struct known {
    enum dtype dtype;
    uint64_t bits;
    double value;
} known[] = {
    {DTYPE_F16, 0x3c00, 1.0},
    {DTYPE_F16, 0xc000, -2.0},
    {DTYPE_F16, 0x7bff, 65504.0},
    {DTYPE_F16, 0x0400, 0x1p-14},
    {DTYPE_F16, 0x03ff, 0x1p-14 - 0x1p-24},
    {DTYPE_F16, 0x0001, 0x1p-24},
    {DTYPE_F16, 0x3555, 0.333251953125},
    {DTYPE_F16, 0x7c00, INFINITY},
    {DTYPE_F16, 0x8000, -0.0},
    {DTYPE_BF16, 0x3f80, 1.0},
    {DTYPE_BF16, 0x4049, 3.140625},
    {DTYPE_BF16, 0xff80, -INFINITY},
    {DTYPE_E4M3, 0x7e, 448.0},
    {DTYPE_E4M3, 0x08, 0x1p-6},
    {DTYPE_E4M3, 0x07, 0x1.cp-7},
    {DTYPE_E4M3, 0x01, 0x1p-9},
    {DTYPE_E4M3, 0xb8, -1.0},
    {DTYPE_E5M2, 0x7b, 57344.0},
    {DTYPE_E5M2, 0x04, 0x1p-14},
    {DTYPE_E5M2, 0x03, 0x1.8p-15},
    {DTYPE_E5M2, 0x01, 0x1p-16},
    {DTYPE_E5M2, 0xfc, -INFINITY},
    {DTYPE_F32, 0x40490fdb, 0x1.921fb6p+1},
    {DTYPE_F64, 0x400921fb54442d18, 0x1.921fb54442d18p+1},
};

static void validate_patterns(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        double room[2] = {0.0, 0.0}, back[2] = {0.0, 0.0};
        element_set(room, known[i].dtype, 1, known[i].value);
        assert_true(dtype_bits(room, known[i].dtype, 1) == known[i].bits);
        dtype_set_bits(back, known[i].dtype, 1, known[i].bits);
        assert_memory_equal(room, back, sizeof room);
    }
}

static void verify_every_pattern(void **state) {
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_E4M3, DTYPE_E5M2};
    static const size_t nans[] = {254, 2046, 2, 6}; /* patterns of each format that are NaN */
    (void)state;
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        size_t met = 0;
        for (uint64_t bits = 0; bits < UINT64_C(1) << 8 * dtype_width(dtypes[d]); bits++) {
            float value;
            dtype_set_bits(&value, dtypes[d], 0, bits);
            if (isnan(value)) {
                met++;
                dtype_set_bits(&value, dtypes[d], 0, dtype_bits(&value, dtypes[d], 0));
                assert_true(isnan(value));
                continue;
            }
            assert_true(dtype_bits(&value, dtypes[d], 0) == bits);
            assert_true(dtype_round((double)value, dtypes[d]) == (double)value);
        }
        assert_int_equal(met, nans[d]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_patterns),
                                       cmocka_unit_test(verify_every_pattern)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
