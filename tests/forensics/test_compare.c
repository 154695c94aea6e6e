/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The comparison of two logs: classes of difference and precision, alignment over resumes, the
 * order of first differences, and what that order means. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "forensics/words.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_pair.h"

/* Holds all that is said of a case against the committed text. */
static void pin(const char *name, const struct compare_report *report) {
    golden_comparison(golden_begin("compare.txt", "%s", name), report);
    golden_end();
}

/* ---- classes ---- */

static void validate_equal(void **state) {
    (void)state;
    struct pair p;
    const struct compare_report *report = pair_compare(pair_open(&p));
    pin("equal", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(pair_column(report, LOG_LOSS)->class_of, COMPARE_EQUAL);
    assert_int_equal(pair_column(report, LOG_LOSS)->equal, 60);
    assert_int_equal(pair_column(report, LOG_EPOCH)->class_of, COMPARE_WITHIN); /* two decimals */
    assert_int_equal(report->order_count, 0);
    assert_int_equal(report->ratio_count, 0);
    assert_int_equal(report->from, 1);
    assert_int_equal(report->to, 60);
    arena_close(&p.arena);
}

static void validate_within(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    p.log[1] = pair_trained(&p.arena, 4);
    const struct compare_report *report = pair_compare(&p);
    pin("within", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(pair_column(report, LOG_LOSS)->class_of, COMPARE_WITHIN);
    arena_close(&p.arena);
}

static void validate_one_unit_more(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    p.log[1] = pair_trained(&p.arena, 4);
    const double value = helper_value(p.log[1], LOG_LOSS, 30);
    helper_put(&p.arena, p.log[1], LOG_LOSS, 30, value + 0.0002, 4);
    const struct compare_report *report = pair_compare(&p);
    pin("one unit more", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
    assert_int_equal(pair_column(report, LOG_LOSS)->different, 1);
    assert_int_equal(pair_column(report, LOG_LOSS)->first_update, 31);
    assert_int_equal(pair_column(report, LOG_LOSS)->first[1].row, 30);
    assert_int_equal(report->order_count, 1);
    arena_close(&p.arena);
}

static void validate_not_in_both(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    helper_drop(p.log[1], LOG_LOSS);
    helper_drop(p.log[0], LOG_GRAD_NORM);
    p.log[0]->columns[0].cumulative = 0;
    for (size_t c = 0; c < p.log[0]->column_count; c++)
        if (p.log[0]->columns[c].name == LOG_TOKENS) p.log[0]->columns[c].cumulative = 1;
    const struct compare_report *report = pair_compare(&p);
    pin("not in both", report);
    assert_string_equal(pair_column(report, LOG_LOSS)->why, "only A has it");
    assert_string_equal(pair_column(report, LOG_GRAD_NORM)->why, "only B has it");
    assert_string_equal(pair_column(report, LOG_TOKENS)->why,
                        "one is a running total, the other is of each update");
    arena_close(&p.arena);
}

static void validate_nothing_in_common(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++)
        p.log[1]->step[row] += 100;
    const struct compare_report *report = pair_compare(&p);
    pin("nothing in common", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_UNTESTABLE);
    assert_string_equal(pair_column(report, LOG_LOSS)->why, "no update is in both");
    arena_close(&p.arena);
}

/* Update 1 alone shows what was computed before anything was trained, its loss too. */
static void validate_first_row_alone(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    p.log[1]->rows = 1;
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_UNTESTABLE);
    assert_non_null(strstr(report->why, "no row in both lies behind the first update that trains"));
    arena_close(&p.arena);
}

/* A mean over ten updates is not the value of the tenth, so the two are not compared. */
static void validate_windows(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 6; row++)
        p.log[1]->step[row] = (int64_t)row * 10 + 10;
    p.log[1]->rows = 6;
    for (size_t c = 0; c < p.log[1]->column_count; c++)
        p.log[1]->columns[c].windowed = p.log[1]->columns[c].name == LOG_LOSS;
    const struct compare_report *report = pair_compare(&p);
    pin("windows", report);
    assert_int_equal(pair_column(report, LOG_LOSS)->class_of, COMPARE_ABSENT);
    assert_string_equal(pair_column(report, LOG_LOSS)->why, "means over different windows");
    assert_int_equal(pair_column(report, LOG_LOSS)->unlike, 6);
    assert_int_equal(pair_column(report, LOG_GRAD_NORM)->pairs, 6);
    arena_close(&p.arena);
}

/* ---- alignment ---- */

/* B stopped after update 40 and continued from 31: its first rows 31 to 40 belong to a training
 * that was given up. */
static void validate_later_rows_win(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    struct log *log = helper_log(&p.arena, 70);
    for (size_t row = 0; row < 70; row++) {
        const size_t source = row < 40 ? row : row - 10;
        const double wrong = row >= 30 && row < 40 ? 0.5 : 0.0;
        helper_put(&p.arena, log, LOG_LOSS, row, helper_value(p.log[0], LOG_LOSS, source) + wrong,
                   PRINT_EXACT);
    }
    helper_resume(log, 40, 31);
    p.log[1] = log;
    const struct compare_report *report = pair_compare(&p);
    pin("later rows win", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(report->repeated[1], 10);
    assert_int_equal(report->repeated[0], 0);
    assert_int_equal(pair_column(report, LOG_LOSS)->pairs, 60);
    arena_close(&p.arena);
}

static void verify_order_of_rows_is_free(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++) { /* a permutation: 7 and 60 have no common factor */
        const size_t source = row * 7 % 60;
        p.log[1]->step[row] = (int64_t)source + 1;
        for (size_t c = 0; c < p.log[1]->column_count; c++) {
            p.log[1]->columns[c].value[row] = p.log[0]->columns[c].value[source];
            p.log[1]->columns[c].quantum[row] = p.log[0]->columns[c].quantum[source];
        }
    }
    const struct compare_report *report = pair_compare(&p);
    pin("order of rows is free", report);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(pair_column(report, LOG_LOSS)->equal, 60);
    arena_close(&p.arena);
}

