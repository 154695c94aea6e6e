/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The functions of base/real.h at special values and at the ends of their ranges, by bits: zeros
 * with sign, infinities, NaN, the thresholds of overflow and underflow, and C11 Annex F for pow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/real.h"
#include "tests/base/helper_random.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static void assert_same(double ours, double expected, const char *name, double x, double y) {
    if (ours != ours && expected != expected) return;
    if (real_bits_f64(ours) == real_bits_f64(expected)) return;
    fail_msg("%s(%a, %a) = %a, expected %a", name, x, y, ours, expected);
}

struct unary_case {
    const char *name;
    double (*f64)(double);
    float (*f32)(float);
    double x, expected;
};

#define UNARY(name) #name, real_##name##_f64, real_##name##_f32

/* These are exact in both types, so that the same case tests f64 and f32. */
static const struct unary_case unary_cases[] = {
    {UNARY(exp), 0.0, 1.0},
    {UNARY(exp), -0.0, 1.0},
    {UNARY(exp), INF, INF},
    {UNARY(exp), -INF, 0.0},
    {UNARY(exp), NOT, NOT},
    {UNARY(exp), 1e30, INF},
    {UNARY(exp), -1e30, 0.0},
    {UNARY(exp), 0x1p-60, 1.0},
    {UNARY(exp2), 0.0, 1.0},
    {UNARY(exp2), -0.0, 1.0},
    {UNARY(exp2), 10.0, 1024.0},
    {UNARY(exp2), -126.0, 0x1p-126},
    {UNARY(exp2), 127.0, 0x1p127},
    {UNARY(exp2), INF, INF},
    {UNARY(exp2), -INF, 0.0},
    {UNARY(exp2), NOT, NOT},
    {UNARY(exp2), 1e30, INF},
    {UNARY(exp2), -1e30, 0.0},
    {UNARY(expm1), 0.0, 0.0},
    {UNARY(expm1), -0.0, -0.0},
    {UNARY(expm1), INF, INF},
    {UNARY(expm1), -INF, -1.0},
    {UNARY(expm1), NOT, NOT},
    {UNARY(expm1), 1e30, INF},
    {UNARY(expm1), -1e30, -1.0},
    {UNARY(expm1), 0x1p-140, 0x1p-140},
    {UNARY(tanh), 0.0, 0.0},
    {UNARY(tanh), -0.0, -0.0},
    {UNARY(tanh), INF, 1.0},
    {UNARY(tanh), -INF, -1.0},
    {UNARY(tanh), NOT, NOT},
    {UNARY(tanh), 1e30, 1.0},
    {UNARY(tanh), -1e30, -1.0},
    {UNARY(tanh), -0x1p-140, -0x1p-140},
    {UNARY(log), 1.0, 0.0},
    {UNARY(log), 0.0, -INF},
    {UNARY(log), -0.0, -INF},
    {UNARY(log), -1.0, NOT},
    {UNARY(log), INF, INF},
    {UNARY(log), -INF, NOT},
    {UNARY(log), NOT, NOT},
    {UNARY(log1p), 0.0, 0.0},
    {UNARY(log1p), -0.0, -0.0},
    {UNARY(log1p), -1.0, -INF},
    {UNARY(log1p), -1.5, NOT},
    {UNARY(log1p), INF, INF},
    {UNARY(log1p), -INF, NOT},
    {UNARY(log1p), NOT, NOT},
    {UNARY(log1p), 0x1p-140, 0x1p-140},
    {UNARY(sin), 0.0, 0.0},
    {UNARY(sin), -0.0, -0.0},
    {UNARY(sin), INF, NOT},
    {UNARY(sin), NOT, NOT},
    {UNARY(sin), 1048577.0, NOT},
    {UNARY(sin), -1048577.0, NOT},
    {UNARY(sin), 0x1p-140, 0x1p-140},
    {UNARY(cos), 0.0, 1.0},
    {UNARY(cos), -0.0, 1.0},
    {UNARY(cos), -INF, NOT},
    {UNARY(cos), NOT, NOT},
    {UNARY(cos), 1048577.0, NOT},
    {UNARY(cos), 0x1p-140, 1.0},
};

static void validate_unary(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(unary_cases); i++) {
        const struct unary_case *c = &unary_cases[i];
        assert_same(c->f64(c->x), c->expected, c->name, c->x, 0.0);
        assert_same((double)c->f32((float)c->x), c->expected, c->name, c->x, 0.0);
    }
}

