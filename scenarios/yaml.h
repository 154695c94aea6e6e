/* SPDX-License-Identifier: Apache-2.0
 * YAML text as a tree of our own, with the place of every value. The only user of libfyaml.
 *
 * Anchors, aliases and merge keys (`<<`) are resolved here: a tree holds plain values only. Knows
 * nothing of keys and types. Refused: text that is not UTF-8, control characters, a second
 * document, duplicate keys, tags, keys that are not scalars, and anything past the limits below.
 * Invariant: a tree is finite and has no cycle; texts are NUL-terminated without a NUL inside. */
#ifndef TWINSTEP_SCENARIOS_YAML_H
#define TWINSTEP_SCENARIOS_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define YAML_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define YAML_DEPTH_MAX 32
#define YAML_NODES_MAX 100000
#define YAML_KEYS_MAX 1000 /* of one map */

enum yaml_kind {
    YAML_NULL, /* nothing, ~ or null */
    YAML_PLAIN,
    YAML_QUOTED, /* quoted or block text: never a number */
    YAML_LIST,
    YAML_MAP
};

struct yaml_node {
    enum yaml_kind kind;
    uint32_t count;     /* children of a list or map */
    const char *source; /* label of the file, or of the --set option */
    int line, column;   /* 1-based; line 0: the whole source (--set) */
    const char *text;   /* of a scalar */
    const char *key;    /* of a child of a map */
    int key_line, key_column;
    uint8_t merged;          /* came in through `<<` */
    struct yaml_node *first; /* children, in the order of the text */
    struct yaml_node *last;
    struct yaml_node *next;
};

/* Parses one document. `placed` 0: errors name `source` only (an option's text has no lines).
 * An empty document gives YAML_NULL. STATUS_INPUT with "source:line:column: error: ...". */
TWINSTEP_MUST_USE enum status yaml_parse(struct arena *arena, const char *source, int placed,
                                         const char *text, size_t length,
                                         struct yaml_node **out_root);

/* The child of a map; NULL when there is none. */
const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key);

/* What a value is, for "got ...": "\"ten\"", "a list", "nothing"; cut after 60 bytes, control
 * characters escaped. */
#define YAML_TEXT_SIZE 96
const char *yaml_describe(const struct yaml_node *node, char out[YAML_TEXT_SIZE]);

/* STATUS_INPUT with "source:line:column: error: " before the text; place of the value, or of its
 * key. */
enum status yaml_fail(const struct yaml_node *node, const char *format, ...) TWINSTEP_PRINTF(2, 3);
enum status yaml_fail_key(const struct yaml_node *node, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);

#endif
