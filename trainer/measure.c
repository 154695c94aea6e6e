/* SPDX-License-Identifier: Apache-2.0
 * Records of an update what its phases do not note: norms of parameters and updates, the share of
 * stored numbers that changed, digests of the state.
 *
 * It reads the state and writes records; no bit of the training depends on it. */
#include "trainer/run_private.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "determinism/root.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "model/consumers.h"
#include "trainer/measure_step.h"
#include "trainer/phases.h"
#include "trainer/replicas.h"
#include "trainer/streams.h"

_Static_assert(UPDATE_SIZES_BLOCK == SUM_BLOCK, "blocks of moves are those of law 2");

/* Returns the most leaf hashes that one batch of digests can have: those of the state, of the
 * gradients, or of a site of a micro-batch. */
static size_t most_leaves(const struct run *run) {
    const size_t stream = (size_t)run->limits.rows * run->model.C;
    const size_t sequences = (size_t)run->limits.samples * run->limits.sides;
    size_t state = 0, gradients = 0, site = 0;
    for (uint32_t i = 0; i < run->table.count; i++) {
        state += state_leaves(&run->table.rows[i], &run->layout, &run->layout.tensor[i]);
        gradients += leaf_hashes_count(run->layout.gradient_dtype, run->table.rows[i].count);
    }
    if (run->shape.sites > 0) site = leaf_hashes_count(run->model.compute, stream) + sequences;
    if (gradients > site) site = gradients;
    return state > site ? state : site;
}

enum status measure_open(struct run *run) {
    size_t blocks = 0;
    TRY(digests_open(run->backend, run->model.call.threads, most_leaves(run),
                     (size_t)run->table.count * STATE_PIECES, &run->arena, &run->digests));
    for (uint32_t i = 0; i < run->owner_count; i++)
        blocks += update_sizes_blocks(run->table.rows[run->owner[i]].count);
    TRY(arena_take(&run->arena, run->owner_count, sizeof *run->update_sizes_asked, "measures",
                   &run->update_sizes_asked));
    TRY(arena_take(&run->arena, blocks, sizeof *run->moves, "measures", &run->moves));
    return measure_step_open(run);
}

void measure_keep(const struct run *run, enum dtype dtype, const void *from, size_t count,
                  void *to) {
    /* The copy names the dtype that carries the numbers, so it converts nothing. */
    const enum dtype as = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    const struct convert_args copy = {count, as, as, from, to, 0};
    struct op_call call = run->model.call;
    call.queued = 1;
    run->model.ops->convert(&call, &copy);
}

/* Calls `each` for all reals of the record, array by array. */
static void for_reals(struct run *run, void (*each)(double *values, size_t count)) {
    struct record *record = &run->record;
    each(record->reals, RECORD_REALS);
    for (uint32_t g = 0; g < run->shape.groups; g++)
        each(record->groups[g], RECORD_GROUPS);
    for (uint32_t t = 0; t < run->shape.tensors; t++)
        each(record->tensors[t], RECORD_TENSORS);
    for (uint32_t m = 0; m < run->shape.micros; m++)
        each(record->micros[m], RECORD_MICROS);
}

static void set_nan(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = (double)NAN;
}

static void clear_record(struct run *run) {
    struct record *record = &run->record;
    struct record_shape shape = run->shape;
    for_reals(run, set_nan);
    for (size_t i = 0; i < RECORD_INTEGERS; i++)
        record->integers[i] = -1;
    memset(record->digests, 0, sizeof record->digests);
    if (shape.tensors > 0)
        memset(record->tensor_digests, 0, shape.tensors * sizeof *record->tensor_digests);
    if (shape.phases > 0) memset(record->phases, 0, shape.phases * sizeof *record->phases);
    if (shape.sites > 0) memset(record->sites, 0, shape.sites * sizeof *record->sites);
    for (uint32_t c = 0; c < shape.consumers; c++)
        record->ledger[c][LEDGER_WORDS] = -1;
    for (uint32_t s = 0; s < shape.streams; s++) {
        const struct stream_place place = streams_at(run, (enum stream)run->axes.stream[s]);
        record->places[s][PLACE_SEED] = (int64_t)place.seed;
        record->places[s][PLACE_CLOCK] = (int64_t)place.clock;
    }
}

void measure_restart_streams(struct run *run) {
    digest_stream_init(&run->batch_stream, "batch");
    for (uint32_t site = 0; site < run->shape.sites; site++)
        digest_stream_init(&run->site_stream[site], "site");
}

void measure_keep_params(const struct run *run) {
    const enum dtype param = (enum dtype)run->config.numerics.param;
    RUN_EACH_SPAN(run, span) {
        measure_keep(run, param, run_param(run, span.row), span.count,
                     run->before + run->packed[span.row] * dtype_carrier(param));
    }
}

void measure_begin(struct run *run) {
    clear_record(run);
    run->record.step = run_head(run)->done + 1;
    if (!measure_step_begin(run) && !run->options.bare) measure_keep_params(run);
    measure_restart_streams(run);
    memset(&run->ledger, 0, sizeof run->ledger);
    const int counted = run->options.readback && run->optimizer->direction != NULL;
    run->steps.meant = run->steps.lost = counted ? 0.0 : (double)NAN;
}

