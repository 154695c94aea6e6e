/* SPDX-License-Identifier: Apache-2.0
 * The models that come with twinstep and are embedded in the binary: builtin:base.
 * scenarios/models/README.md says how they were trained.
 *
 * `builtin:NAME` stands wherever a folder of a checkpoint does, and `builtin:NAME/FILE` where a
 * file of one does. */
#ifndef TWINSTEP_CHECKPOINTS_SHIPPED_H
#define TWINSTEP_CHECKPOINTS_SHIPPED_H

#include <stddef.h>

#include "base/status.h"

struct shipped_file {
    const char *path; /* "builtin:NAME/FILE" */
    const unsigned char *bytes;
    size_t length;
};

/* The build writes this table with cmake/builtin_models.cmake: each scenarios/models/NAME/FILE,
 * sorted by path. Behind the last one all members are NULL. */
extern const struct shipped_file shipped_files[];

/* Whether a path names something embedded: it begins with "builtin:". */
int shipped_is(const char *path);

/* Checks that a file has the SHA-256 that is recorded for its path. STATUS_INTERNAL. */
TWINSTEP_MUST_USE enum status shipped_check(const struct shipped_file *file);

/* Finds a file, or with the path of a folder any of its files. STATUS_INPUT, with the models that
 * there are; STATUS_INTERNAL if its bytes are not those that were trained. */
TWINSTEP_MUST_USE enum status shipped_find(const char *path, const struct shipped_file **out);

#endif
