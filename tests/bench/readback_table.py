#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `twinstep readback` against what was applied in trainings of real libraries.

    readback_table.py --binary B [--show] [--only NAME]... FOLDER...

Cases with a restart are put before `twinstep resume-check`, too.

FOLDER holds cases that foreign_trainings.py made (tests/golden/foreign/runs): checkpoints of
consecutive updates, and truth.json, in which hooks around the optimizer's step noted what each
update applied. For every update of every case the program is asked for the two folders around it.

Two folders with another between them must be refused, or left undecided.

A reading fails if an LR's bar does not hold the LR that was applied, if the gradient norm's does
not hold the norm that was taken in, if a decay's does not hold the decay that acted, if a healthy
case has a finding, if two folders in the wrong order are judged, if a planted slip that the folders
can show (`sees` in truth.json, written before any program read them) is not named by the right kind
of finding or of remark, if a finding of a planted case is about something else than its slip, or if the value of the schedule that the update is said to have applied or logged is not
the one that it did."""

import argparse
import collections
import json
import os
import struct
import subprocess
import sys

# The kinds of finding that name a planted slip. A second kind is one that says the same in another
# way.
NAMED_BY = {
    "lr-ahead": {"lr"}, "lr-behind": {"lr", "scheduler"}, "scheduler-twice": {"scheduler"},
    "count-ahead": {"count", "lr"}, "decay-coupled": {"coupled_decay", "settings"},
    "decay-on-norms": {"decay", "settings"}, "clip-after": {"clip"},
    "group-forgotten": {"frozen"}, "frozen-layer": {"frozen"},
    "betas-not-configured": {"settings"}, "betas-not-stated": {"betas"},
    "eps-not-configured": {"settings"}, "eps-not-stated": {"eps"},
    "moments-lost": {"restart"}, "count-lost": {"restart", "count"}, "masters-lost": {"masters"},
    "scheduler-not-restored": {"lr", "count", "scheduler"}, "peak-overwritten": {"lr"},
}
# Findings that are right beside those that name the slip. A scheduler that ran ahead counts ahead. An
# `lr` is right wherever the applied LR is not the promised one (extras).
ALSO_RIGHT = {"lr-ahead": {"scheduler"}}
# What the files state as it was done accuses nobody: a remark has to do, and the first line says
# that there is one.
REMARKS = {"frozen", "coupled_decay", "decay"}
# What was meant where the files state honestly what was done (the notes of the cases).
MEANT = {"bug-betas-configured": {"betas": [0.9, 0.999]}, "bug-eps-configured": {"eps": 1e-8}}
# What resume-check must call lost.
LOST = {
    "moments-lost": "moments", "count-lost": "count", "masters-lost": "weights",
    "scheduler-not-restored": "scheduler", "peak-overwritten": "scheduler",
    "scaler-lost": "scaler", "generators-not-restored": "generators",
    "sampler-position-lost": "position"}
# Slips that two folders alone do not show to readback.
OF_RESTARTS = {"generators-not-restored", "sampler-position-lost", "scaler-lost",
               "new-lr-not-taken", "new-decay-not-taken"}


def pairs_of(truth):
    points = truth["checkpoints"]
    for before, after in zip(points, points[1:]):
        if after["update"] == before["update"] + 1:
            yield before["path"], after["path"], after["update"]


def words_of(folder, truth):
    words = []
    if truth.get("log", "").endswith(".jsonl"):
        words += ["--log", os.path.join(folder, truth["log"])]
    configured = {**truth.get("configured", {}), **MEANT.get(truth["name"], {})}
    if "Adam" not in truth["optimizer"]: # the cases' configuration states betas for all
        configured.pop("betas", None), configured.pop("eps", None)
    if configured.get("schedule") == "onecycle": # it sets betas of its own
        configured.pop("betas")
    named = {"clip": "max_grad_norm", "eps": "adam_epsilon", "weight_decay": "weight_decay"}
    for key, name in named.items():
        if configured.get(key) is not None:
            words += ["--expect", f"{name}={configured[key]!r}"]
    if "Adam" in truth["optimizer"]: # what was meant: AdamW, unless Adam was no slip
        decoupled = "AdamW" in truth["optimizer"] or truth.get("planted") == "decay-coupled"
        words += ["--expect", f"decoupled_weight_decay={int(decoupled)}"]
    for at, beta in enumerate(configured.get("betas", [])):
        words += ["--expect", f"adam_beta{at + 1}={beta!r}"]
    return words


def ask(binary, folder, before, after, words):
    done = subprocess.run([binary, "readback", os.path.join(folder, before),
                           os.path.join(folder, after), "--json", *words],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        return None, done.returncode, done.stderr.strip()
    return json.loads(done.stdout)["updates"][0], done.returncode, ""


def restored(binary, folder, truth):
    """What resume-check says of a restart: right, an error, or what is wrong."""
    before, after = [point["path"] for point in truth["checkpoints"]][-2:]
    done = subprocess.run([binary, "resume-check", os.path.join(folder, before),
                           os.path.join(folder, after), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        return done.stderr.strip()
    parts = json.loads(done.stdout)["parts"]
    lost = {part for part, said in parts.items() if said["state"] == "lost"}
    planted = LOST.get(truth.get("planted"))
    if planted and parts[planted]["state"] == "untold" and truth["sees"] == "undecided":
        return "undecided" if not lost else f"undecided, and lost {sorted(lost)}"
    if bool(planted) != bool(lost) or (planted and planted not in lost):
        return f"planted {planted}, lost {sorted(lost)}"
    return "right"


def bars(answer, applied):
    """For each group: inside, outside, or the state in which there is no bar."""
    for group, true in zip(answer["groups"], applied.get("groups", [])):
        lr = group["lr"]
        if lr["low"] is None:
            yield lr["state"], None
        else:
            inside = lr["low"] <= true["lr"] and (lr["high"] is None or true["lr"] <= lr["high"])
            width = (lr["high"] - lr["low"]) / 2 / true["lr"] if lr["high"] and true["lr"] else None
            words = {"read": "inside", "at_most": "at most", "at_least": "at least"}
            yield words[lr["state"]] if inside else "OUTSIDE", width


def norm(answer, applied):
    """Whether the bar of the gradient norm holds the norm that the hook saw."""
    said = answer["gradient_norm"]
    if said is None:
        return "unknown"
    return ("inside" if abs(said - applied["norm_taken"]) <= answer["gradient_norm_error"]
            else "OUTSIDE")


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def decays(answer, applied, truth):
    """For each group with a bar: whether it holds what the decay did. f32 rounds the factor 1 - lr *
    decay (torch 2.15, torch/optim/adam.py: param.mul_), and the program must have said so."""
    for group, true in zip(answer["groups"], applied.get("groups", [])):
        decay, asked, rate = group["decay"], true.get("weight_decay"), true["lr"]
        if not asked or not truth["decay_is_decoupled"] or decay["low"] is None:
            continue
        acted = (1.0 - f32(1.0 - rate * asked)) / rate
        inside = decay["low"] <= acted <= decay["high"] or decay["low"] <= asked <= decay["high"]
        if not inside and decay["state"] == "read":
            yield "OUTSIDE"
        elif group["weight_decay"] == asked and group["verdict"] == "kept" and not is_near(
                group["weight_decay_rounded"], acted):
            yield "OUTSIDE"
        else:
            yield "inside" if decay["state"] == "read" else "a bound"


def is_near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def contract(answer, applied, truth):
    """Whether the update was put at the right place of its schedule: open, or how many updates ahead
    of hf; WRONG otherwise. lr_promised is a linear schedule's."""
    if truth.get("configured", {}).get("schedule", "linear") == "onecycle":
        applied = {**applied, "lr_promised": applied["groups"][0]["lr"]}
    said, rate = answer["contract"], applied.get("groups", [{}])[0].get("lr")
    if said["why"] is not None:
        return "open"
    by = said["ahead"]
    if is_near(rate, applied["lr_promised"]) != (by == 0) or (by == 1) != (
            said["bug"] == "lr_ahead_by_one") or not said["fits"]:
        return "WRONG"
    if by != 0 and ("hf" in said["fits"] or ("olmo-core" in said["fits"]) != (by == 1)):
        return "WRONG"
    if said["logged"] is not None and is_near(rate, applied["lr_logged"]) != (
            said["logged"] == said["applied"]):
        return "WRONG"
    return f"{by:+.0f}" + ("" if said["logged"] is None else " with the log")


