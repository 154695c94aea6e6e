# SPDX-License-Identifier: Apache-2.0
"""Cases with skipped updates: real loss scalers of the libraries find gradients that are not finite.

In the chosen updates the loss of one micro-batch (in `accelerate`: of the last process alone) is
multiplied by infinity. What then unscales, skips, and moves the schedule or not is the libraries'.
What had to be pretended, as no GPU is there, is said at each function."""

import json
import logging
import os
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import torch

from golden import SEED, Case, random_lr
from loops import hf_values, with_values
from trainers import Rows, Weight

BAD = float("inf")
NAMES = ["linear", "cosine", "constant_with_warmup", "cosine_with_min_lr"]


class Watch:
    """Notes the LR in force when update `now` begins, and that in the optimizer's step where there
    is one."""

    def __init__(self, optimizer):
        self.force, self.stepped, self.logged, self.now = {}, {}, {}, 0
        self.optimizer = optimizer
        optimizer.register_step_pre_hook(self.before)

    def before(self, stepping, *_):
        assert self.now not in self.stepped
        self.stepped[self.now] = stepping.param_groups[0]["lr"]

    def begin(self, k):
        self.now = k
        self.force[k] = self.optimizer.param_groups[0]["lr"]

    def skipped(self, chosen):
        """Returns the updates without a step: the chosen ones, and those where fp16 overflows by
        itself."""
        found = [k for k in sorted(self.force) if k not in self.stepped]
        assert set(chosen) <= set(found), (chosen, found)
        assert all(self.force[k] == rate for k, rate in self.stepped.items())
        return found


def case(contract, name, by, options, watch, chosen):
    skipped = watch.skipped(chosen)
    options = {**options, "skipped": ",".join(map(str, skipped))}
    return Case(contract, name, by, options, watch.force, watch.logged, bends=tuple(skipped))


def random_skips(rng, steps):
    """Draws updates to skip, among them the first and the last one, and some in a row."""
    kind, some = rng.randrange(4), sorted(rng.sample(range(1, steps + 1), min(3, steps - 1)))
    if kind == 0:
        return sorted({1, 2, *some[:1]} if steps > 3 else {1})
    if kind == 1:
        return sorted({some[0], some[0] + 1} if some[0] < steps else {steps})
    return some if kind == 2 else sorted({some[0], steps})


# ------------------------------------------------------------------------------ accelerate


