/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a configuration, and at which key, as data. Whoever knows the file adds the
 * place. */
#ifndef TWINSTEP_SCENARIOS_FAULT_H
#define TWINSTEP_SCENARIOS_FAULT_H

#include "scenarios/config.h"
#include "base/status.h"

struct fault {
    enum status status; /* STATUS_OK: nothing is wrong */
    const char *path;
    char text[512];
};

/* Fills *fault and returns its status, for the caller to return. */
enum status fault_set(struct fault *fault, enum status status, const char *path, const char *format,
                      ...) TWINSTEP_PRINTF(4, 5);

/* Replaces every word that stands for a value of another key (auto) by that value; the help texts
 * of the schema say by which. With `warmup_given` schedule.warmup was written and must agree with
 * warmup_ratio. */
TWINSTEP_MUST_USE enum status config_derive(struct config *config, uint64_t steps, int warmup_given,
                                            struct fault *fault);

/* Gives the loop of a contract phase reduce, in front of list `update`. A loop that is written
 * stays as it is. */
void config_add_reduce(struct config *config);

/* config_validate() with the fault as data. */
TWINSTEP_MUST_USE enum status config_check(const struct config *config, uint64_t steps,
                                           struct fault *fault);

#endif
