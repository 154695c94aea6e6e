/* SPDX-License-Identifier: Apache-2.0
 * Finds where two runs part within one update, from the digests that both recorded: the first phase
 * whose digest differs, and in it the first tensor or activation.
 *
 * It reads records only. The caller chooses the update. */
#ifndef TWINSTEP_DETERMINISM_FIRST_H
#define TWINSTEP_DETERMINISM_FIRST_H

struct record;
struct trace_run_plan;

struct first_difference {
    /* The first in the order of run a; "" if only one of them ran it, or none was recorded. Of two
     * foreign runs without digests of phases it follows from what differs: the batch (fetch), the
     * loss (forward), a gradient (backward), a parameter or an LR (optimize). */
    const char *phase;
    /* An activation for phase forward, a gradient (searched from the last tensor) for backward, a
     * parameter for optimize; "" for other phases or if not recorded. */
    const char *tensor;
};

/* `x` is a record of run `a` and `y` one of run `b`, of the same update. Names in `out` point into
 * the plans. */
void first_find(const struct trace_run_plan *a, const struct record *x,
                const struct trace_run_plan *b, const struct record *y,
                struct first_difference *out);

#endif
