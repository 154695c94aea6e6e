/* SPDX-License-Identifier: Apache-2.0
 * Opens the data and the four runs that are compared, and compares their weights. Which figures are
 * measured on them is the business of the other files. Invariant: low and high differ from A in
 * dtypes (and high in its mode) only. */
#include <math.h>
#include <string.h>

#include "data/tokenizer.h"
#include "determinism/stream.h"
#include "experiment/pair.h"
#include "experiment/parity/parity.h"
#include "kernels/backend_abi.h"
#include "scenarios/scenario.h"
#include "trainer/run_pass.h"
#include "trainer/run_tensors.h"

#define DRAWN_OP 258 /* op of STREAM_DATA at which ids are drawn */
#define DRAWN_SAMPLES 16u
#define DRAWN_LENGTH 32u

/* Puts B's dtypes into A's configuration, so that nothing else of B is in `low`. */
static void take_low(const struct config *a, const struct config *b, struct config *out) {
    *out = *a;
    if (a->numerics.compute == b->numerics.compute) return;
    out->numerics.compute = b->numerics.compute;
    out->numerics.accumulate = b->numerics.accumulate;
    out->numerics.loss = b->numerics.loss;
    out->numerics.product = CONFIG_AS_COMPUTE;
    out->numerics.softmax = CONFIG_AS_COMPUTE;
}

/* Makes A as it would be without rounding: in f32, or in f64 where f32 is what is compared. Returns
 * 0 where there is nothing wider. */
static int take_high(const struct config *low, struct config *out) {
    *out = *low;
    if (low->numerics.compute == DTYPE_F64) return 0;
    out->numerics.compute = low->numerics.compute == DTYPE_F32 ? DTYPE_F64 : DTYPE_F32;
    out->numerics.accumulate = DTYPE_F64;
    if (out->numerics.compute == DTYPE_F64) out->numerics.loss = DTYPE_F64;
    out->numerics.product = CONFIG_AS_COMPUTE;
    out->numerics.softmax = CONFIG_AS_COMPUTE;
    out->numerics.mode = MODE_INVARIANT;
    return 1;
}

static int same_shapes(const struct config *a, const struct config *b) {
    return a->model.family == b->model.family && a->model.layers == b->model.layers &&
           a->model.hidden == b->model.hidden && a->model.heads == b->model.heads &&
           a->model.kv_heads == b->model.kv_heads && a->model.head_dim == b->model.head_dim &&
           a->model.mlp == b->model.mlp;
}

/* Whether both have the same tensors in the same rows: biases, norms of q and k, a tied head. */
static int same_tables(const struct param_table *a, const struct param_table *b) {
    if (a->count != b->count) return 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->rows[i].name, b->rows[i].name) != 0 || a->rows[i].count != b->rows[i].count ||
            a->rows[i].tied_to != b->rows[i].tied_to)
            return 0;
    return 1;
}

/* Opens a run that starts from its own weights (A, B) or from A's. */
static enum status open_run(struct parity *parity, enum parity_who who) {
    const int own = who == PARITY_A || who == PARITY_B;
    const struct run_options options = {.steps = parity->request->steps,
                                        .order_seed = parity->request->seed + (uint64_t)who,
                                        .start = own ? NULL : parity->run[PARITY_A]};
    struct run *run;
    TRY(config_validate(&parity->config[who], parity->request->steps));
    if (parity->config[who].fault.update != 0)
        FAIL(STATUS_INPUT,
             "fault.update: expected 0, got %ju: parity compares models in which no "
             "bit flips",
             (uintmax_t)parity->config[who].fault.update);
    TRY(run_open(&parity->config[who], &parity->dataset, &options, &run));
    parity->run[who] = run;
    return STATUS_OK;
}

