/* SPDX-License-Identifier: Apache-2.0
 * A log against an expected contract. A match is a pass only where no other contract would have
 * logged the same with the same numbers and applied something else (forensics/fit_rivals.c).
 *
 * Invariant: FIT_FAIL names a point, FIT_PASS means that every point agrees, FIT_UNDECIDED says
 * what would decide. */
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_check_parts.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_used.h"

static enum status say_match(const struct fit_known *known, struct arena *arena,
                             struct fit_check *out) {
    char *text;
    const char *name = known->request.contract->name;
    if (out->verdict != FIT_PASS && out->rival != NULL && fit_skips_any(out->expected))
        TRY(arena_format(arena, &text,
                         "every printed LR agrees with %s, and just as well with %s, which skipped "
                         "nothing and applies other LRs",
                         out->expected->text, out->rival));
    else if (out->verdict == FIT_PASS)
        TRY(arena_format(arena, &text, "every printed LR is the one that %s logs (%s)", name,
                         out->expected->text));
    else if (out->rival != NULL)
        TRY(arena_format(arena, &text,
                         "every printed LR agrees with %s, and just as well with %s, which applies "
                         "other LRs",
                         name, out->rival));
    else
        TRY(arena_format(arena, &text,
                         "every printed LR agrees with %s, but the log cannot say more", name));
    out->words = text;
    return STATUS_OK;
}

enum status fit_check_search_all(const struct series *series, const struct fit_known *known,
                                 struct arena *arena, struct fit_set *out) {
    struct fit_known every = *known;
    every.expected = known->request.contract;
    every.believed = &known->request;
    every.possible = NULL; /* a departure may look like any framework */
    every.request.contract = NULL;
    every.request.schedule = NULL;
    every.request.value_count = 0;
    return fit_series(series, &every, arena, out);
}

struct fit_set fit_check_bare(const struct series *series) {
    struct fit_set set = {.series = series};
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].update > set.last) set.last = series->points[i].update;
    return set;
}

/* Where the batch stays, the warm-up or the total may be samples that are no whole number of
 * updates. Sets *out where the expectation then agrees everywhere. Skipped updates that were given,
 * and the run's own number of updates, are none of samples: over these they would be forgotten, and
 * what contradicts them would pass. So would a scheduler that stopped before the log's total, which
 * counts for nothing beside samples. */
static enum status check_samples(const struct series *series, const struct fit_known *known,
                                 const struct fit_set *all, int applied, struct arena *arena,
                                 struct fit_check *out) {
    struct fit_known steady = *known;
    struct fit_check counted;
    const struct contract_request *const r = &known->request;
    if (known->steady == NULL || !fit_samples_counts(r->contract) || r->skipped_count > 0 ||
        (r->steps > 0 && (r->steps == known->run_steps || r->steps == fit_check_bare(series).last)))
        return STATUS_OK;
    struct fit_stop stop;
    TRY(fit_find_stop(series, known, all, arena, &stop));
    if (stop.fit != NULL) return STATUS_OK;
    steady.samples = known->steady;
    steady.steady = NULL;
    TRY(fit_check(series, &steady, applied, arena, &counted));
    if (counted.verdict != FIT_PASS) return STATUS_OK;
    *out = counted;
    TRY(fit_check_doubt_samples(known, all, arena, out));
    TRY(fit_check_doubt_numbers(known, arena, out));
    return out->verdict == FIT_PASS ? STATUS_OK : say_match(known, arena, out);
}

/* A failure says that no numbers of the expected contract print the column. It is none where those
 * of another contract's fit, or numbers beside them, print it under the expected one, too; nor
 * where what explains it rests on numbers that nobody gave and nobody would type. */
static enum status doubt_mismatch(const struct series *series, const struct fit_known *mine,
                                  const struct fit_set *all, int applied, struct arena *arena,
                                  struct fit_check *out) {
    const uint32_t open = FIT_OF_LR | FIT_OF_WARMUP | FIT_OF_STEPS | FIT_OF_SCHEDULE;
    struct fit_check borrowed = {.fitted = out->fitted, .from_log = out->from_log};
    TRY(fit_check_doubt_total(series, mine, arena, out));
    TRY(fit_check_doubt_peak(mine, arena, out));
    if (out->verdict != FIT_FAIL || (out->fitted & open) == 0) return STATUS_OK;
    TRY(fit_check_match_borrowed(series, mine, all, arena, &borrowed));
    if (fit_check_stands(mine, out, &borrowed)) return STATUS_OK;
    if (borrowed.expected == NULL) return fit_check_doubt_unproven(mine, arena, out);
    *out = borrowed;
    TRY(fit_find_rivals(series, mine, out->expected, arena, &out->found));
    TRY(fit_judge_rivals(mine, applied, arena, out));
    fit_check_doubt_borrowed(out);
    return say_match(mine, arena, out);
}

