/* SPDX-License-Identifier: Apache-2.0
 * A cosine read off all rows of a column together, where nobody said its total: one that falls to a
 * floor once, or falls to 0 and begins anew (transformers' cosine_with_restarts). Under a peak and
 * a floor each row is an angle, and the angles of one cosine lie on a line over the updates; it
 * says where the cosine begins and how long it falls. One row alone lies on many cosines.
 *
 * Knows no schedule by name: what is found are numbers to try. Invariant: nothing is given where a
 * row that is looked at lies off the line by more than twice what its printed digits leave. */
#include "base/real.h"
#include "forensics/fit_solve.h"
#include "sched/values.h"

/* Rows that are needed, and how many are looked at. */
#define ROWS 6
#define LOOKS 48
/* Digits of a peak that somebody typed, where a beginning shows its height, and elsewhere. */
#define PEAK_DIGITS 3
#define UNSEEN_DIGITS 2
/* The rows beside a beginning may all lie far from it: at most by so much of a cycle that its
 * cosine has fallen to half there. Of one that begins in front of all rows more is lost. */
#define HIGHEST 2.0
#define UNSEEN_HIGHEST 10.0
/* How many standard deviations of what the printed digits leave are tried. */
#define SPREAD 4.0
/* Below this share of the slope a row says nothing of where in its cycle it lies. */
#define FLAT 1e-3

struct rows {
    double at[LOOKS], value[LOOKS], half[LOOKS];
    double cycle[LOOKS]; /* beginnings between the first row and this one */
    size_t count, beginnings;
};

/* Returns 0 <= x <= pi with 0.5 (1 + cos(x)) = share, where `slope`, sqrt(share (1 - share)), is
 * half the sine of x: by Newton's steps, which take the sine that is known, and by halves where
 * such a step leads out of the interval that is left. Half a dozen steps do for most shares. */
static double angle_of(double share, double slope) {
    const double wanted = 2.0 * share - 1.0;
    double low = 0.0, high = SCHED_PI, x = 0.5 * SCHED_PI;
    if (share >= 1.0) return 0.0; /* the digits of a row may lie beyond the peak */
    if (share <= 0.0) return SCHED_PI;
    for (int i = 0; i < 60; i++) {
        const double above = real_cos_f64(x) - wanted, next = x + above / (2.0 * slope);
        if (real_abs_f64(above) <= 0x1p-52) return next;
        if (above > 0.0)
            low = x;
        else
            high = x;
        x = next > low && next < high ? next : 0.5 * (low + high);
    }
    return x;
}

/* Takes rows of the column evenly, with the cycle that each lies in: all of them, or those behind
 * its first rise, which may be a warm-up. Returns 0 where they are too few. */
static int take_rows(const struct fit_window *window, int behind_rise, struct rows *rows) {
    const struct series_point *const points = window->points;
    size_t first = 0, cycle = 0;
    while (behind_rise && first + 1 < window->count &&
           points[first + 1].value >= points[first].value)
        first++;
    const size_t all = window->count - first;
    rows->count = rows->beginnings = 0;
    if (window->constant || all < ROWS) return 0;
    for (size_t i = 0; i < all; i++) {
        const struct series_point *const point = &points[first + i];
        if (i > 0 && point->update <= point[-1].update) return 0;
        cycle += i > 0 && point->value > point[-1].value + 2.0 * fit_half(point, window->scale);
        if (i * (LOOKS - 1) < rows->count * (all - 1) || rows->count == LOOKS) continue;
        rows->at[rows->count] = (double)point->update;
        rows->value[rows->count] = point->value;
        rows->half[rows->count] = fit_half(point, window->scale);
        rows->cycle[rows->count++] = (double)cycle;
    }
    rows->beginnings = cycle;
    return rows->count >= ROWS;
}

/* Stores the angle of a row and by how much its digits leave it open. Returns 0 where the row says
 * nothing of it, and -1 where no cosine under this peak has it. */
static int angle_of_row(const struct rows *rows, size_t i, const struct fit_cycles *c,
                        double *angle, double *off) {
    const double fall = c->peak * (1.0 - c->floor);
    const double share = (rows->value[i] - c->floor * c->peak) / fall;
    const double slope = 0.5 * real_sqrt_f64(real_abs_f64(4.0 * share * (1.0 - share)));
    if (rows->value[i] - rows->half[i] > c->peak ||
        rows->value[i] + rows->half[i] < c->floor * c->peak * (1.0 - 0x1p-40))
        return -1;
    if (slope < FLAT) return 0;
    *angle = angle_of(share, slope) + SCHED_PI * rows->cycle[i];
    *off = rows->half[i] / (fall * slope) + 0x1p-44;
    return 1;
}

/* Tells whether the first row, one in the middle and the last one lie on a line, which refuses most
 * peaks. */
