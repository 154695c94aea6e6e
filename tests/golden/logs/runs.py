# SPDX-License-Identifier: Apache-2.0
"""Makes one fixture: python runs.py NAME. It writes into the present folder; generate.py makes the
folders.

Every run is made by a real trainer of the library named, and what it logs is left as it is."""

import inspect
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tiny  # noqa: E402

# For each name: what a Trainer gets, and what the contract calls it. `log` is logging_steps.
HF = {
    "hf-linear": dict(schedule="linear", lr=5e-5, steps=20, warmup_ratio=0.1, log=1),
    "hf-linear-cold": dict(schedule="linear", lr=5e-7, steps=5, warmup=0, log=1),
    "hf-cosine": dict(schedule="cosine", lr=2e-5, steps=30, warmup=3, log=5, accumulate=2),
    "hf-constant-warmup": dict(schedule="constant_with_warmup", lr=1e-4, steps=15, warmup=5, log=1),
    "hf-cosine-min": dict(schedule="cosine_with_min_lr", lr=3e-4, steps=24, warmup_ratio=0.07,
                          log=1, values={"min_lr_rate": 0.1}),
    "hf-polynomial": dict(schedule="polynomial", lr=1e-3, steps=20, warmup=4, log=1,
                          values={"power": 2.0}),
    "hf-inverse-sqrt": dict(schedule="inverse_sqrt", lr=1e-3, steps=20, warmup=4, log=1),
    "hf-restarts": dict(schedule="cosine_with_restarts", lr=1e-3, steps=20, warmup=2, log=1,
                        values={"num_cycles": 2}),
    "hf-wsd": dict(schedule="warmup_stable_decay", lr=1e-3, steps=20, warmup=4, log=1,
                   values={"num_decay_steps": 6, "min_lr_ratio": 0.1}),
    "hf-epochs": dict(schedule="linear", lr=5e-5, epochs=3.0, dataset=22, batch=2, accumulate=3,
                      warmup_ratio=0.1, log=1, evaluate=4),
    "hf-progress": dict(schedule="linear", lr=5e-5, steps=12, warmup=2, log=3, progress=True),
    "hf-nan": dict(schedule="linear", lr=1e30, steps=8, warmup=0, log=1),
    "hf-two-processes": dict(schedule="linear", lr=5e-5, epochs=2.0, dataset=41, batch=2,
                             accumulate=2, warmup_ratio=0.1, log=1, processes=2),
    "hf-resume": dict(schedule="cosine", lr=1e-4, steps=16, warmup=4, log=1, save=6, die=9),
}
DPO = {
    "dpo-linear": dict(schedule="linear", lr=5e-7, steps=20, warmup_ratio=0.1, log=1),
    "dpo-linear-cold": dict(schedule="linear", lr=5e-7, steps=5, warmup=0, log=1),
    "dpo-cosine": dict(schedule="cosine", lr=5e-7, epochs=2.0, dataset=21, batch=2, accumulate=2,
                       warmup_ratio=0.1, log=2),
    "dpo-fast": dict(schedule="linear", lr=1e-2, steps=20, warmup=0, log=1),
}
SFT = {"sft-cosine": dict(schedule="cosine", lr=2e-4, steps=12, warmup_ratio=0.25, log=1)}


class Death(Exception):
    """Stands for the job being killed."""


def facts(name, run, contract, command, **more):
    keys = ("schedule", "lr", "steps", "warmup", "warmup_ratio", "epochs", "dataset", "batch",
            "accumulate", "values", "processes")
    told = {key: run[key] for key in keys if key in run}
    return {"name": name, "contract": contract, "command": command, "real": True, **told, **more}


