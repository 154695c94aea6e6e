# SPDX-License-Identifier: Apache-2.0
"""Plain torch loops, as people write them: healthy, or with one planted slip.

`train(options, out)` trains, saves the checkpoints that are wanted under `out`, a log beside them,
and returns the truth. Options that are not given are those of `DEFAULTS`."""

import copy
import os
import random

import foreign_parts as parts
import numpy
import torch
from torch.nn import functional

DEFAULTS = dict(
    architecture="qwen2", layers=1, hidden=8, dropout=0.0, optimizer="adamw", kernel="single",
    dtype="f32", lr=5e-4, weight_decay=0.1, clip=1.0, betas=(0.9, 0.999), eps=1e-8, total=20,
    updates=3, keep=(1, 2, 3), order="after", logged="next", clip_after=False, accumulate=1,
    scaler=None, layout="folder", count_ahead=None, decay_all=False, leave_out=(), frozen=(),
    true=None, loss="lm", seed=0, restart=None, optimizer_options=None, schedule="linear",
    counted_from=1, idle=())


def linear(total):
    """Linear to 0 without a warm-up: the factor of update k is that of counter k - 1."""
    return lambda counter: max(0.0, 1.0 - counter / total)


def make_optimizer(o, weights):
    cls, options = parts.OPTIMIZERS[o["optimizer"]]
    options = {**options, "lr": o["lr"], **(o["optimizer_options"] or {})}
    if o["optimizer"] in ("adamw", "adam", "amsgrad", "lion"):
        options["betas"] = tuple(o["betas"]) if o["optimizer"] != "lion" else (0.9, 0.99)
    if o["optimizer"] in ("adamw", "adam", "amsgrad"):
        options["eps"] = o["eps"]
    if o["optimizer"] not in ("lion",):
        options.update(parts.KERNELS[o["kernel"]] if o["optimizer"] != "adafactor" else {})
    if o["true"]:
        cls = parts.lying(cls, **o["true"])
    return cls(weights, **options)


def log_probability(made, tokens):
    logits = made(tokens).logits[:, :-1].float()
    picked = logits.log_softmax(-1).gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
    return picked[:, 3:].sum(-1)  # the first four tokens are the prompt


def loss_of(o, made, reference, tokens):
    if o["loss"] == "dpo":
        half = len(tokens) // 2
        chosen, rejected = tokens[:half], tokens[half:]
        with torch.no_grad():
            before = log_probability(reference, chosen) - log_probability(reference, rejected)
        now = log_probability(made, chosen) - log_probability(made, rejected)
        return -functional.logsigmoid(0.1 * (now - before)).mean()
    logits = made(tokens)
    logits = logits if torch.is_tensor(logits) else logits.logits
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


