/* SPDX-License-Identifier: Apache-2.0
 * The losses of a preference pair as functions of its four summed log-probs, with their
 * derivatives.
 *
 * c and r are log-probs of the policy for chosen and rejected, rho its reference's, n counts label
 * tokens (at least 1); u = c - rho_c, v = r - rho_r; sp(x) = log(1 + e^x), s(x) = 1 / (1 + e^-x).
 * docs/DETERMINISM.md, law 5, has the formulas, their sources and their order of operations.
 * Everything is f64 and pure. Nothing here rounds to the loss dtype or divides by the update's
 * divisor. */
#ifndef TWINSTEP_MODEL_PREFERENCE_H
#define TWINSTEP_MODEL_PREFERENCE_H

#include "scenarios/config.h"

enum { PREFERENCE_CHOSEN = 0, PREFERENCE_REJECTED, PREFERENCE_SIDES };

struct preference_pair {
    double logp[PREFERENCE_SIDES];
    double reference[PREFERENCE_SIDES]; /* simpo does not read it */
    uint32_t count[PREFERENCE_SIDES];   /* label tokens of the side */
};

struct preference_value {
    double loss;
    /* d loss / d logp. The derivative with respect to a reference is its negative; simpo has
     * none. */
    double slope[PREFERENCE_SIDES];
    /* beta (logp - reference), as the loop with this loss logs it */
    double reward[PREFERENCE_SIDES];
    /* what that loop logs as log-prob: a sum, or a mean per token */
    double logged[PREFERENCE_SIDES];
};

/* Computes the loss of config->dpo, which config_check has accepted. Where the formula gives
 * infinities or NaN, they come out. */
void preference_loss(const struct config *config, const struct preference_pair *pair,
                     struct preference_value *out);

#endif
