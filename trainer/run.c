/* SPDX-License-Identifier: Apache-2.0
 * Steps an open run through its lists, and copies its state out and in. */
#include "trainer/run_private.h"

#include <math.h>
#include <string.h>

#include "data/datarow.h"
#include "kernels/op.h"
#include "model/loss.h"
#include "model/save_model.h"
#include "optim/outlier.h"
#include "trainer/corruption.h"
#include "trainer/real_ranks.h"
#include "trainer/replay_check.h"
#include "trainer/replicas.h"
#include "trainer/restart.h"
#include "trainer/run_tensors.h"
#include "trainer/scaler.h"
#include "trainer/shards.h"
#include "trainer/streams.h"
#include "trainer/tensor_ranks.h"

void run_convert(const struct run *run, size_t count, enum dtype from, enum dtype to,
                 const void *source, void *destination) {
    struct convert_args args = {count, from, to, source, destination, 0};
    run->host->convert(&run->model.call, &args);
}

enum status run_save(const struct run *run, const char *folder, int overwrite) {
    struct arena arena = ARENA_EMPTY;
    const void **values;
    const unsigned char *state;
    enum status status = arena_take(&arena, run->owner_count, sizeof *values, "tensors", &values);
    if (status == STATUS_OK) status = run_read_state(run, &state);
    if (status == STATUS_OK) {
        for (uint32_t i = 0; i < run->owner_count; i++)
            values[i] = state + run->layout.tensor[run->owner[i]].param;
        const struct saved_model model = {.config = &run->config,
                                          .table = &run->table,
                                          .owner = run->owner,
                                          .count = run->owner_count,
                                          .values = values};
        status = save_model(&model, folder, overwrite);
    }
    arena_close(&arena);
    return status;
}

uint64_t run_save_bytes(const struct run *run) {
    return save_model_bytes(&(struct saved_model){.config = &run->config,
                                                  .table = &run->table,
                                                  .owner = run->owner,
                                                  .count = run->owner_count});
}

/* Runs the phases of a list from number `first` on. */
static enum status run_from(struct run *run, enum loop_list list, uint8_t first) {
    const struct key_list *phases = loop_list_of(&run->config, list);
    for (uint8_t i = first; i < phases->count; i++) {
        enum phase phase = (enum phase)phases->item[i];
        if (list == LOOP_UPDATE && !loop_runs(&run->config, phase, run->skipped)) continue;
        TRY(replicas_phase(run, phase));
    }
    return STATUS_OK;
}

static enum status run_list(struct run *run, enum loop_list list) {
    return run_from(run, list, 0);
}

/* Finds out whether the closed gradient holds a number that is not finite: then the sum of its
 * tensor's squares is not finite either, in whatever order they are summed. Squares of f32 numbers
 * cannot overflow an f64 sum; an f64 gradient whose squares do counts as overflowed, too. */
static enum status look_for_overflow(struct run *run) {
    const double *blocks = run->clip_room.blocks;
    TRY(phase_close_gradient(run));
    phase_ask_squares(run);
    TRY(model_wait(&run->model));
    for (uint32_t i = 0; i < run->owner_count && !run->overflow; i++)
        run->overflow = !isfinite(phase_squares(run, i, &blocks));
    return STATUS_OK;
}

/* Judges the update by loss and norm as the loop logs them, rounded to f32. */
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
 * runs. It does not matter that phase `unscale` comes later: a finite scale neither makes nor hides
 * a number that is not finite. */
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

/* Runs list `update`. With several ranks its first phase is `reduce` (loop_check), and a skip rule
 * looks at the gradient that it makes, so it runs in a skipped update, too. */
static enum status run_update(struct run *run) {
    const int joins = run->config.parallel.ranks > 1;
    if (joins) TRY(replicas_phase(run, PHASE_REDUCE));
    TRY(decide_skip(run));
    return run_from(run, LOOP_UPDATE, joins ? 1 : 0);
}

static enum status run_micro(struct run *run) {
    return run_list(run, LOOP_MICRO);
}

