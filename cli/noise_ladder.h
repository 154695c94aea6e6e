/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --ops`: the ladder of operations, measured and printed. */
#ifndef TWINSTEP_CLI_NOISE_LADDER_H
#define TWINSTEP_CLI_NOISE_LADDER_H

#include "cli/verb.h"
#include "scenarios/config.h"

struct noise_ladder {
    struct cli *cli;
    const char (*modes)[CONFIG_NAME_SIZE];
    uint32_t mode_count;
    const char (*dtypes)[CONFIG_NAME_SIZE];
    uint32_t dtype_count;
    const struct config *config; /* whose numerics.backend is measured */
    int threads, json;
};

TWINSTEP_MUST_USE enum status noise_ladder_run(const struct noise_ladder *ladder, int *out_exit);

#endif
