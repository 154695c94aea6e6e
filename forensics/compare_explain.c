/* SPDX-License-Identifier: Apache-2.0
 * What the order of first differences says about the cause. The table is in docs/FORENSICS.md.
 *
 * Loss, log-probabilities and gradient norm of update k come before its step, and the LR acts in
 * the step. So what differs at update 1 is no schedule, and a schedule shows first at update 2.
 * Invariant: a cause is named only where the columns before it agree. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"

/* How much of a column's own variation from row to row a gap may be. Rows hold other batches, so
 * other data, weights or another reference move the first value by about as much as that: by half
 * of it and more. Rounding moves it by far less: summed log-probabilities moved by 2e-4 to 9e-4 of
 * themselves when the batch shape changed in bf16, and norms of bf16 tensors by 2e-3, where losses
 * vary by 2 to 10 % from row to row. What lies between (a mean of means is such a gap) is told to
 * nobody as one or the other. Beyond a share of the value itself no gap is rounding. */
#define ROUNDING 0.0625
#define OTHER 0.5
#define FORWARD_NOISE 0.02
#define GRADIENT_NOISE 0.2
/* What a printed value may be off by, as a share of it, to count as one of many digits: a gap that
 * rounding makes in float32 still shows in it. */
#define FINE 1e-5
/* How far LRs of one schedule are apart, as a share of them, that two programs compute: binary32
 * has 6e-8, and a decay adds a few roundings. */
#define LR_NOISE 1e-6
/* How far the ratio of two norms may be from the loss scale: as far as a fixed ratio may drift. */
#define RATIO_DRIFT 0.005
/* The fewest rows that tell how a column varies. */
#define ROWS_LEAST 6
/* The first rows whose middle gap is judged beside that of the first one. Rounding has not grown by
 * much in so few updates. */
#define ROWS_FIRST 5

static const enum log_name data_names[] = {LOG_TOKENS, LOG_SAMPLES, LOG_GLOBAL_BATCH, LOG_OTHER};
/* Accuracies are counts: two rewards of 0 are a pair on either side, as `>` or `>=` has it, and one
 * pair that changes sides is a large step. So they are not among what the forward pass shows. */
const enum log_name compare_forward_names[] = {LOG_LOSS,
                                               LOG_LOGP_CHOSEN,
                                               LOG_LOGP_REJECTED,
                                               LOG_LOGITS_CHOSEN,
                                               LOG_LOGITS_REJECTED,
                                               LOG_REWARD_CHOSEN,
                                               LOG_REWARD_REJECTED,
                                               LOG_REWARD_MARGIN,
                                               LOG_OTHER};
static const enum log_name gradient_names[] = {LOG_GRAD_NORM, LOG_OTHER};
static const enum log_name lr_names[] = {LOG_LR_APPLIED, LOG_LR_LOGGED, LOG_OTHER};

/* Returns the column of a group that differs first, or NULL. */
static const struct compare_column *first_of(const struct compare_report *report,
                                             const enum log_name *names) {
    const struct compare_column *first = NULL;
    for (; *names != LOG_OTHER; names++) {
        const struct compare_column *column = compare_column_of(report, *names);
        if (column == NULL || column->class_of != COMPARE_DIFFERENT) continue;
        if (first == NULL || column->first_update < first->first_update) first = column;
    }
    return first;
}

/* Tells whether some column of the group has a pair before the first step acts. */
static int covers_start(const struct compare_report *report, const enum log_name *names) {
    for (; *names != LOG_OTHER; names++) {
        const struct compare_column *column = compare_column_of(report, *names);
        if (column != NULL && column->pairs > 0 && column->from <= report->start) return 1;
    }
    return 0;
}

static const struct compare_ratio *ratio_of(const struct compare_report *report,
                                            enum log_name name) {
    for (size_t i = 0; i < report->ratio_count; i++)
        if (report->ratios[i].name == (int32_t)name &&
            report->ratios[i].kind < COMPARE_FACTOR_OFFSET)
            return &report->ratios[i];
    return NULL;
}

/* Tells whether two recordings part in this phase by their digests, before the first step: columns
 * may agree there, as a loss of ln 2 does whatever the batch is, and the trainings do not. */
static int parts_in(const struct compare_report *report, const char *phase) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= report->start && strcmp(report->where.phase, phase) == 0;
}

static void say(struct compare_report *report, int32_t cause, const char *meaning,
                const char *next) {
    report->cause = cause;
    report->meaning = meaning;
    report->next = next;
}

static void explain_data(struct compare_report *report) {
    say(report, CAUSE_DATA_ORDER,
        "Counts of tokens or samples differ no later than losses and gradients: the two runs do "
        "not train on the same data in the same order, packing or truncation.",
        "Make the counts of update 1 equal first (sample order, seed, packing, drop-last, maximum "
        "length); no later column can be read before.");
}

/* Returns the median change from row to row at the beginning of one side, or NaN. */
static double variation_of(const struct compare_side *side) {
    struct compare_sorted changes = {.count = 0};
    for (size_t i = 1; i < side->count && changes.count < COMPARE_ROWS; i++)
        compare_keep(&changes,
                     real_abs_f64(compare_point(side, i).value - compare_point(side, i - 1).value));
    return changes.count + 1 >= ROWS_LEAST ? compare_median(&changes) : real_nan_f64();
}

enum gap { GAP_ROUNDING, GAP_BETWEEN, GAP_OTHER };

/* Judges a gap of a column between two values. Without rows enough to know its variation, only a
 * tenth of the share that rounding may reach counts as rounding. */
static enum gap judge_values(const struct compare_column *column, double a, double b, double most) {
    const double size = real_abs_f64(a) > real_abs_f64(b) ? real_abs_f64(a) : real_abs_f64(b);
    const double gap = real_abs_f64(a - b);
    const double x = variation_of(&column->side[0]), y = variation_of(&column->side[1]);
    const double variation = x < y || y != y ? x : y; /* of the side that tells it */
    if (!(gap <= most * size)) return GAP_OTHER;
    if (variation != variation)
        return real_finite_f64(most) && gap <= 0.1 * most * size ? GAP_ROUNDING : GAP_BETWEEN;
    return gap <= ROUNDING * variation ? GAP_ROUNDING
           : gap < OTHER * variation   ? GAP_BETWEEN
                                       : GAP_OTHER;
}

