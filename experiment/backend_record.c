/* SPDX-License-Identifier: Apache-2.0
 * Turns what backend modules say of themselves into attributes. Each module is asked once, however
 * many configurations name it, and a second module of the same backend gets a group of its own.
 * Invariant: configurations that name their module by the same word share a group. */
#include "experiment/backend_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/backend_module.h"
#include "kernels/op_call.h"
#include "trainer/run.h"

enum status backends_site(const char *module, struct backend_site *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", module);
    TRY(backend_module_open(module, &out->backend));
    if (strcmp(module, BACKEND_MODULE_AUTO) == 0 &&
        !backend_module_find(out->path, sizeof out->path))
        FAIL(STATUS_INPUT, "twinstep_cuda.so: is there no more");
    TRY(digest_file(out->path, out->sha256));
    TRY(out->backend->describe(out->facts, &out->count));
    for (uint32_t i = 0; i < out->count; i++) {
        out->facts[i].name[sizeof out->facts[i].name - 1] = '\0';
        out->facts[i].text[sizeof out->facts[i].text - 1] = '\0';
    }
    return STATUS_OK;
}

/* The record as it grows: the word by which each configuration names its module, NULL for the CPU.
 */
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
    TRY(arena_format(arena, &path, BACKENDS_FOLDER "%s", group));
    TRY(arena_format(arena, &momentary, BACKENDS_FOLDER "%s" BACKENDS_MOMENTARY, group));
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

enum status backends_of_config(const struct config *config, struct arena *arena,
                               struct backend_seen *out) {
    struct backend_record record;
    TRY(backends_record(&config, 1, arena, &record));
    *out = (struct backend_seen){record.attributes, record.attribute_count, record.group[0]};
    return STATUS_OK;
}

void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]) {
    struct library_count sum;
    for (int i = 0; i < PRODUCTS_COLUMNS; i++)
        out[i] = (double)NAN;
    if (!run_products(run, &sum)) return;
    out[PRODUCTS_ALL] = (double)sum.products;
    out[PRODUCTS_OURS] = (double)sum.ours;
    for (int i = 0; i < 3; i++)
        out[PRODUCTS_M + i] = (double)sum.first[i];
}
