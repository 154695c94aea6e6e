/* SPDX-License-Identifier: Apache-2.0
 * The options that every verb with a log takes. They say how the log is to be read. */
#ifndef TWINSTEP_CLI_LOG_OPTIONS_H
#define TWINSTEP_CLI_LOG_OPTIONS_H

#include "cli/options.h"
#include "logs/import.h"

enum {
    KEY_LOG_FORMAT = KEY_OWN + 500, /* above the keys that the verbs use themselves */
    KEY_LOG_MAP,
    KEY_LOG_BASE,
    KEY_LOG_RUN
};

/* These rows go into a verb's option table. */
#define OPTIONS_LOG                                                                                \
    OPTION("format", KEY_LOG_FORMAT, "NAME",                                                       \
           "Format of the log; default: told by its content (twinstep list formats)"),             \
        OPTION("map", KEY_LOG_MAP, "OURS=THEIRS",                                                  \
               "Take column THEIRS as OURS: step, loss, lr_logged, grad_norm, ... (repeatable)"),  \
        OPTION("step-base", KEY_LOG_BASE, "N", "What the log calls the first update"),             \
        OPTION("run", KEY_LOG_RUN, "ID", "Which run of a trace or a database; default: the first")

/* Reads the options. STATUS_INPUT names the option that is wrong. Texts live in `arena`. */
TWINSTEP_MUST_USE enum status log_options_read(const struct options *options, struct arena *arena,
                                               struct log_options *out);
/* Takes `format`, which `option` gives, where it is not NULL. STATUS_INPUT if there is none of that
 * name. */
TWINSTEP_MUST_USE enum status log_options_format(const char *option, const char *format,
                                                 struct log_options *out);

/* STATUS_INPUT if `output` is a file that is read as the log `path` or for it (a log may be a
 * folder). NULL is no output and passes. */
TWINSTEP_MUST_USE enum status log_options_apart(const char *output, const char *path,
                                                struct arena *arena);

#endif
