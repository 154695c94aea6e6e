/* SPDX-License-Identifier: Apache-2.0
 * Scenes of losses, gradient norms and rewards. A scene is one change to a healthy log, and what
 * the doctor must say of it. */
#include "tests/forensics/helper_scene.h"

#include <math.h>
#include <stddef.h>

#define LN2 0x1.62e42fefa39efp-1

void scene_put(struct patient *p, enum log_name name, size_t row, double value) {
    helper_put(&p->arena, p->log, name, row, value, PRINT_EXACT);
}

/* ---- values ---- */

static void healthy(struct patient *p) {
    (void)p;
}
static void loss_nan(struct patient *p) {
    scene_put(p, LOG_LOSS, 20, (double)NAN);
}
static void norm_infinite(struct patient *p) {
    scene_put(p, LOG_GRAD_NORM, 20, (double)INFINITY);
    scene_put(p, LOG_LOSS, 20, 0.7);
}
static void norm_infinite_to_end(struct patient *p) {
    for (size_t row = 20; row < 60; row++)
        scene_put(p, LOG_GRAD_NORM, row, (double)INFINITY);
}
static void norm_infinite_skipped(struct patient *p) {
    norm_infinite(p);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LOSS_SCALE, i, i <= 20 ? 65536.0 : 32768.0);
}
static void nan_filtered(struct patient *p) {
    scene_put(p, LOG_GRAD_NORM, 20, (double)NAN);
    scene_put(p, LOG_LOSS, 20, 0.0);
}
/* A column that no other check looks at is NaN in some rows, from the second number to the third.
 */
static void metric(struct patient *p, size_t from, size_t to) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LOGITS_CHOSEN, i, i >= from && i < to ? (double)NAN : -1.5);
}
static void metric_breaks(struct patient *p) {
    metric(p, 57, 60);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LOGITS_REJECTED, i, i >= 3 ? -(double)INFINITY : -1.5);
}
static void metric_breaks_for_a_while(struct patient *p) {
    metric(p, 20, 59);
}
static void metric_breaks_at_the_end(struct patient *p) {
    metric(p, 58, 60);
}
static void metric_breaks_early(struct patient *p) {
    metric(p, 2, 60);
}
static void metric_breaks_in_front_of_the_loss(struct patient *p) {
    metric(p, 19, 60);
    scene_put(p, LOG_LOSS, 20, (double)NAN);
}
static void metric_breaks_with_the_loss(struct patient *p) {
    metric(p, 20, 60);
    scene_put(p, LOG_LOSS, 20, (double)NAN);
}
static void metric_is_finite_and_alone(struct patient *p) {
    p->log = helper_log(&p->arena, 60);
    metric(p, 60, 60);
}
static void no_gradient(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_GRAD_NORM, i, 0.0);
}
/* Groups of equal rewards: neither loss nor gradient in most rows, and both in the others. */
static void no_gradient_in_groups(struct patient *p) {
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_LOSS, i, i % 3 == 2 ? -1e-8 : 0.0);
        scene_put(p, LOG_GRAD_NORM, i, i % 3 == 2 ? 0.5 : 0.0);
    }
}
static void gradient_of_a_row(struct patient *p) {
    scene_put(p, LOG_GRAD_NORM, 5, 0.0);
}

