/* SPDX-License-Identifier: Apache-2.0
 * What of a later update differs where the weights behind the step before it are the same: its
 * batch, its forward pass, or its gradient alone. No step differed then, so none is accused.
 *
 * Invariant: of logs nothing is said without digits that would show another step. */
#include <string.h>

#include "base/real.h"
#include "forensics/compare_explain.h"

/* How much of its own resolution a norm of weights must change in a step (chosen), so that one that
 * agrees shows that the step is the same: a norm in f32 hides a small one. */
#define STEP_SHOWS 1000.0
/* The distance of neighbours in f32 and f64, as a share. */
#define EPS_F32 0x1p-23
#define EPS_F64 0x1p-52
/* How far a norm may lie outside of what a sum of two gradients allows, as the share that rounding
 * makes of one in f32 (chosen). */
#define SUM_NOISE 1e-4

static int find_pair(const struct compare_report *report, enum log_name name, uint64_t update,
                     struct series_point out[2]) {
    const struct compare_column *const column = compare_column_of(report, name);
    if (column == NULL || column->pairs == 0) return 0;
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        out[0] = compare_point(&column->side[0], i);
        out[1] = compare_point(&column->side[1], j);
        if (out[0].update >= update) return out[0].update == update;
    }
    return 0;
}

/* The distance of numbers that the column could have held there. */
static double resolution(const struct series_point *point) {
    const double size = real_abs_f64(point->value);
    if (point->quantum > 0.0) return point->quantum;
    return size * ((double)(float)point->value == point->value ? EPS_F32 : EPS_F64);
}

/* Tells whether norms of weights show that both took the same step in an update: they agree, and
 * change in the next one by so much that another step would have made another norm. */
static int same_step(const struct compare_report *report, uint64_t update) {
    const struct compare_column *const norm = compare_column_of(report, LOG_PARAM_NORM);
    struct series_point here[2], next[2];
    if (!find_pair(report, LOG_PARAM_NORM, update, here) ||
        !find_pair(report, LOG_PARAM_NORM, update + 1, next) ||
        (norm->class_of == COMPARE_DIFFERENT && norm->first_update <= update))
        return 0;
    return real_abs_f64(next[0].value - here[0].value) > STEP_SHOWS * resolution(&here[0]);
}

/* Tells whether a number of the forward pass of an update agrees in many digits. */
static int same_forward(const struct compare_report *report, uint64_t update) {
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (compare_is_fine(column, update) && compare_has_pair_at(column, update) &&
            !(column->class_of == COMPARE_DIFFERENT && column->first_update <= update))
            return 1;
    }
    return 0;
}

/* Tells whether applied LRs that agree would leave nothing but the first step to accuse, and the
 * gradient behind it is apart by more than a step does that no loss shows. */
static int only_step_left(const struct compare_report *report, uint64_t update) {
    const struct compare_column *const lr = compare_column_of(report, LOG_LR_APPLIED);
    return update == report->start + 1 && lr != NULL && report->lr.state == COMPARE_LR_SAME &&
           compare_judge_norm(report) != COMPARE_GAP_ROUNDING;
}

/* Two runs of ours part in a phase whose digest differs, while all that they read is the same. */
static enum compare_between by_roots(const struct compare_report *report, uint64_t update) {
    const char *const phase = report->where.phase;
    if (report->recorded || report->root_update != update) return COMPARE_BETWEEN_NONE;
    if (strcmp(phase, "fetch") == 0) return COMPARE_BETWEEN_BATCH;
    if (strcmp(phase, "forward") == 0) return COMPARE_BETWEEN_FORWARD;
    return strcmp(phase, "backward") == 0 || strcmp(phase, "reduce") == 0 ? COMPARE_BETWEEN_GRADIENT
                                                                          : COMPARE_BETWEEN_NONE;
}

enum compare_between compare_between(const struct compare_report *report,
                                     const struct compare_column *first, int other_lr) {
    const uint64_t update = first->first_update;
    if (update <= report->start || report->start == UINT64_MAX) return COMPARE_BETWEEN_NONE;
    if (report->roots > 0) return by_roots(report, update);
    if (other_lr || report->unlike) return COMPARE_BETWEEN_NONE;
    if (first->name != LOG_GRAD_NORM)
        return same_step(report, update - 1) ? COMPARE_BETWEEN_FORWARD : COMPARE_BETWEEN_NONE;
    if (!same_forward(report, update)) return COMPARE_BETWEEN_NONE;
    return same_step(report, update - 1) || only_step_left(report, update)
               ? COMPARE_BETWEEN_GRADIENT
               : COMPARE_BETWEEN_NONE;
}

/* ---- gradients ---- */

