/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The checks of the doctor: each with a log that must trigger it and with its innocent neighbour,
 * which must not. All logs start from one healthy training (helper_dpo). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "forensics/doctor.h"
#include "tests/forensics/helper_log.h"

#define LN2 0.69314718055994531

struct patient {
    struct arena arena;
    struct log *log;
    struct doctor_options options;
    int fits; /* 1: fit the LR column */
};

static void put(struct patient *p, enum log_name name, size_t row, double value) {
    helper_put(&p->arena, p->log, name, row, value, PRINT_EXACT);
}

/* ---- values ---- */

static void healthy(struct patient *p) {
    (void)p;
}
static void loss_nan(struct patient *p) {
    put(p, LOG_LOSS, 20, NAN);
}
static void norm_infinite(struct patient *p) {
    put(p, LOG_GRAD_NORM, 20, INFINITY);
    put(p, LOG_LOSS, 20, 0.7);
}
static void norm_infinite_skipped(struct patient *p) {
    norm_infinite(p);
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LOSS_SCALE, i, i <= 20 ? 65536.0 : 32768.0);
}
static void nan_filtered(struct patient *p) {
    put(p, LOG_GRAD_NORM, 20, NAN);
    put(p, LOG_LOSS, 20, 0.0);
}
static void no_gradient(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_GRAD_NORM, i, 0.0);
}
static void gradient_of_a_row(struct patient *p) {
    put(p, LOG_GRAD_NORM, 5, 0.0);
}

static void language_model(struct patient *p, double first) {
    const struct helper_training training = {60, 3, 0, 8, 4, PRINT_E2, 1.0, NULL, NULL};
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
        put(p, LOG_SKIPPED, i, count);
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
static void skip_many_held(struct patient *p) {
    size_t updates = 0;
    skip_rows(p, 5, 55, 4);
    for (size_t i = 0; i < 60; i++) {
        put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(60 - updates) / 60.0);
        updates += !(i >= 5 && i < 55 && (i - 5) % 4 == 0);
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
static void start_mismatch(struct patient *p) { /* what one NeMo-RL recipe printed */
    start_at(p, 0.7087, -0.03, 4);
}
static void start_without_reference(struct patient *p) {
    for (size_t i = 0; i < 60; i++) {
        put(p, LOG_REWARD_CHOSEN, i, 0.1 * helper_value(p->log, LOG_LOGP_CHOSEN, i));
        put(p, LOG_REWARD_REJECTED, i, 0.1 * helper_value(p->log, LOG_LOGP_REJECTED, i));
        put(p, LOG_REWARD_MARGIN, i,
            helper_value(p->log, LOG_REWARD_CHOSEN, i) -
                helper_value(p->log, LOG_REWARD_REJECTED, i));
        put(p, LOG_LOSS, i, 1.4 - 0.001 * (double)i);
    }
}
static void start_in_the_middle(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] += 100;
    put(p, LOG_LOSS, 0, 0.5);
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
static void stuck_recorded(struct patient *p) {
    stuck(p);
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_APPLIED, i, helper_value(p->log, LOG_LR_LOGGED, i));
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
        put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(i < 30 ? i + 1 : 60 - i) / 30.0);
}
static void second_equal(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
}
static void second_equal_recorded(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_APPLIED, i, helper_value(p->log, LOG_LR_LOGGED, i));
}
static void second_equal_fitted(struct patient *p) { /* falls from the start: nothing applies 0 */
    hold(p, 2, PRINT_EXACT);
    p->fits = 1;
}
static void second_equal_lr_zero(struct patient *p) {
    hold(p, 2, PRINT_EXACT);
    put(p, LOG_LR_LOGGED, 0, 0.0);
}
static void second_equal_printed(struct patient *p) {
    hold(p, 2, 4);
}

/* ---- rewards ---- */

