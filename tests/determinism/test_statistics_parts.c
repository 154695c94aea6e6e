/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Exact tests and intervals once more: each refusal by its whole text at every place, ranks of
 * random distances, ends of intervals to the last bit, Student's t by its closed forms, means by
 * long doubles, and the least counts from both sides. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "determinism/statistics.c" /* for the quantile of Student's t */
#include "tests/base/helper_draws.h"

enum { RUNS = 6, CASES = 2000 };

static int near(double a, double b, double relative) {
    return fabs(a - b) <= relative * fabs(b);
}

#define REFUSES(call, status, text)                                                                \
    do {                                                                                           \
        assert_int_equal(call, status);                                                            \
        assert_string_equal(status_text(), text);                                                  \
    } while (0)

/* ---- tests ---- */

static void corroborate_ranks(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x57a7), .number = number};
        const size_t runs = 2 + draws_pick(&draws, RUNS - 1), pairs = runs * (runs - 1) / 2;
        double distances[RUNS * RUNS];
        struct statistics_p p;
        for (size_t i = 0; i < COUNT_OF(distances); i++)
            distances[i] = (double)draws_pick(&draws, 4);
        const size_t at = draws_pick(&draws, (uint32_t)pairs);
        size_t as_far[2] = {0, 1}, here = 0;
        for (size_t i = 0; i < pairs; i++) {
            as_far[0] += distances[i] < distances[at] ? 0 : 1;
            as_far[1] += i == at || distances[i] < distances[at] ? 0 : 1;
        }
        for (size_t a = 0; a < runs; a++)
            for (size_t b = a + 1; b < runs; b++, here++)
                if (here == at) {
                    assert_int_equal(statistics_test_pair(distances, runs, b, a, &p), STATUS_OK);
                    assert_true(p.as_large == as_far[0] && p.total == pairs);
                    assert_true(p.p == (double)as_far[0] / (double)pairs);
                }
        assert_int_equal(here, pairs);
        if (pairs == 1) continue;
        const double d = distances[at]; /* the others are those that it is held against */
        memmove(&distances[at], &distances[at + 1], (pairs - at - 1) * sizeof *distances);
        assert_int_equal(statistics_test_distance(distances, pairs - 1, d, &p), STATUS_OK);
        assert_true(p.as_large == as_far[1] && p.total == pairs);
        assert_true(p.p == (double)as_far[1] / (double)pairs);
    }
}

