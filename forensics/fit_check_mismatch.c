/* SPDX-License-Identifier: Apache-2.0
 * What `lr check` says of a column that is not the expected one: what it is instead, and whether
 * that is a failure or leaves the check undecided. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_check_parts.h"

/* How many updates the logged column runs ahead of f(k-1): -1, 0 or 1 in every shipped contract, so
 * two of them are at most two updates apart. */
static int ahead(const struct contract *contract) {
    return contract->offset + (contract->logged == CONTRACT_LOGGED_NEXT);
}

/* Returns the share of the schedule that one update goes on. */
static double pace(const struct fit *fit) {
    return fit->plan.call.total > 0.0 ? fit->plan.increment / fit->plan.call.total : 1.0;
}

static int same_lengths(const struct fit *a, const struct fit *b) {
    /* A feedback schedule has no share of a total. */
    if (a->schedule->feedback || b->schedule->feedback) return 0;
    return fit_near(a->lr, b->lr) && fit_near(a->warmup, b->warmup) &&
           (a->steps == b->steps || a->steps == 0 || b->steps == 0) && a->stride == b->stride &&
           a->segment_count == b->segment_count && fit_near(pace(a), pace(b));
}

/* Returns by how many updates the column of a fit runs ahead of the expected one, where it is that
 * column and nothing else differs; 0 where it is not. Equal numbers are no proof of it: the two may
 * follow other schedules or end at other floors. */
static int shift_of(const struct fit *fit, const struct fit_check *out) {
    const int by = ahead(fit->contract) - ahead(out->expected->contract);
    const int same = same_lengths(fit, out->expected) &&
                     fit_logs_shifted(fit, out->expected, by, out->found.series);
    return same ? by : 0;
}

/* Says that the column is the expected one, some updates on: either another training, or the same
 * training that logs the LR of another update. */
static enum status say_shift(const struct fit_known *known, int by, struct arena *arena,
                             struct fit_check *out) {
    const struct contract *expected = known->request.contract;
    /* `other` trains differently from the expectation, `alike` trains as expected. */
    const struct fit *other = NULL, *alike = NULL;
    char *text;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *fit = &out->found.fits[i];
        if (shift_of(fit, out) != by) continue;
        const int same = fit_applied_apart(fit, out->expected, &out->found) == 0;
        if (same && alike == NULL) alike = fit;
        if (!same && other == NULL) other = fit;
    }
    const char *first = other != NULL ? other->contract->name : alike->contract->name;
    const char *away = by == 1    ? "one update ahead of"
                       : by == -1 ? "one update behind"
                       : by > 0   ? "two updates ahead of"
                                  : "two updates behind";
    if (other != NULL && alike != NULL)
        TRY(arena_format(arena, &text,
                         "fits %s: every LR is %s %s; or %s, which trains as %s and only logs the "
                         "LR of another update: the log cannot tell which",
                         first, away, expected->name, alike->contract->name, expected->name));
    else if (alike != NULL)
        TRY(arena_format(
            arena, &text,
            "fits %s, which trains as %s and only logs the LR of another update: every "
            "printed LR is %s %s",
            first, expected->name, away, expected->name));
    else
        TRY(arena_format(arena, &text, "fits %s: every LR is %s %s", first, away, expected->name));
    out->words = text;
    if (by < 0 && other != NULL && alike == NULL && fit_applied(other, 0, 1) == 0.0 &&
        fit_applied(out->expected, 0, 1) > 0.0) {
        out->bug = "zero_lr_first_step";
        return STATUS_OK;
    }
    /* log_next_lr is a log that is ahead of its training; one that is behind, because it prints the
     * LR that was used where the expectation prints the next one, is no bug and has no name. */
    if (by > 0)
        out->bug = other == NULL   ? "log_next_lr"
                   : alike == NULL ? "lr_ahead_by_one"
                                   : "lr_ahead_by_one or log_next_lr";
    else
        out->bug = other == NULL ? NULL : "lag1";
    return STATUS_OK;
}

