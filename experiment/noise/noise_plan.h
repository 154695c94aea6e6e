/* SPDX-License-Identifier: Apache-2.0
 * How many runs and updates it takes to see an LR error above a floor: measured on pairs whose LR
 * really differs, extrapolated only where it says so.
 *
 * Prints nothing. Invariants: "seen" is what the test of run --floor would call outside; a power is
 * stated only with the confidence that the measured pairs give it. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_PLAN_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_PLAN_H

#include "determinism/statistics.h"
#include "experiment/noise/noise.h"

#define NOISE_PLAN_CONFIDENCE 0.95

/* One column after one update. */
struct noise_plan_cell {
    double noise;  /* median of the A/A pairs */
    double bound;  /* an A/B pair must be above it to have p <= alpha */
    double effect; /* median of the A/B pairs */
    double twice;  /* the same with twice the LR error */
    uint64_t seen; /* A/B pairs above the bound */
    double power;  /* lower end of the one-sided interval of that share */
    double shift;  /* effect in units of a run's scatter, by the model of determinism/power.h */
    double least;  /* LR error whose median effect reaches the bound, were effects proportional */
};

struct noise_plan {
    double lr_error, alpha, power; /* asked for */
    uint64_t floor_pairs, pairs, steps;
    struct noise_plan_cell *cells[FLOOR_COLUMNS]; /* (steps) */
    uint64_t update[FLOOR_COLUMNS];               /* first with cell.power >= power; 0: none */
    /* Runs of each arm and updates of the label permutation on distances; runs 0: none that is
     * enumerated has the power within the steps. By the model. */
    size_t runs;
    uint64_t runs_update;
    const char *untestable; /* ""; or what is missing */
};

struct noise_plan_request {
    struct noise_request of; /* configuration, steps, interruption */
    const struct floor_file *floor;
    double lr_error; /* 0.01: one percent */
    double alpha, power;
};

/* Trains 4 n runs: n pairs with the error, n with twice the error; n as few as can show `power`
 * with NOISE_PLAN_CONFIDENCE. STATUS_INPUT: alpha or power not in (0, 1), lr_error not in (0, 1].
 * A floor that is too small is untestable, and nothing is trained. */
TWINSTEP_MUST_USE enum status noise_plan_measure(const struct noise_plan_request *request,
                                                 struct arena *arena, struct noise_plan *out);

#endif
