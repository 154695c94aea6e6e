/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Exact tests and intervals: values counted by hand or from closed forms, validity shown by going
 * through every relabeling, and every refusal. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>

#include "base/real.h"
#include "determinism/normal.h"
#include "determinism/statistics.h"

#define MOST 20
#define PAIRS (MOST * (MOST - 1) / 2)

static void set_distances(const double *points, size_t runs, double *distances) {
    for (size_t i = 0; i < runs; i++)
        for (size_t j = i + 1; j < runs; j++)
            distances[statistics_pair(runs, i, j)] = real_abs_f64(points[i] - points[j]);
}

static struct statistics_p test_labels(const double *points, size_t runs, size_t baseline) {
    double distances[PAIRS];
    struct statistics_p out;
    set_distances(points, runs, distances);
    assert_int_equal(statistics_test_labels(distances, runs, baseline, &out), STATUS_OK);
    assert_true(out.p == (double)out.as_large / (double)out.total);
    return out;
}

static void validate_pair_index(void **state) {
    (void)state;
    static const size_t expected[4][4] = {{9, 0, 1, 2}, {0, 9, 3, 4}, {1, 3, 9, 5}, {2, 4, 5, 9}};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            if (i != j) assert_int_equal(statistics_pair(4, i, j), expected[i][j]);
    assert_int_equal(statistics_pair_count(0), 0);
    assert_int_equal(statistics_pair_count(15), 105);
}

/* With 13 replicates, a pair farther apart than all others gives 1/105, one of C(15, 2) pairs. */
static void validate_pair_test(void **state) {
    (void)state;
    double distances[105];
    struct statistics_p out;
    for (size_t i = 0; i < 105; i++)
        distances[i] = 1.0 + (double)i / 1024.0;
    distances[statistics_pair(15, 3, 14)] = 2.0;
    assert_int_equal(statistics_test_pair(distances, 15, 3, 14, &out), STATUS_OK);
    assert_int_equal(out.as_large, 1);
    assert_int_equal(out.total, 105);
    assert_true(out.p == 1.0 / 105.0);
    distances[0] = 2.0; /* ties count against the finding */
    distances[7] = 2.0;
    assert_int_equal(statistics_test_pair(distances, 15, 14, 3, &out), STATUS_OK);
    assert_int_equal(out.as_large, 3);
    distances[statistics_pair(15, 3, 14)] = 0.0;
    assert_int_equal(statistics_test_pair(distances, 15, 3, 14, &out), STATUS_OK);
    assert_int_equal(out.as_large, 105);
}

/* The points are 0, 1, 3. With one point alone the statistic is 2(1+3)/2 - 2*2/4 = 3 for 0, 3 - 1.5
 * = 1.5 for 1, and 5 - 0.5 for 3. */
static const struct {
    double points[10];
    size_t runs, baseline;
    uint64_t as_large, total;
} labelings[] = {
    {{0, 1, 3}, 3, 1, 2, 3},
    {{1, 0, 3}, 3, 1, 3, 3},
    {{3, 0, 1}, 3, 1, 1, 3},
    {{0, 1, 3}, 3, 2, 1, 3},
    {{0, 0.1, 0.3, 10.4}, 4, 3, 1, 4},
    {{0, 0, 1, 1}, 4, 2, 2, 6},
    {{0, 1, 2, 3, 4, 100, 101, 102, 103, 104}, 10, 5, 2, 252},
    {{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 10, 5, 252, 252},
    {{0, 1, 2, 3, 4, 5, 6, 7, 8, 1000}, 10, 9, 1, 10},
};

static void validate_label_test(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(labelings); i++) {
        const struct statistics_p out =
            test_labels(labelings[i].points, labelings[i].runs, labelings[i].baseline);
        assert_int_equal(out.as_large, labelings[i].as_large);
        assert_int_equal(out.total, labelings[i].total);
    }
}

/* The energy distance by its definition: means over all ordered pairs of two groups. */
static double mean_distance(const double *x, size_t n, const double *y, size_t m) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            sum += real_abs_f64(x[i] - y[j]);
    return sum / ((double)n * (double)m);
}