/* Returns the shift of the best fit, or of any other where the best one is no known bug either: a
 * schedule that is one update late is told better by that than by whatever else prints it. */
static int any_shift(const struct fit_check *out) {
    const struct fit_set *found = &out->found;
    for (size_t i = 0; i < found->count && (i == 0 || found->fits[0].bug == NULL); i++)
        if (shift_of(&found->fits[i], out) != 0) return shift_of(&found->fits[i], out);
    return 0;
}

/* Tells whether a warm-up that was asked for as a share is the fit's, of one of its totals.
 * Contracts round it to whole updates in different ways. */
static int has_share(const struct fit *fit, double share) {
    int has = real_abs_f64(fit->warmup - share * (double)fit->steps) <= 1.0;
    for (size_t i = 0; i < fit->segment_count; i++)
        has |= real_abs_f64(fit->warmup - share * (double)fit->segments[i].steps) <= 1.0;
    return has;
}

/* Tells whether a fit of several totals is what was asked for in all but its total: the peak, the
 * warm-up, the floor, and the column that the schedule prints with the values that were given. */
static int has_asked(const struct fit *fit, const struct contract_request *asked,
                     const struct fit_check *out) {
    const struct series *const series = out->found.series;
    const double scale = fit_check_scale(series);
    const double floor = fit->floor_ratio == fit->floor_ratio ? fit->floor_ratio : 0.0;
    if (asked->lr == asked->lr && !fit_near(fit->lr, asked->lr)) return 0;
    if (fit->takes_warmup && !fit->warmup_hidden) {
        if (asked->warmup == asked->warmup && !fit_near(fit->warmup, asked->warmup)) return 0;
        if (asked->warmup_ratio == asked->warmup_ratio && !has_share(fit, asked->warmup_ratio))
            return 0;
    }
    if (asked->schedule == NULL && asked->value_count == 0)
        return asked->min_lr_ratio != asked->min_lr_ratio ||
               real_abs_f64(floor - asked->min_lr_ratio) < 1e-6;
    struct fit as_asked = *fit;
    as_asked.schedule = as_asked.plan.schedule = out->expected->plan.schedule;
    as_asked.plan.call.values = out->expected->plan.call.values;
    for (size_t i = 0; i < series->count; i++) {
        const double value = fit_logged(&as_asked, i, series->points[i].update);
        if (!fit_matches(&series->points[i], value, scale, NULL)) return 0;
    }
    return 1;
}

/* Returns the fit of the expected contract that goes on towards the total that the log says, with
 * no departure but that and updates that the log shows to have been skipped, and first the one that
 * is what was asked for; NULL: there is none, or a total was given, which does not hold throughout.
 * *has is whether it is what was asked for. */
static const struct fit *goes_on(const struct fit_known *known,
                                 const struct contract_request *asked, const struct fit_check *out,
                                 int *has) {
    const struct fit *other = NULL;
    *has = 0;
    if (((out->from_log | out->fitted) & FIT_OF_STEPS) == 0) return NULL;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *fit = &out->found.fits[i];
        int goes = fit->contract == known->request.contract && fit->bug == NULL &&
                   fit->stride == 1.0 && !fit->first_differs && fit_changes_total(fit);
        for (size_t s = 0; s < fit->segment_count; s++) {
            const struct fit_segment *segment = &fit->segments[s];
            goes &= segment->event == FIT_PLAIN ||
                    (segment->event == FIT_TOTAL && (segment->steps == known->run_steps ||
                                                     segment->steps == known->request.steps)) ||
                    (segment->event == FIT_SKIP && known->skips.shown > 0);
        }
        if (!goes) continue;
        const int asked_for = has_asked(fit, asked, out);
        *has = asked_for && fit_total_is_said(fit, known);
        if (*has) return fit;
        if (!asked_for && other == NULL) other = fit;
    }
    return other;
}

/* Share by which two peaks differ that are two: more than a warm-up between two rows leaves open.
 */
#define OTHER_PEAK 0.05

/* Tells whether a schedule may rise above its peak: a search for the largest usable LR (DeepSpeed's
 * LRRangeTest), and lists of stages or peaks that somebody wrote. */
