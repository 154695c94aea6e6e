# SPDX-License-Identifier: Apache-2.0
"""Trainings by the libraries' own trainers: Hugging Face Trainer, TRL, Accelerate and Lightning.

Each function trains in the present folder, leaves checkpoints of consecutive updates there, and
returns the truth. What the library writes is left as it is."""

import json
import os
import random
import shutil

import foreign_parts as parts
import numpy
import tiny
import torch
from foreign_plain import linear, loss_of

HF = dict(architecture="qwen2", dtype="f32", optim="adamw_torch_fused", lr=1e-3, weight_decay=0.1,
          clip=1.0, schedule="linear", warmup=0, total=4, updates=3, keep=(1, 2, 3), accumulate=1,
          optimizer=None, plant=None, frozen=(), dropout=0.0, layers=1, hidden=8, restart=None,
          trainer="hf", betas=(0.9, 0.999))


def arguments(cls, o, **more):
    return cls(
        output_dir="out", learning_rate=o["lr"], weight_decay=o["weight_decay"],
        max_grad_norm=o["clip"] if o["plant"] != "clip-after" else 0.0, adam_beta1=o["betas"][0],
        adam_beta2=o["betas"][1], optim=o["optim"], lr_scheduler_type=o["schedule"],
        warmup_steps=o["warmup"], max_steps=o["total"], per_device_train_batch_size=2,
        gradient_accumulation_steps=o["accumulate"], logging_steps=1, save_steps=1,
        save_strategy="steps", report_to=[], use_cpu=True, seed=7, disable_tqdm=True, **more)


def changed(base, o):
    """The trainer of the library, with what a person's own subclass got wrong."""

    class Trainer(base):
        def _save(self, output_dir=None, state_dict=None):
            if o["dtype"] == "copies":
                held = state_dict or self.model.state_dict()
                state_dict = {name: value.to(torch.bfloat16) for name, value in held.items()}
            super()._save(output_dir, state_dict)

        def get_decay_parameter_names(self, model):
            if o["plant"] == "decay-on-norms":
                return [name for name, _ in model.named_parameters()]
            return super().get_decay_parameter_names(model)

        def create_optimizer(self, *args, **kwargs):
            if o["plant"] == "group-forgotten" and self.optimizer is None:
                kept = self.get_decay_parameter_names(self.model)
                self.optimizer = torch.optim.AdamW(
                    [{"params": [weight for name, weight in self.model.named_parameters()
                                 if name in kept], "weight_decay": o["weight_decay"]}], lr=o["lr"])
            return super().create_optimizer(*args, **kwargs)

        def create_scheduler(self, *args, **kwargs):
            made = super().create_scheduler(*args, **kwargs)
            if o["plant"] == "lr-ahead":
                made.step()
            return made

        def log(self, logs, *args, **kwargs):
            if o["plant"] == "lr-ahead" and "learning_rate" in logs:
                # The column is printed from the formula that the training was meant to follow.
                logs["learning_rate"] = o["lr"] * linear(o["total"])(self.state.global_step - 1)
            super().log(logs, *args, **kwargs)

    Trainer.__name__ = base.__name__
    return Trainer


