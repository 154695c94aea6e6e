/* SPDX-License-Identifier: Apache-2.0
 * Text files that a verb writes. They are written whole or not at all, and never over what the verb
 * reads.
 *
 * A file is written as PATH.part (or .part2, ...), then linked or renamed to PATH, so that a reader
 * of PATH sees the old bytes or the new ones, and a failed write leaves the old ones. If PATH is no
 * regular file (a device, a pipe, a link) it is written to in place and stays. */
#ifndef TWINSTEP_CLI_OUTPUT_H
#define TWINSTEP_CLI_OUTPUT_H

#include <stdio.h>

#include "base/arena.h"

struct output {
    FILE *file;
    const char *path; /* the caller's text */
    char *live;       /* the name PATH.part; NULL: written in place */
    int overwrite;
    struct arena arena;
};

/* Opens the file. STATUS_IO: `path` exists and `overwrite` is 0, or it cannot be created. */
TWINSTEP_MUST_USE enum status output_open(const char *path, int overwrite, struct output *out);

/* Ends what output_open() began. `status` is what came of the writing: unless it is STATUS_OK the
 * file is given up and `status` is returned, a STATUS_IO with the path before its text. */
TWINSTEP_MUST_USE enum status output_close(struct output *output, enum status status);

/* Tries, before long work, whether output_open() would succeed. Nothing is left behind; a device, a
 * pipe or a link that may be overwritten is not touched. A link to nothing is refused: what it
 * names may be another output. */
TWINSTEP_MUST_USE enum status output_try(const char *path, int overwrite);

/* STATUS_INPUT if `output` is the same file as `input` ("-" is standard input), under whatever
 * names. A file that does not exist, and a device, is apart from all others. */
TWINSTEP_MUST_USE enum status output_apart(const char *output, const char *input);

/* Does the same for every file in `folder`: a checkpoint consists of all of them, whatever they are
 * called. */
TWINSTEP_MUST_USE enum status output_apart_folder(const char *output, const char *folder);

/* Whoever starts a program may have closed its standard streams. The next file that it opens, a
 * trace say, would then be number 1 or 2, and what is printed would be written over it. So each
 * gets /dev/null, for the direction in which nobody uses it: reading and writing still fail.
 * STATUS_IO. Call it before anything else. */
TWINSTEP_MUST_USE enum status output_hold_streams(void);

#endif
