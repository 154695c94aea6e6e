/* SPDX-License-Identifier: Apache-2.0
 * Turns a noise report into what a floor file holds (determinism/floor_file.h).
 *
 * The configuration, the A/A pairs and the perturbed run are those of the report's first case; the
 * strata are those of all cases. Writing the file is left to the caller. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_FILE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_FILE_H

#include "experiment/noise/noise_report.h"
#include "scenarios/scenario.h"

struct noise_file_request {
    const struct schema *schema;
    const struct scenario *scenario;
    const struct noise_report *report; /* whose first case was measured */
    uint64_t pairs;
    double *columns[FLOOR_COLUMNS]; /* by noise_pairs_measure, of the first case's configuration */
    /* Facts of this build and machine, "env" and "env/volatile". */
    const struct trace_attribute *environment;
    uint32_t environment_count;
    int reproducible; /* leaves out what two equal runs may have apart: host, date, command line */
};

/* The arrays of the report and the pairs are handed over, not copied; what is added lives in
 * `arena`. */
TWINSTEP_MUST_USE enum status noise_file_fill(const struct noise_file_request *request,
                                              struct arena *arena, struct floor_file *out);

#endif
