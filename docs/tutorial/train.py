# SPDX-License-Identifier: Apache-2.0
"""A small DPO training by TRL, recorded by twinstep: the script of docs/TRL.md.

    python train.py OUT [--bf16] [--weight-decay X] [--loop ours]

OUT gets run.h5, model/ and trainer_state.json. Nothing is fetched: model and tokenizer are made here.
`--loop ours` is a loop of one's own, as people write it: a callback that lets the scheduler step
before the optimizer and puts the old rate back before it is logged."""
import argparse
import copy

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM,
                          TrainerCallback)
from trl import DPOConfig, DPOTrainer

import twinstep

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--weight-decay", type=float, default=0.01)
parser.add_argument("--loop", choices=("trl", "ours"), default="trl")
given = parser.parse_args()

words = [f"w{i}" for i in range(60)]
made = Tokenizer(models.WordLevel(
    {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", *words])}, unk_token="<unk>"))
made.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>",
                                    unk_token="<unk>")


def text(first, step, length):
    """Words by arithmetic."""
    return " ".join(words[(first + step * i) % 60] for i in range(length))


pairs = Dataset.from_list([{"prompt": text(i, 7, 5) + " ", "chosen": text(3 * i, 1, 4 + i % 3),
                            "rejected": text(5 * i, 11, 4 + i % 2)} for i in range(48)])


class Ours(TrainerCallback):
    """The scheduler first, as our own loop had it; what is logged stays what it was."""

    def on_train_begin(self, args, state, control, lr_scheduler=None, optimizer=None, **_):
        self.scheduler, self.optimizer = lr_scheduler, optimizer

    def on_pre_optimizer_step(self, args, state, control, **_):
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        for group, base, rate in zip(self.optimizer.param_groups, self.scheduler.base_lrs,
                                     self.scheduler.lr_lambdas):
            group["lr"] = base * rate(self.scheduler.last_epoch + 1)

    def on_optimizer_step(self, args, state, control, **_):
        for group, rate in zip(self.optimizer.param_groups, self.rates):
            group["lr"] = rate


torch.set_num_threads(1)
torch.manual_seed(11)
model = Qwen2ForCausalLM(Qwen2Config(
    vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64, pad_token_id=0,
    eos_token_id=1, bos_token_id=None))
arguments = DPOConfig(
    output_dir=f"{given.out}/state", per_device_train_batch_size=2, gradient_accumulation_steps=2,
    max_steps=10, learning_rate=1e-3, lr_scheduler_type="linear", logging_steps=1,
    save_strategy="no", report_to=[], use_cpu=True, bf16=given.bf16, seed=5, max_length=32,
    gradient_checkpointing=False, disable_tqdm=True, weight_decay=given.weight_decay)
callbacks = [Ours()] if given.loop == "ours" else []
callbacks.append(twinstep.TwinstepCallback(f"{given.out}/run.h5"))
trainer = DPOTrainer(model=model, ref_model=copy.deepcopy(model), args=arguments,
                     train_dataset=pairs, processing_class=tokenizer, callbacks=callbacks)
trainer.train()
trainer.model.save_pretrained(f"{given.out}/model")
trainer.state.save_to_json(f"{given.out}/trainer_state.json")
