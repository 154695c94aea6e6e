/* SPDX-License-Identifier: Apache-2.0
 * Lays the state out: the head comes first, and then kind by kind (parameters, masters, gradients,
 * accumulators, slots) the numbers of every tensor. Each piece is aligned to 64 bytes, the width of
 * a cache line and of the widest vectors. Numbers of a kind lie side by side, so that an op can
 * treat neighbouring tensors as one. */
#include "trainer/state.h"

#include <stdint.h>
#include <string.h>

#include "optim/outlier.h"
#include "scenarios/scenario.h"

struct walker {
    size_t used;
    int overflow;
};

static size_t place(struct walker *walker, size_t count, size_t element) {
    size_t at = walker->used;
    /* A quarter of the address space leaves room for rounding up to 64 bytes. */
    if (count > (SIZE_MAX / 4 - at) / element) {
        walker->overflow = 1;
        return at;
    }
    walker->used += (count * element + 63) & ~(size_t)63;
    return at;
}

static void place_slot(struct walker *walker, const struct optim_class *optimizer,
                       const void *values, const struct param_table *table, uint32_t slot,
                       struct state_layout *layout) {
    for (uint32_t i = 0; i < table->count; i++) {
        const struct param_row *row = &table->rows[i];
        struct state_tensor *out = &layout->tensor[i];
        if (row->tied_to >= 0 || !row->trainable) continue;
        out->slot_count[slot] =
            (size_t)optim_slot_elements(optimizer, values, slot, row->rank, row->shape);
        if (out->slot_count[slot] > 0)
            out->slot[slot] = place(walker, out->slot_count[slot], layout->slots.width);
    }
}

enum kind { KIND_PARAM, KIND_MASTER, KIND_GRADIENT, KIND_ACCUMULATOR, KIND_ACCUMULATOR_2, KINDS };

static void place_piece(struct walker *walker, enum kind kind, const struct param_row *row,
                        const struct state_layout *layout, struct state_tensor *out) {
    const uint32_t use = kind == KIND_ACCUMULATOR_2;
    if (kind == KIND_PARAM)
        out->param = place(walker, row->count, dtype_carrier(row->dtype));
    else if (!row->trainable)
        return;
    else if (kind == KIND_MASTER && layout->has_master)
        out->master = place(walker, row->count, dtype_carrier(layout->master_dtype));
    else if (kind == KIND_GRADIENT)
        out->gradient = place(walker, row->count, dtype_carrier(layout->gradient_dtype));
    else if (kind >= KIND_ACCUMULATOR && use < row->uses)
        out->accumulator[use] = place(walker, row->count, layout->accumulator);
}

static void place_tensors(struct walker *walker, const struct param_table *table,
                          const struct optim_class *optimizer, const void *values,
                          struct state_layout *layout) {
    struct state_replicas *const replicas = &layout->replicas;
    replicas->piece[0].at = walker->used;
    for (int kind = KIND_PARAM; kind < KINDS; kind++) {
        if (kind == KIND_ACCUMULATOR)
            replicas->piece[0].bytes = walker->used - replicas->piece[0].at;
        for (uint32_t i = 0; i < table->count; i++)
            if (table->rows[i].tied_to < 0)
                place_piece(walker, (enum kind)kind, &table->rows[i], layout, &layout->tensor[i]);
    }
    replicas->piece[1].at = walker->used;
    for (uint32_t slot = 0; slot < optimizer->slot_count; slot++)
        place_slot(walker, optimizer, values, table, slot, layout);
    replicas->piece[1].bytes = walker->used - replicas->piece[1].at;
}

static void place_replicas(struct walker *walker, const struct config *config,
                           struct state_layout *layout) {
    struct state_replicas *const replicas = &layout->replicas;
    if (config_copies(config) == 1) return;
    replicas->copies = config_copies(config) - 1;
    replicas->bytes = replicas->piece[0].bytes + replicas->piece[1].bytes;
    replicas->first = place(walker, replicas->copies, replicas->bytes);
}

/* What the layout is made of. */
struct plan {
    const struct config *config;
    const struct param_table *table;
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
    size_t dataset_samples;
};

static void place_host(struct walker *walker, const struct plan *plan, struct state_layout *out) {
    const struct config *const config = plan->config;
    place(walker, 1, sizeof(struct state_head));
    out->schedule = place(walker, plan->schedule->state_size, 1);
    if (config->loop.skip == SKIP_OLMO_OUTLIER) {
        out->outlier_numbers = outlier_numbers(config->loop.skip_window);
        out->outliers = place(walker, out->outlier_numbers, sizeof(double));
    }
    if (resume_errs(config, RESUME_PEAK_OVERWRITTEN)) out->peak = place(walker, 1, sizeof(double));
    if (config->numerics.mode == MODE_ORDER_FREE)
        out->sums = place(walker, 1, sizeof(struct loss_sums));
    if (config_has_reference(config) && config->dpo.reference != REFERENCE_LIVE)
        out->reference = place(walker, plan->dataset_samples, 2 * sizeof(double));
}

