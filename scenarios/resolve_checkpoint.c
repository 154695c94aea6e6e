/* SPDX-License-Identifier: Apache-2.0
 * model.from: a folder beside the scenario whose config.json says what the model is. Reading the
 * folder is left to the schema (struct schema, describe). Here its words are held against what was
 * written, and errors get the line of the key. Invariant: what is written in the same place as
 * model.from never silently loses to it. */
#include "scenarios/resolve_private.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/row_value.h"

#define SECTION "model."

static const char *const own_keys[] = {"model.from", "model.from_digest", "model.norm_rounding"};

/* These keys fit weights of any shape, so an arm may differ in them from the model that its weights
 * came from. */
static const char *const free_keys[] = {"model.norm_eps", "model.rope_"};

static int comes_from_checkpoint(const char *path) {
    for (size_t i = 0; i < COUNT_OF(own_keys); i++)
        if (strcmp(path, own_keys[i]) == 0) return 0;
    return strncmp(path, SECTION, sizeof SECTION - 1) == 0;
}

static int is_free(const char *path) {
    for (size_t i = 0; i < COUNT_OF(free_keys); i++)
        if (strncmp(path, free_keys[i], strlen(free_keys[i])) == 0) return 1;
    return 0;
}

static enum status contradicts(const struct resolving *resolving, const struct key_row *row,
                               const struct given *given, const struct config *described) {
    char *written = NULL, *held = NULL;
    TRY(row_text(row, resolving->config, resolving->keys->arena, &written));
    TRY(row_text(row, described, resolving->keys->arena, &held));
    return yaml_fail(
        given->node, "%s: model.from %s/config.json says %s, got %s; leave the key out%s",
        row->path, resolving->config->model.from, held, written,
        is_free(row->path) ? ", or write it in an arm where model.from is common" : "");
}

static enum status settle_row(const struct resolving *resolving, size_t index, int layer,
                              const struct config *described) {
    size_t count = 0;
    const struct key_row *row = &schema_rows(&count)[index];
    const struct given *given = &resolving->keys->rows[index];
    const int written =
        given->node != NULL && given->layer >= layer && !row_is_word(row, resolving->config);
    if (written && !row_equal(row, resolving->config, described)) {
        if (given->layer > layer && is_free(row->path)) return STATUS_OK;
        return contradicts(resolving, row, given, described);
    }
    row_copy(row, resolving->config, described);
    return STATUS_OK;
}

static enum status settle_rows(const struct resolving *resolving, int layer,
                               const struct config *described) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (comes_from_checkpoint(rows[i].path)) TRY(settle_row(resolving, i, layer, described));
    return STATUS_OK;
}

static enum status leave_none(const struct resolving *resolving) {
    char *const digest = resolving->config->model.from_digest;
    const struct given *given = resolve_given(resolving, "model.from_digest");
    const struct given *from = resolve_given(resolving, "model.from");
    const int replaced = from->node != NULL && given->layer < from->layer;
    if (given->node != NULL && !replaced && strcmp(digest, "auto") != 0 &&
        strcmp(digest, CONFIG_NO_CHECKPOINT) != 0)
        return yaml_fail(given->node, "model.from_digest: expected none without model.from, got %s",
                         digest);
    resolve_put(digest, CONFIG_SHA256_SIZE, CONFIG_NO_CHECKPOINT);
    return STATUS_OK;
}

static enum status check_digest(const struct resolving *resolving, const char *got) {
    const struct given *given = resolve_given(resolving, "model.from_digest");
    const struct given *from = resolve_given(resolving, "model.from");
    const char *written = resolving->config->model.from_digest;
    if (given->node == NULL || given->layer < from->layer || strcmp(written, "auto") == 0 ||
        strcmp(written, got) == 0)
        return STATUS_OK;
    return yaml_fail(given->node,
                     "model.from_digest: expected weights with digest %s in %s, got %s", written,
                     resolving->config->model.from, got);
}

enum status resolve_checkpoint(const struct resolving *resolving) {
    struct config *config = resolving->config;
    const struct schema *schema = resolving->keys->schema;
    const struct given *from = resolve_given(resolving, "model.from");
    struct config described;
    char text[1536];
    if (strcmp(config->model.from, CONFIG_NO_CHECKPOINT) == 0) return leave_none(resolving);
    if (strncmp(config->model.from, "builtin:", 8) != 0)
        TRY(resolve_join_folder(resolving, from->node, "model.from", config->model.from));
    described = *config;
    const enum status status =
        schema->describe == NULL
            ? status_fail(STATUS_UNSUPPORTED, "%s: checkpoints are not read here",
                          config->model.from)
            : schema->describe(config->model.from, &described);
    if (status != STATUS_OK) {
        snprintf(text, sizeof text, "%s", status_text());
        (void)yaml_fail(from->node, "model.from: %s", text);
        return status;
    }
    TRY(check_digest(resolving, described.model.from_digest));
    TRY(settle_rows(resolving, from->layer, &described));
    memcpy(config->model.from_digest, described.model.from_digest,
           sizeof config->model.from_digest);
    return STATUS_OK;
}
