/* SPDX-License-Identifier: Apache-2.0
 * Checks of resumes: where the log goes on in another part, or repeats updates. docs/FORENSICS.md
 * lists them.
 *
 * Invariant: an update that falls back without a new part is a resume as well. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

/* how many resumes are looked at: a log that is out of order would have one at every row */
#define RESUMES 64

static enum status mixture(struct doctor *doctor) {
    return doctor_untestable(doctor, "rows of two runs alternate");
}

static int is_resume(const struct series *series, size_t i) {
    return i > 0 && (series->points[i].part != series->points[i - 1].part ||
                     series->points[i].update < series->points[i - 1].update);
}

/* Whether the rows from point i on begin where the log began: then nothing was resumed, and the two
 * are another run and this one, or both are beginnings of it. */
static int begins_anew(const struct series *series, size_t i) {
    return series->points[i].update == series->points[0].update;
}

static size_t next_resume(const struct series *series, size_t from) {
    for (size_t i = from; i < series->count; i++)
        if (is_resume(series, i)) return i;
    return series->count;
}

/* Returns the latest earlier point with the update of point i, in another stretch, or NULL. It
 * looks one by one, since resumes are few. */
static const struct series_point *earlier(const struct series *series, size_t i) {
    for (size_t j = i; j-- > 0;)
        if (series->points[j].update == series->points[i].update) return &series->points[j];
    return NULL;
}

size_t series_replayed(const struct series *lr, size_t at) {
    size_t count = 0;
    while (at + count < lr->count && count < at &&
           !point_differs(&lr->points[at + count], &lr->points[count]) &&
           (count == 0 || !is_resume(lr, at + count)))
        count++;
    return count;
}

/* Returns the largest change per update in the neighbourhood of a resume. */
static double usual_change(const struct series *lr, size_t at) {
    double largest = 0.0;
    for (size_t i = at > 4 ? at - 4 : 1; i < lr->count && i < at + 4; i++) {
        if (i == at || lr->points[i].update <= lr->points[i - 1].update) continue;
        const double change = real_abs_f64(lr->points[i].value - lr->points[i - 1].value) /
                              (double)(lr->points[i].update - lr->points[i - 1].update);
        largest = change > largest ? change : largest;
    }
    return largest;
}

/* Returns what the LR at a resume is to be held against, or NULL when it goes on smoothly: within
 * four times the usual change, plus 2 % for the last rows before a crash that were not written.
 * Both were chosen. */
static const struct series_point *jumped_from(const struct series *lr, size_t at) {
    const struct series_point *point = &lr->points[at], *before = earlier(lr, at);
    if (before != NULL) return point_differs(before, point) ? before : NULL;
    before = &lr->points[at - 1];
    const double updates =
        point->update > before->update ? (double)(point->update - before->update) : 1.0;
    const double room = 4.0 * usual_change(lr, at) * updates + point->quantum + before->quantum +
                        0.02 * real_abs_f64(before->value);
    return real_abs_f64(point->value - before->value) > room ? before : NULL;
}

/* Returns how many updates the schedule would have to be behind, or ahead, for the jump: where a
 * loss scaler begins anew at a resume and skips its first updates, or where the counter is set to
 * the number of updates, it is. 0: more than are believed. */
static uint32_t held_updates(const struct doctor *doctor, size_t at,
                             const struct series_point *before) {
    const struct series *lr = &doctor->lr;
    const uint64_t most = fit_skips_most(doctor_last_update(doctor));
    const double change = usual_change(lr, at);
    const double gap = real_abs_f64(lr->points[at].value - before->value);
    if (!(change > 0.0) || !(gap <= (double)most * change)) return 0;
    const uint32_t updates = 1 + (uint32_t)(gap / change * (1.0 - 0x1p-20)); /* rounded up */
    /* A counter that lost more than half of itself was not restored. */
    return 2 * (uint64_t)updates <= before->update ? updates : 0;
}

static enum status report_replay(struct doctor *doctor, size_t at, size_t count) {
    const struct series *lr = &doctor->lr;
    TRY(doctor_found(doctor, "scheduler_not_restored",
                     earlier(lr, at) != NULL ? DOCTOR_CERTAIN : DOCTOR_LIKELY, lr->points[at].row,
                     "After the resume the LR begins anew: %zu rows repeat the LRs from the start "
                     "of the log.",
                     count));
    TRY(doctor_evidence_lr(doctor, &lr->points[at - 1]));
    TRY(doctor_evidence_lr(doctor, &lr->points[at]));
    TRY(doctor_evidence_lr(doctor, &lr->points[0]));
    if (count > 1) TRY(doctor_evidence_lr(doctor, &lr->points[at + 1]));
    return doctor_explain(doctor, "the counter of the schedule is 0 again while updates go on",
                          "Save and load the scheduler (or set last_epoch) with the checkpoint.");
}

