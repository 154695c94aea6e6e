/* SPDX-License-Identifier: Apache-2.0
 * What an update really did, read back from weights and moments before and after it: the learning
 * rate, the weight decay outside of the gradient, and the norm of the gradient that the optimizer
 * took in. Each comes with a bound of its error from rounding, and is NaN where the numbers cannot
 * tell.
 *
 * Read-back reads the state and writes records; no bit of the training depends on it. */
#ifndef TWINSTEP_TRAINER_READBACK_H
#define TWINSTEP_TRAINER_READBACK_H

#include "trainer/run.h"

/* Takes room for the weights and first moments of before a step. Only with options.readback. */
TWINSTEP_MUST_USE enum status readback_open(struct run *run);

/* Keeps these weights and moments; to be called right before the optimizer steps. */
void readback_keep(struct run *run);

/* Fills GROUP_*_READBACK, GROUP_*_ERROR, REAL_GRAD_TAKEN and its error, and counts the elements'
 * steps (run_steps); to be called right after the step. */
TWINSTEP_MUST_USE enum status readback_measure(struct run *run, const struct optim_call *call);

#endif