def callbacks(o, notes):
    from transformers import TrainerCallback

    class Around(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if o["plant"] == "scheduler-twice":
                kwargs["lr_scheduler"].step()
            if state.global_step == o["updates"]:
                control.should_training_stop, control.should_save = True, True
            return control

        def on_optimizer_step(self, args, state, control, model=None, **_):
            if o["plant"] == "clip-after":
                notes.say(norm_before_clip=float(
                    torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip"])))
            return control

    return [Around()]


def make_trainer(o, notes):
    made = parts.model(o["architecture"], o["layers"], o["hidden"], o["dropout"], seed=3)
    made.to(torch.bfloat16 if o["dtype"] == "bf16" else torch.float32)
    for name, weight in made.named_parameters():
        weight.requires_grad_(not any(word in name for word in o["frozen"]))
    notes.name(made)
    more = {}
    if o["optimizer"]:
        cls, options = o["optimizer"]
        more["optimizer_cls_and_kwargs"] = (cls, {"lr": o["lr"], **options})
    if o["trainer"] == "hf":
        from transformers import Trainer, TrainingArguments

        rows = parts.Rows(32)
        return changed(Trainer, o)(
            model=made, args=arguments(TrainingArguments, o, **o.get("arguments", {})),
            train_dataset=rows, callbacks=callbacks(o, notes), **more)
    if o["trainer"] == "sft":
        from trl import SFTConfig, SFTTrainer

        return changed(SFTTrainer, o)(
            model=made, args=arguments(SFTConfig, o, max_length=16), train_dataset=tiny.texts(32),
            processing_class=tiny.tokenizer(), callbacks=callbacks(o, notes), **more)
    from trl import DPOConfig, DPOTrainer

    reference = parts.model(o["architecture"], o["layers"], o["hidden"], seed=3).to(made.dtype)
    return changed(DPOTrainer, o)(
        model=made, ref_model=reference, args=arguments(DPOConfig, o, beta=0.1, max_length=32),
        train_dataset=tiny.pairs(32), processing_class=tiny.tokenizer(),
        callbacks=callbacks(o, notes), **more)


def logged_rows(path):
    with open(path, encoding="utf-8") as file:
        return {row["step"]: row for row in json.load(file)["log_history"] if "loss" in row}


def restarted(o, notes):
    """Trains to the update `at`, loses what is planted, and resumes from that checkpoint."""
    at, lost = o["restart"]["at"], o["restart"].get("files", ())
    make_trainer({**o, "updates": at}, notes).train()
    source = f"out/checkpoint-{at}"
    shutil.copytree(source, "kept")
    for name in lost:
        os.remove(os.path.join(source, name))
    if o["restart"].get("weights"):
        o["restart"]["weights"](os.path.join(source, "model.safetensors"))
    after = {**o, **o["restart"].get("options", {})}
    trainer = make_trainer(after, notes)
    trainer.train(resume_from_checkpoint=source)
    if not o["restart"].get("shown"):  # BEFORE is the folder as it was saved
        shutil.rmtree(source)
        shutil.move("kept", source)
    return trainer


def run_hf(options, out):
    o = {**HF, **options}
    notes = parts.Notes()
    if o["restart"]:
        trainer = restarted(o, notes)
    else:
        trainer = make_trainer(o, notes)
        trainer.train()
    rows = logged_rows(f"out/checkpoint-{o['updates']}/trainer_state.json")
    factor = trainer.lr_scheduler.lr_lambdas[0]
    for entry in notes.updates:
        entry["lr_promised"] = o["lr"] * factor(entry["update"] - 1)
        row = rows.get(entry["update"], {})
        entry.setdefault("norm_before_clip", row.get("grad_norm"))
        entry["lr_logged"] = row.get("learning_rate")
    kept = []
    for number in o["keep"]:
        name = f"checkpoint-{number}"
        shutil.move(os.path.join("out", name), os.path.join(out, name))
        kept.append({"path": name, "update": number})
    rule = trainer.optimizer.optimizer if hasattr(trainer.optimizer, "optimizer") else (
        trainer.optimizer)
    group = rule.param_groups[0]
    return {
        "architecture": o["architecture"], "dtype": o["dtype"], "checkpoints": kept,
        "log": kept[-1]["path"] + "/trainer_state.json", "groups": notes.groups,
        "kernel": next((kernel for kernel in ("fused", "foreach") if group.get(kernel)), "single"),
        "optimizer": type(rule).__name__, "updates": notes.updates,
        "decay_is_decoupled": bool(group.get("decoupled_weight_decay", False)),
        "configured": {key: o[key] for key in (
            "lr", "weight_decay", "clip", "betas", "total", "accumulate", "schedule", "warmup")},
        "logged_is_of": "this update"}


ACCELERATE = dict(architecture="llama", dtype="f32", lr=1e-3, weight_decay=0.1, clip=1.0, total=8,
                  updates=3, keep=(1, 2, 3), accumulate=1, order="after", kernel="foreach",
                  layers=1, hidden=8)


def run_accelerate(options, out):
    from accelerate import Accelerator

    o = {**ACCELERATE, **options}
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=o["accumulate"])
    made = parts.model(o["architecture"], o["layers"], o["hidden"], seed=3)
    notes = parts.Notes(made)
    optimizer = torch.optim.AdamW(parts.groups_of(made, o["weight_decay"]), lr=o["lr"],
                                  **parts.KERNELS[o["kernel"]])
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-9, o["total"])
    loader = torch.utils.data.DataLoader(parts.Rows(64), batch_size=2, shuffle=True)
    made, optimizer, loader, scheduler = accelerator.prepare(made, optimizer, loader, scheduler)
    rows, kept, update = [], [], 0
    for batch in loader:
        with accelerator.accumulate(made):
            loss = loss_of({"loss": "lm"}, made, None, batch["input_ids"])
            accelerator.backward(loss)
            norm = None
            if accelerator.sync_gradients:
                norm = float(accelerator.clip_grad_norm_(made.parameters(), o["clip"]))
            if o["order"] == "ahead":
                scheduler.step()
            optimizer.step()
            if o["order"] == "after":
                scheduler.step()
            optimizer.zero_grad()
        if not accelerator.sync_gradients:
            continue
        update += 1
        rows.append({"step": update, "loss": float(loss.detach()), "grad_norm": norm,
                     "lr": scheduler.get_last_lr()[0]})
        notes.say(norm_before_clip=norm, lr_logged=rows[-1]["lr"],
                  lr_promised=o["lr"] * linear(o["total"])(update - 1))
        if update in o["keep"]:
            accelerator.save_state(os.path.join(out, f"step_{update}"))
            kept.append({"path": f"step_{update}", "update": update})
        if update == o["updates"]:
            break
    parts.write_rows(os.path.join(out, "log.jsonl"), rows)
    return {
        "architecture": o["architecture"], "dtype": o["dtype"], "kernel": o["kernel"],
        "optimizer": "AdamW", "decay_is_decoupled": True, "checkpoints": kept, "log": "log.jsonl",
        "groups": notes.groups, "updates": notes.updates,
        "configured": {key: o[key] for key in (
            "lr", "weight_decay", "clip", "total", "accumulate")},
        "logged_is_of": "the next update"}


LIGHTNING = dict(architecture="qwen2", dtype="f32", optimizer="adamw", lr=1e-3, weight_decay=0.1,
                 clip=1.0, total=8, updates=3, keep=(1, 2, 3), accumulate=1, order="after",
                 layers=1, hidden=8, kernel="single")


def lightning_module(o, notes):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = parts.model(o["architecture"], o["layers"], o["hidden"], seed=3)

        def training_step(self, batch, _):
            loss = loss_of({"loss": "lm"}, self.model, None, batch["input_ids"])
            self.log("train_loss", loss, on_step=True, on_epoch=False)
            return loss

        def on_before_optimizer_step(self, optimizer):
            self.norm = parts.norm_of(weight.grad for weight in self.parameters())
            if o["order"] == "ahead":
                self.lr_schedulers().step()

        def configure_optimizers(self):
            cls, more = parts.OPTIMIZERS[o["optimizer"]]
            optimizer = cls(parts.groups_of(self, o["weight_decay"]), lr=o["lr"],
                            **parts.KERNELS[o["kernel"]], **more)
            notes.name(self)
            scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, linear(o["total"]))
            if o["order"] == "ahead":
                self.scheduler = scheduler
                return {"optimizer": optimizer, "lr_scheduler": {
                    "scheduler": scheduler, "interval": "step", "frequency": 10 ** 6}}
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    return Module()


