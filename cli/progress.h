/* SPDX-License-Identifier: Apache-2.0
 * One line on a terminal that says how far an experiment is. Nothing anywhere else. */
#ifndef TWINSTEP_CLI_PROGRESS_H
#define TWINSTEP_CLI_PROGRESS_H

#include <time.h>

#include "trainer/experiment.h"

struct progress {
    const char *label; /* in front of the line: name of the scenario */
    int shown;         /* stderr is a terminal, and progress is wanted */
    int drawn;         /* the line stands there */
    struct timespec start, last;
};

/* `wanted`: 0 with --quiet. */
void progress_open(struct progress *progress, const char *label, int wanted);
/* At most ten lines a second, and the last one. */
void progress_show(struct progress *progress, const struct experiment_progress *now);
/* Clears the line. */
void progress_close(struct progress *progress);

#endif
