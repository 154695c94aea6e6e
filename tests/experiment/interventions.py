#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `twinstep run` says of causes against trainings that know nothing of its hybrids.

usage: interventions.py BINARY [--pairs N] [--seed S] [--first I] [--folder F] [--report FILE]

Pairs of configurations are drawn that differ in two to four causes. `run --json` judges each. Then
every set of causes is written as a scenario of its own, in which the keys of the others stand as
they do in the baseline, and is trained as an arm of a fresh pair whose weights are exported. From
these weights alone, read and measured here in f64, come the distances, the shares (over all orders
of entry) and the words of the table in `word_of`. Nothing of the program's experiment or of its
arithmetic is used.

Every pair is drawn from its own stream, so pair I of seed S is the same whatever N is. Thresholds
stand below and were written before any pair was drawn. F keeps a line of JSON for each pair: what
is there is not run again, and --report prints all of it. Exit status 1: a share, a distance or an
end differs that must not, a wrong cause was named, or an exact pair got a word that is not true.
Only the standard library is needed; with h5py the ends of the program's own hybrids are compared
bit for bit, too (their digests)."""
import argparse
import array
import collections
import datetime
import itertools
import json
import math
import operator
import pathlib
import platform
import random
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    h5py = None

# ---- thresholds, of the table of words and of this test ----

ROUNDING = 0.5          # of D: the answer of a run that begins one unit in the last place off
NEARLY = 10.0           # of D: a set of causes that goes farther
LEFT_WIDER = 1.1        # a repair that leaves more widens the gap
SHARE_AGAINST = -0.1
ALONE_LITTLE, LEFT_CLOSED = 0.1, 0.9
ALONE_ENOUGH, LEFT_OPEN = 0.5, 0.9
CAUSE_SHARE, CAUSE_LEFT, CAUSE_OTHER = 0.9, 0.35, 0.1
PLACE_MARGIN = 0.05     # another repair that leaves less by more than this opens the first place
PLACE_TIE = 1e-5        # shares nearer than this, the last digit that is printed, have no order
CLOSE = 1e-12           # of a distance: two orders of summing the same f64 numbers
SLACK = 1e-6            # of D: an interval that misses by less is not wrong to any reader
REPLICATES = 6          # fresh runs of each set of causes where runs are noisy
ERRORS = 3.0            # standard errors of the fresh means that an interval may be missed by

EXACT_WORDS = ("cause", "several", "first-place-open", "oppose", "nearly-cancel", "cancel-exactly",
               "only-together", "each-enough", "no-larger-than-rounding", "equal")
FLAGS = ("oppose", "nearly-cancel", "cancel-exactly", "only-together", "each-enough",
         "no-larger-than-rounding")

# Share of the pairs that each class has, in percent.
CLASSES = (("independent", 30), ("single", 17), ("opposing", 9), ("nearly", 6), ("cancelling", 6),
           ("slots", 3), ("each", 7), ("together", 7), ("rounding", 5), ("nothing", 2),
           ("noisy", 8))
HALVES = '"*: 2"'         # every sum in two parts, so that only its rounding differs
PROBE = "model.layers.0.self_attn.q_norm.weight"  # whose first element starts off (init.nudge)


# ---- what can differ ----

class Pair:
    """Two arms: what is common, and for each cause the keys that differ, as (baseline, test); None
    is a key that the arm does not write."""

    def __init__(self, kind, stream):
        self.kind, self.stream = kind, stream
        self.common, self.causes, self.steps, self.noisy = {}, {}, 3, False

    def arm(self, mask):
        keys = {}
        for i, differences in enumerate(self.causes.values()):
            for key, values in differences.items():
                if values[mask >> i & 1] is not None:
                    keys[key] = values[mask >> i & 1]
        return keys


def base(pair, optimizer=None, task=None):
    """What both arms share; numbers that later draws rest on stay in `pair`."""
    s = pair.stream
    pair.optimizer = optimizer or s.choice(("sgd", "adamw"))
    pair.task = task or s.choice(("dpo", "dpo", "dpo", "sft"))
    pair.steps = s.choice((3, 3, 4))
    pair.lr = {"sgd": s.choice((0.0625, 0.25)),
               "adamw": s.choice((0.00390625, 0.0078125))}[pair.optimizer]
    pair.clip = s.choice(("1e5", "1e5", "0.3"))
    pair.dropout = s.choice((0, 0, 0.05))
    pair.momentum = s.choice((0, 0.9)) if pair.optimizer == "sgd" else None
    pair.common = {
        "seed": 3, "task": pair.task, "data.max_len": 16, "data.seed": s.randrange(100),
        "batch.size": 4, "batch.micro": 2, "model.layers": 1, "model.hidden": 16, "model.heads": 2,
        "model.mlp": 24, "model.vocab": 31, "init.std": 0.1, "init.seed": s.randrange(100),
        "optimizer.name": pair.optimizer, "optimizer.lr": pair.lr, "schedule.name": "constant",
        "schedule.total": 20, "clip.max_norm": pair.clip, "dropout.residual": pair.dropout,
        "dropout.seed": 9, "loss.logged": "mean"}
    if pair.task == "dpo":
        pair.common.update({"dpo.beta": 0.5, "dpo.reference_batch": 2,
                            "dpo.reference_compute": "f32", "dpo.reference_layout": "separate"})
    if pair.momentum:
        pair.common["optimizer.momentum"] = pair.momentum
    pair.ranks = not pair.noisy and s.random() < 0.15
    if pair.ranks:          # two data-parallel ranks, each with two micro-batches of one sample
        pair.common.update({"numerics.shards": 2, "parallel.ranks": 2, "batch.micro": 1,
                            "loop.update": "[reduce, clip, optimize, log, count, schedule, zero]"})


def acting(pair):
    """Differences that move the weights, by cause: a list of forms each, of which one is drawn."""
    lr, sgd = pair.lr, pair.optimizer == "sgd"
    forms = {
        "schedule": [{"optimizer.lr": lr * f} for f in (1.02, 1.3, 2.0, 0.5, 0.1)] +
                    [{"schedule.name": "linear"}, {"schedule.warmup": 2},
                     {"schedule.name": "linear", "loop.update":
                      f"[{'reduce, ' * pair.ranks}count, clip, schedule, optimize, log, zero]"}],
        "optimizer": [{"optimizer.weight_decay": 0.3}, {"clip.max_norm": 0.1}] +
                     ([{"optimizer.momentum": 0.5}, {"optimizer.momentum": 0.95}] if sgd else
                      [{"optimizer.beta1": 0.5}, {"optimizer.eps": "1e-3"},
                       {"optimizer.t": "twice"}, {"optimizer.beta2": 0.9}]),
        "dtype": [{"numerics.compute": "bf16"}, {"numerics.param": "bf16"},
                  {"numerics.gradient": "bf16"}, {"numerics.compute": "f16"}],
        "batch-shape": [{"batch.size": 6}, {"batch.size": 8}],
        "data-order": [{"data.seed": 101}, {"data.shuffle": "false"}, {"data.samples": 12},
                       {"data.max_len": 7}],
        "rng": [{"dropout.residual": 0.2}, {"dropout.attention": 0.1}, {"dropout.embedding": 0.1}] +
               ([{"dropout.seed": 10}] if pair.dropout else []),
        "normalisation": [{"loss.divisor": "sum-of-means"}, {"loss.divisor": "update-and-micros"}],
        "model": [{"model.norm_eps": "1e-2"}, {"model.rope_theta": 10000},
                  {"model.norm_eps": "1e-4"}],
        "resume": [{"resume.after": 2, "resume.restores": "[schedule, optimizer, rng, scaler]"},
                   {"resume.after": 1, "resume.restores": "[schedule, data, rng, scaler]"}],
        "init": [{"init.std": 0.101}, {"init.std": 0.12}, {"init.seed": 101}],
        "backward": [{"numerics.backward.norm": "autograd"},
                     {"numerics.backward.attention": "flash"},
                     {"numerics.backward.cross_entropy": "two-step"}],
        "corruption": [{"fault.update": 2, "fault.phase": "optimize", "fault.op": PROBE,
                        "fault.tensor": "parameter", "fault.element": 1, "fault.bit": bit}
                       for bit in (8, 20, 24)],
    }
    if pair.ranks:          # a batch of six or eight would leave ranks without the samples of four
        del forms["batch-shape"]
        forms["parallelism"] = [{"parallel.sync": "first"}, {"parallel.keeps": "last"}]
    if pair.task == "dpo":
        forms["objective"] = [{"dpo.beta": 0.6}, {"dpo.beta": 0.1}, {"dpo.loss": "hinge"},
                              {"dpo.loss": "ipo"}, {"dpo.loss": "cdpo", "dpo.label_smoothing": 0.2}]
        forms["reference"] = [{"dpo.reference_compute": "bf16"}]
    return forms


def inert(pair):
    """Differences that change no weight."""
    forms = {
        "nondeterminism": [{"numerics.threads": 2}, {"numerics.isa": "base"}],
        "batch-shape": [{"batch.pad": 8}, {"batch.padding": "packed"}],
        "data-order": [{"rng.data": "save a at 1"}],
        "schedule": [{"schedule.total": 77}],
        "resume": [{"resume.after": 2}],
    }
    if pair.ranks:
        forms["parallelism"] = [{"parallel.zero": 2}, {"parallel.ranks": 1}]
        del forms["batch-shape"]
    if pair.dropout:
        forms["rng"] = [{"rng.dropout": "save a at 1"}]
    if pair.clip == "1e5":
        forms["optimizer"] = [{"clip.max_norm": "1e6"}]
    if pair.task == "dpo":
        forms["normalisation"] = [{"loss.divisor": "mean-of-means"}]
        forms["reference"] = [{"dpo.reference_batch": 1}, {"dpo.reference": "live"},
                              {"dpo.reference_layout": "concatenated"}]
    modes = "numerics.mode" in itertools.chain.from_iterable(pair.causes.values())
    if pair.noisy or modes:  # where sums are not ordered by law, shapes and threads change bits
        for cause in ("nondeterminism", "batch-shape", "reference"):
            forms.pop(cause, None)
    return forms


def add(pair, cause, form, may_turn=True):
    turned = may_turn and pair.stream.random() < 0.3
    if all(pair.common.get(key) == value for key, value in form.items()):
        return  # both arms have it already
    pair.causes[cause] = {key: (value, None) if turned else (None, value)
                          for key, value in form.items()}


def add_some(pair, forms, count):
    names = sorted(name for name in forms if name not in pair.causes)
    for name in pair.stream.sample(names, min(count, len(names))):
        add(pair, name, pair.stream.choice(forms[name]))


def how_many(pair):
    return 2 if pair.noisy else pair.stream.choice((2,) * 4 + (3, 3, 4))


def draw_independent(pair):
    base(pair)
    forms = acting(pair)
    if not pair.noisy and pair.stream.random() < 0.2:
        forms["nondeterminism"] = [{"numerics.mode": "shaped", "shaped.table": HALVES},
                                   {"numerics.mode": "deterministic"}]
    add_some(pair, forms, how_many(pair))


def draw_single(pair):
    base(pair)
    forms, s = acting(pair), pair.stream
    name = s.choice(sorted(set(forms) - {"reference"}))
    add(pair, name, s.choice(forms[name]))
    add_some(pair, inert(pair), how_many(pair) - 1)


def add_product(pair, products):
    """SGD without clipping: LR x a, gradient x b, with a b drawn."""
    s = pair.stream
    base(pair, "sgd", "dpo")
    pair.common["clip.max_norm"] = 0
    b = s.choice((2, 4))
    pair.common["batch.micro"] = pair.common["dpo.reference_batch"] = 4 // b
    add(pair, "schedule", {"optimizer.lr": pair.lr * s.choice(products) / b}, False)
    add(pair, "normalisation", {"loss.divisor": "sum-of-means"}, False)
    forms = inert(pair)
    forms.pop("optimizer", None)
    if s.random() < 0.4:
        add_some(pair, forms, 1)


def draw_opposing(pair):
    if pair.stream.random() < 0.3:
        base(pair, "adamw")
        add(pair, "optimizer", {"optimizer.t": "twice"}, False)
        ratio = pair.stream.choice((1.2, 1.4, 1.7))
        add(pair, "schedule", {"optimizer.lr": pair.lr * ratio}, False)
        if pair.stream.random() < 0.4:
            add_some(pair, inert(pair), 1)
        return
    add_product(pair, (0.5, 0.7, 0.8, 1.15, 1.3, 1.5))


def draw_nearly(pair):
    add_product(pair, (0.95, 0.97, 0.99, 0.999, 1.00001, 1.001, 1.01, 1.05))


def draw_cancelling(pair):
    add_product(pair, (1,))


def draw_slots(pair):
    """AdamW without epsilon makes the same steps of gradients that are all doubled."""
    base(pair, "adamw", "dpo")
    pair.common.update({"optimizer.eps": "1e-30", "clip.max_norm": 0})
    add(pair, "normalisation", {"loss.divisor": "sum-of-means"})
    forms = inert(pair)
    forms.pop("optimizer", None)
    add_some(pair, forms, pair.stream.choice((1, 2)))


def draw_stops(pair, back):
    """Causes of which each stops the training; `back`: they stand in the baseline."""
    s = pair.stream
    base(pair, None, "dpo")
    stops = {"schedule": {"optimizer.lr": 0}, "objective": {"dpo.beta": 0}}
    if pair.optimizer == "sgd" and s.random() < 0.4:
        stops["optimizer"] = {"clip.max_norm": "1e-30"}
    for name, form in stops.items():
        pair.causes[name] = {key: (value, None) if back else (None, value)
                             for key, value in form.items()}
    if s.random() < 0.4:
        add_some(pair, inert(pair), 1)


def draw_each(pair):
    s = pair.stream
    if s.random() < 0.35:  # either takes the gradient far above the bound that clips it
        base(pair, "sgd", "dpo")
        pair.common["clip.max_norm"] = 0.6
        pair.common["dpo.beta"] = 0.05
        add(pair, "normalisation", {"loss.divisor": "sum-of-means"}, False)
        pair.common["batch.micro"] = pair.common["dpo.reference_batch"] = 1
        add(pair, "objective", {"dpo.beta": s.choice((0.25, 0.4))}, False)
        return
    draw_stops(pair, False)


def draw_together(pair):
    draw_stops(pair, True)


def draw_rounding(pair):
    s = pair.stream
    base(pair)
    pair.steps = s.choice((4, 8))
    forms = {"nondeterminism": [{"numerics.mode": "shaped", "shaped.table": HALVES}],
             "schedule": [{"optimizer.lr": repr(pair.lr * (1 + 1.5e-7))}],
             "model": [{"model.norm_eps": "1.0000002e-6"}],
             "optimizer": [{"optimizer.variant": "torch-cpu"}]}
    if pair.optimizer == "adamw":
        forms["normalisation"] = [{"loss.divisor": "sum-of-means"}]
    add_some(pair, forms, s.choice((2, 2, 3)))


def draw_nothing(pair):
    base(pair)
    add_some(pair, inert(pair), how_many(pair))


DRAWS = {"independent": draw_independent, "single": draw_single, "opposing": draw_opposing,
         "nearly": draw_nearly, "cancelling": draw_cancelling, "slots": draw_slots,
         "each": draw_each, "together": draw_together, "rounding": draw_rounding,
         "nothing": draw_nothing}


def draw(seed, index, attempt):
    stream = random.Random(f"{seed}:{index}:{attempt}")
    place, kind = stream.random() * sum(weight for _, weight in CLASSES), None
    for name, weight in CLASSES:
        kind = kind or (name if place < weight else None)
        place -= weight
    pair = Pair(kind, stream)
    if kind == "noisy":
        pair.noisy = True
        kind = stream.choice(("independent", "independent", "single", "opposing", "each",
                              "together"))
        pair.kind = "noisy " + kind
    DRAWS[kind](pair)
    if pair.noisy:  # the order of sums is a third cause; a fourth would take a minute
        pair.causes = dict(list(pair.causes.items())[:2])
        pair.steps = 3
        pair.common.update({"numerics.mode": "shuffled", "numerics.order_seed": "free",
                            "shuffle.chunk": 2})
    return pair


# ---- scenarios and runs ----

def text_of(value):
    return str(value) if not isinstance(value, float) else repr(value)


def flow(keys, backwards=False):
    """Keys with dots as nested maps of YAML's flow form."""
    tree = {}
    for key in sorted(keys, reverse=backwards):
        section, _, name = key.partition(".")
        if name:
            tree.setdefault(section, {})[name] = keys[key]
        else:
            tree[section] = keys[key]
    return "{" + ", ".join(
        f"{name}: " + (flow(value, backwards) if isinstance(value, dict) else text_of(value))
        for name, value in tree.items()) + "}"


