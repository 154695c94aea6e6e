/* SPDX-License-Identifier: Apache-2.0
 * What two recordings say of the first difference beyond their columns: random draws, the order of
 * the loop, and the digests of batches and gradients. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_explain.h"

/* Tells whether two recordings part in this phase by their digests, before the first step: columns
 * may agree there, as a loss of ln 2 does whatever the batch is, and the trainings do not. */
int compare_parts_in(const struct compare_report *report, const char *phase) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= report->start && strcmp(report->where.phase, phase) == 0;
}

/* Tells whether the gradient whose norm differs first is the same bit for bit, by its digests. */
int compare_norm_alone(const struct compare_report *report) {
    const struct compare_column *norm = compare_column_of(report, LOG_GRAD_NORM);
    return norm != NULL && report->gradient_update > 0 &&
           norm->first_update == report->gradient_update;
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
int compare_explain_draws(struct compare_report *report) {
    const struct ledger_difference *rng = &report->rng;
    const uint64_t first =
        report->order_count == 0 ? UINT64_MAX : report->columns[report->order[0]].first_update;
    if (rng->found && rng->update <= first) {
        compare_say(
            report, stream_cause(rng->consumer, 1),
            "The runs drew other numbers of random words no later than they parted; the line RNG "
            "says who drew, and when.",
            "Give both runs the same draws (rates, shuffling, rounding) and compare again.");
        return 1;
    }
    if (rng->place.stream != NULL && rng->place.update <= first) {
        compare_say(
            report, stream_cause(rng->place.stream, 0),
            "A random stream stands elsewhere no later than the runs parted: the same numbers of "
            "words, but other words.",
            "Look for what moved the stream: a restart that does not restore it, a draw more or "
            "less, another seed.");
        return 1;
    }
    if (rng->found || rng->seed_count == 0) return 0;
    compare_say(
        report, rng->seed_count > 1 ? CAUSE_RNG : stream_cause(rng->seeds[0].stream, 0),
        "Both drew equally many random words, but from other seeds: they are other words from the "
        "first one on.",
        "Give both runs the same seeds and compare again.");
    return 1;
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
                                point.value) < COMPARE_RATIO_DRIFT * point.value;
    }
    return 0;
}

/* Tells whether another order of phases explains the first difference, which is `first` of loss and
 * gradient: nothing that a training reads differs before the order acts. Gradients that are kept
 * act on the next update's gradient; gradients that were cleared leave the step without any, so the
 * next loss may be the first to show it; and a norm before unscale_ is the loss scale times the one
 * behind it, or another gradient differs as well. */
int compare_loops_part(const struct compare_report *report, const struct compare_column *first) {
    const struct compare_loop *loop = &report->loop;
    const struct compare_column *data = compare_first_of(report, compare_data_names);
    const struct compare_column *lr = compare_first_of(report, compare_lr_names);
    const struct compare_column *forward = compare_first_of(report, compare_forward_names);
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

void compare_explain_loops(struct compare_report *report) {
    const struct compare_loop *loop = &report->loop;
    compare_say(report, CAUSE_SCHEDULE, loop_words[loop->kind].meaning[loop->side],
                loop_words[loop->kind].next);
}

/* ---- what digests of two recordings tell of the batch ---- */

/* Tells whether the batch is what two recordings part in, no later than the columns do. */
int compare_batches_part(const struct compare_report *report, const struct compare_column *first) {
    return report->recorded && report->roots > 0 && report->root_update > 0 &&
           report->root_update <= first->first_update && strcmp(report->where.phase, "fetch") == 0;
}

#define BATCHES_DIFFER                                                                             \
    "The tensors that the model is given differ before the first step, by their digests"

/* The batches differ for certain, so that no later part of the training is named: whatever else
 * differs cannot be told from what follows from them. */
void compare_explain_batches(struct compare_report *report) {
    const int tells = compare_start_tells(report);
    const enum compare_gap gap = compare_judge_start(report);
    if (report->root_update > report->start) {
        compare_say(
            report, CAUSE_DATA_ORDER,
            "Both are equal bit for bit, by their digests, up to the update in which the tensors "
            "that the model is given differ (roots, above): other rows or another order from "
            "there on.",
            "Compare which rows that update used in both runs (sample order, seed, epoch, "
            "drop-last, workers), and what a restart restored of the sampler.");
        return;
    }
    compare_say(
        report, -1,
        !tells ? BATCHES_DIFFER
            ": other rows or another order, or the same rows in other micro-batches, with other "
            "padding or truncation. The loss of update 1 does not tell which, since a DPO training "
            "that starts at its reference prints ln 2 whatever its rows are."
        : gap == COMPARE_GAP_ROUNDING ? BATCHES_DIFFER
            ", and what is computed of them by no more than rounding makes: the same rows in other "
            "micro-batches or with other padding do this, and other rows would move it by more."
        : gap == COMPARE_GAP_BETWEEN ? BATCHES_DIFFER
            ", and what is computed of them by less than from row to row: the same rows with "
            "another average (a mean of means), padding or truncation, or other rows."
                                     : BATCHES_DIFFER
            ", and what is computed of them by more than rounding: other rows or another order, "
            "packing, truncation or padding. Whether weights or the loss differ, too, shows when "
            "the batches are equal.",
        "Compare the first batch of both runs: token ids, mask, and in how many forward passes it "
        "comes. Make it equal and compare again.");
}
