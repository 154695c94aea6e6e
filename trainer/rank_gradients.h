/* SPDX-License-Identifier: Apache-2.0
 * The gradients of ranks that close their own, as frameworks' do (law 22 of docs/DETERMINISM.md):
 * modes shaped and shuffled with parallel.ranks above 1. Private to the run.
 *
 * Ranks run one after the other in the accumulators and the gradient of the state. When the last
 * micro-batch of a rank is over its gradient is closed and put into the exchange, and the next rank
 * begins with what the update began with. Memory for the exchange is taken here, and holds nothing
 * between updates. Invariant: after phase `reduce` the state's gradient is that of the update. */
#ifndef TWINSTEP_TRAINER_RANK_GRADIENTS_H
#define TWINSTEP_TRAINER_RANK_GRADIENTS_H

#include "model/model.h"
#include "trainer/run.h"

struct rank_gradients;

/* Takes the memory; run->rank_gradients is NULL where ranks do not close their own gradients. */
TWINSTEP_MUST_USE enum status rank_gradients_open(struct run *run);

/* Whether the bug of parallel.race is set and has nothing to do in any of `steps` updates: all
 * gradients are in one bucket, so none overwrites another. */
TWINSTEP_MUST_USE enum status rank_gradients_races_alone(const struct config *config,
                                                         uint64_t steps, struct arena *arena,
                                                         int *out);

/* Begins the micro-batch that was fetched last, and with it its rank where it is that rank's first
 * one. Stores at `out` the part for model_backward(), or NULL where run->rank_gradients is. */
TWINSTEP_MUST_USE enum status rank_gradients_begin(struct run *run, const struct model_parts **out);

/* Does what there is to do after the backward of a micro-batch. */
TWINSTEP_MUST_USE enum status rank_gradients_end_micro(struct run *run);

/* Makes the gradient of the update of those of the ranks: phase `reduce`. */
TWINSTEP_MUST_USE enum status rank_gradients_reduce(struct run *run);

#endif