def accelerate_worker(processes, split, seed, out):
    """The usual loop in `processes` real processes (gloo). Accelerate refuses fp16 on a CPU, so the
    scaler is put where its constructor would have put it."""
    from accelerate import Accelerator, DataLoaderConfiguration
    from transformers import get_scheduler

    rng, results = random.Random(f"{SEED} {seed}"), []
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2,
                              dataloader_config=DataLoaderConfiguration(split_batches=split))
    assert accelerator.num_processes == processes
    for name in NAMES[:3]:
        lr, steps = random_lr(rng), rng.randint(6, 14)
        warmup = rng.randint(0, 4)
        rescaled = "both" if split else rng.choice(["both", "total", "none"])
        times = 1 if split else processes
        values = hf_values(rng, name, lr, steps, warmup)
        skipped = random_skips(rng, steps)
        total = steps * (times if rescaled in ("both", "total") else 1)
        warm = warmup * (times if rescaled == "both" else 1)
        torch.manual_seed(1)
        model = Weight()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        watch = Watch(optimizer)
        scheduler = get_scheduler(name, optimizer, warm, total, dict(values))
        loader = torch.utils.data.DataLoader(Rows(4 * processes * steps),
                                             batch_size=2 * processes if split else 2)
        accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader,
                                                                  scheduler)
        assert optimizer.scaler is accelerator.scaler
        k, micro = 1, 0
        for batch in loader:
            with accelerator.accumulate(model):
                if micro == 0:
                    watch.begin(k)
                last = accelerator.process_index == processes - 1
                loss = model(**batch)["loss"]
                accelerator.backward(loss * BAD if k in skipped and last and micro == 0 else loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            micro += 1
            if accelerator.sync_gradients:
                assert optimizer.step_was_skipped == (k not in watch.stepped)
                watch.logged[k] = scheduler.get_last_lr()[0]
                k, micro = k + 1, 0
        assert max(watch.force) == steps
        skipped = watch.skipped(skipped)
        options = {"lr": lr, "warmup": warmup, "steps": steps, "processes": processes,
                   "accumulate": 2}
        if not split:
            options["rescaled"] = rescaled
        results.append([name, with_values(options, values), watch.force, watch.logged, skipped])
    if accelerator.is_main_process:
        with open(out, "w", encoding="ascii") as file:
            json.dump(results, file)
    accelerator.end_training()


def accelerate_cases():
    cases = []
    for processes in (1, 2, 3, 4):
        for split in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out.json")
                subprocess.run(
                    [sys.executable, "-W", "ignore", "-m", "torch.distributed.run",
                     "--nproc_per_node", str(processes), "--master_addr", "127.0.0.1",
                     "--master_port", "29541", os.path.abspath(__file__), str(processes),
                     str(int(split)), f"accelerate skips {processes} {split}", out],
                    check=True, stdout=subprocess.DEVNULL,
                    env={**os.environ, "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"})
                with open(out, encoding="ascii") as file:
                    results = json.load(file)
            for name, options, force, logged, skipped in results:
                options["skipped"] = ",".join(map(str, skipped))
                cases.append(Case(
                    "accelerate-split-batches" if split else "accelerate", name,
                    "GradScaler+Accelerator", options, {int(k): v for k, v in force.items()},
                    {int(k): v for k, v in logged.items()}, bends=tuple(skipped)))
    return cases


# ------------------------------------------------------------------------------- Lightning


def lightning_case(rng, name, interval):
    """Its own MixedPrecision("16-mixed") with a GradScaler, given as a plugin: the trainer's
    precision flag is what refuses a CPU."""
    import lightning
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.plugins.precision import MixedPrecision
    from transformers import get_scheduler

    lr, batch, accumulate = random_lr(rng), rng.randint(1, 3), rng.choice([1, 2, 3])
    batches, epochs = rng.randint(accumulate + 2, 12), rng.randint(1, 4)
    windows = -(-batches // accumulate)
    steps = windows * epochs
    skipped = random_skips(rng, steps)
    monitor = LearningRateMonitor(logging_interval="step")

    class Module(lightning.LightningModule):
        k = 1

        def __init__(self):
            super().__init__()
            self.weight = Weight()

        def training_step(self, batch, index):
            if index % accumulate == 0:
                self.watch.begin(self.k)
            loss = self.weight(**batch)["loss"]
            return loss * BAD if self.k in skipped else loss

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=lr)
            self.watch = Watch(optimizer)
            self.total = epochs if interval == "epoch" else \
                int(self.trainer.estimated_stepping_batches)
            self.warmup = rng.randint(0, max(0, self.total // 3))
            self.values = hf_values(rng, name, lr, self.total, self.warmup)
            scheduler = get_scheduler(name, optimizer, self.warmup, self.total, dict(self.values))
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": scheduler, "interval": interval}}

        def on_before_optimizer_step(self, optimizer):
            self.watch.logged[self.k] = monitor.lrs["lr-SGD"][-1]

        def on_train_batch_end(self, outputs, batch, index):
            if (index + 1) % accumulate == 0 or index + 1 == batches:
                self.k += 1

    plugin = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=64.0))
    assert plugin.scaler.is_enabled()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=epochs, accumulate_grad_batches=accumulate, accelerator="cpu", devices=1,
            callbacks=[monitor], logger=lightning.pytorch.loggers.CSVLogger(folder),
            plugins=[plugin], gradient_clip_val=1.0, enable_progress_bar=False,
            enable_model_summary=False, log_every_n_steps=1, enable_checkpointing=False)
        module = Module()
        trainer.fit(module, torch.utils.data.DataLoader(Rows(batches * batch), batch_size=batch))
    options = {"lr": lr, "warmup": module.warmup}
    if interval == "epoch":
        options.update({"steps": module.total, "rescaled": "none", "updates_per_epoch": windows})
    else:
        options.update({"dataset": batches * batch, "epochs": float(epochs), "batch": batch,
                        "accumulate": accumulate})
    return case("lightning-" + interval, name, "GradScaler+lightning.Trainer",
                with_values(options, module.values), module.watch, skipped)


