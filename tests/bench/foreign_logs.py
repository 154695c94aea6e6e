#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes logs of real trainers, healthy and with the known bugs that a log can show.

    foreign_logs.py --out FOLDER [--only NAME]... [--seed N] [--list]

FOLDER/NAME gets the log as the library wrote it (trainer_state.json, metrics.jsonl or metrics.csv).
foreign_log_cases.py is the table of what runs and of what is expected; foreign_judge.py asks the
program. --seed draws other weights, rows, orders and dropout; those of the page are of seed 0, the
default, but where it says so. Each training runs in a process of its own, on one thread, from a model
of under 5,000 weights, without a network. It needs what foreign_requirements.txt names."""

import argparse
import inspect
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import foreign_parts as parts  # noqa: E402
import tiny  # noqa: E402
import torch  # noqa: E402
from foreign_log_cases import (  # noqa: E402
    ACCELERATE, CASES, DPO, GRPO, KTO, LIGHTNING, REWARD, RLOO, SFT)

DEFAULTS = dict(lr=1e-3, schedule="linear", warmup=6, total=60, accumulate=1, batch=4, evaluate=15,
                every=1, clip=1.0, dropout=0.0, bf16=False, weights="f32", epochs=None, rows=None,
                values=None, restart=None, overflow=(), tuned=False, loss="sigmoid",
                optim="adamw_torch_fused", beta=0.04)
SEED = 0  # of the set: every draw below is moved by it


class Ragged(torch.utils.data.Dataset):
    """Rows of 4 to 16 tokens that follow a pattern, so that a loss falls."""

    def __init__(self, count, seed=1):
        rng = random.Random(seed + 1000 * SEED)
        self.rows = []
        for _ in range(count):
            first, step = rng.randrange(3, 24), rng.choice((1, 1, 2))
            self.rows.append([3 + (first + step * i) % 40 for i in range(rng.randint(4, 16))])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": list(self.rows[index])}


def collate(rows):
    length = max(len(row["input_ids"]) for row in rows)

    def padded(key, value):
        return torch.tensor([row[key] + [value] * (length - len(row[key])) for row in rows])

    ids = padded("input_ids", 0)
    return {"input_ids": ids, "labels": padded("labels", -100), "attention_mask": (ids != 0).long()}


def make_model(o, plant=None):
    made = parts.model("llama", dropout=o["dropout"], seed=3 + 1000 * SEED)
    if o["tuned"] and plant != "weights_reinitialised":
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(made.parameters(), lr=1e-2)
        loader = torch.utils.data.DataLoader(Ragged(400, seed=9), 8, collate_fn=collate)
        for batch in loader:
            made(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    if plant == "weights_reinitialised":
        torch.manual_seed(5 + 1000 * SEED)
        for weight in made.parameters():
            torch.nn.init.normal_(weight, std=0.02) if weight.dim() > 1 else weight.data.fill_(1.0)
    if plant == "inv_freq_bf16":
        rotary = made.model.rotary_emb
        rotary.inv_freq = rotary.inv_freq.to(torch.bfloat16).float()
    return made.to(torch.bfloat16 if o["weights"] == "bf16" else torch.float32)


def arguments_of(o):
    return dict(
        output_dir="out", learning_rate=o["lr"], lr_scheduler_type=o["schedule"],
        lr_scheduler_kwargs=dict(o["values"] or {}), warmup_steps=o["warmup"], max_steps=o["total"],
        per_device_train_batch_size=o["batch"], gradient_accumulation_steps=o["accumulate"],
        logging_steps=o["every"], max_grad_norm=o["clip"], weight_decay=0.1, use_cpu=True,
        seed=7 + 1000 * SEED, save_strategy="no", report_to=[], disable_tqdm=True, bf16=o["bf16"],
        optim=o["optim"])


def arguments(cls, o, plant, **more):
    told = arguments_of(o)
    if o["epochs"]:
        told.update(num_train_epochs=o["epochs"], max_steps=-1)
    if o["evaluate"] and cls.__name__ != "DPOConfig" or "dpo-eval" in more:
        told.update(eval_strategy="steps", eval_steps=o["evaluate"])
        if plant == "base_seed_draw":
            told["eval_steps"] = 10
    if o["restart"]:
        told.update(save_strategy="steps", save_steps=o["restart"])
    if plant == "ac_rng_not_preserved":
        told.update(gradient_checkpointing=True, gradient_checkpointing_kwargs={
            "use_reentrant": True, "preserve_rng_state": False})
    more.pop("dpo-eval", None)
    return cls(**told, **more)


def summed(base):
    """The trainer with IPO's log-probs summed, as TRL had them before its pull request 1265: the
    lines that divide by the tokens are taken out of the library's own source."""
    module = sys.modules[base.__module__]
    source = inspect.getsource(module)
    for side in ("chosen", "rejected"):
        divided = f"{side}_scores / {side}_mask.sum(dim=1).clamp(min=1.0)"
        if divided not in source:
            raise RuntimeError(f"{module.__file__}: expected \"{divided}\"")
        source = source.replace(divided, f"{side}_scores")
    names = dict(vars(module))
    exec(compile(source, module.__file__, "exec"), names)
    return names[base.__name__]


