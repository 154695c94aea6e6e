/* SPDX-License-Identifier: Apache-2.0
 * What the pass for segments asks of its parts. Private to forensics/fit*.c.
 *
 * Invariant: a part leaves the model set to the numbers that it found it with. */
#ifndef TWINSTEP_FORENSICS_FIT_SEGMENTS_H
#define TWINSTEP_FORENSICS_FIT_SEGMENTS_H

#include "forensics/fit_search.h"

/* Rows that another total must explain: it is one free number, as a scale is. */
#define FIT_TOTAL_ROWS 4
/* Rows that one must explain which somebody said: as many as a counter that is back at 0. */
#define FIT_SAID_ROWS 3

struct fit_other_total {
    struct fit_segment segment;
    size_t run; /* how many points it explains; 0: none was found */
};

/* Finds the total with which the model, as it is set, logs the most points from `from` on, in the
 * shift and scale of `segment` (forensics/fit_totals.c). With `said` only those are tried that
 * somebody said. */
void fit_find_total(struct fit_search *search, struct fit_model *model,
                    const struct fit_segment *segment, size_t from, int said,
                    struct fit_other_total *best);

#endif