/* Tells whether a norm may be that of the sum of a gradient and of the one before it, or of what a
 * clip left of that. */
static int may_be_sum(double sum, double before, double own) {
    const double least = own > before ? own - before : 0.0;
    return sum >= least * (1.0 - SUM_NOISE) && sum <= (own + before) * (1.0 + SUM_NOISE);
}

static enum status name_sums(const struct compare_report *report, uint64_t update,
                             struct arena *arena, char **out) {
    struct series_point before[2], own[2];
    TRY(arena_format(arena, out, "%s", ""));
    if (!find_pair(report, LOG_GRAD_NORM, update - 1, before) ||
        !find_pair(report, LOG_GRAD_NORM, update, own))
        return STATUS_OK;
    /* Either bound of one is a bound of the other, so where one may be a sum, both may. */
    const int may = may_be_sum(own[0].value, before[0].value, own[1].value) ||
                    may_be_sum(own[1].value, before[1].value, own[0].value);
    const unsigned long long last = update - 1;
    return arena_format(
        arena, out,
        may ? " Either norm may be that of a sum with the gradient of update %llu."
            : " Neither norm may be that of a sum with the gradient of update %llu, so a forgotten "
              "zero_grad is not it.",
        last);
}

static enum status explain_gradient(struct compare_report *report,
                                    const struct compare_column *first, struct arena *arena) {
    const unsigned long long update = first->first_update;
    const int rounds =
        first->name == LOG_GRAD_NORM && compare_judge_norm(report) == COMPARE_GAP_ROUNDING;
    const int steps = report->roots > 0 || same_step(report, update - 1);
    char *head, *sums, *text;
    if (report->roots > 0)
        TRY(arena_format(arena, &head,
                         "Weights, batch and forward pass of update %llu are the same, by their "
                         "digests, and its gradient is not",
                         update));
    else
        TRY(arena_format(arena, &head,
                         "%shat is logged of the forward pass of update %llu agree%s, and the "
                         "norm of its gradient does not",
                         steps ? "The norm of the weights behind the step before and w" : "W",
                         update, steps ? "" : "s in many digits"));
    TRY(name_sums(report, update, arena, &sums));
    TRY(arena_format(
        arena, &text,
        "%s: %s. Gradients that one of the two kept from the update before (a forgotten "
        "zero_grad), micro-batches that are lost, added or weighted otherwise, %s%s do this.%s",
        head, steps ? "no step before it differed" : "no step before it differed by much",
        rounds ? "and by as little as here backward kernels or an order of sums that do not repeat "
                 "themselves"
               : "a backward pass that does not repeat itself",
        report->roots > 0 ? "" : ", or a norm that is taken elsewhere", sums));
    compare_say(report, -1, text,
                "Compare where each loop calls zero_grad, and how it accumulates; then run one of "
                "the two twice.");
    return STATUS_OK;
}

/* ---- the forward pass and the batch ---- */

static enum status explain_forward(struct compare_report *report,
                                   const struct compare_column *first, struct arena *arena) {
    const unsigned long long update = first->first_update;
    char *text;
    TRY(arena_format(
        arena, &text,
        report->roots > 0
            ? "The weights behind update %llu and the batch of update %llu are the same, by their "
              "digests, and the forward pass of it is not: no step differed. Weights or "
              "activations that were changed between the two (memory), or what the forward pass "
              "reads beside them (a reference, a setting that acts from there on) do this."
            : "The norm of the weights behind update %llu agrees, in digits that show its step, "
              "and the forward pass of update %llu does not: no step differed that this norm "
              "shows. Other data in that "
              "update, other random numbers (dropout), another reference, or weights or "
              "activations that were changed between the two (memory) do this.",
        update - 1, update));
    compare_say(report, -1, text,
                report->roots > 0
                    ? "Run one of the two twice: if it does not repeat itself, look at the "
                      "machine. Else compare what acts from that update on."
                    : "Compare the token ids of that update's batch and the states of random "
                      "generators; then run one of the two twice.");
    return STATUS_OK;
}

enum status compare_explain_between(struct compare_report *report,
                                    const struct compare_column *first, enum compare_between what,
                                    struct arena *arena) {
    if (what == COMPARE_BETWEEN_GRADIENT) return explain_gradient(report, first, arena);
    if (what == COMPARE_BETWEEN_FORWARD) return explain_forward(report, first, arena);
    compare_say(report, CAUSE_DATA_ORDER,
                "Both are equal bit for bit, by their digests, up to the update in which the batch "
                "differs (roots, above): other rows or another order from there on.",
                "Compare which rows that update used in both runs (sample order, seed, epoch, "
                "drop-last), and what a restart restored of the sampler.");
    return STATUS_OK;
}
