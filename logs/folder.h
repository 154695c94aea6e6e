/* SPDX-License-Identifier: Apache-2.0
 * Which files a path means: the path itself, or those files of a folder that hold one log. */
#ifndef TWINSTEP_LOGS_FOLDER_H
#define TWINSTEP_LOGS_FOLDER_H

#include "base/arena.h"

struct log_files {
    const char **paths;
    const char **series; /* the columns that the files hold, where each holds one; else NULL */
    size_t count;        /* at least 1 */
};

/* Lists the files that log_import of `path` would read, in order. Of a folder these are taken, in
 * this order of preference: its trainer_state.json, the one of its latest checkpoint-N, its
 * TensorBoard event files, its run file of W&B or SwanLab, the metrics of an MLflow run (meta.yaml
 * beside metrics/), its metrics_step*.json, its metrics.json, metrics.csv,
 * trainer_log.jsonl, metrics.jsonl, main.log. Names are sorted by byte. A folder with none of them
 * is STATUS_INPUT. */
TWINSTEP_MUST_USE enum status log_files_of(const char *path, struct arena *arena,
                                           struct log_files *out);

#endif
