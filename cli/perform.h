/* SPDX-License-Identifier: Apache-2.0
 * Takes one scenario from start to verdict, as run, demo and suite do it. It prints no result. */
#ifndef TWINSTEP_CLI_PERFORM_H
#define TWINSTEP_CLI_PERFORM_H

#include "cli/verb.h"
#include "evidence/judge.h"
#include "experiment/experiment.h"

/* Where a scenario is one of several that are trained at once (cli/jobs.h): who is told how far it
 * is, in the place of a progress line, and who is asked for room. */
struct performance_watch {
    void (*far)(void *context, const struct experiment_progress *now);
    enum status (*room)(void *context, const struct experiment_needs *needs);
    void *context;
};

struct performance {
    const char *path;   /* of the trace */
    const char *resume; /* the trace of an interrupted experiment; NULL: none */
    int overwrite;
    int reproducible;
    const char *save[2]; /* folders for the final weights of the arms; NULL: none */
    const char *made;    /* folder that was made for both, NULL where it was there */
    int progress;        /* wanted; shown only if stderr is a terminal */
    int unasked_room;    /* trains even where disk or memory seem too small */
    int keep;            /* keep states for a run that goes on (experiment/experiment_kept.c) */
    double keep_every;   /* seconds from one to the next at least */
    int both_arms;       /* train both arms even where one training would serve both */
    int verify;          /* with `resume`: train again whatever can be */
    struct real_ranks *ranks; /* processes that train with this one; NULL: none do */
    uint64_t cores; /* that its processes may fill together; 0 or 1: one trains at a time */
    const struct performance_watch *watch; /* NULL: it is trained alone */
};

/* Returns whether progress is wanted: not with --quiet, and not with --json into a pipe or file. */
int progress_wanted(const struct options *options);

/* Whether nothing of ours may be trained beside a scenario: bits may depend on how threads or calls
 * of a library meet in time (mode atomic, and fast through a library), and every run of a floor has
 * the same neighbours only if it has none; and of a device nobody here shares out the memory. */
int trains_alone(const struct scenario *scenario);
/* The most threads that an arm trains with. */
uint64_t trains_threads(const struct scenario *scenario);

/* Trains, records and judges. Everything in `out` lives in `arena`. After an error or an
 * interruption PATH.part stays, so that nothing recorded is lost. */
TWINSTEP_MUST_USE enum status perform(const struct cli *cli, const struct scenario *scenario,
                                      const struct performance *how, struct arena *arena,
                                      struct judgement *out);

/* STATUS_INPUT if there is no such backend. NULL passes. */
TWINSTEP_MUST_USE enum status check_backend(const char *backend);

/* Copies `options` with --backend turned into its key and set last, so that the trace holds it
 * among its overrides. */
TWINSTEP_MUST_USE enum status set_backend(const struct options *options, struct arena *arena,
                                          struct options *out);

/* Prints the verdict and where the trace is, as text or as one JSON object. */
TWINSTEP_MUST_USE enum status print_judgement(const struct judgement *judgement, const char *path,
                                              int json);

#endif
