/* SPDX-License-Identifier: Apache-2.0
 * Goes on with an experiment that was interrupted, from what its trace holds: the rows of runs that
 * are trained alone (repeats for the floor, hybrids) are taken over instead of trained again.
 *
 * A row is taken as it stands. Where the weights themselves are needed (at marks, where another run
 * branches off, at the end), the run is brought there: from the last stored state before that
 * update, or from its start, by training, and every update that is trained again must have the root
 * that was recorded. So what comes out is what an uninterrupted experiment writes. Rows alone are
 * not enough for the arms and the rerun of an exact floor: the measurements between two runs in
 * lockstep need every update of both, or the states that experiment_kept.c keeps beside the trace.
 * Where these are, nothing before them is trained again. */
#ifndef TWINSTEP_EXPERIMENT_RESUME_H
#define TWINSTEP_EXPERIMENT_RESUME_H

#include "base/status.h"
#include "determinism/trace.h"
#include "experiment/experiment_plan.h"
#include "trainer/run.h"

struct arena;

struct resume {
    const char *path; /* NULL: the experiment begins at its start */
    struct trace_image
        *image; /* its rows are read when they are asked for; trace_close ends that */
    const struct experiment_plan *plan;
    const volatile int *interrupted; /* as in experiment_options; set by the caller */
};

/* Opens PATH and holds it against the plan: the same runs, configurations (but for the number of
 * threads in mode invariant), columns, updates and environment. STATUS_INPUT says what is another.
 * STATUS_UNTESTABLE where threads raced, since no training is like the recorded one then. */
TWINSTEP_MUST_USE enum status resume_open(const char *path, const struct experiment_plan *plan,
                                          const struct trace_attribute *environment,
                                          uint32_t environment_count, struct arena *arena,
                                          struct resume *out);

/* Holds the data that the plan's runs read, now that they are open, against those that were read:
 * rows that no run reads again would else be taken from other data than the rest. STATUS_INPUT
 * names the run. */
TWINSTEP_MUST_USE enum status resume_check_data(const struct resume *resume);

/* Holds what the plan's runs run on, the attributes of /backend among `list`, against the recorded
 * ones. STATUS_INPUT says what is another. */
TWINSTEP_MUST_USE enum status resume_check_backends(const struct resume *resume,
                                                    struct trace_attribute *list, uint32_t count);

/* The recorded row of an update of a planned run, or NULL; until another row of the run is asked
 * for. One that cannot be read comes without any measurement (trace_row). */
const struct record *resume_row(const struct resume *resume, uint32_t index, uint64_t step);

/* The same row to be copied: STATUS_INPUT where it is not there or cannot be read. */
TWINSTEP_MUST_USE enum status resume_copy(const struct resume *resume, uint32_t index,
                                          uint64_t step, const struct record **out);

/* Fails where an update was trained again and its root is not the recorded one. */
TWINSTEP_MUST_USE enum status resume_check(const struct resume *resume, uint32_t index,
                                           const struct record *record);

/* Brings a run, which stands after update *position, to after update `step`, whose row and those
 * before it back to *position are recorded. */
TWINSTEP_MUST_USE enum status resume_reach(const struct resume *resume, uint32_t index,
                                           struct run *run, uint64_t *position, uint64_t step);

#endif
