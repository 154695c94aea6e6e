/* SPDX-License-Identifier: Apache-2.0
 * Ways to complete an expectation of `lr check` so that it agrees with every row: with the numbers
 * of a plain fit, of one whose warm-up no row shows, of one among all contracts, with floors that
 * configurations have, and with skipped updates. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_check_parts.h"

/* Tells whether a plain fit has every number that was given. */
static int has_given(const struct fit *fit, const struct fit_known *known, uint64_t steps) {
    const struct contract_request *r = &known->request;
    if (r->lr == r->lr && !fit_near(fit->lr, r->lr)) return 0;
    if (fit->steps > 0 && steps > 0 && fit->steps != steps) return 0;
    /* The run's own number of updates is none of samples. */
    if (fit->in_samples && known->samples == NULL && steps > 0 &&
        (steps == known->run_steps || steps == known->end))
        return 0;
    if (fit->takes_warmup && r->warmup == r->warmup && !fit_near(fit->warmup, r->warmup)) return 0;
    /* Who gave a warm-up has a schedule that takes one, unless it was given, too. */
    if (!fit->takes_warmup && r->warmup > 0.0 && r->schedule == NULL) return 0;
    return fit->stride == 1.0 && fit->segment_count == 1 && !fit->first_differs;
}

/* Tells whether the schedule that was given has a floor, or another parameter, that was not, so
 * that the fit's own may be taken: nobody gave one, and the fit needs one that is not the default.
 * transformers' linear and cosine have none, and the floor of a line would excuse a shift. */
static int takes_own(const struct contract_request *r, const struct fit *fit) {
    const char *const name = fit->schedule->name;
    return fit->schedule == sched_find_in(r->contract->family, r->schedule) &&
           !fit->schedule->feedback && r->value_count == 0 && r->min_lr_ratio != r->min_lr_ratio &&
           strcmp(name, "linear") != 0 && strcmp(name, "cosine") != 0 && !fit_falls_as_line(fit) &&
           (fit->floor_ratio > 0.0 || fit->parameters[0] != '\0');
}

/* Tells whether the fit still agrees everywhere with the floor that was given, or with the
 * contract's own. A fitted floor would excuse a shift: 5, 4, 3, 2, 1 is linear to 0 from update 1,
 * and one update ahead of it linear to a floor of 0.2. So the default is tried first where the
 * schedule was given, and what is fitted in its place is doubted like any number that nobody gave.
 */
static enum status accept_floor(const struct series *series, const struct fit_known *known,
                                const struct fit *fit, struct arena *arena, struct fit_check *out) {
    struct fit_refuted refuted;
    if (known->counts_hold &&
        fit_counts_refute(fit, known, series, fit_check_scale(series), &refuted))
        return STATUS_OK;
    if (known->request.schedule == NULL) {
        out->expected = fit;
        return STATUS_OK;
    }
    struct fit alone = *fit;
    out->found = fit_check_bare(series);
    out->found.fits = &alone;
    out->found.count = 1;
    const enum status status = fit_check_expect(series, known, fit, arena, out);
    out->found = fit_check_bare(series);
    if (status == STATUS_OK && out->bad_points == 0) return STATUS_OK;
    out->expected = NULL;
    out->bad_points = 0;
    if (status == STATUS_OK && takes_own(&known->request, fit)) {
        out->expected = fit;
        out->fitted |= FIT_OF_FLOOR;
    }
    return status;
}

/* Sets out->expected where the expectation, completed by what the log says, agrees everywhere. */
enum status fit_check_match(const struct series *series, const struct fit_known *known,
                            struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_known plain = *known;
    struct fit_set own;
    if (r->lr == r->lr && r->steps > 0 && r->warmup == r->warmup) {
        out->found = fit_check_bare(series);
        TRY(fit_check_expect(series, known, NULL, arena, out));
        if (out->bad_points == 0) return STATUS_OK;
        out->expected = NULL;
        out->bad_points = 0;
        if (r->schedule != NULL && (r->min_lr_ratio == r->min_lr_ratio || r->value_count > 0))
            return STATUS_OK;
    }
    plain.plain = 1;
    TRY(fit_series(series, &plain, arena, &own));
    for (size_t i = 0; i < own.count && out->expected == NULL; i++)
        if (has_given(&own.fits[i], known, r->steps))
            TRY(accept_floor(series, known, &own.fits[i], arena, out));
    return STATUS_OK;
}

/* Tells whether the column begins behind its warm-up: the peak lies in front of the first row. */
static int begins_late(const struct series *series) {
    const struct series_point *first = &series->points[0];
    const double scale = fit_check_scale(series);
    return first->update > 2 && first->value >= scale - fit_half(first, scale);
}