static void margins_scaled(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_MARGIN, i, 1.2 * helper_value(p->log, LOG_REWARD_MARGIN, i));
}
static void margins_negated(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_MARGIN, i, -helper_value(p->log, LOG_REWARD_MARGIN, i));
    helper_drop(p->log, LOG_LOSS);
}
static void margins_bf16(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_MARGIN, i,
            helper_value(p->log, LOG_REWARD_MARGIN, i) * (i % 2 == 0 ? 1.002 : 0.998));
}
static void margins_two_digits(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_REWARD_MARGIN, i,
                   helper_value(p->log, LOG_REWARD_MARGIN, i), 2);
}
static void accuracies_of_means(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_ACCURACY, i, i % 3 == 0 ? 0.0 : 1.0);
}
static void accuracies_one_pair(struct patient *p) {
    const struct helper_training training = {60,          5,   1,    1,   PRINT_FLOAT,
                                             PRINT_EXACT, 1.0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
}
static void accuracies_few(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_ACCURACY, i, i < 50 ? 1.0 : 0.875);
}
static void accuracies_of_means_told(struct patient *p) {
    accuracies_one_pair(p);
    p->options.pairs = 4;
}
static void accuracies_all_right(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_REWARD_ACCURACY, i, 1.0);
}
static void labels_swapped(struct patient *p) {
    const struct helper_training training = {90,          5,    1,    16,  PRINT_FLOAT,
                                             PRINT_EXACT, -3.0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
}
static void loss_too_low(struct patient *p) {
    for (size_t i = 1; i < 60; i++)
        put(p, LOG_LOSS, i, 0.5 * helper_value(p->log, LOG_LOSS, i));
}

/* ---- LR ---- */

static void set_lr(struct patient *p, double (*lr)(size_t row)) {
    for (size_t i = 0; i < p->log->rows; i++)
        put(p, LOG_LR_LOGGED, i, lr(i));
}
static double below_zero(size_t row) {
    return 1e-6 * (50.0 - (double)row);
}
static double zero(size_t row) {
    (void)row;
    return 0.0;
}
static double cosine_twice(size_t row) {
    return 0.5e-6 * (1.0 + cos(3.14159265358979 * (double)row / 30.0));
}
static double restarts(size_t row) {
    return 0.5e-6 * (1.0 + cos(3.14159265358979 * (double)(row % 30) / 30.0));
}
static double restarts_once(size_t row) { /* and goes on at its peak */
    return row < 40 ? 0.5e-6 * (1.0 + cos(3.14159265358979 * (double)row / 40.0)) : 1e-6;
}
static double short_of_the_end(size_t row) { /* a schedule of 55 updates in a run of 60 */
    return row < 55 ? 1e-6 * (1.0 - (double)row / 55.0) : 0.0;
}
static double twice_too_fast(size_t row) {
    return row < 30 ? 1e-6 * (1.0 - (double)row / 30.0) : 0.0;
}
static double to_zero(size_t row) { /* f(k): the last update has LR 0 */
    return 1e-6 * (59.0 - (double)row) / 60.0;
}
static double stairs(size_t row) {
    return 1e-6 * (6.0 - (double)(row / 10));
}
static double stairs_of_epochs(size_t row) {
    return 1e-6 * (4.0 - (double)(row / 15));
}
static double peak_then_warmup(size_t row) {
    return row == 0 ? 1e-6 : row < 10 ? 1e-7 * (double)row : 1e-6 * (60.0 - (double)row) / 50.0;
}
static void lr_negative(struct patient *p) {
    set_lr(p, below_zero);
}
static void lr_zero(struct patient *p) {
    set_lr(p, zero);
}
static void lr_zero_printed(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_LR_LOGGED, i, 5e-7, 4);
}
static void lr_rises(struct patient *p) {
    set_lr(p, cosine_twice);
}
static void lr_restarts(struct patient *p) {
    set_lr(p, restarts);
}
static void lr_restarts_once(struct patient *p) {
    set_lr(p, restarts_once);
}
static void lr_short(struct patient *p) {
    set_lr(p, short_of_the_end);
}
static void lr_early(struct patient *p) {
    set_lr(p, twice_too_fast);
}
static void lr_early_processes(struct patient *p) {
    lr_early(p);
    p->options.processes = 2;
}
static void lr_early_micro(struct patient *p) {
    lr_early(p);
    p->options.accumulate = 2;
}
static void lr_to_zero(struct patient *p) {
    set_lr(p, to_zero);
}
static void lr_stairs(struct patient *p) {
    set_lr(p, stairs);
}
static void lr_stairs_of_epochs(struct patient *p) {
    set_lr(p, stairs_of_epochs);
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_EPOCH, i, (double)i / 15.0, 2);
}
static void lr_stairs_printed(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_LR_LOGGED, i, 1e-3 * (1.0 - (double)i / 600.0), 5);
}
static void lr_peak_first(struct patient *p) {
    set_lr(p, peak_then_warmup);
}
static void lr_bug_fitted(struct patient *p) {
    lr_peak_first(p);
    p->fits = 1;
}
static void lr_sound_fitted(struct patient *p) {
    p->fits = 1;
}
static void lr_ends_at_zero_fitted(struct patient *p) {
    lr_to_zero(p);
    p->fits = 1;
}
static void lr_recorded_zero(struct patient *p) { /* whatever the printed column is */
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_APPLIED, i, 1e-6 * (59.0 - (double)i) / 60.0);
}
static void lr_of_guessed_rows(struct patient *p) {
    lr_bug_fitted(p);
    p->log->step_guessed = 1;
}

