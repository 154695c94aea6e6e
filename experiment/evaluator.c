/* SPDX-License-Identifier: Apache-2.0
 * A model of its own is opened for each architecture that the arms have. It is given copies of a
 * run's weights, and log-probs of whole sequences come out; the loss is then computed from these
 * alone, so that no batch, divisor or loop of a training enters it. */
#include "experiment/evaluator.h"

#include <math.h>
#include <string.h>

#include "base/sum.h"
#include "data/batch.h"
#include "kernels/backend_abi.h"
#include "kernels/op.h"
#include "model/backends.h"
#include "model/loss.h"
#include "model/model.h"
#include "model/preference.h"
#include "scenarios/scenario.h"
#include "trainer/run_tensors.h"

/* One architecture. */
struct scorer {
    struct config config; /* of the instrument, with the model of one arm */
    struct param_table table;
    const struct op_table *host;
    struct batch batch;
    struct model model;
    void **copy; /* by row: the weights of the run that is measured; a tied row is NULL */
    const void **weights;
    struct host_window window; /* through which the host writes the copies */
};

struct evaluator {
    struct arena own; /* holds this struct */
    struct arena arena, hidden;
    struct evaluator_rows sets[EVALUATOR_SETS];
    double (*reference[EVALUATOR_SETS])[2]; /* (count); NULL: the loss reads none */
    double (*logp)[2];                      /* (largest count) of the run that is measured */
    struct batch_limits limits;
    struct scorer scorer[2];
    uint32_t scorers;
};

/* Writes the model section of a configuration without the place that weights came from. */
static void model_of(const struct config *config, struct config *out) {
    out->model = config->model;
    memset(out->model.from, 0, sizeof out->model.from);
    memset(out->model.from_digest, 0, sizeof out->model.from_digest);
}

/* The instrument: what belongs to a question comes from the baseline, what belongs to a network
 * from its own run, and what would add rounding or noise is the same for all. A model
 * drops nothing unless a training asks it to (model.dropping), so rates of dropout may stay. */
static void instrument_of(const struct config *baseline, const struct config *own,
                          struct config *out) {
    *out = *baseline;
    model_of(own, out);
    config_set_mode(out, MODE_INVARIANT);
    out->numerics.param = out->numerics.compute = out->numerics.accumulate = DTYPE_F64;
    out->numerics.rope = out->numerics.loss = DTYPE_F64;
    out->numerics.product = out->numerics.softmax = CONFIG_AS_COMPUTE;
    out->numerics.master = CONFIG_MASTER_NONE;
    out->numerics.rounding = ROUNDING_NEAREST;
    out->numerics.library = LIBRARY_AUTO;
    out->batch.pad = 0;
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Finds limits that hold a micro-batch of either set. */
static enum status open_limits(struct evaluator *evaluator, const struct config *config) {
    struct batch_limits *out = &evaluator->limits;
    for (uint32_t set = 0; set < EVALUATOR_SETS; set++) {
        const struct evaluator_rows *rows = &evaluator->sets[set];
        struct batch_limits one;
        if (rows->count == 0) continue;
        TRY(batch_limits_open(config, rows->dataset, config->batch.micro,
                              (enum batch_layout)config->batch.layout, &one));
        one.length = larger(one.length, out->length);
        one.rows = larger(one.rows, out->rows);
        one.tokens = larger(one.tokens, out->tokens);
        *out = one;
    }
    return STATUS_OK;
}

static enum status open_weights(struct scorer *scorer, struct arena *arena) {
    const struct param_table *table = &scorer->table;
    TRY(arena_take(arena, table->count, sizeof *scorer->weights, "evaluation", &scorer->weights));
    TRY(arena_take(arena, table->count, sizeof *scorer->copy, "evaluation", &scorer->copy));
    for (uint32_t i = 0; i < table->count; i++) {
        const struct param_row *row = &table->rows[i];
        if (row->tied_to < 0)
            TRY(arena_take(arena_hidden(arena), row->count, dtype_carrier(scorer->model.compute),
                           "evaluation", &scorer->copy[i]));
        scorer->weights[i] = row->tied_to < 0 ? scorer->copy[i] : scorer->weights[row->tied_to];
    }
    return STATUS_OK;
}

static enum status open_scorer(struct evaluator *evaluator, const struct run *baseline,
                               const struct run *own) {
    struct scorer *scorer = &evaluator->scorer[evaluator->scorers++];
    struct arena *arena = &evaluator->arena;
    const struct config *config = &scorer->config;
    instrument_of(run_config(baseline), run_config(own), &scorer->config);
    TRY(backend_ops((enum isa)config->numerics.isa, DTYPE_F64, DTYPE_F64, &scorer->host));
    TRY(params_open(config, arena, &scorer->table));
    if (evaluator->scorers == 1) TRY(open_limits(evaluator, config));
    TRY(batch_open(&evaluator->limits, arena, &scorer->batch));
    TRY(model_open(config, &scorer->table, run_backend(baseline), &evaluator->limits, arena,
                   &scorer->model));
    scorer->model.call.queued = 1; /* score_some() waits before it reads */
    return open_weights(scorer, arena);
}

static int is_model_of(const struct scorer *scorer, const struct config *config) {
    struct config own;
    model_of(config, &own);
    return memcmp(&scorer->config.model, &own.model, sizeof own.model) == 0;
}

/* The run may have another backend than the instrument, so its weights go by way of the host. */
static enum status take_weights(struct scorer *scorer, const struct run *run,
                                enum evaluated which) {
    const struct backend *const backend = scorer->model.backend;
    for (uint32_t i = 0; i < scorer->table.count; i++) {
        const struct param_row *const theirs = &run_table(run)->rows[i];
        if (scorer->copy[i] == NULL) continue;
        const size_t count = scorer->table.rows[i].count, bytes = count * scorer->model.form.width;
        struct convert_args args = {count, theirs->dtype, scorer->model.compute, NULL, NULL, 0};
        TRY(run_read(run, WINDOW_NOW,
                     which == EVALUATED_START ? run_param_initial(run, i) : run_param(run, i),
                     count * dtype_carrier(theirs->dtype), &args.source));
        TRY(host_window_room(&scorer->window, backend, scorer->copy[i], bytes, &args.destination));
        scorer->host->convert(&scorer->model.call, &args);
        TRY(host_window_store(&scorer->window, backend, scorer->copy[i], bytes));
    }
    return STATUS_OK;
}

static enum status score_some(struct scorer *scorer, const struct batch_limits *limits,
                              const struct evaluator_rows *rows, uint32_t first, uint32_t count,
                              double (*out)[2]) {
    struct batch *const batch = &scorer->batch;
    const struct model_weights weights = {scorer->weights};
    batch_fill(batch, limits, rows->dataset, rows->index + first, count, first);
    model_set_order(&scorer->model, 0, 0);
    model_forward(&scorer->model, &weights, batch, 0);
    TRY(model_wait(&scorer->model));
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t side = 0; side < batch->sides; side++)
            out[s][side] = loss_sequence(&scorer->model.call, batch,
                                         batch->canonical_sequence[batch->sides * s + side],
                                         scorer->model.logp);
    return STATUS_OK;
}

