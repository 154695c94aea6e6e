/* SPDX-License-Identifier: Apache-2.0
 * Checks of what explains the LR column: a known bug, or a contract under which the first or the
 * last update applies LR 0. docs/LR.md has the contracts and the names of bugs.
 *
 * Invariant: a bug is a finding only where no sound contract explains the column. */
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

/* Rows that must stand behind a change in mid-run where no resume shows. Chosen: what the tests
 * draw gives no finding at 2 either, but a longer event leaves less to chance. */
#define ROWS_OF_EVENT 8
/* How often the LR must change: with fewer changes, bugs explain healthy columns, too. Chosen with
 * a margin: the sample of healthy logs that the tests draw has no finding at 3 either. */
#define CHANGES 12

static const char *const event_bugs[] = {[FIT_JUMP] = "lr_jump",
                                         [FIT_RESET] = "scheduler_not_restored",
                                         [FIT_DOUBLED] = "double_counter",
                                         [FIT_RESCALED] = "other_peak",
                                         [FIT_RESTARTED] = "scheduler_not_restored",
                                         [FIT_TOTAL] = NULL,
                                         [FIT_BACK] = "lr_jump"};

/* Tells whether a bug is that the schedule has another total than the log says. */
static int is_about_total(const char *bug) {
    return bug != NULL &&
           (strcmp(bug, "schedule_too_short") == 0 || strcmp(bug, "max_steps_ignored") == 0);
}

/* A counter that is 0 again, or another event, is seen in the rows; the total of a schedule that
 * was left before its end is one free number of the fit. So the event is named first. */
static const char *bug_of(const struct doctor *doctor, const struct fit *fit,
                          const struct fit_segment **segment) {
    *segment = &fit->segments[0];
    for (size_t i = 0; i < fit->segment_count; i++) {
        const char *const name = event_bugs[fit->segments[i].event];
        if (name == NULL || fit_is_next_stage(fit, i, doctor->fits->series)) continue;
        *segment = &fit->segments[i];
        return fit->bug != NULL && !is_about_total(fit->bug) ? fit->bug : name;
    }
    return fit->bug;
}

static int is_unsound(const struct fit *fit) {
    return fit_changes_total(fit) && (fit->unsound || fit->contract->bug);
}

static int has_resume(const struct series *series, size_t point) {
    return point > 0 && series->points[point].part != series->points[point - 1].part;
}

/* Counts from the row that counted last: a slow decay moves by less than its last digit per row,
 * and by many digits in all. */
static size_t changes(const struct series *series) {
    size_t count = 0, last = 0;
    for (size_t i = 1; i < series->count; i++) {
        if (!point_differs(&series->points[last], &series->points[i])) continue;
        last = i;
        count++;
    }
    return count;
}

/* A first update above the others is no bug when the LR falls from there on: some schedules do
 * that. */
static int only_falls(const struct fit *fit, const struct series *series) {
    const struct series_point *points = series->points;
    return fit->first_differs && series->count > 2 && fit->first_value > points[1].value &&
           points[2].value <= points[1].value;
}

/* An inverse square root looks the same whatever one update counts, with another peak, and Megatron
 * counts samples, whose number per update a log need not tell. Where its counter is one behind, an
 * update was skipped as likely. */
static int has_no_scale(const struct fit *fit) {
    return strncmp(sched_bare_name(fit->schedule), "inverse", 7) == 0;
}

/* Tells whether the log shows the bug. A stride shows at the end of the schedule; where that is not
 * in sight, another time scale looks the same. A change in mid-run needs a resume or some rows
 * behind it, since a few rows fit anything. */
static int shows(const struct doctor *doctor, const struct fit *fit,
                 const struct fit_segment *segment) {
    const struct series *series = doctor->fits->series;
    if (changes(series) < CHANGES || only_falls(fit, series)) return 0;
    if (segment->event == FIT_PLAIN)
        return !has_no_scale(fit) && (!(fit->stride > 1.0 || fit->stride < 1.0) ||
                                      (fit->steps > 0 && !fit->total_hidden));
    return has_resume(series, segment->point) || series->count - segment->point >= ROWS_OF_EVENT;
}

/* Returns the fit by which the bug is named. A schedule of half the length and one that moves twice
 * per update apply the same; then the one whose total is the log's own counts, since a total that
 * is typed stands in the file. `other` is the one that applies the same and says otherwise, or
 * NULL. */
