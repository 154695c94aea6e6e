/* SPDX-License-Identifier: Apache-2.0
 * Measures the grid: B generates, A scores what it generated, and figures are read off. Prompts
 * come from parity_prompts.c. Each row has an arena of its own, so that a long row leaves no memory
 * behind. */
#include "experiment/parity/parity_logprob.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/real.h"
#include "determinism/stream.h"
#include "experiment/parity/parity_stats.h"
#include "model/backends.h"
#include "trainer/run_pass.h"

#define OWN_ORDERS 2u /* drawn orders of A's own sums; the larger distance counts */

enum { OWN_REPLICA = 0, OWN_HIGH, OWN_RUNS };

const char *const parity_data_names[PARITY_DATA] = {"real", "numbers", "random"};

void parity_grid_small(struct parity_grid *grid) {
    *grid = (struct parity_grid){.lengths = {32, 100},
                                 .length_count = 2,
                                 .batches = {1, 4},
                                 .batch_count = 2,
                                 .data_count = 2,
                                 .repeats = 2,
                                 .temperature = 0.7,
                                 .top_p = 0.9,
                                 .refit = 1};
}

void parity_grid_full(struct parity_grid *grid) {
    parity_grid_small(grid);
    grid->lengths[0] = 100;
    grid->lengths[1] = 1000;
    grid->lengths[2] = 10000;
    grid->batches[1] = 8;
    grid->batches[2] = 32;
    grid->length_count = grid->batch_count = 3;
    grid->data_count = PARITY_DATA;
    grid->repeats = 10;
}

/* One row of the grid while it is measured. Everything lives in its own arenas. */
struct casing {
    struct parity *parity;
    const struct parity_grid *grid;
    struct parity_row *row;
    struct arena arena, generating; /* memory of A's backend; of B's, where the generator lives */
    struct generator *generator;
    struct generate_prompt *prompts; /* (batch) */
    uint32_t *token;                 /* (batch, generated) */
    double *logp;
    uint32_t *first_token; /* what the first repeat generated */
    double *first_logp;
    struct model *scorer;
    struct run *own[OWN_RUNS]; /* A in B's dtype with sums in drawn orders; A in a wider dtype */
    struct model *rival[OWN_RUNS];
    struct batch_limits limits;
    struct batch batch;
    struct dataset dataset; /* the generated sequences */
    uint32_t *all;
    int32_t *target;
    uint32_t *samples;
    struct dataset_sequence *sequence;
    struct parity_sample factor; /* exp|d| */
    double bias;
    uint64_t equal;
    uint32_t number;  /* of the row */
    uint64_t updates; /* that A has seen */
};

/* ---- opening ---- */

static enum status open_scorer(struct casing *c) {
    const struct run *a = c->parity->run[PARITY_A];
    struct dataset *dataset = &c->dataset;
    const size_t tokens = (size_t)c->row->batch * c->row->length;
    const uint64_t micro = run_config(a)->batch.micro;
    TRY(arena_take(&c->arena, tokens, sizeof *c->all, "scores", &c->all));
    TRY(arena_take(&c->arena, tokens, sizeof *c->target, "scores", &c->target));
    TRY(arena_take(&c->arena, c->row->batch, sizeof *c->samples, "scores", &c->samples));
    TRY(arena_take(&c->arena, c->row->batch, sizeof *c->sequence, "scores", &c->sequence));
    TRY(arena_take(&c->arena, 1, sizeof *c->scorer, "scores", &c->scorer));
    *dataset = (struct dataset){.source = "generated",
                                .task = TASK_SFT,
                                .sides = 1,
                                .samples = c->row->batch,
                                .longest = c->row->length,
                                .token = c->all,
                                .target = c->target,
                                .sequence = c->sequence};
    TRY(batch_limits_open(run_config(a), dataset, micro < c->row->batch ? micro : c->row->batch,
                          LAYOUT_CONCATENATED, &c->limits));
    TRY(batch_open(&c->limits, &c->arena, &c->batch));
    TRY(model_open(run_config(a), run_table(a), run_backend(a), &c->limits, &c->arena, c->scorer));
    for (int i = 0; i < OWN_RUNS; i++) {
        const struct run *const own = c->own[i];
        if (own == NULL) continue;
        TRY(arena_take(&c->arena, 1, sizeof *c->rival[i], "scores", &c->rival[i]));
        TRY(model_open(run_config(own), run_table(own), run_backend(own), &c->limits, &c->arena,
                       c->rival[i]));
    }
    return STATUS_OK;
}

