/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a regular file, mapped read-only: no copy, pages are the kernel's.
 * Private to checkpoints/. A file that another program cuts short while it is mapped ends the
 * process; a file that is replaced by renaming, as ours are, stays readable. */
#ifndef TWINSTEP_CHECKPOINTS_MAPPED_H
#define TWINSTEP_CHECKPOINTS_MAPPED_H

#include <stddef.h>

#include "base/status.h"

struct mapped {
    const unsigned char *bytes; /* NULL for an empty file */
    size_t length;
};

/* STATUS_IO names the path: not there, unreadable. STATUS_INPUT: a directory, a pipe, a device;
 * opening a pipe that nobody writes does not wait. */
TWINSTEP_MUST_USE enum status mapped_open(const char *path, struct mapped *out);
void mapped_close(struct mapped *mapped);

#endif
