#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `lr fit` on logs with skipped updates against a brute-force search in another language.

    skip_matrix.py --binary TWINSTEP [--count N] [--seed S] [--jobs J] [--first N] [--only N]
                   [--keep FOLDER] [--show]

Draws trainings (contract, schedule, peak, warm-up, total, skipped updates, rows), prints their logs
as the frameworks do, and lists with numpy every hypothesis that reproduces each printed LR, with the
fewest skipped updates that it needs. The oracle knows the schedules' formulas from their own sources
(named below) and shares no code with the program.

The right answer is the simplest set: the hypotheses with the fewest skipped updates. Where these are
one training (peak, warm-up, total, decay and the ranges in which the skipped updates lie), the log is
decidable, and the program must name it first. Otherwise the first answer must be one of them.

    right       the first fit is the oracle's only simplest one, and the exit status is 0
    undecided   it is, but the exit status is 3
    wrong       anything else
    late        every skipped update is the first one, nothing else in the log tells of it, and a scheduler
                that is one update late (the bug `lag1`) prints the same rows: the skip is the first answer,
                the late scheduler is named beside it, and the exit status is 3; "late: not the set" where
                one of both, or that status, is missing
    open        the oracle has several: "same set" where `lr fit --all` lists every one of them, or a
                family that holds it, and nothing else that the oracle looks at and that needs no more
                skipped updates; "more than the set" where it lists others beside; "named" where some
                are missing and the first answer is one of them; "other" where it is none; "stopped" where
                a constant behind a warm-up is also that of a scheduler that is not stepped any more,
                and the exit status is 3

The exit status is 1 where one log is wrong, where fewer than 98 % of the decidable ones are right, or
where more than 1 % of the open ones list another set than the oracle's."""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

SKIPS = ["none", "first", "first few", "warm-up", "middle", "scattered", "late", "burst"]
SCHEDULES = ["linear", "cosine", "constant_with_warmup", "wsd"]
CONTRACTS = ["hf", "hf-4.50", "hf", "hf-4.50", "accelerate", "deepspeed-torch", "megatron",
             "nemo-rl-megatron", "hf-x-processes", "hf-4.51", "accelerate-split-batches",
             "open-instruct-tune-cache", "megatron-bridge", "deepspeed-warmup", "deepspeed-cosine"]
# Contracts whose row has seen its own update, as it shows the LR of the next one.
NEXT = {"hf-4.50", "accelerate", "deepspeed-torch", "megatron", "hf-x-processes", "megatron-bridge",
        "accelerate-split-batches", "open-instruct-tune-cache", "deepspeed-warmup", "deepspeed-cosine"}
# DeepSpeed's own schedules are one counter behind; before their first call the LR is 0.
BEHIND = {"deepspeed-warmup", "deepspeed-cosine"}
KINDS = {"deepspeed-warmup": ["ds_linear", "ds_log"], "deepspeed-cosine": ["ds_cosine", "ds_cosine_log"],
         "megatron": ["linear", "cosine", "constant_with_warmup", "megatron_wsd"]}
KINDS["megatron-bridge"] = KINDS["nemo-rl-megatron"] = KINDS["megatron"]
EVERY = [1, 5, 10, 25, 100]


