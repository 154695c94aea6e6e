/* SPDX-License-Identifier: Apache-2.0
 * What each update of a loop sees, found by walking the loop with numbers instead of tensors. This
 * header is private to loop_walk.c and loop_hazard.c. */
#ifndef TWINSTEP_TRAINER_LOOP_WALK_H
#define TWINSTEP_TRAINER_LOOP_WALK_H

#include "trainer/loop.h"

/* Four updates are walked: the first two may still see the start, and the last two are the steady
 * state, from which laws and hazards are read. */
enum { LOOP_WALKED = 4 };

/* Where an LR comes from: from a schedule phase of update `update`, or from no schedule phase yet
 * (update 0). */
struct loop_source {
    uint64_t update;
    double counter; /* the argument of f; for the LR of START_F0 it is c0 */
};

struct loop_seen {
    struct loop_source applied; /* the LR that the last optimize of the update applied */
    struct loop_source logged;
    uint64_t fresh;  /* micro-batches of this update in the gradient, at the first optimize */
    int stale;       /* 1 when that gradient holds terms of earlier updates, too */
    int clipped;     /* clip ran since the last backward */
    int clip_scaled; /* clip ran on a gradient that still held the loss scale */
    int early;       /* unscale ran, but a backward came after it */
    int clips;       /* clip ran in the update after the last backward, before or after optimize */
    int in_graph;    /* optimize ran between forward and backward */
    int optimized;   /* optimize ran */
};

struct loop_law {
    double slope, offset; /* the counter at update k is slope * k + offset, from update `from` on */
    uint64_t from;        /* 1 or 2; LOOP_WALKED + 1 where no schedule phase ever sets the LR */
};

struct loop_walk {
    const struct config *config;
    uint64_t k, n, micro; /* `micro`: passes of list micro that are walked */
    struct loop_source lr;
    uint64_t fresh;
    int stale, clipped, unscaled, graph_open;
    struct loop_law applied, logged;
    struct loop_seen seen[LOOP_WALKED + 1]; /* seen[k] is of update k; seen[0] stays empty */
};

/* Walks the first LOOP_WALKED updates of `config`, and finds the laws of their LR. */
void loop_walk_all(struct loop_walk *walk, const struct config *config);

/* Returns 1 when list epoch has the phase, or list eval of a loop that evaluates. */
int loop_runs_outside(const struct config *config, enum phase phase);

/* Returns the word of schedule.start as scenarios write it. */
const char *loop_start_word(const struct config *config);

#endif
