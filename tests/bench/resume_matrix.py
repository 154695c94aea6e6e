#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `lr fit` on logs of resumed runs against a brute-force search in another language.

    resume_matrix.py --binary TWINSTEP [--count N] [--seed S] [--first I] [--event E] [--show]

Draws trainings of transformers' Trainer (both eras) with updates that were skipped before and behind
a resume, and what the resume did to the schedule: it went on, it forgot what was skipped, it lost
some updates more, it began anew, it got another peak or another total. The log shows the resume (its
rows fall back) or does not. One of eight draws is a Megatron log whose batch grows, with skipped
updates, which the log counts. The formulas are those of skip_matrix.py and of Megatron's
core/optimizer_param_scheduler.py.

The oracle takes every warm-up, every peak of two digits and every lag for the rows before the resume,
and behind it every lag, a counter that begins anew, another peak and another total. The right answer
is what needs the fewest events (0: the counter goes on; 1: anything else), then the fewest skipped
updates.

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

from skip_matrix import schedule, typed

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
    return t


def column(t):
    """The rows before the resume (with those that are run again, where the log shows it) and behind it."""
    def part(first, last, lag, skipped, total, peak, back):
        rows = []
        for k in range(first, last + 1):
            at = k - back - t["own"] - lag
            lag += k in skipped
            if t["own"] == 0:
                at = k - back - lag
            if k % t["every"] == 0:
                rows.append((k, float(peak * schedule(t["kind"], max(0, at), t["warmup"], total, 0))))
        return rows

    ran_again = min(t["total"] - 1, t["resume"] + (3 * t["every"] if t["visible"] else 0))
    before = part(1, ran_again, 0, set(t["skipped"]), t["total"], t["peak"], 0)
    lag = {"anew": 0, "lag": len(t["skipped"]) + t["more"], "reset": 0}.get(t["event"], len(t["skipped"]))
    end = t["other"] if t["event"] == "total" else t["total"]
    behind = part(t["resume"] + 1, end, lag, set(t["again"]), end,
                  t["peak"] * (t["scale"] if t["event"] == "peak" else 1.0),
                  t["resume"] if t["event"] == "reset" else 0)
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


def training(t, before, behind, own, kind, warmup, peak):
    """The simplest events with which these numbers print all rows: {(events, skips, event)}."""
    counters = np.arange(t["resume"] + max(t["total"], t["other"]) + 2)
    values = peak * schedule(kind, counters, warmup, t["total"], 0)
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
    lagged = peak * schedule(kind, np.array([max(0, k - own - saved) for k, _ in behind]), warmup, t["total"], 0)
    for (_, v), x in list(zip(behind, lagged))[:2]:
        if x > 0 and abs(v / x - 1) > 1e-9:
            more = follow(v / x * values, behind, own, saved, start)
            if more is not None:
                found.add((1, first + more, "peak"))
    if t["event"] == "total":
        more = follow(peak * schedule(kind, counters, warmup, t["other"], 0), behind, own, saved, start)
        if more is not None:
            found.add((1, first + more, "total"))
    return found


def oracle(t, before, behind):
    scale = max(v for _, v in before)
    top = max(range(len(before)), key=lambda i: before[i][1])
    pivot = before[(top + len(before)) // 2]
    found = {}
    for own in ([t["own"]] if t["visible"] else [1, 0]):
        for kind in ("linear", "cosine"):
            for warmup in range(0, min(before[min(top + 1, len(before) - 1)][0] + 30, t["total"] - 1)):
                counters = np.array([u for u in range(pivot[0] - own, max(-1, pivot[0] - own - 25), -1)])
                shares = schedule(kind, counters, warmup, t["total"], 0)
                for share in shares[shares > 1e-9]:
                    peak = typed(pivot[1] / share)
                    if abs(peak * share - pivot[1]) > 4e-15 * scale or peak < scale * (1 - 1e-12):
                        continue
                    for events, skips, event in training(t, before, behind, own, kind, warmup, peak):
                        found[own, kind, warmup, peak, event] = (events, skips)
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
    if t["visible"]:
        command += ["--contract", "hf" if t["own"] else "hf-4.50", "--steps", str(t["total"])]
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
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--event", action="append", help="these draws alone")
    parser.add_argument("--show", action="store_true", help="print what is not right")
    arguments = parser.parse_args()
    states = collections.Counter()
    for i in range(arguments.first, arguments.count):
        t = draw(random.Random(arguments.seed * 1000003 + i))
        if arguments.event and t["event"] not in arguments.event:
            continue
        with tempfile.TemporaryDirectory() as folder:
            state, text, simplest = (judge_ramp if t["event"] == "ramp" else judge)(arguments.binary, t, folder)
        states[t["event"], state] += 1
        if arguments.show and state not in ("right", "open"):
            print(f"#{i} {state}: { {k: v for k, v in t.items() if k != 'samples'} }\n   program: {text}")
            for h in simplest[:4]:
                print(f"   oracle: {h}")
            sys.stdout.flush()
    for state in sorted({s for _, s in states}):
        print(f"{state}: {sum(n for (_, s), n in states.items() if s == state)}")
    for (event, state), count in sorted(states.items()):
        print(f"  {event}, {state}: {count}")
    return 1 if any(s in ("wrong", "broken", "oracle empty") for _, s in states) else 0


if __name__ == "__main__":
    sys.exit(main())
