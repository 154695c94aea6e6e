/* SPDX-License-Identifier: Apache-2.0
 * What a log leaves open that begins behind its warm-up: every length prints the same rows, each
 * with a peak of its own.
 *
 * Invariant: a family is stated only where both of its ends print what the log prints. */
#include "base/real.h"
#include "forensics/fit_search.h"

/* Points at which the ends are looked at; a shorter series is looked at as a whole. */
#define POINTS 64

/* Sets the model to a warm-up, with the peak that leaves the first row as it is. Returns whether
 * it prints every point looked at. */
static int prints(struct fit_model *model, const struct series *series, double scale,
                  struct fit_numbers numbers, double first) {
    const struct series_point *points = series->points;
    const size_t last = series->count - 1, looks = last < POINTS ? last : POINTS;
    numbers.lr = 1.0;
    fit_model_set(model, &numbers);
    const double share = fit_model_logged(model, points[0].update, 0);
    if (!(share > 0.0)) return 0;
    numbers.lr = first / share;
    fit_model_set(model, &numbers);
    for (size_t i = 0; i <= looks; i++) {
        const size_t at = looks == last ? i : (size_t)((double)last * (double)i / (double)POINTS);
        if (!fit_matches(&points[at], fit_model_logged(model, points[at].update, 0), scale, NULL))
            return 0;
    }
    return 1;
}

/* A contract that prints the LR that was used has a counter of one less at the first row. */
void fit_find_unseen(const struct fit_search *search, struct fit_model *model, struct fit *out) {
    const struct series *series = search->series;
    const uint64_t update = series->points[0].update;
    struct fit_numbers numbers = model->now;
    if (!out->warmup_hidden || out->stride != 1.0 || out->segment_count != 1 ||
        out->segments[0].shift != 0 || out->first_differs || out->part_count > 0 ||
        out->in_samples || out->epoch_updates > 0 || out->schedule->state_size > 0 ||
        !fit_model_proportional(model))
        return;
    model->plan.skipped = out->plan.skipped;
    model->plan.skipped_count = out->plan.skipped_count;
    const double first = fit_model_logged(model, update, 0);
    numbers.warmup = 0.0;
    if (!prints(model, series, search->scale, numbers, first)) return;
    const double none = model->now.lr;
    for (uint64_t most = update; most > 0 && most + 2 > update; most--) {
        numbers.warmup = (double)most;
        if (!prints(model, series, search->scale, numbers, first)) continue;
        out->unseen_warmup = numbers.warmup;
        out->unseen_least = none < model->now.lr ? none : model->now.lr;
        out->unseen_most = none < model->now.lr ? model->now.lr : none;
        return;
    }
}
