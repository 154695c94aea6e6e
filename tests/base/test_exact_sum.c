/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/exact_sum.h and base/exact_parts.h: any order must give the same words, and the rounded sum
 * must be that of MPFR at a precision that holds every bit; infinities and NaN must be as in IEEE
 * sums. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "base/exact_parts.h"
#include "base/exact_sum.h"
#include "tests/base/helper_random.h"

enum { TERMS = 200, ROUNDS = 400, PRECISION = 4400 };

static float any_f32(struct random_source *source) {
    float x;
    do {
        x = real_from_bits_f32((uint32_t)(random_bits(source) >> 32));
    } while (!isfinite(x));
    return x;
}

static double any_f64(struct random_source *source) {
    double x;
    do {
        x = real_from_bits_f64(random_bits(source));
    } while (!isfinite(x));
    return x;
}

/* Draws products of f32 of several kinds: any bits, near each other, and in pairs that cancel. */
static void draw_products(struct random_source *source, int kind, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float a = any_f32(source);
        float b = any_f32(source);
        if (kind == 1) {
            a = (float)random_between(source, -3.0, 3.0);
            b = (float)random_between(source, -3.0, 3.0);
        }
        x[i] = (double)a * (double)b;
        if (kind == 2 && i % 2 == 1) x[i] = -x[i - 1] * (i % 4 == 1 ? 1.0 : 0.5);
        if (kind == 3) x[i] = ldexp((double)(float)x[i], -(int)(i % 40) - 120); /* near 2^-149 */
        if (kind == 3 && fabs(x[i]) > 1.0) x[i] = 0x1p-149;
        if (kind == 3) x[i] = (double)(float)x[i];
    }
}

static void draw_doubles(struct random_source *source, int kind, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = any_f64(source);
        if (kind == 1) x[i] = random_between(source, -1.0, 1.0);
        if (kind == 2) x[i] = i % 3 == 0 ? DBL_MAX : (i % 3 == 1 ? -DBL_MAX : x[i] * 0x1p-200);
        if (kind == 3) x[i] = ldexp(random_between(source, -1.0, 1.0), -1040);
    }
}

static void shuffle(struct random_source *source, double *x, size_t n) {
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)(random_bits(source) % i);
        const double other = x[i - 1];
        x[i - 1] = x[j];
        x[j] = other;
    }
}

static uint64_t bits_of(double x) {
    return real_bits_f64(x == 0.0 ? 0.0 : x);
}

/* MPFR rounds subnormals right only when its exponent range is the format's. */
static double rounded_f64(const mpfr_t exact) {
    mpfr_t x;
    mpfr_init2(x, 53);
    mpfr_set_emin(-1073);
    mpfr_set_emax(1024);
    const int ternary = mpfr_set(x, exact, MPFR_RNDN);
    mpfr_subnormalize(x, mpfr_check_range(x, ternary, MPFR_RNDN), MPFR_RNDN);
    const double out = mpfr_get_d(x, MPFR_RNDN);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_clear(x);
    return out;
}

static float rounded_f32(const mpfr_t exact) {
    mpfr_t x;
    mpfr_init2(x, 24);
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    const int ternary = mpfr_set(x, exact, MPFR_RNDN);
    mpfr_subnormalize(x, mpfr_check_range(x, ternary, MPFR_RNDN), MPFR_RNDN);
    const float out = mpfr_get_flt(x, MPFR_RNDN);
    mpfr_set_emin(mpfr_get_emin_min());
    mpfr_set_emax(mpfr_get_emax_max());
    mpfr_clear(x);
    return out;
}

static void add_all(mpfr_t sum, const double *x, size_t n) {
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mpfr_add_d(sum, sum, x[i], MPFR_RNDN), 0);
}

static void corroborate_products(void **state) {
    (void)state;
    struct random_source source = {616};
    double x[TERMS];
    mpfr_t want;
    mpfr_init2(want, PRECISION);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = (size_t)(random_bits(&source) % TERMS) + 1;
        struct exact_sum sum = {{0}}, again = {{0}}, half[2] = {{{0}}};
        draw_products(&source, round % 4, x, n);
        for (size_t i = 0; i < n; i++)
            exact_sum_add(&sum, x[i]);
        add_all(want, x, n);
        assert_int_equal(bits_of(exact_sum_f64(&sum)), bits_of(rounded_f64(want)));
        assert_int_equal(bits_of((double)exact_sum_f32(&sum)), bits_of((double)rounded_f32(want)));
        shuffle(&source, x, n);
        for (size_t i = 0; i < n; i++) {
            exact_sum_add(&again, x[i]);
            exact_sum_add(&half[i % 3 == 0], x[i]);
        }
        exact_sum_join(&half[0], &half[1]);
        assert_memory_equal(&sum, &again, sizeof sum);
        assert_memory_equal(&sum, &half[0], sizeof sum);
    }
    mpfr_clear(want);
}

