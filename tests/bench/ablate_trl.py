# SPDX-License-Identifier: Apache-2.0
"""One DPO training by TRL, small, with switches for twinstep ablate; what it leaves in OUT is
model/ (safetensors), trainer_state.json and trace.h5.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/ablate_trl.py OUT --config CONFIG.json [--ahead]

CONFIG holds bf16 (autocast), reverse (the order of the data), workers (processes that load data) and
decay. `--ahead` is H17: each update takes the next one's learning rate, and the log prints the one
that it should have taken. docs/measurements/ablate.md says how it was taken apart."""
import argparse
import copy
import json
import pathlib

import torch
from record_trl import Ahead, pairs, tokenizer
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer

import twinstep


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--config", type=pathlib.Path, required=True)
    parser.add_argument("--ahead", action="store_true")
    given = parser.parse_args()
    config = json.loads(given.config.read_text())
    torch.set_num_threads(1)
    torch.manual_seed(11)
    words = tokenizer()
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        pad_token_id=0, eos_token_id=1, bos_token_id=None))
    data = pairs(48)
    if config["reverse"]:
        data = data.select(range(len(data) - 1, -1, -1))
    args = DPOConfig(
        output_dir=str(given.out / "state"), per_device_train_batch_size=2,
        gradient_accumulation_steps=2, max_steps=10, learning_rate=1e-3, lr_scheduler_type="linear",
        logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, bf16=config["bf16"], seed=5,
        max_length=32, gradient_checkpointing=False, disable_tqdm=True,
        weight_decay=config["decay"], dataloader_num_workers=config["workers"])
    callbacks = [Ahead()] if given.ahead else []
    callbacks.append(twinstep.TwinstepCallback(given.out / "trace.h5", every=1))
    trainer = DPOTrainer(model=model, ref_model=copy.deepcopy(model), args=args, train_dataset=data,
                         processing_class=words, callbacks=callbacks)
    trainer.train()
    trainer.model.save_pretrained(given.out / "model")
    trainer.state.save_to_json(str(given.out / "trainer_state.json"))


if __name__ == "__main__":
    main()
