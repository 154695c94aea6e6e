/* SPDX-License-Identifier: Apache-2.0
 * Scenes of learning rates, resumes, counts and number formats. A scene is one change to a healthy
 * log, and what the doctor must say of it. */
#include "tests/forensics/helper_scene.h"

#include <math.h>
#include <stddef.h>

#define LN2 0x1.62e42fefa39efp-1

/* ---- LR ---- */

static void set_lr(struct patient *p, double (*lr)(size_t row)) {
    for (size_t i = 0; i < p->log->rows; i++)
        scene_put(p, LOG_LR_LOGGED, i, lr(i));
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
static double restarts_from_floor(size_t row) { /* held at its minimum for ten updates before */
    return row < 30 ? 1e-6 * (1.0 - (double)row / 33.0) : row < 40 ? 1e-7 : 1e-6;
}
static double begins_anew(size_t row) { /* constant behind a warm-up of 14, anew from update 31 */
    return row % 30 < 14 ? 1e-6 * ((double)(row % 30) / 14.0) : 1e-6;
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
static void lr_restarts_from_floor(struct patient *p) {
    set_lr(p, restarts_from_floor);
}
static void lr_begins_anew(struct patient *p) {
    set_lr(p, begins_anew);
    p->fits = 1;
}
/* Three rows of the second warm-up: those of the first one, with nothing that explains the column,
 * and in a log of every tenth update LRs of no other row, which the fit explains. */
static void lr_anew_cut(struct patient *p) {
    set_lr(p, begins_anew);
    p->log->rows = 33;
}
static void lr_anew_sparse(struct patient *p) {
    p->log->rows = 33;
    for (size_t i = 0; i < 33; i++) {
        const double n = 10.0 * (double)i + (i < 30 ? 9.0 : -296.0);
        p->log->step[i] = 10 * (int64_t)(i + 1);
        scene_put(p, LOG_LR_LOGGED, i, n < 60.0 ? 1e-4 * (n / 60.0) : 1e-4 * (330.0 - n) / 270.0);
    }
    p->log->max_steps = 330;
    p->fits = 1;
}
/* The same where nothing is known that explains the column: rows of other updates on one line. */
static void lr_anew_unexplained(struct patient *p) {
    lr_anew_sparse(p);
    p->fits = 0;
}
/* Half a wave of 40 updates down, and up along one of 24: a second stage. */
static void lr_second_stage(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i,
                  i < 5 ? 2e-7 * (double)i
                        : 0.5e-6 *
                              (1.0 + cos(3.14159265358979 * (i < 45 ? ((double)i - 5.0) / 40.0
                                                                    : ((double)i - 21.0) / 24.0))));
}
/* Back to its peak and higher, where no cosine comes. */
static void lr_rises_higher(struct patient *p) {
    set_lr(p, cosine_twice);
    scene_put(p, LOG_LR_LOGGED, 58, 1.02e-6);
    scene_put(p, LOG_LR_LOGGED, 59, 1.05e-6);
}
/* Down and up in straight lines, as no schedule does behind its end. */
static void lr_triangle(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-6 * fabs((double)i - 40.0) / 40.0);
}
/* Half a wave of 333 updates that comes back, a row every ten, so that no row stands at its end;
 * with seven rows on the way back, and with five. */
