/* SPDX-License-Identifier: Apache-2.0
 * What the files of an experiment share: experiment.c trains the arms, experiment_floor.c what
 * repeats show, experiment_hybrids.c the hybrids. Private to them. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_PRIVATE_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_PRIVATE_H

#include "experiment/branches.h"
#include "experiment/experiment.h"
#include "experiment/experiment_plan.h"
#include "experiment/experiment_trace.h"
#include "experiment/hybrid_values.h"
#include "experiment/pair.h"

/* A data set that runs with equal options share. */
struct shared_dataset {
    struct dataset_options options;
    struct dataset dataset;
};

struct experiment {
    const struct experiment_options *options;
    struct arena *arena;
    struct experiment_plan plan;
    struct experiment_trace output;
    struct shared_dataset *datasets;
    uint32_t dataset_count;

    unsigned char *fork; /* baseline's state before the first update that differs */
    uint64_t fork_step;  /* that update, 1-based; 0: the states differ from the start */
    double **points;     /* end points of floor runs, by floor index */
    double *losses;      /* their last losses */
    uint32_t point_count;
    double **projection; /* end points of the hybrids between none and all, by mask */
    size_t elements;     /* of a point; 0: the arms have different parameters */
    struct hybrid_values hybrids;
    struct branches branches;
    struct pair_room room; /* of two runs in lockstep */
    struct run *rerun;     /* the baseline once more; equal to it in an exact floor */
    int rerun_open;
    uint64_t done, total; /* updates */
};

/* A run that is stepped alone. */
struct alone {
    enum experiment_stage stage;
    uint32_t index;               /* of the planned run */
    uint64_t first;               /* its next update */
    const struct trace_run *like; /* whose roots it is compared with, or NULL */
    uint32_t hybrid;              /* that it is the training of, or NO_HYBRID */
};

extern const double experiment_no_loss[2]; /* NaN: of progress without losses */

/* The data set of a configuration, opened once for equal options. */
TWINSTEP_MUST_USE enum status experiment_dataset(struct experiment *e, const struct config *config,
                                                 const struct dataset **out);
TWINSTEP_MUST_USE enum status experiment_open_planned(struct experiment *e, uint32_t index,
                                                      struct run **out);
TWINSTEP_MUST_USE enum status experiment_check_interrupt(const struct experiment *e);
void experiment_report(struct experiment *e, enum experiment_stage stage, uint32_t run,
                       uint64_t step, const double loss[2], double share);
int experiment_equal_roots(const struct record *a, const struct record *b);

/* Steps one run alone from its next update on; compares each root with those of alone->like. */
TWINSTEP_MUST_USE enum status experiment_step_alone(struct experiment *e, const struct alone *alone,
                                                    struct run *run, int *out_equal);

/* (elements) end point of the baseline. */
const double *experiment_baseline_end(const struct experiment *e);

/* experiment_floor.c */
TWINSTEP_MUST_USE enum status experiment_exact_floor(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_noise_floor(struct experiment *e);

/* experiment_hybrids.c: before the first update; after the floor. */
TWINSTEP_MUST_USE enum status experiment_branches(struct experiment *e, size_t bytes);
TWINSTEP_MUST_USE enum status experiment_hybrids(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_projection(struct experiment *e);

#endif
