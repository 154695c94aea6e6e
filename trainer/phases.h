/* SPDX-License-Identifier: Apache-2.0
 * What the files that hold the phases share. Whoever runs a phase asks trainer/run_private.h
 * instead. */
#ifndef TWINSTEP_TRAINER_PHASES_H
#define TWINSTEP_TRAINER_PHASES_H

#include "trainer/run_private.h"

/* Puts the phase's digest into the update's record, if the run records phases. */
void phase_note(struct run *run, enum phase phase, const struct digest *digest);

/* Puts the phase's digest into the update's record: of at most two values, in which every NaN has
 * one pattern. */
void phase_note_reals(struct run *run, enum phase phase, const double *values, size_t count);

/* Rounds the sums to the stored gradient (law 4), and records nothing. */
void phase_round_gradient(struct run *run);
/* Shows and records the stored gradient as what `phase` has made. */
TWINSTEP_MUST_USE enum status phase_gradient_closed(struct run *run, enum phase phase);
/* Makes the digest of the stored gradient that `phase` has made. */
TWINSTEP_MUST_USE enum status phase_digest_gradient(struct run *run, enum phase phase,
                                                    struct digest *out);

TWINSTEP_MUST_USE enum status phase_unscale(struct run *run);
TWINSTEP_MUST_USE enum status phase_clip(struct run *run);
/* Scales the stored gradient as the last clip did, by its coefficient. */
void phase_clip_as_before(struct run *run);
TWINSTEP_MUST_USE enum status phase_optimize(struct run *run);

#endif
