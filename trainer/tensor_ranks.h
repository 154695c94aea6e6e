/* SPDX-License-Identifier: Apache-2.0
 * Weights that tensor-parallel ranks hold apart, for the model: norms (parallel.forgets), and the
 * embedding, too, where ranks have samples of their own (parallel.feeds own-on-tensor). Each rank
 * has weights, and the sums of its own rows. Private to the run.
 *
 * The model is one: its activations are what the ranks together have, and of all tensors they share
 * the others. So micro-batches run once, with rank 0's tensors in the run's place, and only what
 * follows a gradient runs on each rank (trainer/replicas.h). */
#ifndef TWINSTEP_TRAINER_TENSOR_RANKS_H
#define TWINSTEP_TRAINER_TENSOR_RANKS_H

#include <stdint.h>

#include "base/status.h"

struct config;
struct dataset;
struct run;
struct tensor_ranks; /* of a run whose tensor-parallel ranks may part */

/* Refuses data of which tensor-parallel ranks with samples of their own cannot make tensors of one
 * shape. */
TWINSTEP_MUST_USE enum status tensor_ranks_check_data(const struct config *config,
                                                      const struct dataset *dataset);

/* Takes memory and shows the ranks to the model; run->tensor_ranks is NULL where there are none. */
TWINSTEP_MUST_USE enum status tensor_ranks_open(struct run *run);

/* Before the micro-batches of an update: sums begin from +0. */
void tensor_ranks_begin(struct run *run);

/* Makes the compute copies of the ranks' weights anew, where there are such copies. */
void tensor_ranks_refresh(struct run *run);

/* Behind a clip, with rank 0's tensors in the run's place: where ranks clipped by norms of their
 * own, every copy gets of each matrix's gradient the slices as their ranks clipped them. */
void tensor_ranks_join_clipped(struct run *run);

/* Closes the gradient of a rank other than 0, whose tensors are in the run's place. The sums of the
 * update stay as they are. */
TWINSTEP_MUST_USE enum status tensor_ranks_close(struct run *run, uint32_t rank);

#endif
