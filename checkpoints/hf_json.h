/* SPDX-License-Identifier: Apache-2.0
 * Parts of reading config.json. Private to checkpoints/hf_*.c. */
#ifndef TWINSTEP_CHECKPOINTS_HF_JSON_H
#define TWINSTEP_CHECKPOINTS_HF_JSON_H

#include <jansson.h>

#include "checkpoints/hf_config.h"

/* Largest size of anything in a model: products of three stay below 2^64. */
#define HF_SIZE_LIMIT 2097152u
#define HF_LAYERS_LIMIT 4096u

/* "FILE: KEY: expected WHAT, got VALUE" */
enum status hf_fail(const char *name, const char *key, const char *what, const json_t *value);

/* NULL for a key that is absent or null. */
json_t *hf_get(const json_t *object, const char *key);

/* A finite number above 0. */
TWINSTEP_MUST_USE enum status hf_read_positive(const char *name, const json_t *object,
                                               const char *key, double *out);

/* hf_keys.c: every key of the file is known, and off where it must be. */
TWINSTEP_MUST_USE enum status hf_check_keys(const char *name, const json_t *root,
                                            enum hf_family family);

/* hf_rope.c: needs out->positions. */
TWINSTEP_MUST_USE enum status hf_read_rope(const char *name, const json_t *root,
                                           struct hf_config *out);

#endif