def schedule(kind, u, warmup, total, decay):
    """The share of the peak at counters u (an array), as transformers/optimization.py has it
    (get_linear_schedule_with_warmup, get_cosine_.., get_constant_.., get_wsd_schedule with decay_type
    cosine). Megatron's (core/optimizer_param_scheduler.py) have the same values up to rounding."""
    u = np.asarray(u, float)
    if kind.startswith("ds_"):
        return deepspeed_schedule(kind, u, warmup, total)
    rise = u / max(1.0, warmup)
    if kind == "megatron_wsd":
        # core/optimizer_param_scheduler.py: WSD with the exponential style, its default
        start = total - decay
        fall = np.where(u <= start, 1.0, 2.0 * 0.5 ** ((u - start) / max(1.0, decay)) - 1.0)
        return np.where(u < warmup, rise, np.where(u > total, 0.0, fall))
    if kind == "constant_with_warmup":
        return np.where(u < warmup, rise, 1.0)
    if kind == "linear":
        fall = np.maximum(0.0, (total - u) / max(1.0, total - warmup))
    elif kind == "cosine":
        fall = np.maximum(0.0, 0.5 * (1.0 + np.cos(np.pi * ((u - warmup) / max(1.0, total - warmup)))))
    else:
        stable = total - warmup - decay
        progress = (u - warmup - stable) / max(1.0, decay)
        fall = np.where(u < warmup + stable, 1.0,
                        np.where(u < total, np.maximum(0.0, 0.5 * (1.0 + np.cos(np.pi * progress))), 0.0))
    return np.where(u < warmup, rise, fall)


def deepspeed_schedule(kind, u, warmup, total):
    """deepspeed/runtime/lr_schedules.py, WarmupDecayLR and WarmupCosineLR (cos_min_ratio 0.0001), which
    warm up over at least two counters; 0 before the first call."""
    w = max(2.0, warmup)
    i = np.maximum(u, 0.0)
    rise = np.log(i + 1.0) / math.log(w) if kind.endswith("_log") or kind == "ds_log" else i / w
    if kind.startswith("ds_cosine"):
        share = np.minimum((i - w + 1.0) / (total - w), 1.0)
        fall = 0.0001 + (1.0 - 0.0001) * (1.0 + np.cos(np.pi * share)) / 2.0
    else:
        fall = np.maximum(0.0, (total - i) / max(1.0, total - w))
    return np.where(u < 0, 0.0, np.where(i < w, rise, fall))


def typed(x, digits=2):
    return float(f"{x:.{digits - 1}e}")


