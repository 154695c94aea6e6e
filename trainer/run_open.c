/* SPDX-License-Identifier: Apache-2.0
 * Opens a run at step 0: the tables, all of its memory, and the checks that concern several parts;
 * and sets the parameters that it starts with: drawn ones, those of a checkpoint, or those of
 * another run, with the masters beside them. */
#include "trainer/run_private.h"

#include <math.h>
#include <string.h>

#include "data/datarow.h"
#include "kernels/backend_abi.h"
#include "kernels/shuffle.h"
#include "model/backends.h"
#include "model/pretrained.h"
#include "scenarios/scenario.h"
#include "trainer/closing.h"
#include "trainer/owed_zeros.h"
#include "trainer/corruption.h"
#include "trainer/perturbation.h"
#include "trainer/plugins/plugin.h"
#include "trainer/rank_gradients.h"
#include "trainer/readback.h"
#include "trainer/real_ranks.h"
#include "trainer/replay_check.h"
#include "trainer/replicas.h"
#include "trainer/rounding.h"
#include "trainer/run_tensors.h"
#include "trainer/scaler.h"
#include "trainer/shards.h"
#include "trainer/streams.h"
#include "trainer/tensor_ranks.h"
#include "trainer/zero.h"

struct sched_call run_schedule_call(const struct config *config) {
    return (struct sched_call){.size = sizeof(struct sched_call),
                               .base_lr = config->optimizer.lr,
                               .warmup = config->schedule.warmup,
                               .total = (double)config->schedule.total,
                               .values = config->schedule.which.values};
}

struct sched_call run_sched_call(const struct run *run) {
    struct sched_call call = run_schedule_call(&run->config);
    if (run->state.host == NULL) return call;
    call.state = run->state.host + run->layout.schedule;
    if (run->layout.peak == 0) return call;
    double peak;
    memcpy(&peak, run->state.host + run->layout.peak, sizeof peak);
    if (peak != 0.0) call.base_lr = peak;
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
        .no_label = (enum no_label)config->data.no_label,
        .check_text = pretrained_refuse_text,
        .context = config,
        .reference = config_has_reference(config) && config->dpo.reference == REFERENCE_GIVEN};
}

/* Returns 1 where the host runs the loops of the optimizer's class, whatever backend has the
 * tensors. That is so for the class of a user's module, and for a class whose step needs whole
 * tensors instead of single elements. */
static int steps_on_host(const struct run *run) {
    return strcmp(run->config.optimizer.which.module, CONFIG_NO_MODULE) != 0 ||
           (run->optimizer->flags & OPTIM_ELEMENTWISE) == 0;
}

/* Takes the memory of the state: one piece, or two where a backend has the tensors. */
static enum status open_state(struct run *run) {
    const struct state_layout *const layout = &run->layout;
    if (run->backend == NULL) {
        TRY(arena_take(&run->arena, layout->bytes, 1, "training state", &run->state.host));
        run->state.tensors = run->state.host + layout->tensors;
        return STATUS_OK;
    }
    const size_t tensors = layout->bytes - layout->tensors;
    TRY(arena_take(&run->arena, layout->tensors, 1, "training state", &run->state.host));
    TRY(arena_take(arena_hidden(&run->arena), tensors, 1, "training state", &run->state.tensors));
    if (!steps_on_host(run)) return STATUS_OK;
    return arena_take(&run->arena, tensors, 1, "tensors of a step on the host", &run->staged);
}

/* Whether numbers of bf16 and f16 lie in two bytes where the state has them so: as the backend
 * takes them. */
static int takes_narrow(const struct run *run) {
    return !run->options.carriers && backends_takes_narrow(run->backend);
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
                          run->dataset->samples, takes_narrow(run), arena, &run->layout));
    TRY(open_state(run));
    TRY(arena_take(arena, run->table.count, sizeof *run->owner, "run", &run->owner));
    TRY(arena_take(arena, run->table.count + 1, sizeof *run->packed, "run", &run->packed));
    for (uint32_t i = 0; i < run->table.count; i++) {
        int own = run->table.rows[i].tied_to < 0;
        if (own) run->owner[run->owner_count++] = i;
        run->packed[i + 1] = run->packed[i] + (own ? run->table.rows[i].count : 0);
    }
    return STATUS_OK;
}

/* Returns the bytes of a compute copy, rounded up so that the next copy is aligned to 64 bytes,
 * too. */
static size_t copy_bytes(const struct run *run, uint32_t row) {
    const size_t own = run->table.rows[row].tied_to < 0 ? run->table.rows[row].count : 0;
    return (own * run->model.form.width + 63) & ~(size_t)63;
}