def arguments(cls, run, warm_ratio_argument, **more):
    """Makes TrainingArguments, or a child of it, in the words of the installed release."""
    known = inspect.signature(cls.__init__).parameters
    given = dict(
        output_dir="out", learning_rate=run["lr"], lr_scheduler_type=run["schedule"],
        lr_scheduler_kwargs=dict(run.get("values", {})),
        per_device_train_batch_size=run.get("batch", 2),
        gradient_accumulation_steps=run.get("accumulate", 1),
        num_train_epochs=run.get("epochs", 3.0), max_steps=run.get("steps", -1),
        logging_steps=run["log"], report_to=["tensorboard"], use_cpu=True, seed=7,
        disable_tqdm=not run.get("progress", False), save_strategy="steps" if "save" in run else "no",
        warmup_steps=run.get("warmup", 0), **more)
    if "save" in run:
        given["save_steps"] = run["save"]
    if "warmup_ratio" in run:
        key = "warmup_ratio" if warm_ratio_argument else "warmup_steps"
        given[key] = run["warmup_ratio"]
    if "evaluate" in run:
        given["eval_strategy" if "eval_strategy" in known else "evaluation_strategy"] = "steps"
        given["eval_steps"] = run["evaluate"]
    if run["lr"] > 1:
        given["logging_nan_inf_filter"] = False
    if "logging_dir" in known:
        given["logging_dir"] = "events"
    if "lr_scheduler_kwargs" not in known:
        del given["lr_scheduler_kwargs"]
    return cls(**given)


def trained(name, run, make, contract, names):
    """Trains once, or until the job dies and again from its checkpoint; writes state and truth."""
    os.environ["TENSORBOARD_LOGGING_DIR"] = "events"
    truth, trainer = tiny.Truth(), make()
    trainer.create_optimizer_and_scheduler(trainer.args.max_steps)
    trainer.lr_scheduler = None  # train() makes it again, with the total that it derives
    truth.watch(trainer.optimizer)
    first, restarted = 1, None
    if "die" in run:
        from transformers import TrainerCallback

        class Kill(TrainerCallback):
            def on_step_end(self, args, state, control, **_):
                # The job ends after this update was logged, in the middle of the next one.
                return control

            def on_step_begin(self, args, state, control, **_):
                if state.global_step == run["die"]:
                    raise Death

        trainer.add_callback(Kill())
        try:
            trainer.train()
        except Death:
            pass
        truth.write("truth-before.json", **facts(
            name, run, contract, "runs.py " + name, versions=tiny.versions(*names), first=1))
        truth, trainer = tiny.Truth(), make()
        trainer.create_optimizer_and_scheduler(trainer.args.max_steps)
        trainer.lr_scheduler = None
        truth.watch(trainer.optimizer)
        first, restarted = run["save"] + 1, f"out/checkpoint-{run['save']}"
        print("restarted from checkpoint", run["save"], flush=True)
    trainer.train(resume_from_checkpoint=restarted)
    if not trainer.is_world_process_zero():
        return
    assert trainer.args.world_size == run.get("processes", 1)
    trainer.save_state()
    shutil.move("out/trainer_state.json", "trainer_state.json")
    truth.write("truth.json", **facts(
        name, run, contract, "runs.py " + name, versions=tiny.versions(*names), first=first,
        total=trainer.state.max_steps))


def is_new():
    import transformers

    return int(transformers.__version__.split(".")[0]) >= 5


def contract_of_hf():
    import transformers

    release = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    if release >= (4, 52):
        return "hf"
    return "hf-4.51" if release == (4, 51) else "hf-4.50"


def hf(name):
    from transformers import Trainer, TrainingArguments

    run = HF[name]

    def make():
        rows = tiny.Tokens(run.get("dataset", 40))
        return Trainer(
            model=tiny.model(), args=arguments(TrainingArguments, run, not is_new()),
            train_dataset=rows, eval_dataset=tiny.Tokens(6, seed=2) if "evaluate" in run else None)

    trained(name, run, make, contract_of_hf(), ("torch", "transformers", "accelerate"))


def dpo(name):
    from trl import DPOConfig, DPOTrainer

    run = DPO[name]

    def make():
        args = arguments(DPOConfig, run, not is_new(), beta=0.1, max_length=32)
        return DPOTrainer(model=tiny.model(), ref_model=tiny.model(), args=args,
                          train_dataset=tiny.pairs(run.get("dataset", 40)),
                          processing_class=tiny.tokenizer())

    trained(name, run, make, contract_of_hf(), ("torch", "transformers", "accelerate", "trl"))


def sft(name):
    from trl import SFTConfig, SFTTrainer

    run = SFT[name]

    def make():
        return SFTTrainer(model=tiny.model(), args=arguments(SFTConfig, run, not is_new()),
                          train_dataset=tiny.texts(40), processing_class=tiny.tokenizer())

    trained(name, run, make, contract_of_hf(), ("torch", "transformers", "accelerate", "trl"))


