# SPDX-License-Identifier: Apache-2.0
"""Cases from tests/golden/logs: runs of real trainers whose logs are committed beside their truth.

`logged` is the LR column of trainer_state.json or metrics.jsonl, where there is one and every update
is in it."""

import glob
import json
import os

from golden import Case

LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "logs")
OPTIONS = ("lr", "warmup", "warmup_ratio", "steps", "dataset", "epochs", "batch", "accumulate",
           "processes", "rescaled", "updates_per_epoch")


def logged_of(folder):
    state, lines = os.path.join(folder, "trainer_state.json"), os.path.join(folder, "metrics.jsonl")
    if os.path.exists(state):
        with open(state, encoding="utf-8") as content:
            rows = json.load(content)["log_history"]
        return {row["step"]: row["learning_rate"] for row in rows if "learning_rate" in row}
    if os.path.exists(lines):
        with open(lines, encoding="utf-8") as content:
            rows = [json.loads(line) for line in content]
        return {row["step"]: row["lr"] for row in rows}
    return {}


def case_of(folder):
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as content:
        truth = json.load(content)
    options = {key: truth[key] for key in OPTIONS if key in truth}
    if "dataset" in options and "batch" not in options:
        del options["dataset"]  # more rows than the steps need
    if truth["contract"] == "lightning-epoch":  # its schedule was made for epochs
        options["steps"], options["rescaled"] = truth["total"], "none"
        for key in ("dataset", "epochs", "batch", "accumulate"):
            del options[key]
    options.update({"value." + key: value for key, value in truth.get("values", {}).items()})
    applied = {truth["first"] + i: lr for i, lr in enumerate(truth["applied"])}
    logged = {k: lr for k, lr in logged_of(folder).items() if k in applied}
    if len(logged) < len(applied):
        logged = {}
    name = os.path.relpath(folder, LOGS).replace(os.sep, "/")
    return Case(truth["contract"], truth["schedule"], name, options, applied, logged)


def log_cases():
    return [case_of(os.path.dirname(path))
            for path in sorted(glob.glob(os.path.join(LOGS, "*", "*", "truth.json")))]
