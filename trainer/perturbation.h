/* SPDX-License-Identifier: Apache-2.0
 * One weight moved by one unit in the last place before the first update (init.nudge): it shows
 * what a training makes of the smallest difference there is.
 *
 * The unit is that of the coarser of parameter and compute dtype, and the weight moves away from
 * zero, so that the forward sees it. The reference model and the distance travelled keep the
 * weights as they were drawn. */
#ifndef TWINSTEP_TRAINER_PERTURBATION_H
#define TWINSTEP_TRAINER_PERTURBATION_H

#include "trainer/run.h"

/* The weight that init.nudge names. */
struct perturbation {
    uint32_t row;     /* of the parameter table */
    uint64_t element; /* row-major, from 0 */
};

/* Finds it. STATUS_INPUT: init.nudge names no tensor of the model, or an element that the tensor
 * has not. */
TWINSTEP_MUST_USE enum status perturbation_find(const struct run *run, struct perturbation *out);

/* Moves the weight that init.nudge names, if it names one. Fails with STATUS_INPUT where it names
 * no tensor of the model, or an element that the tensor has not. */
TWINSTEP_MUST_USE enum status perturbation_apply(struct run *run);

/* Returns the tensor that the perturbed run of a pair moves by default. Every position of every
 * sequence goes through it: it is the first norm weight of layer 0, or the first tensor where layer
 * 0 has no norm. */
const char *perturbation_tensor(const struct run_axes *axes);

#endif
