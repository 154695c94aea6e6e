/* SPDX-License-Identifier: Apache-2.0
 * What the order of first differences says about the cause. The table is in docs/FORENSICS.md.
 *
 * Loss, log-probabilities and gradient norm of update k come before its step, and the LR acts in
 * the step. So what differs at update 1 is no schedule, and a schedule shows first at update 2.
 * Invariant: a cause is named only where the columns before it agree. */
#include "forensics/compare_explain.h"

#include "base/real.h"

void compare_say(struct compare_report *report, int32_t cause, const char *meaning,
                 const char *next) {
    report->cause = cause;
    report->meaning = meaning;
    report->next = next;
}

static void explain_data(struct compare_report *report) {
    compare_say(
        report, CAUSE_DATA_ORDER,
        "Counts of tokens or samples differ no later than losses and gradients: the two runs do "
        "not train on the same data in the same order, packing or truncation.",
        "Make the counts of update 1 equal first (sample order, seed, packing, drop-last, maximum "
        "length); no later column can be read before.");
}

static void explain_metrics(struct compare_report *report) {
    compare_say(
        report, -1,
        "Loss and gradient norm agree in every update, so the trainings do: what differs is how "
        "other columns are averaged or gathered (of the last micro-batch, of one process, another "
        "mean).",
        "Compare how the metrics of an update are collected; nothing in the training is to "
        "repair.");
}

/* Names the columns of the forward pass that differ. */
static enum status name_logged(const struct compare_report *report, struct arena *arena,
                               char **out) {
    TRY(arena_format(arena, out, "%s", ""));
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column == NULL || column->class_of != COMPARE_DIFFERENT) continue;
        TRY(arena_format(arena, out, "%s%s%s", *out, (*out)[0] == '\0' ? "" : ", ",
                         log_names[*name].name));
    }
    return STATUS_OK;
}

/* A loss in a fixed ratio is divided by another number, which is of cause normalisation even where
 * nothing but the log does it. */
static enum status explain_logged(struct compare_report *report, struct arena *arena) {
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    const struct compare_column *const weights = compare_column_of(report, LOG_PARAM_NORM);
    const struct compare_ratio *const ratio = compare_ratio_of(report, LOG_LOSS);
    const char *const norms = weights != NULL && weights->pairs > 0
                                  ? "Norms of gradients and of weights"
                                  : "Norms of gradients";
    char *names, *agree, *text;
    TRY(name_logged(report, arena, &names));
    if (report->logged_alone)
        TRY(arena_format(arena, &agree,
                         "Weights, applied LRs, batches and draws are the same bit for bit in "
                         "every update, by their digests"));
    else
        TRY(arena_format(arena, &agree, "%s agree in every update %s", norms,
                         norm->class_of == COMPARE_EQUAL
                             ? "to the last bit"
                             : "in more digits than this gap would leave"));
    TRY(arena_format(
        arena, &text,
        "%s, so the two train alike as far as is recorded. What differs is what is logged (%s), "
        "such as a number of other processes or micro-batches, one that is averaged or divided "
        "otherwise%s.",
        agree, names, report->logged_alone ? "" : ", or a term that moves no weight"));
    compare_say(report,
                ratio != NULL && ratio->kind != COMPARE_FACTOR_CONSTANT ? CAUSE_NORMALISATION : -1,
                text,
                "Compare how each makes the numbers that it logs (of which processes and "
                "micro-batches, divided by what); nothing in the training is to repair.");
    return STATUS_OK;
}

#define SMALL_GAP                                                                                  \
    "A small gap is already in the forward pass of update 1, before any step, which no schedule "  \
    "makes: far below what the log varies by from row to row, as dtype, kernels or batch shape "   \
    "move it, if weights, data and loss are the same."

#define LRS_TOO                                                                                    \
    " The LRs differ, too: what differs first need not be what makes most of the gap later."
#define OTHER_MEANS                                                                                \
    " Means of logits are apart by more, which says little: logits of either sign leave a small "  \
    "mean, and other micro-batches or padding make another one of the same logits."

#define REFERENCE_GAP                                                                              \
    "The log-probs of the policy agree where rewards first differ, before any step: the weights, " \
    "data and dtype of the policy are the same, and what is subtracted is not"

/* Says so where the policy's own log-probs agree. */
static void explain_reference(struct compare_report *report) {
    if (compare_judge_start(report) == COMPARE_GAP_ROUNDING)
        compare_say(
            report, CAUSE_DTYPE,
            REFERENCE_GAP
            ": log-probs of the reference that a few roundings move, as another batch "
            "shape, dtype or a precomputed table of them does. The gap is far below "
            "what the rewards vary by from row to row, so another reference is less "
            "likely.",
            "Compare the reference's log-probs of the first batch in both runs: with the batch "
            "shape of the training and without precompute_ref_log_probs, where a trainer has it.");
    else
        compare_say(
            report, -1, REFERENCE_GAP ": another reference, or another beta.",
            "Compare the weights of the two references, or the log-probs that they give the first "
            "batch, and beta.");
}

/* Tells whether means of logits are all that differs of the forward pass before the first step,
 * while loss and gradient norm agree. */
static int means_alone(const struct compare_report *report) {
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column != NULL && column->class_of == COMPARE_DIFFERENT &&
            column->first_update <= report->start && !compare_is_other_mean(report, *name))
            return 0;
    }
    return 1;
}