def draw(rng):
    contract = rng.choice(CONTRACTS)
    total = rng.randint(200, 5000)
    if rng.random() < 0.5:
        total -= total % 100
    kind = rng.choice(KINDS.get(contract, SCHEDULES))
    share = rng.choice([0, 0, 0.03, 0.05, 0.06, 0.1, 0.2])
    warmup = math.ceil(share * total) if rng.random() < 0.6 else rng.choice([0, 10, 20, 50, 100, 150, 200, 500])
    warmup = min(warmup, total // 2)
    if contract in BEHIND:
        warmup = max(warmup, 2)
    every = rng.choice(EVERY)
    while total // every < 12:
        every = rng.choice(EVERY)
    peak = float(f"{rng.choice(['1', '2', '3', '5', '1.5', '2.5', '4', '6', '8', '1.2'])}e-{rng.randint(3, 7)}")
    if rng.random() < 0.2:  # as a rule of the batch size or a search of numbers gives it
        peak = rng.uniform(1.0, 10.0) * 10.0 ** -rng.randint(4, 6)
        if rng.random() < 0.5:
            peak = typed(peak, 4)
    pattern = rng.choice(SKIPS)
    end = total
    few = rng.randint(2, 6)
    skipped = {
        "none": [],
        "first": [1],
        "first few": list(range(1, few + 1)),
        "warm-up": rng.sample(range(1, max(3, warmup) + 1), min(2, max(3, warmup))),
        "middle": [rng.randint(total // 3, 2 * total // 3)],
        "scattered": rng.sample(range(1, total), few),
        "late": [rng.randint(9 * total // 10, total)],
        "burst": list(range(total // 2, total // 2 + rng.randint(3, 12))),
    }[pattern]
    return dict(contract=contract, kind=kind, peak=peak, warmup=warmup, total=total, every=every,
                skipped=sorted(skipped), pattern=pattern, end=end,
                decay=int(rng.choice([0.1, 0.2]) * total) if kind in ("wsd", "megatron_wsd") else 0,
                untyped=typed(peak) != peak, processes=rng.choice([2, 4, 8]), batch=rng.choice([8, 32, 256]),
                evidence=rng.random() < 0.5)


def column(t, offset_next):
    """(update, LR) of every row: what the schedule holds before the update, or after it."""
    rows, done = [], 0
    skipped = set(t["skipped"])
    unit = t["processes"] if t["contract"] == "hf-x-processes" else 1
    behind = int(t["contract"] in BEHIND)
    table = t["peak"] * schedule(t["kind"], (np.arange(t["end"] + 2) - behind) * unit, t["warmup"], t["total"],
                                 t["decay"])
    for k in range(1, t["end"] + 1):
        used = table[done]
        done += k not in skipped
        if k % t["every"] == 0 or (t["every"] > 1 and k == 1 and t["first_row"]):
            rows.append((k, float(table[done] if offset_next else used)))
    return rows


# ---- logs, as the frameworks print them ----

def trainer_state(t, rows):
    # With best_global_step, as since 4.50.0: what 4.50 logs is the LR of the next update, since 4.51 it is not.
    # Losses of 4 decimals, as transformers before 5 wrote them: others would say that hf-4.50 logged none of it.
    history = [{"epoch": k / t["total"], "learning_rate": v, "loss": round(1.0 + 1.0 / k, 4), "step": k}
               for k, v in rows]
    return "trainer_state.json", json.dumps({
        "best_global_step": None, "best_metric": None, "best_model_checkpoint": None, "epoch": 1.0,
        "global_step": t["end"],
        "is_hyper_param_search": False, "is_local_process_zero": True, "is_world_process_zero": True,
        "log_history": history, "logging_steps": t["every"], "max_steps": t["total"],
        "num_train_epochs": 1, "save_steps": 500, "total_flos": 0, "trial_name": None, "trial_params": None})


def csv(t, rows):
    # with all digits, or a column of 0.001 has a precision of 0.001
    return "log.csv", "step,lr\n" + "".join(f"{k},{v:.16e}\n" for k, v in rows)


def deepspeed(t, rows):
    lines = []
    for k, v in rows:
        count = sum(1 for s in t["skipped"] if s <= k)
        lines.append(f"[2025-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={k}, "
                     f"skipped={count}, lr=[{v!r}], mom=[[0.9, 0.999]]\n")
    return "train.log", "".join(lines)


def megatron(t, rows):
    lines, before = [], 0
    for k, v in rows:
        count = sum(1 for s in t["skipped"] if before < s <= k)
        before = k
        lines.append(f" [2025-01-01 00:00:00] iteration {k:8d}/{t['total']:8d} | consumed samples: "
                     f"{k * t['batch']:12d} | elapsed time per iteration (ms): 100.0 | learning rate: {v:.6E} | "
                     f"global batch size: {t['batch']:5d} | lm loss: {2.0 + 1.0 / k:.6E} | loss scale: 65536.0 | "
                     f"grad norm: 1.000 | number of skipped iterations: {count:3d} | "
                     f"number of nan iterations:   0 |\n")
    return "train.log", "".join(lines)


def write_log(t, rows, folder):
    name = t["contract"]
    if name.startswith("hf"):
        maker = trainer_state
    elif name.startswith("deepspeed") and t["evidence"]:
        maker = deepspeed
    elif name in ("megatron", "megatron-bridge") and t["evidence"]:
        maker = megatron
    else:
        maker = csv
    t["shown"] = maker in (deepspeed, megatron)
    t["digits"] = 7 if maker is megatron else 17
    file, text = maker(t, rows)
    path = pathlib.Path(folder) / file
    path.write_text(text)
    return path


# ---- the oracle ----

def follow(values, rows, most, own, tolerance, counts):
    """The fewest skipped updates and the range of lags per row, or None. values[u] is the LR at
    counter u, with the counter of row k at k - own - lag."""
    held, before = [0], 0
    admitted = []
    for k, v in rows:
        room = k - before
        low, high = held[0], held[-1]
        if counts is not None:
            # how many of the updates up to k were skipped is known; the row has not seen its own
            # update where it logs the LR that was used
            sure = counts[k]
            lags = [j for j in ({sure} if own == 0 else {sure, sure - 1}) if j >= 0]
            lags = sorted(j for j in lags if low <= j <= high + room)
        else:
            lags = range(low, min(high + room, most, k - own) + 1)
        lags = [j for j in lags if 0 <= k - own - j and abs(values[k - own - j] - v) <= tolerance(v)]
        if high - low + 1 > len(held):  # behind the end of a cosine that comes back some lags are missing
            lags = [j for j in lags if any(j - room <= i <= j for i in held)]
        if not lags:
            return None
        held = lags
        admitted.append(held)
        before = k
    low = held[0]
    ranges, reach = [None] * len(rows), [low]
    for i in range(len(rows) - 1, -1, -1):
        room = rows[i + 1][0] - rows[i][0] if i + 1 < len(rows) else 0
        if reach[-1] - reach[0] + 1 == len(reach):
            reach = [j for j in admitted[i] if reach[0] - room <= j <= reach[-1]]
        else:
            reach = [j for j in admitted[i] if any(j <= later <= j + room for later in reach)]
        ranges[i] = [reach[0], reach[-1]]
    return low, ranges


def skip_ranges(rows, ranges, own):
    """Where each skipped update lies: [(first, last, how many)]."""
    total, out = ranges[-1][0], []
    for s in range(1, total + 1):
        b = next(i for i, r in enumerate(ranges) if r[0] >= s)
        a = [i for i, r in enumerate(ranges) if r[1] < s]
        first = rows[a[-1]][0] - own + 1 if a else 1
        last = rows[b][0] - own
        if out and out[-1][0] == first and out[-1][1] == last:
            out[-1][2] += 1
        else:
            out.append([first, last, 1])
    return [tuple(r) for r in out]


def candidates(peaks, share, v, rows, shares, most, tolerance, any_peak):
    """The peaks with which the pivot row prints v: those of two digits, or with `any_peak` all of which
    four other rows admit some lag."""
    if not any_peak:
        return [p for p in {typed(p) for p in peaks if p > 0}
                if np.any(np.abs(p * share - v) <= tolerance(v))]
    kept = np.unique(peaks[peaks > 0])
    for at, value in (rows[0], rows[len(rows) // 8], rows[len(rows) // 2], rows[-1]):
        if not len(kept):
            break
        near = np.abs(kept[:, None] * shares(at, most)[None, :] - value) <= 2.0 * tolerance(value)
        kept = kept[near.any(axis=1)]
    return kept.tolist()


def read_decays(t, kind, rows, top, k, v, most, conventions):
    """The whole lengths of a decay with which row k prints v after some number of skipped updates, where
    two of the highest rows show a plateau: the schedule solved for its length."""
    share = v / rows[top][1]
    plateau = sum(rate == rows[top][1] for _, rate in rows) > 1
    if not plateau or not 0.0 < share < 1.0 or t["contract"] == "hf-x-processes":
        return set()
    if kind == "wsd":  # 0.5 (1 + cos(pi p)), and transformers counts the decay from total - decay
        progress = math.acos(2.0 * share - 1.0) / math.pi
    else:  # 2 * 0.5^p - 1
        progress = -math.log2((share + 1.0) / 2.0)
    found = set()
    for own in conventions:
        for lag in range(most + 1):
            length = (t["total"] - (k - own - lag)) / (1.0 - progress)
            if 1 <= round(length) < t["total"] and abs(length - round(length)) < 1e-6 * length:
                found.add(round(length))
    return found


def hypotheses(t, rows, conventions, digits, any_peak=False, skips=True):
    """Every (skips, convention, schedule, peak, warm-up, decay, ranges) that reproduces the rows; without
    `skips` those that need no skipped update."""
    scale = max(v for _, v in rows)
    total, last = t["total"], rows[-1][0]
    most = 24 + last // 500 if skips else 0
    counts = None
    if t["shown"]:
        counts, seen = {}, 0
        marks = set(t["skipped"])
        for k in range(1, last + 1):
            seen += k in marks
            counts[k] = seen
        most = max(most, seen)

    def tolerance(v):
        rounding = 0.5 * 10.0 ** (math.floor(math.log10(v)) - 6) if digits == 7 and v > 0 else 0.0
        return rounding * 1.000001 + 4e-15 * abs(v) + 1e-15 * scale

    behind = int(t["contract"] in BEHIND)
    top = max(range(len(rows)), key=lambda i: rows[i][1])
    falling = [i for i in range(top + 1, len(rows)) if 0.05 * scale < rows[i][1] < 0.97 * scale]
    pivot = falling[len(falling) // 2] if falling else top
    k, v = rows[pivot]
    found = []
    unit = t["processes"] if t["contract"] == "hf-x-processes" else 1
    decays = {k: sorted({int(x * total) for x in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)}
                        | {t["decay"]}) if t["kind"] == k else [int(0.1 * total), int(0.2 * total)]
              for k in ("wsd", "megatron_wsd")}
    for kind in decays:
        if falling and kind in KINDS.get(t["contract"], SCHEDULES):
            decays[kind] = sorted(set(decays[kind]) | read_decays(t, kind, rows, top, k, v, most, conventions))
    knee = rows[min(top + 1, len(rows) - 1)][0] * unit + 30 * unit
    for own in conventions:
        for kind in KINDS.get(t["contract"], SCHEDULES):
            for decay in decays.get(kind, [0]):
                for warmup in range(2 if behind else 0, min(knee, total) + 1):
                    if kind == "constant_with_warmup" and falling:
                        break
                    if kind != "constant_with_warmup" and warmup >= total:
                        break

                    def shares(at, back):
                        lags = np.arange(min(back, at - own) + 1)
                        return schedule(kind, (at - own - behind - lags) * unit, warmup, total, decay)

                    share = shares(k, most)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        peaks = np.where(share > 1e-9, v / share, 0.0)
                    for peak in candidates(peaks, share, v, rows, shares, most, tolerance, any_peak):
                        values = peak * schedule(kind, (np.arange(last + 2) - behind) * unit, warmup, total, decay)
                        answer = follow(values, rows, most, own, tolerance, counts)
                        if answer is None:
                            continue
                        found.append((answer[0], own, kind, peak, warmup, decay,
                                      tuple(skip_ranges(rows, answer[1], own))))
    return found


def merged(ranges):
    """Ranges all of whose updates were skipped, put together where they touch."""
    out = []
    for first, last, count in ranges:
        whole = last - first + 1 == count
        if out and whole and out[-1][1] + 1 == first and out[-1][1] - out[-1][0] + 1 == out[-1][2]:
            out[-1] = (out[-1][0], last, out[-1][2] + count)
        else:
            out.append((first, last, count))
    return tuple(out)


def same_kind(name, kind):
    aliases = {"ds_linear": ("warmup_decay",), "ds_log": ("warmup_decay",), "ds_cosine": ("warmup_cosine",),
               "ds_cosine_log": ("warmup_cosine",), "megatron_wsd": ("wsd",), "linear": ("linear",), "cosine": ("cosine",), "constant_with_warmup": ("constant_with_warmup",),
               "wsd": ("warmup_stable_decay", "wsd")}
    bare = name.split(".")[-1]
    return bare in aliases[kind] or (kind == "constant_with_warmup" and bare == "constant")


def simplest_of(t, rows, keep):
    """The oracle's simplest set. `keep` is a file name or None: what was found once is read again."""
    if keep is not None and keep.exists():
        return [(s, own, kind, peak, warmup, decay, tuple(map(tuple, skips)))
                for s, own, kind, peak, warmup, decay, skips in json.loads(keep.read_text())]
    # The oracle asks what the user asks: this trainer_state.json leaves open which era wrote it.
    conventions = [1, 0] if t["contract"] in ("hf", "hf-4.50") else [0 if t["contract"] in NEXT else 1]
    found = hypotheses(t, rows, conventions, t["digits"])
    if not found:  # nobody typed the peak
        found = hypotheses(t, rows, conventions, t["digits"], True)
    least = min((h[0] for h in found), default=0)
    simplest = [h for h in found if h[0] == least]
    if keep is not None:
        keep.write_text(json.dumps(simplest, default=float))
    return simplest


def late_of(t, rows, simplest, keep):
    """The trainings whose scheduler is one update late, as the bug `lag1` is, and that print the rows with
    no skipped update, where every sound one needs one that the log does not show.

    torch's LRScheduler counts the calls of its step() from 0; where the first one is lost it stands at
    max(0, n - 1) behind update n, and update k uses f(max(0, k - 2)). So the row of update k shows what
    the row of update k - 1 of a sound scheduler does, and the first ones the LR of counter 0."""
    if not simplest or simplest[0][0] == 0 or t["shown"]:
        return []
    if keep is not None and keep.exists():
        return [tuple(h) for h in json.loads(keep.read_text())]
    late = []
    for own in sorted({h[1] for h in simplest}):
        shifted = [(max(k - 1, own), v) for k, v in rows]
        for any_peak in (False, True):
            found = hypotheses(t, shifted, [own], t["digits"], any_peak, skips=False)
            late += [h[1:6] for h in found]
            if found or typed(simplest[0][3]) == simplest[0][3]:
                break
    if keep is not None:
        keep.write_text(json.dumps(late, default=float))
    return late


def one_by_one(ranges):
    return [(first, last) for first, last, count in ranges for _ in range(count)]


def lies_in(skips, family):
    """Whether each skipped update lies in the range that the family has for it."""
    a, b = one_by_one(skips), one_by_one(family)
    return len(a) == len(b) and all(f >= first and x <= last for (f, x), (first, last) in zip(a, b))


def is_same(t, fit, h):
    """Whether a fit of the program is a hypothesis of the oracle, or a family that holds it."""
    skips = merged((s["first"], s["last"], s["updates"]) for s in fit["skipped"] or [])
    logs_used = fit["contract"] in ("hf", "hf-4.51", "nemo-rl-megatron")
    # Of a peak that nobody typed a log shows the digits that it prints. DeepSpeed warms up over two
    # counters at least.
    near = 1e-6 if t["untyped"] and t["digits"] == 7 else 1e-9
    warmup = max(2, fit["warmup"]) if t["contract"] in BEHIND else fit["warmup"]
    unseen = fit["unseen"]
    if (not same_kind(fit["schedule"], h[2]) or (h[1] == 1) != logs_used
            or fit["steps"] not in (None, t["total"])):
        return False
    length = re.search(r"\bdecay=([0-9]+)", fit["parameters"])
    if length is not None and h[5] and int(length.group(1)) != h[5]:
        return False
    placed = skips == merged(h[6]) or h[2] == "constant_with_warmup" and t["shown"]
    if placed and abs(fit["lr"] / h[3] - 1) < near and abs(warmup - h[4]) < 1e-6:
        return True
    # every warm-up between two, with its own peak
    return (unseen is not None and unseen["warmup_least"] <= h[4] <= unseen["warmup_most"]
            and unseen["lr_least"] * (1 - near) <= h[3] <= unseen["lr_most"] * (1 + near)
            and (placed or lies_in(h[6], skips)))


def is_looked_at(t, fit):
    """Whether a fit has numbers that the oracle tries."""
    kinds = {k for k in KINDS.get(t["contract"], SCHEDULES) if same_kind(fit["schedule"], k)}
    if (not kinds or fit["stride"] != 1 or fit["first_value"] is not None or fit["min_lr_ratio"] not in (None, 0.0)
            or fit["steps"] not in (None, t["total"]) or fit["warmup"] != int(fit["warmup"])
            or len(fit["segments"]) > 1):
        return False
    if fit["parameters"] and not ({"wsd", "megatron_wsd"} & kinds and fit["parameters"].startswith("decay=")
                                  and "," not in fit["parameters"]):
        return False
    return t["untyped"] or typed(fit["lr"]) == fit["lr"]


def is_stranger(t, fit, simplest):
    """Whether a fit is within what the oracle looks at, and as simple, and still not in its set."""
    skips = sum(s["updates"] for s in fit["skipped"] or [])
    if not is_looked_at(t, fit) or fit["bug"] or skips > simplest[0][0]:
        return False
    own = 1 if fit["contract"] in ("hf", "hf-4.51", "nemo-rl-megatron") else 0
    if t["contract"] in ("hf", "hf-4.50") and fit["contract"] not in ("hf", "hf-4.50"):
        return False
    return not any(is_same(t, fit, h) for h in simplest if h[1] == own)


def is_late(t, fit, h):
    """Whether a fit of the program is this training with a late scheduler and nothing skipped."""
    return fit["contract"] == "lag1" and not fit["skipped"] and is_same(
        t, dict(fit, contract="hf"), (0,) + tuple(h) + ((),))


def is_late_set(t, fits, answer, status, simplest, late):
    """Whether an answer is the skip of the first update, undecided, with each late scheduler named beside it
    and no other. Where the command names one contract, no other is listed, and the doubt must name it."""
    if status != 3 or not fits or not any(is_same(t, fits[0], h) for h in simplest):
        return False
    if t["contract"] not in ("hf", "hf-4.50"):
        return answer["doubt"] is not None and "lag1" in answer["doubt"]["words"]
    # A WSD that decays all the way is the cosine; the oracle tries shorter decays.
    bugs = [fit for fit in fits if fit["contract"] == "lag1" and not fit["skipped"] and is_looked_at(t, fit)
            and (fit["parameters"] or not same_kind(fit["schedule"], "wsd"))]
    return (all(any(is_late(t, fit, h) for fit in fits) for h in late)
            and all(any(is_late(t, fit, h) for h in late) for fit in bugs))


def command_of(binary, t, path):
    command = [binary, "lr", "fit", str(path), "--json"]
    if t["contract"] not in ("hf", "hf-4.50"):
        command += ["--contract", t["contract"], "--processes", str(t["processes"]),
                    "--global-batch", str(t["batch"])]
    if path.suffix == ".csv" or t["contract"].startswith("deepspeed"):
        command += ["--steps", str(t["total"])]
    return command


def may_have_stopped(t):
    """Whether a warm-up to a peak that nobody types is followed by that LR alone: a scheduler that
    is no longer stepped inside of a longer warm-up prints the same, which the oracle does not ask."""
    return t["kind"] == "constant_with_warmup" and float(f"{t['peak']:.1e}") != t["peak"]


def answer_of(command):
    """What the program says: the exit status, and its JSON or the text of an error."""
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.returncode in (0, 1, 3) else done.stderr


def judge(binary, t, folder, keep):
    rows = column(t, t["contract"] in NEXT)
    path = write_log(t, rows, folder)
    simplest = simplest_of(t, rows, keep)
    late = late_of(t, rows, simplest, keep.with_suffix(".late") if keep is not None else None)
    command = command_of(binary, t, path)
    status, answer = answer_of(command)
    if status not in (0, 1, 3):
        return "broken", t, answer, simplest
    fits = answer["fits"]
    text = f"{fits[0]['text'] if fits else 'nothing fits'} (status {status})"
    if not simplest:
        return "oracle empty", t, text, simplest
    numbers = {(h[1], h[2] if h[4] or h[2] != "constant_with_warmup" else "constant", float(f"{h[3]:.9e}"),
                h[4], h[5], h[6]) for h in simplest}
    first = bool(fits) and any(is_same(t, fits[0], h) for h in simplest)
    if late:
        listed = answer_of(command + ["--all"])[1]["fits"]
        text += f"\n   late: {late[:3]}"
        return ("late: same set" if is_late_set(t, listed, answer, status, simplest, late)
                else "late: not the set"), t, text, simplest
    if len(numbers) == 1:
        state = "right" if first and status == 0 else "undecided" if first else "wrong"
        if state == "undecided" and may_have_stopped(t):
            state = "open: stopped"
        return state, t, text, simplest
    listed = answer_of(command + ["--all"])[1]["fits"]
    missing = [h for h in simplest if not any(is_same(t, fit, h) for fit in listed)]
    strangers = [fit["text"] for fit in listed if is_stranger(t, fit, simplest)]
    # Another answer than the oracle's says too much where it is called decided.
    if not first:
        state = "open: other" if status == 3 else "open: other, status 0"
    elif missing:
        state = "open: named"
    else:
        state = "open: more than the set" if strangers else "open: same set"
    text += f"\n   {len(missing)} of {len(simplest)} missing {missing[:3]}, not in the set: {strangers[:3]}"
    return state, t, text, simplest


def program(text):
    """A path that can be run, as argparse wants its types."""
    path = shutil.which(os.path.abspath(text))
    if path is None:
        raise argparse.ArgumentTypeError(f"expected a program, got {text!r}")
    return path


def at_least(least):
    def number(text):
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
        return int(text)
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, type=program)
    parser.add_argument("--count", type=at_least(1), default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=at_least(1), default=1)
    parser.add_argument("--show", action="store_true", help="print what is not right")
    parser.add_argument("--only", type=at_least(0), help="this case alone")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the oracle's answers, read again next time")
    parser.add_argument("--first", type=at_least(0), default=0, help="number of the first case")
    arguments = parser.parse_args()
    if arguments.only is None and arguments.first >= arguments.count:
        parser.error(f"--first {arguments.first} leaves no case of --count {arguments.count}")

    def one(i):
        rng = random.Random(arguments.seed * 1000003 + i)
        t = draw(rng)
        t["first_row"] = rng.random() < 0.3
        keep = arguments.keep / f"{arguments.seed}-{i}.json" if arguments.keep is not None else None
        with tempfile.TemporaryDirectory() as folder:
            return (i,) + judge(arguments.binary, t, folder, keep)

    cases = [arguments.only] if arguments.only is not None else range(arguments.first, arguments.count)
    states = collections.Counter()
    by_pattern = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for i, state, t, text, simplest in pool.map(one, cases):
            states[state] += 1
            by_pattern[t["pattern"], state] += 1
            if arguments.show and (state not in ("right", "open: same set", "late: same set") or arguments.only is not None):
                print(f"#{i} {state}: {t}\n   program: {text}")
                for h in simplest[:4]:
                    print(f"   oracle: {h}")
                sys.stdout.flush()
    for state, count in sorted(states.items()):
        print(f"{state}: {count}")
    for (pattern, state), count in sorted(by_pattern.items()):
        print(f"  {pattern}, {state}: {count}")
    return 1 if fails(states) else 0


def fails(states):
    decidable = states["right"] + states["undecided"] + states["wrong"]
    opened = sum(count for state, count in states.items() if state.startswith(("open", "late")))
    others = sum(states[state] for state in ("open: named", "open: other", "open: more than the set"))
    never = ("wrong", "broken", "oracle empty", "late: not the set", "open: other, status 0")
    return (any(states[state] for state in never) or states["right"] < 0.98 * decidable
            or others > 0.01 * opened)


if __name__ == "__main__":
    sys.exit(main())