static int may_be_line(const struct rows *rows, const struct fit_cycles *c) {
    const size_t of[3] = {1, rows->count / 2, rows->count - 2};
    double angle[3], off[3];
    for (size_t i = 0; i < 3; i++) {
        const int says = angle_of_row(rows, of[i], c, &angle[i], &off[i]);
        if (says <= 0) return says == 0;
    }
    const double part = (rows->at[of[1]] - rows->at[of[0]]) / (rows->at[of[2]] - rows->at[of[0]]);
    return real_abs_f64(angle[0] + part * (angle[2] - angle[0]) - angle[1]) <=
           off[0] + off[1] + off[2];
}

/* Lays the line of the angles through the rows under a peak, each as heavy as its digits make it.
 * Returns 0 where one of them lies off it. */
static int fit_line(const struct rows *rows, double peak, struct fit_cycles *out) {
    double angles[LOOKS], off[LOOKS];
    double s = 0.0, sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0;
    const double middle = 0.5 * (rows->at[0] + rows->at[rows->count - 1]);
    size_t used = 0;
    out->peak = peak;
    if (!(peak > 0.0) || !may_be_line(rows, out)) return 0;
    for (size_t i = 0; i < rows->count; i++) {
        off[i] = -1.0;
        const int says = angle_of_row(rows, i, out, &angles[i], &off[i]);
        if (says < 0) return 0;
        if (says == 0) continue;
        const double weight = 1.0 / (off[i] * off[i]), x = rows->at[i] - middle;
        s += weight;
        sx += weight * x;
        sy += weight * angles[i];
        sxx += weight * x * x;
        sxy += weight * x * angles[i];
        used++;
    }
    const double bend = s * sxx - sx * sx;
    if (used < ROWS - 1 || !(bend > 0.0)) return 0;
    const double speed = (s * sxy - sx * sy) / bend;
    const double base = (sxx * sy - sx * sxy) / bend;
    if (!(speed > 0.0)) return 0;
    for (size_t i = 0; i < rows->count; i++)
        if (off[i] > 0.0 &&
            real_abs_f64(angles[i] - base - speed * (rows->at[i] - middle)) > 2.0 * off[i])
            return 0;
    /* Where the weight of the rows is, the line stands fast, and it turns about that. */
    out->middle = middle + sx / s;
    out->angle = base + speed * (sx / s);
    out->length = SCHED_PI / speed;
    out->begin = middle - base / speed;
    out->length_off = SPREAD * out->length * real_sqrt_f64(s / bend) / speed;
    out->begin_off = out->length_off * real_abs_f64(out->middle - out->begin) / out->length;
    out->beginnings = rows->beginnings;
    return 1;
}

/* Returns the largest power of ten that is no larger than x > 0. */
static double power_below(double x) {
    double power = 1.0;
    while (power > x)
        power *= 0.1;
    while (10.0 * power <= x)
        power *= 10.0;
    return power;
}

/* Goes on to the next peak. Returns 0 where none is left. */
static int next_peak(const struct fit_window *window, const struct rows *rows,
                     struct fit_cycles *io) {
    const int digits = rows->beginnings > 0 ? PEAK_DIGITS : UNSEEN_DIGITS;
    const double most = (rows->beginnings > 0 ? HIGHEST : UNSEEN_HIGHEST) * window->scale;
    if (window->known_lr == window->known_lr) {
        io->digits = PEAK_DIGITS + 1; /* one peak, one turn */
        return fit_line(rows, window->known_lr, io);
    }
    for (; io->digits <= digits; io->digits++, io->next = 0.0) {
        double step = power_below(window->scale);
        for (int i = 1; i < io->digits; i++)
            step *= 0.1;
        if (io->next == 0.0) io->next = fit_floor(window->scale / step);
        for (; io->next * step <= most; io->next += 1.0) {
            const double peak = io->next * step;
            /* 10 of two digits is one of one, which was tried. */
            if ((io->digits > 1 && 10.0 * fit_floor(0.1 * io->next + 0.05) == io->next) ||
                !fit_line(rows, fit_shortest(peak * (1.0 - 0x1p-40), peak * (1.0 + 0x1p-40)), io))
                continue;
            io->next += 1.0;
            return 1;
        }
    }
    return 0;
}

int fit_next_cycles(const struct fit_window *window, struct fit_cycles *io) {
    struct rows rows;
    if (!(window->scale > 0.0) || window->count < ROWS) return 0;
    for (; io->rows < 2; io->rows++, io->digits = 1, io->next = 0.0) {
        /* Where the LR does not rise at once, all rows are those behind the rise. */
        const int again = io->rows == 1 && window->points[0].value >= window->points[1].value;
        if (!again && io->digits <= PEAK_DIGITS && take_rows(window, io->rows == 0, &rows) &&
            next_peak(window, &rows, io))
            return 1;
    }
    return 0;
}
