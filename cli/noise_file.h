/* SPDX-License-Identifier: Apache-2.0
 * From what `twinstep noise` measured to a floor file. The file is that of the report's first case;
 * the strata are those of all cases. */
#ifndef TWINSTEP_CLI_NOISE_FILE_H
#define TWINSTEP_CLI_NOISE_FILE_H

#include "cli/noise_report.h"
#include "cli/verb.h"
#include "determinism/floor_file.h"

struct noise_writing {
    struct cli *cli;
    const struct noise_report *report;
    const struct scenario *scenario;
    const struct config *config; /* of the first case, a free order seed left free */
    uint64_t pairs;
    double *columns[FLOOR_COLUMNS];
    int overwrite, reproducible;
};

/* Everything but the file lives in the process' arena. */
TWINSTEP_MUST_USE enum status noise_file_fill(const struct noise_writing *writing,
                                              struct floor_file *out);
TWINSTEP_MUST_USE enum status noise_file_write(const char *path,
                                               const struct noise_writing *writing);

#endif