def lightning_cases(count=3):
    rng = random.Random(f"{SEED} lightning skips")
    return [lightning_case(rng, name, interval) for interval in ("step", "epoch")
            for name in NAMES[:3] for _ in range(count if interval == "step" else 1)]


# ------------------------------------------------------------------------------- DeepSpeed


def deepspeed_case(rng, deepspeed, klass, config, age=""):
    """The engine. That this CPU has fp16 is pretended: the arithmetic is emulated by torch.

    With torch_autocast and without ZeRO the optimizer is torch's own, and the engine does not see
    that its GradScaler skipped: the schedule goes on. Such lines leave `skipped` out, as nothing
    holds."""
    from transformers import get_scheduler

    lr, steps, accumulate = random_lr(rng), rng.randint(6, 14), rng.choice([1, 2, 3])
    warmup = rng.randint(1, steps - 3)
    skipped = random_skips(rng, steps)
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulate,
              "gradient_clipping": 1.0, **config}
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    watch = Watch(optimizer)
    values, scheduler, contract = {}, None, "deepspeed-torch"
    if klass.startswith("Warmup"):
        contract = ("deepspeed-cosine" if klass == "WarmupCosineLR" else "deepspeed-warmup") + age
        values["warmup_type"] = rng.choice(["log", "linear"])
        parameters = {"warmup_num_steps": warmup, **values, "total_num_steps": steps}
        if klass != "WarmupCosineLR":
            parameters["warmup_max_lr"] = lr
        config["scheduler"] = {"type": klass, "params": parameters}
    else:
        scheduler = get_scheduler(klass, optimizer, warmup, steps)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config,
                                      lr_scheduler=scheduler)
    watch.stepped.clear()  # it steps once with zero gradients to make its states
    dtype = torch.float16 if "fp16" in config else torch.float32
    for k in range(1, steps + 3):
        watch.begin(k)
        for _ in range(accumulate):
            loss = engine(torch.ones(2, 1, dtype=dtype)).float().pow(2).mean()
            engine.backward(loss * BAD if k in skipped else loss)
            engine.step()
        watch.logged[k] = engine.get_lr()[0]
    options = {"lr": lr, "warmup": warmup, "steps": steps, "accumulate": accumulate}
    by = type(engine.optimizer).__name__
    if "torch_autocast" in config:
        found = watch.skipped(skipped)
        assert engine.skipped_steps == 0
        return Case(contract, klass, "GradScaler+DeepSpeedEngine", with_values(options, values),
                    watch.force, watch.logged, bends=tuple(found))
    if age and klass == "WarmupCosineLR":
        klass = "warmup_cosine_old"  # not clamped at its end
    return case(contract, klass, by + "+DeepSpeedEngine", with_values(options, values), watch,
                skipped)


def deepspeed_cases():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29534", RANK="0", WORLD_SIZE="1",
                      LOCAL_RANK="0", DS_ACCELERATOR="cpu")
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    type(get_accelerator()).is_fp16_supported = lambda _: True
    rng, scale = random.Random(f"{SEED} deepspeed skips"), {"initial_scale_power": 6}
    configs = [{"fp16": {"enabled": True, **scale}},
               {"fp16": {"enabled": True, **scale}, "zero_optimization": {"stage": 1}},
               {"torch_autocast": {"enabled": True, "dtype": "float16"}}]
    return [deepspeed_case(rng, deepspeed, klass, config) for config in configs for klass in
            ("WarmupDecayLR", "WarmupCosineLR", "linear", "cosine") for _ in range(2)]


