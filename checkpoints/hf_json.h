/* SPDX-License-Identifier: Apache-2.0
 * What the files that read config.json share. Private to checkpoints/hf_*.c. */
#ifndef TWINSTEP_CHECKPOINTS_HF_JSON_H
#define TWINSTEP_CHECKPOINTS_HF_JSON_H

#include <jansson.h>

#include "checkpoints/hf_config.h"

/* The largest size of anything in a model: products of three stay below 2^64. */
#define HF_SIZE_LIMIT 2097152u
/* The limits that the schema of scenarios has. */
#define HF_LAYERS_LIMIT 510u
#define HF_HIDDEN_LIMIT 262144u
#define HF_MLP_LIMIT 1048576u
#define HF_HEADS_LIMIT 1024u
#define HF_HEAD_DIM_LIMIT 65536u

/* PyTorch's name of a dtype, as files spell it; NULL for tf32. */
const char *hf_dtype_name(enum dtype dtype);

/* Fails with "FILE: KEY: expected WHAT, got VALUE". */
enum status hf_fail(const char *name, const char *key, const char *what, const json_t *value);

/* The value of a key, or NULL if the key is absent or null. */
json_t *hf_get(const json_t *object, const char *key);

/* The bounds of a number, both admitted: those that the schema of scenarios has for it. */
struct hf_range {
    double least, most;
};
#define HF_ABOVE_0(most)                                                                           \
    (struct hf_range) {                                                                            \
        0x1p-1022, most                                                                            \
    }

/* Reads a number. `shown` is the key as an error prints it. */
TWINSTEP_MUST_USE enum status hf_read_real(const char *name, const json_t *object, const char *key,
                                           const char *shown, struct hf_range range, double *out);

/* Checks that every key of the file is known, and off where it must be (hf_keys.c). */
TWINSTEP_MUST_USE enum status hf_check_keys(const char *name, const json_t *root,
                                            enum hf_family family);

/* Reads out->rope; needs out->positions (hf_rope.c). */
TWINSTEP_MUST_USE enum status hf_read_rope(const char *name, const json_t *root,
                                           struct hf_config *out);

#endif