static const struct fit *fit_of_bug(const struct doctor *doctor, const struct fit **other) {
    const struct fit *best = &doctor->fits->fits[0];
    const uint64_t total = doctor->log->max_steps;
    *other = NULL;
    if (total == 0 || best->steps == 0 || best->steps == total) return best;
    for (size_t i = 1; i < doctor->fits->count; i++) {
        const struct fit *fit = &doctor->fits->fits[i];
        if (fit->same_logged != best->same_logged || fit->same_applied != best->same_applied ||
            fit->steps != total || fit->segment_count != 1 || fit->first_differs)
            continue;
        *other = best;
        return fit;
    }
    return best;
}

/* Share of the peak by which equal LRs of a periodic schedule may differ: some count their phase
 * from the start, which costs digits. */
#define SAME_PHASE 1e-12

/* Tells whether each row behind the first period has the LR of the row one period before it.
 * Updates ascend one by one. */
static int repeats_after(const struct series *series, size_t period) {
    const double near = SAME_PHASE * series_largest(series);
    for (size_t i = period; i < series->count; i++) {
        const struct series_point *a = &series->points[i - period], *b = &series->points[i];
        if (point_differs(a, b) && real_abs_f64(a->value - b->value) > near) return 0;
    }
    return 1;
}

/* Returns the updates of a period that the whole column consists of, seen `times` at least, or 0. A
 * column with a resume is not looked at: a schedule that begins anew there is a bug. */
static size_t period_of(const struct series *series, size_t times) {
    for (size_t i = 1; i < series->count; i++)
        if (has_resume(series, i) || series->points[i].update != series->points[i - 1].update + 1)
            return 0;
    for (size_t period = 2; times * period <= series->count; period++)
        if (repeats_after(series, period)) return period;
    return 0;
}

/* Tells whether the fit holds its floor, which lies above 0, in two rows or more at the end. */
static int holds_floor(const struct fit *fit, const struct series *series) {
    const struct series_point *last = &series->points[series->count - 1];
    return fit->segment_count == 1 && fit->floor_ratio > 0.0 && series->count > 2 &&
           !point_differs(&last[-1], last) &&
           real_abs_f64(last->value - fit->floor_ratio * fit->lr) <=
               0.5 * last->quantum + SAME_PHASE * fit->lr;
}

/* Tells whether the schedule of the fit ends at 0 before the run does, and the LR stays there. */
static int ends_at_zero(const struct fit *fit, const struct series *series) {
    const struct series_point *last = &series->points[series->count - 1];
    return fit->segment_count == 1 && fit->steps > 0 && fit->steps < last->update &&
           series->count > 2 && last->value == 0.0 && last[-1].value == 0.0;
}

/* Returns the sound schedule of one's own that prints the column as well, or "". The bug is only
 * possible then. A counter that several processes or micro-batches move, as the options say, is
 * believed all the same. */
static enum status own_schedule(const struct doctor *doctor, const struct fit *fit, const char *bug,
                                const struct fit_known *known, const char **out) {
    const struct series *series = doctor->fits->series;
    const int strides = fit->stride > 1.0 || fit->stride < 1.0;
    const int told = doctor->options->processes > 1 || doctor->options->accumulate > 1;
    const uint64_t run = doctor->log->max_steps;
    /* A run that is resumed once, half-way, without its scheduler has two equal halves. */
    const size_t period = is_about_total(bug)      ? period_of(series, 2)
                          : fit->segment_count > 1 ? period_of(series, 3)
                                                   : 0;
    char *text;
    *out = "";
    if (period > 0) {
        TRY(arena_format(doctor->arena, &text,
                         "the whole column repeats after %zu updates, as a cyclic schedule does "
                         "(CyclicLR, CosineAnnealingWarmRestarts)",
                         period));
        *out = text;
    } else if ((is_about_total(bug) || (strides && !told)) && holds_floor(fit, series)) {
        TRY(arena_format(doctor->arena, &text,
                         "a schedule that is made shorter than the run and holds its floor of %s "
                         "to the end prints the same",
                         word_about(series->points[series->count - 1].value).text));
        *out = text;
    } else if (is_about_total(bug) && ends_at_zero(fit, series) && run % fit->steps != 0) {
        *out = "a schedule may be made shorter than its run on purpose, and is 0 then to the end";
    } else if (strcmp(bug, "floor_vs_ceil_steps") == 0 && run > 0 &&
               (fit->steps == run + 1 || fit->steps + 1 == run)) {
        if (known->possible == NULL)
            *out = "nothing says which framework wrote the log, and a loop of one's own that "
                   "counts one update more or less prints the same";
        else if (known->logs_used)
            *out = "the losses are not rounded, so a release of the Trainer wrote them that rounds "
                   "updates up on both sides, and a scheduler of one's own that counts one update "
                   "more or less prints the same";
    }
    return STATUS_OK;
}

