#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `lr fit` about healthy logs in which nothing was skipped, and counts answers that claim skips;
or `lr check` or `compare` about healthy logs, and counts false alarms.

    healthy_logs.py --binary TWINSTEP [--count N] [--seed S] [--jobs J] [--keep FOLDER] [--show]
                    [--odd-floor | --cut-decay] [--check | --pairs [--skips]]

Draws trainings of transformers' Trainer, Accelerate, DeepSpeed and Megatron whose schedules move at
every update, prints the LRs with 3, 4, 6 or 16 digits every 1 to 100 updates, from the start or from
the middle of the run, and asks without a hint. The formulas are those of the frameworks' sources (named
below) and nothing here is shared with the program.

With --odd-floor all are lines of Megatron that fall to an odd LR, and their total is told. With
--cut-decay all are Megatron's WSD, by a cosine, an exponential or 1 - sqrt, and end in the decay,
above their floor; the total is not told.

    clean       no skipped update in the first answer, and the training that was drawn is it or is
                listed among the fits
    other       no skipped update in the first answer, and the training is not listed
    nothing     no answer
    claimed     the first answer needs skipped updates, exit status 3
    wrong       it does, and the exit status is 0

With --check `lr check` is asked instead, of the contract that wrote the log and in half of the logs with its
total or its peak: pass, undecided, or fail (a false one: every log is healthy).

