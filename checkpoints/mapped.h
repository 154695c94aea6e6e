/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a regular file, mapped read-only: nothing is copied, and the pages are the kernel's.
 * Private to checkpoints/.
 *
 * A file that another program cuts short while it is mapped ends the process. A file that is
 * replaced by renaming, as this program's are, stays readable. */
#ifndef TWINSTEP_CHECKPOINTS_MAPPED_H
#define TWINSTEP_CHECKPOINTS_MAPPED_H

#include <stddef.h>

#include "base/status.h"

struct mapped {
    const unsigned char *bytes; /* NULL for an empty file */
    size_t length;
    int shipped; /* the bytes are embedded in the binary (shipped.h) */
};

/* Maps a file, or finds one that is embedded. STATUS_IO, with the path, if it is not there or
 * cannot be read. STATUS_INPUT if it is a directory, a pipe or a device; opening a pipe to which
 * nobody writes does not wait. */
TWINSTEP_MUST_USE enum status mapped_open(const char *path, struct mapped *out);
void mapped_close(struct mapped *mapped);

#endif