struct update_sizes_args measure_sizes_of(const struct run *run, uint32_t index,
                                          struct update_sizes_block *blocks) {
    const uint32_t row = run->owner[index];
    return (struct update_sizes_args){.dtype = (enum dtype)run->config.numerics.param,
                                      .count = run->table.rows[row].count,
                                      .now = run_param(run, row),
                                      .before = run_param_before(run, row),
                                      .start = run_param_initial(run, row),
                                      .blocks = blocks};
}

/* Measures how far all tensors have moved, by blocks. measure_params waits for a backend. */
static void ask_moves(struct run *run) {
    struct update_sizes_block *blocks = run->moves;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        run->update_sizes_asked[i] = measure_sizes_of(run, i, blocks);
        blocks += update_sizes_blocks(run->update_sizes_asked[i].count);
    }
    backends_update_sizes(run->backend, run->model.call.threads, run->update_sizes_asked,
                          run->owner_count);
}

/* Joins the blocks of a tensor as law 2 says. */
static struct update_sizes_block join_moves(const struct update_sizes_block *blocks, size_t count) {
    struct sum_blocks_f64 update = {.count = 0}, norm = {.count = 0}, travel = {.count = 0};
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        sum_blocks_push_f64(&update, blocks[i].update);
        sum_blocks_push_f64(&norm, blocks[i].norm);
        sum_blocks_push_f64(&travel, blocks[i].travel);
        changed += blocks[i].changed;
    }
    return (struct update_sizes_block){.update = sum_blocks_close_f64(&update),
                                       .norm = sum_blocks_close_f64(&norm),
                                       .travel = sum_blocks_close_f64(&travel),
                                       .changed = changed};
}

static enum status measure_params(struct run *run) {
    const struct update_sizes_block *blocks = run->moves;
    double update = 0.0, norm = 0.0, travel = 0.0;
    uint64_t changed = 0;
    TRY(model_wait(&run->model));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t count = update_sizes_blocks(run->table.rows[run->owner[i]].count);
        const struct update_sizes_block moves = join_moves(blocks, count);
        blocks += count;
        update += moves.update;
        norm += moves.norm;
        travel += moves.travel;
        changed += moves.changed;
        if (run->shape.tensors > 0)
            run->record.tensors[i][TENSOR_UPDATE_NORM] = real_sqrt_f64(moves.update);
    }
    double *reals = run->record.reals;
    reals[REAL_UPDATE_NORM] = real_sqrt_f64(update);
    reals[REAL_PARAM_NORM] = real_sqrt_f64(norm);
    reals[REAL_TRAVEL] = real_sqrt_f64(travel);
    reals[REAL_UPDATE_SURVIVAL] = (double)changed / (double)run->table.elements;
    return STATUS_OK;
}

static enum status digest_params(struct run *run, struct digest *out_weights) {
    TRY(measure_step_is_valid(run)
            ? measure_step_digests(run)
            : state_pieces_digest(&run->table, &run->layout, run->state.tensors, &run->digests,
                                  run->piece_digest));
    for (uint32_t i = 0; i < run->owner_count && run->shape.tensors > 0; i++)
        memcpy(run->record.tensor_digests[i][TENSOR_DIGEST_PARAMETER],
               run->piece_digest[run->owner[i]][0].byte, DIGEST_BYTES);
    state_weights_digest(&run->table, &run->layout, run->state.host,
                         (const struct digest(*)[STATE_PIECES])run->piece_digest, out_weights);
    return STATUS_OK;
}

/* Gives every NaN of a record one pattern. Which sign the NaN of an invalid operation has is up to
 * the hardware, and digests must not depend on it. */
static void fold_nan(double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (isnan(values[i])) values[i] = (double)NAN;
}

enum status measure_end(struct run *run) {
    struct state_head *head = run_head(run);
    struct record *record = &run->record;
    record->integers[INTEGER_SKIPPED] = run->skipped || run->held;
    record->integers[INTEGER_EPOCH] = (int64_t)run->plan.epoch;
    record->integers[INTEGER_COUNTER] = (int64_t)head->n;
    record->integers[INTEGER_OPTIMIZER_T] = (int64_t)head->t;
    struct digest weights, applied, optimized, state, rng;
    if (run->options.bare) return model_wait(&run->model); /* as measure_params does */
    if (!measure_step_is_valid(run)) ask_moves(run);
    TRY(digest_params(run, &weights));
    TRY(replicas_record(run, &weights));
    TRY(measure_params(run));
    for_reals(run, fold_nan);
    memcpy(record->digests[DIGEST_WEIGHTS], weights.byte, DIGEST_BYTES);
    root_lr(record, run->axes.groups, &applied);
    memcpy(record->digests[DIGEST_LR], applied.byte, DIGEST_BYTES);
    root_optimize(record, &optimized);
    phase_note(run, PHASE_OPTIMIZE, &optimized);
    state_digest(&run->layout, run->state.host, &weights, &state);
    memcpy(record->digests[DIGEST_STATE], state.byte, DIGEST_BYTES);
    digest_ledger(&run->ledger, &rng);
    memcpy(record->digests[DIGEST_RNG], rng.byte, DIGEST_BYTES);
    consumers_count(run->axes.consumers, run->shape.consumers, &run->ledger, record->ledger);
    /* The root chains the record to those of all updates before it; two runs are identical whose
     * roots are. */
    root_next(&head->root, record, &head->root);
    memcpy(record->digests[DIGEST_ROOT], head->root.byte, DIGEST_BYTES);
    return STATUS_OK;
}
