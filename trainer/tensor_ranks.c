/* SPDX-License-Identifier: Apache-2.0
 * Keeps what the model needs of ranks other than 0. A rank's weights lie in its copy in the state;
 * its sums begin and end with an update, so they are no part of the state. */
#include "trainer/tensor_ranks.h"

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

/* The next row at or behind `row` that ranks other than 0 hold apart. Norms own their storage and
 * have one use. */
static uint32_t apart_from(const struct run *run, uint32_t row) {
    while (row < run->table.count && !model_holds_apart(&run->config, run->table.rows[row].role))
        row++;
    return row;
}

#define EACH_APART(run, ranks, rank, row)                                                          \
    for (uint32_t rank = 1; rank < (ranks)->shown.count; rank++)                                   \
        for (uint32_t row = apart_from(run, 0); row < (run)->table.count;                          \
             row = apart_from(run, row + 1))

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
        TRY(arena_take(arena, count, run->model.carrier, "weight copies", &own->copies[at]));
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
        const struct convert_args args = {of->count, of->dtype, run->model.compute,
                                          replicas_param(run, rank, row),
                                          own->copies[place_of(run, rank, row)]};
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
