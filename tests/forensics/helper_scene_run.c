/* SPDX-License-Identifier: Apache-2.0
 * Scenes of the log as a whole: two writers, losses that are sums, rows without a label, another
 * reference, a schedule that does not get to its end, updates that a loss scaler skipped. A scene
 * is one change to a healthy log, and what the doctor must say of it. */
#include "tests/forensics/helper_scene.h"

#include <math.h>
#include <stddef.h>

#define LN2 0x1.62e42fefa39efp-1
#define PI 3.14159265358979323846
#define DOUBLED "xP_scheduler or per_microbatch_stepping"

/* ---- writers ---- */

/* Rows of a run at updates 1, 2, 3, .. and of one at updates 101, 102, .., in turn. */
static void interleaved(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] = (int64_t)(i % 2 == 0 ? 1 + i / 2 : 101 + i / 2);
}
/* The same in blocks, as buffered output has it. */
static void interleaved_blocks(struct patient *p) {
    int64_t last[2] = {0, 40};
    for (size_t i = 0; i < 60; i++)
        p->log->step[i] = ++last[i / 4 % 2];
}
/* A run that crashed seven times goes back to its last checkpoint and never to where it was. */
static void crashes(struct patient *p) {
    int64_t step = 0;
    for (size_t i = 0; i < 60; i++) {
        if (i % 8 == 7) step -= 3;
        p->log->step[i] = ++step;
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (60.0 - (double)step) / 60.0);
        scene_put(p, LOG_LOSS, i, LN2 * (1.0 - 0.01 * (double)step));
    }
}

/* ---- losses that are sums ---- */

/* Evaluations at rows 20, 40 and 60 of a language model; the training loss is these multiples of
 * them. */
static void evaluate(struct patient *p, double a, double b, double c) {
    const struct helper_training training = {60, 3, 0, 8, 4, PRINT_E2, 1.0, 0, NULL, NULL};
    const double ratios[] = {a, b, c};
    p->log = helper_trained(&p->arena, &training);
    for (size_t n = 0; n < 3; n++) {
        const size_t row = 20 * n + 19;
        scene_put(p, LOG_EVAL_LOSS, row, helper_value(p->log, LOG_LOSS, row) / ratios[n]);
    }
}
static void evaluation_16(struct patient *p) {
    evaluate(p, 16.9, 16.8, 16.5);
}
static void evaluation_4(struct patient *p) {
    evaluate(p, 4.08, 4.05, 4.03);
}
static void evaluation_2(struct patient *p) {
    evaluate(p, 2.05, 2.02, 1.98);
}
static void evaluation_2_told(struct patient *p) {
    evaluation_2(p);
    p->options.accumulate = 2;
}
static void evaluation_like(struct patient *p) {
    evaluate(p, 1.3, 1.1, 0.8);
}
static void evaluation_drifts(struct patient *p) { /* an over-fitted model, from 4 to 2 */
    evaluate(p, 4.0, 3.0, 2.0);
}
static void first_loss_summed(struct patient *p) {
    evaluate(p, 1.0, 1.0, 1.0);
    helper_put(&p->arena, p->log, LOG_LOSS, 0, 41.52, 4); /* 4 ln 32000 = 41.49 */
    p->options.vocab = 32000;
}

/* ---- rows ---- */

static void no_label(struct patient *p) {
    scene_put(p, LOG_LOGP_REJECTED, 9, 0.0);
}
static void no_label_in_decimals(struct patient *p) { /* as TRL prints it, to three */
    helper_put(&p->arena, p->log, LOG_LOGP_REJECTED, 9, 0.0, 3);
}
static void likely_answer(struct patient *p) { /* of probability 0.997, printed to two */
    helper_put(&p->arena, p->log, LOG_LOGP_REJECTED, 9, -0.003, 2);
}
static void reference_differs(struct patient *p) {
    const double chosen = helper_value(p->log, LOG_LOGP_CHOSEN, 0);
    const double rejected = helper_value(p->log, LOG_LOGP_REJECTED, 0);
    const double margin = -0.05 * chosen + 0.03 * rejected;
    scene_put(p, LOG_REWARD_CHOSEN, 0, -0.05 * chosen);
    scene_put(p, LOG_REWARD_REJECTED, 0, -0.03 * rejected);
    scene_put(p, LOG_REWARD_MARGIN, 0, margin);
    scene_put(p, LOG_LOSS, 0, log1p(exp(-margin)) + 0.01);
}

/* ---- schedules ---- */

static void rise(struct patient *p, uint64_t total) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-8 * (double)(i + 1));
    p->log->max_steps = total;
}
static void warmup_never_ends(struct patient *p) {
    rise(p, 60);
}
static void warmup_of_nearly_all(struct patient *p) { /* it may end behind the last row */
    rise(p, 62);
}
static void warmup_cut_off(struct patient *p) { /* the run was stopped */
    rise(p, 120);
}
static void lr_finder(struct patient *p) { /* exponential, on purpose */
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-8 * exp(0.2 * (double)i));
    p->log->max_steps = 60;
}
/* transformers' cosine with num_cycles=1, and what a scheduler prints that is stepped twice. */
static void comes_back(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, 1e-6 * (0.5 * (1.0 + cos(PI * 2.0 * ((double)i / 60.0)))));
    p->log->max_steps = 60;
    p->fits = 1;
}
static void comes_back_twice(struct patient *p) {
    comes_back(p);
    p->options.processes = 2;
}

