#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `lr fit`, `lr check` and `doctor` about healthy logs, and about logs in which one thing of the
schedule was altered, and counts right, undecided, silent and wrong answers. A wrong one fails.

    altered_logs.py --binary TWINSTEP [--count N] [--first K] [--seed S] [--jobs J] [--keep FOLDER]
                    [--only N,N] [--show]

Draws trainings of transformers' Trainer of both eras, Megatron, DeepSpeed, Lightning and a plain loop
of torch, prints the LRs as these do, every 1, 5 or 10 updates, and asks without a hint. The formulas
are those of the frameworks' sources (named below) and nothing here is shared with the program. The
kinds are:

    healthy       nothing is altered, and all updates ran
    cut           the run ended early, the log says the planned total
    short         the same, and the log says no total
    resumed       a resume went on as saved; where the format allows it, rows are repeated
    groups        a second parameter group with a tenth of the LR
    stairs        Lightning's scheduler steps once per epoch
    frozen        the scheduler is not stepped from some update on
    restarted     a resume that the log does not show begins the scheduler anew
    clamped       behind the warm-up the loop sets lr = max(lr, lowest)
    clamped_all   the same from the first update on
    strided       the scheduler steps once per 2 or 4 updates
    held          up to three updates do not step the scheduler, as at a skipped update
    other_peak    from some update on every LR is multiplied by one factor

Where an alteration changes no printed number, or makes exactly what another sound training prints (a
constant rate behind a warm-up, a line to a floor), the log is judged as that training's. Of each of
the three verbs the answer is

    right       the training that was drawn, or the alteration by a name that holds
    undecided   status 3, or "possible", or a remark
    nothing     `lr fit` explains nothing
    silent      the doctor says nothing of an alteration that the column shows
    wrong       status 0 with other numbers or for an altered log, an alarm for a healthy one, or a
                name that does not hold"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

KINDS = ["healthy", "frozen", "restarted", "clamped", "cut", "short", "strided", "held", "groups",
         "resumed", "other_peak", "stairs", "clamped_all"]
FRAMEWORKS = ["hf", "hf", "hf", "hf-4.50", "megatron", "deepspeed", "lightning", "torch"]
EXPECT = {"hf": "hf", "hf-4.50": "hf-4.50", "megatron": "megatron", "deepspeed": "deepspeed-warmup",
          "lightning": "lightning-step", "torch": "hf"}
PEAKS = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 3e-4, 1.5e-4, 6e-6]
BATCH = 8  # samples per update, Megatron's unit
# Frameworks whose row shows the LR of the next update.
NEXT = ("hf-4.50", "megatron")


def transformers(t, u):
    """transformers/optimization.py: the lambdas of get_*_schedule*; u counts scheduler steps."""
    kind, peak, warmup, total = t["schedule"], t["peak"], t["warmup"], t["total"]
    if u < warmup:
        return peak * (u / max(1, warmup))
    share = (u - warmup) / max(1, total - warmup)
    if kind == "linear":
        return peak * max(0.0, (total - u) / max(1, total - warmup))
    if kind == "cosine":
        return peak * (0.5 * (1.0 + math.cos(math.pi * min(1.0, share))))
    if kind == "cosine_with_min_lr":
        return peak * (0.5 * (1.0 + math.cos(math.pi * min(1.0, share))) * (1 - t["floor"]) + t["floor"])
    if kind == "polynomial":
        if u > total:
            return t["end"]
        return (peak - t["end"]) * (1 - share) ** t["power"] + t["end"]
    if kind == "inverse_sqrt":
        return peak / math.sqrt((u + max(1, warmup) - warmup) / max(1, warmup))
    if kind == "warmup_stable_decay":
        past = u - (total - t["decay"])
        return peak if past < 0 else peak * max(0.0, 1 - past / t["decay"])
    return peak


def megatron(t, u):
    """megatron/core/optimizer_param_scheduler.py, get_lr; u counts updates, it counts samples."""
    n, warmup, total = u * BATCH, t["warmup"] * BATCH, t["total"] * BATCH
    if warmup > 0 and n <= warmup:
        return t["peak"] * n / warmup
    if n > total:
        return t["least"]
    share = (n - warmup) / (total - warmup)
    left = 1.0 - share if t["schedule"] == "linear" else 0.5 * (math.cos(math.pi * share) + 1.0)
    return t["least"] + left * (t["peak"] - t["least"])


