/* SPDX-License-Identifier: Apache-2.0
 * Runs passes outside of updates. They use the run's own buffers, which is safe because an update
 * fills all of them anew. */
#include "trainer/run_pass.h"

#include <string.h>

#include "trainer/replicas.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

void run_fill_batch(struct run *run, const uint32_t *index, uint32_t count) {
    batch_fill(&run->batch, &run->limits, run->dataset, index, count, 0);
}

enum status run_forward(struct run *run, uint64_t order_seed, uint32_t order_update,
                        struct watch *watch) {
    const struct model_weights weights = {run_weights(run)};
    struct watch *const hung = run->model.watch;
    model_set_order(&run->model, order_seed, order_update);
    run->model.dropping = 0;
    run->model.watch = watch;
    model_forward(&run->model, &weights, &run->batch, 0);
    run->model.watch = hung;
    return model_wait(&run->model);
}

enum status run_forward_in_one_order(struct run *run) {
    return run_forward(run, 0, 0, run->model.watch);
}

static void clear_gradients(struct run *run) {
    for (uint32_t i = 0; i < run->table.count; i++)
        for (uint32_t use = 0; use < run->table.rows[i].uses; use++)
            if (run->table.rows[i].tied_to < 0)
                model_set(&run->model, run->accumulators[i][use],
                          run->table.rows[i].count * run->model.accumulator, 0);
}

enum status run_backward(struct run *run, struct watch *watch) {
    const struct model_weights weights = {run_weights(run)};
    const struct model_gradients gradients = {run->accumulators, NULL, 0};
    const double each = 1.0 / (double)run->batch.label_count;
    for (uint32_t i = 0; i < run->batch.label_count; i++)
        run->coefficient[i] = dtype_round(each, DTYPE_F32);
    struct watch *const hung = run->model.watch;
    clear_gradients(run);
    run->model.watch = watch;
    model_backward(&run->model, &weights, &run->batch, run->coefficient, &gradients);
    run->model.watch = hung;
    clear_gradients(run);
    return model_wait(&run->model);
}

const void **run_weights(struct run *run) {
    phase_refresh_weights(run);
    return run->weights;
}

/* The two may have different backends, so the numbers go by way of the host. */
enum status run_take_weights(const struct run *from, struct run *to) {
    const enum dtype ours = (enum dtype)to->config.numerics.param;
    for (uint32_t i = 0; i < to->owner_count; i++) {
        const uint32_t row = to->owner[i];
        const size_t count = to->table.rows[row].count, bytes = count * dtype_carrier(ours);
        void *const tensor = run_at(to, to->layout.tensor[row].param), *room;
        const void *values;
        TRY(run_read_param(from, WINDOW_OLD, row, &values));
        TRY(run_room(to, WINDOW_NOW, tensor, bytes, &room));
        run_convert(to, count, (enum dtype)from->config.numerics.param, ours, values, room);
        TRY(run_store(to, WINDOW_NOW, tensor, bytes));
    }
    replicas_spread(to);
    to->weights_fresh = to->known = 0;
    phase_refresh_weights(to);
    return model_wait(&to->model);
}
