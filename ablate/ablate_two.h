/* SPDX-License-Identifier: Apache-2.0
 * Makes an ablation's file of two commands: options, variables and leaves of configuration files in
 * which they differ become factors, and the test arm is the second command as it was given. Runs
 * nothing. */
#ifndef TWINSTEP_ABLATE_ABLATE_TWO_H
#define TWINSTEP_ABLATE_ABLATE_TWO_H

#include "ablate/ablate_file.h"

struct ablate_two {
    const char *good, *bad; /* command lines */
    const char *name;
    const char *read[READ_KINDS]; /* NULL: not left */
    uint64_t slots;               /* 0: not given */
};

/* Splits a line into words as a POSIX shell does with quotes and backslashes, without a shell.
 * STATUS_INPUT: a character that only a shell gives a meaning to, or an open quote; `label` begins
 * the text. */
TWINSTEP_MUST_USE enum status ablate_split(const char *label, const char *line, struct arena *arena,
                                           struct ablate_words *out);

/* Writes the file's text. STATUS_INPUT: a line cannot be split, or nothing differs. */
TWINSTEP_MUST_USE enum status ablate_two_write(const struct ablate_two *two, struct arena *arena,
                                               char **out_text);

#endif
