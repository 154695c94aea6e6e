/* SPDX-License-Identifier: Apache-2.0
 * Reads YAML text into a tree of our own, in which every value knows its place. The only user of
 * libfyaml.
 *
 * Anchors, aliases and merge keys (`<<`) are resolved here, so a tree holds plain values only. Keys
 * and types mean nothing here. Refused are text that is not UTF-8, control characters, a second
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
#define YAML_KEYS_MAX 1000 /* keys of one map */

enum yaml_kind {
    YAML_NULL, /* nothing, ~ or null */
    YAML_PLAIN,
    YAML_QUOTED, /* quoted or block text, which is never a number */
    YAML_LIST,
    YAML_MAP
};

struct yaml_node {
    enum yaml_kind kind;
    uint32_t count;     /* how many children a list or map has */
    const char *source; /* label of the file, or the whole --set option */
    int line, column;   /* from 1; line 0 stands for the whole source (--set) */
    const char *text;   /* of a scalar */
    const char *key;    /* of a child of a map */
    int key_line, key_column;
    uint8_t merged;          /* 1: it came in through `<<` */
    struct yaml_node *first; /* children, in the order of the text */
    struct yaml_node *last;
    struct yaml_node *next;
};

/* Parses one document into a tree in `arena`. With `placed` 0 errors name `source` only, because
 * the text of an option has no lines. An empty document gives YAML_NULL. STATUS_INPUT with
 * "source:line:column: error: ...". */
TWINSTEP_MUST_USE enum status yaml_parse(struct arena *arena, const char *source, int placed,
                                         const char *text, size_t length,
                                         struct yaml_node **out_root);

/* The child of a map that has this key; NULL when there is none. */
const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key);

/* What a value is, for "got ..." in a message: "\"ten\"", "a list", "nothing". A text is cut after
 * 60 bytes, and its control characters are escaped. Returns `out` or a constant text. */
#define YAML_TEXT_SIZE 96
const char *yaml_describe(const struct yaml_node *node, char out[YAML_TEXT_SIZE]);

/* Fails with STATUS_INPUT and "source:line:column: error: " before the text, at the place of the
 * value or at that of its key. */
enum status yaml_fail(const struct yaml_node *node, const char *format, ...) TWINSTEP_PRINTF(2, 3);
enum status yaml_fail_key(const struct yaml_node *node, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);

/* The version of libfyaml that is loaded: "0.7.12". */
const char *yaml_version(void);

#endif
