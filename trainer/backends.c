/* SPDX-License-Identifier: Apache-2.0
 * A module that is open is found again by dlopen, so nothing is kept here between calls. */
#include "trainer/backends.h"

#include <stdio.h>
#include <string.h>

#include "trainer/plugin.h"

#define DEVICE_WORDS "\nnumerics.backend: cuda\n"
#define FOLDER "backend/"
#define MOMENTARY "/volatile"

const char *const backends_here[2] = {"there", "here"};

enum status backends_open(const struct config *config, const struct backend **out) {
    *out = NULL;
    if (config->numerics.backend == BACKEND_CPU) return STATUS_OK;
    const enum status status = backend_module_open(config->numerics.backend_module, out);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "numerics.backend");
}

enum status backends_memory(const struct config *config, const struct arena_source **out) {
    const struct backend *backend;
    TRY(backends_open(config, &backend));
    *out = backend == NULL ? NULL : &backend->memory;
    return STATUS_OK;
}

enum status backends_site(const char *module, struct backend_site *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", module);
    TRY(backend_module_open(module, &out->backend));
    if (strcmp(module, BACKEND_MODULE_AUTO) == 0 &&
        !backend_module_find(out->path, sizeof out->path))
        FAIL(STATUS_INPUT, "twinstep_cuda.so: is there no more");
    TRY(plugin_hash(out->path, out->sha256));
    TRY(out->backend->describe(out->facts, &out->count));
    for (uint32_t i = 0; i < out->count; i++) {
        out->facts[i].name[sizeof out->facts[i].name - 1] = '\0';
        out->facts[i].text[sizeof out->facts[i].text - 1] = '\0';
    }
    return STATUS_OK;
}

/* Modules that are already in the record, by the word that opened them. */
struct recording {
    struct backend_record *record;
    struct arena *arena;
    const char **words;
    uint32_t modules;
};

static enum status add(struct recording *to, const char *path, const char *name, const char *text) {
    char *copy[2];
    TRY(arena_format(to->arena, &copy[0], "%s", name));
    TRY(arena_format(to->arena, &copy[1], "%s", text));
    to->record->attributes[to->record->attribute_count++] =
        (struct trace_attribute){path, copy[0], copy[1]};
    return STATUS_OK;
}

static enum status add_site(struct recording *to, const struct backend_site *site,
                            const char **out_group) {
    struct arena *arena = to->arena;
    char *group, *path, *momentary;
    struct trace_attribute *grown;
    const uint32_t before = to->record->attribute_count;
    if (to->modules == 0)
        TRY(arena_format(arena, &group, "%s", site->backend->name));
    else
        TRY(arena_format(arena, &group, "%s-%u", site->backend->name, to->modules + 1));
    TRY(arena_format(arena, &path, FOLDER "%s", group));
    TRY(arena_format(arena, &momentary, FOLDER "%s" MOMENTARY, group));
    TRY(arena_take(arena, before + site->count + 1, sizeof *grown, "facts", &grown));
    if (before > 0) memcpy(grown, to->record->attributes, before * sizeof *grown);
    to->record->attributes = grown;
    TRY(add(to, path, "sha256", site->sha256));
    for (uint32_t i = 0; i < site->count; i++)
        TRY(add(to, site->facts[i].momentary ? momentary : path, site->facts[i].name,
                site->facts[i].text));
    to->modules++;
    *out_group = group;
    return STATUS_OK;
}

enum status backends_record(const struct config *const *configs, uint32_t count,
                            struct arena *arena, struct backend_record *out) {
    struct recording to = {.record = out, .arena = arena};
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, count, sizeof *out->group, "backends", &out->group));
    TRY(arena_take(arena, count, sizeof *to.words, "backends", &to.words));
    for (uint32_t i = 0; i < count; i++) {
        const char *const word = configs[i]->numerics.backend_module;
        struct backend_site site;
        to.words[i] = NULL;
        out->group[i] = BACKENDS_OWN;
        if (configs[i]->numerics.backend == BACKEND_CPU) continue;
        to.words[i] = word;
        for (uint32_t j = 0; j < i && strcmp(out->group[i], BACKENDS_OWN) == 0; j++)
            if (to.words[j] != NULL && strcmp(to.words[j], word) == 0)
                out->group[i] = out->group[j];
        if (strcmp(out->group[i], BACKENDS_OWN) != 0) continue;
        const enum status status = backends_site(word, &site);
        if (status != STATUS_OK) return status_prefix(status, "numerics.backend");
        TRY(add_site(&to, &site, &out->group[i]));
    }
    return STATUS_OK;
}

