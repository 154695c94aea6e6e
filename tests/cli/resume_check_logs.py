#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resume-check on the logs of real resumed trainings, and on traces of the shipped scenarios.

    resume_check_logs.py BINARY [--whole]

tests/golden/resumed holds trainer_state.json of transformers' Trainer, resumed rightly and with a slip
(tests/bench/resume_logs.py made them), and truth.json: what was not restored. A part may be called
lost only where it was and restored only where it was not, and a right restart alone ends with 0. Of
the traces the part must be named; their scenarios train a narrower model unless --whole is given."""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOGS = os.path.join(ROOT, "tests/golden/resumed")
# scenario: the last update before its restart, and the parts that are lost
TRACES = {"counter-doubled": (4, {"scheduler"}), "moments-lost": (4, {"optimizer"}),
          "skip-every-epoch": (2, {"data"}), "rng-before-skip": (3, {"generators"}),
          "shards-of-another-world": (4, {"optimizer"}), "stale-decay-on-resume": (4, {"scheduler"}),
          "masters-saved-bf16": (4, {"optimizer"})}
# That of shards has bf16 weights, of which too few tell another step where the model is narrow.
NARROW = ("--set", "common.model.hidden=16", "--set", "common.model.mlp=32")
WIDE = "shards-of-another-world"
# What is said of a part besides, of these scenarios and of no other.
SAID = [("optimizer", "as where each rank reads the shard of its own index", {WIDE}),
        ("scheduler", "decayed weights by 0.1, and by 0.01 before", {"stale-decay-on-resume"}),
        ("optimizer", "the step of update 5 differs, which the weight decay may explain", {"stale-decay-on-resume"}),
        ("optimizer", "the step of update 5 differs, which the LR may explain", {"counter-doubled"}),
        ("weights", "has another batch or other draws, which hide it", {"rng-before-skip"}),
        ("optimizer", "has another batch or other draws, which hide it", {"rng-before-skip"})]


def check(binary, *words, cwd=None):
    done = subprocess.run([binary, "resume-check", *words, "--json"], capture_output=True, text=True,
                          cwd=cwd, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{words}: {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    if answer["exit"] != done.returncode:
        sys.exit(f"{words}: exit status {done.returncode}, and \"exit\" is {answer['exit']}")
    by_state = {state: {part for part, item in answer["parts"].items() if item["state"] == state}
                for state in ("restored", "lost", "untold")}
    return done.returncode, by_state, answer


def check_logs(binary):
    with open(os.path.join(LOGS, "truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    for name, case in truth.items():
        code, states, answer = check(binary, os.path.join(LOGS, case["before"]),
                                     os.path.join(LOGS, f"{name}.json"), "--restart", str(case["restart"]))
        lost = set(case["lost"])
        if states["lost"] - lost or lost & states["restored"] or (code == 0) != (not lost):
            sys.exit(f"{name}: not restored was {lost}, and the answer is {json.dumps(answer, indent=1)}")
        if states["lost"] == lost:
            continue
        print(f"{name}: {', '.join(sorted(lost - states['lost']))} cannot be told", flush=True)
    return len(truth)


def train(binary, folder, name, trace, *more):
    subprocess.run([binary, "run", name, "-o", trace, "--quiet", *more], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


def check_traces(binary, folder, size):
    for name, (restart, lost) in TRACES.items():
        trace = f"{name}.h5"
        train(binary, folder, name, trace, *(() if name == WIDE else size))
        words = (trace, trace, "--run", "baseline", "--restart", str(restart))
        code, states, answer = check(binary, *words, "--run-after", "test", cwd=folder)
        if code != 1 or states["lost"] != lost:
            sys.exit(f"{name}: expected {lost}, got {code}: {states}")
        for part, text, scenarios in SAID:
            if (text in answer["parts"][part]["text"]) != (name in scenarios):
                sys.exit(f"{name}: {part}: {answer['parts'][part]}")
        code, states, _ = check(binary, *words, "--run-after", "floor-rerun", cwd=folder)
        if code != 0 or states["lost"]:
            sys.exit(f"{name}: the rerun: {code}: {states}")


def check_without_tensors(binary, folder):
    """Traces without digests of tensors do not tell shards from moments, and say what would."""
    train(binary, folder, WIDE, "t.h5", "--set", "record.tensors=false")
    _, states, answer = check(binary, "t.h5", "t.h5", "--run", "baseline", "--run-after", "test", "--restart", "4",
                              cwd=folder)
    if states["lost"] != {"optimizer"} or "record.tensors would tell" not in answer["parts"]["optimizer"]["text"]:
        sys.exit(f"without tensors: {answer}")


# bf16 weights with f32 masters and an LR in its warm-up: the step of a restart that loses moments and count
# rounds in one tensor to the bits of the right one.
WARM = """twinstep: 1
name: count
steps: 6
common: {seed: 14, optimizer: {lr: 2e-6}, schedule: {warmup: 1000, total: 10000},
         numerics: {param: bf16, master: f32}, resume: {after: 4}}
