# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints with random weights. They have what real ones may have, and nothing in them
rounds away.

Norm weights are not 1, biases are not 0, and weights are large enough that logits are not flat."""

import json
import os

import torch
import transformers

VOCABULARY = 64
COMMON = dict(vocab_size=VOCABULARY, num_hidden_layers=2, max_position_embeddings=256,
              bos_token_id=1, eos_token_id=2, pad_token_id=0, use_cache=False, attention_dropout=0.0)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 4.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 64}


def plain(theta):
    return {"rope_type": "default", "rope_theta": theta}


# each name: class, seed, and what config.json has beyond COMMON
MODELS = {
    # grouped queries, head_dim that is not hidden / heads, every bias, llama3
    "llama": ("Llama", 1, dict(hidden_size=16, intermediate_size=24, num_attention_heads=4,
                               num_key_value_heads=2, head_dim=6, attention_bias=True,
                               mlp_bias=True, tie_word_embeddings=False, rms_norm_eps=1e-5,
                               rope_parameters=LLAMA3)),
    # tied, no bias, every head its own keys
    "llama-tied": ("Llama", 2, dict(hidden_size=16, intermediate_size=28, num_attention_heads=4,
                                    num_key_value_heads=4, attention_bias=False, mlp_bias=False,
                                    tie_word_embeddings=True, rms_norm_eps=1e-6,
                                    rope_parameters=plain(10000.0))),
    "olmo2": ("Olmo2", 3, dict(hidden_size=16, intermediate_size=24, num_attention_heads=4,
                               num_key_value_heads=2, attention_bias=False,
                               tie_word_embeddings=False, rms_norm_eps=1e-6,
                               rope_parameters=plain(500000.0))),
    # biases of q, k, v; one head of keys for two; YaRN
    "qwen2": ("Qwen2", 4, dict(hidden_size=16, intermediate_size=24, num_attention_heads=2,
                               num_key_value_heads=1, tie_word_embeddings=True, rms_norm_eps=1e-6,
                               use_sliding_window=False, rope_parameters=YARN)),
    # norms of each head, head_dim that is not hidden / heads
    "qwen3": ("Qwen3", 5, dict(hidden_size=16, intermediate_size=24, num_attention_heads=4,
                               num_key_value_heads=2, head_dim=8, attention_bias=False,
                               tie_word_embeddings=False, rms_norm_eps=1e-6,
                               use_sliding_window=False, rope_parameters=plain(1000000.0))),
}


def make(name):
    family, seed, values = MODELS[name]
    config = getattr(transformers, family + "Config")(dtype="float32", **COMMON, **values)
    model = getattr(transformers, family + "ForCausalLM")(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            drawn = torch.empty_like(parameter).normal_(generator=generator)
            if "norm" in key:
                parameter.copy_(1 + 0.25 * drawn)
            else:
                parameter.copy_((0.1 if key.endswith("bias") else 0.2) * drawn)
    return model


def save(name, folder):
    model = make(name)
    model.save_pretrained(folder)
    for file in os.listdir(folder):
        if file not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, file))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        assert json.load(file)["model_type"] == model.config.model_type


def load(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
