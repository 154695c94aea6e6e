/* SPDX-License-Identifier: Apache-2.0
 * Keeps what the model needs of ranks other than 0. A rank's weights lie in its copy in the state;
 * its sums begin and end with an update, so they are no part of the state. */
#include "trainer/tensor_ranks.h"

#include <string.h>

#include "data/dataset.h"
#include "kernels/op.h"
#include "scenarios/scenario.h"
#include "trainer/replicas.h"
#include "trainer/run_private.h"

struct tensor_ranks {
    struct model_ranks shown;
    void **copies; /* (ranks, rows) compute copies of weights; NULL where none are made */
};

static size_t place_of(const struct run *run, uint32_t rank, uint32_t row) {
    return (size_t)rank * run->table.count + row;
}

/* The next row at or behind `row` that ranks other than 0 hold apart. Norms, and an embedding that
 * is not tied, own their storage and have one use. */
static uint32_t apart_from(const struct run *run, uint32_t row) {
    while (row < run->table.count && !model_holds_apart(&run->config, run->table.rows[row].role))
        row++;
    return row;
}

#define EACH_APART(run, ranks, rank, row)                                                          \
    for (uint32_t rank = 1; rank < (ranks)->shown.count; rank++)                                   \
        for (uint32_t row = apart_from(run, 0); row < (run)->table.count;                          \
             row = apart_from(run, row + 1))

/* Whether two sequences have equally many tokens, and labels at equal places. */
static int same_shape(const struct dataset *dataset, const struct dataset_sequence *a,
                      const struct dataset_sequence *b) {
    if (a->length != b->length) return 0;
    for (uint32_t i = 0; i < a->length; i++)
        if ((dataset->target[a->first + i] == DATASET_NO_TARGET) !=
            (dataset->target[b->first + i] == DATASET_NO_TARGET))
            return 0;
    return 1;
}

/* The ranks' tensors are added element by element. Padding would make them equally large, but then
 * one rank's padding is added to another's tokens, and what a framework computes for padding is not
 * simulated. */
enum status tensor_ranks_check_data(const struct config *config, const struct dataset *dataset) {
    const uint64_t needed = config->batch.size * config_fed_ranks(config);
    if (config_fed_ranks(config) == 1) return STATUS_OK;
    if (dataset->samples < needed)
        FAIL(STATUS_INPUT,
             "%s: batch.size is %ju samples of each of %ju ranks (parallel.feeds own-on-tensor), "
             "but the data hold %zu: not one full update",
             dataset->source, (uintmax_t)config->batch.size, (uintmax_t)config->parallel.tensor,
             dataset->samples);
    const struct dataset_sequence *const first = dataset_side(dataset, 0, 0);
    for (size_t i = 1; i < dataset->samples; i++) {
        const struct dataset_sequence *const other = dataset_side(dataset, i, 0);
        if (!same_shape(dataset, first, other))
            FAIL(STATUS_INPUT,
                 "%s:%u: expected as many tokens as line %u has (%u), with labels at the same "
                 "places, got %u tokens and %u labels (line %u: %u): ranks with samples of their "
                 "own (parallel.feeds own-on-tensor) add tensors of one shape, and padding is not "
                 "simulated; a data.max_len that cuts every text makes them equal",
                 dataset->source, dataset->line[i], dataset->line[0], first->length, other->length,
                 other->labels, dataset->line[0], first->labels);
    }
    return STATUS_OK;
}