static enum status open_copies(struct run *run) {
    unsigned char *copies;
    size_t bytes = 0;
    for (uint32_t i = 0; i < run->table.count; i++)
        bytes += copy_bytes(run, i);
    TRY(arena_take(&run->arena, run->table.count, sizeof *run->weight_copies, "weights",
                   &run->weight_copies));
    TRY(arena_take(arena_hidden(&run->arena), bytes, 1, "weight copies", &copies));
    for (uint32_t i = 0; i < run->table.count; copies += copy_bytes(run, i++))
        if (run->table.rows[i].tied_to < 0) run->weight_copies[i] = copies;
    return STATUS_OK;
}

/* Points every row at what the ops read: the parameter itself, or a compute copy where the dtypes
 * differ, where the ops read two bytes, which parameters do not have, or where ranks own parts of
 * the weights, which are gathered there. A tied row points at its owner's. */
static enum status open_weights(struct run *run) {
    struct arena *arena = &run->arena;
    uint32_t count = run->table.count;
    const int copies = run->config.numerics.param != run->config.numerics.compute ||
                       form_is_narrow(run->model.form) || zero_is(run, ZERO_WEIGHTS);
    TRY(arena_take(arena, count, sizeof *run->weights, "weights", &run->weights));
    TRY(arena_take(arena, count, sizeof *run->accumulators, "weights", &run->accumulators));
    if (copies) TRY(open_copies(run));
    for (uint32_t i = 0; i < count; i++) {
        const struct param_row *row = &run->table.rows[i];
        if (row->tied_to >= 0) {
            run->weights[i] = run->weights[row->tied_to];
            continue;
        }
        run->weights[i] = run_param(run, i);
        for (uint32_t use = 0; use < row->uses; use++)
            run->accumulators[i][use] = run_at(run, run->layout.tensor[i].accumulator[use]);
        if (copies) run->weights[i] = run->weight_copies[i];
    }
    return STATUS_OK;
}

struct run_span run_span_at(const struct run *run, uint32_t owner) {
    struct run_span span = {PARAM_ABSENT, owner, 0};
    if (owner >= run->owner_count) return span;
    span.row = run->owner[owner];
    for (uint32_t row = span.row;; row = run->owner[span.next]) {
        const size_t count = run->table.rows[row].count;
        span.count += count;
        if (++span.next == run->owner_count) return span;
        const uint32_t next = run->owner[span.next];
        if (!state_follows(&run->table, &run->layout, row, next)) return span;
        if (run->weight_copies != NULL &&
            (const unsigned char *)run->weight_copies[row] + count * run->model.form.width !=
                (const unsigned char *)run->weight_copies[next])
            return span;
    }
}

static size_t run_sequences(const struct run *run) {
    return (size_t)run->limits.samples * run->limits.sides;
}

/* Takes the memory of clipping. Squares are summed by blocks; there is room for the blocks of each
 * gradient, and of all gradients as the one vector of clip.norm `flat`. */
static enum status open_clipping(struct run *run) {
    size_t blocks = 0, elements = 0;
    const size_t copies =
        run->config.parallel.counts == COUNTS_EACH ? run->config.parallel.tensor : 1;
    TRY(arena_take(&run->arena, copies * run->owner_count, sizeof *run->clips, "clipping",
                   &run->clips));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        blocks += squares_blocks(run->table.rows[run->owner[i]].count);
        elements += run->table.rows[run->owner[i]].count;
    }
    struct clip_room *const room = &run->clip_room;
    TRY(arena_take(&run->arena, run->owner_count + 1, sizeof *room->asked, "clipping",
                   &room->asked));
    TRY(arena_take(&run->arena, run->owner_count, sizeof *room->pieces, "clipping", &room->pieces));
    return arena_take(&run->arena, blocks + squares_blocks(elements), sizeof *room->blocks,
                      "clipping", &room->blocks);
}

static enum status open_scratch(struct run *run) {
    struct arena *arena = &run->arena;
    const size_t param = dtype_carrier((enum dtype)run->config.numerics.param);
    const size_t sequences = run_sequences(run);
    struct arena *const hidden = arena_hidden(arena);
    TRY(arena_take(hidden, run->table.elements, param, "initial parameters", &run->initial));
    TRY(arena_take(hidden, run->table.elements, param, "last parameters", &run->before));
    TRY(arena_take(arena, run->limits.tokens, sizeof(double), "loss", &run->coefficient));
    TRY(arena_take(arena, sequences, sizeof(double), "loss", &run->sequence_logp));
    TRY(arena_take(arena, run->limits.samples, sizeof(double), "loss", &run->terms));
    if (run->model.shuffled)
        TRY(arena_take(arena, shuffle_bytes(run->limits.samples), 1, "loss", &run->orders));
    TRY(arena_take(arena, run->limits.samples, sizeof *run->reference_logp, "loss",
                   &run->reference_logp));
    TRY(arena_take(arena, run->owner_count, sizeof *run->tensors, "optimizer", &run->tensors));
    TRY(open_clipping(run));
    TRY(arena_take(arena, run->table.count, sizeof *run->piece_digest, "digests",
                   &run->piece_digest));
    return arena_take(arena, run->owner_count, sizeof *run->gradient_digest, "digests",
                      &run->gradient_digest);
}

