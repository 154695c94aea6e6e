/* SPDX-License-Identifier: Apache-2.0
 * Checks of losses and gradient norms: values that are no numbers, values that were filtered, no
 * gradient, a start that looks like fresh weights, and the loss scale. docs/FORENSICS.md lists
 * them.
 *
 * Invariant: an overflow that a loss scaler answers is no finding. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

#include <stdio.h>

static size_t count_not_finite(const struct series *series, const struct series_point **first) {
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++)
        if (!real_finite_f64(series->points[i].value) && count++ == 0) *first = &series->points[i];
    return count;
}

static enum status loss_not_finite(struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const struct series_point *first = NULL;
    const size_t count = count_not_finite(loss, &first);
    if (count == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "loss_not_finite", DOCTOR_CERTAIN, first->row,
                     "The loss is no finite number in %zu of %zu rows.", count, loss->count));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, first));
    return doctor_explain(
        doctor, "the log prints it",
        "Look at the row before: its gradient norm and LR. Then at the batch of this "
        "update: a row without any label divides by zero.");
}

/* Tells whether the scale of this row is below that of the row before, or above that of the next
 * one. */
static int scale_falls(const struct doctor *doctor, size_t row) {
    const struct series *scale = &doctor->series[LOG_LOSS_SCALE];
    const struct series_point *at = series_in_row(scale, row);
    if (at == NULL) return 0;
    const size_t i = (size_t)(at - scale->points);
    return (i > 0 && at->value < at[-1].value) || (i + 1 < scale->count && at[1].value < at->value);
}

static int skipped_in_row(const struct doctor *doctor, size_t row) {
    const struct series_point *point = series_in_row(&doctor->series[LOG_SKIPPED], row);
    if (scale_falls(doctor, row) || (point != NULL && point->value > 0.0)) return 1;
    const int64_t update = doctor->log->step[row];
    return update > 0 && doctor_lr_skips(doctor, (uint64_t)update);
}

/* Tells whether a later update has a finite norm: then the gradient of point i never reached the
 * weights, which it would have made NaN. */
static int outlived(const struct series *norm, size_t i) {
    for (size_t j = i + 1; j < norm->count; j++)
        if (norm->points[j].update > norm->points[i].update &&
            real_finite_f64(norm->points[j].value))
            return 1;
    return 0;
}

/* A norm that overflows under a loss scale is how the scaler finds its scale, so it is no finding.
 */
static enum status norm_not_finite(struct doctor *doctor) {
    const struct series *norm = &doctor->series[LOG_GRAD_NORM];
    const struct series_point *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < norm->count; i++) {
        if (real_finite_f64(norm->points[i].value)) continue;
        if (skipped_in_row(doctor, norm->points[i].row) || outlived(norm, i)) continue;
        if (count++ == 0) first = &norm->points[i];
    }
    if (count == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "grad_norm_not_finite", DOCTOR_CERTAIN, first->row,
                     "The gradient norm is no finite number in %zu of %zu rows, no loss scale "
                     "fell there, and no later norm is finite.",
                     count, norm->count));
    TRY(doctor_evidence_column(doctor, LOG_GRAD_NORM, first));
    return doctor_explain(
        doctor, "the log prints it",
        "Clipping by such a norm makes every gradient NaN or 0. See whether the weights "
        "are finite after this update, and train its batch alone in float32.");
}

static int is_zero_point(const struct series_point *point) {
    return point != NULL && point->value >= 0.0 && point->value <= 0.0;
}

/* transformers replaces a NaN loss by the running mean, which is 0 when every update is logged
 * (Trainer._inner_training_loop with logging_nan_inf_filter). GRPO's loss is 0 at an update before
 * which the policy made the answers itself, so where finite norms stand beside zeros a zero tells
 * little. */