static int may_exceed_peak(const struct sched_class *schedule) {
    return strcmp(schedule->name, "deepspeed.lr_range_test") == 0 ||
           sched_row(schedule, "stages") != NULL || sched_row(schedule, "peaks") != NULL;
}

/* Tells whether a row lies above the peak that was asked for, where no schedule that is expected
 * does. */
static int lies_above_peak(const struct contract_request *asked, const struct fit_check *out) {
    const struct series *const series = out->found.series;
    const double scale = fit_check_scale(series);
    if (asked->lr != asked->lr ||
        (out->expected != NULL && may_exceed_peak(out->expected->schedule)))
        return 0;
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].value - fit_half(&series->points[i], scale) >
            asked->lr * (1.0 + 0x1p-40))
            return 1;
    return 0;
}

/* Returns the highest peak that leaves the first row as it is, of a fit whose warm-up no row shows:
 * the sooner the warm-up ended, the farther the LR has fallen by then, and it ended at update 0 at
 * the soonest. */
static double highest_peak(const struct fit *fit, const struct series *series) {
    struct fit soonest = *fit;
    soonest.plan.call.warmup = soonest.plan.warmup_updates = 0.0;
    const double value = fit_logged(&soonest, 0, series->points[0].update);
    return value > 0.0 ? fit->lr * series->points[0].value / value : real_inf_f64();
}

/* Tells whether the fit has another peak than that, whatever the warm-up in front of the rows is.
 */
static int has_other_peak(const struct fit *fit, double peak, const struct series *series) {
    if (fit->reached > 0.0) return 0;
    if (fit->warmup_hidden) return peak > highest_peak(fit, series) * (1.0 + OTHER_PEAK);
    return !(fit->unseen_warmup > 0.0) && real_abs_f64(fit->lr / peak - 1.0) >= OTHER_PEAK;
}

/* Tells whether the rows refute the peak that was asked for, whatever the totals are: one lies
 * above it, or every fit that changes its total shows another peak, or one that lies below it for
 * each warm-up in front of the rows. */
static int refutes_peak(const struct contract_request *asked, const struct fit_check *out) {
    const struct series *const series = out->found.series;
    const double peak = asked->lr;
    if (peak != peak) return 0;
    if (lies_above_peak(asked, out)) return 1;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *const fit = &out->found.fits[i];
        if (fit_changes_total(fit) && !has_other_peak(fit, peak, series)) return 0;
    }
    return 1;
}

/* Rows in front of a break, and moves among them, that refute a peak where nothing explains the
 * whole column, and how finely they must be printed, as a share of the LR. Chosen: fewer or coarser
 * ones fit nearly any schedule. */
#define FRONT_ROWS 12
#define FRONT_MOVES 8
#define FRONT_FINE 1e-5

/* Stores the explanation of the rows in front of the first one that nothing explains, where the
 * expected contract explains them and with no peak near the one that was asked for; NULL: there is
 * none. */
static enum status front_refutes(const struct fit_known *known,
                                 const struct contract_request *asked, struct arena *arena,
                                 const struct fit_check *out, const struct fit **refuting) {
    const struct series *const series = out->found.series;
    struct fit_known plain = *known;
    struct fit_set set;
    struct series *front;
    size_t moves = 0;
    *refuting = NULL;
    if (asked->lr != asked->lr || out->found.count > 0 || out->found.first_bad < FRONT_ROWS ||
        out->found.first_bad > series->count)
        return STATUS_OK;
    for (size_t i = 1; i < out->found.first_bad; i++) {
        if (series->points[i].quantum > FRONT_FINE * series->points[i].value) return STATUS_OK;
        moves += series->points[i].value != series->points[i - 1].value;
    }
    if (moves < FRONT_MOVES) return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *front, "fit", &front));
    *front = (struct series){.points = series->points, .count = out->found.first_bad};
    plain.plain = 1;
    plain.request.steps = plain.run_steps = 0;
    TRY(fit_series(front, &plain, arena, &set)); /* the peak that was asked for is tried */
    for (size_t i = 0; i < set.count; i++)
        if (!has_other_peak(&set.fits[i], asked->lr, front)) return STATUS_OK;
    if (set.count > 0) *refuting = &set.fits[0];
    return STATUS_OK;
}

