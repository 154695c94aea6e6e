#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/forensics/corpus.logs: small logs whose truth is planted.

    corpus.py            writes the logs to standard output
    corpus.py --check    fails where the committed file is not what this script makes

Each block begins with "== NAME". Lines of "= KEY VALUE" say what test_corpus asks about the log, and
what must be in the answer because it was planted here. The rest of the block is the log as a tool would
print it. Learning rates come from the formulas of transformers/optimization.py, Megatron-LM's
optimizer_param_scheduler.py, DeepSpeed's and OLMo-core's schedulers and torch's lr_scheduler.py, written
out below; nothing of the program takes part."""
import json
import math
import pathlib
import random
import struct
import sys

FILE = pathlib.Path(__file__).resolve().parents[1] / "golden" / "forensics" / "corpus.logs"


# ---- schedules: the LR at counter u ----

def rising(u, w):
    return u / max(1.0, w)


def linear(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    return c["peak"] * max(0.0, float(c["total"] - u) / max(1.0, c["total"] - c["warmup"]))


def cosine(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    share = float(u - c["warmup"]) / max(1.0, c["total"] - c["warmup"])
    return c["peak"] * max(0.0, 0.5 * (1.0 + math.cos(math.pi * c.get("cycles", 0.5) * 2.0 * share)))


def min_cosine(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    share = float(u - c["warmup"]) / max(1.0, c["total"] - c["warmup"])
    factor = 0.5 * (1.0 + math.cos(math.pi * share))
    return c["peak"] * max(0.0, factor * (1 - c["floor"]) + c["floor"])


def restarts(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    share = float(u - c["warmup"]) / max(1.0, c["total"] - c["warmup"])
    if share >= 1.0:
        return 0.0
    return c["peak"] * max(0.0, 0.5 * (1.0 + math.cos(math.pi * ((c["cycles"] * share) % 1.0))))


def polynomial(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    if u > c["total"]:
        return c["end"]
    left = 1.0 - (u - c["warmup"]) / (c["total"] - c["warmup"])
    return (c["peak"] - c["end"]) * left ** c.get("power", 1.0) + c["end"]


def inverse_sqrt(c, u):
    if u < c["warmup"]:
        return c["peak"] * rising(u, c["warmup"])
    scale = c.get("timescale", c["warmup"] or 10000)
    return c["peak"] * (1.0 / math.sqrt((u + scale - c["warmup"]) / scale))


def constant(c, u):
    return c["peak"] * (rising(u, c["warmup"]) if u < c["warmup"] else 1.0)


def stable(c, u):
    """get_wsd_schedule with its defaults: the decay is a cosine."""
    flat = c["total"] - c["warmup"] - c["decay"]
    if u < c["warmup"]:
        return c["peak"] * (float(u) / float(max(1, c["warmup"])))
    if u < c["warmup"] + flat:
        return c["peak"]
    if u < c["total"]:
        share = float(u - c["warmup"] - flat) / float(max(1, c["decay"]))
        return c["peak"] * max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * share)))
    return 0.0


def megatron(c, u):
    """OptimizerParamScheduler.get_lr; u, warm-up and total count samples of one batch here."""
    low = c.get("min", 0.0)
    if c["warmup"] > 0 and u <= c["warmup"]:
        return c["peak"] * u / c["warmup"]
    if c["style"] == "constant":
        return c["peak"]
    if u > c["total"]:
        return low
    if c["style"] == "inverse-square-root":
        return max(low, c["peak"] * max(c["warmup"], 1) ** 0.5 / max(u, 1) ** 0.5)
    share = (u - c["warmup"]) / (c["total"] - c["warmup"])
    if c["style"] == "linear":
        return low + (1.0 - share) * (c["peak"] - low)
    return low + 0.5 * (math.cos(math.pi * share) + 1.0) * (c["peak"] - low)


def olmo_linear(c, u):
    if u < c["warmup"]:
        return c["peak"] * u / c["warmup"]
    if u >= c["total"]:
        return c.get("floor", 0.0) * c["peak"]
    low = c["peak"] * c.get("floor", 0.0)
    return c["peak"] - (c["peak"] - low) * ((u - c["warmup"]) / (c["total"] - c["warmup"]))


def olmo_cosine(c, u):
    low = c["peak"] * c.get("floor", 0.1)
    if u < c["warmup"]:
        return c["peak"] * u / c["warmup"]
    if u >= c["total"]:
        return low
    return low + (c["peak"] - low) * (1 + math.cos(math.pi * (u - c["warmup"]) / (c["total"] - c["warmup"]))) / 2


def deepspeed_decay(c, u):
    """WarmupDecayLR with warmup_type linear; 0 before the first call."""
    if u < 0:
        return 0.0
    w = max(2, c["warmup"])
    if u < w:
        return c["peak"] * (u / w)
    return c["peak"] * max(0.0, float(c["total"] - u) / float(max(1.0, c["total"] - w)))


# contract: how far the counter is ahead of the updates before k, and whether the next LR is printed
AHEAD = {"olmo-core": 1, "open-instruct-dpo": 1, "lag1": -1, "deepspeed-warmup": -1}
NEXT = {"hf-4.50", "accelerate", "accelerate-split-batches", "deepspeed-torch", "megatron",
        "deepspeed-warmup", "torchtune", "hf-x-processes"}


def column(c):
    """The LR that is printed at each update 1 .. end."""
    out, done, shift = [], 0, 0
    now = dict(c)
    unit = c.get("unit", 1)
    for k in range(1, c["end"] + 1):
        for at, what, value in c.get("breaks", []):
            if at == k:
                if what == "counter":
                    shift = value - done
                elif what == "ahead":
                    shift += value
                elif what == "peak":
                    now["peak"] = c["peak"] * value
                else:
                    now["total"] = value
        before = done + shift
        done += k not in c.get("skipped", ())
        at = (done + shift if c["contract"] in NEXT else before) + AHEAD.get(c["contract"], 0)
        lr = c["schedule"](now, at * unit if at >= 0 or c["contract"] == "deepspeed-warmup" else 0)
        out.append(c["first"] if k == 1 and "first" in c else lr)
    return out


# ---- logs ----

def as_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


PRINTS = {
    "repr": repr,
    "e2": "{:.2e}".format,
    "e3": "{:.3e}".format,
    "e6": "{:.6E}".format,
    "f8": "{:.8f}".format,
}


def loss_of(k, rng):
    return 0.6 + 2.0 / (1.0 + 0.05 * k) + 0.02 * (rng.random() - 0.5)


def json_lines(c, rows, rng):
    for k, lr in rows:
        more = "".join(f', "{name}": {value(k) if callable(value) else value}'
                       for name, value in c.get("more", {}).items())
        yield f'{{"step": {k}, "loss": {loss_of(k, rng):.4f}, "lr": {PRINTS[c["print"]](lr)}{more}}}'


def csv_lines(c, rows, rng):
    yield "step,lr,loss"
    for k, lr in rows:
        yield f"{k},{PRINTS[c['print']](lr)},{loss_of(k, rng):.4f}"


def state_lines(c, rows, rng):
    yield (f'{{"global_step": {c["end"]}, "logging_steps": {c["every"]}, "max_steps": '
           f'{c.get("max_steps", c["total"])}, "num_train_epochs": 1, "log_history": [')
    for n, (k, lr) in enumerate(rows):
        norm = "NaN" if k in c.get("skipped", ()) and c.get("norms") else f"{1.0 + rng.random():.4f}"
        yield (f' {{"epoch": {k / c["total"]:.4f}, "grad_norm": {norm}, "learning_rate": {lr!r}, '
               f'"loss": {loss_of(k, rng):.4f}, "step": {k}}}{"," if n + 1 < len(rows) else ""}')
    yield "]}"


def megatron_lines(c, rows, rng):
    before = 0
    for k, lr in rows:
        lost = sum(before < s <= k for s in c.get("skipped", ()))
        before = k
        yield (f" [2026-01-01 00:00:00] iteration {k:8d}/{c['total']:8d} | consumed samples: "
               f"{k * c.get('batch', 8):12d} | learning rate: {lr:.6E} | global batch size: {c.get('batch', 8):5d} | "
               f"lm loss: {loss_of(k, rng):.6E} | loss scale: {c.get('scale', 65536.0)} | grad norm: 1.0 | "
               f"number of skipped iterations: {lost:3d} | number of nan iterations:   0 |")


def deepspeed_lines(c, rows, rng):
    for k, lr in rows:
        lost = sum(s <= k for s in c.get("skipped", ()))
        yield (f"[2026-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={k}, skipped={lost}, "
               f"lr=[{lr!r}], mom=[(0.9, 0.999)]")


def console_lines(c, rows, rng):
    for k, lr in rows:
        yield (f"{{'loss': {loss_of(k, rng):.4f}, 'grad_norm': {1.0 + rng.random()!r}, 'learning_rate': {lr!r}, "
               f"'epoch': {k / c.get('epoch', 100):.2f}}}")


WRITERS = {"jsonl": json_lines, "csv": csv_lines, "state": state_lines, "megatron": megatron_lines,
           "deepspeed": deepspeed_lines, "console": console_lines}


def rows_of(c):
    """The rows as (update, LR); a resume goes back to `resume[1]` behind update `resume[0]`."""
    values, every = column(c), c["every"]
    wanted = c["rows"] if "rows" in c else [k for k in range(c.get("from", every), c["end"] + 1) if k % every == 0 or k == 1]
    rows = [(k, values[k - 1]) for k in wanted]
    for at, value in c.get("edit", []):
        rows[at] = (rows[at][0], value)
    if "resume" in c:
        last, first = c["resume"]
        kept = [row for row in rows if row[0] <= last]
        again = [row for row in rows if row[0] >= first]
        rows = kept + again
    return rows


CASES = []


def case(name, schedule, contract="hf", peak=5e-4, warmup=10, total=100, **more):
    c = dict(name=name, schedule=schedule, contract=contract, peak=peak, warmup=warmup, total=total, every=1,
             print="repr", writer="jsonl")
    c.update(more)
    c.setdefault("end", total)
    CASES.append(c)


def plain():
    """Every schedule once, healthy, in several prints and spacings, asked with its contract."""
    yes = {"first": 1, "bug": "none"}
    case("hf-linear", linear, ask={"contract": "hf"}, truth=yes, dear="peak, warm-up, olmo-core")
    case("hf-linear-known", linear, dear="contract, warm-up, olmo-core", peak=2e-5, warmup=6, total=120, every=5, ask={"contract": "hf", "steps": 120},
         truth=yes)
    case("hf-linear-no-warmup", linear, peak=3e-4, warmup=0, total=40, ask={"contract": "hf"}, truth=yes,
         dear="warm-up, olmo-core")
    case("hf-linear-long", linear, peak=1e-5, warmup=300, total=10000, every=500, ask={"contract": "hf", "steps": 10000},
         truth=yes)
    case("hf-linear-part", nightly=1, schedule=linear, peak=1e-4, warmup=20, total=400, end=90, every=15, ask={"contract": "hf"}, uncheck=1,
         truth=yes)
    case("hf-linear-e2", linear, peak=5e-4, warmup=10, total=100, print="e2", writer="csv",
         ask={"contract": "hf", "steps": 100}, truth={"bug": "none"})
    case("hf-linear-e2-open", linear, peak=2e-4, warmup=4, total=60, every=3, print="e2", writer="csv",
         ask={"contract": "hf", "limit": 60}, truth={"bug": "none"})
    case("hf-linear-behind", linear, peak=2e-4, warmup=10, total=100, rows=list(range(40, 101, 4)),
         ask={"contract": "hf", "steps": 100}, truth={"bug": "none"}, unpeak=1)
    case("hf-linear-knee-apart", nightly=1, schedule=linear, peak=2e-4, warmup=33, total=300, every=25, ask={"contract": "hf"}, truth=yes)
    case("hf-linear-rise", linear, peak=4e-4, warmup=100, total=1000, end=60, every=4, ask={"contract": "hf"},
         truth={"nothing": 0}, unpeak=1)
    case("hf-next", linear, dear="contract, warm-up, olmo-core", contract="hf-4.50", peak=5e-5, warmup=8, total=80, ask={"contract": "hf-4.50"}, truth=yes)
    case("hf-cosine", cosine, peak=1e-4, warmup=9, total=90, every=3, ask={"contract": "hf"}, truth=yes)
    case("hf-cosine-e3", cosine, dear="warm-up", peak=1.5e-4, warmup=15, total=300, every=10, print="e3", writer="csv",
         ask={"contract": "hf", "steps": 300}, truth={"bug": "none"})
    case("hf-cosine-past", cosine, peak=2e-4, warmup=10, total=60, end=80, ask={"contract": "hf"}, truth={})
    case("hf-cosine-cycles", cosine, peak=2e-4, warmup=10, total=110, cycles=1.0, every=5,
         ask={"contract": "hf", "steps": 110, "value": "num_cycles=1", "schedule": "cosine"}, truth={})
    case("hf-floor", min_cosine, peak=1e-4, warmup=10, total=100, floor=0.1, every=4,
         ask={"contract": "hf", "steps": 100}, truth={"floor": 0.1})
    case("hf-floor-odd", min_cosine, peak=6e-5, warmup=5, total=105, floor=0.07, every=4,
         ask={"contract": "hf", "steps": 105, "floor": 0.07}, truth={"floor": 0.07})
    case("hf-restarts", restarts, peak=1e-4, warmup=10, total=130, cycles=3, every=4,
         ask={"contract": "hf", "steps": 130, "value": "num_cycles=3", "schedule": "cosine_with_restarts"}, truth={})
    case("hf-polynomial", polynomial, peak=1e-4, warmup=10, total=100, end_lr=1e-7, every=5,
         ask={"contract": "hf", "steps": 100}, truth={"schedule": "polynomial"})
    CASES[-1]["schedule"] = lambda c, u: polynomial({**c, "end": 1e-7}, u)
    case("hf-inverse", inverse_sqrt, peak=1e-3, warmup=20, total=200, every=8, ask={"contract": "hf", "steps": 200},
         truth={"schedule": "inverse_sqrt"}, untotal=1)
    case("hf-constant", constant, peak=1e-5, warmup=12, total=60, every=2, ask={"contract": "hf"}, truth={}, untotal=1)
    case("hf-wsd", stable, peak=3e-4, warmup=10, total=200, decay=40, every=5,
         ask={"contract": "hf", "steps": 200}, truth={"schedule": "warmup_stable_decay", "bug": "none"})
    case("hf-state", linear, dear="warm-up", peak=2e-5, warmup=10, total=200, every=10, writer="state", ask={}, truth=yes)
    case("hf-state-4.50", cosine, contract="hf-4.50", peak=3e-5, warmup=6, total=120, every=6, writer="state",
         ask={}, truth=yes)
    case("megatron-linear", megatron, contract="megatron", style="linear", peak=1.5e-4, warmup=20, total=200, min=1e-5,
         every=10, writer="megatron", ask={"contract": "megatron", "batch": 8}, truth={"bug": "none"})
    case("megatron-cosine", megatron, dear="contract", contract="megatron", style="cosine", peak=6e-4, warmup=14, total=140, min=6e-5,
         every=7, writer="megatron", ask={"contract": "megatron", "batch": 8}, truth={"bug": "none"})
    case("megatron-constant", megatron, contract="megatron", style="constant", peak=6e-4, warmup=14, total=140,
         every=7, writer="megatron", ask={"contract": "megatron", "batch": 8}, truth={}, untotal=1)
    case("megatron-root", megatron, contract="megatron", style="inverse-square-root", peak=1e-3, warmup=16, total=160,
         every=4, min=1e-6, writer="megatron", ask={"contract": "megatron", "batch": 8, "value": "min_lr=1e-6", "schedule": "inverse-square-root"},
         truth={}, untotal=1)
    case("megatron-flat-end", megatron, contract="megatron", style="linear", peak=1e-4, warmup=10, total=120, end=160,
         min=1e-5, every=4, writer="megatron", ask={"contract": "megatron", "batch": 8}, truth={})
    case("megatron-fraction", megatron, contract="megatron", style="cosine", peak=1e-4, warmup=0.013 * 411, total=411,
         every=9, writer="megatron", ask={"contract": "megatron", "batch": 8}, truth={})
    case("olmo-linear", olmo_linear, dear="contract", contract="olmo-core", peak=4e-4, warmup=10, total=100, every=4,
         ask={"contract": "olmo-core"}, truth=yes)
    case("olmo-cosine", olmo_cosine, contract="olmo-core", peak=3e-4, warmup=10, total=120, every=4,
         ask={"contract": "olmo-core", "steps": 120}, truth={"bug": "none"})
    case("deepspeed-decay", deepspeed_decay, contract="deepspeed-warmup", peak=1e-3, warmup=10, total=90, every=3,
         writer="deepspeed", ask={"contract": "deepspeed-warmup", "value": "warmup_type=linear", "schedule": "warmup_decay"}, truth={})
    case("deepspeed-torch", linear, contract="deepspeed-torch", peak=1e-4, warmup=5, total=75, every=3,
         writer="deepspeed", ask={"contract": "deepspeed-torch"}, truth=yes)
    case("accelerate", linear, contract="accelerate", peak=2e-5, warmup=7, total=70,
         ask={"contract": "accelerate", "processes": 4}, truth={})
    case("epochs", lambda c, u: linear({**c, "warmup": 0, "total": 10}, u // 12), contract="lightning-epoch",
         peak=1e-3, warmup=0, total=120, ask={"contract": "lightning-epoch", "epoch": 12}, truth={}, untotal=1)
    case("epochs-open", lambda c, u: linear({**c, "warmup": 0, "total": 8}, u // 9), contract="lightning-epoch",
         peak=1e-3, warmup=0, total=72, uncheck=1, ask={"contract": "lightning-epoch"}, truth={}, untotal=1)
    case("llmc", lambda c, u: as_float(linear(c, u)), contract="hf", peak=1e-4, warmup=0, total=50, print="f8",
         ask={"contract": "hf", "steps": 50}, truth={}, unpeak=1, writer="csv")


def free():
    """Without a contract: every framework is tried."""
    case("any-linear", nightly=1, schedule=linear, peak=5e-5, warmup=10, total=100, every=5, ask={}, truth={"bug": "none"})
    case("any-next", linear, contract="hf-4.50", peak=1e-4, warmup=5, total=60, every=2, ask={}, truth={})
    case("any-olmo", olmo_linear, contract="olmo-core", peak=1e-4, warmup=6, total=50, ask={"steps": 50}, truth={})
    case("any-cosine-e6", cosine, peak=2e-5, warmup=8, total=80, every=4, print="e6", writer="csv", ask={"steps": 80},
         truth={})
    case("any-processes", nightly=1, schedule=linear, contract="hf-x-processes", unit=4, peak=1e-4, warmup=20, total=200, end=50,
         ask={"processes": 4, "steps": 200}, truth={"bug": "xP_scheduler"}, unpeak=0)
    case("any-micro", nightly=1, schedule=linear, contract="per-micro-batch", unit=4, uncheck=1, peak=1e-4, warmup=20, total=200, end=50,
         ask={"accumulate": 4, "steps": 200, "contract": "per-micro-batch"}, truth={})
    case("any-nothing", nightly=1, schedule=lambda c, u: 1e-4 * (0.3 + 0.61 * math.sin(u * 0.37) ** 2), total=30, ask={"contract": "hf", "steps": 30}, truth={"nothing": 1})


def broken():
    """One thing departs: the counter, the peak, the total or the first update."""
    hf = {"contract": "hf", "steps": 100}
    case("reset", linear, uncheck=1, breaks=[(41, "counter", 0)], ask=hf, truth={"bug": "scheduler_not_restored"})
    case("reset-hidden", nightly=1, schedule=linear, every=4, peak=2e-4, breaks=[(50, "counter", 0)], ask=hf,
         truth={"bug": "scheduler_not_restored"})
    case("doubled", linear, peak=2e-4, breaks=[(31, "counter", 60)], ask=hf, truth={"bug": "double_counter"})
    case("rescaled", linear, peak=1e-3, breaks=[(41, "peak", 2.0 / 3.0)], ask=hf,
         truth={"bug": "initial_lr_overwritten"}, end=90)
    case("restarted", linear, peak=1e-3, breaks=[(61, "counter", 0), (61, "peak", 0.5)], ask=hf, truth={})
    case("ahead-twenty", linear, peak=1e-3, breaks=[(21, "ahead", 1), (41, "ahead", 1), (61, "ahead", 1)], ask=hf,
         truth={"bug": "eval_steps_scheduler"})
    case("ahead-once", linear, peak=1e-3, breaks=[(45, "ahead", 7)], ask=hf, truth={})
    case("other-total", linear, peak=1e-3, breaks=[(51, "total", 150)], end=120, ask={"contract": "hf", "steps": 150},
         truth={})
    case("other-total-open", nightly=1, schedule=linear, peak=1e-3, total=100, breaks=[(51, "total", 160)], end=120, every=6,
         ask={"contract": "hf"}, truth={})
    case("two-resets", nightly=1, schedule=linear, peak=1e-3, breaks=[(31, "counter", 0), (71, "counter", 0)], ask=hf, truth={})
    case("first-peak", linear, uncheck=1, peak=2e-4, warmup=10, first=2e-4, ask=hf, truth={"firstdiffers": 1})
    case("first-zero", linear, uncheck=1, peak=2e-4, warmup=0, first=0.0, ask=hf, truth={}, unpeak=1)
    case("twice-as-fast", linear, uncheck=1, unit=2, peak=2e-4, warmup=10, ask={"contract": "hf", "steps": 100}, end=60,
         truth={"stride": 2.0})
    case("half-as-fast", nightly=1, schedule=linear, uncheck=1, unit=0.5, peak=2e-4, warmup=10, end=100, every=4, ask={"contract": "hf", "steps": 100},
         truth={}, untotal=1)
    case("stages", uncheck=1, schedule=lambda c, u: 1e-3 if u < 40 else 3e-4 if u < 70 else 1e-4, total=100, ask={"contract": "hf"},
         truth={}, unpeak=1, untotal=1)
    case("next-stage", uncheck=1, schedule=lambda c, u: linear(c, u % 50), total=50, warmup=5, end=150, every=2, ask={"contract": "hf"},
         truth={})
    case("partial", nightly=1, schedule=lambda c, u: linear(c, u) if u < 60 else 1e-5 * (3 + u % 7), peak=1e-3, ask=hf,
         truth={"nothing": 1})
    resumed = {"breaks": [], "resume": (60, 51)}
    case("resume-healthy", linear, peak=1e-3, ask=hf, truth={}, **resumed)
    case("resume-state", cosine, peak=1e-3, every=5, writer="state", ask={}, truth={}, resume=(60, 45))


def applied():
    """Logs that record what was applied, too."""
    some = {"peak": 1e-3, "warmup": 5, "total": 40}
    now = lambda k: repr(linear(some, k - 1))
    then = lambda k: repr(linear(some, k))
    ask = {"contract": "hf", "steps": 40}
    case("applied-as-printed", linear, ask=ask, more={"lr_applied": now}, truth={}, **some)
    case("applied-next", linear, ask=ask, more={"lr_applied": then}, truth={}, uncheck=1, **some)
    case("applied-f32", linear, ask=ask, more={"lr_applied": lambda k: repr(as_float(linear(some, k - 1)))}, truth={},
         **some)
    case("applied-late", linear, ask=ask, more={"lr_applied": lambda k: now(k) if k < 33 else "0.0001"}, truth={},
         uncheck=1, **some)
    case("applied-still", linear, ask=ask, more={"lr_applied": lambda k: "0.001"}, truth={}, uncheck=1, **some)
    case("applied-open", linear, contract="hf-4.50", ask={"steps": 40}, more={"lr_applied": now}, truth={}, **some)


def native():
    """Only the log's format says whose it is."""
    case("native-state-short", linear, peak=2e-4, warmup=5, total=50, end=70, every=2, writer="state", max_steps=70,
         ask={}, truth={}, uncheck=1)
    case("native-state-skips", linear, peak=2e-4, warmup=5, total=50, skipped=[3, 22], writer="state", norms=1,
         ask={}, truth={"skips": 2}, uncheck=1)
    case("native-megatron", megatron, contract="megatron", style="linear", peak=2e-4, warmup=6, total=48, end=60,
         min=2e-5, every=3, writer="megatron", ask={"batch": 8}, truth={}, uncheck=1)
    case("native-deepspeed", linear, contract="deepspeed-torch", peak=2e-4, warmup=6, total=48, skipped=[1, 9], every=3,
         writer="deepspeed", ask={"steps": 48}, truth={"skips": 2}, uncheck=1)


