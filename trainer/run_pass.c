/* SPDX-License-Identifier: Apache-2.0
 * Runs passes outside of updates. They use the run's own buffers, which is safe because an update
 * fills all of them anew. */
#include "trainer/run_pass.h"

#include <string.h>

#include "trainer/run_private.h"
#include "trainer/streams.h"

void run_fill_batch(struct run *run, const uint32_t *index, uint32_t count) {
    batch_fill(&run->batch, &run->limits, run->dataset, index, count, 0);
}

void run_fill_probe(struct run *run, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        run->probe[i] = i;
    run_fill_batch(run, run->probe, count);
}

void run_forward(struct run *run, uint64_t order_seed, uint32_t order_update, struct watch *watch) {
    const struct model_weights weights = {run_weights(run)};
    struct watch *const hung = run->model.watch;
    model_set_order(&run->model, order_seed, order_update);
    run->model.dropping = 0;
    run->model.watch = watch;
    model_forward(&run->model, &weights, &run->batch, 0);
    run->model.watch = hung;
}

void run_forward_as_trained(struct run *run) {
    run_forward(run, streams_at(run, STREAM_ORDER).seed, streams_update(run, STREAM_ORDER) - 1,
                run->model.watch);
}

static void clear_gradients(struct run *run) {
    for (uint32_t i = 0; i < run->table.count; i++)
        for (uint32_t use = 0; use < run->table.rows[i].uses; use++)
            if (run->table.rows[i].tied_to < 0)
                memset(run->accumulators[i][use], 0,
                       run->table.rows[i].count * run->model.accumulator);
}

void run_backward(struct run *run, struct watch *watch) {
    const struct model_weights weights = {run_weights(run)};
    const struct model_gradients gradients = {run->accumulators};
    const double each = 1.0 / (double)run->batch.label_count;
    for (uint32_t i = 0; i < run->batch.label_count; i++)
        run->coefficient[i] = dtype_round(each, DTYPE_F32);
    struct watch *const hung = run->model.watch;
    clear_gradients(run);
    run->model.watch = watch;
    model_backward(&run->model, &weights, &run->batch, run->coefficient, &gradients);
    run->model.watch = hung;
    clear_gradients(run);
}

const void **run_weights(struct run *run) {
    phase_refresh_weights(run);
    return run->weights;
}

void run_take_weights(const struct run *from, struct run *to) {
    for (uint32_t i = 0; i < to->owner_count; i++) {
        const uint32_t row = to->owner[i];
        run_convert(to, to->table.rows[row].count, (enum dtype)from->config.numerics.param,
                    (enum dtype)to->config.numerics.param, run_param(from, row),
                    run_at(to, to->layout.tensor[row].param));
    }
    to->weights_fresh = 0;
    phase_refresh_weights(to);
}
