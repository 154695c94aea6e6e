/* SPDX-License-Identifier: Apache-2.0
 * Answers what others may ask of a run (trainer/run.h). Nothing here changes what the run computes:
 * run_state_host() writes the zeros that phase `zero` owes (trainer/owed_zeros.h), which are the
 * numbers that the state holds already. */
#include "trainer/run_private.h"

#include <string.h>

#include "trainer/owed_zeros.h"

const struct config *run_config(const struct run *run) {
    return &run->config;
}

const struct dataset *run_dataset(const struct run *run) {
    return run->dataset;
}

const struct param_table *run_table(const struct run *run) {
    return &run->table;
}

const struct state_layout *run_layout(const struct run *run) {
    return &run->layout;
}

const struct run_axes *run_axes_of(const struct run *run) {
    return &run->axes;
}

const struct batch_limits *run_limits(const struct run *run) {
    return &run->limits;
}

uint32_t run_owner_count(const struct run *run) {
    return run->owner_count;
}

const uint32_t *run_owners(const struct run *run) {
    return run->owner;
}

const struct backend *run_backend(const struct run *run) {
    return run->backend;
}

size_t run_memory(const struct run *run) {
    return run->arena.total + run->hidden.total;
}

/* Adds up counts. `first` describes the first product for which this program's own op stood in, so
 * it comes from the first count that has one. */
static void add_products(struct library_count *to, const struct library_count *from) {
    if (to->ours == 0) memcpy(to->first, from->first, sizeof to->first);
    to->products += from->products;
    to->ours += from->ours;
}

int run_products(const struct run *run, struct library_count *out) {
    const struct run_reference *const reference = run->reference;
    int counted = run->model.call.library != NULL;
    struct library_count sum = run->model.products;
    if (reference != NULL) {
        add_products(&sum, &reference->model.products);
        counted = counted || reference->model.call.library != NULL;
    }
    if (counted) *out = sum;
    return counted;
}

const unsigned char *run_state_host(const struct run *run) {
    owed_zeros_pay(run);
    return run->state.host;
}

const struct state_head *run_state_head(const struct run *run) {
    return state_head_of(run->state.host);
}

const void *run_param(const struct run *run, uint32_t row) {
    return run_at(run, run->layout.tensor[row].param);
}

/* Returns a row's carriers in a packed copy of all parameters. */
static const void *packed_param(const struct run *run, const unsigned char *copy, uint32_t row) {
    return copy + run->packed[row] * dtype_carrier(run->table.rows[row].dtype);
}

/* The first update starts from the weights as they were drawn, so a perturbed weight (init.nudge)
 * counts as moved by it. */
const void *run_param_before(const struct run *run, uint32_t row) {
    return packed_param(run, run->record.step == 1 ? run->initial : run->before, row);
}

const void *run_param_initial(const struct run *run, uint32_t row) {
    return packed_param(run, run->initial, row);
}

const struct record *run_record(const struct run *run) {
    return &run->record;
}

struct run_steps run_steps(const struct run *run) {
    return run->steps;
}

const struct sampler_plan *run_sampler_plan(const struct run *run) {
    return &run->plan;
}

const struct model *run_model(const struct run *run) {
    return &run->model;
}

const struct batch *run_batch(const struct run *run) {
    return &run->batch;
}
