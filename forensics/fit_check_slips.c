/* SPDX-License-Identifier: Apache-2.0
 * What withdraws a pass of `lr check` that rests on skipped updates which nothing shows: a slip
 * that prints the same rows without any. A scheduler that lost steps at a resume is one, so is a
 * total or a warm-up that is a little longer or a multiple; and a number of skipped updates that
 * was fitted to one row explains whatever that row says.
 *
 * And what withdraws a failure: a total or a warm-up that nobody said and no row shows.
 *
 * Invariant: a verdict becomes undecided here, and nothing else changes. */
#include "base/macro.h"
#include "forensics/fit_check_parts.h"
#include "forensics/words.h"

/* Returns the part, not the first one, whose counter is behind by a number that was fitted to it;
 * 0: there is none. Neither the updates that were skipped in front of it nor the number of updates
 * say so many. */
static size_t part_behind(const struct fit *fit) {
    for (size_t p = 1; p < fit->part_count; p++)
        if (fit->parts[p].begins == FIT_PART_OTHER && fit->parts[p].lag > 0) return p;
    return 0;
}

/* Returns the largest update in front of the one where a part begins that a row shows; 0: none. */
static uint64_t update_before(const struct series *series, size_t point) {
    for (size_t i = point; i-- > 0;)
        if (series->points[i].update < series->points[point].update)
            return series->points[i].update;
    return 0;
}

/* Returns the part in front of which a skipped update may lie, or whose first row may be it; 0:
 * there is none. */
static size_t part_at_skip(const struct fit *fit, const struct series *series) {
    for (size_t p = 1; p < fit->part_count; p++) {
        const size_t point = fit->parts[p].point;
        const uint64_t from = update_before(series, point), to = series->points[point].update;
        for (size_t s = 0; s < fit->skip_count; s++)
            if (fit->skips[s].last >= from && fit->skips[s].first <= to) return p;
    }
    return 0;
}

static enum status say_resume(size_t part, struct arena *arena, char **text) {
    return arena_format(arena, text,
                        "a count of skipped updates, or --skipped: at resume %zu a scheduler whose "
                        "saved state was older than the weights prints the same",
                        part);
}

/* Returns the fit without skipped updates, with lengths that are so many times as long and so many
 * updates more. */
static struct fit longer(const struct fit *fit, double times_total, double more_total,
                         double times_warmup, double more_warmup) {
    struct fit other = *fit;
    other.plan.skipped = NULL;
    other.plan.skipped_count = other.skip_count = other.part_count = 0;
    other.plan.call.total = times_total * fit->plan.call.total + more_total * fit->plan.increment;
    other.plan.call.warmup =
        times_warmup * fit->plan.call.warmup + more_warmup * fit->plan.increment;
    other.plan.steps = (uint64_t)(times_total * (double)fit->plan.steps + more_total);
    other.plan.warmup_updates = times_warmup * fit->plan.warmup_updates + more_warmup;
    return other;
}

/* Returns how many of the first rows the fit prints. */
static size_t prints(const struct fit *fit, const struct series *series, double scale) {
    size_t i = 0;
    while (
        i < series->count &&
        fit_matches(&series->points[i], fit_logged(fit, i, series->points[i].update), scale, NULL))
        i++;
    return i;
}

/* A warm-up lies within its total. */
static int is_whole(const struct fit *fit) {
    return !(fit->plan.call.total > 0.0) || fit->plan.call.warmup < fit->plan.call.total;
}

/* Updates one after the other, or between two rows, that a scaler skips in the middle of a run
 * without a word: an overflow halves the loss scale, and the next update may overflow, too. At the
 * start of a run the scale may be far too high. Chosen. */
#define BURST 3

/* Returns the first update of more skipped ones than that, which are not the first of the run, and
 * no more than one row lies between each and the next; 0: there is none. */
static uint64_t burst_at(const struct fit *fit) {
    uint64_t first = 0, last = 0, count = 0;
    for (size_t i = 0; i < fit->skip_count; i++) {
        const struct fit_skip *const skip = &fit->skips[i];
        if (i == 0 || skip->first > last + 1 || skip->part != fit->skips[i - 1].part) {
            first = skip->first;
            count = 0;
        }
        last = skip->last;
        count += skip->count;
        if (first > 1 && count > BURST) return first;
    }
    return 0;
}

/* What an accumulation or a number of processes makes of a length that is not divided by it. */
static const double multiples[] = {2.0, 3.0, 4.0, 8.0};

/* Updates by which a length is longer at most. Chosen: a call too many or too few for each of a few
 * skipped updates. */
#define LONGER 24

/* Stores the lengths with which the same contract prints every row without a skipped update: as
 * many updates more as are skipped at most, or a multiple. Returns 0 where there are none. */
static int find_longer(const struct fit *fit, const struct series *series, struct fit *out) {
    const double scale = fit_check_scale(series);
    const uint64_t needed = fit_skipped(fit);
    const int most = needed < LONGER ? (int)needed : LONGER;
    const int has_total = fit->plan.call.total > 0.0;
    if (fit->samples != NULL || fit->epoch_updates > 0 || fit->segment_count != 1) return 0;
    for (int total = 0; total <= most; total++)
        for (int warmup = 0; warmup <= most; warmup++) {
            if (total + warmup == 0 || (total > 0 && !has_total)) continue;
            *out = longer(fit, 1.0, total, 1.0, warmup);
            if (is_whole(out) && prints(out, series, scale) == series->count) return 1;
        }
    for (size_t i = 0; i < COUNT_OF(multiples); i++)
        for (int which = 1; which < 4; which++) {
            *out = longer(fit, (which & 1) ? multiples[i] : 1.0, 0.0,
                          (which & 2) ? multiples[i] : 1.0, 0.0);
            if (has_total && is_whole(out) && prints(out, series, scale) == series->count) return 1;
        }
    return 0;
}

