# SPDX-License-Identifier: Apache-2.0
"""Cases from transformers.Trainer of any release: plain, resumed, and with skipped updates.

Skipped updates come from a real torch.amp.GradScaler: the loss of the chosen updates is multiplied
by infinity. Accelerate refuses fp16 on a CPU, so the scaler and the precision are put into the
Accelerator that the Trainer made; scaling, unscaling, clipping, skipping and the scheduler are the
libraries' own."""

import os
import random
import tempfile

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # old Trainers read their own random state

import torch

from golden import SEED, Case, random_lr
from loops import hf_values, with_values
from trainers import Rows, Weight, quiet, trainer_options

NAMES = ["linear", "cosine", "constant_with_warmup", "cosine_with_restarts", "inverse_sqrt",
         "polynomial", "cosine_with_min_lr"]


def release():
    import transformers

    return tuple(int(part) for part in transformers.__version__.split(".")[:2])


def contract_of(found):
    if found >= (4, 52):
        return "hf"
    return "hf-4.51" if found == (4, 51) else "hf-4.50"


class Overflowing(Weight):
    """Makes a loss that is not finite in the updates that it is told, and notes the LR in force."""

    def forward(self, x, labels=None):
        loss = super().forward(x, labels)["loss"]
        return {"loss": loss * float("inf") if self.watch.begin() else loss}


def arguments(folder, lr, name, values, options, warm):
    from transformers import TrainingArguments

    given = {"warmup_steps": warm.get("warmup", 0)}
    if values:
        given["lr_scheduler_kwargs"] = dict(values)
    if "warmup_ratio" in warm:
        given["warmup_steps" if release() >= (5, 0) else "warmup_ratio"] = warm["warmup_ratio"]
    return TrainingArguments(
        output_dir=folder, learning_rate=lr, lr_scheduler_type=name,
        per_device_train_batch_size=options["batch"],
        gradient_accumulation_steps=options["accumulate"],
        num_train_epochs=options.get("epochs", 3.0), max_steps=options.get("steps", -1),
        dataloader_drop_last=bool(options.get("drop_last")), logging_steps=1,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, optim="sgd", **given)


def scale(trainer):
    trainer.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    trainer.accelerator.native_amp = True
    trainer.accelerator.state._mixed_precision = "fp16"
    assert trainer.accelerator.mixed_precision == "fp16"


class Watch:
    """Notes LRs by update: `force` before the step, `stepped` in it, `logged` in the Trainer's own
    log.

    Updates are counted by the Trainer. (on_step_begin would not do: up to 4.46 windows go on over
    the end of an epoch, but that callback does not.)"""

    def __init__(self, skipped):
        from transformers import TrainerCallback

        watch = self
        self.skipped, self.force, self.stepped, self.logged = skipped, {}, {}, {}

        class Callback(TrainerCallback):
            def on_log(self, args, state, control, logs=None, **_):
                if "learning_rate" in logs:
                    watch.logged[state.global_step] = logs["learning_rate"]

        self.callback = Callback()

    def attach(self, trainer):
        trainer.add_callback(self.callback)
        trainer.create_optimizer()
        self.trainer, self.optimizer = trainer, trainer.optimizer

        def before(stepping, *_):
            self.stepped[self.now] = stepping.param_groups[0]["lr"]

        self.optimizer.register_step_pre_hook(before)

    def begin(self):
        """Called where a micro-batch begins; tells whether its update is to overflow."""
        self.now = self.trainer.state.global_step + 1
        self.force.setdefault(self.now, self.optimizer.param_groups[0]["lr"])
        return self.now in self.skipped


def train(watch, args, rows, scaled, checkpoint=None):
    from transformers import Trainer

    model = Overflowing()
    model.watch = watch
    trainer = Trainer(model=model, args=args, train_dataset=Rows(rows))
    if scaled:
        scale(trainer)
    watch.attach(trainer)
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer


def run(rng, name, kind):
    from accelerate.state import AcceleratorState

    lr, options = random_lr(rng), trainer_options(rng)
    if kind == "plain" or "steps" not in options:  # windows that do not divide the epoch
        options.pop("steps", None), options.pop("drop_last", None)
        options["epochs"] = rng.choice([2.0, 3.0, 1.5])
        options["accumulate"] = rng.choice([2, 3, 4])
        options["dataset"] = options["batch"] * (options["accumulate"] * rng.randint(2, 5) + 1)
    warm = {"warmup_ratio": rng.choice([0.03, 0.1, 0.07, 0.29])} if rng.random() < 0.5 else \
        {"warmup": rng.randint(0, 4)}
    values = hf_values(rng, name, lr, 40, 0)
    if name == "inverse_sqrt":
        values = {}  # get_scheduler of 4.46.3 drops them
    if release() < (4, 38):
        values = {}  # no lr_scheduler_kwargs yet
    skipped = sorted(rng.sample(range(1, 8), rng.randint(1, 3))) if kind == "skipped" else []
    watch, label = Watch(skipped), "Trainer"
    with tempfile.TemporaryDirectory() as folder:
        args = arguments(folder, lr, name, values, options, warm)
        if kind == "resumed":
            args.save_strategy, args.save_steps = type(args.save_strategy)("steps"), 3
        trainer = train(watch, args, options["dataset"], kind == "skipped")
        if kind == "resumed" and trainer.state.max_steps > 3:
            label, watch = "Trainer-resumed", Watch([])
            args.save_strategy = type(args.save_strategy)("no")
            train(watch, args, options["dataset"], False, f"{folder}/checkpoint-3")
            assert min(watch.force) == 4, watch.force
    AcceleratorState._reset_state(True)
    watch.force.pop(max(watch.logged) + 1, None)  # micro-batches after the last update
    skipped = [k for k in skipped if k in watch.force]
    assert sorted(watch.force) == sorted(watch.logged), (options, watch.logged)
    assert sorted(watch.stepped) == [k for k in sorted(watch.force) if k not in skipped]
    for k, rate in watch.stepped.items():
        assert rate == watch.force[k]
    options = {"lr": lr, **warm, **options}
    if skipped:
        label = "Trainer-GradScaler"
        options["skipped"] = ",".join(map(str, skipped))
    import transformers

    label += "-" + transformers.__version__
    return Case(contract_of(release()), name, label, with_values(options, values), watch.force,
                watch.logged, bends=tuple(skipped))


def cases():
    """Makes the same configurations in every release."""
    quiet()
    rng = random.Random(f"{SEED} eras")
    names = NAMES if release() >= (4, 42) else NAMES[:-1]
    plan = [(name, "plain") for name in names]
    plan += [(name, "resumed") for name in ("linear", "cosine")]
    plan += [(name, "skipped") for name in ("linear", "cosine", "constant_with_warmup")]
    return [run(rng, name, kind) for name, kind in plan]
