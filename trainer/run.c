/* SPDX-License-Identifier: Apache-2.0
 * Opens a run at step 0 and steps it through its lists. */
#include "trainer/run_private.h"

#include <math.h>
#include <string.h>

#include "kernels/backend_abi.h"
#include "kernels/shuffle.h"
#include "scenarios/scenario.h"
#include "trainer/backends.h"
#include "trainer/datarow.h"
#include "trainer/nudge.h"
#include "trainer/loss.h"
#include "trainer/outlier.h"
#include "trainer/plugin.h"
#include "trainer/pretrained.h"
#include "trainer/readback.h"
#include "trainer/readback_sums.h"
#include "trainer/restart.h"
#include "trainer/rounding.h"
#include "trainer/scaler.h"
#include "trainer/streams.h"

void run_convert(const struct run *run, size_t count, enum dtype from, enum dtype to,
                 const void *source, void *destination) {
    struct convert_args args = {count, from, to, source, destination};
    run->host->convert(&run->model.call, &args);
}

const void *run_param(const struct run *run, uint32_t row) {
    return run->state + run->layout.tensor[row].param;
}

struct sched_call run_schedule_call(const struct config *config) {
    return (struct sched_call){.size = sizeof(struct sched_call),
                               .base_lr = config->optimizer.lr,
                               .warmup = config->schedule.warmup,
                               .total = (double)config->schedule.total,
                               .values = config->schedule.which.values};
}

struct sched_call run_sched_call(const struct run *run) {
    struct sched_call call = run_schedule_call(&run->config);
    if (run->state != NULL) call.state = run->state + run->layout.schedule;
    return call;
}

struct dataset_options run_dataset_options(const struct config *config) {
    return (struct dataset_options){
        .task = (enum task)config->task,
        .source = config->task == TASK_SFT ? config->data.text : config->data.pairs,
        .samples = config->data.samples == KEY_WORD_UINT ? 0 : config->data.samples,
        .max_len = config->data.max_len,
        .vocab = config->model.vocab,
        .seed = config->data.seed,
        .chat = (enum chat)config->data.chat,
        .reference = config_has_reference(config) && config->dpo.reference == REFERENCE_GIVEN};
}

static enum status open_tables(struct run *run) {
    struct arena *arena = &run->arena;
    TRY(plugin_optimizer(&run->config.optimizer.which, &run->optimizer));
    TRY(plugin_schedule(&run->config.schedule.which, &run->schedule));
    struct sched_call call = run_sched_call(run);
    TRY(plugin_check_values(&run->config.optimizer.which, run->optimizer));
    TRY(plugin_check_call(&run->config.schedule.which, run->schedule, &call));
    TRY(params_open(&run->config, arena, &run->table));
    TRY(state_layout_open(&run->config, &run->table, run->optimizer, run->schedule,
                          run->dataset->samples, arena, &run->layout));
    TRY(arena_take(arena, run->layout.bytes, 1, "training state", &run->state));
    TRY(arena_take(arena, run->table.count, sizeof *run->owner, "run", &run->owner));
    TRY(arena_take(arena, run->table.count + 1, sizeof *run->packed, "run", &run->packed));
    for (uint32_t i = 0; i < run->table.count; i++) {
        int own = run->table.rows[i].tied_to < 0;
        if (own) run->owner[run->owner_count++] = i;
        run->packed[i + 1] = run->packed[i] + (own ? run->table.rows[i].count : 0);
    }
    return STATUS_OK;
}

static enum status init_row(struct run *run, const struct pretrained *pretrained, uint32_t row,
                            void *values) {
    const struct run *start = run->options.start;
    if (start == NULL && pretrained != NULL)
        return pretrained_values(pretrained, run, row, (enum dtype)run->config.numerics.param,
                                 values);
    if (start == NULL) return params_init(&run->config, &run->table, row, values);
    const enum dtype theirs = (enum dtype)start->config.numerics.param;
    if (start->table.count != run->table.count ||
        start->table.rows[row].count != run->table.rows[row].count)
        FAIL(STATUS_INTERNAL, "%s: the run to start from has another model",
             run->table.rows[row].name);
    run_convert(run, run->table.rows[row].count, theirs, (enum dtype)run->config.numerics.param,
                start->initial + start->packed[row] * dtype_carrier(theirs), values);
    return STATUS_OK;
}