With --pairs each training is written a second time, with other digits and at other updates, as another
tool does, and `compare` is asked of both logs: equal, undecided, or differs (a false one). With --skips
a loss scaler skipped up to six updates of it, at which the schedulers of these trainers stand still; nothing
but the LRs of both logs shows that."""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

PEAKS = ["1", "2", "3", "5", "1.5", "2.5", "4", "6", "8", "1.2"]
KINDS = {
    "hf": ["linear", "cosine", "cosine_with_restarts", "constant_with_warmup", "polynomial",
           "inverse_sqrt", "cosine_with_min_lr", "warmup_stable_decay"],
    "accelerate": ["linear", "cosine", "cosine_with_restarts", "constant_with_warmup"],
    "deepspeed": ["warmup", "warmup_decay", "warmup_cosine"],
    "megatron": ["linear", "cosine", "constant", "inverse-square-root", "wsd"],
}


def hf(t, u):
    """transformers/optimization.py, the lambdas of get_*_schedule*; u is the scheduler's counter, in
    which warm-up and total are counted, too."""
    w, total, kind = t["w"], t["t"], t["kind"]
    if u < w and kind != "warmup_stable_decay":
        return u / max(1, w)
    p = (u - w) / max(1, total - w)
    if kind == "linear":
        return max(0.0, (total - u) / max(1, total - w))
    if kind == "cosine":
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * p)))
    if kind == "cosine_with_min_lr":
        return max(0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * p)) * (1 - t["floor"]) + t["floor"])
    if kind == "cosine_with_restarts":
        return 0.0 if p >= 1.0 else max(0.0, 0.5 * (1.0 + math.cos(math.pi * ((t["cycles"] * p) % 1.0))))
    if kind == "constant_with_warmup":
        return 1.0
    if kind == "polynomial":
        end = 1e-7
        if u > total:
            return end / t["peak"]
        return ((t["peak"] - end) * (1 - (u - w) / (total - w)) + end) / t["peak"]
    if kind == "inverse_sqrt":
        scale = w or 10000
        return 1.0 / math.sqrt((u + scale - w) / scale)
    decay, stable = t["decay"], total - w - t["decay"]
    if u < w:
        return u / max(1, w) * (1 - t["floor"]) + t["floor"]
    if u < w + stable:
        return 1.0
    if u < w + stable + decay:
        q = (u - w - stable) / max(1, decay)
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * q)) * (1 - t["floor"]) + t["floor"])
    return t["floor"]


def deepspeed(t, u):
    """deepspeed/runtime/lr_schedules.py: WarmupLR, WarmupDecayLR, WarmupCosineLR with their default
    logarithmic warm-up; u is last_batch_iteration, -1 before the first step of the scheduler."""
    w, total = max(2, t["w"]), t["t"]
    if u < 0:
        return 0.0
    rise = math.log(u + 1) / math.log(w)
    if t["kind"] == "warmup":
        return rise if u < w else 1.0
    if t["kind"] == "warmup_decay":
        return rise if u < w else max(0.0, (total - u) / max(1.0, total - w))
    if u < w:
        return rise
    share = (u - w + 1) / (total - w)
    return max(0.0, 0.0001 + (1 - 0.0001) * (1 + math.cos(math.pi * share)) / 2)


def megatron(t, u):
    """megatron/core/optimizer_param_scheduler.py, get_lr; u counts samples in units of an update."""
    w, total, floor, kind = t["w"], t["t"], t["floor"], t["kind"]
    if w > 0 and u <= w:
        return u / w
    if kind == "constant":
        return 1.0
    if u > total:
        return floor
    if kind == "inverse-square-root":
        # in samples: warm-up and counter are multiples of the batch
        return max(floor, math.sqrt(max(1, w * t["batch"])) / math.sqrt(max(1, u * t["batch"])))
    p = (u - w) / (total - w)
    if kind == "linear":
        return floor + (1 - p) * (1 - floor)
    if kind == "cosine":
        return floor + 0.5 * (math.cos(math.pi * p) + 1) * (1 - floor)
    start = total - t["decay"]
    if u <= start:
        return 1.0
    done = (u - start) / t["decay"]
    left = {"exponential": 2.0 * 0.5 ** done - 1.0, "cosine": 0.5 * (math.cos(math.pi * done) + 1),
            "minus_sqrt": 1.0 - math.sqrt(done)}[t["style"]]
    return floor + left * (1 - floor)


def draw(rng):
    family = rng.choice(list(KINDS))
    total = rng.randint(150, 6000)
    if rng.random() < 0.6:
        total -= total % rng.choice([50, 100])
        total = max(total, 100)
    share = rng.choice([0, 0, 0.01, 0.03, 0.05, 0.06, 0.1, 0.2])
    warmup = math.ceil(share * total) if rng.random() < 0.6 else rng.choice([0, 10, 20, 50, 100, 200, 500])
    warmup = min(warmup, total // 2)
    if family == "deepspeed":
        warmup = max(warmup, 2)
    t = dict(family=family, kind=rng.choice(KINDS[family]), t=total, w=warmup, batch=rng.choice([8, 64, 512]),
             floor=rng.choice([0.0, 0.1, 0.1, 0.01, 0.05]), cycles=rng.choice([2, 3, 4]),
             decay=max(1, int(rng.choice([0.1, 0.2]) * total)), processes=rng.choice([1, 2, 4, 8]),
             peak=float(f"{rng.choice(PEAKS)}e-{rng.randint(3, 6)}"), style="exponential")
    if t["kind"] == "inverse-square-root" and t["w"] == 0:
        t["w"] = 10
    if t["kind"] in ("cosine_with_min_lr",) and t["floor"] == 0.0:
        t["floor"] = 0.1
    if t["kind"] == "warmup_stable_decay":
        t["floor"] = 0.0
    # Which release wrote it: since 4.52 transformers logs the LR that was used, before the next one.
    t["next"] = rng.random() < 0.4 if family == "hf" else True
    every = rng.choice([1, 2, 5, 10, 20, 25, 50, 100])
    while total // every < 8:
        every = rng.choice([1, 2, 5, 10])
    t["every"] = every
    first = rng.choice([1, every, every])
    if rng.random() < 0.35:
        first = every * rng.randint(max(1, total // every // 4), max(1, total // every // 2))
    t["first"] = first
    least = max(first + 6 * every, total // 2)
    t["last"] = min(total, total if rng.random() < 0.7 else rng.randint(least, max(total, least)))
    t["digits"] = rng.choice([3, 4, 6, 16])
    t["told"] = rng.random() < 0.5
    t["skips"] = []
    return t


def draw_skips(rng, t):
    """Updates that a loss scaler skips: the first ones, some anywhere, or several in a row."""
    kind = rng.choice(["first", "scattered", "burst"])
    count = rng.randint(1, 6)
    if kind == "scattered":
        return sorted(rng.sample(range(1, t["t"] + 1), min(count, t["t"])))
    start = 1 if kind == "first" else rng.randint(1, t["t"])
    return list(range(start, start + count))


def rows_of(t):
    rows = []
    for k in range(t["first"], t["last"] + 1, t["every"]):
        n = k if t["next"] else k - 1
        n -= sum(1 for skip in t["skips"] if skip <= n)
        if t["family"] == "megatron":
            share = megatron(t, n)
        elif t["family"] == "deepspeed":
            share = deepspeed(t, n - 1)
        elif t["family"] == "accelerate":  # the counter, the warm-up and the total are all P times as large
            share = hf(dict(t, w=t["w"] * t["processes"], t=t["t"] * t["processes"]), n * t["processes"])
        else:
            share = hf(t, n)
        rows.append((k, t["peak"] * share))
    return rows


def write(t, rows, folder, number):
    """16 digits of transformers are a trainer_state.json, which says the total; the rest is CSV. The
    releases that log the next LR round the loss to 4 decimals (trainer.py, _maybe_log_save_evaluate)."""
    path = pathlib.Path(folder) / f"log-{number}"
    if t["digits"] == 16 and t["family"] == "hf":
        state = {"best_metric": None, "epoch": 1.0, "global_step": rows[-1][0], "max_steps": t["t"],
                 "log_history": [{"epoch": round(k / t["t"], 4), "learning_rate": lr,
                                  "loss": round(2.0 + 1.0 / k, 4) if t["next"] else 2.0 + 1.0 / k, "step": k}
                                 for k, lr in rows]}
        path = path.with_suffix(".json")
        path.write_text(json.dumps(state, indent=2))
        return path, True
    path = path.with_suffix(".csv")
    lines = ["step,loss,lr"]
    for k, lr in rows:
        text = repr(lr) if t["digits"] == 16 else f"{lr:.{t['digits'] - 1}e}"
        lines.append(f"{k},{2.0 + 1.0 / k:.4f},{text}")
    path.write_text("\n".join(lines) + "\n")
    return path, False


NAMES = {
    "hf": {"hf", "hf-4.50", "hf-4.51", "trl", "trl-4.50"},
    "accelerate": {"accelerate", "accelerate-split-batches", "hf-4.50", "deepspeed-torch"},
    "deepspeed": {"deepspeed-warmup", "deepspeed-cosine"},
    "megatron": {"megatron", "megatron-bridge"},
}
SAME = {"constant_with_warmup": "constant", "cosine_with_min_lr": "cosine"}


def bare(name):
    name = name.split(".")[-1]
    return SAME.get(name, name)


def is_truth(fit, t):
    """The training's contract, schedule and peak, and its warm-up and total as far as they are shown."""
    if fit["contract"] not in NAMES[t["family"]] or bare(fit["schedule"]) != bare(t["kind"]):
        return False
    if fit["skipped"] is not None or len(fit["segments"]) != 1 or fit["segments"][0]["shift"] != 0:
        return False
    if not fit["steps_hidden"] and fit["steps"] is not None and fit["steps"] != t["t"]:
        return False
    low, high = (fit["unseen"]["lr_least"], fit["unseen"]["lr_most"]) if fit["unseen"] else (fit["lr"], fit["lr"])
    return fit["warmup_hidden"] or low * (1 - 1e-3) <= t["peak"] <= high * (1 + 1e-3)


