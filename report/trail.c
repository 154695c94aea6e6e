/* SPDX-License-Identifier: Apache-2.0
 * Walks the points of a line or a band in order and writes them as path data. Every path begins
 * with M0 0, which draws nothing, so that one without points is valid, too. */
#include "report/trail.h"

#include <math.h>

#define FINE_FROM 100 /* a line of more points is drawn fine, so that it does not fill the plot */

const char *const trail_classes[] = {"a", "b", "n", "t"};

static void put_point(struct html *html, const char *command, double x, double y) {
    html_format(html, "%s%f %f", command, x, y);
}

static int is_drawn(const struct view *view, double y) {
    return isfinite(y) && (!view->y.logarithmic || y > 0.0);
}

static int column_of(const struct view *view, double x) {
    const double share = (scale_place(&view->x, x) - view->left) / (view->right - view->left);
    const int column = (int)(share * CHART_COLUMNS);
    return column < CHART_COLUMNS ? column : CHART_COLUMNS - 1;
}

static double column_place(const struct view *view, int column) {
    return view->left + ((double)column + 0.5) * (view->right - view->left) / CHART_COLUMNS;
}

/* The end of the points from `i` on that lie in the same column. */
static uint64_t column_end(const struct view *view, const double *x, uint64_t count, uint64_t i) {
    const int column = column_of(view, x[i]);
    uint64_t end = i + 1;
    while (end < count && column_of(view, x[end]) == column && x[end] >= x[end - 1])
        end++;
    return end;
}

/* ---- lines ---- */

/* Draws a line from point to point or, where a value holds for its whole update, in steps. */
static void draw_points(struct html *html, const struct view *view, const struct series *series,
                        int steps) {
    int down = 0;
    for (uint64_t i = 0; i < series->count; i++) {
        if (!is_drawn(view, series->y[i])) {
            down = 0;
            continue;
        }
        if (i > 0 && series->x[i] < series->x[i - 1]) down = 0;
        put_point(html, down ? "L" : "M", scale_place(&view->x, series->x[i] - (steps ? 0.5 : 0.0)),
                  scale_place(&view->y, series->y[i]));
        if (steps) html_format(html, "H%f", scale_place(&view->x, series->x[i] + 0.5));
        down = 1;
    }
}

/* The points of a thinned line that lie in one column. */
struct column {
    double least, most, last;
    int broken; /* a value in it is not drawn */
};

static struct column read_column(const struct view *view, const double *y, uint64_t from,
                                 uint64_t end) {
    struct column out = {(double)NAN, (double)NAN, (double)NAN, 0};
    for (uint64_t i = from; i < end; i++) {
        if (!is_drawn(view, y[i])) {
            out.broken = 1;
            continue;
        }
        if (!(y[i] >= out.least)) out.least = y[i];
        if (!(y[i] <= out.most)) out.most = y[i];
        out.last = y[i];
    }
    return out;
}

static void draw_thinned(struct html *html, const struct view *view, const struct series *series) {
    int down = 0;
    for (uint64_t i = 0, end; i < series->count; i = end) {
        end = column_end(view, series->x, series->count, i);
        const struct column column = read_column(view, series->y, i, end);
        if (i > 0 && series->x[i] < series->x[i - 1]) down = 0;
        if (isnan(column.least)) {
            down = 0;
            continue;
        }
        const double x = column_place(view, column_of(view, series->x[i]));
        const double low = scale_place(&view->y, column.least);
        const double high = scale_place(&view->y, column.most);
        put_point(html, down ? "L" : "M", x, low);
        html_format(html, "V%fV%f",
                    low - high < 0.1 ? low - 0.1 : high, /* a line of no length would not show */
                    scale_place(&view->y, column.last));
        down = !column.broken;
    }
}

void trail_write_line(struct html *html, const struct chart *chart, const struct view *view,
                      const struct series *series) {
    html_format(html, "<path class=\"line %s%s\" d=\"M0 0", trail_classes[series->style],
                view->thinned               ? " thin"
                : series->count > FINE_FROM ? " fine"
                                            : "");
    if (view->thinned)
        draw_thinned(html, view, series);
    else
        draw_points(html, view, series, chart->steps);
    html_raw(html, "\"/>");
}

/* ---- bands ---- */

static int has_band(const struct band *band, uint64_t i) {
    return isfinite(band->high[i]) && isfinite(band->low[i]);
}

