/* SPDX-License-Identifier: Apache-2.0
 * The 1-ulp twin (design section 8): one weight of a fresh run moved by one unit in the last place
 * of numerics.compute, so that rounding's own growth can be told from a cause's.
 *
 * Changes parameter and master, nothing else: the DPO reference keeps the old weight. */
#ifndef TWINSTEP_TRAINER_NOISE_ULP_H
#define TWINSTEP_TRAINER_NOISE_ULP_H

#include "trainer/run.h"

#define NOISE_ULP_TRIES 64

/* The value one unit of `dtype` further from zero; `value` itself when it is 0 or not finite. */
double noise_next(double value, enum dtype dtype);

/* Moves the first weight of the first layer's query projection; the next one while the forward of
 * update 1 stays the same to the bit. The run is at its start again afterwards. Writes which weight
 * it was: "model.layers.0.self_attn.q_proj.weight[0]". STATUS_UNTESTABLE: no weight of the first
 * NOISE_ULP_TRIES changes the forward. */
TWINSTEP_MUST_USE enum status noise_move_one_ulp(struct run *run, char *out_name, size_t size);

#endif
