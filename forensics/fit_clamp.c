/* SPDX-License-Identifier: Apache-2.0
 * A schedule whose LR is held at a lowest or a highest one while it is on its way, as a loop does
 * that sets lr = max(lr, floor) from its first update on, or lr = min(lr, ceiling). What fits the
 * rows that are not held is asked where nothing explains all of them: it is no verdict.
 *
 * Invariant: what is reported prints every row that is not held, and lies beyond the LR at which
 * the others stand at each of those. */
#include "base/real.h"
#include "forensics/fit_search.h"

/* Rows that must stand at one LR, and rows that must not. Chosen as for a schedule that stands
 * still at its end (forensics/fit_stop.c). */
#define HELD 4
#define FREE 12

static int stands(const struct series_point *point, double level) {
    return real_abs_f64(point->value - level) <= 0x1p-50 * level;
}

/* Counts the rows that do not stand at the level. Returns 0 where too few do or do not, or where
 * those that do are no single stretch: from above, or from below one at either end. */
static size_t free_rows(const struct series *series, double level, int above) {
    size_t count = 0, stretches = 0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        if (i > 0 && (point->part != point[-1].part || point->update <= point[-1].update)) return 0;
        if (!stands(point, level))
            count++;
        else
            stretches += i == 0 || !stands(point - 1, level);
    }
    const int first = stands(&series->points[0], level);
    const int last = stands(&series->points[series->count - 1], level);
    if (series->count - count < HELD || count < FREE) return 0;
    return above ? (stretches == 1 && !first && !last ? count : 0)
                 : (first && stretches == 1 + (size_t)last ? count : 0);
}

/* Tells whether the fit prints every row of the series, once it is held at the level. */
static int prints_held(const struct fit *fit, const struct series *series, double level,
                       int above) {
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        const double value = fit_logged(fit, 0, point->update);
        const double held = (above ? value > level : value < level) ? level : value;
        if (!fit_matches(point, held, fit->lr, NULL)) return 0;
    }
    return 1;
}

static enum status try_level(const struct series *series, const struct fit_known *known,
                             double level, int above, struct arena *arena, struct fit_clamp *out) {
    struct fit_known plain = *known;
    struct series_point *points;
    struct series *rest;
    struct fit_set found;
    const size_t count = level > 0.0 ? free_rows(series, level, above) : 0;
    if (count == 0) return STATUS_OK;
    TRY(arena_take(arena, count, sizeof *points, "fit", &points));
    TRY(arena_take(arena, 1, sizeof *rest, "fit", &rest));
    *rest = (struct series){.points = points};
    for (size_t i = 0; i < series->count; i++)
        if (!stands(&series->points[i], level)) points[rest->count++] = series->points[i];
    plain.plain = 1;
    TRY(fit_series(rest, &plain, arena, &found));
    for (size_t i = 0; i < found.count && out->fit == NULL; i++) {
        const struct fit *const fit = &found.fits[i];
        if (fit->bug != NULL || fit->unsound || fit->schedule->feedback || fit->samples != NULL ||
            !fit_is_native(known, fit->contract) || !prints_held(fit, series, level, above))
            continue;
        *out = (struct fit_clamp){
            .fit = fit, .level = level, .above = above, .rows = series->count - rest->count};
    }
    return STATUS_OK;
}

enum status fit_find_clamp(const struct series *series, const struct fit_known *known,
                           const struct fit_set *set, struct arena *arena, struct fit_clamp *out) {
    *out = (struct fit_clamp){.fit = NULL};
    if (set->count > 0 || series->count < HELD + FREE || (set->why & FIT_WHY_NOT_FINITE) != 0 ||
        known->steps_guessed || known->growing || known->samples != NULL)
        return STATUS_OK;
    double low = real_inf_f64(), high = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        if (series->points[i].value < low) low = series->points[i].value;
        if (series->points[i].value > high) high = series->points[i].value;
    }
    TRY(try_level(series, known, low, 0, arena, out));
    if (out->fit == NULL) TRY(try_level(series, known, high, 1, arena, out));
    return STATUS_OK;
}
