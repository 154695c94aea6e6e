/* SPDX-License-Identifier: Apache-2.0
 * Tests and intervals whose error is stated: they are exact and assume no distribution of the data.
 *
 * Runs are the unit, never steps. A test counts relabelings that give a statistic at least as large
 * as the observed one; equal ones count against the finding. Distribution functions come from GSL;
 * nothing here feeds back into a training. Simulated power is in power.h.
 *
 * The distances of R runs are packed: pair (i, j), i < j, stands at statistics_pair(R, i, j). */
#ifndef TWINSTEP_DETERMINISM_STATISTICS_H
#define TWINSTEP_DETERMINISM_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define STATISTICS_MAX_RUNS 20 /* most runs of a label test: 10 + 10 have 184756 relabelings */

static inline size_t statistics_pair_count(size_t runs) {
    return runs == 0 ? 0 : runs * (runs - 1) / 2;
}

/* The index of pair (i, j), given in either order; i != j, and both are below `runs`. */
static inline size_t statistics_pair(size_t runs, size_t i, size_t j) {
    const size_t low = i < j ? i : j;
    const size_t high = i < j ? j : i;
    return low * (2 * runs - low - 1) / 2 + (high - low - 1);
}

/* p = as_large / total. */
struct statistics_p {
    double p;
    uint64_t as_large; /* relabelings with a statistic >= the observed one, which counts, too */
    uint64_t total;
};

/* The rank of d(a, b) among all distances between pairs of `runs` runs. If all runs are
 * exchangeable, (a, b) is as likely as any of the pairs, so P(p <= x) <= x. The smallest p is 1 /
 * C(runs, 2).
 *
 * Mind its power: a run b that is unlike all others makes every d(., b) large, and d(a, b) is only
 * one of them. So even an infinite effect gives p <= alpha with a probability of no more than
 * floor(alpha C(runs, 2)) / (runs - 1), which is 1 in 14 for 15 runs and alpha = 0.01. The test
 * cannot confirm that two arms are alike; statistics_test_labels can. STATUS_UNTESTABLE if a
 * distance is not finite; STATUS_INTERNAL if a or b is out of range. */
TWINSTEP_MUST_USE enum status statistics_test_pair(const double *distances, size_t runs, size_t a,
                                                   size_t b, struct statistics_p *out);

/* Compares the distance d of one pair with those of `count` other pairs that share no run with it
 * or with each other: p = (1 + those >= d) / (count + 1). That is exact for pairs that are
 * exchangeable, P(p <= x) <= x. Infinite distances (a run diverged) are large ones.
 * STATUS_UNTESTABLE if one is NaN or there is no pair. */
TWINSTEP_MUST_USE enum status statistics_test_distance(const double *distances, size_t count,
                                                       double d, struct statistics_p *out);

/* The smallest count with which that p can be <= alpha: ceil(1 / alpha) - 1, for example 99 for
 * 0.01. STATUS_INPUT as for statistics_pair_needed. */
TWINSTEP_MUST_USE enum status statistics_distance_needed(double alpha, size_t *out_count);

/* Label permutation test: runs 0 ... baseline - 1 are one arm, the others the other. The statistic
 * is the energy distance, 2 mean d(between) - mean d(within one) - mean d(within other), with means
 * over all ordered pairs, the zero diagonal included (Szekely, Rizzo, "Energy statistics", J. Stat.
 * Planning and Inference 143, 2013). All C(runs, baseline) relabelings are enumerated. Statistics
 * closer than 2^-40 of the sum of the distances count as equal, so that rounding decides nothing.
 * statistics_labels_least gives the smallest p. STATUS_UNTESTABLE if an arm is empty or a distance
 * is not finite; STATUS_UNSUPPORTED if there are more than STATISTICS_MAX_RUNS runs. */
TWINSTEP_MUST_USE enum status statistics_test_labels(const double *distances, size_t runs,
                                                     size_t baseline, struct statistics_p *out);

/* The smallest p that either design can give: 1 / C(replicates + 2, 2) for one pair and
 * `replicates` repeats of the baseline; 1 / C(baseline + test, test) for two arms, doubled if they
 * have equal size, because then exchanging their names gives the same statistic. */
double statistics_pair_least(size_t replicates);
double statistics_labels_least(size_t baseline, size_t test);

/* The smallest n whose least p is <= alpha: replicates beside one pair (13 for 0.01), or runs of
 * each of two equal arms (5 for 0.01). STATUS_INPUT if alpha is not in (0, 1) or is so small that n
 * exceeds 10^6. */
TWINSTEP_MUST_USE enum status statistics_pair_needed(double alpha, size_t *out_replicates);
TWINSTEP_MUST_USE enum status statistics_labels_needed(double alpha, size_t *out_runs);

/* Sorts ascending. No value may be NaN. */
void statistics_sort(double *values, size_t count);

/* The quantile of sorted values, 0 <= q <= 1: linear between order statistics at (count - 1) q
 * (Hyndman, Fan, "Sample quantiles", American Statistician 50, 1996, type 7). NaN if there are
 * none. */
double statistics_quantile(const double *sorted, size_t count, double q);

struct statistics_interval {
    double low;
    double high;
    double confidence; /* the confidence reached; at least what was asked for */
};

/* The exact interval of a share from `hits` of `trials` (Clopper, Pearson, Biometrika 26, 1934):
 * each tail is (1 - confidence) / 2 of a beta distribution. STATUS_INPUT if trials is 0, hits >
 * trials, or confidence is not in (0, 1). */
TWINSTEP_MUST_USE enum status statistics_share_interval(uint64_t hits, uint64_t trials,
                                                        double confidence,
                                                        struct statistics_interval *out);

/* The mean of independent values and its interval by Student's t with count - 1 degrees of freedom
 * ("The probable error of a mean", Biometrika 6, 1908): exact for normal values, nominal for
 * others. Equal values give an interval of width 0. STATUS_UNTESTABLE if there are fewer than 2
 * values or one is not finite; STATUS_INPUT if confidence is not in (0, 1). */
TWINSTEP_MUST_USE enum status statistics_mean_interval(const double *values, size_t count,
                                                       double confidence, double *out_mean,
                                                       struct statistics_interval *out);

/* The interval of the q-quantile of any continuous distribution, between two order statistics: the
 * number of values below the quantile is binomial (count, q) (David, Nagaraja, "Order Statistics",
 * 2003, section 7.1). Each tail is at most (1 - confidence) / 2. STATUS_UNTESTABLE names the count
 * that would do; STATUS_INPUT if q or confidence is not in (0, 1). */
TWINSTEP_MUST_USE enum status statistics_quantile_interval(const double *sorted, size_t count,
                                                           double q, double confidence,
                                                           struct statistics_interval *out);

/* The smallest number of values whose maximum exceeds the `content` quantile with `confidence`:
 * 1 - content^n >= confidence (59 for 0.95, 0.95). S. S. Wilks, Ann. Math. Stat. 12, 1941.
 * STATUS_INPUT if an argument is not in (0, 1) or n is above 10^6. */
TWINSTEP_MUST_USE enum status statistics_maximum_needed(double content, double confidence,
                                                        size_t *out_count);

#endif
