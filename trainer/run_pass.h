/* SPDX-License-Identifier: Apache-2.0
 * A forward or a backward of an open run outside its updates, for whoever measures: probes and
 * parity.
 *
 * The weights are the run's, and the samples are whatever the caller names. Dropout is off. Nothing
 * here moves the state but run_take_weights, whose name says so. A pass is done when its function
 * returns. */
#ifndef TWINSTEP_TRAINER_RUN_PASS_H
#define TWINSTEP_TRAINER_RUN_PASS_H

#include "trainer/run.h"

struct watch; /* model/watch.h */

/* Lays out samples index[0 .. count-1] of the run's data set; count <= run_limits()->samples. */
void run_fill_batch(struct run *run, const uint32_t *index, uint32_t count);

/* Runs the forward of the batch that was filled last. order_seed and order_update address the
 * orders of mode shuffled. `watch` (model/watch.h) sees what each op writes; NULL: nothing does. */
TWINSTEP_MUST_USE enum status run_forward(struct run *run, uint64_t order_seed,
                                          uint32_t order_update, struct watch *watch);

/* Does what run_forward() does with one order, whatever the run's seed and update, under the watch
 * of the run: runs whose weights are equal have equal logits. */
TWINSTEP_MUST_USE enum status run_forward_in_one_order(struct run *run);

/* Runs the backward of the mean over all labels, after run_forward() of the same batch. `watch`
 * sees its gradients, which are cleared afterwards. */
TWINSTEP_MUST_USE enum status run_backward(struct run *run, struct watch *watch);

/* Returns the weights that the model's ops read, by row of the parameter table. Compute copies are
 * made anew where parameters have moved. The weights hold until the run's next update. */
const void **run_weights(struct run *run);

/* Gives `to` the parameters of `from`, rounded to the dtype of `to`. Both have the same table. */
TWINSTEP_MUST_USE enum status run_take_weights(const struct run *from, struct run *to);

#endif
