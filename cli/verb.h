/* SPDX-License-Identifier: Apache-2.0
 * What a verb is: a name, a help text, the options it takes, and a function.
 *
 * main.c holds the table of verbs and the only exit(). A verb prints its results to stdout, returns
 * an error as a status with its text, and says through out_exit what the run means for a script.
 * Invariant: a verb that returns STATUS_OK has set *out_exit. */
#ifndef TWINSTEP_CLI_VERB_H
#define TWINSTEP_CLI_VERB_H

#include "base/arena.h"
#include "cli/options.h"
#include "scenarios/scenario.h"

enum cli_exit {
    EXIT_AS_EXPECTED = 0, /* equal, inside the floor, or the expectation is met */
    EXIT_DIFFERS = 1,     /* a difference, or the expectation is missed */
    EXIT_ERROR = 2,       /* an error in usage, in the input, or of the machine */
    EXIT_UNTESTABLE = 3,
    EXIT_INTERRUPTED = 130
};

/* What a verb tells a CI system (cli/ci.h). */
struct ci {
    struct ci_case *cases;
    size_t count, room;
    int withheld; /* --junit is a file that is read, or another output: nothing is written to it */
};

struct cli {
    struct arena arena; /* lives as long as the process */
    const struct schema *schema;
    const volatile int *interrupted; /* nonzero after SIGINT or SIGTERM */
    int argc; /* argc and argv are as the process got them; /env/volatile of a trace holds them */
    char *const *argv;
    struct ci ci;
};

struct verb {
    const char *name;
    const char *brief;     /* one line of `twinstep --help`; NULL: not listed */
    const char *arguments; /* "SCENARIO..." */
    const char *text;      /* help: text before the options, \v, text behind them */
    const struct argp_option *options;
    size_t least, most; /* the fewest and the most arguments */
    int trains;  /* a signal asks it to end in order, by cli.interrupted; other verbs a signal kills
                  */
    int streams; /* --output - is standard output, whose bytes are the file's unless it is a
                  * terminal; other verbs refuse it */
    int binary;  /* what it writes to standard output is no text */
    enum status (*run)(struct cli *cli, const struct options *options, int *out_exit);
};

extern const struct verb verb_run, verb_check, verb_demo, verb_suite, verb_attribute, verb_recover,
    verb_keys, verb_list, verb_env, verb_rerun_config, verb_lr_table, verb_lr_compare, verb_lr_fit,
    verb_lr_check, verb_doctor, verb_compare, verb_import, verb_export, verb_report, verb_replay,
    verb_bisect, verb_noise, verb_floor, verb_certify, verb_parity, verb_parity_weights,
    verb_rollout, verb_data_show, verb_pages, verb_readback, verb_resume_check, verb_ops,
    verb_ablate, verb_ablate_guard, verb_bisect_command, verb_init, verb_ranks_order,
    verb_ranks_buckets, verb_ranks_deal;

/* The table of verbs in the order of `twinstep --help`; NULL behind the last. */
const struct verb *verb_at(size_t index);

/* Parts of `twinstep --help` that its manual page shares. */
extern const char usage_about[], usage_exit[];

/* Returns the exit status that a failed status means for a script. */
int exit_of_status(enum status status);

/* Returns the one to report of two: the first of 130, 2, 3, 1, 0 that is among them. */
int exit_worst(int a, int b);

/* Prints "twinstep: error: TEXT" on stderr. A text that names its file and says "error:" itself
 * stands alone. */
void print_error(const char *text);

#endif