static void language_model(struct patient *p, double first) {
    const struct helper_training training = {60, 3, 0, 8, 4, PRINT_E2, 1.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
    helper_put(&p->arena, p->log, LOG_LOSS, 0, first, 4);
    p->options.vocab = 32000;
}
static void fresh_weights(struct patient *p) {
    language_model(p, 10.40);
}
static void trained_weights(struct patient *p) {
    language_model(p, 2.4);
}

static void skip_rows(struct patient *p, size_t from, size_t to, size_t every) {
    double count = 0.0;
    for (size_t i = 0; i < 60; i++) {
        if (i >= from && i < to && (i - from) % every == 0) count += 1.0;
        scene_put(p, LOG_SKIPPED, i, count);
    }
    p->log->columns[p->log->column_count - 1].cumulative = 1;
}
static void skip_tail(struct patient *p) {
    skip_rows(p, 50, 60, 1);
}
static void skip_some(struct patient *p) {
    skip_rows(p, 5, 15, 4);
}
static void skip_many(struct patient *p) { /* the LR goes on: linear */
    skip_rows(p, 5, 55, 4);
}
static void skip_several(
    struct patient *p) { /* rows of Megatron: two in one row, three in another */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_SKIPPED, i, i == 20 ? 2.0 : i == 40 ? 3.0 : 0.0);
}
static void skip_many_held(struct patient *p) {
    size_t updates = 0;
    skip_rows(p, 5, 55, 4);
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(60 - updates) / 60.0);
        updates += !(i >= 5 && i < 55 && (i - 5) % 4 == 0);
    }
}
static void skip_one_held(struct patient *p) {
    skip_rows(p, 5, 6, 1);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(60 - i + (i > 5)) / 60.0);
}
static void skip_column_of_one(struct patient *p) { /* one number, which says that none was */
    scene_put(p, LOG_SKIPPED, 30, 0.0);
}
/* A row of every tenth update: the LR moves from row to row although the schedule held. */
static void skip_many_sparse(struct patient *p) {
    static const size_t rows[] = {0, 20, 40}, counts[] = {8, 4, 3};
    size_t skipped = 0;
    for (size_t i = 0; i < 60; i++) {
        size_t here = 0;
        for (size_t n = 0; n < 3; n++)
            if (rows[n] == i) here = counts[n];
        skipped += here;
        p->log->step[i] = 10 * (int64_t)(i + 1);
        scene_put(p, LOG_SKIPPED, i, (double)here);
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(600 - 10 * (i + 1) + skipped) / 600.0);
    }
}

/* ---- start of a preference training ---- */

static void start_at(struct patient *p, double loss, double margin, int print) {
    helper_put(&p->arena, p->log, LOG_LOSS, 0, loss, print);
    helper_put(&p->arena, p->log, LOG_REWARD_MARGIN, 0, margin, print);
    helper_put(&p->arena, p->log, LOG_REWARD_CHOSEN, 0, 0.5 * margin, print);
    helper_put(&p->arena, p->log, LOG_REWARD_REJECTED, 0, -0.5 * margin, print);
}
static void start_printed(struct patient *p) {
    start_at(p, LN2, 0.0, 4);
}
static void start_bf16(struct patient *p) {
    start_at(p, 0.69140625, 0.0, PRINT_EXACT);
}
static void start_twice(struct patient *p) {
    start_at(p, 2.0 * LN2, 0.0, 4);
}
static void start_twice_ranks(struct patient *p) {
    start_twice(p);
    p->options.processes = 2;
}
static void start_twice_micro(struct patient *p) {
    start_twice(p);
    p->options.accumulate = 2;
}
static void start_four(struct patient *p) {
    start_at(p, 4.0 * LN2, 0.0, PRINT_FLOAT);
}
static void start_kto(struct patient *p) {
    start_at(p, 0.5, 0.0, PRINT_FLOAT);
}
static void start_ipo(struct patient *p) {
    start_at(p, 25.0, 0.0, PRINT_FLOAT);
}
/* Rewards that are not 0, as of a mean over the first updates, beside losses that the sigmoid does
 * not make of them. */
static void start_kto_later(struct patient *p) {
    start_at(p, 0.4955, 0.018, PRINT_FLOAT);
}
static void start_ipo_later(struct patient *p) {
    start_at(p, 24.9, 0.018, PRINT_FLOAT);
}
static void start_mismatch(struct patient *p) { /* what one NeMo-RL recipe printed */
    start_at(p, 0.7087, -0.03, 4);
}
static void start_without_reference(struct patient *p) {
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_REWARD_CHOSEN, i, 0.1 * helper_value(p->log, LOG_LOGP_CHOSEN, i));
        scene_put(p, LOG_REWARD_REJECTED, i, 0.1 * helper_value(p->log, LOG_LOGP_REJECTED, i));
        scene_put(p, LOG_REWARD_MARGIN, i,
                  helper_value(p->log, LOG_REWARD_CHOSEN, i) -
                      helper_value(p->log, LOG_REWARD_REJECTED, i));
        scene_put(p, LOG_LOSS, i, 1.4 - 0.001 * (double)i);
    }
}
static void start_in_the_middle(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] += 100;
    scene_put(p, LOG_LOSS, 0, 0.5);
}