static enum status say_other(const struct fit *fit, struct arena *arena, struct fit_check *out) {
    char *text;
    TRY(arena_format(arena, &text, "fits %s: its total is not all that differs from what was asked",
                     fit->text));
    out->words = text;
    out->verdict = FIT_FAIL;
    return STATUS_OK;
}

static enum status say_peak(const struct fit *fit, struct arena *arena, struct fit_check *out) {
    char *text;
    TRY(arena_format(
        arena, &text,
        "fits %s: the rows refute the peak that was asked for, whatever the totals are",
        fit->text));
    out->words = text;
    out->bug = NULL;
    out->verdict = FIT_FAIL;
    return STATUS_OK;
}

/* No single expectation holds from the first row to the last, and none was departed from. */
static enum status say_extended(const struct fit *fit, struct arena *arena, struct fit_check *out) {
    char *text;
    TRY(arena_format(arena, &text,
                     "every printed LR agrees with %s: it is the expected contract, and its total "
                     "changed, which is sound where a resume was meant to change it",
                     fit->text));
    out->words = text;
    out->verdict = FIT_UNDECIDED;
    out->needs = "--steps, if one total was meant for the whole run, or a log of each part alone";
    return STATUS_OK;
}

/* Tells whether the best fit stands on peaks that change more than once, each time by no more than
 * two printed steps and where no resume shows: rounded rows of a schedule that was not tried to its
 * end, with skipped updates say, look like that, and no training does. */
static int is_nudged(const struct fit_set *found) {
    const struct fit *best = found->count > 0 ? &found->fits[0] : NULL;
    size_t nudges = 0;
    for (size_t s = 1; best != NULL && s < best->segment_count; s++) {
        const struct fit_segment *segment = &best->segments[s];
        const struct series_point *point = &found->series->points[segment->point];
        if (segment->event != FIT_RESCALED) continue;
        if (!fit_break_is_hidden(segment, found) ||
            real_abs_f64((segment->scale - 1.0) * point->value) > 2.0 * point->quantum)
            return 0;
        nudges++;
    }
    return nudges > 1;
}

/* Returns the fit of the expected contract that has no departure but its first update, where a
 * known bug explains the column: both are as likely where the bug needs no fewer odd numbers. */
static const struct fit *first_apart(const struct fit_known *known, const struct fit_set *found) {
    const struct fit *const best = &found->fits[0];
    if (best->bug == NULL || !fit_bug_is_in_column(best->contract)) return NULL;
    for (size_t i = 1; i < found->count; i++) {
        const struct fit *const fit = &found->fits[i];
        if (fit->contract == known->request.contract && fit->first_differs && fit->bug == NULL &&
            !fit->unsound && fit->stride == 1.0 && fit->segment_count == 1 && !fit_skips_any(fit) &&
            fit->simplicity < best->simplicity + FIT_CHECK_SIMPLER)
            return fit;
    }
    return NULL;
}

/* Cost (forensics/fit_cost.c) by which a contract of the log's own format may be dearer than
 * another one with the same numbers: the ranks of contracts that are used much. */
#define OWN_FIRST 0.5

/* Tells whether two fits say the same of the column under two contracts. */
static int says_same(const struct fit *a, const struct fit *b) {
    const int bug = a->bug != NULL;
    if (bug != (b->bug != NULL) || (bug && strcmp(a->bug, b->bug) != 0)) return 0;
    if (a->segment_count != b->segment_count || a->first_differs != b->first_differs ||
        a->stride != b->stride || a->steps != b->steps || fit_skipped(a) != fit_skipped(b))
        return 0;
    for (size_t i = 0; i < a->segment_count; i++)
        if (a->segments[i].point != b->segments[i].point ||
            a->segments[i].event != b->segments[i].event)
            return 0;
    return fit_near(a->lr, b->lr) && fit_near(a->warmup, b->warmup);
}