/* The least lower or the largest upper edge of the points of one column. */
static double edge_of(const struct band *band, uint64_t from, uint64_t end, int upper) {
    double edge = upper ? band->high[from] : band->low[from];
    for (uint64_t i = from + 1; i < end && has_band(band, i); i++) {
        if (upper && band->high[i] > edge) edge = band->high[i];
        if (!upper && band->low[i] < edge) edge = band->low[i];
    }
    return edge;
}

/* Draws one edge of a piece without gaps: the upper one forwards, the lower one back, so that the
 * two close the piece. */
static void draw_edge(struct html *html, const struct view *view, const struct band *band,
                      uint64_t from, uint64_t end, int upper) {
    uint64_t i = upper ? from : end;
    while (upper ? i < end : i > from) {
        uint64_t first = upper ? i : i - 1, stop = upper ? i + 1 : i;
        if (view->thinned && upper) stop = column_end(view, band->x, end, first);
        while (view->thinned && !upper && first > from &&
               column_of(view, band->x[first - 1]) == column_of(view, band->x[stop - 1]))
            first--;
        const double y = scale_place(&view->y, edge_of(band, first, stop, upper));
        const double left = scale_place(&view->x, band->x[first] - 0.5);
        const double right = scale_place(&view->x, band->x[stop - 1] + 0.5);
        put_point(html, upper && first == from ? "M" : "L", upper ? left : right, y);
        html_format(html, "H%f", upper ? right : left);
        i = upper ? stop : first;
    }
}

void trail_write_band(struct html *html, const struct view *view, const struct band *band) {
    html_format(html, "<path class=\"band %s\" d=\"M0 0", trail_classes[band->style]);
    for (uint64_t i = 0; i < band->count; i++) {
        uint64_t end = i;
        while (end < band->count && has_band(band, end))
            end++;
        if (end > i) {
            draw_edge(html, view, band, i, end, 1);
            draw_edge(html, view, band, i, end, 0);
            html_raw(html, "Z");
            i = end;
        }
    }
    html_raw(html, "\"/>");
}

/* ---- marks ---- */

void trail_write_dots(struct html *html, const struct view *view, const struct series *series) {
    for (uint64_t i = 0; i < series->count; i++) {
        if (!is_drawn(view, series->y[i])) continue;
        const double x = scale_place(&view->x, series->x[i]);
        const double y = scale_place(&view->y, series->y[i]);
        if (series->style == STYLE_SECOND)
            html_format(html, "<path class=\"dot b\" d=\"M%f %fh8v8h-8z\"/>", x - 4.0, y - 4.0);
        else
            html_format(html, "<circle class=\"dot %s\" r=\"3.2\" cx=\"%f\" cy=\"%f\"/>",
                        trail_classes[series->style], x, y);
    }
}

void trail_write_zeros(struct html *html, const struct view *view, const struct series *series) {
    double end = view->left;
    html_format(html, "<path class=\"zero %s\" d=\"M0 0", trail_classes[series->style]);
    for (uint64_t i = 0; i < series->count; i++) {
        if (series->y[i] != 0.0) continue;
        uint64_t last = i;
        while (last + 1 < series->count && series->y[last + 1] == 0.0)
            last++;
        double from = scale_place(&view->x, series->x[i] - 0.4);
        double to = scale_place(&view->x, series->x[last] + 0.4);
        i = last;
        if (to - from < 1.0) to = from + 1.0;
        if (from < end) from = end; /* marks that would touch become one */
        if (to <= from) continue;
        put_point(html, "M", from, view->lane + 10.0);
        html_format(html, "H%f", to);
        end = to;
    }
    html_raw(html, "\"/>");
}

void trail_write_gaps(struct html *html, const struct view *view, const struct series *series) {
    const double y = view->top + (series->style == STYLE_SECOND ? 13.0 : 3.0);
    double end = -10.0;
    html_format(html, "<path class=\"cross %s\" d=\"M0 0", trail_classes[series->style]);
    for (uint64_t i = 0; i < series->count; i++) {
        const double x = scale_place(&view->x, series->x[i]);
        if (isfinite(series->y[i]) || x < end) continue;
        put_point(html, "M", x - 3.0, y - 3.0);
        html_raw(html, "l6 6m-6 0l6 -6");
        end = x + 7.0;
    }
    html_raw(html, "\"/>");
}