/* A master has what the checkpoint holds, or the drawn value as the parameter has it. */
static enum status init_master(struct run *run, const struct pretrained *pretrained, uint32_t row,
                               const void *values) {
    void *master = run_at(run, run->layout.tensor[row].master);
    if (run->options.start == NULL && pretrained != NULL)
        return pretrained_values(pretrained, run, row, run->layout.master_dtype, master);
    run_convert(run, run->table.rows[row].count, (enum dtype)run->config.numerics.param,
                run->layout.master_dtype, values, master);
    return STATUS_OK;
}

/* `pretrained`: NULL where weights are drawn. */
static enum status init_rows(struct run *run, const struct pretrained *pretrained) {
    enum dtype param = (enum dtype)run->config.numerics.param;
    size_t carrier = dtype_carrier(param);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        size_t count = run->table.rows[row].count;
        void *values = run_at(run, run->layout.tensor[row].param);
        TRY(init_row(run, pretrained, row, values));
        memcpy(run->initial + run->packed[row] * carrier, values, count * carrier);
        if (run->layout.has_master) TRY(init_master(run, pretrained, row, values));
    }
    return STATUS_OK;
}

static enum status init_params(struct run *run) {
    struct pretrained pretrained;
    if (!pretrained_is_named(&run->config)) return init_rows(run, NULL);
    TRY(pretrained_open(&run->config, &pretrained));
    const enum status status = init_rows(run, &pretrained);
    pretrained_close(&pretrained);
    return status;
}

/* Pointers by row: the parameter itself, or a compute copy where the dtypes differ. */
static enum status open_weights(struct run *run) {
    struct arena *arena = &run->arena;
    uint32_t count = run->table.count;
    int copies = run->config.numerics.param != run->config.numerics.compute;
    TRY(arena_take(arena, count, sizeof *run->weights, "weights", &run->weights));
    TRY(arena_take(arena, count, sizeof *run->accumulators, "weights", &run->accumulators));
    if (copies)
        TRY(arena_take(arena, count, sizeof *run->weight_copies, "weights", &run->weight_copies));
    for (uint32_t i = 0; i < count; i++) {
        const struct param_row *row = &run->table.rows[i];
        if (row->tied_to >= 0) {
            run->weights[i] = run->weights[row->tied_to];
            continue;
        }
        run->weights[i] = run_param(run, i);
        for (uint32_t use = 0; use < row->uses; use++)
            run->accumulators[i][use] = run_at(run, run->layout.tensor[i].accumulator[use]);
        if (!copies) continue;
        TRY(arena_take(arena, row->count, run->model.carrier, "weight copies",
                       &run->weight_copies[i]));
        run->weights[i] = run->weight_copies[i];
    }
    return STATUS_OK;
}

static size_t run_sequences(const struct run *run) {
    return (size_t)run->limits.samples * run->limits.sides;
}

/* Of gradients: of each, and of all as one vector. */
static enum status open_clipping(struct run *run) {
    size_t blocks = 0, elements = 0;
    TRY(arena_take(&run->arena, run->owner_count, sizeof *run->clips, "clipping", &run->clips));
    if (run->backend == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        blocks += squares_blocks(run->table.rows[run->owner[i]].count);
        elements += run->table.rows[run->owner[i]].count;
    }
    TRY(arena_take(&run->arena, run->owner_count, sizeof *run->clip_pieces, "clipping",
                   &run->clip_pieces));
    return arena_take(&run->arena, blocks + squares_blocks(elements), sizeof *run->clip_blocks,
                      "clipping", &run->clip_blocks);
}

static enum status open_scratch(struct run *run) {
    struct arena *arena = &run->arena;
    size_t largest = 0, param = dtype_carrier((enum dtype)run->config.numerics.param);
    size_t sequences = run_sequences(run);
    for (uint32_t i = 0; i < run->table.count; i++)
        if (run->table.rows[i].count > largest) largest = run->table.rows[i].count;
    TRY(arena_take(arena, run->table.elements, param, "initial parameters", &run->initial));
    TRY(arena_take(arena, run->table.elements, param, "last parameters", &run->before));
    if (run->options.readback) {
        TRY(readback_open(run));
        if (readback_sums_needs_direction(run))
            TRY(arena_take(arena, largest, sizeof(double), "direction", &run->direction));
    }
    TRY(arena_take(arena, run->limits.tokens, sizeof(double), "loss", &run->coefficient));
    TRY(arena_take(arena, sequences, sizeof(double), "loss", &run->sequence_logp));
    TRY(arena_take(arena, run->limits.samples, sizeof(double), "loss", &run->terms));
    TRY(arena_take(arena, run->limits.samples, sizeof *run->reference_logp, "loss",
                   &run->reference_logp));
    TRY(arena_take(arena, run->owner_count, sizeof *run->tensors, "optimizer", &run->tensors));
    TRY(arena_take(arena, run->limits.samples, sizeof *run->probe, "probe", &run->probe));
    TRY(open_clipping(run));
    TRY(arena_take(arena, run->table.count, sizeof *run->piece_digest, "digests",
                   &run->piece_digest));
    return arena_take(arena, run->owner_count, sizeof *run->gradient_digest, "digests",
                      &run->gradient_digest);
}