static enum status report_jump(struct doctor *doctor, size_t at,
                               const struct series_point *before) {
    const struct series *lr = &doctor->lr;
    const int same = before->update == lr->points[at].update;
    const uint32_t held = held_updates(doctor, at, before);
    static const char id[] = "lr_jump_at_resume",
                      words[] = "The LR jumps at the resume, by a factor of %s.";
    const struct word factor = word_about(lr->points[at].value / before->value);
    const char *const text = before->value > 0.0 ? factor.text : "infinity";
    /* What was run twice may have skipped other updates the second time. */
    if (held > 0 && same)
        TRY(doctor_remark(doctor, id, lr->points[at].row, words, text));
    else
        TRY(doctor_found(doctor, id,
                         held > 0 ? DOCTOR_POSSIBLE
                         : same   ? DOCTOR_CERTAIN
                                  : DOCTOR_LIKELY,
                         lr->points[at].row, words, text));
    TRY(doctor_evidence_lr(doctor, before));
    TRY(doctor_evidence_lr(doctor, &lr->points[at]));
    if (held > 0)
        TRY(doctor_evidence(doctor,
                            "it is that of at most %lu updates: a loss scaler that skipped some "
                            "would do it",
                            (unsigned long)held));
    return doctor_explain(
        doctor,
        same ? "one update has two LRs in one log"
             : "the jump is over four times the usual change between updates",
        "Causes: another total or peak at the restart, a base LR taken from the decayed "
        "one (initial_lr_overwritten), a counter that was added to itself "
        "(double_counter). twinstep lr fit LOG tells them apart.");
}

/* A sound schedule that gives every LR, those of updates that were run twice among them, gives the
 * jump as well. */
static enum status lr_at_resume(struct doctor *doctor) {
    if (doctor_has(doctor, "interleaved_writers")) return mixture(doctor);
    const struct series *lr = &doctor->lr;
    const int explained = !doctor->lr_applied && doctor_plain_fit(doctor) != NULL;
    size_t at = next_resume(lr, 1), seen = 0;
    if (at >= lr->count) return doctor_untestable(doctor, "no resume in the LR column");
    for (; at < lr->count && seen++ < RESUMES; at = next_resume(lr, at + 1)) {
        const struct series_point *before = jumped_from(lr, at);
        if (before == NULL || explained || lr->points[at].update <= lr->points[0].update) continue;
        const size_t count = series_replayed(lr, at);
        if (count >= 2)
            TRY(report_replay(doctor, at, count));
        else
            TRY(report_jump(doctor, at, before));
    }
    return STATUS_OK;
}

/* ---- repeated rows ---- */

static enum status report_processes(struct doctor *doctor, size_t twice,
                                    const struct series_point *point) {
    TRY(doctor_found(doctor, "rows_of_several_processes", DOCTOR_POSSIBLE, point->row,
                     "%zu rows have the update of the row before: several processes write one "
                     "file, or each micro-batch of an update has a row.",
                     twice));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, point));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, point + 1));
    return doctor_explain(
        doctor,
        "a resume repeats a stretch, not each update; a loop that accumulates and logs each "
        "micro-batch prints the same",
        "Log one row an update: the mean over its micro-batches, and of rank 0 alone. Which rank a "
        "row comes from cannot be told afterwards, and of several rows of one update the last "
        "counts.");
}

/* Tells whether two rows show the same texts' numbers in every column. */
static int is_same_row(const struct log *log, size_t a, size_t b) {
    for (size_t i = 0; i < log->column_count; i++) {
        const struct log_column *const column = &log->columns[i];
        const int has = log_has(column, a);
        if (has != log_has(column, b)) return 0;
        if (!has) continue;
        const double left = column->value[a], right = column->value[b];
        if (left != right && (left == left || right == right)) return 0;
    }
    return 1;
}

/* Tells whether every update that stands in the log twice in a row does with equal numbers. Several
 * processes seldom print all digits alike, and a handler that was attached twice always does. */
static int are_copies(const struct log *log, const struct series *loss) {
    for (size_t i = 0; i + 1 < loss->count; i++)
        if (loss->points[i].update == loss->points[i + 1].update &&
            !is_same_row(log, loss->points[i].row, loss->points[i + 1].row))
            return 0;
    return 1;
}