/* Judges the first gap of a column that differs before the first step. */
static enum gap judge_gap(const struct compare_column *column, double most) {
    return judge_values(column, column->first[0].value, column->first[1].value, most);
}

/* Returns the share of its value beyond which no gap of a column is rounding. Rewards are 0 until
 * policy and reference differ, so any gap is all of their value: only their variation judges it. */
static double most_of(enum log_name name) {
    const int is_reward =
        name == LOG_REWARD_CHOSEN || name == LOG_REWARD_REJECTED || name == LOG_REWARD_MARGIN;
    return is_reward ? real_inf_f64() : FORWARD_NOISE;
}

/* Judges the first gap of a column before the first step. It is no rounding where that of another
 * update before that step is none, or most of those of its first rows: a mean of means is near the
 * mean of all tokens by chance in one update of five, and rounding is of one size in updates that
 * follow each other. */
static enum gap judge_first_rows(const struct compare_report *report,
                                 const struct compare_column *column, double most) {
    const enum gap first = judge_gap(column, most);
    size_t seen = 0, apart = 0;
    int before = 0;
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point a = compare_point(&column->side[0], i),
                                  b = compare_point(&column->side[1], j);
        if (seen >= ROWS_FIRST && a.update > report->start) break;
        const int differs = judge_values(column, a.value, b.value, most) != GAP_ROUNDING;
        before |= differs && a.update <= report->start;
        apart += differs && seen < ROWS_FIRST;
        seen++;
    }
    return first == GAP_ROUNDING && (before || 2 * apart > ROWS_FIRST) ? GAP_BETWEEN : first;
}

/* Tells whether both sides print a column before `update`, with at least six digits. */
static int is_fine(const struct compare_column *column, uint64_t update) {
    if (column == NULL || column->pairs == 0 || column->from >= update) return 0;
    for (size_t s = 0; s < 2; s++) {
        const struct series_point point = compare_point(&column->side[s], 0);
        if (!(point.quantum <= FINE * real_abs_f64(point.value))) return 0;
    }
    return 1;
}

/* Tells whether a column agrees in many digits before the first step. */
static int agrees_at_start(const struct compare_report *report, enum log_name name) {
    const struct compare_column *const column = compare_column_of(report, name);
    return is_fine(column, report->start == UINT64_MAX ? report->start : report->start + 1) &&
           !(column->class_of == COMPARE_DIFFERENT && column->first_update <= report->start);
}

/* Tells whether a mean of logits says nothing of weights and data: the gradient norm and the loss
 * agree in many digits, so these do, and the mean is one over micro-batches of other sizes. */
static int is_other_mean(const struct compare_report *report, enum log_name name) {
    return (name == LOG_LOGITS_CHOSEN || name == LOG_LOGITS_REJECTED) &&
           agrees_at_start(report, LOG_LOSS) && agrees_at_start(report, LOG_GRAD_NORM);
}

/* Judges the forward pass and the gradient before the first step: the largest gap counts. */
static enum gap judge_start(const struct compare_report *report) {
    enum gap worst = GAP_ROUNDING;
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *column = compare_column_of(report, *name);
        if (is_other_mean(report, *name)) continue;
        if (column == NULL || column->class_of != COMPARE_DIFFERENT ||
            column->first_update > report->start)
            continue;
        const enum gap gap = *name == LOG_LOSS ? judge_first_rows(report, column, most_of(*name))
                                               : judge_gap(column, most_of(*name));
        if (gap > worst) worst = gap;
    }
    const struct compare_column *gradient = compare_column_of(report, LOG_GRAD_NORM);
    if (gradient != NULL && gradient->class_of == COMPARE_DIFFERENT &&
        gradient->first_update <= report->start && judge_gap(gradient, GRADIENT_NOISE) == GAP_OTHER)
        worst = GAP_OTHER;
    return worst;
}

static int has_pair_at(const struct compare_column *column, uint64_t update) {
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++)
        if (compare_point(&column->side[0], i).update >= update)
            return compare_point(&column->side[0], i).update == update;
    return 0;
}

/* Tells whether the log-probs of the policy agree in many digits in an update, on either side of
 * the pairs, and a reward does not: the weights are the same then, and the reference's log-probs,
 * or beta, are not. */
static int reference_apart(const struct compare_report *report, uint64_t update) {
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    int apart = 0;
    for (size_t n = 0; n < COUNT_OF(policy); n++) {
        const struct compare_column *column = compare_column_of(report, policy[n]);
        if (!is_fine(column, update + 1) || !has_pair_at(column, update) ||
            (column->class_of == COMPARE_DIFFERENT && column->first_update <= update))
            return 0;
        const struct compare_column *reward = compare_column_of(report, rewards[n]);
        apart |= reward != NULL && reward->class_of == COMPARE_DIFFERENT &&
                 reward->first_update == update;
    }
    return apart;
}

/* Tells whether the weights moved before the first update that the printed LRs let move them:
 * update 1 agrees in a loss and a gradient norm of many digits, so dtype and kernels are equal, and
 * a later one does not, by less than other data would. (The loss alone does not do: a DPO loss
 * starts at ln 2 in any dtype.) `column` is the first to differ. */
static int moved_unseen(const struct compare_report *report, const struct compare_column *column) {
    static const enum log_name names[] = {LOG_LOSS, LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_OTHER};
    if (column->first_update < 2 || compare_column_of(report, LOG_LR_APPLIED) != NULL ||
        reference_apart(report, column->first_update) ||
        !is_fine(compare_column_of(report, LOG_LOSS), column->first_update) ||
        !is_fine(compare_column_of(report, LOG_GRAD_NORM), column->first_update))
        return 0;
    for (const enum log_name *name = names; *name != LOG_OTHER; name++) {
        const struct compare_column *other = compare_column_of(report, *name);
        if (other != NULL && other->class_of == COMPARE_DIFFERENT &&
            other->first_update <= report->start && judge_gap(other, real_inf_f64()) == GAP_OTHER)
            return 0;
    }
    return 1;
}

