# SPDX-License-Identifier: Apache-2.0
"""The table of foreign trainings: what runs, what is planted in it, and what two folders can show.

`sees` was written before any program read the folders: `healthy` (nothing may be found), `named`
(the folders, with the log where there is one, settle it), `vanished` (healthy, but rounding ate the
decay, which is worth a remark), `bound` (a bound and no number), `refused` (nothing can be read
back), `undecided` (what is planted lies below what the storage shows)."""

import os

import torch

CASES = []

# The cases that are made where they are needed: the committed folders have a limit of 4 MB.
LARGE = {
    "hf-qwen2-bf16-fused", "sft-llama-accumulate", "accelerate-qwen2-accumulate-fused",
    "plain-accumulate", "plain-lion-copies", "plain-onecycle",
    "bug-lr-ahead-trl-dpo", "bug-lr-ahead-copies",
    "bug-scheduler-twice-hf", "bug-decay-coupled-hf", "bug-decay-on-norms-hf",
    "bug-group-forgotten-hf", "bug-beta1-hidden", "bug-eps-configured",
    "restart-scheduler-file-lost-hf", "restart-new-decay-hf", "restart-new-lr-hf",
    "restart-count-lost-bf16",
    "hf-llama-single", "dpo-qwen2-bf16", "bug-clip-after-hf", "restart-ok-masters",
    "hf-qwen2-sgd-momentum", "hf-llama-adafactor",
    "bug-count-ahead-adam"}


def add(name, kind, planted=None, sees=None, note=None, whole=False, **options):
    case = {"name": name, "kind": kind, "planted": planted, "options": options,
            "set": "large" if name in LARGE or name.startswith("grid-") else "committed",
            "sees": sees or ("named" if planted else "healthy"), "whole": whole}
    if note:
        case["note"] = note
    assert all(other["name"] != name for other in CASES), name
    CASES.append(case)


PAIR = dict(updates=2, keep=(1, 2))
HALVES = dict(dtype="copies")
MLP = dict(architecture="plain", hidden=4, **PAIR)

# Healthy: the libraries' own trainers.
add("hf-qwen2-fused", "hf-trainer", **PAIR)
add("hf-llama-single", "hf-trainer", architecture="llama", optim="adamw_torch", **PAIR)
add("hf-gpt2-foreach", "hf-trainer", architecture="gpt2",
    optimizer=(torch.optim.AdamW, {"foreach": True}), **PAIR)
add("hf-llama-accumulate-cosine", "hf-trainer", architecture="llama", accumulate=4,
    schedule="cosine", warmup=2, total=8, keep=(2, 3))
add("hf-qwen2-copies", "hf-trainer", optim="adamw_torch", **HALVES, **PAIR)
add("hf-qwen2-bf16", "hf-trainer", dtype="bf16", optim="adamw_torch", **PAIR)
add("hf-qwen2-bf16-fused", "hf-trainer", dtype="bf16", **PAIR)
add("hf-qwen2-cold", "hf-trainer", sees="vanished", lr=5e-7, weight_decay=0.01, **PAIR,
    note="LR 5e-7 and decay 0.01: the factor 1 - a w rounds to 1 in f32")
add("hf-qwen2-sgd-momentum", "hf-trainer", clip=0.0,
    optimizer=(torch.optim.SGD, {"momentum": 0.9}), **PAIR)
add("hf-llama-adafactor", "hf-trainer", sees="bound", architecture="llama",
    optimizer=(torch.optim.Adafactor, {}), **PAIR)
add("hf-qwen2-sgd", "hf-trainer", sees="refused", optim="sgd", **PAIR)
add("sft-qwen2", "trl-sft", **PAIR)
add("sft-llama-accumulate", "trl-sft", architecture="llama", accumulate=2, **PAIR)
add("dpo-llama", "trl-dpo", architecture="llama", lr=5e-5, **PAIR)
add("dpo-qwen2-bf16", "trl-dpo", dtype="bf16", lr=5e-4, **PAIR)
add("accelerate-llama", "accelerate", whole=True, **PAIR)
add("accelerate-qwen2-accumulate-fused", "accelerate", architecture="qwen2", accumulate=2,
    kernel="fused", **PAIR)