def deepspeed(t, u):
    """deepspeed/runtime/lr_schedules.py, WarmupDecayLR with its logarithmic warm-up."""
    if u < t["warmup"]:
        gamma = math.log(u + 1) / math.log(t["warmup"])
    else:
        gamma = max(0.0, (t["total"] - u) / max(1.0, t["total"] - t["warmup"]))
    return t["least"] + (t["peak"] - t["least"]) * gamma


FORMULAS = {"megatron": megatron, "deepspeed": deepspeed}


def draw(rng, number):
    kind, framework = KINDS[number % len(KINDS)], rng.choice(FRAMEWORKS)
    if kind == "groups":
        framework = "deepspeed"
    if kind == "stairs":
        return draw_stairs(rng)
    total = rng.choice([200, 300, 400, 500, 600, 777, 1000, 1234])
    t = {"kind": kind, "framework": framework, "peak": rng.choice(PEAKS), "total": total,
         "warmup": rng.choice([0, 10, 20, 30, 50, total // 10, int(0.03 * total)]),
         "every": rng.choice([1, 1, 1, 5, 10]), "ran": total}
    if framework == "deepspeed":
        t["schedule"], t["warmup"] = "warmup_decay", max(t["warmup"], 10)
        t["least"] = rng.choice([0.0, 0.0, 0.0, 1e-6])
    elif framework == "megatron":
        t["schedule"] = rng.choice(["linear", "cosine"])
        t["least"] = rng.choice([0.0, t["peak"] / 10, 1e-6, t["peak"] / 20])
    else:
        t["schedule"] = rng.choice(["linear", "cosine", "cosine_with_min_lr", "polynomial",
                                    "constant_with_warmup", "warmup_stable_decay", "inverse_sqrt"])
        t["floor"] = rng.choice([0.1, 0.05, 0.01, 0.2])
        t["end"], t["power"] = rng.choice([1e-7, 1e-6, t["peak"] / 10, 1e-8]), rng.choice([1.0, 1.0, 2.0])
        t["decay"] = rng.choice([total // 10, total // 5])
        if t["schedule"] == "inverse_sqrt":
            t["warmup"] = max(t["warmup"], 10)
    alter(rng, t)
    return t


def alter(rng, t):
    kind, total = t["kind"], t["total"]
    middle = rng.randrange(int(0.3 * total), int(0.7 * total))
    if kind == "frozen":
        t["at"] = rng.randrange(int(0.3 * total), int(0.8 * total))
        if rng.random() < 0.15 and t["warmup"] > 4:
            t["at"] = rng.randrange(2, t["warmup"])
    elif kind in ("restarted", "resumed"):
        t["at"], t["back"] = middle, rng.choice([0, 10])
    elif kind in ("clamped", "clamped_all"):
        t["lowest"] = t["peak"] * rng.choice([0.1, 0.05, 0.2, 0.125])
    elif kind in ("cut", "short"):
        t["ran"] = rng.randrange(int(0.3 * total), int(0.9 * total))
        t["says"] = 0 if kind == "short" else total
    elif kind == "strided":
        t["by"], t["every"] = rng.choice([2, 2, 4]), 1
    elif kind == "held":
        t["held"] = sorted(rng.sample(range(t["warmup"] + 5, total - 5), rng.choice([1, 2, 3])))
    elif kind == "other_peak":
        t["at"], t["factor"] = middle, rng.choice([0.5, 0.3, 2.0])


def draw_stairs(rng):
    epochs, each = rng.choice([10, 20, 12]), rng.choice([20, 25, 40])
    return {"kind": "stairs", "framework": "lightning", "schedule": rng.choice(["linear", "cosine"]),
            "peak": rng.choice(PEAKS), "warmup": rng.choice([0, 0, 1, 2]), "total": epochs, "epoch": each,
            "ran": epochs * each, "every": rng.choice([1, 5])}


def value(t, update, altered):
    """The LR that the row of an update shows, as altered or as the sound training would have it."""
    formula = FORMULAS.get(t["framework"], transformers)
    counter = update if t["framework"] in NEXT else update - 1
    if t["kind"] == "stairs":
        return formula(t, (update - 1) // t["epoch"])
    if not altered:
        return formula(t, counter)
    kind = t["kind"]
    if kind == "frozen":
        counter = min(counter, t["at"])
    elif kind == "restarted" and update > t["at"]:
        counter -= t["at"]
    elif kind == "strided":
        counter = (update - 1) // t["by"] + counter - (update - 1)
    elif kind == "held":
        counter -= sum(1 for h in t["held"] if h < update)
    lr = formula(t, counter)
    if kind == "clamped_all" or (kind == "clamped" and counter >= t["warmup"]):
        lr = max(lr, t["lowest"])
    if kind == "other_peak" and update > t["at"]:
        lr *= t["factor"]
    return lr


def updates_of(t):
    out = list(range(1, t["ran"] + 1))
    if t["kind"] == "resumed" and t["framework"] not in ("hf", "hf-4.50"):
        out = list(range(1, t["at"] + 1)) + list(range(t["at"] - t["back"] + 1, t["ran"] + 1))
    return [u for u in out if u % t["every"] == 0]


def loss(u):
    return 3.0 / (1.0 + 0.01 * u) + 0.02 * math.sin(1.7 * u) + 0.1


def norm(u):
    return 1.0 + 0.3 * math.sin(0.9 * u) + 0.001 * u


def printed(t, lr):
    return f"{lr:.6E}" if t["framework"] == "megatron" else repr(lr)


def write(t, folder, number):
    framework, says = t["framework"], t.get("says", t["ran"])
    rows = [(u, printed(t, value(t, u, True))) for u in updates_of(t)]
    name = f"{number:04d}-{framework}-{t['kind']}-{t['schedule']}"
    if framework in ("hf", "hf-4.50"):
        path = folder / f"{name}.json"
        history = [{"epoch": round(u / 100, 4), "grad_norm": norm(u), "learning_rate": float(lr),
                    "loss": round(loss(u), 4), "step": u} for u, lr in rows]
        state = {"epoch": 1.0, "global_step": t["ran"], "log_history": history,
                 "logging_steps": t["every"], "num_train_epochs": 1, "train_batch_size": BATCH}
        if says:
            state["max_steps"] = says
        path.write_text(json.dumps(state, indent=1))
        return path
    if framework == "lightning":
        path, each = folder / f"{name}.csv", t.get("epoch", 100)
        path.write_text("epoch,lr-AdamW,step,train_loss\n" + "".join(
            f"{(u - 1) // each},{lr},{u - 1},{loss(u)!r}\n" for u, lr in rows))
        return path
    path, lines = folder / f"{name}.log", []
    for u, lr in rows:
        if framework == "megatron":
            lines.append(f" [2026-01-01 00:00:{u % 60:02d}] iteration {u:8d}/{says or t['total']:8d} | "
                         f"consumed samples: {u * BATCH:12d} | elapsed time per iteration (ms): 100.0 | "
                         f"learning rate: {lr} | global batch size: {BATCH:5d} | lm loss: {loss(u):.6E} | "
                         f"loss scale: 1.0 | grad norm: {norm(u):.3f} | number of skipped iterations:   0 "
                         "| number of nan iterations:   0 |\n")
        elif framework == "deepspeed":
            both = [lr, repr(float(lr) / 10)] if t["kind"] == "groups" else [lr]
            lines.append(f"[2026-01-01 00:00:00,{u % 1000:03d}] [INFO] [logging.py:96:log_dist] [Rank 0] "
                         f"step={u}, skipped=0, lr=[{', '.join(both)}], mom=[(0.9, 0.95)]\n")
        else:
            lines.append(f"step={u} loss={loss(u):.4f} lr={lr}\n")
    path.write_text("".join(lines))
    return path


# ---- what is right ----


def is_altered(t):
    return any(printed(t, value(t, u, True)) != printed(t, value(t, u, False)) for u in updates_of(t))


def is_typed(x, digits=2):
    return abs(float(f"{x:.{digits - 1}e}") - x) <= 1e-9 * abs(x)


def twins(t):
    """Sound trainings that print the same column, as (peak, warm-up, total or None); each is judged as
    right where the program answers it."""
    peak, warmup, total, out = t["peak"], t["warmup"], t["total"], []
    # Rows of one number are those of a constant LR, whatever was in front of the first one.
    shown = {value(t, u, True) for u in updates_of(t)}
    if len(shown) == 1:
        out.append((shown.pop(), None, None))
    # Updates that are held on a plateau make it longer, and these two logs say no total.
    if (t["kind"] == "held" and t["schedule"] == "warmup_stable_decay"
            and t["framework"] in ("lightning", "torch")
            and all(warmup <= h < total - t["decay"] for h in t["held"])):
        out.append((peak, warmup, total + len(t["held"])))
    if t["kind"] == "frozen":
        stop = t["at"]
        if stop >= warmup and value(t, t["ran"], True) == peak:
            out.append((peak, warmup, None))
        elif 0 < stop < warmup and t["schedule"] != "warmup_decay" and is_typed(peak * stop / warmup):
            out.append((peak * stop / warmup, stop, None))
    # A line to the lowest LR ends where the line to 0 crosses it, if that is a whole update (or, of
    # Megatron, a whole sample).
    if t["kind"].startswith("clamped") and t["schedule"] in ("linear", "warmup_decay", "polynomial"):
        floor = t.get("end" if t["schedule"] == "polynomial" else "least", 0.0)
        if t["schedule"] != "polynomial" or t["power"] == 1.0:
            ends = warmup + (total - warmup) * (peak - t["lowest"]) / (peak - floor)
            out.append((peak, warmup, ends))
    return out


def says(fit, peak, warmup, total):
    """Tells whether a fit states these numbers, give or take one update, by which contracts differ."""
    if not abs(fit["lr"] / peak - 1.0) <= 2e-3:
        return False
    if (warmup is not None and fit["warmup"] is not None and abs(fit["warmup"] - warmup) > 1
            and not fit["warmup_hidden"]):
        return False
    return total is None or fit["steps"] is None or fit["steps_hidden"] or abs(fit["steps"] - total) <= 1


def is_drawn(t, fit):
    if t["kind"] == "stairs":
        return says(fit, t["peak"], t["warmup"] * t["epoch"], None) or says(
            fit, t["peak"], t["warmup"], None)
    plain = len(fit["segments"]) <= 1 and not fit["skipped"] and fit["stride"] == 1.0
    total = None if t["schedule"] in ("constant_with_warmup", "inverse_sqrt") else t["total"]
    # Nobody can see the total of a plateau that was never left.
    if t["schedule"] == "warmup_stable_decay" and t["ran"] <= t["total"] - t["decay"] + t["every"]:
        total = None
    return plain and says(fit, t["peak"], t["warmup"], total)


def names_alteration(t, fit):
    """Tells whether a fit states what was altered, and the row behind which it was."""
    kind, segments = t["kind"], fit["segments"]
    # Where the floor holds the first update alone, that is all that the column shows of it.
    if kind == "clamped_all" and ", but update 1 at " in fit["text"]:
        rows = [u for u in updates_of(t) if printed(t, value(t, u, True)) != printed(t, value(t, u, False))]
        return rows == [1] and is_drawn(t, fit)
    if kind == "held":
        return bool(fit["skipped"]) or any(s["event"] == "skip" for s in segments)
    if kind == "other_peak" and "lower at update" in fit["parameters"]:
        fell = int(fit["parameters"].split("lower at update ")[1].split(";")[0].split(",")[0])
        return t["at"] < fell <= t["at"] + t["every"]
    if kind in ("restarted", "other_peak"):
        wanted = {"restarted": ("reset", "skip", "jump"), "other_peak": ("rescaled", "restarted")}[kind]
        return any(s["event"] in wanted and t["at"] < s["update"] <= t["at"] + t["every"]
                   for s in segments)
    return False


# What may be said for certain, or as likely, of each alteration.
NAMES = {"frozen": {"schedule_stands_still"}, "restarted": {"scheduler_not_restored", "lr_jump_at_resume"},
         "strided": {"stepped_every_n_updates", "scheduler_epoch_default"},
         "other_peak": {"lr_jump_at_resume", "other_peak"}, "stairs": {"scheduler_epoch_default"},
         "held": {"nan_skip_poison"}}
# What a remark, or something that is only possible, is about the LR.
REMARKS = {"schedule_stands_still", "lr_held_from_below", "skipped_updates", "lr_stairs", "lr_unexplained",
           "stepped_every_n_updates", "scheduler_not_restored", "lr_jump_at_resume",
           "schedule_total_changed", "other_peak", "scheduler_epoch_default", "first_lr_apart",
           "schedule_held"}


def judge_fit(t, altered, answer, status):
    fits = answer["fits"]
    if not fits:
        return "nothing"
    if status != 0:
        return "undecided"
    fit = fits[0]
    if is_drawn(t, fit) and not altered:
        return "right"
    if altered and (names_alteration(t, fit) or any(says(fit, *twin) for twin in twins(t))):
        return "right"
    return "wrong"


def judge_check(t, altered, answer, status):
    if status == 3:
        return "undecided"
    if status == 0:
        fit = answer["expected"]
        if altered and names_alteration(t, fit):
            return "right"
        return "right" if not altered or any(says(fit, *twin) for twin in twins(t)) else "wrong"
    names = set((answer["bug"] or "").replace(" or ", " ").split())
    if t["kind"] == "stairs":
        return "right" if names & NAMES["stairs"] else "wrong"
    if not altered:
        return "wrong"
    return "right" if not names or names & NAMES.get(t["kind"], set()) else "wrong"


def judge_doctor(t, altered, answer, status):
    firm = {f["id"] for f in answer["findings"] if f["confidence"] != "possible"}
    soft = {f["id"] for f in answer["findings"]} | {r["id"] for r in answer["remarks"]}
    if firm - (NAMES.get(t["kind"], set()) if altered else set()):
        return "wrong"
    if not altered or firm:
        return "right"
    if soft & REMARKS:
        return "undecided"
    # A bug that shows too little of itself is said where every check has its line.
    if any(c["check"] == "lr_bug" and c["result"] == "untestable" for c in answer["checks"]):
        return "undecided"
    return "right" if twins(t) else "silent"


def ask(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.returncode


def one(work):
    binary, seed, number, folder = work
    t = draw(random.Random(f"{seed}/{number}"), number)
    path = write(t, folder, number)
    altered, verdicts = is_altered(t), {}
    fit, status = ask([binary, "lr", "fit", str(path), "--json"])
    said = [f"fit {status}: {fit['fits'][0]['text'] if fit['fits'] else 'nothing'}"]
    verdicts["fit"] = judge_fit(t, altered, fit, status)
    check, status = ask([binary, "lr", "check", str(path), "--expect", EXPECT[t["framework"]], "--json"])
    said.append(f"check {status}: {check['words']} [{check['bug']}]")
    verdicts["check"] = judge_check(t, altered, check, status)
    doctor, status = ask([binary, "doctor", str(path), "--json"])
    said.append("doctor {}: {} | {}".format(
        status, ", ".join(f"{f['id']} {f['confidence']}" for f in doctor["findings"]),
        ", ".join(r["id"] for r in doctor["remarks"])))
    verdicts["doctor"] = judge_doctor(t, altered, doctor, status)
    return number, t, altered, verdicts, said, path.name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=325)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--only", help="numbers between commas, in place of --first and --count")
    parser.add_argument("--show", action="store_true", help="print every answer that is not right")
    given = parser.parse_args()
    if given.count < 1 or given.first < 0 or given.jobs < 1:
        parser.error("--count and --jobs are at least 1, and --first is at least 0")
    numbers = range(given.first, given.first + given.count)
    if given.only:
        numbers = [int(n) for n in given.only.split(",")]
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(given.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        works = [(given.binary, given.seed, n, folder) for n in numbers]
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            for number, t, altered, verdicts, said, name in pool.map(one, works):
                for verb, verdict in verdicts.items():
                    counts["altered" if altered else "healthy", verb, verdict] += 1
                bad = set(verdicts.values()) - {"right"}
                if "wrong" in bad or (given.show and bad):
                    print(f"{name}: {verdicts}\n    {t}\n    " + "\n    ".join(said))
                    sys.stdout.flush()
    for group in ("healthy", "altered"):
        for verb in ("fit", "check", "doctor"):
            of = {k[2]: n for k, n in sorted(counts.items()) if k[:2] == (group, verb)}
            print(f"{group}, {verb}: " + ", ".join(f"{n} {k}" for k, n in of.items()))
    return 1 if any(k[2] == "wrong" and n > 0 for k, n in counts.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
