/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The thresholds of the doctor from both sides: each row of the table is one log with one number in
 * it, which is just enough for a finding, and just too little. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "tests/forensics/helper_scene.h"

#define LN2 0x1.62e42fefa39efp-1

/* A value as it was printed with this quantum. */
static void put(struct patient *p, enum log_name name, size_t row, double value, double quantum) {
    scene_put(p, name, row, value);
    for (size_t c = 0; c < p->log->column_count; c++)
        if (p->log->columns[c].name == (int32_t)name)
            p->log->columns[c].quantum[row] = (float)quantum;
}
static void fill(struct patient *p, enum log_name name, double value) {
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, name, i, value);
}
static void cut(struct patient *p, double rows) {
    p->log->rows = (size_t)rows;
}

/* ---- LR: a minimum in mid-run ---- */

/* Falls to `low` at row `at`, is `next` in the row behind, and rises slowly from there. */
static void valley(struct patient *p, size_t at, double low, double next) {
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_LR_LOGGED, i,
                  i <= at ? 1.0 - (1.0 - low) * (double)i / (double)at
                          : next + 1e-3 * (double)(i - at - 1));
}
static void valley_depth(struct patient *p, double x) {
    valley(p, 30, x, x + 0.01);
}
static void valley_jump(struct patient *p, double x) {
    valley(p, 30, 0.0, x);
}
static void valley_rows(struct patient *p, double x) {
    cut(p, x);
    valley(p, 2, 0.125, 0.25);
}
static void valley_end(struct patient *p, double x) {
    cut(p, 10);
    valley(p, (size_t)x, 0.125, 0.25);
}

/* ---- LR: 0 before the end ---- */

/* A straight line to 0 at update x, in steps of 1/x. */
static void line_to(struct patient *p, double x) {
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_LR_LOGGED, i, fmax(0.0, (x - (double)(i + 1)) / x));
}
static void zeros_at_end(struct patient *p, double x) {
    p->log->max_steps = 100;
    line_to(p, 61.0 - x);
}
static void multiple_of_schedule(struct patient *p, double x) {
    p->log->max_steps = (uint64_t)x;
    line_to(p, 40);
}
static void zero_printed_to(struct patient *p, double x) {
    line_to(p, 30);
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 1000.0 * fmax(0.0, 31.0 - (double)(i + 1)) / 30.0, x);
}
static void drop_to_zero(struct patient *p, double x) { /* x of the steps before, at once */
    p->log->max_steps = 100;
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, (double)i <= 32.0 - x ? 1.0 - (double)i / 32.0 : 0.0);
}
static void zeros_in_all(struct patient *p, double x) {
    cut(p, x);
    fill(p, LOG_LR_LOGGED, 0.0);
}
static void zeros_printed_to(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 0.0, x);
}
static void below_zero_printed_to(struct patient *p, double x) {
    put(p, LOG_LR_LOGGED, 30, -0.5, x);
}

/* ---- LR: stairs and digits ---- */

/* Stairs of `length` rows, which fall by 1 from 100. */
/* Puts an evaluation at the end of each of the first `count` stairs. */
static void evaluate_stairs(struct patient *p, size_t length, size_t count) {
    for (size_t i = length; i <= length * count && i < p->log->rows; i += length)
        scene_put(p, LOG_EVAL_LOSS, i - 1, 2.0);
}
static void stairs(struct patient *p, size_t length, double quantum) {
    for (size_t i = 0; i < p->log->rows; i++)
        put(p, LOG_LR_LOGGED, i, 100.0 - (double)(i / length), quantum);
    evaluate_stairs(p, length, p->log->rows);
}
static void stairs_rows(struct patient *p, double x) {
    cut(p, x);
    stairs(p, 2, 0.0);
}
static void stairs_number(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 100.0 - fmin(x, (double)(i / 10)));
    evaluate_stairs(p, 10, (size_t)x);
}
static void stairs_length(struct patient *p, double x) {
    stairs(p, (size_t)x, 0.0);
}
static void stairs_height(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 6.0 - (double)(i / 10), x);
    evaluate_stairs(p, 10, 6);
}
static void stairs_off_a_factor(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, ldexp(i < 50 ? 1.0 : 1.0 - x, -(int)(i / 10)));
    evaluate_stairs(p, 10, 6);
}
static void stairs_of_evals(struct patient *p, double x) { /* two evaluations that move nothing */
    stairs_number(p, 3.0);
    evaluate_stairs(p, 10, (size_t)x);
}
static void stairs_of_factor(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, pow(x, (double)(i / 10)));
    evaluate_stairs(p, 10, 6);
}
static void rows_alike(struct patient *p, double x) { /* of four changes, x are none */
    cut(p, 5);
    for (size_t i = 0; i < 5; i++)
        put(p, LOG_LR_LOGGED, i, 10.0 - fmax(0.0, (double)i - x), 1.0);
}

/* ---- LR: a warm-up without end ---- */