def early():
    """Updates in front of the first row that were skipped, beside a break."""
    ask = {"contract": "hf", "steps": 160}
    late = list(range(6, 121, 3))
    case("early-skips", linear, peak=3e-4, rows=late, end=120, skipped=[2, 3], total=160, ask=ask, truth={"skips": 2},
         uncheck=1)
    case("early-total", linear, peak=3e-4, rows=late, end=120, skipped=[2, 3], total=133,
         breaks=[(60, "total", 160)], ask=ask, truth={"nothing": 0}, nightly=1)
    case("early-first", linear, peak=3e-4, warmup=6, total=44, end=60, skipped=[1, 2], breaks=[(30, "total", 60)],
         ask={"contract": "hf", "steps": 60}, truth={"text": "held 2 times at update 1; total 60 from update 30"})
    case("early-first-reset", linear, peak=3e-4, warmup=6, total=60, end=60, skipped=[1], breaks=[(30, "counter", 0)],
         ask={"contract": "hf", "steps": 60}, truth={"bug": "scheduler_not_restored"})
    case("early-reset", linear, peak=3e-4, rows=late, end=120, skipped=[4], total=160,
         breaks=[(60, "counter", 0)], ask=ask, truth={"bug": "scheduler_not_restored"})


def pairs():
    """Neighbours of this list are compared: each differs from the one before in what its name says."""
    ask = {"contract": "hf", "steps": 40}
    some = {"peak": 1e-3, "warmup": 5, "total": 40}
    case("grid", linear, ask={"contract": "hf"}, truth={}, grid="linear", peak=1e-3, warmup=3, total=21)
    case("pair-hf", linear, ask=ask, truth={}, uncheck=1, **some)
    case("pair-hf-again", linear, ask=ask, truth={}, uncheck=1, **some)
    case("pair-next", linear, contract="hf-4.50", ask={"contract": "hf-4.50", "steps": 40}, truth={}, uncheck=1, **some)
    case("pair-ahead", olmo_linear, contract="olmo-core", ask={"contract": "olmo-core", "steps": 40}, truth={},
         uncheck=1, **some)
    case("pair-next-again", linear, contract="hf-4.50", ask={"contract": "hf-4.50", "steps": 40}, truth={}, uncheck=1,
         **some)
    case("pair-twice", linear, ask=ask, truth={}, uncheck=1, **{**some, "peak": 2e-3})
    case("pair-skips", linear, ask=ask, skipped=[9, 20], truth={"skips": 2}, uncheck=1, **some)
    case("pair-other-skips", linear, ask=ask, skipped=[12, 20], truth={"skips": 2}, uncheck=1, **some)
    case("pair-three-skips", linear, ask=ask, skipped=[12, 20, 30], truth={"skips": 3}, uncheck=1, **some)
    case("pair-apart", linear, ask=ask, every=4, truth={}, uncheck=1, **some)
    case("pair-later", linear, ask=ask, rows=list(range(8, 41)), truth={}, uncheck=1, unpeak=1, **some)
    case("pair-longer", linear, ask={"contract": "hf", "steps": 44}, end=40, truth={}, uncheck=1, **{**some, "total": 44})
    case("pair-cosine", cosine, ask=ask, truth={}, uncheck=1, **some)
    case("pair-warm", cosine, ask=ask, truth={}, uncheck=1, **{**some, "warmup": 6})
    case("pair-digits", cosine, ask=ask, print="e3", writer="csv", truth={}, uncheck=1, **{**some, "warmup": 6})
    case("pair-stretch", cosine, ask={"contract": "hf", "steps": 80}, truth={}, uncheck=1, end=60,
         **{**some, "total": 80, "warmup": 12})


