/* SPDX-License-Identifier: Apache-2.0
 * A log against an expected contract. A match is a pass only where no other contract would have
 * logged the same with the same numbers and applied something else (forensics/fit_rivals.c).
 *
 * Invariant: FIT_FAIL names a point, FIT_PASS means that every point agrees, FIT_UNDECIDED says
 * what would decide. */
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_search.h"

/* Cost (forensics/fit_cost.c) by which another explanation may be dearer than the expectation with
 * skipped updates and still be its rival: what a contract that is a bug costs more than one that is
 * none, less what skips cost. So much dearer than a bug may a first update apart be. */
#define SIMPLER 0.25

/* Tells whether a plain fit has every number that was given. */
static int has_given(const struct fit *fit, const struct fit_known *known, uint64_t steps) {
    const struct contract_request *r = &known->request;
    if (r->lr == r->lr && !fit_near(fit->lr, r->lr)) return 0;
    if (fit->steps > 0 && steps > 0 && fit->steps != steps) return 0;
    if (fit->takes_warmup && r->warmup == r->warmup && !fit_near(fit->warmup, r->warmup)) return 0;
    return fit->stride == 1.0 && fit->segment_count == 1 && !fit->first_differs;
}

/* Turns a warm-up ratio into the contract's own warm-up, in the updates that --warmup counts. */
static enum status settle_warmup(struct fit_known *known, struct arena *arena) {
    struct contract_request request = known->request;
    struct contract_plan plan, probe;
    if (request.warmup_ratio != request.warmup_ratio || request.steps == 0) return STATUS_OK;
    if (request.lr != request.lr) request.lr = 1.0;
    if (request.updates_per_epoch == 0) request.updates_per_epoch = 1;
    if (request.tokens == 0) request.tokens = 1;
    TRY(contract_resolve(&request, arena, &plan));
    request.warmup = 1.0;
    request.warmup_ratio = real_nan_f64();
    TRY(contract_resolve(&request, arena, &probe));
    known->request.warmup =
        probe.call.warmup > 0.0 ? plan.call.warmup / probe.call.warmup : plan.warmup_updates;
    known->request.warmup_ratio = real_nan_f64();
    return STATUS_OK;
}

/* Takes the total that was given, or derives it from the epochs that were; the log's own total is
 * asked only where neither was. Contracts that derive the counter's total on its own keep the
 * epochs. */
static enum status settle_total(struct fit_known *known, struct arena *arena) {
    struct contract_request *r = &known->request, request = *r;
    struct contract_plan plan;
    if (r->steps == 0 && r->epochs == 0.0) r->steps = known->run_steps;
    if (r->steps > 0 || r->epochs == 0.0 || r->contract->epoch_rule == CONTRACT_EPOCH_UNSHARDED)
        return STATUS_OK;
    if (request.lr != request.lr) request.lr = 1.0;
    if (request.warmup_ratio != request.warmup_ratio && request.warmup != request.warmup)
        request.warmup = 0.0;
    if (request.tokens == 0) request.tokens = 1;
    TRY(contract_resolve(&request, arena, &plan));
    r->steps = plan.steps;
    r->epochs = 0.0;
    return STATUS_OK;
}

static int follows_metric(const struct contract_request *r) {
    const struct sched_class *schedule =
        r->schedule == NULL ? NULL : sched_find_in(r->contract->family, r->schedule);
    return schedule != NULL && schedule->feedback;
}

static int lacks_metric(const struct fit_known *known) {
    return follows_metric(&known->request) && known->request.metric_count == 0;
}

/* Gives a schedule that follows a metric a total and a warm-up, which play no part in it. */
static void settle_feedback(const struct series *series, struct fit_known *known) {
    struct contract_request *r = &known->request;
    if (!follows_metric(r)) return;
    if (r->warmup != r->warmup && r->warmup_ratio != r->warmup_ratio) r->warmup = 0.0;
    for (size_t i = 0; i < series->count && known->run_steps == 0; i++)
        if (series->points[i].update > r->steps) r->steps = series->points[i].update;
}