static void rise_from(struct patient *p, double start, size_t first, uint64_t total) {
    p->log->max_steps = total;
    for (size_t i = 0; i < p->log->rows; i++) {
        p->log->step[i] = (int64_t)(first + i);
        scene_put(p, LOG_LR_LOGGED, i, (double)(first + i) - start);
    }
}
static void rise_until(struct patient *p, double x) {
    cut(p, x);
    rise_from(p, 0.0, 1, 60);
}
static void rise_rows(struct patient *p, double x) {
    cut(p, x);
    rise_from(p, 0.0, 1, (uint64_t)x);
}
static void rise_starts(struct patient *p, double x) {
    rise_from(p, x, 31, 90);
}
static void rise_held_up(struct patient *p, double x) { /* x of 40 steps are 0 or 2 */
    cut(p, 41);
    rise_from(p, 0.0, 1, 41);
    for (size_t i = 1; (double)i < x; i += 2)
        scene_put(p, LOG_LR_LOGGED, i, (double)i);
}
static void rise_unevenly(struct patient *p, double x) {
    cut(p, 41);
    rise_from(p, 0.0, 1, 41);
    for (size_t i = 1; i < 41; i += 2)
        scene_put(p, LOG_LR_LOGGED, i, (double)(i + 1) + x);
}
static void first_above_second(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i == 0 ? x : i < 10 ? (double)i : (60.0 - (double)i) / 5.0);
}
static void first_of_peak(struct patient *p, double x) { /* as DeepSpeed's cosine begins */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i == 0 ? 10.0 * x : i <= 10 ? (double)i - 1.0 : 10.0);
}
/* ---- LR: an explanation that is a bug ---- */

static void changes_of_a_bug(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 100.0 - fmin(x, (double)i));
    p->fits = 1;
}
static void slow_changes_of_a_bug(struct patient *p, double x) { /* no row leaves its last digit */
    for (size_t i = 0; i < 60; i++)
        put(p, LOG_LR_LOGGED, i, 100.0 - (double)i, x);
    p->fits = 1;
}
static void rows_behind_a_bug(struct patient *p, double x) {
    p->fits = 60 - (int)x;
}

/* ---- resume ---- */

static void jump_from_level(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i < 30 ? 50.0 : 50.0 + x);
    helper_resume(p->log, 30, 31);
}
static void jump_from_slope(struct patient *p, double x) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i < 30 ? 100.0 - (double)i : 71.0 - x - (double)(i - 30));
    helper_resume(p->log, 30, 31);
}
/* The first 2 `pairs` rows are updates 1, 1, 2, 2, ... */
static void rows_twice(struct patient *p, size_t pairs) {
    for (size_t i = 0; i < p->log->rows; i++)
        p->log->step[i] = (int64_t)(i < 2 * pairs ? i / 2 + 1 : i - pairs + 1);
}
static void three_twice_of(struct patient *p, double x) {
    cut(p, x);
    rows_twice(p, 3);
}
static void twice_of_six(struct patient *p, double x) {
    cut(p, 6);
    rows_twice(p, (size_t)x);
}
static void loss_after_resume(struct patient *p, double x) {
    helper_resume(p->log, 40, 31);
    scene_put(p, LOG_LOSS, 30, 50.0);
    scene_put(p, LOG_LOSS, 40, x);
}

/* ---- counts ---- */

/* A complete run that ends x updates before three epochs of (191 + x) / 3. */
static void updates_missing(struct patient *p, double x) {
    p->log->step[59] = 191;
    p->log->max_steps = 191;
    scene_put(p, LOG_EPOCH, 59, 3.0 * 191.0 / (191.0 + x));
}
static void updates_of_an_epoch(struct patient *p, double x) { /* and one is missing */
    p->log->step[59] = (int64_t)(3.0 * x) - 1;
    p->log->max_steps = (uint64_t)(3.0 * x) - 1;
    scene_put(p, LOG_EPOCH, 59, (3.0 * x - 1.0) / x);
}
static void count_samples(struct patient *p, double gap, double quantum) {
    for (size_t i = 0; i < 60; i++) {
        put(p, LOG_SAMPLES, i, 8.0 * (double)(i + 1) + (i >= 30 ? gap : 0.0), quantum);
        scene_put(p, LOG_GLOBAL_BATCH, i, 8.0);
    }
}
static void samples_off(struct patient *p, double x) {
    count_samples(p, x, 0.0);
}
static void samples_printed_to(struct patient *p, double x) {
    count_samples(p, 4.0, x);
}
static void least_tokens(struct patient *p, double x) {
    scene_put(p, LOG_TOKENS, 7, x);
}

/* A counter of tokens, 100 an update. Of an update alone are rows of neighbouring updates of one
 * part of the log: the counter moves by x at row 9, behind a gap of one update at row 5; it stands
 * still at row 5, x updates behind row 4; or there, in the next part where x is 1. */
static void sum_tokens(struct patient *p, size_t at, double tokens) {
    double sum = 0.0;
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_TOKENS, i, sum += i == at ? tokens : 100.0);
    for (size_t c = 0; c < p->log->column_count; c++)
        if (p->log->columns[c].name == LOG_TOKENS) p->log->columns[c].cumulative = 1;
}
static void shift_rows(struct patient *p, size_t from, int64_t updates) {
    for (size_t i = from; i < p->log->rows; i++)
        p->log->step[i] += updates;
}
static void tokens_behind_a_gap(struct patient *p, double x) {
    sum_tokens(p, 9, x);
    shift_rows(p, 5, 1);
}
static void tokens_over_updates(struct patient *p, double x) {
    sum_tokens(p, 5, 0.0);
    shift_rows(p, 5, (int64_t)x - 1);
}
static void tokens_over_parts(struct patient *p, double x) {
    sum_tokens(p, 5, 0.0);
    for (size_t i = 5; i < p->log->rows; i++)
        p->log->part[i] += (uint32_t)x;
}