static void lr_rises_sparsely(struct patient *p) {
    p->log->rows = 41;
    for (size_t i = 0; i < 41; i++) {
        p->log->step[i] = 10 * (int64_t)(i + 1);
        scene_put(p, LOG_LR_LOGGED, i,
                  0.5e-6 * (1.0 + cos(3.14159265358979 * (10.0 * (double)i + 9.0) / 333.0)));
    }
}
static void lr_rises_in_few_rows(struct patient *p) {
    lr_rises_sparsely(p);
    p->log->rows = 38;
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
/* A counter that jumps to its end, as one does that is doubled at a resume. */
static void lr_drops_to_zero(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i < 30 ? 1e-3 * (1.0 - (double)i / 60.0) : 0.0);
}
static void lr_to_zero(struct patient *p) {
    set_lr(p, to_zero);
}
static void lr_stairs(struct patient *p) { /* nobody says why: rows may be micro-batches */
    set_lr(p, stairs);
}
static void lr_stairs_at_evals(struct patient *p) {
    lr_stairs(p);
    for (size_t i = 9; i < 60; i += 10)
        scene_put(p, LOG_EVAL_LOSS, i, 2.0);
}
/* Each stair has two evaluations, and one of them moves nothing. */
static void lr_stairs_beside_evals(struct patient *p) {
    lr_stairs_at_evals(p);
    for (size_t i = 4; i < 60; i += 10)
        scene_put(p, LOG_EVAL_LOSS, i, 2.0);
}
static void lr_stairs_off_evals(struct patient *p) {
    lr_stairs(p);
    for (size_t i = 4; i < 60; i += 10)
        scene_put(p, LOG_EVAL_LOSS, i, 2.0);
}
static void lr_stairs_of_a_factor(struct patient *p) {
    double value = 1e-3;
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_LR_LOGGED, i, value);
        value = i % 10 == 9 ? 0.5 * value : value;
    }
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
static void lr_few_changes_fitted(struct patient *p) { /* warm-up of 3, then constant */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i == 0 || i > 3 ? 1e-6 : 1e-6 * (double)i / 3.0);
    p->fits = 1;
}
static void lr_falls_once_fitted(struct patient *p) { /* high first, then it only falls */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i == 0 ? 1e-5 : 1e-6 * (60.0 - (double)i) / 60.0);
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
        scene_put(p, LOG_LR_APPLIED, i, 1e-6 * (59.0 - (double)i) / 60.0);
}
static void lr_of_guessed_rows(struct patient *p) {
    lr_bug_fitted(p);
    p->log->step_guessed = 1;
}

/* ---- the LR applied, recorded beside the printed one ---- */

