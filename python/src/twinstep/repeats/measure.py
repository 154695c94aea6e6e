# SPDX-License-Identifier: Apache-2.0
"""`twinstep.noise`: how far repeats of one real training step are apart, on its own device."""
from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from ..floor_file import COLUMNS, Contents, write
from ..record import facts
from ..record.keyed_torch import DTYPES
from ..record.recorder import configuration
from ..trace import load
from . import opmoves
from .child import NoProcess, path_of_process
from .figures import Figures, alike, distance, equal, gap, relative
from .noise_report import Mode, Noise, Stratum, parts, rows
from .training import (ENDED, Build, Path, Tensors, Training, generators, other_states,
                       set_generators)

NEEDED = 99         # pairs for alpha 0.01: 1 / (99 + 1)
PROTOCOL = {
    "instance": "both runs of a pair built in one process and stepped in turn; no run in two pairs",
    "process": "each run of a pair in a process of its own; no run in two pairs"}
TOLD_EVERY = 5.0    # seconds between two lines of progress through the pairs
LONG = 60.0         # seconds of pairs that are told in a line where nobody watches, too
LOSS = "forward: the loss"
KEEPS = ("an iterator over data, a scheduler, a counter, a cache")


@contextlib.contextmanager
def _deterministic(on: bool) -> Iterator[None]:
    cudnn = torch.backends.cudnn
    before = (torch.are_deterministic_algorithms_enabled(),
              torch.is_deterministic_algorithms_warn_only_enabled(), cudnn.deterministic,
              cudnn.benchmark)
    torch.use_deterministic_algorithms(on)
    if on:
        cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        cudnn.deterministic, cudnn.benchmark = before[2:]