/* The bytes at the end tell a layout with narrow numbers from its twin, since every other size is a
 * multiple of 64: a state that is kept as bytes is never taken for one of the other width. */
#define NARROW_MARK ((size_t)8)

static enum status open_in(const struct plan *plan, int narrow, struct arena *arena,
                           struct state_layout *out) {
    const struct config *const config = plan->config;
    const enum dtype slots = (enum dtype)config->numerics.optimizer;
    struct walker walker = {0, 0};
    memset(out, 0, sizeof *out);
    out->has_master = config->numerics.master != KEY_WORD_ENUM;
    out->master_dtype = out->has_master ? (enum dtype)config->numerics.master : DTYPE_F32;
    out->gradient_dtype = (enum dtype)config->numerics.gradient;
    out->slots = narrow ? form_own(slots) : form_carried(slots);
    out->narrow = form_is_narrow(out->slots);
    out->accumulator_dtype = (enum dtype)config->numerics.accumulate;
    out->accumulator = dtype_carrier(out->accumulator_dtype);
    if (config->numerics.mode == MODE_ORDER_FREE) out->accumulator = sizeof(struct exact_sum);
    TRY(arena_take(arena, plan->table->count, sizeof *out->tensor, "state layout", &out->tensor));
    place_host(&walker, plan, out);
    out->tensors = walker.used;
    place_tensors(&walker, plan->table, plan->optimizer, config->optimizer.which.values, out);
    place_replicas(&walker, config, out);
    if (walker.overflow) FAIL(STATUS_MEMORY, "model: the training state overflows memory");
    out->bytes = walker.used + (out->narrow ? NARROW_MARK : 0);
    return STATUS_OK;
}

enum status state_layout_open(const struct config *config, const struct param_table *table,
                              const struct optim_class *optimizer,
                              const struct sched_class *schedule, size_t dataset_samples,
                              int narrow, struct arena *arena, struct state_layout *out) {
    const struct plan plan = {config, table, optimizer, schedule, dataset_samples};
    struct state_layout *pair; /* in carriers, and narrow */
    if (!form_is_narrow(form_own((enum dtype)config->numerics.optimizer)))
        return open_in(&plan, 0, arena, out);
    TRY(arena_take(arena, 2, sizeof *pair, "state layout", &pair));
    for (int i = 0; i < 2; i++)
        TRY(open_in(&plan, i, arena, &pair[i]));
    pair[0].twin = &pair[1];
    pair[1].twin = &pair[0];
    *out = pair[narrow != 0];
    return STATUS_OK;
}

static int ends_at(size_t place, size_t count, size_t element, size_t next) {
    return place + count * element == next;
}

int state_follows(const struct param_table *table, const struct state_layout *layout, uint32_t row,
                  uint32_t next) {
    const struct param_row *const a = &table->rows[row], *const b = &table->rows[next];
    const struct state_tensor *const x = &layout->tensor[row], *const y = &layout->tensor[next];
    const size_t gradient = dtype_carrier(layout->gradient_dtype);
    const int slot = x->slot_count[0] == a->count;
    if (a->uses != b->uses || a->dtype != b->dtype || !a->trainable || !b->trainable) return 0;
    if (slot != (y->slot_count[0] == b->count)) return 0;
    for (uint32_t use = 0; use < a->uses; use++)
        if (!ends_at(x->accumulator[use], a->count, layout->accumulator, y->accumulator[use]))
            return 0;
    return ends_at(x->param, a->count, dtype_carrier(a->dtype), y->param) &&
           ends_at(x->gradient, a->count, gradient, y->gradient) &&
           (!layout->has_master ||
            ends_at(x->master, a->count, dtype_carrier(layout->master_dtype), y->master)) &&
           (!slot || ends_at(x->slot[0], a->count, layout->slots.width, y->slot[0]));
}

/* The pieces of a tensor by number. */
#define PIECE_PARAM 0u
#define PIECE_MASTER 1u
#define PIECE_SLOTS 2u

/* A piece: where it lies in the state, its numbers, and what its digest covers. */
struct piece {
    size_t at, count;
    struct digest_job job;
};

/* Describes a piece of a row. Returns 0 where the row has no such piece. A slot of the parameter's
 * size has its shape, and any other slot is a vector. */
static int piece_of(const struct param_row *row, const struct state_layout *layout,
                    const struct state_tensor *tensor, uint32_t piece, struct piece *out) {
    static const char *const names[] = {NULL, "master", "slot0", "slot1", "slot2", "slot3"};
    *out = (struct piece){.at = tensor->param,
                          .count = row->count,
                          .job = {.name = piece == PIECE_PARAM ? row->name : names[piece],
                                  .form = form_carried(row->dtype),
                                  .rank = row->rank,
                                  .shape = {(size_t)row->shape[0], (size_t)row->shape[1]}}};
    if (piece == PIECE_PARAM || row->tied_to >= 0) return row->tied_to < 0;
    if (piece == PIECE_MASTER) {
        out->at = tensor->master;
        out->job.form = form_carried(layout->master_dtype);
        return row->trainable && layout->has_master;
    }
    out->at = tensor->slot[piece - PIECE_SLOTS];
    out->count = tensor->slot_count[piece - PIECE_SLOTS];
    out->job.form = layout->slots;
    if (out->count != row->count) {
        out->job.rank = 1;
        out->job.shape[0] = out->count;
    }
    return row->trainable && out->count > 0;
}

