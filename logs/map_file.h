/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a file without a copy of it: the file is mapped, and a pipe goes to a temporary file
 * first. For logs/, rollout/ and dumps/. A file that another program cuts short while it is mapped
 * ends the process. */
#ifndef TWINSTEP_LOGS_MAP_FILE_H
#define TWINSTEP_LOGS_MAP_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

struct log_mapping {
    const unsigned char *bytes; /* NULL for an empty file */
    size_t length;
    int descriptor;
    FILE *spool;     /* the temporary copy of a pipe; NULL for a file */
    size_t released; /* bytes before this offset were given back to the system */
};

/* Maps a file; "-" is standard input. STATUS_IO names the path. */
TWINSTEP_MUST_USE enum status log_map(const char *path, struct log_mapping *out);
/* Opens a temporary file that is gone when it is closed; what was written to it is mapped by
 * log_map_spool, which closes it when it fails. `name` is for errors. */
TWINSTEP_MUST_USE enum status log_spool_open(const char *name, FILE **out);
TWINSTEP_MUST_USE enum status log_map_spool(FILE *spool, const char *name, struct log_mapping *out);
void log_spool_close(FILE *spool);
/* Gives the memory before `offset` back to the system. The bytes stay readable. */
void log_map_release(struct log_mapping *mapping, size_t offset);
void log_unmap(struct log_mapping *mapping);

#endif