static enum status loss_filtered(struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const struct series_point *first = NULL;
    size_t count = 0, checked = 0, usual = 0;
    for (size_t i = 0; i < loss->count; i++) {
        const struct series_point *norm =
            series_in_row(&doctor->series[LOG_GRAD_NORM], loss->points[i].row);
        if (norm == NULL) continue;
        checked++;
        if (!is_zero_point(&loss->points[i])) continue; /* any other loss may be finite itself */
        usual += real_finite_f64(norm->value) != 0;
        if (real_finite_f64(norm->value) || skipped_in_row(doctor, loss->points[i].row)) continue;
        if (count++ == 0) first = &loss->points[i];
    }
    if (checked == 0) return doctor_untestable(doctor, "no row has a loss and a gradient norm");
    if (count == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "nan_loss_filtered", usual > 0 ? DOCTOR_POSSIBLE : DOCTOR_LIKELY,
                     first->row,
                     "In %zu row%s the gradient norm is no number, but the loss is printed as 0.",
                     count, count == 1 ? "" : "s"));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, first));
    TRY(doctor_evidence_column(doctor, LOG_GRAD_NORM,
                               series_in_row(&doctor->series[LOG_GRAD_NORM], first->row)));
    return doctor_explain(
        doctor,
        usual > 0 ? "transformers prints the running mean (0 when it logs every update) for a NaN "
                    "loss unless logging_nan_inf_filter is off; but the loss is 0 beside finite "
                    "norms, too, as GRPO's is"
                  : "transformers prints the running mean (0 when it logs every update) for a NaN "
                    "loss unless logging_nan_inf_filter is off",
        "Set logging_nan_inf_filter=False and run to this update again.");
}

static int is_exact_zero(const struct series_point *point) {
    return is_zero_point(point) && point->quantum < 1e-6;
}

static enum status no_gradient(struct doctor *doctor) {
    const struct series *norm = &doctor->series[LOG_GRAD_NORM];
    size_t zeros = 0, without_loss = 0;
    for (size_t i = 0; i < norm->count; i++) {
        if (!is_exact_zero(&norm->points[i])) continue;
        zeros++;
        without_loss +=
            is_exact_zero(series_in_row(&doctor->series[LOG_LOSS], norm->points[i].row)) != 0;
    }
    /* GRPO and RLOO have neither where all answers to a prompt get one reward (run: trl 1.16.0). */
    const int innocent = without_loss == zeros && zeros < norm->count;
    if (norm->count < 3) return doctor_untestable(doctor, "fewer than 3 gradient norms");
    if (zeros < 3 || 2 * zeros < norm->count) return STATUS_OK;
    TRY(doctor_found(doctor, "no_gradient", innocent ? DOCTOR_POSSIBLE : DOCTOR_LIKELY,
                     norm->points[0].row,
                     "The gradient norm is 0 in %zu of %zu rows: nothing is trained there.", zeros,
                     norm->count));
    for (size_t i = 0, said = 0; i < norm->count && said < 2; i++)
        if (norm->points[i].value <= 0.0) {
            TRY(doctor_evidence_column(doctor, LOG_GRAD_NORM, &norm->points[i]));
            said++;
        }
    return doctor_explain(
        doctor,
        innocent ? "the loss is 0 in the same rows, as a policy gradient's is where all rewards of "
                   "a group are equal"
                 : "a gradient of exactly 0 in most updates has no innocent reason but a "
                   "loss of exactly 0",
        "List the parameters with requires_grad and those the optimizer holds; look for "
        "a detach or a no_grad around the forward pass.");
}

/* Fresh weights start within a tenth of ln(vocabulary); n times that is a sum of n losses. */
static enum status report_sum(struct doctor *doctor, const struct series_point *first, uint64_t n) {
    const unsigned long long vocab = doctor->options->vocab;
    TRY(doctor_found(doctor, "loss_not_divided", DOCTOR_LIKELY, first->row,
                     "The first loss is %llu times ln(%llu): the loss of a model that knows "
                     "nothing, summed over %llu micro-batches or processes.",
                     (unsigned long long)n, vocab, (unsigned long long)n));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, first));
    TRY(doctor_evidence(doctor, "%llu ln(%llu) = %s", (unsigned long long)n, vocab,
                        word_about((double)n * real_log_f64((double)vocab)).text));
    return doctor_explain(
        doctor, "no single mean of cross-entropies starts at a multiple of ln(vocabulary)",
        "Compare the gradient norm with that of a run without accumulation: if it has the factor "
        "too, so has the step.");
}

