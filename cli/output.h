/* SPDX-License-Identifier: Apache-2.0
 * Text files that a verb writes: whole or not at all, and never over what the verb reads.
 *
 * Written as PATH.part (or .part2, ...), then linked or renamed to PATH, so that a reader of PATH
 * sees the old bytes or the new ones, and a failed write leaves the old. What is there and is no
 * regular file (a device, a pipe, a link) is written to in place and stays. */
#ifndef TWINSTEP_CLI_OUTPUT_H
#define TWINSTEP_CLI_OUTPUT_H

#include <stdio.h>

#include "base/arena.h"

struct output {
    FILE *file;
    const char *path; /* the caller's */
    char *live;       /* NULL: in place */
    int overwrite;
    struct arena arena;
};

/* STATUS_IO: `path` is there and `overwrite` is 0, or it cannot be created. */
TWINSTEP_MUST_USE enum status output_open(const char *path, int overwrite, struct output *out);

/* Ends what output_open began. `status` is what came of the writing: unless it is STATUS_OK the
 * file is given up and `status` returned, STATUS_IO with the path before its text. */
TWINSTEP_MUST_USE enum status output_close(struct output *output, enum status status);

/* Before long work: whether output_open() would go well. Nothing is left behind; a device, a pipe
 * or a link that may be overwritten is not touched. */
TWINSTEP_MUST_USE enum status output_try(const char *path, int overwrite);

/* STATUS_INPUT when `output` is the same file as `input` ("-": standard input), under whatever
 * names. Files that are not there, and devices, are apart from all. */
TWINSTEP_MUST_USE enum status output_apart(const char *output, const char *input);

/* The same of every file that `folder` holds: those of a checkpoint, whatever they are called. */
TWINSTEP_MUST_USE enum status output_apart_folder(const char *output, const char *folder);

#endif