static double lr_of(double update) { /* what the healthy log prints at an update */
    return 5e-7 * (61.0 - update) / 60.0;
}
static void applied(struct patient *p, double later, double factor) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_APPLIED, i, factor * lr_of((double)(i + 1) + later));
}
static void applied_as_printed(struct patient *p) {
    applied(p, 0.0, 1.0);
}
static void applied_in_binary32(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        helper_put(&p->arena, p->log, LOG_LR_APPLIED, i, lr_of((double)(i + 1)), PRINT_FLOAT);
}
static void applied_ahead(struct patient *p) {
    applied(p, 1.0, 1.0);
    p->fits = 1;
}
static void applied_ahead_sparse(struct patient *p) { /* every fifth update prints its LR */
    applied(p, 1.0, 1.0);
    helper_drop(p->log, LOG_LR_LOGGED);
    for (size_t i = 4; i < 60; i += 5)
        scene_put(p, LOG_LR_LOGGED, i, lr_of((double)(i + 1)));
}
static void applied_nan_once(struct patient *p) {
    applied(p, 0.0, 1.0);
    scene_put(p, LOG_LR_APPLIED, 30, NAN);
}
static void applied_ahead_twice(struct patient *p) { /* only two updates can show it */
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_LR_LOGGED, i, i < 2 ? 1e-7 * (double)(i + 1) : 3e-7);
        scene_put(p, LOG_LR_APPLIED, i, i < 1 ? 2e-7 : 3e-7);
    }
}
static void applied_ahead_resumed(struct patient *p) {
    applied(p, 1.0, 1.0);
    scene_put(p, LOG_LR_APPLIED, 30, 0.0); /* row 31 is update 31 of another part */
    helper_resume(p->log, 31, 32);
}
static void applied_ahead_but_once(struct patient *p) {
    applied(p, 1.0, 1.0);
    scene_put(p, LOG_LR_APPLIED, 30, 1e-7);
}
static void applied_of_before(
    struct patient *p) { /* row 1 prints its own LR, for want of another */
    applied_ahead(p);
    scene_put(p, LOG_LR_APPLIED, 0, lr_of(1.0));
    scene_put(p, LOG_LR_LOGGED, 1, lr_of(1.0));
}
static void applied_one_later(struct patient *p) { /* the log comes after scheduler.step() */
    applied(p, -1.0, 1.0);
}
static void applied_one_later_once(struct patient *p) {
    applied(p, -1.0, 1.0);
    scene_put(p, LOG_LR_APPLIED, 30, 1e-7);
}
static void applied_double(struct patient *p) {
    applied(p, 0.0, 2.0);
}
static void applied_constant(struct patient *p) {
    applied(p, 0.0, 0.0);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_APPLIED, i, 5e-7);
}
static void put_group(struct patient *p) { /* a second group steps as is printed */
    struct log_column *column = helper_column(&p->arena, p->log, LOG_OTHER);
    column->source = "lr_applied[1]";
    for (size_t i = 0; i < 60; i++) {
        column->value[i] = helper_value(p->log, LOG_LR_LOGGED, i);
        column->quantum[i] = 0.0f;
    }
}
static void applied_constant_in_one(struct patient *p) {
    applied_constant(p);
    put_group(p);
}
static void applied_constant_in_one_of_next(struct patient *p) { /* and prints its next LR */
    applied_constant_in_one(p);
    struct log_column *column = &p->log->columns[p->log->column_count - 1];
    for (size_t i = 0; i < 60; i++)
        column->value[i] = lr_of((double)i);
}
static void applied_unprinted(struct patient *p) {
    applied(p, 0.0, 1.0);
    helper_drop(p->log, LOG_LR_LOGGED);
}
static void applied_in_one_row(struct patient *p) {
    scene_put(p, LOG_LR_APPLIED, 30, 1e-7);
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
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (double)(i < 30 ? i + 1 : i - 29) / 60.0);
    helper_resume(p->log, 30, 31);
}
static void jumped(struct patient *p) {
    for (size_t i = 30; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 0.5 * helper_value(p->log, LOG_LR_LOGGED, i));
    helper_resume(p->log, 30, 31);
}
static void other_data(struct patient *p) {
    resumed(p);
    scene_put(p, LOG_LOSS, 40, 1.3 * helper_value(p->log, LOG_LOSS, 40));
}
static void two_writers(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] = (int64_t)i / 2 + 1;
    for (size_t i = 0; i < 2; i++) /* update 1 */
        helper_put(&p->arena, p->log, LOG_LOSS, i, LN2, PRINT_FLOAT);
    for (size_t i = 0; i < 2; i++) {
        scene_put(p, LOG_REWARD_MARGIN, i, 0.0);
        scene_put(p, LOG_REWARD_CHOSEN, i, 0.0);
        scene_put(p, LOG_REWARD_REJECTED, i, 0.0);
    }
}
static void counter_falls(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_SAMPLES, i, 8.0 * (double)(i < 30 ? i + 1 : i - 28));
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
/* The Trainer's epoch at a resume with half the batch: update k is k / 32 epochs, and from update
 * 31 on k / 64. */
static void epoch_of_another_batch(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_EPOCH, i, (double)p->log->step[i] / (i < 30 ? 32.0 : 64.0));
}
/* A counter that began at 0 again is no share of the updates. */
static void epoch_lost(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_EPOCH, i, (double)(p->log->step[i] - (i < 30 ? 0 : 30)) / 32.0);
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
        scene_put(p, LOG_SAMPLES, i, step * (double)(i + 1));
        scene_put(p, LOG_GLOBAL_BATCH, i, 8.0);
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
    scene_put(p, LOG_TOKENS, 7, 0.0);
}
static void few_tokens(struct patient *p) {
    helper_drop(p->log, LOG_TOKENS);
    scene_put(p, LOG_TOKENS, 7, 3000.0);
    scene_put(p, LOG_TOKENS, 8, 3100.0);
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
        scene_put(p, LOG_LR_LOGGED, i, 1e-4);
}
static void decay(struct patient *p) {
    p->options.weight_decay = 0.1;
}
static void decay_large(struct patient *p) {
    decay(p);
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-4);
}