/* ---- start of a preference training ---- */

static void start(struct patient *p, double loss, double quantum, double margin) {
    put(p, LOG_LOSS, 0, loss, quantum);
    scene_put(p, LOG_REWARD_MARGIN, 0, margin);
    scene_put(p, LOG_REWARD_CHOSEN, 0, 0.5 * margin);
    scene_put(p, LOG_REWARD_REJECTED, 0, -0.5 * margin);
}
static void start_off(struct patient *p, double x) {
    start(p, LN2 + x, 0.0, 0.1);
}
static void start_off_printed(struct patient *p, double x) {
    start(p, LN2 + x, 0.01, 0.1);
}
static void start_off_four(struct patient *p, double x) {
    start(p, 4.0 * LN2 + x, 0.0, 0.0);
}
static void start_at_many(struct patient *p, double x) {
    start(p, x * LN2, 0.0, 0.0);
}
static void start_at_two_printed_to(struct patient *p, double x) {
    start(p, 2.0 * LN2, x, 0.0);
}
static void start_margin(struct patient *p, double x) {
    start(p, LN2 + 4e-4, 0.0, x);
}
/* How far rewards of 0.01 let the loss lie above ln 2, and a margin of -0.2 below -ln sigmoid. */
static void start_away(struct patient *p, double x) {
    start(p, LN2 + x, 0.0, 0.01);
}
static void start_below(struct patient *p, double x) {
    start(p, x, 0.0, -0.2);
}
static void start_reward(struct patient *p, double x) {
    start(p, 0.8, 0.0, 0.0);
    fill(p, LOG_LOGP_CHOSEN, -100.0);
    fill(p, LOG_LOGP_REJECTED, -100.0);
    scene_put(p, LOG_REWARD_CHOSEN, 0, x);
}
static void rewards_of_logps(struct patient *p, double x) { /* beta, and x beta */
    start(p, 0.8, 0.0, 0.0);
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_REWARD_CHOSEN, i, 0.1 * helper_value(p->log, LOG_LOGP_CHOSEN, i));
        scene_put(p, LOG_REWARD_REJECTED, i, 0.1 * x * helper_value(p->log, LOG_LOGP_REJECTED, i));
    }
}

static void rewards_until(struct patient *p, double x) { /* of one beta, but for row x */
    rewards_of_logps(p, 1.0);
    scene_put(p, LOG_REWARD_CHOSEN, (size_t)x,
              0.11 * helper_value(p->log, LOG_LOGP_CHOSEN, (size_t)x));
}

static void hold(struct patient *p, size_t rows, double quantum, double reward) {
    fill(p, LOG_LR_LOGGED, 1e-6);
    for (size_t i = 0; i < rows; i++) {
        put(p, LOG_LOSS, i, LN2, quantum);
        put(p, LOG_REWARD_CHOSEN, i, reward, quantum);
        put(p, LOG_REWARD_REJECTED, i, reward, quantum);
        put(p, LOG_REWARD_MARGIN, i, reward, quantum);
    }
}
static void held_rows_printed(struct patient *p, double x) {
    hold(p, (size_t)x, 1e-4, 0.0);
}
static void held_rewards(struct patient *p, double x) {
    hold(p, 10, 0.0, x);
}
static void held_at_lr(struct patient *p, double x) {
    hold(p, 4, 0.0, 0.0);
    scene_put(p, LOG_LR_LOGGED, 1, x * 1e-6);
}
static void second_loss_printed_to(struct patient *p, double x) {
    hold(p, 2, x, 0.0);
    put(p, LOG_LOSS, 0, 1.0, x);
    put(p, LOG_LOSS, 1, 1.0, x);
    fill(p, LOG_LR_APPLIED, 1e-6);
}

/* ---- rewards ---- */

