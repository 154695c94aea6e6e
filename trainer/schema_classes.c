/* SPDX-License-Identifier: Apache-2.0
 * The schema with what optimizers and schedules hand in: one entry for each built-in class, for
 * each class of a module that was loaded, and for each LR contract. */
#include "trainer/schema_classes.h"

#include <stdio.h>
#include <string.h>

#include "model/pretrained.h"
#include "optim/optim.h"
#include "scenarios/row_value.h"
#include "scenarios/selection.h"
#include "sched/sched.h"
#include "trainer/corruption.h"
#include "trainer/plugins/plugin.h"
#include "trainer/restart.h"
#include "trainer/run_private.h"
#include "trainer/schema_contracts.h"
#include "trainer/zero.h"

/* All classes of a process, those of its modules included. The bound was chosen;
 * the built-in classes are a small part of it. */
#define CLASSES_MAX 256

/* A module that was loaded, with the digest that it had then. */
struct loaded {
    const char *path, *sha256;
    struct loaded *next;
};

/* Built-in classes are there from the start; those of modules come as scenarios name them. */
struct class_table {
    struct schema_class list[CLASSES_MAX];
    struct schema schema;
    struct arena *arena;
    struct loaded *loaded;
};

static enum status validate_optimizer(const struct config *config) {
    const struct optim_class *found;
    TRY(plugin_optimizer(&config->optimizer.which, &found));
    return plugin_check_values(&config->optimizer.which, found);
}

static enum status validate_schedule(const struct config *config) {
    const struct sched_class *found;
    TRY(plugin_schedule(&config->schedule.which, &found));
    struct sched_call call = run_schedule_call(config);
    return plugin_check_call(&config->schedule.which, found, &call);
}

/* A class of either section as the schema sees it; `sha256` is the digest of its module, or NULL.
 */
#define CLASS_OF(section, class_, sha256)                                                          \
    ((struct schema_class){.prefix = #section,                                                     \
                           .name = (class_)->name,                                                 \
                           .help = (class_)->help,                                                 \
                           .keys = (class_)->keys,                                                 \
                           .key_count = (class_)->key_count,                                       \
                           .validate = validate_##section,                                         \
                           .module = (sha256)})

static enum status add_class(struct class_table *table, struct schema_class class_) {
    if (table->schema.class_count == CLASSES_MAX)
        FAIL(STATUS_INPUT, "more than %d optimizers and schedules", CLASSES_MAX);
    table->list[table->schema.class_count++] = class_;
    return STATUS_OK;
}

/* Checks of a module's rows what this program's own tests hold of built-in rows: that each row
 * accepts its default, and that no key of the section hides it. */
static enum status check_keys(const char *path, struct schema_class class_) {
    const char *const prefix = class_.prefix, *const name = class_.name;
    const struct key_row *const keys = class_.keys;
    uint64_t values[CONFIG_CLASS_BYTES / sizeof(uint64_t)] = {0};
    char key[128], text[512];
    for (size_t i = 0; i < class_.key_count; i++) {
        snprintf(key, sizeof key, "%s.%s", prefix, keys[i].path);
        if (schema_find(key, NULL) != NULL)
            FAIL(STATUS_INPUT, "%s: %s %s: key %s is one that every %s has", path, prefix, name,
                 keys[i].path, prefix);
        if (row_read_standard(&keys[i], keys[i].path, values) == STATUS_OK) continue;
        snprintf(text, sizeof text, "%s", status_text());
        const char *said = strstr(text, ": error: ");
        FAIL(STATUS_INPUT, "%s: %s %s: default of key %s", path, prefix, name,
             said == NULL ? text : said + strlen(": error: "));
    }
    return STATUS_OK;
}

/* Remembers a module under its path. A process that has opened a file keeps running that file's
 * code, so a file that was changed since needs another process. */
