/* SPDX-License-Identifier: Apache-2.0
 * Losses of a preference pair as functions of its four summed log-probs, with derivatives.
 *
 * c, r: log-probs of the policy, rho its reference's, n label tokens (at least 1); u = c - rho_c,
 * v = r - rho_r; sp(x) = log(1 + e^x), s(x) = 1 / (1 + e^-x). docs/DETERMINISM.md, law 5, has the
 * formulas and their order of operations. Everything is f64 and pure; nothing here rounds to the
 * loss dtype or divides. */
#ifndef TWINSTEP_MODEL_PREFERENCE_H
#define TWINSTEP_MODEL_PREFERENCE_H

#include "scenarios/config.h"

enum { PREFERENCE_CHOSEN = 0, PREFERENCE_REJECTED, PREFERENCE_SIDES };

struct preference_pair {
    double logp[PREFERENCE_SIDES];
    double reference[PREFERENCE_SIDES]; /* not read by simpo */
    uint32_t count[PREFERENCE_SIDES];   /* label tokens */
};

struct preference_value {
    double loss;
    /* d loss / d logp. That with respect to a reference is its negative; of simpo 0. */
    double slope[PREFERENCE_SIDES];
    double reward[PREFERENCE_SIDES]; /* beta (logp - reference), as the loss's loop logs it */
    double logged[PREFERENCE_SIDES]; /* what that loop logs as log-prob: a sum, or per token */
};

/* Reads config->dpo, which config_check has accepted. Infinities and NaN of the formula come out
 * as such. */
void preference_loss(const struct config *config, const struct preference_pair *pair,
                     struct preference_value *out);

#endif
