/* SPDX-License-Identifier: Apache-2.0
 * What the hybrids of an exact experiment are worth, by several measures and over time: the games
 * that the judge shares out.
 *
 * Of every hybrid, against the baseline: distance of the parameters and gap of the loss at a few
 * marks (updates 1, 2, 4, ... and the last; fewer where the baseline's parameters at all of them
 * would take more memory than a run does); at the end the distance along the way from one arm to
 * the other, and the KL divergence on the probe batch; and the first update whose root differs.
 * Private to the experiment. Invariant: the value of no swap is 0 in every game. */
#ifndef TWINSTEP_EXPERIMENT_HYBRID_VALUES_H
#define TWINSTEP_EXPERIMENT_HYBRID_VALUES_H

#include "experiment/experiment_trace.h"
#include "trainer/run.h"

#define MIXTURES_MARKS 40 /* powers of two below 2^39 updates, and the last one */

struct hybrid_values {
    uint32_t count; /* of hybrids, the one of no swap included */
    uint32_t marks;
    double mark[MIXTURES_MARKS]; /* updates, increasing; the last one is the end */
    size_t elements;
    double *point[MIXTURES_MARKS];   /* (elements) baseline at each mark; the last is its end */
    double *test_end;                /* (elements) */
    double *scratch;                 /* (elements) */
    double *distance, *loss;         /* (marks, count) */
    double *projection, *kl, *first; /* (count); NaN where not measured */
};

/* `baseline` is open and at step 0; elements 0: the arms have no distance. */
TWINSTEP_MUST_USE enum status hybrid_values_open(const struct experiment_plan *plan,
                                                 const struct run *baseline, size_t elements,
                                                 struct arena *arena, struct hybrid_values *out);

/* After update `step` of the baseline. */
void hybrid_values_baseline(struct hybrid_values *hybrids, const struct run *baseline,
                            uint64_t step);

/* After update record->step of a hybrid; `like` is the baseline's record of it. */
void hybrid_values_note(struct hybrid_values *hybrids, uint32_t hybrid, const struct run *run,
                        const struct record *record, const struct record *like);

/* Once it is trained; `baseline` holds the baseline's end, or is NULL: no KL then. */
void hybrid_values_end(struct hybrid_values *hybrids, uint32_t hybrid, struct run *baseline,
                       struct run *run);

/* `hybrid` goes on from `from` after update `shared`: until then they are one. */
void hybrid_values_share(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t from,
                         uint64_t shared);

/* `hybrid` is determined like `same`. */
void hybrid_values_copy(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t same);

/* The arrays of the trace: what is planned, and their values. */
void hybrid_values_plan(const struct experiment_plan *plan, struct trace_array_plan *list,
                        uint32_t *count);
TWINSTEP_MUST_USE enum status hybrid_values_put(const struct hybrid_values *hybrids,
                                                struct experiment_trace *output);

#endif