static enum status fresh_weights(struct doctor *doctor) {
    const uint64_t vocab = doctor->options->vocab;
    const struct series_point *first = series_at(&doctor->series[LOG_LOSS], 1);
    if (vocab < 2) return doctor_not_asked(doctor, "--vocab N");
    if (doctor_is_preference(doctor))
        return doctor_untestable(doctor, "a preference loss does not start at ln(vocabulary)");
    if (first == NULL) return doctor_untestable(doctor, "no loss at update 1");
    const double uniform = real_log_f64((double)vocab);
    const double gap = real_abs_f64(first->value - uniform);
    const uint64_t n =
        first->value < 1024.0 * uniform ? (uint64_t)(first->value / uniform + 0.5) : 0;
    if (n > 1 && real_abs_f64(first->value - (double)n * uniform) < 0.1 * (double)n)
        return report_sum(doctor, first, n);
    /* Fresh weights of usual scale start within a tenth of ln(vocabulary); 0.35 is chosen for
     * larger initial logits, with less confidence. */
    if (!(gap < 0.35)) return STATUS_OK;
    TRY(doctor_found(doctor, "weights_reinitialised", gap < 0.1 ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     first->row,
                     "The first loss is that of a model that knows nothing: ln(%llu) = %s.",
                     (unsigned long long)vocab, word_about(uniform).text));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, first));
    return doctor_explain(
        doctor, "normal when training from scratch; --vocab says that it is not",
        "Evaluate the checkpoint outside the trainer. Loading must come after wrapping "
        "or sharding when wrapping initialises weights.");
}

/* ---- loss scale and skipped updates ---- */

struct skips {
    /* Updates that were skipped, and how many of them stand at the end in a row. */
    size_t count, tail;
    size_t held, moved; /* how often the LR says that the schedule held, or moved, at a skip */
    const struct series_point *first;
};

/* Tells whether the update of point i was skipped. A norm that is not finite is one where a later
 * one is finite, or where the LR holds. */
static int is_skip(const struct doctor *doctor, const struct log_column *column,
                   const struct series *series, size_t i) {
    if (column->name == LOG_GRAD_NORM)
        return !real_finite_f64(series->points[i].value) &&
               (outlived(series, i) || doctor_lr_skips(doctor, series->points[i].update));
    if (series->points[i].value != series->points[i].value) return 0;
    if (column->name == LOG_LOSS_SCALE)
        return i > 0 && series->points[i].value < series->points[i - 1].value &&
               series->points[i].update == series->points[i - 1].update + 1;
    if (!column->cumulative) return series->points[i].value > 0.0;
    return i > 0 && series->points[i].value > series->points[i - 1].value &&
           series->points[i].update > series->points[i - 1].update;
}

/* Returns how many updates the row of point i stands for: those since the row in front, and of the
 * first row as many as of the next. */
static size_t updates_at(const struct series *series, size_t i) {
    const size_t at = i > 0 ? i : 1;
    if (at >= series->count || series->points[at].update <= series->points[at - 1].update) return 1;
    return (size_t)(series->points[at].update - series->points[at - 1].update);
}

/* Returns how many updates were skipped in the row of point i, which has some. */
static size_t skips_at(const struct log_column *column, const struct series *series, size_t i) {
    const double value = series->points[i].value;
    if (column->name == LOG_LOSS_SCALE || column->name == LOG_GRAD_NORM) return 1;
    const double count = column->cumulative ? value - series->points[i - 1].value : value;
    return count >= 1.0 && count < 0x1p31 ? (size_t)count : 1;
}

/* Tells whether the points from..from+count-1 are those of updates that follow each other. */
static int is_unbroken(const struct series_point *from, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (from[i].update != from[i - 1].update + 1) return 0;
    return 1;
}

/* Counts a skip where the LR says what the schedule did: the LR is equal at or beside the skipped
 * row while it moves elsewhere nearby, so the schedule held; or it moves there, too. Where the log
 * shows every n-th update, the LR moves from row to row whatever the schedule did at one of them.
 */
static void judge_schedule(const struct doctor *doctor, size_t row, struct skips *skips) {
    const struct series *lr = &doctor->lr;
    const struct series_point *at = series_in_row(lr, row);
    if (at == NULL) return;
    const size_t i = (size_t)(at - lr->points);
    if (i < 2 || i + 2 >= lr->count || !is_unbroken(at - 2, 5)) return;
    if (!point_differs(at - 2, at - 1) || !point_differs(at + 1, at + 2)) return;
    const int equal = !point_differs(at - 1, at) + !point_differs(at, at + 1);
    skips->held += equal == 1;
    skips->moved += equal == 0;
}

/* Returns how many updates the rows of a column stand for. */
static size_t reach(const struct series *series) {
    size_t updates = 0;
    for (size_t i = 0; i < series->count; i++)
        updates += updates_at(series, i);
    return updates;
}

