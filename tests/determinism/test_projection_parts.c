/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The projection's shares and sizes once more, with their intervals: means over pairs of different
 * runs, each taken one by one, of the runs that are left when one is left out; Shapley's shares
 * over all orders of entry; and the jackknife of several samples with Welch's degrees of freedom.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/projection.c" /* for its parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { FACTORS = 3, EACH = 5, SETS = 1 << FACTORS, ALL = EACH * SETS, WIDE = 12 };

static double gram[ALL * ALL];
static uint32_t factors;
static size_t n, all;

/* Runs of each hybrid around a point of its own, by draws of this case. */
static void draw(uint32_t number, double noise) {
    static double point[ALL][WIDE];
    struct draws draws = {.key = UINT64_C(0x9207), .number = number};
    double cause[FACTORS][WIDE];
    for (uint32_t f = 0; f < FACTORS; f++)
        for (size_t e = 0; e < WIDE; e++)
            cause[f][e] = ((double)draws_pick(&draws, 33) - 8.0) / 16.0;
    all = n << factors;
    for (size_t r = 0; r < all; r++)
        for (size_t e = 0; e < WIDE; e++) {
            point[r][e] = 2.0 + noise * ((double)draws_pick(&draws, 65) - 32.0) / 32.0;
            for (uint32_t f = 0; f < factors; f++)
                if ((r / n >> f & 1u) != 0) point[r][e] += cause[f][e];
            if ((r / n & 3u) == 3u && e == 1) point[r][e] += 0.5; /* two causes act together */
        }
    for (size_t i = 0; i < all; i++)
        for (size_t j = 0; j < all; j++) {
            gram[i * all + j] = 0.0;
            for (size_t e = 0; e < WIDE; e++)
                gram[i * all + j] += point[i][e] * point[j][e];
        }
}

/* The mean product of different runs of two hybrids, without run `out`. */
static double mean_of(size_t a, size_t b, size_t out) {
    double sum = 0.0, count = 0.0;
    for (size_t i = a * n; i < (a + 1) * n; i++)
        for (size_t j = b * n; j < (b + 1) * n; j++) {
            if (i == j || i == out || j == out) continue;
            sum += gram[i * all + j];
            count += 1.0;
        }
    return sum / count;
}

/* <mu_a - mu_0, mu_b - mu_0>. */
static double inner(size_t a, size_t b, size_t out) {
    return mean_of(a, b, out) - mean_of(a, 0, out) - mean_of(0, b, out) + mean_of(0, 0, out);
}

enum { WHOLE = 0, SHARE, SQUARE = SHARE + FACTORS, FIGURE_COUNT = SQUARE + SETS };

/* All figures without run `out`: what a factor adds on entering, averaged over all orders. */
static void figures_without(size_t out, double figure[FIGURE_COUNT]) {
    static const uint32_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const size_t full = ((size_t)1 << factors) - 1;
    memset(figure, 0, FIGURE_COUNT * sizeof *figure);
    figure[WHOLE] = inner(full, full, out);
    for (size_t o = 0; o < 6; o++) {
        size_t mask = 0;
        double before = 0.0;
        for (size_t k = 0; k < 3; k++) {
            const uint32_t f = orders[o][k];
            if (f >= factors) continue;
            mask |= (size_t)1 << f;
            const double now = inner(mask, full, out);
            figure[SHARE + f] += (now - before) / 6.0 / figure[WHOLE];
            before = now;
        }
    }
    for (size_t s = 0; s <= full; s++)
        figure[SQUARE + s] = inner(s, s, out) / figure[WHOLE];
}

