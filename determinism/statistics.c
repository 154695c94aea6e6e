/* SPDX-License-Identifier: Apache-2.0
 * Exact tests by counting, and intervals by inverting GSL's distribution functions with bisection.
 * The functions are monotone, so bisection always ends, whereas GSL's own inverses may fail to
 * converge. */
#include "determinism/statistics.h"

#include <inttypes.h>
#include <math.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "base/real.h"
#include "base/sum.h"

#define MOST 1000000 /* the largest count that a search for a needed number tries */
#define MAX_PAIRS (STATISTICS_MAX_RUNS * (STATISTICS_MAX_RUNS - 1) / 2)

static enum status check_finite(const double *distances, size_t runs) {
    for (size_t i = 0; i < runs; i++) {
        for (size_t j = i + 1; j < runs; j++) {
            const double distance = distances[statistics_pair(runs, i, j)];
            if (!real_finite_f64(distance)) {
                FAIL(STATUS_UNTESTABLE, "distance of runs %zu and %zu is %g, expected a number", i,
                     j, distance);
            }
        }
    }
    return STATUS_OK;
}

static enum status check_share(const char *name, double value) {
    if (value > 0.0 && value < 1.0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s is %.17g, expected a number between 0 and 1", name, value);
}

static void set_p(struct statistics_p *out, uint64_t as_large, uint64_t total) {
    out->as_large = as_large;
    out->total = total;
    out->p = (double)as_large / (double)total;
}

enum status statistics_test_pair(const double *distances, size_t runs, size_t a, size_t b,
                                 struct statistics_p *out) {
    if (a >= runs || b >= runs || a == b) {
        FAIL(STATUS_INTERNAL, "pair test: runs %zu and %zu, expected two different below %zu", a, b,
             runs);
    }
    TRY(check_finite(distances, runs));
    const double observed = distances[statistics_pair(runs, a, b)];
    const size_t pairs = statistics_pair_count(runs);
    uint64_t as_large = 0;
    for (size_t i = 0; i < pairs; i++)
        as_large += distances[i] >= observed;
    set_p(out, as_large, pairs);
    return STATUS_OK;
}

enum status statistics_test_distance(const double *distances, size_t count, double d,
                                     struct statistics_p *out) {
    uint64_t as_large = 1;
    if (count == 0) FAIL(STATUS_UNTESTABLE, "no pair of runs to hold a distance against");
    for (size_t i = 0; i <= count; i++)
        if (isnan(i < count ? distances[i] : d))
            FAIL(STATUS_UNTESTABLE, "a distance between two runs is no number");
    for (size_t i = 0; i < count; i++)
        as_large += distances[i] >= d;
    set_p(out, as_large, count + 1);
    return STATUS_OK;
}

/* The sum of the distances inside the arm whose runs are the bits of `arm`, pairs in increasing
 * order. */
static double sum_within(const double *distances, size_t runs, uint32_t arm) {
    size_t members[STATISTICS_MAX_RUNS];
    double terms[MAX_PAIRS];
    size_t size = 0;
    size_t count = 0;
    for (uint32_t rest = arm; rest != 0; rest &= rest - 1u)
        members[size++] = (size_t)__builtin_ctz(rest);
    for (size_t i = 0; i < size; i++) {
        const double *const row = distances + statistics_pair(runs, members[i], members[i] + 1);
        for (size_t j = i + 1; j < size; j++)
            terms[count++] = row[members[j] - members[i] - 1];
    }
    return sum_chain_terms_f64_f64(0.0, terms, count);
}

struct labels {
    const double *distances;
    size_t runs;
    size_t baseline;
    double total; /* the sum of the distances of all pairs */
};

/* The energy distance. Each sum counts for both orders of its pairs. The terms are arranged so that
 * exchanging arms of equal size gives the same bits. */
static double energy_distance(const struct labels *labels, uint32_t baseline_arm) {
    const uint32_t everyone = (1u << labels->runs) - 1u;
    const double n = (double)labels->baseline;
    const double m = (double)(labels->runs - labels->baseline);
    const double inside_n = sum_within(labels->distances, labels->runs, baseline_arm);
    const double inside_m = sum_within(labels->distances, labels->runs, everyone & ~baseline_arm);
    const double between = labels->total - (inside_n + inside_m);
    return 2.0 * between / (n * m) - (2.0 * inside_n / (n * n) + 2.0 * inside_m / (m * m));
}

/* The next larger number with as many bits set (Gosper; Beeler, Gosper, Schroeppel, "HAKMEM", item
 * 175). */
static uint32_t next_subset(uint32_t subset) {
    const uint32_t lowest = subset & (0u - subset);
    const uint32_t ripple = subset + lowest;
    return ripple | ((subset ^ ripple) >> 2) / lowest;
}

enum status statistics_test_labels(const double *distances, size_t runs, size_t baseline,
                                   struct statistics_p *out) {
    if (baseline == 0 || baseline >= runs) {
        FAIL(STATUS_UNTESTABLE,
             "label test: %zu of %zu runs are of the baseline, expected at "
             "least one run in each arm",
             baseline, runs);
    }
    if (runs > STATISTICS_MAX_RUNS) {
        FAIL(STATUS_UNSUPPORTED, "label test: %zu runs, expected at most %d", runs,
             STATISTICS_MAX_RUNS);
    }
    TRY(check_finite(distances, runs));
    const double sum = sum_chain_terms_f64_f64(0.0, distances, statistics_pair_count(runs));
    const struct labels labels = {distances, runs, baseline, sum};
    const uint32_t first = (1u << baseline) - 1u;
    const double threshold = energy_distance(&labels, first) - 0x1p-40 * sum;
    /* Arms of equal size exchanged have the same bits: the last run stays in one, and each
     * labelling counts for two. */
    const uint32_t twice = runs == 2 * baseline;
    uint64_t as_large = 0;
    uint64_t total = 0;
    for (uint32_t arm = first; arm < 1u << (runs - twice); arm = next_subset(arm)) {
        as_large += energy_distance(&labels, arm) >= threshold;
        total++;
    }
    set_p(out, as_large << twice, total << twice);
    return STATUS_OK;
}

double statistics_pair_least(size_t replicates) {
    return 2.0 / (((double)replicates + 2.0) * ((double)replicates + 1.0));
}

/* C(n + m, m) grows through integers, which are exact below 2^53; beyond the largest f64 the least
 * p is 0. */
double statistics_labels_least(size_t baseline, size_t test) {
    double relabelings = 1.0;
    for (size_t j = 1; j <= test; j++)
        relabelings = relabelings * (double)(baseline + j) / (double)j;
    const double least = (baseline == test ? 2.0 : 1.0) / relabelings;
    return least < 1.0 ? least : 1.0;
}

enum status statistics_pair_needed(double alpha, size_t *out_replicates) {
    TRY(check_share("alpha", alpha));
    for (size_t n = 0; n <= MOST; n++) {
        *out_replicates = n;
        if (statistics_pair_least(n) <= alpha) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "alpha is %.17g: more than %d replicates needed", alpha, MOST);
}

enum status statistics_distance_needed(double alpha, size_t *out_count) {
    TRY(check_share("alpha", alpha));
    for (size_t n = 1; n <= MOST; n++) {
        *out_count = n;
        if (1.0 / (double)(n + 1) <= alpha) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "alpha is %.17g: more than %d pairs needed", alpha, MOST);
}

enum status statistics_labels_needed(double alpha, size_t *out_runs) {
    TRY(check_share("alpha", alpha));
    for (size_t n = 1; n <= 600; n++) { /* C(1200, 600) exceeds 1 / alpha for every f64 */
        *out_runs = n;
        if (statistics_labels_least(n, n) <= alpha) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "alpha is %.17g: more than 600 runs of each arm needed", alpha);
}

void statistics_sort(double *values, size_t count) {
    gsl_sort(values, 1, count);
}

double statistics_quantile(const double *sorted, size_t count, double q) {
    if (count == 0) return real_nan_f64();
    return gsl_stats_quantile_from_sorted_data(sorted, 1, count, q);
}

typedef double (*tail_function)(double x, double a, double b);

/* The x in [0, 1] where the monotone tail crosses `level`; of the last two doubles the one that
 * makes the interval wider. */
static double find_crossing(tail_function tail, double a, double b, double level, int lower) {
    double low = 0.0;
    double high = 1.0;
    for (;;) {
        const double middle = low + 0.5 * (high - low);
        if (middle <= low || middle >= high) return lower ? low : high;
        const int beyond = tail(middle, a, b) > level;
        if (beyond == lower) {
            high = middle;
        } else {
            low = middle;
        }
    }
}

enum status statistics_share_interval(uint64_t hits, uint64_t trials, double confidence,
                                      struct statistics_interval *out) {
    TRY(check_share("confidence", confidence));
    if (trials == 0 || hits > trials) {
        FAIL(STATUS_INPUT,
             "share of %" PRIu64 " in %" PRIu64 " trials, expected a share of at "
             "least one trial",
             hits, trials);
    }
    const double tail = 0.5 * (1.0 - confidence);
    const double k = (double)hits;
    const double rest = (double)(trials - hits);
    /* P(at least k hits | x) = I_x(k, rest + 1), and P(at most k | x) = 1 - I_x(k + 1, rest). */
    out->low = hits == 0 ? 0.0 : find_crossing(gsl_cdf_beta_P, k, rest + 1.0, tail, 1);
    out->high = hits == trials ? 1.0 : find_crossing(gsl_cdf_beta_Q, k + 1.0, rest, tail, 0);
    out->confidence = confidence;
    return STATUS_OK;
}

/* The t with P(T > t) = tail, rounded up. Bisection finds it, because the tail is monotone. */
static double student_quantile(double tail, double freedom) {
    double low = 0.0, high = 1.0;
    while (gsl_cdf_tdist_Q(high, freedom) > tail && high < 0x1p1000)
        high *= 2.0;
    for (;;) {
        const double middle = low + 0.5 * (high - low);
        if (middle <= low || middle >= high) return high;
        if (gsl_cdf_tdist_Q(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
}

/* The sums run over differences from the first value, so that equal values have exactly their
 * mean. */
enum status statistics_mean_interval(const double *values, size_t count, double confidence,
                                     double *out_mean, struct statistics_interval *out) {
    TRY(check_share("confidence", confidence));
    if (count < 2) FAIL(STATUS_UNTESTABLE, "interval of a mean: %zu values, expected 2", count);
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!real_finite_f64(values[i]))
            FAIL(STATUS_UNTESTABLE, "interval of a mean: value %zu is %g, expected a number", i,
                 values[i]);
        const double gap = values[i] - values[0];
        sum = sum_chain_terms_f64_f64(sum, &gap, 1);
    }
    const double n = (double)count, shift = sum / n;
    for (size_t i = 0; i < count; i++) {
        const double gap = values[i] - values[0] - shift;
        squares = sum_chain_products_f64_f64(squares, &gap, &gap, 1);
    }
    const double error = real_sqrt_f64(squares / (n - 1.0) / n);
    const double half = student_quantile(0.5 * (1.0 - confidence), n - 1.0) * error;
    *out_mean = values[0] + shift;
    *out = (struct statistics_interval){*out_mean - half, *out_mean + half, confidence};
    return STATUS_OK;
}

/* P(at most k of n), also for k < 0. */
static double binomial_below(long long k, double q, unsigned n) {
    return k < 0 ? 0.0 : gsl_cdf_binomial_P((unsigned)k, q, n);
}

/* Order statistics, counted from 1. */
struct order_pair {
    unsigned low, high;
};

/* `count` is so large that the first and the last hold. Where a tail is met exactly, as 1/4 is by
 * two values and the median, GSL's tail may be above it by its rounding, and would find neither. */
static struct order_pair find_orders(unsigned count, double q, double tail) {
    struct order_pair orders = {1, count};
    while (orders.low < count && binomial_below(orders.low, q, count) <= tail)
        orders.low++;
    while (orders.high > 1 && gsl_cdf_binomial_Q(orders.high - 2, q, count) <= tail)
        orders.high--;
    return orders;
}

/* The smallest count at which both tails hold: q^n <= tail and (1 - q)^n <= tail. */
static size_t quantile_needed(double q, double tail) {
    const double larger = q > 0.5 ? q : 1.0 - q;
    double power = larger;
    size_t n = 1;
    for (; power > tail && n < MOST; n++)
        power *= larger;
    return n;
}

enum status statistics_quantile_interval(const double *sorted, size_t count, double q,
                                         double confidence, struct statistics_interval *out) {
    TRY(check_share("quantile", q));
    TRY(check_share("confidence", confidence));
    const double tail = 0.5 * (1.0 - confidence);
    const size_t needed = quantile_needed(q, tail);
    if (count < needed || count > MOST) {
        FAIL(STATUS_UNTESTABLE,
             "interval of the %g quantile at confidence %g: %zu values, expected %zu to %d", q,
             confidence, count, needed, MOST);
    }
    const struct order_pair orders = find_orders((unsigned)count, q, tail);
    out->low = sorted[orders.low - 1];
    out->high = sorted[orders.high - 1];
    out->confidence = binomial_below((long long)orders.high - 1, q, (unsigned)count) -
                      binomial_below((long long)orders.low - 1, q, (unsigned)count);
    return STATUS_OK;
}

enum status statistics_maximum_needed(double content, double confidence, size_t *out_count) {
    TRY(check_share("content", content));
    TRY(check_share("confidence", confidence));
    double missed = content; /* content^n */
    for (size_t n = 1; n <= MOST; n++, missed *= content) {
        *out_count = n;
        if (missed <= 1.0 - confidence) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "content %.17g with confidence %.17g needs more than %d values", content,
         confidence, MOST);
}
