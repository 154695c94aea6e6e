/* SPDX-License-Identifier: Apache-2.0
 * Updates that are made in f32 and rounded once: stochastic rounding (law 15), where each result
 * goes up or down by a number drawn at its address; and fp8 parameters without masters, which are
 * rounded to nearest (law 18). The optimizer works on f32 copies of the parameters. Private to the
 * run.
 *
 * The copies are scratch: they are made from the parameters before the step and gone after it.
 *
 * Invariant: a value that the dtype holds is never moved, so a step that changes nothing changes no
 * bit. */
#ifndef TWINSTEP_TRAINER_ROUNDING_H
#define TWINSTEP_TRAINER_ROUNDING_H

#include "trainer/run.h"

/* Rounds `value` to one of its two neighbours in the dtype: to the one farther from zero where u <
 * (distance from the nearer one) / (distance of the two), with u in (0, 1). */
double rounding_draw(double value, enum dtype dtype, double u);

/* Takes the copies where updates are rounded once, and refuses a tensor whose numbers have no
 * address. */
TWINSTEP_MUST_USE enum status rounding_open(struct run *run);

/* To be called before the step: gives run->tensors f32 masters. */
TWINSTEP_MUST_USE enum status rounding_begin(struct run *run);
/* To be called after the step: makes the parameters from these masters. */
TWINSTEP_MUST_USE enum status rounding_end(struct run *run);

#endif
