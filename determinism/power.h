/* SPDX-License-Identifier: Apache-2.0
 * Power of the two designs of statistics.h: how often they would see an effect of a stated size.
 * Simulated, because ranks of pair distances depend on each other; the draws are addressed, so the
 * answer is the same everywhere and always.
 *
 * Model: a scalar that scatters normally from run to run with standard deviation 1 and is shifted
 * by `shift` in the test arm; distance |x - y|. A statement about the design, not about the data.
 */
#ifndef TWINSTEP_DETERMINISM_POWER_H
#define TWINSTEP_DETERMINISM_POWER_H

#include <stddef.h>

#include "base/status.h"
#include "determinism/statistics.h"

#define POWER_SHIFT 3.0 /* the size at which verdicts print their power */

struct power {
    double power;                        /* share of simulated experiments with p <= alpha */
    struct statistics_interval interval; /* of the simulation, 95 % */
    uint64_t trials;
};

/* One A/B pair beside `replicates` runs of the baseline, at most 62; statistics_test_pair.
 * Errors: STATUS_INPUT for alpha not in (0, 1) or another number of replicates. */
TWINSTEP_MUST_USE enum status power_pair(size_t replicates, double alpha, double shift,
                                         struct power *out);

/* One A/B pair beside `pairs` A/A pairs that share no run, at most 100000;
 * statistics_test_distance.
 */
TWINSTEP_MUST_USE enum status power_distance(size_t pairs, double alpha, double shift,
                                             struct power *out);

/* `baseline` and `test` runs; statistics_test_labels, with its errors. */
TWINSTEP_MUST_USE enum status power_labels(size_t baseline, size_t test, double alpha, double shift,
                                           struct power *out);

#endif
