/* SPDX-License-Identifier: Apache-2.0
 * A trace as one page that needs nothing else: markup, style and drawings in one file, no script.
 *
 * Judges again from the trace, as `twinstep attribute` does, and shows nothing that the trace does
 * not hold; a log that `twinstep import` wrote shows what it has. Trains nothing.
 * Invariant: the bytes depend on the image and the options alone; every text of the trace is
 * escaped. */
#ifndef TWINSTEP_REPORT_REPORT_H
#define TWINSTEP_REPORT_REPORT_H

#include <stdio.h>

#include "determinism/trace.h"

struct report_options {
    const char *version; /* of this program */
    /* Whether NAME is a scenario of the catalogue with exactly this text; NULL: none is. */
    int (*is_builtin)(const char *name, const char *text);
};

/* Writes the page as it goes; memory grows with the updates of the arms, not with the page.
 * STATUS_INPUT: the trace holds neither an experiment nor a log. STATUS_IO: a write failed; the
 * text does not name the file. */
TWINSTEP_MUST_USE enum status report_write(const struct trace_image *image,
                                           const struct report_options *options,
                                           struct arena *arena, FILE *out);

#endif
