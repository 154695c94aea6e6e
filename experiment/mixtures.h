/* SPDX-License-Identifier: Apache-2.0
 * What the mixtures of an exact experiment are worth, by several measures and over time: the games
 * that the judge shares out.
 *
 * Of every mixture, against the baseline: distance of the parameters and gap of the loss at a few
 * marks (updates 1, 2, 4, ... and the last; fewer where the baseline's parameters at all of them
 * would take more memory than a run does); at the end the distance along the way from one arm to
 * the other, and the KL divergence on the probe batch; and the first update whose root differs.
 * Private to the experiment. Invariant: the value of no swap is 0 in every game. */
#ifndef TWINSTEP_EXPERIMENT_MIXTURES_H
#define TWINSTEP_EXPERIMENT_MIXTURES_H

#include "experiment/experiment_trace.h"
#include "trainer/run.h"

#define MIXTURES_MARKS 40 /* powers of two below 2^39 updates, and the last one */

struct mixtures {
    uint32_t count; /* of mixtures, the one of no swap included */
    uint32_t marks;
    double mark[MIXTURES_MARKS]; /* updates, increasing; the last one is the end */
    size_t elements;
    double *point[MIXTURES_MARKS]; /* (elements) baseline at each mark; the last is its end */
    double *test_end;              /* (elements) */
    double *scratch;               /* (elements) */
    double *distance, *loss;       /* (marks, count) */
    double *way, *kl, *first;      /* (count); NaN where not measured */
};

/* `baseline` is open and at step 0; elements 0: the arms have no distance. */
TWINSTEP_MUST_USE enum status mixtures_open(const struct experiment_plan *plan,
                                            const struct run *baseline, size_t elements,
                                            struct arena *arena, struct mixtures *out);

/* After update `step` of the baseline. */
void mixtures_baseline(struct mixtures *mixtures, const struct run *baseline, uint64_t step);

/* After update record->step of a mixture; `like` is the baseline's record of it. */
void mixtures_note(struct mixtures *mixtures, uint32_t mixture, const struct run *run,
                   const struct record *record, const struct record *like);

/* Once it is trained; `baseline` holds the baseline's end, or is NULL: no KL then. */
void mixtures_end(struct mixtures *mixtures, uint32_t mixture, struct run *baseline,
                  struct run *run);

/* `mixture` goes on from `from` after update `shared`: until then they are one. */
void mixtures_share(struct mixtures *mixtures, uint32_t mixture, uint32_t from, uint64_t shared);

/* `mixture` is determined like `same`. */
void mixtures_copy(struct mixtures *mixtures, uint32_t mixture, uint32_t same);

/* The arrays of the trace: what is planned, and their values. */
void mixtures_plan(const struct experiment_plan *plan, struct trace_array_plan *list,
                   uint32_t *count);
TWINSTEP_MUST_USE enum status mixtures_put(const struct mixtures *mixtures,
                                           struct experiment_trace *output);

#endif