def _lasting(seconds: float) -> str:
    """A time to wait, in one unit."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else \
        f"{seconds / 60:.0f} min"


def _words(error: BaseException) -> str:
    """An error on one line."""
    line = " ".join(str(error).split())
    return f"{type(error).__name__}: {line[:400]}" if line else type(error).__name__


class _Measuring:
    """One call of `noise`: the user's function, the generators it began with, and what to do."""

    def __init__(self, build: Build, updates: int, repeats: int, timeout: float,
                 quiet: bool) -> None:
        self.build, self.updates, self.repeats, self.timeout = build, updates, repeats, timeout
        self.quiet = quiet
        self.states = generators()
        self.broken = ""                        # what of the first run is no number
        self.began: tuple[Tensors, list[float]] | None = None   # its weights, and its losses
        self.leaks = False                      # a step keeps state between instances
        self.processes: list[Path] = []
        self.seconds = {"instance": 0.0, "process": 0.0}        # of one run

    def tell(self, words: str, long: bool = False) -> None:
        """Says on stderr what is being done, and what was found, where somebody watches: on a
        terminal, or in a notebook; anywhere, where it takes long."""
        watched = sys.stderr.isatty() or "ipykernel" in sys.modules
        if not self.quiet and (watched or long):
            print(f"twinstep.noise: {words}", file=sys.stderr, flush=True)

    def _compare(self, name: str, base: Path, others: Iterator[Path]) -> Stratum:
        figures = Figures(base)
        for other in others:
            for tensor in base.start:
                if not equal(base.start[tensor], other.start.get(tensor)):
                    return Stratum(name, f"it begins with other weights ({tensor}): step_fn must "
                                   "build the same training each time")
            figures.add(other)
        return figures.stratum(name)

    def _repeats(self, training: Training, kept: Any) -> Iterator[Path]:
        for _ in range(self.repeats):
            training.restore(kept)
            yield training.path(self.updates)

    def _instances(self) -> Iterator[Path]:
        for _ in range(self.repeats):
            yield Training(self.build, self.states).path(self.updates)

    def _processes(self) -> Iterator[Path]:
        for _ in range(self.repeats):
            self.processes.append(self._process())
            yield self.processes[-1]

    def _process(self) -> Path:
        return path_of_process(self.build, self.states, self.updates, self.timeout)

    def _find_leaks(self, strata: tuple[Stratum, ...]) -> bool:
        """Whether instances part at a loss, before any gradient or weight differs, and processes do
        not part from each other: what the loss is of comes from outside of what step_fn builds.
        This process may not be like those, because it has called step_fn before."""
        _, instance, process = strata
        if instance.untestable or process.untestable or instance.first_place != LOSS:
            return False
        if len(self.processes) == 1:
            self.processes.append(self._process())
        return all(alike(self.processes[0], other) for other in self.processes[1:])

    def strata(self) -> tuple[Training, tuple[Stratum, ...]]:
        """All strata under the settings of now; what the first build or update raises."""
        on = torch.are_deterministic_algorithms_enabled()
        self.tell(f"deterministic algorithms {'on' if on else 'off'}: the first run")
        began = time.monotonic()
        training = Training(self.build, self.states)
        kept = training.keep()
        base = training.path(self.updates)
        self.seconds["instance"] = time.monotonic() - began
        self.tell(f"it took {_lasting(self.seconds['instance'])}; {self.repeats} in each of three "
                  "strata follow")
        is_first, self.processes = self.began is None, []
        if is_first:
            self.began, self.broken = (base.start, base.losses), base.broken()
        found = []
        for name, others in (("repeat", self._repeats(training, kept)),
                             ("instance", self._instances()), ("process", self._processes())):
            began = time.monotonic()
            try:
                found.append(self._compare(name, base, others))
                if name == "process":
                    self.seconds[name] = (time.monotonic() - began) / self.repeats
            except NoProcess as error:
                found.append(Stratum(name, str(error)))
            except Exception as error:          # noqa: B902 of the user's code, at a repeat
                found.append(Stratum(name, _words(error)))
            self.tell(found[-1].line().strip())
        if is_first:
            self.leaks = self._find_leaks(tuple(found))
        self.processes = []
        training.restore(kept)
        return training, tuple(found)

    def mode(self, ops: bool) -> tuple[Training, Mode]:
        """All strata, and which ops move where something does between instances."""
        on = torch.are_deterministic_algorithms_enabled()
        training, strata = self.strata()
        moved = [s for s in strata[:2] if s.first == 1]
        if not ops or not moved:
            return training, Mode(on, strata)
        self.tell("the ops that move")
        try:
            found = opmoves.find(self.build, self.states, self.repeats)
            return training, Mode(on, strata, found, ops_looked=True)
        except Exception as error:              # noqa: B902 dispatch modes do not bear everything
            return training, Mode(on, strata, (), _words(error))

    def unseeded(self, instance: Stratum) -> list[str]:
        """The generators that step_fn draws from before it seeds them: what its instances have in
        common differs where only the state is another one that they begin with. What the user's
        code raises with such a state."""
        if instance.untestable or self.began is None:
            return []
        start, losses = self.began
        alike = self.updates if instance.equal else instance.first - 1

        def draws(kinds: Collection[str]) -> bool:
            training = Training(self.build, other_states(self.states, kinds))
            other = training.path(alike)
            return any(not equal(t, other.start.get(name)) for name, t in start.items()) or \
                any(gap(a, b) != 0.0 for a, b in zip(losses, other.losses))
        kinds = [kind for kind in ("torch", "cuda", "numpy", "python") if kind in self.states]
        return [kind for kind in kinds if draws([kind])] if draws(kinds) else []

    def pair_of_instances(self) -> list[list[float]]:
        """Loss, gradient norm and distance of two instances, update by update."""
        a, b = Training(self.build, self.states), Training(self.build, self.states)
        out: list[list[float]] = [[], [], []]
        for k in range(self.updates):
            (one, mine, _), (other, yours, _) = a.advance(k), b.advance(k)
            out[0].append(gap(one, other))
            out[1].append(relative(mine, yours))
            out[2].append(distance(a.weights(), b.weights()))
        return out

    def pair_of_processes(self) -> list[list[float]]:
        """The same of two processes."""
        a, b = (path_of_process(self.build, self.states, self.updates, self.timeout)
                for _ in range(2))
        return [[gap(x, y) for x, y in zip(a.losses, b.losses)],
                [relative(x, y) for x, y in zip(a.norms, b.norms)],
                [distance(x, y) for x, y in zip(a.weights, b.weights)]]