add("lightning-qwen2", "lightning", **PAIR)
add("lightning-plain-nesterov", "lightning", architecture="plain", optimizer="nesterov", lr=1e-2,
    accumulate=2, **PAIR)

# Healthy: plain loops, one for each rule and for each way of storing.
for optimizer, rate in (("adamw", 5e-4), ("adam", 5e-4), ("amsgrad", 5e-4), ("momentum", 1e-2),
                        ("nesterov", 1e-2), ("lion", 5e-4)):
    add(f"plain-{optimizer}", "torch", optimizer=optimizer, lr=rate,
        weight_decay=0.0 if optimizer == "adam" else 0.1, **MLP)
add("plain-lion-copies", "torch", optimizer="lion", **HALVES, **MLP)
add("plain-momentum-bf16", "torch", optimizer="momentum", lr=1e-1, dtype="bf16", **MLP)
add("plain-onecycle", "torch", schedule="onecycle", **MLP,
    note="betas change with the LR: the file after an update has those of the next one")
add("plain-counted-from-0", "torch", counted_from=0, layout="file", idle=("1.weight",), **MLP,
    note="the file's step is the loop's index; one matrix has no gradient after update 1")
add("plain-sgd", "torch", sees="refused", optimizer="sgd", lr=1e-2, **MLP)
add("plain-adafactor", "torch", sees="bound", optimizer="adafactor", lr=1e-2, **MLP)
add("plain-fused-file", "torch", kernel="fused", layout="file", **{**MLP, "keep": (0, 1, 2)})
add("plain-foreach-safetensors", "torch", kernel="foreach", layout="safetensors", **MLP)
add("plain-copies-cold", "torch", sees="vanished", lr=5e-7, **HALVES, **MLP)
add("plain-bf16-cold", "torch", sees="vanished", lr=5e-7, dtype="bf16", **MLP)
add("plain-bf16-fused", "torch", kernel="fused", dtype="bf16", **MLP)
add("plain-masters", "torch", dtype="masters", **MLP)
add("plain-accumulate", "torch", accumulate=4, **MLP)
add("plain-frozen", "torch", frozen=("1.",), **MLP,
    note="a layer is frozen on purpose: a remark, no fault")
add("plain-frozen-outside", "torch", architecture="llama", layers=2, hidden=4,
    frozen=("layers.0.",), leave_out=("layers.0.",), **PAIR,
    note="a layer is kept from the optimizer, whose file has no names: the order leaves a choice")
SCALER = {"init_scale": 2.0 ** 24, "backoff_factor": 2.0 ** -6, "growth_interval": 2}
add("plain-scaler-skip", "torch", scaler=SCALER, architecture="plain", hidden=4, updates=3,
    keep=(1, 2, 3),
    note="updates overflow in half precision and are skipped; the scheduler waits for them")

# Planted: each with an equal or at least an innocent column in the log.
add("bug-lr-ahead", "torch", "lr-ahead", order="ahead", **{**MLP, "keep": (0, 1, 2)})
add("bug-lr-ahead-bf16", "torch", "lr-ahead", order="ahead", dtype="bf16", **MLP)
add("bug-lr-ahead-copies", "torch", "lr-ahead", order="ahead", **HALVES, **MLP)
add("bug-lr-ahead-dpo", "torch", "lr-ahead", order="ahead", loss="dpo", lr=5e-4, **PAIR)
add("ok-lr-dpo", "torch", loss="dpo", lr=5e-4, **PAIR, note="the twin of bug-lr-ahead-dpo")
add("bug-lr-ahead-hf", "hf-trainer", "lr-ahead", plant="lr-ahead", total=8, **PAIR)
add("bug-lr-ahead-trl-dpo", "trl-dpo", "lr-ahead", plant="lr-ahead", total=8, **PAIR)
add("bug-lr-ahead-accelerate", "accelerate", "lr-ahead", order="ahead", **PAIR)
add("bug-lr-ahead-lightning", "lightning", "lr-ahead", order="ahead", **PAIR,
    note="LightningModule steps the scheduler in on_before_optimizer_step, and it is logged after")