def extras(truth, update, answer):
    """The findings of one update of a planted case that are about something else than the slip."""
    applied, planted = truth["updates"][update - 1], truth.get("planted")
    if not planted:
        return set()
    faults = {finding["kind"] for finding in answer["findings"] if not finding["remark"]}
    right = NAMED_BY.get(planted, set()) | ALSO_RIGHT.get(planted, set())
    if any(not is_near(group["lr"], applied["lr_promised"]) for group in applied.get("groups", [])):
        right |= {"lr"}
    return faults - right


def judge(truth, found):
    """The outcome of one case, from all its findings that are no remarks and all its remarks."""
    planted, sees = truth.get("planted"), truth["sees"]
    faults, remarks = found
    if not planted:
        return "false" if faults else "silent"
    if planted in OF_RESTARTS:
        return "restart"
    if NAMED_BY[planted] & faults:
        return "named by a finding"
    if NAMED_BY[planted] & remarks & REMARKS:
        return "named by a remark alone"
    return "undecided" if sees in ("undecided", "bound", "refused") else "MISSED"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--show", action="store_true", help="a line for each update")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    outcomes, readings, wrong = collections.Counter(), collections.Counter(), []
    restarts, exchanged, placed, apart, norms, acted = (collections.Counter() for _ in range(6))
    beside = 0
    for root in arguments.folders:
        for name in sorted(os.listdir(root)):
            folder = os.path.join(root, name)
            if not os.path.exists(os.path.join(folder, "truth.json")) or (
                    arguments.only and name not in arguments.only):
                continue
            with open(os.path.join(folder, "truth.json")) as file:
                truth = json.load(file)
            faults, remarks, refused = set(), set(), ""
            for before, after, update in pairs_of(truth):
                answer, status, error = ask(arguments.binary, folder, before, after,
                                            words_of(folder, truth))
                if answer is None:
                    refused = error
                    continue
                faults |= {f["kind"] for f in answer["findings"] if not f["remark"]}
                remarks |= {f["kind"] for f in answer["findings"] if f["remark"]}
                applied = truth["updates"][update - 1]
                extra = extras(truth, update, answer)
                beside += len(extra)
                if extra:
                    wrong.append(f"{name} update {update}: findings about something else than "
                                 f"{truth['planted']}: {sorted(extra)}")
                measured = norm(answer, applied)
                norms[measured] += 1
                if measured == "OUTSIDE":
                    wrong.append(f"{name} update {update}: gradient norm "
                                 f"{answer['gradient_norm']}, {applied['norm_taken']} was taken in")
                for state in decays(answer, applied, truth):
                    acted[state] += 1
                    if state == "OUTSIDE":
                        wrong.append(f"{name} update {update}: a decay's bar misses what acted: "
                                     f"{[group['decay'] for group in answer['groups']]}")
                place = contract(answer, applied, truth)
                placed[place] += 1
                if place == "WRONG":
                    wrong.append(f"{name} update {update}: contract {answer['contract']}")
                turned, said, _ = ask(arguments.binary, folder, after, before, [])
                exchanged[said] += 1
                if said < 2:
                    wrong.append(f"{name} update {update}: exchanged folders are judged: "
                                 f"{[f['text'] for f in turned['findings'] if not f['remark']]}")
                shown = []
                for state, width in bars(answer, applied):
                    readings[state] += 1
                    shown.append(state + (f" {width:.1e}" if width else ""))
                    if state == "unexplained" and truth["healthy"]:
                        wrong.append(f"{name} update {update}: no LR explains a healthy update")
                    if state == "OUTSIDE":
                        wrong.append(f"{name} update {update}: the bar misses the applied LR")
                if arguments.show:
                    print(f"  {name} {update}: exit {status}; {', '.join(shown)}; faults "
                          f"{sorted(faults)}, remarks {sorted(remarks)}")
            points = truth["checkpoints"]
            for before, after in zip(points, points[2:]):
                if not all("groups" in update for update in
                           truth["updates"][before["update"]:after["update"]]):
                    continue # a skipped update moves nothing
                answer, said, _ = ask(arguments.binary, folder, before["path"], after["path"], [])
                apart[said] += 1
                if said < 2:
                    wrong.append(f"{name}: {before['path']} and {after['path']} are judged: "
                                 f"{[f['text'] for f in answer['findings'] if not f['remark']]}")
            if "restart_after_update" in truth:
                said = restored(arguments.binary, folder, truth)
                restarts[said if said in ("right", "undecided") else "WRONG"] += 1
                if said not in ("right", "undecided"):
                    wrong.append(f"{name}: resume-check: {said}")
            outcome = "refused" if refused else judge(truth, (faults, remarks))
            if refused and truth["sees"] != "refused":
                outcome = "REFUSED"
            outcomes[outcome] += 1
            if outcome in ("false", "MISSED", "REFUSED"):
                wrong.append(f"{name}: {outcome} ({truth.get('planted') or 'healthy'}): "
                             f"{refused or sorted(faults)} {sorted(remarks)}")
            if arguments.show:
                print(f"{name}: {outcome}{' (' + refused + ')' if refused else ''}")
    print("cases:", ", ".join(f"{count} {what}" for what, count in sorted(outcomes.items())))
    print("findings about something else in planted cases:", beside)
    print("learning rates:", ", ".join(f"{n} {what}" for what, n in sorted(readings.items())))
    print("decays:", ", ".join(f"{n} {what}" for what, n in sorted(acted.items())))
    print("gradient norms:", ", ".join(f"{n} {what}" for what, n in sorted(norms.items())))
    print("updates ahead of hf:", ", ".join(f"{n} {what}" for what, n in sorted(placed.items())))
    print("restarts:", ", ".join(f"{n} {what}" for what, n in sorted(restarts.items())))
    print("folders in the wrong order:", f"{exchanged[2]} refused, {exchanged[3]} undecided")
    print("folders with another between them:", f"{apart[2]} refused, {apart[3]} undecided")
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong or not readings else 0


if __name__ == "__main__":
    sys.exit(main())