def _configuration_of(recording: str | os.PathLike[str]) -> str:
    """The lines of a recording's configuration. Raises ValueError where it has none."""
    runs = list(load(recording).runs.values())
    text = runs[0].attributes.get("configuration") if len(runs) == 1 else None
    if not text or runs[0].attributes.get("digest") is None:
        raise ValueError(f"{os.fspath(recording)}: expected a recording of twinstep.Recorder")
    return str(text)


def _lines(training: Training, config: Mapping[str, Any], recorded: str | None) -> str:
    """The configuration that the floor is for. Raises ValueError where `recorded` is of another
    one, as far as this training can tell."""
    devices = {p.device for _, p in training.tensors}
    own = facts.lines(configuration(training.models, training.optimizers(), devices, config))
    if recorded is None:
        return own
    there = dict(line.split(": ", 1) for line in recorded.splitlines() if ": " in line)
    here = dict(line.split(": ", 1) for line in own.splitlines() if ": " in line)
    known = ("env.", "optimizer.", "frozen")
    odd = [f"{key}: {there.get(key, 'none')} in the recording, {here.get(key, 'none')} here"
           for key in sorted(set(here) | {k for k in there if k.startswith(known)})
           if here.get(key) != there.get(key)]
    if odd:
        raise ValueError("like: step_fn is another training than the recording: " + "; ".join(odd))
    return recorded


def _pairs(measuring: _Measuring, how: str, count: int) -> Mapping[str, Any]:
    one = measuring.pair_of_processes if how == "process" else measuring.pair_of_instances
    found: list[list[list[float]]] = []
    began = told = time.monotonic()
    takes = 2 * count * measuring.seconds[how]
    price = f", {2 * count} processes" if how == "process" else ""
    if takes >= LONG:
        price += f", about {_lasting(takes)}"
    measuring.tell(f"{count} A/A pair{'s' if count > 1 else ''}{price}", takes >= LONG)
    for i in range(count):
        found.append(one())
        now = time.monotonic()
        if i == 0 or now - told >= TOLD_EVERY:
            told = now
            left = (now - began) / (i + 1) * (count - i - 1)
            measuring.tell(f"A/A pair {i + 1} of {count}"
                           + (f", about {_lasting(left)} left" if left > 0 else ""))
    whole = np.array(found, "<f8").reshape(count, 3, measuring.updates)
    return {name: whole[:, c] for c, name in enumerate(COLUMNS)}


def _notes(mode: Mode, leaks: bool, how: str, columns: Mapping[str, Any] | None) -> list[str]:
    repeat, instance, process = mode.strata
    notes = []
    if ENDED in repeat.untestable or (not repeat.untestable and repeat.first and instance.equal
                                      and process.equal):
        notes.append("the same object differs from itself, other instances and processes do not: "
                     f"does step keep something ({KEEPS}) that step_fn does not return? What has a "
                     "state_dict can be returned, and a batch can be that of k")
    if leaks:
        pairs = ", so the A/A pairs are of processes" if columns is not None and how == "process" \
            else ""
        notes.append(f"instances of one process part at the loss of update {instance.first}, "
                     "before any gradient or weight does, and processes are bit-equal to each "
                     "other: step_fn or its step keeps something outside of what it builds "
                     f"({KEEPS}), and the next instance finds it{pairs}")
    elif instance.first > 0 and instance.first_place == LOSS and process.untestable:
        notes.append(f"instances part at the loss of update {instance.first}, before any gradient "
                     "or weight does, and no process could be asked: either the forward pass does "
                     f"not repeat, or step_fn keeps something outside of what it builds ({KEEPS})")
    if how == "instance" and columns is not None and not process.untestable and process.first:
        largest = float(columns["distance"][:, -1].max()) if len(columns["distance"]) else 0.0
        if process.distance[-1] > largest:
            notes.append(f"another process is {process.distance[-1]:.3g} away at the end, farther "
                         f"than all pairs ({largest:.3g}): pairs=..., across=\"process\" takes "
                         "that in")
    return notes


