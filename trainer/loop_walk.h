/* SPDX-License-Identifier: Apache-2.0
 * What each update of a loop sees, walked with numbers instead of tensors. Private to loop_walk.c,
 * loop_words.c and loop_hazard.c. */
#ifndef TWINSTEP_TRAINER_LOOP_WALK_H
#define TWINSTEP_TRAINER_LOOP_WALK_H

#include "trainer/loop.h"

/* Updates walked; the last two are the steady state. */
enum { LOOP_WALKED = 4 };

/* Where an LR comes from: a schedule phase of update `update`, or nowhere yet (update 0). */
struct loop_source {
    uint64_t update;
    double counter; /* argument of f; of START_F0: c0 */
};

struct loop_seen {
    struct loop_source applied; /* by the last optimize of the update */
    struct loop_source logged;
    uint64_t fresh;  /* micro-batches of this update in the gradient, at the first optimize */
    int stale;       /* gradients of earlier updates in it */
    int clipped;     /* clip ran since the last backward */
    int clip_scaled; /* clip ran on a gradient that still held the loss scale */
    int early;       /* unscale ran, but a backward came after it */
    int clips;       /* clip ran in the update after the last backward, before or after optimize */
    int in_graph;    /* optimize ran between forward and backward */
    int optimized;   /* optimize ran */
};

struct loop_walk {
    const struct config *config;
    uint64_t k, n, micro; /* micro: passes walked */
    struct loop_source lr;
    uint64_t fresh;
    int stale, clipped, unscaled, graph_open;
    struct loop_seen seen[LOOP_WALKED + 1]; /* by update, 1-based */
};

struct loop_law {
    double slope, offset; /* counter at update k: slope * k + offset, from update `from` on */
    uint64_t from;        /* 1, 2, or LOOP_WALKED + 1: the LR is never set by a schedule phase */
};

/* The updates of `config`, from its start on. */
void loop_walk_all(struct loop_walk *walk, const struct config *config);

struct loop_law loop_law_applied(const struct loop_walk *walk);
struct loop_law loop_law_logged(const struct loop_walk *walk);

/* Whether list epoch, or list eval of a loop that evaluates, has the phase. */
int loop_runs_outside(const struct config *config, enum phase phase);

/* schedule.start as it is written. */
const char *loop_start_word(const struct config *config);

#endif
