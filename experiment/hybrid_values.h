/* SPDX-License-Identifier: Apache-2.0
 * Measures what the hybrids of an exact experiment are worth, in several ways and over time: the
 * games whose values the judge shares out among the factors.
 *
 * Each hybrid is held against the baseline. At a few marks (updates 1, 2, 4, ... and the last one)
 * that gives the distance of the parameters, the projection of the displacement on the line from
 * one arm to the other (B - A), and the gaps of the loss and of the reward margin. There are fewer
 * marks where both arms' parameters at all of them would take more memory than a run does. At the
 * end it gives also the KL divergence on the probe batch; besides, the first update whose root
 * differs, and the first whose weights do. Private to the experiment.
 * Invariant: in every game the value of swapping nothing is 0. */
#ifndef TWINSTEP_EXPERIMENT_HYBRID_VALUES_H
#define TWINSTEP_EXPERIMENT_HYBRID_VALUES_H

#include "experiment/experiment_trace.h"
#include "experiment/probe.h"
#include "trainer/run.h"

/* This is room for the powers of two below 2^39 updates, and for the last update. */
#define HYBRID_MARKS 40

/* What is measured at each mark. */
enum hybrid_game {
    HYBRID_DISTANCE = 0, /* |theta_S - theta_baseline| */
    HYBRID_WAY,          /* theta_S - theta_baseline along theta_test - theta_baseline */
    HYBRID_LOSS,         /* gaps to the baseline, in nat */
    HYBRID_MARGIN,
    HYBRID_GAMES
};

struct hybrid_values {
    uint32_t count; /* number of hybrids, the one without any swap included */
    uint32_t marks;
    double mark[HYBRID_MARKS]; /* the marks, in updates, increasing; the last one is the end */
    size_t elements;
    enum dtype dtype; /* of every point */
    uint32_t tensors; /* whose digests each record holds; 0: none are recorded */
    /* (elements) the parameters of both arms at each mark; the last are their end points */
    void *point[HYBRID_MARKS], *test_point[HYBRID_MARKS];
    void *scratch;              /* (elements) */
    double *at[HYBRID_GAMES];   /* (marks, count); NaN where not measured */
    double *kl, *first, *moved; /* (count); KL is NaN where not measured */
    size_t probe_most;          /* bytes that the baseline's logits may take */
    struct probe_kept probe;    /* of the baseline at its end */
};

/* Takes the room for all values from `arena`. `baseline` is open and at step 0; elements 0 says
 * that the arms have no distance. */
TWINSTEP_MUST_USE enum status hybrid_values_open(const struct experiment_plan *plan,
                                                 const struct run *baseline, size_t elements,
                                                 struct arena *arena, struct hybrid_values *out);

/* Bytes that hybrid_values_open takes room for: the points of both arms at one mark, those at all
 * marks, the values, and room to compare points in. */
struct hybrid_values_size {
    uint64_t mark, points, values, scratch;
    uint64_t probe; /* not taken by hybrid_values_open, but by hybrid_values_keep */
};
struct hybrid_values_size hybrid_values_size(const struct experiment_plan *plan,
                                             const struct run *baseline, size_t elements);

/* Called after update `step` of both arms: keeps their points where a mark is. */
TWINSTEP_MUST_USE enum status hybrid_values_arms(struct hybrid_values *hybrids,
                                                 const struct run *baseline, const struct run *test,
                                                 uint64_t step);

/* Whether the weights after update `step` are asked for by hybrid_values_note: it is a mark. */
int hybrid_values_wants(const struct hybrid_values *hybrids, uint64_t step);
/* Called after update record->step of a hybrid; `like` is the baseline's record of that update. */
TWINSTEP_MUST_USE enum status hybrid_values_note(struct hybrid_values *hybrids, uint32_t hybrid,
                                                 const struct run *run, const struct record *record,
                                                 const struct record *like);

/* The two halves of the same, where one process trains the hybrid and another one has the
 * baseline's records. The first measures the weights after update `step`, if that is a mark; the
 * second notes a record; the third, behind both, takes what the first measured from update `first`
 * on: hybrid_values_points() numbers. */
TWINSTEP_MUST_USE enum status hybrid_values_weights(struct hybrid_values *hybrids, uint32_t hybrid,
                                                    const struct run *run, uint64_t step);
void hybrid_values_record(struct hybrid_values *hybrids, uint32_t hybrid,
                          const struct record *record, const struct record *like);
uint32_t hybrid_values_points(const struct hybrid_values *hybrids);
void hybrid_values_give(const struct hybrid_values *hybrids, uint32_t hybrid, double *out);
void hybrid_values_take(struct hybrid_values *hybrids, uint32_t hybrid, uint64_t first,
                        const double *points);

/* Called before several hybrids are trained, with the baseline's run at its end: keeps what it
 * predicts, which the KL divergence of each of them asks for. Takes room from `arena`. */
TWINSTEP_MUST_USE enum status hybrid_values_keep(struct hybrid_values *hybrids,
                                                 struct run *baseline, struct arena *arena);

/* Called once a hybrid is trained. `baseline` is the baseline's run at its end; NULL means that
 * there is none, and no KL is measured. */
TWINSTEP_MUST_USE enum status hybrid_values_end(struct hybrid_values *hybrids, uint32_t hybrid,
                                                struct run *baseline, struct run *run);

/* Called where `hybrid` continues from `from` after update `shared`: until then their values are
 * one. */
void hybrid_values_share(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t from,
                         uint64_t shared);

/* Gives `hybrid` the values of `same`, which is determined alike. */
void hybrid_values_copy(struct hybrid_values *hybrids, uint32_t hybrid, uint32_t same);

/* The arrays of the trace that hold these values: hybrid_values_plan announces them, and
 * hybrid_values_put fills them. */
void hybrid_values_plan(const struct experiment_plan *plan, struct trace_array_plan *list,
                        uint32_t *count);
TWINSTEP_MUST_USE enum status hybrid_values_put(const struct hybrid_values *hybrids,
                                                struct experiment_trace *output);

#endif