GENERATORS = {"torch": "torch's generator", "cuda": "CUDA's generators",
              "numpy": "numpy's generator", "python": "Python's generator"}


def _unseeded(measuring: _Measuring, mode: Mode) -> list[str]:
    """The note of generators that are drawn from before they are seeded."""
    try:
        kinds = measuring.unseeded(mode.stratum("instance"))
    except Exception as error:              # noqa: B902 of the user's code
        return [f"whether step_fn seeds what it draws from is not known: {_words(error)}"]
    if not kinds:
        return []
    names = " and ".join(GENERATORS[kind] for kind in kinds)
    return [f"step_fn draws from {names} before it seeds {'them' if len(kinds) > 1 else 'it'}: all "
            "instances began here from one state, and your own runs do not, unless they seed "
            "before they build; seed in step_fn"]


def _refusal(measuring: _Measuring, mode: Mode, how: str) -> str:
    """Why there can be no floor; "" where there can."""
    if measuring.broken:
        return (f"{measuring.broken}: trainings that broke are equal whatever differs, so this "
                "says nothing of repeats")
    stratum = mode.stratum(how)
    if stratum.untestable:
        return f"{how}: {stratum.untestable}"
    if how == "instance" and measuring.leaks:
        return ("pairs of instances would measure what the step keeps between them; leave out "
                "across=\"instance\", or let step_fn build it")
    return ""


def noise(step_fn: Build, *, updates: int = 1, repeats: int = 3, both: bool = True,
          ops: bool = True, output: str | os.PathLike[str] | None = None,
          pairs: int | None = None, across: str | None = None,
          config: Mapping[str, Any] | None = None, like: str | os.PathLike[str] | None = None,
          timeout: float = 3600.0, overwrite: bool = False, quiet: bool = False) -> Noise:
    """Repeats one real training step and says what moves: the strata of `twinstep noise` for your
    kernels on your device.

        def step_fn():                          # builds everything, from fixed seeds
            torch.manual_seed(0)
            model, optimizer, batches = ...
            def step(k):                        # update k, from 0; without k: the same each time
                loss = model(**batches[k]).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss
            return model, optimizer, step       # all that has a state, and the step at the end

        print(twinstep.noise(step_fn, output="floor.h5"))

    updates     updates of each run; a floor judges logs up to there
    repeats     comparisons in each stratum: the same object again, a new instance, a new process
    both        repeat all of it with the other setting of torch's deterministic algorithms
    ops         which ops move (needs a few more instances; none in a compiled graph is seen)
    output      floor file for `twinstep compare --floor` and `assert_same_training`, with `pairs`
                A/A pairs: 99 unless all is bit-equal, then 1. `config` is that of the recordings
                that it is for (`Recorder(config=...)`)
    like        a recording that the floor is for, instead of `config`: the lines that only it has
                (`args.*` of TwinstepCallback, its `config`) are taken over; those that this step
                has, too (torch, flags, the optimizer's settings, frozen weights), must be equal
    across      what the runs of a pair share: "instance" (one process) or "process" (nothing); by
                default the first, unless only processes differ, or the step keeps state outside
                of what step_fn builds, so that instances of one process are no repeats
    timeout     seconds that another process may take

    The function is called again and again in this process and, by its name, in others, so it must
    be importable. All paths are kept in the host's memory: weights and gradients of each update.
    A floor that would say nothing (a loss that is NaN, pairs that find each other's state) is not
    written: there is a warning, a note, and `output` of the result is None.
    Raises TypeError where the function returns something else, FileExistsError, and what its first
    run raises."""
    if updates < 1 or repeats < 1 or (pairs is not None and pairs < 1):
        raise ValueError(f"updates, repeats, pairs: expected at least 1, got {updates}, {repeats}, "
                         f"{pairs}")
    if across not in (None, "instance", "process"):
        raise ValueError(f"across: expected \"instance\" or \"process\", got {across!r}")
    if like is not None and (config is not None or output is None):
        raise ValueError("like: expected it with output= and without config=")
    recorded = None if like is None else _configuration_of(like)
    if output is not None and os.path.exists(output) and not overwrite:
        raise FileExistsError(f"{output} exists: give another name, or overwrite=True")
    if output is not None and not os.access(os.path.dirname(os.path.abspath(output)), os.W_OK):
        raise OSError(f"{output}: its folder is not there, or cannot be written to")
    measuring = _Measuring(step_fn, updates, repeats, timeout, quiet)
    try:
        return _measure(measuring, both, ops, output, pairs, across, config or {}, recorded,
                        overwrite)
    finally:
        set_generators(measuring.states)


