/* SPDX-License-Identifier: Apache-2.0
 * Puts values of a tree into words, and errors at their place. */
#include "scenarios/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum status fail_at(const struct yaml_node *node, int line, int column, const char *format,
                           va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    if (line == 0) FAIL(STATUS_INPUT, "%s: error: %s", node->source, text);
    FAIL(STATUS_INPUT, "%s:%d:%d: error: %s", node->source, line, column, text);
}

enum status yaml_fail(const struct yaml_node *node, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    enum status status = fail_at(node, node->line, node->column, format, arguments);
    va_end(arguments);
    return status;
}

enum status yaml_fail_key(const struct yaml_node *node, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    enum status status = fail_at(node, node->key_line, node->key_column, format, arguments);
    va_end(arguments);
    return status;
}

const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key) {
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next)
        if (child->key != NULL && strcmp(child->key, key) == 0) return child;
    return NULL;
}

/* Quotes a text: it is cut at the border of a character, and control characters become \xNN. */
static void quote(const char *text, char *out, size_t size) {
    size_t used = 0;
    out[used++] = '"';
    size_t i = 0;
    for (; text[i] != '\0' && used + 10 < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (used > 60 && (byte & 0xc0) != 0x80) break;
        if (byte < 0x20 || byte == 0x7f)
            used += (size_t)snprintf(out + used, size - used, "\\x%02x", byte);
        else
            out[used++] = (char)byte;
    }
    snprintf(out + used, size - used, "%s", text[i] == '\0' ? "\"" : "...\"");
}

const char *yaml_describe(const struct yaml_node *node, char out[YAML_TEXT_SIZE]) {
    switch (node->kind) {
    case YAML_NULL:
        return "nothing";
    case YAML_LIST:
        return "a list";
    case YAML_MAP:
        return "a map";
    case YAML_PLAIN:
        quote(node->text, out, YAML_TEXT_SIZE);
        return out;
    case YAML_QUOTED:
        break;
    }
    memcpy(out, "the text ", 9);
    quote(node->text, out + 9, YAML_TEXT_SIZE - 9);
    return out;
}
