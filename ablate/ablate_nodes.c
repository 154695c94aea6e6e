/* SPDX-License-Identifier: Apache-2.0
 * Says of a value that is of another kind what was expected, and what came. */
#include "ablate/ablate_nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "scenarios/suggest.h"

#define WORDS_MOST 10000

enum status node_expect(const struct yaml_node *node, const char *key, const char *what) {
    char got[YAML_TEXT_SIZE];
    return yaml_fail(node, "%s: expected %s, got %s", key, what, yaml_describe(node, got));
}

static int is_scalar(const struct yaml_node *node) {
    return node->kind == YAML_PLAIN || node->kind == YAML_QUOTED;
}

enum status node_expect_text(const struct yaml_node *node, const char *key, const char *what) {
    if (is_scalar(node)) return STATUS_OK;
    if (node->kind == YAML_MAP)
        return yaml_fail(node, "%s: expected %s, got a map (a placeholder needs quotes: \"{dir}\")",
                         key, what);
    return node_expect(node, key, what);
}

/* Refuses a key that `names`, up to a NULL, do not hold. */
enum status node_check_keys(const struct yaml_node *map, const char *section,
                            const char *const *names) {
    char hint[SUGGEST_HINT_SIZE];
    if (map->kind != YAML_MAP)
        return node_expect(map, section[0] == '\0' ? "ablation" : section, "a map");
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        struct suggestion nearest = {.word = child->key};
        size_t i = 0;
        for (; names[i] != NULL && strcmp(names[i], child->key) != 0; i++)
            suggest_offer(&nearest, names[i]);
        if (names[i] == NULL)
            return yaml_fail_key(child, "%s%sunknown key %s%s", section,
                                 section[0] == '\0' ? "" : ": ", child->key,
                                 suggest_hint(&nearest, hint));
    }
    return STATUS_OK;
}

enum status node_read_words(const struct yaml_node *list, const char *key, struct arena *arena,
                            struct ablate_words *out) {
    const char **words;
    size_t count = 0;
    if (list->kind != YAML_LIST)
        return node_expect(list, key, "a list of words (no shell splits it)");
    if (list->count > WORDS_MOST) return yaml_fail(list, "%s: more than %d words", key, WORDS_MOST);
    TRY(arena_take(arena, list->count, sizeof *words, "words", &words));
    for (const struct yaml_node *item = list->first; item != NULL; item = item->next) {
        TRY(node_expect_text(item, key, "a word"));
        words[count++] = item->text;
    }
    *out = (struct ablate_words){count, words};
    return STATUS_OK;
}

int node_is_variable(const char *name) {
    return name[0] != '\0' && strchr(name, '=') == NULL;
}

enum status node_check_pair(const struct yaml_node *list, const char *name) {
    if (list->kind != YAML_LIST || list->count != 2)
        return node_expect(list, name, "a list of two: the baseline's, then the test arm's");
    return STATUS_OK;
}

enum status node_read_uint(const struct yaml_node *map, const char *key, uint64_t least,
                           uint64_t most, uint64_t *out) {
    const struct yaml_node *node = yaml_child(map, key);
    char what[96];
    if (node == NULL) return STATUS_OK;
    snprintf(what, sizeof what, "a whole number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    if (node->kind != YAML_PLAIN || number_parse_uint(node->text, out) != STATUS_OK ||
        *out < least || *out > most)
        return node_expect(node, key, what);
    return STATUS_OK;
}

enum status node_read_real(const struct yaml_node *map, const char *key, double least, double most,
                           const char *what, double *out) {
    const struct yaml_node *node = yaml_child(map, key);
    if (node == NULL) return STATUS_OK;
    if (node->kind != YAML_PLAIN ||
        number_parse_real(node->text, NUMBER_FINITE, out) != STATUS_OK ||
        !(*out > least && *out < most))
        return node_expect(node, key, what);
    return STATUS_OK;
}