/* Tells whether loss and gradient norm agree in many digits over all updates, and so the
 * trainings, whatever else differs. */
static int trains_alike(const struct compare_report *report) {
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_OTHER};
    for (const enum log_name *name = names; *name != LOG_OTHER; name++) {
        const struct compare_column *column = compare_column_of(report, *name);
        if (!is_fine(column, UINT64_MAX) || column->class_of == COMPARE_DIFFERENT ||
            column->to <= report->start)
            return 0;
    }
    return 1;
}

static void explain_metrics(struct compare_report *report) {
    say(report, -1,
        "Loss and gradient norm agree in every update, so the trainings do: what differs is how "
        "other columns are averaged or gathered (of the last micro-batch, of one process, another "
        "mean).",
        "Compare how the metrics of an update are collected; nothing in the training is to "
        "repair.");
}

static void explain_unseen(struct compare_report *report) {
    report->start = 1; /* the printed LRs of 0 are what is in doubt */
    say(report, CAUSE_SCHEDULE,
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
static int lrs_differ(const struct compare_report *report) {
    const struct compare_column *column = compare_column_of(report, LOG_LR_APPLIED);
    const struct compare_group *const group = report->lr.group_first;
    if (column == NULL || column->pairs == 0) column = compare_column_of(report, LOG_LR_LOGGED);
    return (column != NULL && lrs_apart(column)) ||
           (group != NULL && (group->column.largest > LR_NOISE || lrs_apart(&group->column)));
}

#define SMALL_GAP                                                                                  \
    "A small gap is already in the forward pass of update 1, before any step, which no schedule "  \
    "makes: far below what the log varies by from row to row, as dtype, kernels or batch shape "   \
    "move it, if weights and data are the same."

#define REFERENCE_GAP                                                                              \
    "The log-probs of the policy agree where rewards first differ, before any step: the weights, " \
    "data and dtype of the policy are the same, and what is subtracted is not"

/* Says so where the policy's own log-probs agree. */
static void explain_reference(struct compare_report *report) {
    if (judge_start(report) == GAP_ROUNDING)
        say(report, CAUSE_DTYPE,
            REFERENCE_GAP
            ": log-probs of the reference that a few roundings move, as another batch "
            "shape, dtype or a precomputed table of them does. The gap is far below "
            "what the rewards vary by from row to row, so another reference is less "
            "likely.",
            "Compare the reference's log-probs of the first batch in both runs: with the batch "
            "shape "
            "of the training and without precompute_ref_log_probs, where a trainer has it.");
    else
        say(report, -1, REFERENCE_GAP ": another reference, or another beta.",
            "Compare the weights of the two references, or the log-probs that they give the first "
            "batch, and beta.");
}

/* Tells whether means of logits are all that differs of the forward pass before the first step,
 * while loss and gradient norm agree. */
static int means_alone(const struct compare_report *report) {
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column != NULL && column->class_of == COMPARE_DIFFERENT &&
            column->first_update <= report->start && !is_other_mean(report, *name))
            return 0;
    }
    return 1;
}

static void explain_forward(struct compare_report *report, const struct compare_column *column) {
    if (means_alone(report)) {
        say(report, -1,
            "Loss and gradient norm of update 1 agree in many digits, so weights and data do, and "
            "means of logits do not: they are taken over other groups (micro-batches of other "
            "sizes or padding). What opens the gap later does not show in update 1.",
            "Compare micro-batches, accumulation and padding; then how metrics are averaged.");
        return;
    }
    const struct compare_ratio *const ratio = ratio_of(report, LOG_LOSS);
    const struct compare_ratio *const norm = ratio_of(report, LOG_GRAD_NORM);
    const int shared = ratio != NULL && norm != NULL &&
                       real_abs_f64(norm->factor / ratio->factor - 1.0) < RATIO_DRIFT;
    if (ratio != NULL && ratio->kind == COMPARE_FACTOR_CONSTANT && !shared &&
        column->name == LOG_LOSS) {
        say(report, -1,
            "The loss of update 1 differs by a fixed factor that is no whole number, no root and "
            "no count of tokens, and the gradient norm does not by the same one: another loss "
            "whose value hardly moves, too, or one that is divided by another number.",
            "See the ratio. Compare the loss type and its parameters; then what it is divided by.");
        return;
    }
    if (ratio != NULL && column->name == LOG_LOSS) {
        say(report, CAUSE_NORMALISATION,
            "The loss of update 1 differs by a fixed factor: it is divided by another number.",
            "See the ratio. Compare the gradient norms to learn whether only the print differs.");
        return;
    }
    switch (judge_start(report)) {
    case GAP_ROUNDING:
        say(report, CAUSE_DTYPE,
            lrs_differ(report) ? SMALL_GAP
                " The LRs differ, too: what differs first need not be what makes most "
                "of the gap later."
                               : SMALL_GAP,
            "Compare digests of the initial weights and the first batch. Run both in float32 with "
            "equal micro-batches: a gap that vanishes is rounding. Run one twice: a gap that stays "
            "is deterministic.");
        return;
    case GAP_BETWEEN:
        say(report, -1,
            "The forward pass of update 1 differs by less than the log varies from row to row, and "
            "by more than rounding usually does: another average of the same numbers (a mean of "
            "means), dropout, a low precision, or slightly other weights or data.",
            "Compare digests of the initial weights and the token ids of the first batch; then run "
            "both in float32 with one micro-batch: a gap that stays is no rounding.");
        return;
    default:
        say(report, -1,
            "The forward pass of update 1 differs by more than rounding: other weights, other "
            "data, another reference or another loss, before any step.",
            "Compare digests of the initial weights, the token ids of the first batch, and the "
            "loss type and its parameters.");
    }
}

/* Tells whether pairs are compared whose margins part later: then the loss itself may have another
 * slope where policy and reference are one, where its value shows nothing of it. */
static int margins_part(const struct compare_report *report) {
    const struct compare_column *margin = compare_column_of(report, LOG_REWARD_MARGIN);
    return margin != NULL && margin->different > 0;
}

