/* SPDX-License-Identifier: Apache-2.0
 * The loss scale: what torch.amp.GradScaler and Megatron's DynamicGradScaler carry and do.
 *
 * Coefficients of the loss are multiplied by the scale (model/loss.h), phase `unscale` takes it
 * out of the stored gradient, and at the end of every update the scale moves. An optimizer that
 * runs before `unscale` divides by itself (optim_call.grad_scale). Knows no loop order.
 * Invariant: everything that carries over stands in struct state_scaler. */
#ifndef TWINSTEP_TRAINER_SCALER_H
#define TWINSTEP_TRAINER_SCALER_H

#include "trainer/state.h"

/* Before update 1. */
void scaler_open(const struct config *config, struct state_scaler *out);

/* Factor on the loss: the scale, or 1 without a scaler. */
double scaler_factor(const struct state_scaler *scaler);

/* What the stored gradient still holds: the scale, or 1 once `unscale` took it out. */
double scaler_left(const struct state_scaler *scaler);

/* What `unscale` multiplies gradients with: 1 / scale in f64, rounded to f32, as
 * torch/amp/grad_scaler.py, unscale_, does (self._scale.double().reciprocal().float()). */
double scaler_inverse(const struct state_scaler *scaler);

/* The end of an update. dynamic, as aten's _amp_update_scale_: on overflow the growth counter
 * restarts and the scale is multiplied by backoff_factor; after growth_interval updates in a row
 * without, by growth_factor, if the f32 product is finite. With hysteresis h and a minimum, as
 * megatron/core/optimizer/grad_scaler.py: only the h-th overflow since the last growth backs off,
 * and every further one; never below min_scale. The scale is an f32, its product with a factor an
 * f64 that is rounded, as in aten. */
void scaler_update(const struct config *config, int overflow, struct state_scaler *scaler);

#endif