static enum status open_record(struct run *run) {
    struct arena *arena = &run->arena;
    const size_t sites = run->shape.sites;
    TRY(record_take(arena, &run->shape, 1, &run->record));
    TRY(arena_take(arena, sites, sizeof *run->site_stream, "record", &run->site_stream));
    TRY(arena_take(arena, sites, sizeof *run->site_digest, "record", &run->site_digest));
    return arena_take(arena, sites * run_sequences(run), sizeof *run->site_item, "record",
                      &run->site_item);
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

/* Refuses a model for whose orders mode shuffled has no addresses. The extents are the largest that
 * any op of the model sorts or sums over. */
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

/* A contract that counts epochs was told how long they are; a wrong length would move its LR. */
static enum status check_epochs(const struct run *run) {
    uint64_t told = run->config.schedule.updates_per_epoch, real = run->sampler.epoch_updates;
    if (!config_has_contract(&run->config) || told == 0 || told == real) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "schedule.updates_per_epoch: an epoch of this data has %ju updates, got %ju; contract %s "
         "counts them",
         (uintmax_t)real, (uintmax_t)told, run->config.schedule.contract);
}

/* Finds the ops. This comes before the arena is used, because its memory is the backend's. */
static enum status open_backend(struct run *run) {
    const struct config *config = &run->config;
    TRY(backend_ops((enum isa)config->numerics.isa, (enum dtype)config->numerics.compute,
                    (enum dtype)config->numerics.accumulate, &run->host));
    TRY(backends_open(config, &run->backend));
    backends_memory(run->backend, &run->arena, &run->hidden);
    return STATUS_OK;
}

/* Reads a row's tensor from the checkpoint, rounded as this run rounds. */
static enum status read_row(const struct run *run, const struct pretrained *pretrained,
                            uint32_t row, enum dtype to, void *values) {
    const struct pretrained_rounding rounding = {run->host, &run->model.call};
    return pretrained_values(pretrained, &run->table.rows[row], &rounding, to, values);
}

static enum status init_row(struct run *run, const struct pretrained *pretrained, uint32_t row,
                            void *values) {
    const struct run *start = run->options.start;
    if (start == NULL && pretrained != NULL)
        return read_row(run, pretrained, row, (enum dtype)run->config.numerics.param, values);
    if (start == NULL) return params_init(&run->config, &run->table, row, values);
    const enum dtype theirs = (enum dtype)start->config.numerics.param;
    if (start->table.count != run->table.count ||
        start->table.rows[row].count != run->table.rows[row].count)
        FAIL(STATUS_INTERNAL, "%s: the run to start from has another model",
             run->table.rows[row].name);
    const void *other;
    TRY(run_read(start, WINDOW_OLD, run_param_initial(start, row),
                 run->table.rows[row].count * dtype_carrier(theirs), &other));
    run_convert(run, run->table.rows[row].count, theirs, (enum dtype)run->config.numerics.param,
                other, values);
    return STATUS_OK;
}

/* A master starts from what the checkpoint holds, which may be wider than the parameter. Beside a
 * drawn value or one of another run it is made of the parameter, as frameworks make masters, and by
 * an op, where the parameter is. */
static enum status init_master(struct run *run, const struct pretrained *pretrained, uint32_t row) {
    const size_t count = run->table.rows[row].count;
    void *const tensor = run_at(run, run->layout.tensor[row].master), *master;
    const size_t bytes = count * dtype_carrier(run->layout.master_dtype);
    if (run->options.start != NULL || pretrained == NULL) {
        const struct convert_args args = {count,
                                          (enum dtype)run->config.numerics.param,
                                          run->layout.master_dtype,
                                          run_param(run, row),
                                          tensor,
                                          0};
        run->model.ops->convert(&run->model.call, &args);
        return STATUS_OK;
    }
    TRY(run_room(run, WINDOW_NOW, tensor, bytes, &master));
    TRY(read_row(run, pretrained, row, run->layout.master_dtype, master));
    return run_store(run, WINDOW_NOW, tensor, bytes);
}

/* Sets every owner. `pretrained` is NULL where weights are drawn. */
static enum status init_rows(struct run *run, const struct pretrained *pretrained) {
    enum dtype param = (enum dtype)run->config.numerics.param;
    size_t carrier = dtype_carrier(param);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        const size_t bytes = run->table.rows[row].count * carrier;
        void *const tensor = run_at(run, run->layout.tensor[row].param), *values;
        TRY(run_room(run, WINDOW_THEN, tensor, bytes, &values));
        TRY(init_row(run, pretrained, row, values));
        TRY(run_store(run, WINDOW_THEN, tensor, bytes));
        TRY(backends_copy(run->backend, run->initial + run->packed[row] * carrier, tensor, bytes));
        if (run->layout.has_master) TRY(init_master(run, pretrained, row));
    }
    return STATUS_OK;
}

