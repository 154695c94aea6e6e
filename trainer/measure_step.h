/* SPDX-License-Identifier: Apache-2.0
 * Measures an update inside the optimizer's step: block by block, while the numbers are in the
 * caches, it keeps the old parameters, makes the blocks of update sizes and the leaf hashes that
 * measure_end joins, and the sums of the read-back. Elsewhere measure.c and readback.c do the same
 * around the step, in passes of their own.
 *
 * Private to the run. Invariant: the bits of a record are those of the passes. What the step has
 * measured is valid as long as nobody else writes a parameter or a slot in the same update:
 * measure_step_open() decides where that holds, and whoever writes all the same, as a restored
 * state does, calls measure_step_forget(). A watch may write behind the step, so an update with one
 * is measured by the passes. */
#ifndef TWINSTEP_TRAINER_MEASURE_STEP_H
#define TWINSTEP_TRAINER_MEASURE_STEP_H

#include "optim/seen.h"
#include "trainer/run_private.h"

/* Takes the memory, or leaves run->measure_step NULL where a step of this run cannot measure. */
TWINSTEP_MUST_USE enum status measure_step_open(struct run *run);

/* Returns the most numbers of a piece, or 0 where a step of this run cannot measure. */
size_t measure_step_piece(const struct run *run);

/* Begins an update. Returns 0 where the caller keeps the parameters from before it. */
int measure_step_begin(struct run *run);

/* Come before and behind the optimizer's step. The first lets the step be seen, or keeps what it
 * overwrites where it is not; the second fails where the step was not seen as a whole. */
TWINSTEP_MUST_USE enum status measure_step_see(struct run *run, struct optim_seen_call *call);
TWINSTEP_MUST_USE enum status measure_step_seen(struct run *run,
                                                const struct optim_seen_call *call);

/* Returns what the step was read back by, or NULL where it was not seen. */
const struct readback_step *measure_step_read(const struct run *run,
                                              const struct optim_seen_call *call);

/* Somebody has written parameters or slots: what the step has measured does not hold any more. */
void measure_step_forget(struct run *run);

/* Comes behind the last phase. Returns 1 where run->moves and the leaf hashes are those of the
 * state; where it returns 0 the parameters from before the update are kept in any case. */
int measure_step_is_valid(struct run *run);

/* Writes run->piece_digest from the leaf hashes. */
TWINSTEP_MUST_USE enum status measure_step_digests(struct run *run);

#endif
