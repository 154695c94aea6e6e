# SPDX-License-Identifier: Apache-2.0
"""Records a small DPO training by TRL, as it is or with a planted cause.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_trl.py OUT.h5 [--ahead]

`--ahead` is H17: each update takes the learning rate of the next one, and the log prints the rate
that it should have taken, so the columns of both logs are equal. The files of tests/golden/record
were made so (and `gzip -9n`); tests/python/test_record_judged.py lets the program judge them."""
import copy
import pathlib
import sys
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM,
                          TrainerCallback)
from trl import DPOConfig, DPOTrainer

import twinstep

WORDS = [f"w{i}" for i in range(60)]


def tokenizer():
    """Words of a small list, so that nothing is fetched."""
    words = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>",
                                   unk_token="<unk>")


def pairs(count):
    """Prompts with a chosen and a rejected answer, by arithmetic."""
    def text(first, step, length):
        return " ".join(WORDS[(first + step * i) % len(WORDS)] for i in range(length))
    return Dataset.from_list([{"prompt": text(i, 7, 5) + " ", "chosen": text(3 * i, 1, 4 + i % 3),
                               "rejected": text(5 * i, 11, 4 + i % 2)} for i in range(count)])


class Ahead(TrainerCallback):
    """The next update's rate while the optimizer steps, and the promised one before it is logged."""

    def on_train_begin(self, args, state, control, lr_scheduler=None, optimizer=None, **_):
        self.scheduler, self.optimizer = lr_scheduler, optimizer

    def on_pre_optimizer_step(self, args, state, control, **_):
        scheduler = self.scheduler
        self.promised = [g["lr"] for g in self.optimizer.param_groups]
        for g, base, rate in zip(self.optimizer.param_groups, scheduler.base_lrs,
                                 scheduler.lr_lambdas):
            g["lr"] = base * rate(scheduler.last_epoch + 1)

    def on_optimizer_step(self, args, state, control, **_):
        for g, lr in zip(self.optimizer.param_groups, self.promised):
            g["lr"] = lr


def train(path, ahead):
    """Ten updates of two micro-batches, recorded into `path` if it is given."""
    torch.set_num_threads(1)
    torch.manual_seed(11)
    words = tokenizer()
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        pad_token_id=0, eos_token_id=1, bos_token_id=None))
    with tempfile.TemporaryDirectory() as folder:
        args = DPOConfig(
            output_dir=folder, per_device_train_batch_size=2, gradient_accumulation_steps=2,
            max_steps=10, learning_rate=1e-3, lr_scheduler_type="linear", logging_steps=1,
            save_strategy="no", report_to=[], use_cpu=True, bf16=False, seed=5, max_length=32,
            gradient_checkpointing=False, disable_tqdm=True, weight_decay=0.01)
        callbacks = [Ahead()] if ahead else []
        if path:
            callbacks.append(twinstep.TwinstepCallback(path, every=1, readback=1))
        trainer = DPOTrainer(model=model, ref_model=copy.deepcopy(model), args=args,
                             train_dataset=pairs(48), processing_class=words,
                             callbacks=callbacks)
        trainer.train()
    return trainer


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    train(out, "--ahead" in sys.argv[2:])
