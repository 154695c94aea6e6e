# SPDX-License-Identifier: Apache-2.0
"""Writes composed.txt next to this script: python composed.py

Schedules whose parameters are lists, OneCycleLR, and ReduceLROnPlateau with its metrics: classes of
torch, transformers, accelerate and OLMo-core stepped as in loops.py. See README.md.
"""

import math
import os
import random
import sys
import types
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import golden  # noqa: E402
from golden import Case, Optimizer, random_lr  # noqa: E402
from loops import PAST, hold, with_values  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def rng_of(part):
    return random.Random(f"{golden.SEED} {part}")


def number(x):
    return repr(x) if isinstance(x, float) else str(x)


# ------------------------------------------------------------------------------- OneCycleLR


def cycle_values(rng, steps):
    while True:
        values = {}
        if rng.random() < 0.6:
            values["pct_start"] = rng.choice([0.1, 0.25, 0.5, rng.uniform(0.02, 0.6)])
        if rng.random() < 0.5:
            values["anneal_strategy"] = rng.choice(["cos", "linear"])
        if rng.random() < 0.4:
            values["three_phase"] = True
        if rng.random() < 0.4:
            values["div_factor"] = rng.choice([10.0, 1.0, 4.0, rng.uniform(1, 100)])
        if rng.random() < 0.4:
            values["final_div_factor"] = rng.choice([1.0, 100.0, 1e5])
        pct = values.get("pct_start", 0.3)
        ends = [pct * steps - 1]
        if values.get("three_phase"):
            ends.append(2 * pct * steps - 2)
        if ends[0] != 0 and ends[-1] != steps - 1:  # torch divides by zero there
            return values


def as_options(values):
    return {key: "true" if value is True else value for key, value in values.items()}


def one_cycle_case(rng):
    """A plain loop; the last step that torch allows is number T."""
    from torch.optim.lr_scheduler import OneCycleLR

    lr, steps = random_lr(rng), rng.choice([rng.randint(3, 12), rng.randint(12, 300)])
    values = cycle_values(rng, steps)
    optimizer = Optimizer(1.0)
    scheduler = OneCycleLR(optimizer.torch, lr, total_steps=steps, cycle_momentum=False, **values)
    logged = {}
    for k in range(1, steps + 2):
        optimizer.torch.step()
        logged[k] = optimizer.applied[k]
        if k <= steps:
            scheduler.step()
    try:
        scheduler.step()
        raise SystemExit("torch went on past the total")
    except ValueError as error:
        assert f"Tried to step {steps + 1} times" in str(error)
    options = with_values({"lr": lr, "steps": steps}, as_options(values))
    return Case("hf", "torch.one_cycle", "OneCycleLR", options, optimizer.applied, logged)


def accelerated_cycle_case(rng):
    """accelerate's wrapper: P steps per update while its count of calls allows, then none: the dead
    tail where the total was not multiplied by P."""
    from accelerate.optimizer import AcceleratedOptimizer
    from accelerate.scheduler import AcceleratedScheduler
    from accelerate.state import AcceleratorState, GradientState, PartialState
    from torch.optim.lr_scheduler import OneCycleLR

    lr, steps, processes = random_lr(rng), rng.randint(6, 120), rng.randint(1, 4)
    accumulate = rng.choice([1, 1, 2, 3, 4])
    rescaled = rng.choice(["none", "both"])
    total = steps * (processes if rescaled == "both" else 1)
    values = cycle_values(rng, total)
    PartialState._shared_state["num_processes"] = processes  # pretended: no second process runs
    assert AcceleratorState().num_processes == processes
    gradient = GradientState()
    assert not gradient.adjust_scheduler  # its default True is dropped on the way
    optimizer = Optimizer(1.0)
    scheduler = OneCycleLR(optimizer.torch, lr, total_steps=total, cycle_momentum=False, **values)
    wrapped = AcceleratedOptimizer(optimizer.torch, device_placement=False, scaler=None)
    stepper = AcceleratedScheduler(scheduler, wrapped, split_batches=False)
    applied, logged = {}, {}
    for k in range(1, steps + PAST + 1):
        gradient._set_sync_gradients(False)
        for _ in range(accumulate - 1):
            wrapped.step()
            stepper.step()
        gradient._set_sync_gradients(True)
        wrapped.step()
        applied[k] = optimizer.applied[k]
        stepper.step()
        logged[k] = stepper.get_last_lr()[0]
    options = {"lr": lr, "steps": steps, "processes": processes, "accumulate": accumulate,
               "rescaled": rescaled}
    frozen = min((k for k in applied if applied[k] == applied[max(applied)]), default=1)
    return Case("accelerate", "torch.one_cycle", "AcceleratedScheduler",
                with_values(options, as_options(values)), applied, logged,
                bends=(frozen - 1, frozen))


