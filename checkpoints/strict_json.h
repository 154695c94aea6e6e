/* SPDX-License-Identifier: Apache-2.0
 * JSON as files of models hold it, by jansson, strictly: valid UTF-8, one value and nothing behind
 * it, no key twice, no NUL in a string. Private to checkpoints/; whoever parses also releases. */
#ifndef TWINSTEP_CHECKPOINTS_STRICT_JSON_H
#define TWINSTEP_CHECKPOINTS_STRICT_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The object that `bytes` hold; the caller calls json_decref. STATUS_INPUT begins with `name`. */
TWINSTEP_MUST_USE enum status strict_json_object(const char *name, const unsigned char *bytes,
                                                 size_t length, json_t **out);

/* The object that a file holds, at most 64 MiB. */
TWINSTEP_MUST_USE enum status strict_json_file(const char *path, json_t **out);

/* "an object", "a string", ... as errors say what came; NULL is "nothing". */
const char *strict_json_kind(const json_t *value);

/* A whole number from 0 on. 0: it is none. */
int strict_json_count(const json_t *value, uint64_t *out);

#define STRICT_QUOTED_SIZE 160

struct strict_quoted {
    char text[STRICT_QUOTED_SIZE];
};

/* A name between quotes as errors print it: control bytes escaped, long ones cut. */
struct strict_quoted strict_quote(const char *name);

/* A value as it would stand in a file, on one line, cut when long; "nothing" for NULL. */
struct strict_quoted strict_show(const json_t *value);

#endif
