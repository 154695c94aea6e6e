/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --plan`: gets a floor (a file, or measured now), plans, prints. */
#ifndef TWINSTEP_CLI_NOISE_PLANNING_H
#define TWINSTEP_CLI_NOISE_PLANNING_H

#include "cli/progress.h"
#include "cli/verb.h"
#include "experiment/noise/noise_plan.h"

struct noise_planning {
    struct cli *cli;
    const char *name;            /* of the scenario */
    const struct config *config; /* NULL: the floor file's */
    const char *floor;           /* path of a floor file; NULL: measure one */
    uint64_t steps, pairs;       /* of a floor that is measured */
    double lr_error, alpha, power;
    struct progress *progress;
    int json;
};

TWINSTEP_MUST_USE enum status noise_planning_run(const struct noise_planning *planning,
                                                 int *out_exit);

#endif