def _measure(measuring: _Measuring, both: bool, ops: bool, output: Any, pairs: int | None,
             across: str | None, config: Mapping[str, Any], recorded: str | None,
             overwrite: bool) -> Noise:
    lines = None
    if output is not None:
        lines = _lines(Training(measuring.build, measuring.states), config, recorded)
    training, first = measuring.mode(ops)
    modes = [first]
    if both:
        other = not first.deterministic
        with _deterministic(other):
            try:
                modes.append(measuring.mode(ops)[1])
            except Exception as error:          # noqa: B902 an op without a deterministic way
                modes.append(Mode(other, tuple(Stratum(s.stratum, _words(error))
                                               for s in first.strata)))
    leaks = measuring.leaks
    only = leaks or (first.strata[1].equal and first.strata[2].first > 0)
    how = across or ("process" if only else "instance")
    # of a step that keeps state between instances only processes are repeats of each other
    is_exact = leaks and how == "process" or first.exact
    refusal = _refusal(measuring, first, how)
    columns = None
    count = 0
    if not refusal and (output is not None or pairs is not None):
        count = pairs if pairs is not None else 1 if is_exact else NEEDED
        columns = _pairs(measuring, how, count)
    name = getattr(measuring.build, "__qualname__", type(measuring.build).__name__)
    exact = is_exact and not refusal and (columns is None
                                       or not any(c.any() for c in columns.values()))
    notes = _unseeded(measuring, first) + _notes(first, leaks, how, columns)
    if refusal:
        lost = output is not None
        notes.append(refusal + ("; no floor was written" if lost else ""))
        if lost:
            warnings.warn(f"twinstep.noise: {os.fspath(output)} was not written: {refusal}",
                          RuntimeWarning, stacklevel=3)
            output = None
    if columns is not None and is_exact and not exact:
        notes.append("the strata are bit-equal and an A/A pair is not: the floor is not exact; ask "
                     "for more repeats")
    if output is not None and columns is not None:
        dtype = DTYPES[training.tensors[0][1].dtype]
        assert lines is not None
        write(output, Contents(name, "main", "twinstep.noise", lines, PROTOCOL[how], exact,
                               measuring.updates, columns,
                               rows(tuple(modes), dtype, torch.get_num_threads(),
                                    measuring.updates),
                               parts(tuple(modes), dtype)), overwrite)
    return Noise(name, measuring.updates, tuple(modes), count, PROTOCOL[how], exact,
                 tuple(notes),
                 None if output is None else pathlib.Path(output))