/* A language model trained for 500 updates, of which every `every`-th is logged. A row prints the
 * LR that transformers' cosine gives at `pace` counts per update, after a warm-up of `warmup`
 * counts; the cosine has `cycles` cycles. */
static void cosine_every(struct patient *p, size_t every, double pace, double warmup,
                         double cycles) {
    const size_t rows = 500 / every;
    const struct helper_training training = {rows, 3, 0, 8, 4, PRINT_E2, 1.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
    for (size_t i = 0; i < rows; i++) {
        const double n = pace * ((double)every * (double)(i + 1) - 1.0);
        const double wave =
            0.5 * (1.0 + cos(PI * cycles * 2.0 * ((n - warmup) / (500.0 - warmup))));
        p->log->step[i] = (int64_t)(every * (i + 1));
        scene_put(p, LOG_LR_LOGGED, i, 1e-4 * (n < warmup ? n / warmup : wave));
    }
    p->log->max_steps = 500;
    p->fits = 1;
}
static void comes_back_every_5(struct patient *p) {
    cosine_every(p, 5, 1.0, 0.0, 1.0);
}
static void comes_back_every_10(struct patient *p) {
    cosine_every(p, 10, 1.0, 0.0, 1.0);
}
static void comes_back_every_50(struct patient *p) {
    cosine_every(p, 50, 1.0, 0.0, 1.0);
}
static void comes_back_warmed_up(struct patient *p) {
    cosine_every(p, 10, 1.0, 50.0, 1.0);
}
/* A scheduler that is stepped twice per update: the file says a total of 500. */
static void doubled_every_1(struct patient *p) {
    cosine_every(p, 1, 2.0, 50.0, 0.5);
}
static void doubled_every_10(struct patient *p) {
    cosine_every(p, 10, 2.0, 50.0, 0.5);
}
static void doubled_told(struct patient *p) {
    doubled_every_10(p);
    p->options.processes = 2;
}
/* The same where the log says no total: behind a warm-up it is past its second peak at the end. */
static void doubled_untold(struct patient *p) {
    doubled_every_1(p);
    p->log->max_steps = 0;
    p->fits = 0;
}
static void doubled_untold_twice(struct patient *p) {
    doubled_untold(p);
    p->options.processes = 2;
}
/* A run that ends soon behind its first peak. */
static void ends_behind_peak(struct patient *p) {
    cosine_every(p, 1, 0.25, 50.0, 0.5);
    p->log->max_steps = 0;
    p->fits = 0;
}
/* A schedule of one and a half waves, which ends at its minimum. */
static void falls_twice(struct patient *p) {
    cosine_every(p, 1, 1.0, 0.0, 1.5);
    p->fits = 0;
}
/* Half a cosine, as it should be. */
static void comes_down(struct patient *p) {
    cosine_every(p, 10, 1.0, 50.0, 0.5);
}
/* A line of 300 updates whose loop holds the LR at an eighth of the peak, in a log without a total:
 * a counter that moves 8 times per update, on a schedule of 2110 with that floor, prints the same.
 */
static void held_like_a_stride(struct patient *p) {
    const struct helper_training training = {300, 3, 0, 8, 4, PRINT_E2, 1.0, 0, NULL, NULL};
    p->log = helper_trained(&p->arena, &training);
    for (size_t i = 0; i < 300; i++) {
        const double n = (double)i, line = 2e-5 * (n < 10.0 ? n / 10.0 : (300.0 - n) / 290.0);
        scene_put(p, LOG_LR_LOGGED, i, n >= 10.0 && line < 2.5e-6 ? 2.5e-6 : line);
    }
    p->fits = 1;
}
/* Half a wave behind a warm-up of 12, held from its first update on at `low` and at `high`, and
 * with one row of the others off by a permille where `off` says. */
static void held_between(struct patient *p, double low, double high, size_t off) {
    for (size_t i = 0; i < 60; i++) {
        const double n = (double)i;
        const double lr =
            2e-5 *
            (n < 12.0 ? n / 12.0 : 0.5 * (1.0 + cos(3.14159265358979323846 * ((n - 12.0) / 48.0))));
        scene_put(p, LOG_LR_LOGGED, i, fmin(fmax(lr, low), high) * (i == off ? 1.001 : 1.0));
    }
    p->log->max_steps = 60;
    p->fits = 1;
}
static void held_from_below(struct patient *p) {
    held_between(p, 2.5e-6, 1.0, 60);
}
static void held_from_above(struct patient *p) {
    held_between(p, 0.0, 1.5e-5, 60);
}
static void held_and_off(struct patient *p) {
    held_between(p, 2.5e-6, 1.0, 20);
}
/* A large LR in front of a warm-up in which the log ends: nothing fell there in the course of a
 * schedule. */
static void peak_before_warmup(struct patient *p) {
    for (size_t i = 0; i < 60; i++)
        scene_put(p, LOG_LR_LOGGED, i, i == 0 ? 1e-6 : 1e-9 * (double)i);
}

/* A float16 training: the gradient of updates 1, 2 and 31 was infinite, the schedule held there,
 * and no column tells of the scale. */
static void skipped_by_a_scaler(struct patient *p) {
    size_t counter = 0;
    for (size_t i = 0; i < 60; i++) {
        const int skipped = i < 2 || i == 30;
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (60.0 - (double)counter) / 60.0);
        if (skipped) scene_put(p, LOG_GRAD_NORM, i, (double)INFINITY);
        counter += !skipped;
    }
    /* Nothing was learned before update 3, so the loss stands at ln 2 until then. */
    for (size_t i = 0; i < 3; i++) {
        scene_put(p, LOG_LOSS, i, LN2);
        scene_put(p, LOG_REWARD_CHOSEN, i, 0.0);
        scene_put(p, LOG_REWARD_REJECTED, i, 0.0);
        scene_put(p, LOG_REWARD_MARGIN, i, 0.0);
    }
    p->fits = 1;
}

