#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `twinstep run` says of causes against arithmetic that is done before the program is asked.

    headlines.py BINARY

Steps here are so small that the gradient of every update is that at the first weights, to first order. From
it and these weights alone (two plain trainings give both, in binary64) the rules below train every set of
causes on their own: torch's SGD and AdamW, clipping, decay, warm-up, a restart. Sentence, order and figures
follow by the table of interventions.py. Nothing of the program's hybrids is used. Exit status 1: another
sentence, another first cause, or a figure that is off by more than first order allows."""
import argparse
import ctypes
import math
import pathlib
import struct
import sys
import tempfile

from interventions import Runner, dot, figures, flat, minus, norm, word_of

PROBE = 2.0 ** -30  # the LR by which a gradient is read off: weights of binary64 keep 22 bits of it
SGD, ADAM = 2.0 ** -20, 1e-7  # LRs: weights of about 0.1 move by some millionths
COARSE = 2.0 ** -6            # of noisy pairs, whose weights are binary32: far above their rounding
FIRST_ORDER = 2e-3            # of the figure or of 1: chosen; the largest that came is printed at the end
COMMON = {"seed": 3, "data.max_len": 16, "data.seed": 5, "batch.size": 4, "batch.micro": 2, "model.layers": 1,
          "model.hidden": 16, "model.heads": 2, "model.mlp": 24, "model.vocab": 31, "init.std": 0.1,
          "init.seed": 8, "schedule.name": "constant", "schedule.total": 20, "clip.max_norm": 0}
WIDE = {"numerics.param": "f64", "numerics.compute": "f64", "numerics.rope": "f64"}
SHUFFLED = {"numerics.mode": "shuffled", "numerics.order_seed": "free", "shuffle.chunk": 2}
ATOMIC = {"numerics.mode": "atomic"}


def lr(factor, base=SGD):
    """The schedule's cause: the keys of the test arm, and what they change in `trained`."""
    return {"optimizer.lr": base * factor}, {"lr": base * factor}


DOUBLED = {"loss.divisor": "sum-of-means"}, {"factor": 2.0}
HALVED = {"loss.divisor": "update-and-micros"}, {"factor": 0.5}
OTHER_DATA = {"data.seed": 11}, {"gradient": {"data.seed": 11}}


def key(name, value, **change):
    return {name: value}, change


