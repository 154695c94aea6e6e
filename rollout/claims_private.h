/* SPDX-License-Identifier: Apache-2.0
 * Parts of the judgement that its files share. */
#ifndef TWINSTEP_ROLLOUT_CLAIMS_PRIVATE_H
#define TWINSTEP_ROLLOUT_CLAIMS_PRIVATE_H

#include "rollout/claims.h"

/* Mean |d| that a floor expects of tokens with the probabilities of `measure`. */
double rollout_floor_of(const struct rollout_measure *measure, const struct rollout_measure *floor);
/* Mean |d| of a slice in units of the judgement's floor; NaN without one. */
double rollout_strength(const struct rollout_judgement *judgement,
                        const struct rollout_slice *slice);

void rollout_claim_say(struct rollout_claim *claim, enum rollout_state state, const char *format,
                       ...) TWINSTEP_PRINTF(3, 4);

/* Whether far more tokens are further apart than a floor's. Comes before the claims. */
void rollout_look_at_far(struct rollout_judgement *judgement);

/* Findings from structure alone; they need no floor. */
void rollout_claim_structure(struct rollout_judgement *judgement);
/* Findings from groups; each fills its claim. */
void rollout_claim_temperature(struct rollout_judgement *judgement);
void rollout_claim_stale(struct rollout_judgement *judgement);
void rollout_claim_length(struct rollout_judgement *judgement);
void rollout_claim_experts(struct rollout_judgement *judgement);
void rollout_claim_single_tokens(struct rollout_judgement *judgement);
void rollout_claim_precision(struct rollout_judgement *judgement);

/* How much the signs of tokens agree that have the same id. */
struct rollout_signs rollout_signs_by_id(const struct rollout_traits *traits);
/* Agreement from 0 to 1 (below 0 by chance), and how many standard deviations it is from 0. */
double rollout_agreement(const struct rollout_signs *signs);
double rollout_agreement_sure(const struct rollout_signs *signs);

#endif