static enum status check_once(const struct series *series, const struct fit_known *known,
                              int applied, struct arena *arena, struct fit_check *out) {
    struct fit_known mine = *known;
    memset(out, 0, sizeof *out);
    if (mine.samples != NULL && fit_samples_counts(mine.request.contract)) fit_samples_known(&mine);
    TRY(fit_check_settle(series, &mine, arena, out));
    if (series->count == 0) {
        out->verdict = FIT_UNDECIDED;
        out->why = FIT_WHY_NO_COLUMN;
        out->found = (struct fit_set){.series = series, .why = FIT_WHY_NO_COLUMN};
        out->words = "the log has no learning rate";
        out->needs = "a learning-rate column (--map lr_logged=NAME)";
        return STATUS_OK;
    }
    if (mine.growing && mine.request.contract->unit == CONTRACT_UNIT_SAMPLE &&
        (mine.samples == NULL || !fit_samples_counts(mine.request.contract))) {
        out->verdict = FIT_UNDECIDED;
        out->why = FIT_WHY_BATCH;
        out->found = fit_check_bare(series);
        out->words = "the batch grows, and the schedule counts samples";
        out->needs = "the samples that every update consumed, and a log of the next LR";
        return STATUS_OK;
    }
    if (fit_check_lacks_metric(&mine)) {
        out->verdict = FIT_UNDECIDED;
        out->found = fit_check_bare(series);
        out->words = "the log has no metric that the schedule could have followed";
        out->needs = "--metric, or a log with eval_loss or loss and update numbers";
        return STATUS_OK;
    }
    TRY(fit_check_match(series, &mine, arena, out));
    TRY(fit_check_match_unseen(series, &mine, arena, out));
    struct fit_set all = fit_check_bare(series);
    if (out->expected == NULL) {
        TRY(fit_check_search_all(series, &mine, arena, &all));
        TRY(fit_check_match_among(series, &mine, &all, arena, out));
    }
    if (out->expected == NULL) TRY(fit_check_match_floors(series, &mine, arena, out));
    if (out->expected == NULL) {
        const struct fit_check before = *out;
        TRY(fit_check_match_skips(series, &mine, arena, out));
        if (out->expected == NULL) TRY(fit_check_match_late(series, &mine, &all, arena, out));
        if (out->expected != NULL) TRY(fit_check_judge_skips(series, &mine, arena, out));
        /* A rival stands, and the log shows that nothing was skipped, or with these skipped updates
         * other LRs would have been applied than were recorded. */
        if (out->expected == NULL || (out->verdict == FIT_UNDECIDED && mine.skips.quiet) ||
            (applied && mine.used != NULL && fit_used_refutes(mine.used, out->expected, series))) {
            *out = before;
            TRY(check_samples(series, known, &all, applied, arena, out));
            if (out->expected != NULL) return STATUS_OK;
            if (applied && mine.used != NULL) TRY(fit_keep_used(&all, arena, mine.used));
            TRY(fit_check_mismatch(series, &mine, &known->request, &all, arena, out));
            TRY(fit_check_doubt_rising(series, &mine, arena, out));
            return doubt_mismatch(series, &mine, &all, applied, arena, out);
        }
        fit_check_doubt_shown(series, &mine, out);
        TRY(fit_check_doubt_beside(series, &mine, arena, out));
        TRY(fit_check_doubt_slips(series, &mine, arena, out));
        fit_check_doubt_release(&mine, out);
        fit_check_doubt_few(series, out);
        return say_match(&mine, arena, out);
    }
    TRY(fit_find_rivals(series, &mine, out->expected, arena, &out->found));
    TRY(fit_judge_rivals(&mine, applied, arena, out));
    if (applied) TRY(fit_judge_plainer(series, &mine, arena, out));
    if (applied) TRY(fit_check_doubt_longer(&mine, arena, out));
    TRY(fit_check_doubt_assumed(arena, out));
    TRY(fit_check_doubt_floor(&mine, arena, out));
    fit_check_doubt_drop(&mine, out);
    TRY(fit_check_doubt_numbers(&mine, arena, out));
    fit_check_doubt_release(&mine, out);
    fit_check_doubt_few(series, out);
    return say_match(&mine, arena, out);
}

/* Stores the fit of the expected contract that the log's count of skipped updates leaves room for,
 * whatever its numbers are but the total; NULL: there is none. */
