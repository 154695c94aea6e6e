/* SPDX-License-Identifier: Apache-2.0
 * The loss scale: what torch.amp.GradScaler and Megatron's DynamicGradScaler carry and do.
 *
 * The coefficients of the loss are multiplied by the scale (model/loss.h), phase `unscale` takes it
 * out of the stored gradient, and at the end of every update the scale moves. An optimizer that
 * runs before `unscale` divides by the scale itself (optim_call.grad_scale). This file knows no
 * loop order.
 *
 * Invariant: everything that carries over stands in struct state_scaler. */
#ifndef TWINSTEP_TRAINER_SCALER_H
#define TWINSTEP_TRAINER_SCALER_H

#include "trainer/state.h"

/* Sets the scaler to what it is before update 1. */
void scaler_open(const struct config *config, struct state_scaler *out);

/* Returns the factor on the loss: the scale, or 1 without a scaler. */
double scaler_factor(const struct state_scaler *scaler);

/* Returns the factor that the stored gradient still holds: the scale, or 1 once `unscale` took it
 * out. */
double scaler_left(const struct state_scaler *scaler);

/* Returns what `unscale` multiplies gradients with: 1 / scale in f64, rounded to f32, as
 * torch/amp/grad_scaler.py, unscale_, has it (self._scale.double().reciprocal().float()). */
double scaler_inverse(const struct state_scaler *scaler);

/* Ends an update. A dynamic scale moves as in aten's _amp_update_scale_: an overflow restarts the
 * growth counter and multiplies the scale by backoff_factor; growth_interval updates in a row
 * without one multiply it by growth_factor, if the f32 product is finite. With a hysteresis h and a
 * minimum it moves as in megatron/core/optimizer/grad_scaler.py: the h-th overflow since the last
 * growth backs off, and so does every further one, and the scale is never below min_scale. The
 * scale is an f32, and its product with a factor is an f64 that is rounded to f32, as in aten. */
void scaler_update(const struct config *config, int overflow, struct state_scaler *scaler);

#endif
