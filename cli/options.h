/* SPDX-License-Identifier: Apache-2.0
 * Command-line options, read by argp. Every option is one row below; a verb lists the rows that it
 * takes.
 *
 * argp accepts any unique beginning of a long option. Here options are written in full, because a
 * script must not change its meaning when a later version adds an option; so the words are checked
 * before argp sees them. */
#ifndef TWINSTEP_CLI_OPTIONS_H
#define TWINSTEP_CLI_OPTIONS_H

#include <argp.h>
#include <stddef.h>

#include "base/arena.h"

struct verb;

/* An option that only one verb has: its key, and its value or NULL. */
struct option_given {
    int key;
    const char *value;
    size_t before; /* how many arguments stood before it on the command line */
};

struct options {
    const char **arguments;
    size_t argument_count;
    const char **sets; /* each "key=value" */
    size_t set_count;
    const char *output, *backend, *junit, *keep, *trusted; /* NULL: not given */
    int overwrite, reproducible, json, markdown, quiet, github, allow_modules;
    struct option_given *given; /* keys from KEY_OWN on, in the order of the command line */
    size_t given_count;
    int help; /* --help was given, and nothing else was looked at */
};

enum option_key {
    KEY_HELP = 'h',
    KEY_OUTPUT = 'o',
    KEY_SET = 256,
    KEY_BACKEND,
    KEY_REPRODUCIBLE,
    KEY_OVERWRITE,
    KEY_JSON,
    KEY_MARKDOWN,
    KEY_QUIET,
    KEY_JUNIT,
    KEY_GITHUB,
    KEY_KEEP,
    KEY_ALLOW_MODULES,
    KEY_TRUSTED_MODULES,
    KEY_OWN = 1024,    /* a verb's own options are KEY_OWN + 0, 1, ...: options_value */
    KEY_OWN_END = 2048 /* argp's own keys, such as ARGP_KEY_END, lie far above */
};

#define OPTION(name, key, value, help)                                                             \
    { name, key, value, 0, help, 0 }
#define OPTION_OUTPUT(help) OPTION("output", KEY_OUTPUT, "FILE", help)
#define OPTION_SET                                                                                 \
    OPTION(                                                                                        \
        "set", KEY_SET, "KEY=VALUE",                                                               \
        "Change one key of the scenario, e.g. common.optimizer.lr=1e-6 or steps=3 (repeatable)")
#define OPTION_BACKEND OPTION("backend", KEY_BACKEND, "NAME", "Where to train: cpu (default), cuda")
#define OPTION_REPRODUCIBLE                                                                        \
    OPTION("reproducible", KEY_REPRODUCIBLE, NULL,                                                 \
           "Leave host, date and command line out, so that equal runs write equal bytes")
#define OPTION_OVERWRITE(help) OPTION("overwrite", KEY_OVERWRITE, NULL, help)
#define OPTION_JSON OPTION("json", KEY_JSON, NULL, "Print the results as JSON")
#define OPTION_QUIET OPTION("quiet", KEY_QUIET, NULL, "Show no progress")
#define OPTIONS_END                                                                                \
    OPTION("help", KEY_HELP, NULL, "Show this text"), {                                            \
        NULL, 0, NULL, 0, NULL, 0                                                                  \
    }

/* Reads the words behind argv[0]. STATUS_INPUT: an unknown or shortened option, a missing or
 * unwanted value, a wrong number of arguments. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status options_read(const struct verb *verb, int argc, char **argv,
                                           struct arena *arena, struct options *out);

/* Returns the last value that was given for an option of a verb's own, or NULL if it was not given.
 * Whether an option without a value was given is what options_given() says. */
const char *options_value(const struct options *options, int key);
int options_given(const struct options *options, int key);

/* Reads of words that options_read refused only what a CI system is told by (--junit, --github,
 * --json); all other words and values become arguments, as any of them may name a file. */
TWINSTEP_MUST_USE enum status options_for_ci(const struct verb *verb, int argc, char **argv,
                                             struct arena *arena, struct options *out);
/* How many words the option at argv[i] takes, itself and perhaps its value, and its key; 1 and key
 * 0 for what is no option. The words were read by options_read before. */
int options_span(const struct verb *verb, int argc, char *const *argv, int i, int *out_key);

/* Copies `options` with KEY=VALUE as the last --set, so that a trace holds it among its overrides.
 * With `value` NULL nothing is added. */
TWINSTEP_MUST_USE enum status options_with(const struct options *options, struct arena *arena,
                                           const char *key, const char *value, struct options *out);

void options_help(const struct verb *verb, FILE *out);

#endif
