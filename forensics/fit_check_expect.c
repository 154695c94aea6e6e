/* SPDX-License-Identifier: Apache-2.0
 * The expectation of `lr check`: the numbers that were given, completed by what the log says and
 * what fits it, and the rows that it does not log. */
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "forensics/fit_check_parts.h"
#include "forensics/fit_samples.h"

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

int fit_check_lacks_metric(const struct fit_known *known) {
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

enum status fit_check_settle(const struct series *series, struct fit_known *known,
                             struct arena *arena, struct fit_check *out) {
    settle_feedback(series, known);
    say_sources(known, out);
    TRY(settle_total(known, arena));
    return settle_warmup(known, arena);
}

/* Returns the schedule of the best fit, where the contract's family has it, else the family's own.
 * Who gave a warm-up is expected to have a schedule that takes one: that of the first such fit. */
static const char *guess_schedule(const struct contract_request *r, const struct fit_set *found,
                                  const struct fit *best) {
    for (size_t i = 0; best != NULL && i < found->count; i++) {
        const struct fit *const fit = &found->fits[i];
        const char *const name = sched_bare_name(fit->schedule);
        const struct sched_class *const own = sched_find_in(r->contract->family, name);
        if (!(r->warmup > 0.0)) return own != NULL ? name : r->contract->default_schedule;
        /* One of the same name in another family may take a warm-up where this one takes none. */
        if (own == fit->schedule && fit->takes_warmup) return name;
    }
    return r->contract->default_schedule;
}

/* Completes the expectation. Each number is the one that was given, else that of the best fit, else
 * a plain guess. */
static void complete(struct contract_request *r, const struct fit_known *known,
                     const struct fit_set *found, double scale) {
    /* Samples are no numbers of an expectation in updates. */
    const struct fit *best =
        found->count > 0 && (!found->fits[0].in_samples || known->samples != NULL) ? &found->fits[0]
                                                                                   : NULL;
    if (r->schedule == NULL) r->schedule = guess_schedule(r, found, best);
    if (r->lr != r->lr) r->lr = best != NULL ? best->lr : scale;
    if (r->steps == 0 && r->epochs == 0.0) r->steps = known->run_steps;
    if (r->steps == 0 && r->epochs == 0.0 && known->samples != NULL &&
        fit_samples_counts(r->contract))
        r->steps = (uint64_t)known->samples->total;
    if (r->steps == 0 && r->epochs == 0.0)
        r->steps = best != NULL && best->steps > 0 ? best->steps : found->last;
    if (r->warmup != r->warmup && r->warmup_ratio != r->warmup_ratio) {
        r->warmup = best != NULL ? fit_round(best->warmup) : 0.0;
        /* Of another schedule, without a total or with a faster counter, it may be no warm-up of
         * this one, which would be refused as if somebody had asked for it. */
        if (r->steps > 0 && r->warmup >= (double)r->steps) r->warmup = 0.0;
    }
    if (r->updates_per_epoch == 0 && r->dataset == 0)
        r->updates_per_epoch = best != NULL && best->epoch_updates > 0 ? best->epoch_updates : 1;
    if (r->tokens == 0) r->tokens = 1;
}

double fit_check_scale(const struct series *series) {
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

/* Returns how far rounding may move an LR whose schedule takes its place within a cycle out of the
 * number of cycles that are gone: half an ulp of that number, times the steepest fall of a cosine,
 * which is pi / 2 of the peak per cycle. */
static double off_by_cycles(const struct contract_request *request, const struct fit *fit) {
    if (strcmp(sched_bare_name(fit->schedule), "cosine_with_restarts") != 0) return 0.0;
    for (size_t i = 0; i < request->value_count; i++)
        if (strcmp(request->values[i].key, "num_cycles") == 0)
            return 0x1.921fb6p+0 * 0x1p-53 * fit->lr * strtod(request->values[i].text, NULL);
    return 0.0;
}

/* Makes the expectation and compares it. With `skipping`, a fit of its contract, the updates are
 * skipped that the fit needs. */
enum status fit_check_expect(const struct series *series, const struct fit_known *known,
                             const struct fit *skipping, struct arena *arena,
                             struct fit_check *out) {
    const double scale = fit_check_scale(series);
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
    const double off = off_by_cycles(&request, fit);
    for (size_t i = 0; i < series->count; i++) {
        const double value = fit_logged(fit, i, series->points[i].update);
        if (fit_matches(&series->points[i], value, scale, NULL) ||
            (off > 0.0 && real_abs_f64(series->points[i].value - value) <=
                              fit_half(&series->points[i], scale) + off))
            continue;
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
