/* SPDX-License-Identifier: Apache-2.0
 * Parts of reading config.json. Private to checkpoints/hf_*.c. */
#ifndef TWINSTEP_CHECKPOINTS_HF_JSON_H
#define TWINSTEP_CHECKPOINTS_HF_JSON_H

#include <jansson.h>

#include "checkpoints/hf_config.h"

/* Largest size of anything in a model: products of three stay below 2^64. */
#define HF_SIZE_LIMIT 2097152u
/* Those that the schema of scenarios has. */
#define HF_LAYERS_LIMIT 510u
#define HF_HIDDEN_LIMIT 262144u
#define HF_MLP_LIMIT 1048576u
#define HF_HEADS_LIMIT 1024u
#define HF_HEAD_DIM_LIMIT 65536u

/* "FILE: KEY: expected WHAT, got VALUE" */
enum status hf_fail(const char *name, const char *key, const char *what, const json_t *value);

/* NULL for a key that is absent or null. */
json_t *hf_get(const json_t *object, const char *key);

/* Bounds of a number, both allowed: those that the schema of scenarios has for it. */
struct hf_range {
    double least, most;
};
#define HF_ABOVE_0(most)                                                                           \
    (struct hf_range) {                                                                            \
        0x1p-1022, most                                                                            \
    }

/* `shown` is the key as an error has it. */
TWINSTEP_MUST_USE enum status hf_read_real(const char *name, const json_t *object, const char *key,
                                           const char *shown, struct hf_range range, double *out);

/* hf_keys.c: every key of the file is known, and off where it must be. */
TWINSTEP_MUST_USE enum status hf_check_keys(const char *name, const json_t *root,
                                            enum hf_family family);

/* hf_rope.c: needs out->positions. */
TWINSTEP_MUST_USE enum status hf_read_rope(const char *name, const json_t *root,
                                           struct hf_config *out);

#endif
