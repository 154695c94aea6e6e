/* SPDX-License-Identifier: Apache-2.0
 * What the columns of a comparison show beside their first differences: which of a group differs
 * first, which have rows before the first step, and which agree in many digits. */
#include "base/real.h"
#include "forensics/compare_explain.h"

/* What a printed value may be off by, as a share of it, to count as one of many digits: a gap that
 * rounding makes in float32 still shows in it. */
#define FINE 1e-5

const enum log_name compare_data_names[] = {LOG_TOKENS, LOG_SAMPLES, LOG_GLOBAL_BATCH, LOG_OTHER};
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
const enum log_name compare_gradient_names[] = {LOG_GRAD_NORM, LOG_OTHER};
const enum log_name compare_lr_names[] = {LOG_LR_APPLIED, LOG_LR_LOGGED, LOG_OTHER};

/* Returns the column of a group that differs first, or NULL. */
const struct compare_column *compare_first_of(const struct compare_report *report,
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
int compare_covers_start(const struct compare_report *report, const enum log_name *names) {
    for (; *names != LOG_OTHER; names++) {
        const struct compare_column *column = compare_column_of(report, *names);
        if (column != NULL && column->pairs > 0 && column->from <= report->start) return 1;
    }
    return 0;
}

const struct compare_ratio *compare_ratio_of(const struct compare_report *report,
                                             enum log_name name) {
    for (size_t i = 0; i < report->ratio_count; i++)
        if (report->ratios[i].name == (int32_t)name &&
            report->ratios[i].kind < COMPARE_FACTOR_OFFSET)
            return &report->ratios[i];
    return NULL;
}

/* Tells whether both sides print a column before `update`, with at least six digits. */
int compare_is_fine(const struct compare_column *column, uint64_t update) {
    if (column == NULL || column->pairs == 0 || column->from >= update) return 0;
    for (size_t s = 0; s < 2; s++) {
        const struct series_point point = compare_point(&column->side[s], 0);
        if (!(point.quantum <= FINE * real_abs_f64(point.value))) return 0;
    }
    return 1;
}

/* Tells whether a column agrees in many digits before the first step. */
int compare_agrees_at_start(const struct compare_report *report, enum log_name name) {
    const struct compare_column *const column = compare_column_of(report, name);
    return compare_is_fine(column,
                           report->start == UINT64_MAX ? report->start : report->start + 1) &&
           !(column->class_of == COMPARE_DIFFERENT && column->first_update <= report->start);
}

/* Tells whether a mean of logits says nothing of weights and data: the gradient norm and the loss
 * agree in many digits, so these do, and the mean is one over micro-batches of other sizes. */
int compare_is_other_mean(const struct compare_report *report, enum log_name name) {
    return (name == LOG_LOGITS_CHOSEN || name == LOG_LOGITS_REJECTED) &&
           compare_agrees_at_start(report, LOG_LOSS) &&
           compare_agrees_at_start(report, LOG_GRAD_NORM);
}

int compare_has_pair_at(const struct compare_column *column, uint64_t update) {
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++)
        if (compare_point(&column->side[0], i).update >= update)
            return compare_point(&column->side[0], i).update == update;
    return 0;
}

/* Tells whether the log-probs of the policy agree in many digits in an update, on either side of
 * the pairs, and a reward does not: the weights are the same then, and the reference's log-probs,
 * or beta, are not. */
int compare_reference_apart(const struct compare_report *report, uint64_t update) {
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    int apart = 0;
    for (size_t n = 0; n < COUNT_OF(policy); n++) {
        const struct compare_column *column = compare_column_of(report, policy[n]);
        if (!compare_is_fine(column, update + 1) || !compare_has_pair_at(column, update) ||
            (column->class_of == COMPARE_DIFFERENT && column->first_update <= update))
            return 0;
        const struct compare_column *reward = compare_column_of(report, rewards[n]);
        apart |= reward != NULL && reward->class_of == COMPARE_DIFFERENT &&
                 reward->first_update == update;
    }
    return apart;
}

/* Tells whether loss and gradient norm agree in many digits over all updates, and so the
 * trainings, whatever else differs. */
int compare_trains_alike(const struct compare_report *report) {
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_OTHER};
    for (const enum log_name *name = names; *name != LOG_OTHER; name++) {
        const struct compare_column *column = compare_column_of(report, *name);
        if (!compare_is_fine(column, UINT64_MAX) || column->class_of == COMPARE_DIFFERENT ||
            column->to <= report->start)
            return 0;
    }
    return 1;
}

/* By how much a gap of the loss must exceed the digits of a gradient norm that agrees, both as
 * shares of their values, so that the norm would show it (chosen): other data move both by about as
 * much.
 */
#define SHOWS 100.0

/* Tells whether a norm of every update agrees, of the one in which `first` differs, too, in more
 * digits than the largest gap of the forward columns: a training that makes other losses has other
 * gradients and weights. A norm that never changes, as one behind a clip, shows nothing. */
static int norms_speak(const struct compare_report *report, enum log_name name,
                       const struct compare_column *first) {
    const struct compare_column *const norm = compare_column_of(report, name);
    if (!compare_is_fine(norm, UINT64_MAX) || norm->class_of == COMPARE_DIFFERENT || !norm->moves ||
        norm->to <= report->start || !compare_has_pair_at(norm, first->first_update))
        return 0;
    if (norm->class_of == COMPARE_EQUAL) return 1;
    const struct series_point point = compare_point(&norm->side[0], 0);
    return first->largest * real_abs_f64(point.value) > SHOWS * point.quantum;
}

/* Tells whether the loss alone differs of the forward pass, while gradient norms that change agree
 * behind that: where no norm of weights is logged, nothing else of it may be apart. Of pairs the
 * log-probabilities tell more. */
static int loss_alone(const struct compare_report *report, const struct compare_column *first) {
    for (const enum log_name *name = compare_forward_names + 1; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column != NULL && column->pairs > 0) return 0;
    }
    return compare_speaks(report, LOG_GRAD_NORM, first->first_update);
}

int compare_logged_alone(const struct compare_report *report, const struct compare_column *first) {
    static const enum log_name trained[] = {LOG_LR_APPLIED, LOG_TOKENS, LOG_SAMPLES, LOG_SKIPPED,
                                            LOG_OTHER};
    if (first == NULL || first->name == LOG_GRAD_NORM) return 0;
    if (report->logged_alone) return 1;
    const struct compare_column *const weights = compare_column_of(report, LOG_PARAM_NORM);
    if (report->root_update > 0 || report->unlike || report->lr.groups_differ > 0 ||
        report->lr.state == COMPARE_LR_DIFFERENT || !norms_speak(report, LOG_GRAD_NORM, first))
        return 0;
    if (weights != NULL && weights->pairs > 0 ? !norms_speak(report, LOG_PARAM_NORM, first)
                                              : !loss_alone(report, first))
        return 0;
    for (const enum log_name *name = trained; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column != NULL && column->class_of == COMPARE_DIFFERENT) return 0;
    }
    return 1;
}

/* Returns the last update before `update` that both logs have in a column of the forward pass or
 * the gradient, or 0. */
uint64_t compare_pair_before(const struct compare_report *report, uint64_t update) {
    static const enum log_name *const groups[] = {compare_forward_names, compare_gradient_names};
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