static enum status find_counted(const struct series *series, const struct fit_known *held,
                                int applied, struct arena *arena, const struct fit **out) {
    struct fit_known any = *held;
    struct fit_check check;
    any.request.lr = any.request.warmup = any.request.warmup_ratio = real_nan_f64();
    any.request.min_lr_ratio = real_nan_f64();
    any.request.schedule = NULL;
    any.request.value_count = 0;
    TRY(check_once(series, &any, applied, arena, &check));
    *out = check.bad_points == 0 && check.verdict != FIT_FAIL ? check.expected : NULL;
    return STATUS_OK;
}

static void find_alone(const struct series *series, const struct fit *fit, struct fit_check *out) {
    out->found = fit_check_bare(series);
    out->found.fits = fit;
    out->found.count = 1;
}

/* Holds a match without skipped updates against those that the log counts: a longer warm-up prints
 * the LRs of a shorter one in which updates were skipped. Where the count refutes it, the
 * expectation must match with skipped updates; it fails where other numbers do, and where nothing
 * does, the scheduler may go on at skipped updates, which the count does not say. */
static enum status hold_to_counts(const struct series *series, const struct fit_known *known,
                                  int applied, struct arena *arena, struct fit_check *out) {
    struct fit_known held = *known;
    struct fit_check other;
    struct fit_refuted refuted;
    const struct fit *counted = NULL;
    char *text;
    if (known->skips.counted == FIT_COUNTED_NOT || out->verdict == FIT_FAIL ||
        out->expected == NULL || out->bad_points > 0 ||
        !fit_counts_refute(out->expected, known, series, fit_check_scale(series), &refuted))
        return STATUS_OK;
    held.counts_hold = 1;
    TRY(check_once(series, &held, applied, arena, &other));
    if (other.expected != NULL && other.bad_points == 0) {
        *out = other;
        return STATUS_OK;
    }
    if (known->skips.counted == FIT_COUNTED_EXACTLY)
        TRY(find_counted(series, &held, applied, arena, &counted));
    TRY(arena_format(arena, &text,
                     "the log counts %llu skipped update%s up to update %llu, where %s would then "
                     "print %s and not %s%s%s",
                     (unsigned long long)refuted.skipped, refuted.skipped == 1 ? "" : "s",
                     (unsigned long long)series->points[refuted.point].update, out->expected->text,
                     number_text_f64(refuted.expected).text,
                     number_text_f64(series->points[refuted.point].value).text,
                     counted != NULL ? "; with them the log fits " : "",
                     counted != NULL ? counted->text : ""));
    out->words = text;
    out->rival = out->needs = NULL;
    if (counted != NULL) {
        out->verdict = FIT_FAIL;
        out->bad_points = 1;
        out->first = refuted.point;
        out->first_expected = refuted.expected;
        find_alone(series, counted, out);
        return STATUS_OK;
    }
    out->verdict = FIT_UNDECIDED;
    out->needs = "--skipped with the updates that were skipped, or whether the scheduler of the "
                 "training goes on at them";
    return STATUS_OK;
}

/* Of a log that fails and counts skipped updates: names what the expected contract prints with
 * them, where that is the whole column. What stands first without them, another framework's warm-up
 * or a counter that moves by 2, does not say what the log counts. */
static enum status name_counted(const struct series *series, const struct fit_known *known,
                                int applied, struct arena *arena, struct fit_check *out) {
    struct fit_known held = *known;
    const struct fit *counted;
    char *text;
    if (out->verdict != FIT_FAIL || known->skips.counted != FIT_COUNTED_EXACTLY ||
        known->skips.shown == 0 || known->request.contract == NULL || out->found.count == 0)
        return STATUS_OK;
    const struct fit *const first = &out->found.fits[0];
    if (first->contract == known->request.contract && first->skip_count > 0) return STATUS_OK;
    held.counts_hold = 1;
    TRY(find_counted(series, &held, applied, arena, &counted));
    if (counted == NULL) return STATUS_OK;
    TRY(arena_format(arena, &text, "fits %s", counted->text));
    out->words = text;
    out->why = 0;
    find_alone(series, counted, out);
    return STATUS_OK;
}

enum status fit_check(const struct series *series, const struct fit_known *known, int applied,
                      struct arena *arena, struct fit_check *out) {
    TRY(check_once(series, known, applied, arena, out));
    TRY(hold_to_counts(series, known, applied, arena, out));
    TRY(name_counted(series, known, applied, arena, out));
    return fit_check_untested(series, arena, out);
}