# -------------------------------------------------------------------------------- Megatron


@contextmanager
def on_cpu():
    """device='cuda' becomes 'cpu': Megatron's optimizer makes its flags there."""
    from torch.overrides import TorchFunctionMode

    class Move(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            keywords = dict(keywords or {})
            if keywords.get("device") == "cuda":
                keywords["device"] = "cpu"
            return function(*arguments, **keywords)

    with Move():
        yield


class Pretended(torch.nn.Parameter):
    """A half on the CPU that says that it lies on a GPU, which Megatron's optimizer asks for."""

    def type(self, *given):
        return super().type(*given) if given else "torch.cuda.HalfTensor"


def megatron_case(rng, name, constant):
    """train_step of megatron.training (not on PyPI) around the real optimizer, scaler and
    scheduler: update_successful = optimizer.step(); the scheduler moves only if it is true; the
    iteration counts in any case; the log reads the LR afterwards."""
    from megatron.core.optimizer import OptimizerConfig
    from megatron.core.optimizer.grad_scaler import ConstantGradScaler, DynamicGradScaler
    from megatron.core.optimizer.optimizer import Float16OptimizerWithFloat16Params
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    lr, steps, batch = random_lr(rng), rng.randint(6, 14), rng.choice([1, 8, 64, 768])
    warmup, skipped = rng.randint(0, steps - 2), random_skips(rng, steps)
    parameter = Pretended(torch.zeros(2, dtype=torch.float16))
    inner = torch.optim.SGD([parameter], lr=lr)
    watch = Watch(inner)
    scaler = ConstantGradScaler(64.0) if constant else \
        DynamicGradScaler(64.0, 1.0, 2.0, 0.5, 1000, 2)
    config = OptimizerConfig(optimizer="sgd", lr=lr, fp16=True, clip_grad=0.0)
    optimizer = Float16OptimizerWithFloat16Params(inner, config, scaler, lambda *_: None)
    optimizer.grad_stats_parallel_group = torch.distributed.group.WORLD
    scheduler = OptimizerParamScheduler(optimizer, 0.0, lr, 0.0, warmup * batch, steps * batch,
                                        name, 0.0, 0.0, steps * batch, "constant")
    for k in range(1, steps + 3):
        watch.begin(k)
        optimizer.zero_grad()
        loss = (parameter * (BAD if k in skipped else 1.0)).float().sum()
        optimizer.scale_loss(loss).backward()
        parameter.main_grad = parameter.grad
        update_successful, *_ = optimizer.step()
        assert bool(update_successful) == (k not in skipped)
        if update_successful:
            scheduler.step(increment=batch)
        watch.logged[k] = optimizer.param_groups[0]["lr"]
    options = {"lr": lr, "warmup": warmup, "steps": steps, "global_batch": batch}
    return case("megatron", name, type(scaler).__name__ + "+OptimizerParamScheduler", options,
                watch, skipped)


def megatron_cases():
    if not torch.distributed.is_initialized():
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29535")
        torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    rng = random.Random(f"{SEED} megatron skips")
    with on_cpu():
        return [megatron_case(rng, name, constant) for name in ("linear", "cosine")
                for constant in (False, False, True)]


# -------------------------------------------------------------------------------- OLMo-core


def olmo_case(rng, name, units):
    """Its own trainer with SkipStepAdamW: updates whose loss or norm lies above the mean of the last
    ones by sigma_factor standard deviations are skipped; a small factor, and some always are."""
    import numpy
    from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig
    from olmo_core.nn.transformer import TransformerConfig
    from olmo_core.optim import SkipStepAdamWConfig, scheduler
    from olmo_core.train import Duration, TrainerConfig
    from olmo_core.train.callbacks import Callback
    from olmo_core.train.train_module import TransformerTrainModuleConfig

    lr, steps, tokens = random_lr(rng), rng.randint(12, 30), 128
    warmup, values = rng.randint(0, 5), {"alpha_f": rng.choice([0.0, 0.1, 0.25])}
    force, logged, skipped, weights = {}, {}, [], []

    class Log(Callback):
        def log_metrics(self, step, metrics):
            if "optim/LR (group 0)" in metrics:  # not in the last rows, of throughput alone
                logged[step] = float(metrics["optim/LR (group 0)"])

    scale = tokens if units == "tokens" else 1
    made = getattr(scheduler, name)(warmup=warmup * scale, **values,
                                    units=getattr(scheduler.SchedulerUnits, units))
    words = TokenizerConfig(vocab_size=64, eos_token_id=2, pad_token_id=0)
    numpy.random.default_rng(1).integers(3, 40, 40000).astype(numpy.uint8).tofile("tokens.npy")
    model = TransformerConfig.llama_like(vocab_size=64, d_model=16, n_layers=1, n_heads=2).build(
        init_device="cpu")
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=64, max_sequence_length=32, scheduler=made, max_grad_norm=1.0,
        optim=SkipStepAdamWConfig(lr=lr, rolling_interval_length=8, sigma_factor=1)).build(model)

    def before(optimizer, *_):
        force[len(force) + 1] = optimizer.param_groups[0]["lr"]
        weights[:] = [parameter.detach().clone() for parameter in model.parameters()]

    def after(optimizer, *_):
        same = all(torch.equal(old, now) for old, now in zip(weights, model.parameters()))
        if float(optimizer.step_skipped):
            assert same
            skipped.append(len(force))

    module.optim.register_step_pre_hook(before)
    module.optim.register_step_post_hook(after)
    dataset = NumpyFSLDatasetConfig(paths=["tokens.npy"], sequence_length=32, tokenizer=words,
                                    work_dir="work").build()
    loader = NumpyDataLoaderConfig(global_batch_size=tokens, seed=7, work_dir="work").build(dataset)
    length = Duration.tokens(steps * tokens) if units == "tokens" else Duration.steps(steps)
    trainer = TrainerConfig(save_folder="out", work_dir="work", save_overwrite=True,
                            max_duration=length, metrics_collect_interval=1, no_checkpoints=True
                            ).with_callback("log", Log()).build(module, loader)
    trainer.fit()
    assert len(force) == steps and sorted(logged) == sorted(force) and skipped, (force, skipped)
    options = {"lr": lr, "warmup": warmup, "steps": steps,
               "skipped": ",".join(map(str, skipped))}
    if units == "tokens":
        options["tokens"] = tokens
    return Case("olmo-core-tokens" if units == "tokens" else "olmo-core",
                {"LinearWithWarmup": "linear_with_warmup", "CosWithWarmup": "cos_with_warmup"}[name],
                "SkipStepAdamW+Trainer", with_values(options, values), force, logged,
                bends=tuple(skipped))


def olmo_cases():
    from olmo_core.train import prepare_training_environment, teardown_training_environment

    rng, here = random.Random(f"{SEED} olmo skips"), os.getcwd()
    prepare_training_environment(seed=7, backend=None)
    found = []
    for units in ("steps", "tokens"):
        for name in ("LinearWithWarmup", "CosWithWarmup"):
            for _ in range(2):
                with tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    found.append(olmo_case(rng, name, units))
                    os.chdir(here)
    teardown_training_environment()
    return found


def cases():
    logging.disable(logging.CRITICAL)
    return accelerate_cases() + lightning_cases() + megatron_cases() + deepspeed_cases()


if __name__ == "__main__":
    accelerate_worker(int(sys.argv[1]), sys.argv[2] == "1", sys.argv[3], sys.argv[4])
