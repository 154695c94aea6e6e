/* SPDX-License-Identifier: Apache-2.0
 * The tensors that a model of a given config.json has: names, shapes, places; and a checkpoint held
 * against them. Weights of products are [out, in]. */
#ifndef TWINSTEP_CHECKPOINTS_HF_TENSORS_H
#define TWINSTEP_CHECKPOINTS_HF_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config.h"

enum hf_part {
    HF_EMBEDDING = 0, /* [vocab, hidden] */
    HF_INPUT_NORM,    /* [hidden], not OLMo-2: before attention */
    HF_Q_PROJ,        /* [heads * head_dim, hidden] */
    HF_K_PROJ,        /* [kv_heads * head_dim, hidden] */
    HF_V_PROJ,
    HF_O_PROJ, /* [hidden, heads * head_dim] */
    HF_Q_BIAS,
    HF_K_BIAS,
    HF_V_BIAS,
    HF_O_BIAS,
    HF_Q_NORM, /* Qwen3: [head_dim] per head; OLMo-2: [heads * head_dim] over all */
    HF_K_NORM,
    HF_ATTENTION_NORM, /* [hidden], post_attention_layernorm: before the MLP, OLMo-2: behind
                          attention */
    HF_GATE_PROJ,      /* [intermediate, hidden] */
    HF_UP_PROJ,
    HF_DOWN_PROJ, /* [hidden, intermediate] */
    HF_GATE_BIAS,
    HF_UP_BIAS,
    HF_DOWN_BIAS,
    HF_FEEDFORWARD_NORM, /* [hidden], OLMo-2: behind the MLP */
    HF_FINAL_NORM,       /* [hidden] */
    HF_HEAD,             /* [vocab, hidden]; not there when tied */
    HF_PARTS
};

struct hf_tensor {
    const char *name;
    enum hf_part part;
    uint64_t layer; /* 0 for what is in no layer */
    size_t rank;    /* 1 or 2 */
    uint64_t shape[2];
};

/* All of them: embedding, layers, final norm, head. */
TWINSTEP_MUST_USE enum status hf_tensors_list(const struct hf_config *config, struct arena *arena,
                                              struct hf_tensor **out, size_t *out_count);

/* STATUS_INPUT: lists what is missing, what is extra, what has another shape or no numbers; or a
 * tied model's lm_head.weight is there with other bytes than the embedding's. A buffer
 * `rotary_emb.inv_freq`, which old checkpoints of Llama hold and transformers skips, is skipped. */
TWINSTEP_MUST_USE enum status hf_tensors_check(const struct hf_config *config,
                                               const struct checkpoint *checkpoint,
                                               struct arena *arena);

#endif
