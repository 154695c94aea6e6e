/* SPDX-License-Identifier: Apache-2.0
 * Two configuration files, YAML, JSON or TOML, as leaves: where they differ, and the first one with
 * some leaves of the second. Comments and anchors are not kept, but in TOML where every leaf that
 * is taken has a value in both files: then these are exchanged, and the first file's other bytes
 * stay.
 *
 * A leaf is a value that is not a map in both files; lists are leaves. Its path is its keys with
 * dots between them; a key that holds a dot or is no plain word stands in quotes. Invariant: the
 * first file with all leaves of the second holds what the second holds, in an order of its own. */
#ifndef TWINSTEP_ABLATE_ABLATE_LEAVES_H
#define TWINSTEP_ABLATE_ABLATE_LEAVES_H

#include <stddef.h>

#include "base/arena.h"

struct yaml_node;

enum leaves_kind { LEAVES_YAML, LEAVES_JSON, LEAVES_TOML };

/* A leaf in the first file and in the second; NULL: it is not in that one. */
struct leaf_values {
    const struct yaml_node *of[2];
};

struct leaves {
    const char *paths[2];
    enum leaves_kind kind;
    const char *bytes[2]; /* of the files, as they are */
    size_t lengths[2];
    const struct yaml_node *roots[2];
    const char **differ;        /* paths of the leaves that differ, in the order of the files */
    struct leaf_values *values; /* of these */
    size_t count;
};

/* Reads both files. STATUS_INPUT or STATUS_IO: one cannot be read as maps whose keys are plain
 * words; the text says why, and they are then to be taken whole. */
TWINSTEP_MUST_USE enum status leaves_read(const char *first, const char *second,
                                          struct arena *arena, struct leaves *out);

/* The same of two texts, behind which a NUL stands, under the names and of the kind that `out` has
 * already. */
TWINSTEP_MUST_USE enum status leaves_parse(struct arena *arena, struct leaves *out);

/* The first file with the leaves that `taken` marks, by the index in `differ`, from the second; the
 * first file's own bytes where none is marked. */
TWINSTEP_MUST_USE enum status leaves_compose(const struct leaves *leaves,
                                             const unsigned char *taken, struct arena *arena,
                                             const char **out_text, size_t *out_length);

/* A text in double quotes, as JSON and YAML read it. */
TWINSTEP_MUST_USE enum status leaves_quote(const char *text, struct arena *arena, char **out);

#endif
