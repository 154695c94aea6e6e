#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/foreign/modules/*.txt: the names of named_parameters() of small models of
transformers (and one of peft, with LoRA), in order, each behind + if Trainer.create_optimizer
decays it and behind - if not. Needs transformers (5.23.0 wrote what is committed) and peft."""

import pathlib
import tempfile

from transformers import (AutoModelForCausalLM, CohereConfig, Gemma2Config, Gemma3TextConfig, Glm4Config, GPT2Config,
                          GPTNeoXConfig, LlamaConfig, MistralConfig, Olmo2Config, Phi3Config, PhiConfig, Qwen2Config,
                          Qwen3Config, StableLmConfig, Starcoder2Config, SmolLM3Config, Trainer, TrainingArguments)

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "foreign" / "modules"
SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "vocab_size": 64,
         "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LAYERS = {"num_key_value_heads": 2, "num_hidden_layers": 2, **SMALL}
GPT2 = {"n_embd": 16, "n_layer": 11, "n_head": 2, "vocab_size": 64, "n_positions": 32, "bos_token_id": 1,
        "eos_token_id": 2}
CONFIGS = {"llama": LlamaConfig(**{**LAYERS, "num_hidden_layers": 11}, attention_bias=True, mlp_bias=True),
           "qwen2": Qwen2Config(**LAYERS, tie_word_embeddings=True), "qwen3": Qwen3Config(**LAYERS, head_dim=8),
           "olmo2": Olmo2Config(**LAYERS), "mistral": MistralConfig(**LAYERS),
           "gemma2": Gemma2Config(**LAYERS, head_dim=8), "gpt2": GPT2Config(**GPT2),
           "neox": GPTNeoXConfig(num_hidden_layers=2, **SMALL), "phi": PhiConfig(**LAYERS), "phi3": Phi3Config(**LAYERS),
           "glm4": Glm4Config(**LAYERS, head_dim=8), "gemma3": Gemma3TextConfig(**LAYERS, head_dim=8),
           "starcoder2": Starcoder2Config(**LAYERS), "stablelm": StableLmConfig(**LAYERS),
           "cohere": CohereConfig(**LAYERS), "smollm3": SmolLM3Config(**LAYERS)}


def write(name, model):
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, TrainingArguments(folder, weight_decay=0.1, use_cpu=True, report_to=[]))
        decayed = set(trainer.get_decay_parameter_names(model))
    rows = [f"{'+' if key in decayed else '-'} {key}" for key, p in model.named_parameters() if p.requires_grad]
    (FOLDER / f"{name}.txt").write_text("\n".join(rows) + "\n")
    print(name, len(rows))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, config in CONFIGS.items():
        write(name, AutoModelForCausalLM.from_config(config))
    try:
        import peft
    except ImportError:
        print("no peft: llama-lora.txt is left as it is")
        return
    config = peft.LoraConfig(target_modules="all-linear", r=2, task_type="CAUSAL_LM")
    write("llama-lora", peft.get_peft_model(AutoModelForCausalLM.from_config(LlamaConfig(**LAYERS)), config))


if __name__ == "__main__":
    main()
