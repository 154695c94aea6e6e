/* SPDX-License-Identifier: Apache-2.0
 * Runs what an ablation's plan lists: claims runs, fills slots, watches commands, and keeps what
 * they left. Judging decides which stages are run (ablate/ablate_judge.h). */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_RUNNER_H
#define TWINSTEP_CLI_ABLATE_ABLATE_RUNNER_H

#include "ablate/ablate_judge.h"
#include "cli/progress.h"
#include "cli/verb.h"

#define ABLATE_COMMAND "{command}"

struct ablate_running;

/* Marks the runs that are needed, of what results show; those that are marked already stay so. */
typedef enum status ablate_want(const struct ablate_running *running,
                                const struct ablate_result *results, struct arena *arena,
                                unsigned char *wanted);
ablate_want ablate_want_stages; /* those of an ablation */

struct ablate_running {
    ablate_want *want;
    const struct ablate_file *file;
    const struct ablate_plan *plan;
    const struct ablate_folder *folder;
    const volatile int *interrupted;
    int quiet;
    /* The words that run a command elsewhere; {command} in one of them stands for the command as a
     * line for a shell. count 0: commands are run here. */
    struct ablate_words executor;
    uint32_t made; /* runs that this process made */
};

/* Runs all that is needed and not done. Returns STATUS_OK when nothing is left to do, which may be
 * because runs failed; STATUS_INTERRUPTED after a signal, with no command left behind. */
TWINSTEP_MUST_USE enum status ablate_run_all(struct ablate_running *running, struct arena *arena);

/* cmd_ablate.c. The first refuses a FILE that others may write, for who may write it may run any
 * command as us. The second fails with the command that goes on. */
TWINSTEP_MUST_USE enum status ablate_check_rights(const char *path);
TWINSTEP_MUST_USE enum status ablate_fail_interrupted(const struct cli *cli, struct arena *arena);

#endif
