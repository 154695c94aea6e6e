/* SPDX-License-Identifier: Apache-2.0
 * The floor of a decay that no row reaches and no list has: every schedule with a floor is the sum
 * of two curves, one times the peak and one times the floor, so the peak and any one row give it.
 *
 * Knows no schedule by name. Invariant: a floor is given only where the rows that are looked at
 * leave so narrow a range that a number of its digits lies in it by chance at most once in ten. */
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_solve.h"

/* The share of floors of as many digits that may lie in the range of the rows, and the most digits
 * that somebody types. Both are chosen: the range of exact doubles holds a number of six digits
 * about once in 10^9. */
#define CHANCE 0.1
#define DIGITS 6
/* Rows of the decay that are needed, as of a line (forensics/fit_vertex.c). */
#define ROWS 8
/* Share of the floor in a row from which on it shows the floor, and up to which it shows the peak
 * alone. */
#define SHOWS 0.02
#define HIDES 0x1p-40

struct bounds {
    double low, high;
};

/* What a row is made of: peak * L + floor * E, with E the floor as an LR. */
struct parts {
    double peak, floor;
};

static struct parts parts_of(struct fit_model *model, const struct fit_window *window,
                             const struct fit_numbers *numbers, size_t i) {
    const uint64_t update = window->points[i].update;
    struct fit_numbers one = *numbers;
    struct parts parts = {real_nan_f64(), real_nan_f64()};
    *window->budget -= *window->budget > 2 ? 2 : *window->budget;
    if (model->plan.schedule->state_size > 0) { /* which computes all updates in front of it */
        if (*window->walk / 2 < update) return parts;
        *window->walk -= 2 * update;
    }
    one.lr = 1.0;
    one.absolute = 0;
    one.floor = 0.0;
    fit_model_set(model, &one);
    parts.peak = fit_model_logged(model, update, window->shift);
    one.floor = 0.5;
    fit_model_set(model, &one);
    parts.floor = 2.0 * (fit_model_logged(model, update, window->shift) - parts.peak);
    return parts;
}

static void narrow(struct bounds *range, double low, double high) {
    if (low > range->low) range->low = low;
    if (high < range->high) range->high = high;
}

/* Half of what a row may be off: its printed step, and the rounding of the two curves. A schedule
 * that computes each LR from the one before rounds the sum of both otherwise than each of them, and
 * once more at every update. */
static double half_of(const struct fit_model *model, const struct fit_window *window, size_t i) {
    const double walked =
        model->plan.schedule->state_size > 0 ? 0x1p-50 * (double)window->points[i].update : 0.0;
    return fit_half(&window->points[i], window->scale) + (walked + 0x1p-50) * window->scale;
}

/* Narrows the peak by the rows of the warm-up and of the top, in which no floor is. Returns 0 where
 * no peak is left, and where none of these rows shows one. */
static int find_peak(struct fit_model *model, const struct fit_window *window,
                     const struct fit_numbers *numbers, struct bounds *peak) {
    int shown = 0;
    for (size_t p = 0; p < window->probe_count && window->probes[p] <= window->top_last; p++) {
        const size_t i = window->probes[p];
        const struct parts parts = parts_of(model, window, numbers, i);
        const double half = half_of(model, window, i), value = window->points[i].value;
        if (!(real_abs_f64(parts.floor) < HIDES) || !(parts.peak > HIDES)) continue;
        narrow(peak, (value - half) / parts.peak, (value + half) / parts.peak);
        shown = 1;
        if (!(peak->low <= peak->high)) return 0;
    }
    return shown;
}

/* Finds the peak by two rows, one near the top and one far below it, where no row shows it alone:
 * rows that lie apart, and a log without a warm-up. */
static int find_peak_of_two(struct fit_model *model, const struct fit_window *window,
                            const struct fit_numbers *numbers, struct bounds *peak) {
    const size_t i = window->top_last, j = window->descent[1];
    const struct parts a = parts_of(model, window, numbers, i);
    const struct parts b = parts_of(model, window, numbers, j);
    const double whole = a.peak * b.floor - a.floor * b.peak;
    if (!(b.floor > SHOWS) || !(whole > SHOWS)) return 0;
    const double at = window->points[i].value * b.floor - window->points[j].value * a.floor;
    const double off =
        half_of(model, window, i) * b.floor + half_of(model, window, j) * real_abs_f64(a.floor);
    narrow(peak, (at - off) / whole, (at + off) / whole);
    return peak->low <= peak->high && peak->low > 0.0;
}

/* Narrows the floor by the rows behind the top, for one peak. Returns 0 where none is left. */
static int find_floor(struct fit_model *model, const struct fit_window *window,
                      const struct fit_numbers *numbers, double peak, struct bounds *floor) {
    int shown = 0;
    for (size_t p = window->probe_count; p-- > 0 && window->probes[p] > window->top_last;) {
        const size_t i = window->probes[p];
        const struct parts parts = parts_of(model, window, numbers, i);
        const double half = half_of(model, window, i),
                     left = window->points[i].value - peak * parts.peak;
        if (!(parts.floor > SHOWS)) continue;
        narrow(floor, (left - half) / parts.floor, (left + half) / parts.floor);
        shown = 1;
        if (!(floor->low <= floor->high)) return 0;
    }
    return shown;
}