def pairs(size):
    """What is common but for COMMON, updates, and the causes; `size` is the norm of the first gradient."""
    sgd, adam = {"optimizer.name": "sgd", "optimizer.lr": SGD}, {"optimizer.name": "adamw", "optimizer.lr": ADAM}
    coarse = {**sgd, "optimizer.lr": COARSE}

    def clip(share):
        return key("clip.max_norm", share * size, clip=share * size)

    idle = {"nondeterminism": key("numerics.threads", 2), "batch-shape": key("batch.pad", 4),
            "reference": key("dpo.reference", "live"), "normalisation": key("loss.divisor", "mean-of-means")}
    warm = {"schedule.name": "linear", "schedule.warmup": 2, "schedule.total": 1000000000}
    forgets = {"resume.after": 2, "resume.restores": "[schedule, data, rng, scaler]"}
    return [
        ("SGD: LR / 3, gradient x 2", sgd, 1, {"schedule": lr(1 / 3), "normalisation": DOUBLED}),
        ("AdamW: LR x 1.2, two counts an update", adam, 1,
         {"schedule": lr(1.2, ADAM), "optimizer": key("optimizer.t", "twice", counts=2)}),
        ("SGD, momentum 0.9: LR x 1.5, momentum lost after 2 of 4", {**sgd, "optimizer.momentum": 0.9}, 4,
         {"schedule": lr(1.5), "resume": (forgets, {"forgets": 2})}),
        ("SGD: LR x 1.6, clipped to 0.7 of the norm", sgd, 1, {"schedule": lr(1.6), "optimizer": clip(0.7)}),
        ("AdamW: LR x 0.8, beta1 0.5", adam, 4,
         {"schedule": lr(0.8, ADAM), "optimizer": key("optimizer.beta1", 0.5, beta1=0.5)}),
        ("AdamW without epsilon: LR x 1.3, gradient x 2", {**adam, "optimizer.eps": "1e-30"}, 3,
         {"schedule": lr(1.3, ADAM), "normalisation": DOUBLED}),
        ("SGD: LR x 2, clipped to half of the norm", sgd, 1, {"schedule": lr(2), "optimizer": clip(0.5)}),
        ("SGD: LR x 2, gradient / 2", sgd, 3, {"schedule": lr(2), "normalisation": HALVED}),
        ("the same with decay 0.02 in both arms", {**sgd, "optimizer.weight_decay": 0.02}, 3,
         {"schedule": lr(2), "normalisation": HALVED}),
        ("SGD: LR x 1.05, other data", sgd, 2, {"schedule": lr(1.05), "data-order": OTHER_DATA}),
        ("SGD, both arms clipped to 0.2 of the norm: LR x 1.1, gradient x 2",
         {**sgd, "clip.max_norm": 0.2 * size}, 2, {"schedule": lr(1.1), "normalisation": DOUBLED}),
        ("SGD: LR x 1.01, bf16", sgd, 1,
         {"schedule": lr(1.01), "dtype+reference": key("numerics.compute", "bf16",
                                                       gradient={"numerics.compute": "bf16"})}),
        ("AdamW: warm-up of 2, beta2 0.9", adam, 3,
         {"schedule": (warm, {"warm": 2}), "optimizer": key("optimizer.beta2", 0.9, beta2=0.9)}),
        ("AdamW: decay 0.1, other data", adam, 3,
         {"optimizer": key("optimizer.weight_decay", 0.1, decay=0.1), "data-order": OTHER_DATA}),
        ("SGD: LR x 0.9, other data, gradient x 2", sgd, 2,
         {"schedule": lr(0.9), "data-order": OTHER_DATA, "normalisation": DOUBLED}),
        ("SGD from LR 0 and beta 0", {**sgd, "optimizer.lr": 0, "dpo.beta": 0}, 2,
         {"schedule": lr(1), "objective": key("dpo.beta", 0.5, factor=1.0)}),
        ("SGD to LR 0 and beta 0", sgd, 2,
         {"schedule": lr(0), "objective": key("dpo.beta", 0, factor=0.0)}),
        ("SGD, SFT: LR x 1.02, mean of means", {**sgd, "task": "sft"}, 2,
         {"schedule": lr(1.02), "normalisation": key("loss.divisor", "mean-of-means",
                                                     gradient={"loss.divisor": "mean-of-means"})}),
        ("SGD: LR x 1.5, decay 0.05, and four causes that do nothing", sgd, 1,
         {"schedule": lr(1.5), "optimizer": key("optimizer.weight_decay", 0.05, decay=0.05), **idle}),
        ("shuffled, SGD: LR / 3, gradient x 2", {**coarse, **SHUFFLED}, 1,
         {"schedule": lr(1 / 3, COARSE), "normalisation": DOUBLED}),
        ("shuffled, SGD: LR x 1.05, other data", {**coarse, **SHUFFLED, "optimizer.lr": COARSE / 16}, 2,
         {"schedule": lr(1.05, COARSE / 16), "data-order": OTHER_DATA}),
        ("atomic, SGD: LR x 1.6, clipped to 0.7 of the norm", {**coarse, **ATOMIC}, 1,
         {"schedule": lr(1.6, COARSE), "optimizer": clip(0.7)}),
        ("shuffled, SGD: a bound of clipping that nothing reaches", {**coarse, **SHUFFLED}, 1,
         {"optimizer": key("clip.max_norm", "1e6")}),
        ("SGD: LR x 4, gradient x 2", sgd, 1, {"schedule": lr(4), "normalisation": DOUBLED}),
        ("SGD: LR / 2, gradient / 2", sgd, 1, {"schedule": lr(1 / 2), "normalisation": HALVED}),
        ("SGD: LR x 2, gradient x 2", sgd, 1, {"schedule": lr(2), "normalisation": DOUBLED}),
        ("SGD: LR x 1.1, gradient / 2", sgd, 1, {"schedule": lr(1.1), "normalisation": HALVED}),
        ("SGD: LR x 0.96, gradient x 2", sgd, 1, {"schedule": lr(0.96), "normalisation": DOUBLED}),
        ("SGD: LR x 0.95, gradient x 2", sgd, 1, {"schedule": lr(0.95), "normalisation": DOUBLED}),
        ("SGD, momentum 0.9: LR x 2, gradient / 2", {**sgd, "optimizer.momentum": 0.9}, 3,
         {"schedule": lr(2), "normalisation": HALVED}),
        ("SGD from LR 0, gradient x 2", {**sgd, "optimizer.lr": 0}, 1,
         {"schedule": lr(1), "normalisation": DOUBLED}),
        ("SGD to LR 0, gradient x 2", sgd, 1, {"schedule": lr(0), "normalisation": DOUBLED}),
        ("SGD to beta 0, clipped to 0.4 of the norm", sgd, 1,
         {"objective": key("dpo.beta", 0, factor=0.0), "optimizer": clip(0.4)}),
        ("SGD: LR x 2, a bound that nothing reaches, two threads", sgd, 2,
         {"schedule": lr(2), "optimizer": key("clip.max_norm", "1e6"), "nondeterminism": idle["nondeterminism"]}),
        ("SGD: LR x 4, gradient x 2, two threads, padding", sgd, 1,
         {"schedule": lr(4), "normalisation": DOUBLED, "nondeterminism": idle["nondeterminism"],
          "batch-shape": idle["batch-shape"]}),
        ("AdamW without epsilon: two counts an update, gradient x 2", {**adam, "optimizer.eps": "1e-30"}, 2,
         {"optimizer": key("optimizer.t", "twice", counts=2), "normalisation": DOUBLED}),
        ("AdamW: LR x 0.5, decay 0.1", adam, 3,
         {"schedule": lr(0.5, ADAM), "optimizer": key("optimizer.weight_decay", 0.1, decay=0.1)}),
        ("AdamW: beta1 0.5, moments lost after 2 of 4", adam, 4,
         {"optimizer": key("optimizer.beta1", 0.5, beta1=0.5), "resume": (forgets, {"forgets": 2})}),
        ("SGD, momentum 0.9: LR x 1.7, momentum 0.5", {**sgd, "optimizer.momentum": 0.9}, 3,
         {"schedule": lr(1.7), "optimizer": key("optimizer.momentum", 0.5, momentum=0.5)}),
        ("SGD: LR x 2, gradient / 2, other data, decay 0.02", sgd, 2,
         {"schedule": lr(2), "normalisation": HALVED, "data-order": OTHER_DATA,
          "optimizer": key("optimizer.weight_decay", 0.02, decay=0.02)}),
        ("SGD: LR x 2, weights of bf16", sgd, 1,
         {"schedule": lr(2), "dtype": key("numerics.param", "bf16", coarse=True)}),
        ("shuffled, SGD: LR x 4, gradient x 2", {**coarse, **SHUFFLED}, 1,
         {"schedule": lr(4, COARSE), "normalisation": DOUBLED}),
        ("atomic, SGD to LR 0, gradient x 2", {**coarse, **ATOMIC}, 1,
         {"schedule": lr(0, COARSE), "normalisation": DOUBLED}),
        ("shuffled, SGD: LR x 2, gradient / 2", {**coarse, **SHUFFLED}, 1,
         {"schedule": lr(2, COARSE), "normalisation": HALVED}),
        ("atomic, SGD: LR x 2, gradient / 2", {**coarse, **ATOMIC}, 1,
         {"schedule": lr(2, COARSE), "normalisation": HALVED}),
        ("shuffled, SGD, momentum 0.9: LR / 2, gradient x 2, a bound that nothing reaches",
         {**coarse, **SHUFFLED, "optimizer.momentum": 0.9, "optimizer.lr": COARSE / 16}, 3,
         {"schedule": lr(1 / 2, COARSE / 16), "normalisation": DOUBLED,
          "optimizer": key("clip.max_norm", "1e6")}),
    ]


