#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes inv_freq.txt: inverse frequencies and attention factors of transformers' own functions.
# One block per setting: its keys of section model, the attention factor, one line per pair (f32).
# Run where transformers is installed: python3 make_inv_freq.py > inv_freq.txt
import struct
import sys

import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LLAMA31 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
               original_max_position_embeddings=8192)
SETTINGS = [
    ("llama3", 128, 500000.0, LLAMA31),
    ("llama3", 64, 500000.0, dict(LLAMA31, factor=32.0)),
    ("llama3", 12, 10000.0, dict(LLAMA31, original_max_position_embeddings=64)),
    ("llama3", 80, 3456.789, dict(factor=2.5, low_freq_factor=1.5, high_freq_factor=3.0,
                                  original_max_position_embeddings=777)),
    ("yarn", 128, 1000000.0, dict(factor=4.0, original_max_position_embeddings=32768)),
    ("yarn", 128, 10000.0, dict(factor=16.0, original_max_position_embeddings=4096,
                                beta_fast=32.0, beta_slow=1.0)),
    ("yarn", 64, 10000.0, dict(factor=40.0, original_max_position_embeddings=4096, mscale=0.707,
                               mscale_all_dim=0.9)),
    ("yarn", 16, 500000.0, dict(factor=2.0, original_max_position_embeddings=32,
                                attention_factor=1.25, truncate=False)),
    ("yarn", 20, 1234.5, dict(factor=3.0, original_max_position_embeddings=100, beta_fast=16.0,
                              beta_slow=2.0, truncate=False)),
    ("yarn", 8, 10000.0, dict(factor=1.0, original_max_position_embeddings=16)),
]
KEYS = {"original_max_position_embeddings": "rope_original_positions"}


def hex32(value):
    return float(struct.unpack("<f", struct.pack("<f", value))[0]).hex()


def main():
    print(f"# transformers {transformers.__version__}, torch {torch.__version__}, CPU")
    for kind, dim, theta, rope in SETTINGS:
        config = LlamaConfig(hidden_size=2 * dim, num_attention_heads=2, head_dim=dim,
                             max_position_embeddings=131072,
                             rope_parameters=dict(rope, rope_type=kind, rope_theta=theta))
        frequencies, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu")
        words = [f"rope_scaling: {kind}", f"head_dim: {dim}", f"rope_theta: {theta!r}"]
        for key, value in rope.items():
            text = str(value).lower() if isinstance(value, bool) else repr(value)
            words.append(f"{KEYS.get(key, 'rope_' + key)}: {text}")
        print("model " + ", ".join(words))
        print("factor " + float(factor).hex())
        for value in frequencies.tolist():
            print(hex32(value))


if __name__ == "__main__":
    sys.exit(main())
