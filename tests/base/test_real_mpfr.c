/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * exp, exp2, expm1, log, log1p, pow, tanh, sin and cos against MPFR at 200 bits. The error is
 * counted in ulps of the exact result (for subnormal results in the least subnormal). The largest
 * error of each function is printed; the bounds are those that base/real_*.h state.
 * test_real_proof.c and test_real_exhaustive.c say more, through a reference of their own, with
 * which this test shares nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>

#include "base/real.h"
#include "tests/base/helper_random.h"
#include "tests/base/helper_size.h"

#define BITS 200

typedef int (*exact_function)(mpfr_t, const mpfr_t, mpfr_rnd_t);

struct range {
    double low, high; /* low == high: any bits, positive where low is 1 */
};

struct function {
    const char *name;
    double (*f64)(double);
    float (*f32)(float);
    exact_function exact;
    double bound_f64, bound_f32;
    struct range ranges[5];
};

static int exact_exp2(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    return mpfr_exp2(y, x, round);
}

static const struct function functions[] = {
    {"exp",
     real_exp_f64,
     real_exp_f32,
     mpfr_exp,
     1.0,
     1.0,
     {{-746, 710}, {-1, 1}, {-88, 89}, {-1e-3, 1e-3}, {0, 0}}},
    {"exp2",
     real_exp2_f64,
     real_exp2_f32,
     exact_exp2,
     1.0,
     1.0,
     {{-1076, 1025}, {-1, 1}, {-127, 128}, {-1e-3, 1e-3}, {0, 0}}},
    {"expm1",
     real_expm1_f64,
     real_expm1_f32,
     mpfr_expm1,
     1.2,
     0.5001,
     {{-42, 710}, {-1, 1}, {-4, 4}, {-1e-3, 1e-3}, {0, 0}}},
    {"tanh",
     real_tanh_f64,
     real_tanh_f32,
     mpfr_tanh,
     1.0,
     0.5001,
     {{-20, 20}, {-1, 1}, {0.9, 1.1}, {-1e-3, 1e-3}, {0, 0}}},
    {"log",
     real_log_f64,
     real_log_f32,
     mpfr_log,
     1.0,
     0.5001,
     {{0, 10}, {0.7, 1.42}, {0.999, 1.001}, {0, 1e6}, {1, 1}}},
    {"log1p",
     real_log1p_f64,
     real_log1p_f32,
     mpfr_log1p,
     1.0,
     0.5001,
     {{-1, 1}, {-0.3, 0.42}, {-1e-3, 1e-3}, {0, 1e6}, {1, 1}}},
    {"sin",
     real_sin_f64,
     real_sin_f32,
     mpfr_sin,
     1.0,
     0.5001,
     {{-4, 4}, {-1048576, 1048576}, {3.1415, 3.1417}, {-1e-3, 1e-3}, {-100, 100}}},
    {"cos",
     real_cos_f64,
     real_cos_f32,
     mpfr_cos,
     1.0,
     0.5001,
     {{-4, 4}, {-1048576, 1048576}, {1.5707, 1.5709}, {-1e-3, 1e-3}, {-100, 100}}},
};

/* Returns |computed - exact| in ulps of a format with `precision` bits and least subnormal
 * 2^least. */
static double error_in_ulps(mpfr_t exact, double computed, long precision, long least) {
    if (mpfr_zero_p(exact)) return computed == 0.0 ? 0.0 : HUGE_VAL;
    long ulp = (long)mpfr_get_exp(exact) - precision;
    if (ulp < least) ulp = least;
    mpfr_sub_d(exact, exact, computed, MPFR_RNDN);
    mpfr_mul_2si(exact, exact, -ulp, MPFR_RNDN);
    return fabs(mpfr_get_d(exact, MPFR_RNDN));
}

/* On overflow, infinity is right from the format's threshold on. */
static double error_of_f64(mpfr_t exact, double computed) {
    if (mpfr_get_d(exact, MPFR_RNDN) == computed) return 0.5;
    return error_in_ulps(exact, computed, 53, -1074);
}

/* By law 8, f32 exp and exp2 return +0 below 2^-126 (`flushes`). */
static double error_of_f32(mpfr_t exact, float computed, int flushes) {
    if (mpfr_get_flt(exact, MPFR_RNDN) == computed) return 0.5;
    if (flushes && mpfr_cmp_ui_2exp(exact, 1, -126) < 0)
        return real_bits_f32(computed) == 0 ? 0.0 : HUGE_VAL;
    return error_in_ulps(exact, (double)computed, 24, -149);
}

static double draw(struct random_source *source, struct range range) {
    if (range.low != range.high) return random_between(source, range.low, range.high);
    double x = random_any_f64(source);
    return range.low == 1.0 ? real_abs_f64(x) : x;
}

