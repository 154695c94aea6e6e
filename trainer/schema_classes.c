/* SPDX-License-Identifier: Apache-2.0
 * The schema with what optimizers and schedules hand in: one entry per built-in class
 * and per LR contract. */
#include "optim/optim.h"
#include "sched/sched.h"
#include "trainer/experiment.h"
#include "trainer/run_private.h"
#include "trainer/schema_contracts.h"

#define CLASSES_MAX 64

/* Filled once from constant tables; the same for the whole process. */
struct class_table {
    struct schema_class list[CLASSES_MAX];
    struct schema schema;
};

static enum status validate_optimizer(const struct config *config) {
    const struct optim_class *found = optim_find(config->optimizer.which.name);
    if (found == NULL || found->validate == NULL) return STATUS_OK;
    return found->validate(config->optimizer.which.values);
}

static enum status validate_schedule(const struct config *config) {
    const struct sched_class *found = sched_find(config->schedule.which.name);
    if (found == NULL || found->validate == NULL) return STATUS_OK;
    struct sched_call call = run_schedule_call(config);
    return found->validate(&call);
}

static enum status add_class(struct class_table *table, const char *prefix, const char *name,
                             const char *help, const struct key_row *keys, size_t key_count,
                             enum status (*validate)(const struct config *config)) {
    if (table->schema.class_count == CLASSES_MAX)
        FAIL(STATUS_INTERNAL, "more than %d optimizers and schedules", CLASSES_MAX);
    table->list[table->schema.class_count++] =
        (struct schema_class){prefix, name, help, keys, key_count, validate};
    return STATUS_OK;
}

enum status experiment_schema(struct arena *arena, const struct schema **out) {
    struct class_table *table;
    TRY(arena_take(arena, 1, sizeof *table, "schema", &table));
    for (const struct optim_class *const *c = optim_classes(); *c != NULL; c++)
        TRY(add_class(table, "optimizer", (*c)->name, (*c)->help, (*c)->keys, (*c)->key_count,
                      validate_optimizer));
    for (const struct sched_class *const *c = sched_classes(); *c != NULL; c++)
        TRY(add_class(table, "schedule", (*c)->name, (*c)->help, (*c)->keys, (*c)->key_count,
                      validate_schedule));
    table->schema.classes = table->list;
    TRY(schema_contracts_open(arena, &table->schema));
    *out = &table->schema;
    return STATUS_OK;
}