static enum status open_record(struct run *run) {
    struct arena *arena = &run->arena;
    struct record *record = &run->record;
    struct record_shape shape = run->shape;
    TRY(arena_take(arena, shape.groups, sizeof *record->groups, "record", &record->groups));
    TRY(arena_take(arena, shape.tensors, sizeof *record->tensors, "record", &record->tensors));
    TRY(arena_take(arena, shape.tensors, sizeof *record->tensor_digests, "record",
                   &record->tensor_digests));
    TRY(arena_take(arena, shape.phases, sizeof *record->phases, "record", &record->phases));
    TRY(arena_take(arena, shape.sites, sizeof *record->sites, "record", &record->sites));
    TRY(arena_take(arena, shape.micros, sizeof *record->micros, "record", &record->micros));
    TRY(arena_take(arena, shape.consumers, sizeof *record->ledger, "record", &record->ledger));
    TRY(arena_take(arena, shape.streams, sizeof *record->places, "record", &record->places));
    TRY(arena_take(arena, shape.sites, sizeof *run->site_stream, "record", &run->site_stream));
    TRY(arena_take(arena, shape.sites, sizeof *run->site_digest, "record", &run->site_digest));
    return arena_take(arena, (size_t)shape.sites * run_sequences(run), sizeof *run->site_item,
                      "record", &run->site_item);
}

enum status run_start_lr(const struct run *run, double *out) {
    const struct config *config = &run->config;
    struct sched_call call = run_sched_call(run);
    switch ((enum schedule_start)config->schedule.start) {
    case START_BASE:
        *out = config->optimizer.lr;
        return STATUS_OK;
    case START_ZERO:
        *out = 0.0;
        return STATUS_OK;
    case START_MIN:
        return plugin_minimum(&config->schedule.which, run->schedule, &call, out);
    case START_F0:
    default:
        return plugin_value(&config->schedule.which, run->schedule, &call,
                            loop_start_counter(config), out);
    }
}

static enum status check_orders(const struct run *run) {
    if (!run->model.shuffled) return STATUS_OK;
    const struct model *model = &run->model;
    uint64_t widest = model->V > model->M ? model->V : model->M;
    if (model->Q > widest) widest = model->Q;
    uint64_t rows = run->limits.rows > widest ? run->limits.rows : widest;
    if (model->head_norm && (uint64_t)run->limits.rows * model->H > rows)
        rows = (uint64_t)run->limits.rows * model->H;
    struct shuffle_extent extent = {.rows = rows,
                                    .columns = widest > model->C ? widest : model->C,
                                    .terms = rows,
                                    .layers = model->layers,
                                    .samples = run->config.batch.size,
                                    .tensors = run->table.count};
    return shuffle_check(&model->order, &extent);
}

/* A contract that counts epochs was told how long they are. */
static enum status check_epochs(const struct run *run) {
    uint64_t told = run->config.schedule.updates_per_epoch, real = run->sampler.epoch_updates;
    if (!config_has_contract(&run->config) || told == 0 || told == real) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "schedule.updates_per_epoch: an epoch of this data has %ju updates, got %ju; contract %s "
         "counts them",
         (uintmax_t)real, (uintmax_t)told, run->config.schedule.contract);
}

static bool keeps_tail(const struct config *config) {
    return config->batch.tail == TAIL_KEEP || config->batch.tail == TAIL_KEEP_UNDERSCALED;
}

static uint64_t counted_ranks(const struct config *config) {
    return config->loss.divisor == DIVISOR_MEAN_OF_RANKS ? config->loss.ranks : 0;
}

/* Before the arena is used: its memory is the backend's. */
static enum status open_backend(struct run *run) {
    const struct config *config = &run->config;
    TRY(backend_ops((enum isa)config->numerics.isa, (enum dtype)config->numerics.compute,
                    (enum dtype)config->numerics.accumulate, &run->host));
    TRY(backends_open(config, &run->backend));
    if (run->backend != NULL) run->arena.source = &run->backend->memory;
    return STATUS_OK;
}

