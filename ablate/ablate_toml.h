/* SPDX-License-Identifier: Apache-2.0
 * Reads TOML 1.0 into the tree that YAML and JSON are read into, with the place of each value in
 * the text, and writes such a tree.
 *
 * Values are texts: numbers, truth values and dates as they stand there (YAML_PLAIN), strings
 * without quotes and escapes (YAML_QUOTED). Refused beyond the grammar is what the limits of
 * scenarios/yaml.h and plaintext_check refuse, and U+0000 in a string. Invariant: what is written
 * reads as the tree that was given. */
#ifndef TWINSTEP_ABLATE_ABLATE_TOML_H
#define TWINSTEP_ABLATE_ABLATE_TOML_H

#include "ablate/ablate_pen.h"
#include "scenarios/yaml.h"

/* Every node of a tree that toml_parse made is the first member of one of these. */
struct toml_node {
    struct yaml_node node;
    size_t from, to;  /* the bytes of a value that follows "="; equal where headers make it */
    int depth;        /* the root has 0 */
    uint8_t fixed;    /* a value, to which nothing can be added */
    uint8_t declared; /* by a header of its own */
    uint8_t dotted;   /* by a key with dots */
};

/* Parses a document, behind which a NUL stands. STATUS_INPUT with "source:line:column: error: ...";
 * columns are bytes. */
TWINSTEP_MUST_USE enum status toml_parse(struct arena *arena, const char *source, const char *text,
                                         size_t length, struct toml_node **out_root);

/* Puts the document of a map: values first, then a header for each table. Lists are written on one
 * line, with the tables in them. */
TWINSTEP_MUST_USE enum status toml_write(struct ablate_pen *pen, const struct yaml_node *root);

#endif