# ---- arithmetic ----

class Gradients:
    """Gradients at the first weights, of each update, by the keys that change them."""

    def __init__(self, runner):
        self.runner, self.known = runner, {}

    def at(self, keys, updates):
        name = (tuple(sorted(keys.items())), updates)
        if name not in self.known:
            common = {**COMMON, **WIDE, **keys, "optimizer.name": "sgd"}
            ends = []
            for count in range(1, updates + 1):
                arms = {"baseline": {"optimizer.lr": 0}, "test": {"optimizer.lr": PROBE}}
                _, found, _ = self.runner.run(common, arms, count)
                ends = ends or [flat(found[0])]
                ends.append(flat(found[1]))
            self.known[name] = ends[0], [[d / PROBE for d in minus(a, b)] for a, b in zip(ends, ends[1:])]
        return self.known[name]


def to_binary32(value):
    return ctypes.c_float(value).value


def to_bf16(value):
    """To nearest, ties to even, by way of binary32, where second roundings are too rare to matter here."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16))[0]


def trained(weights, gradients, p):
    """The last weights. Coefficients of clipping are rounded to binary32, as torch's are."""
    if p.get("coarse"):
        return [to_bf16(w) for w in trained([to_bf16(w) for w in weights], gradients, {**p, "coarse": False})]
    first, second, counted, is_new = [0.0] * len(weights), [0.0] * len(weights), 0, True
    for update, gradient in enumerate(gradients):
        if p.get("forgets") == update:
            first, second, counted, is_new = [0.0] * len(weights), [0.0] * len(weights), 0, True
        gradient = [g * p.get("factor", 1.0) for g in gradient]
        if p.get("clip"):
            scale = to_binary32(min(1.0, p["clip"] / (norm(gradient) + 1e-6)))
            gradient = [g * scale for g in gradient]
        rate = p["lr"] * (min(1.0, update / p["warm"]) if p.get("warm") else 1.0)
        decay = p.get("decay", 0.0)
        if p["name"] == "sgd":
            step = [g + decay * w for g, w in zip(gradient, weights)]
            first = step if is_new else [p.get("momentum", 0.0) * m + s for m, s in zip(first, step)]
            is_new = False
            weights = [w - rate * m for w, m in zip(weights, first)]
            continue
        beta1, beta2 = p.get("beta1", 0.9), p.get("beta2", 0.999)
        counted += p.get("counts", 1)
        first = [beta1 * m + (1 - beta1) * g for m, g in zip(first, gradient)]
        second = [beta2 * v + (1 - beta2) * g * g for v, g in zip(second, gradient)]
        one, two = 1 - beta1 ** counted, 1 - beta2 ** counted
        weights = [w * (1 - rate * decay) - rate * (m / one) / (math.sqrt(v / two) + p["eps"])
                   for w, m, v in zip(weights, first, second)]
    return weights