static void check_function(const struct function *function) {
    struct random_source source = {5};
    double worst_f64 = 0.0, worst_f32 = 0.0;
    int flushes = function->f32 == real_exp_f32 || function->f32 == real_exp2_f32;
    mpfr_t x, y;
    mpfr_init2(x, BITS);
    mpfr_init2(y, BITS);
    for (int i = 0; i < (int)helper_size(15000, 15000, 60000); i++) {
        double wide = draw(&source, function->ranges[i % 5]);
        if (wide != wide) continue;
        mpfr_set_d(x, wide, MPFR_RNDN);
        function->exact(y, x, MPFR_RNDN);
        double error = error_of_f64(y, function->f64(wide));
        if (!(error <= worst_f64)) worst_f64 = error;
        float narrow = (float)wide;
        mpfr_set_d(x, (double)narrow, MPFR_RNDN);
        function->exact(y, x, MPFR_RNDN);
        error = error_of_f32(y, function->f32(narrow), flushes);
        if (!(error <= worst_f32)) worst_f32 = error;
    }
    mpfr_clear(x);
    mpfr_clear(y);
    printf("%-6s f64 %.4f ulp, f32 %.4f ulp\n", function->name, worst_f64, worst_f32);
    assert_true(worst_f64 <= function->bound_f64);
    assert_true(worst_f32 <= function->bound_f32);
}

static void corroborate_functions(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        check_function(&functions[i]);
}

/* The doubles up to 2^20 that lie nearest to multiples of pi/2 leave the smallest remainders, which
 * a reduction most easily gets wrong. The nearest double to each multiple is tried. */
static void corroborate_reduction(void **state) {
    (void)state;
    mpfr_t pi, x, y;
    mpfr_init2(pi, 400);
    mpfr_init2(x, 400);
    mpfr_init2(y, 400);
    mpfr_const_pi(pi, MPFR_RNDN);
    double worst = 0.0;
    double least = 1.0;
    for (unsigned long n = 1; n <= 667543; n += n < 1000 ? 1 : 29) {
        mpfr_mul_ui(x, pi, n, MPFR_RNDN);
        mpfr_div_2ui(x, x, 1, MPFR_RNDN);
        double nearest = mpfr_get_d(x, MPFR_RNDN);
        mpfr_set_d(x, nearest, MPFR_RNDN);
        int odd = (n & 1) != 0;
        (odd ? mpfr_cos : mpfr_sin)(y, x, MPFR_RNDN);
        double remainder = fabs(mpfr_get_d(y, MPFR_RNDN));
        if (remainder < least) least = remainder;
        double error = error_of_f64(y, odd ? real_cos_f64(nearest) : real_sin_f64(nearest));
        if (!(error <= worst)) worst = error;
    }
    mpfr_clears(pi, x, y, (mpfr_ptr)0);
    printf("near multiples of pi/2: %.4f ulp, least result %a\n", worst, least);
    assert_true(worst <= 1.0);
}

struct pow_range {
    struct range x, y;
};

static const struct pow_range pow_ranges[] = {
    {{0, 10}, {-300, 300}},
    {{0.99, 1.01}, {-70000, 70000}},
    {{0, 1e300}, {-1, 1}},
    {{0, 1e-300}, {-1, 1}},
    {{0.5, 2}, {-1000, 1000}},
    {{1e4, 1e6}, {-1, 0}},
    {{0.9, 0.999}, {1, 5e5}},
    {{1, 1}, {-2, 2}},
    {{0.99999, 1.00001}, {-7e7, 7e7}},
};

static void corroborate_pow(void **state) {
    (void)state;
    struct random_source source = {6};
    double worst_f64 = 0.0, worst_f32 = 0.0;
    mpfr_t x, y, z;
    mpfr_inits2(BITS, x, y, z, (mpfr_ptr)0);
    for (int i = 0; i < (int)helper_size(15000, 15000, 60000); i++) {
        const struct pow_range *range = &pow_ranges[(size_t)i % COUNT_OF(pow_ranges)];
        double a = draw(&source, range->x);
        double b = draw(&source, range->y);
        if (!real_finite_f64(a) || a == 0.0) continue;
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_set_d(y, b, MPFR_RNDN);
        mpfr_pow(z, x, y, MPFR_RNDN);
        double error = error_of_f64(z, real_pow_f64(a, b));
        if (!(error <= worst_f64)) worst_f64 = error;
        float c = (float)a;
        float d = (float)b;
        if (!real_finite_f32(c) || c == 0.0f) continue;
        mpfr_set_flt(x, c, MPFR_RNDN);
        mpfr_set_flt(y, d, MPFR_RNDN);
        mpfr_pow(z, x, y, MPFR_RNDN);
        error = error_of_f32(z, real_pow_f32(c, d), 0);
        if (!(error <= worst_f32)) worst_f32 = error;
    }
    mpfr_clears(x, y, z, (mpfr_ptr)0);
    printf("pow    f64 %.4f ulp, f32 %.4f ulp\n", worst_f64, worst_f32);
    assert_true(worst_f64 <= 1.0);
    assert_true(worst_f32 <= 0.5001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_functions),
        cmocka_unit_test(corroborate_reduction),
        cmocka_unit_test(corroborate_pow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