/* ---- order and meaning ---- */

struct scene {
    const char *name;
    void (*make)(struct pair *pair);
    int first; /* enum log_name that differs first */
    int32_t cause;
    const char *meaning;
};

static void other_tokens(struct pair *p) {
    pair_scale(p, 1, LOG_TOKENS, 0, 0.9);
    pair_scale(p, 1, LOG_LOSS, 0, 1.1);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 0.7);
}
/* Whatever moves the forward pass moves the policy's log-probs. */
static void move_policy(struct pair *p, size_t from) {
    pair_scale(p, 1, LOG_LOGP_CHOSEN, from, 1.000001);
    pair_scale(p, 1, LOG_LOGP_REJECTED, from, 1.000001);
}
static void forward_noise(struct pair *p) {
    move_policy(p, 0);
    pair_scale(p, 1, LOG_LOSS, 0, 1.0001);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 1.0002);
}
/* The same beside another schedule: the first difference alone does not tell which makes the gap.
 */
static void forward_noise_beside_lrs(struct pair *p) {
    forward_noise(p);
    pair_scale(p, 1, LOG_LR_LOGGED, 2, 1.01);
}
/* The last of 17 digits differs where two formulas of one schedule round otherwise. */
static void forward_noise_beside_rounded_lrs(struct pair *p) {
    forward_noise(p);
    pair_scale(p, 1, LOG_LR_LOGGED, 2, 1.0 + 0x1p-49);
}
static void other_reference(struct pair *p) {
    for (size_t s = 0; s < 2; s++) {
        helper_drop(p->log[s], LOG_REWARD_CHOSEN);
        helper_drop(p->log[s], LOG_REWARD_REJECTED);
        helper_drop(p->log[s], LOG_REWARD_MARGIN);
    }
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_LOSS, row, helper_value(p->log[1], LOG_LOSS, row) + 0.1);
}
/* A smoothing so small that the loss moves by as little as rounding moves it, while the log-probs
 * of update 1 and the rewards are the same numbers. */
static void smoothed_little(struct pair *p) {
    pair_scale(p, 1, LOG_LOSS, 0, 1.0001);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 0.9998);
    move_policy(p, 1);
}
/* The same where one log-prob moves by little, too: then that may be what moves the loss. */
static void smoothed_or_rounded(struct pair *p) {
    smoothed_little(p);
    pair_scale(p, 1, LOG_LOGP_REJECTED, 0, 1.000001);
}
/* A small gap in the loss beside gradients far apart is no rounding. */
static void other_weights(struct pair *p) {
    move_policy(p, 0);
    for (size_t row = 0; row < 60; row++) {
        pair_put(p, 1, LOG_LOSS, row,
                 1.005 * helper_value(p->log[1], LOG_LOSS, row) + (double)row * 1e-5);
        pair_put(p, 1, LOG_GRAD_NORM, row,
                 (2.0 + 0.01 * (double)row) * helper_value(p->log[1], LOG_GRAD_NORM, row));
    }
}
/* Losses and gradients as another seed draws them: the same level, other batches. */
static void other_seed(struct pair *p) {
    move_policy(p, 0);
    for (size_t row = 0; row < 60; row++) {
        const double wave = 0.2 * (double)(row * 7 % 11) - 1.0;
        const double norm = 0.15 * (double)(row * 5 % 13) - 0.9;
        for (size_t s = 0; s < 2; s++) {
            const double sign = s == 0 ? 1.0 : -1.0;
            pair_put(p, s, LOG_LOSS, row, 2.3 * (1.0 + 0.008 * sign * wave));
            pair_put(p, s, LOG_GRAD_NORM, row, 1.5 * (1.0 + 0.05 * sign * norm));
        }
    }
}
/* A mean of means beside the mean: 0.3 % of a loss that varies by 3 % from row to row. */
static void mean_of_means(struct pair *p) {
    move_policy(p, 0);
    for (size_t row = 0; row < 60; row++) {
        const double loss = 2.3 * (1.0 + 0.03 * (double)(row * 7 % 11));
        pair_put(p, 0, LOG_LOSS, row, loss);
        pair_put(p, 1, LOG_LOSS, row, loss * (1.0 + 0.003 * (double)(row % 3 + 3)));
    }
}
/* The same where the two means of update 1 are alike by chance, and those of the next ones are not;
 * and where those of updates 1 and 2 are apart, neither of which moves a weight. */