/* Returns the fit that a failure names: the best one, or one that says the same under the contract
 * that was asked for, whose words the reader knows. */
static const struct fit *named(const struct fit_known *known, const struct fit_set *found) {
    const struct fit *const best = &found->fits[0];
    for (size_t i = 0; i < found->count; i++)
        if (found->fits[i].contract == known->request.contract &&
            found->fits[i].simplicity <= best->simplicity + OWN_FIRST &&
            says_same(&found->fits[i], best))
            return &found->fits[i];
    return best;
}

/* Tells whether the fit has the warm-up and the total that are known, where its schedule has one.
 */
static int has_lengths(const struct fit *fit, const struct contract_request *r) {
    return !(fit->takes_warmup && r->warmup == r->warmup && !fit_near(fit->warmup, r->warmup)) &&
           !(fit->steps > 0 && r->steps > 0 && fit->steps != r->steps);
}

/* Where the fit that is named has another warm-up or total than those that are known, returns one
 * of the expected contract that has them and a counter at another pace: with one of the two fitted,
 * a warm-up of half the updates and a scheduler that moves twice per update print one column. */
static const struct fit *at_other_pace(const struct fit_known *known, const struct fit_set *found) {
    const struct contract_request *const r = &known->request;
    const struct fit *const best = named(known, found);
    if (best->contract != r->contract || best->stride != 1.0 || best->segment_count != 1 ||
        best->first_differs || fit_skips_any(best) || has_lengths(best, r))
        return NULL;
    for (size_t i = 0; i < found->count; i++) {
        const struct fit *const fit = &found->fits[i];
        if (fit->contract == r->contract && fit->stride != 1.0 && fit->segment_count == 1 &&
            !fit->first_differs && !fit->unsound && !fit_skips_any(fit) && has_lengths(fit, r) &&
            fit->simplicity < best->simplicity + FIT_CHECK_SIMPLER)
            return fit;
    }
    return NULL;
}

static enum status say_mismatch(const struct fit_known *known, struct arena *arena,
                                struct fit_check *out) {
    const struct series_point *first = &out->found.series->points[out->first];
    const struct fit *best = out->found.count > 0 ? &out->found.fits[0] : NULL, *paced = NULL;
    char *text, *bugs;
    if (best != NULL && fit_changes_total(best) && !fit_total_is_said(best, known)) {
        out->words = "fits no shipped contract with one total, and nothing says another one";
        return STATUS_OK;
    }
    if (best == NULL && out->found.partial != NULL)
        TRY(arena_format(arena, &text, "fits no shipped contract; its first %zu rows fit %s",
                         out->found.first_bad, out->found.partial));
    else if (best == NULL)
        TRY(arena_format(arena, &text, "fits no shipped contract"));
    else if (any_shift(out) != 0)
        return say_shift(known, any_shift(out), arena, out);
    else if (first_apart(known, &out->found) != NULL)
        TRY(arena_format(arena, &text, "fits %s; or %s", first_apart(known, &out->found)->text,
                         best->text));
    else if ((paced = at_other_pace(known, &out->found)) != NULL)
        TRY(arena_format(arena, &text, "fits %s; or %s", named(known, &out->found)->text,
                         paced->text));
    else
        TRY(arena_format(arena, &text, "fits %s", named(known, &out->found)->text));
    out->words = text;
    out->bug = best != NULL && first_apart(known, &out->found) == NULL ? best->bug : NULL;
    if (paced != NULL && paced->bug != NULL && out->bug != NULL) {
        TRY(arena_format(arena, &bugs, "%s or %s", out->bug, paced->bug));
        out->bug = bugs;
    }
    if ((out->found.why & FIT_WHY_NOT_FINITE) != 0 && !real_finite_f64(first->value))
        out->bug = first->update == 1 ? "zero_warmup_division" : "lr_not_finite";
    return STATUS_OK;
}

/* Tells whether the schedule depends on the size of an update that is not known: 1 / sqrt of
 * samples. */
