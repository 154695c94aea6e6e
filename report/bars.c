/* SPDX-License-Identifier: Apache-2.0
 * Draws bars as SVG that stretches to its table cell. Its own units are 1000 across and 10 down, so
 * that a coordinate in tenths is finer than any screen. */
#include "report/bars.h"

#include <math.h>

#include "base/real.h"

#define WIDTH 1000.0
#define WHISKER_LEAST 4.0 /* in a narrower one the two caps would lie on each other */

void bars_stretch(struct bars *bars, double value) {
    if (!isfinite(value)) return;
    if (value < bars->low) bars->low = value;
    if (value > bars->high) bars->high = value;
}

void bars_stretch_parts(struct bars *bars, const double *parts, uint32_t count) {
    double below = 0.0, above = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(parts[i])) continue;
        if (parts[i] < 0.0)
            below += parts[i];
        else
            above += parts[i];
    }
    bars_stretch(bars, below);
    bars_stretch(bars, above);
}

static double place_of(const struct bars *bars, double value) {
    return (value - bars->low) / (bars->high - bars->low) * WIDTH;
}

static void begin(struct html *html) {
    html_raw(html, "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" "
                   "aria-hidden=\"true\">");
}

/* Ends a bar with an upright line at 0. */
static void finish(struct html *html, const struct bars *bars) {
    html_format(html, "<line y1=\"0\" y2=\"10\" x1=\"%f\" x2=\"%f\"/></svg>", place_of(bars, 0.0),
                place_of(bars, 0.0));
}

/* A rectangle from one value to another, of which either may be the larger. */
static void write_rect(struct html *html, const struct bars *bars, const char *kind, double from,
                       double to) {
    html_format(html, "<rect class=\"%s\" y=\"1\" height=\"8\" x=\"%f\" width=\"%f\"/>", kind,
                place_of(bars, from < to ? from : to),
                real_abs_f64(place_of(bars, to) - place_of(bars, from)));
}

/* Draws the whisker twice: first wider and in the colour of the page, so that it shows on the bar,
 * too. */
static void write_whisker(struct html *html, const struct bars *bars, double low, double high) {
    const double from = place_of(bars, low), to = place_of(bars, high);
    for (int i = 0; i < 2; i++)
        html_format(html, "<path class=\"%s\" d=\"M%f 2.5V7.5M%f 5H%fM%f 2.5V7.5\"/>",
                    i == 0 ? "halo" : "whisker", from, from, to, to);
}

void bars_write(struct html *html, const struct bars *bars, double value, double low, double high) {
    begin(html);
    if (isfinite(value)) write_rect(html, bars, value < 0.0 ? "m" : "p", 0.0, value);
    if (isfinite(low) && isfinite(high) &&
        place_of(bars, high) - place_of(bars, low) >= WHISKER_LEAST)
        write_whisker(html, bars, low, high);
    finish(html, bars);
}

void bars_write_parts(struct html *html, const struct bars *bars, const double *parts,
                      uint32_t count) {
    double below = 0.0, above = 0.0;
    begin(html);
    for (uint32_t i = 0; i < count; i++) {
        char kind[16];
        if (!isfinite(parts[i])) continue;
        double *end = parts[i] < 0.0 ? &below : &above;
        snprintf(kind, sizeof kind, "k k%u", i % BARS_PARTS_MAX);
        write_rect(html, bars, kind, *end, *end + parts[i]);
        *end += parts[i];
    }
    finish(html, bars);
}

void bars_write_key(struct html *html, uint32_t i) {
    html_format(
        html,
        "<svg class=\"swatch\" viewBox=\"0 0 10 8\" aria-hidden=\"true\"><rect class=\"k%u\" "
        "width=\"10\" height=\"8\"/></svg> ",
        i % BARS_PARTS_MAX);
}
