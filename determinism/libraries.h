/* SPDX-License-Identifier: Apache-2.0
 * The libraries behind the evidence: set up once per process, and their versions for the record.
 *
 * The one place besides statistics.c and the trace files that includes GSL and HDF5, so that the
 * command line need not. */
#ifndef TWINSTEP_DETERMINISM_LIBRARIES_H
#define TWINSTEP_DETERMINISM_LIBRARIES_H

#include <stddef.h>

/* GSL's default handler aborts the process; ours checks every return instead. Call it first. */
void libraries_prepare(void);

#define LIBRARIES_COUNT 3
struct library {
    const char *name; /* "HDF5", "GSL", "nettle" */
    char version[32]; /* of the library that was loaded, not of its header */
};
void libraries_versions(struct library out[LIBRARIES_COUNT]);

#endif
