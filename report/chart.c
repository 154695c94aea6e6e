/* SPDX-License-Identifier: Apache-2.0
 * Lays a drawing out and writes its frame: axes, ticks, legend and words. The lines and bands in
 * it are written by trail.c. Invariant: what a drawing shows is also said in words, so that it can
 * be read without being seen. */
#include "report/chart.h"

#include <math.h>
#include <string.h>

#include "report/trail.h"

#define WIDTH 480.0
#define TOP 16.0
#define RIGHT 468.0
#define HEIGHT 280.0
#define LANE 20.0
#define FLOOR_Y 236.0 /* the lower edge of the plot, its lane included */
#define RANGES_SAID 4 /* ranges of gaps that are named before "and more" */
#define DOTS_MOST 30  /* of more points the dots would hide the line */

static void include(double value, int logarithmic, double *least, double *most) {
    if (!isfinite(value) || (logarithmic && !(value > 0.0))) return;
    if (!(value >= *least)) *least = value;
    if (!(value <= *most)) *most = value;
}

/* What a drawing has to hold. */
struct extent {
    double least, most; /* of y; NaN when no value can be drawn */
    double first, last; /* of x */
    uint64_t points;    /* of the longest line */
    int has_zero;       /* a line has a value of 0 */
};

static struct extent extent_of(const struct chart *chart) {
    struct extent out = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, 0, 0};
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct series *series = &chart->series[s];
        for (uint64_t i = 0; i < series->count; i++) {
            include(series->y[i], chart->logarithmic, &out.least, &out.most);
            include(series->x[i], 0, &out.first, &out.last);
            if (series->y[i] == 0.0) out.has_zero = 1;
        }
        if (series->count > out.points) out.points = series->count;
    }
    for (uint32_t b = 0; b < chart->band_count; b++)
        for (uint64_t i = 0; i < chart->bands[b].count; i++) {
            include(chart->bands[b].low[i], chart->logarithmic, &out.least, &out.most);
            include(chart->bands[b].high[i], chart->logarithmic, &out.least, &out.most);
        }
    if (chart->from_zero) include(0.0, 0, &out.least, &out.most);
    return out;
}

static void lay_out(const struct chart *chart, struct view *view) {
    struct extent extent = extent_of(chart);
    memset(view, 0, sizeof *view);
    view->only_zeros = chart->logarithmic && isnan(extent.least) && extent.has_zero;
    view->empty = isnan(extent.first) || (isnan(extent.least) && !view->only_zeros);
    if (view->empty) return;
    if (view->only_zeros) extent.least = extent.most = 1.0;
    if (chart->logarithmic)
        scale_init_log(&view->y, extent.least, extent.most, 6);
    else
        scale_init_linear(&view->y, extent.least, extent.most, 6);
    scale_init_counts(&view->x, extent.first, extent.last, 7);
    view->left = 18.0 + 8.6 * (double)scale_widest(&view->y);
    view->right = RIGHT;
    view->top = TOP;
    view->bottom = chart->logarithmic ? FLOOR_Y - LANE - 12.0 : FLOOR_Y;
    view->lane = FLOOR_Y - LANE;
    view->thinned = extent.points > 2 * CHART_COLUMNS;
    scale_place_between(&view->x, view->left, RIGHT);
    scale_place_between(&view->y, view->bottom, TOP);
}

/* ---- frame ---- */

static void write_line(struct html *html, const char *kind, double x1, double y1, double x2,
                       double y2) {
    html_format(html, "<path class=\"%s\" d=\"M%f %fL%f %f\"/>", kind, x1, y1, x2, y2);
}

static void write_label(struct html *html, double x, double y, const char *anchor,
                        const char *text) {
    html_format(html, "<text x=\"%f\" y=\"%f\" text-anchor=\"%s\">%s</text>", x, y, anchor, text);
}

static void write_axes(struct html *html, const struct chart *chart, const struct view *view) {
    for (int i = 0; i < view->y.count && !view->only_zeros; i++) {
        const double y = scale_place(&view->y, view->y.tick[i]);
        write_line(html, "grid", view->left, y, view->right, y);
        write_label(html, view->left - 7.0, y + 4.5, "end", view->y.label[i]);
    }
    double free_from = view->left - 20.0;
    for (int i = 0; i < view->x.count; i++) {
        const double x = scale_place(&view->x, view->x.tick[i]);
        const double half = 4.6 * (double)strlen(view->x.label[i]);
        write_line(html, "axis", x, FLOOR_Y, x, FLOOR_Y + 4.0);
        const int at_edge = x + half > WIDTH;
        if ((at_edge ? WIDTH - 2.0 * half : x - half) < free_from) continue;
        write_label(html, at_edge ? WIDTH : x, FLOOR_Y + 19.0, at_edge ? "end" : "middle",
                    view->x.label[i]);
        free_from = x + half + 6.0;
    }
    write_line(html, "axis", view->left, FLOOR_Y, view->right, FLOOR_Y);
    write_label(html, (view->left + view->right) / 2.0, FLOOR_Y + 38.0, "middle",
                chart->across == NULL ? "update" : chart->across);
}

/* The lane where zeros lie, which a logarithmic axis cannot show. */
static void write_lane(struct html *html, const struct chart *chart, const struct view *view) {
    html_format(html, "<rect class=\"%s\" x=\"%f\" y=\"%f\" width=\"%f\" height=\"%f\"/>",
                chart->zero_floor != NULL ? "noise" : "lane", view->left, view->lane,
                view->right - view->left, LANE);
    write_label(html, view->left - 7.0, view->lane + LANE / 2.0 + 4.5, "end", "0");
}

/* ---- words ---- */

struct summary {
    double least, most, last;
    uint64_t finite, zeros, missing;
};