static void validate_what_no_test_takes(void **state) {
    (void)state;
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    double distances[RUNS * (RUNS - 1) / 2];
    struct statistics_p p;
    char text[128];
    for (size_t runs = 2; runs <= RUNS; runs++)
        for (size_t a = 0, at = 0; a < runs; a++)
            for (size_t b = a + 1; b < runs; b++, at++)
                for (size_t o = 0; o < COUNT_OF(odd); o++) {
                    for (size_t i = 0; i < COUNT_OF(distances); i++)
                        distances[i] = 1.0;
                    distances[at] = odd[o];
                    snprintf(text, sizeof text,
                             "distance of runs %zu and %zu is %g, expected a number", a, b, odd[o]);
                    REFUSES(statistics_test_pair(distances, runs, 0, 1, &p), STATUS_UNTESTABLE,
                            text);
                    REFUSES(statistics_test_labels(distances, runs, 1, &p), STATUS_UNTESTABLE,
                            text);
                    const size_t pairs = runs * (runs - 1) / 2;
                    if (o > 0) { /* a run that diverged is far away, and no error */
                        assert_int_equal(statistics_test_distance(distances, pairs, 1.0, &p),
                                         STATUS_OK);
                        assert_int_equal(p.as_large, o == 1 ? pairs + 1 : pairs);
                        continue;
                    }
                    REFUSES(statistics_test_distance(distances, pairs, 1.0, &p), STATUS_UNTESTABLE,
                            "a distance between two runs is no number");
                }
    distances[0] = 1.0;
    REFUSES(statistics_test_distance(distances, 1, (double)NAN, &p), STATUS_UNTESTABLE,
            "a distance between two runs is no number");
    REFUSES(statistics_test_distance(distances, 0, 1.0, &p), STATUS_UNTESTABLE,
            "no pair of runs to hold a distance against");
    for (size_t a = 0; a < 5; a++)
        for (size_t b = 0; b < 5; b++) {
            for (size_t i = 0; i < COUNT_OF(distances); i++)
                distances[i] = 1.0;
            const int taken = a < 3 && b < 3 && a != b;
            snprintf(text, sizeof text,
                     "pair test: runs %zu and %zu, expected two different below 3", a, b);
            if (taken)
                assert_int_equal(statistics_test_pair(distances, 3, a, b, &p), STATUS_OK);
            else
                REFUSES(statistics_test_pair(distances, 3, a, b, &p), STATUS_INTERNAL, text);
        }
    for (size_t baseline = 0; baseline < 6; baseline++) {
        snprintf(text, sizeof text,
                 "label test: %zu of 4 runs are of the baseline, expected at least one run in each "
                 "arm",
                 baseline);
        if (baseline > 0 && baseline < 4)
            assert_int_equal(statistics_test_labels(distances, 4, baseline, &p), STATUS_OK);
        else
            REFUSES(statistics_test_labels(distances, 4, baseline, &p), STATUS_UNTESTABLE, text);
    }
    REFUSES(statistics_test_labels(distances, 21, 1, &p), STATUS_UNSUPPORTED,
            "label test: 21 runs, expected at most 20");
    double many[20 * 19 / 2] = {0.0};
    assert_int_equal(statistics_test_labels(many, 20, 1, &p), STATUS_OK);
    assert_true(p.as_large == 20 && p.total == 20);
}

/* Of three runs, the first alone has a statistic of 2.5 and the second one of 1.5 times as much
 * less as their distances to the third differ: within 2^-40 of the sum, which is 4, they are equal.
 */
static void validate_near_statistics(void **state) {
    (void)state;
    static const double less[] = {0.0, 2.6, 2.75, -2.6, -2.75, 5.0};
    static const uint64_t as_large[] = {2, 2, 1, 2, 2, 1};
    for (size_t i = 0; i < COUNT_OF(less); i++) {
        const double distances[] = {2.0, 1.0, 1.0 - ldexp(less[i], -40)};
        struct statistics_p p;
        assert_int_equal(statistics_test_labels(distances, 3, 1, &p), STATUS_OK);
        assert_true(p.as_large == as_large[i] && p.total == 3);
    }
}

/* ---- counts that are needed ---- */

/* Each is the first at which the least p is small enough: that of one fewer is not. */
static void corroborate_counts(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x4eed), .number = number};
        const double alpha = (double)(1 + draws_pick(&draws, 998)) / 1000.0;
        size_t pairs, replicates, runs, values;
        assert_int_equal(statistics_pair_needed(alpha, &replicates), STATUS_OK);
        assert_int_equal(statistics_distance_needed(alpha, &pairs), STATUS_OK);
        assert_int_equal(statistics_labels_needed(alpha, &runs), STATUS_OK);
        assert_true(pairs >= 1 && 1.0 / ((double)pairs + 1.0) <= alpha);
        assert_true(pairs == 1 || 1.0 / (double)pairs > alpha);
        const double r = (double)replicates; /* one of r + 2 over 2 pairs */
        assert_true(2.0 / ((r + 1.0) * (r + 2.0)) <= alpha);
        assert_true(replicates == 0 || 2.0 / (r * (r + 1.0)) > alpha);
        double ways = 1.0, before = 1.0; /* 2n over n, and that of one fewer */
        for (double n = 1.0; n <= (double)runs; n += 1.0) {
            before = ways;
            ways = ways * 2.0 * (2.0 * n - 1.0) / n;
        }
        assert_true(runs >= 1 && fmin(1.0, 2.0 / ways) <= alpha);
        assert_true(runs == 1 || fmin(1.0, 2.0 / before) > alpha);
        /* Numbers whose maximum is above a share of all but in one of so many cases. */
        const double content = (double)(1 + draws_pick(&draws, 98)) / 100.0;
        assert_int_equal(statistics_maximum_needed(content, 1.0 - alpha, &values), STATUS_OK);
        assert_true(values >= 1 && pow(content, (double)values) <= alpha * (1.0 + 1e-9));
        assert_true(values == 1 || pow(content, (double)values - 1.0) > alpha * (1.0 - 1e-9));
    }
    assert_true(statistics_labels_least(3, 2) == 0.1 && statistics_labels_least(2, 3) == 0.1);
    assert_true(statistics_labels_least(2, 2) == 1.0 / 3.0);
    assert_true(statistics_labels_least(0, 0) == 1.0 && statistics_pair_least(0) == 1.0);
}

