/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/variant.h for f32 carriers with f64 accumulation: names, one rounding, the dtype switch, and
 * optimizers that do not depend on the accumulator. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#define TWINSTEP_VARIANT f32_f64_test
#define TWINSTEP_CARRIER_f32 1
#define TWINSTEP_ACCUMULATOR_f64 1
#include "base/rule.h"
#include "base/sum.h"
#include "tests/base/helper_adamw.h"
#include "tests/base/helper_random.h"

static int VARIANT(named)(void) {
    return 1;
}

static void validate_names(void **state) {
    (void)state;
    const float x[2] = {0.1f, 0.2f};
    const double y[2] = {0.1, 0.2};
    assert_int_equal(named_f32_f64_test(), 1);
    assert_true(PAIR(sum_terms)(x, 2) == (double)0.1f + (double)0.2f);
    assert_true(TERM(sum_terms)(y, 2) == 0.1 + 0.2);
    assert_int_equal(sizeof(ACC(0.5)), sizeof(accumulator));
    assert_true(acc_exp(1.0) == real_exp_f64(1.0) && acc_fma(2.0, 3.0, 4.0) == 10.0);
}

/* The number lies above a tie by less than an f32 can tell, so rounding to f32 first would lose
 * it. */
static void verify_one_rounding(void **state) {
    (void)state;
    const double above = 0x1p-45;
    assert_true(carrier_round(1.0 + 0x1p-8 + above, DTYPE_BF16) == 0x1.02p0f);
    assert_true(carrier_round(1.0 + 0x1p-8, DTYPE_BF16) == 1.0f);
    assert_true(carrier_round(1.0 + 0x1p-11 + above, DTYPE_F16) == 0x1.004p0f);
    assert_true(carrier_round(1.0 + 0x1p-11 - above, DTYPE_TF32) == 1.0f);
    assert_true(carrier_round(1.0 + 0x1p-24 + above, DTYPE_F32) == 0x1.000002p0f);
    assert_true(carrier_store(1.0 + 0x1p-4 + above, DTYPE_E4M3) == 1.125f);
    assert_true(carrier_store(1.0 + 0x1p-3 + above, DTYPE_E5M2) == 1.25f);
}

static enum dtype seen;

static void note(enum dtype dtype) {
    seen = dtype;
}

static void verify_switch_reaches_every_dtype(void **state) {
    (void)state;
    for (int d = 0; d < (int)DTYPE_COUNT; d++) {
        seen = DTYPE_COUNT;
        STORAGE_SWITCH((enum dtype)d, note);
        assert_int_equal(seen, d);
        if (d == DTYPE_E4M3 || d == DTYPE_E5M2) continue;
        seen = DTYPE_COUNT;
        DTYPE_SWITCH((enum dtype)d, note);
        assert_int_equal(seen, d);
    }
}

/* The same step written out in float arithmetic, which is what the pair f32_f32 computes. */
static void verify_optimizer_ignores_the_accumulator(void **state) {
    (void)state;
    struct random_source source = {61};
    for (int i = 0; i < 5000; i++) {
        const struct rule_adam k = helper_adamw(1e-3, 0.1, (uint64_t)(i + 1));
        float p = (float)random_between(&source, -1.0, 1.0);
        float m = (float)random_between(&source, -1.0, 1.0);
        float v = (float)random_between(&source, 0.0, 1.0);
        float g = (float)random_between(&source, -1.0, 1.0);
        struct rule_adam_element e = {p, m, v, 0};
        rule_adam_torch(&e, g, &k, DTYPE_F32, DTYPE_F32);
        m = m + k.weight1 * (g - m);
        v = v * k.beta2 + k.weight2 * g * g;
        float d = real_sqrt_f32(v) / k.root_correction + k.eps;
        p = p * k.decay + k.minus_step * (m / d);
        assert_int_equal(real_bits_f32(e.m), real_bits_f32(m));
        assert_int_equal(real_bits_f32(e.v), real_bits_f32(v));
        assert_int_equal(real_bits_f32(e.p), real_bits_f32(p));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_names),
        cmocka_unit_test(verify_one_rounding),
        cmocka_unit_test(verify_switch_reaches_every_dtype),
        cmocka_unit_test(verify_optimizer_ignores_the_accumulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