/* Writes the summed log-prob of each side of each row. */
static enum status score(struct scorer *scorer, const struct batch_limits *limits,
                         const struct evaluator_rows *rows, double (*out)[2]) {
    for (uint32_t first = 0; first < rows->count; first += limits->samples) {
        const uint32_t left = rows->count - first;
        const uint32_t count = left < limits->samples ? left : limits->samples;
        TRY(score_some(scorer, limits, rows, first, count, out + first));
    }
    return STATUS_OK;
}

static enum status open_reference(struct evaluator *evaluator, const struct run *baseline) {
    const int given = run_config(baseline)->dpo.reference == REFERENCE_GIVEN;
    struct scorer *scorer = &evaluator->scorer[0];
    if (!config_has_reference(&scorer->config)) return STATUS_OK;
    if (!given) TRY(take_weights(scorer, baseline, EVALUATED_START));
    for (uint32_t set = 0; set < EVALUATOR_SETS; set++) {
        const struct evaluator_rows *rows = &evaluator->sets[set];
        TRY(arena_take(&evaluator->arena, rows->count, sizeof *evaluator->reference[set],
                       "evaluation", &evaluator->reference[set]));
        for (uint32_t i = 0; i < rows->count && given; i++)
            memcpy(evaluator->reference[set][i], rows->dataset->reference[rows->index[i]],
                   sizeof evaluator->reference[set][i]);
        if (!given) TRY(score(scorer, &evaluator->limits, rows, evaluator->reference[set]));
    }
    return STATUS_OK;
}

static enum status open_all(struct evaluator *evaluator, const struct run *baseline,
                            const struct run *test) {
    uint32_t most = 0;
    backends_memory(run_backend(baseline), &evaluator->arena, &evaluator->hidden);
    TRY(open_scorer(evaluator, baseline, baseline));
    if (!is_model_of(&evaluator->scorer[0], run_config(test)))
        TRY(open_scorer(evaluator, baseline, test));
    for (uint32_t set = 0; set < EVALUATOR_SETS; set++)
        most = larger(most, evaluator->sets[set].count);
    TRY(arena_take(&evaluator->arena, most, sizeof *evaluator->logp, "evaluation",
                   &evaluator->logp));
    return open_reference(evaluator, baseline);
}

