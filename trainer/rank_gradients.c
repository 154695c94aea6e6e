/* SPDX-License-Identifier: Apache-2.0
 * Walks the ranks of an update (trainer/rank_gradients.h).
 *
 * The digest of phase `backward` is that of all ranks' gradients, and the one of phase `reduce`
 * that of the gradient they make, so that whatever a collective does shows in `reduce` first. */
#include "trainer/rank_gradients.h"

#include <string.h>

#include "model/module_order.h"
#include "ranks/tree.h"
#include "scenarios/scenario.h"
#include "trainer/collective.h"
#include "trainer/phases.h"
#include "trainer/streams.h"
#include "trainer/watch_run.h"

struct rank_gradients {
    struct collective *collective;
    uint32_t *row;      /* (owners) in the order of Module.parameters() */
    float *start;       /* the stored gradient with which the update began, packed */
    uint64_t is_stored; /* 1: it began with one */
    struct digest_stream digests;
    struct model_part part;
    struct model_parts handed;
};

/* A micro-batch goes on in the state's accumulators, all of it. */
static void *begin_part(void *context, uint32_t part, uint32_t row, uint32_t use) {
    const struct run *const run = (const struct run *)context;
    (void)part;
    return run->accumulators[row][use];
}

static float *gradient_of(const struct run *run, uint32_t row) {
    return (float *)run_at(run, run->layout.tensor[row].gradient);
}

/* What is exchanged, and when. */
struct exchanged {
    uint32_t *row; /* (count) in the order of Module.parameters() */
    uint32_t *arrival;
    struct collective_tensor *tensors;
};

static enum status find_exchanged(const struct param_table *table, const struct config *config,
                                  uint32_t count, struct arena *arena, struct exchanged *out) {
    TRY(arena_take(arena, count, sizeof *out->row, "ranks", &out->row));
    TRY(arena_take(arena, count, sizeof *out->arrival, "ranks", &out->arrival));
    TRY(arena_take(arena, count, sizeof *out->tensors, "ranks", &out->tensors));
    module_order(table, config, out->row, out->arrival);
    for (uint32_t i = 0; i < count; i++) {
        const struct param_row *const row = &table->rows[out->row[i]];
        out->tensors[i] = (struct collective_tensor){(uint64_t)row->shape[0],
                                                     row->count / (uint64_t)row->shape[0]};
    }
    return STATUS_OK;
}

/* Of a job that restarts, the longer part: updates are counted from its start. */
enum status rank_gradients_races_alone(const struct config *config, uint64_t steps,
                                       struct arena *arena, int *out) {
    const uint64_t after = config->resume.after;
    const uint64_t rest = after < steps ? steps - after : 0;
    struct param_table table;
    struct exchanged all;
    uint32_t count = 0;
    size_t messages;
    *out = 0;
    if (!config_ranks_close(config) || config->parallel.race == RACE_NONE) return STATUS_OK;
    TRY(params_open(config, arena, &table));
    for (uint32_t i = 0; i < table.count; i++)
        count += table.rows[i].tied_to < 0;
    TRY(find_exchanged(&table, config, count, arena, &all));
    const uint64_t last = after == 0 || after > steps ? steps : rest > after ? rest : after;
    TRY(collective_messages(config, all.tensors, count, all.arrival, last, arena, &messages));
    *out = messages <= 1;
    return STATUS_OK;
}

enum status rank_gradients_open(struct run *run) {
    /* A reading of plain sums takes the gradient of each micro-batch, not of an update. */
    if (!config_ranks_close(&run->config) || run->options.undivided) return STATUS_OK;
    struct rank_gradients *ranks;
    struct exchanged all;
    TRY(arena_take(&run->arena, 1, sizeof *ranks, "ranks", &ranks));
    TRY(find_exchanged(&run->table, &run->config, run->owner_count, &run->arena, &all));
    ranks->row = all.row;
    TRY(collective_open(&run->config, all.tensors, run->owner_count, all.arrival, &run->arena,
                        &ranks->collective));
    TRY(arena_take(&run->arena, run->table.elements, sizeof *ranks->start, "ranks", &ranks->start));
    ranks->handed =
        (struct model_parts){.part = &ranks->part, .count = 1, .begin = begin_part, .context = run};
    run->rank_gradients = ranks;
    return STATUS_OK;
}