def planted(base, o, plant):
    """The library's trainer with one slip in it, each as small as such slips are."""

    class Trainer(base):
        def create_scheduler(self, num_training_steps, optimizer=None):
            total = {"max_steps_ignored": 10 * num_training_steps,
                     "floor_vs_ceil_steps": num_training_steps - 3,
                     }.get(plant, num_training_steps)
            made = super().create_scheduler(total, optimizer)
            groups = made.optimizer.param_groups if hasattr(made, "optimizer") else []
            if plant == "lr_ahead_by_one":
                made.step()
            if plant == "step_then_set":
                for group in groups:
                    group["lr"] = o["lr"]
            if plant == "zero_init_patch":
                for group in groups:
                    group["lr"] = 0.0
            factor = made.lr_lambdas[0] if hasattr(made, "lr_lambdas") else None
            changed = {
                "double_zero_start": lambda k: factor(max(k - 1, 0)),
                "virtual_last_step": lambda k: min(
                    (k + 1) / o["warmup"], (o["total"] - k) / (o["total"] - o["warmup"])),
                "cosine_floor_mismatch": lambda k: (
                    factor(k) if k < o["warmup"] else 0.1 + 0.9 * factor(k)),
                "eval_steps_scheduler": lambda k: factor(15 * (k // 15) + 6)}.get(plant)
            if changed:
                made = torch.optim.lr_scheduler.LambdaLR(
                    self.optimizer, [changed] * len(self.optimizer.param_groups))
                self.lr_scheduler = made
            return made

        def create_optimizer(self, *more):
            made = super().create_optimizer(*more)
            if plant in ("adam_step_frozen", "adam_step_twice"):
                def after(optimizer, *_):
                    for state in optimizer.state.values():
                        state["step"] += 1 if plant == "adam_step_twice" else 1 - state["step"]

                made.register_step_post_hook(after)
            return made

        def get_decay_parameter_names(self, model):
            if plant == "no_decay_groups_lost":
                return [name for name, _ in model.named_parameters()]
            return super().get_decay_parameter_names(model)

        def _get_train_sampler(self, *more):
            if plant in ("epoch_index_seed", "peek_consumes_batch"):
                generator = torch.Generator().manual_seed(
                    (8 if plant == "epoch_index_seed" else 7) + 1000 * SEED)
                order = torch.randperm(len(self.train_dataset), generator=generator).tolist()
                return order[self.args.per_device_train_batch_size:] if (
                    plant == "peek_consumes_batch") else order
            return super()._get_train_sampler(*more)

        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            if plant == "label_double_shift" and model.training:
                inputs = {**inputs, "labels": torch.cat(
                    [inputs["labels"][:, 1:], inputs["labels"][:, :1] * 0 - 100], 1)}
            if plant == "eos_equals_pad_masked":
                labels = inputs["labels"].clone()
                labels[labels == 2] = -100
                inputs = {**inputs, "labels": labels}
            if plant == "mean_of_means":
                num_items_in_batch = None
            made = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            loss = made[0] if return_outputs else made
            if model.training:
                loss = loss * {"num_items_double_scale": 4.0, "dpo_loss_not_divided": 2.0,
                               "loss_summed_over_ranks": 2.0}.get(plant, 1.0)
                if plant == "mean_of_means":
                    loss = loss / self.current_gradient_accumulation_steps
                if self.state.global_step + 1 in o["overflow"] or (
                        plant == "nan_skip_poison" and self.state.global_step >= 40):
                    loss.register_hook(lambda gradient: gradient * float("inf"))
                if plant == "nan_loss_filtered" and self.state.global_step == 20:
                    loss = loss * float("nan")
            return (loss, made[1]) if return_outputs else loss

        def training_step(self, model, inputs, num_items_in_batch=None):
            if plant == "zero_grad_inside_loop":
                model.zero_grad()
            loss = super().training_step(model, inputs, num_items_in_batch)
            if plant == "clip_per_microbatch":
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25 * o["clip"])
            return loss

        def _clip_grad_norm(self, model):
            if plant == "clip_on_copy":
                copies = [weight.grad.clone() for weight in model.parameters()]
                return torch.linalg.vector_norm(torch.stack([copy.norm() for copy in copies]))
            if plant == "clip_scaled_grads":
                return torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip"])
            if plant == "hsdp_double_count":
                norm = torch.nn.utils.get_total_norm(
                    [weight.grad for weight in model.parameters()]) * 2.0 ** 0.5
                torch.nn.utils.clip_grads_with_norm_(model.parameters(), o["clip"], norm)
                return norm
            return super()._clip_grad_norm(model)

        def _load_optimizer_and_scheduler(self, checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
            if checkpoint and plant == "initial_lr_overwritten":
                now = self.lr_scheduler.get_last_lr()
                self.lr_scheduler.base_lrs = list(now)
                for group in self.optimizer.param_groups:
                    group["initial_lr"] = now[0]
            if checkpoint and plant == "double_counter":
                for _ in range(self.lr_scheduler.last_epoch):
                    self.lr_scheduler.step()

        def log(self, logs, *more, **named):
            if plant == "lr_ahead_by_one" and "learning_rate" in logs:
                k = self.state.global_step - 1
                logs["learning_rate"] = o["lr"] * self.lr_scheduler.lr_lambdas[0](k)
            super().log(logs, *more, **named)

    Trainer.__name__ = base.__name__
    return Trainer


def callback(o, plant):
    from transformers import TrainerCallback

    class Around(TrainerCallback):
        def on_substep_end(self, args, state, control, lr_scheduler=None, **_):
            if plant == "per_microbatch_stepping":
                lr_scheduler.step()

        def on_step_end(self, args, state, control, lr_scheduler=None, **_):
            for _ in range({"xP_scheduler": 3, "two_schedulers": 1}.get(plant, 0)):
                lr_scheduler.step()

        def on_evaluate(self, args, state, control, lr_scheduler=None, metrics=None, **_):
            for _ in range(5 if plant == "eval_also_steps" else 0):
                lr_scheduler.step()
            for _ in range(2 if plant == "plateau_xP" else 0):  # three processes, one scheduler
                lr_scheduler.step(metrics["eval_loss"])

    return Around()


def scaled(trainer, o, plant):
    """A real GradScaler, which Accelerate gives to no CPU training."""
    trainer.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    trainer.accelerator.native_amp = True
    trainer.accelerator.state._mixed_precision = "fp16"
    if plant == "skip_advances_schedule":
        kind = type(trainer)
        old = kind._maybe_log_save_evaluate

        def advancing(self, *more, **named):
            if self.accelerator.optimizer_step_was_skipped:
                self.lr_scheduler.step()
            return old(self, *more, **named)

        kind._maybe_log_save_evaluate = advancing


def make_other(o, kind, count):
    """The trainers of TRL in which nothing is planted."""
    import trl

    common = dict(arguments_of(o), eval_strategy="no")
    made, rng = make_model(o), random.Random(1 + 1000 * SEED)
    prompts = [tiny.sentence(rng, 3, 8) for _ in range(count)]
    rows = [{"prompt": prompt, "completion": tiny.sentence(rng, 4, 10), "label": bool(index % 2)}
            for index, prompt in enumerate(prompts)]
    told = dict(processing_class=tiny.tokenizer())
    if kind == KTO:
        return trl.KTOTrainer(model=made, ref_model=make_model(o), train_dataset=dataset_of(rows),
                              args=trl.KTOConfig(**common, max_length=32), **told)
    if kind == REWARD:
        from transformers import LlamaForSequenceClassification

        made.config.num_labels = 1
        return trl.RewardTrainer(model=LlamaForSequenceClassification(made.config),
                                 args=trl.RewardConfig(**common, max_length=48),
                                 train_dataset=tiny.pairs(count, seed=1 + 1000 * SEED), **told)
    made.save_pretrained("made")  # the reference is loaded from where the model came from
    cls, config = {GRPO: (trl.GRPOTrainer, trl.GRPOConfig),
                   RLOO: (trl.RLOOTrainer, trl.RLOOConfig)}[kind]
    return cls(model=type(made).from_pretrained("made"), train_dataset=dataset_of(rows),
               reward_funcs=lambda completions, **_: [float(text.count("a"))
                                                      for text in completions],
               args=config(**common, num_generations=4, max_completion_length=8, beta=o["beta"]),
               **told)


def dataset_of(rows):
    from datasets import Dataset

    return Dataset.from_list(rows)


def make_hf(o, kind, plant):
    made = make_model(o, plant)
    count = o["rows"] or o["total"] * o["accumulate"] * o["batch"] // 2
    if kind in (KTO, REWARD, GRPO, RLOO):
        return make_other(o, kind, count)
    if kind == SFT:
        from trl import SFTConfig, SFTTrainer

        trainer = planted(SFTTrainer, o, plant)(
            model=made, args=arguments(SFTConfig, o, plant, max_length=32),
            train_dataset=tiny.texts(count, seed=1 + 1000 * SEED),
            eval_dataset=tiny.texts(16, seed=2 + 1000 * SEED),
            processing_class=tiny.tokenizer(), callbacks=[callback(o, plant)])
    elif kind == DPO:
        from trl import DPOConfig, DPOTrainer

        reference = make_model(o)
        if plant == "other_reference":
            reference = make_model({**o, "tuned": True})
        shape = {"precompute_ref_log_probs": True, "precompute_ref_batch_size": 1} if (
            plant == "ref_batch_shape") else {}
        if o["evaluate"] and o["total"] == 40:
            shape["dpo-eval"] = True
        data = tiny.pairs(count, seed=1 + 1000 * SEED)
        if plant == "labels_swapped":
            shape["beta"] = -0.1
        if plant == "ipo_sum_vs_mean":
            DPOTrainer = summed(DPOTrainer)
        trainer = planted(DPOTrainer, o, plant)(
            model=made, ref_model=reference, train_dataset=data,
            eval_dataset=tiny.pairs(16, seed=2 + 1000 * SEED),
            args=arguments(DPOConfig, o, plant, **{"beta": 0.1, "max_length": 48,
                                                   "loss_type": [o["loss"]], **shape}),
            processing_class=tiny.tokenizer(), callbacks=[callback(o, plant)])
        if plant == "accuracy_of_means":
            mean_accuracies(trainer)
        if plant == "metric_last_microbatch":
            last_metrics(trainer)
        if plant == "labels_swapped":
            true_rewards(trainer)
    else:
        from transformers import Trainer, TrainingArguments

        trainer = planted(Trainer, o, plant)(
            model=made, args=arguments(TrainingArguments, o, plant), train_dataset=Ragged(count),
            eval_dataset=Ragged(32, seed=2), data_collator=collate, callbacks=[callback(o, plant)])
    if o["overflow"]:
        scaled(trainer, o, plant)
    return trainer


def last_metrics(trainer):
    """Logs the metrics of the last micro-batch, and not their mean."""
    inner = trainer.log

    def log(logs, *more, **named):
        for values in trainer._metrics["train"].values():
            values[:] = values[-1:]
        inner(logs, *more, **named)

    trainer.log = log


def true_rewards(trainer):
    """Logs the rewards of the pairs as they are meant, beside a loss that takes them the other way
    round (a beta of the other sign)."""
    inner = trainer.log

    def log(logs, *more, **named):
        moved = any(trainer._metrics["train"].get("rewards/margins", ()))
        for name, values in trainer._metrics["train"].items():
            if name in ("rewards/chosen", "rewards/rejected", "rewards/margins"):
                values[:] = [-value for value in values]
            if name == "rewards/accuracies":
                values[:] = [1.0 - value if moved else value for value in values]
        inner(logs, *more, **named)

    trainer.log = log


def mean_accuracies(trainer):
    """Compares the mean rewards of a batch, and not the rewards of each pair."""
    inner = trainer.log

    def log(logs, *more, **named):
        held = trainer._metrics["train"]
        if held.get("rewards/chosen"):
            held["rewards/accuracies"][:] = [
                float(chosen > rejected) for chosen, rejected in zip(
                    held["rewards/chosen"], held["rewards/rejected"])]
        inner(logs, *more, **named)

    trainer.log = log


def run_hf(o, kind, plant, out):
    changes = {"warmup_rounding": {"warmup": 7}, "default_lr_overrides": {"lr": 5e-3},
               "unit_mismatch": {"warmup": 96}}.get(plant, {})
    o = {**o, **changes}
    trainer = make_hf(o, kind, plant)
    if o["restart"]:
        from transformers import TrainerCallback

        class Stop(TrainerCallback):
            def on_step_end(self, args, state, control, **_):
                control.should_training_stop |= state.global_step == o["restart"]
                return control

        trainer.add_callback(Stop())
        trainer.train()
        source = f"out/checkpoint-{o['restart']}"
        if plant == "scheduler_not_restored":
            os.remove(source + "/scheduler.pt")
        if plant == "rng_not_saved":
            os.remove(source + "/rng_state.pth")
        trainer = make_hf(o, kind, plant)
        trainer.train(resume_from_checkpoint=source)
    else:
        trainer.train()
    trainer.save_state()
    shutil.copy("out/trainer_state.json", out)


def schedule_of(o, optimizer):
    from transformers import get_scheduler

    return get_scheduler(o["schedule"], optimizer, o["warmup"], o["total"])


def run_accelerate(o, plant, out):
    from accelerate import Accelerator, skip_first_batches

    torch.manual_seed(7 + 1000 * SEED)
    random.seed(7 + 1000 * SEED)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=o["accumulate"])
    made = make_model(o, plant)
    optimizer = torch.optim.AdamW(made.parameters(), lr=o["lr"], weight_decay=0.1)
    scheduler = schedule_of(o, optimizer)
    rows = o["rows"] or 160 * o["accumulate"]
    loader = torch.utils.data.DataLoader(Ragged(rows), batch_size=o["batch"], shuffle=True,
                                         collate_fn=collate)
    made, optimizer, loader, scheduler = accelerator.prepare(made, optimizer, loader, scheduler)
    update, log, epoch, seen, begun, skipping = 0, [], 0, 0, 0, loader
    while update < o["total"]:
        for index, batch in enumerate(skipping):
            with accelerator.accumulate(made):
                loss = made(**batch).loss
                accelerator.backward(loss)
                seen += int((batch["labels"] != -100).sum())
                norm = accelerator.clip_grad_norm_(made.parameters(), o["clip"]) if (
                    accelerator.sync_gradients) else None
                if plant == "lr_ahead_by_one":
                    scheduler.step()
                optimizer.step()
                if plant != "lr_ahead_by_one":
                    scheduler.step()
                if plant != "trailing_window_leaked" or (index + 1) % o["accumulate"] == 0:
                    optimizer.zero_grad()
            if not accelerator.sync_gradients:
                continue
            update += 1
            log.append({"step": update, "epoch": epoch, "loss": float(loss.detach()),
                        "grad_norm": float(norm), "lr": scheduler.get_last_lr()[0],
                        "num_tokens": seen})
            if update == o["restart"]:
                accelerator.save_state("state")
                accelerator.load_state("state")
                if plant == "skip_batches_every_epoch":
                    begun = index + 1
            if update == o["total"]:
                break
        epoch += 1
        skipping = skip_first_batches(loader, begun) if begun else loader
    if plant == "interleaved_writers":
        other = [{**row, "loss": row["loss"] * 1.07 + 0.01 * (row["step"] % 3)} for row in log]
        log = [row for both in zip(log, [None, None] + other) for row in both if row]
    parts.write_rows(os.path.join(out, "metrics.jsonl"), log)


def run_lightning(o, plant, out):
    import lightning
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = make_model(o, plant)

        def training_step(self, batch, _):
            loss = self.model(**batch).loss
            self.log("train_loss", loss, on_step=True, on_epoch=False)
            return loss

        def validation_step(self, batch, _):
            self.log("val_loss", self.model(**batch).loss)

        def on_before_optimizer_step(self, optimizer):
            self.log("grad_norm", parts.norm_of(weight.grad for weight in self.parameters()))

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=o["lr"], weight_decay=0.1)
            interval = "epoch" if plant == "scheduler_epoch_default" else "step"
            return {"optimizer": optimizer, "lr_scheduler": {
                "scheduler": schedule_of(o, optimizer), "interval": interval}}

    lightning.seed_everything(7 + 1000 * SEED)
    rows = o["rows"] or 160 * o["accumulate"]
    trainer = lightning.Trainer(
        max_steps=o["total"], accumulate_grad_batches=o["accumulate"], gradient_clip_val=o["clip"],
        accelerator="cpu", devices=1, log_every_n_steps=1, enable_checkpointing=False,
        logger=CSVLogger(".", name="csv", version="run"), enable_model_summary=False,
        callbacks=[LearningRateMonitor(logging_interval="step")], enable_progress_bar=False,
        num_sanity_val_steps=0)
    train = torch.utils.data.DataLoader(Ragged(rows), o["batch"], collate_fn=collate)
    held = torch.utils.data.DataLoader(Ragged(32, seed=2), o["batch"], collate_fn=collate)
    trainer.fit(Module(), train, held if o["evaluate"] == 1 else None)
    shutil.copy("csv/run/metrics.csv", out)


def guarded(case, target):
    try:
        torch.set_num_threads(1)
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        o = {**DEFAULTS, **case["options"]}
        with tempfile.TemporaryDirectory() as work:
            os.chdir(work)
            if case["kind"] == ACCELERATE:
                run_accelerate(o, case["plant"], target)
            elif case["kind"] == LIGHTNING:
                run_lightning(o, case["plant"], target)
            else:
                run_hf(o, case["kind"], case["plant"], target)
            os.chdir("/")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main():
    global SEED
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--out", metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    arguments_given = parser.parse_args()
    SEED = arguments_given.seed
    picked = [case for case in CASES
              if not arguments_given.only or case["name"] in arguments_given.only]
    if arguments_given.list or not arguments_given.out:
        for case in picked:
            print(case["name"], case["kind"], case["twin"] or "healthy", sep="\t")
        return 0
    import lightning  # noqa: F401  (before the fork: each case would import it again)
    import transformers.trainer  # noqa: F401
    import trl  # noqa: F401

    failed = 0
    for case in picked:
        target = os.path.join(os.path.abspath(arguments_given.out), case["name"])
        child = multiprocessing.get_context("fork").Process(target=guarded, args=(case, target))
        child.start()
        child.join()
        print(case["name"], "failed" if child.exitcode else "made", flush=True)
        failed += child.exitcode != 0
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