static void corroborate_doubles(void **state) {
    (void)state;
    struct random_source source = {617};
    double x[TERMS];
    mpfr_t want;
    mpfr_init2(want, PRECISION);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = (size_t)(random_bits(&source) % TERMS) + 1;
        draw_doubles(&source, round % 4, x, n);
        struct exact_wide sum = {{0}};
        for (size_t i = 0; i < n; i++)
            exact_wide_add(&sum, x[i]);
        add_all(want, x, n);
        assert_int_equal(bits_of(exact_wide_f64(&sum)), bits_of(rounded_f64(want)));
        assert_int_equal(bits_of((double)exact_wide_f32(&sum)), bits_of((double)rounded_f32(want)));
        shuffle(&source, x, n);
        assert_int_equal(bits_of(exact_terms_f64(x, n)), bits_of(rounded_f64(want)));
    }
    mpfr_clear(want);
}

/* Ties, the largest numbers and the least ones, in both formats. */
static void validate_rounding(void **state) {
    (void)state;
    static const struct {
        double x[3];
        double f64;
        float f32;
    } rows[] = {
        {{0.0, -0.0, 0.0}, 0.0, 0.0f},
        {{1.0, -1.0, 0.0}, 0.0, 0.0f},
        {{1.0, 0x1p-53, 0.0}, 1.0, 1.0f},
        {{1.0, 0x1p-53, 0x1p-298}, 0x1.0000000000001p+0, 1.0f},
        {{0x1.0000000000001p+0, 0x1p-53, 0.0}, 0x1.0000000000002p+0, 1.0f},
        {{1.0, 0x1p-24, 0.0}, 0x1.000001p+0, 1.0f},
        {{1.0, 0x1p-24, 0x1p-290}, 0x1.000001p+0, 0x1.000002p+0f},
        {{-1.0, -0x1p-24, -0x1p-290}, -0x1.000001p+0, -0x1.000002p+0f},
        {{0x1.fffffep+127, 0x1p+102, 0.0}, 0x1.fffffe8p+127, 0x1.fffffep+127f},
        {{0x1.fffffep+127, 0x1p+103, 0.0}, 0x1.ffffffp+127, INFINITY},
        {{0x1p-150, 0.0, 0.0}, 0x1p-150, 0.0f},
        {{0x1p-150, 0x1p-298, 0.0}, 0x1p-150, 0x1p-149f},
        {{0x1p-149, 0x1p-150, 0.0}, 0x1.8p-149, 0x1p-148f},
        {{0x1p-126, -0x1p-149, -0x1p-151}, 0x1.fffffbp-127, 0x1.fffffcp-127f},
        {{0x1p+255, 0x1p+255, -0x1p-298}, 0x1p+256, INFINITY},
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct exact_sum sum = {{0}};
        struct exact_wide wide = {{0}};
        for (size_t i = 0; i < 3; i++) {
            exact_sum_add(&sum, rows[r].x[i]);
            exact_wide_add(&wide, rows[r].x[i]);
        }
        assert_int_equal(real_bits_f64(exact_sum_f64(&sum)), real_bits_f64(rows[r].f64));
        assert_int_equal(real_bits_f64(exact_wide_f64(&wide)), real_bits_f64(rows[r].f64));
        assert_int_equal(real_bits_f32(exact_sum_f32(&sum)), real_bits_f32(rows[r].f32));
        assert_int_equal(real_bits_f32(exact_wide_f32(&wide)), real_bits_f32(rows[r].f32));
    }
}

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

/* The terms come in any of the 6 orders, and joined from two halves. */
static void validate_special(void **state) {
    (void)state;
    static const struct {
        double x[3];
        double sum;
    } rows[] = {
        {{INF, 1.0, 2.0}, INF},
        {{-INF, 1.0, -INF}, -INF},
        {{INF, -INF, 1.0}, NOT},
        {{NOT, 1.0, 2.0}, NOT},
        {{NOT, INF, 1.0}, NOT},
        {{INF, INF, INF}, INF},
        {{0x1p+255, 0x1p+255, -INF}, -INF},
    };
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct exact_sum first = {{0}};
        for (size_t o = 0; o < 6; o++) {
            struct exact_sum sum = {{0}}, other = {{0}};
            struct exact_wide wide = {{0}};
            for (size_t i = 0; i < 3; i++) {
                exact_sum_add(i == 2 ? &other : &sum, rows[r].x[orders[o][i]]);
                exact_wide_add(&wide, rows[r].x[orders[o][i]]);
            }
            exact_sum_join(&sum, &other);
            if (o == 0) first = sum;
            assert_memory_equal(&sum, &first, sizeof sum);
            const double got[] = {exact_sum_f64(&sum), (double)exact_sum_f32(&sum),
                                  exact_wide_f64(&wide)};
            for (size_t i = 0; i < COUNT_OF(got); i++)
                assert_true(isnan(rows[r].sum) ? isnan(got[i]) : got[i] == rows[r].sum);
        }
    }
}

