/* SPDX-License-Identifier: Apache-2.0
 * One drawing: lines over updates, perhaps a band, as inline SVG with title, description, legend.
 *
 * Lines of more points than the drawing has columns are thinned to the least and largest value of
 * each column, and the page says so. Values that are not finite leave a gap with a cross above it,
 * and are named in words. Knows nothing of traces. Invariant: the size of a drawing does not grow
 * with the number of points. */
#ifndef TWINSTEP_REPORT_CHART_H
#define TWINSTEP_REPORT_CHART_H

#include <stdint.h>

#include "base/status.h"
#include "report/html.h"

#define CHART_COLUMNS 390 /* of pixels; more than two points for each are thinned */
#define CHART_SERIES_MAX 2
#define CHART_BANDS_MAX 2

/* Arms; what repeats do; a run that differs by rounding alone. */
enum chart_style { STYLE_FIRST = 0, STYLE_SECOND, STYLE_NOISE, STYLE_TWIN };

struct series {
    const char *name;
    enum chart_style style;
    const double *x, *y; /* (count); x: finite, the updates */
    uint64_t count;
};

struct band {
    const char *name;
    enum chart_style style;
    const double *x, *low, *high; /* (count); where one is NaN there is none */
    uint64_t count;
};

struct chart {
    const char *title;
    const char *about; /* one sentence under the title; "" */
    struct series series[CHART_SERIES_MAX];
    uint32_t series_count;
    struct band bands[CHART_BANDS_MAX];
    uint32_t band_count;
    int logarithmic;        /* zeros go to a lane of their own below the axis */
    int steps;              /* a value holds for its whole update */
    int from_zero;          /* a linear axis begins at 0 */
    const char *zero_floor; /* legend of the lane of zeros, where it is the floor; else NULL */
};

/* `number` makes the ids of the drawing unique in its page. */
void chart_write(struct html *html, const struct chart *chart, uint32_t number);

#endif
