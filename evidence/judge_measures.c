/* SPDX-License-Identifier: Apache-2.0
 * The causes by other measures than the way of the parameters, the update from which on each acts,
 * and its share after earlier updates. A trace without these arrays, and one whose values are not
 * finite, gives none of these; that is no error. */
#include "evidence/judge_parts.h"

#include <math.h>

#include "determinism/shapley.h"

static const struct measure {
    const char *name, *path, *words;
    int by_mark; /* the array has a row for each mark, of which the last one is read */
} measures[JUDGE_MEASURES] = {
    {"loss_gap", "attribution/loss_at", "gap of the last loss", 1},
    {"margin_gap", "attribution/margin_at", "gap of the last reward margin", 1},
    {"probe_kl", "attribution/probe_kl", "KL divergence on the probe batch, which has no sign,", 0},
};

/* Row `row` of an array with a value of each hybrid, by mask of factors; NULL when there is no
 * array, or a value is not finite. */
static const double *game_row(const struct trace_array *array, uint64_t row, uint32_t hybrids) {
    if (array == NULL) return NULL;
    const double *values = array->values + row * hybrids;
    for (uint32_t i = 0; i < hybrids; i++)
        if (!isfinite(values[i])) return NULL;
    return values;
}

/* Values of two causes that are this near, as a share of the larger one, have no order: they agree
 * in the four digits that are printed, and rounding in runs of f32 leaves about 1e-7 between values
 * that a formula has equal. */
#define RANK_TIE 1e-4

/* Whether a measure puts two causes in another order than their shares do, which stand in falling
 * order. Of causes whose places are not certain no order is known that it could contradict. */
static int ranks_otherwise(const struct judgement *judgement, const double *value) {
    const struct judged_cause *const causes = judgement->causes;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        for (uint32_t j = i + 1; j < judgement->cause_count; j++) {
            const double least = fabs(value[i]), most = fabs(value[j]);
            if (causes[i].place[1] < causes[j].place[0] && most - least > RANK_TIE * most) return 1;
        }
    }
    return 0;
}

/* Takes one measure after the last update, where the trace holds it and every value is finite. A
 * margin is NaN in tasks without pairs, so these have none. A gap of 0 is taken: that the loss does
 * not show what the weights did is a finding. */
static enum status read_measure(struct judging *judging, const struct measure *measure,
                                uint64_t rows, const uint32_t *order) {
    struct judgement *out = judging->out;
    const struct trace_array *array;
    const uint32_t hybrids = 1u << out->cause_count;
    if (measure->by_mark)
        TRY(judging_array(judging, measure->path, rows, hybrids, &array));
    else
        TRY(judging_array(judging, measure->path, hybrids, 1, &array));
    const double *values = game_row(array, measure->by_mark ? rows - 1 : 0, hybrids);
    if (values == NULL) return STATUS_OK;
    struct shapley shapley;
    TRY(shapley_attribute(out->cause_count, values, &shapley));
    struct judged_measure *to = &out->measures[out->measure_count++];
    *to = (struct judged_measure){
        .name = measure->name, .words = measure->words, .whole = shapley.whole};
    for (uint32_t i = 0; i < out->cause_count; i++) {
        const uint32_t self = 1u << order[i];
        to->value[i] = shapley.value[order[i]];
        to->alone[i] = values[self];
        to->without[i] = values[(hybrids - 1) & ~self];
    }
    to->ranks_otherwise = ranks_otherwise(out, to->value);
    return STATUS_OK;
}

/* The shares at marks. Traces of older programs hold the way of the last update only, and so no
 * marks. */
static enum status read_marks(struct judging *judging, const struct trace_array *mark,
                              uint64_t rows, const uint32_t *order) {
    struct judgement *out = judging->out;
    const struct trace_array *array, *response = trace_array_of(judging->image, RESPONSE_PATH);
    const uint32_t hybrids = 1u << out->cause_count;
    TRY(judging_array(judging, "attribution/way_at", rows, hybrids, &array));
    for (uint64_t row = 0; row < rows; row++) {
        const double *values = game_row(array, row, hybrids);
        const double update = mark->values[row];
        struct shapley shapley;
        if (values == NULL || !(update >= 1.0)) continue;
        TRY(shapley_attribute(out->cause_count, values, &shapley));
        if (!shapley.has_share) continue;
        struct judged_mark *to = &out->marks[out->mark_count++];
        to->update = (uint64_t)update;
        to->whole = shapley.whole;
        to->response = (double)NAN;
        if (response != NULL && to->update <= response->plan.shape[0])
            to->response = trace_value(response, to->update - 1);
        for (uint32_t i = 0; i < out->cause_count; i++)
            to->share[i] = shapley.share[order[i]];
    }
    return STATUS_OK;
}

static enum status read_first(struct judging *judging, const uint32_t *order) {
    struct judgement *out = judging->out;
    const struct trace_array *array;
    const uint32_t hybrids = 1u << out->cause_count;
    TRY(judging_array(judging, "attribution/first_update", hybrids, 1, &array));
    const double *values = game_row(array, 0, hybrids);
    for (uint32_t i = 0; values != NULL && i < out->cause_count; i++) {
        const double first = values[1u << order[i]];
        if (first >= 0.0 && first <= (double)out->updates) out->causes[i].acted = (int64_t)first;
    }
    return STATUS_OK;
}

enum status judge_measures(struct judging *judging, const uint32_t *order) {
    const struct trace_array *mark = trace_array_of(judging->image, "attribution/mark");
    if (mark == NULL) return STATUS_OK;
    const uint64_t rows = mark->plan.shape[0];
    if (mark->plan.rank != 1 || rows < 1 || rows > JUDGE_MARKS)
        FAIL(STATUS_INPUT, "trace: /attribution/mark: expected 1 to %d values", JUDGE_MARKS);
    for (uint32_t i = 0; i < JUDGE_MEASURES; i++)
        TRY(read_measure(judging, &measures[i], rows, order));
    TRY(read_marks(judging, mark, rows, order));
    return read_first(judging, order);
}