arms:
  baseline: {}
  test: {resume: {restores: [schedule, data, rng, scaler]}}
"""


def check_rounded(binary, folder):
    """What rounding may hide is no evidence of a count that is right, nor of shards."""
    with open(os.path.join(folder, "warm.yaml"), "w", encoding="utf-8") as file:
        file.write(WARM)
    done = subprocess.run([binary, "run", "warm.yaml", "-o", "t.h5", "--quiet", "--overwrite"], cwd=folder,
                          check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 1:  # outside the floor
        sys.exit(f"warm.yaml: {done.returncode}")
    _, states, answer = check(binary, "t.h5", "t.h5", "--run", "baseline", "--run-after", "test", "--restart", "4",
                              cwd=folder)
    text = answer["parts"]["optimizer"]["text"]
    if states["lost"] != {"optimizer"} or "its count (optimizer_t) is 1 after update 5, and was 5" not in text:
        sys.exit(f"rounded steps: {answer}")
    if "is right" in text or "shard" in text:
        sys.exit(f"rounded steps: {text}")


def check_later(binary, folder):
    """Weights that part later are no continuation, although the first step is that of before: the restart is
    said to be one update earlier than it was, and its decay of 0.1 for 0.01 moves no loss beyond noise."""
    trace = "stale-decay-on-resume.h5"  # of check_traces
    words = (trace, trace, "--run", "baseline", "--run-after", "test")
    for restart in (("--restart", "3"), (), ("--restart", "4")):
        code, _, answer = check(binary, *words, *restart, cwd=folder)
        if (code, answer["differs"], answer["column"]) != (1, 5, "digest_weights"):
            sys.exit(f"weights that part at update 5: {restart}: {code}: {answer}")


def check_refusals(binary):
    log = os.path.join(LOGS, "whole-0.0.json")
    for words, needle in (((log, log, "--restart", "x"), "--restart: expected an update"),
                          ((log, log, log), "two logs take no third file"),
                          ((LOGS, LOGS, "--restart", "6"), f"--restart goes with two logs or traces, and {LOGS} is no"),
                          ((log, LOGS, "--run-after", "a"), f"--run-after goes with two logs or traces, and {LOGS}"),
                          # a missing file is to blame itself
                          (("not-there", log, "--restart", "6"), "not-there: cannot open: No such file"),
                          ((log, "not-there", "--restart", "6"), "not-there: cannot open: No such file"),
                          ((log, log, "not-there"), "not-there: cannot open: No such file")):
        done = subprocess.run([binary, "resume-check", *words], capture_output=True, text=True, check=False)
        if done.returncode != 2 or needle not in done.stderr:
            sys.exit(f"{words}: expected status 2 and {needle!r}, got {done.returncode}: {done.stderr}")


def main():
    binary, size = os.path.abspath(sys.argv[1]), () if "--whole" in sys.argv[2:] else NARROW
    count = check_logs(binary)
    with tempfile.TemporaryDirectory(prefix="twinstep-resume-") as folder:
        check_traces(binary, folder, size)
        check_without_tensors(binary, folder)
        check_rounded(binary, folder)
        check_later(binary, folder)
    check_refusals(binary)
    print(f"{count} logs, {len(TRACES)} traces")


if __name__ == "__main__":
    main()