size_t state_leaves(const struct param_row *row, const struct state_layout *layout,
                    const struct state_tensor *tensor) {
    size_t leaves = 0;
    struct piece piece;
    for (uint32_t p = 0; p < STATE_PIECES; p++)
        if (piece_of(row, layout, tensor, p, &piece))
            leaves += leaf_hashes_count(piece.job.form.dtype, piece.count);
    return leaves;
}

enum status state_pieces_digest(const struct param_table *table, const struct state_layout *layout,
                                const unsigned char *tensors, struct digests *digests,
                                struct digest (*out)[STATE_PIECES]) {
    struct piece piece;
    for (uint32_t p = 0; p < STATE_PIECES; p++)
        for (uint32_t i = 0; i < table->count; i++) {
            if (!piece_of(&table->rows[i], layout, &layout->tensor[i], p, &piece)) continue;
            piece.job.data = tensors + (piece.at - layout->tensors);
            piece.job.out = &out[i][p];
            TRY(digests_add(digests, &piece.job));
        }
    return digests_finish(digests);
}

void state_pieces_of(const struct param_row *row, const struct state_layout *layout,
                     const struct state_tensor *tensor, const unsigned char *tensors,
                     struct leaf_hashes_args out[STATE_PIECES]) {
    struct piece piece;
    for (uint32_t p = 0; p < STATE_PIECES; p++) {
        const int is_there = piece_of(row, layout, tensor, p, &piece);
        out[p].form = piece.job.form;
        out[p].count = is_there ? piece.count : 0;
        out[p].values = is_there ? tensors + (piece.at - layout->tensors) : NULL;
    }
}

enum status state_pieces_of_leaves(const struct param_table *table,
                                   const struct state_layout *layout,
                                   const struct leaf_hashes_args (*pieces)[STATE_PIECES],
                                   struct digests *digests, struct digest (*out)[STATE_PIECES]) {
    struct piece piece;
    for (uint32_t p = 0; p < STATE_PIECES; p++)
        for (uint32_t i = 0; i < table->count; i++) {
            if (!piece_of(&table->rows[i], layout, &layout->tensor[i], p, &piece)) continue;
            piece.job.data = pieces[i][p].values;
            piece.job.leaves = pieces[i][p].leaves;
            piece.job.out = &out[i][p];
            TRY(digests_add(digests, &piece.job));
        }
    return digests_finish(digests);
}

void state_weights_digest(const struct param_table *table, const struct state_layout *layout,
                          const unsigned char *state, const struct digest (*pieces)[STATE_PIECES],
                          struct digest *out) {
    const struct state_head *head = (const struct state_head *)(const void *)state;
    struct digest_stream stream;
    struct piece piece;
    digest_stream_init(&stream, "weights");
    for (uint32_t i = 0; i < table->count; i++)
        for (uint32_t p = 0; p < STATE_PIECES; p++)
            if (piece_of(&table->rows[i], layout, &layout->tensor[i], p, &piece))
                digest_stream_add(&stream, &pieces[i][p]);
    struct digest count;
    digest_bytes("t", &head->t, sizeof head->t, &count);
    digest_stream_add(&stream, &count);
    digest_stream_close(&stream, out);
}

static int is_zero(const void *bytes, size_t size) {
    const unsigned char *byte = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        if (byte[i] != 0) return 0;
    return 1;
}

void state_digest(const struct state_layout *layout, const unsigned char *state,
                  const struct digest *weights, struct digest *out) {
    const struct state_head *head = (const struct state_head *)(const void *)state;
    uint64_t words[] = {head->done, head->n, head->sampler.epoch, head->sampler.position};
    struct digest parts[8] = {*weights};
    digest_bytes("counters", words, sizeof words, &parts[1]);
    digest_bytes("lr", head->lr, sizeof head->lr, &parts[2]);
    /* The parts below are left out while they are unused, so that a scenario without them keeps the
     * digests that it had before the part was introduced. */
    size_t count = 3;
    if (head->scaler.scale > 0.0)
        digest_bytes("scaler", &head->scaler, sizeof head->scaler, &parts[count++]);
    if (head->rng_offset > 0)
        digest_bytes("rng", &head->rng_offset, sizeof head->rng_offset, &parts[count++]);
    if (!is_zero(head->stream, sizeof head->stream))
        digest_bytes("streams", head->stream, sizeof head->stream, &parts[count++]);
    if (layout->outlier_numbers > 0)
        digest_bytes("outliers", state + layout->outliers, layout->outlier_numbers * sizeof(double),
                     &parts[count++]);
    if (layout->peak != 0)
        digest_bytes("peak", state + layout->peak, sizeof(double), &parts[count++]);
    digest_root("state", parts, count, out);
}
