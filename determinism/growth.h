/* SPDX-License-Identifier: Apache-2.0
 * How a distance grows with the updates: it is constant, or a power of their number, or it grows by
 * a factor with each.
 *
 * Two straight lines are fitted to log d by least squares (GSL): against log j, whose slope is the
 * power, and against j, whose slope is the rate; j is 1 at the first update that differs. The line
 * that leaves at most half of the other's sum of squares names the law; otherwise both stand.
 * Intervals are Student's t for the slope, with the number of points cut to n (1 - r) / (1 + r),
 * where r > 0 is the correlation of residuals from point to point, because neighbours in a curve
 * are no independent draws (Bayley, Hammersley, "The effective number of independent observations",
 * J. Royal Stat. Soc. 8, 1946). They are nominal: a curve is one realisation. Which points are fit
 * to be used is the caller's business. */
#ifndef TWINSTEP_DETERMINISM_GROWTH_H
#define TWINSTEP_DETERMINISM_GROWTH_H

#include <stddef.h>

#include "base/status.h"

#define GROWTH_LEAST 6 /* fewest points of a fit; they leave Student's t 4 degrees of freedom */

enum growth_law {
    GROWTH_UNDECIDED = 0, /* a power and a rate fit about equally well */
    GROWTH_CONSTANT,      /* both the power's and the rate's interval contain 0 */
    GROWTH_POWER,         /* d ~ j^power: 1 is linear growth, 1/2 a random walk */
    GROWTH_EXPONENTIAL    /* d ~ exp(rate j) */
};
/* The law's name: "undecided", "constant", "power", "exponential". */
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

/* A curve of so many points is fitted by every growth_stride-th one of them, from the first on. */
size_t growth_stride(size_t count);

/* Fits both laws. d[i] > 0 is the distance at j[i]; the j are increasing and at least 1.
 * STATUS_UNTESTABLE if there are fewer than GROWTH_LEAST points or a value is not positive and
 * finite; STATUS_INPUT if confidence is not in (0, 1). */
TWINSTEP_MUST_USE enum status growth_fit(const double *j, const double *d, size_t count,
                                         double confidence, struct growth *out);

#endif
