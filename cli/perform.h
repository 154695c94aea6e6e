/* SPDX-License-Identifier: Apache-2.0
 * One scenario from start to verdict, as run, demo and suite do it. Prints no result. */
#ifndef TWINSTEP_CLI_PERFORM_H
#define TWINSTEP_CLI_PERFORM_H

#include "cli/verb.h"
#include "evidence/judge.h"

struct performance {
    const char *path; /* of the trace */
    int overwrite;
    int reproducible;
    const char *save[2]; /* folders for the final weights of the arms; NULL: none */
    int progress;        /* wanted, where stderr is a terminal */
};

/* Not with --quiet, and not with --json into a pipe or file. */
int progress_wanted(const struct options *options);

/* Everything of `out` lives in `arena`. On errors and interruptions PATH.part stays. */
TWINSTEP_MUST_USE enum status perform(const struct cli *cli, const struct scenario *scenario,
                                      const struct performance *how, struct arena *arena,
                                      struct judgement *out);

/* STATUS_INPUT for an unknown one. */
TWINSTEP_MUST_USE enum status check_backend(const char *backend);

/* `options` with --backend as the key, set last: the trace holds it among its overrides. */
TWINSTEP_MUST_USE enum status set_backend(const struct options *options, struct arena *arena,
                                          struct options *out);

/* The verdict and where the trace is; or one JSON object. */
void print_judgement(const struct judgement *judgement, const char *path, int json);

#endif