static struct skips count_skips(const struct doctor *doctor, const struct log_column *column,
                                const struct series *series) {
    struct skips skips = {0, 0, 0, 0, NULL};
    for (size_t i = 0; i < series->count; i++) {
        if (!is_skip(doctor, column, series, i)) {
            /* Whether the LR held shows in the next row, which the last update does not have. */
            if (column->name != LOG_GRAD_NORM || real_finite_f64(series->points[i].value))
                skips.tail = 0;
            continue;
        }
        if (skips.count == 0) skips.first = &series->points[i];
        const size_t skipped = skips_at(column, series, i), updates = updates_at(series, i);
        skips.count += skipped;
        /* of rows some updates apart only those count in which all were skipped */
        skips.tail = skipped >= updates ? skips.tail + updates : 0;
        if (updates == 1) judge_schedule(doctor, series->points[i].row, &skips);
    }
    return skips;
}

static enum status report_poison(struct doctor *doctor, const struct log_column *column,
                                 const struct skips *skips) {
    TRY(doctor_found(doctor, "nan_skip_poison", DOCTOR_LIKELY, skips->first->row,
                     "The last %zu updates were all skipped: the training stands still.",
                     skips->tail));
    TRY(doctor_evidence_point(doctor, column->source, skips->first));
    return doctor_explain(
        doctor, "a scaler that searches its scale needs a handful of skips, not a tail",
        "A NaN in weights or moments makes every later gradient NaN: check both at the "
        "first skipped update of the tail.");
}

/* The verb behind "update". */
static const char *were(size_t count) {
    return count == 1 ? " was" : "s were";
}

static enum status report_advance(struct doctor *doctor, const struct log_column *column,
                                  const struct skips *skips) {
    static const char words[] =
        "%zu update%s skipped and the schedule went on %s: the LR is ahead of the updates.";
    char where[64] = "there";
    if (skips->count > 1) snprintf(where, sizeof where, "in at least %zu of them", skips->moved);
    if (skips->count > 10 && doctor_plain_fit(doctor) == NULL)
        TRY(doctor_found(doctor, "skip_advances_schedule", DOCTOR_LIKELY, skips->first->row, words,
                         skips->count, were(skips->count), where));
    else
        TRY(doctor_remark(doctor, "skip_advances_schedule", skips->first->row, words, skips->count,
                          were(skips->count), where));
    TRY(doctor_evidence_point(doctor, column->source, skips->first));
    return doctor_explain(
        doctor,
        "Lightning, OLMo-core and llm.c do so by design, and Accelerate (so the Trainer) with a "
        "fused optimizer, whose skip it does not see; others hold",
        "Compare LR at equal numbers of real updates when you set this run beside one "
        "of another framework.");
}

/* Returns how many updates an explanation of the LR column skips. Those in front of the first row
 * count only where the total or the warm-up is said or shown: with both as much longer the rows are
 * those of a training that skipped none there. */
static uint64_t held_by(const struct doctor *doctor, const struct fit *fit) {
    const struct series *const lr = &doctor->lr;
    struct fit_known known;
    uint64_t held = fit_skipped(fit);
    fit_known_init(&known); /* nothing is asked of the doctor */
    known.run_steps = doctor->log->max_steps;
    if (lr->count > 0 && fit_skips_before_rows(fit, &known, lr))
        for (size_t i = 0; i < fit->skip_count; i++)
            if (fit->skips[i].last < lr->points[0].update) held -= fit->skips[i].count;
    for (size_t i = 0; i < fit->segment_count; i++)
        if (fit->segments[i].event == FIT_SKIP && fit->segments[i].moved < 0)
            held += (uint64_t)-fit->segments[i].moved;
    return held;
}

/* Finds the contract of the log's own framework that prints every LR of the fit with none of its
 * updates held, as its schedule then went on. NULL: there is none. */
