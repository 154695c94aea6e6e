/* SPDX-License-Identifier: Apache-2.0
 * Opens modules and finds classes in them. A file is hashed before it is opened and after it, so
 * that what runs is what was hashed. */
#include "trainer/plugin.h"

#include <string.h>

#include "base/arena.h"
#include "base/module.h"
#include "optim/optim_module.h"
#include "scenarios/textfile.h"
#include "sched/sched_module.h"

/* The largest module that is read for its hash. It was chosen far above any module that a compiler
 * makes of an optimizer, so that a wrong path cannot fill the memory. */
#define MODULE_BYTES_MAX ((size_t)256 << 20)

enum status plugin_hash(const char *path, char out[DIGEST_HEX]) {
    struct arena arena = ARENA_EMPTY;
    struct digest digest;
    char *bytes;
    size_t length;
    const enum status status = textfile_read(&arena, path, MODULE_BYTES_MAX, &bytes, &length);
    if (status == STATUS_OK) {
        digest_sha256(bytes, length, &digest);
        digest_hex(&digest, out);
    }
    arena_close(&arena);
    return status;
}

static enum status read_classes(const struct module *module, const char *kind, struct plugin *out) {
    const int any = kind == NULL;
    const int optimizers = any ? module_has(module, "optim") : strcmp(kind, "optimizer") == 0;
    const int schedules = any ? module_has(module, "sched") : strcmp(kind, "schedule") == 0;
    /* a module that holds neither is refused as one without optimizers */
    if (optimizers || !schedules)
        TRY(optim_module_read(module, CONFIG_CLASS_BYTES, &out->optimizers));
    return schedules ? sched_module_read(module, CONFIG_CLASS_BYTES, &out->schedules) : STATUS_OK;
}

enum status plugin_open(const char *path, const char *kind, struct plugin *out) {
    struct module module;
    char after[DIGEST_HEX] = "";
    *out = (struct plugin){.optimizers = NULL};
    if (strcmp(path, "-") == 0) FAIL(STATUS_INPUT, "-: expected the file of a module");
    TRY(module_open(path, &module));
    enum status status = plugin_hash(path, out->sha256);
    if (status == STATUS_OK) status = read_classes(&module, kind, out);
    if (status == STATUS_OK) status = plugin_hash(path, after);
    if (status == STATUS_OK && strcmp(out->sha256, after) != 0)
        status = status_fail(STATUS_INPUT, "%s: the file changed while it was opened", path);
    if (status != STATUS_OK) module_close(&module);
    return status;
}

/* Opens a module again; what the configuration names must be what the file holds now. */
static enum status open_again(const struct config_class *which, const char *kind,
                              struct plugin *out) {
    TRY(plugin_open(which->module, kind, out));
    if (strcmp(out->sha256, which->module_sha256) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected the module with SHA-256 %s, got %s: the file was changed",
         which->module, which->module_sha256, out->sha256);
}

enum status plugin_optimizer(const struct config_class *which, const struct optim_class **out) {
    struct plugin plugin;
    *out = NULL;
    if (strcmp(which->module, CONFIG_NO_MODULE) == 0) {
        *out = optim_find(which->name);
    } else {
        TRY(open_again(which, "optimizer", &plugin));
        for (size_t i = 0; plugin.optimizers[i] != NULL; i++)
            if (strcmp(plugin.optimizers[i]->name, which->name) == 0) *out = plugin.optimizers[i];
    }
    if (*out == NULL)
        FAIL(STATUS_INTERNAL, "optimizer %s passed the schema and is unknown", which->name);
    return STATUS_OK;
}

enum status plugin_schedule(const struct config_class *which, const struct sched_class **out) {
    struct plugin plugin;
    *out = NULL;
    if (strcmp(which->module, CONFIG_NO_MODULE) == 0) {
        *out = sched_find(which->name);
    } else {
        TRY(open_again(which, "schedule", &plugin));
        for (size_t i = 0; plugin.schedules[i] != NULL; i++)
            if (strcmp(plugin.schedules[i]->name, which->name) == 0) *out = plugin.schedules[i];
    }
    if (*out == NULL)
        FAIL(STATUS_INTERNAL, "schedule %s passed the schema and is unknown", which->name);
    return STATUS_OK;
}
