# SPDX-License-Identifier: Apache-2.0
"""What every part of the LR golden file uses: a case, sampled updates, one line of text.

README.md describes the format. No LR is computed here: the numbers come out of the optimizer of a
real library, by a hook that runs right before each step."""

import os
import random
import struct
from dataclasses import dataclass, field

import torch

SEED = 20261121
SAMPLES = 14  # sampled updates per case; the rest of a run is not written


def bits(value):
    """Returns the 16 hex digits of a binary64."""
    return struct.pack(">d", float(value)).hex()


def text(value):
    """Returns an option as text: reals as the shortest decimal that reads back to the same bits."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return repr(value)
    return str(value)


# Where twinstep calls a schedule or a parameter of one differently than its library does.
SCHEDULES = {
    "linear_with_warmup": "linear", "cos_with_warmup": "cosine", "power_lr": "power",
    "half_cos_with_warmup": "half_cosine", "inv_sqrt_with_warmup": "inverse_sqrt",
    "cos_with_warmup_and_linear_decay": "cosine_linear_decay", "WSD": "wsd",
    "WarmupLR": "warmup", "WarmupDecayLR": "warmup_decay", "WarmupCosineLR": "warmup_cosine",
}
VALUES = {
    "alpha_f": "min_lr_ratio", "min_lr_rate": "min_lr_ratio", "min_lr_factor": "min_lr_ratio",
    "cos_min_ratio": "min_lr_ratio", "warmup_lr_rate": "warmup_lr_ratio", "b": "power",
    "num_decay_steps": "decay", "wsd_decay": "decay", "wsd_decay_style": "decay_style",
    "warmup_init_lr": "init_lr", "eta_min": "min_lr",
}


def ours(schedule, options):
    """Returns the same training in twinstep's words."""
    renamed = {}
    for key, value in options.items():
        if key.startswith("value."):
            name = key[len("value."):]
            if name == "min_lr" and schedule in ("cosine_with_min_lr", "cosine_warmup_with_min_lr"):
                name, value = "min_lr_ratio", value / options["lr"]  # as transformers divides
            key = "value." + VALUES.get(name, name)
        renamed[key] = value
    return SCHEDULES.get(schedule, schedule), renamed


@dataclass
class Case:
    contract: str
    schedule: str
    by: str  # what ran: a loop of our own around a library class, or the library's own trainer
    options: dict
    applied: dict = field(default_factory=dict)  # k -> LR in the optimizer when it stepped
    logged: dict = field(default_factory=dict)  # k -> LR that the framework reports for update k
    bends: tuple = ()  # updates that must be among the samples

    def line(self, rng):
        last = max(self.applied)
        ks = sample(rng, last, self.options, self.bends)
        ks = [k for k in ks if k in self.applied and (not self.logged or k in self.logged)]
        schedule, options = ours(self.schedule, self.options)
        words = [self.contract, schedule, "by=" + self.by]
        words += [f"{key}={text(value)}" for key, value in options.items()]
        words.append("k=" + ",".join(map(str, ks)))
        words.append("applied=" + ",".join(bits(self.applied[k]) for k in ks))
        if self.logged:
            words.append("logged=" + ",".join(bits(self.logged[k]) for k in ks))
        return " ".join(words)


def sample(rng, last, options, more=()):
    """Returns the updates where schedules bend, and some at random, in ascending order."""
    if last <= SAMPLES:
        return list(range(1, last + 1))
    total = int(options.get("steps", last))
    warmup = int(float(options.get("warmup", 0)))
    bends = {1, 2, warmup, warmup + 1, warmup + 2, total - 1, total, total + 1, last}
    bends |= set(more)
    bends = {k for k in bends if 1 <= k <= last}
    rest = [k for k in range(1, last + 1) if k not in bends]
    return sorted(bends | set(rng.sample(rest, min(len(rest), max(0, SAMPLES - len(bends))))))


class Optimizer:
    """A real torch optimizer with one parameter, which notes the LR it holds at each of its steps."""

    def __init__(self, lr, kind=torch.optim.SGD):
        self.parameter = torch.nn.Parameter(torch.zeros(1))
        self.parameter.grad = torch.zeros(1)
        self.torch = kind([self.parameter], lr=lr)
        self.applied = {}
        self.torch.register_step_pre_hook(self.capture)

    def capture(self, optimizer, *_):
        self.applied[len(self.applied) + 1] = optimizer.param_groups[0]["lr"]


def random_lr(rng):
    """Draws a round number that people type, or any other."""
    if rng.random() < 0.5:
        return rng.choice([5e-7, 1e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 3e-4, 1e-3, 2.5e-3, 0.1])
    return 10.0 ** rng.uniform(-7, -1)


def random_steps(rng, low=4):
    return rng.choice([rng.randint(low, 12), rng.randint(low, 60), rng.randint(low, 400)])


def random_warmup(rng, steps, allow_total=False):
    most = steps if allow_total else steps - 1
    return rng.choice([0, 0, 1, 2, rng.randint(0, most), rng.randint(0, max(1, steps // 5))]) \
        if most >= 2 else rng.randint(0, most)


def release_of(comment):
    """Returns a sorting key of a release's comment: transformers' version as numbers."""
    return tuple(int(part) for part in comment.split("transformers ")[1].split(",")[0].split("."))


def merge(path, part, versions, cases, seed=SEED):
    """Does what write does, for a part that several environments write in turn, each its release."""
    rng, groups = random.Random(f"{seed} sample {part}"), {}
    if os.path.exists(path):
        with open(path, encoding="ascii") as old:
            for line in old.readlines()[1:]:
                if line.startswith("#"):
                    head = line
                    groups[head] = []
                else:
                    groups[head].append(line)
    head = "# " + ", ".join(f"{n} {v}" for n, v in versions.items()) + "\n"
    groups = {old: lines for old, lines in groups.items() if release_of(old) != release_of(head)}
    groups[head] = [case.line(rng) + "\n" for case in cases]
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.write("# twinstep LR golden 1: " + part + "\n")
        for head in sorted(groups, key=release_of):
            out.write(head)
            out.writelines(groups[head])
    print(f"{path}: {len(cases)} cases of {len(groups)} releases")


def write(path, part, versions, cases, seed=SEED):
    rng = random.Random(f"{seed} sample {part}")
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.write("# twinstep LR golden 1: " + part + "\n")
        out.write("# " + ", ".join(f"{n} {v}" for n, v in versions.items()) + "\n")
        for case in cases:
            out.write(case.line(rng) + "\n")
    print(f"{path}: {len(cases)} cases")