/* ---- resume ---- */

static void resumed(struct patient *p) { /* goes on smoothly, ten rows repeated to the bit */
    for (size_t c = 0; c < p->log->column_count; c++)
        for (size_t i = 59; i >= 40; i--) {
            p->log->columns[c].value[i] = p->log->columns[c].value[i - 10];
            p->log->columns[c].quantum[i] = p->log->columns[c].quantum[i - 10];
        }
    helper_resume(p->log, 40, 31);
}
static void replayed(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(i < 30 ? i + 1 : i - 29) / 60.0);
    helper_resume(p->log, 30, 31);
}
static void jumped(struct patient *p) {
    for (size_t i = 30; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 0.5 * helper_value(p->log, LOG_LR_LOGGED, i));
    helper_resume(p->log, 30, 31);
}
static void other_data(struct patient *p) {
    resumed(p);
    put(p, LOG_LOSS, 40, 1.3 * helper_value(p->log, LOG_LOSS, 40));
}
static void two_writers(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] = (int64_t)i / 2 + 1;
    hold(p, 2, PRINT_FLOAT);
}
static void counter_falls(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_SAMPLES, i, 8.0 * (double)(i < 30 ? i + 1 : i - 28));
    p->log->columns[p->log->column_count - 1].cumulative = 1;
}
static void counter_printed(struct patient *p) { /* a print of one decimal may fall by one unit */
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_EPOCH, i,
                   i == 29   ? 1.5
                   : i == 30 ? 1.4
                             : (double)i / 20.0,
                   1);
}
static void counter_restarts(struct patient *p) {
    counter_falls(p);
    helper_resume(p->log, 30, 31);
}

/* ---- counts ---- */

static void past_total(struct patient *p) {
    p->log->max_steps = 59;
}
static void full_total(struct patient *p) {
    p->log->max_steps = 60;
}
static void short_epochs(struct patient *p, double updates) {
    for (size_t i = 0; i < 60; i++) {
        p->log->step[i] = (int64_t)(i + 1) * 10;
        helper_put(&p->arena, p->log, LOG_EPOCH, i, (double)p->log->step[i] / updates, PRINT_EXACT);
    }
    helper_put(&p->arena, p->log, LOG_LOSS, 0, 0.69, 4);
    p->log->max_steps = 600;
}
static void floored(struct patient *p) { /* 3 epochs of 200 2/3 updates, each cut to 200 */
    short_epochs(p, 602.0 / 3.0);
}
static void whole_epochs(struct patient *p) {
    short_epochs(p, 200.0);
}
static void samples(struct patient *p, double step) {
    for (size_t i = 0; i < 60; i++) {
        put(p, LOG_SAMPLES, i, step * (double)(i + 1));
        put(p, LOG_GLOBAL_BATCH, i, 8.0);
    }
    for (size_t c = 0; c < p->log->column_count; c++)
        if (p->log->columns[c].name == LOG_SAMPLES) p->log->columns[c].cumulative = 1;
}
static void samples_wrong(struct patient *p) {
    samples(p, 16.0);
}
static void samples_right(struct patient *p) {
    samples(p, 8.0);
}
static void no_tokens(struct patient *p) {
    put(p, LOG_TOKENS, 7, 0.0);
}