/* `sound`: the schedule that prints the column, too, or "". */
static enum status report_bug(struct doctor *doctor, const struct fit *fit, const char *bug,
                              const struct fit_segment *segment, const struct fit *other,
                              const char *sound) {
    const struct series_point *point = &doctor->fits->series->points[segment->point];
    if (*sound != 0)
        TRY(doctor_found(doctor, bug, DOCTOR_POSSIBLE, point->row,
                         "Of the contracts and schedules that twinstep ships, a known bug alone "
                         "explains the LR column: %s.",
                         fit->text));
    else
        TRY(doctor_found(doctor, bug, DOCTOR_LIKELY, point->row,
                         "The LR column reads as a known bug and as nothing sound: %s.",
                         fit->text));
    TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED, point));
    TRY(doctor_evidence(doctor, "the fit reproduces all %zu printed LRs, largest error %s",
                        doctor->fits->series->count, word_about(fit->max_error).text));
    if (segment->event == FIT_BACK)
        TRY(doctor_evidence(doctor,
                            "no scheduler is held more often than there are updates: behind update "
                            "%llu the counter ran back by %llu",
                            (unsigned long long)point[-1].update,
                            (unsigned long long)-segment->moved -
                                (unsigned long long)(point->update - point[-1].update)));
    if (other != NULL)
        TRY(doctor_evidence(doctor, "the same LRs, with another total than the log's own: %s%s%s",
                            other->text, other->bug != NULL ? ", " : "",
                            other->bug != NULL ? other->bug : ""));
    if (fit->contract->source != NULL)
        TRY(doctor_evidence(doctor, "known from: %s", fit->contract->source));
    return doctor_explain(doctor,
                          *sound != 0
                              ? sound
                              : "every explanation found is a bug; a schedule that twinstep "
                                "does not ship could print the same",
                          "twinstep lr fit LOG lists all explanations with their numbers.");
}

/* Says that the schedule moves at every n-th update only. A loop may mean it. */
static enum status report_seldom(struct doctor *doctor, const struct fit *fit) {
    const unsigned long long stair = fit->epoch_updates;
    TRY(doctor_found(doctor, fit->bug, DOCTOR_POSSIBLE, doctor->fits->series->points[0].row,
                     "The LR moves once per %llu updates, on a schedule that was made for as many "
                     "moves as the run has updates: at its end it has made 1 of %llu.",
                     stair, stair));
    TRY(doctor_evidence(doctor, "the fit reproduces all %zu printed LRs: %s",
                        doctor->fits->series->count, fit->text));
    return doctor_explain(
        doctor, "the column does not say why the schedule moves so seldom, and it may be meant",
        "Count the calls of scheduler.step(): once per accumulation in a log with a row per "
        "micro-batch, once per epoch (Lightning unless interval is 'step') or per train() call, or "
        "a loop that logs each update twice, prints such stairs.");
}

/* Says that the peak is another one from some row on, and none that a resume makes by mistake. */
static enum status report_other_peak(struct doctor *doctor, const struct fit *fit,
                                     const struct fit_segment *segment) {
    const struct series_point *point = &doctor->fits->series->points[segment->point];
    TRY(doctor_found(doctor, "other_peak", DOCTOR_POSSIBLE, point->row,
                     "From update %llu on the peak is another one, and none of the LRs that the "
                     "schedule had there: %s.",
                     (unsigned long long)point->update, fit->text));
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, point));
    TRY(doctor_evidence(doctor, "the fit reproduces all %zu printed LRs, largest error %s",
                        doctor->fits->series->count, word_about(fit->max_error).text));
    return doctor_explain(doctor, "a run that was resumed with another LR prints the same",
                          "Was the run resumed there with that LR? A scheduler that is made anew "
                          "takes the LR that the optimizer has for its peak, which is not what "
                          "this column shows.");
}

/* Says what was tried to explain the column, and what would let more be tried. The search is
 * bounded: it takes the numbers that follow from the rows, and leaves out some that a told number
 * would lead to. */
static enum status say_tried(struct doctor *doctor) {
    const uint64_t total = doctor->log->max_steps;
    char *next;
    TRY(doctor_evidence(
        doctor,
        "tried, by a search that is bounded and may miss one: the contracts and schedules "
        "(twinstep "
        "list contracts, twinstep list schedules) with peaks, warm-ups and floors that follow from "
        "the rows, %s, some skipped updates, a counter that moves several times per update, and "
        "resumes",
        total > 0 ? "the total that the log says and others"
                  : "totals that follow from the rows, as the log says none"));
    TRY(arena_format(
        doctor->arena, &next,
        "A schedule of your own prints such a column, and is no fault. If it should be a known "
        "one, say what you know: twinstep lr fit LOG %s--warmup W --schedule S lists what fits, "
        "and twinstep lr check LOG --expect CONTRACT --schedule S --lr L --warmup W --steps T "
        "names the first update at which the column departs from it. For a schedule that moves at "
        "the ends of epochs, add --updates-per-epoch N to either.",
        total > 0 ? "" : "--steps T (the total, which this log lacks) "));
    return doctor_explain(doctor, "", next);
}

