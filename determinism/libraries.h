/* SPDX-License-Identifier: Apache-2.0
 * The libraries behind the evidence: set up once per process, and asked for their versions.
 *
 * Besides statistics.c and the trace files this is the one place that includes GSL and HDF5, so
 * that the command line need not. */
#ifndef TWINSTEP_DETERMINISM_LIBRARIES_H
#define TWINSTEP_DETERMINISM_LIBRARIES_H

#include <stddef.h>

/* To be called first. GSL's default error handler aborts the process; this switches it off, and
 * every return value is checked instead. */
void libraries_prepare(void);

#define LIBRARIES_COUNT 3
struct library {
    const char *name; /* "HDF5", "GSL", "nettle" */
    char version[32]; /* of the library that was loaded, not of the header */
};
void libraries_versions(struct library out[LIBRARIES_COUNT]);

#endif
