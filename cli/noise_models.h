/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --models`: the noise floors of a ladder of models, one line per model, mode and
 * dtype. */
#ifndef TWINSTEP_CLI_NOISE_MODELS_H
#define TWINSTEP_CLI_NOISE_MODELS_H

#include "cli/noise_case.h"
#include "cli/progress.h"
#include "cli/verb.h"

struct noise_models {
    struct cli *cli;
    const struct options *options; /* --set, --json */
    struct progress *progress;
    const char (*modes)[CONFIG_NAME_SIZE];
    uint32_t mode_count;
    const char (*dtypes)[CONFIG_NAME_SIZE];
    uint32_t dtype_count;
    uint64_t steps, threads, processors; /* threads 0: the ladder's */
    uint32_t repeats;
    /* struct noise_request.process; its context is `cli` */
    enum status (*process)(void *context, const struct config *config, uint64_t steps,
                           unsigned char *out_path, size_t size);
};

TWINSTEP_MUST_USE enum status noise_models_run(const struct noise_models *models, int *out_exit);

#endif