static void validate_counts_refused(void **state) {
    (void)state;
    static const double bad[] = {0.0, 1.0, -0.25, 1.5, (double)NAN};
    struct statistics_interval interval;
    const double sorted[2] = {1.0, 2.0};
    double mean;
    char text[128];
    size_t n;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
#define SHARE(name, call)                                                                          \
    do {                                                                                           \
        snprintf(text, sizeof text, "%s is %.17g, expected a number between 0 and 1", name,        \
                 bad[i]);                                                                          \
        REFUSES(call, STATUS_INPUT, text);                                                         \
    } while (0)
        SHARE("alpha", statistics_pair_needed(bad[i], &n));
        SHARE("alpha", statistics_distance_needed(bad[i], &n));
        SHARE("alpha", statistics_labels_needed(bad[i], &n));
        SHARE("content", statistics_maximum_needed(bad[i], 0.5, &n));
        SHARE("confidence", statistics_maximum_needed(0.5, bad[i], &n));
        SHARE("confidence", statistics_share_interval(1, 2, bad[i], &interval));
        SHARE("confidence", statistics_mean_interval(sorted, 2, bad[i], &mean, &interval));
        SHARE("quantile", statistics_quantile_interval(sorted, 2, bad[i], 0.5, &interval));
        SHARE("confidence", statistics_quantile_interval(sorted, 2, 0.5, bad[i], &interval));
    }
    /* The most that is tried: a million of each. */
    assert_int_equal(statistics_distance_needed(1.0 / 1000001.0, &n), STATUS_OK);
    assert_int_equal(n, 1000000);
    snprintf(text, sizeof text, "alpha is %.17g: more than 1000000 pairs needed", 1.0 / 1000002.0);
    REFUSES(statistics_distance_needed(1.0 / 1000002.0, &n), STATUS_INPUT, text);
    assert_int_equal(statistics_pair_needed(2.0 / (1000002.0 * 1000001.0), &n), STATUS_OK);
    assert_int_equal(n, 1000000);
    const double less = 2.0 / (1000003.0 * 1000002.0);
    snprintf(text, sizeof text, "alpha is %.17g: more than 1000000 replicates needed", less);
    REFUSES(statistics_pair_needed(less, &n), STATUS_INPUT, text);
    const double content = 1.0 - 1e-6; /* of which a power of a million is 1 / e */
    assert_int_equal(statistics_maximum_needed(content, 0.632, &n), STATUS_OK);
    assert_in_range(n, 999600, 1000000);
    snprintf(text, sizeof text,
             "content %.17g with confidence %.17g needs more than 1000000 values", content, 0.633);
    REFUSES(statistics_maximum_needed(content, 0.633, &n), STATUS_INPUT, text);
}

/* ---- intervals ---- */

/* The ends are the last numbers at which a tail is no more than half of what is left: with the next
 * one inwards it is more. */
