/* SPDX-License-Identifier: Apache-2.0
 * What an experiment that did not end lacks of its arrays with a number of each update: these are
 * written some updates at a time (docs/TRACE.md), so a kill loses numbers of updates whose rows are
 * there. Reads a trace; changes nothing. */
#ifndef TWINSTEP_EVIDENCE_SERIES_SEEN_H
#define TWINSTEP_EVIDENCE_SERIES_SEEN_H

#include "determinism/trace.h"

struct series_lack {
    const char *path;     /* "steps/meant" */
    uint64_t first, last; /* the updates that the array lacks; their rows are there */
};
#define SERIES_LACKS 3 /* arrays that may lack something */

/* Stores what arrays lack, and how many do. Where a run can have no such number (its LR is not read
 * back from the weights), nothing is lacking, nor in a trace that ended, or that another program
 * wrote. Where rows cannot be read it fails as trace_rows_status does. */
TWINSTEP_MUST_USE enum status series_lacking(const struct trace_image *image,
                                             struct series_lack out[SERIES_LACKS],
                                             uint32_t *out_count);

#endif