static void margins(struct patient *p, size_t from, double x) {
    fill(p, LOG_REWARD_CHOSEN, 1.0);
    fill(p, LOG_REWARD_REJECTED, 0.0);
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_REWARD_MARGIN, i, i < from ? 1.0 : 1.0 + x);
}
static void margin_off(struct patient *p, double x) {
    margins(p, 0, x);
}
static void three_margins_off_of(struct patient *p, double x) {
    cut(p, x);
    margins(p, (size_t)x - 3, 0.5);
}
static void margins_off_of_six(struct patient *p, double x) {
    cut(p, 6);
    margins(p, 6 - (size_t)x, 0.5);
}
static void margins_negated(struct patient *p, double x) { /* of 60 that are off */
    margins(p, 0, 0.5);
    for (size_t i = 0; (double)i < x; i++)
        scene_put(p, LOG_REWARD_MARGIN, i, -1.0);
}
/* Accuracies of 0 and 1 in turn, beside losses of which `above` are those of several pairs. */
static void accuracies(struct patient *p, double rows, size_t above) {
    cut(p, rows);
    for (size_t i = 0; i < p->log->rows; i++) {
        scene_put(p, LOG_REWARD_ACCURACY, i, (double)(i % 2));
        scene_put(p, LOG_REWARD_MARGIN, i, 0.0);
        scene_put(p, LOG_LOSS, i, i < above ? 0.8 : LN2);
    }
}
static void accuracies_rows(struct patient *p, double x) {
    accuracies(p, x, 0);
    p->options.pairs = 4;
}
static void accuracies_of_batch(struct patient *p, double x) {
    accuracies(p, 10, 0);
    fill(p, LOG_GLOBAL_BATCH, x);
}
static void accuracies_by_loss(struct patient *p, double x) {
    accuracies(p, 10, (size_t)x);
}
static void accuracies_by_loss_of(struct patient *p, double x) {
    accuracies(p, 20, 20);
    for (size_t i = (size_t)x; i < 20; i++) /* these rows say nothing of pairs */
        scene_put(p, LOG_REWARD_MARGIN, i, (double)NAN);
}
static void swapped(struct patient *p, size_t rows, size_t negative, size_t low, double margin) {
    cut(p, (double)rows);
    for (size_t i = 0; i < rows; i++) {
        scene_put(p, LOG_REWARD_MARGIN, i, rows - i <= negative ? margin : 0.1);
        scene_put(p, LOG_REWARD_ACCURACY, i, rows - i <= low ? 0.25 : 0.75);
    }
}
static void swapped_rows(struct patient *p, double x) {
    swapped(p, (size_t)x, 10, 10, -0.1);
}
static void swapped_margins(struct patient *p, double x) {
    swapped(p, 30, (size_t)x, 10, -0.1);
}
static void swapped_accuracies(struct patient *p, double x) {
    swapped(p, 30, 10, (size_t)x, -0.1);
}
static void swapped_by(struct patient *p, double x) {
    swapped(p, 30, 10, 10, x);
}
static void swapped_from(struct patient *p, double x) { /* the last third is all that counts */
    swapped(p, 30, (size_t)x, 30, -0.1);
}
static void losses_below(struct patient *p, double first, double rows, size_t below, double loss) {
    cut(p, rows);
    for (size_t i = 0; i < p->log->rows; i++) {
        scene_put(p, LOG_REWARD_MARGIN, i, 0.0);
        scene_put(p, LOG_LOSS, i, i == 0 ? first : p->log->rows - i <= below ? loss : LN2);
    }
}
static void bound_start(struct patient *p, double x) {
    losses_below(p, LN2 + x, 60, 59, 0.3);
}
static void bound_loss(struct patient *p, double x) {
    losses_below(p, LN2, 60, 59, x);
}
static void bound_three_of(struct patient *p, double x) {
    losses_below(p, LN2, x, 3, 0.3);
}
static void bound_of_five(struct patient *p, double x) {
    losses_below(p, LN2, 5, (size_t)x, 0.3);
}

/* ---- values ---- */

static void norms_zero(struct patient *p, double rows, size_t zeros, double quantum) {
    cut(p, rows);
    for (size_t i = 0; i < p->log->rows; i++)
        put(p, LOG_GRAD_NORM, i, i < zeros ? 0.0 : 1.0, quantum);
}
static void three_norms_zero_of(struct patient *p, double x) {
    norms_zero(p, x, 3, 0.0);
}
static void norms_zero_of_four(struct patient *p, double x) {
    norms_zero(p, 4, (size_t)x, 0.0);
}
static void norms_printed_to(struct patient *p, double x) {
    norms_zero(p, 60, 60, x);
}
static void language_model(struct patient *p, double first) {
    const struct helper_training training = {60, 3, 0, 8, 4, PRINT_E2, 1.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
    scene_put(p, LOG_LOSS, 0, first);
    p->options.vocab = 32000;
}
static void fresh_off(struct patient *p, double x) {
    language_model(p, log(32000.0) + x);
}
static void vocabulary_of(struct patient *p, double x) {
    language_model(p, log(x));
    p->options.vocab = (uint64_t)x;
}
static void fresh_sum_off(struct patient *p, double x) {
    language_model(p, 4.0 * log(32000.0) + x);
}
static void skip_last(struct patient *p, double rows, size_t tail) {
    cut(p, rows);
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_SKIPPED, i, p->log->rows - i <= tail ? 1.0 : 0.0);
}
static void skip_last_of_fifty(struct patient *p, double x) {
    skip_last(p, 50, (size_t)x);
}
static void skip_last_five_of(struct patient *p, double x) {
    skip_last(p, x, 5);
}
/* Rows of ten updates, of each of which so many were skipped: ten are all. */
static void skips_of_ten(struct patient *p, double x) {
    for (size_t i = 0; i < p->log->rows; i++) {
        p->log->step[i] = (int64_t)(10 * (i + 1));
        scene_put(p, LOG_SKIPPED, i, x);
    }
}
static void skips_of_ten_in_all(struct patient *p, double x) { /* a running total */
    for (size_t i = 0; i < p->log->rows; i++) {
        p->log->step[i] = (int64_t)(10 * (i + 1));
        scene_put(p, LOG_SKIPPED, i, x * (double)(i + 1));
    }
    p->log->columns[p->log->column_count - 1].cumulative = 1;
}
static void logp_in_a_row(struct patient *p, double x) {
    put(p, LOG_LOGP_CHOSEN, 20, x, 1e-6);
}
static void samples_in_a_row(struct patient *p, double x) {
    for (size_t i = 0; i < p->log->rows; i++) {
        scene_put(p, LOG_SAMPLES, i, i == 20 ? x : 8.0 * (double)(i + 1));
        scene_put(p, LOG_GLOBAL_BATCH, i, 8.0);
    }
}
static void skip_many(struct patient *p, double x) { /* while the LR goes on */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_SKIPPED, i, i >= 5 && i % 4 == 1 && (double)(i / 4) <= x ? 1.0 : 0.0);
}