/* Takes the simplest fit of the contract from a search among all of them, where the warm-up lies in
 * front of the first row: no knee shows it, and the contract alone is tried with listed warm-ups
 * only, while here it is tried with those that other contracts were solved for. Without it a sound
 * log may look like a departure, or agree with numbers that nobody typed. */
enum status fit_check_match_unseen(const struct series *series, const struct fit_known *known,
                                   struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_known every = *known;
    struct fit_set set;
    if (!begins_late(series)) return STATUS_OK;
    const struct fit *before = out->expected;
    if (before != NULL && (r->schedule != NULL || r->lr == r->lr)) return STATUS_OK;
    every.plain = 1;
    every.limit = 64;
    every.request.contract = NULL;
    TRY(fit_series(series, &every, arena, &set));
    for (size_t i = 0; i < set.count && out->expected == before; i++)
        if (set.fits[i].contract == r->contract && has_given(&set.fits[i], known, r->steps) &&
            (before == NULL || set.fits[i].simplicity < before->simplicity))
            TRY(accept_floor(series, known, &set.fits[i], arena, out));
    return STATUS_OK;
}

/* Takes the simplest plain fit of the contract out of a search among all of them. That tries more
 * numbers than one among the schedules of the contract alone, as each explanation lends its warm-up
 * and its total to the others. */
enum status fit_check_match_among(const struct series *series, const struct fit_known *known,
                                  const struct fit_set *all, struct arena *arena,
                                  struct fit_check *out) {
    const struct contract_request *r = &known->request;
    for (size_t i = 0; i < all->count && out->expected == NULL; i++) {
        const struct fit *fit = &all->fits[i];
        if (fit->contract == r->contract && fit->bug == NULL && !fit->unsound &&
            !fit_skips_any(fit) && has_given(fit, known, r->steps))
            TRY(accept_floor(series, known, fit, arena, out));
    }
    return STATUS_OK;
}

/* Tries floors that configurations have where the rows end above them: the last row of a decay is
 * one step above its floor, and a log that was cut off is farther away. */
enum status fit_check_match_floors(const struct series *series, const struct fit_known *known,
                                   struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_floors floors = {.peak = fit_check_scale(series), .schedule = r->schedule};
    struct fit_known plain = *known;
    struct fit_set set;
    if (series->count < 3 || r->steps == 0 || r->min_lr_ratio == r->min_lr_ratio ||
        r->value_count > 0)
        return STATUS_OK;
    const double last = series->points[series->count - 1].value;
    plain.plain = 1;
    plain.evaluations = FIT_OF_ONE_FLOOR;
    while (out->expected == NULL && fit_next_floor(&floors, last, &plain.request)) {
        if (sched_find_in(r->contract->family, plain.request.schedule) == NULL) continue;
        TRY(fit_series(series, &plain, arena, &set));
        for (size_t i = 0; i < set.count && out->expected == NULL; i++)
            if (has_given(&set.fits[i], known, r->steps))
                TRY(accept_floor(series, known, &set.fits[i], arena, out));
    }
    return STATUS_OK;
}

static int within_total(const struct fit *fit) {
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].last > fit->plan.steps) return 0;
    return 1;
}

/* Sets out->expected where the expectation agrees everywhere once updates were skipped. */
enum status fit_check_match_skips(const struct series *series, const struct fit_known *known,
                                  struct arena *arena, struct fit_check *out) {
    struct fit_known lagging = *known;
    struct fit_set own;
    lagging.plain = lagging.with_skips = 1;
    TRY(fit_series(series, &lagging, arena, &own));
    for (size_t i = 0; i < own.count && out->expected == NULL; i++)
        if (fit_skips_any(&own.fits[i]) && has_given(&own.fits[i], known, known->request.steps) &&
            within_total(&own.fits[i]))
            TRY(accept_floor(series, known, &own.fits[i], arena, out));
    return STATUS_OK;
}

/* A search for skipped updates may miss a floor that nobody gave. Where it finds nothing and the
 * best explanation is a scheduler that is one update late, the floor of that is tried: the
 * expectation whose update 1 was skipped may print the same, and neither may be named alone then.
 */
enum status fit_check_match_late(const struct series *series, const struct fit_known *known,
                                 const struct fit_set *all, struct arena *arena,
                                 struct fit_check *out) {
    struct fit_known floored = *known;
    const char *early;
    if (all->count == 0 || !fit_contract_is_late(all->fits[0].contract) ||
        !(all->fits[0].floor_ratio > 0.0) ||
        known->request.min_lr_ratio == known->request.min_lr_ratio)
        return STATUS_OK;
    TRY(fit_early_skip(all, known, arena, &early));
    if (early == NULL) return STATUS_OK;
    floored.request.min_lr_ratio = all->fits[0].floor_ratio;
    return fit_check_match_skips(series, &floored, arena, out);
}