static enum status why_unknown(struct doctor *doctor) {
    const struct fit_set *fits = doctor->fits;
    if (doctor_lr_is_lost(doctor) > 0.0) return doctor_lr_lost(doctor);
    if ((fits->why & FIT_WHY_NOTHING) == 0)
        return doctor_untestable(
            doctor, "the LR column singles out no explanation (too few rows, or constant)");
    TRY(doctor_remark(doctor, "lr_unexplained", SIZE_MAX,
                      "twinstep found no training loop and schedule that it knows to print the LR "
                      "column."));
    if (fits->first_bad < fits->series->count)
        TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED, &fits->series->points[fits->first_bad]));
    if (fits->partial != NULL)
        TRY(doctor_evidence(doctor, "the %zu values in front of it fit %s", fits->first_bad,
                            fits->partial));
    TRY(say_tried(doctor));
    return doctor_untestable(doctor, "no shipped contract explains the LR column");
}

/* Says that the schedule goes on towards another end, which nothing else in a log tells. `sound`:
 * the log says that end, or says none and shows the resume. */
static enum status other_total(struct doctor *doctor, int sound) {
    const struct fit *fit = &doctor->fits->fits[0];
    uint64_t before = fit->steps;
    for (size_t i = 0; i < fit->segment_count; i++) {
        const struct fit_segment *segment = &fit->segments[i];
        const struct series_point *point = &doctor->fits->series->points[segment->point];
        if (segment->event != FIT_TOTAL) continue;
        TRY(doctor_remark(doctor, "schedule_total_changed", point->row,
                          "From update %llu on the schedule %s at update %llu, and before it %s at "
                          "%llu.",
                          (unsigned long long)point->update, sound ? "ends" : "may end",
                          (unsigned long long)segment->steps, sound ? "ended" : "may have ended",
                          (unsigned long long)before));
        if (!sound) doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
        TRY(doctor_evidence_lr(doctor, point - 1));
        TRY(doctor_evidence_lr(doctor, point));
        TRY(doctor_evidence(doctor, "%s", fit->text));
        TRY(doctor_explain(
            doctor,
            sound ? "" : "the log does not say that total, so it is one free number of the fit",
            sound ? "A resume with other max_steps or epochs does that, and is sound. The LR "
                    "jumps there, and the run is none that was planned so from its start."
                  : "Was the run resumed there with that max_steps or number of epochs?"));
        before = segment->steps;
    }
    return STATUS_OK;
}

/* A fit that changes its total and is no answer: nothing holds from the first row to the last, and
 * a bug that two free totals need is not named. */
static enum status total_is_open(struct doctor *doctor) {
    const struct fit *fit = &doctor->fits->fits[0];
    size_t i = 1;
    while (fit->segments[i].event != FIT_TOTAL)
        i++;
    TRY(doctor_remark(
        doctor, "lr_unexplained", SIZE_MAX,
        "twinstep found no training loop and schedule that it knows to print the whole "
        "LR column with one total."));
    TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED,
                               &doctor->fits->series->points[fit->segments[i].point]));
    TRY(say_tried(doctor));
    if (!is_unsound(fit)) TRY(other_total(doctor, 0));
    return doctor_untestable(doctor, "another total would explain the LR column from some row on, "
                                     "and nothing says that total");
}

/* Says that the LR is held where the schedule goes on: no scheduler stopped there, and no bug is
 * known that does it. */
static enum status is_held(struct doctor *doctor, const struct fit_stop *stop) {
    const struct series *series = doctor->fits->series;
    const struct series_point *point = &series->points[stop->point];
    const struct series_point *last = &series->points[series->count - 1];
    TRY(doctor_remark(doctor, "lr_held_from_below", point->row,
                      "From update %llu on the LR is held from below at %s: the schedule in front "
                      "of it goes on, and no step of it has that LR.",
                      (unsigned long long)point->update,
                      word_value(point->value, point->quantum).text));
    doctor_set_confidence(doctor, DOCTOR_LIKELY);
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, point));
    TRY(doctor_evidence(
        doctor, "the %zu values in front of it follow %s, which comes to %s at update %llu",
        stop->point, stop->fit->text, word_about(fit_logged(stop->fit, 0, last->update)).text,
        (unsigned long long)last->update));
    return doctor_explain(doctor,
                          "a scheduler that is no longer stepped stands at an LR of its schedule",
                          "A loop that sets lr = max(lr, floor) prints this. Is it meant?");
}