static void mean_alike_by_chance(struct pair *p) {
    mean_of_means(p);
    pair_put(p, 1, LOG_LOSS, 0, 1.0002 * helper_value(p->log[0], LOG_LOSS, 0));
}
static void mean_alike_before_a_zero(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_LOGGED, row, 1e-7 * (double)row);
    move_policy(p, 0);
    for (size_t row = 0; row < 60; row++) {
        const double loss = 2.3 * (1.0 + 0.03 * (double)(row * 7 % 11));
        pair_put(p, 0, LOG_LOSS, row, loss);
        pair_put(p, 1, LOG_LOSS, row, loss * (row == 1 ? 1.009 : 1.0002));
    }
}
/* Rewards of update 1 are 0 in one log; beside rounding of the log-probabilities they are not. */
static void rewards_from_rounding(struct pair *p) {
    pair_scale(p, 1, LOG_LOSS, 0, 0.9999);
    pair_scale(p, 1, LOG_LOGP_CHOSEN, 0, 1.000001);
    pair_put(p, 1, LOG_REWARD_CHOSEN, 0, 7e-5);
    pair_put(p, 1, LOG_REWARD_REJECTED, 0, -7e-5);
    pair_put(p, 1, LOG_REWARD_MARGIN, 0, 1.4e-4);
}
/* A warm-up from 0: update 1 moves nothing, so the forward pass of update 2 is still that of the
 * initial weights, and the gap there is rounding and no schedule. */
static void after_a_zero(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_APPLIED, row, 1e-7 * (double)row);
    move_policy(p, 1);
    pair_scale(p, 1, LOG_LOSS, 1, 1.0001);
}
static void put_warmup(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_LOGGED, row, 1e-7 * (double)row);
}
/* The same where the LR is only printed: no rounding begins at update 2. */
static void moved_unseen(struct pair *p) {
    put_warmup(p);
    pair_scale(p, 1, LOG_LOSS, 1, 1.0001);
    pair_scale(p, 1, LOG_GRAD_NORM, 1, 1.0001);
}
/* The same, and of that row the policy's log-probs agree: the reference's do not, so nothing moved.
 * A table of them that was computed with another batch shape in bf16 differs in few rows. */
static void reference_rounded(struct pair *p) {
    moved_unseen(p);
    pair_put(p, 1, LOG_REWARD_REJECTED, 1, helper_value(p->log[1], LOG_REWARD_REJECTED, 1) + 4e-5);
}
static void reference_of_others(struct pair *p) {
    pair_scale(p, 1, LOG_LOSS, 0, 1.01);
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_REWARD_CHOSEN, row,
                 helper_value(p->log[1], LOG_REWARD_CHOSEN, row) + 0.3);
}
static void moved_unseen_coarsely(struct pair *p) {
    moved_unseen(p);
    move_policy(p, 1);
    for (size_t s = 0; s < 2; s++)
        helper_put(&p->arena, p->log[s], LOG_GRAD_NORM, 0, 1.5, 1);
}
static void other_data_after_a_zero(struct pair *p) {
    put_warmup(p);
    move_policy(p, 1);
    for (size_t row = 1; row < 60; row++)
        pair_put(p, 1, LOG_LOSS, row, helper_value(p->log[1], LOG_LOSS, row) + 0.1);
}
static void summed(struct pair *p) {
    pair_scale(p, 1, LOG_LOSS, 0, 4.0);
}
static void other_backward(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_GRAD_NORM, row,
                 helper_value(p->log[1], LOG_GRAD_NORM, row) *
                     (1.0 + 0.001 * (double)(row % 7 + 1)));
    for (size_t row = 1; row < 60; row++)
        pair_put(p, 1, LOG_LOSS, row,
                 helper_value(p->log[1], LOG_LOSS, row) * (1.0 + 0.0001 * (double)(row % 5 + 1)));
    pair_part(p, 60, 1.0);
}
/* IPO of sums: the gradient is longer by about the tokens of an answer, and margins part behind. */
static void other_slope(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_GRAD_NORM, row,
                 helper_value(p->log[1], LOG_GRAD_NORM, row) * (8.0 + (double)(row * 7 % 5)));
    for (size_t row = 1; row < 60; row++) {
        pair_scale(p, 1, LOG_LOSS, row, 0.97);
        pair_put(p, 1, LOG_REWARD_MARGIN, row,
                 helper_value(p->log[1], LOG_REWARD_MARGIN, row) + 0.01 * (double)row);
    }
}
static void other_means(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_LOGP_CHOSEN, row,
                 helper_value(p->log[1], LOG_LOGP_CHOSEN, row) * (1.02 + 0.01 * (double)(row % 5)));
}
static void other_accuracy(struct pair *p) {
    pair_put(p, 0, LOG_REWARD_ACCURACY, 0, 0.0);
    pair_put(p, 1, LOG_REWARD_ACCURACY, 0, 1.0);
    pair_scale(p, 1, LOG_LOSS, 30, 1.01);
}
static void lost_micro_batch(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        pair_put(p, 1, LOG_GRAD_NORM, row,
                 helper_value(p->log[1], LOG_GRAD_NORM, row) * (0.5 + 0.05 * (double)(row % 7)));
    pair_scale(p, 1, LOG_LOGP_CHOSEN, 40, 1.001); /* other steps show in the end */
}
static void divided(struct pair *p) {
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 2.0);
}
/* Clipping before unscale_, against unscale_ first: both print the scale. */
static void put_scale(struct pair *p, double scale) {
    for (size_t side = 0; side < 2; side++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, side, LOG_LOSS_SCALE, row, scale);
}
static void clipped_before_unscale(struct pair *p) {
    put_scale(p, 1024.0);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 1024.0);
    pair_part(p, 1, 0.97);
}
static void divided_beside_a_scale(struct pair *p) {
    put_scale(p, 1024.0);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 2.0);
    pair_part(p, 1, 0.97);
}
/* Beta 0.2 in the place of 0.1 under AdamW: the first step is the same, and rewards are twice as
 * large. A gradient norm of twice the size is no other division then. */
