/* SPDX-License-Identifier: Apache-2.0
 * What the LR columns, and the counts of skipped updates behind them, say of the first difference.
 */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_explain.h"

/* How far LRs of one schedule are apart, as a share of them, that two programs compute: binary32
 * has 6e-8, and a decay adds a few roundings. */
#define LR_NOISE 1e-6

/* Tells whether the weights moved before the first update that the printed LRs let move them:
 * update 1 agrees in a loss and a gradient norm of many digits, so dtype and kernels are equal, and
 * a later one does not, by less than other data would. (The loss alone does not do: a DPO loss
 * starts at ln 2 in any dtype.) `column` is the first to differ. */
int compare_moved_unseen(const struct compare_report *report, const struct compare_column *column) {
    static const enum log_name names[] = {LOG_LOSS, LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_OTHER};
    if (column->first_update < 2 || compare_column_of(report, LOG_LR_APPLIED) != NULL ||
        compare_reference_apart(report, column->first_update) ||
        !compare_is_fine(compare_column_of(report, LOG_LOSS), column->first_update) ||
        !compare_is_fine(compare_column_of(report, LOG_GRAD_NORM), column->first_update))
        return 0;
    for (const enum log_name *name = names; *name != LOG_OTHER; name++) {
        const struct compare_column *other = compare_column_of(report, *name);
        if (other != NULL && other->class_of == COMPARE_DIFFERENT &&
            other->first_update <= report->start &&
            compare_judge_gap(other, real_inf_f64()) == COMPARE_GAP_OTHER)
            return 0;
    }
    return 1;
}

void compare_explain_unseen(struct compare_report *report) {
    report->start = 1; /* the printed LRs of 0 are what is in doubt */
    compare_say(
        report, CAUSE_SCHEDULE,
        "Update 1 agrees to the last printed digit, and an update before which every printed LR is "
        "0 does not: another dtype or kernel would show in update 1, and other data by more. So "
        "the weights had moved: an LR was applied that is not the one printed, one update early "
        "or before the schedule was first set.",
        "Read the LR in the optimizer's groups when it steps, or save the weights before and after "
        "update 1: under an LR of 0 they are equal, and twinstep readback reads the LR "
        "(docs/READBACK.md).");
}

/* Tells whether a pair of LRs differs by more than its precision and by more than two formulas of
 * one schedule do, or one that is held in binary32. NaN against a number does. */
static int lrs_apart(const struct compare_column *column) {
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point a = compare_point(&column->side[0], i),
                                  b = compare_point(&column->side[1], j);
        const double x = real_abs_f64(a.value), y = real_abs_f64(b.value);
        if (log_compare(a.value, a.quantum, b.value, b.quantum) == LOG_DIFFERENT &&
            !(real_abs_f64(a.value - b.value) <= LR_NOISE * (x > y ? x : y)))
            return 1;
    }
    return 0;
}

/* Tells whether the LRs differ: those that were applied, of any parameter group, where both sides
 * have them, and else the printed ones. */
int compare_lrs_differ(const struct compare_report *report) {
    const struct compare_column *column = compare_column_of(report, LOG_LR_APPLIED);
    const struct compare_group *const group = report->lr.group_first;
    if (column == NULL || column->pairs == 0) column = compare_column_of(report, LOG_LR_LOGGED);
    return (column != NULL && lrs_apart(column)) ||
           (group != NULL && (group->column.largest > LR_NOISE || lrs_apart(&group->column)));
}

/* Explains another LR in the first step by the rewards behind it. Returns 0 where they do not tell.
 */
int compare_explain_first_lr(struct compare_report *report) {
    if (!compare_rewards_follow(report)) return 0;
    compare_say(
        report, CAUSE_SCHEDULE,
        "Update 1 agrees, and the rewards of update 2 are apart by the ratio of two LRs that "
        "follow each other in the printed column: so they are where one run applies its LR one "
        "update earlier or later, although the printed columns agree. Other causes make that ratio "
        "by chance; rewards that are 0 in one run are also those of an update that it skipped.",
        "State the contracts (--contract-a, --contract-b), or save checkpoints around one update "
        "of both runs: twinstep readback reads the applied LR from them (docs/READBACK.md).");
    return 1;
}

/* Explains a first difference behind the update that the earliest explanation of the LR columns
 * takes for the first step, where no row tells which step is the first to differ: none lies between
 * the last one that agrees and that update, or the explanations do not agree on it. Returns 0 where
 * the rows tell. */