/* Says that the schedule was left before its end. `sound`: a sound schedule of the log's own
 * framework, with a floor, prints the column, too. That is a remark where somebody may have typed
 * the floor. */
static enum status stands_still(struct doctor *doctor, const struct fit_stop *stop, int sound) {
    static const char words[] =
        "The LR stands still from update %llu on, where its schedule goes on: the "
        "scheduler is no longer stepped, or the LR is held from below.";
    static const char open[] =
        "The LR stands still from update %llu on, at a floor that nobody would type: the scheduler "
        "may no longer be stepped, on the way to a lower one.";
    const struct series *series = doctor->fits->series;
    const struct series_point *point = &series->points[stop->point];
    const struct series_point *last = &series->points[series->count - 1];
    const int remark = sound && (stop->typed || stop->open);
    const int likely = !sound && (stop->of_known_total || stop->of_run) && !stop->typed &&
                       series->count - stop->point >= ROWS_OF_EVENT;
    if (remark)
        TRY(doctor_remark(doctor, "schedule_stands_still", point->row, stop->open ? open : words,
                          (unsigned long long)point->update));
    else
        TRY(doctor_found(doctor, "schedule_stands_still", likely ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                         point->row, words, (unsigned long long)point->update));
    if (remark) doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, last));
    if (stop->open)
        TRY(doctor_evidence(doctor,
                            "the %zu values in front of it fall as a line, at whose end nobody "
                            "would set this LR, and nothing says the total",
                            stop->point));
    else
        TRY(doctor_evidence(
            doctor, "the %zu values in front of it follow %s, which comes to %s at update %llu",
            stop->point, stop->fit->text, word_about(fit_logged(stop->fit, 0, last->update)).text,
            (unsigned long long)last->update));
    if (doctor->fits->count > 0)
        TRY(doctor_evidence(doctor, "the whole column, with a floor, is also that of %s%s%s",
                            doctor->fits->fits[0].text,
                            doctor->fits->fits[0].bug != NULL ? ", " : "",
                            doctor->fits->fits[0].bug != NULL ? doctor->fits->fits[0].bug : ""));
    return doctor_explain(
        doctor,
        likely && stop->of_run
            ? "the schedule in front was made for as many updates as the log has, and neither the "
              "LR at which it stands nor its share of the peak is a number of two digits, as one "
              "that somebody set is"
        : likely
            ? "the schedule in front is that of the total that the log says, and neither the LR "
              "at which it stands nor its share of the peak is a number of two digits, as one "
              "that somebody set is"
            : "a schedule with a floor, or a loop that holds its LR from below, prints the same",
        "Look where scheduler.step() is called, and whether that is reached at every update; then "
        "at the schedule's smallest LR. twinstep lr fit LOG --min-lr-ratio R says that the LR at "
        "which it stands is meant.");
}

/* Says that the schedule may have been left in its warm-up: the column is that of a constant LR,
 * too, and that one is what people train with. Nobody would type this peak, though. */
static enum status stands_at_top(struct doctor *doctor, const struct fit *fit) {
    const struct series *series = doctor->fits->series;
    const double top = series->points[series->count - 1].value;
    size_t at = series->count - 1;
    while (series->points[at - 1].value == top)
        at--;
    const struct series_point *const point = &series->points[at];
    TRY(doctor_remark(doctor, "schedule_stands_still", point->row,
                      "The LR rises and stands still from update %llu on at %s, a peak that nobody "
                      "would type: the scheduler may no longer be stepped, inside of a longer "
                      "warm-up.",
                      (unsigned long long)point->update, word_value(top, point->quantum).text));
    doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, point));
    TRY(doctor_evidence(doctor, "the whole column is also that of %s", fit->text));
    return doctor_explain(doctor, "a constant LR behind its warm-up prints the same",
                          "Is that the peak that was meant? Else look where scheduler.step() is "
                          "called, and whether that is reached at every update.");
}

/* Says that update 1 has an LR of its own, where no known bug does that. */
static enum status first_apart(struct doctor *doctor, const struct fit *fit) {
    const struct series_point *first = &doctor->fits->series->points[0];
    TRY(doctor_remark(doctor, "first_lr_apart", first->row,
                      "Update 1 has another LR than its schedule: %s.", fit->text));
    TRY(doctor_evidence_lr(doctor, first));
    TRY(doctor_evidence_lr(doctor, first + 1));
    return doctor_explain(doctor, "",
                          "A loop that sets lr = max(lr, floor) prints this, and so does one that "
                          "installs its schedule behind the first update. Is it meant?");
}