static enum status report_copies(struct doctor *doctor, size_t twice,
                                 const struct series_point *point) {
    TRY(doctor_remark(doctor, "rows_logged_twice", point->row,
                      "%zu updates stand in the log several times in a row, each with equal "
                      "numbers in all columns.",
                      twice));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, point));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, point + 1));
    return doctor_explain(doctor, "",
                          "A handler of the logger or a callback that is attached twice writes so; "
                          "several processes do where all that they print was averaged over them.");
}

static enum status repeated_in_a_row(struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    size_t twice = 0, first = 0;
    for (size_t i = 0; i + 1 < loss->count; i++)
        if (loss->points[i].update == loss->points[i + 1].update && twice++ == 0) first = i;
    if (twice >= 3 && 3 * twice >= loss->count && are_copies(doctor->log, loss))
        return report_copies(doctor, twice, &loss->points[first]);
    if (twice >= 3 && 3 * twice >= loss->count)
        return report_processes(doctor, twice, &loss->points[first]);
    return STATUS_OK;
}

static enum status repeated_rows(struct doctor *doctor) {
    if (doctor_has(doctor, "interleaved_writers")) return mixture(doctor);
    const struct series *loss = &doctor->series[LOG_LOSS];
    size_t repeats = 0;
    const struct series_point *first = NULL;
    for (size_t at = next_resume(loss, 1); at < loss->count; at = next_resume(loss, at + 1)) {
        const uint64_t reached = loss->points[at - 1].update;
        for (size_t i = at; i < loss->count && (i == at || !is_resume(loss, i)); i++) {
            if (loss->points[i].update > reached) break;
            if (repeats++ == 0) first = &loss->points[i];
        }
    }
    if (first == NULL) return repeated_in_a_row(doctor);
    const int anew = begins_anew(loss, (size_t)(first - loss->points));
    TRY(doctor_remark(doctor, "repeated_rows", first->row,
                      "%zu rows repeat updates that the log already has: %s", repeats,
                      anew ? "another run in the same file, or this one begun anew."
                           : "a resume from an older checkpoint. The later rows are those that "
                             "count."));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, first));
    TRY(doctor_explain(doctor, "",
                       anew ? "Cut the file there and ask of each part: what is said of the whole "
                              "takes the two for one training."
                            : "Plots and comparisons that keep the first rows show a training "
                              "that was thrown away."));
    return repeated_in_a_row(doctor);
}

/* ---- the same update, another loss ---- */

/* The first update after a restart sees the restored weights: on the same batch its loss is the one
 * of before, up to the noise of kernels. 2 % was chosen as a bound of that noise
 * (forensics/compare_explain_gap.c, FORWARD_NOISE). */
static enum status data_at_resume(struct doctor *doctor) {
    if (doctor_has(doctor, "interleaved_writers")) return mixture(doctor);
    const struct log_column *column = log_column_of(doctor->log, LOG_LOSS);
    const struct series *loss = &doctor->series[LOG_LOSS];
    size_t checked = 0, seen = 0;
    for (size_t at = next_resume(loss, 1); at < loss->count && seen++ < RESUMES;
         at = next_resume(loss, at + 1)) {
        const struct series_point *now = &loss->points[at], *before = earlier(loss, at);
        if (before == NULL || !real_finite_f64(now->value) || !real_finite_f64(before->value))
            continue;
        const int windowed = column->windowed && at + 1 < loss->count &&
                             loss->points[at + 1].update != now->update + 1;
        if (windowed || begins_anew(loss, at)) continue;
        checked++;
        const double gap = real_abs_f64(now->value - before->value);
        if (gap <= now->quantum + before->quantum + 0.02 * real_abs_f64(before->value)) continue;
        TRY(doctor_found(doctor, "resume_sees_other_data", DOCTOR_POSSIBLE, now->row,
                         "Update %llu was run twice, before and after a resume, with another loss.",
                         (unsigned long long)now->update));
        TRY(doctor_evidence_point(doctor, column->source, before));
        TRY(doctor_evidence_point(doctor, column->source, now));
        TRY(doctor_explain(
            doctor,
            "restored weights on the same batch give the same loss within kernel noise; "
            "dropout without its saved state gives another",
            "Print the sample indices of this update in both runs; check that the "
            "loader skips what was seen and that its random state is restored."));
    }
    if (checked == 0)
        return doctor_untestable(doctor, "no update stands on both sides of a resume");
    return STATUS_OK;
}

/* ---- counters ---- */