/* Draws ids as data for a vocabulary that has no room for bytes. */
static enum status draw_data(struct parity *parity) {
    const struct stream_address address = {
        .stream = STREAM_DATA, .op = DRAWN_OP, .last_element = 2 * DRAWN_SAMPLES * DRAWN_LENGTH};
    struct dataset *dataset = &parity->dataset;
    struct dataset_sequence *sequence;
    struct stream_site site;
    uint32_t *token, *line;
    uint8_t *opens;
    int32_t *target;
    TRY(stream_pack(&address, &site));
    TRY(arena_take(parity->arena, DRAWN_SAMPLES, sizeof *sequence, "data", &sequence));
    TRY(arena_take(parity->arena, DRAWN_SAMPLES, sizeof *line, "data", &line));
    TRY(arena_take(parity->arena, DRAWN_SAMPLES, sizeof *opens, "data", &opens));
    TRY(arena_take(parity->arena, DRAWN_SAMPLES * DRAWN_LENGTH, sizeof *token, "data", &token));
    TRY(arena_take(parity->arena, DRAWN_SAMPLES * DRAWN_LENGTH, sizeof *target, "data", &target));
    for (uint32_t i = 0; i < DRAWN_SAMPLES * DRAWN_LENGTH; i++)
        token[i] = stream_bounded(stream_word64(parity->request->seed, site, i),
                                  (uint32_t)parity->config[PARITY_A].model.vocab);
    for (uint32_t s = 0; s < DRAWN_SAMPLES; s++) {
        sequence[s] = (struct dataset_sequence){(uint64_t)s * DRAWN_LENGTH, DRAWN_LENGTH, 1,
                                                DRAWN_LENGTH - 1, 0};
        for (uint32_t p = 0; p < DRAWN_LENGTH; p++) {
            const uint32_t at = s * DRAWN_LENGTH + p;
            target[at] = p + 1 < DRAWN_LENGTH ? (int32_t)token[at + 1] : DATASET_NO_TARGET;
        }
    }
    *dataset = (struct dataset){.source = "drawn ids",
                                .task = TASK_SFT,
                                .sides = 1,
                                .samples = DRAWN_SAMPLES,
                                .tokens = (size_t)DRAWN_SAMPLES * DRAWN_LENGTH,
                                .labels = (size_t)DRAWN_SAMPLES * (DRAWN_LENGTH - 1),
                                .longest = DRAWN_LENGTH,
                                .token = token,
                                .target = target,
                                .line = line,
                                .sequence = sequence,
                                .opens = opens};
    return STATUS_OK;
}

static enum status open_data(struct parity *parity) {
    const struct config *a = &parity->config[PARITY_A];
    const struct dataset_options options = run_dataset_options(a);
    if (a->task == TASK_SFT && dataset_is_builtin(options.source) &&
        a->model.vocab < TOKENIZER_VOCAB)
        return draw_data(parity);
    return dataset_open(&options, parity->arena, &parity->dataset);
}

static enum status open_all(struct parity *parity) {
    static const char *const names[PARITY_RUNS] = {"A", "B", "A in B's dtype",
                                                   "A in a wider dtype"};
    for (int number = 0; number < PARITY_RUNS; number++) {
        const enum parity_who who = (enum parity_who)number;
        if (who == PARITY_HIGH && parity->no_high != NULL) continue;
        TRY(parity_tick(parity, "models", (uint64_t)who, PARITY_RUNS));
        const enum status status = open_run(parity, who);
        if (status != STATUS_OK) return status_prefix(status, "%s", names[who]);
    }
    if (!same_tables(run_table(parity->run[PARITY_A]), run_table(parity->run[PARITY_B])))
        parity->shapes_differ = 1;
    return STATUS_OK;
}

enum status parity_open(const struct parity_request *request, struct arena *arena,
                        struct parity *out) {
    struct config *config = out->config;
    memset(out, 0, sizeof *out);
    out->request = request;
    out->arena = arena;
    config[PARITY_A] = request->config[0];
    config[PARITY_B] = request->config[1];
    config[PARITY_B].data = config[PARITY_A].data;
    config[PARITY_B].task = config[PARITY_A].task;
    if (config[PARITY_A].model.vocab != config[PARITY_B].model.vocab)
        FAIL(STATUS_INPUT, "A has a vocabulary of %ju, B of %ju: nothing can be compared",
             (uintmax_t)config[PARITY_A].model.vocab, (uintmax_t)config[PARITY_B].model.vocab);
    out->shapes_differ = !same_shapes(&config[PARITY_A], &config[PARITY_B]);
    take_low(&config[PARITY_A], &config[PARITY_B], &config[PARITY_LOW]);
    if (!take_high(&config[PARITY_LOW], &config[PARITY_HIGH]))
        out->no_high = "B computes in f64, and there is no wider dtype";
    TRY(open_data(out));
    const enum status status = open_all(out);
    if (status != STATUS_OK) parity_close(out);
    return status;
}

void parity_close(struct parity *parity) {
    for (int who = 0; who < PARITY_RUNS; who++)
        if (parity->run[who] != NULL) run_close(parity->run[who]);
    memset(parity->run, 0, sizeof parity->run);
}