static void say_sources(const struct fit_known *known, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    if (r->lr != r->lr) out->fitted |= FIT_OF_LR;
    if (r->warmup != r->warmup && r->warmup_ratio != r->warmup_ratio) out->fitted |= FIT_OF_WARMUP;
    if (r->schedule == NULL) out->fitted |= FIT_OF_SCHEDULE;
    if (r->schedule == NULL && r->min_lr_ratio != r->min_lr_ratio) out->fitted |= FIT_OF_FLOOR;
    if (r->steps > 0 || r->epochs > 0.0) return;
    if (known->run_steps == 0) out->fitted |= FIT_OF_STEPS;
    if (known->run_steps > 0) out->from_log |= FIT_OF_STEPS;
}

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

/* Completes the expectation. Each number is the one that was given, else that of the best fit, else
 * a plain guess. */
static void complete(struct contract_request *r, const struct fit_known *known,
                     const struct fit_set *found, double scale) {
    /* Samples are no numbers of an expectation in updates. */
    const struct fit *best =
        found->count > 0 && (!found->fits[0].in_samples || known->samples != NULL) ? &found->fits[0]
                                                                                   : NULL;
    if (r->schedule == NULL)
        r->schedule = best != NULL && sched_find_in(r->contract->family,
                                                    sched_bare_name(best->schedule)) != NULL
                          ? sched_bare_name(best->schedule)
                          : r->contract->default_schedule;
    if (r->lr != r->lr) r->lr = best != NULL ? best->lr : scale;
    if (r->steps == 0 && r->epochs == 0.0) r->steps = known->run_steps;
    if (r->steps == 0 && r->epochs == 0.0 && known->samples != NULL &&
        fit_samples_counts(r->contract))
        r->steps = (uint64_t)known->samples->total;
    if (r->steps == 0 && r->epochs == 0.0)
        r->steps = best != NULL && best->steps > 0 ? best->steps : found->last;
    if (r->warmup != r->warmup && r->warmup_ratio != r->warmup_ratio)
        r->warmup = best != NULL ? fit_round(best->warmup) : 0.0;
    if (r->updates_per_epoch == 0 && r->dataset == 0)
        r->updates_per_epoch = best != NULL && best->epoch_updates > 0 ? best->epoch_updates : 1;
    if (r->tokens == 0) r->tokens = 1;
}

static double scale_of(const struct series *series) {
    double scale = 0.0;
    for (size_t i = 0; i < series->count; i++)
        if (real_finite_f64(series->points[i].value) &&
            real_abs_f64(series->points[i].value) > scale)
            scale = real_abs_f64(series->points[i].value);
    return scale > 0.0 ? scale : 1.0;
}

/* Where the log leaves the counters of samples open, those that explain it are the fit's. */
static const struct fit_samples *samples_of(const struct fit_known *known, const struct fit *fit,
                                            const struct fit_set *found, int in_samples) {
    if (!in_samples) return NULL;
    if (fit != NULL && fit->samples != NULL) return fit->samples;
    if (found->count > 0 && found->fits[0].samples != NULL) return found->fits[0].samples;
    return known->samples;
}

/* Makes the expectation and compares it. With `skipping`, a fit of its contract, the updates are
 * skipped that the fit needs. */