/* ---- numbers ---- */

static void bf16(struct patient *p) {
    p->options.dtype_given = 1;
    p->options.dtype = DTYPE_BF16;
    p->options.master_none = 1;
}
static void bf16_with_master(struct patient *p) {
    bf16(p);
    p->options.master_none = 0;
}
static void f32(struct patient *p) {
    bf16(p);
    p->options.dtype = DTYPE_F32;
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 1e-4);
}
static void decay(struct patient *p) {
    p->options.weight_decay = 0.1;
}
static void decay_large(struct patient *p) {
    decay(p);
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 1e-4);
}

/* `finding`: the one finding that must be there, alone; NULL: none. `remark`: one that must be
 * among the remarks; NULL: does not matter. `check`, `result`: what a line must say. */
struct scene {
    const char *name;
    void (*make)(struct patient *patient);
    const char *finding;
    int confidence;
    const char *remark;
    const char *check;
    int result;
};

#define FOUND(make, finding, confidence)                                                           \
    { #make, make, finding, DOCTOR_##confidence, NULL, NULL, 0 }
#define QUIET(make)                                                                                \
    { #make, make, NULL, 0, NULL, NULL, 0 }
#define REMARK(make, remark)                                                                       \
    { #make, make, NULL, 0, remark, NULL, 0 }
#define LINE(make, check, result)                                                                  \
    { #make, make, NULL, 0, NULL, check, DOCTOR_##result }

static const struct scene scenes[] = {
    REMARK(healthy, "tokens_vary"),
    FOUND(loss_nan, "loss_not_finite", CERTAIN),
    FOUND(norm_infinite, "grad_norm_not_finite", CERTAIN),
    REMARK(norm_infinite_skipped, "skip_advances_schedule"),
    FOUND(no_gradient, "no_gradient", LIKELY),
    QUIET(gradient_of_a_row),
    FOUND(fresh_weights, "weights_reinitialised", LIKELY),
    LINE(trained_weights, "weights_reinitialised", QUIET),
    LINE(healthy, "weights_reinitialised", NOT_ASKED),
    FOUND(skip_tail, "nan_skip_poison", LIKELY),
    REMARK(skip_some, "skip_advances_schedule"),
    FOUND(skip_many, "skip_advances_schedule", LIKELY),
    REMARK(skip_many_held, "skipped_updates"),
    LINE(healthy, "start_at_ln2", QUIET),
    LINE(start_printed, "start_at_ln2", QUIET),
    LINE(start_bf16, "start_at_ln2", QUIET),
    FOUND(start_twice, "loss_summed_over_ranks", LIKELY),
    FOUND(start_twice_ranks, "loss_summed_over_ranks", CERTAIN),
    FOUND(start_twice_micro, "num_items_double_scale", CERTAIN),
    FOUND(start_four, "loss_summed_over_ranks", LIKELY),
    LINE(start_kto, "start_at_ln2", UNTESTABLE),
    LINE(start_ipo, "start_at_ln2", UNTESTABLE),
    FOUND(start_mismatch, "ref_batch_shape", LIKELY),
    LINE(start_without_reference, "start_at_ln2", UNTESTABLE),
    LINE(start_in_the_middle, "start_at_ln2", UNTESTABLE),
    LINE(trained_weights, "start_at_ln2", UNTESTABLE),
    FOUND(stuck, "loss_stuck_at_ln2", LIKELY),
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
    FOUND(loss_too_low, "loss_below_margin_bound", LIKELY),
    FOUND(lr_negative, "lr_negative", CERTAIN),
    FOUND(lr_zero, "lr_zero_throughout", CERTAIN),
    LINE(lr_zero_printed, "lr_zero_throughout", UNTESTABLE),
    FOUND(lr_rises, "lr_rises_past_end", LIKELY),
    LINE(lr_restarts, "lr_rises_past_end", QUIET),
    LINE(lr_restarts_once, "lr_rises_past_end", QUIET),
    LINE(lr_short, "lr_zero_early", QUIET),
    FOUND(lr_early, "lr_zero_at_1/N_of_run", LIKELY),
    FOUND(lr_early_processes, "xP_scheduler", LIKELY),
    FOUND(lr_early_micro, "per_microbatch_stepping", LIKELY),
    LINE(lr_to_zero, "lr_zero_early", QUIET),
    FOUND(lr_stairs, "eval_steps_scheduler", LIKELY),
    REMARK(lr_stairs_of_epochs, "scheduler_epoch_default"),
    REMARK(lr_stairs_printed, "lr_printed_coarsely"),
    FOUND(lr_peak_first, "step_then_set", LIKELY),
    FOUND(lr_bug_fitted, "step_then_set", LIKELY),
    LINE(lr_sound_fitted, "lr_bug", QUIET),
    REMARK(lr_ends_at_zero_fitted, "lr_zero_last_step"),
    REMARK(lr_recorded_zero, "lr_zero_last_step"),
    LINE(lr_of_guessed_rows, "lr_bug", UNTESTABLE),
    REMARK(resumed, "repeated_rows"),
    LINE(resumed, "lr_at_resume", QUIET),
    LINE(resumed, "resume_sees_other_data", QUIET),
    LINE(healthy, "lr_at_resume", UNTESTABLE),
    FOUND(replayed, "scheduler_not_restored", LIKELY),
    FOUND(jumped, "lr_jump_at_resume", LIKELY),
    FOUND(other_data, "resume_sees_other_data", POSSIBLE),
    FOUND(two_writers, "rows_of_several_processes", LIKELY),
    FOUND(counter_falls, "counter_falls", CERTAIN),
    LINE(counter_printed, "counters", QUIET),
    FOUND(counter_restarts, "counter_not_restored", CERTAIN),
    FOUND(past_total, "floor_vs_ceil_steps", CERTAIN),
    LINE(full_total, "past_max_steps", QUIET),
    FOUND(floored, "floor_vs_ceil_steps", POSSIBLE),
    LINE(whole_epochs, "floor_vs_ceil_steps", QUIET),
    FOUND(samples_wrong, "samples_inconsistent", CERTAIN),
    LINE(samples_right, "samples_inconsistent", QUIET),
    FOUND(no_tokens, "update_without_tokens", LIKELY),
    FOUND(bf16, "bf16_update_lost", LIKELY),
    LINE(bf16_with_master, "bf16_update_lost", NOT_ASKED),
    LINE(f32, "bf16_update_lost", QUIET),
    FOUND(decay, "decay_underflow", POSSIBLE),
    LINE(decay_large, "decay_underflow", QUIET),
};

static void examine(struct patient *p, struct doctor_report *report) {
    struct series series;
    struct fit_known known;
    struct fit_set fits;
    fit_known_init(&known);
    if (p->fits) {
        assert_int_equal(
            series_of(p->log, log_column_of(p->log, LOG_LR_LOGGED), &p->arena, &series), STATUS_OK);
        known.run_steps = p->log->rows;
        assert_int_equal(fit_series(&series, &known, &p->arena, &fits), STATUS_OK);
    }
    assert_int_equal(doctor_examine(p->log, &p->options, p->fits ? &fits : NULL, &p->arena, report),
                     STATUS_OK);
}

static struct doctor_report look(struct patient *p, void (*make)(struct patient *patient)) {
    struct doctor_report report;
    memset(p, 0, sizeof *p);
    doctor_options_init(&p->options);
    p->log = helper_dpo(&p->arena);
    make(p);
    examine(p, &report);
    return report;
}

static int has_remark(const struct doctor_report *report, const char *id) {
    for (size_t i = report->finding_count; i < report->finding_count + report->remark_count; i++)
        if (strcmp(report->findings[i].id, id) == 0) return 1;
    return 0;
}

static const struct doctor_line *line_of(const struct doctor_report *report, const char *id) {
    for (size_t i = 0; i < report->line_count; i++)
        if (strcmp(report->lines[i].id, id) == 0) return &report->lines[i];
    fail_msg("no check %s", id);
    return NULL;
}

static void check_scene(const struct scene *scene, const struct doctor_report *report) {
    const size_t wanted = scene->finding != NULL;
    for (size_t i = 0; i < report->finding_count; i++)
        if (!wanted || strcmp(report->findings[i].id, scene->finding) != 0)
            fail_msg("%s: finding %s: %s", scene->name, report->findings[i].id,
                     report->findings[i].words);
    if (report->finding_count != wanted)
        fail_msg("%s: %zu findings, not %zu", scene->name, report->finding_count, wanted);
    if (wanted && report->findings[0].confidence != scene->confidence)
        fail_msg("%s: %s", scene->name,
                 doctor_confidence_name((enum doctor_confidence)report->findings[0].confidence));
    if (scene->remark != NULL && !has_remark(report, scene->remark))
        fail_msg("%s: no remark %s", scene->name, scene->remark);
    if (scene->check == NULL) return;
    const struct doctor_line *line = line_of(report, scene->check);
    if (line->result != scene->result)
        fail_msg("%s: %s is %d (%s)", scene->name, scene->check, line->result,
                 line->why != NULL ? line->why : "");
}

static void validate_scenes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct patient p;
        const struct doctor_report report = look(&p, scenes[i].make);
        check_scene(&scenes[i], &report);
        arena_close(&p.arena);
    }
}

/* Two findings each: what breaks one rule breaks another, too. */
static void validate_pairs_of_findings(void **state) {
    (void)state;
    static const struct {
        void (*make)(struct patient *patient);
        const char *first, *second;
    } both[] = {{nan_filtered, "grad_norm_not_finite", "nan_loss_filtered"},
                {stuck_recorded, "loss_stuck_at_ln2", "zero_lr_first_step"}};
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
        struct patient p;
        const struct doctor_report report = look(&p, both[i].make);
        assert_int_equal(report.finding_count, 2);
        assert_string_equal(report.findings[0].id, both[i].first);
        assert_string_equal(report.findings[1].id, both[i].second);
        arena_close(&p.arena);
    }
}

/* Every finding and remark of every scene has words, evidence and, where it is one, a reason. */
static void verify_evidence(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct patient p;
        const struct doctor_report report = look(&p, scenes[i].make);
        for (size_t f = 0; f < report.finding_count + report.remark_count; f++) {
            const struct doctor_finding *finding = &report.findings[f];
            assert_true(strlen(finding->words) > 10);
            assert_true(finding->remark || strlen(finding->reason) > 5);
            assert_true(finding->remark || strlen(finding->next) > 5);
            if (finding->evidence_count == 0) fail_msg("%s without evidence", finding->id);
            for (size_t e = 0; e < finding->evidence_count; e++)
                assert_true(strlen(finding->evidence[e]) > 3);
        }
        for (size_t l = 0; l < report.line_count; l++)
            assert_int_equal(report.lines[l].why != NULL,
                             report.lines[l].result == DOCTOR_UNTESTABLE ||
                                 report.lines[l].result == DOCTOR_NOT_ASKED);
        arena_close(&p.arena);
    }
}

