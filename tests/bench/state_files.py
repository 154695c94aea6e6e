#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `lr fit` and `doctor` about trainer_state.json files that others wrote, and holds each answer against
the brute-force search of skip_matrix.py.

    state_files.py --binary TWINSTEP [--most UPDATES] [--show] FOLDER

FOLDER is read with all folders in it. Of files with the same first rows and the same max_steps, as the
checkpoints of one training have, the longest is asked. The search knows linear, cosine, constant and
warmup_stable_decay of transformers with max_steps as their total, and skipped updates, of which each update
with a gradient norm that is not finite is one; which release logged what it takes from the fields of the
state. Files of more than --most updates (20,000) take it long and are left to the program alone. The
answers are

    right       the first answer of `lr fit` is the only simplest one of the search, or one of several
    other       it is not, though the search has one
    unknown     the search has none: another schedule, a resume, a total that is not max_steps
    nothing     `lr fit` has none

each with its exit status, and the findings of `doctor` behind them. An answer that is `other` fails. Whoever
wrote a file knows alone what it is the log of, so each finding is to be read by a person."""
import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys

import skip_matrix


Log = collections.namedtuple("Log", "path total rows overflowed older")

# transformers/trainer_callback.py, TrainerState: each release dumps all of its fields, and 4.50.0 has one more.
FIELDS = ("best_metric", "best_model_checkpoint", "is_world_process_zero", "total_flos")


def read(path):
    """The log in a file: max_steps, [(update, LR)], the updates whose gradient norm is not finite, and whether
    a release before 4.50 wrote it; None where there are fewer than three rows."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in state["log_history"] if "learning_rate" in row]
        lrs = [(int(row["step"]), float(row["learning_rate"])) for row in rows]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        return None
    overflowed = [int(row["step"]) for row in rows
                  if isinstance(row.get("grad_norm"), float) and not math.isfinite(row["grad_norm"])]
    older = all(field in state for field in FIELDS) and "best_global_step" not in state
    return Log(path, state.get("max_steps") or 0, lrs, overflowed, older) if len(lrs) >= 3 else None


def trainings(folder):
    """The longest file of each training."""
    longest = {}
    for path in sorted(folder.rglob("*trainer_state.json")):
        log = read(path)
        if log is None:
            continue
        key = (log.total, tuple(log.rows[:3]))
        if key not in longest or len(log.rows) > len(longest[key].rows):
            longest[key] = log
    return sorted(longest.values())


def holds_all(h, overflowed):
    """Whether each of these updates may be one of the skipped ones of a hypothesis."""
    left = [list(skip) for skip in h[6]]
    for update in overflowed:
        skip = next((skip for skip in left if skip[0] <= update <= skip[1] and skip[2] > 0), None)
        if skip is None:
            return False
        skip[2] -= 1
    return True


def searched(log, most):
    """What the search is asked about and its simplest set; None where it is not asked."""
    rows = log.rows
    ascends = all(a[0] < b[0] for a, b in zip(rows, rows[1:]))
    if not 0 < log.total <= most or rows[-1][0] > log.total or not ascends:
        return None
    whole = [k for k, _ in rows] == list(range(1, len(rows) + 1))
    t = dict(contract="hf", kind="linear", total=log.total, warmup=0, decay=0, digits=17, processes=1,
             untyped=True, shown=whole and bool(log.overflowed), skipped=log.overflowed)
    conventions = [0] if log.older else [1, 0]  # before 4.51 a row shows the LR of the next update
    for any_peak in (False, True):
        found = [h for h in skip_matrix.hypotheses(t, rows, conventions, t["digits"], any_peak)
                 if holds_all(h, log.overflowed)]
        if found:
            break
    return t, [h for h in found if h[0] == min(h[0] for h in found)]


def is_found(t, fit, h):
    """Whether the program's answer is a hypothesis of the search; of a log that ends in its warm-up, whether
    it rises as fast and was skipped at the same updates."""
    if fit["reached"] is None:
        return skip_matrix.is_same(t, fit, h)
    skips = skip_matrix.merged((s["first"], s["last"], s["updates"]) for s in fit["skipped"] or [])
    return skips == skip_matrix.merged(h[6]) and abs(fit["lr"] / fit["warmup"] * h[4] / h[3] - 1) < 1e-9


def ask(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return done.returncode, json.loads(done.stdout)


def judge(binary, log, most):
    status, answer = ask([binary, "lr", "fit", str(log.path), "--json", "--all"])
    findings = [f["id"] for f in ask([binary, "doctor", str(log.path), "--json"])[1]["findings"]]
    if not answer["fits"]:
        return "nothing", status, findings, answer.get("partial") or "", []
    first = answer["fits"][0]
    found = searched(log, most)
    if found is None or not found[1]:
        return "unknown", status, findings, first["text"], []
    t, simplest = found
    verdict = "right" if any(is_found(t, first, h) for h in simplest) else "other"
    return verdict, status, findings, first["text"], simplest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=skip_matrix.program)
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("--show", action="store_true", help="print every file")
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    counts = collections.Counter()
    for log in trainings(given.folder):
        verdict, status, findings, text, simplest = judge(given.binary, log, given.most)
        counts[f"{verdict}, status {status}"] += 1
        if given.show or verdict in ("other", "nothing"):
            print(f"{log.path.relative_to(given.folder)}: {verdict}, status {status}, {len(log.rows)} rows to "
                  f"{log.rows[-1][0]} of {log.total}{''.join(f', doctor: {f}' for f in findings)}\n    {text}"
                  + "".join(f"\n    search: {h}" for h in simplest[:2] if verdict == "other"))
            sys.stdout.flush()
    print(f"{sum(counts.values())} trainings: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if not counts or any(k.startswith("other") for k in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
