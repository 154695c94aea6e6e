/* SPDX-License-Identifier: Apache-2.0
 * Updates made in f32 and rounded once: stochastic rounding (law 15), where each result goes up or
 * down by a number drawn at its address; and fp8 parameters without masters, rounded to nearest
 * (law 18). The optimizer works on f32 copies of the parameters.
 *
 * The copies are scratch: made from the parameters before the step, gone after it. Private to the
 * run. Invariant: a value that the dtype holds is never moved, so a step that changes nothing
 * changes no bit. */
#ifndef TWINSTEP_TRAINER_ROUNDING_H
#define TWINSTEP_TRAINER_ROUNDING_H

#include "trainer/run.h"

/* `value` rounded to one of its two neighbours in the dtype, to the one farther from zero where
 * u < (distance from the nearer one) / (distance of the two). u in (0, 1). */
double rounding_draw(double value, enum dtype dtype, double u);

/* Takes the copies where updates are rounded once; checks addresses. */
TWINSTEP_MUST_USE enum status rounding_open(struct run *run);

/* Before the step: run->tensors get f32 masters. */
void rounding_begin(struct run *run);
/* After it: parameters from the masters. */
TWINSTEP_MUST_USE enum status rounding_end(struct run *run);

#endif