int compare_explain_unplaced(struct compare_report *report, const struct compare_column *column) {
    const uint64_t update = column->first_update;
    if (update > report->start + 1 && compare_pair_before(report, update) <= report->start) {
        compare_say(
            report, -1,
            "What is computed before the first step agrees, and the next row that both logs have "
            "does not. The updates between are not logged, so which step is the first to differ "
            "cannot be told: it may be the first (an LR that is applied one update earlier or "
            "later, other optimizer arithmetic) or one behind it (skip, batch), or the gap grew "
            "from below the printed digits.",
            "Log every update from the first on (logging_steps 1) in both runs.");
        return 1;
    }
    if (update <= report->start + 1 || update > 65 || (report->starts >> (update - 2) & 1) == 0)
        return 0;
    compare_say(
        report, -1,
        "Explanations of the LR columns do not agree on the first update with an LR above 0. Under "
        "those that apply 0 at first, the first real step is the first to differ: an LR that is "
        "applied one update earlier or later, or other optimizer arithmetic, decay or clipping. "
        "Under the others the steps before it agree: arithmetic that depends on the count of "
        "updates (a bias correction that stands still), something that happened in that update "
        "(skip, batch), or a gap that grew from below the printed digits.",
        "State the contracts (--contract-a, --contract-b), or save checkpoints around one update "
        "of both runs: twinstep readback reads the applied LR, decay and count from them "
        "(docs/READBACK.md).");
    return 1;
}

/* Tells whether some column that both logs have was not compared. */
static int some_uncompared(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++)
        if (report->columns[i].class_of == COMPARE_ABSENT &&
            report->columns[i].side[0].column != NULL && report->columns[i].side[1].column != NULL)
            return 1;
    return 0;
}

void compare_explain_lr_only(struct compare_report *report) {
    if (compare_first_of(report, compare_lr_names) == NULL)
        compare_say(
            report, CAUSE_SCHEDULE,
            "Only the LRs of further parameter groups differ among the columns in both logs (line "
            "LR).",
            "Compare how each of the two sets the LR of every parameter group: its base LR, and "
            "whether its schedule steps that group.");
    else if (report->lr.state == COMPARE_LR_SAME && report->lr.groups_alone == 0)
        compare_say(
            report, CAUSE_SCHEDULE,
            "Only the printed LRs differ; the applied ones agree: one framework prints the LR of "
            "the next update (log_next_lr).",
            "Nothing to repair; compare applied LRs.");
    else
        compare_say(
            report, CAUSE_SCHEDULE,
            some_uncompared(report)
                ? "Of the losses, gradients, tokens and LRs that were compared only LRs differ; "
                  "other columns are in both logs and were not compared."
                : "Only LR columns differ among those in both logs.",
            "twinstep lr fit on each log names contract and numbers.");
}

/* ---- skipped updates ---- */

/* Tells whether the logs count other skipped updates. */
int compare_count_skips(const struct compare_report *report) {
    const struct compare_column *skipped = compare_column_of(report, LOG_SKIPPED);
    return skipped != NULL && skipped->class_of == COMPARE_DIFFERENT;
}

/* Returns the update from which on other updates were skipped, or UINT64_MAX. The logs' own count
 * comes before what the LRs compare_say, and these compare_say it only by their simplest
 * explanation: an LR that comes one update late is an early skip as well as another contract. */
static uint64_t skips_from(const struct compare_report *report) {
    if (compare_count_skips(report)) return compare_column_of(report, LOG_SKIPPED)->first_update;
    return report->lr.skips_simplest ? report->lr.skips_part : UINT64_MAX;
}

/* Returns the row of one side before `update`, or 0. */
static uint64_t row_before(const struct compare_side *side, uint64_t update) {
    uint64_t before = 0;
    for (size_t i = 0; i < side->count && compare_point(side, i).update < update; i++)
        before = compare_point(side, i).update;
    return before;
}

/* Tells whether other updates were skipped before anything else differs. What an update computes
 * before its step is equal there, but for the gradient that overflowed; rows further apart show the
 * weights behind the skip in the row that counts it. Counted skips need no LR that differs: a
 * scheduler may move on at a skip, or its LR stand still. Loss or gradient norm must differ then,
 * as a count alone may be one of another kind. */
int compare_skips_part(const struct compare_report *report) {
    const struct compare_column *lr = compare_first_of(report, compare_lr_names);
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    const struct compare_column *gradient = compare_first_of(report, compare_gradient_names);
    const uint64_t from = skips_from(report);
    if (from == UINT64_MAX || (lr != NULL && lr->first_update < from)) return 0;
    if (lr == NULL && (!compare_count_skips(report) || (forward == NULL && gradient == NULL) ||
                       compare_trains_alike(report)))
        return 0;
    if (gradient != NULL && gradient->first_update < from) return 0;
    return forward == NULL || forward->first_update > from ||
           (forward->first_update == from && row_before(&forward->side[0], from) + 1 < from);
}

#define HOLD(side)                                                                                 \
    "Both printed LRs follow one schedule, which stands still once in " side ", and the loss "     \
    "parts in the same row, before that LR acts: the update before took another step. One update " \
    "that " side " left out together with the step of its scheduler does this (a skip, or calls "  \
    "that were not made); a scheduler alone that was not stepped does it where the LR is printed " \
    "one update late. These logs do not tell them apart."

