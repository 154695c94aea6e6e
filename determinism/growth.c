/* SPDX-License-Identifier: Apache-2.0
 * Fits two lines to the logarithms of a curve, and decides which of them to believe. */
#include "determinism/growth.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>

#include "base/real.h"
#include "base/sum.h"

#define GROWTH_POINTS_MAX 4096u
/* The ratio of the two sums of squares from which a law is named. It was chosen, not derived;
 * tests/determinism/test_growth.c shows what it decides on curves whose law is known. */
#define CLEARLY_BETTER 2.0

const char *growth_law_name(enum growth_law law) {
    static const char *const names[] = {"undecided", "constant", "power", "exponential"};
    return names[law];
}

struct line {
    double x[GROWTH_POINTS_MAX], y[GROWTH_POINTS_MAX];
    size_t count;
};

/* The number of points that count as independent; at least 3, so that a slope has an error. */
static double effective_points(const struct line *line, double level, double slope) {
    double squares = 0.0, products = 0.0, before = 0.0;
    const double n = (double)line->count;
    for (size_t i = 0; i < line->count; i++) {
        const double rest = line->y[i] - (level + slope * line->x[i]);
        squares = sum_chain_products_f64_f64(squares, &rest, &rest, 1);
        products = sum_chain_products_f64_f64(products, &rest, &before, 1);
        before = rest;
    }
    const double r = squares > 0.0 ? products / squares : 0.0;
    const double effective = r > 0.0 ? n * (1.0 - r) / (1.0 + r) : n;
    return effective < 3.0 ? 3.0 : effective;
}

static void fit_line(const struct line *line, double confidence, struct growth_slope *out) {
    double level, covariance[3];
    gsl_fit_linear(line->x, 1, line->y, 1, line->count, &level, &out->value, &covariance[0],
                   &covariance[1], &covariance[2], &out->squares);
    const double n = (double)line->count, effective = effective_points(line, level, out->value);
    const double error = real_sqrt_f64(covariance[2] * (n - 2.0) / (effective - 2.0));
    const double half = gsl_cdf_tdist_Qinv(0.5 * (1.0 - confidence), effective - 2.0) * error;
    out->low = out->value - half;
    out->high = out->value + half;
}

static int holds_zero(const struct growth_slope *slope) {
    return slope->low <= 0.0 && slope->high >= 0.0;
}

static enum growth_law choose(const struct growth *growth) {
    if (holds_zero(&growth->power) && holds_zero(&growth->rate)) return GROWTH_CONSTANT;
    if (growth->power.squares * CLEARLY_BETTER <= growth->rate.squares) return GROWTH_POWER;
    if (growth->rate.squares * CLEARLY_BETTER <= growth->power.squares) return GROWTH_EXPONENTIAL;
    return GROWTH_UNDECIDED;
}

size_t growth_stride(size_t count) {
    return (count + GROWTH_POINTS_MAX - 1) / GROWTH_POINTS_MAX;
}

/* Takes at most GROWTH_POINTS_MAX points: of a longer curve every second, every third, and so on.
 * The bound keeps the line on the stack. */
static enum status take_points(const double *j, const double *d, size_t count, struct line *line,
                               int logarithm) {
    const size_t stride = growth_stride(count);
    line->count = 0;
    for (size_t i = 0; i < count; i += stride) {
        if (!(d[i] > 0.0) || !real_finite_f64(d[i]) || !(j[i] >= 1.0) || !real_finite_f64(j[i]))
            FAIL(STATUS_UNTESTABLE, "growth: point %zu is (%g, %g), expected positive numbers", i,
                 j[i], d[i]);
        line->x[line->count] = logarithm ? real_log_f64(j[i]) : j[i];
        line->y[line->count++] = real_log_f64(d[i]);
    }
    return STATUS_OK;
}

enum status growth_fit(const double *j, const double *d, size_t count, double confidence,
                       struct growth *out) {
    if (!(confidence > 0.0 && confidence < 1.0))
        FAIL(STATUS_INPUT, "confidence: expected a number in (0, 1), got %g", confidence);
    if (count < GROWTH_LEAST)
        FAIL(STATUS_UNTESTABLE, "growth: %zu points, expected at least %d", count, GROWTH_LEAST);
    struct line line;
    TRY(take_points(j, d, count, &line, 1));
    fit_line(&line, confidence, &out->power);
    TRY(take_points(j, d, count, &line, 0));
    fit_line(&line, confidence, &out->rate);
    out->points = line.count;
    out->confidence = confidence;
    out->law = choose(out);
    return STATUS_OK;
}
