/* SPDX-License-Identifier: Apache-2.0
 * A drawing: lines over updates, perhaps with bands, as inline SVG with a title, a description and
 * a legend.
 *
 * A line of more points than the drawing has columns is thinned to the least and the largest value
 * of each column, and the page says so. Values that are not finite leave a gap with a cross above
 * it, and are named in words. Knows nothing of traces. Invariant: the size of a drawing does not
 * grow with the number of points. */
#ifndef TWINSTEP_REPORT_CHART_H
#define TWINSTEP_REPORT_CHART_H

#include <stdint.h>

#include "base/status.h"
#include "report/html.h"

#define CHART_COLUMNS                                                                              \
    390 /* about a pixel each; a line of more than two points for each is thinned */
#define CHART_SERIES_MAX 2
#define CHART_BANDS_MAX 2

/* Who a line or band is of: the arms, the noise of repeats, a run that differs by rounding alone.
 */
enum chart_style { STYLE_FIRST = 0, STYLE_SECOND, STYLE_NOISE, STYLE_PERTURBED };

struct series {
    const char *name;
    enum chart_style style;
    const double *x, *y; /* (count) each; x is the update and finite */
    uint64_t count;
};

struct band {
    const char *name;
    enum chart_style style;
    const double *x, *low, *high; /* (count) each; where one is NaN there is no band */
    uint64_t count;
};

struct chart {
    const char *title;
    const char *about;  /* a sentence under the title, or "" */
    const char *across; /* what the x axis counts; NULL: "update" */
    struct series series[CHART_SERIES_MAX];
    uint32_t series_count;
    struct band bands[CHART_BANDS_MAX];
    uint32_t band_count;
    int logarithmic;        /* of the y axis; zeros go to a lane of their own below it */
    int steps;              /* a value holds for its whole update */
    int from_zero;          /* a linear axis begins at 0 */
    const char *zero_floor; /* the legend of the lane of zeros where it is the floor; else NULL */
};

/* Writes a drawing as a figure. `number` makes its ids unique in the page. */
void chart_write(struct html *html, const struct chart *chart, uint32_t number);

#endif
