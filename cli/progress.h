/* SPDX-License-Identifier: Apache-2.0
 * One line on a terminal that says how far an experiment is. If stderr is no terminal, nothing is
 * drawn. */
#ifndef TWINSTEP_CLI_PROGRESS_H
#define TWINSTEP_CLI_PROGRESS_H

#include "base/macro.h"
#include "experiment/experiment.h"

struct progress {
    const char *label;  /* what the line begins with: the name of the scenario */
    int shown;          /* stderr is a terminal, and progress is wanted */
    int drawn;          /* the line is on the screen */
    double start, last; /* of progress_clock() */
};

/* Seconds of a clock that never goes back. They reach no result but times. */
double progress_clock(void);

/* `wanted` is 0 with --quiet. */
void progress_open(struct progress *progress, const char *label, int wanted);
/* Draws the line at most ten times a second, and always when the work is done. */
void progress_show(struct progress *progress, const struct experiment_progress *now);
/* Does the same for work that is counted: "LABEL: WHAT 12/99 12 % 0m03s left". With `done` 0 the
 * clock for the time left starts anew. */
void progress_count(struct progress *progress, const char *what, uint64_t done, uint64_t total);
/* Draws "LABEL: TEXT" at most five times a second, and nothing in the first fifth, so that short
 * work stays quiet. */
void progress_text(struct progress *progress, const char *format, ...) TWINSTEP_PRINTF(2, 3);
/* Clears the line. */
void progress_close(struct progress *progress);
/* Rewrites the last line of the terminal that stderr is; "" clears it. */
void progress_put(const char *line);

#endif
