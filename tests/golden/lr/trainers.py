# SPDX-License-Identifier: Apache-2.0
"""Cases from real trainers: they derive T and warm-up themselves and run their own loop.

The model is one weight; what counts is which LR its optimizer holds at every step (a hook) and
which LR the trainer reports for it.
"""

import logging
import random
import tempfile

import torch

from golden import SEED, Case, random_lr
from loops import hf_values, with_values


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"x": torch.tensor([float(index % 7)]), "labels": torch.tensor([1.0])}


class Weight(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x, labels=None):
        return {"loss": ((self.layer(x) - labels) ** 2).mean()}


def hook(optimizer, applied):
    def capture(stepping, *_):
        applied[len(applied) + 1] = stepping.param_groups[0]["lr"]

    optimizer.register_step_pre_hook(capture)


# ------------------------------------------------------------------ transformers.Trainer


def trainer_options(rng):
    """Sizes of a training that takes 1 to about 80 updates."""
    batch, accumulate = rng.randint(1, 4), rng.choice([1, 1, 2, 3, 4, 8])
    rows = rng.randint(1, 60) + batch
    options = {"dataset": rows, "batch": batch, "accumulate": accumulate}
    if rng.random() < 0.6:
        options["epochs"] = rng.choice([1.0, 2.0, 3.0, 0.5, 1.5, 2.7])
    else:
        options["steps"] = rng.randint(2, 40)
    if rng.random() < 0.4:
        options["drop_last"] = 1
    return options


def run_trainer(rng, name, contract, ratio_as_steps):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    lr, options = random_lr(rng), trainer_options(rng)
    warm = {}
    if name != "constant":
        if rng.random() < 0.6:
            warm["warmup_ratio"] = rng.choice([0.03, 0.1, 0.07, 0.29, 0.05, 0.5])
        else:
            warm["warmup"] = rng.randint(0, 4)
    # 40 is enough for a T that is not known yet: these schedules do not use it for their values.
    values = hf_values(rng, name, lr, 40, 0)
    if not ratio_as_steps and name == "inverse_sqrt":
        values = {}  # get_scheduler of 4.46.3 drops the arguments of inverse_sqrt
    arguments = {"warmup_steps": warm.get("warmup", 0)}
    if "warmup_ratio" in warm:
        if ratio_as_steps:
            arguments["warmup_steps"] = warm["warmup_ratio"]
        else:
            arguments["warmup_ratio"] = warm["warmup_ratio"]
    applied, logged = {}, {}

    class Log(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "learning_rate" in logs:
                logged[state.global_step] = logs["learning_rate"]

    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder, learning_rate=lr, lr_scheduler_type=name,
            lr_scheduler_kwargs=dict(values), per_device_train_batch_size=options["batch"],
            gradient_accumulation_steps=options["accumulate"],
            num_train_epochs=options.get("epochs", 3.0), max_steps=options.get("steps", -1),
            dataloader_drop_last=bool(options.get("drop_last")), logging_steps=1,
            save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, optim="sgd",
            **arguments)
        trainer = Trainer(model=Weight(), args=args, train_dataset=Rows(options["dataset"]),
                          callbacks=[Log()])
        trainer.create_optimizer()
        hook(trainer.optimizer, applied)
        trainer.train()
    assert applied, options
    assert sorted(logged) == sorted(applied), (options, logged, applied)
    options = with_values({"lr": lr, **warm, **options}, values)
    return Case(contract, name, "Trainer", options, applied, logged)


def quiet():
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.trainer_callback.PrinterCallback.on_log = lambda *_, **__: None
    logging.disable(logging.CRITICAL)


TRAINER = ["linear", "cosine", "constant", "constant_with_warmup", "cosine_with_restarts",
           "inverse_sqrt", "cosine_with_min_lr"]


def trainer_cases(count=12, contract="hf", part="trainer", ratio_as_steps=True, names=TRAINER):
    quiet()
    rng = random.Random(f"{SEED} {part}")
    return [run_trainer(rng, name, contract, ratio_as_steps) for name in names
            for _ in range(count)]


def trainer_old_cases():
    """Releases whose log shows the LR of the next update; warm-up ratio is its own argument."""
    return trainer_cases(8, "hf-4.50", "trainer-old", False)


# ------------------------------------------------------------------------------ Lightning


