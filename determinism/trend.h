/* SPDX-License-Identifier: Apache-2.0
 * Whether values that stand in an order grow along it: Mann's test (H. B. Mann, "Nonparametric
 * tests against trend", Econometrica 13, 1945; M. G. Kendall, Biometrika 30, 1938) and Theil's
 * factor (H. Theil, Proc. Kon. Ned. Akad. Wetensch. A 53, 1950).
 *
 * p is exact: the share of all orders of these values, ties among them included, that rise at least
 * as much. The layers of one model share what feeds them, so p is a statement about exchangeable
 * places, not about repeats. */
#ifndef TWINSTEP_DETERMINISM_TREND_H
#define TWINSTEP_DETERMINISM_TREND_H

#include <stddef.h>

#include "base/status.h"

struct arena;

#define TREND_LEAST 5  /* values needed: with fewer no order is rarer than 1 in 100 */
#define TREND_MOST 128 /* most values */

struct trend {
    size_t count;
    double tau; /* (pairs that rise - pairs that fall) / pairs that are not tied, from -1 to 1 */
    double p;   /* one-sided p of rising */
    /* The median over pairs of positive values of (later / earlier)^(1 / distance of their places);
     * NaN if fewer than two are positive. */
    double factor;
};

/* Tests `values`. STATUS_UNTESTABLE if there are fewer than TREND_LEAST, all are equal, or one is
 * negative, infinite or NaN; STATUS_UNSUPPORTED if there are more than TREND_MOST. `arena` holds
 * workings. */
TWINSTEP_MUST_USE enum status trend_test(const double *values, size_t count, struct arena *arena,
                                         struct trend *out);

#endif
