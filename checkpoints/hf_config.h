/* SPDX-License-Identifier: Apache-2.0
 * Reads the config.json of four families of models, in the spellings of transformers v4 and v5.
 *
 * A key that is not known here is refused, because it may change the maths. Keys that are known to
 * change nothing stand in one table (hf_keys.c), beside those that are fine only while they are
 * off. What transformers would guess silently (the base of RoPE, the number format) must be in the
 * file. Source: transformers 4.57 and 5.23, configuration_*.py and modeling_rope_utils.py. */
#ifndef TWINSTEP_CHECKPOINTS_HF_CONFIG_H
#define TWINSTEP_CHECKPOINTS_HF_CONFIG_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"

enum hf_family { HF_LLAMA = 0, HF_OLMO2, HF_QWEN2, HF_QWEN3, HF_FAMILIES };

enum hf_rope_type { HF_ROPE_DEFAULT = 0, HF_ROPE_LLAMA3, HF_ROPE_YARN, HF_ROPE_TYPES };

/* The parameters of rotary embeddings as the file has them. What a type does not have is 0. */
struct hf_rope {
    enum hf_rope_type type;
    double theta;
    double factor;                            /* for llama3 and yarn */
    double low_freq_factor, high_freq_factor; /* for llama3 */
    uint64_t original_positions; /* for llama3 and yarn (if absent: max_position_embeddings) */
    /* for yarn; 0 if absent: it is then computed from factor and the mscales */
    double attention_factor;
    double beta_fast, beta_slow;   /* for yarn; 32 and 1 if absent */
    double mscale, mscale_all_dim; /* for yarn; 0 if absent */
    int truncate;                  /* for yarn; 1 if absent */
};

#define HF_ENDS 8

struct hf_config {
    enum hf_family family;
    uint64_t vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, positions;
    double eps; /* the eps of every norm */
    struct hf_rope rope;
    enum dtype dtype; /* the weights' number format: `torch_dtype` or `dtype` */
    int tied;         /* lm_head is the embedding, too */
    int qkv_bias, output_bias, mlp_bias;
    int64_t bos, pad; /* token ids; -1 if there is none */
    int64_t ends[HF_ENDS];
    size_t end_count;
};

/* Reads the config.json at `path`. STATUS_INPUT gives file, key, what was expected and what came,
 * also for a key of another family, or one that changes the maths in a way that is not
 * supported. */
TWINSTEP_MUST_USE enum status hf_config_read(const char *path, struct hf_config *out);
/* Does the same with bytes; `name` stands for the path in errors. */
TWINSTEP_MUST_USE enum status hf_config_parse(const char *name, const unsigned char *bytes,
                                              size_t length, struct hf_config *out);

/* The family's model_type: "llama", "olmo2", "qwen2", "qwen3". */
const char *hf_family_name(enum hf_family family);
/* The only entry of architectures: "LlamaForCausalLM", ... */
const char *hf_family_class(enum hf_family family);
/* The type's name: "default", "llama3", "yarn". */
const char *hf_rope_name(enum hf_rope_type type);

#endif