/* Refuses a case for which the machine has no memory. What is counted, keys, values and figures, is
 * not all that it takes. The system hands out more memory than it has and kills whoever uses it, so
 * it is better to refuse before anything is drawn. */
static enum status check_memory(const struct casing *c) {
    const struct config *b = &c->parity->config[PARITY_B];
    const double tokens = (double)c->row->batch * (double)c->row->length;
    const double keys = 2.0 * (double)b->model.layers * (double)b->model.kv_heads *
                        (double)b->model.head_dim *
                        (double)dtype_carrier((enum dtype)b->numerics.compute);
    const double needs = tokens * (keys + (double)c->grid->repeats * (double)sizeof(double));
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const double has = (double)pages * (double)size;
    if (pages <= 0 || size <= 0 || needs <= has) return STATUS_OK;
    FAIL(STATUS_MEMORY, "more than %.1f GiB of memory are needed, this machine has %.1f",
         needs / 0x1p30, has / 0x1p30);
}

static enum status open_case(struct casing *c) {
    const struct run *b = c->parity->run[PARITY_B];
    TRY(check_memory(c));
    TRY(parity_draw_prompts(c->parity, c->row, &c->arena, &c->prompts));
    const struct generate_limits limits = {c->row->batch, c->row->length - c->row->generated,
                                           c->row->length};
    const size_t tokens = (size_t)c->row->batch * c->row->generated;
    TRY(arena_take(&c->generating, 1, sizeof *c->generator, "generator", &c->generator));
    TRY(generator_open(run_config(b), run_table(b), &limits, &c->generating, c->generator));
    TRY(arena_take(&c->arena, tokens, sizeof *c->token, "tokens", &c->token));
    TRY(arena_take(&c->arena, tokens, sizeof *c->logp, "tokens", &c->logp));
    TRY(arena_take(&c->arena, tokens, sizeof *c->first_token, "tokens", &c->first_token));
    TRY(arena_take(&c->arena, tokens, sizeof *c->first_logp, "tokens", &c->first_logp));
    TRY(parity_sample_open(&c->factor, tokens * c->grid->repeats, &c->arena));
    return open_scorer(c);
}

/* ---- scores ---- */

static void fill_sequences(struct casing *c) {
    const uint32_t generated = c->row->generated;
    uint64_t first = 0;
    for (uint32_t s = 0; s < c->row->batch; s++) {
        const struct generate_prompt *prompt = &c->prompts[s];
        const uint32_t length = prompt->length + generated;
        memcpy(c->all + first, prompt->token, prompt->length * sizeof *c->all);
        memcpy(c->all + first + prompt->length, c->token + (size_t)s * generated,
               generated * sizeof *c->all);
        for (uint32_t p = 0; p < length; p++)
            c->target[first + p] = p + 1 < prompt->length || p + 1 == length
                                       ? DATASET_NO_TARGET
                                       : (int32_t)c->all[first + p + 1];
        c->sequence[s] = (struct dataset_sequence){first, length, prompt->length, generated, 0};
        first += length;
    }
}

static double add_token(struct casing *c, double trained, double generated) {
    const double d = generated - trained;
    const double factor = real_exp_f64(fabs(d));
    parity_sample_add(&c->factor, factor);
    c->bias = parity_add(c->bias, d);
    c->equal += memcmp(&trained, &generated, sizeof trained) == 0;
    return factor;
}

/* Mean |d| of log-probs against the scorer's. `generated`: they are in the order in which they were
 * generated, else in the label order of the batch. */
static double apart_of(const struct casing *c, uint32_t count, const double *logp, int generated) {
    const uint32_t tokens = c->row->generated;
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t t = 0; t < tokens; t++) {
            const uint32_t label = c->batch.label_first[i] + t;
            const double value = logp[generated ? (size_t)i * tokens + t : label];
            sum = parity_add(sum, fabs(value - c->scorer->logp[label]));
        }
    return sum / ((double)count * (double)tokens);
}

static void measure_own(struct casing *c, int which, uint32_t order, uint32_t count) {
    struct model *rival = c->rival[which];
    const struct model_weights weights = {run_weights(c->own[which])};
    model_set_order(rival, c->parity->request->seed + 2000 + order, 0);
    model_forward(rival, &weights, &c->batch, 0);
    c->row->own = parity_larger(c->row->own, apart_of(c, count, rival->logp, 0));
}

/* Measures on A's first sequences how far B is away, and how far rounding alone goes. */
static void calibrate(struct casing *c, uint32_t count) {
    c->row->apart = apart_of(c, count, c->logp, 1);
    for (uint32_t order = 0; order < OWN_ORDERS; order++)
        measure_own(c, OWN_REPLICA, order, count);
    if (c->own[OWN_HIGH] != NULL) measure_own(c, OWN_HIGH, 0, count);
}

