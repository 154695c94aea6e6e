/* SPDX-License-Identifier: Apache-2.0
 * Whether one explanation prints the rows of both logs.
 *
 * Two logs of one training have rows at other updates and other digits, so each leaves open what
 * the other one shows: between rows 100 updates apart a column has explanations that one with every
 * update rules out. Applied LRs that differ under the explanations of each by itself then say
 * nothing, so the rows of both are taken together and explained once more.
 *
 * Invariant: an explanation counts only where it needs nothing that the simplest one of either log
 * does not need: no other bug, no more breaks, and no more skipped updates. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"
#include "forensics/fit_solve.h"

/* Tells whether the rows are those of one run from its start on, each at its own update. */
static int is_one_course(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].update <= series->points[i - 1].update ||
            series->points[i].part != series->points[0].part)
            return 0;
    return series->count > 0;
}

/* Merges the rows by update. Of two rows of one update that with more digits stays: the columns
 * agree there. */
static enum status merge(const struct series *const from[2], struct arena *arena,
                         struct series *out) {
    struct series_point *points;
    size_t at[2] = {0, 0}, count = 0;
    TRY(arena_take(arena, from[0]->count + from[1]->count, sizeof *points, "rows of both logs",
                   &points));
    while (at[0] < from[0]->count || at[1] < from[1]->count) {
        const struct series_point *const a = &from[0]->points[at[0]];
        const struct series_point *const b = &from[1]->points[at[1]];
        const int ended = at[0] == from[0]->count || at[1] == from[1]->count;
        const int both = !ended && a->update == b->update;
        const size_t side = both    ? b->quantum < a->quantum
                            : ended ? at[0] == from[0]->count
                                    : b->update < a->update;
        points[count] = from[side]->points[at[side]];
        points[count].row = count;
        points[count++].part = 0;
        at[side]++;
        if (both) at[1 - side]++;
    }
    *out = (struct series){.points = points, .count = count};
    return STATUS_OK;
}

/* Tells whether the contract may have written the log: it is the one that was stated, or the log's
 * form speaks for it, or it is among what explains the log by itself. */
static int speaks_for(const struct compare_input *input, const struct fit_known *known,
                      const struct fit *fit) {
    if (input->contract != NULL) return strcmp(input->contract, fit->contract->name) == 0;
    for (size_t i = 0; i < input->fits->count; i++)
        if (input->fits->fits[i].contract == fit->contract) return 1;
    return fit_is_native(known, fit->contract);
}

/* Tells whether the explanation of both needs at most what the simplest one of this log needs. */
static int needs_no_more(const struct fit *joint, const struct fit *own) {
    return joint->segment_count <= own->segment_count && fit_skipped(joint) <= fit_skipped(own) &&
           (joint->bug == NULL || (own->bug != NULL && strcmp(joint->bug, own->bug) == 0));
}

/* Tells whether an explanation of one log prints every row of the other one as well. */
static int prints_all(const struct fit *fit, const struct series *other) {
    const double scale = fit_scale(other->points, other->count);
    if (fit->segment_count != 1 || fit->first_differs || fit->in_samples || fit_skips_any(fit))
        return 0;
    for (size_t i = 0; i < other->count; i++) {
        const struct series_point *const point = &other->points[i];
        if (!fit_matches(point, fit_logged(fit, 0, point->update), scale, NULL)) return 0;
    }
    return other->count > 0;
}

static const struct fit *find_listed(const struct compare_input *input,
                                     const struct fit_known own[2]) {
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < input[s].fits->count; i++) {
            const struct fit *const fit = &input[s].fits->fits[i];
            if (speaks_for(&input[1 - s], &own[1 - s], fit) &&
                prints_all(fit, input[1 - s].fits->series))
                return fit;
        }
    return NULL;
}

/* Explains the rows of both logs together. */
static enum status search(const struct compare_input *input, const struct fit_known own[2],
                          struct arena *arena, const struct fit **out) {
    const struct series *const from[2] = {input[0].fits->series, input[1].fits->series};
    struct fit_known known;
    struct series *series;
    struct fit_set set;
    fit_known_init(&known);
    for (size_t s = 0; s < 2; s++) {
        if (own[s].steps_guessed || own[s].growing || own[s].samples != NULL ||
            !is_one_course(from[s]))
            return STATUS_OK;
        if (own[1 - s].run_steps == 0 || own[1 - s].run_steps == own[s].run_steps)
            known.run_steps = own[s].run_steps;
    }
    TRY(arena_take(arena, 1, sizeof *series, "series", &series));
    TRY(merge(from, arena, series));
    TRY(fit_series(series, &known, arena, &set));
    for (size_t i = 0; i < set.count && *out == NULL; i++) {
        const struct fit *const fit = &set.fits[i];
        if ((needs_no_more(fit, &input[0].fits->fits[0]) ||
             needs_no_more(fit, &input[1].fits->fits[0])) &&
            speaks_for(&input[0], &own[0], fit) && speaks_for(&input[1], &own[1], fit))
            *out = fit;
    }
    return STATUS_OK;
}

enum status compare_one_for_both(const struct compare_input *input, struct arena *arena,
                                 struct compare_lr *lr) {
    struct fit_known own[2];
    const struct fit *fit;
    for (size_t s = 0; s < 2; s++) {
        fit_known_init(&own[s]);
        TRY(fit_known_from_log(&own[s], input[s].log, arena));
    }
    fit = find_listed(input, own);
    if (fit == NULL) TRY(search(input, own, arena, &fit));
    if (fit == NULL) return STATUS_OK;
    lr->agree = 1;
    lr->alike[0] = lr->alike[1] = fit;
    return STATUS_OK;
}
