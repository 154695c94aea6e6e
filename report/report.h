/* SPDX-License-Identifier: Apache-2.0
 * Writes a trace as one page that needs nothing else: markup, style and drawings stand in one file,
 * without a script.
 *
 * The page judges again from the trace, as `twinstep attribute` does, and shows nothing that the
 * trace does not hold; of a log that `twinstep import` wrote it shows what was understood. Trains
 * nothing. Invariant: the bytes depend on the image and the options alone, and every text of the
 * trace is escaped. */
#ifndef TWINSTEP_REPORT_REPORT_H
#define TWINSTEP_REPORT_REPORT_H

#include <stdio.h>

#include "determinism/trace.h"

struct report_options {
    const char *version; /* of this program */
    /* Says whether `name` is a scenario of the catalogue with exactly this text; NULL: none is. */
    int (*is_builtin)(const char *name, const char *text);
    const char *run; /* of a trace of another program: the run to show; NULL: its first */
};

/* Writes the page to `out` piece by piece, so that memory grows with the updates of the arms, not
 * with the page. STATUS_INPUT: the trace holds neither an experiment nor a log. STATUS_IO: a write
 * failed; the text does not name the file, which the caller knows. */
TWINSTEP_MUST_USE enum status report_write(const struct trace_image *image,
                                           const struct report_options *options,
                                           struct arena *arena, FILE *out);

#endif
