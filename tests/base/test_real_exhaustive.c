/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * exp and exp2 in f32 for every float whose result is neither 0, infinity nor within 2^-26 of 1,
 * against the f64 functions (themselves within 1 ulp of f64). The largest error and the number of
 * results that are not the nearest float are printed. The other f32 functions are f64 rounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/real.h"

struct worst {
    double ulps;
    float at;
    uint64_t misrounded;
    uint64_t count;
};

static void consider(struct worst *worst, float x, float y, double exact) {
    float nearest = (float)exact;
    double ulp = (double)real_next_up_f32(nearest) - (double)nearest;
    double error = real_abs_f64((double)y - exact) / ulp;
    worst->count++;
    worst->misrounded += y != nearest;
    if (error <= worst->ulps) return;
    worst->ulps = error;
    worst->at = x;
}

static void report(const char *name, const struct worst *worst, double bound) {
    printf("%s: %llu floats, %llu not the nearest, largest error %.4f ulp at %a\n", name,
           (unsigned long long)worst->count, (unsigned long long)worst->misrounded, worst->ulps,
           (double)worst->at);
    assert_true(worst->ulps <= bound);
}

static void corroborate_exp(void **state) {
    (void)state;
    struct worst worst = {0.0, 0.0f, 0, 0};
    for (float x = 0x1p-26f; x <= 0x1.62e42ep+6f; x = real_next_up_f32(x)) {
        consider(&worst, x, real_exp_f32(x), real_exp_f64((double)x));
        if (x <= 0x1.5d589ep+6f) consider(&worst, -x, real_exp_f32(-x), real_exp_f64(-(double)x));
    }
    report("exp", &worst, 1.0);
}

static void corroborate_exp2(void **state) {
    (void)state;
    struct worst worst = {0.0, 0.0f, 0, 0};
    for (float x = 0x1p-26f; x < 128.0f; x = real_next_up_f32(x)) {
        consider(&worst, x, real_exp2_f32(x), real_exp2_f64((double)x));
        if (x <= 126.0f) consider(&worst, -x, real_exp2_f32(-x), real_exp2_f64(-(double)x));
    }
    report("exp2", &worst, 1.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_exp),
        cmocka_unit_test(corroborate_exp2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