/* The scheduler was not stepped at update 31. A column of counts says that nothing was skipped; a
 * loss scale that does not fall may be set by hand, and says nothing. */
static void held_at_31(struct patient *p, enum log_name name, double value) {
    for (size_t i = 0; i < 60; i++) {
        scene_put(p, LOG_LR_LOGGED, i, 5e-7 * (60.0 - (double)(i - (i > 30))) / 60.0);
        scene_put(p, name, i, value);
    }
    p->fits = 1;
}
static void held_beside_counts(struct patient *p) {
    held_at_31(p, LOG_SKIPPED, 0.0);
}
static void held_beside_a_scale(struct patient *p) {
    held_at_31(p, LOG_LOSS_SCALE, 65536.0);
}

const struct scene scenes_of_runs[] = {FOUND(interleaved, "interleaved_writers", LIKELY),
                                       FOUND(interleaved_blocks, "interleaved_writers", LIKELY),
                                       LINE(crashes, "interleaved_writers", QUIET),
                                       FOUND(evaluation_16, "loss_not_divided", LIKELY),
                                       FOUND(evaluation_4, "loss_not_divided", LIKELY),
                                       FOUND(evaluation_2, "loss_not_divided", POSSIBLE),
                                       FOUND(evaluation_2_told, "loss_not_divided", LIKELY),
                                       LINE(evaluation_like, "loss_not_divided", QUIET),
                                       LINE(evaluation_drifts, "loss_not_divided", QUIET),
                                       FOUND(first_loss_summed, "loss_not_divided", LIKELY),
                                       FOUND(no_label, "no_labelled_token", LIKELY),
                                       FOUND(no_label_in_decimals, "no_labelled_token", LIKELY),
                                       LINE(likely_answer, "no_labelled_token", QUIET),
                                       FOUND(reference_differs, "other_reference", LIKELY),
                                       FOUND(warmup_never_ends, "warmup_never_ends", LIKELY),
                                       FOUND(warmup_of_nearly_all, "warmup_never_ends", POSSIBLE),
                                       LINE(warmup_cut_off, "warmup_never_ends", QUIET),
                                       LINE(lr_finder, "warmup_never_ends", QUIET),
                                       FOUND(comes_back, "cosine_comes_back", POSSIBLE),
                                       FOUND(comes_back_twice, "cosine_comes_back", LIKELY),
                                       FOUND(comes_back_every_5, "cosine_comes_back", POSSIBLE),
                                       FOUND(comes_back_every_10, "cosine_comes_back", POSSIBLE),
                                       FOUND(comes_back_every_50, "cosine_comes_back", POSSIBLE),
                                       FOUND(comes_back_warmed_up, "cosine_comes_back", POSSIBLE),
                                       FOUND(doubled_every_1, DOUBLED, LIKELY),
                                       FOUND(doubled_every_10, DOUBLED, LIKELY),
                                       FOUND(doubled_told, "xP_scheduler", LIKELY),
                                       FOUND(doubled_untold, "cosine_comes_back", POSSIBLE),
                                       FOUND(doubled_untold_twice, "cosine_comes_back", LIKELY),
                                       LINE(ends_behind_peak, "lr_rises_past_end", QUIET),
                                       LINE(falls_twice, "lr_rises_past_end", QUIET),
                                       LINE(comes_down, "lr_rises_past_end", QUIET),
                                       REMARK(held_like_a_stride, "lr_held_from_below"),
                                       REMARK(held_from_below, "lr_held_from_below"),
                                       REMARK(held_from_above, "lr_held_from_above"),
                                       LINE(held_and_off, "lr_bug", UNTESTABLE),
                                       FOUND(peak_before_warmup, "step_then_set", LIKELY),
                                       REMARK(skipped_by_a_scaler, "skipped_updates"),
                                       REMARK(held_beside_counts, "schedule_held"),
                                       REMARK(held_beside_a_scale, "skipped_updates"),
                                       SCENES_END};