static enum status expect(const struct series *series, const struct fit_known *known,
                          const struct fit *skipping, struct arena *arena, struct fit_check *out) {
    const double scale = scale_of(series);
    static const struct fit_segment plain = {.scale = 1.0};
    struct contract_request request = known->request;
    struct fit *fit;
    complete(&request, known, &out->found, scale);
    if (skipping != NULL && fit_skips_any(skipping)) {
        request.skipped = skipping->plan.skipped;
        request.skipped_count = skipping->plan.skipped_count;
    }
    TRY(arena_take(arena, 1, sizeof *fit, "fit", &fit));
    TRY(contract_resolve(&request, arena, &fit->plan));
    fit->contract = request.contract;
    fit->schedule = fit->plan.schedule;
    fit->schedule_name = request.schedule;
    fit->lr = request.lr;
    fit->warmup = fit->plan.warmup_updates;
    fit->steps = fit->plan.steps;
    fit->floor_ratio = request.min_lr_ratio;
    fit->stride = 1.0;
    fit->in_samples = known->samples != NULL && fit_samples_counts(request.contract);
    fit->samples = samples_of(known, skipping, &out->found, fit->in_samples);
    fit->parameters = "";
    fit->segments = &plain;
    fit->segment_count = 1;
    if (skipping != NULL) {
        fit->skips = skipping->skips;
        fit->skip_count = skipping->skip_count;
        fit->parts = skipping->parts;
        fit->part_count = skipping->part_count;
        fit->simplicity = skipping->simplicity;
    }
    out->expected = fit;
    TRY(fit_describe(fit, arena, &fit->text));
    for (size_t i = 0; i < series->count; i++) {
        const double value = fit_logged(fit, i, series->points[i].update);
        if (fit_matches(&series->points[i], value, scale, NULL)) continue;
        if (out->bad_points++ > 0) continue;
        out->first = i;
        out->first_expected = value;
    }
    struct fit_refuted refuted;
    if (out->bad_points == 0 && known->counts_hold &&
        fit_counts_refute(fit, known, series, scale, &refuted)) {
        out->bad_points = 1;
        out->first = refuted.point;
        out->first_expected = refuted.expected;
    }
    return STATUS_OK;
}

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
    const double scale = scale_of(series);
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

/* Tells whether the rows refute the peak that was asked for, whatever the totals are: one lies
 * above it, or they show the peak of every fit that changes its total, and it is another one. */
static int refutes_peak(const struct contract_request *asked, const struct fit_check *out) {
    const struct series *const series = out->found.series;
    const double peak = asked->lr, scale = scale_of(series);
    if (peak != peak) return 0;
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].value - fit_half(&series->points[i], scale) > peak * (1.0 + 0x1p-40))
            return 1;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *const fit = &out->found.fits[i];
        if (!fit_changes_total(fit)) continue;
        if (fit->warmup_hidden || fit->unseen_warmup > 0.0 || fit->reached > 0.0 ||
            real_abs_f64(fit->lr / peak - 1.0) < OTHER_PEAK)
            return 0;
    }
    return 1;
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
            fit->simplicity < best->simplicity + SIMPLER)
            return fit;
    }
    return NULL;
}

static enum status say_mismatch(const struct fit_known *known, struct arena *arena,
                                struct fit_check *out) {
    const struct series_point *first = &out->found.series->points[out->first];
    const struct fit *best = out->found.count > 0 ? &out->found.fits[0] : NULL;
    char *text;
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
    else
        TRY(arena_format(arena, &text, "fits %s", best->text));
    out->words = text;
    out->bug = best != NULL && first_apart(known, &out->found) == NULL ? best->bug : NULL;
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
 * fits, a guessed expectation proves nothing. */
static int too_few(const struct series *series, const struct fit_known *known,
                   const struct contract_request *asked, const struct fit_check *out) {
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
    return guessed && (series->count < 3 || (out->found.why & FIT_WHY_CONSTANT) != 0 ||
                       (out->found.count == 0 && series->points[0].update > 1));
}

/* Finds the reading of the column as a schedule that stands still: the expected contract's, or any.
 */
static enum status find_stop(const struct fit_known *known, const struct fit_set *set,
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
    TRY(find_stop(known, &out->found, arena, &stop));
    if (stop.fit == NULL) return STATUS_OK;
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

/* Withdraws a pass that rests on a floor which nobody gave, where the schedule may as well have
 * stopped on its way. */
static enum status doubt_floor(const struct fit_known *known, struct arena *arena,
                               struct fit_check *out) {
    const struct fit_set own = {
        .series = out->found.series, .fits = out->expected, .count = 1, .last = out->found.last};
    struct fit_stop stop;
    char *text;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_FLOOR) == 0 ||
        !(out->expected->floor_ratio > 0.0))
        return STATUS_OK;
    TRY(find_stop(known, &own, arena, &stop));
    if (stop.fit == NULL) return STATUS_OK;
    out->verdict = FIT_UNDECIDED;
    TRY(arena_format(arena, &text,
                     "--min-lr-ratio: a scheduler that is no longer stepped from update %llu on "
                     "prints the same, behind %s",
                     (unsigned long long)out->found.series->points[stop.point].update,
                     stop.fit->text));
    out->needs = text;
    return STATUS_OK;
}

