/* SPDX-License-Identifier: Apache-2.0
 * Whether the skipped updates that a log counts leave room for a fit without any: under a contract
 * whose schedule holds at them, the LR of a row is that of a counter which lags behind.
 *
 * Only the rows up to the first resume are asked, since nobody counts what a resume forgot.
 * Invariant: a fit is refuted only where no staircase of lags that the counts allow prints the rows
 * up to one of them. */
#include "base/real.h"
#include "forensics/fit_search.h"

/* The lags that are possible: those that a row's LR has seen, or those that count its own update,
 * too. */
struct lags {
    uint64_t low, high;
};

/* Tells whether the fit is one whose counter may lag at all, and has no lag of its own yet. */
static int may_lag(const struct fit *fit, const struct fit_known *known) {
    return known->skips.least != NULL && known->skips.shown > 0 && !known->steps_guessed &&
           known->request.skipped_count == 0 && fit->contract->on_skip == CONTRACT_SKIP_HOLD &&
           fit->contract->unit != CONTRACT_UNIT_EPOCH && fit->schedule->state_size == 0 &&
           !fit->schedule->feedback && fit->stride == 1.0 && fit->segment_count == 1 &&
           !fit->first_differs && fit->samples == NULL && fit->plan.skipped_count == 0 &&
           fit->part_count == 0;
}

/* Adds up what the log counts of the updates behind the point before. */
static struct lags counted_since(const struct fit_evidence *skips, const struct series *series,
                                 size_t i) {
    struct lags counted = {0, 0};
    for (size_t row = i > 0 ? series->points[i - 1].row + 1 : 0; row <= series->points[i].row;
         row++) {
        counted.low += skips->least[row];
        counted.high += skips->most[row];
    }
    return counted;
}

/* Narrows the lags to those between the first and the last with which the point prints what it
 * does. Returns 0 where there is none. `before` is how many updates its LR has seen. */
static int narrow(const struct fit *fit, const struct series_point *point, uint64_t before,
                  double scale, struct lags *seen) {
    if (seen->high > before) seen->high = before;
    while (seen->low <= seen->high &&
           !fit_matches(point, contract_applied(&fit->plan, before + 1 - seen->low), scale, NULL))
        seen->low++;
    if (seen->low > seen->high) return 0;
    while (seen->high > seen->low &&
           !fit_matches(point, contract_applied(&fit->plan, before + 1 - seen->high), scale, NULL))
        seen->high--;
    return 1;
}

int fit_counts_refute(const struct fit *fit, const struct fit_known *known,
                      const struct series *series, double scale, struct fit_refuted *out) {
    const uint64_t own = fit->contract->logged == CONTRACT_LOGGED_NEXT ? 0 : 1;
    struct lags all = {0, 0};
    uint64_t update = 0;
    if (!may_lag(fit, known)) return 0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        if (i > 0 && (point->part != series->points[i - 1].part || point->update <= update))
            return 0;
        const struct lags counted = counted_since(&known->skips, series, i);
        /* Of the updates behind the row before, the row's LR has not seen the last one where it is
         * the LR that was used. */
        const uint64_t room = point->update - update - own, before = point->update - own;
        const uint64_t highest = counted.high < room ? counted.high : room;
        struct lags seen = {all.low + (counted.low > own ? counted.low - own : 0),
                            all.high + highest};
        const uint64_t least = seen.low < before ? seen.low : before;
        if (!narrow(fit, point, before, scale, &seen)) {
            if (all.low + counted.low == 0) return 0; /* not what is counted, but the fit */
            *out = (struct fit_refuted){i, all.low + counted.low,
                                        contract_applied(&fit->plan, before + 1 - least)};
            return 1;
        }
        /* What the LR has seen tells of the row before, too. */
        if (all.low + highest < seen.low) all.low = seen.low - highest;
        if (all.high > seen.high) all.high = seen.high;
        const uint64_t most = all.high + counted.high;
        all.low = seen.low > all.low + counted.low ? seen.low : all.low + counted.low;
        all.high = seen.high + own < most ? seen.high + own : most;
        if (all.low > all.high) all.high = all.low;
        update = point->update;
    }
    return 0;
}
