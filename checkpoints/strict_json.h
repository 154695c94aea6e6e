/* SPDX-License-Identifier: Apache-2.0
 * JSON as files of models hold it, read by jansson, strictly: valid UTF-8, one value and nothing
 * behind it, no key twice, no NUL in a string; and how names and values stand in errors. Private to
 * checkpoints/; whoever parses also releases. */
#ifndef TWINSTEP_CHECKPOINTS_STRICT_JSON_H
#define TWINSTEP_CHECKPOINTS_STRICT_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Parses the object that `bytes` hold; the caller calls json_decref. The text of STATUS_INPUT
 * begins with `name`. */
TWINSTEP_MUST_USE enum status strict_json_object(const char *name, const unsigned char *bytes,
                                                 size_t length, json_t **out);

/* Parses the object that a file of at most 64 MiB holds. */
TWINSTEP_MUST_USE enum status strict_json_file(const char *path, json_t **out);

/* The kind of a value, as errors say what came: "an object", "a string", ...; NULL is "nothing". */
const char *strict_json_kind(const json_t *value);

/* Stores a whole number from 0 on. Returns 0 if the value is none. */
int strict_json_count(const json_t *value, uint64_t *out);

#define STRICT_QUOTED_SIZE 160

struct strict_quoted {
    char text[STRICT_QUOTED_SIZE];
};

/* A name between quotes, as errors print it: control bytes are escaped, and long names cut. */
struct strict_quoted strict_quote(const char *name);

/* A value as it would stand in a file, on one line, cut if long; "nothing" for NULL. */
struct strict_quoted strict_show(const json_t *value);

/* A list of names for an error text: the first few names, and how many more there are. */
#define LISTING_SIZE 800

struct listing {
    size_t count; /* 0 at the beginning */
    size_t shown;
    char text[LISTING_SIZE];
};

/* Adds a name, escaped as strict_quote does. */
void listing_add(struct listing *listing, const char *name);
/* Adds a text as it is. */
void listing_add_text(struct listing *listing, const char *text);
/* The list: "a, b, c and 4 more", or "none". */
const char *listing_close(struct listing *listing);

#endif
