/* SPDX-License-Identifier: Apache-2.0
 * Reads a resolved configuration from its canonical text (config_text), which traces hold. Nothing
 * is derived, merged or validated anew: what was resolved then is what holds.
 *
 * Invariant: STATUS_OK means that config_text of the result is the text, byte for byte. A trace of
 * a version with other keys is refused, never guessed at. */
#include <string.h>

#include "scenarios/row_value.h"
#include "scenarios/selection.h"

struct reading {
    const struct schema *schema;
    struct config *config;
    const char *label;
};

/* Keys of later versions hold their defaults in a text without them. */
static enum status read_plain(const struct reading *reading, const struct yaml_node *root) {
    size_t count = 0;
    const struct key_row *const rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (schema_is_later(&rows[i]))
            TRY(row_read_standard(&rows[i], rows[i].path, reading->config));
    for (const struct yaml_node *node = root->first; node != NULL; node = node->next) {
        const struct key_row *row = schema_find(node->key, NULL);
        if (row != NULL) TRY(row_read(row, node->key, node, reading->config));
    }
    return STATUS_OK;
}

/* Finds the class that was selected, loads it where a module holds it, and starts its keys at their
 * defaults. */
static enum status open_class(const struct reading *reading, enum selection selection,
                              const struct schema_class **out) {
    struct config_class *which = selection_of(reading->config, selection);
    if (strcmp(which->module, CONFIG_NO_MODULE) != 0 && reading->schema->load != NULL) {
        char sha256[CONFIG_SHA256_SIZE];
        TRY(reading->schema->load(reading->schema, selection_prefix(selection), which->module,
                                  which->module_sha256, sha256));
        if (strcmp(sha256, which->module_sha256) != 0)
            FAIL(STATUS_INPUT, "%s: %s was trained with module %s of SHA-256 %s; the file is %s",
                 reading->label, selection_prefix(selection), which->module, which->module_sha256,
                 sha256);
    }
    *out = selection_class(reading->schema, reading->config, selection);
    if (*out == NULL)
        FAIL(STATUS_INPUT, "%s: %s.name: this version has no %s", reading->label,
             selection_prefix(selection), which->name);
    for (size_t i = 0; i < (*out)->key_count; i++)
        TRY(row_read_standard(&(*out)->keys[i], (*out)->keys[i].path, which->values));
    return STATUS_OK;
}

static enum status read_class(const struct reading *reading, enum selection selection,
                              const struct yaml_node *root) {
    const struct schema_class *class_of_keys;
    const char *prefix = selection_prefix(selection);
    const size_t length = strlen(prefix);
    TRY(open_class(reading, selection, &class_of_keys));
    for (const struct yaml_node *node = root->first; node != NULL; node = node->next) {
        if (strncmp(node->key, prefix, length) != 0 || node->key[length] != '.') continue;
        const struct key_row *row = selection_key(class_of_keys, node->key + length + 1);
        if (row == NULL || schema_find(node->key, NULL) != NULL) continue;
        TRY(row_read(row, node->key, node, selection_of(reading->config, selection)->values));
    }
    return STATUS_OK;
}

const char *config_text_value(const char *text, const char *key, size_t *out_length) {
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const size_t whole = strcspn(line, "\n");
        if (strncmp(line, key, length) == 0 && strncmp(line + length, ": ", 2) == 0) {
            *out_length = whole - length - 2;
            return line + length + 2;
        }
        line += whole + (line[whole] == '\n');
    }
    *out_length = 0;
    return NULL;
}

int config_text_says(const char *text, const char *key, const char *value) {
    size_t length;
    const char *const said = config_text_value(text, key, &length);
    return said != NULL && strlen(value) == length && strncmp(said, value, length) == 0;
}

/* The first line of `a` in which two texts differ. */
static const char *first_difference(const char *a, const char *b) {
    const char *line = a;
    for (; *a != '\0' && *a == *b; a++, b++)
        if (*a == '\n') line = a + 1;
    return line;
}

enum status config_read(const struct schema *schema, const char *label, const char *text,
                        struct arena *arena, struct config *out) {
    const struct reading reading = {schema, out, label};
    struct yaml_node *root;
    char *again;
    memset(out, 0, sizeof *out);
    TRY(yaml_parse(arena, label, 1, text, strlen(text), &root));
    if (root->kind != YAML_MAP) FAIL(STATUS_INPUT, "%s: expected a configuration", label);
    TRY(read_plain(&reading, root));
    for (int selection = 0; selection < SELECT_COUNT; selection++)
        TRY(read_class(&reading, (enum selection)selection, root));
    TRY(config_text(schema, out, arena, &again));
    if (strcmp(again, text) == 0) return STATUS_OK;
    const char *here = first_difference(text, again);
    FAIL(STATUS_INPUT,
         "%s: expected a configuration of this version; its line \"%.*s\" cannot be read back, so "
         "it comes from another one",
         label, (int)strcspn(here, "\n"), here);
}