/* Half of the interval of a figure, and its degrees of freedom. */
static double half_of(int which, double confidence, double *freedom) {
    double variance = 0.0, squares = 0.0;
    for (size_t m = 0; m < all / n; m++) {
        double left[EACH], mean = 0.0, part = 0.0;
        for (size_t i = 0; i < n; i++) {
            double figure[FIGURE_COUNT];
            figures_without(m * n + i, figure);
            left[i] = figure[which];
            mean += left[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++)
            part += (left[i] - mean) * (left[i] - mean) * ((double)n - 1.0) / (double)n;
        variance += part;
        squares += part * part;
    }
    *freedom = variance * variance / squares * ((double)n - 1.0);
    return gsl_cdf_tdist_Qinv(0.5 * (1.0 - confidence), *freedom) * sqrt(variance);
}

static int near(double a, double b) {
    return fabs(a - b) <= 1e-8 * (1.0 + fabs(b));
}

static double root_of(double square) {
    return square > 0.0 ? sqrt(square) : 0.0;
}

static void corroborate_shares(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 12; number++) {
        struct arena arena = ARENA_EMPTY;
        struct projection got;
        double figure[FIGURE_COUNT], freedom;
        const double confidence = number % 2 == 0 ? 0.95 : 0.5;
        factors = 1 + number % FACTORS;
        n = 3 + number / FACTORS % 3;
        draw(number, 0.125);
        const size_t full = ((size_t)1 << factors) - 1;
        assert_int_equal(projection_shares(factors, n, gram, confidence, &arena, &got), STATUS_OK);
        figures_without(SIZE_MAX, figure);
        const double whole = half_of(WHOLE, confidence, &freedom);
        assert_true(got.factors == factors && got.confidence == confidence);
        assert_true(near(got.whole, figure[WHOLE]));
        assert_true(near(got.whole_low, figure[WHOLE] - whole));
        assert_true(near(got.whole_high, figure[WHOLE] + whole));
        for (uint32_t f = 0; f < factors; f++) {
            const double share = figure[SHARE + f];
            assert_true(near(got.share[f], share));
            if (factors == 1) continue; /* one cause has all, without an error */
            const double half = half_of(SHARE + (int)f, confidence, &freedom);
            assert_true(near(got.low[f], share - half) && near(got.high[f], share + half));
            assert_true(fabs(got.freedom[f] - freedom) <= 1e-6 * freedom);
        }
        for (size_t s = 1; s < full; s++) {
            const double square = figure[SQUARE + s];
            const double half = half_of(SQUARE + (int)s, confidence, &freedom);
            assert_true(near(got.size[s], root_of(square)));
            assert_true(near(got.size_low[s], root_of(square - half)));
            assert_true(near(got.size_high[s], root_of(square + half)));
        }
        assert_true(got.size[0] == 0.0 && got.size_low[0] == 0.0 && got.size_high[0] == 0.0);
        assert_true(got.size[full] == 1.0 && got.size_low[full] == 1.0 &&
                    got.size_high[full] == 1.0);
        arena_close(&arena);
    }
}

/* Each end of what is taken. */
static void validate_refusals(void **state) {
    (void)state;
    static const double confidences[] = {0.0, 0x1p-1074,  0.5, 0x1.fffffffffffffp-1,
                                         1.0, (double)NAN};
    static const double one[1] = {0.0};
    for (size_t i = 0; i < sizeof confidences / sizeof *confidences; i++)
        assert_int_equal(check(1, 2, one, confidences[i]),
                         i > 0 && i < 4 ? STATUS_UNTESTABLE : STATUS_INPUT);
    assert_int_equal(check(0, 2, one, 0.5), STATUS_INTERNAL);
    assert_int_equal(check(PROJECTION_FACTORS_MAX, 2, one, 0.5), STATUS_UNTESTABLE);
    assert_int_equal(check(PROJECTION_FACTORS_MAX + 1, 2, one, 0.5), STATUS_INTERNAL);
    static double of_runs[6 * 6 + 1];
    for (size_t at = 0; at <= 36; at++) { /* the last number is behind the matrix */
        memset(of_runs, 0, sizeof of_runs);
        of_runs[at] = at % 2 == 0 ? (double)NAN : (double)INFINITY;
        assert_int_equal(check(1, 3, of_runs, 0.5), at < 36 ? STATUS_UNTESTABLE : STATUS_OK);
    }
    assert_true(root(-1.0) == 0.0 && root(0.0) == 0.0 && root(4.0) == 2.0);
}

/* Runs without noise have no error, and as many degrees of freedom as one sample has; arms that are
 * alike have no whole to take shares of. */
static void validate_runs_without_noise(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct projection got;
    factors = 2;
    n = 4;
    all = n << factors;
    for (size_t i = 0; i < all; i++)
        for (size_t j = 0; j < all; j++) {
            static const double at[4] = {1.0, 2.0, 4.0, 5.0};
            gram[i * all + j] = at[i / n] * at[j / n];
        }
    assert_int_equal(projection_shares(2, n, gram, 0.95, &arena, &got), STATUS_OK);
    assert_true(got.whole == 16.0 && got.whole_low == 16.0 && got.whole_high == 16.0);
    assert_true(got.share[0] == 0.25 && got.share[1] == 0.75);
    assert_true(got.low[0] == 0.25 && got.high[1] == 0.75);
    assert_true(got.freedom[0] == 3.0 && got.freedom[1] == 3.0);
    assert_true(got.size[1] == 0.25 && got.size[2] == 0.75 && got.size[3] == 1.0);
    for (size_t i = 0; i < all * all; i++)
        gram[i] = 1.0;
    assert_int_equal(projection_shares(2, n, gram, 0.95, &arena, &got), STATUS_UNTESTABLE);
    arena_close(&arena);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_shares),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_runs_without_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
