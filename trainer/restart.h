/* SPDX-License-Identifier: Apache-2.0
 * resume.after: the job stops and goes on from a checkpoint that holds the weights and what
 * resume.restores lists.
 *
 * What is not restored is as at step 0. Random streams and the place in the data are
 * trainer/streams.h. What no list can lose stays: the gradient that lies around, sums since the
 * last `log`. Private to the run. Invariant: a restart that restores all changes no bit
 * but the window of loop.skip olmo-outlier, which no checkpoint holds. */
#ifndef TWINSTEP_TRAINER_RESTART_H
#define TWINSTEP_TRAINER_RESTART_H

#include "trainer/run.h"

/* Before the update that comes next. */
TWINSTEP_MUST_USE enum status restart_begin(struct run *run);

#endif