/* Says that the plateau is longer than the log's total leaves. */
static enum status long_plateau(struct doctor *doctor, const struct fit *fit, uint64_t said) {
    TRY(doctor_remark(doctor, "schedule_held", SIZE_MAX,
                      "The decay behind the plateau comes %llu update%s later than the log's total "
                      "of %llu leaves: the scheduler may not have been stepped on the plateau.",
                      (unsigned long long)(fit->steps - said), fit->steps - said == 1 ? "" : "s",
                      (unsigned long long)said));
    doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence(doctor, "the LR column reads as %s", fit->text));
    return doctor_explain(doctor, "a schedule that was made for so many updates prints the same",
                          "Look where scheduler.step() is called, and what the total was made of.");
}

/* Says that a constant LR has another level from some row on, which is no bug by itself. */
static enum status other_level(struct doctor *doctor, const struct fit *fit) {
    const struct series *series = doctor->fits->series;
    size_t i = 1;
    while (i < fit->segment_count && fit->segments[i].event != FIT_RESCALED &&
           fit->segments[i].event != FIT_RESTARTED)
        i++;
    if (i >= fit->segment_count) return STATUS_OK;
    const struct series_point *point = &series->points[fit->segments[i].point];
    TRY(doctor_remark(doctor, "other_peak", point->row,
                      "From update %llu on the LR is another one, which no decay explains: %s.",
                      (unsigned long long)point->update, fit->text));
    doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    TRY(doctor_evidence_lr(doctor, point - 1));
    TRY(doctor_evidence_lr(doctor, point));
    return doctor_explain(doctor, "a schedule of steps prints the same",
                          "Was the LR changed there by hand, or at a resume that the log does not "
                          "show?");
}

/* Says that the LR is held on its way, of a column that nothing explains: no bug is known that does
 * it. */
static enum status is_held_on_its_way(struct doctor *doctor, const struct fit_clamp *held) {
    const struct series *series = doctor->fits->series;
    const struct series_point *point = NULL, *farthest = NULL;
    double most = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const at = &series->points[i];
        const double off = real_abs_f64(fit_logged(held->fit, 0, at->update) - held->level);
        if (at->value != held->level) continue;
        if (point == NULL) point = at;
        if (farthest == NULL || off > most) {
            farthest = at;
            most = off;
        }
    }
    if (point == NULL) return STATUS_OK;
    TRY(doctor_remark(doctor, held->above ? "lr_held_from_above" : "lr_held_from_below", point->row,
                      "In %zu of %zu rows the LR is held from %s at %s: the others follow a "
                      "schedule that lies %s it there.",
                      held->rows, series->count, held->above ? "above" : "below",
                      word_value(point->value, point->quantum).text,
                      held->above ? "above" : "below"));
    doctor_set_confidence(doctor, DOCTOR_LIKELY);
    TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED, farthest));
    TRY(doctor_evidence(doctor, "the %zu other values follow %s, which has %s at update %llu",
                        series->count - held->rows, held->fit->text,
                        word_about(fit_logged(held->fit, 0, farthest->update)).text,
                        (unsigned long long)farthest->update));
    return doctor_explain(doctor, "no schedule that twinstep knows prints the whole column",
                          held->above
                              ? "A loop that sets lr = min(lr, ceiling) prints this. Is it meant?"
                              : "A loop that sets lr = max(lr, floor) from its first update on "
                                "prints this. Is it meant?");
}

/* Tells whether the fits name another bug, of which no break of the schedule is made up. */
static int names_other_bug(const struct doctor *doctor) {
    const struct fit_set *fits = doctor->fits;
    return fits->count > 0 && fits->fits[0].bug != NULL &&
           strcmp(fits->fits[0].bug, "schedule_too_short") != 0 &&
           !fit_break_is_doubtful(NULL, fits);
}

/* Finds the reading of the column as a schedule that stands still. Another bug is believed first,
 * but where the schedule in front has the total that the log says, or where the LR that stands is
 * at no step of it: the other one then owes its floor, and what else it takes, to the rows at which
 * the LR stands. lr fit leaves the bugs out there, too. */
static enum status find_stop(struct doctor *doctor, const struct fit_known *known,
                             struct fit_stop *out) {
    *out = (struct fit_stop){.fit = NULL};
    if (doctor->fits->series == NULL) return STATUS_OK;
    TRY(fit_find_stop(doctor->fits->series, known, doctor->fits, doctor->arena, out));
    if (!out->of_known_total && !out->held && names_other_bug(doctor)) out->fit = NULL;
    return STATUS_OK;
}