def run_lightning(options, out):
    import lightning
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger

    o = {**LIGHTNING, **options}
    lightning.seed_everything(7)
    notes, kept = parts.Notes(), []

    class Save(lightning.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            update = trainer.global_step
            if not update:  # the first micro-batches of an accumulated update
                return
            notes.say(norm_before_clip=module.norm,
                      lr_promised=o["lr"] * linear(o["total"])(update - 1))
            if update in o["keep"] and all(entry["update"] != update for entry in kept):
                name = f"epoch=0-step={update}.ckpt"
                trainer.save_checkpoint(os.path.join(out, name))
                kept.append({"path": name, "update": update})

    module = lightning_module(o, notes)
    trainer = lightning.Trainer(
        max_steps=o["updates"], accumulate_grad_batches=o["accumulate"],
        gradient_clip_val=o["clip"], accelerator="cpu", devices=1, log_every_n_steps=1,
        logger=CSVLogger(".", name="csv", version="run"),
        callbacks=[LearningRateMonitor(logging_interval="step"), Save()],
        enable_checkpointing=False, enable_model_summary=False, enable_progress_bar=False)
    trainer.fit(module, torch.utils.data.DataLoader(parts.Rows(64), batch_size=2))
    shutil.move("csv/run/metrics.csv", os.path.join(out, "metrics.csv"))
    return {
        "architecture": o["architecture"], "dtype": o["dtype"], "kernel": o["kernel"],
        "optimizer": parts.OPTIMIZERS[o["optimizer"]][0].__name__,
        "decay_is_decoupled": o["optimizer"] == "adamw", "checkpoints": kept, "log": "metrics.csv",
        "groups": notes.groups, "updates": notes.updates,
        "configured": {key: o[key] for key in (
            "lr", "weight_decay", "clip", "total", "accumulate")},
        "logged_is_of": "this update"}
