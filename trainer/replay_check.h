/* SPDX-License-Identifier: Apache-2.0
 * A check against silent data corruption: forward and backward of an update run again from the same
 * state, before anything of list `update` does, and what they leave must have the same bits.
 *
 * This is the deterministic replay of torchtitan (SDCReplayer.run_fwd_bwd in
 * torchtitan/observability/sdc_replayer.py, pull requests 4333 and 4334 of August 2026), which runs
 * the first forward and backward of an optimizer step again and raises SDCReplayMismatch before the
 * optimizer sees a gradient. Here all micro-batches run again, and nothing is raised: what differs
 * is noted. Invariant: a run with the check has the bits of one without it. */
#ifndef TWINSTEP_TRAINER_REPLAY_CHECK_H
#define TWINSTEP_TRAINER_REPLAY_CHECK_H

#include "trainer/run.h"

/* What the checks of a run have shown so far. */
struct replay_seen {
    uint64_t checks, differing;
    uint64_t first;     /* the first update that differed; 0: none */
    int loss;           /* there: sums of losses or metrics differ */
    const char *tensor; /* there: the first parameter whose gradient differs; NULL: none */
};

/* What the checks of a run have shown; it holds until the run is closed. */
struct replay_seen run_replay_seen(const struct run *run);

/* Takes memory for run_options.replay_every. STATUS_INPUT: the loop does more in a micro-batch than
 * forward and backward, or sums race, so that no run of it repeats itself. */
TWINSTEP_MUST_USE enum status replay_check_open(struct run *run);

/* run_step calls these before and behind the micro-batches of an update. */
TWINSTEP_MUST_USE enum status replay_check_begin(struct run *run);
void replay_check_close(struct run *run);
TWINSTEP_MUST_USE enum status replay_check_end(struct run *run,
                                               enum status (*micros)(struct run *));

#endif
