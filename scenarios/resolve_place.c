/* SPDX-License-Identifier: Apache-2.0
 * Shows a fault of a resolved value at the line of its key, else at that of a key from which the
 * value came, else under the name of the arm. */
#include "scenarios/resolve_private.h"

#include <stdio.h>
#include <string.h>

/* The keys from which a key that was not written got its value, or that a check of it reads as
 * well. */
static const struct {
    const char *path;
    const char *from[6];
} origins[] = {
    {"model.head_dim", {"model.heads", "model.hidden"}},
    {"model.kv_heads", {"model.heads"}},
    {"model.rope_theta", {"model.rope_scaling"}},
    {"model.rope_factor", {"model.rope_scaling"}},
    {"batch.micro", {"batch.size"}},
    {"dpo.reference_batch", {"batch.micro", "batch.size"}},
    {"dpo.reference_compute", {"numerics.compute", "numerics.accumulate"}},
    {"numerics.accumulate", {"numerics.compute"}},
    {"numerics.gradient", {"numerics.param"}},
    {"numerics.optimizer", {"numerics.master", "numerics.param"}},
    {"numerics.loss", {"numerics.compute"}},
    {"numerics.determinism.workspace", {"numerics.mode"}},
    {"numerics.determinism.order", {"numerics.mode"}},
    {"numerics.determinism.atomics", {"numerics.mode"}},
    {"numerics.determinism.split_k", {"numerics.mode"}},
    {"numerics.determinism.fill", {"numerics.mode", "numerics.backend"}},
    {"schedule.increment",
     {"schedule.shift", "schedule.origin", "schedule.logged_shift", "schedule.processes",
      "schedule.contract"}},
    {"schedule.warmup", {"schedule.warmup_ratio", "schedule.contract"}},
    {"schedule.total", {"schedule.contract"}},
    {"schedule.updates_per_epoch", {"schedule.contract"}},
    {"schedule.name", {"schedule.contract"}},
};

const struct given *resolve_given(const struct resolving *resolving, const char *path) {
    size_t index = 0;
    return schema_find(path, &index) == NULL ? NULL : &resolving->keys->rows[index];
}

/* The key of the latest layer among those that a value came from; NULL when none of them was
 * written. */
static const char *find_origin(const struct resolving *resolving, const char *path) {
    const char *best = NULL;
    int layer = -1;
    for (size_t i = 0; i < COUNT_OF(origins); i++) {
        if (strcmp(origins[i].path, path) != 0) continue;
        for (size_t k = 0; k < COUNT_OF(origins[i].from) && origins[i].from[k] != NULL; k++) {
            const struct given *given = resolve_given(resolving, origins[i].from[k]);
            if (given->node == NULL || given->layer <= layer) continue;
            best = origins[i].from[k];
            layer = given->layer;
        }
    }
    return best;
}

/* A fault has a status of its own, which is kept; yaml_fail only writes the text. */
enum status resolve_report(const struct resolving *resolving, const struct fault *fault) {
    const struct given *given = resolve_given(resolving, fault->path);
    if (given != NULL && given->node != NULL) {
        (void)yaml_fail(given->node, "%s: %s", fault->path, fault->text);
        return fault->status;
    }
    const char *origin = find_origin(resolving, fault->path);
    if (origin == NULL)
        return status_fail(fault->status, "%s: error: arm %s: %s: %s", resolving->label,
                           resolving->arm, fault->path, fault->text);
    (void)yaml_fail(resolve_given(resolving, origin)->node, "%s: %s: %s", origin, fault->path,
                    fault->text);
    return fault->status;
}

enum status arm_report(const struct arm_keys *keys, const char *label, const char *arm,
                       const struct fault *fault) {
    const struct resolving resolving = {.keys = keys, .label = label, .arm = arm};
    return resolve_report(&resolving, fault);
}

/* The key that a class complains about, else the last one that was written in its section; NULL
 * when none was. */
static const struct yaml_node *class_node(const struct resolving *resolving,
                                          enum selection selection, const char *text) {
    const char *prefix = selection_prefix(selection);
    size_t length = strlen(prefix);
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    const struct yaml_node *any = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct yaml_node *node = resolving->keys->rows[i].node;
        size_t size = strlen(rows[i].path);
        if (node == NULL) continue;
        if (strncmp(text, rows[i].path, size) == 0 && text[size] == ':') return node;
        if (strncmp(rows[i].path, prefix, length) == 0 && rows[i].path[length] == '.') any = node;
    }
    const struct yaml_node *named = NULL;
    for (const struct class_given *given = resolving->keys->classes; given != NULL;
         given = given->next) {
        size_t size = strlen(given->key);
        if (given->selection != selection ||
            selection_key(resolving->classes[selection], given->key) == NULL)
            continue;
        any = given->value.node;
        if (strncmp(text, prefix, length) == 0 && text[length] == '.' &&
            strncmp(text + length + 1, given->key, size) == 0 && text[length + 1 + size] == ':')
            named = any;
    }
    return named != NULL ? named : any;
}

/* The status text is copied first, because yaml_fail overwrites it. */
enum status resolve_place(const struct resolving *resolving, enum selection selection,
                          enum status status) {
    char text[512];
    snprintf(text, sizeof text, "%s", status_text());
    const struct yaml_node *node = class_node(resolving, selection, text);
    if (node == NULL)
        return status_prefix(status, "%s: error: arm %s", resolving->label, resolving->arm);
    (void)yaml_fail(node, "%s", text);
    return status;
}
