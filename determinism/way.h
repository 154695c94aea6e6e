/* SPDX-License-Identifier: Apache-2.0
 * Shares of causes under noise: how far along the way from one arm to the other each mixture is.
 *
 * Every mixture S of k factors was trained n times, each run with noise of its own; mu_S is the
 * mean that infinitely many runs would have. The game is the inner product
 *     w(S) = <mu_S - mu_A, mu_B - mu_A>,   w(none) = 0, w(all) = |mu_B - mu_A|^2,
 * whose Shapley value over w(all) is the cause's share of the way from A to B. Products of a run
 * with itself are left out, so noise adds nothing to the mean of any term (U-statistics; Hoeffding,
 * Ann. Math. Stat. 19, 1948): a cause without effect has share 0 on average, where a distance would
 * give it the noise's size. The interval is Student's t on the delete-one-run jackknife of the
 * ratio, degrees of freedom by Welch and Satterthwaite over the mixtures (Arvesen, "Jackknifing
 * U-statistics", Ann. Math. Stat. 40, 1969): nominal; tests hold its coverage.
 *
 * Input is the Gram matrix of the runs' end points, whatever their dimension; inner products may be
 * taken around any common point. Numbers in, numbers out; sums in one fixed order. */
#ifndef TWINSTEP_DETERMINISM_WAY_H
#define TWINSTEP_DETERMINISM_WAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "determinism/shapley.h"

#define WAY_FACTORS_MAX 5 /* 32 mixtures */
#define WAY_RUNS_LEAST 3  /* of each mixture: two must be left when one is out */

struct way {
    uint32_t factors;
    double whole; /* w(all): squared length of the way, noise taken out */
    double whole_low, whole_high;
    double share[SHAPLEY_MAX], low[SHAPLEY_MAX], high[SHAPLEY_MAX];
    double freedom[SHAPLEY_MAX]; /* of Student's t, by factor */
    double confidence;
};

/* gram (runs, runs), row-major, symmetric, runs = 2^factors * n: mixture `mask` has runs mask * n
 * ... mask * n + n - 1. STATUS_UNTESTABLE: fewer than WAY_RUNS_LEAST runs of each mixture, an entry
 * that is not finite, or a way whose length is not above the noise (whole_low <= 0): shares of
 * nothing mean nothing. STATUS_INPUT: confidence; STATUS_INTERNAL: factors. */
TWINSTEP_MUST_USE enum status way_shares(uint32_t factors, size_t n, const double *gram,
                                         double confidence, struct arena *arena, struct way *out);

#endif