static double energy(const double *points, size_t runs, uint32_t arm) {
    double x[MOST];
    double y[MOST];
    size_t n = 0;
    size_t m = 0;
    for (size_t i = 0; i < runs; i++) {
        if (arm >> i & 1u) {
            x[n++] = points[i];
        } else {
            y[m++] = points[i];
        }
    }
    return 2.0 * mean_distance(x, n, y, m) - mean_distance(x, n, x, n) - mean_distance(y, m, y, m);
}

static void draw_points(uint64_t seed, double *points, size_t count) {
    const struct stream_address address = {.stream = STREAM_DATA, .last_element = 1000};
    struct stream_site site;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        points[i] = normal_from_word(stream_word(seed, site, i));
}

static void corroborate_energy_distance(void **state) {
    (void)state;
    static const size_t designs[][2] = {{5, 2}, {5, 3}, {8, 3}, {9, 7}, {10, 5}};
    for (size_t d = 0; d < 50; d++) {
        const size_t runs = designs[d % 5][0];
        const size_t baseline = designs[d % 5][1];
        double points[10];
        draw_points(100 + d, points, runs);
        for (size_t i = baseline; i < runs; i++)
            points[i] += 0.7;
        const double observed = energy(points, runs, (1u << baseline) - 1u);
        uint64_t as_large = 0;
        for (uint32_t arm = 0; arm < 1u << runs; arm++) {
            size_t size = 0;
            for (size_t i = 0; i < runs; i++)
                size += arm >> i & 1u;
            /* The points are random, so what is not equal by symmetry differs by more than 1e-9. */
            as_large += size == baseline && energy(points, runs, arm) >= observed - 1e-9;
        }
        assert_int_equal(test_labels(points, runs, baseline).as_large, as_large);
    }
}

/* The promise of the test: of all labelings of the same runs, at most a share x has p <= x. */
static void verify_label_test_is_valid(void **state) {
    (void)state;
    static const size_t designs[][2] = {{6, 3}, {7, 2}, {6, 1}, {8, 4}};
    for (size_t d = 0; d < COUNT_OF(designs); d++) {
        const size_t runs = designs[d][0];
        double points[8];
        uint64_t below[71] = {0};
        uint64_t total = 0;
        draw_points(2385 + d, points, runs);
        for (uint32_t arm = 0; arm < 1u << runs; arm++) {
            double labelled[8];
            size_t first = 0;
            for (size_t i = 0; i < runs; i++)
                if (arm >> i & 1u) labelled[first++] = points[i];
            if (first != designs[d][1]) continue;
            for (size_t i = 0, at = first; i < runs; i++)
                if ((arm >> i & 1u) == 0) labelled[at++] = points[i];
            const struct statistics_p out = test_labels(labelled, runs, first);
            total = out.total;
            for (uint64_t k = out.as_large; k <= total; k++)
                below[k]++;
        }
        for (uint64_t k = 0; k <= total; k++)
            assert_true(below[k] <= k);
        assert_int_equal(below[total], total);
    }
}

static void verify_label_test_ignores_order_and_scale(void **state) {
    (void)state;
    double points[10];
    double other[10];
    draw_points(7, points, 10);
    points[7] += 1.5;
    points[8] += 1.5;
    for (size_t i = 0; i < 10; i++)
        other[i] = 1e-9 * points[i < 6 ? 5 - i : 15 - i] + 1.0;
    const struct statistics_p one = test_labels(points, 10, 6);
    const struct statistics_p two = test_labels(other, 10, 6);
    assert_int_equal(one.as_large, two.as_large);
}

static void validate_test_refusals(void **state) {
    (void)state;
    double distances[PAIRS + MOST + 1] = {0.0};
    struct statistics_p out;
    assert_int_equal(statistics_test_pair(distances, 3, 1, 1, &out), STATUS_INTERNAL);
    assert_int_equal(statistics_test_pair(distances, 3, 1, 3, &out), STATUS_INTERNAL);
    assert_int_equal(statistics_test_labels(distances, 4, 0, &out), STATUS_UNTESTABLE);
    assert_int_equal(statistics_test_labels(distances, 4, 4, &out), STATUS_UNTESTABLE);
    assert_int_equal(statistics_test_labels(distances, 21, 10, &out), STATUS_UNSUPPORTED);
    distances[statistics_pair(4, 1, 3)] = real_nan_f64();
    assert_int_equal(statistics_test_labels(distances, 4, 2, &out), STATUS_UNTESTABLE);
    assert_non_null(strstr(status_text(), "distance of runs 1 and 3 is"));
    distances[statistics_pair(4, 1, 3)] = real_inf_f64();
    assert_int_equal(statistics_test_pair(distances, 4, 0, 1, &out), STATUS_UNTESTABLE);
}

