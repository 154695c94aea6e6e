/* SPDX-License-Identifier: Apache-2.0
 * The answer of `twinstep rollout` as text and as JSON. */
#ifndef TWINSTEP_CLI_ROLLOUT_ROLLOUT_PRINT_H
#define TWINSTEP_CLI_ROLLOUT_ROLLOUT_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "rollout/claims.h"

/* Which tables beside the verdict are printed. */
struct rollout_shown {
    int metrics; /* the figures of other projects */
    int slices;  /* by position, probability, length, batch */
};

void rollout_print(const struct rollout_judgement *judgement, const struct rollout_shown *shown,
                   FILE *out);
json_t *rollout_json(const struct rollout_judgement *judgement);

#endif