enum status run_use_backend(struct run *run, const struct batch_limits *limits,
                            struct model *model) {
    return model_use_backend(model, run->backend, limits, &run->arena);
}

static enum status open_all(struct run *run) {
    const struct config *config = &run->config;
    TRY(loop_check(config, NULL));
    TRY(open_backend(run));
    TRY(open_tables(run));
    TRY(batch_limits_open(config, run->dataset, config->batch.micro,
                          (enum batch_layout)config->batch.layout, &run->limits));
    TRY(batch_open(&run->limits, &run->arena, &run->batch));
    TRY(model_open(config, &run->table, &run->limits, &run->arena, &run->model));
    TRY(run_use_backend(run, &run->limits, &run->model));
    TRY(check_orders(run));
    struct sampler_options options = {.seed = config->data.seed,
                                      .size = config->batch.size,
                                      .micro = config->batch.micro,
                                      .ranks = config->parallel.ranks,
                                      .shuffle = config->data.shuffle != 0,
                                      .keep_last = keeps_tail(config),
                                      .leak = config->batch.tail == TAIL_LEAK,
                                      .loss_ranks = counted_ranks(config)};
    TRY(sampler_init(&options, run->dataset, &run->arena, &run->sampler));
    TRY(check_epochs(run));
    TRY(streams_open(run));
    TRY(open_scratch(run));
    TRY(rounding_open(run));
    TRY(open_weights(run));
    TRY(run_axes_open(config, &run->options, &run->arena, &run->axes));
    run->shape = run->axes.shape;
    TRY(open_record(run));
    TRY(measure_open(run));
    TRY(init_params(run));
    struct state_head *head = run_head(run);
    head->norm = (double)NAN;
    head->coefficient = (double)NAN;
    scaler_open(config, &head->scaler);
    for (uint32_t g = 0; g < run->table.groups; g++)
        TRY(run_start_lr(run, &head->lr[g]));
    if (config_has_reference(config)) TRY(reference_open(run));
    return nudge_apply(run);
}

enum status run_open(const struct config *config, const struct dataset *dataset,
                     const struct run_options *options, struct run *out) {
    memset(out, 0, sizeof *out);
    out->config = *config;
    out->options = *options;
    out->config.numerics.order_seed = options->order_seed;
    out->dataset = dataset;
    enum status status = open_all(out);
    if (status != STATUS_OK) run_close(out);
    return status;
}

void run_close(struct run *run) {
    arena_close(&run->arena);
}

static enum status run_list(struct run *run, enum loop_list list) {
    const struct key_list *phases = loop_list_of(&run->config, list);
    for (uint8_t i = 0; i < phases->count; i++) {
        enum phase phase = (enum phase)phases->item[i];
        if (list == LOOP_UPDATE && !loop_runs(&run->config, phase, run->skipped)) continue;
        TRY(phase_run(run, phase));
    }
    return STATUS_OK;
}

/* In the training's order. */
static double square_by_op(struct run *run, uint32_t row) {
    double square;
    const struct square_args args = {run->table.rows[row].count, run->layout.gradient_dtype,
                                     run_at(run, run->layout.tensor[row].gradient), &square};
    run->model.ops->square(&run->model.call, &args);
    return square;
}

/* Whether the closed gradient holds what is not finite. A backend is asked for all tensors at once,
 * but not where their sums have a drawn or racing order. */
static enum status look_for_overflow(struct run *run) {
    const struct op_call *const call = &run->model.call;
    const int asked = run->backend != NULL && call->order == NULL && call->racing == NULL;
    const double *blocks = run->clip_blocks;
    TRY(phase_close_gradient(run));
    if (asked) {
        phase_ask_squares(run);
        TRY(run->backend->wait());
    }
    for (uint32_t i = 0; i < run->owner_count && !run->overflow; i++)
        run->overflow =
            !isfinite(asked ? phase_squares(run, i, &blocks) : square_by_op(run, run->owner[i]));
    return STATUS_OK;
}

