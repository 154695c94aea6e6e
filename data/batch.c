/* SPDX-License-Identifier: Apache-2.0
 * Lays dataset samples out in physical rows, and lists what ops walk.
 *
 * The lists in call order are written first, and the canonical ones are then read from them.
 * Invariant: a token's row, id and position stand at one place of the three token lists. */
#include "data/batch.h"

#include <string.h>

#include "ranks/tree.h"
#include "scenarios/scenario.h"

uint64_t batch_micro_batches(const struct config *config) {
    const uint64_t micro = config->batch.micro, size = config->batch.size;
    if (micro == 0 || size == 0) return 1;
    return tree_micros(size, micro, (uint32_t)config_dealt_shards(config),
                       (uint32_t)config->parallel.ranks);
}

enum status batch_limits_open(const struct config *config, const struct dataset *dataset,
                              uint64_t samples, enum batch_layout layout,
                              struct batch_limits *out) {
    memset(out, 0, sizeof *out);
    uint64_t tokens = samples * dataset->sides * dataset->longest;
    uint64_t rows = samples * dataset->sides * (dataset->longest + config->batch.pad);
    /* Lists count in 32 bits; the bounds leave room for sums over two sides and for padding. */
    if (samples > UINT32_MAX / 4 || rows > UINT32_MAX / 2)
        FAIL(STATUS_MEMORY,
             "batch.micro: %llu samples of up to %u tokens need %llu rows, more than 2^31",
             (unsigned long long)samples, dataset->longest, (unsigned long long)rows);
    out->samples = (uint32_t)samples;
    out->sides = dataset->sides;
    out->length = dataset->longest;
    out->rows = (uint32_t)rows;
    out->tokens = (uint32_t)tokens;
    out->pad = (uint32_t)config->batch.pad;
    out->separate = layout == LAYOUT_SEPARATE && dataset->sides == 2;
    out->packed = config->batch.padding == PADDING_PACKED;
    return STATUS_OK;
}

#define LISTS 8u

/* The numbers of one list. Each begins at a cache line. */
static size_t list_length(const struct batch_limits *limits) {
    return ((size_t)limits->tokens + 15) & ~(size_t)15;
}

size_t batch_list_bytes(const struct batch_limits *limits) {
    return LISTS * list_length(limits) * sizeof(uint32_t);
}

enum status batch_open(const struct batch_limits *limits, struct arena *arena, struct batch *out) {
    memset(out, 0, sizeof *out);
    size_t sequences = (size_t)limits->samples * limits->sides;
    TRY(arena_take(arena, sequences, sizeof *out->sequences, "batch", &out->sequences));
    TRY(arena_take(arena, sequences, sizeof *out->tokens_of, "batch", &out->tokens_of));
    TRY(arena_take(arena, sequences, sizeof *out->label_first, "batch", &out->label_first));
    TRY(arena_take(arena, sequences, sizeof *out->label_length, "batch", &out->label_length));
    TRY(arena_take(arena, sequences, sizeof *out->canonical_sequence, "batch",
                   &out->canonical_sequence));
    uint32_t **lists[] = {&out->token_row,    &out->token_id,       &out->token_position,
                          &out->label_row,    &out->label_target,   &out->canonical_row,
                          &out->canonical_id, &out->canonical_label};
    _Static_assert(COUNT_OF(lists) == LISTS, "room for each list");
    TRY(arena_take(arena, batch_list_bytes(limits), 1, "batch", &out->lists));
    for (size_t i = 0; i < LISTS; i++)
        *lists[i] = out->lists + i * list_length(limits);
    out->sides = limits->sides;
    return STATUS_OK;
}

/* The length to which the sequences of one side are padded, on their right. Separate forwards see
 * their own side's longest sequence; one concatenated forward sees the longest of both, as TRL's
 * and open-instruct's collators pad. */
static uint32_t padded_length(const struct batch *batch, const struct batch_limits *limits,
                              const struct dataset *dataset, uint32_t side) {
    uint32_t longest = 0;
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        for (uint32_t other = 0; other < batch->sides; other++) {
            if (limits->separate && other != side) continue;
            uint32_t length = dataset_side(dataset, batch->dataset_index[s], other)->length;
            if (length > longest) longest = length;
        }
    }
    return longest + limits->pad;
}