static enum status went_on(const struct doctor *doctor, const struct fit *fit,
                           const struct contract **out) {
    size_t count;
    const struct contract *const list = contract_list(&count);
    struct fit_known known;
    fit_known_init(&known);
    *out = NULL;
    if (doctor->lr.count == 0 || fit->segment_count > 1 || fit->part_count > 0 ||
        fit->samples != NULL || fit->first_differs || fit->schedule->state_size > 0 ||
        fit->schedule->feedback)
        return STATUS_OK;
    TRY(fit_known_from_log(&known, doctor->log, doctor->arena));
    for (size_t c = 0; c < count && *out == NULL; c++) {
        struct contract_plan plan = fit->plan;
        size_t i = 0;
        if (list[c].bug || list[c].unit != fit->contract->unit ||
            !fit_is_native(&known, &list[c]) || !sched_in_family(fit->schedule, list[c].family))
            continue;
        plan.contract = &list[c];
        plan.skipped_count = 0;
        while (i < doctor->lr.count &&
               fit_matches(&doctor->lr.points[i],
                           contract_logged(&plan, doctor->lr.points[i].update), fit->lr, NULL))
            i++;
        if (i == doctor->lr.count) *out = &list[c];
    }
    return STATUS_OK;
}

/* Says that updates were skipped at which the LR column holds under one contract, and goes on under
 * another: a fused optimizer skips by itself, so that its framework's schedule goes on. */
static enum status held_or_went_on(struct doctor *doctor, const struct fit *fit,
                                   const struct contract *other) {
    const unsigned long long count = held_by(doctor, fit);
    TRY(doctor_remark(doctor, "skipped_updates", SIZE_MAX,
                      "Either the LR column holds at %llu update%s skipped, as a loss scaler does, "
                      "or the schedule went on: both print these LRs.",
                      count, count == 1 ? " that was" : "s that were"));
    doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence(doctor, "the LR column reads as %s", fit->text));
    TRY(doctor_evidence(doctor, "%s prints the same with the same numbers and no update held",
                        other->name));
    return doctor_explain(doctor,
                          "the gradient norm that is not finite does not tell whether the schedule "
                          "held; with a fused optimizer it goes on",
                          "Say which version of the framework ran: twinstep lr check --expect "
                          "CONTRACT.");
}

/* Says at which updates the LR column holds. Whether a scaler skipped them, only a gradient norm
 * that is not finite tells (`shown`); a scheduler that was not stepped prints the same LRs. */
static enum status skips_of_lr(struct doctor *doctor, const struct fit *fit, int shown) {
    static const char *const words[2] = {
        "The LR column holds at %llu update%s skipped, as a loss scaler does, or at which the "
        "scheduler was not stepped.",
        "%llu update%s skipped, as a loss scaler does: the LR column holds there."};
    static const char *const were_or_that[2] = {" that was", "s that were"};
    const unsigned long long count = held_by(doctor, fit);
    const struct contract *other = NULL;
    if (shown) TRY(went_on(doctor, fit, &other));
    if (other != NULL) return held_or_went_on(doctor, fit, other);
    TRY(doctor_remark(doctor, "skipped_updates", SIZE_MAX, words[shown], count,
                      shown ? were(count) : were_or_that[count != 1]));
    if (!shown) doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence(doctor, "the LR column reads as %s", fit->text));
    return doctor_explain(
        doctor,
        shown ? ""
              : "a scheduler that was not stepped prints the same, and the log shows no "
                "gradient norm that is not finite",
        "Another run skips other updates: align by real updates.");
}

/* Says that the LR column holds although the log counts its skipped updates, and counts none. */
static enum status held_without_skips(struct doctor *doctor, const struct fit *fit,
                                      const struct log_column *column) {
    const unsigned long long count = held_by(doctor, fit);
    TRY(doctor_remark(doctor, "schedule_held", SIZE_MAX,
                      "The LR column holds at %llu update%s, and the column %s counts no skipped "
                      "one: the scheduler was not stepped there.",
                      count, count == 1 ? "" : "s", column->source));
    doctor_set_confidence(doctor, DOCTOR_LIKELY);
    TRY(doctor_evidence(doctor, "the LR column reads as %s", fit->text));
    return doctor_explain(doctor, "a log may count its skipped updates wrongly",
                          "Look where scheduler.step() is called, and whether that is reached at "
                          "every update.");
}

/* Returns the column that tells of skipped updates best. */
static enum log_name column_of_skips(const struct doctor *doctor) {
    if (doctor->series[LOG_SKIPPED].count > 0) return LOG_SKIPPED;
    return doctor->series[LOG_LOSS_SCALE].count > 0 ? LOG_LOSS_SCALE : LOG_GRAD_NORM;
}