static int counts_unknown(const struct fit_known *known, const struct fit_check *out) {
    const struct contract_request *r = &known->request;
    if (r->contract->unit != CONTRACT_UNIT_SAMPLE || r->global_batch > 0 || r->batch > 0) return 0;
    if (r->lr == r->lr && r->schedule != NULL) return 0;
    return out->found.count == 0 ||
           strncmp(sched_bare_name(out->found.fits[0].schedule), "inverse", 7) == 0;
}

/* Tells whether the contract counts epochs and nothing says how long one is, so that its stairs are
 * a guess. */
static int epoch_unknown(const struct fit_known *known, const struct fit_check *out) {
    const struct contract_request *r = &known->request;
    return r->contract->unit == CONTRACT_UNIT_EPOCH && r->updates_per_epoch == 0 &&
           r->dataset == 0 && (out->found.count == 0 || out->found.fits[0].epoch_updates == 0);
}

/* Tells whether somebody must give more numbers before a mismatch means anything: where nothing
 * fits, a guessed expectation proves nothing. `refuted` is whether no warm-up prints the column, so
 * that one which was guessed proves as much as any. */
static int too_few(const struct series *series, const struct fit_known *known,
                   const struct contract_request *asked, int refuted, const struct fit_check *out) {
    const struct contract_request *r = &known->request;
    const int finite = (out->found.why & FIT_WHY_NOT_FINITE) == 0;
    if (r->contract->unit == CONTRACT_UNIT_TOKEN && r->tokens == 0) return 1;
    if (finite && out->found.count == 0 && (out->fitted & FIT_OF_SCHEDULE) != 0) return 1;
    if (counts_unknown(known, out) || epoch_unknown(known, out)) return 1;
    /* What may be sound behind a resume is no mismatch with an expectation of which a number was
     * guessed, unless the rows refute the peak that was asked for. */
    if (finite && out->found.count > 0 && fit_changes_total(&out->found.fits[0]) &&
        !fit_total_is_said(&out->found.fits[0], known) && out->fitted != 0 &&
        !refutes_peak(asked, out))
        return 1;
    const int guessed = (out->fitted & (FIT_OF_LR | FIT_OF_STEPS | FIT_OF_WARMUP)) != 0;
    return guessed &&
           (series->count < 3 || ((out->found.why & FIT_WHY_CONSTANT) != 0 && !refuted) ||
            out->found.count == 0);
}

/* Puts a fit of the log's own format first, where what comes first says the same under the contract
 * of another framework: that one did not write the log. */
static enum status put_own_first(const struct fit_known *known, struct arena *arena,
                                 struct fit_set *set) {
    size_t own = 0;
    struct fit *fits;
    while (own < set->count && (!fit_is_native(known, set->fits[own].contract) ||
                                !says_same(&set->fits[own], &set->fits[0])))
        own++;
    if (own == 0 || own >= set->count ||
        set->fits[own].simplicity > set->fits[0].simplicity + OWN_FIRST)
        return STATUS_OK;
    TRY(arena_take(arena, set->count, sizeof *fits, "fit", &fits));
    fits[0] = set->fits[own];
    for (size_t i = 0, kept = 1; i < set->count; i++)
        if (i != own) fits[kept++] = set->fits[i];
    set->fits = fits;
    return STATUS_OK;
}

/* Finds the reading of the column as a schedule that stands still: the expected contract's, or any.
 */
enum status fit_check_find_stop(const struct fit_known *known, const struct fit_set *set,
                                struct arena *arena, struct fit_stop *out) {
    struct fit_known every = *known;
    every.possible = NULL;
    TRY(fit_find_stop(set->series, &every, set, arena, out));
    if (out->fit != NULL) return STATUS_OK;
    every.request.contract = NULL;
    every.request.schedule = NULL;
    every.request.value_count = 0;
    return fit_find_stop(set->series, &every, set, arena, out);
}

/* Says so where nothing else is known of the column but a schedule that came to its end early.
 * *is_meant becomes 1 where the LR that stands may be meant: no bug is named then. */
