/* SPDX-License-Identifier: Apache-2.0
 * Shares of causes under noise, from projections on B - A: how far along the vector from arm A's
 * end point to arm B's each hybrid ends.
 *
 * Every hybrid S of k factors was trained n times, each run with noise of its own; mu_S is the mean
 * that infinitely many runs would have. The game is the inner product
 *     w(S) = <mu_S - mu_A, mu_B - mu_A>,   w(none) = 0, w(all) = |mu_B - mu_A|^2,
 * whose Shapley value over w(all) is the cause's share of B - A. Products of a run with itself are
 * left out, so noise adds nothing to the mean of any term (U-statistics; Hoeffding, Ann. Math.
 * Stat. 19, 1948): a cause without effect has share 0 on average, where a distance would give it
 * the noise's size. The interval is Student's t on the delete-one-run jackknife of the ratio, with
 * degrees of freedom by Welch and Satterthwaite over the hybrids (Arvesen, "Jackknifing
 * U-statistics", Ann. Math. Stat. 40, 1969). It is nominal; tests check its coverage.
 *
 * The input is the Gram matrix of the runs' end points, whatever their dimension; inner products
 * may be taken around any common point. All sums have one fixed order. */
#ifndef TWINSTEP_DETERMINISM_PROJECTION_H
#define TWINSTEP_DETERMINISM_PROJECTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "determinism/shapley.h"

struct arena;

#define PROJECTION_FACTORS_MAX 5 /* 32 hybrids */
#define PROJECTION_RUNS_LEAST 3  /* runs of each hybrid: two must be left when one is left out */

struct projection {
    uint32_t factors;
    double whole; /* w(all): the squared length of B - A without what noise adds */
    double whole_low, whole_high;
    double share[SHAPLEY_MAX], low[SHAPLEY_MAX], high[SHAPLEY_MAX];
    double freedom[SHAPLEY_MAX]; /* degrees of freedom of Student's t, by factor */
    /* |mu_S - mu_A| / |mu_B - mu_A| by hybrid, the square without what noise adds; 0 where noise
     * took it below 0. The intervals are those of the squares, of which the roots are taken. */
    double size[SHAPLEY_SUBSETS], size_low[SHAPLEY_SUBSETS], size_high[SHAPLEY_SUBSETS];
    double confidence;
};

/* Computes the shares. gram (runs, runs) is row-major and symmetric, with runs = 2^factors * n;
 * hybrid `mask` has runs mask * n ... mask * n + n - 1. STATUS_UNTESTABLE if there are fewer than
 * PROJECTION_RUNS_LEAST runs of each hybrid, if an entry is not finite, or if the length of B - A
 * is not above the noise (whole_low <= 0), because shares of nothing mean nothing. STATUS_INPUT:
 * confidence; STATUS_INTERNAL: factors. */
TWINSTEP_MUST_USE enum status projection_shares(uint32_t factors, size_t n, const double *gram,
                                                double confidence, struct arena *arena,
                                                struct projection *out);

/* |mu_S - mu_A| by hybrid S, in units of the weights, with intervals. Near 0 the noise may take a
 * square below 0, and runs that scatter evenly give an interval without a width. So the upper end
 * adds half of the width to 0 at least, and is never below the distance of the mean end points
 * themselves, which noise adds to. */
struct projection_sizes {
    double size[SHAPLEY_SUBSETS], low[SHAPLEY_SUBSETS], high[SHAPLEY_SUBSETS];
};

/* Computes the sizes of all hybrids, that of B among them, which need not be above the noise. gram
 * and n as for projection_shares. STATUS_UNTESTABLE if there are fewer than PROJECTION_RUNS_LEAST
 * runs of each hybrid or an entry is not finite. STATUS_INPUT: confidence; STATUS_INTERNAL:
 * factors. */
TWINSTEP_MUST_USE enum status projection_sizes(uint32_t factors, size_t n, const double *gram,
                                               double confidence, struct arena *arena,
                                               struct projection_sizes *out);

#endif