static void corroborate_shares(void **state) {
    (void)state;
    static const double confidences[] = {0.5, 0.9, 0.95, 0.999};
    struct statistics_interval out;
    for (unsigned trials = 1; trials <= 12; trials++)
        for (unsigned hits = 0; hits <= trials; hits++)
            for (size_t c = 0; c < COUNT_OF(confidences); c++) {
                const double tail = (1.0 - confidences[c]) / 2.0, k = hits, n = trials;
                assert_int_equal(statistics_share_interval(hits, trials, confidences[c], &out),
                                 STATUS_OK);
                assert_true(out.confidence == confidences[c]);
                if (hits == 0) assert_true(out.low == 0.0);
                if (hits == trials) assert_true(out.high == 1.0);
                if (hits > 0) {
                    const double next = nextafter(out.low, 1.0);
                    assert_true(gsl_cdf_beta_P(out.low, k, n - k + 1.0) <= tail);
                    assert_true(gsl_cdf_beta_P(next, k, n - k + 1.0) > tail);
                }
                if (hits < trials) {
                    const double next = nextafter(out.high, 0.0);
                    assert_true(gsl_cdf_beta_Q(out.high, k + 1.0, n - k) <= tail);
                    assert_true(gsl_cdf_beta_Q(next, k + 1.0, n - k) > tail);
                }
                /* By sums over hits: so many or more at the lower end, so many or fewer above. */
                double sums[2] = {0.0, 0.0}, ways = 1.0;
                for (unsigned j = 0; j <= trials; j++) {
                    if (j >= hits)
                        sums[0] += ways * pow(out.low, j) * pow(1.0 - out.low, trials - j);
                    if (j <= hits)
                        sums[1] += ways * pow(out.high, j) * pow(1.0 - out.high, trials - j);
                    ways = ways * (double)(trials - j) / (double)(j + 1);
                }
                assert_true(hits == 0 || near(sums[0], tail, 1e-9));
                assert_true(hits == trials || near(sums[1], tail, 1e-9));
            }
    REFUSES(statistics_share_interval(0, 0, 0.5, &out), STATUS_INPUT,
            "share of 0 in 0 trials, expected a share of at least one trial");
    REFUSES(statistics_share_interval(4, 3, 0.5, &out), STATUS_INPUT,
            "share of 4 in 3 trials, expected a share of at least one trial");
    assert_int_equal(statistics_share_interval(3, 3, 0.5, &out), STATUS_OK);
}

/* P(T > t) of one, two and four degrees of freedom, as textbooks have it in closed form. */
static double closed_tail(double t, double freedom) {
    if (freedom == 1.0) return 0.5 - atan(t) / acos(-1.0);
    if (freedom == 2.0) return 0.5 - 0.5 * t / sqrt(2.0 + t * t);
    const double u = t / sqrt(4.0 + t * t);
    return 0.5 - 0.25 * u * (3.0 - u * u);
}

static void corroborate_students(void **state) {
    (void)state;
    static const double freedoms[] = {1.0, 2.0, 4.0}, tails[] = {0.4, 0.25, 0.05, 0.025, 0.001};
    for (size_t f = 0; f < COUNT_OF(freedoms); f++)
        for (size_t i = 0; i < COUNT_OF(tails); i++) {
            const double t = student_quantile(tails[i], freedoms[f]);
            assert_true(near(closed_tail(t, freedoms[f]), tails[i], 1e-9));
            assert_true(gsl_cdf_tdist_Q(t, freedoms[f]) <= tails[i]);
            assert_true(gsl_cdf_tdist_Q(nextafter(t, 0.0), freedoms[f]) > tails[i]);
        }
    for (size_t f = 0; f < COUNT_OF(freedoms); f++) /* tails that some t has to the last bit */
        for (double at = 0.5; at < 4.0; at += 0.25) {
            const double tail = gsl_cdf_tdist_Q(at, freedoms[f]);
            const double t = student_quantile(tail, freedoms[f]);
            assert_true(gsl_cdf_tdist_Q(t, freedoms[f]) <= tail);
            assert_true(gsl_cdf_tdist_Q(nextafter(t, 0.0), freedoms[f]) > tail);
        }
    /* far out it is 1 / (pi tail); GSL's own tail ends at 1e154 */
    assert_true(near(student_quantile(1e-140, 1.0), 1e140 / acos(-1.0), 1e-6));
}