/* A term that the sum cannot hold must make it NaN; it may never be dropped. */
static void verify_range(void **state) {
    (void)state;
    const double outside[] = {0x1p-299, 0x1.8p-298, -0x1p-1074, 0x1p+340, -DBL_MAX};
    for (size_t i = 0; i < COUNT_OF(outside); i++) {
        struct exact_sum sum = {{0}};
        exact_sum_add(&sum, 1.0);
        exact_sum_add(&sum, outside[i]);
        assert_true(isnan(exact_sum_f64(&sum)));
    }
}

/* Makes one sum by parts, as kernels/cpu/exact.c does; returns 0 where bits were left over. */
static int by_parts(const double *x, size_t n, double *part) {
    double start[EXACT_PARTS], at[EXACT_PARTS], bound = 0.0, rest = 0.0;
    for (size_t i = 0; i < n; i++)
        bound = fabs(x[i]) > bound ? fabs(x[i]) : bound;
    assert_true(exact_parts_start(bound, n, start));
    memcpy(at, start, sizeof at);
    for (size_t i = 0; i < n; i++) {
        double term = x[i];
        for (int p = 0; p < EXACT_PARTS; p++) {
            const double next = at[p] + term;
            term -= next - at[p];
            at[p] = next;
        }
        rest += fabs(term);
    }
    for (int p = 0; p < EXACT_PARTS; p++)
        part[p] = at[p] - start[p];
    return rest == 0.0;
}

static void corroborate_parts(void **state) {
    (void)state;
    struct random_source source = {618};
    double x[TERMS];
    int whole = 0;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        const size_t n = (size_t)(random_bits(&source) % TERMS) + 1;
        const int spread = (int)(random_bits(&source) % 90);
        const int scale = (int)(random_bits(&source) % 300) - 150;
        struct exact_wide sum = {{0}};
        double part[EXACT_PARTS];
        for (size_t i = 0; i < n; i++) {
            const double a = (double)(float)random_between(&source, -1.0, 1.0);
            const double b = (double)(float)random_between(&source, -1.0, 1.0);
            const int down = spread == 0 ? 0 : (int)(random_bits(&source) % (uint64_t)spread);
            x[i] = ldexp(a * b, scale - down);
            if (round % 3 == 0 && i > 0 && i % 2 == 0) x[i] = -x[i - 1];
            if (round % 5 == 0) x[i] = copysign(x[i], 1.0);
            exact_wide_add(&sum, x[i]);
        }
        if (!by_parts(x, n, part)) continue;
        whole++;
        assert_int_equal(real_bits_f64(exact_three_f64(part[0], part[1], part[2])),
                         real_bits_f64(exact_wide_f64(&sum)));
        assert_int_equal(real_bits_f32(exact_three_f32(part[0], part[1], part[2])),
                         real_bits_f32(exact_wide_f32(&sum)));
    }
    assert_in_range(whole, 2 * ROUNDS, 4 * ROUNDS - 1); /* some spreads are too wide */
}

/* Ties that only the last part breaks. */
static void validate_three(void **state) {
    (void)state;
    const double tiny = 0x1p-150;
    assert_true(exact_three_f64(1.0, 0x1p-53, 0.0) == 1.0);
    assert_true(exact_three_f64(1.0, 0x1p-53, tiny) == 0x1.0000000000001p+0);
    assert_true(exact_three_f64(1.0, 0x1p-53, -tiny) == 1.0);
    assert_true(exact_three_f64(0x1.0000000000001p+0, 0x1p-53, -tiny) == 0x1.0000000000001p+0);
    assert_true(exact_three_f32(1.0, 0x1p-24, 0.0) == 1.0f);
    assert_true(exact_three_f32(1.0, 0x1p-24, tiny) == 0x1.000002p+0f);
    assert_true(exact_three_f32(1.0, 0x1p-24, -tiny) == 1.0f);
    assert_true(exact_three_f32(-0x1.000002p+0, -0x1p-24, tiny) == -0x1.000002p+0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_products), cmocka_unit_test(corroborate_doubles),
        cmocka_unit_test(validate_rounding),    cmocka_unit_test(validate_special),
        cmocka_unit_test(verify_range),         cmocka_unit_test(corroborate_parts),
        cmocka_unit_test(validate_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