static enum status skipped_updates(struct doctor *doctor) {
    const enum log_name name = column_of_skips(doctor);
    const struct log_column *column = log_column_of(doctor->log, name);
    const struct fit *fit = doctor_plain_fit(doctor);
    int lr_tells = fit != NULL && held_by(doctor, fit) > 0;
    struct skips skips = {0, 0, 0, 0, NULL};
    if (lr_tells && sched_row(fit->schedule, "decay") != NULL) {
        struct fit_known known;
        fit_known_init(&known);
        TRY(fit_known_from_log(&known, doctor->log, doctor->arena));
        lr_tells = !fit_skips_on_plateau(fit, &known, &doctor->lr);
    }
    if (column != NULL) skips = count_skips(doctor, column, &doctor->series[name]);
    if (name == LOG_GRAD_NORM && skips.count == 0 && !lr_tells)
        return doctor_untestable(doctor, "no column loss_scale or skipped");
    if (name == LOG_GRAD_NORM && lr_tells && skips.tail < 5)
        return skips_of_lr(doctor, fit, skips.count > 0);
    if (skips.count == 0 && lr_tells) {
        struct fit_known known;
        fit_known_init(&known);
        TRY(fit_known_from_log(&known, doctor->log, doctor->arena));
        if (known.skips.shown > 0) return STATUS_OK;
        return name == LOG_SKIPPED && known.skips.counted == FIT_COUNTED_EXACTLY
                   ? held_without_skips(doctor, fit, column)
                   : skips_of_lr(doctor, fit, 0);
    }
    if (skips.count == 0) return STATUS_OK;
    /* A scaler that starts at 2^16 halves it a handful of times in a row, and at the start. */
    if (skips.tail >= 5 && 10 * skips.tail >= reach(&doctor->series[name]))
        return report_poison(doctor, column, &skips);
    if (skips.moved > skips.held) return report_advance(doctor, column, &skips);
    char schedule[96] = "";
    if (skips.held > 0 && skips.moved > 0)
        snprintf(schedule, sizeof schedule, "; the schedule held in %zu row%s and went on in %zu",
                 skips.held, skips.held == 1 ? "" : "s", skips.moved);
    else if (skips.held > 0)
        snprintf(schedule, sizeof schedule, "; the schedule held there");
    TRY(doctor_remark(doctor, "skipped_updates", skips.first->row, "%zu update%s skipped (%s)%s.",
                      skips.count, were(skips.count),
                      name == LOG_GRAD_NORM ? "no finite gradient norm, and finite ones later"
                                            : "loss scale or skip counter",
                      schedule));
    TRY(doctor_evidence_point(doctor, column->source, skips.first));
    return doctor_explain(doctor, "", "Another run skips other updates: align by real updates.");
}

/* ---- columns that no other check looks at ---- */

/* Rows that must show a finite number in front, and none behind, for a column to have broken.
 * Chosen: a mean over no sample, or a standard deviation of one, leaves single rows. */
#define ROWS_OF_BREAK 3

struct broken {
    size_t first;          /* the first row without a finite number; rows: there is none */
    size_t last;           /* the last row that has a number, finite or not */
    size_t finite, others; /* rows with a finite number in front of `first`, and rows without */
    int comes_back;        /* 1: a finite number stands behind `first` */
};

static struct broken broken_of(const struct log *log, const struct log_column *column) {
    struct broken broken = {.first = log->rows};
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(column, row)) continue;
        if (!real_finite_f64(column->value[row])) {
            if (broken.others++ == 0) broken.first = row;
        } else if (broken.others > 0) {
            broken.comes_back = 1;
        } else {
            broken.finite++;
        }
    }
    return broken;
}

/* Tells whether the loss, the gradient norm or the LR is no finite number at a row or in front of
 * it: that has a finding of its own, and other columns follow from it. */
static int is_explained(const struct doctor *doctor, size_t row) {
    static const enum log_name told[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_LR_LOGGED, LOG_LR_APPLIED};
    for (size_t c = 0; c < COUNT_OF(told); c++) {
        const struct series_point *first = NULL;
        if (count_not_finite(&doctor->series[told[c]], &first) > 0 && first->row <= row) return 1;
    }
    return 0;
}

static int has_check_of_its_own(int32_t name) {
    return name == LOG_LOSS || name == LOG_GRAD_NORM || name == LOG_LR_LOGGED ||
           name == LOG_LR_APPLIED;
}

static int stays_broken(const struct broken *broken) {
    return !broken->comes_back && broken->finite >= ROWS_OF_BREAK &&
           broken->others >= ROWS_OF_BREAK;
}