/* Withdraws a pass that rests on a schedule which nobody gave and whose one fall nothing explains:
 * a peak that was changed on the way, at a resume say, prints the same. Falls by one factor again
 * and again are a schedule's. */
static void doubt_drop(struct fit_check *out) {
    const struct series *series = out->found.series;
    size_t falls = 0;
    if (out->verdict != FIT_PASS || (out->fitted & FIT_OF_SCHEDULE) == 0 ||
        !out->expected->drops_taken)
        return;
    for (size_t i = 1; i < series->count; i++)
        falls += series->points[i].value != series->points[i - 1].value;
    if (falls > 1) return;
    out->verdict = FIT_UNDECIDED;
    out->needs =
        "--schedule of the training: nothing in the log explains why the LR falls where it "
        "does, and a constant LR whose peak was changed there prints the same";
}

static enum status search_all(const struct series *series, const struct fit_known *known,
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

/* `asked` is the request as it came, before the log and the contract completed it, and `all` what
 * explains the column. */
static enum status mismatch(const struct series *series, const struct fit_known *known,
                            const struct contract_request *asked, const struct fit_set *all,
                            struct arena *arena, struct fit_check *out) {
    out->found = *all;
    TRY(expect(series, known, NULL, arena, out));
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
    if (out->bad_points > 0 && !too_few(series, known, asked, out)) {
        if (best != NULL && fit_changes_total(best) && !fit_total_is_said(best, known) &&
            refutes_peak(asked, out))
            return say_peak(best, arena, out);
        out->verdict = FIT_FAIL;
        return STATUS_OK;
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

static struct fit_set bare_set(const struct series *series) {
    struct fit_set set = {.series = series};
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].update > set.last) set.last = series->points[i].update;
    return set;
}

/* Tells whether the fit still agrees everywhere with the floor that was given, or with the
 * contract's own. A fitted floor would excuse a shift: 5, 4, 3, 2, 1 is linear to 0 from update 1,
 * and one update ahead of it linear to a floor of 0.2. So the floor is fitted only where the
 * schedule is. */
static enum status accept_floor(const struct series *series, const struct fit_known *known,
                                const struct fit *fit, struct arena *arena, struct fit_check *out) {
    struct fit_refuted refuted;
    if (known->counts_hold && fit_counts_refute(fit, known, series, scale_of(series), &refuted))
        return STATUS_OK;
    if (known->request.schedule == NULL) {
        out->expected = fit;
        return STATUS_OK;
    }
    struct fit alone = *fit;
    out->found = bare_set(series);
    out->found.fits = &alone;
    out->found.count = 1;
    const enum status status = expect(series, known, fit, arena, out);
    out->found = bare_set(series);
    if (status == STATUS_OK && out->bad_points == 0) return STATUS_OK;
    out->expected = NULL;
    out->bad_points = 0;
    return status;
}

/* Sets out->expected where the expectation, completed by what the log says, agrees everywhere. */
static enum status match(const struct series *series, const struct fit_known *known,
                         struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_known plain = *known;
    struct fit_set own;
    if (r->lr == r->lr && r->steps > 0 && r->warmup == r->warmup) {
        out->found = bare_set(series);
        TRY(expect(series, known, NULL, arena, out));
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
    const double scale = scale_of(series);
    return first->update > 2 && first->value >= scale - fit_half(first, scale);
}

/* Takes the simplest fit of the contract from a search among all of them, where the warm-up lies in
 * front of the first row: no knee shows it, and the contract alone is tried with listed warm-ups
 * only, while here it is tried with those that other contracts were solved for. Without it a sound
 * log may look like a departure, or agree with numbers that nobody typed. */
static enum status match_unseen(const struct series *series, const struct fit_known *known,
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
static enum status match_among(const struct series *series, const struct fit_known *known,
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
static enum status match_floors(const struct series *series, const struct fit_known *known,
                                struct arena *arena, struct fit_check *out) {
    const struct contract_request *r = &known->request;
    struct fit_floors floors = {.peak = scale_of(series), .schedule = r->schedule};
    struct fit_known plain = *known;
    struct fit_set set;
    if (series->count < 3 || r->steps == 0 || r->min_lr_ratio == r->min_lr_ratio ||
        r->value_count > 0)
        return STATUS_OK;
    const double last = series->points[series->count - 1].value;
    plain.plain = 1;
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
static enum status match_skips(const struct series *series, const struct fit_known *known,
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

/* Returns a contract that is one update late by itself and prints the column with the numbers of
 * the expectation and without a skipped update, or NULL. A search may miss it, where the warm-up
 * lies in front of the first row. */
static const struct contract *late_twin(const struct series *series, const struct fit_known *known,
                                        const struct fit *expected) {
    size_t count;
    const struct contract *list = contract_list(&count);
    if (expected->part_count > 0 || expected->samples != NULL) return NULL;
    for (size_t c = 0; c < count; c++) {
        struct fit twin = *expected;
        size_t i = 0;
        if (!fit_contract_is_late(&list[c]) || list[c].unit != expected->contract->unit ||
            !sched_in_family(expected->schedule, list[c].family) ||
            (!list[c].bug && !fit_is_native(known, &list[c])))
            continue;
        twin.contract = twin.plan.contract = &list[c];
        twin.plan.skipped_count = 0;
        while (i < series->count &&
               fit_matches(&series->points[i], fit_logged(&twin, i, series->points[i].update),
                           twin.lr, NULL))
            i++;
        if (i == series->count) return &list[c];
    }
    return NULL;
}

static void doubt_skips(const char *rival, struct fit_check *out) {
    out->verdict = FIT_UNDECIDED;
    out->rival = rival;
    out->needs = "what tells of a skipped update: the gradient norm of every update (it is "
                 "infinite there), the loss scale, or that the training was not in float16";
}

/* Judges an expectation that needs skipped updates: it passes where the log shows some, or where no
 * other contract explains the column about as simply without any. The one that is known as a bug
 * stands beside it, since the first updates of a training in float16 are often skipped. */
static enum status judge_skips(const struct series *series, const struct fit_known *known,
                               struct arena *arena, struct fit_check *out) {
    struct fit_known every = *known;
    every.plain = 1;
    out->verdict = FIT_PASS;
    TRY(search_all(series, &every, arena, &out->found));
    if (known->skips.shown > 0) return STATUS_OK;
    for (size_t i = 0; i < out->found.count; i++) {
        const struct fit *rival = &out->found.fits[i];
        if (rival->simplicity > out->expected->simplicity + SIMPLER) continue;
        /* A bug that applies the same LRs did not skip the update: it is another training. */
        if (!rival->contract->bug && fit_applied_apart(rival, out->expected, &out->found) == 0)
            continue;
        doubt_skips(rival->contract->name, out);
        return STATUS_OK;
    }
    const struct contract *late = late_twin(series, known, out->expected);
    if (late != NULL) doubt_skips(late->name, out);
    const struct fit_set own = {
        .series = series, .fits = out->expected, .count = 1, .last = out->found.last};
    struct fit_stop stop;
    TRY(find_stop(known, &own, arena, &stop));
    if (stop.fit == NULL || out->verdict != FIT_PASS) return STATUS_OK;
    doubt_skips(NULL, out);
    out->needs = "what tells of a skipped update, or whether the loop of the training holds the LR "
                 "from below: that prints the same end";
    return STATUS_OK;
}

/* Tells whether rows behind the end of the expected schedule show an LR that rises again, as a
 * cosine's does. */
static int rises_behind_end(const struct fit_check *out) {
    const struct fit *const fit = out->expected;
    const struct series_point *const points = out->found.series->points;
    if (fit->steps == 0 || fit->segment_count > 1) return 0;
    for (size_t i = 1; i < out->found.series->count; i++)
        if (points[i - 1].update >= fit->steps && points[i].value > points[i - 1].value) return 1;
    return 0;
}

/* Withdraws a pass that rests on numbers which nobody gave: a total behind which the LR rises
 * again, so that the run was longer than its schedule; and two that lr fit calls undecided, a line
 * to a floor that no row stands at, or a peak that nobody would type, behind which a scheduler may
 * have stopped in its warm-up. */
static enum status doubt_numbers(const struct fit_known *known, struct arena *arena,
                                 struct fit_check *out) {
    const struct fit *const fit = out->expected;
    char *text;
    if (out->verdict != FIT_PASS) return STATUS_OK;
    if ((out->fitted & FIT_OF_STEPS) != 0 && rises_behind_end(out)) {
        out->verdict = FIT_UNDECIDED;
        TRY(arena_format(arena, &text,
                         "--steps of the training: the log goes on behind update %llu, at which "
                         "the fitted schedule ends, and its LR rises again; that of a scheduler "
                         "which moves twice per update does",
                         (unsigned long long)fit->steps));
        out->needs = text;
        return STATUS_OK;
    }
    if ((out->fitted & FIT_OF_SCHEDULE) == 0) return STATUS_OK;
    if ((out->fitted & FIT_OF_FLOOR) != 0 && fit->steps != known->request.steps &&
        (fit_ends_on_its_way(fit, out->found.last) || fit_ends_at_a_step(fit, out->found.series))) {
        out->verdict = FIT_UNDECIDED;
        out->needs =
            "--schedule, --steps and --min-lr-ratio of the training, or rows behind the "
            "end of the decay: a line to a lower floor with a larger total prints the same";
    } else if ((out->fitted & FIT_OF_LR) != 0 && fit_stands_at_top(fit, out->found.series) &&
               fit_peak_is_odd(fit)) {
        out->verdict = FIT_UNDECIDED;
        out->needs = "--lr or --schedule of the training: the peak is one that nobody would type, "
                     "and a scheduler that is no longer stepped inside of a longer warm-up prints "
                     "the same";
    }
    return STATUS_OK;
}

/* Tells whether several updates must have been skipped at one distance, which no scaler does but in
 * a row. */
static int skips_evenly(const struct fit *fit) {
    if (fit->skip_count < 4) return 0;
    const uint64_t apart = fit->skips[1].first - fit->skips[0].first;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].first != fit->skips[i].last ||
            (i > 0 && fit->skips[i].first - fit->skips[i - 1].first != apart))
            return 0;
    return apart > 1;
}

/* Withdraws a pass that rests on fewer than three rows and on a number that was fitted to them:
 * there are always numbers that agree. Where everything was given, the rows were predicted. */
static void doubt_few(const struct series *series, struct fit_check *out) {
    const uint32_t all = FIT_OF_LR | FIT_OF_WARMUP | FIT_OF_STEPS | FIT_OF_SCHEDULE;
    if (series->count >= 3 || out->verdict != FIT_PASS) return;
    if ((out->fitted & all) == 0 && !fit_skips_any(out->expected)) return;
    out->verdict = FIT_UNDECIDED;
    out->why |= FIT_WHY_FEW;
    out->needs = "three rows or more, or --schedule, --lr, --warmup and --steps of the training: "
                 "fewer rows agree with any contract whose numbers are fitted to them";
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
        (r->steps > 0 && (r->steps == known->run_steps || r->steps == out->found.last)))
        return STATUS_OK;
    struct fit_stop stop;
    TRY(fit_find_stop(series, known, all, arena, &stop));
    if (stop.fit != NULL) return STATUS_OK;
    steady.samples = known->steady;
    steady.steady = NULL;
    TRY(fit_check(series, &steady, applied, arena, &counted));
    if (counted.verdict == FIT_PASS) *out = counted;
    return STATUS_OK;
}

static enum status check_once(const struct series *series, const struct fit_known *known,
                              int applied, struct arena *arena, struct fit_check *out) {
    struct fit_known mine = *known;
    memset(out, 0, sizeof *out);
    if (mine.samples != NULL && fit_samples_counts(mine.request.contract)) fit_samples_known(&mine);
    settle_feedback(series, &mine);
    say_sources(&mine, out);
    TRY(settle_total(&mine, arena));
    TRY(settle_warmup(&mine, arena));
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
        out->found = bare_set(series);
        out->words = "the batch grows, and the schedule counts samples";
        out->needs = "the samples that every update consumed, and a log of the next LR";
        return STATUS_OK;
    }
    if (lacks_metric(&mine)) {
        out->verdict = FIT_UNDECIDED;
        out->found = bare_set(series);
        out->words = "the log has no metric that the schedule could have followed";
        out->needs = "--metric, or a log with eval_loss or loss and update numbers";
        return STATUS_OK;
    }
    TRY(match(series, &mine, arena, out));
    TRY(match_unseen(series, &mine, arena, out));
    struct fit_set all = bare_set(series);
    if (out->expected == NULL) {
        TRY(search_all(series, &mine, arena, &all));
        TRY(match_among(series, &mine, &all, arena, out));
    }
    if (out->expected == NULL) TRY(match_floors(series, &mine, arena, out));
    if (out->expected == NULL) {
        const struct fit_check before = *out;
        TRY(match_skips(series, &mine, arena, out));
        if (out->expected != NULL) TRY(judge_skips(series, &mine, arena, out));
        /* A rival stands, and the log shows that nothing was skipped. */
        if (out->expected == NULL || (out->verdict == FIT_UNDECIDED && mine.skips.quiet)) {
            *out = before;
            TRY(check_samples(series, known, &all, applied, arena, out));
            if (out->verdict == FIT_PASS && out->expected != NULL) return STATUS_OK;
            return mismatch(series, &mine, &known->request, &all, arena, out);
        }
        if (out->verdict == FIT_PASS && fit_skips_unshown(out->expected, &mine)) {
            doubt_skips(NULL, out);
            out->needs = "the loss scale, a count of skipped updates, or --skipped: a finite "
                         "gradient norm that is printed once more is no evidence of a skip";
        } else if (out->verdict == FIT_PASS && fit_skips_to_a_floor(out->expected, &mine, series)) {
            doubt_skips(NULL, out);
            out->needs = "the loss scale, a count of skipped updates, or --skipped: a loop that "
                         "holds its LR from below prints the last LR, too";
        } else if (out->verdict == FIT_PASS && (out->fitted & FIT_OF_SCHEDULE) != 0 &&
                   mine.skips.shown == 0 && mine.request.skipped_count == 0 &&
                   skips_evenly(out->expected)) {
            doubt_skips(NULL, out);
            out->needs = "the loss scale, a count of skipped updates, or --skipped: a scheduler "
                         "that is stepped once per several updates prints the same";
        }
        doubt_few(series, out);
        return say_match(&mine, arena, out);
    }
    TRY(fit_find_rivals(series, &mine, out->expected, arena, &out->found));
    TRY(fit_judge_rivals(&mine, applied, arena, out));
    if (applied) TRY(fit_judge_plainer(series, &mine, arena, out));
    TRY(doubt_floor(&mine, arena, out));
    doubt_drop(out);
    TRY(doubt_numbers(&mine, arena, out));
    doubt_few(series, out);
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
        !fit_counts_refute(out->expected, known, series, scale_of(series), &refuted))
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
        out->found = bare_set(series);
        out->found.fits = counted;
        out->found.count = 1;
        return STATUS_OK;
    }
    out->verdict = FIT_UNDECIDED;
    out->needs = "--skipped with the updates that were skipped, or whether the scheduler of the "
                 "training goes on at them";
    return STATUS_OK;
}

enum status fit_check(const struct series *series, const struct fit_known *known, int applied,
                      struct arena *arena, struct fit_check *out) {
    TRY(check_once(series, known, applied, arena, out));
    return hold_to_counts(series, known, applied, arena, out);
}
