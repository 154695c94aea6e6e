/* SPDX-License-Identifier: Apache-2.0
 * The marks of a drawing: lines, bands, dots, zeros and gaps. Private to chart.c.
 * Invariant: a thinned drawing has at most a few marks for each of its columns. */
#ifndef TWINSTEP_REPORT_TRAIL_H
#define TWINSTEP_REPORT_TRAIL_H

#include "report/chart.h"
#include "report/scale.h"

/* Where the parts of a drawing lie. */
struct view {
    struct scale x, y;
    double left, right, top, bottom;
    double lane;    /* the upper edge of the lane of zeros */
    int empty;      /* there is nothing to draw */
    int only_zeros; /* every finite value is 0, so a logarithmic axis has no ticks */
    int thinned;    /* there are more points than columns can show */
};

extern const char *const trail_classes[]; /* of the style sheet, by enum chart_style */

void trail_write_line(struct html *html, const struct chart *chart, const struct view *view,
                      const struct series *series);
void trail_write_band(struct html *html, const struct view *view, const struct band *band);
void trail_write_dots(struct html *html, const struct view *view, const struct series *series);
/* Draws a bar in the lane for each run of zeros, where the axis is logarithmic. */
void trail_write_zeros(struct html *html, const struct view *view, const struct series *series);
/* Draws a cross at the top of each place without a finite value. */
void trail_write_gaps(struct html *html, const struct view *view, const struct series *series);

#endif