/* Loss and norm as the loop logs them, rounded to f32. */
static enum status judge_outlier(struct run *run) {
    const struct config *config = &run->config;
    struct state_head *head = run_head(run);
    struct outlier_latest latest = {.has_norm = loop_count(config, LOOP_UPDATE, PHASE_CLIP) > 0};
    latest.loss = (float)loss_close(config, &head->window, &run->plan);
    if (latest.has_norm) {
        double norm;
        TRY(phase_measure_norm(run, &norm));
        latest.norm = (float)(norm / scaler_left(&head->scaler));
    }
    run->skipped = outlier_judge((double *)run_at(run, run->layout.outliers),
                                 config->loop.skip_window, config->loop.skip_sigma, latest);
    return STATUS_OK;
}

/* The skip rule and a dynamic loss scale look at the closed gradient once, before list `update`
 * runs: a finite scale neither makes nor hides what is not finite. */
static enum status decide_skip(struct run *run) {
    const struct config *config = &run->config;
    run->skipped = run->overflow = 0;
    if (config->loop.skip == SKIP_OLMO_OUTLIER) TRY(judge_outlier(run));
    if (config->loop.skip != SKIP_NONFINITE && config->scaler.kind != SCALER_DYNAMIC)
        return STATUS_OK;
    TRY(look_for_overflow(run));
    if (config->loop.skip == SKIP_NONFINITE) run->skipped = run->overflow;
    return STATUS_OK;
}

/* An epoch whose rest leaks ends after its rest, so in the first update of the next one. */
static enum status run_micros(struct run *run) {
    for (run->micro = 0; run->micro < run->plan.leaked.micros;)
        TRY(run_list(run, LOOP_MICRO));
    if (run->plan.leaked.micros > 0) TRY(run_list(run, LOOP_EPOCH));
    while (run->micro < run->plan.micros)
        TRY(run_list(run, LOOP_MICRO));
    return STATUS_OK;
}

enum status run_step(struct run *run, const struct record **out_record) {
    struct state_head *head = run_head(run);
    TRY(restart_begin(run));
    streams_begin(run);
    TRY(sampler_plan_update(&run->sampler, head->sampler, &run->plan));
    measure_begin(run);
    stream_ledger_add(&run->ledger, STREAM_DATA, DATA_OP_PERMUTE, streams_data_words(run));
    run->skipped = 0;
    TRY(run_micros(run));
    TRY(decide_skip(run));
    TRY(run_list(run, LOOP_UPDATE));
    uint64_t every = run->config.loop.eval_every;
    if (every != 0 && (head->done + 1) % every == 0) TRY(run_list(run, LOOP_EVAL));
    struct sampler_state next = sampler_next(&run->sampler, head->sampler);
    if (next.epoch != head->sampler.epoch && run->sampler.rest == 0) TRY(run_list(run, LOOP_EPOCH));
    if (head->scaler.scale > 0.0) run->record.reals[REAL_LOSS_SCALE] = head->scaler.scale;
    scaler_update(&run->config, run->overflow, &head->scaler);
    head->sampler = next;
    head->done++;
    TRY(measure_end(run));
    *out_record = &run->record;
    return STATUS_OK;
}

void run_snapshot(const struct run *run, unsigned char *snapshot) {
    memcpy(snapshot, run->state, run->layout.bytes);
}

void run_restore(struct run *run, const unsigned char *snapshot) {
    memcpy(run->state, snapshot, run->layout.bytes);
    run->weights_fresh = 0;
}

/* Two paths may hold the same module. */
static int same_class(const struct config_class *a, const struct config_class *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->module_sha256, b->module_sha256) == 0;
}

int run_same_layout(const struct run *a, const struct run *b) {
    if (a->layout.bytes != b->layout.bytes || a->table.count != b->table.count ||
        !same_class(&a->config.optimizer.which, &b->config.optimizer.which) ||
        !same_class(&a->config.schedule.which, &b->config.schedule.which) ||
        a->layout.reference != b->layout.reference ||
        a->layout.outlier_numbers != b->layout.outlier_numbers)
        return 0;
    for (uint32_t i = 0; i < a->table.count; i++)
        if (a->table.rows[i].count != b->table.rows[i].count ||
            a->table.rows[i].dtype != b->table.rows[i].dtype ||
            memcmp(&a->layout.tensor[i], &b->layout.tensor[i], sizeof a->layout.tensor[i]) != 0)
            return 0;
    return a->layout.has_master == b->layout.has_master &&
           a->layout.master_dtype == b->layout.master_dtype &&
           a->layout.gradient_dtype == b->layout.gradient_dtype &&
           a->layout.slot_dtype == b->layout.slot_dtype &&
           a->layout.accumulator_dtype == b->layout.accumulator_dtype;
}
