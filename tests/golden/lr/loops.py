# SPDX-License-Identifier: Apache-2.0
"""Cases from scheduler classes of the libraries, stepped in the order of each library's own loop.

Each loop repeats the few lines of the framework's training loop that touch the LR (named in its
docstring); the scheduler, the optimizer and their arithmetic are the library's.
"""

import importlib.util
import logging
import random
import sys
import types

from golden import SEED, Case, Optimizer, random_lr, random_steps, random_warmup

PAST = 5  # updates beyond the end


def rng_of(part):
    return random.Random(f"{SEED} {part}")


def hold(optimizer, step, read, count):
    """optimizer.step(), scheduler.step(); the log reads before or after as `read` says."""
    logged = {}
    for k in range(1, count + 1):
        optimizer.torch.step()
        if read == "used":
            logged[k] = optimizer.torch.param_groups[0]["lr"]
        step(k)
        if read == "next":
            logged[k] = optimizer.torch.param_groups[0]["lr"]
    return logged


# ---------------------------------------------------------------- transformers.get_scheduler

HF = ["constant", "constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial",
      "inverse_sqrt", "cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay"]


def hf_values(rng, name, lr, steps, warmup):
    """Parameters of a schedule, as transformers calls them."""
    pick = rng.random() < 0.6
    if name == "cosine":
        return {"num_cycles": rng.choice([0.5, 1.0, 0.25, 1.5, rng.uniform(0.1, 3)])} if pick else {}
    if name == "cosine_with_restarts":
        return {"num_cycles": rng.randint(1, 5)} if pick else {}
    if name == "polynomial":
        values = {"power": rng.choice([1.0, 2.0, 0.5, 3.0, rng.uniform(0.3, 3)])} if pick else {}
        if lr <= 1e-7 or rng.random() < 0.5:
            values["lr_end"] = lr * rng.choice([0.0, 0.01, 0.1, 0.5])
        return values
    if name == "inverse_sqrt":
        return {"timescale": rng.randint(max(1, warmup), 500)} if pick else {}
    if name in ("cosine_with_min_lr", "cosine_warmup_with_min_lr"):
        values = {"min_lr": lr * rng.choice([0.0, 0.1, 0.25])} if rng.random() < 0.4 else \
            {"min_lr_rate": rng.choice([0.0, 0.1, 0.5, rng.random()])}
        if rng.random() < 0.3:
            values["num_cycles"] = rng.choice([0.25, 1.0, 1.5])
        if name == "cosine_warmup_with_min_lr" and rng.random() < 0.4:
            values["warmup_lr_rate"] = rng.choice([0.0, 0.01, 0.1, 0.5])
        return values
    if name == "warmup_stable_decay":
        values = {"num_decay_steps": rng.randint(1, max(1, steps - warmup))}
        if rng.random() < 0.5:
            values["min_lr_ratio"] = rng.choice([0.0, 0.1, rng.random()])
        if rng.random() < 0.6:
            values["warmup_type"] = rng.choice(["linear", "cosine", "1-sqrt"])
            values["decay_type"] = rng.choice(["linear", "cosine", "1-sqrt"])
        if rng.random() < 0.2:
            values["num_cycles"] = rng.choice([0.25, 1.5])
        return values
    return {}


def with_values(options, values):
    return {**options, **{"value." + key: value for key, value in values.items()}}


def transformers_cases(count=26):
    """Trainer of transformers: step, read the LR for the log, scheduler.step()."""
    from transformers import get_scheduler

    rng, cases = rng_of("transformers"), []
    for name in HF:
        for _ in range(count):
            lr, steps = random_lr(rng), random_steps(rng)
            warmup = 0 if name == "constant" else random_warmup(rng, steps)
            values = hf_values(rng, name, lr, steps, warmup)
            optimizer = Optimizer(lr)
            scheduler = get_scheduler(name, optimizer.torch, warmup, steps, dict(values))
            logged = hold(optimizer, lambda k: scheduler.step(), "used", steps + PAST)
            options = with_values({"lr": lr, "warmup": warmup, "steps": steps}, values)
            cases.append(Case("hf", name, "get_scheduler", options, optimizer.applied, logged))
    return cases


# ------------------------------------------------------------------------------- accelerate


