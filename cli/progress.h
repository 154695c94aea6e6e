/* SPDX-License-Identifier: Apache-2.0
 * One line on a terminal that says how far an experiment is. Nothing anywhere else. */
#ifndef TWINSTEP_CLI_PROGRESS_H
#define TWINSTEP_CLI_PROGRESS_H

#include <time.h>

#include "experiment/experiment.h"

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
/* The same for work that is counted: "LABEL: WHAT 12/99  12 %  0m03s left"; done 0 starts it. */
void progress_count(struct progress *progress, const char *what, uint64_t done, uint64_t total);
/* Clears the line. */
void progress_close(struct progress *progress);

#endif
