# SPDX-License-Identifier: Apache-2.0
"""A tiny random model, a tokenizer and rows that need no network; and the hook that notes the true
LRs.

The host name is replaced before any library can put it into a file name or a log."""

import json
import os
import random
import socket
import sys

socket.gethostname = lambda: "host"
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  WANDB_DISABLED="true",
                  TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")  # transformers 4.46 reads its own random state

import torch  # noqa: E402


def model(seed=0, vocabulary=64):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, vocab_size=vocabulary, max_position_embeddings=64,
        bos_token_id=1, eos_token_id=2, pad_token_id=0))


def tokenizer():
    """One token per character."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = " abcdefghijklmnopqrstuvwxyz0123456789.,?!"
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3}
    words.update({letter: 4 + index for index, letter in enumerate(letters)})
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>",
                                   eos_token="</s>", unk_token="<unk>")


def sentence(rng, low, high):
    return "".join(rng.choice("abcdefgh ") for _ in range(rng.randint(low, high)))


class Tokens(torch.utils.data.Dataset):
    """Holds rows of random tokens for a causal language model."""

    def __init__(self, count, length=12, seed=1):
        generator = torch.Generator().manual_seed(seed)
        self.rows = torch.randint(3, 40, (count, length), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row.clone()}


def pairs(count, seed=1):
    from datasets import Dataset

    rng = random.Random(seed)
    return Dataset.from_list([
        {"prompt": sentence(rng, 3, 8), "chosen": sentence(rng, 4, 10),
         "rejected": sentence(rng, 4, 10)} for _ in range(count)])


def texts(count, seed=1):
    from datasets import Dataset

    rng = random.Random(seed)
    return Dataset.from_list([{"text": sentence(rng, 8, 20)} for _ in range(count)])


class Truth:
    """Notes the LR in the optimizer at every one of its steps."""

    def __init__(self):
        self.applied = []

    def watch(self, optimizer):
        seen = self.applied

        def before(stepping, *_):
            seen.append(float(stepping.param_groups[0]["lr"]))

        while hasattr(optimizer, "optimizer"):  # a wrapper of accelerate or Lightning
            optimizer = optimizer.optimizer
        optimizer.register_step_pre_hook(before)

    def write(self, path, **facts):
        facts["applied"] = self.applied
        with open(path, "w", encoding="ascii") as out:
            json.dump(facts, out, indent=1, sort_keys=True)
            out.write("\n")


def versions(*names):
    from importlib.metadata import version

    return {"python": sys.version.split()[0], **{name: version(name) for name in names}}