def expected(gradients, common, updates, causes):
    """Sentence, first cause and figures by cause, from arithmetic alone."""
    base = {"name": common["optimizer.name"], "lr": common["optimizer.lr"],
            "momentum": common.get("optimizer.momentum", 0.0), "decay": common.get("optimizer.weight_decay", 0.0),
            "eps": float(common.get("optimizer.eps", 1e-8)), "clip": common["clip.max_norm"],
            "factor": 0.0 if common.get("dpo.beta") == 0 else 1.0}
    task = {"task": common["task"], **({"dpo.beta": 0.5} if common["task"] == "dpo" else {})}
    ends = {}
    for which in range(1 << len(causes)):
        rules, keys = dict(base), dict(task)
        for i, (_, change) in enumerate(causes.values()):
            if which >> i & 1:
                keys.update(change.get("gradient", {}))
                rules.update(change)
        ends[which] = trained(*gradients.at(keys, updates), rules)
    moved = {which: minus(end, ends[0]) for which, end in ends.items()}
    truth = figures(len(causes), {w: dot(moved[w], moved[len(moved) - 1]) for w in moved},
                    {w: norm(moved[w]) for w in moved})
    truth["moved"] = truth["largest"] > 0
    shares = dict(zip(causes, truth["share"]))
    first = max(causes, key=lambda c: abs(shares[c])) if truth["distance"] > 0 else None
    lengths = truth["sizes"]
    return word_of(truth), first, {c: {name: truth[name][i] for name in ("share", "left", "alone")}
                                   for i, c in enumerate(causes)}, \
        {c: {"alone": lengths[1 << i], "without": lengths[len(lengths) - 1 & ~(1 << i)]}
         for i, c in enumerate(causes)}


