# SPDX-License-Identifier: Apache-2.0
"""The program's verbs as functions. Each runs one process and returns what it answers.

All raise ProgramMissing, and ProgramError, with the program's own text, where it refuses."""
import dataclasses
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from twinstep._decode import decode
from twinstep._program import ask, tell
from twinstep.results import Comparison, Judgement, LogCheck, LogFit, Readback, Rollout

Path = str | os.PathLike[str]
Options = Mapping[str, Any]
T = TypeVar("T", Comparison, Judgement, LogCheck, LogFit, Readback, Rollout)


def _words(options: Options) -> list[str]:
    """Returns {"min_lr_ratio": 0.1} as ["--min-lr-ratio=0.1"]; True: the bare option; not None."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            text = os.fspath(value) if isinstance(value, os.PathLike) else f"{value}"
            words.append(f"{option}={text}")
    return words


def _answer(kind: type[T], words: Sequence[str], **known: Any) -> T:
    status, given = ask(words)
    return dataclasses.replace(decode(kind, given), status=status, **known)


def run(scenario: Path | Mapping[str, Any], *, output: Path | None = None,
        set: Mapping[str, Any] | None = None, floor: Path | None = None,
        overwrite: bool = False, reproducible: bool = False,
        backend: str | None = None) -> Judgement:
    """Trains both arms of a scenario and names the cause (twinstep run). Takes as long as it takes.

    `scenario` is a YAML file, a name of the catalogue, or the scenario as a dict. `output` is the
    trace, NAME.h5 in this folder by default. `set` changes keys: {"common.optimizer.lr": 1e-6}."""
    if isinstance(scenario, Mapping):
        with tempfile.TemporaryDirectory() as folder:
            name = str(scenario.get("name", "scenario"))
            file = pathlib.Path(folder, f"{pathlib.Path(name).name}.yaml")
            file.write_text(json.dumps(scenario), encoding="utf-8")  # which is YAML, too
            return run(file, output=output, set=set, floor=floor, overwrite=overwrite,
                       reproducible=reproducible, backend=backend)
    options = {"output": output, "floor": floor, "overwrite": overwrite, "backend": backend,
               "reproducible": reproducible, "quiet": True}
    changes = [f"--set={key}={value}" for key, value in (set or {}).items()]
    judgement = _answer(Judgement, ["run", *_words(options), *changes, "--", os.fspath(scenario)])
    trace = pathlib.Path(output) if output is not None else pathlib.Path(f"{judgement.name}.h5")
    return dataclasses.replace(judgement, trace=trace)


def init(config: Any, output: Path, *, overwrite: bool = False,
         task: str | None = None) -> pathlib.Path:
    """Writes a scenario from the arguments of Trainer, SFTTrainer or DPOTrainer (twinstep init).

    `config` is the object itself (TrainingArguments, SFTConfig, DPOConfig), or a file of its JSON
    or of YAML, where `task` ("dpo" or "sft") says what was trained if no name does. What does not
    translate stands in the scenario as comments. Returns `output`."""
    text = config.to_json_string() if hasattr(config, "to_json_string") else None
    tell(["init", *_words({"output": output, "overwrite": overwrite, "task": task}),
          f"--from-trl={'-' if text is not None else os.fspath(config)}"], text)
    return pathlib.Path(output)


def attribute(trace: Path) -> Judgement:
    """Judges a trace again, finished or killed (twinstep attribute)."""
    return _answer(Judgement, ["attribute", "--", os.fspath(trace)], trace=pathlib.Path(trace))


def compare(a: Path, b: Path, *, floor: Path | None = None, **options: Any) -> Comparison:
    """Whether two runs are the same, from logs or traces of any kinds (twinstep compare).

    `floor` is a floor file (twinstep noise -o, twinstep floor -o). Further options as the verb has
    them, with _ for -: run_a="baseline"."""
    words = _words({"floor": floor, **options})
    return _answer(Comparison, ["compare", *words, "--", os.fspath(a), os.fspath(b)])


def check_log(log: Path, *, expect: str, schedule: str | None = None, lr: float | None = None,
              steps: int | None = None, warmup: float | None = None,
              warmup_ratio: float | None = None, **options: Any) -> LogCheck:
    """Whether a log holds the LRs of a contract and a schedule (twinstep lr check).

    `expect` is a contract of `twinstep list contracts`. Further options as the verb has them, with
    _ for -: min_lr_ratio=0.1."""
    known = {"expect": expect, "schedule": schedule, "lr": lr, "steps": steps, "warmup": warmup,
             "warmup_ratio": warmup_ratio}
    return _answer(LogCheck, ["lr", "check", *_words({**known, **options}), "--", os.fspath(log)])


def fit(log: Path, *, contract: str | None = None, schedule: str | None = None,
        lr: float | None = None, steps: int | None = None, **options: Any) -> LogFit:
    """Which contracts and schedules give the LRs of a log (twinstep lr fit). Options as there."""
    known = {"contract": contract, "schedule": schedule, "lr": lr, "steps": steps}
    return _answer(LogFit, ["lr", "fit", *_words({**known, **options}), "--", os.fspath(log)])


def readback(*checkpoints: Path, log: Path | None = None, names: Path | None = None,
             expect: Mapping[str, float] | None = None) -> Readback:
    """What each update between consecutive checkpoints applied (twinstep readback).

    `expect` is what you configured: {"max_grad_norm": 1.0}. At least two checkpoints."""
    wanted = [f"--expect={key}={value}" for key, value in (expect or {}).items()]
    places = [os.fspath(checkpoint) for checkpoint in checkpoints]
    return _answer(Readback, ["readback", *_words({"log": log, "names": names}), *wanted, "--",
                              *places])


def rollout(file: Path, second: Path | None = None, *, floor: Sequence[Path] = (),
            fields: Mapping[str, str] | None = None) -> Rollout:
    """An engine's log-probs against the trainer's (twinstep rollout).

    `second` joins two JSONL files by id. `floor` are A/A files of the same form, `fields` says what
    a field is called: {"rollout": "my_logprobs"}."""
    words = [f"--floor={os.fspath(name)}" for name in floor]
    words += [f"--field={role}={name}" for role, name in (fields or {}).items()]
    files = [os.fspath(file), *([os.fspath(second)] if second is not None else [])]
    return _answer(Rollout, ["rollout", *words, "--", *files])