add("bug-lr-behind", "torch", "lr-behind", order="behind", logged="formula", **MLP)
add("bug-scheduler-twice", "torch", "scheduler-twice", order="twice", logged="formula", **MLP)
add("bug-scheduler-twice-hf", "hf-trainer", "scheduler-twice", plant="scheduler-twice", total=8,
    **PAIR)
add("bug-count-ahead", "torch", "count-ahead", count_ahead="stored", **MLP,
    note="get_optimizer_state_dict of torch.distributed.checkpoint was called before update 1")
add("bug-count-ahead-unstored", "torch", "count-ahead", count_ahead="unstored",
    architecture="plain", hidden=4, keep=(0, 1, 2, 3),
    note="as bug-count-ahead, and the files hold no count")
add("bug-count-ahead-adam", "torch", "count-ahead", count_ahead="stored", optimizer="adam", **MLP)
add("bug-count-ahead-bf16", "torch", "count-ahead", count_ahead="stored", dtype="bf16", **MLP)
add("bug-decay-coupled", "torch", "decay-coupled", optimizer="adam", **MLP,
    note="Adam with weight_decay, where AdamW was meant")
add("bug-decay-coupled-hf", "hf-trainer", "decay-coupled",
    optimizer=(torch.optim.Adam, {}), **PAIR)
add("bug-decay-coupled-bf16", "torch", "decay-coupled", sees="undecided", optimizer="adam",
    dtype="bf16", **MLP, note="param_groups still say that the decay is coupled")
add("bug-decay-on-norms", "torch", "decay-on-norms", decay_all=True, **MLP)
add("bug-decay-on-norms-hf", "hf-trainer", "decay-on-norms", plant="decay-on-norms", **PAIR)
add("bug-clip-after", "torch", "clip-after", clip_after=True, clip=0.5, **MLP)
add("bug-clip-after-hf", "hf-trainer", "clip-after", plant="clip-after", clip=0.5, total=8, **PAIR)
add("bug-clip-after-bf16", "torch", "clip-after", clip_after=True, clip=0.5, dtype="bf16", **MLP)
add("bug-group-forgotten", "torch", "group-forgotten", leave_out=("3.", "bias"), **MLP)
add("bug-group-forgotten-hf", "hf-trainer", "group-forgotten", plant="group-forgotten", **PAIR)
add("bug-layer-frozen-hf", "hf-trainer", "frozen-layer", frozen=("layers.0.mlp",), **PAIR)
add("bug-betas-configured", "torch", "betas-not-configured", betas=(0.9, 0.95), **MLP,
    note="0.999 was meant; the groups state 0.95 honestly")
add("bug-betas-hidden", "torch", "betas-not-stated", true={"betas": (0.9, 0.95)}, **MLP,
    note="the groups state 0.999, the step takes 0.95")
add("bug-beta1-hidden", "torch", "betas-not-stated", true={"betas": (0.95, 0.999)}, **MLP,
    note="the groups state 0.9, the step takes 0.95")
add("bug-eps-configured", "torch", "eps-not-configured", eps=1e-5, **MLP,
    note="1e-8 was meant; the groups state 1e-5 honestly")
add("bug-eps-hidden", "torch", "eps-not-stated", true={"eps": 1e-4}, **MLP,
    note="the groups state 1e-8, the step takes 1e-4")

# Restarts: the folder before, and the first one after.
AT = dict(updates=5, keep=(4, 5), total=8)


def restart(name, kind="torch", planted=None, sees=None, note=None, whole=False,
            lose=(), files=(), change=None, shown=False, again=None, weights=None, **options):
    plan = {"at": 4, "lose": lose, "files": files, "change": change or {}, "shown": shown,
            "options": again or {}, "weights": weights}
    small = {"architecture": "plain", "hidden": 4} if kind == "torch" else {}
    add(name, kind, planted, sees, note, whole, restart=plan, **{**AT, **small, **options})