class Runner:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        folder.mkdir(parents=True, exist_ok=True)
        stream = random.Random(1)

        def ids(count):
            return [stream.randrange(3, 31) for _ in range(count)]

        with open(folder / "pairs.jsonl", "w", encoding="utf-8") as file:
            for _ in range(24):
                file.write(json.dumps({"prompt_ids": ids(3),
                                       "chosen_ids": ids(stream.randrange(2, 7)),
                                       "rejected_ids": ids(stream.randrange(2, 7))}) + "\n")
        with open(folder / "text.jsonl", "w", encoding="utf-8") as file:
            for _ in range(24):
                file.write(json.dumps({"prompt_ids": ids(3),
                                       "completion_ids": ids(stream.randrange(2, 9))}) + "\n")

    def run(self, common, arms, steps, judged=False, backwards=False):
        """Trains two arms; returns the verdict, the weights of both, and the trace's path. Where
        no verdict is wanted, nothing is trained for it that can be left out."""
        common = dict(common)
        common["data.pairs" if common["task"] == "dpo" else "data.text"] = \
            "pairs.jsonl" if common["task"] == "dpo" else "text.jsonl"
        names = list(arms)
        text = (f"twinstep: 1\nname: pair\nsteps: {steps}\n"
                + ("record: {phases: false, readback: false, tensors: "
                   f"{'true' if exact(common, arms) else 'false'}}}\n" if judged else
                   "record: {tensors: false, phases: false, readback: false}\n"
                   "attribution: {twin: false, replicates: 0}\n"
                   "floor: {design: baseline, replicates: 1}\n") +
                f"common: {flow(common, backwards)}\narms:\n" +
                "".join(f"  {name}: {flow(arms[name], backwards)}\n" for name in names))
        path, trace = self.folder / "pair.yaml", self.folder / "pair.h5"
        path.write_text(text, encoding="utf-8")
        shutil.rmtree(self.folder / "models", ignore_errors=True)
        done = subprocess.run(
            [str(self.binary), "run", str(path), "--json", "--quiet", "--overwrite", "-o",
             str(trace), f"--save-model={self.folder / 'models'}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
        if done.returncode not in (0, 1, 3) or not done.stdout.strip():
            raise Refused(done.stderr.strip(), text)
        return json.loads(done.stdout), [
            weights(self.folder / "models" / name / "model.safetensors") for name in names], trace


def exact(common, arms):
    return "shuffled" not in [common.get("numerics.mode")] + [
        arm.get("numerics.mode") for arm in arms.values()]


class Refused(Exception):
    """The program refused a scenario: its message and the scenario."""


def weights(path):
    """All numbers of a safetensors file by tensor, in the order of names, as f64."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, out = json.loads(raw[8:8 + size]), {}
    for name in sorted(set(header) - {"__metadata__"}):
        begin, end = header[name]["data_offsets"]
        part, dtype = raw[8 + size + begin:8 + size + end], header[name]["dtype"]
        if dtype == "BF16":  # the upper half of an f32
            part = b"".join(b"\0\0" + part[i:i + 2] for i in range(0, len(part), 2))
        code = {"BF16": "f", "F32": "f", "F64": "d", "F16": "e"}[dtype]
        if code == "e":
            out[name] = list(struct.unpack(f"<{len(part) // 2}e", part))
        else:
            values = array.array(code)
            values.frombytes(part)
            out[name] = values.tolist()
    return out


def flat(named):
    return list(itertools.chain.from_iterable(named.values()))


def bits(values):
    """Numbers as bytes, which compare equal where the numbers are the same NaN, too."""
    return array.array("d", values).tobytes()


def minus(a, b):
    return list(map(operator.sub, a, b))


def dot(a, b):
    return math.fsum(map(operator.mul, a, b))


def norm(a):
    return math.hypot(*a)


# ---- truth from fresh runs ----

def shapley(count, worth):
    share = [0.0] * count
    orders = list(itertools.permutations(range(count)))
    for order in orders:
        mask = 0
        for cause in order:
            share[cause] += (worth[mask | 1 << cause] - worth[mask]) / len(orders)
            mask |= 1 << cause
    return share


def word_of(truth):
    """The table of words, first row that matches; `truth` has figures by cause."""
    share, left, alone = truth["share"], truth["left"], truth["alone"]
    causes = range(len(alone))
    if not math.isfinite(truth["distance"]):
        return "none"
    if truth["noise"] is not None and truth["distance"] <= ERRORS * truth["noise"]:
        return "inside-floor"
    if truth["distance"] == 0:
        return "cancel-exactly" if truth["moved"] else "equal"
    if truth["response"] is not None and truth["response"] >= ROUNDING * truth["distance"]:
        return "no-larger-than-rounding"
    if truth["largest"] > NEARLY * truth["distance"]:
        return "nearly-cancel"
    if any(left[c] > LEFT_WIDER or share[c] < SHARE_AGAINST for c in causes):
        return "oppose"
    if all(alone[c] < ALONE_LITTLE for c in causes) and any(left[c] < LEFT_CLOSED for c in causes):
        return "only-together"
    if sum(alone[c] >= ALONE_ENOUGH and left[c] >= LEFT_OPEN for c in causes) >= 2:
        return "each-enough"
    first = max(causes, key=lambda c: abs(share[c]))
    if (share[first] >= CAUSE_SHARE and left[first] <= CAUSE_LEFT and
            all(share[c] < CAUSE_OTHER for c in causes if c != first)):
        return "cause"
    if any(left[c] < left[first] - PLACE_MARGIN or share[c] >= share[first] - PLACE_TIE
           for c in causes if c != first):
        return "first-place-open"
    return "several"


def until(keys, steps):
    """An arm's keys for a shorter training: a restart that lies behind it is left out."""
    late = keys.get("resume.after", 0) >= steps
    return {key: value for key, value in keys.items() if not (late and key.startswith("resume."))}


def exact_truth(runner, pair, masks, ends_of_run):
    """Trains each set of causes; masks[i] are the causes of factor i. Returns figures and ends."""
    count = len(masks)
    ends, digests = {}, {}

    def arm(which):
        return pair.arm(sum(mask for i, mask in enumerate(masks) if which >> i & 1))

    for which in range(0, 1 << count, 2):
        verdict, found, trace = runner.run(
            pair.common, {"baseline": arm(which), "test": arm(which | 1)}, pair.steps)
        ends[which], ends[which | 1] = map(flat, found)
        digests[which], digests[which | 1] = last_digests(trace)
        shapes = found[0]
    full = (1 << count) - 1
    if [bits(ends[0]), bits(ends[full])] != list(map(bits, ends_of_run)):
        raise SystemExit("the arms of a fresh pair are not those of the run that was judged")
    moved = {which: minus(ends[which], ends[0]) for which in ends}
    truth = figures(count, {w: dot(moved[w], moved[full]) for w in moved},
                    {w: norm(moved[w]) for w in moved})
    nudged = dict(arm(0))
    nudged["init.nudge"] = PROBE
    _, found, _ = runner.run(pair.common, {"baseline": arm(0), "test": nudged}, pair.steps)
    apart = {name: minus(found[1][name], found[0][name]) for name in shapes}
    apart[PROBE] = apart[PROBE][1:]
    truth["response"] = norm(flat(apart))
    truth["moved"] = any(truth["sizes"])
    for steps in range(1, pair.steps if not truth["moved"] else 0):  # on the way, if not at the end
        for which in range(0, 1 << count, 2):
            arms = {"baseline": until(arm(which), steps), "test": until(arm(which | 1), steps)}
            _, found, _ = runner.run(pair.common, arms, steps)
            if which == 0:
                start = found[0]
            truth["moved"] |= found[0] != start or found[1] != start
    return truth, digests


def figures(count, worth, size):
    full = (1 << count) - 1
    distance = size[full]
    share = shapley(count, worth)
    return {"distance": distance, "noise": None, "sizes": [size[w] for w in range(full + 1)],
            "largest": max(size.values()), "response": None, "moved": None,
            "share": [s / distance ** 2 if distance > 0 else None for s in share],
            "left": [size[full & ~(1 << c)] / distance if distance > 0 else None
                     for c in range(count)],
            "alone": [size[1 << c] / distance if distance > 0 else None for c in range(count)]}


def last_digests(trace):
    """The digest of weights and slots after the last update of both arms; without h5py None."""
    if h5py is None:
        return None, None
    with h5py.File(trace, "r") as file:
        return tuple(file[f"arms/{arm}/steps/digest_weights"][-1].tobytes()
                     for arm in ("baseline", "test"))


def hybrid_digests(trace, factors):
    """Of each hybrid that the program trained, by its set of factors in the order of `factors`."""
    out = {}
    if h5py is None:
        return out
    with h5py.File(trace, "r") as file:
        attributes = file["attribution"].attrs
        place = [factors.index(attributes[f"factor_{i}"].decode()) for i in range(len(factors))]
        for name, run in file["runs"].items():
            if not name.startswith("hybrid-"):
                continue
            mask = int(run.attrs["mask"])
            out[sum(1 << place[i] for i in range(len(factors)) if mask >> i & 1)] = \
                run["steps/digest_weights"][-1].tobytes()
    return out


def noisy_truth(runner, pair, masks):
    """Figures of mean end points. Run r of every set has order r, and only products of different
    orders are taken, so that noise adds nothing on average. Standard errors: jackknife over r.
    A factor without keys (each arm draws its own orders) changes no mean."""
    count = len(masks)
    full = (1 << count) - 1
    ends = collections.defaultdict(list)
    common = dict(pair.common)
    for order in range(1, REPLICATES + 1):
        common["numerics.order_seed"] = order
        for causes in range(0, 1 << len(pair.causes), 2):
            arms = {"baseline": pair.arm(causes), "test": pair.arm(causes | 1)}
            _, found, _ = runner.run(common, arms, pair.steps)
            for i in range(2):
                ends[causes | i].append(flat(found[i]))
    apart = {causes: [minus(ends[causes][r], ends[0][r]) for r in range(REPLICATES)]
             for causes in ends}
    gap = {w: apart[sum(mask for i, mask in enumerate(masks) if w >> i & 1)]
           for w in range(full + 1)}
    product = {(w, v): [[dot(gap[w][r], gap[v][q]) for q in range(REPLICATES)]
                        for r in range(REPLICATES)]
               for w in range(full + 1) for v in {w, full}}

    def mean(w, v, keep):
        of = [product[w, v][r][q] for r in keep for q in keep if r != q]
        return math.fsum(of) / len(of)

    def at(keep):
        return figures(count, {w: mean(w, full, keep) for w in range(full + 1)},
                       {w: math.sqrt(max(0.0, mean(w, w, keep))) for w in range(full + 1)})

    truth = at(range(REPLICATES))
    without = [at([r for r in range(REPLICATES) if r != out]) for out in range(REPLICATES)]

    def error(parts):
        if None in parts:
            return None
        middle = math.fsum(parts) / len(parts)
        squares = math.fsum((p - middle) ** 2 for p in parts)
        return math.sqrt((len(parts) - 1) / len(parts) * squares)

    truth["noise"] = error([w["distance"] for w in without])
    truth["error"] = {name: [error([w[name][c] for w in without]) for c in range(count)]
                      for name in ("share", "left", "alone")}
    return truth


# ---- one pair ----

def printed_word(verdict):
    """What the headline says of causes."""
    if verdict["verdict"] == "outside-floor":
        return verdict["word"]
    if verdict["verdict"] in ("identical", "same-training", "same-weights"):
        return "cancel-exactly" if verdict["word"] == "cancel-exactly" else "equal"
    return verdict["verdict"]


def compare_exact(verdict, truth, factors, digests, own):
    """The worst difference of a figure, over D or as a share, and what must not differ but does."""
    wrong, worst, distance = [], 0.0, truth["distance"]
    for cause in verdict["causes"]:
        c = factors.index(cause["cause"])
        for name, slack in (("left", CLOSE), ("alone", CLOSE), ("share", None)):
            fresh, said = truth[name][c], cause[name]
            if (fresh is None) != (said is None):
                wrong.append(f"{name} of {cause['cause']} is {said}, fresh {fresh}")
                continue
            if fresh is None:
                continue
            scale = max(1.0, truth["largest"] / distance)
            bound = (slack or CLOSE) * (scale if slack else scale ** 2)
            worst = max(worst, abs(fresh - said) / (scale if slack else scale ** 2))
            if abs(fresh - said) > bound:
                wrong.append(f"{name} of {cause['cause']} is {said!r}, fresh {fresh!r}")
    for which, digest in own.items():
        if digests.get(which) != digest:
            wrong.append(f"the end of hybrid {which:b} is not that of its fresh run")
    return worst, wrong


def compare_noisy(verdict, truth, factors):
    """Intervals that hold the fresh means, of how many, and the others."""
    held, total, out = 0, 0, []
    for cause in verdict["causes"]:
        c = factors.index(cause["cause"])
        for name, low, high in (("share", "low", "high"), ("left", "left_low", "left_high"),
                                ("alone", "alone_low", "alone_high")):
            fresh, error = truth[name][c], truth["error"][name][c]
            if fresh is None or error is None or cause[name] is None:
                continue
            total += 1
            slack = ERRORS * error + SLACK
            fits = cause[low] - slack <= fresh <= cause[high] + slack
            held += fits
            if not fits:
                out.append(f"{name} of {cause['cause']}: {cause[low]:.6g} to {cause[high]:.6g}, "
                           f"fresh {fresh:.6g} +- {error:.2g}")
    return held, total, out


def shares_of(verdict):
    return {cause["cause"]: cause["share"] for cause in verdict["causes"]}


def turned_shares(runner, pair, which, verdict, truth):
    """The same pair with its arms exchanged, its keys and arms in other words and order, or a key
    more that does nothing: shares that changed."""
    whole = (1 << len(pair.causes)) - 1
    arms, backwards, extra = {"baseline": pair.arm(0), "test": pair.arm(whole)}, False, {}
    if which == "exchanged":
        arms = {"baseline": arms["test"], "test": arms["baseline"]}
    elif which == "renamed":
        arms, backwards = {"zeta": arms["baseline"], "alpha": arms["test"]}, True
    else:
        for name, forms in inert(pair).items():
            if name not in pair.causes:
                extra = {name: forms[0]}
                arms["test"].update(forms[0])
                break
    again, _, _ = runner.run(pair.common, arms, pair.steps, True, backwards)
    before, after = shares_of(verdict), shares_of(again)
    if not extra and set(before) != set(after):
        return [f"{which}: causes {sorted(before)} became {sorted(after)}"]
    scale = max(1.0, truth["largest"] / truth["distance"]) ** 2
    return [f"{which}: share of {cause} {before.get(cause, 0.0)!r} became {after.get(cause)!r}"
            for cause in set(before) | set(extra)
            if abs(before.get(cause, 0.0) - after.get(cause, math.nan)) > CLOSE * scale or
            cause not in after]


def prove(runner, seed, index):
    """Draws until the program takes a pair, and judges it."""
    refused = []
    for attempt in range(20):
        pair = draw(seed, index, attempt)
        whole = (1 << len(pair.causes)) - 1
        try:
            verdict, ends, trace = runner.run(
                pair.common, {"baseline": pair.arm(0), "test": pair.arm(whole)}, pair.steps, True)
            break
        except Refused as error:
            refused.append(error.args[0])
    else:
        raise SystemExit(f"pair {index}: refused 20 times: {refused[-1]}")
    names = list(pair.causes)
    factors = verdict["differs"]
    joined = [factor.split("+") for factor in factors]
    entry = {"index": index, "kind": pair.kind, "refused": refused, "steps": pair.steps,
             "causes": pair.causes, "common": pair.common, "factors": factors,
             "verdict": verdict["verdict"], "printed": printed_word(verdict), "wrong": []}
    if set(itertools.chain.from_iterable(joined)) - {"nondeterminism" if pair.noisy else ""} != \
            set(names):
        entry["wrong"].append(f"arms were drawn to differ in {names}, the program says {factors}")
        entry["truth"] = None
        return entry
    masks = [sum(1 << names.index(part) for part in parts if part in names) for parts in joined]
    if pair.noisy:
        truth = noisy_truth(runner, pair, masks)
        held, total, out = compare_noisy(verdict, truth, factors)
        entry.update({"held": held, "intervals": total, "out": out})
        truth["moved"] = True
    else:
        own = hybrid_digests(trace, factors) if trace.exists() else {}
        truth, digests = exact_truth(runner, pair, masks, list(map(flat, ends)))
        worst, wrong = compare_exact(verdict, truth, factors, digests, own)
        entry.update({"worst": worst, "ends": len(own)})
        entry["wrong"] += wrong
        if truth["distance"] > 0:
            entry["turned"] = ("exchanged", "renamed", "inert")[index % 3]
            entry["wrong"] += turned_shares(runner, pair, entry["turned"], verdict, truth)
    entry["truth"] = {key: truth[key] for key in ("distance", "noise", "sizes", "share", "left",
                                                  "alone", "response", "moved")}
    entry["said"] = {cause["cause"]: [cause["share"], cause["left"], cause["alone"]]
                     for cause in verdict["causes"]}
    entry["word"] = word_of(truth)
    if entry["word"] in ("cause", "several"):
        first = max(range(len(factors)), key=lambda c: abs(truth["share"][c]))
        entry["first"] = factors[first]
    if entry["printed"] in ("cause", "several"):
        entry["named"] = verdict["causes"][0]["cause"]
    if entry["printed"] == "cause":
        left = truth["left"]
        entry["best"] = (left[factors.index(entry["named"])] <= min(left) + 1e-9
                         if truth["distance"] > 0 else False)
    return entry


# ---- report ----

def right(entry):
    return (entry["truth"] is not None and entry["word"] == entry["printed"] and
            entry.get("first") == entry.get("named"))


def percent(hits, total):
    return f"{hits} of {total}" + (f", {100.0 * hits / total:.1f} %" if total else "")


def matrix(entries):
    words = [w for w in EXACT_WORDS + ("inside-floor", "untestable", "none")
             if any(w in (e["word"], e["printed"]) for e in entries)]
    rows = ["| truth \\ printed | " + " | ".join(words) + " | right |",
            "|---|" + "---|" * (len(words) + 1)]
    for truth in words:
        of = [e for e in entries if e["word"] == truth]
        if of:
            counts = [sum(e["printed"] == w for e in of) for w in words]
            rows.append(f"| **{truth}** | " + " | ".join(str(c or "") for c in counts) +
                        f" | {percent(sum(map(right, of)), len(of))} |")
    return rows


def causes_in_words(entry):
    return "; ".join(f"{cause} " + ", ".join(f"{key} {a if a is not None else '-'} -> "
                                             f"{b if b is not None else '-'}"
                                             for key, (a, b) in keys.items())
                     for cause, keys in entry["causes"].items())


def number(value):
    return "-" if value is None else f"{value:.4g}"


def report(entries, out):
    judged = [e for e in entries if e["truth"] is not None]
    exact = [e for e in judged if not e["kind"].startswith("noisy")]
    noisy = [e for e in judged if e["kind"].startswith("noisy")]
    named = [e for e in judged if e["printed"] == "cause"]
    single = [e for e in judged if e["word"] == "cause"]
    plain = [e for e in judged if e["word"] in ("cause", "several", "first-place-open")]
    closed = [e for e in judged if e["word"] != "first-place-open"]
    flags = sum(e["printed"] in FLAGS for e in plain)
    print(f"{len(entries)} pairs, {len(exact)} exact, {len(noisy)} noisy; "
          f"{sum(len(e['refused']) for e in entries)} draws that the program refused were drawn "
          "again\n", file=out)
    for title, of in (("Exact", exact), ("Noisy", noisy)):
        if of:
            print(f"{title}:\n\n" + "\n".join(matrix(of)) + "\n", file=out)
    lines = [
        ("wrong \"Cause: X\" (X is not the best fresh repair)",
         percent(sum(not e["best"] for e in named), len(named))),
        ("single truths that are named", percent(sum(map(right, single)), len(single))),
        ("false flags, of pairs whose truth is cause, several or first-place-open",
         percent(flags, len(plain))),
        ("first-place-open printed, of all pairs",
         percent(sum(e["printed"] == "first-place-open" for e in judged), len(judged))),
        ("first-place-open printed where it is not true, of those pairs",
         percent(sum(e["printed"] == "first-place-open" for e in closed), len(closed))),
        ("worst error of a figure of exact pairs, over the largest displacement",
         f"{max((e['worst'] for e in exact), default=0.0):.1e}"),
        ("ends of hybrids compared bit for bit with fresh runs",
         str(sum(e["ends"] for e in exact))),
        ("pairs with a figure, an end or a share that differs",
         str(sum(bool(e["wrong"]) for e in entries))),
        ("intervals that hold the fresh means, noisy",
         percent(sum(e["held"] for e in noisy), sum(e["intervals"] for e in noisy)))]
    for which in ("exchanged", "renamed", "inert"):
        of = [e for e in exact if e.get("turned") == which]
        changed = sum(any(w.startswith(which) for w in e["wrong"]) for e in of)
        lines.append((f"pairs in which \"{which}\" changes a share", percent(changed, len(of))))
    print("| figure | |\n|---|---|", file=out)
    for what, value in lines:
        print(f"| {what} | {value} |", file=out)
    print("\nClasses drawn, and the words that are true of them:\n\n| class | pairs | words |\n"
          "|---|---|---|", file=out)
    for kind in sorted({e["kind"] for e in judged}):
        of = collections.Counter(e["word"] for e in judged if e["kind"] == kind)
        print(f"| {kind} | {sum(of.values())} | " +
              ", ".join(f"{w} {n}" for w, n in of.most_common()) + " |", file=out)
    print("\nEvery pair that missed:\n", file=out)
    for e in entries:
        if e["wrong"] or not right(e):
            print(f"* {e['index']} ({e['kind']}): {causes_in_words(e)}. " +
                  (f"Truth {e['word']} {e.get('first', '')}, printed {e['printed']} "
                   f"{e.get('named', '')}; D {e['truth']['distance']:.3g}, response "
                   f"{number(e['truth']['response'])}; " +
                   "; ".join(f"{f} share {number(e['truth']['share'][c])} left "
                             f"{number(e['truth']['left'][c])} alone "
                             f"{number(e['truth']['alone'][c])}"
                             for c, f in enumerate(e["factors"])) if e["truth"] else "") +
                  "".join(f". {w}" for w in e["wrong"]), file=out)
    return (not any(e["wrong"] for e in entries) and all(e["best"] for e in named) and
            all(map(right, exact)))


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or pathlib.Path(scratch)
        runner = Runner(given.binary.resolve(), folder)
        kept = folder / f"results-{given.seed}.jsonl"
        lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
        entries = {entry["index"]: entry for entry in map(json.loads, lines)}
        for index in range(given.first, given.first + given.pairs):
            if index in entries:
                continue
            entries[index] = json.loads(json.dumps(prove(runner, given.seed, index)))
            with open(kept, "a", encoding="utf-8") as file:
                file.write(json.dumps(entries[index]) + "\n")
        wanted = [entries[i] for i in range(given.first, given.first + given.pairs)]
        out = open(given.report, "w", encoding="utf-8") if given.report else sys.stdout
        print(f"Seed {given.seed}, {datetime.date.today()}, {processor()}\n", file=out)
        good = report(wanted, out)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