static void hold(struct patient *p, size_t rows, int print) {
    for (size_t i = 0; i < rows; i++) {
        helper_put(&p->arena, p->log, LOG_LOSS, i, (double)(float)LN2, print);
        helper_put(&p->arena, p->log, LOG_REWARD_CHOSEN, i, 0.0, print);
        helper_put(&p->arena, p->log, LOG_REWARD_REJECTED, i, 0.0, print);
        helper_put(&p->arena, p->log, LOG_REWARD_MARGIN, i, 0.0, print);
    }
}
static void stuck(struct patient *p) {
    hold(p, 10, PRINT_EXACT);
}
static void stuck_least(struct patient *p) { /* 4 rows, 3 of them after an update at full LR */
    hold(p, 4, PRINT_EXACT);
}
static void stuck_too_short(struct patient *p) {
    hold(p, 3, PRINT_EXACT);
}
static void stuck_recorded(struct patient *p) {
    stuck(p);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_APPLIED, i, helper_value(p->log, LOG_LR_LOGGED, i));
}
static void stuck_printed(struct patient *p) {
    hold(p, 60, 4);
}
static void stuck_few_digits(struct patient *p) { /* tiny steps look the same */
    hold(p, 10, 4);
}
static void stuck_in_warmup(struct patient *p) {
    hold(p, 4, 4);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(i < 30 ? i + 1 : 60 - i) / 30.0);
}
/* Some weights near 0 move and come back to where they were, the others do not: 8 rows of 15 say 0
 * behind the first that does not, and 7 of 15 are too few. */
static void mostly_stuck(struct patient *p) {
    hold(p, 18, PRINT_EXACT);
    for (size_t i = 2; i < 10; i++)
        helper_put(&p->arena, p->log, LOG_REWARD_CHOSEN, i, 7e-7, PRINT_EXACT);
    for (size_t i = 18; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-8);
}
static void mostly_moved(struct patient *p) {
    mostly_stuck(p);
    helper_put(&p->arena, p->log, LOG_REWARD_CHOSEN, 10, 7e-7, PRINT_EXACT);
}
/* The first move is large enough for the loss to leave ln 2, and two rows of three come back to
 * exactly 0. With `step` above 0 the rewards are multiples of it, as those of log-probs in bf16
 * are: such a 0 says nothing. */
static void back_to_zero(struct patient *p, double step, int print) {
    hold(p, 2, print);
    for (size_t i = 0; i < 60; i++) {
        const int apart = i > 1 && i % 3 == 2;
        const double size = 0.004 + 0.0137 * sin(0.9 * (double)i);
        const double raw[2] = {apart ? size : 0.0, apart ? -0.7 * size : 0.0};
        double reward[2];
        for (int n = 0; n < 2; n++)
            reward[n] = step > 0.0 ? step * round(raw[n] / 0.01) : raw[n];
        helper_put(&p->arena, p->log, LOG_REWARD_CHOSEN, i, reward[0], print);
        helper_put(&p->arena, p->log, LOG_REWARD_REJECTED, i, reward[1], print);
        helper_put(&p->arena, p->log, LOG_REWARD_MARGIN, i, reward[0] - reward[1], print);
        helper_put(&p->arena, p->log, LOG_LOSS, i, log(1.0 + exp(reward[1] - reward[0])), print);
        scene_put(p, LOG_LR_LOGGED, i, 5e-7);
    }
}
static void back_to_zero_exactly(struct patient *p) {
    back_to_zero(p, 0.0, PRINT_EXACT);
}
static void back_to_zero_in_decimals(struct patient *p) {
    back_to_zero(p, 0.0, 4);
}
static void back_to_zero_by_steps(struct patient *p) {
    back_to_zero(p, 0.025, PRINT_EXACT);
}
static void second_equal(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
}
static void second_equal_recorded(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_APPLIED, i, helper_value(p->log, LOG_LR_LOGGED, i));
}
static void second_equal_fitted(struct patient *p) { /* falls from the start: nothing applies 0 */
    hold(p, 2, PRINT_EXACT);
    p->fits = 1;
}
static void second_equal_lr_zero(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
    scene_put(p, LOG_LR_LOGGED, 0, 0.0);
}
static void second_equal_printed(struct patient *p) {
    hold(p, 2, 4);
}