class Loop:
    """A training with everything that a checkpoint of it has to hold."""

    def __init__(self, o):
        self.o = o
        random.seed(o["seed"] + 7)
        numpy.random.seed(o["seed"] + 7)
        self.model = parts.model(
            o["architecture"], o["layers"], o["hidden"], o["dropout"], o["seed"])
        torch.manual_seed(o["seed"] + 7)
        for name, weight in self.model.named_parameters():
            weight.requires_grad_(not any(word in name for word in o["frozen"]))
        if o["dtype"] in ("bf16", "masters"):
            self.model.to(torch.bfloat16)
        self.reference = copy.deepcopy(self.model) if o["loss"] == "dpo" else None
        self.masters = None
        groups = parts.groups_of(self.model, o["weight_decay"], o["decay_all"], o["leave_out"])
        self.notes = parts.Notes(self.model)
        if o["dtype"] == "masters":
            self.masters = {name: weight.detach().float().requires_grad_()
                            for name, weight in self.model.named_parameters()}
            name_of = {id(weight): name for name, weight in self.model.named_parameters()}
            for group in groups:
                group["params"] = [self.masters[name_of[id(weight)]] for weight in group["params"]]
            self.notes.names = {id(weight): name for name, weight in self.masters.items()}
        self.optimizer = make_optimizer(o, groups)
        self.factor = linear(o["total"])
        self.scheduler = (
            torch.optim.lr_scheduler.OneCycleLR(self.optimizer, o["lr"], o["total"])
            if o["schedule"] == "onecycle" else
            torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor))
        self.scaler = torch.amp.GradScaler("cpu", **o["scaler"]) if o["scaler"] else None
        self.data = parts.batches(
            o["total"] * o["accumulate"], rows=4 if o["loss"] == "dpo" else 2, seed=o["seed"] + 1,
            vocabulary=32 if o["architecture"] == "plain" else parts.VOCABULARY)
        self.position = 0
        if o["count_ahead"]:
            # What torch.distributed.checkpoint does for an optimizer without a state: it steps once
            # with gradients of zero and an LR of 0, and the count stays at 1.
            from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

            get_optimizer_state_dict(self.model, self.optimizer)
            self.notes.updates.clear()

    def gradients(self):
        for weight in self.model.parameters():
            weight.grad = None
        total = 0.0
        for _ in range(self.o["accumulate"]):
            tokens, self.position = self.data[self.position], self.position + 1
            with torch.autocast("cpu", torch.float16, enabled=self.scaler is not None):
                loss = loss_of(self.o, self.model, self.reference, tokens) / self.o["accumulate"]
            (self.scaler.scale(loss) if self.scaler else loss).backward()
            total += float(loss.detach())
        for name, weight in self.model.named_parameters():
            if any(word in name for word in self.o["idle"]) and self.notes.updates:
                weight.grad = None  # an expert that no token reaches after the first update
        if self.masters:
            for name, weight in self.model.named_parameters():
                self.masters[name].grad = None if weight.grad is None else weight.grad.float()
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        return total

    def trained(self):
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def clip(self):
        """Returns the norm before clipping, which is what a log shows; no limit clips nothing."""
        limit = self.o["clip"] or float("inf")
        weights = self.masters.values() if self.masters else self.model.parameters()
        return float(torch.nn.utils.clip_grad_norm_(list(weights), limit))

    def schedule(self, update):
        if self.o["order"] == "behind" and update == 1:
            return
        for _ in range(2 if self.o["order"] == "twice" else 1):
            self.scheduler.step()

    def step(self):
        """Returns whether the optimizer stepped: a scaler leaves an overflow out."""
        seen = len(self.notes.updates)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.masters:
            with torch.no_grad():
                for name, weight in self.model.named_parameters():
                    weight.copy_(self.masters[name])
        return len(self.notes.updates) > seen

    def logged(self, update, before):
        shown = {"next": self.scheduler.get_last_lr()[0], "used": before,
                 "formula": self.o["lr"] * self.factor(update - 1)}
        return shown[self.o["logged"]]

    def update(self, number):
        loss = self.gradients()
        norm = None if self.o["clip_after"] else self.clip()
        if self.o["order"] == "ahead":
            self.schedule(number)
        before = self.optimizer.param_groups[0]["lr"]
        stepped = self.step()
        if self.o["clip_after"]:
            norm = self.clip()
        if self.o["order"] != "ahead" and (stepped or not self.scaler):
            self.schedule(number)
        row = {"step": number, "loss": loss, "grad_norm": norm, "lr": self.logged(number, before)}
        if not stepped:
            self.notes.updates.append({"update": number, "skipped": True})
        taken = sum(not entry.get("skipped") for entry in self.notes.updates) - stepped
        self.notes.say(update=number, norm_before_clip=norm, lr_logged=row["lr"],
                       lr_promised=self.o["lr"] * self.factor(taken))
        if self.scaler:
            row["loss_scale"] = self.scaler.get_scale()
            self.notes.say(loss_scale_after=row["loss_scale"])
        return row

    # What a checkpoint holds, and where it lies.

    def state(self):
        weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        if self.o["dtype"] == "copies":
            weights = {name: value.to(torch.bfloat16) for name, value in weights.items()}
        optimizer = copy.deepcopy(self.optimizer.state_dict())
        if self.o["count_ahead"] == "unstored":
            for entry in optimizer["state"].values():
                entry.pop("step")
        held = {"model": weights, "optimizer": optimizer, "scheduler": self.scheduler.state_dict()}
        held["scheduler"] = {key: value for key, value in held["scheduler"].items()
                             if key != "lr_lambdas"}
        if self.masters:
            held["masters"] = {name: value.detach().clone() for name, value in self.masters.items()}
        if self.scaler:
            held["scaler"] = self.scaler.state_dict()
        if self.o["restart"]:
            held["rng"] = {"torch": torch.get_rng_state()}
            held["sampler"] = {"position": self.position}
        return held

    def stored_step(self, update):
        return update - 1 + self.o["counted_from"]

    def keep(self, out, update):
        """Saves, and says what a reader must find there."""
        kept = {"path": self.save(out, update), "update": update}
        if self.o["counted_from"] != 1:
            kept["stored_step"] = self.stored_step(update)
        return kept

    def save(self, out, update):
        held = self.state()
        if self.o["layout"] == "file":
            name = f"step-{update}.pt"
            torch.save({**held, "step": self.stored_step(update)}, os.path.join(out, name))
            return name
        name = f"step-{update}"
        os.makedirs(os.path.join(out, name), exist_ok=True)
        if self.o["layout"] == "safetensors":
            from safetensors.torch import save_file

            tied = held["model"].get("lm_head.weight")
            if tied is not None and getattr(self.model.config, "tie_word_embeddings", False):
                held["model"].pop("lm_head.weight")
            save_file(held.pop("model"), os.path.join(out, name, "model.safetensors"))
        for part, value in held.items():
            torch.save(value, os.path.join(out, name, part + ".pt"))
        return name

    def load(self, held, o, lose):
        """Takes up a checkpoint, and forgets what `lose` says."""
        weights = held["model"]
        self.model.load_state_dict(weights)
        if self.masters:
            with torch.no_grad():
                for name, value in self.masters.items():
                    kept = weights[name] if "masters" in lose else held["masters"][name]
                    value.copy_(kept.float())
        if "moments" not in lose:
            self.optimizer.load_state_dict(held["optimizer"])
        if "count" in lose:
            for entry in self.optimizer.state.values():
                entry["step"] = torch.zeros_like(entry["step"])
        if "scheduler" not in lose:
            self.scheduler.load_state_dict({**held["scheduler"], "lr_lambdas": [None, None]})
        else:
            self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)
        if "peak" in o.get("change", {}):
            self.scheduler.base_lrs = [o["change"]["peak"]] * len(self.scheduler.base_lrs)
            for group, base in zip(self.optimizer.param_groups, self.scheduler.base_lrs):
                group["lr"] = base * self.factor(self.scheduler.last_epoch)
        if self.scaler and "scaler" not in lose:
            self.scaler.load_state_dict(held["scaler"])
        if "generators" not in lose:
            torch.set_rng_state(held["rng"]["torch"])
        self.position = 0 if "sampler" in lose else held["sampler"]["position"]