def rounded(path):
    """What is left of f32 weights where they are saved in bf16."""
    from safetensors.torch import load_file, save_file

    save_file({name: value.to(torch.bfloat16) for name, value in load_file(path).items()},
              path + ".part", metadata={"format": "pt"})
    os.replace(path + ".part", path)


restart("restart-ok-hf", "hf-trainer", dropout=0.1, whole=True)
restart("restart-ok-plain", dropout=0.1, whole=True)
restart("restart-ok-masters", dtype="masters")
restart("restart-ok-scaler", scaler={"init_scale": 2.0 ** 10, "growth_interval": 3})
restart("restart-optimizer-file-lost-hf", "hf-trainer", "moments-lost", files=("optimizer.pt",),
        note="transformers 5.23 loads optimizer.pt and scheduler.pt together or neither of them: "
             "the moments, the count and the scheduler are lost")
restart("restart-scheduler-file-lost-hf", "hf-trainer", "moments-lost",
        files=("scheduler.pt",),
        note="as restart-optimizer-file-lost-hf: without scheduler.pt the moments are lost, too")
restart("restart-rng-file-lost-hf", "hf-trainer", "generators-not-restored",
        files=("rng_state.pth",), dropout=0.1)
restart("restart-data-repeated-hf", "hf-trainer", "sampler-position-lost", sees="undecided",
        again={"arguments": {"ignore_data_skip": True}},
        note="ignore_data_skip: no file holds the position")
restart("restart-new-lr-hf", "hf-trainer", "new-lr-not-taken", sees="undecided",
        again={"lr": 2e-3},
        note="a new learning_rate argument is not taken: scheduler.pt restores the old peak")
restart("restart-masters-lost-hf", "hf-trainer", "masters-lost", weights=rounded,
        note="model.safetensors was rounded to bf16 between the two")
restart("restart-new-decay-hf", "hf-trainer", "new-decay-not-taken", sees="undecided",
        again={"weight_decay": 0.01},
        note="a new weight_decay argument is not taken: optimizer.pt restores the old groups")
restart("restart-scheduler-lost", planted="scheduler-not-restored", lose=("scheduler",),
        whole=True)
restart("restart-peak-overwritten", planted="peak-overwritten", change={"peak": 1e-3})
restart("restart-moments-lost", planted="moments-lost", lose=("moments",))
restart("restart-count-lost", planted="count-lost", lose=("count",))
restart("restart-count-lost-bf16", planted="count-lost", lose=("count",),
        dtype="bf16")
restart("restart-rng-lost", planted="generators-not-restored", lose=("generators",),
        dropout=0.1)
restart("restart-sampler-lost", planted="sampler-position-lost", lose=("sampler",), whole=True)
restart("restart-scaler-lost", planted="scaler-lost", lose=("scaler",),
        scaler={"init_scale": 2.0 ** 10, "growth_interval": 3})
restart("restart-masters-lost", planted="masters-lost", lose=("masters",), dtype="masters")

# The large set, which is made outside CI: every way of storing by every kernel and every case.
GRID = {
    "ok": (None, {}), "lr-ahead": ("lr-ahead", {"order": "ahead"}),
    "twice": ("scheduler-twice", {"order": "twice", "logged": "formula"}),
    "count-ahead": ("count-ahead", {"count_ahead": "stored"}),
    "clip-after": ("clip-after", {"clip_after": True, "clip": 0.5}),
    "coupled": ("decay-coupled", {"optimizer": "adam"}),
    "norms": ("decay-on-norms", {"decay_all": True}),
    "frozen": ("frozen-layer", {"frozen": ("layers.0.mlp",)}),
    "cold": (None, {"lr": 5e-7})}
for word, (plant, more) in GRID.items():
    for store in ("f32", "copies", "bf16"):
        for kernel in ("single", "foreach", "fused"):
            below = plant in ("decay-coupled", "decay-on-norms") and store != "f32"
            add(f"grid-{word}-{store}-{kernel}", "torch", plant,
                sees="undecided" if below else "vanished" if word == "cold" else None,
                dtype=store, kernel=kernel, layers=2, hidden=12, architecture="llama",
                keep=(0, 1, 2, 3, 4), updates=4, **more)
