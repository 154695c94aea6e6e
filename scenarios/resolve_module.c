/* SPDX-License-Identifier: Apache-2.0
 * optimizer.module and schedule.module: a file beside the scenario that holds the class. Opening it
 * is left to the schema (struct schema, load). Here the file is found, its digest is compared with
 * the one that was written, and its errors get the line of the key. */
#include "scenarios/resolve_private.h"

#include <stdio.h>
#include <string.h>

void resolve_put(char *field, size_t size, const char *text) {
    memset(field, 0, size);
    snprintf(field, size, "%s", text);
}

static void put_none(struct config_class *which) {
    resolve_put(which->module, sizeof which->module, CONFIG_NO_MODULE);
    resolve_put(which->module_sha256, sizeof which->module_sha256, CONFIG_NO_MODULE);
}

/* Whether a later layer than the module's chose a class that is built in. */
static int replaced(const struct resolving *resolving, enum selection selection) {
    const struct given *name = &resolving->keys->rows[selection_row(selection, "name")];
    const struct given *module = &resolving->keys->rows[selection_row(selection, "module")];
    const struct config_class *which = selection_read(resolving->config, selection);
    return name->node != NULL && name->layer > module->layer &&
           selection_find(resolving->keys->schema, selection, which->name, CONFIG_NO_MODULE) !=
               NULL;
}

/* A path is relative to the folder of the scenario, as paths of data files are, and is kept as
 * FOLDER/FILE. */
enum status resolve_join_folder(const struct resolving *resolving, const struct yaml_node *node,
                                const char *key, char *path) {
    const char *slash = strrchr(resolving->label, '/');
    if (slash == NULL || path[0] == '/') return STATUS_OK;
    const size_t folder = (size_t)(slash - resolving->label) + 1;
    const size_t length = strlen(path);
    if (folder + length >= CONFIG_PATH_SIZE)
        return yaml_fail(node, "%s: expected a path of at most %d bytes, folder included", key,
                         CONFIG_PATH_SIZE - 1);
    memmove(path + folder, path, length);
    memcpy(path, resolving->label, folder);
    return STATUS_OK;
}

/* The node of a written digest, which counts for the module of the same layer or of an earlier one;
 * NULL: none counts. */
static const struct yaml_node *written_digest(const struct resolving *resolving,
                                              enum selection selection) {
    const struct given *digest = &resolving->keys->rows[selection_row(selection, "module_sha256")];
    const struct given *module = &resolving->keys->rows[selection_row(selection, "module")];
    const struct config_class *which = selection_read(resolving->config, selection);
    const int counts = digest->node != NULL && digest->layer >= module->layer;
    return counts && strcmp(which->module_sha256, "auto") != 0 ? digest->node : NULL;
}

static enum status load(const struct resolving *resolving, enum selection selection,
                        const struct yaml_node *node, struct config_class *which,
                        char sha256[CONFIG_SHA256_SIZE]) {
    const int expects = written_digest(resolving, selection) != NULL;
    const struct schema *schema = resolving->keys->schema;
    size_t count = 0;
    const char *key = schema_rows(&count)[selection_row(selection, "module")].path;
    char text[1536];
    TRY(resolve_join_folder(resolving, node, key, which->module));
    enum status status =
        schema->load == NULL
            ? status_fail(STATUS_UNSUPPORTED, "%s: modules are not loaded here", which->module)
            : schema->load(schema, selection_prefix(selection), which->module,
                           expects ? which->module_sha256 : NULL, sha256);
    if (status == STATUS_OK) return STATUS_OK;
    snprintf(text, sizeof text, "%s", status_text());
    (void)yaml_fail(node, "%s: %s", key, text);
    return status;
}

static enum status check_digest(const struct resolving *resolving, enum selection selection,
                                const char *got) {
    const struct yaml_node *digest = written_digest(resolving, selection);
    const struct config_class *which = selection_read(resolving->config, selection);
    if (digest == NULL || strcmp(which->module_sha256, got) == 0) return STATUS_OK;
    return yaml_fail(digest, "%s.module_sha256: expected %s of %s, got %s",
                     selection_prefix(selection), which->module_sha256, which->module, got);
}

/* A digest without a module is a mistake, unless a later layer took the module away. */
static enum status leave_none(const struct resolving *resolving, enum selection selection) {
    const struct given *digest = &resolving->keys->rows[selection_row(selection, "module_sha256")];
    struct config_class *which = selection_of(resolving->config, selection);
    const char *text = which->module_sha256;
    if (digest->node != NULL && !resolving->keys->modules[selection] && strcmp(text, "auto") != 0 &&
        strcmp(text, CONFIG_NO_MODULE) != 0)
        return yaml_fail(digest->node, "%s.module_sha256: expected none without %s.module, got %s",
                         selection_prefix(selection), selection_prefix(selection), text);
    put_none(which);
    return STATUS_OK;
}

enum status resolve_module(const struct resolving *resolving, enum selection selection) {
    struct config_class *which = selection_of(resolving->config, selection);
    char sha256[CONFIG_SHA256_SIZE] = "";
    const size_t row = selection_row(selection, "module");
    const struct yaml_node *node = resolving->keys->rows[row].node;
    TRY(resolve_read(resolving, row));
    TRY(resolve_read(resolving, selection_row(selection, "module_sha256")));
    if (strcmp(which->module, CONFIG_NO_MODULE) == 0 || replaced(resolving, selection))
        return leave_none(resolving, selection);
    if (selection == SELECT_SCHEDULE && resolving->contract != NULL)
        return yaml_fail(node,
                         "schedule.module: contract %s knows the schedules of its framework only; "
                         "give a loop instead of schedule.contract",
                         resolving->contract->name);
    TRY(load(resolving, selection, node, which, sha256));
    TRY(check_digest(resolving, selection, sha256));
    resolve_put(which->module_sha256, sizeof which->module_sha256, sha256);
    return STATUS_OK;
}
