/* SPDX-License-Identifier: Apache-2.0
 * Joins the processes of a command, and says in words what they cannot do. */
#include "cli/run_ranks.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/build_id.h"
#include "ranks/ranks_module.h"

#define WAIT_SECONDS 60.0 /* said by --help */

static enum status read_wait(const char *given, double *out) {
    *out = WAIT_SECONDS;
    if (given == NULL) return STATUS_OK;
    if (number_parse_real(given, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0) return STATUS_OK;
    FAIL(STATUS_INPUT, "run: --ranks-wait: expected a number of seconds above 0, got \"%s\"",
         given);
}

enum status run_ranks_join(struct cli *cli, const char *kind, const char *wait,
                           struct run_ranks *out) {
    char build[DIGEST_HEX];
    double seconds;
    out->group = NULL;
    if (kind == NULL && wait != NULL)
        FAIL(STATUS_INPUT, "run: --ranks-wait: expected with --ranks");
    if (kind == NULL) return STATUS_OK;
    if (strcmp(kind, "mpi") != 0)
        FAIL(STATUS_INPUT, "run: --ranks: expected mpi, got \"%s\"", kind);
    /* Joined in any case, so that rank 0 alone tells what cannot be read. */
    const enum status wrong = read_wait(wait, &seconds);
    if (wrong != STATUS_OK) seconds = WAIT_SECONDS;
    const enum status status = ranks_module_open(kind, seconds, &out->ranks);
    if (status != STATUS_OK) return status_prefix(status, "run: --ranks %s", kind);
    if (out->ranks.size < 2)
        FAIL(STATUS_INPUT,
             "run: --ranks mpi: expected two processes or more, got 1; start them with mpirun -n P "
             "twinstep run SCENARIO --ranks mpi, P being the scenario's parallel.ranks");
    if (wrong != STATUS_OK && out->ranks.rank == 0) return read_wait(wait, &seconds);
    TRY(build_id(build));
    return real_ranks_open(&out->ranks, build, &cli->arena, &out->group);
}

int run_ranks_serves(const struct run_ranks *ranks) {
    return ranks->group != NULL && ranks->ranks.rank != 0;
}

/* The only text of a process that serves is why it ends the job: rank 0 may be the one that does
 * not answer. */
enum status run_ranks_serve(struct cli *cli, struct run_ranks *ranks, int *out_exit) {
    const enum status status = real_ranks_serve(ranks->group, out_exit);
    cli->ci.withheld = 1; /* rank 0 writes --junit */
    if (status == STATUS_OK) return status;
    print_error(status_text());
    if (fflush(stderr) != 0) *out_exit = EXIT_ERROR;
    ranks->ranks.which->give_up(&ranks->ranks, exit_of_status(status));
    return status;
}

enum status run_ranks_check(const struct run_ranks *ranks, const struct scenario *scenario) {
    const uint64_t size = ranks->ranks.size;
    if (ranks->group == NULL) return STATUS_OK;
    for (int arm = 0; arm < 2; arm++) {
        const enum status status = real_ranks_check(ranks->group, &scenario->arms[arm].config);
        if (status != STATUS_OK)
            return status_prefix(status, "run: %s, arm %s", scenario->name,
                                 scenario->arms[arm].name);
    }
    if (scenario->arms[0].config.parallel.ranks == size ||
        scenario->arms[1].config.parallel.ranks == size)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "run: %s: parallel.ranks: expected %ju in one arm or both, the number of processes that "
         "were started, got 1 in both",
         scenario->name, (uintmax_t)size);
}

enum status run_ranks_end(struct run_ranks *ranks, int code) {
    return ranks->group == NULL ? STATUS_OK : real_ranks_end(ranks->group, code);
}
