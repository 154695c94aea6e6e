/* SPDX-License-Identifier: Apache-2.0
 * Splits the path at its dots, whatever the keys are: which keys exist is the schema's business. */
#include "scenarios/override.h"

#include <string.h>

#include "scenarios/plaintext.h"

/* Wraps a value in a map whose only key is `key`. */
static enum status wrap(struct arena *arena, const char *source, const char *key, size_t length,
                        struct yaml_node *child, struct yaml_node **out_map) {
    char *text = NULL;
    TRY(arena_text(arena, key, length, &text));
    child->key = text;
    TRY(arena_take(arena, 1, sizeof **out_map, "an option", out_map));
    (*out_map)->kind = YAML_MAP;
    (*out_map)->source = source;
    (*out_map)->count = 1;
    (*out_map)->first = (*out_map)->last = child;
    return STATUS_OK;
}

enum status override_parse(struct arena *arena, const char *option, struct yaml_node **out_root) {
    char *source = NULL;
    TRY(plaintext_check("--set", option, strlen(option)));
    TRY(arena_format(arena, &source, "--set %s", option));
    const char *equals = strchr(option, '=');
    if (equals == NULL || equals == option)
        FAIL(STATUS_INPUT, "%s: error: expected KEY=VALUE, such as common.optimizer.lr=1e-6",
             source);
    struct yaml_node *node = NULL;
    TRY(yaml_parse(arena, source, 0, equals + 1, strlen(equals + 1), &node));
    const char *end = equals;
    for (int depth = 0;; depth++) {
        const char *start = end;
        while (start > option && start[-1] != '.')
            start--;
        if (start == end || depth == 8)
            FAIL(STATUS_INPUT, "%s: error: expected keys joined by dots before the =", source);
        TRY(wrap(arena, source, start, (size_t)(end - start), node, &node));
        if (start == option) break;
        end = start - 1;
    }
    *out_root = node;
    return STATUS_OK;
}