/* Tells whether the last row is the only one that a schedule without skipped updates does not
 * print.
 */
static int is_shown_by_last(const struct fit *fit, const struct series *series) {
    const struct fit other = longer(fit, 1.0, 0.0, 1.0, 0.0);
    return prints(&other, series, fit_check_scale(series)) + 1 == series->count;
}

/* Says what else prints the rows of updates that nothing shows to be skipped; leaves *text NULL
 * where nothing does. */
static enum status say_slip(const struct fit *fit, const struct series *series, struct arena *arena,
                            char **text) {
    struct fit other;
    const size_t part = part_at_skip(fit, series);
    if (part > 0) return say_resume(part, arena, text);
    if (find_longer(fit, series, &other))
        return arena_format(
            arena, text,
            "a count of skipped updates, the loss scale, or --skipped: with a total "
            "of %llu and a warm-up of %s the same rows need no skipped update",
            (unsigned long long)other.plan.steps, word_about(other.plan.warmup_updates).text);
    if (is_shown_by_last(fit, series))
        return arena_format(arena, text,
                            "a row behind update %llu, a count of skipped updates, or --skipped: "
                            "the last row is all that shows a skipped update, and any other LR "
                            "would show another number of them",
                            (unsigned long long)series->points[series->count - 1].update);
    if (burst_at(fit) > 0)
        return arena_format(arena, text,
                            "a count of skipped updates, the loss scale, or --skipped: more than "
                            "%d from update %llu on are many for a scaler, and a scheduler that "
                            "was not stepped, or whose saved state was older than the weights at a "
                            "resume, prints the same",
                            BURST, (unsigned long long)burst_at(fit));
    return STATUS_OK;
}

enum status fit_check_doubt_slips(const struct series *series, const struct fit_known *known,
                                  struct arena *arena, struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char *text = NULL;
    if (out->verdict != FIT_PASS || fit == NULL || !fit_skips_any(fit)) return STATUS_OK;
    const size_t part = part_behind(fit);
    if (part > 0)
        TRY(say_resume(part, arena, &text));
    else if (known->skips.shown == 0 && known->request.skipped_count == 0)
        TRY(say_slip(fit, series, arena, &text));
    if (text == NULL) return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    out->needs = text;
    return STATUS_OK;
}

/* ---- a total or a peak behind the last row ---- */

/* Tells whether the rows are those of a warm-up of the contract whose end no row shows, up to a
 * peak that may be the one that was said. */
static int may_be_rising(const struct fit *fit, const struct fit_known *known) {
    return fit->contract == known->request.contract && fit->reached > 0.0 && fit->bug == NULL &&
           !fit->unsound && fit->segment_count == 1 && fit->stride == 1.0 && !fit->first_differs &&
           !fit_skips_any(fit) && !(known->request.lr < fit->reached);
}

enum status fit_check_doubt_peak(const struct fit_known *known, struct arena *arena,
                                 struct fit_check *out) {
    char *text;
    if (out->verdict != FIT_FAIL || (out->fitted & FIT_OF_WARMUP) == 0 ||
        known->request.schedule != NULL)
        return STATUS_OK;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *const fit = &out->found.fits[i];
        if (!may_be_rising(fit, known)) continue;
        TRY(arena_format(arena, &text,
                         "every printed LR lies in a warm-up that %s prints, and no row shows its "
                         "end",
                         known->request.contract->name));
        out->words = text;
        out->needs = "--warmup of the training, or rows behind the warm-up";
        out->verdict = FIT_UNDECIDED;
        out->bad_points = 0;
        out->bug = NULL;
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* How many times as long as the log a total is tried. Chosen: a schedule whose rows lie on a
 * plateau or in a warm-up prints them with any that is long enough. */
static const uint64_t totals[] = {2, 4, 16, 1024};

enum status fit_check_doubt_total(const struct series *series, const struct fit_known *known,
                                  struct arena *arena, struct fit_check *out) {
    struct contract_request request = known->request;
    const double scale = fit_check_scale(series);
    const uint64_t last = fit_check_bare(series).last;
    char *text;
    if (out->verdict != FIT_FAIL || (out->fitted & FIT_OF_STEPS) == 0 || request.schedule == NULL ||
        request.epochs > 0.0)
        return STATUS_OK;
    if (request.lr != request.lr) request.lr = scale;
    if (request.warmup != request.warmup) {
        if (request.warmup_ratio == request.warmup_ratio) return STATUS_OK;
        request.warmup = out->found.count > 0 ? fit_round(out->found.fits[0].warmup) : 0.0;
    }
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        struct contract_plan plan;
        size_t row = 0;
        request.steps = totals[i] * last;
        const enum status status = contract_resolve(&request, arena, &plan);
        if (status == STATUS_INPUT) continue;
        TRY(status);
        while (row < series->count &&
               fit_matches(&series->points[row], contract_logged(&plan, series->points[row].update),
                           scale, NULL))
            row++;
        if (row < series->count) continue;
        TRY(arena_format(arena, &text,
                         "every printed LR agrees with %s and a total of %llu, and no row shows "
                         "the total",
                         request.contract->name, (unsigned long long)request.steps));
        out->words = text;
        out->needs = "--steps of the training";
        out->verdict = FIT_UNDECIDED;
        out->bad_points = 0;
        out->bug = NULL;
        return STATUS_OK;
    }
    return STATUS_OK;
}