/* Tells whether means of logits are apart by more than rounding where log-probs, and what else the
 * forward pass shows before the first step, agree. */
static int logits_alone(const struct compare_report *report) {
    if (!compare_logits_apart(report) || compare_judge_start(report) != COMPARE_GAP_ROUNDING)
        return 0;
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (*name != LOG_LOGITS_CHOSEN && *name != LOG_LOGITS_REJECTED && column != NULL &&
            column->class_of == COMPARE_DIFFERENT && column->first_update <= report->start)
            return 0;
    }
    return 1;
}

#define SAME_START                                                                                 \
    "The weights before update 1 and the tensors that the model is given are the same, by their "  \
    "digests, and the forward pass of update 1 differs"
#define SAME_START_SMALL                                                                           \
    SAME_START " by no more than rounding makes: a dtype of the computation (autocast), kernels, " \
               "or a loss of nearly the same value (a small smoothing or penalty)."

/* Explains a forward pass of equal weights and data, which two recordings can know of. Returns 0
 * where they do not. Labels that the loop keeps to itself, and buffers, have no digests. */
static int explain_computation(struct compare_report *report) {
    if (!report->same_start) return 0;
    if (compare_root_differs(report, COMPARE_PART_RNG))
        compare_say(report, -1,
                    SAME_START
                    ", and so do the states of random generators behind it: other random numbers "
                    "(dropout), another loss or reference, a dtype, or labels or buffers that have "
                    "no digest.",
                    "Give both the same seeds, or switch dropout off, and compare again; then "
                    "compare the loss type and its parameters.");
    else if (compare_judge_start(report) == COMPARE_GAP_ROUNDING)
        compare_say(report, CAUSE_DTYPE,
                    compare_lrs_differ(report) ? SAME_START_SMALL
                        " The LRs differ, too: what differs first need not be "
                        "what makes most of the gap later."
                                               : SAME_START_SMALL,
                    "Compare the loss and its parameters; then run both in float32: a gap that "
                    "vanishes is rounding. Run one twice: a gap that stays is deterministic.");
    else
        compare_say(report, -1,
                    SAME_START
                    " by more than rounding usually makes: another loss or its parameters, another "
                    "reference, another average, dropout in one alone, a low precision, or labels "
                    "or buffers that have no digest.",
                    "Compare the loss type and its parameters, the mode of the model (train or "
                    "eval), and the dtype of the computation.");
    return 1;
}

#define LOSS_APART                                                                                 \
    "The log-probs of the policy agree before any step where the loss first differs, in more "     \
    "digits than would move it: weights, data and the forward pass of the policy are the same, "   \
    "and the loss that is made of them is not: "

/* Explains a loss whose log-probs are the same. */
static void explain_loss(struct compare_report *report, uint64_t update) {
    if (compare_rewards_agree(report, update))
        compare_say(
            report, -1,
            LOSS_APART
            "another loss type or its parameters (label smoothing, a penalty), another average "
            "over pairs, or the dtype or kernel of the loss alone.",
            "Compare the loss type and its parameters; then how the loss is averaged over pairs, "
            "micro-batches and processes.");
    else
        compare_say(
            report, -1,
            LOSS_APART
            "log-probs of the reference, which no reward shows, beta, another loss type or its "
            "parameters (label smoothing, a penalty), another average over pairs, or the dtype or "
            "kernel of the loss alone.",
            "Log the rewards in both runs (TRL: rewards/chosen, rewards/rejected); compare the "
            "reference, beta, and the loss type and its parameters.");
}

/* How near the ratio of the norms is to that of the losses where both are divided by one number,
 * and how far both are from 1. Norms of other weights or data are so near that of the losses once
 * in some hundred pairs of logs. */
#define DIVISOR_DRIFT 1e-3
#define DIVISOR_LEAST 1.5

/* Explains losses and gradient norms that are in one ratio before the first step and in no fixed
 * one later: a sum over tokens, of which each update has another number, that the log does not
 * print. Returns 0 where they are not. */
static int explain_divisor(struct compare_report *report) {
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM};
    double ratios[2];
    uint64_t update = 0;
    for (size_t n = 0; n < 2; n++) {
        const struct compare_column *const column = compare_column_of(report, names[n]);
        if (column == NULL || column->class_of != COMPARE_DIFFERENT ||
            column->first_update > report->start || (n > 0 && column->first_update != update))
            return 0;
        for (size_t s = 0; s < 2; s++)
            if (!(column->first[s].quantum < DIVISOR_DRIFT * real_abs_f64(column->first[s].value)))
                return 0;
        update = column->first_update;
        ratios[n] = column->first[0].value / column->first[1].value;
    }
    const double factor = ratios[0] > 1.0 ? ratios[0] : 1.0 / ratios[0];
    if (!(factor >= DIVISOR_LEAST) || !real_finite_f64(factor) ||
        !(real_abs_f64(ratios[1] / ratios[0] - 1.0) < DIVISOR_DRIFT))
        return 0;
    compare_say(
        report, -1,
        "Loss and gradient norm of update 1 are in one ratio, and not in a fixed one later: both "
        "are divided by another number, which is another one in each update, as a sum over tokens "
        "that the log does not print (normalisation). Other weights or data seldom do that.",
        "Log the tokens of each update (num_tokens) in both runs; compare what the loss is divided "
        "by: tokens, samples, micro-batches, or nothing.");
    return 1;
}