/* ---- rewards ---- */

static void margins_scaled(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_MARGIN, i, 1.2 * helper_value(p->log, LOG_REWARD_MARGIN, i));
}
static void margins_negated(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_MARGIN, i, -helper_value(p->log, LOG_REWARD_MARGIN, i));
    helper_drop(p->log, LOG_LOSS);
}
static void margins_bf16(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_MARGIN, i,
                  helper_value(p->log, LOG_REWARD_MARGIN, i) * (i % 2 == 0 ? 1.002 : 0.998));
}
static void margins_two_digits(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_REWARD_MARGIN, i,
                   helper_value(p->log, LOG_REWARD_MARGIN, i), 2);
}
static void accuracies_of_means(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_ACCURACY, i, i % 3 == 0 ? 0.0 : 1.0);
}
static void accuracies_one_pair(struct patient *p) {
    const struct helper_training training = {60,          5,   1, 1,    PRINT_FLOAT,
                                             PRINT_EXACT, 1.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
}
static void accuracies_few(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_ACCURACY, i, i < 50 ? 1.0 : 0.875);
}
static void accuracies_of_means_told(struct patient *p) {
    accuracies_one_pair(p);
    p->options.pairs = 4;
}
static void accuracies_all_right(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_REWARD_ACCURACY, i, 1.0);
}
static void labels_swapped(struct patient *p) {
    const struct helper_training training = {90,          5,    1, 16,   PRINT_FLOAT,
                                             PRINT_EXACT, -3.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
}
static void loss_too_low(struct patient *p) {
    for (size_t i = 1; i < 60; i++)
        scene_put(p, LOG_LOSS, i, 0.5 * helper_value(p->log, LOG_LOSS, i));
}

const struct scene scenes_of_values[] = {
    REMARK(healthy, "tokens_vary"),
    FOUND(loss_nan, "loss_not_finite", CERTAIN),
    REMARK(norm_infinite, "skip_advances_schedule"),
    FOUND(norm_infinite_to_end, "grad_norm_not_finite", CERTAIN),
    REMARK(norm_infinite_skipped, "skip_advances_schedule"),
    FOUND(no_gradient, "no_gradient", LIKELY),
    FOUND(no_gradient_in_groups, "no_gradient", POSSIBLE),
    QUIET(gradient_of_a_row),
    FOUND(fresh_weights, "weights_reinitialised", LIKELY),
    LINE(trained_weights, "weights_reinitialised", QUIET),
    LINE(healthy, "weights_reinitialised", NOT_ASKED),
    FOUND(skip_tail, "nan_skip_poison", LIKELY),
    REMARK(skip_some, "skip_advances_schedule"),
    FOUND(skip_many, "skip_advances_schedule", LIKELY),
    REMARK(skip_several, "skip_advances_schedule"),
    REMARK(skip_many_held, "skipped_updates"),
    REMARK(skip_one_held, "skipped_updates"),
    REMARK(skip_many_sparse, "skipped_updates"),
    LINE(skip_column_of_one, "skipped_updates", QUIET),
    LINE(healthy, "start_at_ln2", QUIET),
    LINE(start_printed, "start_at_ln2", QUIET),
    LINE(start_bf16, "start_at_ln2", QUIET),
    FOUND(start_twice, "loss_summed_over_ranks", POSSIBLE),
    FOUND(start_twice_ranks, "loss_summed_over_ranks", LIKELY),
    FOUND(start_twice_micro, "num_items_double_scale", LIKELY),
    FOUND(start_four, "loss_summed_over_ranks", LIKELY),
    LINE(start_kto, "start_at_ln2", UNTESTABLE),
    LINE(start_ipo, "start_at_ln2", UNTESTABLE),
    LINE(start_kto_later, "start_at_ln2", UNTESTABLE),
    LINE(start_ipo_later, "start_at_ln2", UNTESTABLE),
    FOUND(start_mismatch, "ref_batch_shape", LIKELY),
    LINE(start_without_reference, "start_at_ln2", UNTESTABLE),
    LINE(start_in_the_middle, "start_at_ln2", UNTESTABLE),
    LINE(trained_weights, "start_at_ln2", UNTESTABLE),
    FOUND(stuck, "loss_stuck_at_ln2", LIKELY),
    FOUND(stuck_least, "loss_stuck_at_ln2", LIKELY),
    FOUND(mostly_stuck, "loss_stuck_at_ln2", POSSIBLE),
    LINE(mostly_moved, "loss_stuck_at_ln2", QUIET),
    FOUND(back_to_zero_exactly, "loss_stuck_at_ln2", POSSIBLE),
    FOUND(back_to_zero_in_decimals, "loss_stuck_at_ln2", POSSIBLE),
    LINE(back_to_zero_by_steps, "loss_stuck_at_ln2", QUIET),
    LINE(stuck_too_short, "loss_stuck_at_ln2", QUIET),
    FOUND(stuck_printed, "loss_stuck_at_ln2", POSSIBLE),
    LINE(stuck_few_digits, "loss_stuck_at_ln2", UNTESTABLE),
    LINE(stuck_in_warmup, "loss_stuck_at_ln2", QUIET),
    REMARK(second_equal, "zero_lr_first_step"),
    FOUND(second_equal_recorded, "zero_lr_first_step", LIKELY),
    REMARK(second_equal_fitted, "zero_lr_first_step"),
    REMARK(second_equal_lr_zero, "zero_lr_first_step"),
    LINE(second_equal_printed, "zero_lr_first_step", UNTESTABLE),
    FOUND(margins_scaled, "margin_averaging", LIKELY),
    FOUND(margins_negated, "margin_sign", CERTAIN),
    LINE(margins_bf16, "margin_averaging", QUIET),
    LINE(margins_two_digits, "margin_averaging", QUIET),
    FOUND(accuracies_of_means, "accuracy_of_means", LIKELY),
    FOUND(accuracies_of_means_told, "accuracy_of_means", LIKELY),
    LINE(accuracies_one_pair, "accuracy_of_means", QUIET),
    LINE(accuracies_few, "accuracy_of_means", QUIET),
    LINE(accuracies_all_right, "accuracy_of_means", QUIET),
    FOUND(labels_swapped, "labels_swapped", LIKELY),
    FOUND(loss_too_low, "loss_below_margin_bound", POSSIBLE),
    FOUND(metric_breaks, "metric_not_finite", POSSIBLE),
    REMARK(metric_breaks_for_a_while, "metric_not_finite"),
    REMARK(metric_breaks_at_the_end, "metric_not_finite"),
    REMARK(metric_breaks_early, "metric_not_finite"),
    BOTH(metric_breaks_in_front_of_the_loss, "loss_not_finite", CERTAIN, "metric_not_finite"),
    FOUND(metric_breaks_with_the_loss, "loss_not_finite", CERTAIN),
    LINE(metric_is_finite_and_alone, "metric_not_finite", UNTESTABLE),
    LINE(healthy, "lr_at_resume", UNTESTABLE),
    FOUND(nan_filtered, "nan_loss_filtered", LIKELY),
    FOUND(stuck_recorded, "loss_stuck_at_ln2", LIKELY),
    SCENES_END};