/* Says what is known of why one run took no step at an update that it counts as skipped. A scaler
 * skips an update whose gradient is no finite number; a loop may leave out any. */
static const char *why_skipped(const struct compare_report *report) {
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    const struct compare_column *const scale = compare_column_of(report, LOG_LOSS_SCALE);
    const uint64_t update = compare_column_of(report, LOG_SKIPPED)->first_update;
    if (scale != NULL && scale->side[0].count + scale->side[1].count > 0)
        return "a gradient overflowed in one of the runs";
    for (size_t i = 0, j = 0; norm != NULL && compare_next(norm, &i, &j); i++, j++) {
        const struct series_point a = compare_point(&norm->side[0], i),
                                  b = compare_point(&norm->side[1], j);
        if (a.update != update) continue;
        if (row_before(&norm->side[0], update) + 1 < update) break; /* of which update is it? */
        return real_finite_f64(a.value) && real_finite_f64(b.value)
                   ? "the norm of that gradient is a finite number in both, and no loss scale is "
                     "logged, so no overflow shows: one of the runs left the step out (it was not "
                     "called, or the loop or a rule of its own skipped it)"
                   : "a gradient overflowed in one of the runs";
    }
    return "a gradient overflowed in one of the runs, or the step was left out (these logs do not "
           "tell which)";
}

enum status compare_explain_skips(struct compare_report *report, struct arena *arena) {
    const int counted = compare_count_skips(report), fitted = report->lr.skips_part > 0;
    const char *const why = counted ? why_skipped(report) : "";
    const int overflows = strncmp(why, "a gradient overflowed in one of the runs",
                                  sizeof "a gradient overflowed in one of the runs" - 1) == 0;
    char *text;
    if (compare_first_of(report, compare_lr_names) == NULL)
        TRY(arena_format(arena, &text,
                         "Other updates were skipped, and nothing differs before: %s. No LR in "
                         "both logs differs; the weights are apart from there on because the runs "
                         "did not take the same steps.",
                         why));
    else if (counted && fitted)
        TRY(arena_format(arena, &text,
                         "The schedules agree, and the updates that were skipped do not: %s. From "
                         "there on the LRs are apart because the scheduler holds on a skip, and "
                         "the weights because one run has stepped more often.",
                         why));
    else if (fitted)
        TRY(arena_format(arena, &text,
                         "By the simplest explanation of both LR columns the schedules agree, and "
                         "one of the runs skipped updates at which the scheduler held, as a loss "
                         "scaler makes it. The LRs alone cannot tell this from a scheduler that "
                         "was not stepped."));
    else
        TRY(arena_format(arena, &text,
                         "Other updates were skipped, and nothing differs before: %s. Where the "
                         "scheduler holds on a skip, the LRs are apart from there on without "
                         "another schedule.",
                         why));
    compare_say(report, -1, text,
                counted && !overflows
                    ? "Look why one run alone took no step at the first update that only it "
                      "skipped."
                    : "Look at the loss scale and the gradient norm of the first update that only "
                      "one run skipped: another initial scale, another dtype, or another batch "
                      "makes it overflow.");
    return STATUS_OK;
}

/* Returns the segment in which a schedule holds, if that is all that departs from a plain course;
 * or NULL. */
static const struct fit_segment *only_hold(const struct fit *fit) {
    return fit->segment_count == 2 && fit->segments[0].event == FIT_PLAIN &&
                   fit->segments[1].event == FIT_SKIP
               ? &fit->segments[1]
               : NULL;
}

int compare_hold_parts(const struct compare_report *report, const struct compare_column *column) {
    const struct fit *const a = report->lr.fit[0], *const b = report->lr.fit[1];
    const struct compare_column *const lr = compare_column_of(report, LOG_LR_LOGGED);
    if (a == NULL || b == NULL || lr == NULL || lr->class_of != COMPARE_DIFFERENT ||
        compare_column_of(report, LOG_LR_APPLIED) != NULL || a->contract != b->contract ||
        a->schedule != b->schedule || a->lr != b->lr || a->steps != b->steps)
        return 0;
    const struct fit_segment *const in_a = only_hold(a), *const in_b = only_hold(b);
    const struct fit *const other = in_a != NULL ? b : a;
    const struct fit_segment *const hold = in_a != NULL ? in_a : in_b;
    return (in_a == NULL) != (in_b == NULL) && other->segment_count == 1 &&
           hold->update == lr->first_update && column->first_update == lr->first_update;
}

void compare_explain_hold(struct compare_report *report) {
    compare_say(
        report, -1, only_hold(report->lr.fit[0]) != NULL ? HOLD("A") : HOLD("B"),
        "Look whether that run called optimizer.step() and scheduler.step() in the update before: "
        "a loss scaler, a rule of the loop or an accumulation may have left it out. Log skipped "
        "updates.");
}
