/* SPDX-License-Identifier: Apache-2.0
 * Asks the functions that run_open calls for sizes, on an arena whose pages nobody touches. */
#include "tests/bench/helper_bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiment/experiment.h"
#include "kernels/backend_module.h"
#include "model/backends.h"
#include "model/model.h"
#include "trainer/plugins/plugin.h"
#include "trainer/schema_classes.h"

double bench_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void bench_insert(double *sorted, size_t count, double x) {
    for (; count > 0 && sorted[count - 1] > x; count--)
        sorted[count] = sorted[count - 1];
    sorted[count] = x;
}

enum status bench_open(const char *const *overrides, size_t count, struct arena *arena,
                       const struct config **out, struct dataset *dataset) {
    static const char text[] = "twinstep: 1\nname: bench\nsteps: 64\n";
    const struct schema *schema;
    struct scenario *scenario;
    TRY(schema_with_classes(arena, &schema));
    TRY(scenario_parse(arena, schema, "bench", text, sizeof text - 1, overrides, count, &scenario));
    *out = &scenario->arms[0].config;
    const struct dataset_options source = run_dataset_options(*out);
    return dataset_open(&source, arena, dataset);
}

static enum status add_model(const struct config *config, const struct dataset *dataset,
                             const struct param_table *table, uint64_t samples, int32_t layout,
                             struct bench_memory *out) {
    struct arena dry = ARENA_EMPTY;
    struct batch_limits limits;
    struct batch batch;
    struct model model;
    const struct backend *backend;
    enum status status =
        batch_limits_open(config, dataset, samples, (enum batch_layout)layout, &limits);
    if (status == STATUS_OK) status = batch_open(&limits, &dry, &batch);
    if (status == STATUS_OK) status = backends_open(config, &backend);
    if (status == STATUS_OK) status = model_open(config, table, backend, &limits, &dry, &model);
    if (status == STATUS_OK) {
        const int copies =
            form_is_narrow(model.form) || config->numerics.param != config->numerics.compute;
        out->activations += dry.total - model.scratch_bytes;
        out->scratch += model.scratch_bytes;
        out->copies += copies ? table->elements * model.form.width : 0;
    }
    arena_close(&dry);
    return status;
}

static enum status add_state(const struct config *config, const struct dataset *dataset,
                             const struct param_table *table, struct arena *arena,
                             struct bench_memory *out) {
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
    const struct backend *backend;
    struct state_layout layout;
    const size_t param = dtype_carrier((enum dtype)config->numerics.param);
    TRY(plugin_optimizer(&config->optimizer.which, &optimizer));
    TRY(plugin_schedule(&config->schedule.which, &schedule));
    TRY(backends_open(config, &backend));
    TRY(state_layout_open(config, table, optimizer, schedule, dataset->samples,
                          backends_takes_narrow(backend), arena, &layout));
    size_t leaves = 0;
    for (uint32_t i = 0; i < table->count; i++)
        leaves += state_leaves(&table->rows[i], &layout, &layout.tensor[i]);
    out->state = layout.bytes + leaves * sizeof(struct leafhash_leaf);
    out->copies = table->elements * 2 * param; /* initial ones, and those before an update */
    return STATUS_OK;
}

static enum status add_all(const struct config *config, const struct dataset *dataset,
                           struct arena *arena, struct bench_memory *out) {
    struct param_table table;
    TRY(params_open(config, arena, &table));
    TRY(add_state(config, dataset, &table, arena, out));
    TRY(add_model(config, dataset, &table, config->batch.micro, config->batch.layout, out));
    if (!config_has_reference(config)) return STATUS_OK;
    return add_model(config, dataset, &table, config->dpo.reference_batch,
                     config->dpo.reference_layout, out);
}

enum status bench_memory_of(const struct config *config, const struct dataset *dataset,
                            struct bench_memory *out) {
    struct arena arena = ARENA_EMPTY;
    memset(out, 0, sizeof *out);
    const enum status status = add_all(config, dataset, &arena, out);
    arena_close(&arena);
    out->total = out->state + out->copies + out->activations + out->scratch;
    return status;
}

enum status bench_memory_room(const struct config *config, double *out_bytes) {
    const struct backend *backend;
    struct backend_fact facts[BACKEND_FACTS_MAX];
    uint32_t count = 0;
    *out_bytes = 0.0;
    TRY(backends_open(config, &backend));
    if (backend == NULL) return STATUS_OK;
    TRY(backend->describe(facts, &count));
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(facts[i].name, "memory_bytes") == 0)
            *out_bytes = 0.75 * strtod(facts[i].text, NULL);
    return STATUS_OK;
}

#define GIB 1073741824.0

enum status bench_memory_check(const struct config *config, const struct dataset *dataset,
                               double most, struct bench_memory *out) {
    double room;
    TRY(bench_memory_of(config, dataset, out));
    TRY(bench_memory_room(config, &room));
    if (most <= 0.0 || (room > 0.0 && room < most)) most = room;
    if (most <= 0.0 || (double)out->total <= most) return STATUS_OK;
    FAIL(STATUS_MEMORY,
         "needs %.3g GiB (state %.3g, copies %.3g, activations %.3g, scratch %.3g), may take %.3g "
         "GiB",
         (double)out->total / GIB, (double)out->state / GIB, (double)out->copies / GIB,
         (double)out->activations / GIB, (double)out->scratch / GIB, most / GIB);
}
