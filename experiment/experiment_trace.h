/* SPDX-License-Identifier: Apache-2.0
 * Takes an experiment's records and puts each into the trace file and whatever else the judge
 * reads into its image. It computes nothing. Private to the experiment.
 * Invariant: image and file hold the same. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_TRACE_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_TRACE_H

#include "experiment/experiment.h"
#include "experiment/experiment_plan.h"
#include "experiment/resume.h"

struct experiment_trace {
    struct trace *trace;
    struct trace_image image; /* of all runs the plan, of the arms the rows as well (trace_row) */
    struct arena *arena;
    uint64_t every; /* updates between two stored states; 0: none are stored */
    /* (runs, columns) of evidence/products_seen.h; NULL: no run's library multiplies */
    double *products;
    /* |theta_test - theta_baseline| at the end; NaN: the arms are not comparable */
    double distance;
};

/* A list that grows; experiment_describe reserves room for all that it adds. */
struct experiment_attributes {
    struct trace_attribute *list;
    uint32_t count;
};

/* experiment_attributes.c: collects what was asked, planned and found in the environment. */
TWINSTEP_MUST_USE enum status experiment_describe(const struct experiment_plan *plan,
                                                  const struct experiment_options *options,
                                                  struct arena *arena,
                                                  struct experiment_attributes *out);

/* Creates the trace file, options->path with ".part" behind it until it is finished, and its image.
 * `snapshots` says by run which states will be stored, or is NULL; what `resume` goes on from must
 * have run on the same devices (it is never NULL: its path is, where nothing is gone on from);
 * `needs`, in bytes, is all but the trace (experiment_needs.c), and is asked for before. Everything
 * lives in `arena`. Where out->trace is not NULL, the caller finishes or abandons it, also after an
 * error. */
TWINSTEP_MUST_USE enum status experiment_trace_open(
    const struct experiment_plan *plan, const struct resume *resume,
    const struct experiment_options *options, const struct trace_snapshot_plan *snapshots,
    const struct experiment_needs *needs, struct arena *arena, struct experiment_trace *out);
TWINSTEP_MUST_USE enum status experiment_trace_record(struct experiment_trace *output, uint32_t run,
                                                      const struct record *record);
/* Notes how a run's linear products were made so far, and stores its state after `step` if one is
 * due or `start` is set. */
TWINSTEP_MUST_USE enum status experiment_trace_state(struct experiment_trace *output,
                                                     uint32_t index, const struct run *run,
                                                     uint64_t step, int start);
/* Puts the record of a pair: index 0 is the arms, index 1 the baseline and its perturbed run. */
TWINSTEP_MUST_USE enum status experiment_trace_pair(struct experiment_trace *output, uint32_t index,
                                                    const struct pair_record *record);
/* Plans an array of the trace; columns 0: it has one dimension. */
struct trace_array_plan experiment_array(const char *path, uint64_t rows, uint64_t columns,
                                         const char *unit, const char *about);
/* Puts a whole array; those of experiment_series.h are put in parts. */
TWINSTEP_MUST_USE enum status experiment_trace_array(struct experiment_trace *output,
                                                     const char *path, const double *values);
/* Puts a text that the judge reads; both live as long as the image. */
TWINSTEP_MUST_USE enum status experiment_trace_text(struct experiment_trace *output,
                                                    const char *path, const char *text);
/* Writes how linear products were made, judges the image, and writes verdict/json and verdict/text.
 * `out` points into the image. */
TWINSTEP_MUST_USE enum status experiment_trace_judge(struct experiment_trace *output,
                                                     struct arena *arena, struct judgement *out);

#endif