/* Tells whether a column is one of those that stay without a finite number from some row on, or
 * (`stays` of 0) one of the others that have rows without one. */
static int is_broken(const struct doctor *doctor, const struct log_column *column, int stays,
                     struct broken *out) {
    if (has_check_of_its_own(column->name)) return 0;
    *out = broken_of(doctor->log, column);
    return out->others > 0 && stays_broken(out) == stays && !is_explained(doctor, out->first);
}

static enum status name_broken(struct doctor *doctor, const struct log_column *column, int stays,
                               const struct broken *broken, size_t columns) {
    const struct log *log = doctor->log;
    char more[48] = "";
    if (columns > 1) snprintf(more, sizeof more, "; %zu columns are so", columns);
    if (stays)
        return doctor_found(doctor, "metric_not_finite", DOCTOR_POSSIBLE, broken->first,
                            "The column %s has no finite number from %s on%s.", column->source,
                            word_place(log, broken->first).text, more);
    return doctor_remark(doctor, "metric_not_finite", broken->first,
                         "The column %s has no finite number in %zu row%s%s.", column->source,
                         broken->others, broken->others == 1 ? "" : "s", more);
}

static enum status report_metrics(struct doctor *doctor, int stays) {
    const struct log *log = doctor->log;
    const struct log_column *earliest = NULL;
    struct broken broken, of_earliest = {.first = 0};
    size_t columns = 0;
    for (size_t c = 0; c < log->column_count; c++) {
        if (!is_broken(doctor, &log->columns[c], stays, &broken)) continue;
        if (columns++ > 0 && broken.first >= of_earliest.first) continue;
        earliest = &log->columns[c];
        of_earliest = broken;
    }
    if (columns > 0) TRY(name_broken(doctor, earliest, stays, &of_earliest, columns));
    for (size_t c = 0; c < log->column_count && columns > 0; c++)
        if (is_broken(doctor, &log->columns[c], stays, &broken))
            TRY(doctor_evidence(doctor, "%s: %s is %s", word_place(log, broken.first).text,
                                log->columns[c].source,
                                word_number(log->columns[c].value[broken.first]).text));
    if (columns == 0) return STATUS_OK;
    return doctor_explain(
        doctor,
        stays ? "loss, gradient norm and LR are finite up to there; a metric may be undefined "
                "innocently (a mean over no sample, a logarithm of 0), though seldom to the end"
              : "",
        stays ? "See what this column is made of: something in it may have become NaN in the row "
                "before, at a place that the loss does not pass through."
              : "A mean over no sample and a standard deviation of one are NaN, a perplexity "
                "overflows, and the best value so far may begin as infinite.");
}

static enum status other_numbers(struct doctor *doctor) {
    size_t others = 0;
    for (size_t c = 0; c < doctor->log->column_count; c++)
        if (!has_check_of_its_own(doctor->log->columns[c].name)) others++;
    if (others == 0) return doctor_untestable(doctor, "no other column");
    const size_t before = doctor->count;
    TRY(report_metrics(doctor, 1));
    TRY(report_metrics(doctor, 0));
    /* A log without loss, gradient norm and LR is none in which nothing was found. */
    if (doctor->count == before && doctor->series[LOG_LOSS].count == 0 &&
        doctor->series[LOG_GRAD_NORM].count == 0 && doctor->lr.count == 0)
        return doctor_untestable(doctor, "no loss, gradient norm or LR beside them");
    return STATUS_OK;
}

const struct doctor_check doctor_value_checks[] = {
    {"loss_not_finite", "loss is a finite number", {LOG_LOSS}, loss_not_finite},
    {"grad_norm_not_finite", "gradient norm is a finite number", {LOG_GRAD_NORM}, norm_not_finite},
    {"nan_loss_filtered",
     "no finite loss beside a gradient norm that is none",
     {LOG_LOSS, LOG_GRAD_NORM},
     loss_filtered},
    {"no_gradient", "gradient norm is not 0", {LOG_GRAD_NORM}, no_gradient},
    {"weights_reinitialised", "first loss is not ln(vocabulary)", {LOG_LOSS}, fresh_weights},
    {"skipped_updates",
     "skipped updates, and what the schedule did there",
     {LOG_OTHER},
     skipped_updates},
    {"metric_not_finite", "other columns are finite", {LOG_OTHER}, other_numbers},
    {NULL, NULL, {LOG_OTHER}, NULL}};
