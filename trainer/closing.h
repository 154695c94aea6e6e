/* SPDX-License-Identifier: Apache-2.0
 * Closes the gradients of an update and measures them in the same pass (kernels/close_pieces.h):
 * the leaf hashes of their digests, and the sums of squares for the norms that are recorded and for
 * the one that a clip takes. Elsewhere phases.c closes first and measures in passes of their own.
 *
 * Private to the run. Invariant: gradients and measures have the bits of those passes. The measures
 * are those of the gradient as it was closed, so they are to be asked for before anybody writes
 * it. */
#ifndef TWINSTEP_TRAINER_CLOSING_H
#define TWINSTEP_TRAINER_CLOSING_H

#include "trainer/run_private.h"

/* Takes the memory, or leaves run->closing NULL where a gradient of this run is not measured so.
 * Comes behind what decides that, run->shape included. */
TWINSTEP_MUST_USE enum status closing_open(struct run *run);

/* Whether closing_round may close the gradient of the running update. A watch may write it. */
int closing_can(const struct run *run);

/* Rounds the sums to the stored gradient, as phase_round_gradient does, and measures it. */
void closing_round(struct run *run);

/* The leaf hashes of owner `index`, or NULL where no digest of it is recorded. */
const struct leafhash_leaf *closing_leaves(const struct run *run, uint32_t index);

/* The sums of squares of owner `index`, in f64 by blocks of law 2; or NULL where nobody needs them.
 */
const double *closing_squares(const struct run *run, uint32_t index);

#endif