# ---- what the program says ----

def compare_lengths(verdict, lengths):
    """The same where noisy arms lie inside the floor, which has no shares: how far mixtures of causes go."""
    wrong, farthest, of = [], 0.0, verdict["mixtures"]
    if verdict["verdict"] != "inside-floor":
        wrong.append(f"the verdict is {verdict['verdict']}, expected inside-floor")
    said = {cause["cause"]: cause for cause in of["causes"]} if of else {}
    for cause, wanted in lengths.items():
        for name, value in wanted.items():
            came = said.get(cause, {}).get(name)
            noise = of["arms_at_most"] if of else 0.0
            off = math.inf if came is None else max(0.0, abs(came["size"] - value) - noise) / (value or 1.0)
            farthest = max(farthest, off)
            if off > FIRST_ORDER or came["beyond"] != (value > 0):
                wrong.append(f"{name} of {cause} is {came}, expected {value:.6g}")
    return wrong, farthest


def compare(verdict, word, first, causes):
    """What is not as expected, and how far the farthest figure is off."""
    said = {cause["cause"]: cause for cause in verdict["causes"]}
    printed = "equal" if verdict["verdict"] == "inside-floor" and verdict["word"] == "none" else verdict["word"]
    wrong = [] if printed == word else [f"the sentence is {printed}, expected {word}"]
    if word in ("cause", "several", "oppose") and verdict["causes"] and verdict["causes"][0]["cause"] != first:
        wrong.append(f"first is {verdict['causes'][0]['cause']}, expected {first}")
    farthest = 0.0
    for cause, wanted in causes.items():
        if word in ("equal", "cancel-exactly"):
            break  # nothing to divide by
        for name, value in wanted.items():
            came = said.get(cause, {}).get(name)
            off = math.inf if came is None else abs(came - value) / max(1.0, abs(value))
            farthest = max(farthest, off)
            if off > FIRST_ORDER:
                wrong.append(f"{name} of {cause} is {came}, expected {value:.6g}")
    return wrong, farthest


def in_words(causes):
    return "; ".join(f"{cause} " + ", ".join("-" if value is None else f"{100 * value:.4g} %"
                                             for value in of.values()) for cause, of in causes.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("binary", type=pathlib.Path)
    given = parser.parse_args()
    hits, every, farthest = 0, 0, 0.0
    with tempfile.TemporaryDirectory(prefix="twinstep-headlines-") as folder:
        runner = Runner(given.binary.resolve(), pathlib.Path(folder))
        gradients = Gradients(runner)
        size = norm(gradients.at({"task": "dpo", "dpo.beta": 0.5}, 1)[1][0])
        print("| pair | expected: sentence; cause: share, left, alone | came |\n|---|---|---|")
        for title, common, updates, causes in pairs(size):
            common = {**COMMON, "task": "dpo", **common}
            if common["task"] == "dpo":
                common.setdefault("dpo.beta", 0.5)
            word, first, wanted, lengths = expected(gradients, common, updates, causes)
            noisy = "numerics.mode" in common
            if not noisy:
                common = {**common, **WIDE}
            test = {name: value for keys, _ in causes.values() for name, value in keys.items()}
            verdict, _, _ = runner.run(common, {"baseline": {}, "test": test}, updates, judged=True)
            hidden = noisy and word == "cancel-exactly"  # repeats of noisy arms cannot say "exactly"
            word = "nearly-cancel" if hidden else word
            wrong, off = compare(verdict, word, first, {} if hidden else wanted)
            if hidden:
                more, off = compare_lengths(verdict, lengths)
                wrong += more
            print(f"| {title} | {word}; {in_words(wanted)} | {'; '.join(wrong) or 'as expected'} |", flush=True)
            hits, every, farthest = hits + (not wrong), every + 1, max(farthest, off)
    print(f"\n{hits} of {every}; the farthest figure is off by {farthest:.1e} of itself or of 1")
    return 0 if hits == every else 1


if __name__ == "__main__":
    sys.exit(main())