static enum status say_stop(const struct fit_known *known, struct arena *arena,
                            struct fit_check *out, int *is_meant) {
    const struct fit *best = out->found.count > 0 ? &out->found.fits[0] : NULL;
    struct fit_stop stop;
    char *text;
    *is_meant = 0;
    TRY(fit_check_find_stop(known, &out->found, arena, &stop));
    if (stop.fit == NULL || stop.open) return STATUS_OK; /* `words` has that line */
    const unsigned long long update = out->found.series->points[stop.point].update;
    const char *const rest = out->words;
    if (stop.held)
        TRY(arena_format(
            arena, &text,
            "in front of update %llu it fits %s, and from there on the LR is held from below at %s",
            update, stop.fit->text,
            number_text_f64(out->found.series->points[stop.point].value).text));
    else
        TRY(arena_format(
            arena, &text,
            "in front of update %llu it fits %s, and from there on the LR stands still%s%s", update,
            stop.fit->text, best != NULL ? "; or it " : "", best != NULL ? rest : ""));
    out->words = text;
    /* What somebody may have typed is as likely a floor, and one that a loop holds is no bug. */
    if (stop.held || (stop.typed && (out->fitted & FIT_OF_SCHEDULE) != 0)) {
        *is_meant = 1;
        out->bug = NULL;
        return STATUS_OK;
    }
    if (best == NULL) out->bug = "schedule_stands_still";
    if (best != NULL && out->bug != NULL) {
        TRY(arena_format(arena, &text, "schedule_stands_still or %s", out->bug));
        out->bug = text;
    }
    return STATUS_OK;
}

/* Says so where nothing is known of the column but a schedule whose LR is held on its way. *is_held
 * becomes 1 then. */
static enum status say_clamp(const struct fit_known *known, struct arena *arena,
                             struct fit_check *out, int *is_held) {
    struct fit_known every = *known;
    struct fit_clamp clamp;
    char *text;
    *is_held = 0;
    every.possible = NULL;
    TRY(fit_find_clamp(out->found.series, &every, &out->found, arena, &clamp));
    if (clamp.fit == NULL) {
        every.request.contract = NULL;
        every.request.schedule = NULL;
        every.request.value_count = 0;
        TRY(fit_find_clamp(out->found.series, &every, &out->found, arena, &clamp));
    }
    if (clamp.fit == NULL) return STATUS_OK;
    TRY(arena_format(arena, &text, "it fits %s, whose LR is held from %s at %s in %zu rows",
                     clamp.fit->text, clamp.above ? "above" : "below",
                     number_text_f64(clamp.level).text, clamp.rows));
    out->words = text;
    *is_held = 1;
    return STATUS_OK;
}

/* Says what was refuted, where the expectation that stands above it has a warm-up that nobody gave.
 */
static enum status say_refuted(uint64_t skipped, struct arena *arena, struct fit_check *out) {
    char skips[64] = "", *text;
    if ((out->fitted & FIT_OF_WARMUP) == 0) return STATUS_OK;
    if (skipped > 0)
        snprintf(skips, sizeof skips, " and with up to %llu skipped updates",
                 (unsigned long long)skipped);
    TRY(arena_format(arena, &text, "%s; whatever its warm-up is%s%s, %s %s does not print it",
                     out->words,
                     (out->fitted & FIT_OF_STEPS) != 0 ? " and its total up to 2^30 updates" : "",
                     skips, out->expected->contract->name, out->expected->schedule_name));
    out->words = text;
    return STATUS_OK;
}

/* `asked` is the request as it came, before the log and the contract completed it, and `all` what
 * explains the column. */
