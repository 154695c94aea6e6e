/* SPDX-License-Identifier: Apache-2.0
 * Whether the optimizer's groups of two checkpoints of one training hold the same settings: what a
 * rule uses and no trainer is known to move from update to update. It judges nobody. */
#ifndef TWINSTEP_READBACK_KEPT_SETTINGS_H
#define TWINSTEP_READBACK_KEPT_SETTINGS_H

#include <stddef.h>

#include "checkpoints/training_folder.h"

struct kept_settings {
    size_t held;      /* settings that both hold */
    size_t other;     /* of these, how many are another number */
    size_t scheduled; /* of these, decays that moved by as little as a schedule moves them */
    char text[600];   /* "weight_decay of group 0 was 0.1 and is 0"; "": none is another */
};

/* Compares group by group. The two have equally many groups. */
void kept_settings_compare(const struct training_folder *before,
                           const struct training_folder *after, struct kept_settings *out);

#endif
