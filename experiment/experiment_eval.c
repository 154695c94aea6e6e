/* SPDX-License-Identifier: Apache-2.0
 * Measures the arms and the floor's runs on the rows of eval.* when they end. Which rows were
 * trained on is what the arms' updates really took; of those that both took, the first are
 * measured. It writes numbers and judges nothing. */
#include "experiment/experiment_private.h"

#include <math.h>
#include <string.h>

static int is_asked(const struct experiment *e) {
    return e->eval.held_out.count > 0;
}

/* ---- before the trace is opened ---- */

/* Whether what is measured takes the value of this key from the baseline. */
static int is_taken(const char *key, int drawn_answers) {
    static const char *const keys[] = {"task", "data.max_len", "data.template"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0) return 1;
    if (strcmp(key, "data.seed") == 0) return drawn_answers;
    return strncmp(key, "dpo.", 4) == 0 && strncmp(key, "dpo.reference_", 14) != 0;
}

/* Lists the keys in which the arms differ and which both are measured with as the baseline has
 * them. */
static enum status find_as_baseline(struct experiment *e) {
    const struct config *a = &e->plan.runs[0].config, *b = &e->plan.runs[1].config;
    const int drawn_answers = a->task == TASK_DPO && dataset_is_builtin(a->data.pairs);
    struct factor *factors;
    uint32_t count;
    const char *list = "";
    TRY(factors_of(e->plan.schema, a, b, e->arena, &factors, &count));
    for (uint32_t f = 0; f < count; f++)
        for (uint32_t k = 0; k < factors[f].key_count; k++) {
            char *longer;
            if (!is_taken(factors[f].keys[k], drawn_answers)) continue;
            TRY(arena_format(e->arena, &longer, "%s%s%s", list, list[0] == '\0' ? "" : ", ",
                             factors[f].keys[k]));
            list = longer;
        }
    if (list[0] != '\0') e->plan.eval.as_baseline = list;
    return STATUS_OK;
}

static enum status take_values(struct experiment *e, size_t count, double **out) {
    TRY(arena_take(e->arena, count, sizeof **out, "evaluation", out));
    for (size_t i = 0; i < count; i++)
        (*out)[i] = (double)NAN;
    return STATUS_OK;
}

static enum status take_room(struct experiment *e, size_t samples) {
    struct experiment_eval *eval = &e->eval;
    const uint32_t rows[] = {e->plan.eval.held_out, e->plan.eval.trained};
    for (int arm = 0; arm < 2; arm++)
        TRY(arena_take(e->arena, samples, 1, "rows that are trained on", &eval->drawn[arm]));
    TRY(arena_take(e->arena, rows[EVAL_TRAINED], sizeof *eval->trained, "rows", &eval->trained));
    for (int set = 0; set < EVAL_SETS; set++) {
        TRY(take_values(e, (size_t)e->plan.run_count * EVAL_VALUES, &eval->end[set]));
        TRY(take_values(e, (size_t)2 * EVAL_VALUES, &eval->start[set]));
        TRY(take_values(e, rows[set], &eval->line[set]));
    }
    return STATUS_OK;
}

enum status experiment_eval_open(struct experiment *e) {
    struct held_out *held_out = &e->eval.held_out;
    const struct scenario *scenario = e->plan.scenario;
    const struct dataset *datasets[2];
    for (int arm = 0; arm < 2; arm++)
        TRY(experiment_dataset(e, &e->plan.runs[arm].config, &datasets[arm]));
    TRY(held_out_open(scenario, datasets, e->arena, held_out));
    if (!is_asked(e)) return STATUS_OK;
    e->plan.eval.held_out = held_out->count;
    e->plan.eval.trained = held_out_trained(scenario, datasets[0]);
    TRY(held_out_words(held_out, e->arena, &e->plan.eval.rows, &e->plan.eval.seen));
    TRY(find_as_baseline(e));
    return take_room(e, datasets[0]->samples);
}

/* ---- which rows were trained on ---- */

/* The baseline's sample that an arm's sample is: the same line of the same source. Lines ascend.
 * Returns the number of samples where there is none. */