static void explain_forward(struct compare_report *report, const struct compare_column *column) {
    if (means_alone(report)) {
        compare_say(
            report, -1,
            "Loss and gradient norm of update 1 agree in many digits, so weights and data do, and "
            "means of logits do not: they are taken over other groups (micro-batches of other "
            "sizes or padding). What opens the gap later does not show in update 1.",
            "Compare micro-batches, accumulation and padding; then how metrics are averaged.");
        return;
    }
    if (logits_alone(report)) {
        compare_say(
            report, -1,
            "Log-probs of update 1 agree, so weights and data do as far as these show, and means "
            "of logits do not: they are taken over other groups (micro-batches of other sizes or "
            "padding) or of other logits. What opens the gap later does not show in update 1.",
            "Compare micro-batches, accumulation and padding; then how metrics are averaged.");
        return;
    }
    const struct compare_ratio *const ratio = compare_ratio_of(report, LOG_LOSS);
    const struct compare_ratio *const norm = compare_ratio_of(report, LOG_GRAD_NORM);
    const int shared = ratio != NULL && norm != NULL &&
                       real_abs_f64(norm->factor / ratio->factor - 1.0) < COMPARE_RATIO_DRIFT;
    if (ratio != NULL && ratio->kind == COMPARE_FACTOR_CONSTANT && !shared &&
        column->name == LOG_LOSS) {
        compare_say(
            report, -1,
            "The loss of update 1 differs by a fixed factor that is no whole number, no root and "
            "no count of tokens, and the gradient norm does not by the same one: another loss "
            "whose value hardly moves, too, or one that is divided by another number.",
            "See the ratio. Compare the loss type and its parameters; then what it is divided by.");
        return;
    }
    if (ratio != NULL && column->name == LOG_LOSS) {
        compare_say(
            report, CAUSE_NORMALISATION,
            "The loss of update 1 differs by a fixed factor: it is divided by another number.",
            "See the ratio. Compare the gradient norms to learn whether only the print differs.");
        return;
    }
    if (column->name == LOG_LOSS && compare_loss_apart(report, column->first_update)) {
        explain_loss(report, column->first_update);
        return;
    }
    if (explain_computation(report)) return;
    switch (compare_judge_start(report)) {
    case COMPARE_GAP_ROUNDING:
        compare_say(
            report, CAUSE_DTYPE,
            compare_logits_apart(report)
                ? compare_lrs_differ(report) ? SMALL_GAP OTHER_MEANS LRS_TOO : SMALL_GAP OTHER_MEANS
            : compare_lrs_differ(report) ? SMALL_GAP LRS_TOO
                                         : SMALL_GAP,
            "Compare digests of the initial weights and the first batch. Run both in float32 with "
            "equal micro-batches: a gap that vanishes is rounding. Run one twice: a gap that stays "
            "is deterministic.");
        return;
    case COMPARE_GAP_BETWEEN:
        if (compare_gaps_lean(report)) {
            compare_say(
                report, -1,
                "The forward pass of update 1 differs by less than the log varies from row to row, "
                "and by more than rounding usually does. The losses of the first rows are apart by "
                "numbers of one sign and of about one size: a small term in the loss that is "
                "logged makes them so (label smoothing, a z-loss, an auxiliary loss, a penalty), "
                "and so do dropout in one alone and slightly other weights.",
                "Compare the loss and its terms; then digests of the initial weights and the token "
                "ids of the first batch, and dropout.");
            return;
        }
        compare_say(
            report, -1,
            "The forward pass of update 1 differs by less than the log varies from row to row, and "
            "by more than rounding usually does: another average of the same numbers (a mean of "
            "means), dropout, a low precision, or slightly other weights or data.",
            "Compare digests of the initial weights and the token ids of the first batch; then run "
            "both in float32 with one micro-batch: a gap that stays is no rounding.");
        return;
    default:
        if (explain_divisor(report)) return;
        compare_say(
            report, -1,
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

/* Tells whether the fixed ratio of the gradient norms is the loss scale that both logs print: one
 * norm is of gradients that it still multiplies. */
static int norm_scaled(const struct compare_report *report) {
    const struct compare_column *scale = compare_column_of(report, LOG_LOSS_SCALE);
    if (scale == NULL || scale->class_of != COMPARE_EQUAL || scale->pairs == 0) return 0;
    const double value = compare_point(&scale->side[0], 0).value;
    for (size_t i = 0; i < report->ratio_count && value > 1.0; i++) {
        if (report->ratios[i].name != LOG_GRAD_NORM) continue;
        const double factor = report->ratios[i].factor;
        return real_abs_f64(factor * value - 1.0) < COMPARE_RATIO_DRIFT ||
               real_abs_f64(factor / value - 1.0) < COMPARE_RATIO_DRIFT;
    }
    return 0;
}

/* Tells whether that ratio may be a loss scale, which both logs do not print: one that they do was
 * looked at. */
static int may_be_scaled(const struct compare_report *report) {
    const struct compare_column *scale = compare_column_of(report, LOG_LOSS_SCALE);
    return (scale == NULL || scale->pairs == 0) &&
           compare_scale_of(compare_ratio_of(report, LOG_GRAD_NORM)) > 0.0;
}

#define OWN_REFERENCE(side)                                                                        \
    "The forward pass of update 1 agrees. In update 2 the log-probs of the policy agree by far "   \
    "better than the rewards that are made of them, and in " side " every reward is 0, in every "  \
    "row: there the reference gives what the policy gives, as where it is the policy itself."

/* Explains another loss by the DPO columns of the row behind the first step. Returns 0 where they
 * do not tell. */
static int explain_objective(struct compare_report *report) {
    const int own = compare_own_reference(report);
    if (compare_rewards_alone(report) && own >= 0)
        compare_say(
            report, CAUSE_REFERENCE, own == 0 ? OWN_REFERENCE("A") : OWN_REFERENCE("B"),
            "Look which model gives the log-probs of the reference: it must be a frozen copy, or "
            "the policy with its adapters switched off.");
    else if (compare_rewards_alone(report) && !compare_rewards_scaled(report))
        compare_say(
            report, CAUSE_REFERENCE,
            "The forward pass of update 1 agrees. In update 2 the log-probs of the policy agree by "
            "far better than the rewards that are made of them: the weights are nearly the same. "
            "Chosen and rejected rewards are not apart by one factor, as another beta would make "
            "them: what is subtracted is another number, as of a reference that follows the policy "
            "(sync_ref_model) in one run, or is called on other inputs there.",
            "Compare what the reference is in update 2: its weights, whether it is moved, and what "
            "it is called on.");
    else if (compare_rewards_alone(report))
        compare_say(
            report, CAUSE_OBJECTIVE,
            "The forward pass of update 1 agrees. In update 2 the log-probs of the policy agree by "
            "far better than the rewards that are made of them: the weights are nearly the same, "
            "and what the rewards are scaled by (beta) is not.",
            "Compare beta, and the loss type and its parameters.");
    else if (compare_loss_alone(report))
        compare_say(
            report, CAUSE_OBJECTIVE,
            "The forward pass of update 1 agrees. In update 2 the rewards agree by far better than "
            "the loss that is made of them: the weights are nearly the same, and the loss is "
            "another one that is ln 2, too, while policy and reference are one (label smoothing, "
            "another loss type).",
            "Compare the loss type and its parameters.");
    else
        return 0;
    return 1;
}

#define START_SAYS_NOTHING                                                                         \
    "That update 1 agrees in loss and rewards says nothing: a DPO training that starts at its "    \
    "reference prints ln 2 and 0 there, whatever its weights, data and dtype are."
#define LOG_POLICY                                                                                 \
    "Log the policy's log-probabilities (TRL: logps/chosen, logps/rejected) and the gradient "     \
    "norm of every update in both runs; compare digests of the initial weights and the token ids " \
    "of the first batch."

/* A gap of the LR, as a share, beside which rounding is nothing (chosen). */
#define ACTING_LR 0.01

/* Tells whether the LR that the first step applied differs by far more than rounding. */
static int lr_acts(const struct compare_report *report) {
    const struct compare_lr *const lr = &report->lr;
    const double a = real_abs_f64(lr->first[0]), b = real_abs_f64(lr->first[1]);
    return lr->state == COMPARE_LR_DIFFERENT && lr->first_update <= report->start &&
           real_abs_f64(lr->first[0] - lr->first[1]) > ACTING_LR * (a > b ? a : b);
}

/* Tells whether what differs beside a gradient that rounding may have moved acts in the first step
 * alone: its LR, or settings of the optimizer. */
static int acts_in_step(const struct compare_report *report) {
    return !report->others_apart && (lr_acts(report) || report->optimizers_apart);
}

static void explain_act_of_step(struct compare_report *report) {
    const int lr = lr_acts(report);
    if (lr && !report->optimizers_apart)
        compare_say(
            report, CAUSE_SCHEDULE,
            "The gradient of update 1 differs by no more than kernels or an order of sums make it, "
            "and the LR that its step applied by far more (the line LR): the schedule opens the "
            "gap, and what does not repeat itself adds rounding to it.",
            "Make the applied LRs equal and compare again. How far runs of one configuration are "
            "apart, a floor says (--floor, docs/NOISE.md).");
    else
        compare_say(
            report, -1,
            lr ? "The gradient of update 1 differs by no more than kernels or an order of sums "
                 "make it. The LR of its step differs, too, and so do settings of the optimizer "
                 "(configurations, above), which cannot move that gradient: the schedule, the "
                 "optimizer, or both open the gap, where runs of one configuration are closer than "
                 "these (--floor)."
               : "The gradient of update 1 differs by no more than kernels or an order of sums "
                 "make it. Settings of the optimizer differ, too (configurations, above), which "
                 "act in its step and cannot move that gradient: the optimizer opens the gap, "
                 "where runs of one configuration are closer than these (--floor).",
            "Run one of the two twice. If the two runs of it are closer than these, make the "
            "settings equal one at a time; twinstep ablate does that with your two commands "
            "(docs/ABLATE.md).");
}

/* A forward pass does not show which weights it will be trained by. */
#define OTHER_PART                                                                                 \
    "other weights that take part (frozen, untied or detached ones, adapters of another scale, "   \
    "rank or start)."

static void explain_gradient(struct compare_report *report) {
    const struct compare_ratio *const norm = compare_ratio_of(report, LOG_GRAD_NORM);
    if (compare_norm_alone(report) && compare_judge_norm(report) == COMPARE_GAP_ROUNDING)
        compare_say(
            report, -1,
            report->root_update == report->gradient_update && compare_lrs_differ(report)
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
        compare_say(
            report, CAUSE_SCHEDULE,
            "Equal forward passes, and gradient norms that are apart by the loss scale from update "
            "1 on: one norm is taken before the gradients are unscaled, and so is what is clipped "
            "by it (clip_scaled_grads: the order of the loop, which is of cause schedule).",
            "Call scaler.unscale_(optimizer) before clip_grad_norm_ in both loops.");
    else if (explain_objective(report))
        return;
    else if (may_be_scaled(report))
        compare_say(
            report, -1,
            "Equal forward passes, and gradient norms that are apart by one large power of two "
            "from update 1 on: a loss scale that was not divided out of one of them (it is taken, "
            "and clipped by, before unscale_), or a gradient that is divided, summed or counted "
            "differently.",
            "Log the loss scale in both runs, and see that scaler.unscale_(optimizer) comes before "
            "clip_grad_norm_; then compare the ratio with the accumulation count, the processes "
            "and the tokens.");
    else if (norm != NULL && compare_starts_at_ln2(report) &&
             compare_slopes_in_ratio(report, norm->factor))
        compare_say(
            report, CAUSE_OBJECTIVE,
            "The loss is ln 2 in update 1 and gradient norms are in a fixed ratio from there on. "
            "In the next rows the losses leave ln 2 with their margins in that ratio, too: the "
            "loss has another slope (label smoothing s makes a factor of 1 - 2 s, and another loss "
            "type has one of its own), which a divisor of the gradient does not give it.",
            "Compare the loss type and its parameters, label smoothing first.");
    else if (norm != NULL && compare_starts_at_ln2(report) &&
             !compare_scaled_alike(report, norm->factor))
        compare_say(
            report, -1,
            "The loss is ln 2 in update 1, as that of a DPO training that starts at its reference "
            "is, and gradient norms are in a fixed ratio from there on: another beta, label "
            "smoothing (a factor of 1 - 2 s) or loss type does this (objective), and so does a "
            "gradient that is divided, summed or counted differently (normalisation).",
            "Compare beta, label smoothing and the loss type; then the accumulation count, the "
            "processes and the tokens. Losses and margins of later updates tell them apart, in six "
            "digits or more: with a divisor alone the loss is the same function of the margins.");
    else if (compare_ratio_of(report, LOG_GRAD_NORM) != NULL)
        compare_say(
            report, CAUSE_NORMALISATION,
            "Equal forward passes, and gradient norms in a fixed ratio from update 1 on: the "
            "gradient is divided, summed or counted differently.",
            "See the ratio: compare it with the accumulation count, the processes and the tokens.");
    else if (compare_judge_norm(report) != COMPARE_GAP_ROUNDING && report->same_start)
        compare_say(
            report, -1,
            "The weights before update 1 and the tensors that the model is given are the same, by "
            "their digests, and so is the loss; its gradient differs by more than kernels or the "
            "order of sums make it: another loss that has the same value there (another beta or "
            "loss type, where policy and reference are one), a recomputed forward pass with other "
            "random numbers, accumulation that loses or adds micro-batches, a norm that is taken "
            "elsewhere, or " OTHER_PART,
            "Compare the loss type and its parameters; then with accumulation 1 and without "
            "activation checkpointing.");
    else if (compare_judge_norm(report) != COMPARE_GAP_ROUNDING && !compare_start_tells(report))
        compare_say(
            report, -1,
            START_SAYS_NOTHING
            " The gradient differs by more than kernels or the order of sums make it: other "
            "weights, data or batches, another loss or beta, accumulation that loses or adds "
            "micro-batches, or a norm that is taken elsewhere (before or after clipping, or of "
            "scaled gradients).",
            LOG_POLICY);
    else if (compare_judge_norm(report) != COMPARE_GAP_ROUNDING && margins_part(report))
        compare_say(
            report, -1,
            "The forward pass of update 1 agrees, and its gradient differs by more than kernels "
            "or the order of sums make it: another loss, whose value is the same while policy and "
            "reference are one and whose slope is not (another beta, IPO of sums); accumulation "
            "that loses or adds micro-batches, a recomputed forward pass with other random "
            "numbers, a norm that is taken elsewhere (before or after clipping, or of scaled "
            "gradients), or " OTHER_PART,
            "Compare the loss type and its parameters; then with accumulation 1, without "
            "activation checkpointing and without a loss scale: the one that closes the gap is "
            "the cause.");
    else if (compare_judge_norm(report) != COMPARE_GAP_ROUNDING)
        compare_say(
            report, -1,
            "The forward pass of update 1 agrees, and its gradient differs by more than kernels "
            "or the order of sums make it: accumulation that loses or adds micro-batches, a "
            "recomputed forward pass with other random numbers, a norm that is taken elsewhere "
            "(before or after clipping, or of scaled gradients), or " OTHER_PART,
            "Compare with accumulation 1, without activation checkpointing and without a loss "
            "scale, and which weights are trained: the one that closes the gap is the cause.");
    else if (acts_in_step(report))
        explain_act_of_step(report);
    else if (report->configurations[0] != '\0')
        compare_say(
            report, -1,
            "The forward pass of update 1 agrees as far as it is printed, and its gradient does "
            "not. The configurations differ (above): what differs there can do this, and so can "
            "kernels or an order of sums that do not repeat themselves.",
            "Run one of the two twice. If it repeats itself, make the settings equal one at a "
            "time; twinstep ablate does that with your two commands (docs/ABLATE.md).");
    else if (!compare_start_tells(report))
        compare_say(
            report, -1,
            START_SAYS_NOTHING
            " The gradient differs by as little as dtype, kernels, batch shape or an order of sums "
            "make it.",
            LOG_POLICY);
    else
        compare_say(
            report, CAUSE_NONDETERMINISM,
            "The forward pass of update 1 agrees, its gradient does not: backward kernels, order "
            "of reductions, or a forward pass that differs below the printed digits of the loss.",
            "Run one of the two twice: if it does not repeat itself, it is nondeterminism; if it "
            "does, compare with accumulation 1 and one process.");
}

/* Explains a first difference behind update 1, which agrees as far as both logs show it. `column`
 * is the first to differ of the forward pass and the gradient. */
static enum status explain_later(struct compare_report *report, const struct compare_column *column,
                                 struct arena *arena) {
    const struct compare_column *lr = compare_first_of(report, compare_lr_names);
    const struct compare_group *const group = report->lr.group_first;
    const int before = (lr != NULL && lr->first_update < column->first_update) ||
                       (group != NULL && group->column.first_update < column->first_update);
    const int state = report->lr.state;
    const int other_lr = before || (state == COMPARE_LR_DIFFERENT && report->lr.group == 0);
    const enum compare_between between = compare_between(report, column, other_lr);
    if (between == COMPARE_BETWEEN_FORWARD && column->first_update == report->start + 1 &&
        explain_objective(report))
        return STATUS_OK;
    if (between != COMPARE_BETWEEN_NONE)
        return compare_explain_between(report, column, between, arena);
    if (compare_parts_in(report, "backward") && acts_in_step(report)) {
        explain_act_of_step(report);
    } else if (compare_gradient_parts(report, column)) {
        compare_say(
            report, compare_judge_norm(report) == COMPARE_GAP_ROUNDING ? CAUSE_NONDETERMINISM : -1,
            "Weights and loss of the update in which the roots part are the same, by their "
            "digests, and the norm of its gradient is not: backward kernels or an order of sums "
            "that do not repeat themselves, micro-batches that are lost or added, or a norm that "
            "is taken elsewhere.",
            "Run one of the two twice: if it does not repeat itself, it is nondeterminism; if it "
            "does, compare with accumulation 1 and one process.");
    } else if (other_lr && report->optimizers_apart) {
        compare_say(
            report, -1,
            "What is computed before the first step agrees; the gap opens after a step with "
            "another LR and with other settings of the optimizer (configurations, above): the "
            "schedule, the optimizer, or both.",
            "Make one of them equal and compare again; twinstep ablate measures with your two "
            "commands how much of the gap each makes (docs/ABLATE.md).");
    } else if (compare_parts_in(report, "backward")) {
        compare_say(
            report, -1,
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
    } else if (compare_hold_parts(report, column)) {
        compare_explain_hold(report);
    } else if (other_lr) {
        compare_say(
            report, CAUSE_SCHEDULE,
            "What is computed before the first step agrees; the gap opens after a step with "
            "another LR: the schedule.",
            "twinstep lr fit on each log names contract and numbers; make the applied LRs equal "
            "and compare again.");
    } else if (compare_explain_unplaced(report, column)) {
        return STATUS_OK;
    } else if (column->first_update == report->start + 1 &&
               (explain_objective(report) || compare_explain_first_lr(report))) {
        return STATUS_OK;
    } else if (column->first_update == report->start + 1 && !compare_start_tells(report) &&
               !compare_covers_start(report, compare_gradient_names)) {
        report->lr_in_doubt = 1;
        compare_say(
            report, -1,
            START_SAYS_NOTHING
            " So what differs first cannot be told: weights, data, dtype, the loss and its beta, "
            "the optimizer, or an LR that is applied one update earlier or later.",
            LOG_POLICY);
    } else if (column->first_update == report->start + 1 &&
               (group != NULL || report->lr.groups_alone > 0)) {
        compare_say(
            report, -1,
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
        compare_say(
            report, CAUSE_SCHEDULE,
            "Update 1 agrees; from update 2 on it does not, and the printed LRs do not either: the "
            "mark of an LR that is applied one update earlier or later.",
            "State the contracts (--contract-a, --contract-b): twinstep lr fit on each log names "
            "what prints its column.");
    } else if (column->first_update == report->start + 1 && state != COMPARE_LR_SAME) {
        report->lr_in_doubt = 1;
        compare_say(
            report, -1,
            "Update 1 agrees and update 2 does not: the first step itself differs. An LR that is "
            "applied one update earlier or later opens here, even when the printed columns agree, "
            "and so do another optimizer, its betas, eps and decay, clipping, and a gradient of "
            "another direction. These logs do not tell them apart.",
            "Compare the settings of the optimizer. State the contracts (--contract-a, "
            "--contract-b), or save checkpoints around one update of both runs: twinstep readback "
            "reads the applied LR, decay and count from them (docs/READBACK.md).");
    } else if (column->first_update == report->start + 1 &&
               compare_column_of(report, LOG_LR_APPLIED) == NULL) {
        compare_say(
            report, -1,
            "Update 1 agrees and update 2 does not, although the printed LRs mean equal applied "
            "ones. A log alone does not prove those: an LR that is applied one update early or "
            "late opens here, and so do optimizer arithmetic, decay, clipping, a gradient of "
            "another direction and skipped updates.",
            "Save checkpoints around one update of both runs: twinstep readback reads the applied "
            "LR, decay and count from them (docs/READBACK.md).");
    } else if (column->first_update == report->start + 1) {
        compare_say(
            report, CAUSE_OPTIMIZER,
            "Update 1 agrees and update 2 does not, at equal applied LRs: the step differs in "
            "something else, such as optimizer arithmetic, decay, clipping or skipped updates.",
            "Compare betas, eps, decay and its groups, the clipping threshold and the fused flag.");
    } else if (column->first_update == report->start + 2) {
        compare_say(
            report, -1,
            "What follows the first step agrees and what follows the second does not: optimizer "
            "arithmetic that depends on the count of updates begins to differ there (a bias "
            "correction that stands still), something happened in that update (skip, batch), or "
            "the gap grew from below the printed digits.",
            "Save checkpoints around one update of both runs: twinstep readback reads the applied "
            "LR, decay and count from them (docs/READBACK.md).");
    } else {
        compare_say(
            report, -1,
            "The first updates agree within the printed precision and a gap opens later: it grew "
            "from below the printed digits, or something happened there (skip, resume, batch).",
            "Look at the rows before the first difference in both logs; logs with more digits show "
            "it earlier. Measure how far two equal runs drift by then.");
    }
    return STATUS_OK;
}

/* Tells whether a loss begins at another update in one log than in the other, as where one run goes
 * on from a checkpoint. */
static int begins_later(const struct compare_report *report) {
    const struct compare_column *const loss = compare_column_of(report, LOG_LOSS);
    return loss != NULL && loss->side[0].count > 0 && loss->side[1].count > 0 &&
           compare_point(&loss->side[0], 0).update != compare_point(&loss->side[1], 0).update;
}

static void explain_middle(struct compare_report *report) {
    compare_say(report, -1,
                "The logs have no early update in common, so what differed first cannot be told.",
                begins_later(report)
                    ? "Log every update from the first on (logging_steps 1) in both runs. If one "
                      "goes on from a checkpoint of the other, twinstep resume-check A B holds it "
                      "against the other."
                    : "Log every update from the first on (logging_steps 1) in both runs.");
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

/* Recorded draws come first, since they may tell apart what no column shows. Counts of data come
 * before losses and gradients, which follow from the data; LRs that differ earlier change nothing
 * about that. Without any column that differs no cause is set. */
static enum status explain(struct compare_report *report, struct arena *arena) {
    const struct compare_column *data = compare_first_of(report, compare_data_names);
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
    const struct compare_column *gradient = compare_first_of(report, compare_gradient_names);
    const struct compare_column *first = forward;
    if (gradient != NULL && (first == NULL || gradient->first_update < first->first_update))
        first = gradient;
    int begins_apart, unseen, is_mean = 0, is_of_blocks = 0;
    report->meaning = report->next = "";
    report->same_start = first != NULL && compare_same_start(report, first->first_update);
    if (compare_explain_draws(report)) return STATUS_OK;
    TRY(compare_explain_initial(report, arena, &begins_apart));
    if (begins_apart) return STATUS_OK;
    if (compare_generators_part(report, first)) return compare_explain_generators(report, arena);
    if (report->order_count == 0 && report->lr.groups_differ == 0) return STATUS_OK;
    if (report->norms_round) return STATUS_OK; /* the verdict says it */
    if (report->norms_alone) {
        compare_say(
            report, -1,
            "Weights, LRs and what else the roots are made of are the same bit for bit, and "
            "norms are apart by more than an order of sums makes them: they are norms of "
            "something else (before or after clipping, of scaled gradients, of a part of "
            "the tensors).",
            "Look where each of the two takes its norm, and of which tensors.");
        return STATUS_OK;
    }
    if (report->logged_alone && compare_logged_alone(report, first))
        return explain_logged(report, arena);
    TRY(compare_explain_unseen_forward(report, first, arena, &unseen));
    if (!report->recorded && report->roots == 0) {
        TRY(compare_explain_mean(report, arena, &is_mean));
        TRY(compare_explain_blocks(report, arena, &is_of_blocks));
    }
    if (is_of_blocks) return STATUS_OK;
    if (data != NULL && (first == NULL || data->first_update <= first->first_update))
        explain_data(report);
    else if (unseen)
        return compare_add_step(report, arena);
    else if (compare_loops_part(report, first))
        compare_explain_loops(report);
    else if (compare_skips_part(report))
        TRY(compare_explain_skips(report, arena));
    else if (first == NULL && compare_lr_of_print(report))
        compare_explain_lr_of_print(report);
    else if (first == NULL &&
             (compare_first_of(report, compare_lr_names) != NULL || report->lr.groups_differ > 0))
        compare_explain_lr_only(report);
    else if (compare_step_parts(report, first))
        TRY(compare_explain_step(report, first, arena));
    else if (compare_draws_part(report, first))
        TRY(compare_explain_later_draws(report, arena));
    else if (compare_loss_parts(report, first))
        TRY(compare_explain_loss(report, arena));
    else if (first == NULL)
        compare_say(report, -1, "No column of losses, gradients, tokens or LRs differs.", "");
    else if (compare_trains_alike(report))
        explain_metrics(report);
    else if (is_mean)
        return STATUS_OK;
    else if (!report->recorded && compare_norm_elsewhere(report))
        return compare_explain_norm_elsewhere(report, arena);
    else if (compare_logged_alone(report, first))
        return explain_logged(report, arena);
    else if (compare_batches_part(report, first))
        TRY(compare_explain_batches(report, arena));
    else if (report->unlike && (first != forward || first->first_update > report->start))
        compare_say(
            report, -1,
            "The two do not train the same tensors, or hold them in other dtypes (above), so their "
            "gradient norms and steps are of unlike things: what else differs cannot be told.",
            "Train the same tensors in both runs (adapters, frozen layers, the dtype of weights) "
            "and compare again.");
    else if (first->first_update <= report->start && compare_moved_unseen(report, first))
        compare_explain_unseen(report);
    else if (first->first_update <= report->start && first == forward &&
             compare_reference_apart(report, first->first_update))
        explain_reference(report);
    else if (first->first_update <= report->start && first == forward)
        explain_forward(report, forward);
    else if (first->first_update <= report->start &&
             compare_covers_start(report, compare_forward_names))
        explain_gradient(report);
    else if (first->first_update <= report->start)
        compare_say(report, -1,
                    "The gradient of update 1 differs; the logs do not show its forward pass.",
                    "Log the loss of every update.");
    else if (compare_covers_start(report, compare_forward_names))
        TRY(explain_later(report, first, arena));
    else
        explain_middle(report);
    return compare_add_step(report, arena);
}

/* Tells whether dropout may be in one log alone: of what draws, only recordings and runs tell. */
static int may_be_noise(const struct compare_report *report) {
    return !report->recorded && report->roots == 0;
}

/* A mean of means over micro-batches or ranks lies near the mean of all tokens, so its gaps are as
 * small as those of a low precision; in f32 alone a gap is smaller. */
static enum status name_average(struct compare_report *report, struct arena *arena) {
    char *text;
    if (report->cause != CAUSE_DTYPE || report->rng.found || report->rng.place.stream != NULL ||
        report->rng.seed_count > 0 || !compare_may_average(report))
        return STATUS_OK;
    report->other_average = 1;
    TRY(arena_format(arena, &text,
                     "%s Orders and kernels in float32 make less; a low precision makes as much, "
                     "and so does another average of the same numbers, as a mean of means over "
                     "micro-batches or ranks of other numbers of tokens%s.",
                     report->meaning,
                     may_be_noise(report) ? ", and dropout or another noise in one alone, or of "
                                            "other draws"
                                          : ""));
    report->meaning = text;
    TRY(arena_format(arena, &text,
                     "%s Compare what the loss is divided by, with accumulation and with several "
                     "processes.",
                     report->next));
    report->next = text;
    return STATUS_OK;
}

/* A small gap that leans to one side by about as much in each of the first rows is that of a term
 * of the loss rather than of rounding. A low precision may lean, too. */
static enum status name_term(struct compare_report *report, struct arena *arena) {
    char *text;
    if (report->cause != CAUSE_DTYPE || report->same_start || report->rng.found ||
        report->rng.place.stream != NULL || report->rng.seed_count > 0 ||
        !compare_gaps_lean(report))
        return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%s But the losses of the first rows are apart by numbers of one sign and of "
                     "about one size, which few roundings are: a small term in the loss that is "
                     "logged makes them so (label smoothing, a z-loss, an auxiliary loss, a "
                     "penalty), and a low precision can.",
                     report->meaning));
    compare_say(report, -1, text,
                "Compare the loss and its terms first; then run both in float32 with equal "
                "micro-batches: a gap that stays is no rounding.");
    return STATUS_OK;
}

enum status compare_explain(struct compare_report *report, struct arena *arena) {
    TRY(explain(report, arena));
    TRY(name_term(report, arena));
    TRY(name_average(report, arena));
    TRY(compare_explain_beyond(report, arena));
    return name_start(report, arena);
}

size_t compare_causes(const struct compare_report *report, enum cause out[COMPARE_CAUSES]) {
    size_t count = 0;
    if (report->cause < 0) return 0;
    out[count++] = (enum cause)report->cause;
    if (report->cause != CAUSE_DTYPE && report->cause != CAUSE_NONDETERMINISM) return count;
    out[count++] = report->cause == CAUSE_DTYPE ? CAUSE_NONDETERMINISM : CAUSE_DTYPE;
    if (report->cause == CAUSE_DTYPE && report->same_start)
        out[count++] = CAUSE_OBJECTIVE;
    else if (!report->same_start)
        out[count++] = CAUSE_BATCH_SHAPE;
    if (report->cause == CAUSE_DTYPE && report->other_average) {
        out[count++] = CAUSE_NORMALISATION;
        if (may_be_noise(report)) out[count++] = CAUSE_RNG;
    }
    return count;
}
