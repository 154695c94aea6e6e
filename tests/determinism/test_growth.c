/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Laws of growth: exact curves must give their exponent, noisy ones must be covered by their
 * interval also where neighbours depend on each other, and a curve that follows neither law must be
 * called neither. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "base/real.h"
#include "determinism/growth.h"
#include "determinism/normal.h"
#include "determinism/philox.h"

enum { POINTS_MAX = 9000 };

static double draw(uint32_t world, uint32_t element) {
    const struct philox_block at = {{element, 0u, world, 8u}};
    const struct philox_block block = philox_draw(at, 20261121u);
    return normal_quantile(((double)block.word[0] + 0.5) * 0x1p-32);
}

enum shape { POWER, RATE };

/* Fits a curve log d = slope * (log j or j) + AR(1) noise. */
static struct growth fit(enum shape shape, double slope, double noise, double memory, size_t count,
                         uint32_t world) {
    static double j[POINTS_MAX], d[POINTS_MAX];
    double rest = draw(world, 1000000u);
    for (size_t i = 0; i < count; i++) {
        j[i] = (double)(i + 1);
        rest = memory * rest + real_sqrt_f64(1.0 - memory * memory) * draw(world, (uint32_t)i);
        const double x = shape == POWER ? real_log_f64(j[i]) : j[i];
        d[i] = 1e-7 * real_exp_f64(slope * x + noise * rest);
    }
    struct growth out;
    assert_int_equal(growth_fit(j, d, count, 0.95, &out), STATUS_OK);
    return out;
}

/* A curve without noise must give its exponent up to the rounding of 50 logarithms and a fit (1e-9
 * is generous), with an interval to match. */
static void validate_exact(void **state) {
    (void)state;
    struct growth out = fit(POWER, 1.0, 0.0, 0.0, 50, 0);
    assert_int_equal(out.law, GROWTH_POWER);
    assert_true(real_abs_f64(out.power.value - 1.0) < 1e-9);
    out = fit(RATE, 0.25, 0.0, 0.0, 50, 0);
    assert_int_equal(out.law, GROWTH_EXPONENTIAL);
    assert_true(real_abs_f64(out.rate.value - 0.25) < 1e-9);
    out = fit(POWER, 0.0, 0.05, 0.0, 50, 0);
    assert_int_equal(out.law, GROWTH_CONSTANT);
    assert_int_equal(fit(POWER, 0.5, 0.0, 0.0, POINTS_MAX, 0).points, POINTS_MAX / 3);
}

/* With three points of a decade one line cannot be told from the other. */
static void validate_undecided(void **state) {
    (void)state;
    static const double j[] = {100, 101, 102, 103, 104, 105};
    static const double d[] = {1.00, 1.011, 1.0195, 1.031, 1.0395, 1.051};
    struct growth out;
    assert_int_equal(growth_fit(j, d, 6, 0.95, &out), STATUS_OK);
    assert_int_equal(out.law, GROWTH_UNDECIDED);
}

static void verify_coverage(void **state) {
    (void)state;
    static const double memories[] = {0.0, 0.5};
    for (int m = 0; m < 2; m++) {
        uint32_t covered = 0, named = 0;
        for (uint32_t world = 0; world < 1000; world++) {
            const struct growth out = fit(POWER, 1.0, 0.2, memories[m], 100, world);
            covered += out.power.low <= 1.0 && 1.0 <= out.power.high;
            named += out.law == GROWTH_POWER;
        }
        print_message("memory %.1f: %u of 1000 covered, %u named\n", memories[m], covered, named);
        assert_true(covered >= 900);
        assert_true(named >= 990);
    }
}

static void validate_refusals(void **state) {
    (void)state;
    const double j[6] = {1, 2, 3, 4, 5, 6}, d[6] = {1, 1, 0, 1, 1, 1};
    struct growth out;
    assert_int_equal(growth_fit(j, d, 6, 0.95, &out), STATUS_UNTESTABLE);
    assert_int_equal(growth_fit(j, j, 5, 0.95, &out), STATUS_UNTESTABLE);
    assert_int_equal(growth_fit(j, j, 6, 0.0, &out), STATUS_INPUT);
    assert_int_equal(growth_fit(j, j, 6, 1.0, &out), STATUS_INPUT);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_exact),
        cmocka_unit_test(validate_undecided),
        cmocka_unit_test(verify_coverage),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
