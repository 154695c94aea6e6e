/* SPDX-License-Identifier: Apache-2.0
 * What rewards say beside two log-probs a token. They judge nothing. */
#ifndef TWINSTEP_ROLLOUT_REWARDS_H
#define TWINSTEP_ROLLOUT_REWARDS_H

#include "rollout/rollout_measure.h"

/* The words of the slices by reward. */
extern const char *const rollout_reward_slices[SLICE_REWARDS];

#define REWARDS_CORRELATED 8 /* sequences that a correlation takes at least */

/* Figures over the sequences that have a reward. NaN: they do not have it. */
struct rollout_rewards {
    double mean;         /* as the engine sampled */
    double trainer_mean; /* sum(w r) / sum(w), w = exp(sum d): as the trainer would sample */
    double difference;   /* trainer_mean - mean */
    double error;        /* its standard error, to first order; of two sequences or more */
    double ess;          /* effective sample size of these w, as a share */
    double correlation;  /* of reward and mean d */
};

/* Returns 0 where no sequence has a reward. */
int rollout_rewards_of(const struct rollout_measure *measure, struct rollout_rewards *out);

#endif