/* A resume that repeats no update cannot be seen in the numbers of the updates. */
static enum status report_counter(struct doctor *doctor, const struct log_column *column,
                                  const struct series_point *point, int resume) {
    if (resume)
        TRY(doctor_found(doctor, "counter_not_restored", DOCTOR_CERTAIN, point->row,
                         "The running counter %s falls at the resume although updates go on.",
                         column->source));
    else
        TRY(doctor_found(doctor, "counter_falls", DOCTOR_CERTAIN, point->row,
                         "The running counter %s falls between update %llu and update %llu. If the "
                         "run was resumed there, which the update numbers do not show, the counter "
                         "was not restored; else it was set back.",
                         column->source, (unsigned long long)point[-1].update,
                         (unsigned long long)point->update));
    TRY(doctor_evidence_point(doctor, column->source, point - 1));
    TRY(doctor_evidence_point(doctor, column->source, point));
    return doctor_explain(
        doctor, "both numbers stand in the log, and a running total cannot fall by itself",
        "A schedule or a data loader that works from this counter starts anew with it. "
        "See which of them does.");
}

/* Tells whether points `from` to `to` are one number of epochs per update, that of the last of
 * them.
 */
static int is_share_of_updates(const struct series *series, size_t from, size_t to) {
    const struct series_point *const last = &series->points[to - 1];
    const double rate = last->value / (double)last->update;
    if (to < from + 2 || !(rate > 0.0)) return 0;
    for (size_t i = from; i < to; i++) {
        const struct series_point *const point = &series->points[i];
        const double updates = (double)point->update;
        const double slack =
            0.5 * point->quantum + 0.5 * last->quantum * updates / (double)last->update;
        if (!(real_abs_f64(point->value - rate * updates) <= slack + 1e-9 * point->value)) return 0;
    }
    return 1;
}

/* A trainer that counts an epoch as updates over the number of updates in one (transformers') lets
 * it fall, or jump, where a run goes on with another batch: no counter was lost. */
static enum status remark_epoch_length(struct doctor *doctor, const struct log_column *column,
                                       const struct series *series, size_t at) {
    const struct series_point *const before = &series->points[at - 1];
    const struct series_point *const last = &series->points[series->count - 1];
    const double lengths[2] = {(double)before->update / before->value,
                               (double)last->update / last->value};
    TRY(doctor_remark(doctor, "epoch_length_changed", series->points[at].row,
                      "The epoch falls at update %llu because it is counted as updates over those "
                      "of an epoch, of which there are about %s from there on, and %s before.",
                      (unsigned long long)series->points[at].update, word_about(lengths[1]).text,
                      word_about(lengths[0]).text));
    TRY(doctor_evidence_point(doctor, column->source, before));
    TRY(doctor_evidence_point(doctor, column->source, &series->points[at]));
    return doctor_explain(doctor, "",
                          "A resume with another batch, accumulation, number of processes or data "
                          "set does that. A loader that skips batches of the new size begins at "
                          "other samples than the run stopped at: see which.");
}

static enum status counters(struct doctor *doctor) {
    if (doctor_has(doctor, "interleaved_writers")) return mixture(doctor);
    size_t checked = 0;
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers: a counter that falls "
                                         "may be a resume");
    for (size_t c = 0; c < doctor->log->column_count; c++) {
        const struct log_column *column = &doctor->log->columns[c];
        struct series series;
        if (column->name != LOG_EPOCH && !column->cumulative) continue;
        TRY(series_of(doctor->log, column, doctor->arena, &series));
        checked += series.count > 1;
        for (size_t i = 1; i < series.count; i++) {
            const struct series_point *point = &series.points[i];
            if (point->update <= point[-1].update) continue;
            if (!(point->value < point[-1].value - 0.5 * (point->quantum + point[-1].quantum)))
                continue;
            if (column->name == LOG_EPOCH && is_share_of_updates(&series, 0, i) &&
                is_share_of_updates(&series, i, series.count))
                TRY(remark_epoch_length(doctor, column, &series, i));
            else
                TRY(report_counter(doctor, column, point, is_resume(&series, i)));
            break;
        }
    }
    return checked > 0 ? STATUS_OK : doctor_untestable(doctor, "no running counter, no epoch");
}

const struct doctor_check doctor_resume_checks[] = {
    {"lr_at_resume", "LR goes on at a resume", {LOG_LR_LOGGED}, lr_at_resume},
    {"repeated_rows", "no update stands in the log twice", {LOG_LOSS}, repeated_rows},
    {"resume_sees_other_data", "an update run twice has one loss", {LOG_LOSS}, data_at_resume},
    {"counters", "running counters and epochs do not fall", {LOG_OTHER}, counters},
    {NULL, NULL, {LOG_OTHER}, NULL}};
