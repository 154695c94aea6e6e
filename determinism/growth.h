/* SPDX-License-Identifier: Apache-2.0
 * How a distance grows with the updates: constant, by a power of their number, or by a factor each.
 *
 * Two straight lines are fitted to log d by least squares (GSL): against log j (slope: the power)
 * and against j (slope: the rate), j = 1 at the first update that differs. The line that leaves at
 * most half of the other's squares names the law; else both stand. Intervals are Student's t for
 * the slope with the number of points cut to n (1 - r) / (1 + r), r the residuals' correlation from
 * point to point, where r > 0: neighbours in a curve are no independent draws (Bayley, Hammersley,
 * "The effective number of independent observations", J. Royal Stat. Soc. 8, 1946). Nominal: a
 * curve is one realisation.
 * Numbers in, numbers out: which points are fit to be used is the caller's business. */
#ifndef TWINSTEP_DETERMINISM_GROWTH_H
#define TWINSTEP_DETERMINISM_GROWTH_H

#include <stddef.h>

#include "base/status.h"

#define GROWTH_LEAST 6 /* points of a fit */

enum growth_law {
    GROWTH_UNDECIDED = 0, /* a power and a rate fit about as well */
    GROWTH_CONSTANT,      /* the power's interval holds 0, and the rate's */
    GROWTH_POWER,         /* d ~ j^power; 1: linear, 1/2: a random walk */
    GROWTH_EXPONENTIAL    /* d ~ exp(rate j) */
};
/* "undecided", "constant", "power", "exponential" */
const char *growth_law_name(enum growth_law law);

struct growth_slope {
    double value, low, high;
    double squares; /* sum of squared residuals of log d */
};

struct growth {
    enum growth_law law;
    struct growth_slope power, rate;
    size_t points;
    double confidence;
};

/* d[i] > 0 is the distance at j[i], increasing and >= 1. STATUS_UNTESTABLE: fewer than GROWTH_LEAST
 * points, or a value that is not positive and finite; STATUS_INPUT: confidence not in (0, 1). */
TWINSTEP_MUST_USE enum status growth_fit(const double *j, const double *d, size_t count,
                                         double confidence, struct growth *out);

#endif