static void corroborate_means(void **state) {
    (void)state;
    struct statistics_interval out;
    double values[9], mean;
    char text[128];
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x3ea4), .number = number};
        const size_t count = draws_pick(&draws, 3) == 0 ? 2 : draws_pick(&draws, 2) == 0 ? 3 : 5;
        const double shift = (double)draws_pick(&draws, 3) * 64.0;
        const double confidence = draws_pick(&draws, 2) == 0 ? 0.5 : 0.95;
        for (size_t i = 0; i < count; i++)
            values[i] = shift + (double)draws_pick(&draws, 1000) / 256.0 - 2.0;
        long double sum = 0.0L, squares = 0.0L;
        for (size_t i = 0; i < count; i++)
            sum += (long double)values[i];
        for (size_t i = 0; i < count; i++) {
            const long double gap = (long double)values[i] - sum / (long double)count;
            squares += gap * gap;
        }
        const double error = (double)sqrtl(squares / (long double)(count * (count - 1)));
        assert_int_equal(statistics_mean_interval(values, count, confidence, &mean, &out),
                         STATUS_OK);
        assert_true(out.confidence == confidence);
        /* a few roundings of numbers up to 150 */
        assert_true(fabs(mean - (double)(sum / (long double)count)) < 1e-12);
        assert_true(fabs(0.5 * out.low + 0.5 * out.high - mean) < 1e-12);
        if (error == 0.0) {
            assert_true(out.low == values[0] && out.high == values[0]);
            continue;
        }
        const double t = (out.high - mean) / error;
        const double freedom = (double)count - 1.0;
        assert_true(near(closed_tail(t, freedom), 0.5 - confidence / 2.0, 1e-6));
    }
    for (size_t i = 0; i < COUNT_OF(values); i++)
        values[i] = 0.1; /* equal values have their mean to the last bit */
    assert_int_equal(statistics_mean_interval(values, COUNT_OF(values), 0.9, &mean, &out),
                     STATUS_OK);
    assert_true(mean == 0.1 && out.low == 0.1 && out.high == 0.1);
    for (size_t count = 0; count < 3; count++) {
        snprintf(text, sizeof text, "interval of a mean: %zu values, expected 2", count);
        if (count == 2)
            assert_int_equal(statistics_mean_interval(values, 2, 0.9, &mean, &out), STATUS_OK);
        else
            REFUSES(statistics_mean_interval(values, count, 0.9, &mean, &out), STATUS_UNTESTABLE,
                    text);
    }
    for (size_t at = 0; at < COUNT_OF(values); at++)
        for (int how = 0; how < 2; how++) {
            for (size_t i = 0; i < COUNT_OF(values); i++)
                values[i] = 1.0;
            values[at] = how ? (double)NAN : (double)INFINITY;
            snprintf(text, sizeof text, "interval of a mean: value %zu is %g, expected a number",
                     at, values[at]);
            REFUSES(statistics_mean_interval(values, COUNT_OF(values), 0.9, &mean, &out),
                    STATUS_UNTESTABLE, text);
        }
}

/* P(a <= hits < b) of n trials. */
static double within(unsigned a, unsigned b, double q, unsigned n) {
    double sum = 0.0, ways = 1.0;
    for (unsigned j = 0; j < b && j <= n; j++) {
        if (j >= a) sum += ways * pow(q, j) * pow(1.0 - q, n - j);
        ways = ways * (double)(n - j) / (double)(j + 1);
    }
    return sum;
}

