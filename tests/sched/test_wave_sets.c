/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The cosine and the power of schedules, compiled with the instruction for fma and without, have
 * the same bits: over drawn arguments and where turns end. Those of the cosine are the exact
 * cosine's, rounded once, by MPFR at 200 bits, as are the table that it reads and its bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <mpfr.h>

#include "determinism/philox.h"
#include "sched/wave.c" /* for the functions that this machine would not choose */
#include "tests/base/helper_size.h"

#define BITS 200

static double drawn(uint32_t i, uint32_t place, double low, double high) {
    const struct philox_block at = {{i, place, 0, 0}};
    return low + (high - low) * (double)philox_draw(at, UINT64_C(0x3a7e)).word[0] * 0x1p-32;
}

static void judge_cosine(double (*cosine_of)(double), double x) {
    mpfr_t exact;
    mpfr_init2(exact, BITS);
    mpfr_set_d(exact, x, MPFR_RNDN);
    mpfr_cos(exact, exact, MPFR_RNDN);
    const double want = mpfr_get_d(exact, MPFR_RNDN), got = cosine_of(x);
    int sure;
    const double near = cosine_by_table(x, &sure);
    mpfr_clear(exact);
    if (got != want) fail_msg("cos(%a) is %a, and not %a", x, want, got);
    if (sure && near != want) fail_msg("cos(%a) is %a, and the table is sure of %a", x, want, near);
}

/* Arguments of schedules; where the table's steps meet, and at them; and far ones. */
static double argument(uint32_t i) {
    const double step = SCHED_PI / 64.0, k = (double)(i / 8 % 4096);
    const double near = drawn(i, 3, -0x1p-44, 0x1p-44);
    switch (i % 8) {
    case 0:
        return drawn(i, 0, 0.0, SCHED_PI);
    case 1:
        return drawn(i, 0, -7.0, 7.0);
    case 2:
        return SCHED_PI * ((double)(i / 8) / 997.0);
    case 3:
        return k * step;
    case 4:
        return k * step + near;
    case 5:
        return (k + 0.5) * step + near;
    case 6:
        return drawn(i, 0, 0.0, 0x1p-20);
    default:
        return drawn(i, 0, 0.0, 0x1p20);
    }
}

static void round_cosines_once(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(4000, 200000, 4000000);
    for (uint32_t i = 0; i < count; i++) {
        judge_cosine(sched_cos, argument(i));
        if (i % 16 < 8) judge_cosine(cosine_plain, argument(i));
    }
}

static void hold_the_table(void **state) {
    (void)state;
    mpfr_t exact;
    mpfr_init2(exact, BITS);
    for (unsigned long k = 0; k < COUNT_OF(cosines); k++) {
        mpfr_const_pi(exact, MPFR_RNDN);
        mpfr_mul_ui(exact, exact, k, MPFR_RNDN);
        mpfr_div_ui(exact, exact, 64, MPFR_RNDN);
        mpfr_cos(exact, exact, MPFR_RNDN);
        if (k % 64 == 32) mpfr_set_zero(exact, 1); /* pi at 200 bits is none of its halves */
        const double high = mpfr_get_d(exact, MPFR_RNDN);
        assert_true(cosines[k].high == high);
        mpfr_sub_d(exact, exact, high, MPFR_RNDN);
        assert_true(cosines[k].low == mpfr_get_d(exact, MPFR_RNDN));
    }
    mpfr_clear(exact);
}

#if defined(__x86_64__)
static void same(double a, double b, double x, double y) {
    if (real_bits_f64(a) != real_bits_f64(b))
        fail_msg("of %a and %a: %a without the instruction, %a with it", x, y, a, b);
}

static void corroborate_cosines(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(2000, 50000, 50000);
    for (uint32_t i = 0; i < count; i++) {
        const double x = i % 4 == 0 ? SCHED_PI * 0.25 * (double)i
                                    : drawn(i, 0, 0.0,
                                            i % 4 == 1   ? 1.0
                                            : i % 4 == 2 ? 7.0
                                                         : 0x1p20);
        same(cosine_plain(x), cosine_fma(x), x, 0.0);
        same(cosine_plain(-x), cosine_fma(-x), -x, 0.0);
    }
}

static void corroborate_powers(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(2000, 50000, 50000);
    for (uint32_t i = 0; i < count; i++) {
        const double x = drawn(i, 1, 0.0, i % 2 == 0 ? 1.0 : 1e6), y = drawn(i, 2, -3.0, 3.0);
        same(power_plain(x, y), power_fma(x, y), x, y);
    }
}
#endif

int main(void) {
    const struct CMUnitTest rounding[] = {
        cmocka_unit_test(round_cosines_once),
        cmocka_unit_test(hold_the_table),
    };
    const int failed = cmocka_run_group_tests(rounding, NULL, NULL);
#if defined(__x86_64__)
    if (failed != 0 || !__builtin_cpu_supports("fma")) return failed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_cosines),
        cmocka_unit_test(corroborate_powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return failed;
#endif
}