static void other_beta(struct pair *p) {
    pair_scale(p, 1, LOG_REWARD_CHOSEN, 1, 2.0);
    pair_scale(p, 1, LOG_REWARD_REJECTED, 1, 2.0);
    pair_scale(p, 1, LOG_REWARD_MARGIN, 1, 2.0);
    pair_scale(p, 1, LOG_GRAD_NORM, 0, 2.0);
    pair_scale(p, 1, LOG_LOSS, 1, 0.97);
}
static void other_smoothing(struct pair *p) {
    pair_scale(p, 1, LOG_REWARD_CHOSEN, 1, 1.00001);
    pair_scale(p, 1, LOG_LOSS, 1, 0.97);
}
/* Another step moves log-probabilities, rewards and the loss, each by what the one before does. */
static void other_step_of_pairs(struct pair *p) {
    for (size_t row = 1; row < 60; row++) {
        const double gap = 0.3 * helper_value(p->log[1], LOG_REWARD_CHOSEN, row);
        pair_put(p, 1, LOG_LOGP_CHOSEN, row,
                 helper_value(p->log[1], LOG_LOGP_CHOSEN, row) + gap / 0.1);
    }
    pair_scale(p, 1, LOG_REWARD_CHOSEN, 1, 1.3);
    pair_scale(p, 1, LOG_REWARD_MARGIN, 1, 1.3);
    pair_scale(p, 1, LOG_LOSS, 1, 0.999);
}
/* One row that was written wrong is no other loss. */
static void wrong_row(struct pair *p) {
    pair_put(p, 1, LOG_LOSS, 1, 0.97 * helper_value(p->log[1], LOG_LOSS, 1));
}
static void put_linear(struct pair *p) {
    for (size_t s = 0; s < 2; s++) {
        helper_drop(p->log[s], LOG_LOGP_CHOSEN);
        helper_drop(p->log[s], LOG_LOGP_REJECTED);
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_LOGGED, row, 5e-7 * (59.0 - (double)row) / 60.0);
        pair_fit(p, s, NULL);
    }
}
/* The rewards behind the first step are apart as two neighbours of the printed LRs are, and not. */
static void lr_by_rewards(struct pair *p) {
    put_linear(p);
    pair_scale(p, 1, LOG_LOSS, 1, 0.9999);
    pair_scale(p, 1, LOG_REWARD_CHOSEN, 1, 59.0 / 60.0);
    pair_scale(p, 1, LOG_REWARD_REJECTED, 1, 59.0 / 60.0);
    pair_scale(p, 1, LOG_REWARD_MARGIN, 1, 59.0 / 60.0);
}
static void step_by_rewards(struct pair *p) {
    put_linear(p);
    pair_scale(p, 1, LOG_LOSS, 1, 0.9999);
    pair_scale(p, 1, LOG_REWARD_CHOSEN, 1, 59.0 / 60.0);
    pair_scale(p, 1, LOG_REWARD_REJECTED, 1, 0.99);
}
/* A DPO log of loss and LR alone: its first row is that of any training. */
static void loss_alone(struct pair *p) {
    static const enum log_name dropped[] = {LOG_GRAD_NORM, LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED,
                                            LOG_TOKENS};
    for (size_t i = 0; i < COUNT_OF(dropped); i++)
        for (size_t s = 0; s < 2; s++)
            helper_drop(p->log[s], dropped[i]);
    pair_part(p, 1, 0.97);
}
static void gradient_alone(struct pair *p) {
    loss_alone(p);
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_GRAD_NORM, row,
                     (5.0 + (double)(row * 7 % 5)) * (s == 0 ? 1.0 : 1.001));
}
static void other_lr(struct pair *p) {
    pair_scale(p, 1, LOG_LR_LOGGED, 0, 1.25);
    pair_scale(p, 1, LOG_LOSS, 1, 0.97);
    pair_scale(p, 1, LOG_GRAD_NORM, 1, 0.97);
}
static void second_update(struct pair *p) {
    helper_drop(p->log[0], LOG_LR_LOGGED);
    pair_part(p, 1, 0.97);
}
static void later(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_APPLIED, row, 1e-6);
    pair_scale(p, 1, LOG_LOSS, 30, 1.01);
}
/* Adam's count stands still behind its first step: the losses of updates 1 and 2 are the same. */
static void other_count(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_APPLIED, row, 1e-6);
    pair_scale(p, 1, LOG_LOSS, 2, 1.01);
}
/* Rows 1, 3, 5: none shows what follows the first step alone. */
static void rows_apart(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            p->log[s]->step[row] = (int64_t)(2 * row + 1);
    pair_scale(p, 1, LOG_LOSS, 1, 1.01);
}
/* A warm-up from 0 as several contracts print it: some apply the LR of row 1, which is 0, and some
 * that of row 2. */
