/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The simulated power of the verdicts' tests: where it is known exactly (no effect, infinite
 * effect), and its pinned value at the size that verdicts print. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "base/real.h"
#include "determinism/power.h"

static struct power pair(size_t replicates, double shift) {
    struct power out;
    assert_int_equal(power_pair(replicates, 0.01, shift, &out), STATUS_OK);
    return out;
}

static struct power labels(size_t baseline, size_t test, double shift) {
    struct power out;
    assert_int_equal(power_labels(baseline, test, 0.01, shift, &out), STATUS_OK);
    assert_true(out.interval.low <= out.power && out.power <= out.interval.high);
    return out;
}

/* Without an effect p <= alpha happens as often as the least p says: 1/105 and 2/252. Four standard
 * deviations of 2000 trials are 4 sqrt(0.01 * 0.99 / 2000) = 0.009. */
static void validate_no_effect(void **state) {
    (void)state;
    assert_true(real_abs_f64(pair(13, 0.0).power - 1.0 / 105.0) < 0.009);
    assert_true(real_abs_f64(labels(5, 5, 0.0).power - 2.0 / 252.0) < 0.009);
}

/* With an infinite effect the pair test detects it once in 14, since chance decides which of the 14
 * distances to the odd run is the largest (four standard deviations: 0.023). The label test always
 * detects it. */
static void validate_infinite_effect(void **state) {
    (void)state;
    assert_true(real_abs_f64(pair(13, 1e6).power - 1.0 / 14.0) < 0.023);
    assert_true(labels(5, 5, 1e6).power == 1.0);
    assert_true(labels(18, 2, 1e6).power == 1.0);
}

/* Below the least p nothing can ever be detected. */
static void validate_too_few_runs(void **state) {
    (void)state;
    assert_true(pair(12, 1e6).power == 0.0);
    assert_true(labels(4, 4, 1e6).power == 0.0);
}

static void validate_golden(void **state) {
    (void)state;
    assert_true(pair(13, POWER_SHIFT).power == 134.0 / 2000.0);
    assert_true(labels(5, 5, POWER_SHIFT).power == 1563.0 / 2000.0);
    assert_true(labels(6, 6, POWER_SHIFT).power == 1886.0 / 2000.0);
}

/* 14 runs have C(14, 7) / 2 = 1716 different labels, each the sum of C(14, 2) = 91 distances: of
 * the 2e8 additions that a call may spend, 1280 trials. */
static void validate_what_a_call_may_spend(void **state) {
    (void)state;
    assert_true(labels(7, 7, POWER_SHIFT).trials == 1280);
    assert_true(labels(5, 5, POWER_SHIFT).trials == 2000);
}

static void verify_growth(void **state) {
    (void)state;
    double last = -1.0;
    for (double shift = 0.0; shift <= 6.0; shift += 2.0) {
        const double power = labels(5, 5, shift).power;
        assert_true(power > last);
        last = power;
    }
}

static void validate_refusals(void **state) {
    (void)state;
    struct power out;
    assert_int_equal(power_pair(63, 0.01, 3.0, &out), STATUS_INPUT);
    assert_int_equal(power_pair(13, 0.0, 3.0, &out), STATUS_INPUT);
    assert_int_equal(power_labels(5, 5, 1.0, 3.0, &out), STATUS_INPUT);
    assert_int_equal(power_labels(11, 10, 0.01, 3.0, &out), STATUS_UNSUPPORTED);
    assert_int_equal(power_labels(SIZE_MAX, 10, 0.01, 3.0, &out), STATUS_UNSUPPORTED);
    assert_int_equal(power_labels(5, 0, 0.01, 3.0, &out), STATUS_UNTESTABLE);
    assert_int_equal(power_labels(5, 5, 0.01, real_nan_f64(), &out), STATUS_UNTESTABLE);
}

/* Without a shift the test must fire as often as alpha says, with a large one always. A larger n
 * cannot help beyond what d(A,B) of one pair shows: P(|N(3, sqrt 2)| > 3.64) = 0.33. */
static void validate_distance(void **state) {
    (void)state;
    struct power power;
    assert_int_equal(power_distance(99, 0.05, 0.0, &power), STATUS_OK);
    assert_true(power.interval.low < 0.05 && power.interval.high > 0.04);
    assert_int_equal(power_distance(99, 0.01, 12.0, &power), STATUS_OK);
    assert_true(power.power > 0.99);
    assert_int_equal(power_distance(999, 0.01, 3.0, &power), STATUS_OK);
    assert_true(power.interval.low < 0.326 && power.interval.high > 0.326);
    assert_int_equal(power_distance(9, 0.01, 12.0, &power), STATUS_OK);
    assert_true(power.power == 0.0);
    assert_int_equal(power_distance(0, 0.01, 3.0, &power), STATUS_INPUT);
    assert_int_equal(power_distance(99, 1.0, 3.0, &power), STATUS_INPUT);
}

/* Without a shift the gap of the arms and those of the pairs are alike, so that it is among the k
 * largest of n + 1 in k of n + 1 trials. Five standard deviations allow for the number of trials.
 */
static void validate_distance_without_effect(void **state) {
    (void)state;
    for (size_t pairs = 1; pairs <= 6; pairs++)
        for (size_t k = 1; k <= pairs; k++) {
            const double p = (double)k / (double)(pairs + 1);
            struct power power;
            assert_int_equal(power_distance(pairs, p, 0.0, &power), STATUS_OK);
            const double spread = sqrt(p * (1.0 - p) / (double)power.trials);
            if (!(fabs(power.power - p) <= 5.0 * spread))
                fail_msg("%d pairs, %d as large: expected %g, got %g", (int)pairs, (int)k, p,
                         power.power);
            assert_true(power.interval.low < power.power && power.power < power.interval.high);
        }
}

/* Each end of what is taken: so many runs and pairs, and one more or less. */
static void validate_ends_of_sizes(void **state) {
    (void)state;
    struct power out;
    assert_int_equal(power_pair(62, 0.5, 3.0, &out), STATUS_OK);
    assert_int_equal(power_pair(63, 0.5, 3.0, &out), STATUS_INPUT);
    assert_int_equal(power_distance(1, 0.5, 3.0, &out), STATUS_OK);
    assert_int_equal(out.trials, 2000);
    assert_int_equal(power_distance(100001, 0.5, 3.0, &out), STATUS_INPUT);
    /* 20 runs in all; more of one arm than that is said at once, by its number */
    for (size_t more = 20; more < 22; more++)
        for (int arm = 0; arm < 2; arm++) {
            const size_t baseline = arm == 0 ? more : 5, test = arm == 0 ? 5 : more;
            assert_int_equal(power_labels(baseline, test, 0.5, 3.0, &out), STATUS_UNSUPPORTED);
            assert_int_equal(strncmp(status_text(), "power of the label test", 23) == 0, more > 20);
        }
    static const double none[] = {0.0, 1.0, -0.5, 1.5, (double)NAN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(power_pair(5, none[i], 3.0, &out), STATUS_INPUT);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ends_of_sizes),
        cmocka_unit_test(validate_distance),
        cmocka_unit_test(validate_distance_without_effect),
        cmocka_unit_test(validate_no_effect),
        cmocka_unit_test(validate_infinite_effect),
        cmocka_unit_test(validate_too_few_runs),
        cmocka_unit_test(validate_golden),
        cmocka_unit_test(validate_what_a_call_may_spend),
        cmocka_unit_test(verify_growth),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