static uint32_t rank_of(const struct run *run, uint32_t sample) {
    return tree_shard_of(sample, run->plan.samples, (uint32_t)run->config.parallel.ranks);
}

/* A restart is another process, whose first update is the first one to DDP. */
static uint64_t update_of_job(struct run *run) {
    const uint64_t done = run_head(run)->done, after = run->config.resume.after;
    return done + 1 - (after != 0 && done >= after ? after : 0);
}

static enum status begin_update(struct run *run) {
    struct rank_gradients *const ranks = run->rank_gradients;
    ranks->is_stored = run_head(run)->stored;
    digest_stream_init(&ranks->digests, "ranks");
    for (uint32_t i = 0; ranks->is_stored && i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        memcpy(ranks->start + run->packed[row], gradient_of(run, row),
               run->table.rows[row].count * sizeof(float));
    }
    return collective_begin(ranks->collective, update_of_job(run),
                            streams_at(run, STREAM_ORDER).seed, streams_update(run, STREAM_ORDER));
}

/* Every rank of a framework has a stored gradient of its own, and all are equal. */
static void begin_rank(struct run *run) {
    const struct rank_gradients *const ranks = run->rank_gradients;
    struct state_head *const head = run_head(run);
    head->pending = 0;
    head->stored = ranks->is_stored;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        const size_t count = run->table.rows[row].count;
        if (ranks->is_stored)
            memcpy(gradient_of(run, row), ranks->start + run->packed[row], count * sizeof(float));
        for (uint32_t use = 0; use < run->table.rows[row].uses; use++)
            model_set(&run->model, run->accumulators[row][use], count * run->layout.accumulator, 0);
    }
}

enum status rank_gradients_begin(struct run *run, const struct model_parts **out) {
    struct rank_gradients *const ranks = run->rank_gradients;
    const uint32_t first = run->batch.first_sample;
    *out = NULL;
    if (ranks == NULL) return STATUS_OK;
    if (run->micro == 1)
        TRY(begin_update(run));
    else if (rank_of(run, first) != rank_of(run, first - 1))
        begin_rank(run);
    ranks->part = (struct model_part){
        .from = (uint32_t)tree_first_sample(rank_of(run, first), run->plan.samples,
                                            (uint32_t)run->config.parallel.ranks)};
    for (uint32_t i = 0; i < run->batch.sequence_count; i++) {
        ranks->part.tokens += run->batch.sequences[i].length;
        ranks->part.labels += run->batch.label_length[i];
    }
    *out = &ranks->handed;
    return STATUS_OK;
}

enum status rank_gradients_end_micro(struct run *run) {
    struct rank_gradients *const ranks = run->rank_gradients;
    const uint32_t rank = rank_of(run, run->batch.first_sample);
    const int is_last =
        run->micro == run->plan.micros || rank_of(run, run->plan.micro[run->micro].first) != rank;
    if (is_last || run->config.numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE)
        phase_round_gradient(run);
    if (!is_last) return STATUS_OK;
    TRY(model_wait(&run->model));
    for (uint32_t i = 0; i < run->owner_count; i++)
        collective_put(ranks->collective, rank, i, gradient_of(run, ranks->row[i]));
    if (run->shape.phases == 0) return STATUS_OK;
    struct digest digest;
    TRY(phase_digest_gradient(run, PHASE_BACKWARD, &digest));
    digest_stream_add(&ranks->digests, &digest);
    return STATUS_OK;
}

enum status rank_gradients_reduce(struct run *run) {
    struct rank_gradients *const ranks = run->rank_gradients;
    if (run->shape.phases > 0) {
        struct digest digest;
        digest_stream_close(&ranks->digests, &digest);
        phase_note(run, PHASE_BACKWARD, &digest);
    }
    TRY(collective_add(ranks->collective));
    for (uint32_t i = 0; i < run->owner_count; i++)
        collective_take(ranks->collective, i, gradient_of(run, ranks->row[i]));
    return phase_gradient_closed(run, PHASE_REDUCE);
}
