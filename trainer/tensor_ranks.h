/* SPDX-License-Identifier: Apache-2.0
 * Norm weights that tensor-parallel ranks hold apart (parallel.forgets), for the model: each rank's
 * weights, and the sums of its own rows. Private to the run.
 *
 * The model is one: its activations are what the ranks together have, and of all tensors they share
 * the others. So micro-batches run once, with rank 0's tensors in the run's place, and only what
 * follows a gradient runs on each rank (trainer/replicas.h). */
#ifndef TWINSTEP_TRAINER_TENSOR_RANKS_H
#define TWINSTEP_TRAINER_TENSOR_RANKS_H

#include <stdint.h>

#include "base/status.h"

struct run;
struct tensor_ranks; /* of a run whose tensor-parallel ranks may part */

/* Takes memory and shows the ranks to the model; run->tensor_ranks is NULL where there are none. */
TWINSTEP_MUST_USE enum status tensor_ranks_open(struct run *run);

/* Before the micro-batches of an update: sums begin from +0. */
void tensor_ranks_begin(struct run *run);

/* Makes the compute copies of the ranks' weights anew, where there are such copies. */
void tensor_ranks_refresh(struct run *run);

/* Closes the gradient of a rank other than 0, whose tensors are in the run's place. The sums of the
 * update stay as they are. */
TWINSTEP_MUST_USE enum status tensor_ranks_close(struct run *run, uint32_t rank);

#endif