static enum status known_bug(struct doctor *doctor) {
    const struct fit_segment *segment;
    struct fit_known known;
    struct fit_stop stop;
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers, so a schedule that "
                                         "moves several times per row may be sound");
    if (doctor_has(doctor, "interleaved_writers"))
        return doctor_untestable(doctor, "rows of two runs alternate");
    const struct fit *plain = doctor_plain_fit(doctor);
    fit_known_init(&known);
    TRY(fit_known_from_log(&known, doctor->log, doctor->arena));
    TRY(find_stop(doctor, &known, &stop));
    const int own = plain != NULL && fit_is_native(&known, plain->contract);
    if (stop.fit != NULL && stop.held && !own) return is_held(doctor, &stop);
    if (stop.fit != NULL && !stop.held) return stands_still(doctor, &stop, own);
    if (doctor->fits->count == 0) {
        struct fit_clamp held = {.fit = NULL};
        if (doctor->fits->series != NULL)
            TRY(fit_find_clamp(doctor->fits->series, &known, doctor->fits, doctor->arena, &held));
        return held.fit != NULL ? is_held_on_its_way(doctor, &held) : why_unknown(doctor);
    }
    const struct fit *first = &doctor->fits->fits[0];
    if (plain == NULL && fit_changes_total(first)) return total_is_open(doctor);
    if (plain == first && fit_stands_at_top(plain, doctor->fits->series) && fit_peak_is_odd(plain))
        return stands_at_top(doctor, plain);
    if (plain == first && plain->first_differs) return first_apart(doctor, plain);
    if (plain == first && fit_plateau_is_long(plain, &known, doctor->fits->last))
        return long_plateau(doctor, plain, known.run_steps);
    if (plain == first) return other_total(doctor, 1);
    if (plain != NULL) return STATUS_OK;
    const struct fit *other, *best = fit_of_bug(doctor, &other);
    const char *bug = bug_of(doctor, best, &segment);
    if (bug == NULL) return other_level(doctor, best);
    if (fit_break_is_doubtful(NULL, doctor->fits))
        return doctor_untestable(doctor, "several explanations of a break in the LR column are as "
                                         "likely, and the log shows no resume there");
    if (!shows(doctor, best, segment))
        return doctor_untestable(doctor,
                                 "no sound contract explains the LR column, but what reads "
                                 "as a bug (%s) shows too little of itself",
                                 bug);
    if (best->contract->bug && fit_goes_back(best))
        return doctor_untestable(
            doctor,
            "no sound contract explains the LR column, and what reads as a bug "
            "(%s) needs a counter that goes back as well",
            bug);
    if (fit_total_is_foreign(best, bug, &known))
        return doctor_untestable(doctor,
                                 "the LR column reads as a bug (%s) of %s alone, another framework "
                                 "than the one that wrote the log",
                                 bug, best->contract->name);
    if (fit_late_stands_at_floor(best, doctor->fits->series))
        return doctor_untestable(doctor,
                                 "the LR column reads as %s, and just as well as a loop that holds "
                                 "the LR from below, at the floor of its schedule",
                                 bug);
    if (best->contract->bug) {
        const char *early;
        TRY(fit_early_skip(doctor->fits, &known, doctor->arena, &early));
        if (early != NULL)
            return doctor_untestable(doctor,
                                     "the LR column reads as %s, and just as well as %s with "
                                     "update 1 skipped, as a loss scaler does",
                                     bug, early);
    }
    if (strcmp(bug, FIT_SELDOM) == 0) return report_seldom(doctor, best);
    if (best->stairs_open && is_about_total(bug))
        return doctor_untestable(doctor,
                                 "the LR moves once per %llu updates, and what a scheduler step "
                                 "counts, and so its total, the column does not say",
                                 (unsigned long long)best->epoch_updates);
    if (segment->event == FIT_RESCALED && strcmp(bug, "other_peak") == 0)
        return report_other_peak(doctor, best, segment);
    const char *sound;
    TRY(own_schedule(doctor, best, bug, &known, &sound));
    return report_bug(doctor, best, bug, segment, other, sound);
}

/* ---- which contracts apply 0 at an update ---- */

#define NAMED 4 /* contracts named in one sentence; the rest is counted */

struct contracts {
    char names[256];
    size_t named, zero, other;
};