static void first_of_a_warmup(struct pair *p) {
    put_warmup(p);
    for (size_t s = 0; s < 2; s++)
        pair_fit(p, s, NULL);
    pair_scale(p, 1, LOG_LOSS, 2, 1.01);
}
/* Twenty updates later every contract has stepped before. */
static void behind_a_warmup(struct pair *p) {
    put_warmup(p);
    for (size_t s = 0; s < 2; s++)
        pair_fit(p, s, NULL);
    pair_scale(p, 1, LOG_LOSS, 22, 1.01);
}
static void other_step(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_APPLIED, row, 1e-6);
    pair_part(p, 1, 1.01);
}
static void other_step_printed(struct pair *p) {
    pair_part(p, 1, 1.01);
    pair_fit(p, 0, "hf");
    pair_fit(p, 1, "hf");
}
static void middle(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            p->log[s]->step[row] += 500;
    pair_scale(p, 1, LOG_LOSS, 0, 1.1);
}

static void other_rates_before(struct pair *p) { /* the LRs part before the counts do */
    pair_scale(p, 1, LOG_LR_LOGGED, 2, 1.01);
    pair_scale(p, 1, LOG_TOKENS, 5, 1.5);
    pair_scale(p, 1, LOG_LOSS, 5, 1.01);
}

static const struct scene scenes[] = {
    {"other_tokens", other_tokens, LOG_TOKENS, CAUSE_DATA_ORDER, "Counts of tokens"},
    {"other_rates_before", other_rates_before, LOG_LR_LOGGED, CAUSE_DATA_ORDER,
     "differ no later than losses and gradients"},
    {"forward_noise", forward_noise, LOG_LOSS, CAUSE_DTYPE, "A small gap is already"},
    {"forward_noise_beside_lrs", forward_noise_beside_lrs, LOG_LOSS, CAUSE_DTYPE,
     "The LRs differ, too: what differs first need not"},
    {"forward_noise_beside_rounded_lrs", forward_noise_beside_rounded_lrs, LOG_LOSS, CAUSE_DTYPE,
     "if weights, data and loss are the same."},
    {"other_reference", other_reference, LOG_LOSS, -1, "of the reference, which no reward shows"},
    {"smoothed_little", smoothed_little, LOG_LOSS, -1, "not: another loss type or its parameters"},
    {"smoothed_or_rounded", smoothed_or_rounded, LOG_LOSS, CAUSE_DTYPE, "A small gap is already"},
    {"other_weights", other_weights, LOG_LOSS, -1, "differs by more than"},
    {"other_seed", other_seed, LOG_LOSS, -1, "differs by more than rounding"},
    {"mean_of_means", mean_of_means, LOG_LOSS, -1, "a mean of means"},
    {"mean_alike_by_chance", mean_alike_by_chance, LOG_LOSS, -1, "a mean of means"},
    {"mean_alike_before_a_zero", mean_alike_before_a_zero, LOG_LOSS, -1, "a mean of means"},
    {"rewards_from_rounding", rewards_from_rounding, LOG_LOSS, CAUSE_DTYPE, "A small gap"},
    {"after_a_zero", after_a_zero, LOG_LOSS, CAUSE_DTYPE, "updates 1 to 2 count as update 1"},
    {"moved_unseen", moved_unseen, LOG_LOSS, CAUSE_SCHEDULE, "the weights had moved"},
    {"reference_rounded", reference_rounded, LOG_LOSS, CAUSE_DTYPE, "log-probs of the reference"},
    {"reference_of_others", reference_of_others, LOG_LOSS, -1, "another reference, or another"},
    {"moved_unseen_coarsely", moved_unseen_coarsely, LOG_LOSS, CAUSE_DTYPE, "count as update 1"},
    {"other_data_after_a_zero", other_data_after_a_zero, LOG_LOSS, -1, "differs by more than"},
    {"other_means", other_means, LOG_LOGP_CHOSEN, -1, "averaged or gathered"},
    {"other_accuracy", other_accuracy, LOG_REWARD_ACCURACY, -1, "a gap opens later"},
    {"lost_micro_batch", lost_micro_batch, LOG_GRAD_NORM, -1, "more than kernels"},
    {"other_slope", other_slope, LOG_GRAD_NORM, -1, "another loss, whose value is the same"},
    {"summed", summed, LOG_LOSS, CAUSE_NORMALISATION, "divided by another number"},
    {"other_backward", other_backward, LOG_GRAD_NORM, CAUSE_NONDETERMINISM, "its gradient does"},
    {"divided", divided, LOG_GRAD_NORM, CAUSE_NORMALISATION, "fixed ratio"},
    {"clipped_before_unscale", clipped_before_unscale, LOG_GRAD_NORM, CAUSE_SCHEDULE,
     "clip_scaled_grads"},
    {"other_beta", other_beta, LOG_GRAD_NORM, CAUSE_OBJECTIVE, "scaled by (beta)"},
    {"other_smoothing", other_smoothing, LOG_LOSS, CAUSE_OBJECTIVE, "label smoothing"},
    {"other_step_of_pairs", other_step_of_pairs, LOG_LOSS, -1, "do not tell them apart"},
    {"wrong_row", wrong_row, LOG_LOSS, -1, "do not tell them apart"},
    {"lr_by_rewards", lr_by_rewards, LOG_LOSS, CAUSE_SCHEDULE, "follow each other"},
    {"step_by_rewards", step_by_rewards, LOG_LOSS, -1, "do not tell them apart"},
    {"loss_alone", loss_alone, LOG_LOSS, -1, "what differs first cannot be told"},
    {"gradient_alone", gradient_alone, LOG_GRAD_NORM, -1, "as little as dtype"},
    {"divided_beside_a_scale", divided_beside_a_scale, LOG_GRAD_NORM, CAUSE_NORMALISATION,
     "fixed ratio"},
    {"other_lr", other_lr, LOG_LR_LOGGED, CAUSE_SCHEDULE, "another LR: the schedule"},
    {"second_update", second_update, LOG_LOSS, -1, "These logs do not tell them apart"},
    {"other_step", other_step, LOG_LOSS, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"other_step_printed", other_step_printed, LOG_LOSS, -1, "does not prove those"},
    {"later", later, LOG_LOSS, -1, "a gap opens later"},
    {"rows_apart", rows_apart, LOG_LOSS, -1, "The updates between are not logged"},
    {"first_of_a_warmup", first_of_a_warmup, LOG_LOSS, -1, "do not agree on the first update"},
    {"behind_a_warmup", behind_a_warmup, LOG_LOSS, -1, "a gap opens later"},
    {"other_count", other_count, LOG_LOSS, -1, "optimizer arithmetic"},
    {"middle", middle, LOG_LOSS, -1, "no early update in common"}};