# ---------------------------------------------------------------------------- OLMo-core's lists


def run_olmo(scheduler, lr, steps, count):
    optimizer, logged = Optimizer(lr), {}
    trainer = types.SimpleNamespace(global_step=0, max_steps=steps)
    for k in range(1, count + 1):
        trainer.global_step += 1
        logged[k] = scheduler.set_lr(optimizer.torch.param_groups[0], trainer)
        optimizer.torch.step()
    return optimizer.applied, logged


def random_rate(rng, lr, key):
    """Draws an end or a start, as the library writes it and in our words."""
    share = rng.choice([0.0, 1.0, 0.1, 0.5, round(rng.random(), 3)])
    if rng.random() < 0.7:
        return {key + "_fraction": share}, number(share)
    return {key: lr * share}, "=" + number(lr * share)


def composable_case(rng):
    import olmo_core.optim.scheduler as module

    lr, stages, words = random_lr(rng), [], []
    for _ in range(rng.randint(1, 5)):
        shape, length = rng.choice(["linear", "cosine"]), rng.randint(1, 40)
        end, end_word = random_rate(rng, lr, "end_lr")
        start, start_word = random_rate(rng, lr, "start_lr") if rng.random() < 0.5 else ({}, None)
        stages.append(module.ComposableSchedulerStage(
            duration=length, shape=module.ComposableSchedulerStageType(shape), **start, **end))
        parts = [shape, str(length)] + ([start_word] if start_word else []) + [end_word]
        words.append(":".join(parts))
    values = {"stages": ",".join(words)}
    total = sum(stage.duration for stage in stages)
    override = None
    if rng.random() < 0.4:
        shape, start, length = rng.choice(["linear", "cosine"]), rng.randint(0, total + 5), \
            rng.randint(1, 20)
        end, end_word = random_rate(rng, lr, "end_lr")
        override = module.OverrideDecay(start=start, duration=length,
                                        shape=module.ComposableSchedulerStageType(shape), **end)
        values["override_decay"] = f"{shape}:{start}:{length}:{end_word}"
    steps = rng.randint(1, 100)  # plays no part
    scheduler = module.ComposableScheduler(stages=stages, override_decay=override)
    applied, logged = run_olmo(scheduler, lr, steps, total + 20)
    return Case("olmo-core", "composable", "Scheduler.set_lr",
                with_values({"lr": lr, "steps": steps}, values), applied, logged)