def run_lightning(rng, name, interval):
    import lightning
    from lightning.pytorch.callbacks import LearningRateMonitor
    from transformers import get_scheduler

    lr = random_lr(rng)
    batch, accumulate = rng.randint(1, 3), rng.choice([1, 1, 2, 3])
    batches = rng.randint(accumulate, 12)
    rows, epochs = batches * batch - rng.randint(0, batch - 1), rng.randint(1, 4)
    applied, used = {}, {}

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = Weight()

        def training_step(self, batch, _):
            return self.weight(**batch)["loss"]

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=lr)
            hook(optimizer, applied)
            total = int(self.trainer.estimated_stepping_batches)
            self.total = epochs if interval == "epoch" else total
            self.warmup = rng.randint(0, max(0, self.total // 3)) if name != "constant" else 0
            self.values = hf_values(rng, name, lr, self.total, self.warmup)
            scheduler = get_scheduler(name, optimizer, self.warmup, self.total, dict(self.values))
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": scheduler, "interval": interval}}

        def on_before_optimizer_step(self, optimizer):
            used[len(used) + 1] = self.monitor()

        def monitor(self):
            callback = [c for c in self.trainer.callbacks if isinstance(c, LearningRateMonitor)][0]
            return callback.lrs["lr-SGD"][-1]

    monitor = LearningRateMonitor(logging_interval="step")
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=epochs, accumulate_grad_batches=accumulate, accelerator="cpu", devices=1,
            callbacks=[monitor], logger=lightning.pytorch.loggers.CSVLogger(folder),
            enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1,
            enable_checkpointing=False)
        module = Module()
        trainer.fit(module, torch.utils.data.DataLoader(Rows(rows), batch_size=batch))
    options = {"lr": lr, "warmup": module.warmup}
    if interval == "epoch":
        options["steps"] = module.total  # of the schedule, in epochs: that is what none says
        options["rescaled"] = "none"
        options["updates_per_epoch"] = -(-batches // accumulate)
    else:
        options.update({"dataset": rows, "epochs": float(epochs), "batch": batch,
                        "accumulate": accumulate})
    return Case("lightning-" + interval, name, "lightning.Trainer",
                with_values(options, module.values), applied, used)


def lightning_cases(count=8):
    logging.disable(logging.CRITICAL)
    rng = random.Random(f"{SEED} lightning")
    names = ["linear", "cosine", "constant_with_warmup", "cosine_with_min_lr", "inverse_sqrt"]
    return [run_lightning(rng, name, interval) for interval in ("step", "epoch") for name in names
            for _ in range(count if interval == "step" else count // 2)]


# ------------------------------------------------------------------------------ DeepSpeed


def run_deepspeed(rng, deepspeed, klass, age=""):
    """The engine with its scheduler, or with a plain one of transformers; get_lr() for the log.
    `age` is "-old" for 0.14.0, which has contracts of its own."""
    from transformers import get_scheduler

    lr, steps, accumulate = random_lr(rng), rng.randint(6, 40), rng.choice([1, 1, 2, 3])
    warmup = rng.randint(1, steps - 3)
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": accumulate}
    model = torch.nn.Linear(1, 1)
    optimizer, applied, logged = torch.optim.AdamW(model.parameters(), lr=lr), {}, {}
    hook(optimizer, applied)
    values, scheduler, contract = {}, None, "deepspeed-torch"
    if klass.startswith("Warmup"):
        contract = ("deepspeed-cosine" if klass == "WarmupCosineLR" else "deepspeed-warmup") + age
        values["warmup_type"] = rng.choice(["log", "linear"])
        parameters = {"warmup_num_steps": warmup, **values}
        if klass != "WarmupLR":
            parameters["total_num_steps"] = steps
        if klass != "WarmupCosineLR":
            parameters["warmup_max_lr"] = lr
        config["scheduler"] = {"type": klass, "params": parameters}
    else:
        scheduler = get_scheduler(klass, optimizer, warmup, steps)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config,
                                      lr_scheduler=scheduler)
    for micro in range((steps + 3) * accumulate):
        loss = engine(torch.ones(2, 1)).pow(2).mean()
        engine.backward(loss)
        engine.step()
        if (micro + 1) % accumulate == 0:
            logged[(micro + 1) // accumulate] = engine.get_lr()[0]
    assert sorted(applied) == sorted(logged)
    options = {"lr": lr, "warmup": warmup, "steps": steps, "accumulate": accumulate}
    if age and klass == "WarmupCosineLR":
        klass = "warmup_cosine_old"  # not clamped at its end
    return Case(contract, klass, "DeepSpeedEngine", with_values(options, values), applied, logged)


def deepspeed_engine_cases(count=6):
    import os

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", RANK="0", WORLD_SIZE="1",
                      LOCAL_RANK="0", DS_ACCELERATOR="cpu")
    logging.disable(logging.CRITICAL)
    import deepspeed

    rng = random.Random(f"{SEED} deepspeed-engine")
    return [run_deepspeed(rng, deepspeed, klass) for klass in
            ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "linear", "cosine")
            for _ in range(count)]