/* Which LRs differ beside a small gap, and which do not: a storage in binary32, or what an LR that
 * only one log records leaves to the printed ones. */
static void validate_lrs_beside_noise(void **state) {
    (void)state;
    enum { STORED_F32, ONE_APPLIED, NOT_A_NUMBER, APART, LR_CASES };
    for (int how = 0; how < LR_CASES; how++) {
        struct pair p;
        pair_open(&p);
        forward_noise(&p);
        for (size_t row = 0; row < 60; row++) {
            const double lr = helper_value(p.log[0], LOG_LR_LOGGED, row);
            pair_put(&p, 0, LOG_LR_LOGGED, row, lr);
            pair_put(&p, 1, LOG_LR_LOGGED, row,
                     how == STORED_F32    ? (double)(float)lr
                     : how == ONE_APPLIED ? 2.0 * lr
                     : how == APART       ? lr * (1.0 + 1e-5)
                                          : lr);
            if (how == ONE_APPLIED) pair_put(&p, 0, LOG_LR_APPLIED, row, lr);
        }
        if (how == NOT_A_NUMBER) pair_put(&p, 1, LOG_LR_LOGGED, 6, (double)NAN);
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->cause, CAUSE_DTYPE);
        assert_int_equal(pair_column(report, LOG_LR_LOGGED)->class_of, COMPARE_DIFFERENT);
        if ((strstr(report->meaning, "The LRs differ, too") != NULL) != (how != STORED_F32))
            fail_msg("case %d: %s", how, report->meaning);
        arena_close(&p.arena);
    }
}

/* Equal logs of a training that trained nothing are no evidence. */
static void validate_nothing_trained(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++)
            for (size_t row = 0; row < 60; row++) {
                if (how == 0) pair_put(&p, s, LOG_LR_LOGGED, row, 0.0);
                if (how == 1) pair_put(&p, s, LOG_GRAD_NORM, row, 0.0);
            }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict,
                         how < 2 ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL);
        pin(how == 0 ? "LR 0" : how == 1 ? "norm 0" : "trained", report);
        if (how < 2) assert_non_null(strstr(report->why, "proves nothing"));
        arena_close(&p.arena);
    }
}

static void validate_order(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct pair p;
        scenes[i].make(pair_open(&p));
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
        pin(scenes[i].name, report);
        const int first = report->columns[report->order[0]].name;
        if (first != scenes[i].first || report->cause != scenes[i].cause ||
            strstr(report->meaning, scenes[i].meaning) == NULL)
            fail_msg("%s: %s, cause %d: %s", scenes[i].name, log_names[first].name, report->cause,
                     report->meaning);
        assert_true(strlen(report->next) > 10);
        arena_close(&p.arena);
    }
}

/* ---- one training printed in two ways is equal ---- */

static void verify_printers_agree(void **state) {
    (void)state;
    static const int prints[] = {PRINT_FLOAT, PRINT_BINARY32, 4, PRINT_E6, PRINT_E2, 2};
    for (uint64_t seed = 1; seed <= 36; seed++) {
        struct pair p;
        memset(&p, 0, sizeof p);
        for (size_t s = 0; s < 2; s++) {
            const struct helper_training training = {
                .rows = 50 + seed,
                .seed = seed,
                .preference = seed % 3 != 0,
                .pairs = 4,
                .print = prints[s == 0 ? (seed - 1) / 6 : (seed - 1) % 6],
                .print_lr = s == 0 ? PRINT_EXACT : PRINT_E2,
                .drift = 1.0};
            p.log[s] = helper_trained(&p.arena, &training);
        }
        const struct compare_report *report = pair_compare(&p);
        if (report->verdict != COMPARE_VERDICT_EQUAL)
            fail_msg("seed %llu: %s", (unsigned long long)seed,
                     log_names[report->columns[report->order[0]].name].name);
        arena_close(&p.arena);
    }
}

/* The spacing of an exact column is that of the narrowest of bf16, binary32 and binary64 that holds
 * all of its values; a printed one has its last digit. */