/* Tells whether the gradient whose norm differs first is the same bit for bit, by its digests. */
static int norm_alone(const struct compare_report *report) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    return norm != NULL && report->gradient_update > 0 &&
           norm->first_update == report->gradient_update;
}

/* Tells whether the fixed ratio of the gradient norms is the loss scale that both logs print: one
 * norm is of gradients that it still multiplies. */
static int norm_scaled(const struct compare_report *report) {
    const struct compare_column *scale = compare_column_of(report, LOG_LOSS_SCALE);
    if (scale == NULL || scale->class_of != COMPARE_EQUAL || scale->pairs == 0) return 0;
    const double value = compare_point(&scale->side[0], 0).value;
    for (size_t i = 0; i < report->ratio_count && value > 1.0; i++) {
        if (report->ratios[i].name != LOG_GRAD_NORM) continue;
        const double factor = report->ratios[i].factor;
        return real_abs_f64(factor * value - 1.0) < RATIO_DRIFT ||
               real_abs_f64(factor / value - 1.0) < RATIO_DRIFT;
    }
    return 0;
}

/* Explains another loss by the DPO columns of the row behind the first step. Returns 0 where they
 * do not tell. */
static int explain_objective(struct compare_report *report) {
    if (compare_rewards_alone(report))
        say(report, CAUSE_OBJECTIVE,
            "The forward pass of update 1 agrees. In update 2 the log-probs of the policy agree by "
            "far better than the rewards that are made of them: the weights are nearly the same, "
            "and what the rewards are scaled by (beta) is not.",
            "Compare beta, and the loss type and its parameters.");
    else if (compare_loss_alone(report))
        say(report, CAUSE_OBJECTIVE,
            "The forward pass of update 1 agrees. In update 2 the rewards agree by far better than "
            "the loss that is made of them: the weights are nearly the same, and the loss is "
            "another one that is ln 2, too, while policy and reference are one (label smoothing, "
            "another loss type).",
            "Compare the loss type and its parameters.");
    else
        return 0;
    return 1;
}

/* Explains another LR in the first step by the rewards behind it. Returns 0 where they do not tell.
 */
static int explain_first_lr(struct compare_report *report) {
    if (!compare_rewards_follow(report)) return 0;
    say(report, CAUSE_SCHEDULE,
        "Update 1 agrees, and the rewards of update 2 are apart by the ratio of two LRs that "
        "follow each other in the printed column: so they are where one run applies its LR one "
        "update earlier or later, although the printed columns agree. Other causes make that ratio "
        "by chance; rewards that are 0 in one run are also those of an update that it skipped.",
        "State the contracts (--contract-a, --contract-b), or save checkpoints around one update "
        "of both runs: twinstep readback reads the applied LR from them (docs/READBACK.md).");
    return 1;
}

#define START_SAYS_NOTHING                                                                         \
    "That update 1 agrees in loss and rewards says nothing: a DPO training that starts at its "    \
    "reference prints ln 2 and 0 there, whatever its weights, data and dtype are."
#define LOG_POLICY                                                                                 \
    "Log the policy's log-probabilities (TRL: logps/chosen, logps/rejected) and the gradient "     \
    "norm of every update in both runs; compare digests of the initial weights and the token ids " \
    "of the first batch."

static void explain_gradient(struct compare_report *report) {
    if (norm_alone(report) &&
        judge_gap(compare_column_of(report, LOG_GRAD_NORM), GRADIENT_NOISE) == GAP_ROUNDING)
        say(report, -1,
            report->root_update == report->gradient_update && lrs_differ(report)
                ? "The first gradient whose norm differs is the same bit for bit, by its digests: "
                  "its norm was added up in another way. Its weights differ after the step, so "
                  "what stands between the two does: the LR, which differs (below), and perhaps "
                  "which gradients are clipped and to what, or the optimizer."
            : report->root_update == report->gradient_update
                ? "The first gradient whose norm differs is the same bit for bit, by its digests: "
                  "its norm was added up in another way. Its weights differ after the step, so "
                  "what stands between the two does: which gradients are clipped and to what, or "
                  "the optimizer."
                : "The first gradient whose norm differs is the same bit for bit, by its digests: "
                  "its norm was added up in another way.",
            "Compare the calls that clip: whether there is one, its limit, and the weights that it "
            "is given; then the class and the settings of the optimizer.");
    else if (norm_scaled(report))
        say(report, CAUSE_SCHEDULE,
            "Equal forward passes, and gradient norms that are apart by the loss scale from update "
            "1 on: one norm is taken before the gradients are unscaled, and so is what is clipped "
            "by it (clip_scaled_grads: the order of the loop, which is of cause schedule).",
            "Call scaler.unscale_(optimizer) before clip_grad_norm_ in both loops.");
    else if (explain_objective(report))
        return;
    else if (ratio_of(report, LOG_GRAD_NORM) != NULL && !compare_start_tells(report) &&
             compare_column_of(report, LOG_REWARD_CHOSEN) == NULL &&
             compare_column_of(report, LOG_REWARD_MARGIN) == NULL)
        say(report, -1,
            "The loss is ln 2 in update 1, as that of a DPO training that starts at its reference "
            "is, and gradient norms are in a fixed ratio from there on: another beta does this, "
            "and so does a gradient that is divided, summed or counted differently.",
            "Compare beta and the loss type; then the accumulation count, the processes and the "
            "tokens.");
    else if (ratio_of(report, LOG_GRAD_NORM) != NULL)
        say(report, CAUSE_NORMALISATION,
            "Equal forward passes, and gradient norms in a fixed ratio from update 1 on: the "
            "gradient is divided, summed or counted differently.",
            "See the ratio: compare it with the accumulation count, the processes and the tokens.");
    else if (judge_gap(compare_column_of(report, LOG_GRAD_NORM), GRADIENT_NOISE) != GAP_ROUNDING &&
             !compare_start_tells(report))
        say(report, -1,
            START_SAYS_NOTHING
            " The gradient differs by more than kernels or the order of sums make it: other "
            "weights, data or batches, another loss or beta, accumulation that loses or adds "
            "micro-batches, or a norm that is taken elsewhere (before or after clipping, or of "
            "scaled gradients).",
            LOG_POLICY);
    else if (judge_gap(compare_column_of(report, LOG_GRAD_NORM), GRADIENT_NOISE) != GAP_ROUNDING &&
             margins_part(report))
        say(report, -1,
            "The forward pass of update 1 agrees, and its gradient differs by more than kernels "
            "or the order of sums make it: another loss, whose value is the same while policy and "
            "reference are one and whose slope is not (another beta, IPO of sums); accumulation "
            "that loses or adds micro-batches, a recomputed forward pass with other random "
            "numbers, or a norm that is taken elsewhere (before or after clipping, or of scaled "
            "gradients).",
            "Compare the loss type and its parameters; then with accumulation 1, without "
            "activation checkpointing and without a loss scale: the one that closes the gap is "
            "the cause.");
    else if (judge_gap(compare_column_of(report, LOG_GRAD_NORM), GRADIENT_NOISE) != GAP_ROUNDING)
        say(report, -1,
            "The forward pass of update 1 agrees, and its gradient differs by more than kernels "
            "or the order of sums make it: accumulation that loses or adds micro-batches, a "
            "recomputed forward pass with other random numbers, or a norm that is taken elsewhere "
            "(before or after clipping, or of scaled gradients).",
            "Compare with accumulation 1, without activation checkpointing and without a loss "
            "scale: the one that closes the gap is the cause.");
    else if (report->configurations[0] != '\0')
        say(report, -1,
            "The forward pass of update 1 agrees as far as it is printed, and its gradient does "
            "not. The configurations differ (above): what differs there can do this, and so can "
            "kernels or an order of sums that do not repeat themselves.",
            "Run one of the two twice. If it repeats itself, make the settings equal one at a "
            "time; twinstep ablate does that with your two commands (docs/ABLATE.md).");
    else if (!compare_start_tells(report))
        say(report, -1,
            START_SAYS_NOTHING
            " The gradient differs by as little as dtype, kernels, batch shape or an order of sums "
            "make it.",
            LOG_POLICY);
    else
        say(report, CAUSE_NONDETERMINISM,
            "The forward pass of update 1 agrees, its gradient does not: backward kernels, order "
            "of reductions, or a forward pass that differs below the printed digits of the loss.",
            "Run one of the two twice: if it does not repeat itself, it is nondeterminism; if it "
            "does, compare with accumulation 1 and one process.");
}