static size_t find_sample(const struct dataset *baseline, const struct dataset *own,
                          uint32_t sample) {
    const uint32_t line = own->line[sample];
    size_t low = 0, high = baseline->samples;
    if (own == baseline) return sample;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (baseline->line[middle] < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low < baseline->samples && baseline->line[low] == line ? low : baseline->samples;
}

static void note_samples(const struct dataset *baseline, const struct run *run,
                         const uint32_t *samples, uint32_t count, uint8_t *drawn) {
    for (uint32_t i = 0; i < count; i++) {
        const size_t at = find_sample(baseline, run_dataset(run), samples[i]);
        if (at < baseline->samples) drawn[at] = 1;
    }
}

void experiment_eval_note(struct experiment *e, const struct run *a, const struct run *b) {
    const struct run *const runs[2] = {a, b};
    const struct dataset *const baseline = run_dataset(a);
    if (!is_asked(e)) return;
    for (int arm = 0; arm < 2; arm++) {
        const struct sampler_plan *plan = run_sampler_plan(runs[arm]);
        if (strcmp(run_dataset(runs[arm])->source, baseline->source) != 0) continue;
        note_samples(baseline, runs[arm], plan->sample, plan->samples, e->eval.drawn[arm]);
        note_samples(baseline, runs[arm], plan->leaked_sample, plan->leaked.samples,
                     e->eval.drawn[arm]);
    }
}

/* Takes the first rows that both arms drew, and writes down the lines of both sets. */
static void choose_rows(struct experiment *e, const struct dataset *baseline) {
    struct experiment_eval *eval = &e->eval;
    const struct held_out *held_out = &eval->held_out;
    for (uint32_t i = 0; i < held_out->count; i++)
        eval->line[EVAL_HELD_OUT][i] = held_out->dataset.line[held_out->index[i]];
    for (size_t i = 0; i < baseline->samples && eval->trained_count < e->plan.eval.trained; i++) {
        if (!eval->drawn[0][i] || !eval->drawn[1][i]) continue;
        eval->line[EVAL_TRAINED][eval->trained_count] = baseline->line[i];
        eval->trained[eval->trained_count++] = (uint32_t)i;
    }
}

/* ---- measuring ---- */

static enum status measure(struct experiment *e, const struct run *run, enum evaluated which,
                           uint32_t row, double *const values[EVAL_SETS]) {
    for (uint32_t set = 0; set < EVAL_SETS; set++) {
        double *const out = values[set] + (size_t)row * EVAL_VALUES;
        struct evaluation of;
        if (set == EVAL_TRAINED && e->eval.trained_count == 0) continue;
        TRY(experiment_check_interrupt_while(e, "held-out rows were measured"));
        TRY(evaluator_measure(e->eval.evaluator, run, which, set, &of));
        out[EVAL_LOSS] = of.loss;
        out[EVAL_MARGIN] = of.margin;
        out[EVAL_ACCURACY] = of.accuracy;
        out[EVAL_LOGP_CHOSEN] = of.logp[0];
        out[EVAL_LOGP_REJECTED] = of.logp[1];
        out[EVAL_TIES] = of.ties;
    }
    return STATUS_OK;
}

enum status experiment_eval_arms(struct experiment *e, const struct run *a, const struct run *b) {
    struct experiment_eval *eval = &e->eval;
    const struct run *const runs[2] = {a, b};
    if (!is_asked(e)) return STATUS_OK;
    choose_rows(e, run_dataset(a));
    const struct evaluator_rows sets[EVALUATOR_SETS] = {
        [EVAL_HELD_OUT] = {&eval->held_out.dataset, eval->held_out.index, eval->held_out.count},
        [EVAL_TRAINED] = {run_dataset(a), eval->trained, eval->trained_count}};
    TRY(evaluator_open(a, b, sets, &eval->evaluator));
    if (experiment_is_behind(e, 0)) return STATUS_OK;
    for (uint32_t arm = 0; arm < 2; arm++) {
        TRY(measure(e, runs[arm], EVALUATED_START, arm, eval->start));
        TRY(measure(e, runs[arm], EVALUATED_NOW, arm, eval->end));
    }
    return STATUS_OK;
}

enum status experiment_eval_run(struct experiment *e, uint32_t index, const struct run *run) {
    if (!is_asked(e) || experiment_is_behind(e, index)) return STATUS_OK;
    return measure(e, run, EVALUATED_NOW, index, e->eval.end);
}

enum status experiment_eval_hand_on(struct experiment *e, uint32_t index) {
    for (int set = 0; is_asked(e) && set < EVAL_SETS; set++)
        TRY(experiment_ahead_put(e, e->eval.end[set] + (size_t)index * EVAL_VALUES,
                                 EVAL_VALUES * sizeof(double)));
    return STATUS_OK;
}

enum status experiment_eval_take(struct experiment *e, uint32_t index) {
    for (int set = 0; is_asked(e) && set < EVAL_SETS; set++)
        TRY(experiment_ahead_get(e, e->eval.end[set] + (size_t)index * EVAL_VALUES,
                                 EVAL_VALUES * sizeof(double)));
    return STATUS_OK;
}

enum status experiment_eval_put(struct experiment *e) {
    const uint32_t rows[] = {e->plan.eval.held_out, e->plan.eval.trained};
    if (!is_asked(e)) return STATUS_OK;
    for (int set = 0; set < EVAL_SETS; set++) {
        if (rows[set] == 0) continue;
        TRY(experiment_trace_array(&e->output, eval_paths[set].end, e->eval.end[set]));
        TRY(experiment_trace_array(&e->output, eval_paths[set].start, e->eval.start[set]));
        TRY(experiment_trace_array(&e->output, eval_paths[set].line, e->eval.line[set]));
    }
    evaluator_close(e->eval.evaluator);
    e->eval.evaluator = NULL;
    return STATUS_OK;
}