static enum status remember(struct class_table *table, const char *path, const char *sha256,
                            const char **out_sha256) {
    struct loaded *fresh;
    char *copy;
    *out_sha256 = NULL;
    for (const struct loaded *l = table->loaded; l != NULL; l = l->next) {
        if (strcmp(l->sha256, sha256) == 0) *out_sha256 = l->sha256;
        if (strcmp(l->path, path) != 0) continue;
        if (strcmp(l->sha256, sha256) == 0) return STATUS_OK;
        FAIL(STATUS_INPUT,
             "%s: the file was changed while this process had it open (SHA-256 %s, now %s); start "
             "again",
             path, l->sha256, sha256);
    }
    TRY(arena_take(table->arena, 1, sizeof *fresh, "modules", &fresh));
    TRY(arena_format(table->arena, &copy, "%s", path));
    fresh->path = copy;
    if (*out_sha256 == NULL) {
        TRY(arena_format(table->arena, &copy, "%s", sha256));
        *out_sha256 = copy;
    }
    fresh->sha256 = *out_sha256;
    fresh->next = table->loaded;
    table->loaded = fresh;
    return STATUS_OK;
}

static int has_class(const struct schema *schema, const char *prefix, const char *sha256) {
    for (size_t i = 0; i < schema->class_count; i++)
        if (schema->classes[i].module != NULL && strcmp(schema->classes[i].prefix, prefix) == 0 &&
            strcmp(schema->classes[i].module, sha256) == 0)
            return 1;
    return 0;
}

/* Adds the classes of a module, of which none is added unless all of a kind are sound. */
static enum status add_module(struct class_table *table, const char *path, const char *sha256,
                              const struct plugin *plugin) {
    const int optimizers =
        plugin->optimizers != NULL && !has_class(&table->schema, "optimizer", sha256);
    const int schedules =
        plugin->schedules != NULL && !has_class(&table->schema, "schedule", sha256);
    for (size_t i = 0; optimizers && plugin->optimizers[i] != NULL; i++)
        TRY(check_keys(path, CLASS_OF(optimizer, plugin->optimizers[i], sha256)));
    for (size_t i = 0; optimizers && plugin->optimizers[i] != NULL; i++)
        TRY(add_class(table, CLASS_OF(optimizer, plugin->optimizers[i], sha256)));
    for (size_t i = 0; schedules && plugin->schedules[i] != NULL; i++)
        TRY(check_keys(path, CLASS_OF(schedule, plugin->schedules[i], sha256)));
    for (size_t i = 0; schedules && plugin->schedules[i] != NULL; i++)
        TRY(add_class(table, CLASS_OF(schedule, plugin->schedules[i], sha256)));
    return STATUS_OK;
}

static enum status load(const struct schema *schema, const char *prefix, const char *path,
                        const char *expected, char *out_sha256) {
    struct class_table *table = (struct class_table *)schema->owner;
    struct plugin plugin;
    const char *sha256;
    TRY(plugin_open(path, prefix, expected, &plugin));
    if (expected != NULL && strcmp(expected, plugin.sha256) != 0) {
        snprintf(out_sha256, CONFIG_SHA256_SIZE, "%s", plugin.sha256);
        return STATUS_OK;
    }
    TRY(remember(table, path, plugin.sha256, &sha256));
    TRY(add_module(table, path, sha256, &plugin));
    snprintf(out_sha256, CONFIG_SHA256_SIZE, "%s", sha256);
    return STATUS_OK;
}

static enum status check_whole(const struct config *config, struct fault *fault) {
    TRY(corruption_check(config, fault));
    TRY(zero_check(config, fault));
    return restart_check(config, fault);
}

enum status schema_with_classes(struct arena *arena, const struct schema **out) {
    struct class_table *table;
    TRY(arena_take(arena, 1, sizeof *table, "schema", &table));
    for (const struct optim_class *const *c = optim_classes(); *c != NULL; c++)
        TRY(add_class(table, CLASS_OF(optimizer, *c, NULL)));
    for (const struct sched_class *const *c = sched_classes(); *c != NULL; c++)
        TRY(add_class(table, CLASS_OF(schedule, *c, NULL)));
    table->schema.classes = table->list;
    table->schema.load = load;
    table->schema.owner = table;
    table->schema.describe = pretrained_describe;
    table->schema.check = check_whole;
    table->arena = arena;
    TRY(schema_contracts_open(arena, &table->schema));
    *out = &table->schema;
    return STATUS_OK;
}
