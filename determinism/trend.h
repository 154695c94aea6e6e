/* SPDX-License-Identifier: Apache-2.0
 * Whether values in an order grow along it: Mann's test (H. B. Mann, "Nonparametric tests against
 * trend", Econometrica 13, 1945; M. G. Kendall, Biometrika 30, 1938) and Theil's factor (H. Theil,
 * Proc. Kon. Ned. Akad. Wetensch. A 53, 1950).
 *
 * p is exact: the share of all orders of these values, ties among them, that rise at least as much.
 * Layers of one model share what feeds them, so p is that of exchangeable places, not of repeats.
 */
#ifndef TWINSTEP_DETERMINISM_TREND_H
#define TWINSTEP_DETERMINISM_TREND_H

#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"

#define TREND_LEAST 5  /* values: below, no order is rarer than 1 in 100 */
#define TREND_MOST 128 /* values */

struct trend {
    size_t count;
    double tau;    /* (pairs that rise - pairs that fall) / pairs that are not tied; -1 .. 1 */
    double p;      /* of rising; one-sided */
    double factor; /* median over pairs of positive values of (later / earlier)^(1 / places); NaN:
                    * fewer than two are positive */
};

/* STATUS_UNTESTABLE: fewer than TREND_LEAST values, all equal, or one that is negative, infinite or
 * no number. STATUS_UNSUPPORTED: more than TREND_MOST. `arena` is for workings. */
TWINSTEP_MUST_USE enum status trend_test(const double *values, size_t count, struct arena *arena,
                                         struct trend *out);

#endif