def claims(fit):
    return bool(fit["skipped"]) or any(s["event"] == "skip" for s in fit["segments"])


def check(binary, t, path, number):
    """Asks `lr check` about the contract that wrote the log; which numbers are told depends on the draw alone."""
    expect = {"accelerate": "accelerate", "megatron": "megatron"}.get(t["family"])
    if t["family"] == "hf":
        expect = "hf-4.50" if t["next"] else "hf"
    if t["family"] == "deepspeed":
        expect = "deepspeed-cosine" if t["kind"] == "warmup_cosine" else "deepspeed-warmup"
    command = [binary, "lr", "check", str(path), "--expect", expect]
    if t["family"] == "accelerate":
        command += ["--processes", str(t["processes"])]
    command += ["--steps", str(t["t"])] if t["told"] else []
    command += ["--lr", repr(t["peak"])] if number % 3 == 0 else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return number, t, "timeout", "", "", 0
    verdict = {0: "pass", 1: "fail", 3: "undecided"}.get(done.returncode, "error")
    said = [line for line in done.stdout.splitlines() if line.startswith(("pass", "FAIL", "undecided", "needs"))]
    return number, t, verdict, " | ".join(said), " ".join(command), done.returncode


def pair(binary, t, path, folder, number, rng):
    """Asks `compare` about two logs of one training."""
    again = dict(t, digits=rng.choice([3, 4, 6, 16]), every=t["every"] * rng.choice([1, 2, 3, 5]))
    other, _ = write(again, rows_of(again), folder, f"{number}-again")
    command = [binary, "compare", str(path), str(other)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return number, t, "timeout", "", "", 0
    verdict = {0: "equal", 1: "differs", 3: "undecided"}.get(done.returncode, "error")
    said = (done.stdout or done.stderr).splitlines()[:1]
    return number, t, verdict, " | ".join(said), " ".join(command), done.returncode


def one(work):
    binary, seed, number, folder, odd, cut, checks, pairs, skips = work
    rng = random.Random(f"{seed}/{number}")
    t = draw(rng)
    if odd:
        t.update(family="megatron", kind="linear", next=True, told=True)
        t["floor"] = float(f"{t['peak'] * rng.uniform(0.02, 0.5):.{rng.choice([1, 2])}e}") / t["peak"]
    if cut:
        t.update(family="megatron", kind="wsd", next=True, told=False,
                 style=rng.choice(["exponential", "cosine", "minus_sqrt"]),
                 decay=max(10, int(rng.choice([0.1, 0.2, rng.uniform(0.05, 0.4)]) * t["t"])))
        if rng.random() < 0.5:
            t["floor"] = float(f"{rng.uniform(0.01, 0.6):.{rng.choice([1, 2])}g}")
        t["last"] = t["t"] - int(rng.uniform(0.02, 0.7) * t["decay"])
        t["w"] = min(t["w"], t["t"] - t["decay"])
    if skips:
        t["skips"] = draw_skips(rng, t)
    path, says_total = write(t, rows_of(t), folder, number)
    if checks:
        return check(binary, t, path, number)
    if pairs:
        return pair(binary, t, path, folder, number, rng)
    command = [binary, "lr", "fit", str(path), "--json", "--all"]
    if t["told"] and not says_total:
        command += ["--steps", str(t["t"])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return number, t, "timeout", "", "", 0
    if done.returncode not in (0, 1, 3):
        return number, t, "error", done.stderr, " ".join(command), done.returncode
    answer = json.loads(done.stdout)
    fits = answer["fits"]
    first = fits[0]["text"] if fits else "nothing fits"
    if not fits:
        verdict = "nothing"
    elif claims(fits[0]):
        verdict = "wrong" if done.returncode == 0 else "claimed"
    else:
        verdict = "clean" if any(is_truth(fit, t) for fit in fits) else "other"
    return number, t, verdict, first, " ".join(command), done.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--show", action="store_true", help="print every log that is not clean")
    columns = parser.add_mutually_exclusive_group()
    columns.add_argument("--odd-floor", action="store_true",
                         help="Megatron's line alone, to an LR of two or three digits, and with its total")
    columns.add_argument("--cut-decay", action="store_true",
                         help="Megatron's WSD alone, to a row of its decay, and without its total")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--check", action="store_true", help="ask `lr check` of the contract that wrote the log")
    asked.add_argument("--pairs", action="store_true", help="ask `compare` of two logs of each training")
    parser.add_argument("--skips", action="store_true", help="with --pairs: a loss scaler skipped updates")
    given = parser.parse_args()
    if given.skips and not given.pairs:
        parser.error("--skips goes with --pairs")
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or scratch
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        works = [(given.binary, given.seed, n, folder, given.odd_floor, given.cut_decay,
                  given.check, given.pairs, given.skips) for n in range(given.count)]
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            for number, t, verdict, first, command, status in pool.map(one, works):
                counts[verdict] += 1
                counts[f"{verdict}, status {status}"] += 1
                if given.show and verdict not in ("clean", "pass", "equal"):
                    print(f"{number}: {verdict}, status {status}: {t}\n    {first}\n    {command}")
                    sys.stdout.flush()
    print(", ".join(f"{counts[k]} {k}" for k in sorted(counts)))
    return 1 if sum(counts[k] for k in ("claimed", "wrong", "error", "fail", "differs")) > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