/* Sets the initial parameters and masters of every owner, and run->initial, which keeps a copy of
 * the parameters. */
static enum status init_params(struct run *run) {
    struct pretrained pretrained;
    if (!pretrained_is_named(&run->config)) return init_rows(run, NULL);
    TRY(pretrained_open(&run->config, &pretrained));
    const enum status status = init_rows(run, &pretrained);
    pretrained_close(&pretrained);
    return status;
}

static enum status open_all(struct run *run) {
    const struct config *config = &run->config;
    TRY(loop_check(config, NULL));
    TRY(open_backend(run));
    TRY(run_windows_open(run));
    TRY(open_tables(run));
    TRY(tensor_ranks_check_data(config, run->dataset));
    const uint64_t fed = config_fed_ranks(config);
    TRY(batch_limits_open(config, run->dataset, config->batch.micro * fed,
                          (enum batch_layout)config->batch.layout, &run->limits));
    TRY(batch_open(&run->limits, &run->arena, &run->batch));
    TRY(model_open(config, &run->table, run->backend, &run->limits, &run->arena, &run->model));
    TRY(check_orders(run));
    TRY(corruption_open(run));
    TRY(replay_check_open(run));
    struct sampler_options options = {
        .seed = config->data.seed,
        .size = config->batch.size * fed,
        .micro = config->batch.micro * fed,
        .ranks = config->parallel.ranks,
        .shuffle = config->data.shuffle != 0,
        .keep_last = config->batch.tail == TAIL_KEEP || config->batch.tail == TAIL_KEEP_UNDERSCALED,
        .leak = config->batch.tail == TAIL_LEAK,
        .loss_ranks = config->loss.divisor == DIVISOR_MEAN_OF_RANKS ? config->loss.ranks : 0,
        .shards = config_dealt_shards(config),
        .dealt = config->parallel.ranks > 1 && config->parallel.deal != DEALS_BLOCKS,
        .deal = config->parallel.deal == DEALS_MICROS ? DEAL_MICROS : DEAL_CYCLIC,
        .uneven = config->parallel.uneven == UNEVEN_PAD ? DEAL_PAD : DEAL_DROP,
        .one_order = config->data.epoch_seed == EPOCH_SEED_FIRST};
    TRY(sampler_init(&options, run->dataset, &run->arena, &run->sampler));
    if (config->parallel.feeds == FEEDS_SAME) TRY(sampler_feed_same(&run->sampler, &run->arena));
    TRY(check_epochs(run));
    TRY(streams_open(run));
    TRY(open_scratch(run));
    TRY(rounding_open(run));
    TRY(zero_open(run));
    TRY(open_weights(run));
    TRY(shards_open(run));
    TRY(rank_gradients_open(run));
    TRY(replicas_open(run));
    TRY(tensor_ranks_open(run));
    TRY(run_axes_open(config, &run->options, &run->arena, &run->axes));
    run->shape = run->axes.shape;
    TRY(open_record(run));
    TRY(measure_open(run));
    TRY(closing_open(run));
    TRY(owed_zeros_open(run));
    if (run->options.readback) TRY(readback_open(run));
    TRY(init_params(run));
    struct state_head *head = run_head(run);
    head->norm = (double)NAN;
    head->coefficient = (double)NAN;
    scaler_open(config, &head->scaler);
    for (uint32_t g = 0; g < run->table.groups; g++)
        TRY(run_start_lr(run, &head->lr[g]));
    if (config_has_reference(config)) TRY(reference_open(run));
    TRY(perturbation_apply(run));
    replicas_spread(run);
    return STATUS_OK;
}

enum status run_open(const struct config *config, const struct dataset *dataset,
                     const struct run_options *options, struct run **out) {
    struct arena own = ARENA_EMPTY;
    struct run *run;
    *out = NULL;
    TRY(arena_take(&own, 1, sizeof *run, "run", &run));
    const enum status status = run_open_at(config, dataset, options, run);
    if (status != STATUS_OK) {
        arena_close(&own);
        return status;
    }
    run->own = own;
    *out = run;
    return STATUS_OK;
}

enum status run_open_at(const struct config *config, const struct dataset *dataset,
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
    if (run == NULL) return;
    struct arena own = run->own; /* `run` itself lies in it, and goes with it */
    real_ranks_forget(run);
    replay_check_close(run);
    run_windows_close(run);
    arena_close(&run->hidden);
    arena_close(&run->arena);
    arena_close(&own);
}