def decoupled(optimizer):
    return bool(optimizer.param_groups[0].get("decoupled_weight_decay", False)) or type(
        optimizer).__name__ in ("AdamW", "Lion", "Adafactor")


def train(options, out):
    o = {**DEFAULTS, **options}
    loop = Loop(o)
    kept, rows = [], []
    if 0 in o["keep"]:
        kept.append(loop.keep(out, 0))
    for number in range(1, o["updates"] + 1):
        if o["restart"] and number == o["restart"]["at"] + 1:
            held = copy.deepcopy(loop.state())
            seen = loop.notes.updates
            loop.notes.stop()
            loop = Loop({**o, **o["restart"].get("options", {})})
            loop.load(held, o["restart"], o["restart"].get("lose", ()))
            loop.notes.updates = seen
        rows.append(loop.update(number))
        if number in o["keep"]:
            kept.append(loop.keep(out, number))
    parts.write_rows(os.path.join(out, "log.jsonl"), rows)
    return {
        "architecture": o["architecture"], "dtype": o["dtype"], "kernel": o["kernel"],
        "checkpoints": kept, "log": "log.jsonl", "groups": loop.notes.groups,
        "decay_is_decoupled": decoupled(loop.optimizer),
        "optimizer": type(loop.optimizer).__name__,
        "configured": {key: o[key] for key in (
            "lr", "weight_decay", "clip", "betas", "eps", "total", "accumulate", "schedule")},
        "schedule": "one cycle" if o["schedule"] == "onecycle" else
                    "linear to 0 without a warm-up", "updates": loop.notes.updates,
        "logged_is_of": {"next": "the next update", "used": "this update",
                         "formula": "this update, by the formula"}[o["logged"]],
        **({"idle_after_update_1": [name for name, _ in loop.model.named_parameters()
                                    if any(word in name for word in o["idle"])]}
           if o["idle"] else {})}, loop
