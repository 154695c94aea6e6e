/* SPDX-License-Identifier: Apache-2.0
 * Reads the differences of the arms: levels of words, variables, leaves of two files. A factor
 * whose levels are the same is an error. */
#include "ablate/ablate_factors.h"

#include <string.h>

#include "ablate/ablate_nodes.h"
#include "ablate/ablate_words.h"

static enum status read_level(const struct yaml_node *node, const char *name, struct arena *arena,
                              struct ablate_words *out) {
    if (node->kind == YAML_LIST) return node_read_words(node, name, arena, out);
    TRY(node_expect_text(node, name, "a word or a list of words"));
    const char **word;
    TRY(arena_take(arena, 1, sizeof *word, "a word", &word));
    *word = node->text;
    *out = (struct ablate_words){1, word};
    return STATUS_OK;
}

static int same_words(const struct ablate_words *a, const struct ablate_words *b) {
    if (a->count != b->count) return 0;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->words[i], b->words[i]) != 0) return 0;
    return 1;
}

static enum status read_levels(const struct yaml_node *list, struct arena *arena,
                               struct ablate_factor *out) {
    TRY(node_check_pair(list, out->name));
    TRY(read_level(list->first, out->name, arena, &out->level[0]));
    TRY(read_level(list->last, out->name, arena, &out->level[1]));
    out->has_words = 1;
    for (int i = 0; i < 2; i++)
        TRY(ablate_shown(&out->level[i], arena, &out->shown[i]));
    if (same_words(&out->level[0], &out->level[1]))
        return yaml_fail(list, "%s: both levels are the same", out->name);
    return STATUS_OK;
}

static enum status read_variables(const struct yaml_node *map, struct arena *arena,
                                  struct ablate_factor *out) {
    struct ablate_variable *variables;
    if (map->kind != YAML_MAP || map->count == 0)
        return node_expect(map, out->name, "a map of variables");
    TRY(arena_take(arena, map->count, sizeof *variables, "variables", &variables));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        struct ablate_variable *variable = &variables[out->variable_count++];
        if (!node_is_variable(child->key))
            return yaml_fail_key(child, "%s: no variable has the name \"%s\"", out->name,
                                 child->key);
        TRY(node_check_pair(child, child->key));
        variable->name = child->key;
        const struct yaml_node *level = child->first;
        for (int i = 0; i < 2; i++, level = level->next) {
            if (level->kind != YAML_NULL)
                TRY(node_expect_text(level, child->key, "a text, or null to take it away"));
            if (level->kind == YAML_NULL) continue;
            const struct ablate_words one = {1, (const char *const[]){level->text}};
            struct ablate_words shown;
            TRY(ablate_shown(&one, arena, &shown));
            variable->value[i] = level->text;
            variable->shown[i] = shown.words[0];
        }
        const char *const a = variable->value[0], *const b = variable->value[1];
        if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0))
            return yaml_fail(child, "%s: both levels are the same", child->key);
    }
    out->variables = variables;
    return STATUS_OK;
}

static int is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-./";
    const size_t length = strlen(name);
    return length > 0 && length < ABLATE_NAME_MAX && name[strspn(name, letters)] == '\0';
}

static enum status read_leaves(const struct yaml_node *map, const struct ablate_file *file,
                               struct arena *arena, struct ablate_factor *out) {
    struct ablate_leaf *leaves;
    size_t count = 0;
    if (map->kind != YAML_MAP || map->count == 0)
        return node_expect(map, out->name, "leaves: {FILE: [LEAF, ...]}");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next)
        count += child->count;
    TRY(arena_take(arena, count, sizeof *leaves, "leaves", &leaves));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        const uint32_t composed = ablate_composed_of(file, child->key, strlen(child->key));
        if (composed == file->composed_count)
            return yaml_fail_key(child, "%s: no entry of files is called %s", out->name,
                                 child->key);
        if (child->kind != YAML_LIST || child->count == 0)
            return node_expect(child, child->key, "a list of leaves");
        for (const struct yaml_node *item = child->first; item != NULL; item = item->next) {
            TRY(node_expect_text(item, child->key, "a leaf: its keys with dots between them"));
            leaves[out->leaf_count++] = (struct ablate_leaf){composed, item->text};
        }
    }
    out->leaves = leaves;
    return STATUS_OK;
}

enum status ablate_composed_read(const struct yaml_node *map, struct ablate_file *out) {
    if (map == NULL) return STATUS_OK;
    if (map->kind != YAML_MAP) return node_expect(map, "files", "a map: NAME: [BASELINE, TEST]");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (out->composed_count == ABLATE_FILES_MAX)
            return yaml_fail_key(child, "files: more than %d", ABLATE_FILES_MAX);
        if (!is_name(child->key) || ablate_is_built_in(child->key, strlen(child->key)) ||
            strchr(child->key, '/') != NULL)
            return yaml_fail_key(child, "files: no file can be called \"%s\"", child->key);
        TRY(node_check_pair(child, child->key));
        TRY(node_expect_text(child->first, child->key, "a path"));
        TRY(node_expect_text(child->last, child->key, "a path"));
        out->files[out->composed_count++] =
            (struct ablate_composed){child->key, {child->first->text, child->last->text}};
    }
    return STATUS_OK;
}

static enum status read_factor(const struct yaml_node *node, const struct ablate_file *file,
                               struct arena *arena, struct ablate_factor *out) {
    static const char *const keys[] = {"words", "env", "leaves", NULL};
    out->name = node->key;
    if (!is_name(node->key))
        return yaml_fail_key(node,
                             "factors: expected a name of letters, digits and _-./, at most %d "
                             "bytes, got \"%s\"",
                             ABLATE_NAME_MAX - 1, node->key);
    if (ablate_composed_of(file, node->key, strlen(node->key)) < file->composed_count)
        return yaml_fail_key(node, "factors: %s is the name of a file, too", node->key);
    if (node->kind == YAML_LIST) return read_levels(node, arena, out);
    TRY(node_check_keys(node, node->key, keys));
    const struct yaml_node *words = yaml_child(node, "words"), *env = yaml_child(node, "env");
    const struct yaml_node *leaves = yaml_child(node, "leaves");
    if (words != NULL) TRY(read_levels(words, arena, out));
    if (env != NULL) TRY(read_variables(env, arena, out));
    if (leaves != NULL) TRY(read_leaves(leaves, file, arena, out));
    if (words == NULL && env == NULL && leaves == NULL)
        return node_expect(node, node->key, "[BASELINE, TEST], or a map with words, env or leaves");
    return STATUS_OK;
}

enum status ablate_factors_read(const struct yaml_node *map, struct arena *arena,
                                struct ablate_file *out) {
    if (map->kind != YAML_MAP || map->count == 0)
        return node_expect(map, "factors", "a map of at least one factor");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (out->factor_count == ABLATE_FACTORS_MAX)
            return yaml_fail_key(child, "factors: more than %d; join some", ABLATE_FACTORS_MAX);
        TRY(read_factor(child, out, arena, &out->factors[out->factor_count]));
        out->factor_count++;
    }
    return STATUS_OK;
}