static void validate_needed_runs(void **state) {
    (void)state;
    static const struct {
        double alpha;
        size_t replicates, runs;
    } needed[] = {
        {0.01, 13, 5},                                            /* 1/105, 2/252 */
        {0.05, 5, 4},                                             /* 1/21, 2/70 */
        {0.001, 44, 7},                                           /* 1/1035, 2/3432 */
        {1.0 / 105.0, 13, 5}, {2.0 / 252.0, 15, 5}, {0.99, 1, 2}, /* 1/3, 2/6 */
    };
    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        size_t replicates;
        size_t runs;
        assert_int_equal(statistics_pair_needed(needed[i].alpha, &replicates), STATUS_OK);
        assert_int_equal(statistics_labels_needed(needed[i].alpha, &runs), STATUS_OK);
        assert_int_equal(replicates, needed[i].replicates);
        assert_int_equal(runs, needed[i].runs);
    }
    assert_true(statistics_pair_least(13) == 1.0 / 105.0);
    assert_true(statistics_labels_least(5, 5) == 2.0 / 252.0);
    assert_true(statistics_labels_least(13, 1) == 1.0 / 14.0);
    assert_true(statistics_labels_least(1, 1) == 1.0);
    static const double bad[] = {0.0, 1.0, -0.01, 1e-300};
    size_t n;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(statistics_pair_needed(bad[i], &n), STATUS_INPUT);
    assert_int_equal(statistics_labels_needed(1e-300, &n), STATUS_OK);
    assert_int_equal(statistics_labels_needed(0x1p-1074, &n), STATUS_OK); /* below 600 */
    assert_true(statistics_labels_least(n, n) <= 0x1p-1074);
    static const struct {
        double alpha;
        size_t count;
    } distances[] = {{0.05, 19}, {0.01, 99}, {0.5, 1}, {0.34, 2}, {0.9, 1}, {1e-6, 999999}};
    for (size_t i = 0; i < COUNT_OF(distances); i++) {
        assert_int_equal(statistics_distance_needed(distances[i].alpha, &n), STATUS_OK);
        assert_int_equal(n, distances[i].count);
    }
    assert_int_equal(statistics_distance_needed(9e-7, &n), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "more than 1000000 pairs needed"));
    assert_int_equal(statistics_labels_needed(real_nan_f64(), &n), STATUS_INPUT);
}

static void validate_quantiles(void **state) {
    (void)state;
    double values[] = {8.0, 1.0, 4.0, 2.0};
    statistics_sort(values, 4);
    static const double sorted[] = {1.0, 2.0, 4.0, 8.0};
    assert_memory_equal(values, sorted, sizeof sorted);
    assert_true(statistics_quantile(sorted, 4, 0.0) == 1.0);
    assert_true(statistics_quantile(sorted, 4, 0.25) == 1.75);
    assert_true(statistics_quantile(sorted, 4, 0.5) == 3.0);
    assert_true(statistics_quantile(sorted, 4, 1.0) == 8.0);
    assert_false(real_finite_f64(statistics_quantile(sorted, 0, 0.5)));
}

static int near(double a, double b, double tolerance) {
    return real_abs_f64(a - b) <= tolerance;
}

/* For 0 of n the upper end solves (1 - x)^n = 0.025; 5 of 10 is printed in every table. */
static void validate_share_interval(void **state) {
    (void)state;
    struct statistics_interval out;
    assert_int_equal(statistics_share_interval(0, 10, 0.95, &out), STATUS_OK);
    assert_true(out.low == 0.0 && near(out.high, 0.308497107818761, 1e-13));
    assert_int_equal(statistics_share_interval(10, 10, 0.95, &out), STATUS_OK);
    assert_true(out.high == 1.0 && near(out.low, 1.0 - 0.308497107818761, 1e-13));
    assert_int_equal(statistics_share_interval(5, 10, 0.95, &out), STATUS_OK);
    assert_true(near(out.low, 0.1870860, 1e-7) && near(out.high, 0.8129140, 1e-7));
    assert_int_equal(statistics_share_interval(0, 3000, 0.90, &out), STATUS_OK);
    assert_true(near(out.high, 0.000998079, 1e-9)); /* 1 - 0.05^(1/3000) */
    assert_int_equal(statistics_share_interval(0, 0, 0.95, &out), STATUS_INPUT);
    assert_int_equal(statistics_share_interval(3, 2, 0.95, &out), STATUS_INPUT);
    assert_int_equal(statistics_share_interval(1, 2, 1.0, &out), STATUS_INPUT);
}

