/* SPDX-License-Identifier: Apache-2.0
 * What an update really did, read back from weights and moments before and after it: the learning
 * rate, the weight decay outside of the gradient, and the norm of the gradient that the optimizer
 * took in. Each comes with a bound of its error from rounding, and is NaN where the numbers cannot
 * tell.
 *
 * Read-back reads the state and writes records; no bit of the training depends on it. */
#ifndef TWINSTEP_TRAINER_READBACK_H
#define TWINSTEP_TRAINER_READBACK_H

#include "kernels/readback_blocks.h"
#include "trainer/optimizer_input.h"
#include "trainer/run.h"

/* Takes room for the weights and first moments of before a step, or for a piece of them a thread
 * where the step itself measures, so measure_open() comes first. Only with options.readback. */
TWINSTEP_MUST_USE enum status readback_open(struct run *run);

/* Keeps these weights and moments; to be called right before the optimizer steps. */
TWINSTEP_MUST_USE enum status readback_keep(struct run *run);

/* What a step that is seen piece by piece (trainer/measure_step.h) reads back by. */
struct readback_step {
    int is_read; /* 1: readback_piece writes the blocks; 0: readback_measure asks for them */
    struct optimizer_input_rule rule;
    struct readback_blocks_args args[STATE_GROUPS_MAX];
};

/* To be called in place of readback_keep: before the first piece, when t is that of the step; and
 * before and behind each piece, numbers first .. first+count-1 of owner `index`. For each of them
 * readback_piece asks for as many bytes of `next`. */
TWINSTEP_MUST_USE enum status readback_see(struct run *run, const struct optim_call *call,
                                           struct readback_step *out);
void readback_keep_piece(const struct run *run, uint32_t thread, uint32_t index, size_t first,
                         size_t count);
void readback_piece(const struct run *run, const struct readback_step *step, uint32_t thread,
                    uint32_t index, size_t first, size_t count, const struct ahead *next);

/* Fills GROUP_*_READBACK, GROUP_*_ERROR, REAL_GRAD_TAKEN and its error, and counts the elements'
 * steps (run_steps); to be called right after the step. `step` is NULL where it was not seen. */
TWINSTEP_MUST_USE enum status readback_measure(struct run *run, const struct optim_call *call,
                                               const struct readback_step *step);

#endif
