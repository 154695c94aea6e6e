/* SPDX-License-Identifier: Apache-2.0
 * The end of a decay that is a parabola (polynomial of power 2): three rows fix it, so total and
 * floor are known before peak and warm-up are, where nobody said them and no row reaches them. And
 * the line of a decay that is one: with a total that somebody said, it fixes the floor.
 *
 * Knows no schedule by name: what is found here is a pair of numbers to try. Invariant: a pair is
 * given only where more rows than these three lie on the parabola, as they are printed. */
#include "base/real.h"
#include "forensics/fit_solve.h"

/* Rows of the decay that are needed, and how many of them are held against the parabola. */
#define ROWS 8
#define LOOKS 16
/* Updates by which the end may be off for it to be worth a try: its neighbours are tried as well.
 */
#define OFF 1.0

struct parabola {
    double at[3], value[3]; /* rows, by their distance from the first of them, in updates */
};

/* Returns the value of the parabola through the three rows, by Newton's divided differences. */
static double value_at(const struct parabola *p, double at) {
    const double a = (p->value[1] - p->value[0]) / (p->at[1] - p->at[0]);
    const double b = (p->value[2] - p->value[1]) / (p->at[2] - p->at[1]);
    const double bend = (b - a) / (p->at[2] - p->at[0]);
    return p->value[0] + (at - p->at[0]) * (a + (at - p->at[1]) * bend);
}

/* Returns where it turns; no number where it is a line. */
static double turn_of(const struct parabola *p) {
    const double a = (p->value[1] - p->value[0]) / (p->at[1] - p->at[0]);
    const double b = (p->value[2] - p->value[1]) / (p->at[2] - p->at[1]);
    const double bend = (b - a) / (p->at[2] - p->at[0]);
    return 0.5 * (p->at[0] + p->at[1]) - 0.5 * a / bend;
}

/* Adds up by how much the turn, and the value there, move where a row is half a printed step off.
 */
static void errors_of(const struct parabola *p, const double half[3], double *turn, double *value) {
    const double at = turn_of(p), least = value_at(p, at);
    *turn = *value = 0.0;
    for (size_t i = 0; i < 3; i++) {
        struct parabola off = *p;
        off.value[i] += half[i];
        const double moved = turn_of(&off);
        *turn += real_abs_f64(moved - at);
        *value += real_abs_f64(value_at(&off, moved) - least);
    }
}

int fit_find_vertex(const struct fit_window *window, struct fit_vertex *out) {
    const struct series_point *const points = window->points;
    const size_t first = window->top_last + 1, last = window->descent[1];
    if (window->constant || last < first + ROWS) return 0;
    const size_t rows[3] = {first, first + (last - first) / 2, last};
    struct parabola p;
    double half[3], turn_off, value_off;
    for (size_t i = 0; i < 3; i++) {
        if (points[rows[i]].update <= points[first].update && i > 0) return 0;
        p.at[i] = (double)(points[rows[i]].update - points[first].update);
        p.value[i] = points[rows[i]].value;
        half[i] = fit_half(&points[rows[i]], window->scale);
    }
    if (!(p.at[2] > p.at[1])) return 0;
    const double turn = turn_of(&p);
    errors_of(&p, half, &turn_off, &value_off);
    if (!(turn_off < OFF)) return 0;
    for (size_t n = 1; n < LOOKS; n++) {
        const struct series_point *const point = &points[first + (last - first) * n / LOOKS];
        if (point->update < points[first].update) return 0;
        const double expected = value_at(&p, (double)(point->update - points[first].update));
        const double slack = fit_half(point, window->scale) + half[0] + half[1] + half[2];
        if (real_abs_f64(point->value - expected) > slack) return 0;
    }
    const double least = value_at(&p, turn);
    out->update = fit_round((double)points[first].update + turn);
    out->floor = fit_shortest_of(least - value_off, least + value_off, FIT_TYPED_DIGITS);
    return out->floor >= 0.0;
}

int fit_find_line(const struct fit_window *window, struct fit_line *out) {
    const struct series_point *const points = window->points;
    const size_t first = window->top_last + 1, last = window->descent[1];
    if (window->constant || last < first + ROWS || points[last].update <= points[first].update)
        return 0;
    const double way = (double)(points[last].update - points[first].update);
    const double ends =
        fit_half(&points[first], window->scale) + fit_half(&points[last], window->scale);
    const double slope = (points[last].value - points[first].value) / way;
    for (size_t n = 1; n < LOOKS; n++) {
        const struct series_point *const point = &points[first + (last - first) * n / LOOKS];
        if (point->update < points[first].update) return 0;
        const double expected =
            points[first].value + slope * (double)(point->update - points[first].update);
        if (real_abs_f64(point->value - expected) > fit_half(point, window->scale) + ends) return 0;
    }
    *out = (struct fit_line){(double)points[last].update, points[last].value, slope,
                             fit_half(&points[last], window->scale), ends / way};
    return slope < 0.0;
}