/* ---- the whole log ---- */

static void writers(struct patient *p, double x) { /* falls back x times */
    cut(p, 2.0 * x + 1.0);
    for (size_t i = 0; i < p->log->rows; i++)
        p->log->step[i] = (int64_t)(i % 2 == 0 ? 1 + i / 2 : 101 + i / 2);
}
static void evaluate(struct patient *p, double ratio, double count) {
    language_model(p, 2.5);
    for (size_t i = 0; (double)i < count; i++)
        scene_put(p, LOG_EVAL_LOSS, 10 * i + 9, helper_value(p->log, LOG_LOSS, 10 * i + 9) / ratio);
}
static void evaluated_at(struct patient *p, double x) {
    evaluate(p, x, 3);
}
static void evaluations(struct patient *p, double x) {
    evaluate(p, 4.0, x);
}
static void logps_printed_to(struct patient *p, double x) {
    put(p, LOG_LOGP_CHOSEN, 5, 0.0, x);
}
static void bf16_at(struct patient *p, double x) {
    p->options.dtype_given = p->options.master_none = 1;
    p->options.dtype = DTYPE_BF16;
    fill(p, LOG_LR_LOGGED, x);
}
static void decay_of(struct patient *p, double x) { /* in steps of the factor, 2^-24 */
    p->options.weight_decay = 0.5;
    fill(p, LOG_LR_LOGGED, x * 0x1p-23);
}

static void decay_behind_zero(struct patient *p, double x) { /* the first rows have LR 0 */
    decay_of(p, x);
    scene_put(p, LOG_LR_LOGGED, 0, 0.0);
    scene_put(p, LOG_LR_LOGGED, 1, 0.0);
}

/* Quanta of decimals as a reader stores them: binary32, rounded up. */
#define THREE_DECIMALS 0x1.0624dep-10
#define NINE_DECIMALS 0x1.12e0cp-30