/* The quantile lies below the order statistic k, counted from 1, where fewer than k values lie
 * below it. Of the pairs that leave no more than half on either side, the closest. */
static void corroborate_quantiles(void **state) {
    (void)state;
    static const double shares[] = {0.5, 0.3, 0.9, 0.05}, confidences[] = {0.5, 0.8, 0.95};
    double sorted[80];
    char text[160];
    for (size_t i = 0; i < COUNT_OF(sorted); i++)
        sorted[i] = (double)(10 * (i + 1));
    for (size_t s = 0; s < COUNT_OF(shares); s++)
        for (size_t c = 0; c < COUNT_OF(confidences); c++)
            for (unsigned n = 1; n <= COUNT_OF(sorted); n++) { /* a tail of 1/4 is met exactly */
                const double q = shares[s], tail = (1.0 - confidences[c]) / 2.0;
                struct statistics_interval out;
                unsigned needed = 1, low = 0, high = n + 1;
                while (pow(q, needed) > tail || pow(1.0 - q, needed) > tail)
                    needed++;
                const enum status status =
                    statistics_quantile_interval(sorted, n, q, confidences[c], &out);
                if (n < needed) {
                    snprintf(text, sizeof text,
                             "interval of the %g quantile at confidence %g: %u values, expected %u "
                             "to 1000000",
                             q, confidences[c], n, needed);
                    assert_int_equal(status, STATUS_UNTESTABLE);
                    assert_string_equal(status_text(), text);
                    continue;
                }
                for (unsigned k = 1; k <= n; k++) {
                    if (within(0, k, q, n) <= tail) low = k;
                    if (within(n + 1 - k, n + 1, q, n) <= tail) high = n + 1 - k;
                }
                assert_int_equal(status, STATUS_OK);
                assert_true(out.low == 10.0 * low && out.high == 10.0 * high);
                assert_true(near(out.confidence, within(low, high, q, n), 1e-9));
            }
    /* A confidence that leaves exactly the tail that GSL gives: what meets it is within it. Between
     * 1/4 and 1/2 one less twice the tail is exact, whatever the tail is. */
    unsigned met = 0;
    for (size_t s = 0; s < COUNT_OF(shares); s++)
        for (unsigned n = 2; n <= COUNT_OF(sorted); n++)
            for (unsigned k = 1; k < n; k++)
                for (int side = 0; side < 2; side++) {
                    const double q = shares[s];
                    const double tail =
                        side ? gsl_cdf_binomial_Q(k, q, n) : gsl_cdf_binomial_P(k, q, n);
                    struct statistics_interval at;
                    if (tail < 0.25 || tail >= 0.5) continue;
                    if (statistics_quantile_interval(sorted, n, q, 1.0 - 2.0 * tail, &at) !=
                        STATUS_OK)
                        continue;
                    /* at most k values, or more than k, lie below the quantile with that tail */
                    assert_true(side ? at.high == 10.0 * (k + 1) : at.low == 10.0 * (k + 1));
                    met++;
                }
    assert_true(met > 100);
    static const double many[1] = {0.0};
    struct statistics_interval out;
    REFUSES(statistics_quantile_interval(many, 1000001, 0.5, 0.5, &out), STATUS_UNTESTABLE,
            "interval of the 0.5 quantile at confidence 0.5: 1000001 values, expected 2 to "
            "1000000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_ranks),        cmocka_unit_test(validate_what_no_test_takes),
        cmocka_unit_test(validate_near_statistics), cmocka_unit_test(corroborate_counts),
        cmocka_unit_test(validate_counts_refused),  cmocka_unit_test(corroborate_shares),
        cmocka_unit_test(corroborate_students),     cmocka_unit_test(corroborate_means),
        cmocka_unit_test(corroborate_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
