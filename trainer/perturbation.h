/* SPDX-License-Identifier: Apache-2.0
 * One weight moved by one unit in the last place before the first update (init.nudge): what a
 * training makes of the smallest difference there is.
 *
 * The unit is that of the coarser of parameter and compute dtype, away from zero, so that the
 * forward sees it. The reference model and the travelled distance keep the weights as they were
 * drawn. */
#ifndef TWINSTEP_TRAINER_PERTURBATION_H
#define TWINSTEP_TRAINER_PERTURBATION_H

#include "trainer/run.h"

/* STATUS_INPUT: init.nudge names no tensor of the model, or an element that it has not. */
TWINSTEP_MUST_USE enum status perturbation_apply(struct run *run);

/* A tensor that every position of every sequence goes through: the first norm weight of layer 0;
 * without one the first tensor. For init.nudge of a twin. */
const char *perturbation_tensor(const struct run_axes *axes);

#endif