#define EDGE(make, found, quiet, id)                                                               \
    { #make, make, found, quiet, id }

/* Tokens counted to 1000, printed to the next 10, and from then on x lower and printed exactly:
 * what was printed as 1000 may have been 995. */
static void counter_lower_by(struct patient *p, double x) {
    for (size_t i = 0; i < p->log->rows; i++)
        put(p, LOG_TOKENS, i, i < 30 ? 1000.0 : 1000.0 - x, i < 30 ? 10.0 : 0.0);
    for (size_t c = 0; c < p->log->column_count; c++)
        if (p->log->columns[c].name == LOG_TOKENS) p->log->columns[c].cumulative = 1;
}

/* Updates 6 to 10 stand twice, as behind a resume, before the counter falls. */
static void counter_lower_behind_a_resume(struct patient *p, double x) {
    counter_lower_by(p, x);
    for (size_t i = 10; i < p->log->rows; i++)
        p->log->step[i] -= 5;
}

static const struct edge {
    const char *name;
    void (*make)(struct patient *p, double x);
    double found, quiet;
    const char *id;
} edges[] = {
    EDGE(valley_depth, 0.49, 0.5, "lr_rises_past_end"),
    EDGE(valley_jump, 0.25, 0.26, "lr_rises_past_end"),
    EDGE(valley_rows, 6, 5, "lr_rises_past_end"),
    EDGE(valley_end, 7, 8, "lr_rises_past_end"),
    EDGE(line_to, 49, 50, "lr_ends_early"),
    EDGE(zeros_at_end, 2, 1, "lr_ends_early"),
    EDGE(multiple_of_schedule, 83, 84, "lr_zero_at_1/N_of_run"),
    EDGE(multiple_of_schedule, 84, 83, "lr_ends_early"),
    EDGE(multiple_of_schedule, 77, 76, "lr_zero_at_1/N_of_run"),
    EDGE(zero_printed_to, 100.0, 100.0001, "lr_zero_at_1/N_of_run"),
    EDGE(drop_to_zero, 3, 4, "lr_ends_early"),
    EDGE(zeros_in_all, 3, 2, "lr_zero_throughout"),
    EDGE(zeros_printed_to, NINE_DECIMALS, 1.1e-9, "lr_zero_throughout"),
    EDGE(below_zero_printed_to, 0.99, 1.0, "lr_negative"),
    EDGE(stairs_rows, 8, 7, "eval_steps_scheduler"),
    EDGE(stairs_number, 3, 2, "eval_steps_scheduler"),
    EDGE(stairs_length, 2, 1, "eval_steps_scheduler"),
    EDGE(stairs_of_evals, 4, 5, "eval_steps_scheduler"),
    EDGE(stairs_height, 0.25, 0.26, "eval_steps_scheduler"),
    EDGE(stairs_off_a_factor, 2.1e-6, 0.9e-6, "eval_steps_scheduler"),
    EDGE(stairs_of_factor, 0.9991, 0.9989, "eval_steps_scheduler"),
    EDGE(rows_alike, 2, 1, "lr_printed_coarsely"),
    EDGE(rise_until, 57, 56, "warmup_never_ends"),
    EDGE(rise_rows, 6, 5, "warmup_never_ends"),
    EDGE(rise_starts, 29.5, 30, "warmup_never_ends"),
    EDGE(rise_starts, -2.5, -3, "warmup_never_ends"),
    EDGE(rise_held_up, 10, 12, "warmup_never_ends"),
    EDGE(rise_unevenly, 0.0199, 0.0201, "warmup_never_ends"),
    EDGE(first_above_second, 2.1, 2.0, "step_then_set"),
    EDGE(first_of_peak, 0.011, 0.009, "step_then_set"),
    EDGE(counter_lower_by, 5.5, 4.5, "counter_falls"),
    EDGE(counter_lower_behind_a_resume, 5.5, 4.5, "counter_falls"),
    EDGE(changes_of_a_bug, 12, 11, "double_counter"),
    EDGE(slow_changes_of_a_bug, 3, 4, "double_counter"),
    EDGE(rows_behind_a_bug, 8, 7, "double_counter"),
    EDGE(jump_from_level, 1.5, 1.0, "lr_jump_at_resume"),
    EDGE(jump_from_slope, 5.5, 5.4, "lr_jump_at_resume"),
    EDGE(three_twice_of, 9, 10, "rows_of_several_processes"),
    EDGE(twice_of_six, 3, 2, "rows_of_several_processes"),
    EDGE(loss_after_resume, 51.5, 51, "resume_sees_other_data"),
    EDGE(updates_missing, 0.6, 0.4, "floor_vs_ceil_steps"),
    EDGE(updates_missing, 3.4, 3.6, "floor_vs_ceil_steps"),
    EDGE(updates_of_an_epoch, 51, 49, "floor_vs_ceil_steps"),
    EDGE(samples_off, 0.5, 0.49, "samples_inconsistent"),
    EDGE(samples_off, -0.5, -0.49, "samples_inconsistent"),
    EDGE(samples_printed_to, 1.0, 1.5, "samples_inconsistent"),
    EDGE(least_tokens, 0.4, 0.5, "update_without_tokens"),
    EDGE(tokens_behind_a_gap, 0.4, 0.5, "update_without_tokens"),
    EDGE(tokens_over_updates, 1, 2, "update_without_tokens"),
    EDGE(tokens_over_parts, 0, 1, "update_without_tokens"),
    EDGE(start_off, 3.1e-5, 2.9e-5, "ref_batch_shape"),
    EDGE(start_off_printed, 0.0053, 0.0052, "ref_batch_shape"),   /* from ln 2 in f16 */
    EDGE(start_off_printed, -0.0068, -0.0067, "ref_batch_shape"), /* and in bf16 */
    EDGE(start_off_four, 1.1e-4, 1.3e-4, "loss_summed_over_ranks"),
    EDGE(start_at_many, 1477, 1478, "loss_summed_over_ranks"),
    EDGE(start_at_two_printed_to, 0.09, 0.1, "loss_summed_over_ranks"),
    EDGE(start_margin, 7e-5, 5e-5, "ref_batch_shape"),
    EDGE(start_away, 0.1999, 0.2001, "ref_batch_shape"),
    EDGE(start_below, 0.759, 0.757, "ref_batch_shape"),
    EDGE(start_reward, 1.01, 1.0, "other_reference"),
    EDGE(rewards_of_logps, 1.021, 1.019, "other_reference"),
    EDGE(rewards_until, 19, 20, "other_reference"),
    EDGE(held_rows_printed, 21, 20, "loss_stuck_at_ln2"),
    EDGE(held_rewards, 0.9e-9, 1.1e-9, "loss_stuck_at_ln2"),
    EDGE(held_at_lr, 0.5, 0.49, "loss_stuck_at_ln2"),
    EDGE(second_loss_printed_to, 1.9e-6, 2.1e-6, "zero_lr_first_step"),
    EDGE(margin_off, 0.0158, 0.0157, "margin_averaging"),
    EDGE(three_margins_off_of, 9, 10, "margin_averaging"),
    EDGE(margins_off_of_six, 3, 2, "margin_averaging"),
    EDGE(margins_negated, 48, 47, "margin_sign"),
    EDGE(accuracies_rows, 10, 9, "accuracy_of_means"),
    EDGE(accuracies_of_batch, 2, 1, "accuracy_of_means"),
    EDGE(accuracies_by_loss, 5, 4, "accuracy_of_means"),
    EDGE(accuracies_by_loss_of, 5, 4, "accuracy_of_means"),
    EDGE(swapped_rows, 30, 29, "labels_swapped"),
    EDGE(swapped_margins, 9, 8, "labels_swapped"),
    EDGE(swapped_accuracies, 9, 8, "labels_swapped"),
    EDGE(swapped_by, -1.1e-4, -1e-4, "labels_swapped"),
    EDGE(swapped_from, 9, 0, "labels_swapped"),
    EDGE(bound_start, 0.0099, 0.0101, "loss_below_margin_bound"),
    EDGE(bound_start, -0.0099, -0.0101, "loss_below_margin_bound"),
    EDGE(bound_loss, 0.6583, 0.6585, "loss_below_margin_bound"),
    EDGE(bound_three_of, 6, 7, "loss_below_margin_bound"),
    EDGE(bound_three_of, 5, 4, "loss_below_margin_bound"),
    EDGE(bound_of_five, 3, 2, "loss_below_margin_bound"),
    EDGE(three_norms_zero_of, 6, 7, "no_gradient"),
    EDGE(norms_zero_of_four, 3, 2, "no_gradient"),
    EDGE(norms_printed_to, 0.9e-6, 1.1e-6, "no_gradient"),
    EDGE(fresh_off, 0.34, 0.36, "weights_reinitialised"),
    EDGE(fresh_off, -0.34, -0.36, "weights_reinitialised"),
    EDGE(vocabulary_of, 2, 1, "weights_reinitialised"),
    EDGE(fresh_sum_off, 0.39, 0.41, "loss_not_divided"),
    EDGE(fresh_sum_off, -0.39, -0.41, "loss_not_divided"),
    EDGE(skip_last_of_fifty, 5, 4, "nan_skip_poison"),
    EDGE(skip_last_five_of, 50, 51, "nan_skip_poison"),
    EDGE(skips_of_ten, 10, 9, "nan_skip_poison"),
    EDGE(skips_of_ten_in_all, 10, 9, "nan_skip_poison"),
    EDGE(logp_in_a_row, 0.0, NAN, "no_labelled_token"),
    EDGE(samples_in_a_row, 9.0, NAN, "samples_inconsistent"),
    EDGE(skip_many, 11, 10, "skip_advances_schedule"),
    EDGE(writers, 6, 5, "interleaved_writers"),
    EDGE(evaluated_at, 4.31, 4.33, "loss_not_divided"),
    EDGE(evaluated_at, 3.69, 3.67, "loss_not_divided"),
    EDGE(evaluated_at, 4095, 4096, "loss_not_divided"),
    EDGE(evaluations, 3, 2, "loss_not_divided"),
    EDGE(logps_printed_to, THREE_DECIMALS, 1.1e-3, "no_labelled_token"),
    EDGE(bf16_at, 0x1p-8, 0x1.02p-8, "bf16_update_lost"),
    EDGE(decay_of, 1.12, 1.10, "decay_underflow"),
    EDGE(decay_of, 0.9, 0.92, "decay_underflow"),
    EDGE(decay_behind_zero, 0.9, 0.92, "decay_underflow"),
};

/* Makes an explanation of the LR column that is a bug, from row `from` on. */
static void explain(const struct patient *p, size_t from, struct arena *arena,
                    struct fit_set *out) {
    struct contract_request request;
    struct fit_segment *segments;
    struct series *series;
    struct fit *fit;
    assert_int_equal(arena_take(arena, 1, sizeof *fit, "fit", &fit), STATUS_OK);
    assert_int_equal(arena_take(arena, 1, sizeof *series, "series", &series), STATUS_OK);
    assert_int_equal(arena_take(arena, 2, sizeof *segments, "segments", &segments), STATUS_OK);
    segments[0] = (struct fit_segment){.scale = 1.0};
    segments[1] = (struct fit_segment){.point = from, .scale = 1.0, .event = FIT_DOUBLED};
    contract_request_init(&request);
    request.contract = contract_find("hf");
    request.schedule = "linear";
    request.lr = 5e-7;
    request.steps = 60;
    *fit = (struct fit){.contract = request.contract,
                        .lr = 5e-7,
                        .stride = 1.0,
                        .segments = segments,
                        .segment_count = from > 1 ? 2 : 1,
                        .text = "a fit",
                        .bug = "double_counter"};
    assert_int_equal(contract_resolve(&request, arena, &fit->plan), STATUS_OK);
    fit->schedule = fit->plan.schedule;
    assert_int_equal(series_of(p->log, log_column_of(p->log, LOG_LR_LOGGED), arena, series),
                     STATUS_OK);
    *out = (struct fit_set){.series = series, .fits = fit, .count = 1};
}

/* Tells whether the doctor makes that finding, or, of what is only ever said as one, that remark.
 */
static int says(const struct edge *edge, double x) {
    struct patient p;
    struct doctor_report report;
    struct fit_set fits;
    int found = 0;
    memset(&p, 0, sizeof p);
    doctor_options_init(&p.options);
    p.log = helper_dpo(&p.arena);
    edge->make(&p, x);
    if (p.fits > 0) explain(&p, (size_t)p.fits, &p.arena, &fits);
    assert_int_equal(
        doctor_examine(p.log, &p.options, p.fits > 0 ? &fits : NULL, &p.arena, &report), STATUS_OK);
    const size_t count = strcmp(edge->id, "lr_printed_coarsely") == 0
                             ? report.finding_count + report.remark_count
                             : report.finding_count;
    for (size_t i = 0; i < count; i++)
        found |= strcmp(report.findings[i].id, edge->id) == 0;
    arena_close(&p.arena);
    return found;
}

static void validate_edges(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        const int found = says(&edges[i], edges[i].found), quiet = !says(&edges[i], edges[i].quiet);
        if (found && quiet) continue;
        wrong++;
        print_message("%s: %s %s\n", edges[i].name, edges[i].id,
                      found ? "also where there is too little" : "is not found");
    }
    assert_int_equal(wrong, 0);
}