static void lr_stops_in_its_warmup(struct patient *p) { /* of 30 updates, at the 13th of them */
    p->fits = 1;
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-4 * ((double)(i < 13 ? i : 13) / 30.0));
}
static void lr_stays_at_a_typed_peak(struct patient *p) {
    p->fits = 1;
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 4e-5 * ((double)(i < 13 ? i : 13) / 13.0));
}
static void lr_first_apart(struct patient *p) { /* held from below at 2e-6 */
    p->fits = 1;
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i,
                  i == 0   ? 2e-6
                  : i < 10 ? 5e-5 * ((double)i / 10.0)
                           : 5e-5 * ((60.0 - (double)i) / 50.0));
}
static void lr_other_level(struct patient *p) {
    p->fits = 1;
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i < 20 ? 3e-4 * ((double)i / 20.0) : i < 40 ? 3e-4 : 9e-5);
}

const struct scene scenes_of_lr[] = {FOUND(lr_negative, "lr_negative", CERTAIN),
                                     FOUND(lr_zero, "lr_zero_throughout", CERTAIN),
                                     LINE(lr_zero_printed, "lr_zero_throughout", UNTESTABLE),
                                     LINE(lr_zero_printed, "lr_printed_coarsely", UNTESTABLE),
                                     FOUND(lr_rises, "lr_rises_past_end", LIKELY),
                                     LINE(lr_restarts, "lr_rises_past_end", QUIET),
                                     LINE(lr_restarts_once, "lr_rises_past_end", QUIET),
                                     LINE(lr_restarts_from_floor, "lr_rises_past_end", QUIET),
                                     FOUND(lr_begins_anew, "scheduler_not_restored", LIKELY),
                                     FOUND(lr_anew_cut, "scheduler_not_restored", POSSIBLE),
                                     FOUND(lr_anew_sparse, "scheduler_not_restored", POSSIBLE),
                                     FOUND(lr_anew_unexplained, "scheduler_not_restored", POSSIBLE),
                                     FOUND(lr_second_stage, "lr_rises_past_end", POSSIBLE),
                                     FOUND(lr_rises_higher, "lr_rises_past_end", POSSIBLE),
                                     FOUND(lr_triangle, "lr_rises_past_end", POSSIBLE),
                                     FOUND(lr_rises_sparsely, "lr_rises_past_end", LIKELY),
                                     FOUND(lr_rises_in_few_rows, "lr_rises_past_end", POSSIBLE),
                                     LINE(lr_short, "lr_zero_early", QUIET),
                                     FOUND(lr_early, "lr_zero_at_1/N_of_run", LIKELY),
                                     FOUND(lr_early_processes, "xP_scheduler", LIKELY),
                                     FOUND(lr_early_micro, "per_microbatch_stepping", LIKELY),
                                     LINE(lr_drops_to_zero, "lr_zero_early", QUIET),
                                     LINE(lr_to_zero, "lr_zero_early", QUIET),
                                     REMARK(lr_stairs, "lr_stairs"),
                                     FOUND(lr_stairs_at_evals, "eval_steps_scheduler", LIKELY),
                                     REMARK(lr_stairs_beside_evals, "lr_stairs"),
                                     REMARK(lr_stairs_off_evals, "lr_stairs"),
                                     LINE(lr_stairs_of_a_factor, "lr_staircase", QUIET),
                                     REMARK(lr_stairs_of_epochs, "scheduler_epoch_default"),
                                     REMARK(lr_stairs_printed, "lr_printed_coarsely"),
                                     FOUND(lr_peak_first, "step_then_set", LIKELY),
                                     FOUND(lr_bug_fitted, "step_then_set", LIKELY),
                                     FOUND(lr_few_changes_fitted, "step_then_set", LIKELY),
                                     LINE(lr_falls_once_fitted, "lr_bug", UNTESTABLE),
                                     LINE(lr_sound_fitted, "lr_bug", QUIET),
                                     REMARK(lr_stops_in_its_warmup, "schedule_stands_still"),
                                     LINE(lr_stays_at_a_typed_peak, "lr_bug", QUIET),
                                     REMARK(lr_first_apart, "first_lr_apart"),
                                     REMARK(lr_other_level, "other_peak"),
                                     REMARK(lr_ends_at_zero_fitted, "lr_zero_last_step"),
                                     REMARK(lr_recorded_zero, "lr_zero_last_step"),
                                     LINE(lr_of_guessed_rows, "lr_bug", UNTESTABLE),
                                     LINE(applied_as_printed, "lr_applied", QUIET),
                                     LINE(applied_in_binary32, "lr_applied", QUIET),
                                     FOUND(applied_ahead, "lr_applied_ahead", LIKELY),
                                     FOUND(applied_ahead_sparse, "lr_applied_ahead", LIKELY),
                                     REMARK(applied_nan_once, "lr_applied_differs"),
                                     REMARK(applied_ahead_twice, "lr_applied_differs"),
                                     REMARK(applied_ahead_but_once, "lr_applied_differs"),
                                     FOUND(applied_ahead_resumed, "lr_applied_ahead", LIKELY),
                                     FOUND(applied_of_before, "lr_applied_ahead", POSSIBLE),
                                     REMARK(applied_one_later, "lr_printed_is_next"),
                                     REMARK(applied_one_later_once, "lr_applied_differs"),
                                     REMARK(applied_double, "lr_applied_differs"),
                                     FOUND(applied_constant, "schedule_not_applied", LIKELY),
                                     REMARK(applied_constant_in_one, "lr_applied_differs"),
                                     REMARK(applied_constant_in_one_of_next, "lr_applied_differs"),
                                     LINE(applied_unprinted, "lr_applied", UNTESTABLE),
                                     LINE(applied_in_one_row, "lr_applied", UNTESTABLE),
                                     REMARK(resumed, "repeated_rows"),
                                     LINE(resumed, "lr_at_resume", QUIET),
                                     LINE(resumed, "resume_sees_other_data", QUIET),
                                     FOUND(replayed, "scheduler_not_restored", LIKELY),
                                     FOUND(jumped, "lr_jump_at_resume", LIKELY),
                                     FOUND(other_data, "resume_sees_other_data", POSSIBLE),
                                     FOUND(two_writers, "rows_of_several_processes", POSSIBLE),
                                     FOUND(counter_falls, "counter_falls", CERTAIN),
                                     REMARK(epoch_of_another_batch, "epoch_length_changed"),
                                     FOUND(epoch_lost, "counter_falls", CERTAIN),
                                     LINE(counter_printed, "counters", QUIET),
                                     FOUND(counter_restarts, "counter_not_restored", CERTAIN),
                                     FOUND(past_total, "floor_vs_ceil_steps", CERTAIN),
                                     LINE(full_total, "past_max_steps", QUIET),
                                     FOUND(floored, "floor_vs_ceil_steps", POSSIBLE),
                                     LINE(whole_epochs, "floor_vs_ceil_steps", QUIET),
                                     FOUND(samples_wrong, "samples_inconsistent", CERTAIN),
                                     LINE(samples_right, "samples_inconsistent", QUIET),
                                     FOUND(no_tokens, "update_without_tokens", LIKELY),
                                     LINE(few_tokens, "token_counts", UNTESTABLE),
                                     FOUND(bf16, "bf16_update_lost", LIKELY),
                                     LINE(bf16_with_master, "bf16_update_lost", NOT_ASKED),
                                     LINE(f32, "bf16_update_lost", QUIET),
                                     FOUND(decay, "decay_underflow", POSSIBLE),
                                     LINE(decay_large, "decay_underflow", QUIET),
                                     SCENES_END};