static void validate_spacing(void **state) {
    (void)state;
    static const struct {
        double values[2], spacing;
    } cases[] = {{{1.5, -0.25}, 0x1p-7}, /* of a value of 1 */
                 {{1.5, 0x1.000002p0}, 0x1p-23},
                 {{0x1.000002p0, 0.1}, 0x1p-52}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct series_point points[2] = {{.value = cases[i].values[0]},
                                         {.value = cases[i].values[1]}};
        const struct series series = {.points = points, .count = 2};
        assert_true(series_spacing(&series, -2.0, 0.0) == 2.0 * cases[i].spacing);
        assert_true(series_spacing(&series, 2.0, 0.01) == 0.01);
    }
}

/* Three equal rows of a constant LR: hundreds of explanations, and of a log beside itself none is
 * another one. */
static void verify_one_column_has_one_example(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t s = 0; s < 2; s++) {
        for (size_t row = 0; row < 60; row++)
            pair_put(&p, s, LOG_LR_LOGGED, row, 1e-5);
        pair_fit(&p, s, NULL);
    }
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(report->lr.state, COMPARE_LR_UNTESTABLE);
    assert_non_null(strstr(report->lr.words, "nothing else points to the LR"));
    assert_string_equal(report->lr.fit[0]->text, report->lr.fit[1]->text);
    assert_int_equal(report->lr.first_update, 0);
    arena_close(&p.arena);
}

/* A loss of NaN in both logs is no agreement of numbers, and a loss that is named and never printed
 * is none at all. */
static void validate_broken_losses(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++) {
            for (size_t row = 0; row < 60 && how == 0; row++)
                pair_put(&p, s, LOG_LOSS, row,
                         row < 30   ? 1.0
                         : row < 45 ? (double)NAN
                                    : (double)INFINITY);
            p.log[s]->blank_loss = (how & 1 << s) != 0; /* of A, of B, of both */
        }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->order_count, 0);
        if (how == 0) {
            assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
            assert_int_equal(pair_column(report, LOG_LOSS)->not_finite, 30);
            assert_non_null(strstr(report->why, "NaN or infinite in both (30 of 60 of loss)"));
        } else {
            assert_int_equal(report->verdict, COMPARE_VERDICT_UNTESTABLE);
            assert_non_null(strstr(report->why, how == 3   ? "both logs name the loss"
                                                : how == 1 ? "A names the loss"
                                                           : "B names the loss"));
        }
        arena_close(&p.arena);
    }
}

/* Losses of one row in 60 that agree say so; those of half of the rows are a log's way to print. */
static void validate_few_losses(void **state) {
    (void)state;
    for (size_t every = 1; every <= 60; every = every == 1 ? 2 : every + 29) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++) {
            helper_drop(p.log[s], LOG_LOSS);
            for (size_t row = 0; row < 60; row += every)
                pair_put(&p, s, LOG_LOSS, row, 2.0 - 0.01 * (double)row);
        }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
        const char *const few = strstr(report->why, "the loss was compared at 2 of 60 rows only");
        if ((few != NULL) != (every == 31)) fail_msg("%zu: %s", every, report->why);
        arena_close(&p.arena);
    }
}

/* Where nothing could have been seen, equal is no answer: losses that share update 1 alone, before
 * any step, and ones whose three digits are the same in every row. One loss of a later row, in logs
 * whose losses move, could have been seen to differ. */
static void validate_what_could_not_be_seen(void **state) {
    (void)state;
    static const char *const why[] = {"compared at no update behind the first that trains",
                                      "changes by more than its printed precision", NULL};
    for (int how = 0; how < 3; how++) {
        struct pair p;
        memset(&p, 0, sizeof p);
        for (size_t s = 0; s < 2; s++) {
            p.log[s] = helper_log(&p.arena, 60);
            for (size_t row = 0; row < 60; row++) {
                const int shared = how == 1 || row == (how == 0 ? 0 : 40);
                if (shared || row % 2 == s)
                    pair_put(&p, s, LOG_LOSS, row, how == 1 ? 0.693 : 2.0 - 0.01 * (double)row);
                pair_put(&p, s, LOG_TOKENS, row, 1000.0);
            }
        }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->order_count, 0);
        assert_int_equal(report->verdict,
                         why[how] != NULL ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL);
        if (why[how] != NULL && strstr(report->why, why[how]) == NULL) fail_msg("%s", report->why);
        arena_close(&p.arena);
    }
}

/* Rows of both agree and one log ends. Rows that are written every so many updates end before the
 * training does, so that a log whose next row is not due has not ended. */
