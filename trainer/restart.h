/* SPDX-License-Identifier: Apache-2.0
 * resume.after: the job stops and goes on from a checkpoint that holds the weights and what
 * resume.restores lists. Private to the run.
 *
 * What is not restored is as it was at step 0; resume.wrong says what is restored wrongly. Random
 * streams and the place in the data are trainer/streams.h's. Two things stay that no list can lose:
 * the gradient that lies around, and the sums since the last `log`.
 *
 * Invariant: a restart that restores everything changes no bit but the window of loop.skip
 * olmo-outlier, which no checkpoint holds. */
#ifndef TWINSTEP_TRAINER_RESTART_H
#define TWINSTEP_TRAINER_RESTART_H

#include "scenarios/fault.h"
#include "trainer/run.h"

/* Refuses what resume.wrong cannot act on with this optimizer. */
TWINSTEP_MUST_USE enum status restart_check(const struct config *config, struct fault *fault);

/* To be called before the update that comes next; does nothing unless the job was restarted there.
 */
TWINSTEP_MUST_USE enum status restart_begin(struct run *run);

#endif
