/* SPDX-License-Identifier: Apache-2.0
 * The rules of the scale, on scalars only: it is phase `unscale` (phases_update.c) that touches
 * gradients. */
#include "trainer/scaler.h"

#include "base/real.h"

void scaler_open(const struct config *config, struct state_scaler *out) {
    *out = (struct state_scaler){.scale = 0.0};
    if (config->scaler.kind == SCALER_NONE) return;
    out->scale = (double)(float)config->scaler.init_scale;
    out->hysteresis_left = config->scaler.hysteresis;
}

double scaler_factor(const struct state_scaler *scaler) {
    return scaler->scale > 0.0 ? scaler->scale : 1.0;
}

double scaler_left(const struct state_scaler *scaler) {
    return scaler->unscaled ? 1.0 : scaler_factor(scaler);
}

double scaler_inverse(const struct state_scaler *scaler) {
    return (double)(float)(1.0 / scaler->scale);
}

static void back_off(const struct config *config, struct state_scaler *scaler) {
    scaler->growth_tracker = 0;
    if (scaler->hysteresis_left > 0) scaler->hysteresis_left--;
    if (scaler->hysteresis_left > 0) return;
    const float smaller = (float)(scaler->scale * config->scaler.backoff_factor);
    const float least = (float)config->scaler.min_scale;
    scaler->scale = (double)(smaller > least ? smaller : least);
}

static void grow(const struct config *config, struct state_scaler *scaler) {
    if (++scaler->growth_tracker != config->scaler.growth_interval) return;
    const float larger = (float)(scaler->scale * config->scaler.growth_factor);
    scaler->growth_tracker = 0;
    scaler->hysteresis_left = config->scaler.hysteresis;
    if (real_finite_f64((double)larger)) scaler->scale = (double)larger;
}

void scaler_update(const struct config *config, int overflow, struct state_scaler *scaler) {
    scaler->unscaled = 0;
    if (config->scaler.kind != SCALER_DYNAMIC) return;
    if (overflow)
        back_off(config, scaler);
    else
        grow(config, scaler);
}