int backends_is_volatile(const struct trace_attribute *attribute) {
    const size_t length = strlen(attribute->path), end = strlen(MOMENTARY);
    return strncmp(attribute->path, FOLDER, strlen(FOLDER)) == 0 && length > end &&
           strcmp(attribute->path + length - end, MOMENTARY) == 0;
}

struct backend_seen backends_of_run(const struct trace_image *image, const char *run) {
    const struct trace_run *const found = trace_run_of(image, run);
    const char *group = trace_attribute_of(image, "backend", run);
    const char *const text = found == NULL ? NULL : found->plan.configuration;
    if (group == NULL && text != NULL && strstr(text, DEVICE_WORDS) == NULL) group = BACKENDS_OWN;
    return (struct backend_seen){image->attributes, image->attribute_count, group};
}

enum status backends_of_config(const struct config *config, struct arena *arena,
                               struct backend_seen *out) {
    struct backend_record record;
    TRY(backends_record(&config, 1, arena, &record));
    *out = (struct backend_seen){record.attributes, record.attribute_count, record.group[0]};
    return STATUS_OK;
}

struct backend_seen backends_of_floor(const struct floor_file *file) {
    const struct trace_image image = {
        .attributes = (struct trace_attribute *)(void *)(uintptr_t)file->environment,
        .attribute_count = file->environment_count};
    const char *const group = trace_attribute_of(&image, "backend", "noise");
    const int cpu = group == NULL && strstr(file->configuration, DEVICE_WORDS) == NULL;
    return (struct backend_seen){file->environment, file->environment_count,
                                 cpu ? BACKENDS_OWN : group};
}

static int is_recorded(const struct backend_seen *seen) {
    return seen->group != NULL && strcmp(seen->group, BACKENDS_OWN) != 0;
}

/* The steady facts of a group, one after the other; NULL: no more. */
static const struct trace_attribute *next_fact(const struct backend_seen *seen, uint32_t *at) {
    for (; *at < seen->attribute_count && is_recorded(seen); ++*at) {
        const struct trace_attribute *fact = &seen->attributes[*at];
        if (strncmp(fact->path, FOLDER, strlen(FOLDER)) != 0) continue;
        if (strcmp(fact->path + strlen(FOLDER), seen->group) != 0) continue;
        ++*at;
        return fact;
    }
    return NULL;
}

static const char *fact_of(const struct backend_seen *seen, const char *name) {
    const struct trace_attribute *fact;
    uint32_t at = 0;
    while ((fact = next_fact(seen, &at)) != NULL)
        if (strcmp(fact->name, name) == 0) return fact->text;
    return NULL;
}

enum status backends_line(const struct backend_seen *seen, struct arena *arena, char **out) {
    const struct trace_attribute *fact;
    const char *const device = fact_of(seen, "device");
    uint32_t at = 0;
    TRY(arena_format(arena, out, "%s%s%s", seen->group == NULL ? "not recorded" : seen->group,
                     device == NULL ? "" : ": ", device == NULL ? "" : device));
    while ((fact = next_fact(seen, &at)) != NULL)
        if (strcmp(fact->name, "device") != 0 && strcmp(fact->name, "sha256") != 0)
            TRY(arena_format(arena, out, "%s, %s %s", *out, fact->name, fact->text));
    return STATUS_OK;
}

struct difference {
    const char *const *names;
    struct arena *arena;
    char *text;
};

static enum status add_difference(struct difference *to, const char *name, const char *a,
                                  const char *b) {
    if (a == NULL || b == NULL || strcmp(a, b) == 0) return STATUS_OK;
    return arena_format(to->arena, &to->text, "%s%s%s: %s %s, %s %s", to->text,
                        to->text[0] == '\0' ? "" : "; ", name, a, to->names[0], b, to->names[1]);
}

enum status backends_difference(const struct backend_seen seen[2], const char *const names[2],
                                struct arena *arena, char **out) {
    struct difference to = {.names = names, .arena = arena};
    const struct trace_attribute *fact;
    uint32_t at = 0;
    TRY(arena_format(arena, &to.text, "%s", ""));
    if (is_recorded(&seen[0]) != is_recorded(&seen[1]))
        TRY(add_difference(&to, "backend", seen[0].group, seen[1].group));
    while (is_recorded(&seen[1]) && (fact = next_fact(&seen[0], &at)) != NULL)
        TRY(add_difference(&to, fact->name, fact->text, fact_of(&seen[1], fact->name)));
    *out = to.text;
    return STATUS_OK;
}
