/* SPDX-License-Identifier: Apache-2.0
 * Another total behind a resume: a run that was resumed with other max_steps or epochs goes on with
 * the counter, the peak and the schedule that were saved, towards another end. A warm-up that was
 * given as a share of the total moves with it.
 *
 * A schedule that depends on its total is taken to rise with it at a counter within the total:
 * later the end, later the decay. Invariant: that is used to find a total and never to believe one.
 * What comes out is held against every row that it explains. */
#include "base/real.h"
#include "forensics/fit_segments.h"

/* How far behind the last row a total is looked for, in lengths of the log. */
#define FARTHEST 64

static double rounded(const struct fit_model *model, double warmup) {
    switch (model->contract->warmup_rule) {
    case CONTRACT_ROUND_FLOOR:
        return fit_floor(warmup);
    case CONTRACT_ROUND_CEIL:
        return fit_ceil(warmup);
    case CONTRACT_ROUND_HALF_EVEN:
        return fit_round(warmup);
    default:
        return warmup;
    }
}

/* Returns the share of the total that the warm-up is, in half percents; 0: it is none. */
static double share_of(const struct fit_model *model) {
    const double warmup = model->now.warmup, total = model->now.total;
    for (int exact = 1; exact >= 0 && warmup > 0.0; exact--)
        for (int half = 1; half <= 100; half++) {
            const double share = (double)half / 200.0;
            if (exact ? fit_near(warmup, total * share)
                      : fit_near(warmup, rounded(model, total * share)))
                return share;
        }
    return 0.0;
}

struct attempt {
    struct fit_search *search;
    struct fit_model *model;
    const struct fit_segment *segment; /* with the shift and the scale of the peak */
    struct fit_numbers saved;
    double share; /* the warm-up as a share of the total; 0: it stays what it was */
    size_t least; /* rows that a total must explain */
};

static void set_total(const struct attempt *attempt, uint64_t total) {
    struct fit_numbers numbers = attempt->saved;
    numbers.total = (double)total;
    if (attempt->share > 0.0)
        numbers.warmup = rounded(attempt->model, attempt->share * numbers.total);
    fit_model_set(attempt->model, &numbers);
}

/* Returns by how much the model with this total logs more than the point prints. */
static double excess(const struct attempt *attempt, const struct series_point *point,
                     uint64_t total) {
    struct fit_search *search = attempt->search;
    search->totals -= search->totals > 0 ? 1 : 0;
    set_total(attempt, total);
    return attempt->segment->scale *
               fit_model_logged(attempt->model, point->update, attempt->segment->shift) -
           point->value;
}

/* Returns the least total of low .. high with which the point logs at least its value + slack, or
 * high + 1. */
static uint64_t least_above(const struct attempt *attempt, const struct series_point *point,
                            double slack, uint64_t low, uint64_t high) {
    if (low > high || excess(attempt, point, low) >= slack) return low;
    if (!(excess(attempt, point, high) >= slack)) return high + 1;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (excess(attempt, point, middle) >= slack)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Returns how many points from `from` on one total explains, and which totals low .. high do. */
static size_t narrow(const struct attempt *attempt, size_t from, uint64_t *low, uint64_t *high) {
    const struct series *series = attempt->search->series;
    const int64_t ahead = attempt->segment->shift;
    size_t i = from;
    *low = 1;
    *high = FARTHEST * attempt->search->last;
    for (; i < series->count && attempt->search->totals > 0; i++) {
        const struct series_point *point = &series->points[i];
        const int64_t counter = (int64_t)point->update + ahead;
        const double half = fit_half(point, attempt->search->scale);
        const uint64_t now = counter > (int64_t)*low ? (uint64_t)counter : *low;
        const uint64_t first = least_above(attempt, point, -half, now, *high);
        const uint64_t past =
            least_above(attempt, point, half * (1.0 + 0x1p-50) + 0x1p-1060, first, *high);
        if (first >= past) break;
        *low = first;
        *high = past - 1;
    }
    return i - from;
}

static size_t run_of(const struct attempt *attempt, size_t from, uint64_t total) {
    const struct series *series = attempt->search->series;
    size_t i = from;
    while (i < series->count && real_abs_f64(excess(attempt, &series->points[i], total)) <=
                                    fit_half(&series->points[i], attempt->search->scale))
        i++;
    return i - from;
}

static void keep(const struct attempt *attempt, size_t from, uint64_t total,
                 struct fit_other_total *best) {
    if (total == 0 || (double)total == attempt->saved.total) return;
    const size_t run = run_of(attempt, from, total);
    if (run <= best->run) return;
    best->run = run;
    best->segment = *attempt->segment;
    best->segment.steps = total;
    best->segment.warmup = attempt->model->now.warmup;
    best->segment.call_total = attempt->model->plan.call.total;
    best->segment.call_warmup = attempt->model->plan.call.warmup;
}

/* Tries the totals that somebody said. */
static void try_said(const struct attempt *attempt, size_t from, struct fit_other_total *best) {
    const struct fit_known *known = attempt->search->known;
    keep(attempt, from, known->request.steps, best);
    keep(attempt, from, known->run_steps, best);
}

/* Tries the end of the log, and where that explains nothing, the one total that the rows leave.
 * Where they leave several, nothing is claimed. */
static void try_free(const struct attempt *attempt, size_t from, struct fit_other_total *best) {
    uint64_t low, high;
    keep(attempt, from, attempt->search->last, best);
    if (best->run >= attempt->least) return;
    if (narrow(attempt, from, &low, &high) >= attempt->least && low == high)
        keep(attempt, from, low, best);
}

void fit_find_total(struct fit_search *search, struct fit_model *model,
                    const struct fit_segment *segment, size_t from, enum fit_totals how,
                    struct fit_other_total *best) {
    static const size_t rows[] = {[FIT_TOTAL_FREE] = FIT_TOTAL_ROWS,
                                  [FIT_TOTAL_SAID] = FIT_SAID_ROWS,
                                  [FIT_TOTAL_OF_ROW] = 1,
                                  [FIT_TOTAL_OF_ROWS] = 2};
    void (*const look)(const struct attempt *, size_t, struct fit_other_total *) =
        how == FIT_TOTAL_SAID || how == FIT_TOTAL_OF_ROW ? try_said : try_free;
    const size_t least = rows[how];
    struct attempt attempt = {
        .search = search, .model = model, .segment = segment, .saved = model->now, .least = least};
    const double share = model->needs_warmup ? share_of(model) : 0.0;
    best->run = 0;
    if (!model->needs_total || model->plan.schedule->state_size > 0 ||
        model->contract->unit == CONTRACT_UNIT_EPOCH || search->totals == 0)
        return;
    look(&attempt, from, best);
    attempt.share = share;
    if (best->run < least && share > 0.0) look(&attempt, from, best);
    fit_model_set(model, &attempt.saved);
    if (best->run < least) best->run = 0;
}