/* For any true share the interval must cover it with at least its confidence, by the exact sum over
 * hits. */
static void verify_share_interval_covers(void **state) {
    (void)state;
    for (int step = 1; step < 40; step++) {
        const double share = (double)step / 40.0;
        double covered = 0.0;
        for (unsigned hits = 0; hits <= 12; hits++) {
            struct statistics_interval out;
            assert_int_equal(statistics_share_interval(hits, 12, 0.9, &out), STATUS_OK);
            if (out.low <= share && share <= out.high)
                covered += gsl_ran_binomial_pdf(hits, share, 12);
        }
        assert_true(covered >= 0.9);
    }
}

/* The median of ten lies between order statistics 2 and 9 with confidence 1 - 2 * 11 / 1024 (the
 * table of the sign test). */
static void validate_quantile_interval(void **state) {
    (void)state;
    double sorted[200];
    for (size_t i = 0; i < COUNT_OF(sorted); i++)
        sorted[i] = (double)(i + 1);
    struct statistics_interval out;
    assert_int_equal(statistics_quantile_interval(sorted, 10, 0.5, 0.95, &out), STATUS_OK);
    assert_true(out.low == 2.0 && out.high == 9.0);
    assert_true(near(out.confidence, 1.0 - 22.0 / 1024.0, 1e-14));
    assert_int_equal(statistics_quantile_interval(sorted, 6, 0.5, 0.95, &out), STATUS_OK);
    assert_true(out.low == 1.0 && out.high == 6.0);
    /* 1/4 of pairs lie below the median, and 1/4 above: a tail that is met exactly */
    assert_int_equal(statistics_quantile_interval(sorted, 2, 0.5, 0.5, &out), STATUS_OK);
    assert_true(out.low == 1.0 && out.high == 2.0 && near(out.confidence, 0.5, 1e-14));
    assert_int_equal(statistics_quantile_interval(sorted, 5, 0.5, 0.95, &out), STATUS_UNTESTABLE);
    assert_non_null(strstr(status_text(), "5 values, expected 6 to"));
    /* 0.95^72 = 0.02489 <= 0.025 < 0.95^71 */
    assert_int_equal(statistics_quantile_interval(sorted, 71, 0.95, 0.95, &out), STATUS_UNTESTABLE);
    assert_int_equal(statistics_quantile_interval(sorted, 72, 0.95, 0.95, &out), STATUS_OK);
    assert_true(out.high == 72.0);
    assert_int_equal(statistics_quantile_interval(sorted, 71, 0.05, 0.95, &out), STATUS_UNTESTABLE);
    assert_int_equal(statistics_quantile_interval(sorted, 72, 0.05, 0.95, &out), STATUS_OK);
    assert_true(out.low == 1.0);
    assert_int_equal(statistics_quantile_interval(sorted, 72, 1.0, 0.95, &out), STATUS_INPUT);
    /* The most values that are taken. The place of the median has a standard deviation of 500, and
     * its law is the normal one to far less than a place. Both ends are whole places, so each is
     * off by at most one and their distance by at most two, to which 3 adds one for the law. */
    enum { MANY = 1000000 };
    double *const many = (double *)malloc((MANY + 1) * sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i <= MANY; i++)
        many[i] = (double)(i + 1);
    assert_int_equal(statistics_quantile_interval(many, MANY, 0.5, 0.95, &out), STATUS_OK);
    assert_true(out.low + out.high == MANY + 1.0);
    assert_true(near(out.high - out.low, 2.0 * 1.959964 * 500.0, 3.0));
    assert_int_equal(statistics_quantile_interval(many, MANY + 1, 0.5, 0.95, &out),
                     STATUS_UNTESTABLE);
    free(many);
}