/* The last argument before and the first one after each threshold. */
static void validate_thresholds(void **state) {
    (void)state;
    float low = -0x1.5d589ep+6f; /* ln 2^-126 is between it and the next smaller float */
    assert_true(real_exp_f32(low) >= 0x1p-126f && real_exp_f32(low) < 0x1.0001p-126f);
    assert_int_equal(real_bits_f32(real_exp_f32(real_next_down_f32(low))), 0);
    assert_true(exp((double)real_next_down_f32(low)) < 0x1p-126 && exp((double)low) > 0x1p-126);
    float high = 0x1.62e42ep+6f;
    assert_true(real_exp_f32(high) > 0x1.fffp127f && real_exp_f32(high) <= FLT_MAX);
    assert_true(real_exp_f32(real_next_up_f32(high)) == INFINITY);
    assert_true(real_exp2_f32(-126.0f) == 0x1p-126f);
    assert_int_equal(real_bits_f32(real_exp2_f32(real_next_down_f32(-126.0f))), 0);
    assert_true(real_exp2_f32(real_next_down_f32(128.0f)) <= FLT_MAX);
    assert_true(real_exp2_f32(128.0f) == INFINITY);
    assert_true(real_exp_f64(0x1.62e42fefa39efp+9) <= DBL_MAX);
    assert_true(real_exp_f64(real_next_up_f64(0x1.62e42fefa39efp+9)) == INF);
    assert_true(real_exp_f64(-745.0) == 0x1p-1074 && real_exp_f64(-746.0) == 0.0);
    assert_true(real_exp2_f64(-1074.0) == 0x1p-1074 && real_exp2_f64(-1075.0) == 0.0);
    assert_true(real_exp2_f64(1023.0) == 0x1p1023 && real_exp2_f64(1024.0) == INF);
    assert_true(real_log_f64(0x1p-1074) == -0x1.74385446d71c3p+9);
    assert_true(real_finite_f64(real_sin_f64(0x1p20)) && real_finite_f64(real_cos_f64(-0x1p20)));
    double beyond = real_next_up_f64(0x1p20);
    assert_true(real_sin_f64(beyond) != real_sin_f64(beyond));
}

/* f32 exp must have no subnormal result, whatever the argument (law 8). */
static void verify_exp_has_no_subnormals(void **state) {
    (void)state;
    for (float x = -86.0f; x > -105.0f; x = real_next_down_f32(x)) {
        float y = real_exp_f32(x);
        if (y != 0.0f && y < 0x1p-126f) fail_msg("exp(%a) = %a", (double)x, (double)y);
    }
}

struct pow_case {
    double x, y, expected;
};

static const struct pow_case pow_cases[] = {
    {2.0, 10.0, 1024.0},
    {2.0, -1074.0, 0x1p-1074},
    {2.0, 1024.0, INF},
    {2.0, -1080.0, 0.0},
    {9.0, 0.5, 3.0},
    {10.0, 2.0, 100.0},
    {10.0, -1.0, 0.1},
    {-2.0, 3.0, -8.0},
    {-2.0, 2.0, 4.0},
    {-2.0, 0.5, NOT},
    {-8.0, 1.0 / 3, NOT},
    {-2.0, 0x1p60, INF},
    {-0.5, 0x1p60, 0.0},
    {-2.0, 2001.0, -INF},
    {-2.0, -2001.0, -0.0},
    {0.0, 3.0, 0.0},
    {-0.0, 3.0, -0.0},
    {-0.0, 2.0, 0.0},
    {0.0, -3.0, INF},
    {-0.0, -3.0, -INF},
    {-0.0, -2.0, INF},
    {-0.0, -0.5, INF},
    {-0.0, 0.5, 0.0},
    {-1.0, INF, 1.0},
    {-1.0, -INF, 1.0},
    {1.0, NOT, 1.0},
    {1.0, INF, 1.0},
    {NOT, 0.0, 1.0},
    {NOT, -0.0, 1.0},
    {NOT, 1.0, NOT},
    {2.0, NOT, NOT},
    {0.5, -INF, INF},
    {2.0, -INF, 0.0},
    {0.5, INF, 0.0},
    {2.0, INF, INF},
    {-2.0, INF, INF},
    {-INF, -3.0, -0.0},
    {-INF, -2.0, 0.0},
    {-INF, 3.0, -INF},
    {-INF, 2.0, INF},
    {-INF, 0.5, INF},
    {INF, -2.0, 0.0},
    {INF, 2.0, INF},
    {-INF, INF, INF},
    {0.0, INF, 0.0},
    {0.0, -INF, INF},
    {0x1p-1074, 0.5, 0x1p-537},
    {0x1p-1074, 1.0, 0x1p-1074},
    {1.5, 1.0, 1.5},
    {-1.0, 0x1p53, 1.0},
    {-1.0, 0x1.fffffffffffffp52, -1.0},
};

static void validate_pow(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pow_cases); i++) {
        const struct pow_case *c = &pow_cases[i];
        assert_same(real_pow_f64(c->x, c->y), c->expected, "pow", c->x, c->y);
        assert_same(pow(c->x, c->y), c->expected, "libm pow", c->x, c->y);
    }
    assert_true(real_pow_f32(2.0f, -149.0f) == 0x1p-149f);
    assert_true(real_pow_f32(2.0f, 128.0f) == INFINITY);
    assert_true(real_pow_f32(-3.0f, 3.0f) == -27.0f);
    assert_true(real_pow_f32(10000.0f, -0.5f) == 0.01f);
}

static void verify_symmetry(void **state) {
    (void)state;
    struct random_source source = {7};
    for (int i = 0; i < 20000; i++) {
        double x = random_between(&source, -1000.0, 1000.0);
        assert_true(real_sin_f64(-x) == -real_sin_f64(x));
        assert_true(real_cos_f64(-x) == real_cos_f64(x));
        assert_true(real_tanh_f64(-x / 64.0) == -real_tanh_f64(x / 64.0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_unary),
        cmocka_unit_test(validate_thresholds),
        cmocka_unit_test(verify_exp_has_no_subnormals),
        cmocka_unit_test(validate_pow),
        cmocka_unit_test(verify_symmetry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
