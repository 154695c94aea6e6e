/* SPDX-License-Identifier: Apache-2.0
 * Collects what was written for an arm, key by key. Each key finds its row or the section of a
 * class in which it stands (which keys that class has is known later), or it is refused with the
 * nearest name. */
#include "scenarios/resolve.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/resolve_private.h"
#include "scenarios/row_value.h"
#include "scenarios/head.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

enum status arm_keys_open(struct arm_keys *keys, const struct schema *schema, struct arena *arena) {
    size_t count = 0;
    schema_rows(&count);
    keys->schema = schema;
    keys->arena = arena;
    keys->classes = NULL;
    keys->last_class = NULL;
    memset(keys->modules, 0, sizeof keys->modules);
    return arena_take(arena, count, sizeof *keys->rows, "the keys of an arm", &keys->rows);
}

static int is_section(const char *path) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    return row_is_section(rows, count, path);
}

/* The selection whose classes have keys below the section `prefix`; -1 when there is none. */
static int section_selection(const char *prefix) {
    for (int s = 0; s < SELECT_COUNT; s++)
        if (strcmp(selection_prefix((enum selection)s), prefix) == 0) return s;
    return -1;
}

int resolve_any_class_has(const struct schema *schema, int selection, const char *key) {
    for (size_t i = 0; i < schema->class_count; i++)
        if (strcmp(schema->classes[i].prefix, selection_prefix((enum selection)selection)) == 0 &&
            selection_key(&schema->classes[i], key) != NULL)
            return 1;
    return 0;
}

static const char *last_word(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot == NULL ? path : dot + 1;
}

/* Suggests the nearest key of the section, else the same word in another section. */
static void suggest_key(const struct schema *schema, const char *section, const char *word,
                        char out[RESOLVE_PATH_SIZE]) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    struct suggestion nearest = {.word = word};
    char kept[SUGGEST_WORD_SIZE];
    suggest_offer_keys(&nearest, rows, count, section, kept);
    int selection = section_selection(section);
    for (size_t i = 0; selection >= 0 && i < schema->class_count; i++)
        if (strcmp(schema->classes[i].prefix, section) == 0)
            for (size_t k = 0; k < schema->classes[i].key_count; k++)
                suggest_offer(&nearest, schema->classes[i].keys[k].path);
    out[0] = '\0';
    if (nearest.best != NULL) {
        snprintf(out, RESOLVE_PATH_SIZE, "; did you mean %s%s%s?", section,
                 section[0] == '\0' ? "" : ".", nearest.best);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(last_word(rows[i].path), word) == 0) {
            snprintf(out, RESOLVE_PATH_SIZE, "; did you mean %s?", rows[i].path);
            return;
        }
}

enum status resolve_unknown_key(const struct arm_keys *keys, const char *section,
                                const struct yaml_node *node) {
    char hint[RESOLVE_PATH_SIZE];
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = node->key};
    if (strchr(node->key, '.') != NULL)
        return yaml_fail_key(node, "unknown key %s; sections are maps, not dots",
                             yaml_describe(&word, got));
    const struct synonym *synonym = synonym_of_key(node->key);
    size_t count = 0;
    const struct key_row *head = head_rows(&count);
    if (synonym != NULL)
        synonym_hint(synonym, hint);
    else if (section[0] == '\0' && row_is_section(head, count, node->key))
        snprintf(hint, sizeof hint, "; it stands at the head of the file, for both arms alike");
    else
        suggest_key(keys->schema, section, node->key, hint);
    if (section[0] != '\0')
        return yaml_fail_key(node, "%s: unknown key %s%s", section, yaml_describe(&word, got),
                             hint);
    return yaml_fail_key(node, "unknown key %s%s", yaml_describe(&word, got), hint);
}

static enum status collect_class(struct arm_keys *keys, int selection, const struct yaml_node *node,
                                 int layer) {
    struct class_given *fresh = NULL;
    TRY(arena_take(keys->arena, 1, sizeof *fresh, "a class's key", &fresh));
    fresh->key = node->key;
    fresh->selection = (enum selection)selection;
    fresh->value = (struct given){node, layer};
    if (keys->last_class == NULL)
        keys->classes = fresh;
    else
        keys->last_class->next = fresh;
    keys->last_class = fresh;
    return STATUS_OK;
}

static enum status collect(struct arm_keys *keys, const struct yaml_node *map, const char *section,
                           int layer);

static enum status collect_one(struct arm_keys *keys, const struct yaml_node *node,
                               const char *section, int layer) {
    char path[RESOLVE_PATH_SIZE];
    size_t index = 0;
    if (strlen(node->key) > 64 || strchr(node->key, '.') != NULL)
        return resolve_unknown_key(keys, section, node);
    snprintf(path, sizeof path, "%s%s%s", section, section[0] == '\0' ? "" : ".", node->key);
    int selection = section_selection(section);
    if (schema_find(path, &index) != NULL) {
        keys->rows[index] = (struct given){node, layer};
        if (selection >= 0 && index == selection_row((enum selection)selection, "module"))
            keys->modules[selection] = 1;
        return STATUS_OK;
    }
    /* which keys there are is known once modules are loaded */
    if (selection >= 0) return collect_class(keys, selection, node, layer);
    if (!is_section(path)) return resolve_unknown_key(keys, section, node);
    if (node->kind == YAML_NULL) return STATUS_OK;
    char got[YAML_TEXT_SIZE];
    if (node->kind != YAML_MAP)
        return yaml_fail(node, "%s: expected a map of keys, got %s", path,
                         yaml_describe(node, got));
    return collect(keys, node, path, layer);
}

static enum status collect(struct arm_keys *keys, const struct yaml_node *map, const char *section,
                           int layer) {
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next)
        TRY(collect_one(keys, child, section, layer));
    return STATUS_OK;
}

enum status arm_keys_collect(struct arm_keys *keys, const struct yaml_node *map, int layer) {
    return collect(keys, map, "", layer);
}