static void validate_places(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report = look(&p, loss_nan);
    assert_int_equal(report.findings[0].update, 21);
    assert_int_equal(report.findings[0].line, 31);
    assert_string_equal(report.findings[0].evidence[0], "update 21 (line 31): loss is nan");
    arena_close(&p.arena);
    report = look(&p, start_twice);
    assert_string_equal(report.findings[0].evidence[0],
                        "update 1 (line 11): loss is 1.3863 (printed to 0.0001)");
    arena_close(&p.arena);
    report = look(&p, bf16);
    assert_non_null(strstr(report.findings[0].words, "magnitude 0.0002441 or more"));
    arena_close(&p.arena);
    report = look(&p, decay);
    assert_non_null(strstr(report.findings[0].evidence[1], "applied 5.96e-08"));
    arena_close(&p.arena);
}

/* framework-semantics 3.6, finding 2. */
static void validate_frozen_table(void **state) {
    (void)state;
    static const struct {
        double lr;
        const char *limit;
    } table[] = {{5e-7, "magnitude 0.0002441 "}, {1e-6, "magnitude 0.0004883 "},
                 {5e-6, "magnitude 0.001953 "},  {1e-5, "magnitude 0.003906 "},
                 {1e-4, "magnitude 0.03125 "},   {1e-3, "magnitude 0.5 "}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct patient p;
        struct doctor_report report = look(&p, bf16);
        for (size_t row = 0; row < 60; row++)
            put(&p, LOG_LR_LOGGED, row, table[i].lr * (60.0 - (double)row) / 60.0);
        examine(&p, &report);
        assert_int_equal(report.finding_count, 1);
        assert_non_null(strstr(report.findings[0].words, table[i].limit));
        arena_close(&p.arena);
    }
}

