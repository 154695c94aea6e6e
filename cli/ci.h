/* SPDX-License-Identifier: Apache-2.0
 * What a verb tells a CI system: cases with an outcome and one line each, as JUnit XML (--junit)
 * and as annotations of GitHub Actions (--github).
 *
 * A verb adds its cases while it runs; main.c publishes them when it has ended, and with them the
 * error that it ended in, so that no file of an earlier run speaks for this one. Invariant: no file
 * that was read, or that may be read by what could not be read, is replaced. */
#ifndef TWINSTEP_CLI_CI_H
#define TWINSTEP_CLI_CI_H

#include "cli/verb.h"

struct ci_case {
    const char *name;    /* what was judged: a log, a scenario, a check */
    int outcome;         /* enum cli_exit: 0 pass, 1 failure, 2 error, 3 skipped */
    const char *title;   /* a few words above an annotation: "learning rate differs" */
    const char *message; /* one line; not looked at where the outcome is 0 */
    const char *file;    /* the file that an annotation stands at; NULL: none */
    uint32_t line;       /* and its line; 0: none */
    double seconds;      /* below 0: not measured */
};

#define OPTIONS_CI                                                                                 \
    OPTION("junit", KEY_JUNIT, "FILE",                                                             \
           "Write the outcome, errors too, as JUnit XML; replaces FILE at once, never an input"),  \
        OPTION("github", KEY_GITHUB, NULL, "Print annotation lines for GitHub Actions")

/* Adds a case. Its texts are copied. STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status ci_add(struct cli *cli, const struct ci_case *add);
/* Refuses a JUnit file that is one of the arguments, in one that is a folder, the value of an
 * option or --output. STATUS_INPUT. (What a scenario names: cli/load.h.) */
TWINSTEP_MUST_USE enum status ci_check(const struct options *options);
/* Tries, before any work, whether the JUnit file could be written where it is named. STATUS_IO. */
TWINSTEP_MUST_USE enum status ci_try(const struct options *options);
/* Writes what was added, as the options say; where nothing was, one case named after the arguments,
 * with the exit status as its outcome. Annotations are left out where --json prints. After an error
 * (`code` is none of 0, 1 and 3) a file that is there is replaced only where it is called *.xml, is
 * empty or begins as XML does: no other one can be taken for an outcome, and it may be data that a
 * scenario names which was not read. STATUS_IO. */
TWINSTEP_MUST_USE enum status ci_publish(struct cli *cli, const struct options *options,
                                         const char *verb, int code);
/* Publishes that the verb ended with `failed` and the text that is stored, as one more case, and
 * returns `failed` with that text, whatever comes of the writing. */
TWINSTEP_MUST_USE enum status ci_publish_error(struct cli *cli, const struct options *options,
                                               const char *verb, enum status failed);

#endif
