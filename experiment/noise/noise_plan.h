/* SPDX-License-Identifier: Apache-2.0
 * Plans how many runs and updates it takes to see an LR error above a floor. The effect is measured
 * on pairs whose LR really differs, and it is extrapolated only where the plan says so. Prints
 * nothing.
 * Invariants: "seen" is what the test of run --floor would call outside; a power is stated only
 * with the confidence that the measured pairs give it. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PLAN_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PLAN_H

#include "determinism/statistics.h"
#include "experiment/noise/noise.h"
#include "scenarios/scenario.h"

#define NOISE_PLAN_CONFIDENCE 0.95

/* One column of the floor after one update. */
struct noise_plan_cell {
    double noise;  /* median distance of the A/A pairs */
    double bound;  /* an A/B pair must lie above it to have p <= alpha */
    double effect; /* median distance of the A/B pairs */
    double twice;  /* the same for pairs with twice the LR error */
    uint64_t seen; /* A/B pairs above the bound */
    double power;  /* lower end of the one-sided confidence interval of that share */
    double shift;  /* the effect in units of a run's scatter, by the model of determinism/power.h */
    /* LR error whose median effect would reach the bound if effects were proportional */
    double least;
};

struct noise_plan {
    double lr_error, alpha, power; /* asked for */
    uint64_t floor_pairs, pairs, steps;
    struct noise_plan_cell *cells[FLOOR_COLUMNS]; /* (steps) */
    /* first update with cell.power >= power; 0: none */
    uint64_t update[FLOOR_COLUMNS];
    /* Runs of each arm, and updates, that the label permutation on distances takes, by the model.
     * runs 0: no number of runs that can be enumerated has the power within the steps. */
    size_t runs;
    uint64_t runs_update;
    const char *untestable; /* what is missing for a plan; "" when nothing is */
};

struct noise_plan_request {
    struct noise_request of; /* configuration, steps, interruption */
    const struct floor_file *floor;
    double lr_error; /* 0.01: one percent */
    double alpha, power;
};

/* Where the floor of a plan comes from. */
struct noise_plan_source {
    const struct schema *schema;
    const char *path; /* a floor file; NULL: A/A pairs are trained */
    uint64_t pairs;   /* that are trained */
};

/* Gets the floor and the configuration that it is of. With a file, `of` gets the file's number of
 * updates; if of->config is NULL it gets the file's configuration, else the file is refused
 * (STATUS_INPUT) unless it is of the same training. Without a file, A/A pairs of of->config are
 * trained for of->steps updates. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_plan_floor(const struct noise_plan_source *source,
                                               struct noise_request *of, struct arena *arena,
                                               struct floor_file *out);

/* Trains 4 n runs: n pairs with the error and n with twice the error, where n is the smallest
 * number that can show `power` with NOISE_PLAN_CONFIDENCE. STATUS_INPUT: alpha or power is not in
 * (0, 1), or lr_error not in (0, 1]. A floor with too few pairs is untestable, and then nothing is
 * trained. */
TWINSTEP_MUST_USE enum status noise_plan_measure(const struct noise_plan_request *request,
                                                 struct arena *arena, struct noise_plan *out);

/* Whether some column, or some number of runs without a floor, shows the error. */
int noise_plan_is_seen(const struct noise_plan *plan);

#endif
