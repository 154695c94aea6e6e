/* SPDX-License-Identifier: Apache-2.0
 * twinstep run --ranks: processes that train one scenario together (docs/RANKS.md). Rank 0 does
 * what the command says; the others serve it, print nothing and write nothing. */
#ifndef TWINSTEP_CLI_RUN_RANKS_H
#define TWINSTEP_CLI_RUN_RANKS_H

#include "cli/verb.h"
#include "ranks/ranks.h"
#include "trainer/real_ranks.h"

/* The processes of a command, or only this one, whose group is NULL. */
struct run_ranks {
    struct ranks ranks;
    struct real_ranks *group;
};

/* Reads --ranks (`kind`) and --ranks-wait (`wait`), NULL where they were not given, and joins the
 * group. */
TWINSTEP_MUST_USE enum status run_ranks_join(struct cli *cli, const char *kind, const char *wait,
                                             struct run_ranks *out);

/* Whether this process serves another one. */
int run_ranks_serves(const struct run_ranks *ranks);

/* What a process that serves does, from here to its end. */
TWINSTEP_MUST_USE enum status run_ranks_serve(struct cli *cli, struct run_ranks *ranks,
                                              int *out_exit);

/* Rank 0, before the first update: STATUS_INPUT where the processes that were started cannot train
 * this scenario. */
TWINSTEP_MUST_USE enum status run_ranks_check(const struct run_ranks *ranks,
                                              const struct scenario *scenario);

/* Rank 0: ends the others with this exit status. */
TWINSTEP_MUST_USE enum status run_ranks_end(struct run_ranks *ranks, int code);

#endif