static void add_labels(struct batch *batch, const struct dataset *dataset,
                       const struct dataset_sequence *source, uint32_t sequence) {
    batch->label_first[sequence] = batch->label_count;
    for (uint32_t p = 0; p < source->length; p++) {
        int32_t target = dataset->target[source->first + p];
        if (target == DATASET_NO_TARGET) continue;
        batch->label_row[batch->label_count] = batch->sequences[sequence].row + p;
        batch->label_target[batch->label_count++] = (uint32_t)target;
    }
    batch->label_length[sequence] = batch->label_count - batch->label_first[sequence];
}

static void add_sequence(struct batch *batch, const struct dataset *dataset, uint32_t sample,
                         uint32_t side) {
    const struct dataset_sequence *source =
        dataset_side(dataset, batch->dataset_index[sample], side);
    uint32_t sequence = batch->sequence_count++;
    batch->sequences[sequence] =
        (struct sequence){batch->rows, source->length, batch->first_sample + sample, side};
    batch->tokens_of[sequence] = dataset->token + source->first;
    for (uint32_t p = 0; p < source->length; p++) {
        batch->token_row[batch->token_count] = batch->rows + p;
        batch->token_id[batch->token_count] = dataset->token[source->first + p];
        batch->token_position[batch->token_count++] = p;
    }
    add_labels(batch, dataset, source, sequence);
}

/* The index of a sequence; the blocks are all chosen ones, then all rejected ones. */
static uint32_t sequence_at(const struct batch *batch, uint32_t sample, uint32_t side) {
    return side * batch->sample_count + sample;
}

static void fill_canonical(struct batch *batch) {
    uint32_t token = 0, label = 0, at = 0;
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        for (uint32_t side = 0; side < batch->sides; side++) {
            uint32_t sequence = sequence_at(batch, s, side);
            batch->canonical_sequence[at++] = sequence;
            for (uint32_t p = 0; p < batch->sequences[sequence].length; p++) {
                batch->canonical_row[token] = batch->sequences[sequence].row + p;
                batch->canonical_id[token++] = batch->tokens_of[sequence][p];
            }
            for (uint32_t i = 0; i < batch->label_length[sequence]; i++)
                batch->canonical_label[label++] = batch->label_first[sequence] + i;
        }
    }
}

static void open_call(struct batch *batch, uint32_t side, uint32_t row_length) {
    batch->calls[batch->call_count++] = (struct batch_call){.first_sequence = batch->sequence_count,
                                                            .first_token = batch->token_count,
                                                            .first_label = batch->label_count,
                                                            .row_length = row_length,
                                                            .side = side};
}

static void close_call(struct batch *batch) {
    struct batch_call *call = &batch->calls[batch->call_count - 1];
    call->sequence_count = batch->sequence_count - call->first_sequence;
    call->token_count = batch->token_count - call->first_token;
    call->label_count = batch->label_count - call->first_label;
    call->row_count = batch->rows - batch->sequences[call->first_sequence].row;
}

void batch_fill(struct batch *batch, const struct batch_limits *limits,
                const struct dataset *dataset, const uint32_t *index, uint32_t count,
                uint32_t first_sample) {
    batch->dataset_index = index;
    batch->sample_count = count;
    batch->first_sample = first_sample;
    batch->fed_ranks = 1;
    batch->rows = batch->sequence_count = batch->token_count = 0;
    batch->label_count = batch->call_count = 0;
    for (uint32_t side = 0; side < batch->sides; side++) {
        uint32_t padded = padded_length(batch, limits, dataset, side);
        if (side == 0 || limits->separate) open_call(batch, side, limits->packed ? 0 : padded);
        for (uint32_t s = 0; s < count; s++) {
            add_sequence(batch, dataset, s, side);
            uint32_t length = batch->sequences[batch->sequence_count - 1].length;
            batch->rows += limits->packed ? length : padded;
        }
        close_call(batch);
    }
    fill_canonical(batch);
}
