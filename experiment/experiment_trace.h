/* SPDX-License-Identifier: Apache-2.0
 * Where an experiment's records go: into the trace file, and into the image that the judge reads.
 * Private to the experiment. Invariant: image and file hold the same. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_TRACE_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_TRACE_H

#include "experiment/experiment.h"
#include "experiment/experiment_plan.h"

struct experiment_trace {
    struct trace *trace;
    struct trace_image image; /* records of the arms only */
    struct arena *arena;
    uint64_t every;   /* updates between two stored states; 0: none */
    double *products; /* (runs, columns) experiment/products_made.h; NULL: no library multiplies */
    double distance;  /* |theta_test - theta_baseline| at the end; NaN: not comparable */
};

/* `snapshots`: by run, or NULL. */
TWINSTEP_MUST_USE enum status experiment_trace_open(const struct experiment_plan *plan,
                                                    const struct experiment_options *options,
                                                    const struct trace_snapshot_plan *snapshots,
                                                    struct arena *arena,
                                                    struct experiment_trace *out);
TWINSTEP_MUST_USE enum status experiment_trace_record(struct experiment_trace *output, uint32_t run,
                                                      const struct record *record);
/* How a run's products were made so far, kept; and its state after `step`, stored where one is due
 * or `start` is set. */
TWINSTEP_MUST_USE enum status experiment_trace_state(struct experiment_trace *output,
                                                     uint32_t index, const struct run *run,
                                                     uint64_t step, int start);
/* `index`: 0 the arms, 1 the baseline and its twin. */
TWINSTEP_MUST_USE enum status experiment_trace_pair(struct experiment_trace *output, uint32_t index,
                                                    const struct pair_record *record);
TWINSTEP_MUST_USE enum status experiment_trace_array(struct experiment_trace *output,
                                                     const char *path, const double *values);
/* Writes how products were made, judges the image and writes verdict/json and verdict/text. */
TWINSTEP_MUST_USE enum status experiment_trace_judge(struct experiment_trace *output,
                                                     struct arena *arena, struct judgement *out);

#endif
