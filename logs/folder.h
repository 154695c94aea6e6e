/* SPDX-License-Identifier: Apache-2.0
 * Which files a path means: itself, or those of a folder that hold a log. Private to logs/. */
#ifndef TWINSTEP_LOGS_FOLDER_H
#define TWINSTEP_LOGS_FOLDER_H

#include "base/arena.h"

struct log_files {
    const char **paths;
    size_t count; /* at least 1 */
};

/* A folder: its trainer_state.json; that of its latest checkpoint-N; its TensorBoard event files;
 * its metrics_step*.json; its metrics.csv; by that order, names sorted by byte. Any other folder is
 * STATUS_INPUT. */
TWINSTEP_MUST_USE enum status log_files_of(const char *path, struct arena *arena,
                                           struct log_files *out);

#endif
