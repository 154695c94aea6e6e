/* SPDX-License-Identifier: Apache-2.0
 * config.json of four families of models, in the spellings of transformers v4 and v5.
 *
 * A key that is not known here is refused: it may change the maths. Keys that are known to change
 * none stand in one table (hf_keys.c), beside those that are fine only while they are off. What
 * transformers would guess in silence (the base of RoPE, the number format) is asked for.
 * Source: transformers 4.57 and 5.23, configuration_*.py and modeling_rope_utils.py. */
#ifndef TWINSTEP_CHECKPOINTS_HF_CONFIG_H
#define TWINSTEP_CHECKPOINTS_HF_CONFIG_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"

enum hf_family { HF_LLAMA = 0, HF_OLMO2, HF_QWEN2, HF_QWEN3, HF_FAMILIES };

enum hf_rope_type { HF_ROPE_DEFAULT = 0, HF_ROPE_LLAMA3, HF_ROPE_YARN, HF_ROPE_TYPES };

/* Numbers as the file has them; what a type does not have is 0. */
struct hf_rope {
    enum hf_rope_type type;
    double theta;
    double factor;                            /* llama3, yarn */
    double low_freq_factor, high_freq_factor; /* llama3 */
    uint64_t original_positions;              /* llama3, yarn (absent: max_position_embeddings) */
    double attention_factor;       /* yarn; 0: absent, computed from factor and the mscales */
    double beta_fast, beta_slow;   /* yarn; absent: 32 and 1 */
    double mscale, mscale_all_dim; /* yarn; 0: absent */
    int truncate;                  /* yarn; absent: 1 */
};

#define HF_ENDS 8

struct hf_config {
    enum hf_family family;
    uint64_t vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
    double eps; /* of every norm */
    struct hf_rope rope;
    enum dtype dtype; /* of the weights: `torch_dtype` or `dtype` */
    int tied;         /* lm_head is the embedding */
    int qkv_bias, output_bias, mlp_bias;
    int64_t bos, pad; /* token ids; -1: none */
    int64_t ends[HF_ENDS];
    size_t end_count;
};

/* Reads `path`, a config.json. STATUS_INPUT: file, key, what was expected and what came; a key of
 * another family, or one that changes the maths in a way that is not supported, by name. */
TWINSTEP_MUST_USE enum status hf_config_read(const char *path, struct hf_config *out);
/* The same of bytes; `name` stands for the path in errors. */
TWINSTEP_MUST_USE enum status hf_config_parse(const char *name, const unsigned char *bytes,
                                              size_t length, struct hf_config *out);

/* "llama", "olmo2", "qwen2", "qwen3": model_type. */
const char *hf_family_name(enum hf_family family);
/* "LlamaForCausalLM", ...: the only entry of architectures. */
const char *hf_family_class(enum hf_family family);
/* "default", "llama3", "yarn" */
const char *hf_rope_name(enum hf_rope_type type);

#endif
