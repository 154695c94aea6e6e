/* SPDX-License-Identifier: Apache-2.0
 * The power of the designs in statistics.h: how often they would see an effect of a stated size. It
 * is simulated, because the ranks of distances between pairs depend on each other; the draws are
 * addressed, so the answer is the same everywhere and always.
 *
 * The model is a scalar that scatters normally from run to run with standard deviation 1, and is
 * shifted by `shift` in the test arm; the distance is |x - y|. The result is a statement about the
 * design, not about the data. */
#ifndef TWINSTEP_DETERMINISM_POWER_H
#define TWINSTEP_DETERMINISM_POWER_H

#include <stddef.h>

#include "base/status.h"
#include "determinism/statistics.h"

/* the effect's size at which verdicts print their power; chosen as clear but not gross */
#define POWER_SHIFT 3.0

struct power {
    double power;                        /* the share of simulated experiments with p <= alpha */
    struct statistics_interval interval; /* the simulation's own error, at 95 % */
    uint64_t trials;
};

/* The power of statistics_test_pair with one A/B pair beside `replicates` runs of the baseline, of
 * which there may be 62. STATUS_INPUT if alpha is not in (0, 1) or there are more. */
TWINSTEP_MUST_USE enum status power_pair(size_t replicates, double alpha, double shift,
                                         struct power *out);

/* The power of statistics_test_distance with one A/B pair beside `pairs` A/A pairs that share no
 * run, of which there may be 100000. */
TWINSTEP_MUST_USE enum status power_distance(size_t pairs, double alpha, double shift,
                                             struct power *out);

/* The power of statistics_test_labels with `baseline` and `test` runs. It has that function's
 * errors. */
TWINSTEP_MUST_USE enum status power_labels(size_t baseline, size_t test, double alpha, double shift,
                                           struct power *out);

#endif
