/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Numbers in their own width: every pattern of bf16 and f16 against the number that the formats'
 * definitions give it, by ldexp, there and back, NaN with their signs and fractions included; and
 * copies of whole tensors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/form.h"

enum { PATTERNS = 65536 };

static const struct {
    enum dtype dtype;
    int fraction, bias;
} formats[] = {{DTYPE_BF16, 7, 127}, {DTYPE_F16, 10, 15}};

/* The bits of the f32 that holds the number of a pattern. */
static uint32_t carrier_of(uint32_t pattern, int fraction, int bias) {
    const uint32_t digits = pattern & ((1u << fraction) - 1);
    const int field = (int)(pattern >> fraction & ((1u << (15 - fraction)) - 1));
    const int top = field == (1 << (15 - fraction)) - 1;
    const int exponent = (field == 0 ? 1 : field) - bias - fraction;
    const double whole = (double)(field == 0 ? digits : digits | 1u << fraction);
    const float value = top ? (float)INFINITY : (float)ldexp(whole, exponent);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (top && digits != 0) bits = 0x7f800000u | digits << (23 - fraction); /* NaN of any payload */
    return bits | (pattern & 0x8000u) << 16;
}

static uint16_t patterns[PATTERNS], again[PATTERNS + 1];
static uint32_t carriers[PATTERNS + 1];

static void verify_every_pattern(void **state) {
    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++)
        patterns[i] = (uint16_t)i;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        const struct form form = form_own(formats[f].dtype);
        assert_int_equal(form.width, 2);
        assert_true(form_is_narrow(form));
        carriers[PATTERNS] = 17;
        again[PATTERNS] = 18;
        form_widen(patterns, form, PATTERNS, carriers);
        form_narrow(carriers, form, PATTERNS, again);
        assert_int_equal(carriers[PATTERNS], 17);
        assert_int_equal(again[PATTERNS], 18);
        for (uint32_t i = 0; i < PATTERNS; i++) {
            const uint32_t want = carrier_of(i, formats[f].fraction, formats[f].bias);
            if (carriers[i] != want || again[i] != i)
                fail_msg("%s %04x: %08x and %04x, expected %08x", dtype_name(form.dtype), i,
                         carriers[i], again[i], want);
            float number;
            memcpy(&number, &want, sizeof number);
            const double got = form_get(patterns, form, i);
            if (isnan(number) ? !isnan(got) : got != (double)number)
                fail_msg("%s %04x: %a, expected %a", dtype_name(form.dtype), i, got,
                         (double)number);
        }
    }
}

static void verify_carriers(void **state) {
    static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64,  DTYPE_BF16, DTYPE_F16,
                                        DTYPE_TF32, DTYPE_E4M3, DTYPE_E5M2};
    const double wide[] = {1.5, -0.25, 0.0, 448.0};
    const float floats[] = {1.5f, -0.25f, 0.0f, 448.0f};
    unsigned char out[sizeof wide];
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        const struct form form = form_carried(dtypes[d]);
        const void *const values = dtypes[d] == DTYPE_F64 ? (const void *)wide : floats;
        const int narrow = dtypes[d] == DTYPE_BF16 || dtypes[d] == DTYPE_F16;
        assert_int_equal(form.width, dtype_carrier(dtypes[d]));
        assert_int_equal(form_own(dtypes[d]).width, narrow ? 2 : form.width);
        assert_false(form_is_narrow(form));
        form_widen(values, form, 4, out);
        assert_memory_equal(out, values, 4 * form.width);
        memset(out, 0, sizeof out);
        form_narrow(values, form, 4, out);
        assert_memory_equal(out, values, 4 * form.width);
        for (size_t i = 0; i < 4; i++)
            assert_true(form_get(values, form, i) == wide[i]);
        assert_ptr_equal(form_at(values, form, 3), (const char *)values + 3 * form.width);
        assert_null(form_at(NULL, form, 3));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_every_pattern),
                                       cmocka_unit_test(verify_carriers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
