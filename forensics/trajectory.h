/* SPDX-License-Identifier: Apache-2.0
 * Whether what was logged after a restart is the trajectory from before it, continued: two logs
 * that overlap, of which the second begins at a restart and the first goes on past it (or is that
 * of a run which was never interrupted).
 *
 * What each part of the training shows: the scheduler its LRs; batch, random draws and weights the
 * first update after the restart; the optimizer the update after that, which sees what the first
 * one did. A gap is held against the usual change of the loss from row to row. Of two traces of
 * runs the recorded digests answer instead. Nothing is trained. Invariant: a part is called
 * restored or lost only where these columns show it; else the text says what would tell. */
#ifndef TWINSTEP_FORENSICS_TRAJECTORY_H
#define TWINSTEP_FORENSICS_TRAJECTORY_H

#include "determinism/trace.h"
#include "logs/log.h"

enum trajectory_part {
    TRAJECTORY_SCHEDULER = 0,
    TRAJECTORY_DATA,
    TRAJECTORY_GENERATORS,
    TRAJECTORY_WEIGHTS,
    TRAJECTORY_OPTIMIZER,
    TRAJECTORY_PARTS
};
extern const char *const trajectory_part_names[TRAJECTORY_PARTS];

enum trajectory_state { TRAJECTORY_RESTORED = 0, TRAJECTORY_LOST, TRAJECTORY_UNTOLD };
extern const char *const trajectory_state_names[3];

struct trajectory_item {
    enum trajectory_state state;
    const char *text;
    const char *bug; /* the name that docs/LR.md has for it; NULL: none */
};

struct trajectory_side {
    const struct log *log;
    const struct trace_run
        *run; /* the run that `log` was read from; NULL: it is no trace of runs */
};

#define TRAJECTORY_UNKNOWN UINT64_MAX

struct trajectory {
    uint64_t restart;   /* the last update before the restart; TRAJECTORY_UNKNOWN */
    uint64_t rows;      /* updates after it that both logs have */
    uint64_t differs;   /* the first of them in which a column differs beyond noise; 0: none */
    const char *column; /* in which; NULL: none */
    /* Settings of the optimizer and of clipping that two recordings have otherwise behind the
     * restart, in words; NULL: none. */
    const char *settings;
    struct trajectory_item items[TRAJECTORY_PARTS];
};

/* Judges. `restart` is TRAJECTORY_UNKNOWN where it is not said: then it is the update before the
 * first one of `after`, if that log begins later than `before` does. Texts live in `arena`. */
TWINSTEP_MUST_USE enum status trajectory_judge(const struct trajectory_side *before,
                                               const struct trajectory_side *after,
                                               uint64_t restart, struct arena *arena,
                                               struct trajectory *out);

#endif
