/* SPDX-License-Identifier: Apache-2.0
 * Which hybrid goes on from which, in what order they are trained, and the states that they go on
 * from.
 *
 * A hybrid goes on from the one without one of its factors: the factor that is silent for longest
 * (experiment/inert_updates.h), the first of those with equal inertness. Where that one is determined like
 * another, from the one that was trained for it; never from the test arm. Trained depth first, the
 * children with the latest branches first, so at most as many states are held at once as there are
 * factors that begin silently. Private to the experiment.
 * Invariant: a hybrid that goes on is, root by root, the one that began at step 0. */
#ifndef TWINSTEP_EXPERIMENT_BRANCHES_H
#define TWINSTEP_EXPERIMENT_BRANCHES_H

#include "experiment/experiment_plan.h"
#include "trainer/run.h"

#define NO_HYBRID UINT32_MAX

struct branch {
    uint32_t from;   /* hybrid */
    uint32_t slot;   /* where its state is held until this one is trained */
    uint64_t shared; /* updates; 0: it begins at step 0 */
    size_t kept;     /* bytes of the state held; 0: not yet, or it does not fit */
};

struct branches {
    struct branch *of; /* (count) by hybrid; those that are not trained have shared 0 */
    uint32_t count;
    uint32_t *order; /* (ordered) hybrids to train; neither the first nor the last one */
    uint32_t ordered;
    uint32_t slots;
    unsigned char **state; /* (slots) of `bytes` */
    size_t bytes;
    uint64_t saved; /* updates that are not trained, over all hybrids */
};

/* bytes: of the largest state held. samples: of the data set of every hybrid's configuration.
 * Where arms race (numerics.mode atomic) nothing is shared. */
TWINSTEP_MUST_USE enum status branches_open(const struct experiment_plan *plan,
                                            const uint64_t *samples, size_t bytes,
                                            struct arena *arena, struct branches *out);

/* After update `step` of a hybrid: holds its state for those that go on from here. */
void branches_keep(struct branches *branches, uint32_t hybrid, const struct run *run,
                   uint64_t step);

/* Restores what the hybrid goes on from, as its run is opened; returns the updates that are then
 * behind it: 0 where it begins at step 0. */
uint64_t branches_take(const struct branches *branches, uint32_t hybrid, struct run *run);

#endif