/* The schedule's behaviour over skipped updates is said, whichever it is. */
static void validate_held(void **state) {
    (void)state;
    struct patient p;
    const struct doctor_report report = look(&p, skip_many_held);
    int held = 0;
    for (size_t i = 0; i < report.remark_count; i++)
        held |= strstr(report.findings[i].words, "the schedule held there") != NULL;
    assert_true(held);
    arena_close(&p.arena);
}

/* A bug is reported when nothing sound explains the column, not when something sound does. */
static void validate_bug_or_not(void **state) {
    (void)state;
    for (size_t sound = 0; sound < 2; sound++) {
        struct patient p;
        struct series series;
        struct doctor_report report = look(&p, healthy);
        const struct fit_segment segment = {.scale = 1.0};
        struct fit fits[2] = {{.contract = contract_find("hf"),
                               .lr = 5e-7,
                               .segments = &segment,
                               .segment_count = 1,
                               .text = "a fit",
                               .bug = "xP_scheduler"},
                              {.contract = contract_find("hf"),
                               .lr = 5e-7,
                               .segments = &segment,
                               .segment_count = 1,
                               .text = "another"}};
        struct contract_request request;
        contract_request_init(&request);
        request.contract = fits[0].contract;
        request.schedule = "linear";
        request.lr = 5e-7;
        request.steps = 60;
        assert_int_equal(contract_resolve(&request, &p.arena, &fits[0].plan), STATUS_OK);
        fits[1].plan = fits[0].plan;
        assert_int_equal(series_of(p.log, log_column_of(p.log, LOG_LR_LOGGED), &p.arena, &series),
                         STATUS_OK);
        const struct fit_set set = {.series = &series, .fits = fits, .count = 1 + sound};
        assert_int_equal(doctor_examine(p.log, &p.options, &set, &p.arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, sound ? 0 : 1);
        if (!sound) assert_string_equal(report.findings[0].id, "xP_scheduler");
        arena_close(&p.arena);
    }
}

static void validate_chance(void **state) {
    (void)state;
    struct patient p;
    const struct doctor_report report = look(&p, accuracies_of_means);
    /* (1/9 + 4/9)^60 */
    assert_non_null(strstr(report.findings[0].evidence[0], "by chance with probability 4.8"));
    assert_non_null(strstr(report.findings[0].evidence[0], "e-16"));
    arena_close(&p.arena);
}

static void validate_empty_log(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report;
    memset(&p, 0, sizeof p);
    doctor_options_init(&p.options);
    p.log = helper_log(&p.arena, 0);
    examine(&p, &report);
    assert_int_equal(report.checked, 0);
    assert_int_equal(report.finding_count + report.remark_count, 0);
    for (size_t i = 0; i < report.line_count; i++)
        assert_int_equal(report.lines[i].result, DOCTOR_UNTESTABLE);
    arena_close(&p.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_scenes),       cmocka_unit_test(validate_pairs_of_findings),
        cmocka_unit_test(verify_evidence),       cmocka_unit_test(validate_places),
        cmocka_unit_test(validate_frozen_table), cmocka_unit_test(validate_chance),
        cmocka_unit_test(validate_empty_log),    cmocka_unit_test(validate_held),
        cmocka_unit_test(validate_bug_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