def accelerate_case(rng, index):
    """AcceleratedOptimizer.step(), AcceleratedScheduler.step(), get_last_lr() for the log."""
    from accelerate.optimizer import AcceleratedOptimizer
    from accelerate.scheduler import AcceleratedScheduler
    from accelerate.state import AcceleratorState, GradientState, PartialState
    from transformers import get_scheduler

    class Scaler:
        """As torch.amp.GradScaler seen by accelerate: an overflow swallows the step."""

        overflow = False

        def step(self, inner, closure=None):
            if not self.overflow:
                inner.step()

        def update(self):
            pass

        def get_scale(self):
            return 1.0

    lr, steps, processes = random_lr(rng), random_steps(rng), rng.randint(1, 8)
    warmup = random_warmup(rng, steps)
    rescaled = rng.choice(["none", "total", "warmup", "both", "both"])
    if rescaled == "warmup":
        steps, warmup = steps * 2 + processes * 3, rng.randint(0, 3)
    name = rng.choice(["linear", "cosine", "constant_with_warmup", "cosine_with_min_lr",
                       "cosine_with_restarts", "inverse_sqrt"])
    split = index % 8 == 0
    skipped = sorted(rng.sample(range(1, steps), rng.randint(1, 2))) if index % 5 == 0 else []
    times = 1 if split else processes
    total = steps * (processes if rescaled in ("total", "both") and not split else 1)
    warm = warmup * (processes if rescaled in ("warmup", "both") and not split else 1)
    values = hf_values(rng, name, lr, steps, warmup)
    given = dict(values)
    if "timescale" in given:  # a length, in updates like the total
        given["timescale"] *= total // steps

    PartialState._shared_state["num_processes"] = processes  # pretended: no second process runs
    assert AcceleratorState().num_processes == processes
    gradient = GradientState()
    gradient._set_sync_gradients(True)
    optimizer = Optimizer(lr)
    scheduler = get_scheduler(name, optimizer.torch, warm, total, given)
    scaler = Scaler()
    wrapped = AcceleratedOptimizer(optimizer.torch, device_placement=False, scaler=scaler)
    stepper = AcceleratedScheduler(scheduler, wrapped, split_batches=split)
    applied, logged = {}, {}
    for k in range(1, steps + PAST + 1):
        before = len(optimizer.applied)
        scaler.overflow = k in skipped
        gradient._set_sync_gradients(False)  # one micro-batch that accumulates: moves nothing
        wrapped.step()
        stepper.step()
        gradient._set_sync_gradients(True)
        wrapped.step()
        assert len(optimizer.applied) == before + (k not in skipped)
        applied[k] = optimizer.torch.param_groups[0]["lr"]
        if k not in skipped:
            assert applied[k] == optimizer.applied[before + 1]
        stepper.step()
        logged[k] = stepper.get_last_lr()[0]
    options = {"lr": lr, "warmup": warmup, "steps": steps, "processes": processes}
    if not split:
        options["rescaled"] = rescaled
    if skipped:
        options["skipped"] = ",".join(map(str, skipped))
    contract = "accelerate-split-batches" if split else "accelerate"
    return Case(contract, name, "AcceleratedScheduler", with_values(options, values), applied,
                logged)


def accelerate_cases(count=64):
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    Accelerator(cpu=True)
    rng = rng_of("accelerate")
    cases = [accelerate_case(rng, index) for index in range(count)]
    AcceleratorState._reset_state(True)
    return cases


# -------------------------------------------------------------------------------- OLMo-core


