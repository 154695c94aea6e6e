/* SPDX-License-Identifier: Apache-2.0
 * Decides which hybrid continues from which, in what order they are trained, and holds the states
 * that they continue from. A hybrid continues from the one that lacks exactly one of its factors;
 * of the possible factors it is the one that stays inert for longest (experiment/inert_updates.h),
 * the first of those where several do.
 *
 * Where no run is trained for that hybrid because another one is determined alike, it continues
 * from that other one; it never continues from the test arm. The tree is walked depth first and the
 * children that branch off last come first, so that no more states are held at once than there are
 * factors that begin inert. Private to the experiment.
 * Invariant: the roots of a hybrid that continues are those that it would have from step 0. */
#ifndef TWINSTEP_EXPERIMENT_BRANCHES_H
#define TWINSTEP_EXPERIMENT_BRANCHES_H

#include "experiment/experiment_plan.h"
#include "trainer/run.h"

#define NO_HYBRID UINT32_MAX

struct branch {
    uint32_t from;   /* hybrid that this one continues from */
    uint32_t slot;   /* where the state to continue from is held until this one is trained */
    uint64_t shared; /* updates that both have in common; 0: this one begins at step 0 */
    size_t kept;     /* bytes of the state held; 0: there is none yet, or it does not fit */
};

struct branches {
    struct branch *of; /* (count) by hybrid; `shared` stays 0 for those that are not trained */
    uint32_t count;
    /* (ordered) the hybrids in the order of training, without the first and the last */
    uint32_t *order;
    uint32_t ordered;
    uint32_t slots;
    unsigned char **state; /* (slots) states of `bytes` each; NULL: no room was taken yet */
    size_t bytes;
    uint64_t saved; /* updates that need no training, summed over all hybrids */
};

/* Plans the tree. `bytes` is the size of the largest state,
 * `samples` is by hybrid and says how many samples the data set of its configuration has. Nothing
 * is shared where an arm's threads race (numerics.mode atomic), because then equal configurations
 * do not reach equal states. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status branches_open(const struct experiment_plan *plan,
                                            const uint64_t *samples, size_t bytes,
                                            struct arena *arena, struct branches *out);

/* Takes room for the states that the tree holds, before the first update. */
TWINSTEP_MUST_USE enum status branches_take_room(struct branches *branches, struct arena *arena);

/* Called after update `step` of a hybrid: keeps its state for those that continue from here. */
TWINSTEP_MUST_USE enum status branches_keep(struct branches *branches, uint32_t hybrid,
                                            const struct run *run, uint64_t step);

/* Whether branches_keep keeps the state that `hybrid` has after update `step`. */
int branches_wants(const struct branches *branches, uint32_t hybrid, uint64_t step);
/* Called when a hybrid's run has been opened: restores the state that it continues from. Tells
 * the number of updates that are then behind it, which is 0 where it begins at step 0, also because
 * that state holds other reference log-probs than the hybrid needs. */
TWINSTEP_MUST_USE enum status branches_take(const struct branches *branches, uint32_t hybrid,
                                            struct run *run, uint64_t *out_behind);

#endif