def skipped():
    """Updates that a loss scaler skipped; the schedule held."""
    for name, contract, lost, every, writer, more in (
            ("one", "hf", [1], 1, "jsonl", {}),
            ("three", "hf", [2, 3, 50], 1, "jsonl", {}),
            ("apart", "hf", [7, 42], 5, "jsonl", {}),
            ("next", "hf-4.50", [4, 61], 2, "jsonl", {}),
            ("late", "hf", [97], 3, "jsonl", {}),
            ("burst", "hf", [40, 41, 42, 43, 44], 4, "jsonl", {}),
            ("norms", "hf", [3, 20], 1, "state", {"norms": 1}),
            ("counted", "megatron", [5, 33], 3, "megatron", {"style": "linear"}),
            ("deepspeed", "deepspeed-torch", [2, 9, 70], 1, "deepspeed", {}),
            ("deepspeed-apart", "deepspeed-torch", [2, 9, 70], 10, "deepspeed", {})):
        ask = {"contract": contract, "steps": 120}
        if contract == "megatron":
            ask["batch"] = 8
        case("skips-" + name, megatron if contract == "megatron" else linear, contract, peak=2e-4, warmup=12, total=120,
             skipped=lost, every=every, writer=writer, ask=ask, truth={"skips": len(lost)}, **more)
    case("skips-cosine", cosine, peak=3e-4, warmup=10, total=100, skipped=[15, 60], every=2,
         ask={"contract": "hf", "steps": 100}, truth={"skips": 2})
    case("skips-digits", linear, peak=3e-4, warmup=10, total=100, skipped=[15, 60], every=2, print="e3", writer="csv",
         ask={"contract": "hf", "steps": 100}, truth={"skips": 2})
    for name, schedule, peak, digits, contract in (
            ("line", linear, 2.371642e-4, "e6", "hf"), ("wave", cosine, 8.83883476e-5, "e3", "hf"),
            ("exact", linear, 1e-3 / 7, "repr", "hf"), ("next", cosine, 3.1623e-4, "e6", "hf-4.50")):
        case("untyped-" + name, schedule, contract, peak=peak, warmup=8, total=64, skipped=[3, 30], every=2, print=digits,
             writer="csv", ask={"contract": contract, "steps": 64}, truth={"skips": 2}, uncheck=1, unpeak=1)
    case("skips-resumed", linear, peak=3e-4, warmup=10, total=100, skipped=[15], resume=(60, 41),
         ask={"contract": "hf", "steps": 100}, truth={"skips": 1})
    case("skips-said", linear, peak=3e-4, warmup=10, total=100, skipped=[12, 13],
         ask={"contract": "hf", "steps": 100, "skipped": "12,13"}, truth={})
    case("skips-contradicted", uncheck=1, schedule=linear, peak=3e-4, warmup=10, total=100, skipped=[30],
         ask={"contract": "hf", "steps": 100, "skipped": "12,13"}, truth={})


