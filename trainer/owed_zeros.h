/* SPDX-License-Identifier: Apache-2.0
 * Phase `zero` without its writes: of a plain training the numbers that it sets to +0, accumulators
 * and stored gradients, are only noted to be +0. The products of the next backward begin their
 * chains at +0 in place of reading accumulators, and closing a gradient writes all of it, so most
 * of them are never written as zeros. It is a twentieth of an update of a large model
 * (docs/measurements/train.md).
 *
 * Private to the run. Invariant: who looks at a state sees zeros there, because what hands out or
 * compares states, and what reads a gradient that no backward has filled, pays first. */
#ifndef TWINSTEP_TRAINER_OWED_ZEROS_H
#define TWINSTEP_TRAINER_OWED_ZEROS_H

#include "trainer/run_private.h"

/* Takes the note, or leaves run->owed_zeros NULL where zeros are written at once. Comes behind what
 * decides that: shards, ranks, a backend, and a bit that flips. */
TWINSTEP_MUST_USE enum status owed_zeros_open(struct run *run);

/* Makes accumulators and gradients +0, now or on paper. */
void owed_zeros_set(const struct run *run);

/* Before a backward. Returns 1 where the products of weights are to begin at +0; the other
 * accumulators are written then. */
int owed_zeros_begin(const struct run *run);

/* Writes what is owed. */
void owed_zeros_pay(const struct run *run);

/* Owes nothing: what was owed has been written by others. */
void owed_zeros_forget(const struct run *run);

#endif