/* At every count and quantile both ends must be as tight as the tails allow. */
static void verify_quantile_interval_is_tight(void **state) {
    (void)state;
    static const double quantiles[] = {0.1, 0.37, 0.5, 0.9};
    double sorted[120];
    for (size_t i = 0; i < COUNT_OF(sorted); i++)
        sorted[i] = (double)(i + 1);
    for (size_t q = 0; q < COUNT_OF(quantiles); q++) {
        for (unsigned n = 40; n <= 120; n += 7) {
            struct statistics_interval out;
            const double share = quantiles[q];
            assert_int_equal(statistics_quantile_interval(sorted, n, share, 0.9, &out), STATUS_OK);
            const unsigned low = (unsigned)out.low;
            const unsigned high = (unsigned)out.high;
            /* 1e-12 allows for the rounding of GSL's and of our tails */
            assert_true(gsl_cdf_binomial_P(low - 1, share, n) <= 0.05 + 1e-12);
            assert_true(gsl_cdf_binomial_P(low, share, n) > 0.05 - 1e-12);
            assert_true(gsl_cdf_binomial_Q(high - 1, share, n) <= 0.05 + 1e-12);
            assert_true(gsl_cdf_binomial_Q(high - 2, share, n) > 0.05 - 1e-12);
            assert_true(out.confidence >= 0.9);
        }
    }
}

/* Wilks' numbers for one-sided limits, which every table of tolerance limits has. */
static void validate_tolerance_counts(void **state) {
    (void)state;
    static const struct {
        double content, confidence;
        size_t maximum;
    } counts[] = {{0.95, 0.95, 59}, {0.9, 0.95, 29}, {0.99, 0.95, 299}, {0.5, 0.5, 1}};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        size_t n;
        const double content = counts[i].content;
        const double confidence = counts[i].confidence;
        assert_int_equal(statistics_maximum_needed(content, confidence, &n), STATUS_OK);
        assert_int_equal(n, counts[i].maximum);
    }
    size_t n;
    assert_int_equal(statistics_maximum_needed(1.0, 0.5, &n), STATUS_INPUT);
    assert_int_equal(statistics_maximum_needed(0.9999999, 0.95, &n), STATUS_INPUT);
}

static void validate_distance(void **state) {
    (void)state;
    const double pairs[] = {1.0, 2.0, 3.0, (double)INFINITY};
    const struct {
        double d;
        uint64_t as_large;
    } cases[] = {{0.0, 5}, {2.0, 4}, {2.5, 3}, {4.0, 2}, {(double)INFINITY, 2}};
    struct statistics_p p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(statistics_test_distance(pairs, 4, cases[i].d, &p), STATUS_OK);
        assert_true(p.as_large == cases[i].as_large && p.total == 5);
        assert_true(p.p == (double)cases[i].as_large / 5.0);
    }
    assert_int_equal(statistics_test_distance(pairs, 4, (double)NAN, &p), STATUS_UNTESTABLE);
    assert_int_equal(statistics_test_distance(pairs, 0, 1.0, &p), STATUS_UNTESTABLE);
    size_t needed;
    assert_int_equal(statistics_distance_needed(0.01, &needed), STATUS_OK);
    assert_int_equal(needed, 99);
    assert_int_equal(statistics_distance_needed(0.05, &needed), STATUS_OK);
    assert_int_equal(needed, 19);
    assert_int_equal(statistics_distance_needed(0.0, &needed), STATUS_INPUT);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_distance),
        cmocka_unit_test(validate_pair_index),
        cmocka_unit_test(validate_pair_test),
        cmocka_unit_test(validate_label_test),
        cmocka_unit_test(corroborate_energy_distance),
        cmocka_unit_test(verify_label_test_is_valid),
        cmocka_unit_test(verify_label_test_ignores_order_and_scale),
        cmocka_unit_test(validate_test_refusals),
        cmocka_unit_test(validate_needed_runs),
        cmocka_unit_test(validate_quantiles),
        cmocka_unit_test(validate_share_interval),
        cmocka_unit_test(verify_share_interval_covers),
        cmocka_unit_test(validate_quantile_interval),
        cmocka_unit_test(verify_quantile_interval_is_tight),
        cmocka_unit_test(validate_tolerance_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