/* Fresh weights start within a tenth of ln(vocabulary); further off, they are only possible. */
static void validate_how_fresh(void **state) {
    (void)state;
    static const double offs[] = {0.099, -0.099, 0.101, -0.101, 0.15};
    for (size_t i = 0; i < COUNT_OF(offs); i++) {
        struct patient p;
        struct doctor_report report;
        int confidence = -1;
        memset(&p, 0, sizeof p);
        doctor_options_init(&p.options);
        fresh_off(&p, offs[i]);
        assert_int_equal(doctor_examine(p.log, &p.options, NULL, &p.arena, &report), STATUS_OK);
        for (size_t f = 0; f < report.finding_count; f++)
            if (strcmp(report.findings[f].id, "weights_reinitialised") == 0)
                confidence = (int)report.findings[f].confidence;
        assert_int_equal(confidence, fabs(offs[i]) < 0.1 ? DOCTOR_LIKELY : DOCTOR_POSSIBLE);
        arena_close(&p.arena);
    }
}

/* At exactly 0.35 from it nothing is said: with a vocabulary of 2 that is a loss which a log can
 * have. */
static void validate_no_longer_fresh(void **state) {
    (void)state;
    const double uniform = real_log_f64(2.0);
    for (int below = 0; below < 2; below++) {
        struct patient p;
        struct doctor_report report;
        int found = 0;
        memset(&p, 0, sizeof p);
        doctor_options_init(&p.options);
        const double first = uniform - (below ? nextafter(0.35, 0.0) : 0.35);
        assert_true(below || uniform - first == 0.35);
        language_model(&p, first);
        p.options.vocab = 2;
        assert_int_equal(doctor_examine(p.log, &p.options, NULL, &p.arena, &report), STATUS_OK);
        for (size_t f = 0; f < report.finding_count; f++)
            found |= strcmp(report.findings[f].id, "weights_reinitialised") == 0;
        assert_int_equal(found, below);
        arena_close(&p.arena);
    }
}