/* Hands out a sampled sequence. Greedy ones say the same again and again. */
static enum status hand_out(const struct casing *c, uint32_t repeat, uint32_t sequence,
                            const double *trained) {
    const uint32_t tokens = c->row->generated;
    const size_t at = (size_t)sequence * tokens;
    if (c->grid->each == NULL || !c->row->sampled) return STATUS_OK;
    const struct parity_rollout one = {.row = c->row,
                                       .row_number = c->number,
                                       .repeat = repeat,
                                       .sequence = sequence,
                                       .prompt = c->prompts[sequence].length,
                                       .count = tokens,
                                       .token = c->token + at,
                                       .generated = c->logp + at,
                                       .trained = trained,
                                       .updates = {c->updates, c->grid->stale ? 0 : c->updates}};
    return c->grid->each(c->grid->each_context, &one);
}

/* Scores what was generated in this repeat; *out is its mean exp|d|. */
static enum status score(struct casing *c, uint32_t repeat, double *out) {
    struct run *a = c->parity->run[PARITY_A];
    const struct model_weights weights = {run_weights(a)};
    const uint32_t generated = c->row->generated;
    double sum = 0.0;
    fill_sequences(c);
    model_set_order(c->scorer, c->parity->request->seed + 7, repeat);
    for (uint32_t first = 0; first < c->row->batch; first += c->limits.samples) {
        uint32_t count = c->row->batch - first;
        if (count > c->limits.samples) count = c->limits.samples;
        for (uint32_t i = 0; i < count; i++)
            c->samples[i] = first + i;
        batch_fill(&c->batch, &c->limits, &c->dataset, c->samples, count, 0);
        model_forward(c->scorer, &weights, &c->batch, 0);
        if (repeat == 0 && first == 0) calibrate(c, count);
        for (uint32_t i = 0; i < count; i++) {
            const double *trained = c->scorer->logp + c->batch.label_first[i];
            for (uint32_t t = 0; t < generated; t++)
                sum = parity_add(
                    sum, add_token(c, trained[t], c->logp[(size_t)(first + i) * generated + t]));
            TRY(hand_out(c, repeat, first + i, trained));
        }
    }
    *out = sum / ((double)c->row->batch * (double)generated);
    return STATUS_OK;
}

static int is_first(struct casing *c, uint32_t repeat) {
    const size_t tokens = (size_t)c->row->batch * c->row->generated;
    if (repeat == 0) {
        memcpy(c->first_token, c->token, tokens * sizeof *c->token);
        memcpy(c->first_logp, c->logp, tokens * sizeof *c->logp);
    }
    return memcmp(c->first_token, c->token, tokens * sizeof *c->token) == 0 &&
           memcmp(c->first_logp, c->logp, tokens * sizeof *c->logp) == 0;
}

static enum status run_repeat(struct casing *c, uint32_t repeat) {
    struct run *b = c->parity->run[PARITY_B];
    const struct model_weights weights = {run_weights(b)};
    const struct generate_options options = {.tokens = c->row->generated,
                                             .temperature =
                                                 c->row->sampled ? c->grid->temperature : 0.0,
                                             .top_p = c->grid->top_p,
                                             .seed = c->parity->request->seed,
                                             .repeat = repeat,
                                             .order_seed = c->parity->request->seed + 1 + repeat,
                                             .interrupted = c->parity->request->interrupted};
    TRY(generate(c->generator, &weights, c->prompts, c->row->batch, &options, c->token, c->logp));
    double error;
    TRY(score(c, repeat, &error));
    c->row->error_least = repeat == 0 ? error : parity_smaller(c->row->error_least, error);
    c->row->error_most = repeat == 0 ? error : parity_larger(c->row->error_most, error);
    c->row->alike += (uint32_t)is_first(c, repeat);
    return STATUS_OK;
}

static enum status run_case(struct casing *c) {
    struct parity_row *row = c->row;
    TRY(open_case(c));
    for (uint32_t repeat = 0; repeat < c->grid->repeats; repeat++)
        TRY(run_repeat(c, repeat));
    row->tokens = c->factor.count;
    row->error = parity_sample_mean(&c->factor);
    row->median = parity_sample_quantile(&c->factor, 0.5);
    row->high = parity_sample_quantile(&c->factor, 0.999);
    row->bias = c->bias / (double)row->tokens;
    row->equal = (double)c->equal / (double)row->tokens;
    const int near = row->error <= PARITY_ERROR_LINE && row->apart <= PARITY_OWN_LINE * row->own;
    row->finding = near ? PARITY_WITHIN : PARITY_OUTSIDE;
    return STATUS_OK;
}

