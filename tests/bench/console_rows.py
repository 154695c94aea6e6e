#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lr check` says of a Trainer's console, which prints no update numbers, when the total is told.

    console_rows.py --binary TWINSTEP [--count N] [--seed S] [--show]

Draws trainings of transformers' Trainer of either era, healthy ones and ones with a bug of their
schedule, and prints the dicts of their consoles every 5 to 100 updates, of the whole run or of its
first part, with a row of update 1 or without. Each is checked with --steps, and with --steps and
--log-every. Counted are the answers, whether the bug's name is among them, and whether the rows are
numbered as they were drawn; wrong is a healthy log that fails, and a bug that passes."""
import argparse
import collections
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

BUGS = {"healthy": "", "anew": "scheduler_not_restored", "short": "schedule_too_short", "twice": "xP_scheduler", "peak": "other_peak"}


def rate(t, n):
    peak = t["peak"] * (0.5 if t["bug"] == "peak" else 1)
    total = int(t["total"] * 0.9) if t["bug"] == "short" else t["total"]
    if n < t["warmup"]:
        return peak * n / max(1, t["warmup"])
    left = (total - n) / max(1, total - t["warmup"])
    return peak * max(0.0, left if t["schedule"] == "linear" else 0.5 * (1 + math.cos(math.pi * (1 - left))))


def draw(rng):
    every = rng.choice([5, 10, 20, 25, 50, 100])
    t = {"bug": rng.choice(list(BUGS)), "every": every, "total": every * rng.randint(20, 120) + rng.choice([0, 0, rng.randint(0, every - 1)])}
    t["schedule"], t["peak"] = rng.choice(["linear", "cosine"]), rng.choice([1e-5, 2e-5, 5e-5, 3e-4])
    t["warmup"], t["contract"] = rng.choice([0, 10, 100, t["total"] // 10]), rng.choice(["hf", "hf-4.50"])
    rows = ([1] if rng.random() < 0.3 else []) + list(range(every, t["total"] + 1, every))
    t["first"], t["whole"] = rows[0] == 1, rng.random() < 0.7
    t["rows"] = rows if t["whole"] else rows[: rng.randint(len(rows) // 2, len(rows) - 1)]
    return t


def console(t):
    again = t["rows"][len(t["rows"]) // 2]
    for k in t["rows"]:
        n = k - 1 if t["contract"] == "hf" else k
        if t["bug"] == "anew" and k >= again:
            n -= again - 1
        lr = rate(t, 2 * n if t["bug"] == "twice" else n)
        yield f"{{'loss': {2 - k / t['total']:.4f}, 'grad_norm': {1 + 0.1 * math.sin(k)!r}, 'learning_rate': {lr!r}, 'epoch': {3 * k / t['total']:.2f}}}\n"
    if t["whole"]:
        yield "{'train_runtime': 100.5, 'train_samples_per_second': 12.3, 'train_loss': 1.5, 'epoch': 3.0}\n"


def check(binary, log, t, more):
    command = [binary, "lr", "check", log, "--logged", "--expect", t["contract"], "--schedule", t["schedule"], "--lr", repr(t["peak"])]
    command += ["--warmup", str(t["warmup"]), "--steps", str(t["total"])] + more
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, 1, 3):
        sys.exit(answer.stderr)
    numbered = re.search(r"(?:; |below, )a row every (\d+) update", answer.stdout)
    return {
        "state": {0: "pass", 1: "fail", 3: "undecided"}[answer.returncode],
        "named": t["bug"] != "healthy" and re.search(rf"^known as:.*{BUGS[t['bug']]}", answer.stdout, re.M) is not None,
        "numbered": numbered is not None and int(numbered[1]) == t["every"],
        "asks for the total": re.search(r"^what would decide:.*--log-every.*--steps", answer.stdout, re.M) is not None and "; then" not in answer.stdout,
        "text": answer.stdout,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    arguments = parser.parse_args()
    counts, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "console.txt"
        for i in range(arguments.count):
            t = draw(random.Random(arguments.seed * 1000003 + i))
            log.write_text("".join(console(t)))
            kind = ("healthy" if t["bug"] == "healthy" else "bug") + (", whole run" if t["whole"] else ", its first part")
            for option, more in ("--steps", []), ("--steps --log-every", ["--log-every", str(t["every"])]):
                got = check(arguments.binary, log, t, more)
                counts[kind, option, "logs"] += 1
                counts[kind, option, got["state"]] += 1
                for what in "named", "numbered", "asks for the total":
                    counts[kind, option, what] += got[what]
                if got["state"] == ("fail" if t["bug"] == "healthy" else "pass"):
                    wrong += 1
                    if arguments.show:
                        print(f"#{i} {option} {got['state']}: {({**t, 'rows': len(t['rows'])})}\n{got['text']}")
    for (kind, option, what), count in sorted(counts.items()):
        print(f"{kind}, {option}, {what}: {count}")
    print(f"wrong: {wrong}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
