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
    EXIT_AS_EXPECTED = 0, /* equal, inside the floor, expectation met */
    EXIT_DIFFERS = 1,     /* or the expectation was missed */
    EXIT_ERROR = 2,       /* usage, input, machine */
    EXIT_UNTESTABLE = 3,
    EXIT_INTERRUPTED = 130
};

struct cli {
    struct arena arena; /* lives as long as the process */
    const struct schema *schema;
    const volatile int *interrupted; /* nonzero after SIGINT or SIGTERM */
    int argc;                        /* as the process got them, for /env/volatile */
    char *const *argv;
};

struct verb {
    const char *name;
    const char *brief;     /* one line of `twinstep --help`; NULL: not listed */
    const char *arguments; /* "SCENARIO..." */
    const char *text;      /* help: text before the options, \v, text behind them */
    const struct argp_option *options;
    size_t least, most; /* arguments */
    int trains;         /* a signal ends it in order: cli.interrupted */
    int streams;        /* --output - is standard output; of no other verb */
    enum status (*run)(struct cli *cli, const struct options *options, int *out_exit);
};

extern const struct verb verb_run, verb_check, verb_demo, verb_suite, verb_attribute, verb_recover,
    verb_keys, verb_list, verb_env, verb_rerun_config, verb_lr_table, verb_lr_compare, verb_lr_fit,
    verb_lr_check, verb_doctor, verb_compare, verb_import, verb_export, verb_report, verb_replay,
    verb_bisect, verb_noise, verb_certify, verb_parity, verb_parity_weights, verb_data_show,
    verb_pages;

/* The table of verbs in the order of `twinstep --help`; NULL behind the last. */
const struct verb *verb_at(size_t index);

/* Parts of `twinstep --help` that its manual page shares. */
extern const char usage_about[], usage_exit[];

/* What a failed status means for a script. */
int exit_of_status(enum status status);

/* The one to report of several: 130, 2, 3, 1, 0. */
int exit_worst(int a, int b);

/* "twinstep: error: TEXT" on stderr; a text that names its file and says "error:" stands alone. */
void print_error(const char *text);

#endif
