/* SPDX-License-Identifier: Apache-2.0
 * What separates two fits: the first update that they would log differently, or, where they log the
 * same for ever, the first that they apply differently.
 *
 * Invariant: what a schedule would do behind the end of the run separates nothing. */
#include <stdio.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_search.h"

/* The update up to which two fits are compared: it bounds the time for a total that was misread. */
#define FARTHEST 1000000

/* Tells whether two values differ by more than rounding, which is that of binary32 where one side
 * computes in it. */
static int apart(double a, double b, double slack) {
    if (a != a || b != b) return (a == a) != (b == b);
    return real_abs_f64(a - b) > slack;
}

static double slack_of(const struct fit *a, const struct fit *b) {
    const double scale = a->lr > b->lr ? a->lr : b->lr;
    return scale * (a->contract->float32 || b->contract->float32 ? 0x1p-21 : 0x1p-44);
}

static uint64_t end_of(const struct fit *a, const struct fit *b, const struct fit_set *set) {
    uint64_t end = set->last;
    if (!a->in_samples && a->steps > end) end = a->steps;
    if (!b->in_samples && b->steps > end) end = b->steps;
    return end + 2 < FARTHEST ? end + 2 : FARTHEST;
}

static size_t last_point(const struct fit_set *set) {
    return set->series->count > 0 ? set->series->count - 1 : 0;
}

/* Returns the first update at which one column differs, or 0. Between and behind the rows, the
 * segments are those of the last point. */
static uint64_t first_apart(const struct fit *a, const struct fit *b, const struct fit_set *set,
                            double (*column)(const struct fit *, size_t, uint64_t)) {
    const uint64_t end = end_of(a, b, set);
    const double slack = slack_of(a, b);
    for (size_t i = 0; i < set->series->count; i++) {
        const uint64_t k = set->series->points[i].update;
        if (apart(column(a, i, k), column(b, i, k), slack)) return k;
    }
    const uint64_t first = a->segment_count > 1 || b->segment_count > 1 ? set->last + 1 : 1;
    for (uint64_t k = first; k <= end; k++)
        if (apart(column(a, last_point(set), k), column(b, last_point(set), k), slack)) return k;
    return 0;
}

/* Returns the row of an update, whose segment holds there; without one, as first_apart has it, the
 * last row. */
static size_t point_of(const struct fit_set *set, uint64_t k) {
    for (size_t i = 0; i < set->series->count; i++)
        if (set->series->points[i].update == k) return i;
    return last_point(set);
}

static int is_logged_at(const struct fit_set *set, uint64_t k) {
    for (size_t i = 0; i < set->series->count; i++)
        if (set->series->points[i].update == k) return 1;
    return 0;
}

/* Counts only within the run: what a schedule would do past its end trains nothing. */
uint64_t fit_applied_apart(const struct fit *a, const struct fit *b, const struct fit_set *set) {
    const uint64_t k = first_apart(a, b, set, fit_applied);
    return k + 2 > end_of(a, b, set) ? 0 : k;
}

int fit_logs_shifted(const struct fit *a, const struct fit *b, int by,
                     const struct series *series) {
    const double slack = slack_of(a, b);
    size_t compared = 0;
    for (size_t i = 0; i < series->count; i++) {
        const uint64_t k = series->points[i].update;
        const int64_t other = (int64_t)k + by;
        if (other < 1) continue;
        if (apart(fit_logged(a, i, k), fit_logged(b, i, (uint64_t)other), slack)) return 0;
        compared++;
    }
    return compared > 0;
}

enum status fit_tell_apart(const struct fit *a, const struct fit *b, const struct fit_set *set,
                           struct arena *arena, const char **out) {
    char *text;
    uint64_t k = first_apart(a, b, set, fit_logged);
    if (k > 0) {
        const size_t at = point_of(set, k);
        const struct number_text x = number_text_f64(fit_logged(a, at, k));
        const struct number_text y = number_text_f64(fit_logged(b, at, k));
        TRY(arena_format(arena, &text, "%s update %llu: %s logs %s, %s logs %s",
                         is_logged_at(set, k) ? "more digits of" : "a row of",
                         (unsigned long long)k, a->contract->name, x.text, b->contract->name,
                         y.text));
        *out = text;
        return STATUS_OK;
    }
    k = first_apart(a, b, set, fit_applied);
    if (k == 0) {
        *out = "nothing to tell apart: both log the same and apply the same at every update";
        return STATUS_OK;
    }
    const size_t at = point_of(set, k);
    const struct number_text x = number_text_f64(fit_applied(a, at, k));
    const struct number_text y = number_text_f64(fit_applied(b, at, k));
    TRY(arena_format(arena, &text,
                     "no LR column: both log the same at every update, but update %llu applies %s "
                     "under %s and %s under %s; the framework and its version, the weights, or a "
                     "trace of them can",
                     (unsigned long long)k, x.text, a->contract->name, y.text, b->contract->name));
    *out = text;
    return STATUS_OK;
}
