/* SPDX-License-Identifier: Apache-2.0
 * A forward or a backward of an open run outside its updates, for who measures: probes, parity.
 *
 * The weights are the run's, the rows whatever the caller names. Dropout is off. Nothing here moves
 * the state, but run_take_weights, whose name says so. With a backend the ops are queued, as those
 * of a phase are: who reads results waits for it. */
#ifndef TWINSTEP_TRAINER_RUN_PASS_H
#define TWINSTEP_TRAINER_RUN_PASS_H

#include "trainer/run.h"

struct watch; /* model/watch.h */

/* Lays out samples index[0 .. count-1] of the run's data set; count <= run_limits()->samples. */
void run_fill_batch(struct run *run, const uint32_t *index, uint32_t count);

/* The first `count` samples of the data set, as a probe takes them. */
void run_fill_probe(struct run *run, uint32_t count);

/* Forward of the batch that was filled last. order_seed, order_update: of mode shuffled's orders.
 * `watch` (model/watch.h) sees what each op writes; NULL: nothing does. */
void run_forward(struct run *run, uint64_t order_seed, uint32_t order_update, struct watch *watch);

/* run_forward() with the orders of the run's next update. */
void run_forward_as_trained(struct run *run);

/* Backward of the mean over all labels, behind run_forward() of the same batch; its gradients are
 * seen by `watch` and then cleared. */
void run_backward(struct run *run, struct watch *watch);

/* The weights that the model's ops read (compute copies, made anew where parameters moved), by row
 * of the parameter table. They hold until the run's next update. */
const void **run_weights(struct run *run);

/* `to` gets the parameters of `from`, rounded to its own dtype. Both have the same table. */
void run_take_weights(const struct run *from, struct run *to);

#endif