/* Runs the micro-batches of the update. Under batch.tail `leak`, samples that did not fill the last
 * update of an epoch are the first micro-batches of the next update; the epoch is over when they
 * have run, so list `epoch` runs behind them. */
static enum status run_micros(struct run *run) {
    for (run->micro = 0; run->micro < run->plan.leaked.micros;)
        TRY(run_micro(run));
    if (run->plan.leaked.micros > 0) TRY(run_list(run, LOOP_EPOCH));
    while (run->micro < run->plan.micros) {
        replicas_enter(run, shards_rank_of(run, run->micro));
        TRY(run_micro(run));
    }
    replicas_enter(run, 0);
    return STATUS_OK;
}

static enum status step(struct run *run) {
    struct state_head *head = run_head(run);
    TRY(restart_begin(run));
    streams_begin(run);
    TRY(sampler_plan_update(&run->sampler, head->sampler, &run->plan));
    measure_begin(run);
    replicas_begin(run);
    tensor_ranks_begin(run);
    stream_ledger_add(&run->ledger, STREAM_DATA, DATA_OP_PERMUTE, streams_data_words(run));
    /* what the update before met is not told to a step among the micro-batches of this one */
    run->skipped = 0;
    run->overflow = 0;
    run->held = 0;
    TRY(replay_check_begin(run));
    TRY(run->shared ? real_ranks_micros(run, run_micro) : run_micros(run));
    TRY(replay_check_end(run, run_micros));
    TRY(run_update(run));
    uint64_t every = run->config.loop.eval_every;
    if (every != 0 && (head->done + 1) % every == 0) TRY(run_list(run, LOOP_EVAL));
    struct sampler_state next = sampler_next(&run->sampler, head->sampler);
    /* Where a rest leaks, run_micros ends the epoch in the next update. */
    if (next.epoch != head->sampler.epoch && run->sampler.rest == 0) TRY(run_list(run, LOOP_EPOCH));
    if (head->scaler.scale > 0.0) run->record.reals[REAL_LOSS_SCALE] = head->scaler.scale;
    scaler_update(&run->config, run->overflow, &head->scaler);
    head->sampler = next;
    head->done++;
    return measure_end(run);
}

enum status run_step(struct run *run, const struct record **out_record) {
    TRY(corruption_begin(run));
    TRY(real_ranks_begin(run));
    TRY(corruption_end(run, real_ranks_finish(run, step(run))));
    *out_record = &run->record;
    return STATUS_OK;
}

/* Classes are compared by the digest of their module, because two paths may hold the same module.
 */
static int same_class(const struct config_class *a, const struct config_class *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->module_sha256, b->module_sha256) == 0;
}

int run_same_layout(const struct run *a, const struct run *b) {
    const struct state_layout *const x = state_carried(&a->layout), *const y =
                                                                        state_carried(&b->layout);
    if (x->bytes != y->bytes || a->table.count != b->table.count ||
        !same_class(&a->config.optimizer.which, &b->config.optimizer.which) ||
        !same_class(&a->config.schedule.which, &b->config.schedule.which) ||
        a->layout.reference != b->layout.reference ||
        a->layout.replicas.copies != b->layout.replicas.copies ||
        a->layout.outlier_numbers != b->layout.outlier_numbers)
        return 0;
    for (uint32_t i = 0; i < a->table.count; i++)
        if (a->table.rows[i].count != b->table.rows[i].count ||
            a->table.rows[i].dtype != b->table.rows[i].dtype ||
            memcmp(&x->tensor[i], &y->tensor[i], sizeof x->tensor[i]) != 0)
            return 0;
    return a->layout.has_master == b->layout.has_master &&
           a->layout.master_dtype == b->layout.master_dtype &&
           a->layout.gradient_dtype == b->layout.gradient_dtype &&
           a->layout.slots.dtype == b->layout.slots.dtype &&
           a->layout.accumulator_dtype == b->layout.accumulator_dtype;
}
