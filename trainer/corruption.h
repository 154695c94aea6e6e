/* SPDX-License-Identifier: Apache-2.0
 * One bit that flips in one tensor of one update, as a defective core or memory flips it (section
 * `fault`; docs/CORRUPTION.md): what comes behind works with the number as it then is.
 *
 * The flip is a function of the configuration and of the number of the update, so a run that goes
 * on from a snapshot, a repeat and a hybrid flip the same bit. In any other update nothing is
 * looked at. Invariant: a run whose update never wrote the named element fails; none is silently
 * clean. */
#ifndef TWINSTEP_TRAINER_CORRUPTION_H
#define TWINSTEP_TRAINER_CORRUPTION_H

#include "model/watch.h"
#include "scenarios/fault.h"
#include "trainer/run.h"

/* The flip of a run, and what one update of it has seen. */
struct corruption;

/* Checks section `fault` against the model, its layout and its optimizer. In the fault: the key
 * that is wrong, and what it may be. For schema.check. */
TWINSTEP_MUST_USE enum status corruption_check(const struct config *config, struct fault *fault);

/* The same, with the fault as the text of the status. */
TWINSTEP_MUST_USE enum status corruption_validate(const struct config *config);

/* Finds the tensor of an open run; called once, when its layout is known. */
TWINSTEP_MUST_USE enum status corruption_open(struct run *run);

/* Flips the bit of an update whose flip comes before its first phase, unless that was done since
 * the last update or restore: by run_step, and by whoever looks at the state before (watch_start).
 */
TWINSTEP_MUST_USE enum status corruption_start(struct run *run);

/* Around the phases of an update. corruption_end gives back `status`, or the run's failure to find
 * the element. */
TWINSTEP_MUST_USE enum status corruption_begin(struct run *run);
TWINSTEP_MUST_USE enum status corruption_end(struct run *run, enum status status);

/* Forgets what corruption_start did; the state was replaced. */
void corruption_forget(struct run *run);

#endif