enum status tensor_ranks_open(struct run *run) {
    const size_t ranks = config_copies(&run->config), places = ranks * run->table.count;
    struct arena *const arena = &run->arena;
    struct tensor_ranks *own;
    if (!config_parts_tensor_ranks(&run->config)) return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *own, "ranks", &own));
    own->shown.count = (uint32_t)ranks;
    TRY(arena_take(arena, places, sizeof *own->shown.weight, "ranks", &own->shown.weight));
    TRY(arena_take(arena, places, sizeof *own->shown.sums, "ranks", &own->shown.sums));
    if (run->weight_copies != NULL)
        TRY(arena_take(arena, places, sizeof *own->copies, "ranks", &own->copies));
    EACH_APART(run, own, rank, row) {
        const size_t at = place_of(run, rank, row), count = run->table.rows[row].count;
        TRY(arena_take(arena, count, run->layout.accumulator, "sums of ranks",
                       &own->shown.sums[at]));
        own->shown.weight[at] = replicas_param(run, rank, row);
        if (own->copies == NULL) continue;
        TRY(arena_take(arena, count, run->model.form.width, "weight copies", &own->copies[at]));
        own->shown.weight[at] = own->copies[at];
    }
    run->tensor_ranks = own;
    run->model.ranks = &own->shown;
    return STATUS_OK;
}

void tensor_ranks_begin(struct run *run) {
    const struct tensor_ranks *const own = run->tensor_ranks;
    if (own == NULL) return;
    EACH_APART(run, own, rank, row)
    model_set(&run->model, own->shown.sums[place_of(run, rank, row)],
              run->table.rows[row].count * run->layout.accumulator, 0);
}

void tensor_ranks_refresh(struct run *run) {
    const struct tensor_ranks *const own = run->tensor_ranks;
    if (own == NULL || own->copies == NULL) return;
    EACH_APART(run, own, rank, row) {
        const struct param_row *const of = &run->table.rows[row];
        const struct convert_args args = {of->count,
                                          of->dtype,
                                          run->model.compute,
                                          replicas_param(run, rank, row),
                                          own->copies[place_of(run, rank, row)],
                                          form_is_narrow(run->model.form)};
        run->model.ops->convert(&run->model.call, &args);
    }
}

/* Exchanges what the accumulators have of weights that are held apart with the sums of a rank. */
static void exchange(struct run *run, uint32_t rank) {
    for (uint32_t row = apart_from(run, 0); row < run->table.count; row = apart_from(run, row + 1))
        replicas_exchange_bytes(run->accumulators[row][0],
                                run->tensor_ranks->shown.sums[place_of(run, rank, row)],
                                run->table.rows[row].count * run->layout.accumulator);
}

enum status tensor_ranks_close(struct run *run, uint32_t rank) {
    exchange(run, rank);
    const enum status status = phase_close_gradient(run);
    exchange(run, rank);
    return status;
}

/* Copies a rank's slice of a tensor: columns of what is behind a row-parallel layer's input, else
 * rows. */
static void copy_slice(const struct run *run, uint32_t row, uint32_t rank,
                       const unsigned char *from, unsigned char *to) {
    const struct param_row *const tensor = &run->table.rows[row];
    const int columns = tensor->role == ROLE_O || tensor->role == ROLE_DOWN;
    const uint64_t ranks = run->tensor_ranks->shown.count;
    const size_t element = dtype_carrier(run->layout.gradient_dtype);
    const size_t width = (size_t)tensor->shape[1] * element;
    const uint64_t length = columns ? tensor->shape[1] : tensor->shape[0];
    const size_t first = model_slice_at(length, ranks, rank);
    const size_t end = model_slice_at(length, ranks, rank + 1);
    if (!columns) {
        memcpy(to + first * width, from + first * width, (end - first) * width);
        return;
    }
    for (size_t r = 0; r < tensor->shape[0]; r++)
        memcpy(to + r * width + first * element, from + r * width + first * element,
               (end - first) * element);
}

void tensor_ranks_join_clipped(struct run *run) {
    if (config_fed_ranks(&run->config) == 1) return;
    const uint32_t ranks = run->tensor_ranks->shown.count;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        if (model_holds_apart(&run->config, run->table.rows[row].role)) continue;
        for (uint32_t owner = 0; owner < ranks; owner++)
            for (uint32_t rank = 0; rank < ranks; rank++)
                if (rank != owner)
                    copy_slice(run, row, owner,
                               (const unsigned char *)replicas_gradient(run, owner, row),
                               (unsigned char *)replicas_gradient(run, rank, row));
    }
}
