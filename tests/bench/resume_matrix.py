#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `lr fit` on logs of resumed runs against a brute-force search in another language.

    resume_matrix.py --binary TWINSTEP [--count N] [--seed S] [--first I] [--event E] [--untold] [--show]

Draws trainings of transformers' Trainer (both eras) with updates that were skipped before and behind
a resume, and what the resume did to the schedule: it went on, it forgot what was skipped, it lost
some updates more, it began anew, it got another peak or another total. The log shows the resume (its
rows fall back) or does not. One of eight draws is a Megatron log whose batch grows, with skipped
updates, which the log counts. The formulas are those of skip_matrix.py and of Megatron's
core/optimizer_param_scheduler.py.

The program is told contract and total of a log that falls back; of one whose total changes there, the
first total, the second or nothing, as is drawn; with --untold never anything. Where the warm-up is a
share of the total, it may change with it.

The oracle takes every warm-up, every peak of two digits and every lag for the rows before the resume
(and every total, where nobody says the first one), and behind it every lag, a counter that begins
anew, another peak and every other total. The right answer is what needs the fewest events (0: the
counter goes on; 1: anything else), then the fewest skipped updates.

    right       the first fit is one of the simplest, all of which are one training; exit status 0
    open        the oracle has several trainings, and the first fit is one of them
    undecided   exit status 3, or "nothing fits": the program claims nothing
    wrong       exit status 0 beside another training"""
import argparse
import collections
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

from skip_matrix import at_least, program, schedule, typed

EVENTS = ["goes on", "goes on", "anew", "lag", "reset", "peak", "total"]


def draw(rng):
    if rng.random() < 0.125:
        return draw_ramp(rng)
    total = rng.choice([200, 300, 400, 500, 640, 777, 1000])
    every = rng.choice([1, 1, 5, 10])
    t = dict(event=rng.choice(EVENTS), own=rng.choice([1, 0]), kind=rng.choice(["linear", "cosine"]),
             total=total, every=every, warmup=rng.choice([0, 10, 20, math.ceil(0.05 * total), total // 10]),
             peak=float(f"{rng.choice(['1', '2', '3', '5', '1.5', '2.5'])}e-{rng.randint(4, 6)}"),
             resume=rng.randint(total * 2 // 5, total * 3 // 5), visible=rng.random() < 0.5)
    few = rng.choice([0, 0, 1, 2]) + (t["event"] == "anew")
    t["skipped"] = sorted(rng.sample(range(1, t["resume"] - every), few))
    t["again"] = sorted(rng.sample(range(t["resume"] + 1, total), rng.choice([0, 0, 1, 2])))
    t["more"] = rng.randint(1, 20)
    t["scale"] = rng.choice([0.5, 0.2, 2.0])
    t["other"] = rng.choice([total * 3 // 2, total * 2])
    # drawn apart, so that the draws of before stay what they were
    apart = random.Random(total * 1009 + t["resume"] * 31 + t["warmup"])
    if t["event"] == "total" and apart.random() < 0.3:
        t["other"] = apart.randint(t["resume"] + 60, 3 * total)
    t["ratio"] = apart.random() < 0.5
    t["told"] = apart.choice(["first", "last", "nothing"]) if t["event"] == "total" else "first"
    if not t["visible"]:
        t["told"] = "nothing"
    return t


def share_of(warmup, total):
    """The share of the total that the warm-up is, in half percents; 0: it is none."""
    for half in range(1, 101):
        if warmup > 0 and warmup in (half * total / 200, math.ceil(half / 200 * total)):
            return half / 200
    return 0


def moved_warmup(warmup, total, other):
    """The warm-up of the other total, where that of the first is a share of it."""
    share = share_of(warmup, total)
    return math.ceil(share * other) if share else warmup


def column(t):
    """The rows before the resume (with those that are run again, where the log shows it) and behind it."""
    def part(first, last, lag, skipped, total, peak, back, warmup):
        rows = []
        for k in range(first, last + 1):
            at = k - back - t["own"] - lag
            lag += k in skipped
            if t["own"] == 0:
                at = k - back - lag
            if k % t["every"] == 0:
                rows.append((k, float(peak * schedule(t["kind"], max(0, at), warmup, total, 0))))
        return rows

    ran_again = min(t["total"] - 1, t["resume"] + (3 * t["every"] if t["visible"] else 0))
    before = part(1, ran_again, 0, set(t["skipped"]), t["total"], t["peak"], 0, t["warmup"])
    lag = {"anew": 0, "lag": len(t["skipped"]) + t["more"], "reset": 0}.get(t["event"], len(t["skipped"]))
    end = t["other"] if t["event"] == "total" else t["total"]
    warmup = t["warmup"]
    if t["event"] == "total" and t["ratio"]:
        warmup = moved_warmup(warmup, t["total"], end)
    behind = part(t["resume"] + 1, end, lag, set(t["again"]), end,
                  t["peak"] * (t["scale"] if t["event"] == "peak" else 1.0),
                  t["resume"] if t["event"] == "reset" else 0, warmup)
    # The optimizer is loaded with the LR that the old schedule had set, so the first update behind the
    # resume still applies it; scheduler.step() is the first to know of the new total.
    if t["event"] == "total" and t["own"] and behind[0][0] == t["resume"] + 1:
        at = t["resume"] - lag
        behind[0] = (behind[0][0], float(t["peak"] * schedule(t["kind"], at, t["warmup"], t["total"], 0)))
    return before, behind


# ---- the oracle ----

def follow(values, rows, own, low, before):
    """The fewest further skipped updates from a lag of `low` at update `before`, or None; values[u] is
    the LR at counter u."""
    lags = {low}
    for k, v in rows:
        near = np.nonzero(np.abs(values - v) <= 4e-15 * abs(v) + 1e-15 * values.max())[0]
        admitted = {k - own - int(u) for u in near}
        lags = {j for j in admitted if any(i <= j <= i + k - before for i in lags)}
        if not lags:
            return None
        before = k
    return min(lags) - low


def other_totals(behind, own, kind, warmup, total, peak, saved):
    """Every other total, and the warm-up that goes with it, that prints the first row behind the resume
    with some further skipped updates."""
    k, v = behind[0]
    found = set()
    totals = np.arange(k, 64 * k)
    for moves in (False, True):
        # the share of the first warm-up, and with it that of every total
        warmups = np.full(totals.shape, warmup)
        if moves:
            share = share_of(warmup, total)
            if not share:
                continue
            warmups = np.ceil(share * totals).astype(int)
        ends = totals
        for lag in range(saved, saved + 6):
            n = k - own - lag
            if n < 0:
                continue
            if kind == "linear":
                shares = (ends - n) / np.maximum(1, ends - warmups)
            else:
                shares = 0.5 * (1 + np.cos(math.pi * (n - warmups) / np.maximum(1, ends - warmups)))
            shares = np.where(n < warmups, n / np.maximum(1, warmups), shares)
            near = np.nonzero(np.abs(peak * shares - v) <= 1e-12 * peak)[0]
            found |= {(int(ends[u]), int(warmups[u])) for u in near if ends[u] != total}
    return found


def training(t, before, behind, own, kind, warmup, peak, total):
    """The simplest events with which these numbers print all rows: {(events, skips, event)}."""
    counters = np.arange(t["resume"] + max(total, t["other"], t["total"]) + 2)
    values = peak * schedule(kind, counters, warmup, total, 0)
    first = follow(values, before, own, 0, 0)
    if first is None:
        return set()
    # what was saved: the skipped updates up to the resume
    saved = follow(values, [r for r in before if r[0] <= t["resume"]], own, 0, 0)
    found = set()
    # no row says at which update between two rows the run went on
    start = behind[0][0] - t["every"]
    for lag in range(0, saved + 24):
        more = follow(values, behind, own, lag, start)
        if more is None:
            continue
        if lag == saved:
            found.add((0, first + more, "goes on"))
        else:
            found.add((1, first + more, f"lag {lag}"))
    if not t["visible"]:  # nobody says where it began
        found = {f for f in found if f[0] == 0} or {(1, s, "lag") for _, s, _ in found}
    resumes = [t["resume"]] if t["visible"] else range(start, start + t["every"])
    for r in resumes:
        more = follow(values, [(k - r, v) for k, v in behind], own, 0, 0)
        if more is not None:
            found.add((1, first + more, "reset"))
    lagged = peak * schedule(kind, np.array([max(0, k - own - saved) for k, _ in behind]), warmup, total, 0)
    for (_, v), x in list(zip(behind, lagged))[:2]:
        if x > 0 and abs(v / x - 1) > 1e-9:
            more = follow(v / x * values, behind, own, saved, start)
            if more is not None:
                found.add((1, first + more, "peak"))
    # the first update behind the resume applies the LR that was saved, as `column` has it
    again = values[max(0, behind[0][0] - 1 - saved)]
    if own and len(behind) > 4 and abs(again - behind[0][1]) <= 4e-15 * values.max():
        start, behind = behind[0][0], behind[1:]
    for other, moved in other_totals(behind, own, kind, warmup, total, peak, saved):
        more = follow(peak * schedule(kind, counters, moved, other, 0), behind, own, saved, start)
        if more is not None:
            found.add((1, first + more, f"total {other}" + (f", warm-up {moved}" if moved != warmup else "")))
    return found


def peaks(kind, counter, warmup, totals, value, scale):
    """Peaks of two digits, and totals, that print the value at the counter."""
    if counter < warmup:
        shares = np.full(totals.shape, counter / warmup)
    elif kind == "linear":
        shares = (totals - counter) / np.maximum(1, totals - warmup)
    else:
        shares = 0.5 * (1 + np.cos(math.pi * (counter - warmup) / np.maximum(1, totals - warmup)))
    at = np.nonzero(shares > 1e-9)[0]
    if at.size == 0:
        return []
    exact = value / shares[at]
    grain = 10.0 ** (np.floor(np.log10(exact)) - 1)
    near = np.abs(np.round(exact / grain) * grain / exact - 1) < 1e-9
    found = []
    for i in at[near]:
        peak = typed(value / shares[i])
        if abs(peak * shares[i] - value) <= 4e-15 * scale and peak >= scale * (1 - 1e-12):
            found.append((peak, int(totals[i])))
    return found


def oracle(t, before, behind):
    scale = max(v for _, v in before)
    top = max(range(len(before)), key=lambda i: before[i][1])
    pivot = before[(top + len(before)) // 2]
    found = {}
    # the totals of the rows before the resume: the one that was said, or any
    totals = np.array([t["total"]])
    if t["told"] != "first" and (t["event"] == "total" or t["visible"]):
        totals = np.arange(pivot[0], 3 * t["total"])
    for own in ([t["own"]] if t["visible"] and t["told"] != "nothing" else [1, 0]):
        for kind in ("linear", "cosine"):
            for warmup in range(0, min(before[min(top + 1, len(before) - 1)][0] + 30, t["total"] - 1)):
                for counter in range(pivot[0] - own, max(-1, pivot[0] - own - 25), -1):
                    for peak, total in peaks(kind, counter, warmup, totals, pivot[1], scale):
                        for events, skips, event in training(t, before, behind, own, kind, warmup, peak, total):
                            key = own, kind, warmup, peak, event
                            found[key] = min((events, skips), found.get(key, (events, skips)))
    least = min(found.values(), default=None)
    return [h for h, cost in found.items() if cost == least]


# ---- the program ----

def write_log(t, before, behind, folder):
    path = pathlib.Path(folder) / ("log.jsonl" if t["visible"] else "trainer_state.json")
    rows = [{"step": k, "learning_rate": v, "loss": 1.0 + 1.0 / k} for k, v in before + behind]
    if t["visible"]:
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
        return path
    last = rows[-1]["step"]
    end = t["other"] if t["event"] == "total" else t["total"]
    path.write_text(json.dumps({"epoch": 1.0, "global_step": last, "max_steps": end, "log_history": rows}))
    return path


def event_of(fit):
    text = fit["text"]
    behind = re.search(r"at resume 1 the counter is (\d+) behind", text)
    if "counter back to 0" in text:
        return "reset" if "peak times" not in text else "reset and peak"
    total = re.search(r"; total (\d+)(?: and warm-up (\d+))? from update", text)
    if total:
        return f"total {total.group(1)}" + (f", warm-up {total.group(2)}" if total.group(2) else "")
    if "peak times" in text:
        return "peak"
    if behind:
        return "lag " + behind.group(1)
    if "the counter is the number of updates" in text:
        return "lag 0"
    if "held" in text:
        return "lag"
    return "goes on" if all(s["event"] == "plain" for s in fit["segments"]) else "other"


def judge(binary, t, folder):
    before, behind = column(t)
    path = write_log(t, before, behind, folder)
    command = [binary, "lr", "fit", str(path), "--json"]
    if t["told"] != "nothing":
        command += ["--contract", "hf" if t["own"] else "hf-4.50", "--steps",
                    str(t["total"] if t["told"] == "first" else t["other"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        return "broken", done.stderr, []
    fits = json.loads(done.stdout)["fits"]
    simplest = oracle(t, before, behind)
    if not fits:
        return "undecided: nothing fits", "nothing fits", simplest
    fit = fits[0]
    text = f"{fit['text']} (status {done.returncode})"
    said = (int(fit["contract"] in ("hf", "hf-4.51")), fit["schedule"].split(".")[-1], int(fit["warmup"]),
            typed(fit["lr"]), event_of(fit))
    unseen = fit["unseen"]
    same = [h for h in simplest if h == said or unseen is not None and h[:2] == said[:2] and h[4] == said[4]
            and unseen["warmup_least"] <= h[2] <= unseen["warmup_most"]]
    if not simplest:
        state = "oracle empty" if done.returncode == 0 else "undecided"
    elif same and len(simplest) > 1:
        state = "open"
    elif same:
        state = "right" if done.returncode == 0 else "undecided: right first"
    else:
        state = "wrong" if done.returncode == 0 else "undecided"
    return state, text, simplest


# ---- Megatron, with a batch that grows ----

def draw_ramp(rng):
    updates = rng.choice([200, 400, 600])
    t = dict(event="ramp", updates=updates, batch=rng.choice([8, 16, 32]), stages=rng.choice([3, 4, 6]),
             change=rng.choice([20, 30, 50]), every=rng.choice([1, 1, 5, 10]),
             kind=rng.choice(["linear", "cosine"]), peak=rng.choice([1e-4, 3e-4, 1.5e-4, 6e-5]))
    t["skipped"] = sorted(rng.sample(range(1, updates), rng.choice([0, 1, 2, 4])))
    t["samples"] = [t["batch"] * (1 + min(t["stages"], k // t["change"])) for k in range(updates)]
    t["warmup"] = rng.choice([500, 1000, 2000]) if rng.random() < 0.5 else int(0.05 * sum(t["samples"]))
    return t


def judge_ramp(binary, t, folder):
    total, counted, consumed, since, lines = sum(t["samples"]), 0, 0, 0, []
    for k in range(1, t["updates"] + 1):
        batch = t["samples"][k - 1]
        consumed += batch
        if k in t["skipped"]:
            since += 1
        else:
            counted += batch
        if k % t["every"]:
            continue
        rate = t["peak"] * float(schedule(t["kind"], counted, t["warmup"], total, 0))
        lines.append(f" [2025-01-01 00:00:00] iteration {k:8d}/{t['updates']:8d} | consumed samples: "
                     f"{consumed:12d} | elapsed time per iteration (ms): 100.0 | learning rate: {rate:.6E} | "
                     f"global batch size: {batch:5d} | lm loss: {2.0 + 1.0 / k:.6E} | loss scale: 65536.0 | "
                     f"grad norm: 1.000 | number of skipped iterations: {since:3d} | "
                     f"number of nan iterations:   0 |\n")
        since = 0
    path = pathlib.Path(folder) / "train.log"
    path.write_text("".join(lines))
    done = subprocess.run([binary, "lr", "fit", str(path), "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        return "broken", done.stderr, []
    fits = json.loads(done.stdout)["fits"]
    if not fits:
        return "undecided: nothing fits", "nothing fits", []
    fit = fits[0]
    # seven digits of an LR leave a warm-up of samples open by a few of them
    ok = (fit["schedule"].split(".")[-1] == t["kind"] and abs(fit["lr"] / t["peak"] - 1) < 1e-5
          and abs(fit["warmup"] - t["warmup"]) <= 1e-3 * t["warmup"] + 1
          and abs((fit["steps"] or 0) - total) <= 1e-3 * total)
    state = ("right" if ok else "wrong") if done.returncode == 0 else "undecided: right first" if ok else "undecided"
    return state, f"{fit['text']} (status {done.returncode}), total {total}", []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--binary", required=True, type=program)
    parser.add_argument("--count", type=at_least(1), default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=at_least(0), default=0)
    parser.add_argument("--event", action="append", choices=EVENTS[1:] + ["ramp"], help="these draws alone")
    parser.add_argument("--untold", action="store_true", help="tell the program nothing beside the log")
    parser.add_argument("--show", action="store_true", help="print what is not right")
    arguments = parser.parse_args()
    if arguments.first >= arguments.count:
        parser.error(f"--first {arguments.first} leaves no case of --count {arguments.count}")
    states = collections.Counter()
    for i in range(arguments.first, arguments.count):
        t = draw(random.Random(arguments.seed * 1000003 + i))
        if arguments.event and t["event"] not in arguments.event:
            continue
        if arguments.untold:
            t["told"] = "nothing"
        with tempfile.TemporaryDirectory() as folder:
            state, text, simplest = (judge_ramp if t["event"] == "ramp" else judge)(arguments.binary, t, folder)
        states[t["event"], state] += 1
        if arguments.show and state not in ("right", "open"):
            print(f"#{i} {state}: { {k: v for k, v in t.items() if k != 'samples'} }\n   program: {text}")
            for h in simplest[:4]:
                print(f"   oracle: {h}")
            sys.stdout.flush()
    if not states:
        parser.error(f"no log of seed {arguments.seed} from {arguments.first} to {arguments.count - 1} is one of "
                     f"--event {', '.join(arguments.event)}: nothing was judged (expected a larger --count)")
    for state in sorted({s for _, s in states}):
        print(f"{state}: {sum(n for (_, s), n in states.items() if s == state)}")
    for (event, state), count in sorted(states.items()):
        print(f"  {event}, {state}: {count}")
    return 1 if any(s in ("wrong", "broken", "oracle empty") for _, s in states) else 0


if __name__ == "__main__":
    sys.exit(main())