LIGHTNING = {
    "lightning-step": dict(schedule="linear", lr=1e-3, warmup=2, epochs=3.0, dataset=24, batch=2,
                           accumulate=2, interval="step"),
    "lightning-epoch": dict(schedule="linear", lr=1e-3, warmup=1, epochs=5.0, dataset=12, batch=2,
                            accumulate=1, interval="epoch"),
}


def lightning_run(name):
    import lightning
    import torch
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
    from transformers import get_scheduler

    run, truth = LIGHTNING[name], tiny.Truth()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = tiny.model()

        def training_step(self, batch, _):
            loss = self.model(**batch).loss
            self.log("train_loss", loss, on_step=True, on_epoch=False)
            return loss

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=run["lr"])
            truth.watch(optimizer)
            total = int(self.trainer.estimated_stepping_batches)
            self.total = total if run["interval"] == "step" else int(run["epochs"])
            scheduler = get_scheduler(run["schedule"], optimizer, run["warmup"], self.total)
            return {"optimizer": optimizer,
                    "lr_scheduler": {"scheduler": scheduler, "interval": run["interval"]}}

    lightning.seed_everything(7)
    module = Module()
    loggers = [CSVLogger(".", name="csv", version="run"),
               TensorBoardLogger(".", name="events", version="run")]
    trainer = lightning.Trainer(
        max_epochs=int(run["epochs"]), accumulate_grad_batches=run["accumulate"], logger=loggers,
        accelerator="cpu", devices=1, callbacks=[LearningRateMonitor(logging_interval="step")],
        log_every_n_steps=1, enable_checkpointing=False, enable_model_summary=False,
        enable_progress_bar=False)
    loader = torch.utils.data.DataLoader(tiny.Tokens(run["dataset"]), batch_size=run["batch"])
    trainer.fit(module, loader)
    shutil.move("csv/run/metrics.csv", "metrics.csv")
    batches = -(-run["dataset"] // run["batch"])
    truth.write("truth.json", **facts(
        name, run, name, "runs.py " + name, total=module.total, first=1,
        updates_per_epoch=-(-batches // run["accumulate"]),
        versions=tiny.versions("torch", "lightning", "transformers")))


ACCELERATE = {
    "accelerate-both": dict(schedule="linear", lr=5e-5, steps=20, warmup=4, rescaled="both"),
    "accelerate-none": dict(schedule="linear", lr=5e-5, steps=20, warmup=4, rescaled="none"),
    "accelerate-total": dict(schedule="cosine", lr=5e-5, steps=20, warmup=4, rescaled="total"),
}


def accelerate_run(name):
    """Runs the usual loop, in as many processes as were launched."""
    import json

    import torch
    from accelerate import Accelerator
    from transformers import get_scheduler

    run, truth = ACCELERATE[name], tiny.Truth()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    processes = accelerator.num_processes
    torch.manual_seed(7)
    model = tiny.model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=run["lr"])
    truth.watch(optimizer)
    total = run["steps"] * (processes if run["rescaled"] in ("both", "total") else 1)
    warm = run["warmup"] * (processes if run["rescaled"] == "both" else 1)
    scheduler = get_scheduler(run["schedule"], optimizer, warm, total)
    loader = torch.utils.data.DataLoader(tiny.Tokens(160), batch_size=2)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    rows, step = [], 0
    while step < run["steps"]:
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                step += 1
                mean = accelerator.reduce(loss.detach(), "mean").item()
                rows.append({"step": step, "loss": mean, "lr": scheduler.get_last_lr()[0]})
                if step == run["steps"]:
                    break
    if accelerator.is_main_process:
        with open("metrics.jsonl", "w", encoding="ascii") as out:
            for row in rows:
                out.write(json.dumps(row) + "\n")
        assert processes == 2
        truth.write("truth.json", **facts(
            name, {**run, "accumulate": 2}, "accelerate",
            "torchrun --nproc_per_node 2 runs.py " + name, total=run["steps"],
            processes=processes, rescaled=run["rescaled"], first=1,
            versions=tiny.versions("torch", "accelerate", "transformers")))
    accelerator.wait_for_everyone()
    accelerator.end_training()


def main():
    name = sys.argv[1]
    for table, function in ((HF, hf), (DPO, dpo), (SFT, sft), (LIGHTNING, lightning_run),
                            (ACCELERATE, accelerate_run)):
        if name in table:
            return function(name)
    raise SystemExit("no such run: " + name)


if __name__ == "__main__":
    main()