def olmo_values(rng, name, lr, steps, warmup):
    values = {}
    if name in ("linear_with_warmup", "cos_with_warmup", "half_cos_with_warmup",
                "inv_sqrt_with_warmup", "cos_with_warmup_and_linear_decay"):
        if rng.random() < 0.6:
            values["alpha_f"] = rng.choice([0.0, 0.0, 0.01, 0.25, rng.random() * 0.9])
    if name in ("wsd", "power_lr", "cos_with_warmup_and_linear_decay") and rng.random() < 0.6:
        values["decay"] = rng.randint(1, max(1, (steps - warmup) // 2))
        values["decay_min_lr"] = lr * rng.choice([0.0, 0.0, 0.05])
    if name == "power_lr" and rng.random() < 0.4:
        values["b"] = rng.choice([-0.3, -0.51, -1.0])
    if warmup > 0 and rng.random() < 0.3:
        values["warmup_min_lr"] = lr * rng.choice([0.01, 0.1, 0.25])
    return values


OLMO = {"constant": "ConstantScheduler", "constant_with_warmup": "ConstantWithWarmup", "wsd": "WSD",
        "power_lr": "PowerLR", "linear_with_warmup": "LinearWithWarmup",
        "inv_sqrt_with_warmup": "InvSqrtWithWarmup", "cos_with_warmup": "CosWithWarmup",
        "half_cos_with_warmup": "HalfCosWithWarmup",
        "cos_with_warmup_and_linear_decay": "CosWithWarmupAndLinearDecay"}


def olmo_case(rng, name):
    """Trainer._fit_epoch: global_step += 1; then optim_step: set_lr, record it, optim.step()."""
    import olmo_core.optim.scheduler as module

    lr, steps = random_lr(rng), random_steps(rng, 8)
    warmup = rng.randint(1, steps // 2) if name in ("power_lr", "inv_sqrt_with_warmup") else \
        random_warmup(rng, steps // 2)
    values = olmo_values(rng, name, lr, steps, warmup)
    if name in ("wsd", "power_lr", "cos_with_warmup_and_linear_decay") and "decay" not in values:
        steps = max(steps, 10)  # round(0.1 T) > 0: decay 0 divides by zero at T
        warmup = min(warmup, steps // 2)
    arguments = dict(values)
    options = {"lr": lr}
    ratio = name != "constant" and rng.random() < 0.35
    if ratio and name not in ("power_lr", "inv_sqrt_with_warmup"):
        options["warmup_ratio"] = rng.choice([0.03, 0.1, 0.07, 0.29, 0.05, 0.25])
        arguments["warmup_fraction"] = options["warmup_ratio"]
        if round(steps * options["warmup_ratio"]) == 0:
            values.pop("warmup_min_lr", None)
            arguments.pop("warmup_min_lr", None)
    elif name != "constant":
        options["warmup"] = arguments["warmup"] = warmup
    if "decay" in arguments:
        arguments["decay_fraction"] = None
    if name == "constant":
        arguments, values = {}, {}
    options["steps"] = steps
    scheduler = getattr(module, OLMO[name])(**arguments)
    past = PAST if name not in ("wsd", "power_lr", "cos_with_warmup_and_linear_decay") else 3
    optimizer, logged = Optimizer(lr), {}
    trainer = types.SimpleNamespace(global_step=0, max_steps=steps)
    for k in range(1, steps + past + 1):
        trainer.global_step += 1
        logged[k] = scheduler.set_lr(optimizer.torch.param_groups[0], trainer)
        optimizer.torch.step()
    return Case("olmo-core", name, "Scheduler.set_lr", with_values(options, values),
                optimizer.applied, logged)


def olmo_token_case(rng, name):
    """units=tokens: the counter is global_train_tokens_seen, the present batch included."""
    import olmo_core.optim.scheduler as module

    lr, steps, tokens = random_lr(rng), random_steps(rng, 8), rng.choice([512, 4096, 1000, 777])
    warmup = rng.randint(0, steps // 3)
    values = olmo_values(rng, name, lr, steps, 0)
    values.pop("decay", None), values.pop("decay_min_lr", None)
    scheduler = getattr(module, OLMO[name])(
        warmup=warmup * tokens, units=module.SchedulerUnits.tokens, **values)
    optimizer, logged = Optimizer(lr), {}
    trainer = types.SimpleNamespace(global_train_tokens_seen=0, max_tokens=steps * tokens)
    for k in range(1, steps + PAST + 1):
        trainer.global_train_tokens_seen += tokens
        logged[k] = scheduler.set_lr(optimizer.torch.param_groups[0], trainer)
        optimizer.torch.step()
    options = with_values({"lr": lr, "warmup": warmup, "steps": steps, "tokens": tokens}, values)
    return Case("olmo-core-tokens", name, "Scheduler.set_lr", options, optimizer.applied, logged)


def olmo_cases(count=14):
    rng = rng_of("olmo")
    cases = [olmo_case(rng, name) for name in OLMO for _ in range(count)]
    cases += [olmo_token_case(rng, name) for name in ("linear_with_warmup", "cos_with_warmup")
              for _ in range(6)]
    return cases


# --------------------------------------------------------------------------------- Megatron

MEGATRON = ["constant", "linear", "cosine", "inverse-square-root", "WSD"]


def megatron_case(rng, name, contract, read):
    """train_step: optimizer.step(), opt_param_scheduler.step(increment=B); then the LR is read."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    lr, steps, batch = random_lr(rng), random_steps(rng), rng.choice([1, 2, 8, 64, 128, 768])
    options, values = {"lr": lr}, {}
    decay = steps * batch
    if rng.random() < 0.4:
        options["warmup_ratio"] = rng.choice([0.01, 0.03, 0.1, 0.07, 0.29])
        warmup = options["warmup_ratio"] * decay
    else:
        options["warmup"] = random_warmup(rng, steps)
        warmup = options["warmup"] * batch
    low = lr * rng.choice([0.0, 0.1, 0.1, 0.01])
    if low:
        values["min_lr"] = low
    init = lr * rng.choice([0.0, 0.0, 0.05])
    if init:
        values["warmup_init_lr"] = init
    wsd = None
    if name == "WSD":
        wsd = rng.randint(1, max(1, steps - int(warmup / batch) - 1))
        values["wsd_decay"] = wsd
        values["wsd_decay_style"] = rng.choice(["linear", "cosine", "exponential", "minus_sqrt"])
    optimizer = Optimizer(lr)
    scheduler = OptimizerParamScheduler(
        optimizer.torch, init, lr, low, warmup, decay, name, 0.0, 0.0, decay, "constant",
        wsd_decay_steps=wsd * batch if wsd else None,
        lr_wsd_decay_style=values.get("wsd_decay_style"))
    # A skipped iteration (overflow): no optimizer.step(), no scheduler.step(), but it counts.
    skipped = [rng.randint(2, steps - 1)] if rng.random() < 0.2 else []
    applied, logged = {}, {}
    for k in range(1, steps + PAST + 1):
        applied[k] = optimizer.torch.param_groups[0]["lr"]
        if read == "used":
            logged[k] = applied[k]
        if k not in skipped:
            optimizer.torch.step()
            assert optimizer.applied[len(optimizer.applied)] == applied[k]
            scheduler.step(increment=batch)
        if read == "next":
            logged[k] = optimizer.torch.param_groups[0]["lr"]
    options.update({"steps": steps, "global_batch": batch})
    if skipped:
        options["skipped"] = ",".join(map(str, skipped))
    return Case(contract, name, "OptimizerParamScheduler", with_values(options, values), applied,
                logged)


def megatron_cases(count=13):
    logging.disable(logging.CRITICAL)
    rng = rng_of("megatron")
    cases = [megatron_case(rng, name, "megatron", "next") for name in MEGATRON
             for _ in range(count)]
    cases += [megatron_case(rng, name, "nemo-rl-megatron", "used") for name in MEGATRON
              for _ in range(3)]
    return cases


# -------------------------------------------------------------------------------- DeepSpeed


def load_file(name, path, stubs):
    """One module of a source tree; the named imports become stubs that only know a logger."""
    for stub in stubs:
        sys.modules[stub] = types.ModuleType(stub)
        sys.modules[stub].logger = logging.getLogger("quiet")
        sys.modules[stub].logging = logging
        sys.modules[stub].logging.get_logger = logging.getLogger
        sys.modules[stub].OptimizerInBackwardWrapper = type("OptimizerInBackwardWrapper", (), {})
        sys.modules[stub].__path__ = []
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def deepspeed_case(rng, module, klass, age):
    """_take_model_step: optimizer.step(); lr_scheduler.step() unless it overflowed."""
    lr, steps = random_lr(rng), random_steps(rng, 8)
    warmup = rng.choice([1, 2, 3, rng.randint(2, steps - 2), rng.randint(2, steps - 2)])
    kind = rng.choice(["log", "linear"])
    values = {"warmup_type": kind} if kind == "linear" or rng.random() < 0.5 else {}
    arguments = {"warmup_num_steps": warmup, "warmup_type": kind}
    options = {"lr": lr, "warmup": warmup, "steps": steps}
    if klass == "WarmupCosineLR":
        if rng.random() < 0.6:
            values["cos_min_ratio"] = rng.choice([0.0, 0.1, 0.01])
            arguments["cos_min_ratio"] = values["cos_min_ratio"]
        if rng.random() < 0.3:
            values["warmup_min_ratio"] = rng.choice([0.01, 0.1])
            arguments["warmup_min_ratio"] = values["warmup_min_ratio"]
    else:
        arguments["warmup_max_lr"] = lr
        if rng.random() < 0.3:
            values["warmup_min_lr"] = lr * rng.choice([0.01, 0.1])
            arguments["warmup_min_lr"] = values["warmup_min_lr"]
    if klass != "WarmupLR":
        arguments["total_num_steps"] = steps
    optimizer = Optimizer(lr)
    scheduler = getattr(module, klass)(optimizer.torch, **arguments)
    skipped = [rng.randint(2, steps - 1)] if rng.random() < 0.15 else []
    applied, logged = {}, {}
    for k in range(1, steps + PAST + 1):
        applied[k] = optimizer.torch.param_groups[0]["lr"]
        if k not in skipped:
            optimizer.torch.step()
            assert optimizer.applied[len(optimizer.applied)] == applied[k]
            scheduler.step()
    if skipped:
        options["skipped"] = ",".join(map(str, skipped))
    contract = {"WarmupCosineLR": "deepspeed-cosine"}.get(klass, "deepspeed-warmup") + age
    if age and klass == "WarmupCosineLR":
        klass = "warmup_cosine_old"  # not clamped at its end
    return Case(contract, klass, "lr_schedules", with_values(options, values), applied, {})


def deepspeed_cases(old_path, count=14):
    logging.disable(logging.CRITICAL)
    rng = rng_of("deepspeed")
    import deepspeed.runtime.lr_schedules as new

    names = ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR"]
    cases = [deepspeed_case(rng, new, name, "") for name in names for _ in range(count)]
    old = load_file("deepspeed_old_lr_schedules", old_path, ["deepspeed.utils"])
    cases += [deepspeed_case(rng, old, name, "-old") for name in names for _ in range(8)]
    return cases


# ----------------------------------------------- torchtune, torchtitan, VeOmni, NeMo-RL, torch


def torchtune_cases(path, count=24):
    """Recipes: optimizer.step(), lr_scheduler.step(), get_lr(optimizer) for the log."""
    module = load_file("torchtune.training.lr_schedulers", path,
                       ["torchtune", "torchtune.training", "torchtune.training.memory"])
    rng, cases = rng_of("torchtune"), []
    for _ in range(count):
        lr, steps = random_lr(rng), random_steps(rng)
        warmup = random_warmup(rng, steps)
        values = {"num_cycles": rng.choice([0.25, 1.0, 1.5])} if rng.random() < 0.3 else {}
        optimizer, logged = Optimizer(lr), {}
        scheduler = module.get_cosine_schedule_with_warmup(optimizer.torch, warmup, steps, **values)
        for k in range(1, steps + PAST + 1):
            optimizer.torch.step()
            scheduler.step()
            logged[k] = module.get_lr(optimizer.torch)
        options = with_values({"lr": lr, "warmup": warmup, "steps": steps}, values)
        cases.append(Case("torchtune", "cosine", "get_cosine_schedule_with_warmup", options,
                          optimizer.applied, logged))
    return cases


def torchtitan_cases(count=14):
    """train_step: get_metrics() for the log, optimizers.step(), lr_schedulers.step()."""
    from torchtitan.components.optimizer.lr_scheduler import LRSchedulersContainer

    logging.disable(logging.CRITICAL)
    rng, cases = rng_of("torchtitan"), []
    for name in ("linear", "sqrt", "cosine"):
        for _ in range(count):
            lr, steps = random_lr(rng), random_steps(rng)
            warmup = random_warmup(rng, steps, allow_total=True)
            values = {}
            if rng.random() < 0.5:
                values["decay_ratio"] = rng.choice([0.1, 0.25, 0.5, 0.8, 0.05])
            if rng.random() < 0.5:
                values["min_lr_factor"] = rng.choice([0.0, 0.1, rng.random()])
            optimizer, logged = Optimizer(lr), {}
            config = LRSchedulersContainer.Config(warmup_steps=warmup, decay_type=name, **values)
            schedulers = config.build(optimizers=[optimizer.torch], training_steps=steps)
            # total_steps may be shorter than the run: then updates past the end are real.
            past = PAST if warmup < steps and round(steps * values.get("decay_ratio", 1)) else 0
            for k in range(1, steps + past + 1):
                logged[k] = schedulers.get_metrics()["lr/SGD"]
                optimizer.torch.step()
                if k < steps + past:
                    schedulers.step()
            options = with_values({"lr": lr, "warmup": warmup, "steps": steps}, values)
            cases.append(Case("torchtitan", name, "LRSchedulersContainer", options,
                              optimizer.applied, logged))
    return cases


def veomni_cases(path, count=12):
    """BaseTrainer.train_step: optimizer.step(), lr_scheduler.step(), get_last_lr() for the log."""
    module = load_file("veomni.optim.lr_scheduler", path, ["veomni", "veomni.optim", "veomni.utils"])
    rng, cases = rng_of("veomni"), []
    for name in ("constant", "linear", "cosine"):
        for _ in range(count):
            lr, steps = random_lr(rng), random_steps(rng)
            lr = max(lr, 5e-7)
            ratio = rng.choice([0.0, 0.03, 0.1, 0.07, 0.29, 0.5])
            options, values, arguments = {"lr": lr, "warmup_ratio": ratio, "steps": steps}, {}, {}
            if rng.random() < 0.3:
                values["lr_start"] = arguments["lr_start"] = lr * rng.choice([0.01, 0.1])
            if name == "cosine" and rng.random() < 0.5:
                values["min_lr"] = arguments["lr_min"] = lr * rng.choice([0.0, 0.1])
            if name == "cosine" and rng.random() < 0.4:
                values["decay_ratio"] = arguments["lr_decay_ratio"] = rng.choice([0.75, 0.9])
            optimizer = Optimizer(lr)
            scheduler = module.build_lr_scheduler(
                optimizer.torch, train_steps=steps, lr=lr, lr_decay_style=name,
                lr_warmup_ratio=ratio, **arguments)
            logged = hold(optimizer, lambda k: scheduler.step(), "next", steps + PAST)
            cases.append(Case("veomni", name, "build_lr_scheduler", with_values(options, values),
                              optimizer.applied, logged))
    return cases


def nemo_rl_cases(count=16):
    """DTensor worker: LR read, optimizer.step(), scheduler.step() once per train() call; the stock
    recipe is SequentialLR of LinearLR and ConstantLR. The worker itself is not on PyPI."""
    from torch.optim.lr_scheduler import ConstantLR, LinearLR, SequentialLR

    rng, cases = rng_of("nemo-rl"), []
    for index in range(count):
        lr = random_lr(rng)
        values = {"start_factor": 0.1, "end_factor": 1.0, "total_iters": 20}
        if index:
            values = {"start_factor": rng.choice([0.1, 0.01, 0.5, rng.uniform(0.01, 0.9)]),
                      "end_factor": 1.0, "total_iters": rng.randint(2, 60)}
        iters = values["total_iters"]
        steps = iters + rng.randint(2, 60)
        optimizer = Optimizer(lr)
        linear = LinearLR(optimizer.torch, **values)
        constant = ConstantLR(optimizer.torch, factor=1.0, total_iters=10000000000)
        scheduler = SequentialLR(optimizer.torch, [linear, constant], [iters])
        logged = hold(optimizer, lambda k: scheduler.step(), "used", steps + PAST)
        options = {"lr": lr, "warmup": iters, "steps": steps,
                   "value.start_factor": values["start_factor"]}
        cases.append(Case("nemo-rl-dtensor", "torch.linear_constant", "SequentialLR", options,
                          optimizer.applied, logged))
    return cases


def torch_cases(count=24):
    """A plain loop with torch's recursive cosine: step, scheduler.step()."""
    from torch.optim import lr_scheduler

    rng, cases = rng_of("torch"), []
    for _ in range(count):
        lr, steps = random_lr(rng), random_steps(rng)
        values = {"eta_min": lr * rng.choice([0.0, 0.0, 0.1])}
        optimizer = Optimizer(lr)
        scheduler = lr_scheduler.CosineAnnealingLR(optimizer.torch, T_max=steps, **values)
        logged = hold(optimizer, lambda k: scheduler.step(), "used", steps + PAST)
        options = with_values({"lr": lr, "steps": steps}, values)
        cases.append(Case("hf", "torch.cosine_annealing", "CosineAnnealingLR", options,
                          optimizer.applied, logged))
    return cases
