/* SPDX-License-Identifier: Apache-2.0
 * Options that ablate and bisect-command share: how runs are started and shared. */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_ASKED_H
#define TWINSTEP_CLI_ABLATE_ABLATE_ASKED_H

#include "cli/ablate/ablate_runner.h"

enum {
    ABLATE_KEY_DRY_RUN = KEY_OWN,
    ABLATE_KEY_SLOTS,
    ABLATE_KEY_EXECUTOR,
    ABLATE_KEY_TAKE_OVER,
    ABLATE_KEY_OWN /* the first that a verb has alone */
};

#define ABLATE_OPTIONS                                                                             \
    OPTION("slots", ABLATE_KEY_SLOTS, "N", "Runs at a time, instead of the file's run.slots"),     \
        OPTION("executor", ABLATE_KEY_EXECUTOR, "COMMAND",                                         \
               "Start runs by this command; {command} in it is the run as a line that one shell "  \
               "reads: 'ssh node {command}', 'srun -N1 --gpus=1 sh -c {command}'"),                \
        OPTION(                                                                                    \
            "take-over", ABLATE_KEY_TAKE_OVER, "HOST",                                             \
            "Run what workers of that machine had begun by now: say so only when they are gone")

/* Puts --slots into the file. STATUS_INPUT: more than its devices. */
TWINSTEP_MUST_USE enum status ablate_asked_slots(const struct options *options,
                                                 struct ablate_file *file);
/* Refuses --json where the folder's name could not stand in JSON, before anything is run. */
TWINSTEP_MUST_USE enum status ablate_asked_json(const struct options *options,
                                                const struct ablate_plan *plan, const char *output);
/* Reads --executor, before a folder is made. STATUS_INPUT: it has no {command}, or
 * no program before it. */
TWINSTEP_MUST_USE enum status ablate_asked_executor(const struct options *options,
                                                    struct arena *arena, struct ablate_words *out);
/* Refuses an executor whose program is not there, before a folder is made. STATUS_INPUT. */
TWINSTEP_MUST_USE enum status ablate_check_executor(const struct ablate_words *executor,
                                                    struct arena *arena);
/* Runs in `folder` what `running` wants, of which want, file, plan and executor are set: obeys
 * --take-over, and says how many claims that is, and --quiet. */
TWINSTEP_MUST_USE enum status ablate_asked_run(struct cli *cli, const struct options *options,
                                               struct ablate_folder *folder,
                                               struct ablate_running *running);

#endif