static enum status mismatch(const struct series *series, const struct fit_known *known,
                            const struct contract_request *asked, const struct fit_set *all,
                            struct arena *arena, struct fit_check *out) {
    out->found = *all;
    TRY(fit_check_expect(series, known, NULL, arena, out));
    TRY(put_own_first(known, arena, &out->found)); /* what the expectation was made of stays */
    int has = 0;
    const struct fit *extended = goes_on(known, asked, out, &has);
    if (has) return say_extended(extended, arena, out);
    /* A total that changed excuses no other number. */
    if (extended != NULL && out->bad_points > 0) return say_other(extended, arena, out);
    TRY(say_mismatch(known, arena, out));
    const struct fit *const best = out->found.count > 0 ? &out->found.fits[0] : NULL;
    if ((out->fitted & FIT_OF_SCHEDULE) != 0 && best != NULL && best->bug == NULL &&
        known->run_steps > 0 && best->steps != known->run_steps && best->segment_count == 1 &&
        (fit_ends_on_its_way(best, out->found.last) ||
         fit_ends_at_a_step(best, out->found.series))) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--schedule and --min-lr-ratio of the training, or rows behind the end of the "
                     "decay: a line to another floor prints the same";
        return STATUS_OK;
    }
    int is_meant, is_held = 0;
    TRY(say_stop(known, arena, out, &is_meant));
    if (!is_meant && out->bug == NULL) TRY(say_clamp(known, arena, out, &is_held));
    out->why |= out->found.why;
    if ((is_meant || is_held) && (out->fitted & FIT_OF_SCHEDULE) != 0) {
        out->verdict = FIT_UNDECIDED;
        out->needs =
            is_held
                ? "--schedule of the training, or whether its loop holds the LR there"
                : "--schedule and --min-lr-ratio of the training, or whether its loop holds the "
                  "LR from below";
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_SCHEDULE) != 0 && is_nudged(&out->found)) {
        out->verdict = FIT_UNDECIDED;
        out->bug = NULL;
        out->words = "fits no shipped contract without several changes of the peak, none of which "
                     "is more than two printed steps";
        out->needs = "--schedule of the training, or more digits";
        return STATUS_OK;
    }
    uint64_t skipped = 0;
    const int refuted = out->bad_points > 0 && (out->found.why & FIT_WHY_CONSTANT) != 0 &&
                        fit_check_refutes_flat(series, known, out, &skipped);
    if (out->bad_points > 0 && !too_few(series, known, asked, refuted, out)) {
        if (best != NULL && fit_changes_total(best) && !fit_total_is_said(best, known) &&
            refutes_peak(asked, out))
            return say_peak(best, arena, out);
        out->verdict = FIT_FAIL;
        return refuted ? say_refuted(skipped, arena, out) : STATUS_OK;
    }
    out->verdict = FIT_UNDECIDED;
    if (out->found.count == 0) out->bug = NULL; /* nothing was departed from */
    out->needs =
        epoch_unknown(known, out)
            ? "--updates-per-epoch, or --dataset, --batch and --accumulate: the schedule moves "
              "once per epoch, and the log does not show how long one is"
        : known->request.contract->unit == CONTRACT_UNIT_TOKEN && known->request.tokens == 0
            ? "--tokens: tokens per update, in which the warm-up is rounded"
            : "more rows, or --schedule, --lr, --warmup, --steps, --min-lr-ratio and --value "
              "of the training";
    return STATUS_OK;
}

/* A row above the peak that was asked for fails a check that would be undecided for anything else,
 * and so do rows in front of a break that the expected contract prints with another peak only. */
enum status fit_check_mismatch(const struct series *series, const struct fit_known *known,
                               const struct contract_request *asked, const struct fit_set *all,
                               struct arena *arena, struct fit_check *out) {
    const struct fit *refuting = NULL;
    char *text;
    TRY(mismatch(series, known, asked, all, arena, out));
    if (out->verdict != FIT_UNDECIDED || out->bad_points == 0) return STATUS_OK;
    if (!lies_above_peak(asked, out)) {
        TRY(front_refutes(known, asked, arena, out, &refuting));
        if (refuting == NULL) return STATUS_OK;
        TRY(arena_format(arena, &text,
                         "fits no shipped contract; its first %zu rows fit %s, and no peak near "
                         "the one that was asked for",
                         out->found.first_bad, refuting->text));
        out->words = text;
    }
    out->verdict = FIT_FAIL;
    out->needs = NULL;
    return STATUS_OK;
}
