/* SPDX-License-Identifier: Apache-2.0
 * Sets up HDF5, GSL and nettle and reads their versions. It knows nothing of what they are used
 * for. */
#include "determinism/libraries.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_version.h>
#include <hdf5.h>
#include <nettle/version.h>
#include <stdio.h>
#include <string.h>

void libraries_prepare(void) {
    gsl_set_error_handler_off();
    H5dont_atexit(); /* must come before any other HDF5 call; trace_hdf5.c says why */
}

void libraries_versions(struct library out[LIBRARIES_COUNT]) {
    unsigned part[3] = {0, 0, 0};
    memset(out, 0, LIBRARIES_COUNT * sizeof *out);
    out[0].name = "HDF5";
    if (H5get_libversion(&part[0], &part[1], &part[2]) >= 0)
        snprintf(out[0].version, sizeof out[0].version, "%u.%u.%u", part[0], part[1], part[2]);
    out[1].name = "GSL";
    snprintf(out[1].version, sizeof out[1].version, "%s", gsl_version);
    out[2].name = "nettle";
    snprintf(out[2].version, sizeof out[2].version, "%d.%d", nettle_version_major(),
             nettle_version_minor());
}
