# SPDX-License-Identifier: Apache-2.0
"""What every foreign training needs: a tiny model, its batches, and the notes of what was applied.

The notes are taken by torch's own hooks around every optimizer's step, so that they say what was
applied, whatever a training logs or stores."""

import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden", "logs"))

import tiny  # noqa: E402  (it hides the host's name before a library can see it)
import torch  # noqa: E402
from torch.optim.optimizer import (  # noqa: E402
    register_optimizer_step_post_hook, register_optimizer_step_pre_hook)

VOCABULARY = 48


def model(architecture="qwen2", layers=1, hidden=8, dropout=0.0, seed=0, vocabulary=VOCABULARY):
    """Makes a random model of at most 5,000 weights."""
    import transformers

    torch.manual_seed(seed)
    if architecture == "plain":
        return torch.nn.Sequential(
            torch.nn.Embedding(32, hidden), torch.nn.Linear(hidden, 2 * hidden, bias=False),
            torch.nn.GELU(), torch.nn.LayerNorm(2 * hidden), torch.nn.Dropout(dropout),
            torch.nn.Linear(2 * hidden, 32))
    if architecture == "gpt2":
        made = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=32, n_embd=hidden, n_layer=layers, n_head=2,
            bos_token_id=1, eos_token_id=2, pad_token_id=0, resid_pdrop=dropout, embd_pdrop=dropout,
            attn_pdrop=dropout))
    else:
        sizes = dict(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=2 * hidden,
                     num_hidden_layers=layers, num_attention_heads=2, num_key_value_heads=1,
                     max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
                     attention_dropout=dropout)
        config, cls = {
            "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
            "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM)}[architecture]
        made = cls(config(tie_word_embeddings=architecture == "qwen2", **sizes))
    # Weights of 0.02 leave nothing to learn in four updates; bias and norms are drawn, too.
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.dim() == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
            else:
                weight.mul_(5.0)
    assert sum(weight.numel() for weight in made.parameters()) <= 5000
    return made


def batches(count, rows=2, length=10, seed=1, vocabulary=VOCABULARY):
    """Random tokens of the lower half of the vocabulary: the other embedding rows stay inert."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, vocabulary // 2, (rows, length), generator=generator)
            for _ in range(count)]


class Rows(torch.utils.data.Dataset):
    def __init__(self, count, length=10, seed=1):
        self.rows = batches(1, count, length, seed)[0]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row.clone()}


class Lion(torch.optim.Optimizer):
    """The usual form of Lion (Chen et al. 2023, Algorithm 2): torch has no class for it.

    Written for these trainings alone; its state is `exp_avg` as in the packages that have one."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["exp_avg"] = torch.zeros_like(weight)
                average = state["exp_avg"]
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                update = average.clone().mul_(first).add_(weight.grad, alpha=1 - first).sign_()
                weight.add_(update, alpha=-group["lr"])
                average.mul_(second).add_(weight.grad, alpha=1 - second)


def lying(cls, **true):
    """An optimizer whose groups state one value while its step takes another."""

    class Lying(cls):
        def step(self, closure=None):
            stated = [{key: group[key] for key in true} for group in self.param_groups]
            for group in self.param_groups:
                group.update(true)
            done = super().step(closure)
            for group, values in zip(self.param_groups, stated):
                group.update(values)
            return done

    Lying.__name__, Lying.true = cls.__name__, true
    return Lying


OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, {}),
    "amsgrad": (torch.optim.AdamW, {"amsgrad": True}),
    "adam": (torch.optim.Adam, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "sgd": (torch.optim.SGD, {}),
    "lion": (Lion, {}),
    "adafactor": (torch.optim.Adafactor, {}),
}
KERNELS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def groups_of(made, weight_decay, decay_all=False, leave_out=()):
    """Two groups, as most loops have them: what decays, and biases and norms, which do not."""
    named = [(name, weight) for name, weight in made.named_parameters()
             if weight.requires_grad and not any(word in name for word in leave_out)]
    if decay_all:
        return [{"params": [weight for _, weight in named], "weight_decay": weight_decay}]
    both = [{"params": [weight for _, weight in named if weight.dim() > 1],
             "weight_decay": weight_decay},
            {"params": [weight for _, weight in named if weight.dim() == 1], "weight_decay": 0.0}]
    return [group for group in both if group["params"]]


def norm_of(gradients):
    return math.sqrt(sum(float(g.detach().double().pow(2).sum()) for g in gradients
                         if g is not None))


class Notes:
    """Notes at every optimizer step of this process what is applied, per parameter group."""

    def __init__(self, made=None):
        self.updates, self.names, self.groups, self.inside = [], {}, None, None
        if made is not None:
            self.name(made)
        self.handles = [
            register_optimizer_step_pre_hook(self.before),
            register_optimizer_step_post_hook(self.after)]
        self.scale = None  # set by a loop whose gradients are scaled when the step is taken

    def name(self, made):
        self.names = {id(weight): name for name, weight in made.named_parameters()}

    def before(self, optimizer, *_):
        if not self.inside and not hasattr(optimizer, "optimizer"):
            self.inside = optimizer

    def after(self, optimizer, *_):
        """Everything is read here: a step may run a closure, which trains (Lightning's does) and
        can move the LR after `before`. No loop here moves the LR or the gradients between the
        arithmetic and this place."""
        if self.inside is not optimizer:
            return
        self.inside, now = None, []
        true = {key: list(value) if key == "betas" else value
                for key, value in getattr(optimizer, "true", {}).items()}
        for group in optimizer.param_groups:
            counts = {float(optimizer.state[weight]["step"]) for weight in group["params"]
                      if "step" in optimizer.state.get(weight, {})}
            now.append({
                "lr": float(group["lr"]), "weight_decay": float(group.get("weight_decay", 0.0)),
                **({"betas": list(map(float, group["betas"]))} if "betas" in group else {}),
                **({"momentum": group["momentum"]} if "momentum" in group else {}),
                **({"eps": group["eps"]} if isinstance(group.get("eps"), float) else {}),
                "count": max(counts) if counts else None, **true})
        self.groups = [[self.names.get(id(weight), "?") for weight in group["params"]]
                       for group in optimizer.param_groups]
        norm = norm_of(weight.grad for group in optimizer.param_groups
                       for weight in group["params"])
        self.updates.append({"update": len(self.updates) + 1, "groups": now, "norm_taken": norm})

    def say(self, **more):
        self.updates[-1].update(more)

    def stop(self):
        for handle in self.handles:
            handle.remove()


def versions(*names):
    return tiny.versions("torch", *names)


def plain_json(value):
    """NaN and infinity are no JSON: they are written as words."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    return value


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(plain_json(value), out, indent=1, sort_keys=True)
        out.write("\n")


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(plain_json(row)) + "\n")