/* Returns the last update before `update` that both logs have in a column of the forward pass or
 * the gradient, or 0. */
static uint64_t pair_before(const struct compare_report *report, uint64_t update) {
    static const enum log_name *const groups[] = {compare_forward_names, gradient_names};
    uint64_t before = 0;
    for (size_t g = 0; g < COUNT_OF(groups); g++)
        for (const enum log_name *name = groups[g]; *name != LOG_OTHER; name++) {
            const struct compare_column *column = compare_column_of(report, *name);
            if (column == NULL || column->pairs == 0) continue;
            for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
                const uint64_t k = compare_point(&column->side[0], i).update;
                if (k >= update) break;
                if (k > before) before = k;
            }
        }
    return before;
}

/* Explains a first difference behind the update that the earliest explanation of the LR columns
 * takes for the first step, where no row tells which step is the first to differ: none lies between
 * the last one that agrees and that update, or the explanations do not agree on it. Returns 0 where
 * the rows tell. */
static int explain_unplaced(struct compare_report *report, const struct compare_column *column) {
    const uint64_t update = column->first_update;
    if (update > report->start + 1 && pair_before(report, update) <= report->start) {
        say(report, -1,
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
    say(report, -1,
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

/* Explains a first difference behind update 1, which agrees as far as both logs show it. `column`
 * is the first to differ of the forward pass and the gradient. */
static void explain_later(struct compare_report *report, const struct compare_column *column) {
    const struct compare_column *lr = first_of(report, lr_names);
    const struct compare_group *const group = report->lr.group_first;
    const int before = (lr != NULL && lr->first_update < column->first_update) ||
                       (group != NULL && group->column.first_update < column->first_update);
    const int state = report->lr.state;
    const int other_lr = before || (state == COMPARE_LR_DIFFERENT && report->lr.group == 0);
    if (other_lr && report->optimizers_apart) {
        say(report, -1,
            "What is computed before the first step agrees; the gap opens after a step with "
            "another LR and with other settings of the optimizer (configurations, above): the "
            "schedule, the optimizer, or both.",
            "Make one of them equal and compare again; twinstep ablate measures with your two "
            "commands how much of the gap each makes (docs/ABLATE.md).");
    } else if (parts_in(report, "backward")) {
        say(report, -1,
            other_lr
                ? "The gradients of update 1 differ, by their digests, by less than its loss "
                  "and norm show: kernels, an order of sums or a dtype. The gap opens after a "
                  "step with another LR, which is the larger cause where the first is "
                  "rounding."
                : "Loss and gradient norm of update 1 agree and its gradients do not, by their "
                  "digests: kernels, an order of sums, a dtype, or a loss of another slope. "
                  "What differs later may follow from that, or from the step.",
            "Run one of the two twice. If it repeats itself, make settings equal one at a time, "
            "those of dtype and kernels first.");
    } else if (other_lr) {
        say(report, CAUSE_SCHEDULE,
            "What is computed before the first step agrees; the gap opens after a step with "
            "another LR: the schedule.",
            "twinstep lr fit on each log names contract and numbers; make the applied LRs equal "
            "and compare again.");
    } else if (explain_unplaced(report, column)) {
        return;
    } else if (column->first_update == report->start + 1 &&
               (explain_objective(report) || explain_first_lr(report))) {
        return;
    } else if (column->first_update == report->start + 1 && !compare_start_tells(report) &&
               !covers_start(report, gradient_names)) {
        report->lr_in_doubt = 1;
        say(report, -1,
            START_SAYS_NOTHING
            " So what differs first cannot be told: weights, data, dtype, the loss and its beta, "
            "the optimizer, or an LR that is applied one update earlier or later.",
            LOG_POLICY);
    } else if (column->first_update == report->start + 1 &&
               (group != NULL || report->lr.groups_alone > 0)) {
        say(report, -1,
            group != NULL
                ? "Update 1 agrees and update 2 does not, before the LR of a further parameter "
                  "group differs: optimizer arithmetic, decay, clipping or skipped updates come "
                  "first, and that LR adds to it later."
                : "Update 1 agrees and update 2 does not. The LR of a further parameter group is "
                  "in one log only, so that another LR there may have done it, and so may "
                  "optimizer arithmetic, decay, clipping or skipped updates.",
            "Log the LR of every parameter group in both runs; compare betas, eps, decay and its "
            "groups, the clipping threshold and the fused flag.");
    } else if (column->first_update == report->start + 1 && state != COMPARE_LR_SAME &&
               lr != NULL && lr->first_update == column->first_update) {
        say(report, CAUSE_SCHEDULE,
            "Update 1 agrees; from update 2 on it does not, and the printed LRs do not either: the "
            "mark of an LR that is applied one update earlier or later.",
            "State the contracts (--contract-a, --contract-b): twinstep lr fit on each log names "
            "what prints its column.");
    } else if (column->first_update == report->start + 1 && state != COMPARE_LR_SAME) {
        report->lr_in_doubt = 1;
        say(report, -1,
            "Update 1 agrees and update 2 does not: the first step itself differs. An LR that is "
            "applied one update earlier or later opens here, even when the printed columns agree, "
            "and so do another optimizer, its betas, eps and decay, clipping, and a gradient of "
            "another direction. These logs do not tell them apart.",
            "Compare the settings of the optimizer. State the contracts (--contract-a, "
            "--contract-b), or save checkpoints around one update of both runs: twinstep readback "
            "reads the applied LR, decay and count from them (docs/READBACK.md).");
    } else if (column->first_update == report->start + 1 &&
               compare_column_of(report, LOG_LR_APPLIED) == NULL) {
        say(report, -1,
            "Update 1 agrees and update 2 does not, although the printed LRs mean equal applied "
            "ones. A log alone does not prove those: an LR that is applied one update early or "
            "late opens here, and so do optimizer arithmetic, decay, clipping, a gradient of "
            "another direction and skipped updates.",
            "Save checkpoints around one update of both runs: twinstep readback reads the applied "
            "LR, decay and count from them (docs/READBACK.md).");
    } else if (column->first_update == report->start + 1) {
        say(report, CAUSE_OPTIMIZER,
            "Update 1 agrees and update 2 does not, at equal applied LRs: the step differs in "
            "something else, such as optimizer arithmetic, decay, clipping or skipped updates.",
            "Compare betas, eps, decay and its groups, the clipping threshold and the fused flag.");
    } else if (column->first_update == report->start + 2) {
        say(report, -1,
            "What follows the first step agrees and what follows the second does not: optimizer "
            "arithmetic that depends on the count of updates begins to differ there (a bias "
            "correction that stands still), something happened in that update (skip, batch), or "
            "the gap grew from below the printed digits.",
            "Save checkpoints around one update of both runs: twinstep readback reads the applied "
            "LR, decay and count from them (docs/READBACK.md).");
    } else {
        say(report, -1,
            "The first updates agree within the printed precision and a gap opens later: it grew "
            "from below the printed digits, or something happened there (skip, resume, batch).",
            "Look at the rows before the first difference in both logs; logs with more digits show "
            "it earlier. Measure how far two equal runs drift by then.");
    }
}

/* Tells whether some column that both logs have was not compared. */
static int some_uncompared(const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++)
        if (report->columns[i].class_of == COMPARE_ABSENT &&
            report->columns[i].side[0].column != NULL && report->columns[i].side[1].column != NULL)
            return 1;
    return 0;
}

static void explain_lr_only(struct compare_report *report) {
    if (first_of(report, lr_names) == NULL)
        say(report, CAUSE_SCHEDULE,
            "Only the LRs of further parameter groups differ among the columns in both logs (line "
            "LR).",
            "Compare how each of the two sets the LR of every parameter group: its base LR, and "
            "whether its schedule steps that group.");
    else if (report->lr.state == COMPARE_LR_SAME && report->lr.groups_alone == 0)
        say(report, CAUSE_SCHEDULE,
            "Only the printed LRs differ; the applied ones agree: one framework prints the LR of "
            "the next update (log_next_lr).",
            "Nothing to repair; compare applied LRs.");
    else
        say(report, CAUSE_SCHEDULE,
            some_uncompared(report)
                ? "Of the losses, gradients, tokens and LRs that were compared only LRs differ; "
                  "other columns are in both logs and were not compared."
                : "Only LR columns differ among those in both logs.",
            "twinstep lr fit on each log names contract and numbers.");
}

/* ---- skipped updates ---- */

/* Tells whether the logs count other skipped updates. */
static int count_skips(const struct compare_report *report) {
    const struct compare_column *skipped = compare_column_of(report, LOG_SKIPPED);
    return skipped != NULL && skipped->class_of == COMPARE_DIFFERENT;
}

/* Returns the update from which on other updates were skipped, or UINT64_MAX. The logs' own count
 * comes before what the LRs say, and these say it only by their simplest explanation: an LR that
 * comes one update late is an early skip as well as another contract. */
static uint64_t skips_from(const struct compare_report *report) {
    if (count_skips(report)) return compare_column_of(report, LOG_SKIPPED)->first_update;
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
static int skips_part(const struct compare_report *report) {
    const struct compare_column *lr = first_of(report, lr_names);
    const struct compare_column *forward = first_of(report, compare_forward_names);
    const struct compare_column *gradient = first_of(report, gradient_names);
    const uint64_t from = skips_from(report);
    if (from == UINT64_MAX || (lr != NULL && lr->first_update < from)) return 0;
    if (lr == NULL &&
        (!count_skips(report) || (forward == NULL && gradient == NULL) || trains_alike(report)))
        return 0;
    if (gradient != NULL && gradient->first_update < from) return 0;
    return forward == NULL || forward->first_update > from ||
           (forward->first_update == from && row_before(&forward->side[0], from) + 1 < from);
}

static void explain_skips(struct compare_report *report) {
    const int counted = count_skips(report), fitted = report->lr.skips_part > 0;
    say(report, -1,
        first_of(report, lr_names) == NULL
            ? "Other updates were skipped, and nothing differs before: a gradient overflowed in "
              "one of the runs. No LR in both logs differs; the weights are apart from there on "
              "because the runs did not take the same steps."
        : counted && fitted
            ? "The schedules agree, and the updates that were skipped do not: a gradient "
              "overflowed in one of the runs. From there on the LRs are apart because the "
              "scheduler holds on a skip, and the weights because one run has stepped more often."
        : fitted ? "By the simplest explanation of both LR columns the schedules agree, and one of "
                   "the runs skipped updates at which the scheduler held, as a loss scaler makes "
                   "it. The LRs alone cannot tell this from a scheduler that was not stepped."
                 : "Other updates were skipped, and nothing differs before: a gradient overflowed "
                   "in one of the runs. Where the scheduler holds on a skip, the LRs are apart "
                   "from there on without another schedule.",
        "Look at the loss scale and the gradient norm of the first update that only one run "
        "skipped: another initial scale, another dtype, or another batch makes it overflow.");
}

static void explain_middle(struct compare_report *report) {
    say(report, -1,
        "The logs have no early update in common, so what differed first cannot be told.",
        "Log every update from the first on (logging_steps 1) in both runs.");
}

/* Returns the cause that owns a stream, of its seed or (with `words`) of how many words it needs.
 */
static int32_t stream_cause(const char *name, int words) {
    if (strncmp(name, "init", 4) == 0) return words ? CAUSE_MODEL : CAUSE_INIT;
    if (strncmp(name, "data", 4) == 0) return CAUSE_DATA_ORDER;
    if (strncmp(name, "rounding", 8) == 0) return words ? CAUSE_DTYPE : CAUSE_RNG;
    return CAUSE_RNG;
}

/* Recorded draws tell more than any column, provided that they part no later than the columns do.
 * Returns 1 when they explain the difference. */
static int explain_draws(struct compare_report *report) {
    const struct ledger_difference *rng = &report->rng;
    const uint64_t first =
        report->order_count == 0 ? UINT64_MAX : report->columns[report->order[0]].first_update;
    if (rng->found && rng->update <= first) {
        say(report, stream_cause(rng->consumer, 1),
            "The runs drew other numbers of random words no later than they parted; the line RNG "
            "says who drew, and when.",
            "Give both runs the same draws (rates, shuffling, rounding) and compare again.");
        return 1;
    }
    if (rng->place.stream != NULL && rng->place.update <= first) {
        say(report, stream_cause(rng->place.stream, 0),
            "A random stream stands elsewhere no later than the runs parted: the same numbers of "
            "words, but other words.",
            "Look for what moved the stream: a restart that does not restore it, a draw more or "
            "less, another seed.");
        return 1;
    }
    if (rng->found || rng->seed_count == 0) return 0;
    say(report, rng->seed_count > 1 ? CAUSE_RNG : stream_cause(rng->seeds[0].stream, 0),
        "Both drew equally many random words, but from other seeds: they are other words from the "
        "first one on.",
        "Give both runs the same seeds and compare again.");
    return 1;
}

/* Says which update the words "update 1" mean where the first updates have LR 0, and so change
 * nothing. */
static enum status name_start(struct compare_report *report, struct arena *arena) {
    char *text;
    if (report->start <= 1 || report->start == UINT64_MAX || report->meaning[0] == '\0')
        return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%s (The LR is 0 before update %llu, so updates 1 to %llu count as update 1 "
                     "here.)",
                     report->meaning, (unsigned long long)report->start,
                     (unsigned long long)report->start));
    report->meaning = text;
    return STATUS_OK;
}

/* ---- loops whose phases come in another order ---- */

static const struct {
    const char *meaning[2], *next; /* what A's loop does, and what B's does */
} loop_words[] = {
    [COMPARE_LOOP_KEEPS] =
        {{"The gradient differs first behind an update in which A called no zero_grad and B did: "
          "in A "
          "it is added to the one before (the order of the loop, which is of cause schedule).",
          "The gradient differs first behind an update in which B called no zero_grad and A did: "
          "in B "
          "it is added to the one before (the order of the loop, which is of cause schedule)."},
         "Call zero_grad once behind each step in both loops. If the loop without it clears "
         "gradients by other means (p.grad = None), it is not this: compare betas, eps, decay and "
         "clipping."},
    [COMPARE_LOOP_CLEARS] =
        {{"What both computed before agrees, and A calls zero_grad between backward and step, "
          "which takes away gradients that B steps with (the order of the loop, which is of cause "
          "schedule).",
          "What both computed before agrees, and B calls zero_grad between backward and step, "
          "which takes away gradients that A steps with (the order of the loop, which is of cause "
          "schedule)."},
         "Call zero_grad behind the step, or before the first backward of an update."},
    [COMPARE_LOOP_SCALED] = {
        {"What both computed before agrees, and A clips before it unscales, so its norm and its "
         "limit are of gradients that the loss scale multiplies (clip_scaled_grads: the order of "
         "the loop, which is of cause schedule).",
         "What both computed before agrees, and B clips before it unscales, so its norm and its "
         "limit are of gradients that the loss scale multiplies (clip_scaled_grads: the order of "
         "the loop, which is of cause schedule)."},
        "Call scaler.unscale_(optimizer) before clip_grad_norm_ in both loops."}};

/* Tells whether the norms of the first update in which they differ are apart by the loss scale, as
 * those of one gradient are before and behind unscale_; true where they were not both recorded. */
static int norms_scaled(const struct compare_report *report, uint64_t update) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    const struct compare_column *scale = compare_column_of(report, LOG_LOSS_SCALE);
    const int32_t side = report->loop.side;
    if (norm == NULL || norm->pairs == 0) return 1;
    if (scale == NULL || norm->first_update != update) return 0;
    for (size_t i = 0; i < scale->side[side].count; i++) {
        const struct series_point point = compare_point(&scale->side[side], i);
        if (point.update == update)
            return real_abs_f64(norm->first[side].value / norm->first[1 - side].value -
                                point.value) < RATIO_DRIFT * point.value;
    }
    return 0;
}

/* Tells whether another order of phases explains the first difference, which is `first` of loss and
 * gradient: nothing that a training reads differs before the order acts. Gradients that are kept
 * act on the next update's gradient; gradients that were cleared leave the step without any, so the
 * next loss may be the first to show it; and a norm before unscale_ is the loss scale times the one
 * behind it, or another gradient differs as well. */
static int loops_part(const struct compare_report *report, const struct compare_column *first) {
    const struct compare_loop *loop = &report->loop;
    const struct compare_column *data = first_of(report, data_names);
    const struct compare_column *lr = first_of(report, lr_names);
    const struct compare_column *forward = first_of(report, compare_forward_names);
    const uint64_t acts = loop->update + (loop->kind == COMPARE_LOOP_KEEPS);
    const uint64_t last = acts + (loop->kind == COMPARE_LOOP_CLEARS && first == forward);
    if (loop->kind == COMPARE_LOOP_ALIKE || first == NULL || first->first_update < acts ||
        first->first_update > last || (forward != NULL && forward->first_update <= acts))
        return 0;
    if (report->root_update > 0 && report->root_update != acts) return 0;
    if (loop->kind == COMPARE_LOOP_SCALED && !norms_scaled(report, acts)) return 0;
    return (data == NULL || data->first_update > first->first_update) &&
           (lr == NULL || lr->first_update >= first->first_update) &&
           (report->lr.group_first == NULL ||
            report->lr.group_first->column.first_update >= first->first_update);
}

static void explain_loops(struct compare_report *report) {
    const struct compare_loop *loop = &report->loop;
    say(report, CAUSE_SCHEDULE, loop_words[loop->kind].meaning[loop->side],
        loop_words[loop->kind].next);
}

/* ---- what digests of two recordings tell of the batch ---- */

/* Tells whether the batch is what two recordings part in, no later than the columns do. */
static int batches_part(const struct compare_report *report, const struct compare_column *first) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= first->first_update && strcmp(report->where.phase, "fetch") == 0;
}

#define BATCHES_DIFFER                                                                             \
    "The tensors that the model is given differ before the first step, by their digests"

/* The batches differ for certain, so that no later part of the training is named: whatever else
 * differs cannot be told from what follows from them. */
static void explain_batches(struct compare_report *report) {
    const int tells = compare_start_tells(report);
    const enum gap gap = judge_start(report);
    if (report->root_update > report->start) {
        say(report, CAUSE_DATA_ORDER,
            "Both are equal bit for bit, by their digests, up to the update in which the tensors "
            "that the model is given differ (roots, above): other rows or another order from "
            "there on.",
            "Compare which rows that update used in both runs (sample order, seed, epoch, "
            "drop-last, workers), and what a restart restored of the sampler.");
        return;
    }
    say(report, -1,
        !tells ? BATCHES_DIFFER
            ": other rows or another order, or the same rows in other micro-batches, with other "
            "padding or truncation. The loss of update 1 does not tell which, since a DPO training "
            "that starts at its reference prints ln 2 whatever its rows are."
        : gap == GAP_ROUNDING ? BATCHES_DIFFER
            ", and what is computed of them by no more than rounding makes: the same rows in other "
            "micro-batches or with other padding do this, and other rows would move it by more."
        : gap == GAP_BETWEEN ? BATCHES_DIFFER
            ", and what is computed of them by less than from row to row: the same rows with "
            "another average (a mean of means), padding or truncation, or other rows."
                             : BATCHES_DIFFER
            ", and what is computed of them by more than rounding: other rows or another order, "
            "packing, truncation or padding. Whether weights or the loss differ, too, shows when "
            "the batches are equal.",
        "Compare the first batch of both runs: token ids, mask, and in how many forward passes it "
        "comes. Make it equal and compare again.");
}

/* Recorded draws come first, since they may tell apart what no column shows. Counts of data come
 * before losses and gradients, which follow from the data; LRs that differ earlier change nothing
 * about that. Without any column that differs no cause is set. */
static void explain(struct compare_report *report) {
    const struct compare_column *data = first_of(report, data_names);
    const struct compare_column *forward = first_of(report, compare_forward_names);
    const struct compare_column *gradient = first_of(report, gradient_names);
    const struct compare_column *first = forward;
    if (gradient != NULL && (first == NULL || gradient->first_update < first->first_update))
        first = gradient;
    report->meaning = report->next = "";
    if (explain_draws(report) || (report->order_count == 0 && report->lr.groups_differ == 0))
        return;
    if (data != NULL && (first == NULL || data->first_update <= first->first_update))
        explain_data(report);
    else if (loops_part(report, first))
        explain_loops(report);
    else if (skips_part(report))
        explain_skips(report);
    else if (first == NULL && (first_of(report, lr_names) != NULL || report->lr.groups_differ > 0))
        explain_lr_only(report);
    else if (first == NULL)
        say(report, -1, "No column of losses, gradients, tokens or LRs differs.", "");
    else if (trains_alike(report))
        explain_metrics(report);
    else if (batches_part(report, first))
        explain_batches(report);
    else if (report->unlike && (first != forward || first->first_update > report->start))
        say(report, -1,
            "The two do not train the same tensors, or hold them in other dtypes (above), so their "
            "gradient norms and steps are of unlike things: what else differs cannot be told.",
            "Train the same tensors in both runs (adapters, frozen layers, the dtype of weights) "
            "and compare again.");
    else if (first->first_update <= report->start && moved_unseen(report, first))
        explain_unseen(report);
    else if (first->first_update <= report->start && first == forward &&
             reference_apart(report, first->first_update))
        explain_reference(report);
    else if (first->first_update <= report->start && first == forward)
        explain_forward(report, forward);
    else if (first->first_update <= report->start && covers_start(report, compare_forward_names))
        explain_gradient(report);
    else if (first->first_update <= report->start)
        say(report, -1, "The gradient of update 1 differs; the logs do not show its forward pass.",
            "Log the loss of every update.");
    else if (covers_start(report, compare_forward_names))
        explain_later(report, first);
    else
        explain_middle(report);
}

enum status compare_explain(struct compare_report *report, struct arena *arena) {
    explain(report);
    return name_start(report, arena);
}
