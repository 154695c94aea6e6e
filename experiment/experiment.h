/* SPDX-License-Identifier: Apache-2.0
 * A whole experiment: both arms in lockstep, the floor, the hybrids, all into one trace.
 *
 * Knows scenarios, runs and traces; prints nothing (the caller gets progress events) and starts no
 * process itself (the caller reruns the baseline in a second one).
 * Invariant: every run of the trace was opened from a resolved configuration that the trace holds.
 */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_H

#include "evidence/judge.h"
#include "trainer/run.h"

enum experiment_stage {
    STAGE_PAIR = 0, /* both arms in lockstep */
    STAGE_FLOOR,    /* reruns or replicates of the arms */
    STAGE_HYBRIDS,
    STAGE_DONE
};

struct experiment_progress {
    enum experiment_stage stage;
    const char *run;               /* id of the run that just finished an update */
    uint64_t step, steps;          /* update finished, updates of this run */
    uint64_t run_index, run_count; /* in the whole experiment */
    uint64_t done, total;          /* updates of the whole experiment */
    double loss[2];                /* of both arms (STAGE_PAIR), else NaN */
    double distance_share;         /* |a-b| / |a-a0| (STAGE_PAIR), else NaN */
};

struct experiment_options {
    const char *path; /* of the trace; never NULL */
    int overwrite;
    int reproducible;    /* leave /env/volatile out */
    const char *save[2]; /* folders for the final weights of the arms (save_model.h); NULL: none */
    const struct schema *schema;
    const struct scenario *scenario;
    /* May be NULL. */
    void (*progress)(void *context, const struct experiment_progress *progress);
    /* Reruns `config` for `steps` updates in another process and returns its last root. NULL: the
     * exact floor has only the rerun in this process, and says so. */
    enum status (*second_process)(void *context, const struct config *config, uint64_t steps,
                                  struct digest *out_root);
    /* Nonzero when the user asked to stop; looked at between updates. NULL: never. */
    const volatile int *interrupted;
    void *context;
    /* name and text of what belongs under /env and /env/volatile; may be empty */
    const struct trace_attribute *environment;
    uint32_t environment_count;
};

/* Runs, records, judges, finishes the trace (with verdict texts). On STATUS_INTERRUPTED and on
 * errors PATH.part stays, readable, with every finished update. */
TWINSTEP_MUST_USE enum status experiment_run(const struct experiment_options *options,
                                             struct arena *arena, struct judgement *out);

/* What the second process does: open, step, hand back the last root. */
TWINSTEP_MUST_USE enum status experiment_rerun(const struct config *config, uint64_t steps,
                                               struct digest *out_root);

#endif