static void add_name(struct contracts *contracts, const char *name) {
    char *const names = contracts->names;
    const size_t used = strlen(names), length = strlen(name);
    const char *found = strstr(names, name);
    while (found != NULL) {
        const int whole =
            (found == names || found[-1] == ' ') && (found[length] == 0 || found[length] == ',');
        if (whole) return;
        found = strstr(found + 1, name);
    }
    if (contracts->named++ >= NAMED || used + length + 8 > sizeof contracts->names) return;
    snprintf(names + used, sizeof contracts->names - used, "%s%s", used != 0 ? ", " : "", name);
}

static struct contracts applying_zero(const struct doctor *doctor, size_t point, uint64_t update) {
    struct contracts contracts = {"", 0, 0, 0};
    for (size_t i = 0; i < doctor->fits->count; i++) {
        const struct fit *fit = &doctor->fits->fits[i];
        if (doctor->log->logs_used && fit->contract->logged == CONTRACT_LOGGED_NEXT) continue;
        if (real_abs_f64(fit_applied(fit, point, update)) > 1e-9 * fit->lr) {
            contracts.other++;
            continue;
        }
        contracts.zero++;
        add_name(&contracts, fit->contract->name);
    }
    return contracts;
}

static enum status report_zero(struct doctor *doctor, const char *id, const char *which,
                               size_t point, uint64_t update) {
    const struct contracts contracts = applying_zero(doctor, point, update);
    const struct fit *best = &doctor->fits->fits[0];
    char more[48] = "";
    const double printed = doctor->fits->series->points[point].value;
    if (contracts.zero == 0) return STATUS_OK;
    if (printed > 0.0 && real_abs_f64(fit_applied(best, point, update)) > 1e-9 * best->lr)
        return STATUS_OK;
    if (contracts.named > NAMED)
        snprintf(more, sizeof more, " and %zu more contracts", contracts.named - NAMED);
    if (contracts.other > 0)
        TRY(doctor_remark(doctor, id, doctor->fits->series->points[point].row,
                          "The %s update (%llu) may apply LR 0: it does under %s%s, and not under "
                          "all explanations of the column.",
                          which, (unsigned long long)update, contracts.names, more));
    else
        TRY(doctor_remark(doctor, id, doctor->fits->series->points[point].row,
                          "The %s update (%llu) applies LR 0 under %s%s.", which,
                          (unsigned long long)update, contracts.names, more));
    TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED, &doctor->fits->series->points[point]));
    TRY(doctor_evidence(doctor, "explanations that apply 0 there: %zu of %zu", contracts.zero,
                        contracts.zero + contracts.other));
    return doctor_explain(
        doctor, "",
        "It costs one update without effect. Beside a framework that applies f(k-1) "
        "the whole schedule is one update ahead: twinstep lr compare shows the gap.");
}

/* Judges by the applied LR that the log records: no contract is needed. */
static enum status recorded_ends(struct doctor *doctor) {
    const struct series_point *ends[] = {series_at(&doctor->lr, 1),
                                         series_at(&doctor->lr, doctor_run_length(doctor))};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (ends[i] == NULL || ends[i]->value > 0.0 || ends[i]->value < 0.0) continue;
        if (i == 1 && doctor_runs_out(doctor) != NULL) continue;
        TRY(doctor_remark(doctor, i == 0 ? "lr_zero_first_step" : "lr_zero_last_step", ends[i]->row,
                          "The %s update (%llu) applies LR 0.", i == 0 ? "first" : "last",
                          (unsigned long long)ends[i]->update));
        TRY(doctor_evidence_lr(doctor, ends[i]));
        TRY(doctor_explain(doctor, "", "It costs one update without effect."));
    }
    return STATUS_OK;
}

static enum status zero_ends(struct doctor *doctor) {
    const struct series *series = doctor->fits->series;
    if (doctor->lr_applied) return recorded_ends(doctor);
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers");
    if (doctor->fits->count == 0)
        return doctor_untestable(doctor, "no contract explains the LR column");
    if (is_unsound(&doctor->fits->fits[0]))
        return doctor_untestable(doctor, "no sound contract explains the LR column");
    TRY(report_zero(doctor, "lr_zero_first_step", "first", 0, 1));
    const struct series_point *last = &series->points[series->count - 1];
    if (last->update < doctor_run_length(doctor) || doctor_runs_out(doctor) != NULL)
        return STATUS_OK;
    return report_zero(doctor, "lr_zero_last_step", "last", series->count - 1, last->update);
}

const struct doctor_check doctor_fit_checks[] = {
    {"lr_bug", "LR column reads as a sound contract", {LOG_LR_LOGGED}, known_bug},
    {"lr_zero_ends", "first and last update apply an LR above 0", {LOG_LR_LOGGED}, zero_ends},
    {NULL, NULL, {LOG_OTHER}, NULL}};