enum status evaluator_open(const struct run *baseline, const struct run *test,
                           const struct evaluator_rows sets[EVALUATOR_SETS],
                           struct evaluator **out) {
    struct arena own = ARENA_EMPTY;
    struct evaluator *evaluator;
    *out = NULL;
    TRY(arena_take(&own, 1, sizeof *evaluator, "evaluation", &evaluator));
    evaluator->own = own;
    memcpy(evaluator->sets, sets, sizeof evaluator->sets);
    const enum status status = open_all(evaluator, baseline, test);
    if (status != STATUS_OK) {
        evaluator_close(evaluator);
        return status;
    }
    *out = evaluator;
    return STATUS_OK;
}

void evaluator_close(struct evaluator *evaluator) {
    if (evaluator == NULL) return;
    struct arena own = evaluator->own; /* the evaluator itself lies in it, and goes with it */
    for (uint32_t i = 0; i < evaluator->scorers; i++)
        host_window_close(&evaluator->scorer[i].window);
    arena_close(&evaluator->hidden);
    arena_close(&evaluator->arena);
    arena_close(&own);
}

/* Minus the mean log-prob of a label token over all rows. A Trainer's eval_loss is a mean of means
 * of batches, which is the same where batches have equally many labels. */
static void close_sft(const struct evaluator_rows *rows, const double (*logp)[2],
                      struct evaluation *out) {
    double sum = 0.0;
    uint64_t labels = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        sum = sum_chain_terms_f64_f64(sum, &logp[i][0], 1);
        labels += dataset_side(rows->dataset, rows->index[i], 0)->labels;
    }
    out->loss = -sum / (double)labels;
    out->logp[0] = out->logp[1] = out->margin = (double)NAN;
    out->accuracy = out->ties = (double)NAN;
}

static void add_pair(const struct preference_value *value, struct evaluation *sum) {
    const double margin = value->reward[0] - value->reward[1];
    sum->loss = sum_chain_terms_f64_f64(sum->loss, &value->loss, 1);
    sum->margin = sum_chain_terms_f64_f64(sum->margin, &margin, 1);
    for (int side = 0; side < 2; side++)
        sum->logp[side] = sum_chain_terms_f64_f64(sum->logp[side], &value->logged[side], 1);
    /* counts; a reward that is not a number is neither larger nor smaller */
    sum->accuracy += isnan(margin) ? margin : margin > 0.0 ? 1.0 : 0.0;
    sum->ties += isnan(margin) ? margin : margin == 0.0 ? 1.0 : 0.0;
}

/* Gives every NaN one pattern, whatever pattern the hardware made of an invalid operation. */
static void fold(double *value) {
    if (isnan(*value)) *value = (double)NAN;
}

static void close_dpo(const struct config *config, const struct evaluator_rows *rows,
                      const double (*logp)[2], const double (*reference)[2],
                      struct evaluation *out) {
    const double count = (double)rows->count;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < rows->count; i++) {
        struct preference_pair pair = {.reference = {0.0, 0.0}};
        struct preference_value value;
        for (uint32_t side = 0; side < 2; side++) {
            pair.logp[side] = logp[i][side];
            pair.count[side] = dataset_side(rows->dataset, rows->index[i], side)->labels;
            if (reference != NULL) pair.reference[side] = reference[i][side];
        }
        preference_loss(config, &pair, &value);
        add_pair(&value, out);
    }
    out->loss /= count;
    out->margin /= count;
    out->accuracy /= count;
    out->logp[0] /= count;
    out->logp[1] /= count;
}

enum status evaluator_measure(struct evaluator *evaluator, const struct run *run,
                              enum evaluated which, uint32_t set, struct evaluation *out) {
    const struct evaluator_rows *rows = &evaluator->sets[set];
    const int other = !is_model_of(&evaluator->scorer[0], run_config(run));
    struct scorer *scorer = &evaluator->scorer[other];
    TRY(take_weights(scorer, run, which));
    TRY(score(scorer, &evaluator->limits, rows, evaluator->logp));
    const double(*logp)[2] = (const double(*)[2])evaluator->logp;
    if (scorer->config.task == TASK_SFT)
        close_sft(rows, logp, out);
    else
        close_dpo(&scorer->config, rows, logp, (const double(*)[2])evaluator->reference[set], out);
    double *const all[] = {&out->loss,   &out->logp[0],  &out->logp[1],
                           &out->margin, &out->accuracy, &out->ties};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        fold(all[i]);
    return STATUS_OK;
}
