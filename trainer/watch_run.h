/* SPDX-License-Identifier: Apache-2.0
 * What a watch sees of a run besides the model's ops: what the phases wrote, what an update starts
 * from, and what is left of it. phases.c calls this where a watch hangs, and so does whoever
 * locates. */
#ifndef TWINSTEP_TRAINER_WATCH_RUN_H
#define TWINSTEP_TRAINER_WATCH_RUN_H

#include "model/watch.h"
#include "trainer/run.h"

/* Hangs `watch` into a run, or takes it out (NULL). */
void watch_hang(struct run *run, struct watch *watch);

/* Shows parameters, masters, slots and rotary tables, as the update finds them; to be called before
 * run_step. */
void watch_start(struct run *run);
/* Shows the loss and the ledger of random words; to be called after run_step. */
void watch_end(struct run *run);

/* phases.c and phases_update.c call these as an update goes on. */
void watch_phase_begin(struct run *run, enum phase phase);
void watch_phase_end(struct run *run, enum phase phase);
void watch_reference_scored(struct run *run);
void watch_gradient_closed(struct run *run, enum phase phase); /* what `phase` has made */
void watch_gradient_taken(struct run *run);
void watch_weights_copied(struct run *run);

#endif