/* What shows that the schedule was not installed: the LRs of the first three updates, in order. */
static void validate_three_rates_in_evidence(void **state) {
    (void)state;
    struct patient p;
    struct doctor_report report;
    size_t found = 0;
    memset(&p, 0, sizeof p);
    doctor_options_init(&p.options);
    p.log = helper_dpo(&p.arena);
    first_above_second(&p, 3.0);
    assert_int_equal(doctor_examine(p.log, &p.options, NULL, &p.arena, &report), STATUS_OK);
    for (size_t i = 0; i < report.finding_count; i++) {
        if (strcmp(report.findings[i].id, "step_then_set") != 0) continue;
        assert_int_equal(report.findings[i].evidence_count, 3);
        for (size_t e = 0; e < 3; e++) {
            char update[16];
            snprintf(update, sizeof update, "update %zu", e + 1);
            assert_non_null(strstr(report.findings[i].evidence[e], update));
        }
        found++;
    }
    assert_int_equal(found, 1);
    arena_close(&p.arena);
}

/* What an update 1 that changed nothing is said to be, by which explanations of the LR column apply
 * 0 there: a warm-up from f(0) = 0 does, a line that falls from the peak does not. */
static void validate_who_applies_zero_first(void **state) {
    (void)state;
    static const char *const words[2][2] = {
        {", so the LR it applied was 0, or it was skipped.",
         ", although every explanation found of the LR column applies more than 0 there."},
        {", so the LR it applied was 0, or it was skipped.",
         "; of the contracts that explain the LR column this leaves those that apply LR 0 there."}};
    for (size_t zero = 0; zero < 2; zero++)
        for (size_t other = 0; other < 2; other++) {
            struct patient p;
            struct doctor_report report;
            struct fit_set set;
            struct fit fits[2];
            const char *said = NULL;
            size_t count = 0;
            memset(&p, 0, sizeof p);
            doctor_options_init(&p.options);
            p.log = helper_dpo(&p.arena);
            hold(&p, 2, 0.0, 0.0);
            explain(&p, 1, &p.arena, &set);
            fits[0] = fits[1] = set.fits[0];
            if (zero) fits[count++].plan.call.warmup = 10.0;
            if (other) fits[count++] = set.fits[0];
            set.fits = fits;
            set.count = count;
            assert_int_equal(doctor_examine(p.log, &p.options, &set, &p.arena, &report), STATUS_OK);
            for (size_t i = 0; i < report.finding_count + report.remark_count; i++)
                if (strcmp(report.findings[i].id, "zero_lr_first_step") == 0)
                    said = report.findings[i].words;
            assert_non_null(said);
            assert_non_null(strstr(said, "update 1 changed nothing"));
            assert_string_equal(strstr(said, "nothing") + strlen("nothing"), words[zero][other]);
            arena_close(&p.arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_edges),
        cmocka_unit_test(validate_how_fresh),
        cmocka_unit_test(validate_no_longer_fresh),
        cmocka_unit_test(validate_who_applies_zero_first),
        cmocka_unit_test(validate_three_rates_in_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
