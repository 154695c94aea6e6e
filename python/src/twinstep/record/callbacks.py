# SPDX-License-Identifier: Apache-2.0
"""`TwinstepCallback`: the recorder for transformers' Trainer (so TRL's) and for Lightning. They
call disjoint methods but for `on_train_end`, so one object serves both. Neither is imported."""
from __future__ import annotations

import glob
import os
import sys
from typing import Any

from . import facts
from .channel import warn
from .layout import PAIRS
from .recorder import Recorder


def free_path(path: str) -> str:
    """`path`, or run-2.h5, run-3.h5, ... for run.h5: the first of which no recording is there, of
    any rank, so that all ranks of a training that begins again choose the same."""
    stem, end = os.path.splitext(path)
    number = 1
    while True:
        base = stem if number == 1 else f"{stem}-{number}"
        ranks = glob.glob(f"{glob.escape(base)}.rank[0-9][0-9][0-9][0-9]{glob.escape(end)}*")
        if not ranks and not any(os.path.exists(base + end + part) for part in ("", ".part")):
            return base + end
        number += 1


class _Shared:
    """What both callbacks do with their recorder."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        """`path` and `options` are those of `Recorder`. Raises TypeError for another `config`,
        ValueError for one with a key that no reader takes."""
        facts.arguments(options.get("config"))
        self.path, self.options = path, options
        self.recorder: Recorder | None = None

    def __reduce__(self) -> Any:
        """A copy, in another process or of a trainer, records by itself: it is made anew."""
        return _made, (self.path, self.options)

    def _open(self, model: Any, optimizer: Any, scheduler: Any, config: dict[str, Any],
              done: int, **more: Any) -> None:
        """`done`: how many updates the training made before, which it goes on from."""
        said = {**config, **facts.arguments(self.options.get("config"))}
        options = {"first": done + 1, **self.options, "config": said, **more}
        self._close(complete=False)     # of a training that ended by an error, and begins again
        path = free_path(os.path.abspath(self.path))
        if path != os.path.abspath(self.path):
            warn(f"twinstep: {self.path} exists, so this training is recorded in {path}")
        self.recorder = Recorder(model, optimizer, scheduler, path=path, **options).start()

    def _close(self, complete: bool) -> None:
        if self.recorder is not None:
            self.recorder.close(complete)
            self.recorder = None

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Both libraries: the training ran to its end."""
        self._close(complete=True)


class _Transformers(_Shared):
    """A row ends at `on_step_end` and is sent when the next update begins, because the log of an
    update comes after its end."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        """transformers: the loop begins."""
        # `train()` makes a new scheduler, and may wrap the model: those of now are the right ones.
        said = facts.arguments(args) if hasattr(args, "to_dict") else {}
        self._open(kw["model"], kw.get("optimizer"), kw.get("lr_scheduler"), said,
                   state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        """transformers: the next update begins, so the row of the last one is whole."""
        if self.recorder is not None:
            self.recorder.send()

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        """transformers: the update ends; its log is still to come."""
        if self.recorder is not None:
            self.recorder.finish()
            self.recorder.note(epoch=None if state.epoch is None else int(state.epoch))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kw: Any) -> None:
        """transformers: what the log of the last update prints."""
        if self.recorder is not None and logs and "learning_rate" in logs:
            self.recorder.note(lr_logged=logs["learning_rate"])
            # TRL's mean since the last log is this update's where every update is logged
            if getattr(args, "logging_steps", None) == 1:
                self.recorder.note(**{ours: logs[theirs] for theirs, ours in PAIRS.items()
                                      if isinstance(logs.get(theirs), (int, float))})


class _Lightning(_Shared):
    """Lightning runs the whole batch inside of `optimizer.step`; the recorder reads gradients where
    they are this update's. An update ends with the batch that moved `global_step`."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Lightning: the loop begins."""
        configs = trainer.lr_scheduler_configs
        # `global_step` counts the steps of all optimizers, so of several it numbers no update.
        done = trainer.global_step if len(trainer.optimizers) == 1 else 0
        self._open(pl_module, trainer.optimizers, configs[0].scheduler if configs else None, {},
                   done, hook=False)
        self.steps = trainer.global_step

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        """Lightning: the next batch begins, so the row of the last one is whole. `training_step`
        calls inner modules and not the LightningModule, so the batch is taken from here."""
        if self.recorder is not None:
            self.recorder.send()
            if self.recorder.forward:
                self.recorder.on_forward((batch,), {})

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Lightning: ends an update if the batch was its last one."""
        if self.recorder is not None and trainer.global_step != self.steps:
            self.steps = trainer.global_step
            self.recorder.finish()
            self.recorder.note(epoch=trainer.current_epoch)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Lightning: the training ends early."""
        self._close(complete=False)


def _made(path: str | os.PathLike[str], options: dict[str, Any]) -> Any:
    return TwinstepCallback(path, **options)


def TwinstepCallback(path: str | os.PathLike[str], **options: Any) -> Any:
    """A callback that records; arguments as `Recorder` has them, without model and optimizer.

        trainer = DPOTrainer(..., callbacks=[TwinstepCallback("run.h5", every=1)])

    Its class is a callback of each of transformers and Lightning that the program has imported."""
    bases = [_Transformers, _Lightning]
    for module, name in (("transformers.trainer_callback", "TrainerCallback"),
                         ("lightning.pytorch.callbacks.callback", "Callback"),
                         ("pytorch_lightning.callbacks.callback", "Callback")):
        if module in sys.modules:
            bases.append(getattr(sys.modules[module], name))
    kind: Any = type("TwinstepCallback", tuple(bases), {})
    return kind(path, **options)