static struct summary summarize(const struct series *series) {
    struct summary out = {(double)NAN, (double)NAN, (double)NAN, 0, 0, 0};
    for (uint64_t i = 0; i < series->count; i++) {
        const double y = series->y[i];
        include(y, 0, &out.least, &out.most);
        if (isfinite(y)) out.last = y;
        out.finite += isfinite(y) ? 1u : 0u;
        out.zeros += y == 0.0 ? 1u : 0u;
        out.missing += isfinite(y) ? 0u : 1u;
    }
    return out;
}

static void describe_series(struct html *html, const struct series *series) {
    const struct summary summary = summarize(series);
    if (summary.finite == 0)
        html_format(html, "%s: no finite value. ", series->name);
    else
        html_format(html, "%s: least %.6g, largest %.6g, last %.6g. ", series->name, summary.least,
                    summary.most, summary.last);
}

static void write_description(struct html *html, const struct chart *chart, const struct view *view,
                              uint32_t number) {
    html_format(html,
                "<title id=\"t%u\">%s</title><desc id=\"d%u\">Updates %.0f to %.0f, %s axis. ",
                number, chart->title, number, view->x.low + 0.5, view->x.high - 0.5,
                chart->logarithmic ? "logarithmic" : "linear");
    for (uint32_t s = 0; s < chart->series_count; s++)
        describe_series(html, &chart->series[s]);
    html_raw(html, "</desc>");
}

static void write_patch(struct html *html, const char *kind, const char *style, const char *name) {
    html_format(html,
                "<span><svg class=\"key\" viewBox=\"0 0 34 10\" aria-hidden=\"true\"><rect "
                "class=\"%s %s\" x=\"1\" y=\"0.5\" width=\"32\" height=\"9\"/></svg> %s</span> ",
                kind, style, name);
}

static void write_legend(struct html *html, const struct chart *chart) {
    html_raw(html, "<p class=\"legend\">");
    for (uint32_t s = 0; s < chart->series_count; s++)
        html_format(html,
                    "<span><svg class=\"key\" viewBox=\"0 0 34 10\" aria-hidden=\"true\"><path "
                    "class=\"line %s\" d=\"M1 5H33\"/></svg> %s</span> ",
                    trail_classes[chart->series[s].style], chart->series[s].name);
    for (uint32_t b = 0; b < chart->band_count; b++)
        write_patch(html, "band", trail_classes[chart->bands[b].style], chart->bands[b].name);
    if (chart->zero_floor != NULL) write_patch(html, "noise", "", chart->zero_floor);
    html_raw(html, "</p>");
}

/* Names the updates without a finite value: "4 to 7, 9". */
static void write_ranges(struct html *html, const struct series *series) {
    int said = 0;
    for (uint64_t i = 0; i < series->count; i++) {
        if (isfinite(series->y[i])) continue;
        uint64_t end = i;
        while (end + 1 < series->count && !isfinite(series->y[end + 1]))
            end++;
        if (said == RANGES_SAID) {
            html_raw(html, ", and more");
            return;
        }
        html_format(html, "%s%.0f", said++ == 0 ? "" : ", ", series->x[i]);
        if (end > i) html_format(html, " to %.0f", series->x[end]);
        i = end;
    }
}

static void write_notes(struct html *html, const struct chart *chart, const struct view *view) {
    if (view->only_zeros)
        html_raw(html, "<p class=\"note\">Every finite value is 0: nothing lies above the "
                       "lane.</p>");
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct summary summary = summarize(&chart->series[s]);
        if (summary.missing == 0) continue;
        html_format(html, "<p class=\"note\">Gaps: %s has no finite value at update ",
                    chart->series[s].name);
        write_ranges(html, &chart->series[s]);
        html_format(html, " (%ju of %ju); a cross at the top marks each place.</p>",
                    summary.missing, chart->series[s].count);
    }
    if (view->thinned)
        html_format(html,
                    "<p class=\"note\">Thinned: each of %d columns shows the least and the largest "
                    "value of its updates.</p>",
                    CHART_COLUMNS);
}

static void write_drawing(struct html *html, const struct chart *chart, const struct view *view,
                          uint32_t number) {
    html_format(html,
                "<svg class=\"plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                "aria-labelledby=\"t%u d%u\">",
                WIDTH, HEIGHT, number, number);
    write_description(html, chart, view, number);
    for (uint32_t b = 0; b < chart->band_count; b++)
        trail_write_band(html, view, &chart->bands[b]);
    write_axes(html, chart, view);
    if (chart->logarithmic) write_lane(html, chart, view);
    for (uint32_t s = 0; s < chart->series_count; s++) {
        trail_write_line(html, chart, view, &chart->series[s]);
        if (chart->logarithmic) trail_write_zeros(html, view, &chart->series[s]);
        trail_write_gaps(html, view, &chart->series[s]);
        if (!chart->steps && chart->series[s].count <= DOTS_MOST)
            trail_write_dots(html, view, &chart->series[s]);
    }
    html_raw(html, "</svg>\n");
}

void chart_write(struct html *html, const struct chart *chart, uint32_t number) {
    struct view view;
    lay_out(chart, &view);
    html_format(html, "<figure><figcaption><h3>%s</h3>", chart->title);
    if (chart->about[0] != '\0') html_format(html, "<p>%s</p>", chart->about);
    html_raw(html, "</figcaption>\n");
    if (view.empty) {
        html_raw(html, "<p class=\"none\">Nothing to draw: no finite value was recorded.</p>");
    } else {
        write_legend(html, chart);
        write_drawing(html, chart, &view, number);
    }
    write_notes(html, chart, &view);
    html_raw(html, "</figure>\n");
}