def wsds_case(rng):
    import olmo_core.optim.scheduler as module

    lr, count = random_lr(rng), rng.randint(1, 6)
    lengths = [rng.randint(6, 60) for _ in range(count)]
    warmup = rng.randint(0, lengths[0] // 3)
    values, given = {"periods": ",".join(map(str, lengths))}, {}
    if rng.random() < 0.6:
        given["period_lr_multipliers"] = [rng.choice([1.0, 0.5, 2.0, round(rng.uniform(.3, 1.5), 2)])
                                          for _ in lengths]
        values["peaks"] = ",".join(map(number, given["period_lr_multipliers"]))
    if rng.random() < 0.5:
        values["decay"] = given["decay"] = rng.randint(1, min(lengths) // 2)
    else:
        values["decay_ratio"] = given["decay_fraction"] = rng.choice([0.1, 0.25, 0.3, 0.5])
    if rng.random() < 0.3:
        values["decay_min_lr"] = given["decay_min_lr"] = lr * 0.05
    if warmup and rng.random() < 0.3:
        values["warmup_min_lr"] = given["warmup_min_lr"] = lr * 0.01
    steps = sum(lengths)
    scheduler = module.WSDS(period_lengths=lengths, warmup=warmup, **given)
    applied, logged = run_olmo(scheduler, lr, steps, steps + PAST)
    options = with_values({"lr": lr, "warmup": warmup, "steps": steps}, values)
    bends = tuple(sum(lengths[:i]) for i in range(1, count + 1))
    return Case("olmo-core", "wsds", "Scheduler.set_lr", options, applied, logged,
                bends=bends[:4] + tuple(b + 1 for b in bends[:3]))


SEQUENCE = {"constant": "ConstantScheduler", "constant_with_warmup": "ConstantWithWarmup",
            "linear": "LinearWithWarmup", "cosine": "CosWithWarmup", "wsd": "WSD",
            "half_cosine": "HalfCosWithWarmup"}


def sequence_case(rng):
    import olmo_core.optim.scheduler as module

    lr, count = random_lr(rng), rng.randint(2, 4)
    schedulers, lengths, words = [], [], []
    for i in range(count):
        name, length = rng.choice(list(SEQUENCE)), rng.randint(12, 60)
        word, given = [name] + ([str(length)] if i + 1 < count else []), {}
        if name != "constant":
            given["warmup"] = rng.randint(0 if name != "constant_with_warmup" else 1, 5)
            if given["warmup"] or name == "constant_with_warmup":
                word.append(f"warmup={given['warmup']}")
        if name in ("linear", "cosine", "half_cosine"):
            if i + 1 < count or rng.random() < 0.6:
                given["alpha_f"] = rng.choice([0.1, 0.5, 0.25])
                word.append(f"min_lr_ratio={given['alpha_f']}")
        if name == "wsd":
            given["decay"] = rng.randint(1, 6)
            given["decay_fraction"] = None
            given["decay_min_lr"] = lr * 10.0 ** (-5 - 2 * i)
            word += [f"decay={given['decay']}", f"decay_min_lr={number(given['decay_min_lr'])}"]
        schedulers.append(getattr(module, SEQUENCE[name])(**given))
        lengths.append(length)
        words.append(":".join(word))
    steps = sum(lengths)
    scheduler = module.SequentialScheduler(schedulers=schedulers, schedulers_max=lengths[:-1])
    applied, logged = run_olmo(scheduler, lr, steps, steps)
    bends = tuple(sum(lengths[:i]) for i in range(1, count))
    options = with_values({"lr": lr, "steps": steps}, {"stages": ",".join(words)})
    return Case("olmo-core", "sequential", "Scheduler.set_lr", options, applied, logged,
                bends=bends + tuple(b + 1 for b in bends))


# -------------------------------------------------------------------------- torch SequentialLR


def torch_stage(rng, optimizer, lr, length):
    from torch.optim import lr_scheduler as module

    name = rng.choice(["constant", "linear", "exponential", "step", "polynomial", "cosine"])
    if name == "constant":
        given = {"factor": rng.choice([0.1, 0.5, 1.0]), "total_iters": rng.randint(1, 12)}
        made = module.ConstantLR(optimizer, **given)
    elif name == "linear":
        given = {"start_factor": rng.choice([0.1, 0.01, 1.0]),
                 "end_factor": rng.choice([1.0, 0.5, 0.1]), "total_iters": rng.randint(1, 20)}
        made = module.LinearLR(optimizer, **given)
    elif name == "exponential":
        given = {"gamma": rng.choice([0.9, 0.99, 0.5])}
        made = module.ExponentialLR(optimizer, **given)
    elif name == "step":
        given = {"step_size": rng.randint(1, 9), "gamma": rng.choice([0.1, 0.5])}
        made = module.StepLR(optimizer, **given)
    elif name == "polynomial":
        given = {"total_iters": rng.randint(2, 20), "power": rng.choice([1.0, 2.0, 0.5])}
        made = module.PolynomialLR(optimizer, **given)
    else:
        given = {"t_max": rng.randint(2, 30), "min_lr": lr * rng.choice([0.0, 0.1])}
        made = module.CosineAnnealingLR(optimizer, T_max=given["t_max"], eta_min=given["min_lr"])
    parts = [name] + ([str(length)] if length else [])
    return made, ":".join(parts + [f"{key}={number(value)}" for key, value in given.items()])


def torch_sequence_case(rng):
    from torch.optim.lr_scheduler import SequentialLR

    while True:
        lr, count = random_lr(rng), rng.randint(1, 4)
        lengths = [rng.randint(2, 25) for _ in range(count - 1)]
        optimizer = Optimizer(lr)
        made = [torch_stage(rng, optimizer.torch, lr, length) for length in lengths + [0]]
        text = ",".join(word for _, word in made)
        if len(text) < 200:
            break
    milestones = [sum(lengths[:i + 1]) for i in range(len(lengths))]
    scheduler = SequentialLR(optimizer.torch, [stage for stage, _ in made], milestones)
    steps = sum(lengths) + rng.randint(5, 30)
    logged = hold(optimizer, lambda k: scheduler.step(), "used", steps + PAST)
    options = with_values({"lr": lr, "steps": steps}, {"stages": text})
    return Case("hf", "torch.sequential", "SequentialLR", options, optimizer.applied, logged,
                bends=tuple(milestones) + tuple(m + 1 for m in milestones))


# ------------------------------------------------------------------------- ReduceLROnPlateau


def metric_series(rng, count):
    """Draws losses that fall, stall and rise, now and then missing (NaN)."""
    value, out = rng.uniform(1.0, 5.0), []
    for _ in range(count):
        value *= 1.0 - rng.choice([0.0, 0.0, 0.05, 1e-5, -0.01, -0.1]) * rng.random()
        out.append(float("nan") if rng.random() < 0.02 else value)
    return out


def plateau_case(rng, processes):
    """transformers' own get_scheduler; stepped after an evaluation, through accelerate's wrapper
    where there are processes."""
    from accelerate.optimizer import AcceleratedOptimizer
    from accelerate.scheduler import AcceleratedScheduler
    from accelerate.state import AcceleratorState, GradientState, PartialState
    from transformers import get_scheduler

    lr, every = random_lr(rng), rng.choice([1, 2, 5, 10])
    evaluations = rng.randint(4, 40)
    steps = every * evaluations
    values = {}
    for key, choices in (("patience", [0, 1, 2, 3, 5]), ("factor", [0.5, 0.1, 0.3]),
                         ("cooldown", [0, 1, 3]), ("threshold", [1e-4, 1e-2, 0.0]),
                         ("threshold_mode", ["rel", "abs"]), ("mode", ["min", "max"]),
                         ("min_lr", [0.0, lr * 0.2]), ("eps", [1e-8, lr * 0.3])):
        if key == "patience" or rng.random() < 0.5:
            values[key] = rng.choice(choices)
    optimizer = Optimizer(lr)
    scheduler = get_scheduler("reduce_lr_on_plateau", optimizer.torch,
                              scheduler_specific_kwargs=dict(values))
    step = scheduler.step
    if processes:
        PartialState._shared_state["num_processes"] = processes
        assert AcceleratorState().num_processes == processes
        GradientState()._set_sync_gradients(True)
        wrapped = AcceleratedOptimizer(optimizer.torch, device_placement=False, scaler=None)
        step = AcceleratedScheduler(scheduler, wrapped, split_batches=False).step
    metrics = metric_series(rng, evaluations)
    words, logged, bends = [], {}, []
    for k in range(1, steps + PAST + 1):
        if processes:
            wrapped.step()
        else:
            optimizer.torch.step()
        logged[k] = optimizer.torch.param_groups[0]["lr"]
        if k % every == 0 and k // every <= evaluations:
            value = metrics[k // every - 1]
            step(value)
            words.append(f"{k}:{'nan' if math.isnan(value) else repr(value)}")
        if optimizer.torch.param_groups[0]["lr"] != logged[k]:
            bends += [k, k + 1]
    options = {"lr": lr, "steps": steps}
    if processes:
        options["processes"] = processes
    options["metric"] = ",".join(words)
    return Case("accelerate" if processes else "hf", "reduce_lr_on_plateau",
                "AcceleratedScheduler" if processes else "ReduceLROnPlateau",
                with_values(options, values), dict(optimizer.applied), logged,
                bends=tuple(bends[:12]))


def main():
    from importlib.metadata import version

    from accelerate import Accelerator

    Accelerator(cpu=True)
    cases = []
    for part, make, count in (
            ("one-cycle", one_cycle_case, 50), ("accelerated-cycle", accelerated_cycle_case, 40),
            ("composable", composable_case, 40), ("wsds-list", wsds_case, 40),
            ("sequence", sequence_case, 40), ("torch-sequence", torch_sequence_case, 50),
            ("plateau", lambda rng: plateau_case(rng, 0), 50),
            ("plateau-wrapped", lambda rng: plateau_case(rng, rng.randint(1, 4)), 30)):
        rng = rng_of(part)
        cases += [make(rng) for _ in range(count)]
    found = {"python": sys.version.split()[0]}
    for name in ("torch", "transformers", "accelerate", "ai2-olmo-core"):
        found[name] = version(name)
    golden.write(os.path.join(HERE, "composed.txt"), "composed", found, cases)


if __name__ == "__main__":
    main()
