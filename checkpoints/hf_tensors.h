/* SPDX-License-Identifier: Apache-2.0
 * The tensors that a model with a given config.json has: names, shapes and places; and the check of
 * a checkpoint against them. Weights of products are [out, in]. */
#ifndef TWINSTEP_CHECKPOINTS_HF_TENSORS_H
#define TWINSTEP_CHECKPOINTS_HF_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config.h"

enum hf_part {
    HF_EMBEDDING = 0, /* [vocab, hidden] */
    HF_INPUT_NORM,    /* [hidden], before attention; OLMo-2 has none */
    HF_Q_PROJ,        /* [heads * head_dim, hidden] */
    HF_K_PROJ,        /* [kv_heads * head_dim, hidden] */
    HF_V_PROJ,
    HF_O_PROJ, /* [hidden, heads * head_dim] */
    HF_Q_BIAS,
    HF_K_BIAS,
    HF_V_BIAS,
    HF_O_BIAS,
    HF_Q_NORM, /* Qwen3: [head_dim], for each head; OLMo-2: [heads * head_dim], over all */
    HF_K_NORM,
    /* [hidden], post_attention_layernorm: before the MLP; in OLMo-2 behind attention */
    HF_ATTENTION_NORM,
    HF_GATE_PROJ, /* [intermediate, hidden] */
    HF_UP_PROJ,
    HF_DOWN_PROJ, /* [hidden, intermediate] */
    HF_GATE_BIAS,
    HF_UP_BIAS,
    HF_DOWN_BIAS,
    HF_FEEDFORWARD_NORM, /* [hidden], behind the MLP; only OLMo-2 has it */
    HF_FINAL_NORM,       /* [hidden] */
    HF_HEAD,             /* [vocab, hidden]; not there if tied */
    HF_PARTS
};

struct hf_tensor {
    const char *name;
    enum hf_part part;
    uint64_t layer; /* 0 for a tensor that is in no layer */
    size_t rank;    /* 1 or 2 */
    uint64_t shape[2];
};

/* Lists all tensors: embedding, layers, final norm, head. */
TWINSTEP_MUST_USE enum status hf_tensors_list(const struct hf_config *config, struct arena *arena,
                                              struct hf_tensor **out, size_t *out_count);

/* Checks a checkpoint. STATUS_INPUT lists what is missing, what is extra, and what has another
 * shape or no numbers; or says that a tied model's lm_head.weight has other bytes than its
 * embedding. A buffer `rotary_emb.inv_freq`, which old checkpoints of Llama hold and transformers
 * skips, is skipped. */
TWINSTEP_MUST_USE enum status hf_tensors_check(const struct hf_config *config,
                                               const struct checkpoint *checkpoint,
                                               struct arena *arena);

#endif