/* ---- grid ---- */

static enum status train_and_refit(struct parity *parity, const struct parity_grid *grid,
                                   struct run *const *own, struct parity_logprob *out) {
    struct run *a = parity->run[PARITY_A];
    const struct record *record;
    for (; out->updates < parity->request->steps; out->updates++) {
        TRY(parity_tick(parity, "updates before the refit", out->updates, parity->request->steps));
        TRY(run_step(a, &record));
    }
    if (!grid->stale) TRY(run_take_weights(a, parity->run[PARITY_B]));
    for (int i = 0; i < OWN_RUNS; i++)
        if (own[i] != NULL) TRY(run_take_weights(a, own[i]));
    return parity_compare_weights(a, parity->run[PARITY_B], &out->weights);
}

static enum status check_grid(const struct parity *parity, const struct parity_grid *grid) {
    for (uint32_t i = 0; i < grid->length_count; i++)
        if (grid->lengths[i] < 4)
            FAIL(STATUS_INPUT, "length: expected at least 4 tokens, got %u", grid->lengths[i]);
    for (uint32_t i = 0; i < grid->batch_count; i++)
        if (grid->batches[i] < 1)
            FAIL(STATUS_INPUT, "batch: expected at least 1 sequence, got %u", grid->batches[i]);
    if (parity->shapes_differ && grid->refit)
        FAIL(STATUS_UNSUPPORTED, "A and B have models of other shapes: there is no refit");
    return STATUS_OK;
}

static void list_rows(const struct parity_grid *grid, struct parity_logprob *out) {
    for (int refit = 0; refit <= grid->refit; refit++)
        for (uint32_t l = 0; l < grid->length_count; l++)
            for (int sampled = 0; sampled < 2; sampled++)
                for (uint32_t d = 0; d < grid->data_count; d++)
                    for (uint32_t b = 0; b < grid->batch_count; b++)
                        out->rows[out->count++] = (struct parity_row){.length = grid->lengths[l],
                                                                      .batch = grid->batches[b],
                                                                      .data = (enum parity_data)d,
                                                                      .sampled = sampled,
                                                                      .refit = refit};
}

static enum status run_row(struct parity *parity, const struct parity_grid *grid,
                           struct run *const *own, struct parity_logprob *out, uint32_t number) {
    struct casing c = {.parity = parity,
                       .grid = grid,
                       .row = &out->rows[number],
                       .number = number,
                       .own = {own[OWN_REPLICA], own[OWN_HIGH]}};
    TRY(parity_tick(parity, "log-probs", number, out->count));
    if (c.row->refit && out->updates == 0) TRY(train_and_refit(parity, grid, own, out));
    c.updates = out->updates;
    /* what scores, and what decodes, has activations that the host sees: it reads them between ops,
     * and the runs that are held against A may have another backend */
    backends_memory(run_backend(parity->run[PARITY_A]), &c.arena, NULL);
    backends_memory(run_backend(parity->run[PARITY_B]), &c.generating, NULL);
    const enum status status = run_case(&c);
    arena_close(&c.arena);
    arena_close(&c.generating);
    if (status != STATUS_OK)
        return status_prefix(status, "length %u, batch %u", c.row->length, c.row->batch);
    if (c.row->refit && out->weights.apart > 0) c.row->finding = PARITY_OUTSIDE;
    if (c.row->finding == PARITY_OUTSIDE) out->finding = PARITY_OUTSIDE;
    return STATUS_OK;
}

enum status parity_measure_logprob(struct parity *parity, const struct parity_grid *grid,
                                   struct parity_logprob *out) {
    const size_t most = (size_t)(grid->refit ? 2 : 1) * grid->length_count * 2 * grid->data_count *
                        grid->batch_count;
    memset(out, 0, sizeof *out);
    TRY(check_grid(parity, grid));
    TRY(arena_take(parity->arena, most, sizeof *out->rows, "log-probs", &out->rows));
    list_rows(grid, out);
    struct run *own[OWN_RUNS] = {NULL};
    enum status status = STATUS_OK;
    TRY(parity_replica_open(parity, parity->request->seed, &own[OWN_REPLICA]));
    if (parity->no_high == NULL) own[OWN_HIGH] = parity->run[PARITY_HIGH];
    for (uint32_t i = 0; i < out->count && status == STATUS_OK; i++)
        status = run_row(parity, grid, own, out, i);
    run_close(own[OWN_REPLICA]);
    return status == STATUS_OK ? parity_settle(parity) : status;
}