static void validate_a_log_that_ends_early_is_not_equal(void **state) {
    (void)state;
    static const struct {
        size_t rows[2];
        int64_t apart[2]; /* updates from row to row */
        const char *ended;
    } cases[] = {{{60, 60}, {1, 1}, ""},
                 {{60, 30}, {1, 1}, "B ends at update 30 and A goes on to 60"},
                 {{59, 60}, {1, 1}, "A ends at update 59 and B goes on to 60"},
                 {{60, 8}, {1, 7}, ""}, /* 56, and the next row is due at 63 */
                 {{60, 7}, {1, 7}, "B ends at update 49 and A goes on to 60"},
                 {{24, 12}, {5, 10}, ""}};
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const int common = i % 2 == 1, ends = cases[i / 2].ended[0] != '\0';
        struct pair p;
        memset(&p, 0, sizeof p);
        for (size_t s = 0; s < 2; s++) {
            p.log[s] = helper_log(&p.arena, cases[i / 2].rows[s]);
            p.input[s].may_end = common;
            for (size_t row = 0; row < p.log[s]->rows; row++) {
                const double update = (double)(cases[i / 2].apart[s] * (int64_t)(row + 1));
                p.log[s]->step[row] = (int64_t)update;
                pair_put(&p, s, LOG_LOSS, row, 2.5 - 0.01 * update);
                pair_put(&p, s, LOG_GRAD_NORM, row, 1.0 + 0.01 * update);
                pair_put(&p, s, LOG_LR_LOGGED, row, 1e-6 * update);
            }
        }
        const struct compare_report *report = pair_compare(&p);
        assert_string_equal(report->ended, cases[i / 2].ended);
        assert_int_equal(report->undecided, ends && !common);
        if (report->verdict !=
            (ends && !common ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL))
            fail_msg("%zu: %s", i, report->why);
        assert_true((strstr(report->why, cases[i / 2].ended) != NULL) &&
                    (strstr(report->why, "--common") != NULL) == ends);
        arena_close(&p.arena);
    }
}

/* A preference loss stands at ln 2 in its first rows. Where one log ends there, no pair shows
 * anything, however the other log goes on; where it has two rows more, they do. */
static void validate_a_flat_beginning_proves_nothing(void **state) {
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct pair p;
        memset(&p, 0, sizeof p);
        for (size_t s = 0; s < 2; s++) {
            p.log[s] = helper_log(&p.arena, s == 0 ? 60 : 5 + 2 * more);
            for (size_t row = 0; row < p.log[s]->rows; row++)
                pair_put(&p, s, LOG_LOSS, row, row < 5 ? 0.6931 : 0.6931 - 0.01 * (double)row);
        }
        for (size_t s = 0; s < 2; s++)
            for (size_t row = 0; row < p.log[s]->rows; row++)
                pair_put(&p, s, LOG_LR_LOGGED, row, 1e-6 * (double)(row + 1));
        p.input[0].may_end = p.input[1].may_end = 1;
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->order_count, 0);
        assert_int_equal(report->verdict,
                         more ? COMPARE_VERDICT_EQUAL : COMPARE_VERDICT_UNTESTABLE);
        if (!more && strstr(report->why, "changes by more than its printed precision") == NULL)
            fail_msg("%s", report->why);
        arena_close(&p.arena);
    }
}

/* Whole epochs and parts of them are not held against each other; two columns of whole ones, or of
 * parts, are. */
static void validate_epochs(void **state) {
    (void)state;
    static const struct {
        double a[3], b[3];
        const char *why;
        int class_of;
    } cases[] = {
        {{0, 0, 1}, {0.25, 0.5, 1.0}, "A counts whole epochs, B parts of them", COMPARE_ABSENT},
        {{0.25, 0.5, 1.0}, {0, 0, 1}, "B counts whole epochs, A parts of them", COMPARE_ABSENT},
        {{0, 0, 1}, {1.25, 1.5, 2.0}, "A counts whole epochs, B parts of them", COMPARE_ABSENT},
        {{0, 1, 1}, {0, 0, 1}, NULL, COMPARE_DIFFERENT},
        {{0.25, 0.5, 1.0}, {0.125, 0.25, 0.5}, NULL, COMPARE_DIFFERENT},
        {{1, 2, 3}, {1, 2, 3}, NULL, COMPARE_EQUAL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++) {
            p.log[s]->rows = 3;
            for (size_t row = 0; row < 3; row++)
                pair_put(&p, s, LOG_EPOCH, row, s == 0 ? cases[i].a[row] : cases[i].b[row]);
        }
        const struct compare_report *const report = pair_compare(&p);
        const struct compare_column *const column = pair_column(report, LOG_EPOCH);
        assert_int_equal(column->class_of, cases[i].class_of);
        if (cases[i].why != NULL) assert_string_equal(column->why, cases[i].why);
        if (cases[i].why != NULL) assert_int_equal(column->pairs, 0);
        arena_close(&p.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_epochs),
        cmocka_unit_test(validate_equal),
        cmocka_unit_test(validate_within),
        cmocka_unit_test(validate_one_unit_more),
        cmocka_unit_test(validate_not_in_both),
        cmocka_unit_test(validate_nothing_in_common),
        cmocka_unit_test(validate_first_row_alone),
        cmocka_unit_test(validate_windows),
        cmocka_unit_test(validate_later_rows_win),
        cmocka_unit_test(verify_order_of_rows_is_free),
        cmocka_unit_test(validate_lrs_beside_noise),
        cmocka_unit_test(validate_nothing_trained),
        cmocka_unit_test(validate_order),
        cmocka_unit_test(validate_spacing),
        cmocka_unit_test(verify_one_column_has_one_example),
        cmocka_unit_test(validate_broken_losses),
        cmocka_unit_test(validate_few_losses),
        cmocka_unit_test(validate_what_could_not_be_seen),
        cmocka_unit_test(validate_a_log_that_ends_early_is_not_equal),
        cmocka_unit_test(validate_a_flat_beginning_proves_nothing),
        cmocka_unit_test(verify_printers_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
