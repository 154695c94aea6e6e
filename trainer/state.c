/* SPDX-License-Identifier: Apache-2.0
 * Lays the state out: head first, then per tensor all that belongs to it, 64-byte aligned. */
#include "trainer/state.h"

#include <stdint.h>
#include <string.h>

#include "scenarios/scenario.h"
#include "trainer/outlier.h"

struct walker {
    size_t used;
    int overflow;
};

static size_t place(struct walker *walker, size_t count, size_t element) {
    size_t at = walker->used;
    if (count > (SIZE_MAX / 4 - at) / element) {
        walker->overflow = 1;
        return at;
    }
    walker->used += (count * element + 63) & ~(size_t)63;
    return at;
}

static void place_slots(struct walker *walker, const struct param_row *row,
                        const struct optim_class *optimizer, const void *values,
                        enum dtype slot_dtype, struct state_tensor *out) {
    for (uint32_t slot = 0; slot < optimizer->slot_count; slot++) {
        out->slot_count[slot] =
            (size_t)optim_slot_elements(optimizer, values, slot, row->rank, row->shape);
        if (out->slot_count[slot] > 0)
            out->slot[slot] = place(walker, out->slot_count[slot], dtype_carrier(slot_dtype));
    }
}

static void place_tensor(struct walker *walker, const struct param_row *row,
                         const struct optim_class *optimizer, const void *values,
                         struct state_layout *layout, struct state_tensor *out) {
    out->param = place(walker, row->count, dtype_carrier(row->dtype));
    if (!row->trainable) return;
    if (layout->has_master)
        out->master = place(walker, row->count, dtype_carrier(layout->master_dtype));
    out->gradient = place(walker, row->count, dtype_carrier(layout->gradient_dtype));
    for (uint32_t use = 0; use < row->uses; use++)
        out->accumulator[use] = place(walker, row->count, layout->accumulator);
    place_slots(walker, row, optimizer, values, layout->slot_dtype, out);
}

enum status state_layout_open(const struct config *config, const struct param_table *table,
                              const struct optim_class *optimizer,
                              const struct sched_class *schedule, size_t dataset_samples,
                              struct arena *arena, struct state_layout *out) {
    memset(out, 0, sizeof *out);
    out->has_master = config->numerics.master != KEY_WORD_ENUM;
    out->master_dtype = out->has_master ? (enum dtype)config->numerics.master : DTYPE_F32;
    out->gradient_dtype = (enum dtype)config->numerics.gradient;
    out->slot_dtype = (enum dtype)config->numerics.optimizer;
    out->accumulator_dtype = (enum dtype)config->numerics.accumulate;
    out->accumulator = dtype_carrier(out->accumulator_dtype);
    const int exact = config->numerics.mode == MODE_ORDER_FREE;
    if (exact) out->accumulator = sizeof(struct exact_sum);
    TRY(arena_take(arena, table->count, sizeof *out->tensor, "state layout", &out->tensor));
    struct walker walker = {0, 0};
    place(&walker, 1, sizeof(struct state_head));
    out->schedule = place(&walker, schedule->state_size, 1);
    if (config->loop.skip == SKIP_OLMO_OUTLIER) {
        out->outlier_numbers = outlier_numbers(config->loop.skip_window);
        out->outliers = place(&walker, out->outlier_numbers, sizeof(double));
    }
    if (exact) out->sums = place(&walker, 1, sizeof(struct state_sums));
    if (config_has_reference(config) && config->dpo.reference != REFERENCE_LIVE)
        out->reference = place(&walker, dataset_samples, 2 * sizeof(double));
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].tied_to < 0)
            place_tensor(&walker, &table->rows[i], optimizer, config->optimizer.which.values, out,
                         &out->tensor[i]);
    if (walker.overflow) FAIL(STATUS_MEMORY, "model: the training state overflows memory");
    out->bytes = walker.used;
    return STATUS_OK;
}

static enum status piece_digest(const struct param_row *row, const char *name, enum dtype dtype,
                                const unsigned char *state, size_t offset, struct digest *out) {
    size_t shape[2] = {(size_t)row->shape[0], (size_t)row->shape[1]};
    return digest_tensor(name, dtype, row->rank, shape, state + offset, out);
}

static enum status add_piece(struct digest_stream *stream, const struct param_row *row,
                             const char *name, enum dtype dtype, const unsigned char *state,
                             size_t offset) {
    struct digest digest;
    TRY(piece_digest(row, name, dtype, state, offset, &digest));
    digest_stream_add(stream, &digest);
    return STATUS_OK;
}

/* A slot of the parameter's size has its shape, another one is a vector. */
static enum status add_slots(struct digest_stream *stream, const struct param_row *row,
                             const struct state_tensor *tensor, enum dtype dtype,
                             const unsigned char *state) {
    static const char *const names[OPTIM_SLOTS_MAX] = {"slot0", "slot1", "slot2", "slot3"};
    for (uint32_t slot = 0; slot < OPTIM_SLOTS_MAX; slot++) {
        const size_t count = tensor->slot_count[slot];
        struct param_row piece = *row;
        if (count == 0) continue;
        if (count != row->count) {
            piece.rank = 1;
            piece.shape[0] = count;
            piece.shape[1] = 1;
        }
        TRY(add_piece(stream, &piece, names[slot], dtype, state, tensor->slot[slot]));
    }
    return STATUS_OK;
}

enum status state_weights_digest(const struct param_table *table, const struct state_layout *layout,
                                 const unsigned char *state, const struct digest *param_digests,
                                 struct digest *out) {
    const struct state_head *head = (const struct state_head *)(const void *)state;
    struct digest_stream stream;
    digest_stream_init(&stream, "weights");
    for (uint32_t i = 0; i < table->count; i++) {
        const struct param_row *row = &table->rows[i];
        if (row->tied_to >= 0) continue;
        digest_stream_add(&stream, &param_digests[i]);
        if (!row->trainable) continue;
        if (layout->has_master)
            TRY(add_piece(&stream, row, "master", layout->master_dtype, state,
                          layout->tensor[i].master));
        TRY(add_slots(&stream, row, &layout->tensor[i], layout->slot_dtype, state));
    }
    struct digest count;
    digest_bytes("t", &head->t, sizeof head->t, &count);
    digest_stream_add(&stream, &count);
    digest_stream_close(&stream, out);
    return STATUS_OK;
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
    struct digest parts[7] = {*weights};
    digest_bytes("counters", words, sizeof words, &parts[1]);
    digest_bytes("lr", head->lr, sizeof head->lr, &parts[2]);
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
    digest_root("state", parts, count, out);
}
