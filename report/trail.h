/* SPDX-License-Identifier: Apache-2.0
 * The marks of a drawing: lines, bands, dots, zeros, gaps. Private to chart.c.
 * Invariant: at most a few marks for each column of a thinned drawing. */
#ifndef TWINSTEP_REPORT_TRAIL_H
#define TWINSTEP_REPORT_TRAIL_H

#include "report/chart.h"
#include "report/scale.h"

/* Where things lie. */
struct view {
    struct scale x, y;
    double left, right, top, bottom;
    double lane; /* upper edge of the lane of zeros */
    int empty;   /* nothing to draw */
    int only_zeros;
    int thinned;
};

void trail_write_line(struct html *html, const struct chart *chart, const struct view *view,
                      const struct series *series);
void trail_write_band(struct html *html, const struct view *view, const struct band *band);
void trail_write_dots(struct html *html, const struct view *view, const struct series *series);
/* On a logarithmic axis: a bar in the lane under each run of zeros. */
void trail_write_zeros(struct html *html, const struct view *view, const struct series *series);
/* A cross above each place without a finite value. */
void trail_write_gaps(struct html *html, const struct view *view, const struct series *series);

#endif
