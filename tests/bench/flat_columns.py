#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is `lr check` right to fail a column that stands still where a falling schedule was asked for?

    flat_columns.py --binary TWINSTEP [--count N] [--seed S] [--show]

Draws columns of equal printed LRs: of constant trainings, and of linear and cosine ones around the
end of their warm-up, with skipped updates, printed in so few digits that the fall does not show.
Each is checked against a linear or cosine schedule with its total and without a warm-up. The oracle
tries every whole warm-up with every course of skipped updates that are believed, and shares no code
with the program. Wrong is a column that fails though the oracle prints it; what the oracle cannot
print and what fails is "proved", and "left open" where the answer is undecided."""
import argparse
import collections
import math
import pathlib
import random
import subprocess
import sys
import tempfile

# The counter at update k without a skipped update: transformers since 4.51 prints the LR that was
# used, older ones that of the next update.
COUNTER = {"hf": -1, "hf-4.50": 0}


def share(schedule, n, warmup, total):
    if n < warmup:
        return n / max(1, warmup)
    left = (total - n) / max(1, total - warmup)
    return max(0.0, left) if schedule == "linear" else max(0.0, 0.5 * (1 + math.cos(math.pi * (1 - left))))


def believed(last):
    return 24 + last // 500


def follows(t, warmup, low, high):
    """Whether some course of skipped updates leaves each row's share within [low, high]."""
    lag = 0
    for k in t["rows"]:
        while lag <= believed(t["rows"][-1]):
            n = k + COUNTER[t["contract"]] - lag
            if n < min(0, k + COUNTER[t["contract"]]):
                return False
            if low <= share(t["asked"], n, warmup, t["total"]) <= high:
                break
            lag += 1
        else:
            return False
    return True


def prints(t):
    """A warm-up with which the asked schedule prints the column, or None."""
    half = t["quantum"] / 2 * (1 + 1e-6)
    low, high = t["value"] - half, t["value"] + half
    for warmup in range(t["total"] + 1):
        if t["peak"] is not None:
            if follows(t, warmup, low / t["peak"], high / t["peak"]):
                return warmup
            continue
        # Of counters that do not fall, the least share is that of the first row or of the last.
        least = set()
        for k in (t["rows"][0], t["rows"][-1]):
            for lag in range(min(k, believed(t["rows"][-1])) + 1):
                least.add(share(t["asked"], max(0, k + COUNTER[t["contract"]] - lag), warmup, t["total"]))
        for c in least:
            if c > 0 and follows(t, warmup, c * (1 - 1e-12), c * high / low * (1 + 1e-12)):
                return warmup
    return None


def draw(rng):
    t = {"contract": rng.choice(list(COUNTER)), "asked": rng.choice(["linear", "cosine"]), "total": rng.randint(40, 600)}
    every, digits = rng.choice([1, 2, 5, 10]), rng.choice([0, 0, 1, 1, 2, 3])
    peak = rng.choice([1e-5, 2e-5, 5e-4, 3e-4, 1.5e-5])
    text = lambda x: f"{x:.{digits}e}"
    t["kind"] = rng.choice(["constant", "constant", "top"])
    if t["kind"] == "constant":
        first = rng.choice([1, 1, 1, rng.randint(1, t["total"] // every)])
        rows = [every * i for i in range(first, first + rng.randint(3, 40)) if every * i <= t["total"]]
        printed = text(peak)
    else:
        warmup = rng.randint(0, t["total"] // 2)
        skipped = set(rng.sample(range(1, t["total"]), rng.choice([0, 0, 1, 3])))
        lr = {}
        for k in range(every, t["total"] + 1, every):
            lag = sum(s < k for s in skipped)
            lr[k] = peak * share(t["asked"], k + COUNTER[t["contract"]] - lag, warmup, t["total"])
        top = max(lr, key=lr.get)
        printed = text(lr[top])
        rows = [top]
        while rows[0] - every in lr and text(lr[rows[0] - every]) == printed:
            rows.insert(0, rows[0] - every)
        while rows[-1] + every in lr and text(lr[rows[-1] + every]) == printed:
            rows.append(rows[-1] + every)
        rows = rows[:40]
        if rows[-1] + every in lr and rng.random() < 0.3:  # and some rows that no longer belong to it
            rows += [rows[-1] + every * i for i in range(1, 4) if rows[-1] + every * i <= t["total"]]
    if len(rows) < 3:
        return draw(rng)
    t["rows"], t["printed"], t["value"] = rows, printed, float(printed)
    t["quantum"] = 10.0 ** (int(printed.split("e")[1]) - digits)
    t["peak"] = rng.choice([None, None, peak, 2 * peak])
    return t


def judge(binary, t, folder):
    log = pathlib.Path(folder) / "log.csv"
    log.write_text("step,learning_rate\n" + "".join(f"{k},{t['printed']}\n" for k in t["rows"]))
    command = [binary, "lr", "check", log, "--expect", t["contract"], "--schedule", t["asked"], "--steps", str(t["total"])]
    command += ["--lr", repr(t["peak"])] if t["peak"] is not None else []
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    fails, warmup = answer.returncode == 1, prints(t)
    if answer.returncode not in (0, 1, 3):
        return "broken", warmup, answer.stderr
    if warmup is None:
        return "proved" if fails else "left open", warmup, answer.stdout
    return "wrong" if fails else "may be printed, not failed", warmup, answer.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--show", action="store_true", help="print what is left open, too")
    arguments = parser.parse_args()
    states = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in [arguments.only] if arguments.only is not None else range(arguments.count):
            t = draw(random.Random(arguments.seed * 1000003 + i))
            state, warmup, text = judge(arguments.binary, t, folder)
            states[t["kind"], state] += 1
            if state in ("wrong", "broken") or arguments.only is not None or (arguments.show and state == "left open"):
                print(f"#{i} {state}: {t}\n   warm-up of the oracle: {warmup}\n{text}", flush=True)
    for (kind, state), count in sorted(states.items()):
        print(f"{kind}, {state}: {count}")
    return 1 if any(state in ("wrong", "broken") for _, state in states) else 0


if __name__ == "__main__":
    sys.exit(main())
