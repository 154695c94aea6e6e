#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `twinstep` about the logs that foreign_logs.py made, and holds it to what was expected.

    foreign_judge.py --binary TWINSTEP --logs FOLDER [--table] [--show NAME] [--golden FILE]

Each log goes through `doctor`, `lr fit`, `lr check` with the numbers of its configuration and,
where a bug is planted, `compare` with its healthy twin. A healthy log is `quiet` or a `false
alarm`. A bug is `named` (doctor or lr check say its name), `pointed` (compare points to its kind,
or lr check fails, without a name), `remarked` (a remark or a finding that is only possible says
it), `among` (compare names it among others and points to none), `silent`, or `wrong` (something
else is claimed). --golden compares the outcomes with FILE and returns 1 where one is worse: false
alarms and wrong answers always, others where the file has a better word."""

import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from foreign_log_cases import ACCELERATE, CASES, LIGHTNING, UNSEEN  # noqa: E402

RANK = ["false alarm", "wrong", "silent", "among", "remarked", "pointed", "named", "quiet"]
LR = {"lr": 1e-3, "schedule": "linear", "warmup": 6, "total": 60}


def ask(binary, *words):
    done = subprocess.run([binary, *words, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr.decode()}")
    return done.returncode, json.loads(done.stdout)


def log_of(folder, case):
    name = {ACCELERATE: "metrics.jsonl", LIGHTNING: "metrics.csv"}.get(
        case["kind"], "trainer_state.json")
    return os.path.join(folder, case["name"], name)


def expected_lr(case):
    """What the person who configured the training would tell `lr check`."""
    twin = next(other for other in CASES if other["name"] == (case["twin"] or case["name"]))
    o = {**LR, **twin["options"]}
    values = o.get("values") or {}
    contract = {ACCELERATE: "accelerate", LIGHTNING: "lightning-step"}.get(case["kind"], "hf")
    schedule = {"cosine_with_min_lr": "cosine_with_min_lr"}.get(o["schedule"], o["schedule"])
    words = ["--expect", contract, "--lr", repr(o["lr"]), "--schedule", schedule,
             "--warmup", str(o["warmup"])]
    if o.get("epochs"):
        words += ["--epochs", "3", "--dataset", "90", "--batch", "4", "--accumulate", "2"]
    else:
        words += ["--steps", str(o["total"])]
    if "min_lr_rate" in values:
        words += ["--min-lr-ratio", repr(values["min_lr_rate"])]
    for theirs, ours in (("num_decay_steps", "decay"), ("patience", "patience"),
                         ("factor", "factor")):
        if theirs in values:
            words += ["--value", f"{ours}={values[theirs]}"]
    return words


def gather(binary, folder, case):
    log = log_of(folder, case)
    told = {}
    _, doctor = ask(binary, "doctor", log, *case["arguments"])
    told["findings"] = {entry["id"]: entry["confidence"] for entry in doctor["findings"]}
    told["remarks"] = [entry["id"] for entry in doctor["remarks"]]
    status, fit = ask(binary, "lr", "fit", log)
    told["fit"] = (status, fit["fits"][0]["text"] if fit["fits"] else "nothing fits")
    status, check = ask(binary, "lr", "check", log, *expected_lr(case))
    told["check"] = (status, check.get("bug"), check.get("words"))
    twin = case["twin"] or case["name"]
    other = log_of(folder, next(entry for entry in CASES if entry["name"] == twin))
    status, compare = ask(binary, "compare", other, log)
    told["compare"] = (status, compare.get("cause"), compare.get("meaning"))
    return told


def judge(case, told):
    sure = {name for name, confidence in told["findings"].items() if confidence != "possible"}
    status, bug, _ = told["check"]
    if case["twin"] is None:
        alarms = sorted(sure)
        alarms += ["lr check fails"] * (status == 1) + ["lr fit: nothing fits"] * (
            told["fit"][0] == 1) + ["compare with itself differs"] * (told["compare"][0] == 1)
        return ("false alarm", ", ".join(alarms)) if alarms else ("quiet", "")
    right = set(case["doctor"])
    said = sorted(sure & right)
    by_check = bug if status == 1 and bug in right | {case["plant"], case["name"]} else None
    cause = told["compare"][1]
    foreign = sorted(sure - right)
    if foreign:
        return "wrong", "doctor: " + ", ".join(foreign)
    if case["check"] == "pass" and status == 1:
        return "wrong", "lr check fails: " + str(told["check"][2])
    if case["check"] and status == 1 and bug and not by_check:
        return "wrong", f"lr check: {bug}"
    points_right = cause in case["points"]
    named_among = [word for word in case["says"] if word in (told["compare"][2] or "")]
    if cause and (case["points"] or case["says"]) and not points_right and not named_among:
        return "wrong", f"compare points to {cause}"
    if said or by_check:
        return "named", ", ".join(["doctor: " + name for name in said] + (
            [f"lr check: {by_check}"] if by_check else []))
    if status == 1 and case["check"] == "fail":
        return "pointed", "lr check fails" + (f": {bug}" if bug else "")
    if points_right and told["compare"][0] == 1:
        return "pointed", f"compare: {cause}"
    only = sorted((set(told["findings"]) - sure | set(told["remarks"])) & right)
    if only:
        return "remarked", ", ".join(only)
    if named_among:
        return "among", f'compare: "{named_among[0]}"'
    return "silent", "compare: " + (told["compare"][2] or "equal").split(":")[0]


def table(outcomes):
    rows = ["| bug | planted in | outcome | by |", "|---|---|---|---|"]
    for case, (word, why) in outcomes:
        if case["twin"]:
            number = "" if case["number"] == "-" else f"{case['number']} "
            rows.append(f"| {number}`{case['name']}` | `{case['twin']}` | {word} | {why} |")
    rows += ["", "| healthy log | trainer | outcome | |", "|---|---|---|---|"]
    for case, (word, why) in outcomes:
        if not case["twin"]:
            rows.append(f"| `{case['name']}` | {case['kind']} | {word} | {why} |")
    rows += ["", "| not shown by a log here | why |", "|---|---|"]
    rows += [f"| {number} | {why} |" for number, why in UNSEEN.items()]
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--logs", required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--show", action="append", default=[])
    parser.add_argument("--golden")
    given = parser.parse_args()
    outcomes, worse = [], []
    for case in CASES:
        if not os.path.exists(log_of(given.logs, case)) or (
                case["twin"] and not os.path.isdir(os.path.join(given.logs, case["twin"]))):
            continue
        if given.show and case["name"] not in given.show:
            continue
        told = gather(given.binary, given.logs, case)
        outcome = judge(case, told)
        outcomes.append((case, outcome))
        if not given.table:
            print(f"{outcome[0]:12} {case['name']:26} {outcome[1]}")
        if given.show:
            print(json.dumps(told, indent=1))
    if given.table:
        print(table(outcomes))
    counts = {word: sum(outcome[0] == word for _, outcome in outcomes) for word in RANK}
    print(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if given.golden:
        with open(given.golden, encoding="utf-8") as file:
            best = json.load(file)
        worse = [f"{case['name']}: {outcome[0]} ({outcome[1]}), was {best[case['name']]}"
                 for case, outcome in outcomes
                 if RANK.index(outcome[0]) < max(2, RANK.index(best[case["name"]]))]
        if set(best) - {case["name"] for case, _ in outcomes}:
            worse.append("a log is missing")
        print("\n".join(worse))
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
