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

enum fit_totals {
    FIT_TOTAL_FREE = 0, /* any, of as many rows as one free number needs */
    FIT_TOTAL_SAID,     /* those that somebody said */
    FIT_TOTAL_OF_ROW,   /* these, of one row: others vouch for it */
    FIT_TOTAL_OF_ROWS   /* any that two rows fix: others vouch for it */
};

/* Finds the total with which the model, as it is set, logs the most points from `from` on, in the
 * shift and scale of `segment` (forensics/fit_totals.c). */
void fit_find_total(struct fit_search *search, struct fit_model *model,
                    const struct fit_segment *segment, size_t from, enum fit_totals how,
                    struct fit_other_total *best);

#endif