/* Returns the shortest number of a range where somebody may have typed it: with few digits, and of
 * numbers with as many the range holds one by chance seldom. Else NaN. */
static double typed_in(struct bounds range) {
    const double x =
        range.low > 0.0 ? fit_shortest_of(range.low, range.high, DIGITS) : real_nan_f64();
    double step = 1.0;
    if (!(x > 0.0)) return real_nan_f64();
    while (step > x)
        step *= 0.1;
    for (int digits = fit_digits(x); digits > 1; digits--)
        step *= 0.1;
    return range.high - range.low <= CHANCE * step ? x : real_nan_f64();
}

int fit_may_solve_floor(const struct fit_window *window) {
    const struct series_point *const points = window->points;
    const size_t first = window->top_last + 1, last = window->descent[1];
    struct fit_line line;
    const int shows_peak =
        window->top > 0 || (window->count > 1 && points[0].update <= 1 + points[1].update / 2) ||
        window->known_warmup == window->known_warmup || window->known_lr == window->known_lr;
    return !window->constant && shows_peak && last >= first + ROWS && !fit_find_line(window, &line);
}

size_t fit_solve_floors(struct fit_model *model, const struct fit_window *window,
                        const struct fit_numbers *numbers, struct fit_floor_trial floors[2]) {
    struct bounds peaks = {0.0, real_inf_f64()}, floor = peaks;
    const int absolute = model->floor_kind == FIT_FLOOR_ABSOLUTE;
    size_t count = 0;
    if (!model->linear || !(window->scale > 0.0)) return 0;
    const int shown = find_peak(model, window, numbers, &peaks);
    if (!shown && (peaks.low > peaks.high || !find_peak_of_two(model, window, numbers, &peaks)))
        return 0;
    const double known = window->known_lr;
    double peak = shown ? fit_shortest(peaks.low, peaks.high) : typed_in(peaks);
    if (known >= peaks.low && known <= peaks.high) peak = known;
    if (!(peak > 0.0) || !find_floor(model, window, numbers, peak, &floor)) return 0;
    const double share = typed_in((struct bounds){floor.low / peak, floor.high / peak});
    const double lr = typed_in(floor);
    const int rounder = !(share < 1.0) || fit_digits(lr) < fit_digits(share) ||
                        (absolute && fit_digits(lr) == fit_digits(share));
    if (lr < peak && rounder)
        floors[count++] = absolute ? (struct fit_floor_trial){lr, 1, 0}
                                   : (struct fit_floor_trial){lr / peak, 0, 0};
    if (share < 1.0 && !(count > 0 && fit_near(share * peak, lr)))
        floors[count++] = (struct fit_floor_trial){share, 0, 0};
    return count;
}

/* ---- a floor in place of skipped updates ---- */

/* Room for the values of a schedule, in doubles, so that they are aligned. */
#define VALUES 64

/* Tells whether the fit without its skipped updates and with the floor, a share of the peak, prints
 * every row. */
static int prints_with(const struct fit *fit, const struct series *series, double share) {
    static const char *const names[] = {"min_lr_ratio", "min_lr", "lr_end"};
    struct contract_plan plan = fit->plan;
    double values[VALUES];
    size_t n = 0;
    while (n < COUNT_OF(names) && sched_row(fit->schedule, names[n]) == NULL)
        n++;
    if (n == COUNT_OF(names) || plan.call.values == NULL ||
        fit->schedule->values_size > sizeof values)
        return 0;
    const struct key_row *const row = sched_row(fit->schedule, names[n]);
    const double floor = n == 0 ? share : share * fit->lr;
    if (row->type != KEY_REAL) return 0;
    memcpy(values, plan.call.values, fit->schedule->values_size);
    memcpy((char *)values + row->offset, &floor, sizeof floor);
    plan.call.values = values;
    plan.skipped_count = 0;
    for (size_t i = 0; i < series->count; i++)
        if (!fit_matches(&series->points[i], contract_logged(&plan, series->points[i].update),
                         fit->lr, NULL))
            return 0;
    return 1;
}

int fit_skips_stand_for_a_floor(const struct fit *fit, const struct fit_known *known,
                                const struct series *series) {
    const double *typed;
    const size_t count = fit_typed_floors(&typed);
    if (fit_skipped(fit) == 0 || known->skips.shown > 0 || known->request.skipped_count > 0 ||
        known->request.min_lr_ratio == known->request.min_lr_ratio || fit->part_count > 0 ||
        fit->samples != NULL || fit->segment_count != 1 || fit->schedule->state_size > 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const double share = typed[i] < 1e-4 ? typed[i] / fit->lr : typed[i];
        if (share < 1.0 && prints_with(fit, series, share)) return 1;
    }
    return 0;
}