enum status parity_tick(const struct parity *parity, const char *what, uint64_t done,
                        uint64_t total) {
    const struct parity_request *request = parity->request;
    if (request->interrupted != NULL && *request->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted while %s were compared", what);
    if (request->progress != NULL) request->progress(request->context, what, done, total);
    return STATUS_OK;
}

enum status parity_settle(const struct parity *parity) {
    for (int who = 0; who < PARITY_RUNS; who++)
        if (parity->run[who] != NULL && run_backend(parity->run[who]) != NULL)
            TRY(run_backend(parity->run[who])->wait());
    return STATUS_OK;
}

uint32_t parity_batch_size(const struct parity *parity) {
    uint64_t size = parity->dataset.samples;
    for (int who = 0; who < PARITY_RUNS; who++)
        if (parity->run[who] != NULL && run_limits(parity->run[who])->samples < size)
            size = run_limits(parity->run[who])->samples;
    return (uint32_t)size;
}

void parity_batch(const struct parity *parity, uint32_t number, uint32_t *samples) {
    const uint32_t count = parity_batch_size(parity);
    for (uint32_t i = 0; i < count; i++)
        samples[i] = (uint32_t)(((uint64_t)number * count + i) % parity->dataset.samples);
}

enum status parity_forward(struct run *run, const uint32_t *samples, uint32_t count,
                           uint64_t order_seed) {
    run_fill_batch(run, samples, count);
    return run_forward(run, order_seed, 0, NULL);
}

enum status parity_replica_open(const struct parity *parity, uint64_t order_seed,
                                struct run **out) {
    struct config config = parity->config[PARITY_LOW];
    const struct run_options options = {
        .steps = 1, .order_seed = order_seed, .start = parity->run[PARITY_A]};
    config.numerics.mode = MODE_SHUFFLED;
    config.shuffle.kinds = (struct key_list){0};
    for (uint8_t kind = 0; kind < 6; kind++) /* all kinds of enum sum_kind */
        config.shuffle.kinds.item[config.shuffle.kinds.count++] = kind;
    config.shuffle.chunk = 4;
    return run_open(&config, &parity->dataset, &options, out);
}

/* A parameter as the host reads it. Elements are f64, which holds every carrier exactly. */
struct values {
    const void *at;
    enum dtype dtype;
};

static enum status values_open(const struct run *run, uint32_t row, struct values *out) {
    out->dtype = run_table(run)->rows[row].dtype;
    return run_read_param(run, WINDOW_NOW, row, &out->at);
}

static double value_at(const struct values *values, size_t i) {
    return element_get(values->at, values->dtype, i);
}

/* The row of the owner with this name; PARAM_ABSENT where there is none. */
static uint32_t row_named(const struct run *run, const char *name) {
    for (uint32_t i = 0; i < run_owner_count(run); i++)
        if (strcmp(run_table(run)->rows[run_owners(run)[i]].name, name) == 0)
            return run_owners(run)[i];
    return PARAM_ABSENT;
}

static enum status same_tensor(const struct run *a, const struct run *b, uint32_t row, int *out) {
    const enum dtype to = (enum dtype)run_config(b)->numerics.param;
    const struct param_row *param = &run_table(b)->rows[row];
    const uint32_t other = row_named(a, param->name);
    struct values theirs, ours;
    *out = 0;
    if (other == PARAM_ABSENT || run_table(a)->rows[other].count != param->count) return STATUS_OK;
    TRY(values_open(a, other, &theirs));
    TRY(values_open(b, row, &ours));
    for (size_t i = 0; i < param->count; i++) {
        const double x = dtype_round(value_at(&theirs, i), to), y = value_at(&ours, i);
        if (memcmp(&x, &y, sizeof x) != 0) return STATUS_OK;
    }
    *out = 1;
    return STATUS_OK;
}

enum status parity_find_broken(const struct run *run, uint32_t *out_count, const char **out_first) {
    *out_count = 0;
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const struct param_row *param = &run_table(run)->rows[run_owners(run)[i]];
        struct values values;
        size_t at = 0;
        TRY(values_open(run, run_owners(run)[i], &values));
        while (at < param->count && isfinite(value_at(&values, at)))
            at++;
        if (at < param->count && (*out_count)++ == 0) *out_first = param->name;
    }
    return STATUS_OK;
}

enum status parity_compare_weights(const struct run *a, const struct run *b,
                                   struct parity_weights *out) {
    int same;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < run_owner_count(b); i++) {
        out->tensors++;
        TRY(same_tensor(a, b, run_owners(b)[i], &same));
        if (same) continue;
        if (out->apart++ == 0) out->first = run_table(b)->rows[run_owners(b)[i]].name;
    }
    TRY(parity_find_broken(a, &out->broken[0], &out->first_broken[0]));
    return parity_find_broken(b, &out->broken[1], &out->first_broken[1]);
}
