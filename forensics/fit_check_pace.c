/* SPDX-License-Identifier: Apache-2.0
 * What a pass of `lr check` does not show where the warm-up or the total was fitted: how often the
 * scheduler moves. A schedule depends on its counter only as a share of its lengths, so one that
 * moves twice per update, with lengths that are twice as long, prints the same column. */
#include <stdio.h>

#include "base/number.h"
#include "forensics/fit_check_parts.h"

static int changes(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].value != series->points[0].value) return 1;
    return 0;
}

/* Returns the expectation with a counter that moves twice per update. Lengths that were fitted are
 * twice as long; a total where the log ends is no fitted one, since training ends with it. */
static struct fit twice_as_fast(const struct fit *fit, uint32_t fitted, uint64_t last) {
    struct fit twice = *fit;
    twice.plan.increment *= 2.0;
    if ((fitted & FIT_OF_WARMUP) != 0) {
        twice.warmup = twice.plan.warmup_updates *= 2.0;
        twice.plan.call.warmup *= 2.0;
    }
    if ((fitted & FIT_OF_STEPS) != 0 && fit->steps != last) {
        twice.steps = twice.plan.steps *= 2;
        twice.plan.call.total *= 2.0;
    }
    return twice;
}

static int prints_every_row(const struct series *series, const struct fit *fit) {
    const double scale = fit_check_scale(series);
    for (size_t i = 0; i < series->count; i++)
        if (!fit_matches(&series->points[i], fit_logged(fit, i, series->points[i].update), scale,
                         NULL))
            return 0;
    return 1;
}

enum status fit_check_untested(const struct series *series, struct arena *arena,
                               struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char warmup[64] = "", total[64] = "", *text;
    if (out->verdict != FIT_PASS || fit->segment_count != 1 || fit->stride != 1.0 ||
        fit->samples != NULL || fit->in_samples || fit->epoch_updates > 0 ||
        fit->schedule->feedback || !changes(series))
        return STATUS_OK;
    struct fit twice = twice_as_fast(fit, out->fitted, fit_check_bare(series).last);
    if (!prints_every_row(series, &twice)) return STATUS_OK;
    if (twice.warmup != fit->warmup)
        snprintf(warmup, sizeof warmup, " a warm-up of %s", number_text_f64(twice.warmup).text);
    if (twice.steps != fit->steps) {
        struct fit shorter = twice;
        shorter.plan.steps = fit->plan.steps;
        shorter.plan.call.total = fit->plan.call.total;
        if (!prints_every_row(series, &shorter)) /* the schedule has a total */
            snprintf(total, sizeof total, "%s a total of %llu", warmup[0] != '\0' ? " and" : "",
                     (unsigned long long)twice.steps);
    }
    if (warmup[0] == '\0' && total[0] == '\0') return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "how often the scheduler moves, since nobody gave %s: twice per update, "
                     "with%s%s, it prints the same",
                     warmup[0] == '\0'  ? "the total (--steps)"
                     : total[0] == '\0' ? "the warm-up (--warmup)"
                                        : "the warm-up (--warmup) or the total (--steps)",
                     warmup, total));
    out->untested = text;
    return STATUS_OK;
}
