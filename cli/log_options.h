/* SPDX-License-Identifier: Apache-2.0
 * The options that every verb with a log takes: how to read it. */
#ifndef TWINSTEP_CLI_LOG_OPTIONS_H
#define TWINSTEP_CLI_LOG_OPTIONS_H

#include "cli/options.h"
#include "logs/import.h"

enum {
    KEY_LOG_FORMAT = KEY_OWN + 500, /* above those of the verbs */
    KEY_LOG_MAP,
    KEY_LOG_BASE,
    KEY_LOG_RUN
};

/* Rows for a verb's table. */
#define OPTIONS_LOG                                                                                \
    OPTION("format", KEY_LOG_FORMAT, "NAME",                                                       \
           "Format of the log; default: told by its content (twinstep list formats)"),             \
        OPTION("map", KEY_LOG_MAP, "OURS=THEIRS",                                                  \
               "Take column THEIRS as OURS: step, loss, lr_logged, grad_norm, ... (repeatable)"),  \
        OPTION("step-base", KEY_LOG_BASE, "N", "What the log calls the first update"),             \
        OPTION("run", KEY_LOG_RUN, "ID", "Which run of a trace; default: its first arm")

/* STATUS_INPUT says which option is wrong. Texts live in `arena`. */
TWINSTEP_MUST_USE enum status log_options_read(const struct options *options, struct arena *arena,
                                               struct log_options *out);

/* STATUS_INPUT when `output` (NULL: none) is a file that is read as, or for, the log `path`. */
TWINSTEP_MUST_USE enum status log_options_apart(const char *output, const char *path,
                                                struct arena *arena);

#endif
