/* SPDX-License-Identifier: Apache-2.0
 * Phase `zero` without its writes: in a plain training the numbers that it sets to +0, which are
 * accumulators and stored gradients, are only noted to be +0. The products of the next backward
 * begin their chains at +0 instead of reading accumulators, and closing a gradient writes all of
 * it, so most of these numbers are never written as zeros. Writing them takes a twentieth of an
 * update of a large model (docs/measurements/train.md).
 *
 * Private to the run. The note is no part of the state, as run->weights_fresh is none: no snapshot
 * holds it. Invariant: whoever looks at a state sees zeros there, because what hands out or
 * compares states, and what reads a gradient that no backward has filled, writes them first. */
#ifndef TWINSTEP_TRAINER_OWED_ZEROS_H
#define TWINSTEP_TRAINER_OWED_ZEROS_H

#include "trainer/run_private.h"

/* Takes the note, or leaves run->owed_zeros NULL where zeros are written at once. Comes behind what
 * decides that: shards, ranks, a backend, and a bit that flips. */
TWINSTEP_MUST_USE enum status owed_zeros_open(struct run *run);

/* Makes accumulators and gradients +0: notes that they are, or writes them where no note is kept.
 */
void owed_zeros_set(const struct run *run);

/* Before a backward. Returns 1 where the products of weights are to begin at +0; the other
 * accumulators are written then. */
int owed_zeros_begin(const struct run *run);

/* Writes what is owed. */
void owed_zeros_pay(const struct run *run);

/* Owes nothing: what was owed has been written by others. */
void owed_zeros_forget(const struct run *run);

#endif