def levels():
    """Levels that fall: ReduceLROnPlateau by torch's rule, and StepLR."""
    def plateau(values, patience, factor, cooldown=0, threshold=1e-4, mode="min", kind="rel", low=0.0, peak=1e-3):
        best, bad, cool, lr, out = math.inf if mode == "min" else -math.inf, 0, 0, peak, []
        for v in values:
            sign = 1.0 - threshold if mode == "min" else 1.0 + threshold
            if kind == "rel":
                better = v < best * sign if mode == "min" else v > best * sign
            else:
                better = v < best - threshold if mode == "min" else v > best + threshold
            best, bad = (v, 0) if better else (best, bad + 1)
            if cool > 0:
                cool, bad = cool - 1, 0
            if bad > patience:
                lr, cool, bad = max(lr * factor, low) if lr - max(lr * factor, low) > 1e-8 else lr, cooldown, 0
            out.append(lr)
        return out

    for name, seed, patience, factor, more, ask in (
            ("plain", 1, 3, 0.5, {}, {}),
            ("given", 2, 2, 0.1, {}, {"value": "patience=2"}),
            ("cooldown", 3, 2, 0.5, {"cooldown": 2}, {}),
            ("threshold", 4, 3, 0.5, {"threshold": 1e-2}, {}),
            ("max", 5, 2, 0.5, {"mode": "max"}, {"value": "mode=max"}),
            ("abs", 6, 3, 0.2, {"kind": "abs", "threshold": 1e-2}, {}),
            ("floor", 7, 1, 0.5, {"low": 1e-4}, {})):
        rng = random.Random(seed)
        every, count = 5, 40
        evals = [1.0 + 1.5 * math.exp(-i / 3.0) + 0.05 * rng.random() for i in range(count)]
        if name == "max":
            evals = [4.0 - x for x in evals]
        after = plateau(evals, patience, factor, **more)
        # The evaluation behind update 5 n is seen from the next update on.
        values = [1e-3] + after
        case("plateau-" + name, lambda c, u, values=values: values[min(u // 5, len(values) - 1)], total=every * count,
             every=1, rows=list(range(1, every * count + 1, 1 if name == "plain" else every)), writer="evals", evals=(every, evals), uncheck=1,
             form=repr if name == "given" else "{:.16e}".format,
             ask={"contract": "hf", "schedule": "reduce_lr_on_plateau", **ask},
             truth={"text": f"factor={factor:g}"}, unpeak=0, untotal=1, peak=1e-3, warmup=0)
    case("steps-of-30", uncheck=1, schedule=lambda c, u: 1e-3 * 0.1 ** (u // 30), total=120, every=3, warmup=0, peak=1e-3,
         ask={"contract": "hf", "schedule": "reduce_lr_on_plateau"}, truth={"text": "every 30 as torch's StepLR"}, untotal=1)
    case("steps-of-1", uncheck=1, schedule=lambda c, u: 1e-3 * 0.5 ** u, total=9, warmup=0, peak=1e-3,
         ask={"contract": "hf", "schedule": "reduce_lr_on_plateau"}, truth={}, untotal=1, unpeak=1)
    case("steps-twice", uncheck=1, schedule=lambda c, u: 1e-3 * (0.5 if u >= 20 else 1.0) * (0.25 if u >= 40 else 1.0), total=60, warmup=0,
         peak=1e-3, ask={"contract": "hf"}, truth={}, untotal=1, unpeak=1)


def poor():
    """Few rows, one value, no number, nothing that can be told."""
    case("rows-none", linear, writer="unrated", ask={}, truth={"nothing": 1})
    for count in (1, 2, 3, 4):
        case(f"rows-{count}", linear, peak=1e-3, warmup=0, total=50, rows=list(range(1, count + 1)),
             ask={"contract": "hf"}, truth={}, untotal=1, unpeak=1)
    case("flat", lambda c, u: 1e-4, warmup=0, total=30, ask={"contract": "hf"}, truth={"text": "1e-04"}, untotal=1,
         unpeak=1)
    CASES[-1]["truth"] = {"nothing": 0}
    for name, at in (("nan", 4), ("nan-first", 0)):
        case(name, linear, edit=[(at, math.nan)], print="repr", writer="csv", ask={"contract": "hf"},
             truth={"nothing": 1, "contract": "hf"})
    case("flat-end", linear, peak=3e-4, warmup=4, total=44, end=60, every=3, ask={"contract": "hf"}, truth={}, uncheck=1)
    case("flat-end-megatron", megatron, contract="megatron", style="linear", peak=3e-4, warmup=4, total=44, end=60,
         every=3, min=3e-5, ask={"contract": "megatron", "batch": 8}, truth={}, uncheck=1)
    case("lost", lambda c, u: linear(c, u), peak=1e-4, writer="csv", print="f3", ask={}, truth={"nothing": 1})
    case("negative", lambda c, u: -linear(c, u), ask={"contract": "hf"}, truth={"nothing": 1})
    for digits in (1, 2):
        case(f"digits-{digits}", linear, peak=4e-4, warmup=10, total=100, every=4, print=f"d{digits}", writer="csv",
             ask={"contract": "hf", "steps": 100, "limit": 12}, truth={"nothing": 0}, unpeak=1)
    case("console", linear, peak=5e-5, warmup=10, total=200, every=10, writer="console",
         ask={"contract": "hf", "steps": 200}, truth={}, unnumbered=1, epoch=100)
    case("console-every", nightly=1, schedule=linear, peak=5e-5, warmup=10, total=200, every=10, writer="console", rows=list(range(10, 201, 10)),
         ask={"contract": "hf", "every": 10}, truth={}, unnumbered=1, epoch=100)
    case("console-open", nightly=1, schedule=cosine, peak=5e-5, warmup=0, total=60, every=5, writer="console", rows=list(range(5, 61, 5)),
         ask={"contract": "hf"}, truth={"nothing": 0}, unnumbered=1, untotal=1, epoch=30, unpeak=1)
    case("ramp-skips", megatron, contract="megatron", style="linear", peak=1e-3, warmup=64, total=1600, end=100,
         writer="ramp", skipped=[10, 31, 70], ask={"contract": "megatron"}, truth={}, untotal=1, uncheck=1)
    case("console-first", linear, peak=5e-5, warmup=6, total=60, every=5, writer="console", rows=[1, *range(5, 61, 5)],
         ask={"contract": "hf", "steps": 60}, truth={}, uncheck=1, epoch=60)
    case("console-epochs", linear, contract="hf-4.50", peak=5e-5, warmup=4, total=40, every=4, writer="console",
         rows=list(range(4, 41, 4)), ask={"contract": "hf-4.50", "epoch": 20}, truth={}, uncheck=1, epoch=20)
    case("ramp", megatron, contract="megatron", style="linear", peak=1e-3, warmup=64, total=1600, end=100,
         writer="ramp", ask={"contract": "megatron"}, truth={}, unpeak=0, untotal=1)


def evals_lines(c, rows, rng):
    every, evals = c["evals"]
    rates = dict(rows)
    for k in range(1, c["end"] + 1):
        if k in rates:
            yield f'{{"step": {k}, "loss": {loss_of(k, rng):.4f}, "lr": {c["form"](rates[k])}}}'
        if k % every == 0:
            yield f'{{"step": {k}, "eval_loss": {evals[k // every - 1]!r}}}'


def longer():
    """A training that was resumed with another total, which the log's end says."""
    case("longer", linear, peak=1e-3, total=60, breaks=[(31, "total", 90)], end=90, every=3, writer="state",
         max_steps=90, ask={"contract": "hf"}, truth={}, untotal=1, broken=1)


def ramp_lines(c, rows, rng):
    """--rampup-batch-size: 8 samples an update, then 16 and 24; the schedule counts samples, and holds
    where an update was skipped, whose samples are consumed all the same."""
    samples = counted = lost = 0
    for k, _ in rows:
        batch = 8 if k <= 30 else 16 if k <= 60 else 24
        samples += batch
        lost += k in c.get("skipped", ())
        counted += 0 if k in c.get("skipped", ()) else batch
        if k % 4 == 0:
            yield (f" [2026-01-01 00:00:00] iteration {k:8d}/{c['end']:8d} | consumed samples: {samples:12d} | "
                   f"learning rate: {megatron(c, counted):.6E} | global batch size: {batch:5d} | "
                   f"lm loss: {loss_of(k, rng):.6E} | loss scale: 1024.0 | grad norm: 1.0 | "
                   f"number of skipped iterations: {lost:3d} | number of nan iterations:   0 |")
            lost = 0


def unrated_lines(c, rows, rng):
    for k, _ in rows:
        yield f'{{"step": {k}, "loss": {loss_of(k, rng):.4f}}}'


WRITERS.update(evals=evals_lines, ramp=ramp_lines, unrated=unrated_lines)
PRINTS.update(f3="{:.3f}".format, d1="{:.0e}".format, d2="{:.1e}".format)


def text():
    out = []
    for make in (pairs, skipped, poor, broken, plain, levels, early, applied, native, free, longer): # what costs least comes first
        make()
    for number, c in enumerate(CASES):
        rng = random.Random(number)
        out.append(f"== {c['name']}")
        out += [f"= ask.{key} {value}" for key, value in c["ask"].items()]
        out += ["= whole 1"] if c.get("nightly") else []
        truth = dict(c["truth"])
        if not truth.pop("nothing", None) and "nothing" not in c["truth"]:
            truth.setdefault("contract", c["contract"])
            if not c.get("unpeak"):
                truth.setdefault("peak", repr(c["peak"]))
            if not c.get("untotal"):
                truth.setdefault("total", c["total"])
        if "nothing" in c["truth"]:
            truth["nothing"] = c["truth"]["nothing"]
        if "contract" in c["truth"]:
            truth["contract"] = c["truth"]["contract"]
        out += [f"= truth.{key} {value}" for key, value in truth.items()]
        if not c.get("uncheck") and not c.get("breaks"):
            out += [f"= check.peak {c['peak']!r}", f"= check.warmup {c['warmup']!r}", f"= check.total {c['total']}"]
            if "grid" in c:
                out.append(f"= check.grid {c['grid']}")
            if "dear" in c:
                out.append(f"= check.dear {c['dear']}")
            if not any(key in c for key in ("breaks", "first", "unit", "skipped", "edit")) and "nothing" not in truth:
                out.append("= check.sound 1")
        if c.get("broken"):
            out += [f"= broken.peak {c['peak']!r}", f"= broken.warmup {c['warmup']}", f"= broken.total {c['total']}"]
        out += WRITERS[c["writer"]](c, rows_of(c), rng)
    return "\n".join(out) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        if FILE.read_text(encoding="utf-8") != text():
            sys.exit(f"corpus: {FILE} is not what this script makes")
        return
    if sys.argv[1:]:
        print("corpus: expected no argument or --check", file=sys.stderr)
        sys.exit(2)
    sys.stdout.write(text())


if __name__ == "__main__":
    main()
